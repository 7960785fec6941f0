"""Putting a machine's network back: what is taken away, in an order in which it can be."""

from __future__ import annotations

from tests.docker.network_state import undoing

BEFORE = [":INPUT ACCEPT", ":FORWARD ACCEPT", "-A INPUT -i lo -j ACCEPT"]
ADDED = [":DOCKER -", "-A FORWARD -o docker0 -j DOCKER", "-A DOCKER -j RETURN"]


def test_rules_go_before_the_chains_that_they_name_and_policies_are_set_back() -> None:
    after = [":INPUT ACCEPT", ":FORWARD DROP", "-A INPUT -i lo -j ACCEPT", *ADDED]
    assert undoing(BEFORE, after) == [
        ["-D", "FORWARD", "-o", "docker0", "-j", "DOCKER"],
        ["-D", "DOCKER", "-j", "RETURN"],
        ["-F", "DOCKER"],
        ["-X", "DOCKER"],
        ["-P", "FORWARD", "ACCEPT"],
    ]


def test_what_was_there_before_stays() -> None:
    there = [*BEFORE, *ADDED]
    assert undoing(there, there) == []
    assert undoing(there, BEFORE) == []
