"""Keys and instants in words: by what a policy ranked, and when, as a reader says it.

Law: the words follow from the key, the policy and the cluster's size alone; the key itself stands beside
them. An instant of a live daemon is local time; one of a run in virtual time, which begins at 0, stays in ms.
"""

from __future__ import annotations

from datetime import datetime

from yarnctl.deciding.policies import FOREVER_MS
from yarnctl.units import Resources

POLICIES: dict[str, str] = {
    "MR": "most resources first",
    "LR": "least resources first",
    "PR": "by chance, in proportion to its containers",
    "MDF": "latest deadline first",
    "MLF": "largest laxity first",
    "SRT": "shortest remaining time first",
    "LRT": "longest remaining time first",
    "random": "by chance",
}
"""What the abbreviations of :mod:`yarnctl.deciding.policies` stand for."""

EPOCH_LEAST_MS = 10**11
"""An instant from here on (March 1973) is one since 1970; no virtual run is that long."""


def key_words(policy: str, key: tuple[int, ...], total: Resources | None) -> str:
    """Return a key as ``what it says; key -12288``; the numbers alone where the policy is not known."""
    if not key:
        return "no key"
    numbers = "/".join("-" if abs(part) == FOREVER_MS else str(part) for part in key)
    said = _said(policy, -key[0] if policy == "MLF" else abs(key[0]), total)
    return f"{said}; key {numbers}" if said else f"key {numbers}"


def _said(policy: str, amount: int, total: Resources | None) -> str:
    """Say what the first part of a policy's key stands for; "" where it stands for nothing readable."""
    if policy in ("MR", "LR") and total is not None and total[0] and total[1]:
        return f"{100 * amount / (total[0] * total[1]):.0f} % of the cluster"
    if policy in ("SRT", "LRT"):
        return "remaining time unknown" if amount == FOREVER_MS else f"{amount / 1000:.1f} s left"
    if policy in ("MDF", "MLF") and abs(amount) == FOREVER_MS:
        return "no deadline"
    if policy == "MDF":
        return f"deadline {instant(amount)}"
    return f"laxity {amount / 1000:.1f} s" if policy == "MLF" else ""


def instant(at_ms: int) -> str:
    """Return an instant as local time, or in ms since the beginning of a virtual run."""
    if at_ms < EPOCH_LEAST_MS:
        return f"at {at_ms} ms"
    try:
        at = datetime.fromtimestamp(at_ms // 1000)
    except (ValueError, OverflowError, OSError):  # the journal says so, and no clock shows it
        return f"at {at_ms} ms"
    return f"at {at:%Y-%m-%d %H:%M:%S}.{at_ms % 1000:03}"
