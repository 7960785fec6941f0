"""The filter ``queue`` of lists: the name of a leaf queue becomes its full path."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeVar

from yarnctl.daemon.view.published import View
from yarnctl.deciding.queue_names import QueueTree
from yarnctl.deciding.reasons.queue_naming import AmbiguousQueue
from yarnctl.journal.rendering import sentence_and_remedy
from yarnctl.service.answers.error_body import ApiProblem
from yarnctl.service.answers.paging import Parameters

Filters = TypeVar("Filters", bound=Parameters)


def paths_in(view: View) -> list[str]:
    """Return the leaf queues of the newest snapshot."""
    return [] if view.snapshot is None else [each.queue for each in view.snapshot.queues]


def with_queue(query: Filters, paths: Iterable[str]) -> Filters:
    """Return filters with the queue's path (unknown: as it is); ApiProblem (404) if ambiguous."""
    name: str | None = getattr(query, "queue", None)
    if name is None:
        return query
    found = QueueTree(dict.fromkeys(paths)).resolve(name)
    if isinstance(found, AmbiguousQueue):
        raise ApiProblem(404, "not-found", *sentence_and_remedy(found))
    return query.model_copy(update={"queue": found}) if isinstance(found, str) else query
