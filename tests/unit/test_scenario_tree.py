"""Scenarios on the queues of a capacity-scheduler.xml."""

from __future__ import annotations

from functools import partial

import msgspec
import pytest

from emulator.cluster.entities import MAP, REDUCE, RUNNING, NodeLabel
from emulator.cluster.pending_tasks import MAP_PRIORITY
from emulator.cluster.queue_tree import TreeScheduler
from emulator.invariants import check_all, check_end
from emulator.invariants.watched_run import RunWatch
from emulator.scenario import Scenario, check, prepare, setup
from emulator.scenario.record import QueueEntry, WorkloadEntry
from emulator.virtual.run import Run, run_scheme
from emulator.virtual.schemes import SCHEMES
from tests.thoroughness import more
from tests.unit.scheduler_files import LABELLED, MEMORY_ALONE, NESTED, USERS, write_file
from yarnctl.deciding.reasons.demand import QueueAtGuarantee
from yarnctl.deciding.records import Decision, Refusal
from yarnctl.errors import BadInput
from yarnctl.journal.chain import MemoryJournal
from yarnctl.units import NOTHING, Resources

PLACE = "scenario, field {}".format


@pytest.fixture
def scenario(tmp_path):
    return Scenario(
        nodes=3,
        slots=5,
        production="synthetic:production-s",
        research="synthetic:research-s",
        schemes=("soft-cap", "natjam", "kill", "yarn-tuned"),
        scheduler_xml=str(write_file(tmp_path, {**NESTED, "maximum-am-resource-percent": "0.5"})),
        production_queue="prod",
        research_queue="root.eng.lab",
        seed=7,
    )


def test_jobs_go_to_the_named_leaves_and_yarnctl_acts_between_them(scenario):
    check(scenario, PLACE)
    prepared, made = prepare(scenario), setup(scenario)
    assert {job.queue for job in prepared.jobs} == {"eng.prod", "eng.lab"}
    assert made.settings.preempting_queues == ("eng.prod",)
    assert made.settings.preemptable_queues == ("eng.lab",)
    made = msgspec.structs.replace(made, validate=True)
    for name in scenario.schemes:
        journal = MemoryJournal()
        result = run_scheme(made, prepared.jobs, SCHEMES[name], journal)
        assert len(result.jobs) == len(prepared.jobs)
        decided = any(isinstance(each, Decision) for each in journal.records)
        assert decided is (name in ("natjam", "kill"))
        assert bool(result.suspensions) is (name == "natjam")


@pytest.mark.parametrize("scheme", ["mix", *more(("natjam", "kill"))])
def test_a_queue_below_its_guarantee_takes_without_lists_of_names(scenario, scheme):
    """Only lab is over its share: prod takes from it up to its guarantee, then refuses itself more."""
    scenario = msgspec.structs.replace(
        scenario,
        mode="guarantees",
        schemes=(scheme,),
        workloads=(WorkloadEntry(spec="synthetic:research-s", queue="mkt"),),
    )
    check(scenario, PLACE)
    made = msgspec.structs.replace(setup(scenario), validate=True)
    assert (made.settings.preempting_queues, made.settings.preemptable_queues) == ((), ())
    journal = MemoryJournal()
    prepared = prepare(scenario)
    result = run_scheme(made, prepared.jobs, SCHEMES[scheme], journal)
    assert len(result.jobs) == len(prepared.jobs)
    decisions = [each for each in journal.records if isinstance(each, Decision)]
    assert {each.trigger.queue for each in decisions} == {"eng.prod"}
    taken = {each.names[pick.application].queue for each in decisions for pick in each.picks}
    assert taken == {"eng.lab"}
    assert QueueAtGuarantee() in [each.why for each in journal.records if isinstance(each, Refusal)]


def test_the_controller_sees_the_tree(scenario):
    run = Run(setup(scenario), prepare(scenario).jobs, SCHEMES["natjam"])
    scheduler = run.cluster.rm.scheduler
    assert isinstance(scheduler, TreeScheduler)
    seen = run.port._snapshot(0)
    assert [view.queue for view in seen.parents] == ["", "eng"]
    assert seen.parents[0].priorities == {"res": 5}
    assert seen.parents[0].fair == ("res",)


def test_the_controller_sees_what_limits_the_users_of_a_leaf_in_each_partition(scenario, tmp_path):
    """Percentages, and the highest limits: those of now would follow what the users hold."""
    more_keys = {"root.mkt.minimum-user-limit-percent": "25", "root.eng.prod.user-limit-factor": "1"}
    file = write_file(tmp_path, {**NESTED, **LABELLED, **more_keys, "maximum-am-resource-percent": "0.5"})
    labels = (NodeLabel(name="gpu", nodes=2), NodeLabel(name="ne", nodes=1, exclusive=False))
    scenario = msgspec.structs.replace(scenario, nodes=6, scheduler_xml=str(file), node_labels=labels)
    run = Run(setup(scenario), prepare(scenario).jobs, SCHEMES["natjam"])
    seen = run.port._snapshot(0)
    assert (seen.smallest, seen.user_percents) == (Resources(1, 0), {"mkt": 25.0})
    for part in (seen, *seen.labelled.values()):
        views = {view.queue: view for view in part.queues}
        for name in ("eng.prod", "mkt"):  # with a factor of 1
            shown = views[name]
            assert shown.user_limit == (
                None if shown.guaranteed in (NOTHING, shown.maximum) else shown.guaranteed
            )
        assert (views["eng.lab"].user_limit, views["res"].user_limit) == (None, None)


@pytest.mark.parametrize("scheme", ["natjam", *more(("yarn-tuned", "mix"))])
def test_memory_alone_gives_what_nodes_with_vcores_enough_give(scenario, tmp_path, scheme):
    keys = {**NESTED, "maximum-am-resource-percent": "0.5", "resource-calculator": MEMORY_ALONE}
    (tmp_path / "memory").mkdir()
    file = write_file(tmp_path / "memory", keys)
    small = msgspec.structs.replace(
        scenario, slots=None, node_memory_mib=5 * 1024, node_vcores=1, scheduler_xml=str(file)
    )
    check(small, PLACE)
    results = []
    for one in (scenario, small):
        made = msgspec.structs.replace(setup(one), validate=True)
        results.append(run_scheme(made, prepare(one).jobs, SCHEMES[scheme], MemoryJournal()).jobs)
    assert results[0] == results[1]
    assert prepare(small).identity != prepare(scenario).identity


def test_a_tree_is_part_of_the_identity(scenario, tmp_path):
    (tmp_path / "other").mkdir()
    other = write_file(tmp_path / "other", {**NESTED, "root.eng.maximum-capacity": "50"})
    first = prepare(scenario).identity
    assert prepare(msgspec.structs.replace(scenario, scheduler_xml=str(other))).identity != first
    assert prepare(scenario).identity == first


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"shares": (0.5, 0.5)}, "shares: is set by scheduler_xml"),
        ({"am_ratio": 0.4}, "am_ratio: is set by scheduler_xml"),
        ({"queues": (QueueEntry(name="x", guaranteed_ratio=0.01),)}, "queues: is set by scheduler_xml"),
        ({"schemes": ("soft-cap", "hard-cap")}, "hard-cap does not run on the queues of a scheduler_xml"),
        ({"production_queue": "eng"}, "'eng' names no leaf queue of scheduler_xml"),
        ({"research_queue": "nowhere"}, "use one of eng.prod, eng.lab, mkt, res"),
        ({"workloads": (WorkloadEntry(spec="synthetic:research-s", queue="x"),)}, "'x' names no leaf"),
        ({"node_labels": (NodeLabel(name="a", nodes=4),)}, "nodes: 4 is not within 0 to 3"),
        (
            {"node_labels": (NodeLabel(name="a", nodes=2), NodeLabel(name="b", nodes=2))},
            "4 nodes have labels",
        ),
        ({"node_labels": (NodeLabel(name="a b", nodes=2),)}, "'a b' is not a label"),
        ({"scheduler_xml": None}, "production_queue: has no effect without scheduler_xml"),
    ],
)
def test_what_a_file_cannot_go_with_is_named(scenario, change, why):
    with pytest.raises(BadInput) as caught:
        check(msgspec.structs.replace(scenario, **change), PLACE)
    assert why in str(caught.value)


def test_a_stopped_queue_takes_no_jobs(scenario, tmp_path):
    stopped = write_file(tmp_path, {**NESTED, "root.eng.state": "STOPPED"})
    with pytest.raises(BadInput, match=r"the queue eng\.prod is STOPPED"):
        check(msgspec.structs.replace(scenario, scheduler_xml=str(stopped)), PLACE)


def test_a_queue_is_created_when_a_job_is_submitted_to_it(scenario, tmp_path):
    file = write_file(tmp_path, {**NESTED, **USERS, "maximum-am-resource-percent": "0.5"})
    scenario = msgspec.structs.replace(
        scenario, scheduler_xml=str(file), production_queue="root.users.zoe",
        workloads=(WorkloadEntry(spec="synthetic:research-s", queue="users.teams.yan"),),
    )  # fmt: skip
    check(scenario, PLACE)
    prepared = prepare(scenario)
    made = msgspec.structs.replace(setup(scenario), validate=True)
    for name in scenario.schemes:
        run = Run(made, prepared.jobs, SCHEMES[name])
        scheduler = run.cluster.rm.scheduler
        assert isinstance(scheduler, TreeScheduler)
        assert "users.zoe" not in scheduler.queues
        watch = RunWatch(run)
        result = run.go(partial(check_all, watch))
        check_end(watch)
        assert len(result.jobs) == len(prepared.jobs)
        assert scheduler.nodes["users.zoe"].config.capacity_ratio == pytest.approx(0.05)
        assert scheduler.nodes["users.teams.yan"].config.capacity_ratio == pytest.approx(0.05)
    with pytest.raises(BadInput, match="names no leaf queue"):
        check(msgspec.structs.replace(scenario, production_queue="root.users.a.b.c"), PLACE)


def test_jobs_of_a_leaf_with_a_default_label_run_on_its_nodes(scenario, tmp_path):
    file = write_file(tmp_path, {**NESTED, **LABELLED, "maximum-am-resource-percent": "0.5"})
    labels = (NodeLabel(name="gpu", nodes=2), NodeLabel(name="ne", nodes=1, exclusive=False))
    scenario = msgspec.structs.replace(scenario, nodes=6, scheduler_xml=str(file), node_labels=labels)
    check(scenario, PLACE)
    prepared = prepare(scenario)
    assert prepared.identity != prepare(msgspec.structs.replace(scenario, node_labels=())).identity
    for name in scenario.schemes:
        run = Run(msgspec.structs.replace(setup(scenario), validate=True), prepared.jobs, SCHEMES[name])
        watch = RunWatch(run)
        used: set[tuple[str, str]] = set()

        def look(watch: RunWatch = watch, used: set[tuple[str, str]] = used) -> None:
            check_all(watch)
            used |= {(each.app.queue.name, each.node.label) for each in watch.live}

        result = run.go(look)
        check_end(watch)
        assert len(result.jobs) == len(prepared.jobs)
        assert ("eng.lab", "gpu") in used
        assert used <= {("eng.lab", "gpu"), ("eng.prod", ""), ("eng.prod", "ne")}
    with pytest.raises(BadInput, match=r"eng\.lab requests the label gpu, which no node has"):
        check(msgspec.structs.replace(scenario, node_labels=labels[1:]), PLACE)


def test_maps_and_reduces_of_a_job_may_request_different_labels(scenario, tmp_path):
    """The controller sees the nodes of each label, and what is requested of them."""
    file = write_file(tmp_path, {**NESTED, **LABELLED, "maximum-am-resource-percent": "0.5"})
    labels = (NodeLabel(name="gpu", nodes=2), NodeLabel(name="ne", nodes=1, exclusive=False))
    entry = WorkloadEntry(spec="synthetic:research-s", queue="eng.prod", map_label="gpu", reduce_label="")
    scenario = msgspec.structs.replace(
        scenario, nodes=6, scheduler_xml=str(file), node_labels=labels, workloads=(entry,)
    )
    check(scenario, PLACE)
    prepared = prepare(scenario)
    run = Run(msgspec.structs.replace(setup(scenario), validate=True), prepared.jobs, SCHEMES["natjam"])
    watch = RunWatch(run)
    used: set[tuple[int, str]] = set()
    requested: set[tuple[str, int]] = set()

    scheduler = run.cluster.rm.scheduler
    assert isinstance(scheduler, TreeScheduler)

    def look() -> None:
        if run.cluster.kernel.now_ms % 1000:
            return
        check_all(watch)
        running = [each for each in watch.live if each.state == RUNNING and each.app.master.job.map_label]
        used.update((each.kind, each.node.label) for each in running)
        seen = run.port._snapshot(run.cluster.kernel.now_ms)
        for label, part in seen.labelled.items():
            assert part.total == scheduler.totals[label]
            assert len(part.nodes) == {"gpu": 2, "ne": 1}[label]
            assert part.is_shared == (label == "ne")
            held = sum(view.used.memory_mib for view in part.applications)
            there = [each for each in scheduler.live.values() if each.node.label == label]
            assert held == sum(each.memory_mib for each in there if each.app.finished_at_ms is None)
            assert set(part.free_by_node) <= set(part.nodes)
            requested.update((label, each.priority) for view in part.applications for each in view.requests)
        assert not set(seen.free_by_node) & {name for part in seen.labelled.values() for name in part.nodes}

    result = run.go(look)
    check_end(watch)
    assert len(result.jobs) == len(prepared.jobs)
    assert {(MAP, "gpu"), (REDUCE, "")} <= used
    assert not {(MAP, ""), (REDUCE, "gpu")} & used
    assert ("gpu", MAP_PRIORITY) in requested

    for changed, problem in (
        ({"map_label": "ssd"}, "no node has the label 'ssd'"),
        ({"queue": "res"}, "the queue res may not request gpu"),
    ):
        other = msgspec.structs.replace(scenario, workloads=(msgspec.structs.replace(entry, **changed),))
        with pytest.raises(BadInput, match=problem):
            check(other, PLACE)
