"""Make tasks from the answers of preemptable applications; a fault of one hides only that application."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple, TypeVar

from yarnctl.attach.connection.application_guard import ReadAnswer
from yarnctl.attach.connection.calls import Problem, attempt
from yarnctl.attach.observing.cluster_state import Held, LiveContainers, Sizes
from yarnctl.deciding.model import TaskView
from yarnctl.deciding.reasons.demand import NotModelled
from yarnctl.deciding.reasons.eligibility import EligibilityReason, HoldsResource, OnLabelledNode
from yarnctl.hadoop.proxied import Absent
from yarnctl.hadoop.wire import views, yarn
from yarnctl.hadoop.wire.decoders import Unreadable
from yarnctl.journal.rendering import text

_LOG = logging.getLogger("yarnctl.attach")

Value = TypeVar("Value")

TASKS = "tasks"  # The guard's purpose for reading the tasks of an application
NUMBER_MAX = 2**62
ATTEMPT_MAX = 200  # The maximum number of characters of an attempt's id


class Victim(NamedTuple):
    """The observed tasks and sizes of one job; ``bound_ms``: as in an observation."""

    tasks: tuple[TaskView, ...]
    sizes: Sizes | None
    bound_ms: Mapping[str, int] = {}


ObservedVictim = Victim | Problem  # A Problem: the application did not answer


def victims_of(
    held: Mapping[str, Held | Problem],
    answers: Mapping[str, ReadAnswer[Value | Absent] | Problem],
    make: Callable[[str, Held, ReadAnswer[Value]], Victim],
) -> dict[str, ObservedVictim]:
    """Return each application's tasks, made from its containers and its answer."""

    def one(name: str) -> ObservedVictim:
        mine, answer = held[name], answers[name]
        if isinstance(answer, Problem):
            return answer
        if isinstance(mine, Problem):
            return mine
        if isinstance(answer.value, Absent):
            return Problem(answer.value.why)
        return sound(make(name, mine, ReadAnswer(answer.value, answer.began_ms)), mine)

    found: dict[str, ObservedVictim] = {name: attempt(one, name) for name in answers}
    return found


def sound(victim: Victim, held: Held) -> Victim:
    """Return a victim whose tasks agree with each other and with YARN; raises Unreadable."""
    tasks = victim.tasks
    if len({each.container for each in tasks}) < len(tasks) or len({each.attempt for each in tasks}) < len(
        tasks
    ):
        raise Unreadable("the answer names a container or an attempt twice")
    for each in tasks:
        if each.container not in held.containers or len(each.attempt) > ATTEMPT_MAX:
            raise Unreadable("the answer names an unknown container or an invalid attempt")
        if not all(-1 <= number <= NUMBER_MAX for number in (each.remaining_ms, each.resume_cost_ms)):
            raise Unreadable(f"the answer contains a number outside of -1 to {NUMBER_MAX}")
        if not -NUMBER_MAX <= each.since_ms <= NUMBER_MAX:
            raise Unreadable("the answer contains an impossible time")
    if any(bound_ms > NUMBER_MAX for bound_ms in victim.bound_ms.values()):
        raise Unreadable(f"the answer bounds lost work by more than {NUMBER_MAX} ms")
    return victim


LOGGED_MAX = 256  # The maximum number of different lines that are logged


class Unmodelled:
    """Excludes tasks with a resource beside memory and vcores, and workers on nodes of several labels.

    Freed capacity serves requests for its node's label. An application with workers chooses which of them
    leave, so which label that serves is not known if their labels differ. The memory and vcores of a
    container with another resource would serve others. But its queue is guaranteed a part of that resource
    too, which is not read here, and others may get it before the task resumes.
    ``why``: application -> attempt -> why it is left alone, as last observed.
    """

    def __init__(self, live: LiveContainers) -> None:
        self._live = live
        self._labels: dict[str, str] = {}
        self._logged: set[str] = set()
        self.why: dict[str, dict[str, EligibilityReason]] = {}

    def note(self, nodes: Sequence[yarn.NodeRow], left_out: Mapping[str, NotModelled]) -> None:
        """Keep the nodes' labels; log each kind of ignored request once."""
        labels = {
            node.node: views.shown_name(node.partition) for node in nodes if node.labels and node.partition
        }
        if labels != self._labels:
            self._labels = labels
            self.why.clear()
        for name, why in left_out.items():
            if self._is_new(text(why)):
                _LOG.warning("%s: %s; yarnctl ignores these requests", name, text(why))

    def _is_new(self, line: str) -> bool:
        if line in self._logged or len(self._logged) >= LOGGED_MAX:
            return False
        self._logged.add(line)
        return True

    def modelled(self, application: str, tasks: tuple[TaskView, ...]) -> tuple[TaskView, ...]:
        """Return the tasks that may be preempted; note why the others are left alone.

        An application with workers chooses which of them leave, so all are left alone if one is.
        """
        found = {task.attempt: why for task in tasks if (why := self._objection(application, task))}
        labels = {self._labels.get(task.node, "") for task in tasks if task.kind == "worker"}
        if len(labels) > 1:
            found = {task.attempt: OnLabelledNode(max(labels)) for task in tasks}
        if found and any(task.kind == "worker" for task in tasks):
            first = next(iter(found.values()))
            found = {task.attempt: found.get(task.attempt, first) for task in tasks}
        self.why.pop(application, None)
        if not found:
            return tasks
        self.why[application] = found
        return tuple(task for task in tasks if task.attempt not in found)

    def _objection(self, application: str, task: TaskView) -> EligibilityReason | None:
        resource = self._live.holding.get(application, {}).get(task.container)
        return None if resource is None else HoldsResource(views.shown_name(resource))

    def drop(self, applications: Iterable[str]) -> None:
        """Drop the state of applications that have ended."""
        for name in applications:
            self.why.pop(name, None)
