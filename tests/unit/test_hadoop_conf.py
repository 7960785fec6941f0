"""The ready configuration: well-formed, every property explained, capacities add up."""

from __future__ import annotations

import tomllib
from pathlib import Path
from xml.etree import ElementTree

import pytest

from tests.hadoop.configuration import SMALL_FILES

FOLDER = Path(__file__).parents[2] / "hadoop-conf"
FILES = sorted(FOLDER.glob("*/*.xml"))
PREFIX = "yarn.scheduler.capacity."


def properties(path: Path) -> dict[str, tuple[str, str]]:
    """Return value and description of each property; a name stands once."""
    found: dict[str, tuple[str, str]] = {}
    root = ElementTree.parse(path).getroot()
    assert root.tag == "configuration"
    for element in root:
        name = element.findtext("name", "")
        assert name
        assert name not in found
        description = " ".join(element.findtext("description", "").split())
        found[name] = (element.findtext("value", ""), description)
    return found


def children(found: dict[str, tuple[str, str]], parent: str) -> list[str]:
    """Return the paths of a queue's children."""
    names, _ = found.get(f"{PREFIX}{parent}.queues", ("", ""))
    return [f"{parent}.{name}" for name in names.split(",") if name]


def test_both_set_ups_are_there():
    assert [path.relative_to(FOLDER).as_posix() for path in FILES] == [
        "deadline/capacity-scheduler.xml",
        "deadline/yarn-site.xml",
        "dual-queue/capacity-scheduler.xml",
        "dual-queue/yarn-site.xml",
        "hdfs/hdfs-site.xml",
    ]


def test_the_bench_has_what_data_nodes_are_advised_to_have():
    advised = properties(FOLDER / "hdfs/hdfs-site.xml")
    assert {name: value for name, (value, _) in advised.items()} == SMALL_FILES


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.relative_to(FOLDER).as_posix())
def test_every_property_says_unit_reason_and_version(path):
    for name, (value, description) in properties(path).items():
        assert value == value.strip() != "", name
        assert description.startswith("Unit: "), name
        assert " Reason: " in description, name
        assert " Hadoop " in description, name


@pytest.mark.parametrize("folder", ["dual-queue", "deadline"])
def test_capacities_add_to_a_hundred(folder):
    found = properties(FOLDER / folder / "capacity-scheduler.xml")
    queues = children(found, "root")
    capacities = {queue: float(found[f"{PREFIX}{queue}.capacity"][0]) for queue in queues}
    assert sum(capacities.values()) == 100
    assert min(capacities.values()) > 0
    for queue, capacity in capacities.items():
        maximum = float(found[f"{PREFIX}{queue}.maximum-capacity"][0])
        assert capacity <= maximum <= 100
        assert capacity * float(found[f"{PREFIX}{queue}.user-limit-factor"][0]) >= maximum, (
            "one user fills it"
        )


@pytest.mark.parametrize("folder", ["dual-queue", "deadline"])
def test_no_property_belongs_to_a_queue_that_does_not_exist(folder):
    found = properties(FOLDER / folder / "capacity-scheduler.xml")
    known = ("root", *children(found, "root"))
    owners = {name.removeprefix(PREFIX).rpartition(".")[0] for name in found}
    assert owners - {""} <= set(known)


def test_production_goes_before_research():
    found = properties(FOLDER / "dual-queue/capacity-scheduler.xml")
    production, research = (
        int(found[f"{PREFIX}root.{queue}.priority"][0]) for queue in ("production", "research")
    )
    assert production > research
    assert found[f"{PREFIX}root.ordering-policy"][0] == "priority-utilization"


def test_priorities_count_in_the_deadline_set_up():
    site = properties(FOLDER / "deadline/yarn-site.xml")
    assert int(site["yarn.cluster.max-application-priority"][0]) > 0


def test_yarns_own_preemption_is_the_net_of_two_queues_and_off_for_deadlines():
    monitors = [
        properties(FOLDER / folder / "yarn-site.xml")["yarn.resourcemanager.scheduler.monitor.enable"][0]
        for folder in ("dual-queue", "deadline")
    ]
    assert monitors == ["true", "false"]
    keys = properties(FOLDER / "dual-queue/capacity-scheduler.xml")
    assert [name for name in keys if name.endswith("disable_preemption")] == []


def test_what_the_daemon_switches_can_be_switched():
    """Without a store the shipped ``yarn-preemption = "switch"`` would block every order."""
    settings = tomllib.loads((FOLDER / "dual-queue/yarnctl.toml").read_text())["run"]
    site = properties(FOLDER / "dual-queue/yarn-site.xml")
    assert settings["yarn-preemption"] == "switch"
    assert site["yarn.scheduler.configuration.store.class"][0] in ("memory", "leveldb", "zk", "fs")
