"""Restore settings: record a change before it is made, and end it only by what is observed.

====================================  ======================================================
the setting reads                     what happens
====================================  ======================================================
its value before the change           the change has ended
its value, not yet seen in effect     it is read again after a pause; at a stop the change has ended
the value that yarnctl set            it is restored, and read again after a pause
another value                         its owner changed it: it stays, and the change has ended
nothing: it no longer exists          the change has ended
nothing: the cluster does not answer  it is read again after a pause
nothing: an answer is late            it is read again after a second, while the answer is still kept
====================================  ======================================================

A change is restored when it is *due*: the host says when (the demand is over, yarnctl may not act, it
stops). Before each request the record of the change must still be this process's; without that record,
another process has taken over, and the value is left alone.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple, Protocol

from yarnctl.deciding.model import (
    Accepted,
    Action,
    Change,
    ChangeKind,
    Outcome,
    Restore,
    Unknown,
)
from yarnctl.deciding.reasons.modes import LockRanOut
from yarnctl.deciding.reasons.orders import (
    ChangedByOthers,
    ChangeReason,
    LeftByEarlierRun,
    NotChanged,
    ReadBack,
    TakenOver,
    TargetGone,
)
from yarnctl.deciding.reasons.outcomes import ClientFault
from yarnctl.deciding.reasons.rooting import FAULT_MAX
from yarnctl.deciding.records import Lowering, Record, Restored, Restoring, performed
from yarnctl.errors import YarnctlError
from yarnctl.journal.rendering import said, text
from yarnctl.restoring.change_file import ChangeFiles, command_for, described, neighbour

_LOG = logging.getLogger("yarnctl.restoring")

CONFIRM_MS = 1_000
"""The first pause between a request that was accepted and reading the value again."""
RETRY_MS = 5_000
"""The first pause after a failure."""
PAUSE_MAX_MS = 30_000
"""The longest pause: a value is back within 60 s of the first moment at which it can be."""
WATCH_MS = 15_000
"""How long values are read again after a record was taken over: a late request of its process may arrive."""
WATCH_EVERY_MS = 2_000
LIST_EVERY_MS = 3_000
"""The interval at which a leader lists the records: it corrects what was sent late within 5 s."""
CHECK_AGE_MS = 5_000
"""The age at which the check of a record counts no more: its process was stopped, and may not lead now."""
AT_ONCE_MAX = 8
"""The maximum number of changes per call: the cluster may answer each slowly."""

Key = tuple[ChangeKind, str]


class Reading(NamedTuple):
    """What a setting reads. ``found``: the value, or why it cannot be read."""

    state: Literal["before", "unseen", "now", "other", "gone", "unread", "late"]
    found: str = ""


class ReversibleSetting(Protocol):
    """One kind of setting. Both methods raise as the clients do."""

    def read(self, change: Change) -> Reading:
        """Read the setting, and compare it with the change."""

    def write(self, change: Change) -> Outcome:
        """Request the value before the change. Accepted proves nothing: the setting is read again."""


@dataclass
class OpenChange:
    """A change that has not ended. ``file``: its record; ``why``: why it is due (None: it is not).

    ``earlier``: the change before its last lowering, which counts again if that was rejected.
    """

    change: Change
    file: str
    why: ChangeReason | None = None
    again_at_ms: int = 0
    pause_ms: int = 0
    is_accepted: bool = False
    is_late: bool = False
    earlier: Change | None = None


class Restorer:
    """Records, restores and ends the changes of one cluster; used by one thread.

    ``files`` None: nothing may be lowered. ``leads`` returns whether this process may take over the records
    of others: it holds the lock. ``write`` receives the records for the journal.
    """

    def __init__(
        self,
        files: ChangeFiles | None,
        settings: Mapping[ChangeKind, ReversibleSetting],
        perform: Callable[[Action], Outcome],
        clock: Callable[[], int],
    ) -> None:
        self.files = files
        self._settings = settings
        self._perform = perform
        self._clock = clock
        self.leads: Callable[[], bool] = lambda: True
        self.write: Callable[[Record], None] = lambda _: None
        self.open: dict[Key, OpenChange] = {}
        self.is_current = files is None
        self._term = -1
        self._stored: dict[str, tuple[Change, ...]] = {}
        self._ended: dict[Key, Change] = {}
        self._watch_at_ms = self._watch_until_ms = self._list_at_ms = 0
        self._again_at_ms = 0
        self._logged = ""

    # --- lowering ---------------------------------------------------------------------------------

    def record(self, changes: Sequence[Change], why: ChangeReason) -> str:
        """Record changes that are about to be made, in one file; return why that failed, or ""."""
        if self.files is None:
            return "HDFS is not known, so no change can be recorded"
        if not self.adopt():
            return self._logged or "the records of changes in HDFS are not read yet"
        whole = [self._merged(change) for change in changes]
        try:
            name = self.files.create(whole)
        except YarnctlError as problem:
            return self._failed(f"cannot record the change in HDFS: {problem}")
        self._stored[name] = tuple(whole)
        if not self.leads():  # it took long: the next leader may have taken this record over already
            self._tidy()
            return "another process may lead by now, so nothing is changed"
        for change in whole:
            one = self.open.get(change.key)
            self.open[change.key] = OpenChange(change, name, earlier=None if one is None else one.change)
            self._ended.pop(change.key, None)
        self.write(Lowering(self._clock(), tuple(whole), why))
        return ""

    def _merged(self, change: Change) -> Change:
        """Return the change from the first value: yarnctl has already lowered the setting."""
        one = self.open.get(change.key)
        return change if one is None else merged(one.change, change)

    def not_made(self, key: Key) -> None:
        """Note that the last request to lower a setting was certainly rejected."""
        one = self.open.get(key)
        if one is None:
            return
        if one.earlier is None:
            self._end(one, one.change.before, NotChanged())
        else:
            one.change, one.earlier = one.earlier, None
            self.write(Lowering(self._clock(), (one.change,), NotChanged()))
        self._tidy()

    def sent_late(self, key: Key) -> None:
        """Leave a record to the leader: a request to lower this setting was sent after the lock was lost."""
        one = self.open.get(key)
        if self.files is None or one is None:
            return
        _LOG.warning("lowering %s was sent late; the next leader restores it", one.change.target)
        try:
            self.files.leave((one.change,))
        except YarnctlError as problem:
            self._failed(f"cannot record the late request in HDFS: {problem}")

    def covers(self, kind: ChangeKind, target: str, now: str) -> bool:
        """Return whether the change of a setting to this value is recorded."""
        one = self.open.get((kind, target))
        return one is not None and one.change.now == now

    # --- restoring --------------------------------------------------------------------------------

    def make_due(self, why: ChangeReason, kinds: Iterable[ChangeKind] | None = None) -> None:
        """Restore the open changes of these kinds (None: all) from now on."""
        wanted = None if kinds is None else set(kinds)
        for one in self.open.values():
            if one.why is None and (wanted is None or one.change.kind in wanted):
                one.why, one.again_at_ms, one.pause_ms = why, 0, 0

    def reconcile(self, busy: Collection[str] = ()) -> None:
        """Take over records, restore what is due, and remove records of changes that have ended.

        ``busy``: applications with open orders; what they give is not restored yet.
        """
        now_ms = self._clock()
        self._list_left(now_ms)
        self.adopt()
        due = [
            one
            for one in self.open.values()
            if one.why is not None and one.again_at_ms <= now_ms and one.change.target not in busy
        ]
        for one in due[:AT_ONCE_MAX]:
            self.attempt(one)
        self._watch(now_ms)
        self._tidy()

    def stop(self, why: ChangeReason, kinds: Iterable[ChangeKind] | None = None) -> None:
        """Request once that these kinds (None: all) are restored, and read it back.

        The records in HDFS name what remains.
        """
        self.make_due(why, kinds)
        for one in [each for each in self.open.values() if each.why is not None]:
            if isinstance(self.attempt(one), Accepted) and one.change.key in self.open:
                self.attempt(one, is_last=True)
        self._again_at_ms = 0
        self._tidy()

    def restore(self, target: str, why: ChangeReason, kinds: Iterable[ChangeKind]) -> Outcome:
        """Restore the settings of an application now; Accepted: they were restored, or are requested."""
        if not self.adopt():
            return Unknown(ClientFault((self._logged or "the records in HDFS are not read yet")[:FAULT_MAX]))
        outcome: Outcome = Accepted()
        for kind in kinds:
            one = self.open.get((kind, target))
            if one is not None:
                one.why = one.why or why
                found = self.attempt(one)
                outcome = outcome if isinstance(found, Accepted) else found
        self._tidy()
        return outcome

    def attempt(self, open_change: OpenChange, *, is_last: bool = False) -> Outcome:
        """Read a setting; end its change, or request the value before. Accepted: ended, or requested."""
        change = open_change.change
        try:
            reading = self._settings[change.kind].read(change)
        except YarnctlError as problem:
            reading = Reading("unread", str(problem))
        match reading.state:
            case "before":
                self._end(open_change, reading.found, ReadBack())
            case "gone":
                self._end(open_change, "", TargetGone())
            case "other":
                _LOG.warning("%s was changed to %s by its owner; it stays", described(change), reading.found)
                self._end(open_change, reading.found, ChangedByOthers())
            case "unread" | "late":
                outcome = Unknown(ClientFault(reading.found[:FAULT_MAX]))
                return self._postpone(open_change, outcome, is_late=reading.state == "late")
            case "unseen" if is_last:
                self._end(open_change, reading.found, ReadBack())
            case "unseen":
                return self._postpone(open_change, Accepted())
            case "now":
                return self._request(open_change)
        return Accepted()

    def _request(self, open_change: OpenChange) -> Outcome:
        if self.files is not None:
            checked_at_ms = self._clock()
            try:
                is_ours = self.files.exists(open_change.file)
                if self._clock() - checked_at_ms > CHECK_AGE_MS and not self.leads():
                    return self._postpone(open_change, Unknown(LockRanOut()))
            except YarnctlError as problem:
                if not self.leads():
                    return self._postpone(open_change, Unknown(ClientFault(str(problem)[:FAULT_MAX])))
                is_ours = True  # no other process may take records over while this one leads
            if not is_ours:
                self._end(open_change, open_change.change.now, TakenOver())
                return Accepted()
        at_ms = self._clock()
        self.write(Restoring(at_ms, open_change.change, open_change.why or LeftByEarlierRun()))
        action = Restore(open_change.change)
        outcome = self._perform(action)
        self.write(performed(at_ms, action, outcome))
        return self._postpone(open_change, outcome)

    def _postpone(self, open_change: OpenChange, outcome: Outcome, *, is_late: bool = False) -> Outcome:
        is_accepted = isinstance(outcome, Accepted)
        if not isinstance(outcome, Accepted) and not (is_late and open_change.is_late):
            command = command_for(open_change.change)
            _LOG.warning(
                "cannot restore %s, will retry%s: %s",
                described(open_change.change),
                f" (or run: {command})" if command else "",
                said(outcome.why) or "no answer",
            )
        open_change.is_late = is_late
        if is_late:
            open_change.pause_ms = CONFIRM_MS
        elif is_accepted != open_change.is_accepted or not open_change.pause_ms:
            open_change.pause_ms = CONFIRM_MS if is_accepted else RETRY_MS
        else:
            open_change.pause_ms = min(2 * open_change.pause_ms, PAUSE_MAX_MS)
        open_change.is_accepted = is_accepted
        open_change.again_at_ms = self._clock() + open_change.pause_ms
        return outcome

    def _end(self, open_change: OpenChange, found: str, why: ChangeReason) -> None:
        change = open_change.change
        del self.open[change.key]
        self.write(Restored(self._clock(), change.kind, change.target, found, why))
        if not isinstance(why, NotChanged):
            _LOG.info("%s: the change has ended: %s", described(change), text(why))
        if isinstance(why, TakenOver):  # its own last request may land after the other process has ended
            self._watch_until_ms = self._clock() + WATCH_MS
        if isinstance(why, ReadBack | TakenOver) and self._clock() < self._watch_until_ms:
            self._ended[change.key] = change

    @property
    def is_watching(self) -> bool:
        """Whether a late request of a process whose record was taken over is still corrected."""
        return bool(self._ended) and self._clock() < self._watch_until_ms

    def _watch(self, now_ms: int) -> None:
        """Correct what a late request of a process whose record was taken over has set meanwhile.

        Not for executors: the driver obeys orders by their numbers, and each once.
        """
        if now_ms >= self._watch_until_ms:
            self._ended.clear()
        if not self.leads() or not self._watch_at_ms <= now_ms < self._watch_until_ms:
            return
        self._watch_at_ms = now_ms + WATCH_EVERY_MS
        for change in [each for key, each in self._ended.items() if key not in self.open]:
            if change.kind != "executors" and self.state(change) == "now":
                _LOG.warning("%s was changed again by a late request", described(change))
                if not self.record((change,), LeftByEarlierRun()):
                    self.open[change.key].why = LeftByEarlierRun()
        for one in self.open.values():
            change = one.change
            if one.why is not None or change.kind == "executors" or self.state(change) != "before":
                continue
            if self.leads():  # reading may take longer than the lock lasts
                _LOG.warning("%s was restored by a late request", described(change))
                self._perform(Restore(Change(change.kind, change.target, change.now, change.before)))

    def _list_left(self, now_ms: int) -> None:
        """Look for records that processes left which were frozen, however long, and sent a request late."""
        if self.files is None or not self.is_current or now_ms < self._list_at_ms or not self.leads():
            return
        self._list_at_ms = now_ms + LIST_EVERY_MS
        try:
            self.is_current = not self.files.has_others()
        except YarnctlError as problem:
            self._failed(f"cannot read the records of lowered settings: {problem}")

    def state(self, change: Change) -> str:
        """Return how a setting reads, as :class:`Reading` has it."""
        try:
            state = self._settings[change.kind].read(change).state
            return "before" if state == "unseen" else state
        except YarnctlError:
            return "unread"

    # --- records ----------------------------------------------------------------------------------

    def lost(self) -> None:
        """Read the records of others anew, once this process leads again."""
        self.is_current = self.files is None

    def adopt(self) -> bool:
        """Take over the records of other processes, once for each term; return whether all records are known.

        A change ends whose record another process has taken over in between.
        """
        files, now_ms = self.files, self._clock()
        if files is None:
            return True
        if (term := files.term()) != self._term:  # also where the lock was lost and won between two ticks
            self._term, self.is_current = term, False
        if self.is_current:
            return True
        if now_ms < self._again_at_ms or not self.leads():
            return False
        try:
            lost = {name for name in {one.file for one in self.open.values()} if not files.exists(name)}
            for one in [each for each in self.open.values() if each.file in lost]:
                self._end(one, one.change.now, TakenOver())
            for stored in files.others():
                if stored.record is None:
                    _LOG.warning("%s is not a valid record; run yarnctl check", files.path(stored.name))
                    continue
                name = files.take_over(stored.name)
                if name is not None:
                    self._adopted(name, stored.record.changes)
        except YarnctlError as problem:
            self._failed(f"cannot read the records of lowered settings: {problem}")
            return False
        self.is_current, self._logged = True, ""
        return True

    def _adopted(self, name: str, changes: Sequence[Change]) -> None:
        self._stored[name] = tuple(changes)
        self._watch_until_ms = self._clock() + WATCH_MS
        for change in changes:
            whole = self._merged(change)
            self.open[whole.key] = OpenChange(whole, name, LeftByEarlierRun())
            self.write(Lowering(self._clock(), (whole,), LeftByEarlierRun()))

    def _tidy(self) -> None:
        """Write records anew without the changes that have ended, or that a newer record has."""
        if self.files is None or self._clock() < self._again_at_ms:
            return
        for name, changes in list(self._stored.items()):
            left = tuple(
                one.change
                for change in changes
                if (one := self.open.get(change.key)) is not None and one.file == name
            )
            if left == changes:
                continue
            try:
                if not left:
                    self.files.remove(name)
                elif self.files.exists(name):
                    self.files.replace(name, left)
            except YarnctlError as problem:
                self._failed(f"cannot remove the obsolete record {name}, will retry: {problem}")
                return
            self._stored[name] = left
            if not left:
                del self._stored[name]
            self._logged = ""

    def _failed(self, story: str) -> str:
        self._again_at_ms = self._clock() + RETRY_MS
        if story != self._logged:
            _LOG.warning("%s", story)
        self._logged = story
        return story


def same_value(kind: ChangeKind, left: str, right: str) -> bool:
    """Return whether two values of a setting are equal; maxima are sent as percentages of ten digits."""
    return abs(float(left) - float(right)) < 1e-7 if kind == "queue" else left == right


def merged(older: Change, newer: Change) -> Change:
    """Return one change for two of one setting: from the first value to the last.

    A value before the newer one that yarnctl did not set is its owner's: it counts. A priority that is being
    restored has its neighbour's value for a moment.
    """
    if newer.kind == "executors":
        names = dict.fromkeys((*older.now.split(), *newer.now.split()))
        before = max(int(older.before), int(newer.before))
        return Change(newer.kind, newer.target, str(before), " ".join(names))
    is_ours = same_value(older.kind, older.now, newer.before)
    if newer.kind == "priority":
        is_ours = is_ours or int(newer.before) == neighbour(older)
    before_text = older.before if is_ours else newer.before
    return Change(newer.kind, newer.target, before_text, newer.now)
