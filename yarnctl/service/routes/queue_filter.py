"""The filter ``queue`` of lists: a name of a leaf queue, as everywhere, becomes its full path.

Law: thin, as all routes.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeVar

from yarnctl.daemon.view.published import View
from yarnctl.deciding.queue_names import QueueTree
from yarnctl.deciding.reasons.queue_naming import AmbiguousQueue
from yarnctl.journal.rendering import text
from yarnctl.service.answers.error_body import ApiProblem
from yarnctl.service.answers.paging import Parameters

Filters = TypeVar("Filters", bound=Parameters)


def paths_in(view: View) -> list[str]:
    """Return the leaf queues of the newest snapshot."""
    return [] if view.snapshot is None else [each.queue for each in view.snapshot.queues]


def with_queue(asked: Filters, paths: Iterable[str]) -> Filters:
    """Return filters with the full path of the queue that they name, among ``paths``.

    A name that stands for none of them stays, and nothing matches. Raises ApiProblem for an ambiguous one.
    """
    name: str | None = getattr(asked, "queue", None)
    if name is None:
        return asked
    found = QueueTree(dict.fromkeys(paths)).resolve(name)
    if isinstance(found, AmbiguousQueue):
        raise ApiProblem(404, "not-found", text(found), "give the full path")
    return asked.model_copy(update={"queue": found}) if isinstance(found, str) else asked
