"""The daemon's plan for a command line of ``yarnctl run``."""

from __future__ import annotations

from yarnctl.cli.run import command, options_of, plan_from
from yarnctl.daemon.running import Plan


def plan_for(*words: str) -> Plan:
    """Return the plan of ``yarnctl run WORDS``; raises BadInput."""
    with command.make_context("run", list(words)) as context:
        return plan_from(options_of(context.params))
