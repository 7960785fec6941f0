"""Pure parts: status lines, proofs, standing aside, discovery."""

from __future__ import annotations

import pytest

from yarnctl.attach.connection.cluster_queues import QueueNames
from yarnctl.attach.connection.connection import Attachment, name_nodes_in
from yarnctl.attach.eligibility.permission import (
    INTRA_QUEUE,
    MONITOR,
    OBSERVE_ONLY,
    POLICIES,
    preempted_by_yarn,
)
from yarnctl.deciding.queue_names import NamedQueues, QueueTree
from yarnctl.deciding.reasons.eligibility import NoStreamingReducer, StoreOutside
from yarnctl.deciding.reasons.modes import YarnPreemptsSomewhere
from yarnctl.frameworks.mapreduce.consent import REDUCER, Eligibility, judge
from yarnctl.frameworks.mapreduce.rest import TaskAttempt
from yarnctl.frameworks.mapreduce.status_line import Progress, Status, needs_java_counters, parse
from yarnctl.hadoop.wire import yarn
from yarnctl.hadoop.wire.views import Leaf
from yarnctl.journal.rendering import text

# --- status lines -------------------------------------------------------------------------------

LINES = {
    "yarnctl phase=run groups=5 done=7 known=9 all=1 gen=2 can=0": Status("run", 5, 7, 9, 1, 2, 0),
    "yarnctl phase=finish groups=5 gen=2 order=o-1": Status("finish", 5, gen=2, order="o-1"),
    "yarnctl ckpt=refused gen=0 order=o-1 phase of the moon": Status(gen=0, ckpt="refused", order="o-1"),
    "yarnctl phase=run groups=-5 done=99999999999999999999": Status("run"),
    "yarnctl phase=run phase=hold": Status("run"), "yarnctl index=3 count=4": None, "Records R/W=1": None,
    "yarnctlphase=run": None, "": None,
}  # fmt: skip


@pytest.mark.parametrize("text", list(LINES))
def test_a_status_line(text):
    assert parse(text) == LINES[text]


def row(status: str, progress: float = 100.0, merged_at_ms: int = 1000) -> TaskAttempt:
    return TaskAttempt(
        "a", "RUNNING", "REDUCE", progress, started_at_ms=1, shuffled_at_ms=2, merged_at_ms=merged_at_ms,
        status=status,
    )  # fmt: skip


def line(phase: str, done: int, known: int, all_: int = 1, gen: int = 0) -> str:
    return f"yarnctl phase={phase} groups=1 done={done} known={known} all={all_} gen={gen} can=1"


def remaining(looks: list[tuple[int, TaskAttempt]], now_ms: int) -> int:
    progress = Progress()
    for at_ms, one in looks:
        progress.apply(one, at_ms)
    return progress.remaining_ms(looks[-1][1], now_ms)


@pytest.mark.parametrize(
    ("looks", "now_ms", "expected"),
    [
        # From the phase's beginning at 1,000: 100 bytes in 1,000 ms, 900 are left.
        ([(2000, row(line("run", 100, 1000)))], 2000, 9000),
        # The line is 500 ms old.
        ([(2000, row(line("run", 100, 1000)))], 2500, 8500),
        # Nothing taken yet, or nothing said: unknown.
        ([(2000, row(line("run", 0, 1000)))], 2000, -1),
        ([(2000, row("yarnctl phase=run groups=0 gen=0"))], 2000, -1),
        # Java has handed on the first half of the last third: twice as much is to come.
        ([(2000, row(line("run", 100, 500, 0), 100 * 5 / 6))], 2000, 9000),
        # Java has handed on nothing yet: nobody knows the whole.
        ([(2000, row(line("run", 100, 500, 0), 66.0))], 2000, -1),
        # Resumed: what was skipped says nothing about the speed; it counts from the first look.
        ([(2000, row(line("run", 500, 1000, gen=1)))], 2000, -1),
        ([(2000, row(line("run", 500, 1000, gen=1))), (3000, row(line("run", 600, 1000, gen=1)))], 3000,
         4000),
        # Overdue.
        ([(2000, row(line("run", 999, 1000)))], 9000, 0),
    ],
)  # fmt: skip
def test_remaining_time(looks, now_ms, expected):
    assert remaining(looks, now_ms) == expected


def test_a_resumed_attempt_seen_late_began_with_its_reduce_phase():
    """Not with the look: a job is looked at only when it is about to be hit."""
    progress = Progress()
    progress.apply(row(line("run", 500, 1000, gen=1)), 30_000)
    assert (progress.since_ms, progress.generation) == (1000, 1)


def test_going_on_after_a_hold_is_new_work_from_there():
    progress = Progress()
    progress.apply(row(line("run", 100, 1000)), 2000)
    assert progress.since_ms == 1000
    progress.apply(row("yarnctl phase=hold groups=1 gen=1"), 3000)
    assert not progress.checkpointable
    progress.apply(row("yarnctl phase=run groups=1 gen=1"), 9000)
    assert (progress.since_ms, progress.generation, progress.checkpointable) == (9000, 1, True)


def told_line(done: int, ran_ms: int, base: int = 0, gen: int = 0, known: int = 1000, all_: int = 1) -> str:
    return line("run", done, known, all_, gen) + f" ran={ran_ms} base={base}"


@pytest.mark.parametrize(
    ("looks", "now_ms", "expected"),
    [
        # The runner's own clock: 100 bytes in 500 ms, whenever the look was.
        ([(30_000, row(told_line(100, 500)))], 30_000, 4500),
        # Resumed: 100 bytes since byte 500; one look is enough.
        ([(30_000, row(told_line(600, 500, base=500, gen=1)))], 30_000, 2000),
        # A hung child says nothing: after 10 s its time no longer runs down.
        ([(30_000, row(told_line(100, 5000)))], 60_000, 45_000 - 10_000),
    ],
)
def test_remaining_time_by_the_runners_own_clock(looks, now_ms, expected):
    assert remaining(looks, now_ms) == expected


def test_a_start_does_not_tremble():
    """Ten seconds of what earlier attempts have shown (0.1 bytes a ms) are mixed in."""
    progress = Progress()
    progress.apply(row(told_line(510, 100, base=500, gen=1)), 30_000)
    assert progress.rate() == 0.1
    progress.apply(row(told_line(600, 1000, base=500, gen=1)), 31_000)
    assert progress.rate(usual=1.0) == (100 + 10_000) / 11_000
    assert progress.rate(usual=0.1) == pytest.approx(0.1)


def test_a_rate_is_known_from_the_first_millisecond_on():
    progress = Progress()
    assert (progress.rate(), progress.done_bytes) == (0.0, 0)
    progress.apply(row(told_line(100, 1)), 30_000)
    assert (progress.rate(), progress.done_bytes) == (100.0, 100)


def test_a_resumed_attempt_has_worked_as_long_as_its_runner_says():
    """Not since its merge: in between it skipped."""
    progress = Progress()
    progress.apply(row(told_line(600, 500, base=500, gen=1)), 30_000)
    assert progress.since_ms == 29_500


@pytest.mark.parametrize(
    ("status", "group_ms"),
    [
        ("groups=4 done=400 known=900 all=1 gen=0 can=1 ran=26000 base=0", 6500),
        ("groups=8 done=800 known=900 all=1 gen=1 can=1 ran=26000 base=400", 6500),  # half before it resumed
        ("groups=0 done=0 known=900 all=1 gen=0 can=1 ran=26000 base=0", 26_000),  # the first lasts so long
        ("groups=9 done=400 known=900 all=1 gen=1 can=1 ran=5000 base=400", 5000),
        ("groups=0 gen=0 can=1", 0),
    ],
)
def test_how_long_a_key_group_takes(status, group_ms):
    progress = Progress()
    progress.apply(row(f"yarnctl phase=run {status}"), 30_000)
    assert progress.group_ms() == group_ms


def test_what_java_holds_back_is_part_of_the_input():
    """10 groups of 1,000 bytes were handed on; Java has read 60, all there are."""
    progress = Progress()
    text = "yarnctl phase=run groups=10 done=10000 known=10000 all=0 gen=0 can=1 ran=1000 base=0"
    progress.apply(row(text), 30_000)
    assert needs_java_counters(row(text), progress)
    assert progress.total_bytes(row(text)) == 10_000
    progress.java_has_read(60)
    assert progress.total_bytes(row(text)) == 60_000
    assert progress.remaining_ms(row(text), 30_000) == 5000
    progress.java_has_read(60_000)  # more than its buffers can hold: groups are not alike
    assert progress.total_bytes(row(text)) == 10_000 + 192 * 1024


@pytest.mark.parametrize(
    ("text", "wants"),
    [(told_line(1, 1, all_=1), False), (told_line(1, 1, known=1 << 30, all_=0), False), ("", False)],
)
def test_java_is_asked_only_where_its_buffers_matter(text, wants):
    progress = Progress()
    progress.apply(row(text), 30_000)
    assert needs_java_counters(row(text), progress) is wants
    assert needs_java_counters(row(text), None) is wants


# --- proof --------------------------------------------------------------------------------------

RESEARCH = QueueNames(NamedQueues(("root.production",), ("root.research",)))
RESEARCH.read(QueueTree(("root.production", "root.research")))


def test_may_be_lowered_is_true_of_parents_of_preemptable_leaves_alone():
    tree = QueueTree(("root.prod", "root.lab.a", "root.lab.b"), ("root", "root.lab"))
    for preemptable, expected in ((("root.lab.a", "root.lab.b"), True), (("root.lab.a",), False)):
        names = QueueNames(NamedQueues(("root.prod",), preemptable))
        names.read(tree)
        assert names.may_be_lowered("root.lab") is expected
        assert not names.may_be_lowered("root.prod")


OURS = Attachment(name_nodes=("http://nn1:9870", "nn2:9870"))
GOOD = {
    "stream.reduce.streamprocessor": (
        "sh+yarnctl_task.py+--restartable+--release-wait-ms+9000+--+python3+red.py"
    ),
    "stream.addenvironment": "YARNCTL_STORE=webhdfs://NN1:9870,nn9:1/yarnctl/checkpoints "
    "YARNCTL_REQUESTS=webhdfs://nn2:9870/yarnctl/requests YARNCTL_REQUESTS_OWNER=yarnctl LANG=C",
    "mapreduce.reduce.speculative": "false",
    "mapreduce.job.ubertask.enable": "false",
    "mapred.output.format.class": "org.apache.hadoop.mapred.TextOutputFormat",
}


def test_a_job_that_carries_the_runner():
    proof = judge(GOOD, "ann", OURS)
    assert isinstance(proof, Eligibility)
    assert proof.store_path == "/yarnctl/checkpoints"
    assert (proof.reducers, proof.owners, proof.release_wait_ms) == ((("python3", "red.py"),), ("ann",), 9000)


COMMAND, ADDED = "stream.reduce.streamprocessor", "stream.addenvironment"
REFUSED = [
    (COMMAND, "", "not set"), (COMMAND, "python3 red.py", "is not wrapped"),
    (COMMAND, "sh -c yarnctl_task.py", "is not wrapped"),
    (COMMAND, "echo yarnctl_task.py --restartable -- x", "is not wrapped"),
    (COMMAND, "sh yarnctl_task.py -- python3 red.py", "--restartable is not set"),
    (COMMAND, "sh yarnctl_task.py --restartable", "do not end"),
    (COMMAND, "sh yarnctl_task.py --restartable --", "no reducer"),
    (COMMAND, "sh yarnctl_task.py --restartable --frobnicate -- x", "frobnicate"),
    (COMMAND, "sh yarnctl_task.py --restartable --store file:///x -- x", "not in HDFS"),
    ("mapreduce.reduce.speculative", "true", "speculative"),
    ("mapreduce.reduce.speculative", None, "speculative"),
    ("mapreduce.job.ubertask.enable", "true", "ubertask"), ("mapreduce.job.reduces", "0", "no reduces"),
    ("stream.reduce.input", "rawbytes", "stream.reduce.input is"),
    ("mapred.output.format.class", "org.example.Other", "output.format"),
    ("mapred.output.committer.class", "org.example.Other", "committer"),
    ("mapreduce.job.output.key.comparator.class", "org.example.Other", "comparator"),
    (ADDED, None, "no store"), (ADDED, "YARNCTL_STORE=webhdfs://else:9870/c", "yarnctl's NameNodes are"),
    (ADDED, "YARNCTL_STORE=webhdfs://nn1:9870/../c", "has the unsafe path"),
    (ADDED, "YARNCTL_STORE=webhdfs://nn1:9870/yarnctl YARNCTL_REQUESTS_OWNER=eve", "accepts orders from eve"),
    (ADDED, "YARNCTL_STORE=webhdfs://nn1:9870/yarnctl", "accepts orders from ann"),
    (ADDED, "YARNCTL_STORE=webhdfs://nn1:9870/mine", "reads orders from /mine/requests"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "value", "why"), REFUSED)
def test_what_is_not_proven_is_left_alone(name, value, why):
    told = {key: one for key, one in {**GOOD, name: value}.items() if one is not None}
    found = judge(told, "ann", OURS)
    assert not isinstance(found, Eligibility)
    assert why in text(found)


def test_a_store_outside_the_named_root_is_left_alone():
    narrow = Attachment(name_nodes=("nn1:9870", "nn2:9870"), store_root="/yarnctl/check")
    assert judge(GOOD, "ann", narrow) == StoreOutside("/yarnctl/checkpoints", "/yarnctl/check")


ON = {MONITOR: "true"}
WITHIN = {**ON, INTRA_QUEUE: "true"}


@pytest.mark.parametrize(
    ("configuration", "disabled", "within_disabled", "aside"),
    [(None, True, True, True), ({}, False, False, False), (ON, True, None, False), (ON, False, None, True),
     (ON, None, None, True), ({**ON, OBSERVE_ONLY: "true"}, False, False, False),
     ({**ON, POLICIES: "org.example.Other"}, False, False, False),
     ({MONITOR: "false", POLICIES: "x.ProportionalCapacityPreemptionPolicy"}, False, False, False),
     (WITHIN, True, True, False), (WITHIN, True, False, True), (WITHIN, True, None, True),
     ({**ON, INTRA_QUEUE: "false"}, True, False, False), ({INTRA_QUEUE: "true"}, True, False, False),
     ({**WITHIN, OBSERVE_ONLY: "true"}, True, False, False)],
)  # fmt: skip
def test_standing_aside(configuration, disabled, within_disabled, aside):
    queue = yarn.QueueInfo(
        "research", preemption_disabled=disabled, intra_queue_preemption_disabled=within_disabled
    )
    leaf = Leaf("root.research", queue)
    assert (preempted_by_yarn(configuration, (leaf,), RESEARCH) is not None) is aside


@pytest.mark.parametrize("names", [(), ("production",)])
def test_who_has_seen_no_victim_queue_does_not_know_that_yarn_leaves_it_alone(names):
    seen = [Leaf(f"root.{name}", yarn.QueueInfo(name, preemption_disabled=True)) for name in names]
    assert preempted_by_yarn(ON, seen, RESEARCH) == YarnPreemptsSomewhere(MONITOR)
    assert preempted_by_yarn({}, seen, RESEARCH) is None


@pytest.mark.parametrize(
    ("configuration", "found"),
    [
        ({"dfs.namenode.http-address": "nn:9870"}, ("http://nn:9870",)),
        ({"fs.defaultFS": "hdfs://nn:9000"}, ("http://nn:9870",)),
        ({"dfs.namenode.http-address": "0.0.0.0:9870"}, ("http://rm1:9870",)),
        ({"dfs.namenode.http-address": "127.0.0.1:8088"}, ("http://127.0.0.1:8088",)),
        ({"dfs.namenode.https-address": "nn:9871", "dfs.http.policy": "HTTPS_ONLY"}, ("https://nn:9871",)),
        (
            {
                "fs.defaultFS": "hdfs://ns", "dfs.nameservices": "ns", "dfs.ha.namenodes.ns": "a,b",
                "dfs.namenode.http-address.ns.a": "nn1:1", "dfs.namenode.http-address.ns.b": "nn2:1",
            },
            ("http://nn1:1", "http://nn2:1"),
        ),
        ({}, ()),
    ],
)  # fmt: skip
def test_hdfs_is_found_by_the_configuration_of_yarn(configuration, found):
    assert name_nodes_in(configuration, "http://rm1:8088") == found


@pytest.mark.parametrize(
    ("configuration", "is_streaming"),
    [({}, False), ({"mapreduce.job.reduce.class": "org.example.Count"}, False),
     ({"stream.map.streamprocessor": "cat"}, True)],
)  # fmt: skip
def test_a_java_job_is_called_one(configuration, is_streaming) -> None:
    assert judge(configuration, "ann", OURS) == NoStreamingReducer(is_streaming, REDUCER)
