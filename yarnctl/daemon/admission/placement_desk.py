"""Measure the pools of placement, and complete the options of a request; only options reach the journal."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from statistics import NormalDist

import msgspec

from yarnctl.daemon.admission.backlog import Size, Sizing
from yarnctl.daemon.admission.pool_files import PoolSettings
from yarnctl.daemon.admission.request_queue import Refusal, RequestedAdmission
from yarnctl.deciding.admission.book import AdmissionStore
from yarnctl.deciding.admission.capacity import Pool
from yarnctl.deciding.admission.gate import Gate
from yarnctl.deciding.admission.mechanisms import MECHANISMS
from yarnctl.deciding.admission.placement_options import OPTIONS_MAX, Alternatives, PlacementOption
from yarnctl.deciding.admission.records import Estimate
from yarnctl.deciding.reasons.verdicts import GateReason
from yarnctl.errors import BadInput
from yarnctl.extras import require_extra
from yarnctl.prediction.application_runs import KnownRun, merged, runs_in_lines

LATE_RATIO = 0.05  # The probability to exceed an upper bound, if the request has none
PROFILE = "run yarnctl profile APP.toml to measure it with several numbers of containers"

Measure = Callable[[], Size]


class PoolSizes:
    """The sizes of all pools, measured by name ("": the only one). ``problem``: why one was not measured."""

    def __init__(
        self, pools: Sequence[PoolSettings], queues: tuple[str, ...], measure: Mapping[str, Measure]
    ) -> None:
        self._pools = {each.name: each for each in pools}
        self._queues = queues
        self._sizes = {name: Sizing(each) for name, each in measure.items()}
        self.problem: GateReason | None = None

    def begin_anew(self) -> None:
        """Measure at the next call: the clock was set back, so the time of the last measurement is wrong."""
        self._sizes = {name: Sizing(each.measure) for name, each in self._sizes.items()}

    def poll(self, gate: Gate | None, now_ms: int) -> tuple[Pool, ...] | None:
        """Return the pools to use from now on; None: no change, or one was never measured."""
        known = {} if gate is None else {pool.name: pool for pool in gate.pools}
        found, fresh = list[Pool](), False
        for name, sizing in self._sizes.items():
            pool = known.get(name)
            before = None if pool is None else Size(pool.capacity, pool.container_mib)
            size = sizing.poll(before, now_ms)
            fresh |= size is not None
            counts = size or before
            if counts is not None:
                found.append(self._pool(name, counts))
        problems = (sizing.problem for sizing in self._sizes.values())
        self.problem = next((each for each in problems if each is not None), None)
        return tuple(found) if fresh and len(found) == len(self._sizes) else None

    def _pool(self, name: str, size: Size) -> Pool:
        settings = self._pools.get(name)
        if settings is None:
            return Pool(name, size.capacity, size.container_mib, self._queues)
        return Pool(
            name,
            size.capacity,
            size.container_mib,
            (settings.queue,),
            settings.kinds,
            settings.cost_mtokens,
            settings.hourly_mtokens,
        )


class UserRun(msgspec.Struct, frozen=True):
    """A run of a placed application, with its user."""

    user: str
    run: KnownRun


def placed_runs(store: AdmissionStore) -> tuple[UserRun, ...]:
    """Return the runs of placed applications that have ended, in the order of their ends."""
    found = []
    for name, ran_ms in store.ran_ms.items():
        each = store.admissions.get(name)
        if each is None or each.request.alternatives is None or ran_ms <= 0:
            continue
        known, plan = each.request.alternatives, each.plan
        if not known.application or not plan.kind:
            continue
        run = KnownRun(
            application=known.application,
            kind=plan.kind,
            features=dict(known.features),
            settings=dict(plan.settings),
            containers=plan.containers,
            elapsed_ms=ran_ms,
            source=f"journal:{each.application}",
        )
        found.append(UserRun(each.user, run))
    return tuple(found)


def places(store: AdmissionStore) -> bool:
    """Return whether admission places applications."""
    return store.gate is not None and MECHANISMS[store.gate.mechanism].places


def alternatives_of(
    store: AdmissionStore, request: RequestedAdmission, estimate: Estimate | None
) -> Alternatives | Refusal | None:
    """Return a request's options; None: the request has none, and admission places no applications."""
    alternatives, gate = request.alternatives, store.gate
    if gate is None or not places(store):
        if alternatives is not None:
            remedy = "restart the daemon with --admission orion --pools FILE"
            return Refusal("no-placement", "admission does not place applications", remedy)
        return None
    if alternatives is None:
        return _by_estimate(gate, request, estimate)
    if not alternatives.options:
        problem = f"too few runs of {alternatives.application or request.name} are known"
        return Refusal("no-options", problem, PROFILE)
    options = tuple(_in_pool(gate, request.queue, each) for each in alternatives.options)
    for each in options:
        if not any(_takes(pool, each) for pool in gate.pools):
            problem = f"no pool accepts {each.kind}"
            if each.pool:
                problem = f"pool {each.pool} does not exist or does not accept {each.kind}"
            return Refusal("no-pool", problem, f"use one of {', '.join(pool.name for pool in gate.pools)}")
    return msgspec.structs.replace(alternatives, options=options)


def _takes(pool: Pool, option: PlacementOption) -> bool:
    return (not pool.kinds or option.kind in pool.kinds) and option.pool in ("", pool.name)


def _in_pool(gate: Gate, queue: str, option: PlacementOption) -> PlacementOption:
    pool = _pool_of(gate, queue)
    if not queue or pool is None or option.pool:
        return option
    return msgspec.structs.replace(option, pool=pool.name)


def _pool_of(gate: Gate, queue: str) -> Pool | None:
    return next((each for each in gate.pools if queue in each.queues), None)


def _by_estimate(
    gate: Gate, request: RequestedAdmission, estimate: Estimate | None
) -> Alternatives | Refusal:
    if estimate is None:
        problem = "the request has no options, and no estimate of the job's work is available"
        return Refusal("no-options", problem, f"include an estimate, or {PROFILE}")
    pool = _pool_of(gate, request.queue)
    if pool is None or (pool.kinds and request.kind not in pool.kinds):
        return Refusal(
            "no-pool", f"no pool accepts {request.kind} in queue {request.queue}", "use another queue"
        )
    most = min(request.containers, pool.capacity)
    least = min(2, most)  # its master, and one that works
    numbers = sorted(
        {least + (most - least) * step // max(1, OPTIONS_MAX - 1) for step in range(OPTIONS_MAX)}
    )
    upper = estimate.mean_ms + NormalDist().inv_cdf(1 - LATE_RATIO) * estimate.stdev_ms
    options = tuple(
        PlacementOption(
            request.kind,
            count,
            max(1, -(-estimate.mean_ms // count)),
            max(1, -(-int(upper) // count)),
            pool=pool.name,
        )
        for count in numbers
    )
    return Alternatives(options)


class PlacementPredictions:
    """Predicts options by an application's name, from runs in a file (read each time) and the journal."""

    def __init__(self, file: Path | None = None) -> None:
        self._file = file

    def known(self, journal: Iterable[KnownRun]) -> tuple[KnownRun, ...]:
        """Return all runs; raises BadInput for a file that cannot be read."""
        return merged(self._kept(), journal)

    def alternatives(
        self, application: str, features: Mapping[str, float], late_ratio: float, journal: Iterable[KnownRun]
    ) -> Alternatives:
        """Return the options of an application with these features; raises BadInput for an unknown name."""
        require_extra("prediction")
        from yarnctl.prediction.application_options import predicted_options

        runs = [run for run in self.known(journal) if run.application == application]
        kinds: dict[str, dict[str, dict[str, None]]] = {}
        for run in runs:
            tunables = kinds.setdefault(run.kind, {})
            for name, value in run.settings.items():
                tunables.setdefault(name, {})[value] = None
        chosen = {
            kind: {name: tuple(values) for name, values in tunables.items()}
            for kind, tunables in kinds.items()
        }
        if not chosen:
            raise BadInput(f"application: {application[:60]}", "no run is known", PROFILE)
        options, lacking = predicted_options(runs, application, features, chosen, late_ratio)
        return Alternatives(options, application, tuple(sorted(features.items())), lacking)

    def _kept(self) -> tuple[KnownRun, ...]:
        if self._file is None or not self._file.exists():
            return ()
        try:
            text = self._file.read_text(encoding="utf-8-sig")
        except (OSError, UnicodeDecodeError) as error:
            problem = f"cannot be read ({type(error).__name__})"
            where = f"--runs {self._file.name} of the daemon"
            raise BadInput(where, problem, "report it to the operator of the daemon") from None
        return runs_in_lines(text, self._file.name)
