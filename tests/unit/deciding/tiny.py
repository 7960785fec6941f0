"""A tiny cluster of equal slots behind the port, in test language.

It grants in the capacity scheduler's order (queues by used/guaranteed, then rank), suspends in
``drain_ms`` and hands a suspended task's room back, after which the task asks again.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from yarnctl.deciding.model import (
    Accepted,
    Action,
    ApplicationView,
    ContainerEnded,
    ContainerGranted,
    ContainerRequest,
    Fact,
    Kill,
    ManifestSeen,
    Observation,
    ObservationRequest,
    Outcome,
    QueueView,
    Release,
    Snapshot,
    Suspend,
    TaskView,
    Withdraw,
)
from yarnctl.loop import ClusterIdentity
from yarnctl.units import Resources, plus, times

SLOT = Resources(1024, 1)


@dataclass
class TinyJob:
    """One job: which containers run where, and how many more it waits for."""

    name: str
    queue: str
    submitted_at_ms: int = 0
    deadline_at_ms: int | None = None
    pending: int = 0
    running: dict[str, tuple[str, int]] = field(default_factory=dict)  # container: node, remaining ms
    started: int = 0

    @property
    def containers(self) -> int:
        return len(self.running)


class TinyCluster:
    """``nodes`` nodes of ``slots`` slots; queue name -> guaranteed slots."""

    def __init__(self, nodes: int, slots: int, queues: dict[str, int], releases_itself: bool = False) -> None:
        self.now_ms = 0
        self.nodes = {f"n{i:02d}": slots for i in range(nodes)}
        self.capacity = slots
        self.queues = queues
        self.jobs: dict[str, TinyJob] = {}
        self.facts: list[Fact] = []
        self.actions: list[Action] = []
        self.due: list[tuple[int, Suspend]] = []
        self.drain_ms = 1300
        self.releases_itself = releases_itself
        self.silent: set[str] = set()
        self.scopes: list[ObservationRequest] = []

    # --- test language

    def submit(self, name: str, queue: str, running: int, pending: int = 0, **more: object) -> TinyJob:
        job = TinyJob(name, queue, submitted_at_ms=self.now_ms, pending=pending, **more)  # type: ignore[arg-type]
        self.jobs[name] = job
        for _ in range(running):
            self._start(job, next(node for node, free in self.nodes.items() if free))
        return job

    def _start(self, job: TinyJob, node: str) -> str:
        self.nodes[node] -= 1
        job.started += 1
        container = f"c-{job.name}-{job.started:03d}"
        job.running[container] = (node, 10_000 + 1000 * job.started)
        return container

    def schedule(self) -> None:
        """Give free slots away in the scheduler's order."""
        while True:
            waiting = [job for job in self.jobs.values() if job.pending]
            node = next((name for name, free in self.nodes.items() if free), None)
            if not waiting or node is None:
                return
            job = min(
                waiting, key=lambda j: (self._used(j.queue) / self.queues[j.queue], j.submitted_at_ms, j.name)
            )
            job.pending -= 1
            container = self._start(job, node)
            self.facts.append(ContainerGranted(container, job.name, node, SLOT, self.now_ms))

    def _used(self, queue: str) -> int:
        return sum(job.containers for job in self.jobs.values() if job.queue == queue)

    def end(self, job: TinyJob, container: str, ending: str, asks_again: bool) -> None:
        node, _ = job.running.pop(container)
        self.nodes[node] += 1
        job.pending += asks_again
        self.facts.append(ContainerEnded(container, job.name, node, ending, self.now_ms))  # type: ignore[arg-type]

    def advance(self, to_ms: int) -> None:
        self.now_ms = to_ms
        for due_ms, action in list(self.due):
            if due_ms <= to_ms:
                self.due.remove((due_ms, action))
                self.facts.append(ManifestSeen(action.order, action.attempt, action.generation, 7, to_ms))
                if self.releases_itself:
                    self.end(self.jobs[action.application], action.container, "suspended", True)

    # --- the port

    def identify(self) -> ClusterIdentity:
        able = frozenset({"releases-itself"}) if self.releases_itself else frozenset()
        return ClusterIdentity("1", len(self.nodes), able)

    def observe(self, request: ObservationRequest) -> Observation:
        self.scopes.append(request)
        facts, self.facts = tuple(self.facts), []
        return Observation(
            now_ms=self.now_ms, as_of_ms=self.now_ms, snapshot=self.snapshot() if request.cluster else None,
            tasks={name: self.tasks(self.jobs[name]) for name in request.victims if name not in self.silent},
            unreachable=tuple(name for name in request.victims if name in self.silent), facts=facts,
        )  # fmt: skip

    def perform(self, action: Action) -> Outcome:
        self.actions.append(action)
        if isinstance(action, Suspend):
            self.due.append((self.now_ms + self.drain_ms, action))
        elif isinstance(action, Withdraw):
            self.due = [(at, due) for at, due in self.due if due.order != action.order]
        elif isinstance(action, Release | Kill):
            self.end(self.jobs[action.application], action.container, "killed", True)
        return Accepted()

    def tasks(self, job: TinyJob) -> tuple[TaskView, ...]:
        return tuple(
            TaskView(f"a-{name[2:]}", name, node, SLOT, "reduce", remaining, 5000, 0, 0, True, False)
            for name, (node, remaining) in list(job.running.items())[1:]
        )

    def snapshot(self) -> Snapshot:
        total = times(SLOT, self.capacity * len(self.nodes))
        return Snapshot(
            total=total,
            largest_node=times(SLOT, self.capacity),
            queues=tuple(
                QueueView(queue=name, guaranteed=times(SLOT, part), maximum=total,
                    used=times(SLOT, self._used(name)))
                for name, part in self.queues.items()
            ),
            applications=tuple(
                ApplicationView(application=job.name, queue=job.queue, user="u",
                    submitted_at_ms=job.submitted_at_ms, rank=rank, containers=job.containers,
                    used=times(SLOT, job.containers), am_size=SLOT, task_size=SLOT,
                    requests=(ContainerRequest(10, SLOT, job.pending),) if job.pending else (),
                    deadline_at_ms=job.deadline_at_ms)
                for rank, job in enumerate(self.jobs.values())
            ),
            free_by_node={
                name: plus(times(SLOT, free), Resources(0, 0)) for name, free in self.nodes.items() if free
            },
        )  # fmt: skip
