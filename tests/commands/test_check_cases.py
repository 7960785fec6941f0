"""``yarnctl check`` and the start of ``yarnctl run`` on recorded clusters, and on more of each kind."""

from __future__ import annotations

import json
from importlib import import_module
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests.commands.test_queue_cases import TICKS, Daemon, checked, queues, served
from tests.unit.hadoop.replaying import Replay, Reply, routes
from tests.unit.test_check import CONF, SCHEDULER, but, leaf, told
from yarnctl.attach.check.next_steps import next_steps, run_options
from yarnctl.attach.check.preflight import CAPACITY, Facts, with_every_leaf
from yarnctl.attach.check.rules import check_results
from yarnctl.attach.connection.cluster_queues import QueueNames
from yarnctl.cli import PROGRAM
from yarnctl.command_line import exit_status_of
from yarnctl.deciding.queue_names import NamedQueues, QueueTree
from yarnctl.hadoop.wire.yarn import (
    NodeRow,
    QueueAcl,
    QueueAcls,
    QueueInfo,
    QueueList,
    Vector,
)

GPUS = msgspec.Raw(b'{"resourceInformation": [{"name": "yarn.io/gpu", "value": 4}]}')
SPOKEN = f"set {CAPACITY}"


@pytest.fixture(autouse=True)
def _quick_looks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(import_module("yarnctl.cli.run"), "OBSERVATION_AGE_MS", 10)


def fixes(findings: dict[str, Any]) -> dict[str, str]:
    return {name: one["fix"].replace(SPOKEN, "") for name, one in findings.items() if one["fix"]}


def tree(*queues: QueueInfo, **more: Any) -> Facts:
    return but(root=QueueInfo("root", below=QueueList(queues)), **more)


def parent(name: str, *queues: QueueInfo, **more: Any) -> QueueInfo:
    return QueueInfo(name, below=QueueList(queues), **more)


def child(name: str, share: float, **more: Any) -> QueueInfo:
    return leaf(name, share, more.pop("user_limit_factor", 100), **more).queue


# --- the key that binds, in its unit, with its siblings ------------------------------------------------


def test_a_fix_names_the_ancestor_that_binds_and_the_own_key_of_masters(
    capfd: pytest.CaptureFixture[str],
) -> None:
    with served("c10") as url:
        first = fixes(checked(url, capfd, *queues("etl", "team1"))[1])
        second = fixes(checked(url, capfd, *queues("p2", "default"))[1])
    assert first["maxima"] == "root.prod.p1.maximum-capacity=100"
    assert second["am-share"].split("; ")[0] == "root.prod.p2.maximum-am-resource-percent=0.5"
    assert second["production-share"] == "root.default.capacity=5; root.prod.capacity=65"
    assert second["maxima"] == "root.prod.p2.maximum-capacity=100"


def test_a_fix_of_one_share_leaves_the_sum_of_siblings_at_100(capfd: pytest.CaptureFixture[str]) -> None:
    with served("c11") as url:
        words = ["--preempting", "data_a", "--preempting", "data_b", "--preemptable", "data_low"]
        found = fixes(checked(url, capfd, *words)[1])
    assert found["research-share"] == "root.data_low.maximum-capacity=100"


@pytest.mark.parametrize(
    ("facts", "rule", "fix"),
    [
        (
            tree(
                child("production", 30),
                parent("teams", child("research", 70), guaranteed_percent=70.0),
            ),
            "research-share",
            "root.production.capacity=95; root.teams.capacity=5",
        ),
        (
            tree(
                child("production", 50, mode="weight", weight=2.0),
                child("research", 50, mode="weight", weight=2.0),
            ),
            "production-share",
            "root.research.capacity=0.11w",
        ),
        (
            tree(
                child("production", 50, mode="absolute", guaranteed=Vector(500, 9)),
                child("research", 50, mode="absolute", guaranteed=Vector(500, 11)),
                nodes=None,
            ),
            "production-share",
            "set the capacity and maximum-capacity",
        ),
        (
            tree(
                child("production", 50, mode="absolute", guaranteed=Vector(500, 9)),
                child("research", 50, mode="absolute", guaranteed=Vector(500, 11)),
                nodes=(NodeRow("n1:1", capacity=Vector(1000, 20)),),
            ),
            "production-share",
            "root.production.capacity=[memory=950,vcores=19]; root.research.capacity=[memory=50,vcores=1]",
        ),
        (
            tree(
                child("production", 50, mode="absolute", guaranteed=Vector(500, 9)),
                child("research", 50, mode="absolute", guaranteed=Vector(500, 11)),
                nodes=(NodeRow("n1:1", capacity=Vector(1000, 20, GPUS)),),
            ),
            "production-share",
            "set the capacity and maximum-capacity",
        ),
        (
            tree(
                child("production", 95),
                parent(
                    "a",
                    parent("b", child("research", 5, maximum_percent=20.0),
                        guaranteed_percent=5.0, maximum_percent=20.0),
                    guaranteed_percent=5.0, maximum_percent=40.0,
                ),
            ),
            "maxima",
            "root.a.maximum-capacity=100; root.a.b.maximum-capacity=100",
        ),
    ],
    ids=["an only child", "weights", "unknown total", "absolute", "absolute with GPUs", "two ancestors"],
)  # fmt: skip
def test_more_trees_get_a_fix_in_their_own_unit(facts: Facts, rule: str, fix: str) -> None:
    severity, _, found = told(facts)[rule]
    assert severity in ("warn", "fail")
    assert found.replace(SPOKEN, "").startswith(fix)


@pytest.mark.parametrize("mode", ["queues", "guarantees"])
def test_a_parent_is_judged_by_its_leaves_and_stays_in_the_options_to_run(mode: str) -> None:
    users = parent("users", child("alice", 60), child("bob", 0), guaranteed_percent=60.0)
    named = {"preempting_queues": ("production",), "preemptable_queues": ("users", "adhoc")}
    facts = tree(child("production", 40), users, parent("adhoc", queue_type="parent"), mode=mode, **named)
    found = told(facts)
    shares = "root.production 40 %, root.users.alice 60 %, root.users.bob 0 %"
    assert found["queues"][:2] == ("ok", f"{shares}, root.adhoc has no leaf yet")
    if mode == "queues":
        assert found["research-share"][:2] == ("fail", "root.users.bob is guaranteed 0 %")
    words = run_options(facts)
    named_in_run = [words[at + 1] for at, word in enumerate(words) if word.startswith("--preempt")]
    assert named_in_run == ["root.production", "root.users", "root.adhoc"]


# --- what the answer at hand shows ---------------------------------------------------------------------


def test_rights_and_masters_are_read_from_the_answer_at_hand(capfd: pytest.CaptureFixture[str]) -> None:
    with served("c12") as url:
        words = queues("Quality", "Development")
        _, ours = checked(url, capfd, *words)
        _, theirs = checked(url, capfd, *words, "--user", "dev1")
    assert ours["am-share"]["severity"] == "ok"
    assert "20 % of root.Applications.Quality, 20 % of root.Applications.Dev" in ours["am-share"]["seen"]
    paths = "root.Applications.Quality, root.Applications.Development"
    assert ours["acls"]["seen"].startswith(f"groups administer {paths};")
    assert theirs["acls"]["seen"].startswith("groups administer root.Applications.Quality;")
    assert fixes(theirs)["acls"] == "root.Applications.Quality.acl_administer_queue=qa1,dev1"


def test_absent_keys_have_defaults_and_ten_is_ten_times_the_queue(capfd: pytest.CaptureFixture[str]) -> None:
    with served("c13") as url:
        _, found = checked(url, capfd, *queues("serve", "adhoc"))
    assert found["am-share"]["severity"] == "warn"
    assert "10 times root.serve, 10 times root.adhoc" in found["am-share"]["seen"]
    assert found["locality-delay"]["severity"] == "warn"
    assert "40" in found["locality-delay"]["seen"]
    assert found["calculator"]["severity"] == "ok"


def acl(listed: str) -> QueueAcls:
    return QueueAcls((QueueAcl("SUBMIT_APP", "*"), QueueAcl("ADMINISTER_QUEUE", listed)))


@pytest.mark.parametrize(
    ("of_root", "of_leaf", "severity", "fix"),
    [
        ("*", " ", "ok", ""),
        (" ", "yarnctl", "ok", ""),
        (" ", " ", "fail", "=yarnctl"),
        (" ", "ann staff", "unknown", "=ann,yarnctl staff"),
    ],
)
def test_the_rights_of_all_ancestors_count(of_root: str, of_leaf: str, severity: str, fix: str) -> None:
    rows = tuple(child(name, 50, acls=acl(of_leaf)) for name in ("production", "research"))
    root = QueueInfo("root", acls=acl(of_root), below=QueueList(rows))
    configuration = {**CONF, "yarn.acl.enable": "true", "yarn.admin.acl": " "}
    found = told(but(root=root, configuration=configuration, scheduler=None))["acls"]
    assert found[0] == severity
    assert found[2].split("; ")[0].endswith(fix)


@pytest.mark.parametrize(
    ("shown", "keys", "severity"),
    [
        (0.5, {}, "ok"),
        (None, {}, "warn"),
        (None, SCHEDULER, "ok"),
        (50.0, {}, "warn"),
        (0.05, SCHEDULER, "warn"),
    ],
)
def test_the_share_of_masters_is_the_shown_one_else_its_key_else_the_default(
    shown: float | None, keys: dict[str, str], severity: str
) -> None:
    rows = (child("production", 95, am_ratio=shown), child("research", 5, am_ratio=shown))
    assert told(tree(*rows, scheduler=keys))["am-share"][0] == severity


@pytest.mark.parametrize(("of_leaf", "of_root", "key"), [
    (2, 9, "root.production.max-parallel-apps=5"),
    (9, 2, "root.max-parallel-apps=5"),
    (9, 9, f"raise {CAPACITY}user.max-parallel-apps, which limits each user"),
])  # fmt: skip
def test_applications_that_max_parallel_apps_holds_back_are_named_with_the_queue_that_binds(
    of_leaf: int, of_root: int, key: str
) -> None:
    waiting = child("production", 95, applications=5, applications_active=2, parallel_max=of_leaf)
    root = QueueInfo("root", parallel_max=of_root, below=QueueList((waiting, child("research", 5))))
    severity, seen, fix = told(but(root=root))["parallel-apps"]
    assert (severity, fix.replace(SPOKEN, "")) == ("warn", key)
    assert "3 applications of root.production" in seen


def test_a_stopped_ancestor_is_started_with_its_leaf() -> None:
    research = child("research", 5, state="STOPPED")
    teams = parent("teams", research, guaranteed_percent=5.0, state="STOPPED")
    fix = told(tree(child("production", 95), teams))["queues"][2]
    assert fix.replace(SPOKEN, "") == "root.teams.state=RUNNING; root.teams.research.state=RUNNING"


# --- neighbouring daemons ------------------------------------------------------------------------------


def test_a_fair_scheduler_is_named_by_its_answer(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    with served("c14") as url:
        status, found = checked(url, capfd)
        daemon = Daemon(url, tmp_path, capfd)
    assert (status, found["scheduler"]["severity"]) == (1, "fail")
    assert found["scheduler"]["seen"] == "FairScheduler is not supported"
    assert "CapacityScheduler" in found["scheduler"]["fix"]
    assert daemon.status == 2
    assert "FairScheduler is not supported; set yarn.resourcemanager.scheduler.class=" in daemon.err


@pytest.mark.parametrize(("answer", "words"), [
    ({"type": "fifoScheduler", "capacity": 1.0, "qstate": "RUNNING"}, "FifoScheduler is not supported"),
    ({"@xsi.type": "fairScheduler", "rootQueue": {"queueName": "root"}}, "FairScheduler is not supported"),
    ({"type": "fairScheduler", "rootQueue": {"queueName": "root", "childQueues": [{"queueName": "root.a"}]}},
     "FairScheduler is not supported"),
    ({"type": "capacityScheduler", "capacity": 100.0}, "missing required field"),
    ({"rootQueue": {}}, "missing required field"),
])  # fmt: skip
def test_an_answer_of_another_type_is_named_only_by_its_type(
    answer: dict[str, Any], words: str, capfd: pytest.CaptureFixture[str]
) -> None:
    info = {"clusterInfo": {"id": 1, "haState": "ACTIVE", "hadoopVersion": "3.4.2"}}
    answers: dict[str, Reply | str | bytes] = {
        "/ws/v1/cluster/info": json.dumps(info),
        "/ws/v1/cluster/scheduler": json.dumps({"scheduler": {"schedulerInfo": answer}}),
    }
    with Replay(routes(answers)) as rm:
        exit_status_of(PROGRAM, ["check", "--rm", rm.url, "--json"])
    found = {one["id"]: one for one in json.loads(capfd.readouterr().out)["findings"]}
    assert words in found["scheduler"]["seen"]


def test_a_router_is_named_with_its_sub_clusters(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    with served("c17") as url:
        assert exit_status_of(PROGRAM, ["check", "--rm", url, "--name-node", url]) == 2
        said = capfd.readouterr().err
        daemon = Daemon(url, tmp_path, capfd)
    assert daemon.status == 2
    for text in (said, daemon.err):
        assert "this is a Router of a federation with 2 sub-clusters: SC-1, SC-2; run one daemon" in text


def cluster(name: str) -> dict[str, str]:
    """Return a cluster of a federation as Jersey writes it."""
    return {"subClusterId": name, "id": "1790000000000"}


@pytest.mark.parametrize(
    ("clusters", "said"),
    [
        ([cluster("SC-1"), cluster("SC-2")], "2 sub-clusters: SC-1, SC-2;"),
        (cluster("SC-1"), "1 sub-clusters: SC-1;"),
        ([cluster(f"c{number:02}") for number in range(30)], "30 sub-clusters: c00, c01,"),
    ],
)
def test_a_router_is_named_by_what_jersey_makes_of_its_answer(
    clusters: object, said: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """Without the root element, numbers as text, a list of one as an object: Jersey 1 by its defaults."""
    answer = json.dumps({"id": "0", "startedOn": "0", "subCluster": clusters})
    with Replay(routes({"/ws/v1/cluster/info": answer})) as router:
        assert exit_status_of(PROGRAM, ["check", "--rm", router.url, "--name-node", router.url]) == 2
        checked = capfd.readouterr().err
        daemon = Daemon(router.url, tmp_path, capfd)
    assert daemon.status == 2
    for text in (checked, daemon.err):
        assert f"this is a Router of a federation with {said}" in text
        assert "run one daemon for each sub-cluster" in text


# --- the options of run --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("case", "named", "options"),
    [
        ("c10", queues("etl", "team1"), "--preempting root.prod.p1.etl --preemptable root.lab.team1"),
        ("c12", [], "--preempting root.Applications.Development --preemptable root.Applications.Quality"),
        ("c16", [], "--mode deadlines --preempting root.default"),
        ("c10", ["--mode", "guarantees"], "--mode guarantees"),
        (
            "c10",
            ["--mode", "guarantees", "--preemptable", "team1"],
            "--mode guarantees --preemptable root.lab.team1",
        ),
    ],
)
def test_the_printed_run_command_runs_as_it_is(
    case: str, named: list[str], options: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    with served(case) as url:
        exit_status_of(PROGRAM, ["check", "--rm", url, "--name-node", url, *named])
        [line] = [line for line in capfd.readouterr().out.splitlines() if line.startswith("run ")]
        program, verb, *words = line.split()[1:]
        more = ["--name-node", url, "--state-dir", str(tmp_path), "--ticks", TICKS, "--listen", "off"]
        assert exit_status_of(PROGRAM, [verb, *words, *more]) == 0
    assert program == "yarnctl"
    assert f"--rm {url} {options} --in-flight-least 4" in line
    assert line.endswith(" --eviction mix --may-lose 2%") is ("deadlines" not in options)


def test_the_printed_run_command_keeps_the_options_of_the_check(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "budgets.toml").write_text('[queue.team1]\nleave_alone = false\nmay_lose = "5%"\n')
    given = ["--user", "yc", "--requests", "/yc/requests", "--budgets", str(tmp_path / "budgets.toml")]
    with served("c10") as url:
        more = [*queues("etl", "team1"), "--yarn-preemption", "beside", *given]
        exit_status_of(PROGRAM, ["check", "--rm", url, "--name-node", url, *more])
    [line] = [line for line in capfd.readouterr().out.splitlines() if line.startswith("run ")]
    assert line.endswith(f" --yarn-preemption beside {' '.join(given)}")


def test_a_stopped_queue_is_not_started_where_no_option_names_it() -> None:
    """With guarantees ``check`` shows its state; nothing to apply starts it."""
    shares = tree(child("a", 60), child("b", 40, state="STOPPED"), mode="guarantees", preempting_queues=())
    facts = with_every_leaf(msgspec.structs.replace(shares, preemptable_queues=()))
    results = check_results(facts)
    assert (results["queues"].severity, results["queues"].observed) == (
        "ok",
        "root.a 60 %, root.b 40 % (STOPPED)",
    )
    steps = next_steps(facts, results.values())
    assert steps is not None
    assert "state" not in steps.apply


def test_fixes_are_applied_by_one_command_where_the_store_can_be_changed(
    capfd: pytest.CaptureFixture[str],
) -> None:
    said = {}
    for case, named in (("c10", queues("p2", "default")), ("c12", queues("Quality", "Development"))):
        with served(case) as url:
            exit_status_of(PROGRAM, ["check", "--rm", url, "--name-node", url, "--json", *named])
        said[case] = json.loads(capfd.readouterr().out)["next"]["apply"]
    assert said["c10"].startswith("yarn schedulerconf -update 'root.default:capacity=5,")
    assert "root.prod:capacity=65;root.prod.p2:maximum-capacity=100," in said["c10"]
    assert said["c12"].endswith("then run yarn rmadmin -refreshQueues")


# --- queues that vanish --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("later", "words"),
    [
        (("root.production",), "no leaf queue root.research; leaf queues (1): root.production"),
        (
            ("root.production", "root.lab.research"),
            "(nearest: root.lab.research); leaf queues (2): root.production, root.lab.research",
        ),
        ((), "no leaf queue root.research; leaf queues (0):"),
    ],
    ids=["removed", "moved", "all removed"],
)
def test_a_queue_that_vanishes_is_named_with_those_that_are_left(
    later: tuple[str, ...], words: str, caplog: pytest.LogCaptureFixture
) -> None:
    names = QueueNames(NamedQueues(("production",), ("research",)))
    names.read(QueueTree(("root.production", "root.research")))
    assert not caplog.messages
    names.read(QueueTree(later))
    [message] = [one for one in caplog.messages if "root.research was removed" in one]
    assert words in message
