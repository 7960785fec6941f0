"""The root of all reasons: what they have in common on the wire.

Law: a reason is a frozen value. Its tag, the class's name in kebab case, is what programs compare; its fields
have what the sentence names. Foreign text (a client's error, what a job's owner wrote) is a field of its own
and is never parsed. English is made of a reason in one module only, outside the deciding half.
"""

from __future__ import annotations

import re

import msgspec

FAULT_MAX = 1000
"""Longer foreign text is cut where a reason is made of it."""


def kebab(name: str) -> str:
    """Return a class's name as a tag: ``RoomGoesTo`` is ``room-goes-to``."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "-", name).lower()


class Reason(msgspec.Struct, frozen=True, omit_defaults=True, tag_field="code", tag=kebab):
    """The reason of something. Compared by value; encoded with its tag as ``code``."""


def code(why: Reason) -> str:
    """Return the tag of a reason, as in ``code``."""
    return str(why.__struct_config__.tag)
