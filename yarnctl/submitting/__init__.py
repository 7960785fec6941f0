"""Submitting: how a framework's jobs are submitted, and what a gate may set in a user's name.

Law: pure. Nothing is run, asked or opened here; words and settings come in, words and settings come out,
never a shell. What the user said himself is never overwritten: what contradicts the gate is refused by its
name. Each framework has a white list of what a gate may set, and nothing else is set. The import contracts
hold this room above the clients and the task runner's words, beside ``checkpoint``; who shows what to submit
with (the service) reads ``FRAMEWORKS`` and knows no framework by name.
"""

from __future__ import annotations

from yarnctl.submitting import mapreduce
from yarnctl.submitting.framework import Framework

FRAMEWORKS: dict[str, Framework] = {"mapreduce": mapreduce}
"""By kind: the word that a request and an admission carry."""
