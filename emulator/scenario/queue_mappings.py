"""``queue-mappings``: which queue an application goes to by its user or the user's groups.

Source: ``CSMappingPlacementRule`` of Hadoop 3.4.2 with rules of the legacy form. The first rule that matches
counts. ``u:NAME:QUEUE`` matches a user, ``u:%user:QUEUE`` each one, ``g:GROUP:QUEUE`` the members of a group.
A queue may have ``%user``, ``%primary_group`` and ``%secondary_group`` as parts. If there is no such queue
and no parent creates it, the application goes to ``root.default``. Without the override key an application
that names another queue than ``default`` stays there.

Hadoop reads a user's groups from the system. Here they are of the key ``GROUPS``, which may stand in the
scheduler's file; a user that it does not name has none.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import NamedTuple

from emulator.scenario.scheduler_keys import PREFIX
from yarnctl.errors import BadInput

MAPPINGS = "queue-mappings"
OVERRIDE = "queue-mappings-override.enable"
GROUPS = "hadoop.user.group.static.mapping.overrides"
DEFAULT = "default"
_RULE = re.compile(r"([ug]):([^:,\s]{1,200}):([^:,\s]{1,500})")
_VARIABLE = re.compile(r"%[a-z_]+")
VARIABLES = ("%user", "%primary_group", "%secondary_group")


class MappingRule(NamedTuple):
    """``kind``: u or g; ``source``: the user or group, or %user; ``target``: the queue, with variables."""

    kind: str
    source: str
    target: str

    @property
    def asks_groups(self) -> bool:
        """Whether the rule depends on the groups of a user."""
        return self.kind == "g" or "_group" in self.target


class QueueMappings(NamedTuple):
    """The rules of a scheduler's file. ``groups``: of each user, the primary one first."""

    rules: tuple[MappingRule, ...] = ()
    overrides: bool = False
    groups: Mapping[str, tuple[str, ...]] = {}

    def target(self, user: str, queue: str) -> str:
        """Return the queue by the rules for an application of a user that names ``queue`` ("": no rule)."""
        if queue != DEFAULT and not self.overrides:
            return ""
        groups = self.groups.get(user, ())
        values = dict(zip(VARIABLES, (user, *groups[:1], *groups[1:2]), strict=False))
        for rule in self.rules:
            matches = rule.source in groups if rule.kind == "g" else rule.source in (user, "%user")
            if matches:
                parts = [values.get(part, part).replace(".", "_dot_") for part in rule.target.split(".")]
                return ".".join(parts)
        return ""


def mappings_of(keys: Mapping[str, str]) -> QueueMappings:
    """Return the rules of a file's keys. Raises ValueError that says which rule cannot be used."""
    rules = []
    for text in keys.get(f"{PREFIX}{MAPPINGS}", "").split(","):
        if not text.strip():
            continue
        found = _RULE.fullmatch(text.strip())
        if found is None:
            raise ValueError(f"{text.strip()[:60]!r} is not u:USER:QUEUE or g:GROUP:QUEUE")
        rule = MappingRule(*found.groups())
        unknown = set(_VARIABLE.findall(rule.target)) - {*VARIABLES}
        if unknown or (rule.source.startswith("%") and (rule.kind, rule.source) != ("u", "%user")):
            problem = f"{text.strip()[:60]!r} has a variable that is not modelled by the emulator"
            raise ValueError(problem)
        if rule.asks_groups and GROUPS not in keys:
            raise ValueError(f"{text.strip()[:60]!r} depends on groups, and {GROUPS} is not in the file")
        rules.append(rule)
    overrides = keys.get(f"{PREFIX}{OVERRIDE}", "false").lower() == "true"
    return QueueMappings(tuple(rules), overrides, _groups(keys.get(GROUPS, "")))


def require_rules(keys: Mapping[str, str], place: str, is_leaf: Callable[[str], bool]) -> None:
    """Raise BadInput for rules that cannot be used, and for a target with queues below it."""
    try:
        rules = mappings_of(keys).rules
    except ValueError as error:
        raise BadInput(place, str(error), "use u:USER:QUEUE, with %user in the place of a part") from None
    for rule in rules:
        if "%" not in rule.target and not is_leaf(rule.target):
            raise BadInput(place, f"{rule.target} names no leaf queue", "name a leaf by its path")


def _groups(text: str) -> dict[str, tuple[str, ...]]:
    found = {}
    for part in text.split(";"):
        user, _, names = part.strip().partition("=")
        if user:
            found[user] = tuple(name.strip() for name in names.split(",") if name.strip())
    return found
