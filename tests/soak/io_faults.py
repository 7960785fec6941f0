"""Every call for I/O of the task runner fails once: its output is equal, or the attempt fails.

Law: an attempt that ends with status 0 has left output, counters and side files of an undisturbed run. After
one that ended otherwise the next attempt, undisturbed, on what it left in the store, does: so nothing that a
failed attempt saved can harm. A checkpoint that was told as saved is gone on from. What is made to fail is
not listed here: a first run of each scene counts every call that is made (see ``io_tracer.c``), and one that
the tracer does not know ends the campaign.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import random
import shutil
import tempfile
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from tests.runner.namenode import Server
from tests.runner.running import RUNNER
from tests.soak.io_scenes import (
    INPUT,
    NONE,
    PHASES,
    SCENES,
    SHOWS,
    Ended,
    Fault,
    Place,
    Scene,
    build_tracer,
    reducer,
)
from yarnctl.task_runner.runner.protocol.stores import EXIT_SUSPENDED

READS = ("read", "pread", "receive")
WRITES = ("write", "pwrite", "send")
CHANGES = ("close", "fsync", "link", "unlink", "rename", "mkdir")
LOOKS = ("fstat", "stat", "lseek", "ioctl", "fcntl", "getdents", "access", "readlink", "poll", "getsockname")
GOOD = ("equal", "equal after a failed attempt", "equal after a suspension")


def kinds_of(call: str) -> tuple[str, ...]:
    """Return how a call can fail: what only changes can do is asked of changes only."""
    name = call.partition(" ")[0]
    if name in READS:
        return ("EIO", "EINTR", "short")
    if name in WRITES:
        return ("EIO", "EINTR", "ENOSPC", "short", "full")
    if name in CHANGES:
        return ("EIO", "EINTR", "ENOSPC", "lost") if name != "close" else ("EIO", "EINTR", "ENOSPC")
    return ("EIO", "EINTR") if name in LOOKS else ("EIO", "EINTR", "ENOSPC")


class Case(NamedTuple):
    """One fault in one scene."""

    scene: Scene
    fault: Fault

    def __str__(self) -> str:
        return f"{self.scene} {self.fault.kind} at use {self.fault.use} of {self.fault.call}"


class Verdict(msgspec.Struct):
    """What became of a case; ``tail``: the last lines of the logs of one that is bad."""

    case: str
    verdict: str
    status: int
    next_status: int | None = None
    tail: list[str] = []


class Wanted(NamedTuple):
    """What the reducer leaves behind without the runner."""

    output: bytes
    side: dict[str, bytes]
    counters: dict[str, int]

    def differs(self, found: Ended) -> str:
        """Return what of an attempt that succeeded is not as it must be."""
        names = ("output", "side", "counters")
        return " and ".join(name for name in names if getattr(self, name) != getattr(found, name))


class Workshop:
    """What cases are played with: the tracer, a WebHDFS server, checkpoints to go on from, what is wanted."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.tracer = build_tracer(folder)
        self.server = Server()
        self._lock = threading.Lock()
        self._places = 0
        self._wanted: dict[str, Wanted] = {}
        self._prepared: dict[Scene, Place] = {}

    def close(self) -> None:
        self.server.shutdown()
        self.server.server_close()

    def place(self, program: Path | None = None) -> Place:
        with self._lock:
            self._places += 1
            number = self._places
        return Place(self.folder / f"place-{number}", self.tracer, self.server, program)

    def wanted(self, scene: Scene) -> Wanted:
        """Return what an undisturbed attempt without suspension leaves; it is the plain reducer's output."""
        with self._lock:
            if scene.reducer not in self._wanted:
                alone = Place(self.folder / f"alone-{scene.reducer}", self.tracer, self.server)
                found = alone.attempt(scene, 0)
                plain = plain_output(scene, alone.folder)
                if found.status or found.output != plain:
                    raise AssertionError(f"{scene}: undisturbed {found.status}: {found.log}")
                self._wanted[scene.reducer] = Wanted(found.output, found.side, found.counters)
            return self._wanted[scene.reducer]

    def begin(self, scene: Scene, program: Path | None = None) -> tuple[Place, int]:
        """Return a place as the disturbed attempt finds it, and the attempt's number."""
        place = self.place(program)
        if scene.phase != "resume":
            return place, 0
        with self._lock:
            prepared = self._prepared.get(scene)
            if prepared is None:
                prepared = Place(self.folder / f"prepared-{scene}", self.tracer, self.server)
                found = prepared.attempt(scene, 0, PHASES["leave"])
                if found.status not in (0, EXIT_SUSPENDED):  # 0: refused, as some side files are
                    raise AssertionError(f"{scene}: no checkpoint to begin with: {found.log}")
                self._prepared[scene] = prepared
        place.take_store(prepared)
        return place, 1

    def count(self, scene: Scene) -> Ended:
        """Play a scene without a fault and return what it used; AssertionError if a call is not known."""
        wanted = self.wanted(scene)
        place, number = self.begin(scene)
        found = place.attempt(scene, number, PHASES[scene.phase], NONE)
        if found.unknown:
            raise AssertionError(
                f"{scene}: io_tracer.c knows no call number {', '.join(map(str, found.unknown))}"
            )
        shows = all(mark in found.log for mark in SHOWS[scene.phase]) or scene.reducer == "side"
        good = found.status == EXIT_SUSPENDED or (not found.status and not wanted.differs(found))
        if not (shows and good):
            raise AssertionError(f"{scene}: without a fault {found.status}: {found.log}")
        place.close()
        return found

    def play(self, case: Case, tries: int = 3, program: Path | None = None) -> Verdict:
        """Play one case; where its use did not come, the last that did. ``program``: another runner."""
        scene, fault = case
        place, number = self.begin(scene, program)
        found = place.attempt(scene, number, PHASES[scene.phase], fault)
        came = found.uses.get(fault.call, 0)
        if not found.fired and came and tries > 1:
            place.close()
            earlier = fault._replace(use=max(1, min(fault.use - 1, came)))
            return msgspec.structs.replace(
                self.play(Case(scene, earlier), tries - 1, program), case=str(case)
            )
        verdict, after = self._judge(scene, place, number, found)
        place.close()
        logs = [] if verdict in GOOD else found.log.splitlines()[-12:]
        if logs and after is not None:
            logs += ["next:", *after.log.splitlines()[-8:]]
        return Verdict(str(case), verdict, found.status, after.status if after else None, logs)

    def _judge(self, scene: Scene, place: Place, number: int, found: Ended) -> tuple[str, Ended | None]:
        wanted = self.wanted(scene)
        if not found.fired:
            return "not reached", None
        if found.status == -1:
            return "hung", None
        if found.status == 0:
            differs = wanted.differs(found)
            return f"wrong: {differs}" if differs else "equal", None
        after = place.attempt(scene, number + 1)
        if after.status:
            return "the next attempt failed", after
        differs = wanted.differs(after)
        if differs:
            return f"wrong after a failed attempt: {differs}", after
        if found.status == EXIT_SUSPENDED and "phase=replay" not in after.log and "ckpt=saved" in found.log:
            return "told as saved and not gone on from", after
        return GOOD[2 if found.status == EXIT_SUSPENDED else 1], after


def plain_output(scene: Scene, folder: Path) -> bytes:
    """Return what the reducer prints by itself."""
    import subprocess

    (folder / "plain").mkdir()
    env = {**os.environ, "mapreduce_task_output_dir": str(folder / "plain")}
    return subprocess.run(
        reducer(scene), input=INPUT, stdout=subprocess.PIPE, env=env, check=True, cwd=folder,
        stderr=subprocess.DEVNULL,
    ).stdout  # fmt: skip


def uses_of(count: int) -> tuple[int, ...]:
    """Return the first, second, third, a middle and the last use."""
    return tuple(sorted({use for use in (1, 2, 3, (count + 1) // 2, count) if use <= count}))


def cases_of(scene: Scene, counted: Ended) -> list[Case]:
    return [
        Case(scene, Fault(kind, call, use))
        for call, count in sorted(counted.uses.items())
        for kind in kinds_of(call)
        for use in uses_of(count)
    ]


def enumerate_cases(workshop: Workshop, scenes: Iterable[Scene], jobs: int = 2) -> list[Case]:
    """Count what each scene uses and return every case of it."""
    named = list(scenes)
    with ThreadPoolExecutor(jobs) as pool:
        return [
            case
            for scene, found in zip(named, pool.map(workshop.count, named), strict=True)
            for case in cases_of(scene, found)
        ]


def draw(cases: Sequence[Case], count: int, seed: int) -> list[Case]:
    """Draw so many cases, from every scene alike."""
    chance = random.Random(f"io-faults:{seed}")
    by_scene: dict[Scene, list[Case]] = {}
    for case in cases:
        by_scene.setdefault(case.scene, []).append(case)
    for each in by_scene.values():
        chance.shuffle(each)
    drawn: list[Case] = []
    while len(drawn) < min(count, len(cases)):
        for each in by_scene.values():
            drawn += [each.pop()] if each else []
    return drawn[:count]


def play_all(
    workshop: Workshop, cases: Sequence[Case], jobs: int, say: Callable[[Verdict], object]
) -> list[Verdict]:
    """Play cases, so many at a time, and tell each when it is judged."""

    def one(case: Case) -> Verdict:
        verdict = workshop.play(case)
        say(verdict)
        return verdict

    with ThreadPoolExecutor(jobs) as pool:
        return list(pool.map(one, cases))


def summary(verdicts: Iterable[Verdict], enumerated: int) -> dict[str, Any]:
    """Return what the row of the issue asks for."""
    counts = Counter(one.verdict for one in verdicts)
    judged = sum(counts.values()) - counts["not reached"]
    return {
        "enumerated": enumerated,
        "judged": judged,
        "not_reached": counts["not reached"],
        "wrong_with_status_0": sum(n for name, n in counts.items() if name.startswith("wrong")),
        "bad": sum(n for name, n in counts.items() if name not in (*GOOD, "not reached")),
        "verdicts": dict(sorted(counts.items())),
    }


class Kept:
    """Verdicts in a file of lines, so that a campaign that was stopped goes on: of this runner only."""

    def __init__(self, path: Path) -> None:
        self.path = path
        here = Path(__file__).parent
        files = (RUNNER, here / "io_tracer.c", here / "io_scenes.py", here / "io_faults.py")
        self.mark = hashlib.sha256(b"".join(each.read_bytes() for each in files)).hexdigest()[:16]
        self.found: dict[str, Verdict] = {}
        self._lock = threading.Lock()
        lines = path.read_text().splitlines() if path.exists() else []
        if lines and lines[0] == self.mark:
            for line in lines[1:]:
                one = msgspec.json.decode(line, type=Verdict)
                self.found[one.case] = one
        else:
            path.write_text(self.mark + "\n")

    def add(self, verdict: Verdict) -> None:
        with self._lock, self.path.open("ab") as file:
            file.write(msgspec.json.encode(verdict) + b"\n")
            self.found[verdict.case] = verdict


def main(arguments: Sequence[str]) -> int:
    """``python -m tests.soak io-faults``: return 1 if any case is bad."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.soak io-faults", description=__doc__.splitlines()[0]
    )
    parser.add_argument("--runs", default="all", help="so many, drawn by seed from every scene alike, or all")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=2, help="so many at a time")
    parser.add_argument("--scenes", nargs="+", default=list(map(str, SCENES)), choices=list(map(str, SCENES)))
    parser.add_argument("--json", action="store_true", help="print the summary alone, as JSON")
    parser.add_argument(
        "--kept", type=Path, default=Path("soak-io-faults.jsonl"), help="verdicts; goes on from these"
    )
    given = parser.parse_args(arguments)
    if given.runs != "all" and not given.runs.isdigit():
        parser.error(f"--runs {given.runs}: neither a number nor all")
    folder = Path(tempfile.mkdtemp(prefix="soak-io-"))
    workshop = Workshop(folder)
    scenes = [scene for scene in SCENES if str(scene) in given.scenes]
    cases = enumerate_cases(workshop, scenes, given.jobs)
    chosen = cases if given.runs == "all" else draw(cases, int(given.runs), given.seed)
    kept = Kept(given.kept)
    left = [case for case in chosen if str(case) not in kept.found]
    if not given.json:
        print(
            f"{len(cases)} cases in {len(scenes)} scenes, {len(chosen)} to play, {len(left)} left", flush=True
        )

    def say(verdict: Verdict) -> None:
        kept.add(verdict)
        done = len(kept.found)
        if not given.json and (verdict.verdict not in GOOD or done % 100 == 0):
            print(f"{done:6} of {len(chosen)} {verdict.case}: {verdict.verdict}", flush=True)

    play_all(workshop, left, given.jobs, say)
    workshop.close()
    shutil.rmtree(folder)
    verdicts = [kept.found[str(case)] for case in chosen]
    told = summary(verdicts, len(cases))
    told["bad_cases"] = [one for one in verdicts if one.verdict not in (*GOOD, "not reached")]
    print(msgspec.json.format(msgspec.json.encode(told), indent=2).decode())
    return 1 if told["bad"] else 0
