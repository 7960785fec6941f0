"""The daemon's plan for a command line of ``yarnctl run``."""

from __future__ import annotations

from yarnctl.cli.cluster import ClusterOptions, FolderOptions, QueueOptions
from yarnctl.cli.gate_options import GateOptions
from yarnctl.cli.run import PreemptionOptions, StateOptions, command, plan_of
from yarnctl.command_line import options_in
from yarnctl.daemon.running import Plan


def plan_for(*words: str) -> Plan:
    """Return the plan of ``yarnctl run WORDS``; raises BadInput."""
    with command.make_context("run", list(words)) as context:
        values = context.params
    return plan_of(
        options_in(ClusterOptions, values), options_in(QueueOptions, values),
        options_in(PreemptionOptions, values), options_in(FolderOptions, values),
        options_in(StateOptions, values), options_in(GateOptions, values),
    )  # fmt: skip
