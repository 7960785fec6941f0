"""Options as they were typed, with the setting of each. An option that is not changed is written as typed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from yarnctl.errors import BadInput


class TypedOption(NamedTuple):
    """One option: its ``words`` as typed, its name, its value (None: a flag), the setting it sets ("": none).

    ``own``: it sets this setting only, and is not the general option for any setting.
    """

    words: tuple[str, ...]
    option: str
    value: str | None = None
    sets: str = ""
    own: bool = False

    @property
    def typed(self) -> str:
        """The option as text for messages."""
        return " ".join(self.words)[:100]


def settings_of(options: Sequence[TypedOption]) -> dict[str, str]:
    """Return the options' settings, the last of each; BadInput where an own option and ``--conf`` differ."""
    general = {each.sets: each for each in options if each.sets and not each.own}
    special = {each.sets: each for each in options if each.sets and each.own}
    for name, each in special.items():
        other = general.get(name)
        if other is not None and other.value != each.value:
            raise BadInput(each.typed, f"contradicts {other.typed}", "give one of them")
    return {name: each.value or "" for name, each in (general | special).items()}


def typed_for(options: Sequence[TypedOption], name: str) -> str:
    """Return how a setting was typed, for messages."""
    return next((each.typed for each in reversed(options) if each.sets == name), name)


def kept_words(options: Sequence[TypedOption], more: Mapping[str, str]) -> list[str]:
    """Return the words of all options except those that set a setting in ``more``."""
    return [word for each in options if each.sets not in more for word in each.words]
