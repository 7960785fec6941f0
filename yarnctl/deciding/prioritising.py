"""Prioritising: which YARN priorities are sent, and when again (Natjam-R, section 4).

Law: YARN's order is kept as the order of urgency. What was accepted is not sent again, unless a tick later
the view still differs; who was refused is left alone for a pause that doubles with each refusal, so that a
cluster which does not allow it is not asked each second.
"""

from __future__ import annotations

from collections.abc import Sequence

from yarnctl.deciding.deadlines import in_order, priorities, ranked
from yarnctl.deciding.ledger import DOUBLINGS_MAX
from yarnctl.deciding.model import Accepted, ApplicationView, Outcome, SetPriority, Snapshot
from yarnctl.deciding.records import Ranking
from yarnctl.deciding.settings import Settings


class Prioritiser:
    """Remembers the order of urgency, what was sent, and who was refused."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._urgent_first: list[str] = []
        self._sent: dict[str, tuple[int, int]] = {}
        self._refused: dict[str, tuple[int, int]] = {}

    def look(
        self, snapshot: Snapshot, as_of_ms: int, now_ms: int
    ) -> tuple[Ranking, list[SetPriority]] | None:
        """Return what is to be sent, and why; None if nothing is."""
        settings = self._settings
        ordered = in_order(snapshot.applications, now_ms, settings, self._urgent_first)
        self._urgent_first = [view.application for view in ordered]
        self._forget(ordered, as_of_ms)
        asked = {name: priority for name, (priority, _) in self._sent.items()}
        changes = [
            change
            for change in priorities(ordered, asked, settings)
            if self._refused.get(change.application, (0, 0))[1] <= now_ms
        ]
        if not changes:
            return None
        return Ranking(now_ms, ranked(ordered, changes, now_ms, settings)), changes

    def _forget(self, ordered: Sequence[ApplicationView], as_of_ms: int) -> None:
        """Let go of who is no more, and of what was sent and does not show a tick later."""
        self._sent = {
            view.application: sent
            for view in ordered
            if (sent := self._sent.get(view.application)) is not None
            and (sent[0] == view.priority or as_of_ms - sent[1] <= self._settings.tick_ms)
        }
        refused = self._refused
        self._refused = {
            view.application: refused[view.application] for view in ordered if view.application in refused
        }

    def settle(self, action: SetPriority, outcome: Outcome, now_ms: int) -> None:
        """Take note of what came of a change."""
        name = action.application
        if isinstance(outcome, Accepted):
            self._sent[name] = (action.priority, now_ms)
            self._refused.pop(name, None)
            return
        tries = self._refused.get(name, (0, 0))[0]
        pause_ms = self._settings.tick_ms << min(tries, DOUBLINGS_MAX)
        self._refused[name] = (tries + 1, now_ms + pause_ms)

    def urgent_first(self, snapshot: Snapshot) -> tuple[ApplicationView, ...]:
        """Return the applications in the order of urgency (none without deadlines)."""
        if not self._urgent_first:
            return ()
        by_name = {view.application: view for view in snapshot.applications}
        return tuple(by_name[name] for name in self._urgent_first if name in by_name)
