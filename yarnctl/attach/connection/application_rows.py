"""Application rows: the unfinished applications of one observation, compared with the observation before.

A cluster has thousands of applications, of which a few per cent change between two observations. So rows are
compared as columns, and views, pending sums and eligibility are computed anew only for those that changed;
the result is the same as if all were. A row keeps its rank while ranks stay unique and ascending, so that the
end of an application does not change the views of all later ones.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from operator import attrgetter
from typing import Any

import msgspec

from yarnctl.deciding.model import ApplicationView
from yarnctl.deciding.reasons.demand import NotModelled
from yarnctl.frameworks.mapreduce.rest import KIND
from yarnctl.hadoop.wire import views, yarn

_NOTHING = views.PendingSum(0, 0)
_read_of = attrgetter(
    "allocated_mib", "containers", "uses", "allocated_vcores", "state", "diagnostics", "queue", "priority",
    "tags", "submitted_at_ms", "kind", "requests", "label", "am_label",
)  # fmt: skip
MakeView = Callable[[yarn.AppInfo, int], ApplicationView]


def kind_of(row: yarn.AppInfo | None) -> str:
    """Return the kind of an application's framework, in capitals; an unknown one counts as MapReduce."""
    return KIND if row is None else row.kind.upper() or KIND


class ApplicationRows:
    """The rows by id, in the order of the answer, and the views made of them.

    ``waiting``: id -> pending sum, of those with pending asks, or whose pending sum is unknown.
    ``left_out``: id -> what else its pending sums have (not modelled).
    """

    def __init__(self) -> None:
        self.by_name: dict[str, yarn.AppInfo] = {}
        self.waiting: dict[str, views.PendingSum] = {}
        self.left_out: dict[str, NotModelled] = {}
        self._stale: set[str] = set()
        self._moved: set[str] = set()
        self._unjudged: dict[str, None] = {}
        self._ended: set[str] = set()
        self._ranks_by_name: dict[str, int] = {}
        self._ranks: dict[str, int] = {}
        self._views: list[Any] = []
        self._inputs: tuple[dict[str, Any], ...] = ()

    def update(self, found: Sequence[yarn.AppInfo]) -> None:
        """Apply an observation's rows; of two rows of one application the last counts."""
        before, names = self.by_name, [row.application for row in found]
        self.by_name = dict(zip(names, found, strict=True))
        if len(self.by_name) < len(found):
            names, found = list(self.by_name), list(self.by_name.values())
        old: Iterable[yarn.AppInfo | None] = before.values()
        if names != list(before):
            old = [before.get(name) for name in names]
            for gone in before.keys() - self.by_name.keys():
                self._drop(gone)
                self._ended.add(gone)
            self._ranks_by_name = {}
        self._note(self._compare(found, old), before)

    def _compare(self, found: Sequence[yarn.AppInfo], old: Iterable[yarn.AppInfo | None]) -> list[str]:
        """Return the applications that are new or changed; note those whose progress alone has changed.

        Compared are the inputs of views, pending sums and eligibility.
        """
        changed: list[str] = []
        for row, was in zip(found, old, strict=True):
            if was is None or _read_of(row) != _read_of(was):
                changed.append(row.application)
            elif row.progress_percent != was.progress_percent and (
                row.tags or row.progress_percent // 1 != was.progress_percent // 1
            ):  # to the percent, unless there is a deadline
                self._moved.add(row.application)
        return changed

    def _drop(self, name: str) -> None:
        self.waiting.pop(name, None)
        self.left_out.pop(name, None)
        self._ranks.pop(name, None)
        self._unjudged.pop(name, None)
        self._stale.discard(name)
        self._moved.discard(name)

    def _note(self, changed: Iterable[str], before: Mapping[str, yarn.AppInfo]) -> None:
        for name in changed:
            row, was = self.by_name[name], before.get(name)
            self._stale.add(name)
            self._ended.discard(name)
            self._unjudged[name] = None
            if was is None or was.priority != row.priority or was.submitted_at_ms != row.submitted_at_ms:
                self._ranks_by_name = {}
            sum_ = pending(row)
            if sum_ == _NOTHING and row.uses is not None:
                self.waiting.pop(name, None)
            else:
                self.waiting[name] = sum_
            self.left_out.pop(name, None)
            if (elsewhere := views.pending_elsewhere(row)) is not None:
                self.left_out[name] = elsewhere

    def unjudged(self) -> list[yarn.AppInfo]:
        """Return the rows that are new or have changed since the last call."""
        names, self._unjudged = self._unjudged, {}
        return [self.by_name[name] for name in names]

    def ended(self) -> set[str]:
        """Return the applications that have left the list since the last call and are still absent."""
        names, self._ended = self._ended, set()
        return names

    def make_all_anew(self) -> None:
        """Make every view anew."""
        self._stale.update(self.by_name)

    def views(self, make: MakeView, *inputs: Mapping[str, Any]) -> tuple[ApplicationView, ...]:
        """Return the views in serving order; ``inputs`` (by id) are the other inputs of ``make``."""
        if not self._ranks_by_name:
            self._put_in_order()
        stale, shown, places, rows = self._stale, self._views, self._ranks_by_name, self.by_name
        for now, was in zip(inputs, self._inputs or ({},) * len(inputs), strict=True):
            stale.update(differing(now, was))
        for name in stale.intersection(rows):
            shown[places[name]] = make(rows[name], self._ranks[name])
        for name in self._moved - stale:
            place, ratio = places[name], views.progress_ratio(rows[name])
            if ratio != shown[place].progress_ratio:
                shown[place] = msgspec.structs.replace(shown[place], progress_ratio=ratio)
        self._stale, self._moved = set(), set()
        self._inputs = tuple(dict(now) for now in inputs)
        return tuple(shown)

    def _put_in_order(self) -> None:
        """Set every row's rank and its view's position; a row that has no view yet is stale."""
        made: dict[str, Any] = {view.application: view for view in self._views}
        ordered = [row.application for row in sorted(self.by_name.values(), key=serving_order)]
        self._ranks_by_name = {name: place for place, name in enumerate(ordered)}
        self._views = [made.get(name) for name in ordered]
        rank = -1
        for name in ordered:
            rank = max(rank + 1, self._ranks.get(name, 0))
            if self._ranks.get(name) != rank:
                self._ranks[name] = rank
                self._stale.add(name)


def differing(now: Mapping[str, Any], was: Mapping[str, Any]) -> set[str]:
    """Return the names whose value has changed, is new or is gone."""
    if now == was:
        return set()
    nothing = object()
    found = {name for name, value in now.items() if was.get(name, nothing) != value}
    return found | (was.keys() - now.keys())


def pending(app: yarn.AppInfo) -> views.PendingSum:
    """Return the pending sum; most applications have one of nodes without a label only."""
    if app.uses is not None and len(app.uses.partitions) == 1 and not app.uses.partitions[0].partition:
        vector = app.uses.partitions[0].pending
        return views.PendingSum(vector.memory_mib, vector.vcores)
    return views.pending(app)


def serving_order(app: yarn.AppInfo) -> tuple[int, int, int, str]:
    """FIFO order: priority, submission, id (``..._9999`` before ``..._10000``)."""
    return (-app.priority, app.submitted_at_ms, len(app.application), app.application)
