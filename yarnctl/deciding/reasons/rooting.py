"""The root of all reasons: what they have in common on the wire, and how their sentences are written.

A reason is a frozen value. Programs compare its tag, the class's name in kebab case. Foreign text (a client's
error, a message of a job's owner) is a field of its own and is never parsed. The class holds the sentence
that people read; :mod:`yarnctl.journal.rendering` fills it in, and docs/reference/reasons.md is generated
from it.
"""

from __future__ import annotations

import re
from typing import ClassVar

import msgspec

FAULT_MAX = 1000
"""Longer foreign text is cut where a reason is made of it."""


def kebab(name: str) -> str:
    """Return a class's name as a tag: ``RoomGoesTo`` is ``room-goes-to``."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "-", name).lower()


class Reason(msgspec.Struct, frozen=True, omit_defaults=True, tag_field="code", tag=kebab):
    """The reason of something. Compared by value; encoded with its tag as ``code``.

    ``sentence`` and ``remedy`` (what a person can do, "" if nothing) are templates over the fields:

    * ``{field}`` is the field; ``{field:unit}`` formats it, with a unit of ``rendering.UNITS``;
    * ``[field?one]`` is "one" if the field is not empty, ``[field?one|two]`` else "two";
    * ``[field=word?one]`` is "one" if the field equals "word".
    """

    sentence: ClassVar[str] = ""
    remedy: ClassVar[str] = ""


def code(reason: Reason) -> str:
    """Return the tag of a reason, as in ``code``."""
    return str(reason.__struct_config__.tag)
