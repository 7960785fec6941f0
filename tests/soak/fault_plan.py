"""Campaigns as data: from a seed to a small cluster, its jobs, and what breaks when.

Law: a campaign is a function of its seed and of nothing else; what is drawn here is all that is drawn. A set
of consecutive seeds covers every kind of fault in turn, so that no kind depends on luck to come up, and of
ten consecutive seeds three play whole processes on both sides: the real task runner with its reducer, and a
``yarnctl run`` of its own that is killed at least once.
"""

from __future__ import annotations

import random
from typing import Literal, get_args

import msgspec

CrashPoint = Literal["before-append", "torn-append", "after-append", "after-perform", "after-outcome"]
CRASH_POINTS: tuple[CrashPoint, ...] = get_args(CrashPoint)
"""Where a daemon in this process dies, as by ``kill -9``: around one append or one performed action."""

CLUSTER_KINDS = ("nm", "am", "task", "store-down", "torn-upload")
HTTP_KINDS = ("http-500", "http-time-out", "http-garbage", "http-slow-drip", "http-lost-answer")
KILL_ANYWHERE = "kill-9"
"""SIGKILL of a ``yarnctl run`` of its own, at a random moment."""

IN_TURN = (*CRASH_POINTS, *CLUSTER_KINDS, *HTTP_KINDS)
KINDS = (*IN_TURN, KILL_ANYWHERE)

TARGETS = ("rm", "am", "hdfs")
"""Whose answers to yarnctl an HTTP fault breaks."""

BOTH_OF_TEN = (3, 6, 9)
"""Last digits of the seeds whose campaigns have both: tasks that are processes, and a yarnctl that is one."""
BOTH_IN_TURN = (*CLUSTER_KINDS, *HTTP_KINDS)
"""What breaks in turn in those besides yarnctl itself, which is always killed."""
OTHERS_OF_TEN = tuple(digit for digit in range(10) if digit not in BOTH_OF_TEN)
EVERY_PROCESS, PROCESS_AT = 13, 4
EVERY_PROGRAM, PROGRAM_AT = 23, 5
"""Of the other campaigns, counted: every so many has one of the two alone."""
BOTH, LIGHTEST = "processes, program", "modelled, thread"
CAMPAIGN_KINDS = (BOTH, "processes, thread", "modelled, program", LIGHTEST)
"""What the tasks of a campaign are (real processes under the task runner, or modelled ones), and what yarnctl
is (a ``yarnctl run`` of its own, or the same pieces on a thread that can be stopped at a chosen point)."""
HOLDS_MS = (3000, 30_000)
PROCESS_REDUCE_MS = 7500


class Fault(msgspec.Struct, frozen=True, kw_only=True):
    """One thing that breaks.

    ``at_ms`` after the first production job was submitted, for ``span_ms`` (0: at once and over). A crash
    point dies at the ``nth`` such moment. ``target`` is one of TARGETS (HTTP kinds), ``draw`` (0..1) chooses
    the node, job, task or how many bytes of an upload arrive.
    """

    kind: str
    at_ms: int
    span_ms: int = 0
    nth: int = 1
    target: str = ""
    draw: float = 0.0


class Campaign(msgspec.Struct, frozen=True, kw_only=True):
    """One campaign. ``program``: yarnctl is a process of its own; ``processes``: tasks are real ones."""

    seed: int
    processes: bool
    program: bool
    nodes: int
    slots: int
    reduces: int
    reduce_ms: int
    keys: int
    production: int
    hold_ms: int
    faults: tuple[Fault, ...]

    @property
    def kind(self) -> str:
        tasks = "processes" if self.processes else "modelled"
        return f"{tasks}, {'program' if self.program else 'thread'}"


def campaign_of(seed: int) -> Campaign:
    draw = random.Random(seed)
    both, number = _place(seed)
    program = both or number % EVERY_PROGRAM == PROGRAM_AT
    processes = both or (number % EVERY_PROCESS == PROCESS_AT and not program)
    kinds = [IN_TURN[0] if program else IN_TURN[number % len(IN_TURN)]]
    kinds += [BOTH_IN_TURN[number % len(BOTH_IN_TURN)]] if both else []
    kinds += [draw.choice(IN_TURN) for _ in range(draw.choice((0, 1, 1, 2) if both else (0, 1, 1, 2, 3)))]
    faults = sorted((_fault(kind, draw, program) for kind in kinds), key=lambda one: one.at_ms)
    nodes, slots = draw.choice(((2, 3), (2, 4), (3, 2)))
    return Campaign(
        seed=seed, processes=processes, program=program, nodes=nodes, slots=slots,
        reduces=nodes * slots + draw.randint(0, 2),
        reduce_ms=14_000 if program else PROCESS_REDUCE_MS if processes else draw.randint(4000, 6000),
        keys=draw.randint(20, 60), production=draw.randint(1, 3),
        hold_ms=30_000 if program else draw.choice(HOLDS_MS), faults=tuple(faults),
    )  # fmt: skip


def _place(seed: int) -> tuple[bool, int]:
    """Return whether a seed's campaign has both kinds of process, and its number among those like it."""
    tens, digit = divmod(seed, 10)
    both = digit in BOTH_OF_TEN
    digits = BOTH_OF_TEN if both else OTHERS_OF_TEN
    return both, tens * len(digits) + digits.index(digit)


def _fault(kind: str, draw: random.Random, program: bool) -> Fault:
    """Draw one fault of a kind; with a yarnctl of its own every crash point becomes a SIGKILL."""
    at_ms = draw.randint(0, 2500) if not program else draw.randint(0, 6000)
    if kind in CRASH_POINTS:
        if program:
            return Fault(kind=KILL_ANYWHERE, at_ms=at_ms)
        return Fault(kind=kind, at_ms=min(at_ms, 800), nth=draw.randint(1, 3))
    if kind in HTTP_KINDS:
        span_ms, target = draw.randint(600, 2500), draw.choice(TARGETS)
        return Fault(kind=kind, at_ms=at_ms, span_ms=span_ms, target=target)
    spans = {"nm": (300, 5000), "store-down": (500, 2500), "torn-upload": (1500, 3000)}
    return Fault(kind=kind, at_ms=at_ms, span_ms=draw.randint(*spans.get(kind, (0, 0))), draw=draw.random())
