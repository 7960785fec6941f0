"""Queues that are deleted: on demand after their expiry, and by a change of the configuration."""

from __future__ import annotations

import pytest

from emulator.cluster.entities import Application, Ask, Node
from emulator.cluster.queue_tree import TreeScheduler
from emulator.cluster.resource_manager import ResourceManager
from emulator.scenario.scheduler_file import read_scheduler_file
from tests.unit.scheduler_files import NESTED, USERS, write_file

EXPIRY = {"auto-queue-creation-v2.queue-expiration-time": "60"}
KEPT = "root.users.auto-queue-creation-v2.leaf-template.auto-queue-creation-v2.queue-auto-removal.enable"


class Host:
    """Masters that nobody starts."""

    def wake(self, app: Application) -> None: ...

    def launch_master(self, container: object) -> None: ...


class Users:
    """A cluster whose parent root.users creates a queue for each user."""

    def __init__(self, tmp_path, **more: str) -> None:
        file = read_scheduler_file(write_file(tmp_path, {**NESTED, **USERS, **more}))
        self.rm = ResourceManager(file.leaves, Host(), file.parents)
        assert isinstance(self.rm.scheduler, TreeScheduler)
        self.scheduler = self.rm.scheduler
        self.scheduler.source = file
        self.rm.register_node(Node(0, 10_000, 10, phase_ms=0))

    def submit(self, path: str, at_ms: int) -> Application:
        leaf = self.scheduler.leaf_for(path)
        assert leaf is not None
        app = Application(len(self.rm.applications) + 1, leaf, "u", at_ms, 100)
        self.rm.applications[app.number] = app
        self.scheduler.ask(app, Ask(0, 100, 1, off_switch=True), 1)
        self.scheduler.add_application(app)
        return app

    def made(self) -> set[str]:
        return {name for name in self.scheduler.queues if name.startswith("users.")}


def test_an_empty_leaf_on_demand_is_deleted_by_the_second_round_after_its_expiry(tmp_path):
    users = Users(tmp_path, **EXPIRY)
    zoe, yan = users.submit("users.zoe", 0), users.submit("users.team.yan", 30_000)
    users.rm.finish(zoe, 50_000)
    assert [users.scheduler.expire(at_ms) for at_ms in (60_000, 61_000)] == [False, False]
    assert users.scheduler.nodes["users.zoe"].config.capacity_ratio == pytest.approx(0.05)
    assert users.scheduler.expire(121_000), "two rounds in a row have seen it expired"
    assert users.made() == {"users.team.yan"}
    assert users.scheduler.nodes["users.team"].config.capacity_ratio == pytest.approx(0.1)
    users.rm.finish(yan, 122_000)
    assert [users.scheduler.expire(at_ms) for at_ms in (181_000, 241_000)] == [False, True]
    assert users.made() == set()
    assert "users.team" not in users.scheduler.nodes, "a parent on demand goes with its last leaf"
    again = users.submit("users.zoe", 242_000)
    assert again.queue is not zoe.queue


def test_a_submission_between_two_rounds_keeps_the_queue(tmp_path):
    users = Users(tmp_path, **EXPIRY)
    zoe = users.submit("users.zoe", 0)
    users.rm.finish(zoe, 1000)
    assert not users.scheduler.expire(61_000)
    users.rm.finish(users.submit("users.zoe", 62_000), 63_000)
    assert [users.scheduler.expire(at_ms) for at_ms in (121_000, 181_000)] == [False, False]
    assert users.made() == {"users.zoe"}


@pytest.mark.parametrize("more", [{}, {**EXPIRY, KEPT: "false"}], ids=["no time of expiry", "a template"])
def test_a_queue_on_demand_that_is_kept(tmp_path, more):
    users = Users(tmp_path, **more)
    users.rm.finish(users.submit("users.zoe", 0), 1000)
    assert [users.scheduler.expire(at_ms) for at_ms in (61_000, 121_000)] == [False, False]
    assert users.made() == {"users.zoe"}
