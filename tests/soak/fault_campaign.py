"""One campaign: from its plan to a verdict.

Law: whatever breaks, the campaign itself waits for conditions, never for a time to be enough; a deadline says
what never came. After the last fault is mended a second production job must be decided on: that is how it is
seen that yarnctl recovers by itself.

A machine that gives the cluster no processor time lets the research job end before all of its reduces were at
work at once; nothing could be suspended then. Such a campaign is played again with reduces twice as long.
"""

from __future__ import annotations

import threading
import time
import traceback
from collections import Counter
from collections.abc import Callable
from functools import partial
from pathlib import Path

import msgspec

from tests.soak.fault_checks import CHECKS, Left, open_orders, read_records, read_requests
from tests.soak.fault_plan import Campaign, Fault
from tests.soak.fault_stage import Stage, Submitted, stage
from tests.soak.fault_story import story
from tests.soak.rig import clock_ms, wait_until
from yarnctl.deciding.records import Decision, Transition

WAIT_S = 180.0
STRETCHES = (1, 2, 4, 8)
"""How many times as long the research job's reduces are, play by play."""
LOOK_EVERY_S = 0.2


class Verdict(msgspec.Struct, kw_only=True):
    """What became of one campaign. ``breaches``: check -> what it found; empty: nothing was lost."""

    seed: int
    kind: str
    faults: list[str]
    struck: dict[str, int] = {}
    breaches: dict[str, list[str]] = {}
    seconds: float = 0.0
    decisions: int = 0
    orders: dict[str, int] = {}
    checkpoints: int = 0
    starts: int = 0
    recovery: str = ""
    """How it was seen that yarnctl recovers: decided, or why that could not be asked."""
    stretch: int = 1
    """How many times as long as drawn the research job's reduces were."""


class TooShort(Exception):
    """The research job was over before it used all room."""


Seen = Callable[[Left], object]


def run_campaign(campaign: Campaign, folder: Path, seen: Seen = lambda _: None) -> Verdict:
    """Run a campaign below ``folder`` (new) and judge it; never raises for what goes wrong in it.

    ``seen`` is shown what the campaign has left before it is judged.
    """
    began_s = time.monotonic()
    verdict = Verdict(seed=campaign.seed, kind=campaign.kind, faults=[_words(one) for one in campaign.faults])
    try:
        _play_long_enough(campaign, folder, verdict, seen)
    except Exception as error:  # a campaign that could not be judged is lost, and the others go on
        where = traceback.extract_tb(error.__traceback__)[-1]
        story = f"{type(error).__name__} in {where.name}: {error}"
        verdict.breaches["ended"] = [story]
    verdict.seconds = round(time.monotonic() - began_s, 1)
    return verdict


def _play_long_enough(campaign: Campaign, folder: Path, verdict: Verdict, seen: Seen) -> None:
    """Play with longer reduces until the research job uses all room, and judge that play."""
    for stretch in STRETCHES:
        verdict.stretch = stretch
        longer = msgspec.structs.replace(campaign, reduce_ms=campaign.reduce_ms * stretch)
        try:
            with stage(longer, folder / f"x{stretch}") as on:
                _play(on, verdict)
                left = _look_back(on)
                verdict.checkpoints = len(left.manifests)
                seen(left)
                _judge(left, verdict)
                verdict.struck = {kind: number for kind, number in sorted(on.struck.items()) if number}
            return
        except TooShort:
            if stretch == STRETCHES[-1]:
                raise


def _play(on: Stage, verdict: Verdict) -> None:
    on.daemon.start()
    research = on.research()
    least = on.campaign.nodes * on.campaign.slots - 2
    wait_until(lambda: _is_full(on, research, least), "all room is used", WAIT_S)
    wait_until(
        lambda: on.daemon.ready or on.cluster.is_over(research.application), "yarnctl is ready", WAIT_S
    )
    _require_at_work(on, research)
    on.production()
    _break(on)
    recovered_at_ms = clock_ms()
    verdict.recovery = _recover(on, recovered_at_ms)
    for job in on.jobs:
        _wait(on, partial(on.cluster.is_over, job.application), f"the end of {job.application}")
    _wait(on, lambda: _settled(on), "every order is settled")
    _wait(on, lambda: on.daemon.looked_since(recovered_at_ms), "yarnctl runs at the end")
    verdict.starts = on.daemon.starts
    said = on.daemon.stop()
    if said:
        verdict.breaches["daemon"] = [said]


def _is_full(on: Stage, research: Submitted, least: int) -> bool:
    """Say whether so many reduces are at work."""
    _require_at_work(on, research)
    return len(on.seen(lambda: on.reducing(research))) >= least


def _require_at_work(on: Stage, research: Submitted) -> None:
    """Raise TooShort once the research job is over."""
    if on.cluster.is_over(research.application):
        raise TooShort(f"{research.application} ended before it used all room and yarnctl was ready")


def _wait(on: Stage, condition: Callable[[], object], what: str) -> None:
    """Wait for something; start yarnctl again whenever it was killed."""
    deadline_s = time.monotonic() + WAIT_S
    pause = threading.Event()
    whole = on.cluster.whole
    while not condition():
        if not on.daemon.alive:
            on.daemon.start()
        if time.monotonic() > deadline_s:
            told = on.seen(lambda: story(whole.site.manager, whole.nodes, whole.masters))
            raise AssertionError(f"never within {WAIT_S:.0f} s: {what}; what each believes:\n{told}")
        pause.wait(LOOK_EVERY_S)


def _break(on: Stage) -> None:
    began_s = time.monotonic()
    due: list[tuple[float, Callable[[], None]]] = []

    def begin(fault: Fault) -> None:
        mend = on.strike(fault)
        due.append((time.monotonic() + fault.span_ms / 1000, mend))

    due += [(began_s + one.at_ms / 1000, lambda one=one: begin(one)) for one in on.campaign.faults]  # type: ignore[misc]
    pause = threading.Event()
    while due:
        due.sort(key=lambda pair: pair[0])
        left_s = due[0][0] - time.monotonic()
        if left_s <= 0:
            due.pop(0)[1]()
        else:
            pause.wait(min(left_s, 0.1))
        if not on.daemon.alive:
            on.daemon.start()


def _recover(on: Stage, since_ms: int) -> str:
    """Have another production job come, and see that yarnctl looks, free to act, and decides on it."""
    journal = on.folder / "state" / "journal.jsonl"
    job = on.production()

    def decided() -> bool:
        newest = [one.at_ms for one in read_records(journal) if isinstance(one, Decision)]
        return bool(newest) and newest[-1] >= since_ms

    def ended() -> bool:
        return on.cluster.is_over(on.jobs[0].application) or on.cluster.is_over(job.application)

    _wait(on, lambda: decided() or ended(), f"a decision after {since_ms}")
    if decided():
        return "decided"
    _wait(on, lambda: on.daemon.looked_since(since_ms), "yarnctl sees the cluster again, free to act")
    return on.daemon.looked_since(since_ms) or "looked"


def _settled(on: Stage) -> bool:
    return not open_orders(read_records(on.folder / "state" / "journal.jsonl"))


def _look_back(on: Stage) -> Left:
    """Gather what is left once yarnctl has stopped."""
    research = on.jobs[0]
    endings = {}
    for job in on.jobs:
        row = on.cluster.row(job.application)
        endings[job.application] = str(row.get("finalStatus", "")), str(row.get("diagnostics", ""))[:300]
    state = on.folder / "state"
    return Left(
        campaign=on.campaign, jobs=on.jobs, endings=endings,
        masters={job.application: on.masters(job) for job in on.jobs},
        attempts=on.seen(lambda: on.attempts(research)), manifests=on.cluster.manifests(research.application),
        asked=read_requests(on.folder / "work" / "hdfs" / "yarnctl" / "requests", research.id),
        kills=on.weather.kills, windows=on.windows, journal=state / "journal.jsonl",
        instance=(state / "instance").read_text().strip(), records=read_records(state / "journal.jsonl"),
    )  # fmt: skip


def _judge(left: Left, verdict: Verdict) -> None:
    decisions = [one for one in left.records if isinstance(one, Decision)]
    verdict.decisions = len(decisions)
    moves = (one for one in left.records if isinstance(one, Transition))
    ends = {one.order: one.target for one in moves}
    verdict.orders = dict(sorted(Counter(ends.values()).items()))
    for name, check in CHECKS.items():
        found = check(left)
        if found:
            verdict.breaches[name] = found[:5]


def _words(fault: Fault) -> str:
    target = f" of {fault.target}" if fault.target else ""
    return f"{fault.kind}{target} at {fault.at_ms}"
