"""Configuration: the keys of every file that a user writes, and the settings that every journal repeats."""

from __future__ import annotations

from typing import Any

import msgspec

from emulator.scenario import Scenario
from tests.frozen.schemas import lines_of
from yarnctl.config import ENVIRONMENT, ClusterAddress
from yarnctl.deciding.records import Record
from yarnctl.deciding.settings import PROFILES, Settings
from yarnctl.service.security import tokens


def configuration() -> dict[str, Any]:
    return {
        "cluster_file": lines_of(ClusterAddress, sent=True), "cluster_environment": ENVIRONMENT,
        "tokens_file": lines_of(tokens._File, sent=True), "scenario_file": lines_of(Scenario, sent=True),
        "settings": lines_of(Settings), "profiles": msgspec.to_builtins(PROFILES),
    }  # fmt: skip


def records() -> dict[str, str]:
    """Return what the journal's records may hold."""
    return lines_of(Record)
