"""A slice of the campaign ``io-faults``, bugs that it must notice, and that no call for I/O gets past it.

``make test`` plays one fault of each scene; ``--thorough`` 200 drawn by seed of all that are enumerated.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.soak.io_faults import (
    GOOD,
    Case,
    Workshop,
    cases_of,
    draw,
    enumerate_cases,
    kinds_of,
    play_all,
    uses_of,
)
from tests.soak.io_scenes import NONE, SCENES, Ended, Fault, Scene, read_report
from tests.soak.planted import plant_text
from tests.thoroughness import is_thorough

RUNS = 200 if is_thorough() else 16
SEED = 14
ONE_WORKER = pytest.mark.xdist_group("io-faults")


@pytest.fixture(scope="module")
def workshop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Workshop]:
    made = Workshop(tmp_path_factory.mktemp("io"))
    yield made
    made.close()


@ONE_WORKER
def test_no_fault_makes_a_wrong_or_short_output_with_status_0(workshop: Workshop) -> None:
    """All scenes are enumerated where everything is played, a few of each kind otherwise."""
    scenes = SCENES if is_thorough() else SCENES[::3]
    cases = enumerate_cases(workshop, scenes)
    if is_thorough():
        assert len(cases) >= 2_000
    verdicts = play_all(workshop, draw(cases, RUNS, SEED), 2, lambda verdict: None)
    assert [one for one in verdicts if one.verdict not in (*GOOD, "not reached")] == []
    assert sum(one.verdict != "not reached" for one in verdicts) >= RUNS * 9 // 10


class Bug(NamedTuple):
    """What is replaced by what, the scene and fault that show it, and what must be said."""

    scene: Scene
    fault: Fault
    says: str
    replaced: tuple[tuple[str, str], ...]


KEPT = "        if saved.failed:\n            raise StoreError"
TAKEN = "attempt.reducer_state = self._taken_state(request)"
ADDED = Fault("EIO", "write scratch beside", 1)
BUGS = {
    "state-without-output": Bug(Scene("state", "resume", "folder"), Fault("ENOSPC", "write scratch", 1),
        "wrong: output", ((KEPT, "        self._attempt.reducer_state = state\n" + KEPT),)),
    "drained-without-state": Bug(Scene("state", "suspend", "hdfs"), ADDED, "wrong: output",
        ((TAKEN, TAKEN + "\n        if attempt.output.failed:\n            attempt.reducer_state = None"),)),
    "suspending-for-ever": Bug(
        Scene("state", "suspend", "folder"),
        ADDED,
        "wrong: output",
        ((TAKEN, "attempt.reducer_state = None if attempt.output.failed else self._taken_state(request)"),
         ("        self.unmark_suspending()\n        try:", "        try:")),
    ),
    "output-cut-off": Bug(
        Scene("state", "plain", "folder"),  # all its output comes in one piece, at its end
        Fault("EIO", "write 1 beside", 1),
        "wrong: output",
        (("        if lost and not code:", "        if lost and code:"),),
    ),
    "half-a-write": Bug(Scene("plain", "leave", "folder"), Fault("short", "write part", 1),
        "told as saved and not gone on from",
        (("                    write_all(handle, piece)", "                    os.write(handle, piece)"),)),
}  # fmt: skip


@pytest.mark.parametrize("name", BUGS)
@ONE_WORKER
def test_a_planted_bug_is_noticed(name: str, workshop: Workshop) -> None:
    bug = BUGS[name]
    honest = workshop.play(Case(bug.scene, bug.fault))
    assert honest.verdict in GOOD
    program = plant_text(name, bug.replaced, workshop.folder)
    planted = workshop.play(Case(bug.scene, bug.fault), program=program)
    assert planted.verdict == bug.says, planted.tail


@ONE_WORKER
def test_a_state_that_is_taken_by_halves_is_given_whole(workshop: Workshop) -> None:
    """Use 2 is what --load reads: a case that the campaign has found wrong."""
    case = Case(Scene("state", "resume", "folder"), Fault("short", "write pipe-write", 2))
    verdict = workshop.play(case)
    assert verdict.verdict == "equal", verdict.tail


ODD = """
import os
reading, writing = os.pipe()
there = os.open(__file__, os.O_RDONLY)
os.sendfile(writing, there, 0, 1)
"""


@ONE_WORKER
def test_a_call_that_the_tracer_does_not_know_is_noticed(workshop: Workshop, tmp_path: Path) -> None:
    """It sees every call of the kernel; what stands in no table of it is told, not passed over."""
    program, report = tmp_path / "yarnctl_task_odd.py", tmp_path / "report"
    program.write_text(ODD)
    argv = [workshop.tracer, report, "/nowhere", "/nowhere", *NONE, "--", sys.executable, program]
    assert subprocess.run(list(map(str, argv))).returncode == 0
    uses, unknown, fired = read_report(report)
    assert unknown == (SENDFILE,)
    assert uses["pipe"] == 1
    assert fired == 0


SENDFILE = 40
"""Its number on x86-64."""


@pytest.mark.parametrize(
    ("count", "uses"), [(1, (1,)), (2, (1, 2)), (3, (1, 2, 3)), (4, (1, 2, 3, 4)), (9, (1, 2, 3, 5, 9))]
)
def test_which_uses_fail(count: int, uses: tuple[int, ...]) -> None:
    assert uses_of(count) == uses


@pytest.mark.parametrize(
    ("call", "kinds"),
    [("read 0", "EIO EINTR short"), ("write part", "EIO EINTR ENOSPC short full"),
     ("close part", "EIO EINTR ENOSPC"), ("link manifest", "EIO EINTR ENOSPC lost"),
     ("fork", "EIO EINTR ENOSPC"), ("poll beside", "EIO EINTR")],
)  # fmt: skip
def test_how_a_call_fails(call: str, kinds: str) -> None:
    assert " ".join(kinds_of(call)) == kinds


def counted(uses: dict[str, int]) -> Ended:
    return Ended(0, b"", {}, {}, "", uses, (), 0)


def test_cases_are_drawn_from_every_scene_alike() -> None:
    found = {scene: counted({"read 0": 9, "fork": 2}) for scene in SCENES[:4]}
    cases = [case for scene, one in found.items() for case in cases_of(scene, one)]
    assert len(cases) == 4 * (5 * 3 + 2 * 3)
    drawn = draw(cases, 8, 1)
    assert [sum(case.scene == scene for case in drawn) for scene in SCENES[:4]] == [2, 2, 2, 2]
    assert draw(cases, 8, 1) == drawn != draw(cases, 8, 2)
