"""Old names of fields in answers: each is answered beside its new name for one release.

Law: an old name holds what the new one holds. The structs of :mod:`yarnctl.api` have the new names only; the
old ones are added when an answer is encoded, and the document marks them deprecated.
"""

from __future__ import annotations

from typing import Any

import msgspec

from yarnctl.api.cluster_answers import Application, OccupancySample, SnapshotOut
from yarnctl.api.decision_answers import TriggerOut
from yarnctl.api.order_answers import DecisionSummary, ReclaimList

_CLASSES = {"preempting": "hurried", "preemptable": "victim"}
_COUNTS = {"expected": "on_their_way"}

OLD_FIELDS: dict[type, dict[str, str]] = {
    Application: {**_COUNTS, "predicted": "foreseen", "suspending": "giving"},
    ReclaimList: _COUNTS,
    SnapshotOut: _CLASSES,
    OccupancySample: _CLASSES,
    DecisionSummary: {"shortfall": "need"},
    TriggerOut: {"shortfall": "need"},
}
"""Of each struct: the old names by the new ones."""


def encoded(answer: object) -> bytes:
    """Return an answer as JSON, with the old names directly after the new ones."""
    return msgspec.json.encode(_with_old_names(answer))


def _with_old_names(value: Any) -> Any:
    if isinstance(value, msgspec.Struct):
        return _members(value)
    if type(value) in (list, tuple):
        return [_with_old_names(each) for each in value]
    return value


def _members(struct: msgspec.Struct) -> Any:
    names = zip(struct.__struct_fields__, struct.__struct_encode_fields__, strict=True)
    old = OLD_FIELDS.get(type(struct), {})
    if type(struct).__struct_config__.tag is not None:  # its tag is not a field, and it has no old names
        return struct
    found: dict[str, Any] = {}
    for name, shown in names:
        found[shown] = _with_old_names(getattr(struct, name))
        if name in old:
            found[old[name]] = found[shown]
    return found
