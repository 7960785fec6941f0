"""The emulated cluster: event kernel, ResourceManager, scheduler, masters, task runners, and what connects
them.

Law: no clock, chance, file, socket or logger: time and chance are arguments. Nothing here depends on which
scheme is compared or that yarnctl exists beyond `yarnctl.deciding`'s values. ruff with
tests/architecture/actors-ruff.toml checks every file of this folder; contracts in pyproject.toml check
that of the emulator it imports `workload.job` alone.
"""
