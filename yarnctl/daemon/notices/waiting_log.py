"""Warnings about production applications that wait in vain: one per application and reason, then repeated."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from yarnctl.daemon.view.occupancy import pending_of
from yarnctl.daemon.view.published import View
from yarnctl.daemon.view.why_waiting import Waiting, sentence
from yarnctl.deciding.reasons.rooting import code
from yarnctl.journal.rendering import containers, span

VAIN_MS = 60_000
"""An application waits in vain after this long without an order."""
REPEAT_MS = 300_000
SERVED = ("ordered", "would-order", "awaited")
"""Kinds of waiting that are not in vain."""


class _Vain(msgspec.Struct):
    """Since when an application waits in vain, and when each of its reasons was warned about."""

    since_ms: int
    warned_at_ms: dict[tuple[str, str], int] = {}


class WaitingLog:
    """Decides which warnings are due. The state of an application ends with an order, or its requests."""

    def __init__(self) -> None:
        self._vain: dict[str, _Vain] = {}

    def due(self, waiting: Mapping[str, Waiting], now_ms: int) -> list[tuple[str, int]]:
        """Return the applications to warn about now, and for how long each has waited, in ms.

        An application that has waited for ``VAIN_MS`` gets one warning for each reason, and another one
        after ``REPEAT_MS``. A reason of the kind ``next`` lasts for a moment and gets none.
        """
        self._vain = {name: vain for name, vain in self._vain.items() if name in waiting}
        found = []
        for name, each in waiting.items():
            if each.kind in SERVED:
                self._vain.pop(name, None)
                continue
            vain = self._vain.setdefault(name, _Vain(now_ms))
            if now_ms < vain.since_ms:  # the clock was set back
                vain = self._vain[name] = _Vain(now_ms)
            reason = (each.kind, code(each.why))
            last_ms = vain.warned_at_ms.get(reason)
            waited_ms = now_ms - vain.since_ms
            if each.kind == "next" or waited_ms < VAIN_MS:
                continue
            if last_ms is None or now_ms - last_ms >= REPEAT_MS:
                vain.warned_at_ms[reason] = now_ms
                found.append((name, waited_ms))
        return found


def warnings(log: WaitingLog, view: View) -> list[str]:
    """Return the warnings that are due for a view."""
    due = log.due(view.waiting, view.now_ms)
    known = {each.application: each for each in view.snapshot.applications} if view.snapshot and due else {}
    lines = []
    for name, waited_ms in due:
        each = known[name]
        job = f"{each.name}, " if each.name else ""
        lines.append(
            f"{name} ({job}user {each.user}, queue {each.queue}) has waited {span(waited_ms)} for"
            f" {containers(pending_of(each))}: {sentence(view.waiting[name])}"
        )
    return lines
