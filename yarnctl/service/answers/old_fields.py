"""Old names of fields in answers: each is answered beside its new name for one release.

Law: an old name holds what the new one holds, under the old names of its values. The structs of
:mod:`yarnctl.api` have the new names only; the old ones are added when an answer is encoded, and the document
marks them deprecated. What holds no old name is encoded as it is.
"""

from __future__ import annotations

from functools import cache
from typing import Any, Literal, TypeVar, get_args

import msgspec

from yarnctl.api.cluster_answers import (
    Application,
    Health,
    Loop,
    LoopState,
    Mode,
    OccupancySample,
    Queue,
    Readiness,
    SnapshotOut,
)
from yarnctl.api.decision_answers import Explained, TriggerOut
from yarnctl.api.order_answers import DecisionSummary, ReclaimList

OLD_CLASSES = {"preempting": "hurried", "preemptable": "victim"}
"""The old names of roles that have another one."""
_ROLE = {"role": "class"}
_COUNTS = {"expected": "on_their_way"}
_STATE = {"loop_state": "state"}

OLD_FIELDS: dict[type, dict[str, str]] = {
    Application: {**_ROLE, **_COUNTS, "predicted": "foreseen", "suspending": "giving"},
    Queue: _ROLE,
    ReclaimList: {**_ROLE, **_COUNTS},
    SnapshotOut: OLD_CLASSES,
    OccupancySample: OLD_CLASSES,
    Loop: {"enforce": "mode", **_STATE},
    Health: _STATE,
    Readiness: _STATE,
    Explained: {"rendered": "said"},
    DecisionSummary: {"shortfall": "need"},
    TriggerOut: {"shortfall": "need"},
}
"""Of each struct: the old names by the new ones."""

OLD_VALUES: dict[str, dict[Any, str]] = {
    "class": OLD_CLASSES,
    "mode": {True: "enforce", False: "observe"},
    "state": {"blocked": "standing-aside"},
}
"""By old field: the old names of its values that have another one."""

OLD_TYPES: dict[str, Any] = {"class": Literal["hurried", "victim", "other"], "mode": Mode, "state": LoopState}
"""The description of those fields in the document."""


def encoded(answer: object) -> bytes:
    """Return an answer as JSON, with the old names directly after the new ones."""
    return msgspec.json.encode(_with_old_names(answer))


def _with_old_names(value: Any) -> Any:
    if type(value) is list or type(value) is tuple:
        return [_with_old_names(each) for each in value]
    fields = _fields(type(value)) if isinstance(value, msgspec.Struct) else ()
    if not fields:
        return value
    found: dict[str, Any] = {}
    for name, shown, is_deep, old in fields:
        member = getattr(value, name)
        found[shown] = _with_old_names(member) if is_deep else member
        if old:
            found[old] = _old_value(old, found[shown])
    return found


def _old_value(name: str, value: Any) -> Any:
    values = OLD_VALUES.get(name)
    return value if values is None else values.get(value, value)


@cache
def _fields(kind: type[msgspec.Struct]) -> tuple[tuple[str, str, bool, str], ...]:
    """Return a struct's fields: name, name in JSON, whether to go into it, old name. Empty if none is old."""
    old = OLD_FIELDS.get(kind, {})
    fields = tuple(
        (each.name, each.encode_name, _is_deep(each.type), old.get(each.name, ""))
        for each in msgspec.structs.fields(kind)
    )
    return fields if any(is_deep or was for _, _, is_deep, was in fields) else ()


def _is_deep(kind: Any) -> bool:
    """Say whether a value of this type may hold a struct with old names; a type variable may."""
    if isinstance(kind, TypeVar):
        return True
    if isinstance(kind, type) and issubclass(kind, msgspec.Struct):
        return bool(_fields(kind))
    return any(map(_is_deep, get_args(kind)))
