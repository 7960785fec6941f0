"""Settings of the controller, and its two frozen profiles.

Law: ``paper`` is Natjam to the letter (section 3.2 of the paper; defaults of facts 2.1) with
every guard off; ``default``, with every guard on, is meant for clusters with other people's jobs.
"""

from __future__ import annotations

from math import isfinite
from typing import Literal

import msgspec

from yarnctl.deciding.open_hours import WEEK_MINUTES, OpenHours
from yarnctl.errors import BadInput

TEN_YEARS_MS = 10 * 366 * 24 * 3_600_000
RATIO_MAX = 1000

Mode = Literal["queues", "guarantees", "deadlines"]
"""What preempts what: named queues, queues below their guarantee, or applications with a deadline."""


class LossRule(msgspec.Struct, frozen=True, array_like=True):
    """A loss budget of its own: of the container time that a queue, or a user, held over a window."""

    kind: Literal["queue", "user"]
    name: str
    may_lose_ratio: float
    window_ms: int = 3_600_000


class LeverSettings(msgspec.Struct, frozen=True, kw_only=True):
    """How the cheapest mix of levers is chosen (:mod:`yarnctl.deciding.mix`).

    * ``room_within_ms``: a lever that frees its container later is not used. ``suspend_ms``, ``leave_ms``:
      the predicted spans from a request to suspend, and from an end or a kill, until the container is free.
      ``commit_ms``: how much longer a reduce takes that ends by itself.
    * Of the container time of the preemptable queues over the last ``window_ms``, at most ``may_lose_ratio``
      may be lost work, and ``may_refetch_ratio`` overhead of reduces that were ended before their first key.
      ``budgets``: rules of single queues instead, and of single users in addition.
    * ``jobs_max``: tasks of at most this many jobs are compared, in the job policy's order.
    * ``second_worth_ratio``: how many seconds of lost work one second of a waiting container is worth
      (:mod:`yarnctl.deciding.waiting_worth`). 0 or unset: the least lost work counts, however long it takes.
    * ``kills_max``: how often a task may be killed in the window of the budgets (unset: once).
    """

    room_within_ms: int
    suspend_ms: int
    leave_ms: int
    commit_ms: int = 0
    may_lose_ratio: float = 0.0
    may_refetch_ratio: float = 0.2
    window_ms: int = 3_600_000
    jobs_max: int = 5_000
    budgets: tuple[LossRule, ...] = ()
    second_worth_ratio: float | msgspec.UnsetType = msgspec.UNSET
    kills_max: int | msgspec.UnsetType = msgspec.UNSET


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """All settings of the controller. Spans in ms, ratios in 0..1.

    * ``mode`` "queues": containers for preempting queues are freed in preemptable queues (Natjam).
      "deadlines": one queue; less urgent applications free containers for the most urgent one with pending
      requests (Natjam-R). "guarantees": a leaf queue below its guarantee takes from those above theirs
      (:mod:`yarnctl.deciding.guarantees`); ``preempting_queues`` and ``preemptable_queues`` restrict which,
      empty means every leaf.
    * ``observe_only``: no action is performed; orders are simulated (:mod:`yarnctl.deciding.simulating`).
    * ``in_flight_ratio_max``: how many of the preemptable queues' containers may be suspending at once (1:
      all), at least ``in_flight_least``. ``job_open_ratio_max``: the same for one job, at least one.
    * ``look_age_max_ms``: a snapshot that took longer is not decided on. ``silent_ms``: how long a job whose
      master did not answer is excluded. ``release_repeat_ms``: when a Release without an effect is sent
      again.
    * ``rest_ms``: how long an attempt with a withdrawn order is excluded. ``task_tries_max``: an attempt that
      did not stop after that many orders is excluded for good.
    * ``levers``: choose the cheapest mix of levers instead of suspensions by the two policies.
    * ``hours``: when containers of single queues may be taken; of the others always.
    * ``governed``: levers are left where production does not need them (:mod:`yarnctl.deciding.governor`).
    * ``deadlines`` "sold": deadlines of paid, admitted applications count, and tags in YARN do not.
    """

    profile: str = "default"
    mode: Mode = "queues"
    preempting_queues: tuple[str, ...] = ("production",)
    preemptable_queues: tuple[str, ...] = ("research",)
    job_policy: str = "MR"
    task_policy: str = "SRT"
    eviction: Literal["suspend", "kill"] = "suspend"
    tick_ms: int = 1000
    open_tick_ms: int = 250
    kill_timeout_ms: int = 12_000
    on_timeout: Literal["give-up", "kill"] = "give-up"
    expire_ms: int = 2000
    utilisation_tolerance_ratio: float = 0.1
    kill_maps: bool = False
    seed: int = 0
    model_scheduler: bool = True
    cost_guard: bool = True
    settle_ms: int = 30_000
    task_suspensions_max: int = 8
    task_tries_max: int = 3
    job_open_ratio_max: float = 0.5
    laxity_margin_ms: int = 30_000
    priority_levels: int = 10
    refused_shown: int = 3
    look_age_max_ms: int = 5000
    silent_ms: int = 30_000
    release_repeat_ms: int = 2000
    observe_only: bool = False
    in_flight_ratio_max: float = 1.0
    in_flight_least: int = 2
    rest_ms: int = 12_000
    levers: LeverSettings | None = None
    deadlines: Literal["sold"] | None = None
    hours: tuple[OpenHours, ...] | msgspec.UnsetType = msgspec.UNSET
    governed: bool | msgspec.UnsetType = msgspec.UNSET

    def may_preempt(self, queue: str) -> bool:
        """Return whether containers may be freed for a queue's applications at all."""
        return self._is_named(queue, self.preempting_queues)

    def may_be_preempted(self, queue: str) -> bool:
        """Return whether a queue's containers may be taken at all."""
        return self._is_named(queue, self.preemptable_queues)

    def _is_named(self, queue: str, queues: tuple[str, ...]) -> bool:
        return self.mode == "deadlines" or queue in queues or (self.mode == "guarantees" and not queues)


DEFAULT = Settings()

PAPER = Settings(
    profile="paper",
    open_tick_ms=1000,
    on_timeout="kill",
    model_scheduler=False,
    cost_guard=False,
    settle_ms=0,
    task_suspensions_max=1_000_000,
    task_tries_max=1_000_000,
    silent_ms=0,
    job_open_ratio_max=1.0,
    laxity_margin_ms=0,
    priority_levels=1_000_000,
)

PROFILES = {"default": DEFAULT, "paper": PAPER}


def validate(settings: Settings) -> None:
    """Raise BadInput, naming the field, for a number that cannot be computed with."""
    _require_numbers(settings)
    for hours in settings.hours or ():
        _require_hours(hours)
    if settings.mode == "guarantees" and not settings.model_scheduler:
        raise BadInput("mode", "guarantees needs the model of the scheduler", "use the profile default")
    if settings.governed and settings.levers is None:
        raise BadInput("governed", "only levers are governed", "use levers, or leave it out")
    if settings.levers is not None:
        _require_numbers(settings.levers)
        for name in ("may_lose_ratio", "may_refetch_ratio"):
            if getattr(settings.levers, name) > 1:
                raise BadInput(name, "more than all would be lost", "use a part from 0 to 1")
        for rule in settings.levers.budgets:
            if not (isfinite(rule.may_lose_ratio) and 0 <= rule.may_lose_ratio <= 1):
                raise BadInput(
                    f"{rule.kind} {rule.name}", f"{rule.may_lose_ratio} is not a share from 0 to 1"
                )
            if not 1 <= rule.window_ms <= TEN_YEARS_MS:
                raise BadInput(f"{rule.kind} {rule.name}", f"window {rule.window_ms} ms is out of range")
        if settings.eviction != "suspend":
            raise BadInput("levers", f"eviction {settings.eviction} chooses no levers", "use one of both")


def _require_hours(hours: OpenHours) -> None:
    if not (hours.windows and hours.offsets):
        raise BadInput(f"hours of queue {hours.queue}", "the windows or the offsets are missing", "use both")
    for first, length in hours.windows:
        if not (0 <= first < WEEK_MINUTES and 1 <= length <= WEEK_MINUTES):
            raise BadInput(f"hours of queue {hours.queue}", f"{first}, {length} is out of range")


def _require_numbers(settings: Settings | LeverSettings) -> None:
    for name in settings.__struct_fields__:
        value = getattr(settings, name)
        if isinstance(value, bool) or not isinstance(value, int | float):
            continue
        if name.endswith(("_ratio", "_ratio_max")):
            if not (isfinite(value) and 0 <= value <= RATIO_MAX):
                raise BadInput(name, f"{value} is out of range", f"use a number from 0 to {RATIO_MAX}")
        elif name.endswith("_ms"):
            least = 1 if name in ("tick_ms", "open_tick_ms", "kill_timeout_ms") else 0
            if not least <= value <= TEN_YEARS_MS:
                raise BadInput(name, f"{value} ms is out of range", f"use {least} ms to {TEN_YEARS_MS} ms")
        elif name != "seed" and value < 0:
            raise BadInput(name, f"{value} is out of range", "use 0 or more")
