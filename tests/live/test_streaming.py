"""Streaming jobs of real processes on a small live cluster: outputs, failures, kills, restarts."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from emulator.live.master.attempts import Attempt
from emulator.live.master.live_master import LiveMaster
from emulator.live.wire.submitted_job import StreamingJob
from tests.live.master_rig import Rig

MAP = "import sys\nfor line in sys.stdin:\n    for word in line.split():\n        print(word + '\\t1')\n"
SUM = """
import itertools, sys
for key, group in itertools.groupby(sys.stdin, lambda line: line.split('\\t')[0]):
    print(key + '\\t' + str(sum(int(line.split('\\t')[1]) for line in group)))
"""
WAIT = """
import os, sys, time
for line in sys.stdin:
    if not os.path.exists(sys.argv[1]):
        sys.stderr.write('reporter:status:waiting\\n'); sys.stderr.flush()
    while not os.path.exists(sys.argv[1]):
        time.sleep(0.02)
    sys.stdout.write(line)
"""


def make_input(tmp_path: Path) -> Path:
    folder = tmp_path / "in"
    folder.mkdir()
    for number in range(3):
        words = [f"w{(number * 31 + n * n) % 40}" for n in range(300)]
        (folder / f"f{number}").write_text("\n".join(" ".join(words[n::30]) for n in range(30)) + "\n")
    (folder / "_hidden").write_text("hidden\n")
    return folder


def job_of(tmp_path: Path, reducer: str = "python3 reduce.py", code: str = SUM, **more) -> StreamingJob:
    source = make_input(tmp_path)
    (tmp_path / "map.py").write_text(MAP)
    (tmp_path / "reduce.py").write_text(code)
    files = {name: str(tmp_path / name) for name in ("map.py", "reduce.py")}
    base = {
        "name": "words", "inputs": (str(source),), "output": str(tmp_path / "out"),
        "mapper": "python3 map.py", "reducer": reducer, "reduces": 2, "files": files, "user": "alice",
    }  # fmt: skip
    return StreamingJob(**{**base, **more})


def play(tmp_path: Path, story: Callable[[Rig], Awaitable[None]], **more) -> None:
    async def run() -> None:
        async with Rig(tmp_path / "work", **more) as rig:
            await story(rig)

    asyncio.run(run())


def run_job(tmp_path: Path, job: StreamingJob) -> tuple[str, LiveMaster]:
    found: list[tuple[str, LiveMaster]] = []

    async def story(rig: Rig) -> None:
        found.append((await rig.over(rig.submit(job)), rig.masters[-1]))

    play(tmp_path, story)
    return found[0]


def counted(tmp_path: Path) -> dict[str, int]:
    words = Counter(word for path in (tmp_path / "in").glob("f*") for word in path.read_text().split())
    return dict(words)


def output(tmp_path: Path) -> dict[str, int]:
    lines = [line for part in (tmp_path / "out").glob("part-*") for line in part.read_text().splitlines()]
    assert len({line.split("\t")[0] for line in lines}) == len(lines)
    return {line.split("\t")[0]: int(line.split("\t")[1]) for line in lines}


def reduces(master: LiveMaster, state: str) -> list[Attempt]:
    return [one for one in master.attempts.all.values() if not one.is_map and one.state == state]


def waits_for(master: LiveMaster, path: Path) -> bool:
    return any(one.status == "waiting" for one in reduces(master, "RUNNING"))


# --- what comes out ---------------------------------------------------------------------------


@pytest.mark.parametrize("combiner", ["", "python3 reduce.py"])
def test_a_job_of_processes_counts_words(tmp_path: Path, combiner: str) -> None:
    status, master = run_job(tmp_path, job_of(tmp_path, combiner=combiner))
    assert status == "SUCCEEDED", master.diagnostics
    assert output(tmp_path) == counted(tmp_path)
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == [
        "_SUCCESS",
        "part-00000",
        "part-00001",
    ]


def test_a_line_without_a_tab_ends_in_one_and_binary_bytes_stay(tmp_path: Path) -> None:
    code = "import sys\nfor line in sys.stdin: pass\nsys.stdout.buffer.write(b'plain\\na\\tb\\n\\xff\\x00\\tz\\nlast')\n"  # noqa: E501
    job = job_of(tmp_path, code=code, reduces=1)
    status, master = run_job(tmp_path, job)
    assert status == "SUCCEEDED", master.diagnostics
    assert (tmp_path / "out" / "part-00000").read_bytes() == b"plain\t\na\tb\n\xff\x00\tz\nlast\t\n"


def test_what_a_reducer_without_input_prints_is_dropped(tmp_path: Path) -> None:
    code = "import sys\ndata = sys.stdin.read()\nprint('header')\nsys.stdout.write(data)\n"
    mapper = "sh -c 'cat >/dev/null; echo only'"
    status, master = run_job(tmp_path, job_of(tmp_path, code=code, mapper=mapper))
    assert status == "SUCCEEDED", master.diagnostics
    sizes = sorted(path.stat().st_size for path in (tmp_path / "out").glob("part-*"))
    assert sizes[0] == 0
    assert sizes[1] > 0


def test_the_command_sees_streamings_environment(tmp_path: Path) -> None:
    code = "import os, sys\nsys.stdin.read()\nfor name in sorted(os.environ): print(name + '\\t' + repr(os.environ[name]))\n"  # noqa: E501
    job = job_of(tmp_path, code=code, reduces=1, settings={"my.own-key": "x y"}, cmdenv={"MINE": "1"})
    status, master = run_job(tmp_path, job)
    assert status == "SUCCEEDED", master.diagnostics
    lines = (tmp_path / "out" / "part-00000").read_text().splitlines()
    env = dict(line.split("\t", 1) for line in lines)
    attempt = reduces(master, "SUCCEEDED")[0]
    assert env["mapreduce_task_attempt_id"] == repr(attempt.id)
    assert env["mapreduce_job_id"] == repr(master.job_id)
    assert env["CONTAINER_ID"] == repr(attempt.container_id)
    assert env["my_own_key"] == "'x y'"
    assert env["MINE"] == "'1'"
    assert env["USER"] == "'alice'"
    assert env["mapreduce_task_ismap"] == "'false'"
    assert "PYTHONPATH" not in env
    assert "YARN_EMULATOR_TASK" not in env


def test_a_job_without_reduces_writes_what_its_maps_print(tmp_path: Path) -> None:
    job = job_of(tmp_path, reducer="", reduces=0)
    status, master = run_job(tmp_path, job)
    assert status == "SUCCEEDED", master.diagnostics
    lines = [line for part in (tmp_path / "out").glob("part-*") for line in part.read_text().splitlines()]
    assert Counter(line.split("\t")[0] for line in lines) == Counter(counted(tmp_path))


def test_counters_and_status_are_heard(tmp_path: Path) -> None:
    code = SUM + "sys.stderr.write('reporter:counter:Mine,n,3\\nreporter:status:all done\\nplain log\\n')\n"
    status, master = run_job(tmp_path, job_of(tmp_path, code=code))
    assert status == "SUCCEEDED"
    done = reduces(master, "SUCCEEDED")
    assert [one.counters["Mine"]["n"] for one in done] == [3, 3]
    assert {one.status for one in done} == {"all done"}
    logs = (tmp_path / "work" / "nodes").rglob("stderr")
    assert sum(path.read_text().count("plain log") for path in logs) == 2


# --- what fails -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("code", "said"),
    [
        pytest.param("import sys\nsys.stdin.read()\nsys.exit(3)\n", "code 3", marks=pytest.mark.thorough),
        ("import os, signal\nos.kill(os.getpid(), signal.SIGKILL)\n", "code 137"),
        ("import time, os, sys\nos.close(0)\nsys.exit(0)\n", "Broken pipe"),
    ],
)
def test_a_reducer_that_fails_four_times_fails_the_job_and_leaves_no_output(
    tmp_path: Path, code: str, said: str
) -> None:
    job = job_of(
        tmp_path,
        code=code,
        reduces=1,
        mapper="sh -c 'cat >/dev/null; yes \"k\tvvvvvvvvvvvv\" | head -n 50000'",
    )
    status, master = run_job(tmp_path, job)
    assert status == "FAILED"
    assert said in master.diagnostics
    assert len(reduces(master, "FAILED")) == 4
    assert list((tmp_path / "out").iterdir()) == []


def test_an_output_that_is_there_already_is_not_touched(tmp_path: Path) -> None:
    job = job_of(tmp_path)
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "mine").write_text("keep")
    status, master = run_job(tmp_path, job)
    assert status == "FAILED"
    assert "exists; use a new folder" in master.diagnostics
    assert (tmp_path / "out" / "mine").read_text() == "keep"


def test_an_input_that_is_missing_fails_the_job_with_its_name(tmp_path: Path) -> None:
    job = job_of(tmp_path, inputs=(str(tmp_path / "nowhere"),))
    status, master = run_job(tmp_path, job)
    assert status == "FAILED"
    assert "nowhere" in master.diagnostics


def test_a_task_that_says_nothing_new_times_out(tmp_path: Path) -> None:
    settings = {"mapreduce.task.timeout": "1000", "mapreduce.reduce.maxattempts": "1"}
    job = job_of(tmp_path, code="import time\ntime.sleep(600)\n", reduces=1, settings=settings)
    status, master = run_job(tmp_path, job)
    assert status == "FAILED"
    assert "Timed out after 1 secs" in master.diagnostics


# --- what is killed, and comes back -------------------------------------------------------------


HOLD = "while not os.path.exists(sys.argv[1]):\n    time.sleep(0.02)\n"
SIDE = """
import os, sys, time
folder = os.environ['mapreduce_task_output_dir']
for line in sys.stdin:
    key = line.split('\\t')[0]
    open(os.path.join(folder, 'side-' + key), 'a').write(line)
    os.makedirs(os.path.join(folder, 'sides'), exist_ok=True)
    open(os.path.join(folder, 'sides', key), 'a').write(line)
    sys.stdout.write(line)
"""


def test_side_files_are_committed_with_the_attempt_and_dropped_with_a_killed_one(tmp_path: Path) -> None:
    go = tmp_path / "go"
    job = job_of(tmp_path, f"python3 reduce.py {go}", SIDE + HOLD, reduces=1)

    async def story(rig: Rig) -> None:
        application = rig.submit(job)
        work = tmp_path / "out" / "_temporary"
        await rig.until(
            lambda: bool(list(work.glob("attempt_*_0/side-w*"))), "side files of the first attempt"
        )
        await rig.until(
            lambda: bool(rig.masters) and bool(reduces(rig.masters[0], "RUNNING")), "a reducer waits"
        )
        rig.masters[0].around(lambda: rig.masters[0].kill_attempt(reduces(rig.masters[0], "RUNNING")[0]))
        go.touch()
        assert await rig.over(application) == "SUCCEEDED"

    play(tmp_path, story)
    words = counted(tmp_path)
    sides = {path.name[5:]: path.read_text() for path in (tmp_path / "out").glob("side-*")}
    assert {name: text.count("\n") for name, text in sides.items()} == words
    assert {path.name: path.read_text() for path in (tmp_path / "out/sides").iterdir()} == sides
    assert not (tmp_path / "out" / "_temporary").exists()


def test_a_killed_attempt_does_not_count_and_leaves_nothing(tmp_path: Path) -> None:
    go = tmp_path / "go"
    job = job_of(
        tmp_path, f"python3 reduce.py {go}", WAIT, reduces=1, settings={"mapreduce.reduce.maxattempts": "1"}
    )

    async def story(rig: Rig) -> None:
        application = rig.submit(job)
        for number in range(3):
            await rig.until(lambda: bool(rig.masters) and waits_for(rig.masters[0], go), "a reducer waits")
            attempt = reduces(rig.masters[0], "RUNNING")[0]
            assert attempt.id.endswith(f"_{number}")
            rig.masters[0].around(lambda attempt=attempt: rig.masters[0].kill_attempt(attempt))  # type: ignore[misc]
            assert attempt.state == "KILLED"
        go.touch()
        assert await rig.over(application) == "SUCCEEDED"
        assert len(reduces(rig.masters[0], "KILLED")) == 3

    play(tmp_path, story)
    assert not (tmp_path / "out" / "_temporary").exists()
    lines = (tmp_path / "out" / "part-00000").read_text().splitlines()
    assert len(lines) == sum(counted(tmp_path).values())


def test_a_new_master_keeps_what_was_done_and_numbers_on(tmp_path: Path) -> None:
    go = tmp_path / "go"
    job = job_of(tmp_path, f"python3 reduce.py {go}", WAIT, reduces=1)

    async def story(rig: Rig) -> None:
        application = rig.submit(job)
        await rig.until(lambda: bool(rig.masters) and waits_for(rig.masters[0], go), "a reducer waits")
        history = next((tmp_path / "work" / "staging").glob("*/history.jsonl"))
        with history.open("ab") as file:
            file.write(b'{"finished":{"kind":"red')  # torn by the crash
        rig.masters[0].end()
        await rig.until(lambda: len(rig.masters) == 2 and waits_for(rig.masters[1], go), "a second master")
        go.touch()
        assert await rig.over(application) == "SUCCEEDED"
        second = rig.masters[1]
        assert [one.id[-5:] for one in reduces(second, "SUCCEEDED")] == ["_1000"]
        assert all(one.container is None for one in second.attempts.all.values() if one.is_map)

    play(tmp_path, story)
    lines = (tmp_path / "out" / "part-00000").read_text().splitlines()
    assert len(lines) == sum(counted(tmp_path).values())


@pytest.mark.parametrize(("fault", "ended"), [("kill", "KILLED"), ("fail", "FAILED"), ("crash", "FAILED")])
def test_faults_of_the_settings_strike_and_the_output_is_right(
    tmp_path: Path, fault: str, ended: str
) -> None:
    code = SUM + "import time\ntime.sleep(0.7)\n"
    settings = {f"emulator.fault.{fault}": "r:1@100,m:0@1"}
    status, master = run_job(tmp_path, job_of(tmp_path, code=code, settings=settings))
    assert status == "SUCCEEDED", master.diagnostics
    assert len(reduces(master, ended)) == 1
    assert output(tmp_path) == counted(tmp_path)


def test_a_map_that_is_run_again_gives_other_keys_to_the_next_attempt(tmp_path: Path) -> None:
    go = tmp_path / "go"
    settings = {"emulator.fault.map.rerun": "0", "emulator.fault.map.other": "0"}
    job = job_of(tmp_path, f"python3 reduce.py {go}", WAIT, reduces=1, settings=settings)

    async def story(rig: Rig) -> None:
        application = rig.submit(job)
        await rig.until(lambda: bool(rig.masters) and waits_for(rig.masters[0], go), "a reducer waits")
        master = rig.masters[0]
        master.around(lambda: master.kill_attempt(reduces(master, "RUNNING")[0]))
        go.touch()
        assert await rig.over(application) == "SUCCEEDED"
        assert [one.id[-1] for one in master.attempts.of_task[True, 0]] == ["0", "1"]

    play(tmp_path, story)
    assert "~" in (tmp_path / "out" / "part-00000").read_text()
