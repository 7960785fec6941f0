"""Make tasks from the answers of preemptable applications; a fault of one hides only that application."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple, Protocol, TypeVar

from yarnctl.attach.connection.application_guard import ReadAnswer
from yarnctl.attach.connection.calls import Problem, attempt
from yarnctl.attach.observing.cluster_state import Held, Sizes
from yarnctl.deciding.model import TaskView
from yarnctl.hadoop.proxied import Absent
from yarnctl.hadoop.wire.decoders import Unreadable

Value = TypeVar("Value")

TASKS = "tasks"  # The guard's purpose for reading the tasks of an application
NUMBER_MAX = 2**62
ATTEMPT_MAX = 200  # The maximum number of characters of an attempt's id


class Victim(NamedTuple):
    """The observed tasks and sizes of one job."""

    tasks: tuple[TaskView, ...]
    sizes: Sizes | None


ObservedVictim = Victim | Problem  # A Problem: the application did not answer


class Removal(NamedTuple):
    """Why a container left, in its application's words, and whether it left well, as after an order."""

    why: str
    is_drained: bool


RemoveReason = Removal | Absent | Problem | None  # None: the application still lists it


class LeavingObserver(Protocol):
    """Observes applications of one framework; an order lets their containers leave."""

    def observe(self, victims: Sequence[str]) -> dict[str, ObservedVictim]:
        """Observe applications; a Problem for one that does not answer. One left alone shows no task."""

    def remove_reasons(self, wanted: Sequence[tuple[str, str]]) -> dict[tuple[str, str], RemoveReason]:
        """Return why containers left, by application and name."""


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
    return victim
