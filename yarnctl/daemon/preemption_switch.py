"""Switch YARN's own preemption of the preemptable queues off while this process acts, and on again.

``--yarn-preemption switch``. YARN's preemption stays configured: it makes room whenever yarnctl does not.

* Each queue's own key is recorded in HDFS before it is set, as any change (:mod:`yarnctl.restoring`). The
  record outlives this process: a standby that switches, too, keeps it; any other process restores the key.
* A pause or a block restores the key when production no longer waits, at most ``HOLD_MS`` later. YARN kills a
  container that it warned earlier within 1.2 s of being allowed to, as long as the demand lasts.
* An answer that is missing is no reason to switch for ``LOOK_MS``: the next look mostly has it.
* A stop leaves the record. Its reader is the standby, or ``yarnctl restore`` (``ExecStopPost``).
* A restarted ResourceManager may have forgotten the key: it is set again at the first look.
* While one queue cannot be switched, yarnctl does not act: after ``HOLD_MS`` the others' keys are restored.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence

from yarnctl.deciding.model import (
    Accepted,
    Change,
    ChangeKind,
    DisablePreemption,
    Outcome,
    Refused,
    Withheld,
)
from yarnctl.deciding.reasons.modes import (
    FoldersNotSeen,
    FoldersUnreachable,
    HdfsUnwritable,
    LockRanOut,
    LockUnconfirmed,
    ManagerSettling,
    ModeReason,
    PreemptionOn,
    PreemptionUnknown,
    YarnPreemptsSomewhere,
)
from yarnctl.deciding.reasons.orders import LeaderActs, LeftByEarlierRun, MayNotAct
from yarnctl.deciding.reasons.queue_naming import QueuesUnread
from yarnctl.deciding.records import Record, performed
from yarnctl.errors import YarnctlError
from yarnctl.journal.rendering import said
from yarnctl.restoring.change_file import described
from yarnctl.restoring.restorer import AT_ONCE_MAX, OpenChange, Restorer

_LOG = logging.getLogger("yarnctl.daemon")

KIND: ChangeKind = "preemption"
ON, OFF = "true", "false"
HOLD_MS = 30_000
"""The longest that YARN's preemption stays off after yarnctl may not act any more, while production waits."""
LOOK_MS = 10_000
"""How long YARN's preemption stays off while answers are missing, whether production waits or not."""
INCOMPLETE = (
    FoldersNotSeen,
    FoldersUnreachable,
    HdfsUnwritable,
    LockUnconfirmed,
    ManagerSettling,
    PreemptionUnknown,
    QueuesUnread,
    YarnPreemptsSomewhere,
)
"""Reasons that say only that some answer is missing."""
RETRY_MS = 5_000


class PreemptionSwitch:
    """Switches the queues that ``preempted`` returns: preemptable leaves in which YARN may preempt now.

    ``read`` returns a queue's own key ("": absent) and raises YarnctlError; ``perform`` performs an action.
    ``switches`` returns whether a queue is preemptable.
    """

    def __init__(
        self,
        preempted: Callable[[], Sequence[str]],
        read: Callable[[str], str],
        perform: Callable[[DisablePreemption], Outcome],
        switches: Callable[[str], bool],
        restorer: Restorer,
    ) -> None:
        self._preempted = preempted
        self._read = read
        self._perform = perform
        self._switches = switches
        self._restorer = restorer
        self._closed_at_ms: int | None = None
        self._again_at_ms = 0
        self._failed_at_ms: int | None = None
        self._failed = ""
        self._epoch = ""
        self._logged = ""

    def reconcile(
        self,
        write: Callable[[Record], None],
        now_ms: int,
        closed: ModeReason | None,
        epoch: str,
        *,
        may_wait: bool,
    ) -> None:
        """After a tick: switch, or let the keys be restored.

        ``closed``: why yarnctl may not act. ``epoch``: the ResourceManager's. ``may_wait``: production waits,
        or it is not known whether it does.
        """
        restorer = self._restorer
        restorer.adopt()  # before anything restores what an earlier leader switched
        is_closed = closed is not None and not isinstance(closed, PreemptionOn)
        if not is_closed:
            self._closed_at_ms = None
        elif self._closed_at_ms is None:
            self._closed_at_ms = now_ms
        held_ms = 0 if self._closed_at_ms is None else now_ms - self._closed_at_ms
        may_be_a_look = isinstance(closed, INCOMPLETE) and restorer.leads()
        hold_ms = HOLD_MS if may_wait else LOOK_MS if may_be_a_look else 0
        if is_closed and not 0 <= held_ms < hold_ms:
            restorer.make_due(MayNotAct(), (KIND,))
            return
        if closed is None:
            self._failed_at_ms = None
        is_stuck = self._failed_at_ms is not None and not 0 <= now_ms - self._failed_at_ms < HOLD_MS
        kept = [
            one for one in self._open() if not is_stuck and (is_closed or self._switches(one.change.target))
        ]
        for one in self._open():
            one.why = None if one in kept else one.why or LeftByEarlierRun()
        if not restorer.leads() or now_ms < self._again_at_ms:
            return
        wanted = [] if is_closed else list(self._preempted())
        if epoch and epoch != self._epoch:  # of the look before: what it showed of queues may be older
            wanted += [one.change.target for one in kept[:AT_ONCE_MAX] if self._is_forgotten(one)]
            self._epoch = epoch
        if wanted:  # A queue that failed comes first: no other is switched before it is
            ordered = sorted(dict.fromkeys(wanted), key=lambda queue: queue != self._failed)
            self._switch(write, now_ms, ordered[:AT_ONCE_MAX])

    def left_behind(self) -> str:
        """Return what is still switched off, in words, "" if nothing is."""
        return "; ".join(described(one.change) for one in self._open())

    def _open(self) -> list[OpenChange]:
        return [one for (kind, _), one in self._restorer.open.items() if kind == KIND]

    def _is_forgotten(self, open_change: OpenChange) -> bool:
        return self._restorer.state(open_change.change) == "before"

    def _switch(self, write: Callable[[Record], None], now_ms: int, queues: Sequence[str]) -> None:
        try:
            before = {queue: self._read(queue) for queue in queues}
        except YarnctlError as fault:
            self._retry(now_ms, f"cannot read whether YARN preempts in {', '.join(queues)}: {fault}")
            return
        for queue, value in before.items():
            if value not in ("", OFF, ON):  # YARN uses its default; no record may have such a value
                remedy = "set it to false, or remove it"
                story = f"disable_preemption of {queue} is neither true nor false: {value[:40]!a}"
                self._retry(now_ms, f"YARN's own preemption stays on: {story}; {remedy}", queue)
                return
        changes = [Change(KIND, queue, value, ON) for queue, value in before.items() if value != ON]
        known = {one.change.key: one.change.before for one in self._open()}
        new = [change for change in changes if known.get(change.key) != change.before]
        if new and (problem := self._restorer.record(new, LeaderActs())):
            self._retry(now_ms, f"YARN's own preemption stays on: {problem}")
            return
        for place, change in enumerate(changes):
            action = DisablePreemption(change.target)
            # Each request may take long: after the lock has run out the next leader may have restored all.
            outcome = self._perform(action) if self._restorer.leads() else Withheld(LockRanOut())
            write(performed(now_ms, action, outcome))
            if isinstance(outcome, Accepted):
                continue
            sent = place if isinstance(outcome, Refused | Withheld) else place + 1
            for one in changes[sent:]:
                if one in new:
                    self._restorer.not_made(one.key)
            why = said(outcome.why) or "no answer"
            story = f"cannot switch off YARN's own preemption of {change.target}: {why}"
            self._retry(now_ms, story, change.target)
            return
        self._logged, self._failed_at_ms, self._failed = "", None, ""

    def _retry(self, now_ms: int, story: str, queue: str = "") -> None:
        self._again_at_ms, self._failed = now_ms + RETRY_MS, queue
        if self._failed_at_ms is None:
            self._failed_at_ms = now_ms
        if story != self._logged:
            _LOG.warning("%s; will retry", story)
        self._logged = story
