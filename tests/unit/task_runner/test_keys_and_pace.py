"""Keys, settings and the pace of feeding, without processes."""

from __future__ import annotations

import hashlib
import os

import pytest

from yarnctl.task_runner.runner import reports
from yarnctl.task_runner.runner.feeding import Pacer
from yarnctl.task_runner.runner.main import Runner
from yarnctl.task_runner.runner.protocol import job_conf
from yarnctl.task_runner.runner.protocol.job_conf import read_settings
from yarnctl.task_runner.runner.protocol.key_rule import KeyRule, Scanner
from yarnctl.task_runner.runner.protocol.manifests import TaskId
from yarnctl.task_runner.runner.protocol.stores import LocalStore, Unusable, check_root
from yarnctl.task_runner.runner.reports import Errors

LINE = b"%s\n"
RULES = [
    # fields, map separator, reduce separator, key fields, line, key
    (1, b"\t", b"\t", 1, b"a\tb\tc", b"a"),
    (1, b"\t", b"\t", 1, b"a", b"a"),
    (1, b"\t", b"\t", 1, b"", b""),
    (1, b"\t", b"\t", 1, b"\tv", b""),
    (1, b"\t", b"\t", 1, b"\xff\xc3\tv", b"\xff\xc3"),
    (2, b"\t", b"\t", 2, b"a\tb\tc", b"a\tb"),
    (2, b"\t", b"\t", 2, b"a\tb", b"a\tb"),
    (1, b"\t", b"\t", 2, b"a\tb\tc", b"a"),
    (1, b".", b"\t", 2, b"a.b\tc", b"a"),
    (2, b".", b"\t", 2, b"a.b\tc.d", b"a.b"),
    (2, b".", b"\t", 3, b"a.b.c\td", b"a.b"),
    (2, b".", b"\t", 3, b"a\td.e", b"a"),
    (1, b"]", b"^", 1, b"a-\\b^c", b"a-\\b"),
    (1, b"\x01", b"\x01", 1, b"a\tb\x01c", b"a\tb"),
]


@pytest.mark.parametrize(("fields", "by_map", "by_reduce", "key_fields", "line", "key"), RULES)
def test_a_key_is_its_first_fields(fields, by_map, by_reduce, key_fields, line, key):
    rule = KeyRule(fields, by_map, by_reduce, key_fields)
    lines = LINE % line + LINE % line + b"~\n"
    assert [found for _, found in rule.lines(lines)] == [key, key, b"~"]
    assert dict.fromkeys(rule.keys(lines)) == dict.fromkeys([key, b"~"])
    assert rule.key_of_start(line, final=True) == key
    assert rule.all_of(key, LINE % line + LINE % line) in (True, False)
    assert not rule.all_of(key, lines)


def test_a_short_key_is_another_than_one_that_goes_on():
    rule = KeyRule(2, b".", b"\t", 2)
    assert rule.keys(b"a\tv\na.b\tv\n") == [b"a", b"a.b"]
    assert not rule.all_of(b"a", b"a\tv\na.b\tv\n")
    tabs = KeyRule(2, b"\t", b"\t", 2)
    assert tabs.keys(b"a\na\tb\tv\n") == [b"a", b"a\tb"]


def test_where_no_count_is_said_all_fields_are_the_key() -> None:
    assert (KeyRule(3).key_fields, KeyRule(3, key_fields=1).key_fields) == (3, 1)


def test_the_digest_is_over_distinct_keys_and_line_ends():
    scanner = Scanner(KeyRule())
    scanner.take(b"a\t1\na\t2\nb\t1\n")
    assert scanner.digest() == hashlib.sha256(b"a\nb\n").hexdigest()
    assert (scanner.groups, scanner.key, scanner.bytes) == (2, b"b", 12)


def test_a_long_line_is_not_kept():
    scanner = Scanner(KeyRule())
    scanner.take(b"a\t" + b"x" * (1 << 19))
    assert scanner.settled
    scanner.take(b"x" * 100 + b"\nb\t1\n")
    assert (scanner.groups, scanner.key) == (2, b"b")


@pytest.mark.parametrize(
    ("data", "final", "taken"),
    [
        (b"a\t1\na", False, (4, False)),  # a key that may go on: of this group or of the next
        (b"a\t1\nb", False, (4, False)),
        (b"a\t1\na\t", False, (4, False)),
        (b"a\t1\nb\t", False, (4, True)),
        (b"a\t1\nb", True, (4, True)),
        (b"a\t1\na", True, (5, False)),
    ],
)
def test_a_border_is_found_only_where_the_next_key_is_known(data, final, taken):
    assert Scanner(KeyRule()).take_groups(data, 1, final) == taken


@pytest.mark.parametrize(
    ("rule", "lines", "in_order"),
    [
        (KeyRule(), b"a\t\nb\t\n", True),
        (KeyRule(), b"b\t\na\t\n", False),
        (KeyRule(), b"a\t\nb\t\na\t\n", False),
        (KeyRule(), b"a\t\na\x01\t\n", True),
        (KeyRule(1, b"\t", b"\t", 2), b"a\x01\tk\nb\tk\n", True),
        (KeyRule(1, b"\t", b"\t", 2), b"a\x01\tk\na\tk\n", True),  # the whole keys are in order
        (KeyRule(1, b"\t", b"\t", 2), b"a\tk\na\x01\tk\n", False),
        (KeyRule(2, b"\t", b"\t", 2), b"a\tb\nb\ta\nb\tb\n", True),
    ],
)
def test_order_is_that_of_the_bytes_hadoop_sorts_by(rule, lines, in_order):
    scanner = Scanner(rule)
    for at in range(0, len(lines), 3):
        scanner.take(lines[at : at + 3])
    assert scanner.sorted is in_order


# -------------------------------------------------------------------------------- pace


class Child:
    """A child of constant speed that reads when its own buffer is empty: what is there, or all of it."""

    def __init__(self, bytes_per_s: float, buffer_bytes: int, until_full: bool = False) -> None:
        self.bytes_per_s = bytes_per_s
        self.wanted_bytes = buffer_bytes if until_full else 1
        self.held_bytes = 0
        self.now_s = self.busy_until_s = 0.0

    def feed(self, pacer: Pacer) -> float:
        """Give it one slice; return how long all that was fed, with the slice to come, still takes."""
        size = pacer.slice_bytes
        waits_s = max(0.0, self.busy_until_s - self.now_s)
        self.now_s += waits_s + 0.0002
        self.held_bytes += size
        if self.held_bytes >= self.wanted_bytes:
            self.busy_until_s = self.now_s + self.held_bytes / self.bytes_per_s
            self.held_bytes = 0
        pacer.taken(size, waits_s + 0.0002)
        return max(0.0, self.busy_until_s - self.now_s) + pacer.slice_bytes / self.bytes_per_s


@pytest.mark.parametrize("bytes_per_s", [200, 1000, 10_000, 100_000])
def test_a_slow_child_is_fed_for_less_than_a_third_of_a_second_ahead(bytes_per_s):
    pacer, child = Pacer(), Child(bytes_per_s, 4096)
    ahead_s = [child.feed(pacer) for _ in range(60)]
    assert max(ahead_s[20:]) <= 0.3
    assert not pacer.fast


@pytest.mark.parametrize("bytes_per_s", [200, 1000, 10_000])
@pytest.mark.parametrize("buffer_bytes", [512, 4096])
def test_a_child_with_a_big_buffer_is_given_little_more_than_fills_it(bytes_per_s, buffer_bytes):
    pacer, child = Pacer(), Child(bytes_per_s, buffer_bytes, until_full=True)
    ahead_s = [child.feed(pacer) for _ in range(3000)]
    assert max(ahead_s[1000:]) <= buffer_bytes / bytes_per_s + 0.3
    assert not pacer.fast


@pytest.mark.parametrize("until_full", [False, True])
def test_a_fast_child_is_soon_fed_without_waiting(until_full):
    pacer, child = Pacer(), Child(50e6, 4096, until_full)
    child.busy_until_s = 0.5  # it starts up first
    slices = next(at for at in range(1000) if not child.feed(pacer) or pacer.fast)
    assert slices <= 100
    assert child.now_s <= 0.55


def test_a_fast_child_that_turns_slow_is_paced_again():
    pacer = Pacer()
    pacer.fast = True
    pacer.stalled(4096, 4.0)
    assert not pacer.fast
    assert pacer.slice_bytes <= 4096 / 4.0 * 0.12


def test_naps_settle_where_half_the_pipe_is_left():
    pacer, pipe_bytes, bytes_per_s = Pacer(), 1 << 18, 20e6
    for _ in range(40):
        pacer.napped(max(0, int(pipe_bytes - pacer.nap_s * bytes_per_s)), pipe_bytes)
    assert 0.25 < pacer.nap_s * bytes_per_s / pipe_bytes < 0.75


# ------------------------------------------------------------------------------- settings

ENV = {
    "mapreduce_job_id": "job_1_0001", "mapreduce_task_id": "task_1_0001_r_000000",
    "mapreduce_task_attempt_id": "attempt_1_0001_r_000000_0", "mapreduce_reduce_speculative": "false",
    "YARNCTL_STORE": "webhdfs://nn:9870/yarnctl", "USER": "alice",
}  # fmt: skip


def test_settings_come_from_the_line_and_from_the_job():
    env = {
        **ENV,
        "stream_num_map_output_key_fields": "3",
        "stream_map_output_field_separator": ".",
        "mapreduce_task_timeout": "60000",
        "stream_stderr_reporter_prefix": "tell:",
    }
    settings = read_settings(["--restartable", "--group-fields", "2", "--poll-ms", "1"], env)
    assert settings.rule.as_json() == {
        "fields": 2,
        "key_fields": 3,
        "map_separator": "2e",
        "reduce_separator": "09",
    }
    assert settings.poll_ms == job_conf.POLL_MIN_MS
    assert settings.requests_url == "webhdfs://nn:9870/yarnctl/requests"
    assert (settings.task_timeout_ms, settings.reporter_prefix, settings.user) == (60000, "tell:", "alice")


def test_a_time_out_of_zero_is_not_endless():
    settings = read_settings(["--restartable"], {**ENV, "mapreduce_task_timeout": "0"})
    assert settings.task_timeout_ms == job_conf.TASK_TIMEOUT_MS


@pytest.mark.parametrize("arguments", [[], ["--restartable", "--release-wait-ms", "soon"], ["--restart"]])
def test_what_is_not_promised_or_not_understood_is_said(arguments):
    with pytest.raises(Unusable):
        read_settings(arguments, ENV)


def test_it_polls_with_jitter_until_the_bell_was_heard_once(tmp_path):
    settings = read_settings(["--restartable"], {**ENV, "YARNCTL_STORE": f"file://{tmp_path}"})
    watcher = Runner(settings, TaskId("j", "t", "a_0"), ["cat"], {}).watcher()
    waits_ms = [watcher._wait_ms(again=False) or 0 for _ in range(100)]
    assert 15_000 <= min(waits_ms) < max(waits_ms) <= 20_000
    assert (watcher._wait_ms(again=True) or 0) <= 2000
    watcher.rang = True
    assert watcher._wait_ms(again=False) is None


def test_a_store_where_anybody_may_move_folders_is_refused(tmp_path):
    store = LocalStore(str(tmp_path))
    tmp_path.chmod(0o777)
    with pytest.raises(Unusable, match="sticky"):
        check_root(store)
    tmp_path.chmod(0o1777)
    check_root(store)


def test_a_child_speaks_whole_lines_and_its_counters_are_heard(monkeypatch):
    said: list[bytes] = []
    monkeypatch.setattr(reports, "write_all", lambda handle, data: said.append(data))
    errors = Errors("reporter:")
    reading, writing = os.pipe()
    os.write(writing, b"reporter:counter:g,a b,2\nreporter:counter:g,a b,-1\nreporter:counter:bad\nopen")
    os.close(writing)
    errors.pass_on(reading)
    errors.note("mine")
    os.close(reading)
    assert errors.counters == {"g": {"a b": 1}}
    assert b"".join(said).endswith(b"bad\nopen\nyarnctl: mine\n")
