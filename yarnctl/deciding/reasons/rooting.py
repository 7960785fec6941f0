"""The root of all reasons: what they have in common on the wire.

Law: a reason is a frozen value. Its tag, the class's name in kebab case, is what programs compare; its fields
hold what the sentence names. Words of others (a client's error, what a job's owner wrote) are text in a field
and are never looked into. English is made of a reason in one module only, outside the deciding half.
"""

from __future__ import annotations

import re

import msgspec

FAULT_MAX = 1000
"""Longer words of others are cut where a reason is made of them."""


def kebab(name: str) -> str:
    """Return a class's name as a tag: ``RoomGoesTo`` is ``room-goes-to``."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "-", name).lower()


class Reason(msgspec.Struct, frozen=True, omit_defaults=True, tag_field="code", tag=kebab):
    """Why something is so. Compared by value; encoded with its tag as ``code``."""


class Said(Reason, frozen=True):
    """A sentence of a journal that was written before reasons were values."""

    text: str


def code(why: Reason) -> str:
    """Return the tag of a reason, as it stands in ``code``."""
    return str(why.__struct_config__.tag)
