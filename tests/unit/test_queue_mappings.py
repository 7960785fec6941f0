"""``queue-mappings``, and keys of real scheduler files that are refused with what to do."""

from __future__ import annotations

import pytest

from emulator.scenario.queue_mappings import GROUPS
from emulator.scenario.scheduler_file import SchedulerFile, read_scheduler_file
from tests.unit.scheduler_files import NESTED, USERS, write_file
from yarnctl.errors import BadInput


@pytest.fixture
def read(tmp_path):
    """Return a reader of rules, with more keys."""

    def reader(rules: str, **more: str) -> SchedulerFile:
        return read_scheduler_file(write_file(tmp_path, {**NESTED, **USERS, "queue-mappings": rules, **more}))

    return reader


def test_the_first_rule_that_matches_counts_where_no_queue_is_named(read):
    file = read("u:ann:eng.lab, u:%user:root.users.%user")
    assert [file.placed(user, "default") for user in ("ann", "zoe")] == ["eng.lab", "root.users.zoe"]
    assert file.placed("ann", "root.res") == "root.res", "who names a queue stays there"
    assert file.placed("a.b", "default") == "root.users.a_dot_b"


def test_an_override_counts_whatever_queue_is_named(read):
    file = read("u:ann:eng.lab", **{"queue-mappings-override.enable": "true"})
    assert [file.placed(user, "root.res") for user in ("ann", "zoe")] == ["eng.lab", "root.res"]


def test_a_queue_that_is_not_there_and_not_made_is_the_default_one(read):
    assert read("u:%user:%user").placed("zoe", "default") == "default"
    assert read("u:%user:%user").placed("res", "default") == "res"


def test_groups_are_those_that_the_file_names(tmp_path):
    keys = {**NESTED, **USERS, "queue-mappings": "g:staff:mkt,u:%user:root.users.%primary_group"}
    file = write_file(tmp_path, keys)
    with pytest.raises(BadInput, match="depends on groups"):
        read_scheduler_file(file)
    more = f"<property><name>{GROUPS}</name><value>ann=dev,staff;ben=dev;cid=</value></property>"
    file.write_text(file.read_text().replace("</configuration>", f"{more}</configuration>"))
    found = read_scheduler_file(file)
    placed = [found.placed(user, "default") for user in ("ann", "ben", "cid")]
    assert placed == ["mkt", "root.users.dev", "default"], "without a group there is no such queue"


@pytest.mark.parametrize(
    ("rules", "problem"),
    [
        ("u:ann", "is not u:USER:QUEUE"),
        ("u:ann:nowhere", "nowhere names no leaf queue"),
        ("u:ann:root.eng", "names no leaf queue"),
        ("u:%user:%application", "a variable that is not modelled"),
    ],
)
def test_rules_that_cannot_be_used_are_refused(read, rules, problem):
    with pytest.raises(BadInput, match=problem):
        read(rules)


@pytest.mark.parametrize(
    ("key", "value", "remedy"),
    [
        ("mapping-rule-format", "json", "use queue-mappings"),
        ("root.mkt.auto-create-child-queue.enabled", "true", "auto-queue-creation-v2.enabled, with weights"),
        ("root.mkt.leaf-queue-template.capacity", "50", "auto-queue-creation-v2.leaf-template"),
        ("root.mkt.maximum-allocation-mb", "8192", "no container larger than a node"),
        ("auto-queue-creation-v2.queue-expiration-time", "5m", "is not a number of seconds"),
    ],
)
def test_keys_that_strangers_have_are_refused_with_what_to_do(tmp_path, key, value, remedy):
    with pytest.raises(BadInput, match=remedy):
        read_scheduler_file(write_file(tmp_path, {**NESTED, key: value}))


def test_a_share_of_masters_above_one_is_read_as_hadoop_reads_it(tmp_path):
    """Amazon's clusters have 10: ten times the queue's maximum, hence no limit."""
    keys = {**NESTED, "maximum-am-resource-percent": "10"}
    assert {leaf.am_ratio for leaf in read_scheduler_file(write_file(tmp_path, keys)).leaves} == {10}
