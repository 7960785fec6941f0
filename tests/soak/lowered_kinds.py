"""A daemon that has lowered a setting is struck at each request: the value comes back, whatever comes next.

    python -m tests.soak lowered-kinds [--kinds KIND,...] [--nexts NEXT,...] [--cases N] [--seed S]

A real ``yarnctl run`` works on the live emulator (:mod:`tests.live.lowered_live`). It is struck before or
after a request has had its effect (``sent``, ``done``), or some seconds after the setting was lowered:

==========  ============================================================================================
next        what happens
==========  ============================================================================================
restart     it is killed, and started again on the same host
other-host  it is killed and its state directory is lost; a daemon with another one starts
without     it is killed, and started again without the option that lowers; production still waits
observe     it is killed; an observing daemon and ``yarnctl check`` list the setting, and
            ``yarnctl restore --all`` restores it
pause       it is paused by its API in the middle of the request
full-disk   its disk is full from there on; it ends by itself, and is started again as in ``without``
owner       it is killed, and the owner sets another value meanwhile: that value stays
freeze      it is stopped (SIGSTOP) with the request under way; another daemon takes over, the request
            lands, and the process continues
freeze-cli  the same, and ``yarnctl restore --all`` takes over
==========  ============================================================================================

A key of YARN's own preemption is changed as long as a daemon acts. A stop leaves its record to a standby, or
to ``yarnctl restore`` (the unit's ``ExecStopPost``).

Law: 60 s after a process may restore, the value is the one before and HDFS has no record. A late request of
a frozen process is corrected within 5 s of its landing. What is seen is what the cluster itself has.
"""

from __future__ import annotations

import argparse
import json
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Literal, NamedTuple, get_args

from tests.live.lowered_live import KINDS, ROOT, Daemon, LoweringCluster
from yarnctl.deciding.model import ChangeKind
from yarnctl.journal.file import read
from yarnctl.journal.rebuild import repair
from yarnctl.journal.replay import replay

Next = Literal[
    "restart", "other-host", "without", "observe", "pause", "full-disk", "owner", "freeze", "freeze-cli"
]
NEXTS: tuple[Next, ...] = get_args(Next)
BACK_S = 60.0
CORRECTED_S = 5.0
STEP_S = 120.0
"""The longest that anything else takes, on a busy machine."""
HELD = ("held 0", "held 1", "held 3")
"""Seconds after the setting was lowered."""
EARLY = ("record", "commit", "change-file", "change")
LATE = ("check", "back-file", "back", "reading", "delete")
LASTING: tuple[ChangeKind, ...] = ("priority", "preemption")
"""Settings that stay changed as long as a daemon acts."""
UNRECORDED = ("record sent", "record done", "commit sent", "delete done")
"""Points without a whole record: ``yarnctl restore`` has nothing to take over, and leaves the lock alone."""
STOPPED = ("check", "back-file", "back")
"""Points that a daemon passes when it stops; the others it passes when it goes on and the demand is over."""


class Case(NamedTuple):
    """One fault. ``point``: the name of a request and whether it had its effect, or ``held`` and seconds."""

    kind: ChangeKind
    point: str
    next: Next

    @property
    def is_late(self) -> bool:
        """Whether the setting is being restored at that point."""
        return self.point.split()[0] in LATE


class Wrong(Exception):
    """What is wrong with how a case ended."""


class Played(NamedTuple):
    """A case, what is wrong with how it ended ("": nothing), and how long the value took to come back."""

    case: Case
    story: str
    back_s: float
    took_s: float
    said: str = ""


def points(kind: ChangeKind) -> list[str]:
    """Return the points of a life, in order."""
    names = [name for name in (*EARLY, *LATE) if kind == "executors" or not name.endswith("-file")]
    found = [f"{name} {when}" for name in names for when in ("sent", "done")]
    after = found.index("change done") + 1
    return [*found[:after], *HELD, *found[after:]]


def cases(kinds: Sequence[ChangeKind], nexts: Sequence[Next]) -> list[Case]:
    """Return every case of these kinds."""
    whole = [Case(kind, point, each) for kind in kinds for point in points(kind) for each in nexts]
    return [case for case in whole if _is_played(case)]


def _is_played(case: Case) -> bool:
    if case.next == "owner":
        return bool(KINDS[case.kind].owners) and case.point in ("change done", *HELD, "back sent")
    if (
        case.kind == "preemption"
        and case.next == "full-disk"
        and case.point.startswith(("reading", "delete"))
    ):
        return False  # a paused daemon that has restored writes nothing more
    if case.next == "freeze-cli" and case.point in UNRECORDED:
        return False
    return not (case.next.startswith("freeze") and case.point in HELD)


def wait(condition: Callable[[], object], what: str, within_s: float = STEP_S) -> float:
    """Return how many seconds it took; raises Wrong with what is waited for."""
    began_s = time.monotonic()
    while not condition():
        if time.monotonic() - began_s > within_s:
            raise Wrong(f"not within {within_s:g} s: {what}")
        time.sleep(0.05)
    return time.monotonic() - began_s


class Life:
    """One case on a cluster; ``daemons`` are those that were started."""

    def __init__(self, rig: LoweringCluster, case: Case, folder: Path) -> None:
        self.rig, self.case, self.folder = rig, case, folder
        self.daemons: list[Daemon] = []
        self.back_s = 0.0
        self._struck = threading.Event()

    def start(self, state: str, *options: str, enforce: bool = True) -> Daemon:
        """Start a daemon."""
        uses_api = self.case.next == "pause" or (self.case.kind in LASTING and self._needs_loop())
        api = uses_api and not self.daemons
        found = Daemon(self.rig.url, self.folder / state, *options, enforce=enforce, api=api)
        self.daemons.append(found)
        return found

    def _needs_loop(self) -> bool:
        name = self.case.point.split()[0]
        if self.case.kind == "preemption":
            return self.case.is_late
        return self.case.is_late and (name not in STOPPED or self.case.next == "pause" or self._is_frozen())

    def _is_frozen(self) -> bool:
        return self.case.next.startswith("freeze")

    def play(self) -> None:
        """Live until the fault, and what comes next; raises Wrong."""
        old = self.start("state", *self.rig.options)
        self.rig.demand()
        released = threading.Event()
        self._strike(old, released)
        if self._is_frozen():
            self._frozen(old, released)
        elif self.case.next == "pause":
            self._paused(old)
        else:
            self._next(old)
        for state in self.folder.glob("state*"):
            journal = state / "journal.jsonl"
            repair(journal)
            if journal.exists() and journal.stat().st_size:
                replay(read(journal), str(journal), closed=False)

    def close(self) -> None:
        """End all processes, also stopped ones."""
        for daemon in self.daemons:
            if daemon.process.poll() is None:
                daemon.send(signal.SIGCONT)
                daemon.kill()
            daemon.ended()

    # --- the fault ------------------------------------------------------------------------------

    def _strike(self, old: Daemon, released: threading.Event) -> None:
        """Return once the daemon was struck at the point."""
        rig, case = self.rig, self.case
        blows: dict[str, Callable[[], object]] = {
            "pause": lambda: old.command("pause"),
            "full-disk": old.fill_disk,
        }

        def strike() -> None:
            if self._is_frozen():
                old.send(signal.SIGSTOP)
                self._struck.set()
                released.wait(STEP_S)
                return
            if case.next == "pause" and case.kind in LASTING and case.is_late:
                old.command("continue")
                time.sleep(1)
            blows.get(case.next, old.kill)()
            self._struck.set()

        is_killed = case.next not in ("pause", "full-disk") and not self._is_frozen()
        if case.is_late or case.point in HELD:
            wait(lambda: "change done" in rig.trap.passed, "the setting is lowered")
            time.sleep(int(case.point.split()[1]) if case.point in HELD else 1)
        if case.point in HELD:
            strike()
            return
        rig.trap.arm(case.point, strike, drop=is_killed)
        if case.is_late:
            self._make_due(old)
        wait(self._struck.is_set, f"the daemon comes to {case.point}")

    def _make_due(self, old: Daemon) -> None:
        if self.case.kind in ("executors", "preemption"):
            self.rig.end_demand()  # executors come back into containers that are free; a pause waits for it
        if self.case.kind == "preemption":
            old.command("pause")
        elif self.case.point.split()[0] in STOPPED and self.case.next != "pause" and not self._is_frozen():
            old.process.terminate()
        elif self.case.kind == "priority":
            old.command("pause")
        else:
            self.rig.end_demand()

    # --- what comes next ------------------------------------------------------------------------

    def _next(self, old: Daemon) -> None:
        rig, case = self.rig, self.case
        if case.next == "full-disk" and case.point.startswith("delete"):
            # The record in HDFS is the last that is written of a change: the daemon need not notice.
            wait(lambda: rig.value() == rig.before and not rig.records, "all is restored", BACK_S)
            old.process.terminate()
        elif case.next == "full-disk" and case.kind in LASTING and case.point in HELD:
            old.process.terminate()  # while such a setting is held, a daemon may have nothing to write
        status = old.ended()
        if case.next == "full-disk":
            if status not in (0, 2):
                raise Wrong(f"with a full disk it ends with status {status}")
            kept = case.is_late or case.kind in ("executors", "preemption")
            if not kept and rig.value() != rig.before:
                raise Wrong(f"with a full disk it ends and leaves {rig.value()}")
        wanted = rig.before
        if case.next == "owner":
            rig.set_as_owner()
            wanted = rig.owned()
        elif rig.value() != rig.before and not rig.records:
            raise Wrong(f"it reads {rig.value()}, and no record says so")
        if case.next in ("restart", "other-host") or case.kind == "executors":
            rig.end_demand()
        if case.next == "observe":
            self._observed(wanted)
            return
        if case.next == "other-host":
            shutil.rmtree(self.folder / "state")
        options = rig.options if case.next in ("restart", "other-host") else rig.without
        new = self.start("state-2" if case.next == "other-host" else "state", *options)
        wait(lambda: "running (enforce)" in new.said, "the next daemon may act")
        if case.kind == "preemption" and options == rig.options:
            wait(lambda: rig.value() != rig.before and rig.records, "the next daemon switches, or keeps")
        if case.kind in LASTING and options == rig.options:
            new.end()  # it ranks, or switches, as long as it runs
        if case.kind == "preemption" and options == rig.options:
            wait(lambda: command("restore", "--rm", rig.url, "--all").returncode == 0, "restored by hand")
        self.back_s = wait(lambda: rig.value() == wanted and not rig.records, f"back at {wanted}", BACK_S)
        self._end_well(new, wanted)

    def _end_well(self, new: Daemon, wanted: str) -> None:
        # No second SIGTERM: one that comes while Python ends is not handled any more.
        if (status := new.end() if new.process.poll() is None else new.ended()) != 0:
            raise Wrong(f"the next daemon ends with status {status}")
        if (self.rig.value(), self.rig.records) != (wanted, []):
            raise Wrong(f"after its end: {self.rig.value()}, {self.rig.records}")

    def _observed(self, wanted: str) -> None:
        rig = self.rig
        if any(not name.startswith(".") for name in rig.records):
            watching = self.start("state-2", *rig.options, enforce=False)
            wait(lambda: "yarnctl restore --all" in watching.said, "an observing daemon lists it")
            watching.end()
        if rig.value() != wanted:
            told = json.loads(command("check", "--rm", rig.url, "--json").stdout)
            (found,) = [one for one in told["findings"] if one["id"] == "lowered"]
            if "yarnctl restore --all" not in found["fix"]:
                raise Wrong(f"check says {found}")
        began_s = time.monotonic()
        done = command("restore", "--rm", rig.url, "--all")
        self.back_s = time.monotonic() - began_s
        # A half record of a setting that was not lowered yet is removed by the next daemon that acts.
        whole = [name for name in rig.records if not (self.case.point in UNRECORDED and name.startswith("."))]
        if done.returncode or (rig.value(), whole) != (wanted, []):
            said = f"{done.stdout} {done.stderr}"
            raise Wrong(f"restore ends with {done.returncode}, {rig.value()}, {rig.records}: {said}")

    def _paused(self, old: Daemon) -> None:
        rig = self.rig
        if self.case.kind == "executors":
            rig.end_demand()
        self.back_s = wait(
            lambda: rig.value() == rig.before and not rig.records, f"back at {rig.before}", BACK_S
        )
        self._end_well(old, rig.before)

    # --- two holders ----------------------------------------------------------------------------

    def _frozen(self, old: Daemon, released: threading.Event) -> None:
        """Another process takes over; the old one's request lands, and it continues."""
        rig, case = self.rig, self.case
        # A queue whose production has just ended has free containers for the next one: nothing is lowered.
        may_serve = case.kind == "bounds" or (case.kind == "queue" and not case.is_late)
        is_serving = case.next == "freeze" and may_serve
        if not is_serving:
            rig.end_demand()
        elif case.is_late:
            rig.demand()
        new: Daemon | None = None
        if case.next == "freeze":
            new = self.start("state-2", *(rig.options if is_serving else rig.without))
            wait(lambda: "running (enforce)" in new.said, "the next daemon may act")
            if is_serving:
                # What the old one had ordered is not known to the new one: it orders, and lowers, by itself.
                wait(lambda: rig.value() != rig.before and not self._has_old_record(), "it lowers by itself")
            else:
                wait(
                    lambda: rig.value() == rig.before and not rig.records, "the next daemon restores", BACK_S
                )
        else:
            done = command("restore", "--rm", rig.url, "--all")
            if done.returncode not in (0, 3):
                raise Wrong(f"restore ends with {done.returncode}: {done.stdout} {done.stderr}")
        wanted = rig.value()
        if not is_serving and wanted != rig.before:
            raise Wrong(f"after restoring: {wanted}")
        released.set()
        time.sleep(0.2)
        old.send(signal.SIGCONT)
        landed_s = time.monotonic()
        wrong_since_s = 0.0
        while (now_s := time.monotonic()) - landed_s < 12:
            value = rig.value()
            is_wrong = value == rig.before if is_serving else value != rig.before
            wrong_since_s = (wrong_since_s or now_s) if is_wrong else 0.0
            self.back_s = max(self.back_s, now_s - wrong_since_s if is_wrong else 0.0)
            if is_wrong and new is not None and now_s - wrong_since_s > CORRECTED_S:
                raise Wrong(f"a late request stays for {CORRECTED_S:g} s: {value}")
            if case.kind == "executors" and is_wrong:
                raise Wrong("the driver obeys an order with an old number")
            time.sleep(0.1)
        if new is not None:
            rig.end_demand()
            wait(lambda: rig.value() == rig.before and not rig.records, "back at the end", BACK_S)
            new.end()
        old.end()
        if case.kind == "preemption":  # the old one may lead again: a stop leaves its record to the next one
            wait(lambda: command("restore", "--rm", rig.url, "--all").returncode == 0, "restored by hand")
        if (rig.value(), rig.records) != (rig.before, []):
            raise Wrong(f"at the end: {rig.value()}, {rig.records}")

    def _has_old_record(self) -> bool:
        """Return whether a record has the first term."""
        return any("changes-000000000001-" in name for name in self.rig.records)


def command(*words: str) -> subprocess.CompletedProcess[str]:
    """Run a command of ``yarnctl`` to its end."""
    return subprocess.run(
        [sys.executable, "-c", "from yarnctl.cli import main; main()", *words],
        capture_output=True, text=True, check=False, cwd=ROOT, timeout=STEP_S,
    )  # fmt: skip


def play_all(chosen: Sequence[Case], until_s: float = float("inf")) -> list[Played]:
    """Play cases of one kind on one cluster (a fresh one after a failure), until an instant (monotonic)."""
    played: list[Played] = []
    rig: LoweringCluster | None = None
    with tempfile.TemporaryDirectory() as folder:
        for number, case in enumerate(chosen):
            if time.monotonic() > until_s:
                break
            if rig is None:
                (Path(folder) / f"cluster-{number}").mkdir()
                rig = KINDS[case.kind](Path(folder) / f"cluster-{number}")
            found = played_once(rig, case, Path(folder) / str(number))
            played.append(found)
            print(json.dumps(found._replace(said="")), file=sys.stderr, flush=True)
            if found.story:
                rig.close()
                rig = None
        if rig is not None:
            rig.close()
    return played


def played_once(rig: LoweringCluster, case: Case, folder: Path) -> Played:
    """Play one case, and end its processes."""
    folder.mkdir()
    began_s, life, story = time.monotonic(), Life(rig, case, folder), ""
    try:
        rig.renew()
        life.play()
    except Exception as problem:
        story = f"{type(problem).__name__}: {problem}"
    finally:
        life.close()
    said = "\n---\n".join(daemon.said for daemon in life.daemons) if story else ""
    return Played(case, story, round(life.back_s, 1), round(time.monotonic() - began_s, 1), said)


def summary(chosen: Sequence[Case], workers: int, until_s: float = float("inf")) -> dict[str, object]:
    """Play cases, those of a kind on as many clusters as there are workers; return what came of them."""
    kinds = [[case for case in chosen if case.kind == kind] for kind in KINDS]
    groups = [cases[first::workers] for cases in kinds for first in range(workers)]
    with ThreadPoolExecutor(workers) as pool:
        parts = list(pool.map(lambda group: play_all(group, until_s), groups))
    played = [one for part in parts for one in part]
    wrong = [one for one in played if one.story]
    return {
        "cases": len(played),
        "kinds": Counter(one.case.kind for one in played),
        "nexts": Counter(one.case.next for one in played),
        "slowest_back_s": max((one.back_s for one in played if not one.story), default=0.0),
        "wrong": len(wrong),
        "failing": [{**one.case._asdict(), "story": one.story, "said": one.said[-6000:]} for one in wrong],
    }


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the summary as JSON; exit status 1 if anything is wrong."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--kinds", default=",".join(KINDS))
    parser.add_argument("--nexts", default=",".join(NEXTS))
    parser.add_argument("--points", default="", help="only points that contain one of these words")
    parser.add_argument("--cases", type=int, default=0, help="a seeded draw of so many (0: all)")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--workers", type=int, default=2, help="clusters at once")
    parser.add_argument(
        "--minutes", type=float, default=0, help="begin no case after this time (0: no limit)"
    )
    told = parser.parse_args(arguments)
    chosen = cases(told.kinds.split(","), told.nexts.split(","))
    if told.points:
        chosen = [case for case in chosen if any(word in case.point for word in told.points.split(","))]
    if told.cases:
        chosen = random.Random(told.seed).sample(chosen, min(told.cases, len(chosen)))
    until_s = time.monotonic() + told.minutes * 60 if told.minutes else float("inf")
    began_s = time.monotonic()
    found = summary(chosen, told.workers, until_s)
    print(json.dumps({"seed": told.seed, "took_s": round(time.monotonic() - began_s), **found}))
    return 1 if found["wrong"] else 0


if __name__ == "__main__":
    sys.exit(main())
