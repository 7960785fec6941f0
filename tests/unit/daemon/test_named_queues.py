"""Queues by name while the daemon runs: what a name means is settled once, and the tree may change later."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

import msgspec
import pytest

from tests.thoroughness import more
from tests.unit.attach.fake_cluster import SLOT, App, FakeCluster
from tests.unit.hadoop.replaying import Heard, Reply
from yarnctl.attach.connection.connection import Attachment
from yarnctl.config import ClusterAddress
from yarnctl.daemon.loop import Loop
from yarnctl.daemon.running import Plan, run
from yarnctl.daemon.state_dir import StateDir
from yarnctl.deciding.open_hours import WEEK_MINUTES, OpenHours
from yarnctl.deciding.settings import DEFAULT, LeverSettings, LossRule
from yarnctl.errors import BadInput
from yarnctl.journal.file import read
from yarnctl.journal.replay import replay
from yarnctl.units import Resources

TREE = {"root.prod.etl": 60.0, "root.research.ds": 20.0, "root.research.adhoc": 20.0}


class ChangingCluster(FakeCluster):
    """A cluster with nested queues. ``script``: what happens before the n-th answer about its queues."""

    def __init__(self) -> None:
        super().__init__()
        self.queues = dict(TREE)
        self.nodes = {"n1": Resources(8192, 8)}
        self.says_paths = True
        self.script: dict[int, Callable[[], object]] = {}
        self.looks = 0

    def __enter__(self) -> ChangingCluster:
        super().__enter__()
        return self

    def answer(self, heard: Heard) -> Reply:
        if heard.path.endswith("/cluster/scheduler"):
            self.looks += 1
            self.script.pop(self.looks, int)()
        return super().answer(heard)

    def fill(self, *queues: str) -> None:
        """Let a research job with reduces of its own fill the node."""
        for number, queue in enumerate(queues, 1):
            self.research(number, ["n1"] * (8 // len(queues)))
            self.apps[f"application_1700000000000_{number:04d}"].queue = queue

    def want(self, queue: str) -> None:
        """Let a production job wait for two containers."""
        self.add(App(9, queue, user="bob", asks=[(20, SLOT, 2)], containers={"container_9": ("n2", 0)}))


class NoPage:
    """What a daemon without a page starts."""

    def reload(self) -> None:
        pass

    def stop(self) -> None:
        pass


class Ran:
    """A daemon that has looked ``ticks`` times: its journal, its warnings and its last state."""

    def __init__(
        self,
        cluster: FakeCluster,
        path: Path,
        caplog: pytest.LogCaptureFixture,
        *,
        ticks: int = 12,
        preempting: tuple[str, ...] = ("etl",),
        preemptable: tuple[str, ...] = ("ds",),
        dies: bool = False,
        levers: LeverSettings | None = None,
        hours: tuple[OpenHours, ...] | msgspec.UnsetType = msgspec.UNSET,
    ) -> None:
        caplog.set_level(logging.INFO)
        loops: list[Loop] = []

        def serve(loop: Loop, _state: StateDir) -> NoPage:
            loops.append(loop)
            if dies:  # as a process does that is killed: nothing is undone
                loop._undo = lambda: None  # type: ignore[method-assign]
            return NoPage()

        plan = Plan(
            cluster=ClusterAddress(
                resource_managers=(cluster.rm.url,), name_nodes=(cluster.hdfs.replay.url,)
            ),
            attachment=Attachment(preempting_queues=preempting, preemptable_queues=preemptable,
                stable_observations=1, requests_owner="yarnctl"),
            settings=msgspec.structs.replace(DEFAULT, preempting_queues=preempting,
                preemptable_queues=preemptable, tick_ms=1, open_tick_ms=1, observe_only=True, levers=levers,
                hours=hours),
            state_dir=path / "state",
            ticks=ticks,
        )  # fmt: skip
        run(plan, serve)
        self.loop = loops[0]
        journal = path / "state" / "journal.jsonl"
        self.records: list[dict[str, Any]] = [json.loads(line) for line in journal.read_text().splitlines()]
        self.warnings = [one.getMessage() for one in caplog.records if one.levelno >= logging.WARNING]

    def of(self, kind: str) -> list[dict[str, Any]]:
        return [one for one in self.records if one.get("type") == kind]

    def warned(self, words: str) -> int:
        return sum(words in one for one in self.warnings)


@pytest.mark.parametrize(
    ("preempting", "preemptable"),
    [("root.prod.etl", "root.research.ds"), ("etl", "ds"), ("prod.etl", "research.ds")],
)
def test_every_spelling_of_a_leaf_is_acted_on(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, preempting: str, preemptable: str
) -> None:
    with ChangingCluster() as cluster:
        cluster.fill("root.research.ds")
        cluster.want("root.prod.etl")
        ran = Ran(cluster, tmp_path, caplog, preempting=(preempting,), preemptable=(preemptable,))
    [decision] = ran.of("decision")
    assert decision["trigger"]["queue"] == "root.prod.etl"
    assert len(decision["picks"]) == 2


def test_a_later_leaf_of_the_same_name_changes_nothing_and_is_logged_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """A daemon of weeks fell silent at the moment when somebody added a queue."""
    with ChangingCluster() as cluster:
        cluster.fill("root.research.ds")
        cluster.script[4] = lambda: cluster.queues.update({"root.research.etl": 1.0, "root.prod.ds": 1.0})
        cluster.script[7] = lambda: cluster.want("root.prod.etl")
        ran = Ran(cluster, tmp_path, caplog, ticks=16)
    [decision] = ran.of("decision")
    assert decision["trigger"]["queue"] == "root.prod.etl"
    assert len(decision["picks"]) == 2
    assert ran.warned("etl") == ran.warned("root.research.etl") == 1
    assert ran.warned("root.prod.ds") == 1


def test_a_leaf_that_vanishes_is_named_and_the_others_go_on(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with ChangingCluster() as cluster:
        cluster.fill("root.research.ds")
        cluster.script[4] = lambda: cluster.queues.pop("root.research.adhoc")
        cluster.script[7] = lambda: cluster.want("root.prod.etl")
        ran = Ran(cluster, tmp_path, caplog, ticks=16, preemptable=("ds", "adhoc"))
    [decision] = ran.of("decision")
    assert len(decision["picks"]) == 2
    assert ran.warned("root.research.adhoc") == 1
    status = ran.loop.status()
    assert status.state == "running"
    assert "root.research.adhoc" in str(status.why)


def test_a_leaf_that_is_stopped_is_named_once_and_still_gives_and_gets(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """YARN serves the applications in a queue that drains."""
    with ChangingCluster() as cluster:
        cluster.fill("root.research.ds")
        cluster.script[4] = lambda: cluster.states.update({"root.prod.etl": "DRAINING"})
        cluster.script[7] = lambda: cluster.want("root.prod.etl")
        cluster.script[12] = lambda: cluster.states.clear()
        ran = Ran(cluster, tmp_path, caplog, ticks=16)
    [decision] = ran.of("decision")
    assert len(decision["picks"]) == 2
    assert ran.warned("leaf queue root.prod.etl is DRAINING: it accepts no new applications") == 1
    assert "leaf queue root.prod.etl is RUNNING again" in caplog.messages


def test_a_leaf_that_is_stopped_at_the_start_is_named(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with ChangingCluster() as cluster:
        cluster.states["root.research.ds"] = "STOPPED"
        ran = Ran(cluster, tmp_path, caplog, ticks=3)
    assert ran.warned("leaf queue root.research.ds is STOPPED") == 1


def test_a_leaf_that_is_renamed_is_named_with_the_nearest_and_the_others_go_on(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with ChangingCluster() as cluster:
        cluster.fill("root.research.ds")

        def rename() -> None:
            cluster.queues["root.research.adhoc2"] = cluster.queues.pop("root.research.adhoc")

        cluster.script[4] = rename
        cluster.script[7] = lambda: cluster.want("root.prod.etl")
        ran = Ran(cluster, tmp_path, caplog, ticks=16, preemptable=("ds", "adhoc"))
    [decision] = ran.of("decision")
    assert len(decision["picks"]) == 2
    [message] = [one for one in ran.warnings if "root.research.adhoc was removed" in one]
    assert "root.research.adhoc2" in message
    assert "root.research.adhoc" in str(ran.loop.status().why)


def test_a_queue_that_comes_and_goes_beside_the_named_ones_changes_nothing(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with ChangingCluster() as cluster:
        cluster.fill("root.research.ds")
        cluster.script[3] = lambda: cluster.queues.update({"root.new.one": 1.0})
        cluster.script[5] = lambda: cluster.want("root.prod.etl")
        cluster.script[6] = lambda: cluster.queues.pop("root.new.one")
        ran = Ran(cluster, tmp_path, caplog, ticks=16)
    [decision] = ran.of("decision")
    assert len(decision["picks"]) == 2
    assert not ran.warned("queue")


def test_features_that_are_not_modelled_are_named_at_the_start(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with ChangingCluster() as cluster:
        cluster.configuration["yarn.resourcemanager.placement-constraints.handler"] = "scheduler"
        cluster.policies["root.prod.etl"] = "com.example.OwnOrderingPolicy"
        ran = Ran(cluster, tmp_path, caplog, ticks=2)
    assert ran.warned("not modelled: placement constraints (yarnctl frees no container for requests") == 1
    assert ran.warned("the ordering policy com.example.OwnOrderingPolicy of root.prod.etl") == 1


@pytest.mark.parametrize(("scheduler_keys", "count"), [(None, 1), ({}, 0)])
def test_an_unknown_resource_calculator_is_named_at_the_start(
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
    scheduler_keys: dict[str, str] | None,
    count: int,
) -> None:
    with ChangingCluster() as cluster:
        cluster.scheduler_keys = scheduler_keys
        ran = Ran(cluster, tmp_path, caplog, ticks=2)
    assert ran.warned("the resource calculator is unknown: yarnctl counts memory and vcores") == count


def test_the_daemon_stands_aside_while_no_preemptable_leaf_is_left(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with ChangingCluster() as cluster:
        cluster.fill("root.research.ds")
        cluster.script[5] = lambda: cluster.queues.pop("root.research.ds")
        ran = Ran(cluster, tmp_path, caplog)
    assert ran.loop.status().state == "blocked"
    assert "root.research.ds" in str(ran.loop.status().why)
    assert ran.warned("root.research.ds")


def test_names_are_resolved_at_the_first_look_where_the_cluster_is_away_at_the_start(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with ChangingCluster() as cluster:
        cluster.fill("root.research.ds")
        cluster.want("root.prod.etl")
        ran = Away(cluster, tmp_path, caplog)
    [decision] = ran.of("decision")
    assert decision["trigger"]["queue"] == "root.prod.etl"


def test_a_journal_in_which_names_were_resolved_later_is_replayed(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with ChangingCluster() as cluster:
        cluster.fill("root.research.ds")
        cluster.want("root.prod.etl")
        ran = Away(cluster, tmp_path, caplog)
    headers = [one["settings"]["preempting_queues"] for one in ran.of("header")]
    assert headers == [["etl"], ["root.prod.etl"]]
    journal = tmp_path / "state" / "journal.jsonl"
    replay(read(journal), str(journal))


def test_wrong_names_do_not_keep_a_daemon_from_restoring_what_an_earlier_run_left(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with ChangingCluster() as cluster:
        cluster.fill("root.research.ds")
        cluster.want("root.prod.etl")
        before = Ran(cluster, tmp_path, caplog, dies=True)
        assert before.loop.controller.ledger.open
        cluster.queues["root.prod.ds"] = 1.0
        ran = Ran(cluster, tmp_path, caplog)
    assert not ran.loop.controller.ledger.open
    assert ran.warned("queue name ds is ambiguous, it matches 2 queues") == 1
    assert len(ran.of("decision")) == 1


def test_names_that_the_first_look_disproves_keep_the_daemon_standing_aside(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with ChangingCluster() as cluster:
        cluster.fill("root.research.ds")
        cluster.want("root.prod.etl")
        ran = Away(cluster, tmp_path, caplog, preempting=("elt",))
    assert not ran.of("decision")
    assert ran.warned("no leaf queue elt") == 1
    assert ran.loop.status().state == "blocked"


class Away(Ran):
    """A daemon that was started while the ResourceManager did not answer; it does after some requests."""

    def __init__(
        self, cluster: ChangingCluster, path: Path, caplog: pytest.LogCaptureFixture, **given: Any
    ) -> None:
        asked = 0
        answer = cluster.rm.answer

        def late(heard: Heard) -> Reply:
            nonlocal asked
            asked += 1
            return Reply("", 503) if asked < 8 else answer(heard)

        cluster.rm.answer = late
        super().__init__(cluster, path, caplog, ticks=40, **given)


@pytest.mark.parametrize(
    ("preempting", "preemptable", "told"),
    [(("elt",), ("ds",), "no leaf queue elt (nearest: root.prod.etl)"),
     (("etl",), ("prod.etl",), "root.prod.etl"), (("etl",), ("prod",), "given as etl, prod")],
)  # fmt: skip
def test_run_refuses_names_that_the_tree_disproves(
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
    preempting: tuple[str, ...],
    preemptable: tuple[str, ...],
    told: str,
) -> None:
    with ChangingCluster() as cluster, pytest.raises(BadInput) as refused:
        Ran(cluster, tmp_path, caplog, preempting=preempting, preemptable=preemptable)
    assert told in str(refused.value)


# --- parents ----------------------------------------------------------------------------------------


def test_a_queue_created_below_a_named_parent_gives_and_the_journal_is_replayed(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """The parent has no leaf at the start. A later leaf does not repeat the decision."""
    alice, bob = "root.users.alice", "root.users.bob"
    with ChangingCluster() as cluster:
        cluster.parents = ["root.users"]

        def create() -> None:
            cluster.queues[alice] = 1.0
            cluster.fill(alice)

        cluster.script[4] = create
        cluster.script[7] = lambda: cluster.want("root.prod.etl")
        cluster.script[14] = lambda: cluster.queues.update({bob: 1.0})
        cluster.script[17] = lambda: cluster.queues.pop(bob)
        ran = Ran(cluster, tmp_path, caplog, ticks=24, preempting=("prod",), preemptable=("users",))
    [decision] = ran.of("decision")
    assert len(decision["picks"]) == 2
    assert decision["trigger"]["queue"] == "root.prod.etl"
    headers = [one["settings"]["preemptable_queues"] for one in ran.of("header")]
    assert headers == [["users"], [alice], [alice, bob], [alice]]
    ends = [one["why"]["code"] for one in ran.of("transition")]
    assert ends == ["stopping"] * 2, "the last controller has the orders of those before"
    journal = tmp_path / "state" / "journal.jsonl"
    replay(read(journal), str(journal))
    for line in (
        "queue root.users has no leaf yet; each leaf is used as soon as it exists",
        f"new leaf queues of root.users (1): {alice}",
        f"new leaf queues of root.users (1): {bob}",
        f"removed leaf queues of root.users (1): {bob}",
    ):
        assert caplog.messages.count(line) == 1
    assert {one["stance"] for one in ran.of("stance")} == {"observing"}


def test_budgets_and_hours_by_short_names_stay_when_leaves_of_a_parent_change(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    levers = LeverSettings(
        room_within_ms=1, suspend_ms=1, leave_ms=1, budgets=(LossRule("queue", "ds", 0.5),)
    )
    hours = (OpenHours("ds", "UTC", ((0, WEEK_MINUTES),), ((0, 0),)),)
    with ChangingCluster() as cluster:
        cluster.script[4] = lambda: cluster.queues.update({"root.research.new": 1.0})
        ran = Ran(cluster, tmp_path, caplog, ticks=8, preemptable=("research",), levers=levers, hours=hours)
    settings = [one["settings"] for one in ran.of("header")]
    assert [one["levers"]["budgets"][0][:2] for one in settings] == [["queue", "root.research.ds"]] * 2
    assert [one["hours"][0][0] for one in settings] == ["root.research.ds"] * 2


def test_a_parent_that_loses_its_leaves_is_named_and_gives_nothing(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with ChangingCluster() as cluster:
        cluster.parents = ["root.research"]
        cluster.fill("root.research.ds")
        cluster.script[4] = lambda: [cluster.queues.pop(f"root.research.{one}") for one in ("ds", "adhoc")]
        cluster.script[7] = lambda: cluster.want("root.prod.etl")
        ran = Ran(cluster, tmp_path, caplog, ticks=16, preemptable=("research",))
    assert not ran.of("decision")
    assert ran.warned("queue root.research has no leaf any more") == 1
    assert ran.loop.status().state == "running"


@pytest.mark.parametrize("seed", [*range(3), *more(range(3, 8))])
def test_queues_that_come_and_go_below_a_parent_leave_one_decision_and_a_journal_to_replay(
    seed: int, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """At any moment of a decision: also between its rounds, and while its orders are open."""
    chance = Random(seed)  # test data
    with ChangingCluster() as cluster:
        cluster.parents = ["root.users"]
        cluster.queues["root.users.alice"] = 1.0
        cluster.fill("root.users.alice")

        def change(number: int) -> None:
            if cluster.queues.pop(f"root.users.u{number}", None) is None:
                cluster.queues[f"root.users.u{number}"] = 1.0

        for look in chance.sample(range(3, 22), 12):
            cluster.script[look] = partial(change, chance.randrange(3))
        cluster.script[7] = lambda: cluster.want("root.prod.etl")
        ran = Ran(cluster, tmp_path, caplog, ticks=24, preemptable=("users",))
    [decision] = ran.of("decision")
    assert len(decision["picks"]) == 2
    assert len(ran.of("header")) > 8
    assert not ran.warned("users")
    journal = tmp_path / "state" / "journal.jsonl"
    replay(read(journal), str(journal))


# --- random changes ---------------------------------------------------------------------------------

NAMED = ("root.research.ds", "root.research.adhoc")


def vanish(cluster: ChangingCluster, path: str) -> None:
    cluster.queues.pop(path, None)


def rename(cluster: ChangingCluster, path: str) -> None:
    if path in cluster.queues:
        cluster.queues[f"{path}_new"] = cluster.queues.pop(path)


def stop(cluster: ChangingCluster, path: str) -> None:
    cluster.states[path] = "STOPPED"


def appear(cluster: ChangingCluster, path: str) -> None:
    cluster.queues[f"root.new.of_{path.rpartition('.')[2]}"] = 1.0


@pytest.mark.parametrize("seed", [*range(4), *more(range(4, 12))])
def test_random_changes_are_logged_and_leave_the_other_queues_alone(
    seed: int, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Up to four changes around one preemptable leaf; the other one gives what production wants."""
    chance = Random(seed)  # test data
    changed, other = chance.sample(NAMED, 2)
    done: list[tuple[Callable[[ChangingCluster, str], None], bool]] = []
    with ChangingCluster() as cluster:
        cluster.fill(other)

        def change(at: Callable[[ChangingCluster, str], None]) -> None:
            done.append((at, changed in cluster.queues))
            at(cluster, changed)

        for look in sorted(chance.sample(range(3, 10), 4)):
            cluster.script[look] = partial(change, chance.choice((vanish, rename, stop, appear)))
        cluster.script[11] = lambda: cluster.want("root.prod.etl")
        ran = Ran(cluster, tmp_path, caplog, ticks=20, preemptable=("ds", "adhoc"))
    [decision] = ran.of("decision")
    assert len(decision["picks"]) == 2
    gone = any(at in (vanish, rename) and was_there for at, was_there in done)
    stopped = any(at is stop and was_there for at, was_there in done)
    assert ran.warned(f"leaf queue {changed} was removed") == gone
    assert ran.warned(f"leaf queue {changed} is STOPPED") == stopped
    assert not ran.warned(other) or gone  # The message of a removed queue lists those that are left
    assert ran.loop.status().state == "running"
