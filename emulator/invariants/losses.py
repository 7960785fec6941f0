"""What a mix loses: never more than its budget, by the cluster's own count; and a restart finds the same."""

from __future__ import annotations

from collections.abc import Iterator

from emulator.invariants.watched_run import ChargedLoss, RunWatch, Stories
from yarnctl.deciding.levers import LeverPull
from yarnctl.deciding.loss_budget import CHARGED, budget_of, charged_ms
from yarnctl.deciding.records import Decision, Transition
from yarnctl.deciding.settings import LeverSettings
from yarnctl.units import Resources

NOTED_MS = 60_000


def no_map_is_killed_without_a_budget(watch: RunWatch) -> Stories:
    """Where nothing may be lost, no lever kills."""
    rules = _rules(watch)
    if rules is None or rules.may_lose_ratio:
        return
    for record in watch.records[watch.read :]:
        if isinstance(record, Decision):
            for order, pull, _ in _pulls(record):
                if pull.lever.kind == "kill":
                    yield f"{order} kills {pull.lever.unit}, and nothing may be lost"


def losses_stay_within_the_budget(watch: RunWatch) -> Stories:
    """What a decision charges, with all that was charged in the window, is within the part of what was held.

    What was held in the window is counted by the scheduler. A map computes until it has ended: that is
    charged to what is decided later.
    """
    rules = _rules(watch)
    if rules is None:
        return
    _note_held(watch)
    for record in watch.records[watch.read :]:
        if isinstance(record, Transition):
            _moved(watch, record)
        elif isinstance(record, Decision):
            charged = _charge(watch, record)
            for queue, kind in charged:
                ratio = rules.may_lose_ratio if kind == "kill" else rules.may_refetch_ratio
                lost = _charged(watch, queue, kind, record.at_ms - rules.window_ms)
                held = _held_mib_ms(watch, queue) - _held_before(watch, queue, record.at_ms - rules.window_ms)
                if lost > held * ratio:
                    yield f"{queue} has held {held} MiB-ms, and {kind} is charged {lost}: over {ratio:.1%}"


def a_restart_finds_the_same_losses(watch: RunWatch) -> Stories:
    """The journal so far leads to the same charges, samples and promises as the controller has."""
    if _rules(watch) is None or watch.controller is None or watch.read == len(watch.records):
        return
    for record in watch.records[watch.read :]:
        watch.fold.apply(record)
    ledger, found = watch.controller.ledger, watch.fold.ledger
    if found.losses.state() != ledger.losses.state():
        yield f"charges are {ledger.losses.charges}, the journal says {found.losses.charges}"
    if found.awaited.until_ms != ledger.awaited.until_ms:
        yield f"promised is {ledger.awaited.until_ms}, the journal says {found.awaited.until_ms}"


def _rules(watch: RunWatch) -> LeverSettings | None:
    """Return the settings of the levers; None: this run has none."""
    return None if watch.controller is None else watch.controller.settings.levers


def _pulls(decision: Decision) -> Iterator[tuple[str, LeverPull, Resources]]:
    for order, pull, pick in zip(decision.orders, decision.pulls, decision.picks, strict=True):
        if pull is not None:
            yield order, pull, pick.task.size


def _charge(watch: RunWatch, decision: Decision) -> dict[tuple[str, str], None]:
    """Note what a decision charges; return the queues and levers whose budgets it uses."""
    used: dict[tuple[str, str], None] = {}
    for order, pull, size in _pulls(decision):
        lost_ms = charged_ms(pull.lever)
        if pull.lever.kind in CHARGED and lost_ms:
            loss = ChargedLoss(pull.queue, pull.lever.kind, decision.at_ms, size.memory_mib, lost_ms)
            watch.losses[order] = loss
            used[pull.queue, budget_of(pull.lever.kind)] = None
    return used


def _moved(watch: RunWatch, transition: Transition) -> None:
    before = watch.losses.get(transition.order)
    if before is None:
        return
    if transition.event in ("refused", "completed"):
        del watch.losses[transition.order]
    elif transition.event in ("ended-as-ordered", "ended-otherwise") and before.kind == "kill":
        computed_ms = max(0, transition.at_ms - before.at_ms)
        watch.losses[transition.order] = before._replace(lost_ms=before.lost_ms + computed_ms)


def _charged(watch: RunWatch, queue: str, kind: str, after_ms: int) -> int:
    return sum(
        each.memory_mib * each.lost_ms
        for each in watch.losses.values()
        if (each.queue, budget_of(each.kind)) == (queue, kind) and each.at_ms > after_ms
    )


def _note_held(watch: RunWatch) -> None:
    """Keep what each queue has held, once a minute."""
    now_ms = watch.kernel.now_ms
    if not watch.held_marks or now_ms - watch.held_marks[-1][0] >= NOTED_MS:
        watch.held_marks.append(
            (now_ms, {name: _held_mib_ms(watch, name) for name in watch.scheduler.queues})
        )


def _held_before(watch: RunWatch, name: str, begins_ms: int) -> int:
    """Return what a queue had held up to a minute before the window begins: never more than then."""
    return max((held[name] for at_ms, held in watch.held_marks if at_ms <= begins_ms), default=0)


def _held_mib_ms(watch: RunWatch, name: str) -> int:
    """Return the container time of a queue from the beginning."""
    queue, now_ms = watch.scheduler.queues[name], watch.kernel.now_ms
    held = sum(queue.usage_mib_ms.values())
    for container in watch.live:
        if container.app.queue is queue:
            held += container.memory_mib * (now_ms - container.granted_at_ms)
    return held
