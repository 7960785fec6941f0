"""Campaigns as data: from a seed to a small cluster, its jobs, and what breaks when.

Law: a campaign is a function of its seed and of nothing else; what is drawn here is all that is drawn. A set
of consecutive seeds covers every kind of fault in turn, so that no kind depends on luck to come up.
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

EVERY_PROCESS, PROCESS_AT = 13, 4
EVERY_PROGRAM, PROGRAM_AT = 23, 5
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


def campaign_of(seed: int) -> Campaign:
    """Return the campaign of a seed."""
    draw = random.Random(seed)
    program = seed % EVERY_PROGRAM == PROGRAM_AT
    processes = seed % EVERY_PROCESS == PROCESS_AT and not program
    kinds = [IN_TURN[0] if program else IN_TURN[seed % len(IN_TURN)]]
    kinds += [draw.choice(IN_TURN) for _ in range(draw.choice((0, 1, 1, 2, 3)))]
    faults = sorted((_fault(kind, draw, program) for kind in kinds), key=lambda one: one.at_ms)
    nodes, slots = draw.choice(((2, 3), (2, 4), (3, 2)))
    return Campaign(
        seed=seed,
        processes=processes,
        program=program,
        nodes=nodes,
        slots=slots,
        reduces=nodes * slots + draw.randint(0, 2),
        reduce_ms=14_000 if program else PROCESS_REDUCE_MS if processes else draw.randint(4000, 6000),
        keys=draw.randint(20, 60),
        production=draw.randint(1, 3),
        hold_ms=30_000 if program else draw.choice(HOLDS_MS),
        faults=tuple(faults),
    )


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
