"""The desk in the daemon: options, the clerk's thread, the loop that goes on whatever the desk does."""

from __future__ import annotations

import threading
from pathlib import Path

import msgspec
import pytest
from click.testing import CliRunner

from tests.daemon_plans import plan_for
from tests.unit.daemon.at_the_desk import HERE, MINUTE, AtTheDesk, Past, asking
from tests.unit.daemon.test_loop import Attached, busy, daemon
from tests.unit.daemon.test_wiring import plan
from yarnctl.cli import PROGRAM
from yarnctl.cli.run import command
from yarnctl.command_line import exit_status_of
from yarnctl.config import ClusterAddress
from yarnctl.daemon.admission.backlog import Size, containers
from yarnctl.daemon.admission.building import (
    AdmissionOptions,
    ClusterSize,
    PoolSize,
    make_admission_controller,
    open_history,
    task_mib,
)
from yarnctl.daemon.admission.history_worker import HistoryWorker
from yarnctl.daemon.admission.pool_files import PoolSettings
from yarnctl.daemon.admission.request_queue import AccountCommand
from yarnctl.daemon.running import Plan, SteadyClock, make_loop
from yarnctl.daemon.state_dir import StateDir
from yarnctl.deciding.admission.book import Admission
from yarnctl.deciding.admission.capacity import Pool
from yarnctl.deciding.admission.mechanisms import MECHANISMS
from yarnctl.deciding.admission.mechanisms.promises import MrmChoices
from yarnctl.deciding.admission.pricing.accounts import TokensCharged
from yarnctl.deciding.admission.records import Budget, Estimate
from yarnctl.deciding.policies import FOREVER_MS, JOB_POLICIES, TASK_POLICIES
from yarnctl.deciding.records import Decision, Ranking
from yarnctl.deciding.settings import DEFAULT
from yarnctl.errors import BadInput, Different, InvariantBroken, Unreachable
from yarnctl.hadoop.wire import yarn
from yarnctl.journal.file import JournalFile, Line, read_last
from yarnctl.journal.rebuild import rebuild
from yarnctl.journal.replay import replay

# --- the loop -------------------------------------------------------------------------------------------


def loop_at(there: AtTheDesk):
    """Return a loop over a tiny cluster with this desk, its journal its own."""
    loop, journal = daemon(busy(), enforce=False)
    loop.admission = there.desk
    there.window.on_wake = loop.wake
    return loop, journal


def test_the_loop_follows_the_desk_and_shows_it():
    there = AtTheDesk(history=False)
    loop, journal = loop_at(there)
    loop.run(10)
    errand = there.hand(asking())
    loop.run(20)
    assert errand.answer == f"adm-{HERE}-1"
    shown = loop.publisher.view.admission
    assert shown is not None
    assert [each.state for each in shown.admissions] == ["admitted"]
    tags = [record.__struct_config__.tag for record in journal.records]
    assert tags.index("header") < tags.index("gate-set") < tags.index("admission-asked")
    assert there.window.submit(asking(), 60_000) is not None, "it has stopped: nobody waits at its window"


def test_a_fault_of_the_desk_is_no_reason_to_make_room_for_nobody():
    there = AtTheDesk(history=False)
    loop, journal = loop_at(there)

    def broken() -> Size:
        raise ZeroDivisionError

    there.desk._pool_sizes._sizes[""].measure = broken
    loop.run(40)
    assert loop.status().tick_errors >= 1
    assert "admission failed: ZeroDivisionError" in loop.status().last_error
    assert any(isinstance(record, Decision) for record in journal.records)


@pytest.mark.parametrize("fault", [OSError("no space left"), InvariantBroken("x", "y")])
def test_what_cannot_be_written_down_ends_the_loop(fault):
    there = AtTheDesk(history=False)
    loop, journal = loop_at(there)
    loop.run(2)
    there.hand(asking())

    def full(records: object) -> None:
        raise fault

    journal.append = full
    with pytest.raises(type(fault)):
        loop.run(40)


# --- options --------------------------------------------------------------------------------------------


def given(*words: str) -> Plan:
    """Return the plan of ``yarnctl run`` with these words."""
    return plan_for("--rm", "http://127.0.0.1:1", *words)


def test_there_is_no_gate_unless_asked_for():
    assert given().admitting is None
    assert given("--admission").admitting == AdmissionOptions(allocator="justice")
    full = given(
        *("--admission", "pythia", "--admission-queue", "production", "--admission-capacity", "40"),
        *("--admission-container-mib", "2048", "--admission-lease-s", "30", "--history", "http://jhs:19888/"),
    ).admitting
    assert full == AdmissionOptions(
        allocator="pythia", queues=("production",), capacity=40, container_mib=2048,
        history="http://jhs:19888", lease_ms=30_000,
    )  # fmt: skip


MARKET = ("--admission", "mrm", "--mode", "deadlines")


def test_a_gate_that_sells_deadlines_takes_its_own_choices() -> None:
    assert given(*MARKET).admitting == AdmissionOptions(allocator="mrm")
    chosen = given(*MARKET, "--admission-kappa", "2.5", "--admission-late-ratio", "0.01").admitting
    assert chosen is not None
    assert chosen.choices == MrmChoices(kappa=2.5, late_ratio=0.01)


@pytest.mark.parametrize(
    ("words", "known"),
    [(("--policy", "WRONG"), ", ".join(JOB_POLICIES)), (("--task-policy", "WRONG"), ", ".join(TASK_POLICIES)),
     (("--admission", "WRONG"), ", ".join(MECHANISMS))],
)  # fmt: skip
def test_a_name_that_is_not_known_is_refused_with_the_list_before_anything_is_asked(
    words: tuple[str, ...], known: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    told = ["run", "--rm", "http://127.0.0.1:1", "--state-dir", str(tmp_path / "state"), *words]
    assert exit_status_of(PROGRAM, told) == 2
    said = capfd.readouterr().err
    assert (words[0] in said, "'WRONG'" in said, known in said) == (True, True, True)
    assert len(said.splitlines()) == 1
    assert not (tmp_path / "state").exists()


@pytest.mark.parametrize(
    ("words", "where"),
    [
        (("--admission", "magic"), "--admission"),
        (("--admission-queue", "production"), "--admission-queue"),
        (("--history", "http://jhs:19888"), "--history"),
        (("--admission", "pythia", "--history", "jhs"), "--history"),
        (("--policy", "WRONG"), "--policy"),
        (("--task-policy", "WRONG"), "--task-policy"),
        (("--admission-kappa", "2"), "--admission-kappa"),
        (("--admission", "pythia", "--admission-kappa", "2"), "--admission-kappa"),
        (("--admission", "pythia", "--admission-late-ratio", "0.1"), "--admission-late-ratio"),
        *(
            ((*MARKET, "--admission-kappa", wrong), "--admission-kappa")
            for wrong in ("0", "-1", "nan", "inf")
        ),
        *(
            ((*MARKET, "--admission-late-ratio", wrong), "--admission-late-ratio")
            for wrong in ("0", "0.5", "-0.1", "nan", "inf", "1e-17")
        ),
    ],
)
def test_what_cannot_be_meant_is_refused(words, where):
    with pytest.raises(BadInput) as refused:
        given(*words)
    assert refused.value.where == where


def test_help_says_what_the_gate_does():
    shown = CliRunner().invoke(command, ["--help-all"]).output
    for word in ("--admission ", "--admission-queue", "--admission-capacity", "--history"):
        assert word in shown


def test_a_daemon_with_a_gate_goes_on_from_its_journal(tmp_path: Path):
    there = AtTheDesk(history=False)
    admission = there.ask(5)
    with StateDir(tmp_path / "state", lambda: "abcd1234") as state:
        with JournalFile(state.journal, durable=False) as file:
            file.append(there.records)
        told = msgspec.structs.replace(
            plan(tmp_path), admitting=AdmissionOptions(allocator="pythia", history="off")
        )
        loop, journal = make_loop(told, state, busy(), rebuild(state.journal))
        assert loop.admission is not None
        assert loop.admission.store.admissions[admission.admission].state == "admitted"
        assert loop.admission.settings.instance == "abcd1234"
        shown = loop.publisher.view.admission  # the service may be asked before the first tick
        assert shown is not None
        assert [each.admission for each in shown.admissions] == [admission.admission]
        journal.close()


def test_a_daemon_without_a_gate_leaves_admissions_alone_and_says_so(tmp_path: Path, caplog):
    there = AtTheDesk(history=False)
    there.ask(5)
    with StateDir(tmp_path / "state", lambda: "abcd1234") as state:
        with JournalFile(state.journal, durable=False) as file:
            file.append(there.records)
        loop, journal = make_loop(plan(tmp_path), state, busy(), rebuild(state.journal))
        journal.close()
    assert loop.admission is None
    assert "1 open admissions are ignored" in caplog.text


# --- the cluster's size -------------------------------------------------------------------------------------


LEAF = "capacitySchedulerLeafQueueInfo"


class Sized:
    """A ResourceManager that tells nodes, queues and its configuration."""

    def __init__(self, *nodes_mib: int) -> None:
        vectors = [yarn.Vector(memory_mib=mib, vcores=8) for mib in nodes_mib]
        self.rows = [
            yarn.NodeRow(node=f"n{place}", state="RUNNING", capacity=vector)
            for place, vector in enumerate(vectors)
        ]
        self.keys: dict[str, str] = {}
        self.asked = 0

    def configuration(self) -> dict[str, str]:
        self.asked += 1
        return self.keys

    def nodes(self) -> list[yarn.NodeRow]:
        return self.rows

    def root_queue(self) -> yarn.QueueInfo:
        leaves = (
            yarn.QueueInfo(name="production", kind=LEAF, guaranteed_percent=40.0),
            yarn.QueueInfo(name="research", kind=LEAF),
        )
        return yarn.QueueInfo(name="root", below=yarn.QueueList(rows=leaves))


def test_make_admission_controller_passes_the_last_time_and_the_wall_clock() -> None:
    """A clock that was set back between two runs, or within one, is seen by these two alone."""
    clock = SteadyClock(lambda: 9_000_000_000, lambda: 0)
    options = AdmissionOptions(allocator="pythia", history="off")
    cluster = ClusterAddress(resource_managers=("http://rm:8088",))
    made = make_admission_controller(options, cluster, "a1b2", None, clock, last_ms=7)
    assert made._last_ms == 7
    assert made._reconciler._wall_ahead_ms == clock.ahead_ms


def test_a_node_holds_whole_containers_only():
    size = ClusterSize(Sized(4_000, 5_000), AdmissionOptions(allocator="pythia"))
    assert size() == Size(3 + 4, 1024)


def test_a_queue_behind_the_gate_may_give_its_guarantee():
    queues = ("root.production",)
    assert (
        ClusterSize(Sized(10_240, 10_240), AdmissionOptions(allocator="pythia", queues=queues))().capacity
        == 8
    )
    with pytest.raises(Unreachable, match="leaf queue sales does not exist"):
        ClusterSize(Sized(10_240), AdmissionOptions(allocator="pythia", queues=("sales",)))()


def test_containers_are_as_large_as_the_scheduler_makes_them():
    assert task_mib({"yarn.scheduler.minimum-allocation-mb": "2048"}) == 2048
    assert task_mib({"yarn.scheduler.minimum-allocation-mb": "128"}) == 1024
    assert task_mib({"yarn.scheduler.minimum-allocation-mb": "many"}) == 1024
    manager = Sized(8_192)
    size = ClusterSize(manager, AdmissionOptions(allocator="pythia", container_mib=512))
    assert (size(), manager.asked) == (Size(16, 512), 0)
    told = ClusterSize(manager, AdmissionOptions(allocator="pythia", capacity=5))
    assert told() == Size(5, 1024, reported=True)


class Labelled(Sized):
    """Two nodes without a label, and two of ``large`` of which ``root.spark`` may have three quarters."""

    def __init__(self) -> None:
        super().__init__(4_096, 4_096, 8_192, 8_192)
        self.rows = [
            msgspec.structs.replace(row, labels=(("", "large")[place > 1],))
            for place, row in enumerate(self.rows)
        ]

    def root_queue(self) -> yarn.QueueInfo:
        shares = yarn.PartitionShares(
            (
                yarn.PartitionShare("", maximum_percent=50.0),
                yarn.PartitionShare("large", maximum_percent=75.0),
            )
        )
        leaves = (
            yarn.QueueInfo(
                name="spark", kind=LEAF, shares=shares, default_label="large", maximum_percent=50.0
            ),
            yarn.QueueInfo(name="flink", kind=LEAF, maximum_percent=50.0),
            yarn.QueueInfo(name="lost", kind=LEAF, default_label="large"),
        )
        return yarn.QueueInfo(name="root", below=yarn.QueueList(rows=leaves))


@pytest.mark.parametrize(
    ("queue", "label", "most"),
    [("root.spark", "large", 12), ("root.flink", "", 4)],
    ids=["three quarters of its label's nodes", "half of the nodes without a label"],
)
def test_a_pool_has_its_queue_s_maximum_of_the_nodes_with_its_label(queue, label, most):
    told = PoolSettings(name="pool", queue=queue, label=label)
    assert PoolSize(Labelled(), told)() == Size(most, 1024)


@pytest.mark.parametrize(
    ("queue", "label", "said"),
    [
        ("root.flink", "large",
         "the default-node-label-expression of queue root.flink is empty; set it to large"),
        ("root.spark", "small", "of queue root.spark is large; set it to small"),
        ("root.lost", "large", "queue root.lost has no capacity on nodes with label large"),
        ("root.gone", "", "leaf queue root.gone does not exist"),
    ],
)  # fmt: skip
def test_a_pool_whose_containers_would_run_elsewhere_is_refused(queue, label, said):
    for capacity in (None, 5) if "default-node" in said else (None,):
        told = PoolSettings(name="pool", queue=queue, label=label, capacity=capacity)
        with pytest.raises(Unreachable, match=f"pool pool: .*{said}"):
            PoolSize(Labelled(), told)()


def test_the_cluster_of_the_gate_is_the_nodes_without_a_label():
    assert ClusterSize(Labelled(), AdmissionOptions(allocator="pythia"))() == Size(8, 1024)


@pytest.mark.parametrize(("pool", "held"), [("", 2), ("large", 4)])
def test_what_an_application_holds_on_nodes_with_a_label_is_no_load_of_the_cluster(pool, held):
    partitions = (
        yarn.PartitionUse("", used=yarn.Vector(2_048, 2)),
        yarn.PartitionUse("large", used=yarn.Vector(2_048, 2)),
    )
    row = yarn.AppInfo(
        "application_1_0001",
        containers=4,
        allocated_mib=4_096,
        allocated_vcores=4,
        uses=yarn.Uses(partitions),
    )
    assert containers(row, Pool(pool, 10, 1024)) == held


def test_a_size_told_by_a_person_stands_at_once():
    there = AtTheDesk(history=False)
    there.yarn.size = Size(3, 1024, reported=True)
    there.tick()
    assert there.book.gate is not None
    assert there.gate.capacity == 3


# --- the clerk ----------------------------------------------------------------------------------------------


def test_the_clerk_asks_in_a_thread_of_his_own_and_wakes_the_loop():
    past, woken = Past(), threading.Event()
    past.estimates["job"] = Estimate(MINUTE, 0, "history")
    clerk = HistoryWorker(lambda: past, woken.set)
    answer = clerk.ask(lambda history: (history.estimate("job", "ann"), threading.current_thread().name))
    assert woken.wait(30)
    assert answer.done
    assert answer.value == (Estimate(MINUTE, 0, "history"), "history")
    clerk.close()


def test_a_history_that_hangs_holds_nobody():
    """The loop goes on, and a request waits for an estimate for a short time only."""
    hangs = threading.Event()

    class Hanging(Past):
        def estimate(self, name: str, user: str, kind: str = "mapreduce", most: int = 0) -> Estimate | None:
            hangs.wait(60)
            return None

    there = AtTheDesk()
    there.go(3_000)
    clerk = HistoryWorker(Hanging, lambda: None)
    there.desk._history_worker = clerk
    there.desk._feedback = None
    admission = there.ask(5)
    hangs.set()
    clerk.close()
    assert (admission.state, admission.request.estimate) == ("admitted", None)


def test_nobody_is_asked_where_nobody_keeps_a_history(caplog):
    tries: list[int] = []

    def nowhere() -> Past:
        tries.append(1)
        raise BadInput("--history", "nobody is named")

    clerk = HistoryWorker(nowhere, lambda: None, in_thread=False)
    answers = [clerk.ask(lambda history: history.recent(0)) for _ in range(3)]
    assert all(each.done and each.problem for each in answers)
    assert len(tries) == 1
    assert caplog.text.count("history server unavailable") == 1


def test_a_history_that_cannot_be_reached_yet_is_tried_again():
    tries: list[int] = []

    def later() -> Past:
        tries.append(1)
        if len(tries) == 1:
            raise Unreachable("http://rm")
        return Past()

    clerk = HistoryWorker(later, lambda: None, in_thread=False)
    assert clerk.ask(lambda history: history.recent(0)).problem
    assert clerk.ask(lambda history: history.recent(0)).value == ()


def test_the_history_is_found_or_named():
    cluster = ClusterAddress(resource_managers=("http://127.0.0.1:1",))
    assert open_history("http://127.0.0.1:1", cluster).capacity == 1
    with pytest.raises(Unreachable):
        open_history("", cluster)


# --- which deadlines rank -----------------------------------------------------------------------------


SOLD = Estimate(600_000, 0, "me")


def paid(there: AtTheDesk, minutes: float, name: str = "") -> Admission:
    """Return a paid admission, submitted as ``name`` and claimed ("": not submitted)."""
    found = there.ask(3, minutes, estimate=SOLD, budget=Budget("analytics", 10**9), key=f"{minutes}")
    if name:
        there.submit(found, name)
        there.go(2_000)
        assert there.state(found) == "running"
    return found


def journal_of(folder: Path, there: AtTheDesk, cluster: Attached, allocator: str) -> list[Line]:
    """Return the journal of a daemon that goes on from a desk's journal."""
    settings = msgspec.structs.replace(DEFAULT, mode="deadlines", observe_only=True)
    gate = AdmissionOptions(allocator=allocator, history="off")
    told = msgspec.structs.replace(plan(folder), settings=settings, admitting=gate)
    with StateDir(folder / "state", lambda: "abcd1234") as state:
        with JournalFile(state.journal, durable=False) as file:
            file.append(there.records)
        loop, journal = make_loop(told, state, cluster, rebuild(state.journal))
        loop.run(6)
        journal.close()
        return list(read_last(state.journal))


def last_ranking(lines: list[Line]) -> Ranking:
    return [line.record for line in lines if isinstance(line.record, Ranking)][-1]


def tagged(*names: str) -> Attached:
    """Return a cluster of applications, each with a ``deadline:`` tag of an instant before all others."""
    cluster = Attached(5, 4, {"default": 20})
    for place, name in enumerate(names):
        cluster.submit(name, "default", 1, deadline_at_ms=1_000 + place)
    return cluster


def test_under_a_market_only_paid_and_claimed_admissions_are_ranked_by_deadline(tmp_path: Path) -> None:
    """A tag without an admission, and one of an expired, refunded admission, rank nothing.

    The deadline of a paid admission is the sold one, whatever the tag says.
    """
    there = AtTheDesk("mrm", history=False)
    there.go(4_000)
    for wanted in (
        AccountCommand(account="analytics"),
        AccountCommand(account="analytics", credit_mtokens=10**7),
    ):
        there.hand(wanted)
        there.tick()
    expired = paid(there, 300)
    there.go(70_000)
    assert there.state(expired) == "expired"
    late, soon = paid(there, 200, "application_1_0003"), paid(there, 100, "application_1_0004")
    names = ("application_1_0001", "application_1_0002", "application_1_0003", "application_1_0004")
    lines = journal_of(tmp_path, there, tagged(*names), "mrm")
    last = last_ranking(lines)
    by_deadline = {row.application: row for row in last.order if row.urgency_ms < FOREVER_MS}
    assert list(by_deadline) == ["application_1_0004", "application_1_0003"]
    assert [row.priority for row in by_deadline.values()] == [10, 9]
    for found in (late, soon):
        held = there.book.admissions[found.admission]
        assert held.reservation is not None
        assert by_deadline[held.application].urgency_ms == held.reservation.until_ms
    assert {row.priority for row in last.order if row.urgency_ms == FOREVER_MS} <= {0}
    assert replay(lines, "journal", closed=False).steps
    charge = [line for line in lines if isinstance(line.record, TokensCharged)][-1]
    unpaid = [line for line in lines if line is not charge]
    with pytest.raises(Different, match="application_1_0004 is ranked by a deadline, and has no paid"):
        replay(unpaid, "journal", closed=False)


def test_without_a_market_a_deadline_tag_ranks_its_application(tmp_path: Path) -> None:
    lines = journal_of(tmp_path, AtTheDesk(history=False), tagged("application_1_0001"), "pythia")
    last = last_ranking(lines)
    assert [(row.urgency_ms, row.priority) for row in last.order] == [(1_000, 10)]


def test_jobs_that_never_ran_are_estimated_only_if_so_told() -> None:
    for told, unseen in (((), False), (("--admission-unseen",), True)):
        admitting = given("--admission", *told).admitting
        assert admitting is not None
        assert admitting.unseen is unseen
    with pytest.raises(BadInput, match="requires --admission"):
        given("--admission-unseen")
