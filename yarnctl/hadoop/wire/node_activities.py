"""What the capacity scheduler notes about one heartbeat of a node: GET /scheduler/activities?nodeId=.

Source: facts, section 5.1, tried on 3.4.2. Below root each element is a queue, an application, a request or a
node. 3.3.0 changed the names of several fields; an older answer has no ``timestamp`` and counts as no record.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

import msgspec
from msgspec import field

from yarnctl.deciding.queue_names import spells
from yarnctl.hadoop.wire.decoders import OneDecoder

APPLICATION = "application_"
REQUEST = re.compile(r"request_([0-9]{1,9})_")
WORDS_MAX = 300  # The characters of YARN's words that are shown


class ActivityElement(msgspec.Struct, frozen=True):
    """A queue, application, request or node that the heartbeat looked at; ``diagnostic``: YARN's words.

    ``priority``: of an application, the level that the scheduler grants by, which ``/apps`` may not show.
    """

    name: str = ""
    state: str = field(name="allocationState", default="")
    diagnostic: str = ""
    children: tuple[ActivityElement, ...] = ()
    priority: int | None = field(name="appPriority", default=None)

    def walk(self) -> Iterator[ActivityElement]:
        """Yield this element and all below it, from the top."""
        left = [self]
        while left:
            element = left.pop()
            yield element
            left += reversed(element.children)


class NodeAllocation(msgspec.Struct, frozen=True):
    """What one attempt to allocate on the node looked at; ``state``: its result."""

    state: str = field(name="finalAllocationState", default="")
    root: ActivityElement = ActivityElement()


class ReservationHolder(NamedTuple):
    """The application that holds a node, and its request's priority (None: the record does not name it).

    ``is_new``: the heartbeat of the record made the reservation, or tried to: a limit may have rejected it.
    """

    application: str
    priority: int | None
    is_new: bool = False
    at_ms: int = 0


class NodeActivities(msgspec.Struct, frozen=True):
    """One answer. ``at_ms``: the instant of the record by the ResourceManager's clock, 0: none yet."""

    node: str = field(name="nodeId")
    at_ms: int = field(name="timestamp", default=0)
    allocations: tuple[NodeAllocation, ...] = ()

    def reserved_for(self) -> ReservationHolder | None:
        """Return what the node is reserved for; None: for nothing."""
        for allocation in self.allocations:
            if allocation.state in ("RESERVED", "RE_RESERVED"):
                rows = [each for each in allocation.root.walk() if each.name.startswith(APPLICATION)]
                if not rows:
                    return None
                requests = rows[-1].children
                found = REQUEST.match(requests[-1].name) if requests else None
                is_new = rows[-1].state != "RE_RESERVED"
                return ReservationHolder(rows[-1].name, int(found[1]) if found else None, is_new, self.at_ms)
        return None

    def priority_of(self, application: str) -> int | None:
        """Return the scheduler's priority of an application, None if the heartbeat did not look at it."""
        for allocation in self.allocations:
            for each in allocation.root.walk():
                if each.name == application and each.priority is not None:
                    return each.priority
        return None

    def words(self, application: str | None, queue: str) -> tuple[str, str]:
        """Return where the heartbeat left an application, and YARN's words there; ("", "") if it has none.

        The lowest element with words counts: of the application's requests, itself, its queue (a path), or
        an ancestor. None: the last application of the queue that the heartbeat looked at.
        """
        found = "", ""
        for allocation in self.allocations:
            for element in _way(allocation.root, application, queue):
                if element.diagnostic:
                    found = element.name, element.diagnostic
        return found


def _way(root_element: ActivityElement, application: str | None, queue: str) -> Iterator[ActivityElement]:
    """Yield the elements from root to an application and all below it, as far as they are there."""
    element = root_element
    while True:
        yield element
        names = [each.name for each in element.children]
        if application is not None and application in names:
            yield from element.children[names.index(application)].walk()
            return
        if application is None and spells(element.name, queue):
            for child in element.children:
                yield from child.walk()
            return
        below = [each for each in element.children if _is_above(each.name, queue)]
        if not below:
            return
        element = below[0]


def _is_above(name: str, queue: str) -> bool:
    """Return whether a queue of the answer (a path, or a last name) is ``queue`` or an ancestor of it."""
    if name.startswith(APPLICATION):
        return False
    parts = queue.split(".")
    return any(spells(name, ".".join(parts[:count])) for count in range(2, len(parts) + 1))


ACTIVITIES = OneDecoder(NodeActivities, "activities")


class YarnWords(NamedTuple):
    """``diagnostic``: what the record of ``node`` says about an application ``at`` a queue or below it."""

    node: str
    at: str
    diagnostic: str

    def __str__(self) -> str:
        """Return the words for people: they are not yarnctl's, so they are quoted and cut."""
        return f"YARN reports at {_plain(self.at)}, node {_plain(self.node)}: '{_plain(self.diagnostic)}'"


def _plain(text: str) -> str:
    """Return a text of the ResourceManager in one line of printable ASCII, cut."""
    line = " ".join(text[: 2 * WORDS_MAX].split())
    return ascii(line)[1:-1][:WORDS_MAX]
