"""When a request that fits counts as not granted, and YARN's words about applications that wait.

The span is that of :mod:`yarnctl.deciding.not_granted`.

Law: nothing here decides. Words are quoted, and shown beside the reason that yarnctl found itself.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from yarnctl.attach.observing.activity_reader import ActivityReader
from yarnctl.daemon.view.why_waiting import Waiting
from yarnctl.deciding.model import ApplicationView, Snapshot
from yarnctl.deciding.not_granted import heartbeats_until_granted
from yarnctl.deciding.reasons.waiting_reasons import FitsNotGranted, GrantExpected

WITHOUT_ORDER = ("fits", "rejected", "limit")
"""The kinds of waiting about which YARN's records are read."""
LARGEST_FREE = 2  # Nodes that are read for a request that fits on none: those with the most free memory


class _Fitting(msgspec.Struct):
    """Since when an application's requests fit; ``held``: its containers; ``fitting``: of all then."""

    since_ms: int
    within_ms: int
    held: int
    fitting: int


class Ungranted:
    """Keeps since when the requests of each application fit."""

    def __init__(self, reader: ActivityReader) -> None:
        self._reader = reader
        self._fitting: dict[str, _Fitting] = {}

    def judged(self, waiting: Mapping[str, Waiting], snapshot: Snapshot, now_ms: int) -> dict[str, Waiting]:
        """Return the reasons with what is expected, what is overdue, and YARN's words."""
        views = {view.application: view for view in snapshot.applications if view.application in waiting}
        self._fitting = {
            name: fitting
            for name, fitting in self._fitting.items()
            if name in waiting and waiting[name].kind == "fits"
        }
        return {name: self._judged(each, views[name], snapshot, now_ms) for name, each in waiting.items()}

    def _judged(self, waiting: Waiting, view: ApplicationView, snapshot: Snapshot, now_ms: int) -> Waiting:
        if waiting.kind not in WITHOUT_ORDER:
            return waiting
        why = waiting.why
        nodes: tuple[str, ...] = ()
        if isinstance(why, FitsNotGranted):
            fitting = self._kept(waiting, why, view, snapshot, now_ms)
            waited_ms, nodes = now_ms - fitting.since_ms, why.nodes
            if waited_ms < fitting.within_ms:
                expected = GrantExpected(why.containers, why.nodes, why.more, fitting.within_ms)
                return msgspec.structs.replace(waiting, why=expected)
            why = msgspec.structs.replace(why, waited_ms=waited_ms)
        words = self._reader.words(view.application, view.queue, nodes)
        return msgspec.structs.replace(waiting, why=why, yarn="" if words is None else str(words))

    def _kept(
        self, waiting: Waiting, fits: FitsNotGranted, view: ApplicationView, snapshot: Snapshot, now_ms: int
    ) -> _Fitting:
        kept = self._fitting.get(view.application)
        is_new = kept is None or view.containers > kept.held or now_ms < kept.since_ms
        if kept is None or is_new or waiting.fitting > kept.fitting:
            heartbeats = heartbeats_until_granted(
                waiting.fitting,
                len(fits.nodes) + fits.more,
                snapshot.located.get(view.application, 0),
            )
            within_ms = heartbeats * (snapshot.heartbeat_ms or self._reader.heartbeat_ms())
            kept = _Fitting(now_ms, within_ms, view.containers, waiting.fitting)
            self._fitting[view.application] = kept
        return kept

    def read(self, waiting: Mapping[str, Waiting], snapshot: Snapshot | None) -> None:
        """Read records of nodes that may say why applications wait; none if there is no reason to."""
        wanted: list[str] = []
        unmet = False
        for each in waiting.values():
            if isinstance(each.why, FitsNotGranted) and each.why.waited_ms:
                wanted += each.why.nodes
            unmet |= each.kind in ("rejected", "limit")
        if snapshot is not None and unmet:
            offering = [(room, node) for node, room in snapshot.free_by_node.items() if min(room) > 0]
            wanted += [node for _, node in sorted(offering, reverse=True)[:LARGEST_FREE]]
        if wanted or unmet:
            self._reader.renew(wanted)
