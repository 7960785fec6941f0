"""The view as Prometheus metrics; no label has an application or a user, so that series stay bounded."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from itertools import accumulate
from typing import get_args

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest
from prometheus_client.registry import Collector, CollectorRegistry

from yarnctl.api.cluster_answers import LoopState
from yarnctl.daemon.view.histogram import Histogram
from yarnctl.daemon.view.published import View
from yarnctl.deciding.admission.book import OPEN as OPEN_ADMISSIONS
from yarnctl.deciding.lifecycle import OPEN, State
from yarnctl.deciding.model import ChangeKind
from yarnctl.service.answers.from_view import VERSION, budget, counted, snapshot

CONTENT_TYPE = CONTENT_TYPE_LATEST


def text(view: View) -> bytes:
    """Return the metrics of a view in Prometheus' text format."""
    registry = CollectorRegistry(auto_describe=False)
    registry.register(_OfView(view))
    return generate_latest(registry)


class _OfView(Collector):
    """The metrics of one view."""

    def __init__(self, view: View) -> None:
        self.view = view

    def describe(self) -> list[Metric]:
        """Return nothing: the metrics are not registered in advance."""
        return []

    def collect(self) -> Iterator[Metric]:
        """Yield all metrics."""
        for part in PARTS:
            yield from part(self.view)


def _build(view: View) -> Iterator[Metric]:
    build = GaugeMetricFamily("yarnctl_build_info", "1; the version is in the label.", labels=["version"])
    build.add_metric([VERSION], 1.0)
    yield build
    yield GaugeMetricFamily(
        "yarnctl_start_time_seconds", "Instant of the loop's start.", view.loop.started_at_ms / 1000
    )


def _loop(view: View) -> Iterator[Metric]:
    status = view.loop
    state = GaugeMetricFamily("yarnctl_loop_state", "1 for the state the loop is in.", labels=["state"])
    for name in get_args(LoopState):
        state.add_metric([name], float(name == status.state))
    yield state
    enforcing = float(status.mode == "enforce")
    yield GaugeMetricFamily(
        "yarnctl_enforcing", "1 if the loop sends orders, 0 if it only observes.", enforcing
    )
    if status.leads is not None:
        yield GaugeMetricFamily(
            "yarnctl_leader", "1 if this daemon has the lock; absent if it observes.", float(status.leads)
        )
        lock = GaugeMetricFamily("yarnctl_lock", "1 for the place of the lock.", labels=["place"])
        lock.add_metric([status.lock], 1.0)
        yield lock
    yield GaugeMetricFamily(
        "yarnctl_cluster_reachable",
        "1 if the ResourceManager answered the last request.",
        float(status.reachable),
    )
    yield GaugeMetricFamily(
        "yarnctl_view_timestamp_seconds", "Instant of the view, on the loop's clock.", view.now_ms / 1000
    )
    yield CounterMetricFamily("yarnctl_ticks", "Ticks of the loop.", status.ticks)
    yield CounterMetricFamily("yarnctl_tick_errors", "Ticks that failed.", status.tick_errors)
    aside = GaugeMetricFamily(
        "yarnctl_queue_aside_until_timestamp_seconds",
        "Instant until which no container is freed for a queue, while it is paused.",
        labels=["queue"],
    )
    for why in status.aside:
        aside.add_metric([why.queue], why.until_ms / 1000)
    yield aside
    if status.tick_ms is not None:
        yield GaugeMetricFamily(
            "yarnctl_last_tick_seconds", "Duration of the last tick.", status.tick_ms / 1000
        )


def _cluster(view: View) -> Iterator[Metric]:
    shown = snapshot(view)
    if shown.cluster is not None:
        yield GaugeMetricFamily("yarnctl_cluster_nodes", "Nodes of the cluster.", shown.cluster.node_count)
    if shown.snapshot_at_ms is None or shown.total is None:
        return
    yield GaugeMetricFamily(
        "yarnctl_snapshot_timestamp_seconds", "Instant of the last observation.", shown.snapshot_at_ms / 1000
    )
    yield GaugeMetricFamily(
        "yarnctl_cluster_memory_bytes", "Memory of the cluster.", shown.total.memory_mib * 2**20
    )
    yield GaugeMetricFamily("yarnctl_cluster_vcores", "Virtual cores of the cluster.", shown.total.vcores)
    yield GaugeMetricFamily(
        "yarnctl_masters_only",
        "Applications with all tasks suspended; each keeps one container.",
        shown.masters_only,
    )
    gauges = (
        GaugeMetricFamily("yarnctl_used_memory_bytes", "Memory in use, by role.", labels=["role"]),
        GaugeMetricFamily("yarnctl_used_vcores", "Virtual cores in use, by role.", labels=["role"]),
        GaugeMetricFamily("yarnctl_containers", "Containers, by role.", labels=["role"]),
        GaugeMetricFamily("yarnctl_pending_containers", "Requested containers, by role.", labels=["role"]),
    )
    used = {"preempting": shown.preempting, "preemptable": shown.preemptable, "other": shown.other}
    for role, held in used.items():
        row = (held.used.memory_mib * 2**20, held.used.vcores, held.containers, held.pending)
        for gauge, value in zip(gauges, row, strict=True):
            gauge.add_metric([role], value)
    yield from gauges


def _queues(view: View) -> Iterator[Metric]:
    gauges = (
        GaugeMetricFamily(
            "yarnctl_queue_used_memory_bytes", "Memory in use, by leaf queue.", labels=["queue", "role"]
        ),
        GaugeMetricFamily(
            "yarnctl_queue_guaranteed_memory_bytes",
            "Guaranteed memory, by leaf queue.",
            labels=["queue", "role"],
        ),
        GaugeMetricFamily(
            "yarnctl_queue_maximum_memory_bytes",
            "Maximum of memory, by leaf queue.",
            labels=["queue", "role"],
        ),
        GaugeMetricFamily(
            "yarnctl_queue_pending_containers",
            "Requested containers, by leaf queue.",
            labels=["queue", "role"],
        ),
    )
    for queue in snapshot(view).queues:
        mib = (queue.used.memory_mib, queue.guaranteed.memory_mib, queue.maximum.memory_mib)
        for gauge, value in zip(gauges, (*(each * 2**20 for each in mib), queue.pending), strict=True):
            gauge.add_metric([queue.queue, queue.role], value)
    yield from gauges


def _work(view: View) -> Iterator[Metric]:
    lost = CounterMetricFamily(
        "yarnctl_lost_work_byte_seconds", "Work of research that is done again, by queue.", labels=["queue"]
    )
    kept = CounterMetricFamily(
        "yarnctl_kept_work_byte_seconds", "Work of research that was kept, by queue.", labels=["queue"]
    )
    for queue, work in (view.reporting.work() if view.reporting is not None else {}).items():
        lost.add_metric([queue], work.lost_mib_ms * 2**20 / 1000)
        kept.add_metric([queue], work.kept_mib_ms * 2**20 / 1000)
    yield lost
    yield kept
    shown = [budget(view, each) for each in view.budgets if each.kind == "queue"]
    allowed = GaugeMetricFamily(
        "yarnctl_budget_may_lose_ratio", "Part of its work that a queue may lose.", labels=["queue"]
    )
    spent = GaugeMetricFamily(
        "yarnctl_budget_lost_seconds", "Lost container time in the budget's window.", labels=["queue"]
    )
    left = GaugeMetricFamily(
        "yarnctl_budget_left_seconds", "Container time that the queue may still lose.", labels=["queue"]
    )
    for each in shown:
        allowed.add_metric([str(each.queue)], each.may_lose_ratio)
        spent.add_metric([str(each.queue)], each.lost_ms / 1000)
        left.add_metric([str(each.queue)], each.left_ms / 1000)
    yield from (allowed, spent, left)
    changes = GaugeMetricFamily(
        "yarnctl_lowered_settings", "Settings that are lowered and not restored, by kind.", labels=["kind"]
    )
    lowered = Counter(change.kind for change in view.loop.changes)
    for kind in get_args(ChangeKind):
        changes.add_metric([kind], lowered[kind])
    yield changes


def _waits(view: View) -> Iterator[Metric]:
    ended = HistogramMetricFamily(
        "yarnctl_production_wait_seconds",
        "How long applications of production waited for containers, by queue.",
        labels=["queue"],
    )
    longest = GaugeMetricFamily(
        "yarnctl_production_longest_wait_seconds",
        "The longest wait of an application of production that still waits, by queue.",
        labels=["queue"],
    )
    for queue, waits in view.waits.items():
        _add(ended, (queue,), waits.ended)
        longest.add_metric([queue], waits.longest_ms / 1000)
    yield ended
    yield longest


def _requests(view: View) -> Iterator[Metric]:
    sent = CounterMetricFamily(
        "yarnctl_requests",
        "Requests to servers of the cluster, by result.",
        labels=["server", "address", "result"],
    )
    lasted = CounterMetricFamily(
        "yarnctl_request_seconds",
        "How long these requests lasted together.",
        labels=["server", "address", "result"],
    )
    for key, requests in sorted(view.loop.requests.items()):
        sent.add_metric(list(key), requests.number)
        lasted.add_metric(list(key), requests.seconds)
    yield sent
    yield lasted


def _orders(view: View) -> Iterator[Metric]:
    counts = view.counts
    yield CounterMetricFamily("yarnctl_decisions", "Decisions taken.", counts.decisions)
    yield CounterMetricFamily("yarnctl_refusals", "Triggers without a decision.", counts.refusals)
    yield CounterMetricFamily("yarnctl_epochs", "Changes of the ResourceManager.", counts.epochs)
    yield CounterMetricFamily("yarnctl_keys_saved", "Key groups kept by checkpoints.", counts.keys_saved)
    yield CounterMetricFamily(
        "yarnctl_lost_checkpoints", "Checkpoints that the next attempt did not use.", counts.checkpoints_lost
    )
    yield CounterMetricFamily(
        "yarnctl_lost_keys", "Key groups in those checkpoints, where known.", counts.keys_lost
    )
    opened = GaugeMetricFamily("yarnctl_open_orders", "Open orders, by state.", labels=["state"])
    states = counted(story.state for story in view.entries if not story.observed)
    for state in OPEN:
        opened.add_metric([state], states.get(state, 0))
    yield opened
    ended = CounterMetricFamily("yarnctl_orders_ended", "Settled orders, by final state.", labels=["state"])
    for name in (state for state in get_args(State) if state not in OPEN):
        ended.add_metric([name], counts.ended.get(name, 0))  # also 0: increase() sees no first sample
    yield ended
    actions = CounterMetricFamily(
        "yarnctl_actions", "Actions on the cluster, by outcome.", labels=["action", "outcome"]
    )
    for key, count in sorted(counts.actions.items()):
        actions.add_metric(list(key), count)
    yield actions
    saved = HistogramMetricFamily("yarnctl_checkpoint_seconds", "From the order to its checkpoint.")
    _add(saved, (), counts.saved)
    yield saved
    freed = HistogramMetricFamily("yarnctl_release_seconds", "From the order to the freed container.")
    _add(freed, (), counts.freed)
    yield freed


def _gate(view: View) -> Iterator[Metric]:
    status = view.admission
    if status is None:
        return
    open_ = GaugeMetricFamily("yarnctl_admissions", "Open admissions, by state.", labels=["state"])
    for state in OPEN_ADMISSIONS:
        open_.add_metric([state], sum(each.state == state for each in status.admissions))
    yield open_
    yield GaugeMetricFamily("yarnctl_gate_reserved_containers", "Containers reserved.", status.reserved)
    if status.capacity is not None:
        yield GaugeMetricFamily(
            "yarnctl_gate_capacity_containers", "Containers of the cluster.", status.capacity
        )
    yield GaugeMetricFamily(
        "yarnctl_gate_learned_jobs", "Finished jobs that the estimates use.", status.learned
    )


def _add(family: HistogramMetricFamily, values: Sequence[str], histogram: Histogram) -> None:
    sums = list(accumulate(histogram.counts))
    bounds = [*(str(bound_ms / 1000) for bound_ms in histogram.bounds_ms), "+Inf"]
    family.add_metric(values, list(zip(bounds, map(float, sums), strict=True)), histogram.sum_ms / 1000)


PARTS: tuple[Callable[[View], Iterator[Metric]], ...] = (
    _build,
    _loop,
    _cluster,
    _queues,
    _orders,
    _work,
    _waits,
    _requests,
    _gate,
)
