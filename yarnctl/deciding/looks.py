"""Looks: what earlier looks have left for later ones, beside the ledger, as the controller uses it.

Law: all of it is one value, :class:`yarnctl.deciding.inputs.LookMemory`: a controller that is given that
value goes on as the one that it was taken from.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from yarnctl.deciding.echoes import Echoes
from yarnctl.deciding.effects import Effects
from yarnctl.deciding.inputs import LookMemory
from yarnctl.deciding.model import Snapshot
from yarnctl.deciding.prioritising import Prioritiser
from yarnctl.deciding.reasons.demand import TriggerReason
from yarnctl.deciding.releaser import Reason
from yarnctl.deciding.settings import Settings
from yarnctl.deciding.settlement import Settlement


class Looks:
    """``refused``: the reason given last, by application. The rest is of the parts that keep it."""

    def __init__(self, settings: Settings, work: Settlement) -> None:
        self._settings = settings
        self._work = work
        self.refused: dict[str, TriggerReason] = {}
        self.prioritiser = Prioritiser(settings)
        self.echoes = Echoes()
        self._silent: dict[str, tuple[int, Reason]] = {}

    def left(self) -> LookMemory:
        """Return what the looks so far have left, as a value."""
        order, sent, declined = self.prioritiser.left()
        pending = self._work.pending
        return LookMemory(
            refused=dict(self.refused),
            echoes=self.echoes.left(),
            order=order,
            sent=sent,
            declined=declined,
            waiting=None if pending is None else dict(pending),
            waiting_at_ms=self._work.pending_at_ms,
            silent=dict(self._silent),
        )

    def go_on(self, left: LookMemory) -> None:
        """Go on from what earlier looks have left."""
        self.refused = dict(left.refused)
        self.echoes.go_on(left.echoes)
        self.prioritiser.go_on(left.order, left.sent, left.declined)
        self._work.pending, self._work.pending_at_ms = left.waiting, left.waiting_at_ms
        self._silent = dict(left.silent)

    @property
    def remembers(self) -> bool:
        """Whether the word that nobody waits changes anything here."""
        return bool(self.refused or self._work.pending)

    def is_new(self, application: str, why: TriggerReason) -> bool:
        """Say whether this reason differs from the one given last, and remember it."""
        if self.refused.get(application) == why:
            return False
        self.refused[application] = why
        return True

    def keep_waiting(self, snapshot: Snapshot) -> None:
        """Forget the reasons given to those who do not wait any more."""
        if self.refused:
            waiting = {view.application for view in snapshot.applications if view.asks}
            self.refused = {name: why for name, why in self.refused.items() if name in waiting}

    def prioritise(self, snapshot: Snapshot, as_of_ms: int, now_ms: int) -> Effects:
        """Natjam-R: keep YARN's priorities in the order of urgency."""
        found = None
        if self._settings.mode == "deadlines":
            found = self.prioritiser.look(snapshot, as_of_ms, now_ms)
        return Effects() if found is None else Effects((found[0],), found[1])

    def silent(self, now_ms: int) -> dict[str, Reason]:
        """Return the jobs that are left alone because they did not answer lately, and how."""
        self._silent = {
            name: kept for name, kept in self._silent.items() if now_ms - kept[0] < self._settings.silent_ms
        }
        return {name: why for name, (_, why) in self._silent.items()}

    def note_silent(self, names: Iterable[str], why: Reason, now_ms: int) -> None:
        """Leave jobs that did not answer alone for a while."""
        self._silent.update((name, (now_ms, why)) for name in names)

    def note_answered(self, answered: Mapping[str, object]) -> None:
        """Ask these jobs again as others: they have answered."""
        for name in answered:
            self._silent.pop(name, None)
