"""Submitting: how a framework's jobs are submitted, and what a gate may set in a user's name.

Law: pure. Nothing is run, requested or opened here; command lines and settings come in and go out,
never a shell. The user's own settings are never overwritten: one that contradicts the gate is refused by its
name. Each framework has a white list of what a gate may set, and nothing else is set. By the import contracts
this package is above the clients and the task runner's words, beside ``checkpoint``; the service, which shows
what to submit with, reads ``FRAMEWORKS`` and names no framework.
"""

from __future__ import annotations

from yarnctl.submitting import mapreduce
from yarnctl.submitting.framework import Framework

FRAMEWORKS: dict[str, Framework] = {"mapreduce": mapreduce}
"""By kind: the value in a request and an admission."""
