"""Configuration: the keys of every file that a user writes, and the settings that every journal repeats."""

from __future__ import annotations

from typing import Any

import msgspec

from emulator.scenario import Scenario
from emulator.scenario.record import OLD_ROLES
from tests.frozen.schemas import lines_of
from yarnctl.config import ENVIRONMENT, OLD_KEYS, ClusterAddress
from yarnctl.deciding.records import Record
from yarnctl.deciding.settings import PROFILES, Settings
from yarnctl.service.security import tokens


def configuration() -> dict[str, Any]:
    """Return the keys of the cluster's file, of the tokens' file and of scenarios, and the profiles."""
    return {
        "cluster_file": with_old_keys(lines_of(ClusterAddress, sent=True)),
        "cluster_environment": ENVIRONMENT,
        "tokens_file": lines_of(tokens._File, sent=True),
        "scenario_file": with_old_roles(lines_of(Scenario, sent=True)),
        "settings": lines_of(Settings),
        "profiles": msgspec.to_builtins(PROFILES),
    }


def with_old_keys(lines: dict[str, str]) -> dict[str, str]:
    """Return the lines of the cluster's file with its keys under their old names, too."""
    return lines | {
        f".{old}{rest}": lines[f".{new}{rest}"] for old, new in OLD_KEYS.items() for rest in ("", " default")
    }


def with_old_roles(lines: dict[str, str]) -> dict[str, str]:
    """Return the lines of scenarios with the roles under their old names, too."""
    place = ".queues[].role="
    return lines | {f"{place}{old}": lines[f"{place}{new}"] for old, new in OLD_ROLES.items()}


def records() -> dict[str, str]:
    """Return what the journal's records may hold."""
    return lines_of(Record)
