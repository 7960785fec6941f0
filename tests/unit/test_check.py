"""Fitness: a good cluster has nothing that fails; each planted fault is found by its own rule."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests.unit.hadoop.replaying import Replay, Reply, closed_port, routes
from yarnctl.attach.check.preemption_rules import WAITS
from yarnctl.attach.check.preflight import Facts, TriedAddress
from yarnctl.attach.check.rules import BY_DEADLINE, RULES, WITHOUT_SCHEDULER, judge
from yarnctl.attach.eligibility.permission import INTRA_QUEUE, MONITOR, OBSERVE_ONLY
from yarnctl.cli import PROGRAM
from yarnctl.cli.check import _print
from yarnctl.command_line import exit_status_of
from yarnctl.deciding.model import Change
from yarnctl.hadoop.webhdfs import FileStatus
from yarnctl.hadoop.wire.calculator import DOMINANT
from yarnctl.hadoop.wire.views import Leaf
from yarnctl.hadoop.wire.yarn import (
    ClusterInfo,
    NodeRow,
    QueueInfo,
    QueueList,
    UserInfo,
    Vector,
)
from yarnctl.restoring.change_file import ChangeRecord, StoredRecord


def leaf(name: str, share: float, factor: float, **more) -> Leaf:
    told = {"kind": "capacitySchedulerLeafQueueInfo", "preemption_disabled": True, "state": "RUNNING", **more}
    return Leaf(f"root.{name}", QueueInfo(name, guaranteed_percent=share, user_limit_factor=factor, **told))


def below_root(leaves: tuple[Leaf, ...]) -> QueueInfo:
    return QueueInfo("root", below=QueueList(tuple(leaf.queue for leaf in leaves)))


def served(**more) -> Leaf:
    """Return production as a leaf that keeps deadlines, but for what is said."""
    good = {"ordering_policy": "fifo", "user_limit_percent": 100.0}
    return leaf("production", 95, 2, **{**good, **more})


CONF = {
    "yarn.resourcemanager.scheduler.monitor.enable": "false", "yarn.cluster.max-application-priority": "10",
    "mapreduce.reduce.speculative": "false", "mapreduce.job.reduce.slowstart.completedmaps": "0.05",
    "hadoop.security.authentication": "kerberos", "dfs.permissions.enabled": "true",
}  # fmt: skip
SCHEDULER = {
    "yarn.scheduler.capacity.maximum-am-resource-percent": "0.5",
    "yarn.scheduler.capacity.node-locality-delay": "-1",
    "yarn.scheduler.capacity.resource-calculator": "org.apache.DominantResourceCalculator",
}
RESEARCH_MAXIMUM = "yarn.scheduler.capacity.root.research.maximum-capacity"
CAPPED = ChangeRecord((Change("queue", "root.research", "1.0", "0.05"),))
LOWERED = (StoredRecord("changes-000000000001-a-1-000001.json", 1, "a-1", 1, CAPPED),)
SHRUNK = ChangeRecord((Change("executors", "application_1_1", "4", "y1-d1"),))
PRODUCTION, RESEARCH = leaf("production", 95, 2), leaf("research", 5, 40)
GOOD = Facts(
    caller_identity="yarnctl",
    info=ClusterInfo(1, version="3.4.2"),
    caller=UserInfo("yarnctl"),
    configuration=CONF,
    scheduler=SCHEDULER,
    root=below_root((PRODUCTION, RESEARCH)),
    clock_ahead_ms=200,
    nodes=(NodeRow("n1:1"),),
    webhdfs=True,
    name_node=CONF,
    requests=FileStatus("DIRECTORY", owner="yarnctl", permission="755"),
    store=FileStatus("DIRECTORY", owner="hdfs", permission="1777"),
    above={
        "/": FileStatus("DIRECTORY", owner="hdfs", permission="755"),
        "/yarnctl": FileStatus("DIRECTORY", owner="yarnctl", permission="755"),
    },
    lowered=(),
    safe_mode=False,
    proxy=TriedAddress("http://rm:8088", application="application_1_1"),
    data_node=TriedAddress("http://node:9864"),
)


def but(**more) -> Facts:
    if "leaves" in more:
        found = more.pop("leaves")
        more["root"] = None if found is None else below_root(found)
    return msgspec.structs.replace(GOOD, **more)


def by_deadline(*leaves: Leaf, **more) -> Facts:
    """Return a cluster whose production queue is to be served by deadlines."""
    told = {"mode": "deadlines", "allow_priority": True, "leaves": leaves or (served(),), **more}
    return but(**told)


def for_spark(**more) -> Facts:
    """Return facts of a cluster on which executors of Spark may leave, all of a job's, too."""
    folder = FileStatus("DIRECTORY", owner="hdfs", permission="1777")
    return but(**{"spark": True, "fallback_root": "/spark/fallback", "hosts": 3, "fallback": folder, **more})


def above(path: str, owner: str, permission: str) -> Facts:
    return but(above={**GOOD.above, path: FileStatus("DIRECTORY", owner=owner, permission=permission)})


def conf(key: str, value: str) -> Facts:
    return but(configuration={**CONF, key: value})


def test_a_good_cluster_is_fit_and_nothing_seen_is_never_ok() -> None:
    assert {one.severity for one in judge(GOOD)} == {"ok"}
    blind = {one.id: one.severity for one in judge(Facts(spark=True, fallback_root="/f"))}
    needless = {"max-priority"}
    assert [name for name, severity in blind.items() if severity == "ok"] == sorted(needless)


@pytest.mark.parametrize(
    ("guaranteed", "ratio", "said", "fix"),
    [
        (5, "1", "use 100 % of the cluster; yarnctl can preempt 95 %, and masters can fill it", "=0.47"),
        (40, "0.6", "use 60 % of the cluster; yarnctl can preempt 60 %, and masters can fill it", "=0.3"),
        (80, "0.5", "use 50 % of the cluster; yarnctl can preempt 20 %, and masters can fill it", "=0.2"),
        (80, "0.2", "use 20 % of the cluster; yarnctl can preempt 20 %", ""),
        (5, "0.5", "use 50 % of the cluster; yarnctl can preempt 95 %", ""),
    ],
)
def test_masters_that_can_fill_what_is_borrowed_are_told_with_the_share_that_fits(
    guaranteed: float, ratio: str, said: str, fix: str
) -> None:
    key = "yarn.scheduler.capacity.root.research.maximum-am-resource-percent"
    facts = but(leaves=(PRODUCTION, leaf("research", guaranteed, 40)), scheduler={key: ratio})
    (found,) = (one for one in judge(facts) if one.id == "masters")
    assert found.seen.endswith(said)
    assert found.fix == (f"set {key}{fix}" if fix else "")


LABELLED = NodeRow("n2:1", labels=("gpu",))
GPUS = msgspec.Raw(b'{"resourceInformation": [{"name": "yarn.io/gpu", "value": 4}]}')
WITH_GPU = NodeRow("n1:1", capacity=Vector(5, 1, GPUS))
TABLE = [
    ("labels", "warn", but(nodes=(NodeRow("n1:1"), LABELLED))),
    ("labels", "fail", but(nodes=(LABELLED,))),
    ("labels", "fail", but(leaves=(PRODUCTION, leaf("research", 5, 40, default_label="gpu")))),
    ("labels", "unknown", but(nodes=None)),
    ("resources", "ok", but(nodes=(WITH_GPU,))),
    ("resources", "ok", but(nodes=None, counted=("memory-mb", "vcores", "fpga"))),
    ("resources", "warn", but(nodes=(WITH_GPU,), counted=("memory-mb", "vcores", "fpga"))),
    ("resources", "unknown", but(nodes=None)),
    ("version", "warn", but(info=ClusterInfo(1, version="3.2.1"))),
    ("signal", "warn", but(info=ClusterInfo(1, version="3.2.1"))),
    ("version", "fail", but(info=ClusterInfo(1, version="2.10.0"))),
    ("caller", "fail", but(caller=UserInfo("dr.who"))),
    ("caller", "warn", but(caller=UserInfo("bob"))),
    ("proxy", "fail", but(proxy=TriedAddress("http://p:1", "refused", "connection refused"))),
    ("proxy", "fail", but(proxy=TriedAddress("http://p:1", "unknown-host", "no such name"))),
    ("proxy", "warn", but(proxy=TriedAddress("http://p:1", "", "HTTP 404"))),
    ("datanodes", "fail", but(data_node=TriedAddress("http://d:1", "unknown-host", "no such name"))),
    ("datanodes", "fail", but(data_node=TriedAddress("http://d:1", "tls", "no trusted TLS connection"))),
    ("datanodes", "warn", but(data_node=TriedAddress("http://d:1", "timeout", "no whole answer in time"))),
    ("clock", "warn", but(clock_ahead_ms=-9_000)),
    ("clock", "fail", but(clock_ahead_ms=99_000)),
    ("scheduler", "fail", but(leaves=None, configuration={"yarn.resourcemanager.scheduler.class": "a.Fair"})),
    ("queues", "fail", but(leaves=(PRODUCTION,))),
    ("queues", "warn", but(leaves=(PRODUCTION, leaf("research", 5, 40, state="STOPPED")))),
    ("production-share", "warn", but(leaves=(leaf("production", 30, 4), leaf("research", 70, 2)))),
    ("production-share", "fail", but(leaves=(leaf("production", 0, 4), RESEARCH))),
    ("research-share", "fail", but(leaves=(PRODUCTION, leaf("research", 0, 40)))),
    ("research-share", "fail", but(leaves=(PRODUCTION, leaf("research", 5, 1, maximum_percent=5.0)))),
    ("research-share", "warn", but(leaves=(PRODUCTION, leaf("research", 60, 2)))),
    ("maxima", "warn", but(leaves=(PRODUCTION, leaf("research", 5, 40, maximum_percent=50.0)))),
    ("user-limit", "warn", but(leaves=(PRODUCTION, leaf("research", 5, 1)))),
    ("am-share", "warn", but(leaves=(PRODUCTION, leaf("research", 5, 40, applications_pending=1)))),
    ("am-share", "warn", but(scheduler={"yarn.scheduler.capacity.maximum-am-resource-percent": "0.1"})),
    ("am-share", "warn", but(scheduler={
        "yarn.scheduler.capacity.maximum-am-resource-percent": "0.5",
        "yarn.scheduler.capacity.root.research.maximum-am-resource-percent": "0.1"})),
    ("am-share", "ok", but(scheduler={
        "yarn.scheduler.capacity.root.production.maximum-am-resource-percent": "0.8",
        "yarn.scheduler.capacity.root.research.maximum-am-resource-percent": "0.5"})),
    ("am-share", "unknown", but(scheduler=None)),
    ("masters", "warn", but(scheduler={"yarn.scheduler.capacity.maximum-am-resource-percent": "1"})),
    ("masters", "warn", but(leaves=(leaf("production", 50, 2), leaf("research", 50, 2)))),
    ("masters", "ok", but(scheduler={
        "yarn.scheduler.capacity.maximum-am-resource-percent": "1",
        "yarn.scheduler.capacity.root.research.maximum-am-resource-percent": "0.47"})),
    ("masters", "ok", by_deadline()),
    ("masters", "warn", by_deadline(scheduler={
        "yarn.scheduler.capacity.maximum-am-resource-percent": "1"})),
    ("masters", "unknown", but(scheduler=None)),
    ("locality-delay", "warn", but(scheduler={"yarn.scheduler.capacity.node-locality-delay": "40"})),
    ("minimum-allocation", "warn", conf("yarn.scheduler.minimum-allocation-mb", "4096")),
    ("acls", "unknown", but(scheduler=None, configuration={"yarn.acl.enable": "true", "yarn.admin.acl": ""})),
    ("speculation", "warn", conf("mapreduce.reduce.speculative", "true")),
    ("slow-start", "warn", conf("mapreduce.job.reduce.slowstart.completedmaps", "1.0")),
    ("rm-ha", "warn", but(configuration={
        "yarn.resourcemanager.ha.enabled": "true", "yarn.resourcemanager.ha.rm-ids": "a,b"})),
    ("max-priority", "fail", but(mode="deadlines", configuration={})),
    ("max-priority", "warn", by_deadline(configuration={
        **CONF, "yarn.cluster.max-application-priority": "9"})),
    ("max-priority", "ok", by_deadline()),
    ("am-share", "warn", by_deadline(served(applications_pending=1))),
    ("am-share", "warn", by_deadline(scheduler={
        "yarn.scheduler.capacity.maximum-am-resource-percent": "0.1"})),
    ("am-share", "unknown", by_deadline(scheduler=None)),
    ("ordering-policy", "ok", by_deadline()),
    ("ordering-policy", "fail", by_deadline(served(ordering_policy="fair"))),
    ("ordering-policy", "fail", by_deadline(served(ordering_policy=""), scheduler={
        **SCHEDULER, "yarn.scheduler.capacity.root.production.ordering-policy": "fair"})),
    ("ordering-policy", "unknown", by_deadline(served(ordering_policy=""))),
    ("ordering-policy", "unknown", by_deadline(leaves=None, why={"root": "no answer"})),
    ("user-share", "ok", by_deadline()),
    ("user-share", "warn", by_deadline(served(user_limit_percent=25.0))),
    ("user-share", "warn", by_deadline(served(user_limit_percent=None), scheduler={
        **SCHEDULER, "yarn.scheduler.capacity.root.production.minimum-user-limit-percent": "50"})),
    ("user-share", "unknown", by_deadline(served(user_limit_percent=None), scheduler=None)),
    ("webhdfs", "fail", but(webhdfs=False)),
    ("permissions", "fail", but(name_node={"dfs.permissions.enabled": "false"})),
    ("isolation", "warn", but(name_node={"hadoop.security.authentication": "simple"})),
    ("requests-root", "fail", but(requests=FileStatus("DIRECTORY", owner="yarnctl", permission="777"))),
    ("requests-root", "fail", but(requests=FileStatus("DIRECTORY", owner="bob", permission="755"))),
    ("requests-root", "warn", but(requests=None, absent=("/yarnctl/requests",))),
    ("store-root", "fail", but(store=FileStatus("DIRECTORY", owner="hdfs", permission="777"))),
    ("store-root", "fail", but(store=FileStatus("DIRECTORY", owner="yarnctl", permission="755"))),
    ("store-root", "warn", but(store=FileStatus("DIRECTORY", owner="hdfs", permission="1775"))),
    ("store-root", "warn", but(store=FileStatus("DIRECTORY", owner="ann", permission="1777"))),
    (
        "store-root",
        "warn",
        but(store=FileStatus("DIRECTORY", owner="yarnctl", group="supergroup", permission="1777")),
    ),
    ("store-root", "warn", but(store=None, absent=("/yarnctl/checkpoints",))),
    ("folders-above", "fail", above("/yarnctl", "yarnctl", "777")),
    ("folders-above", "fail", above("/", "hdfs", "777")),
    ("folders-above", "warn", above("/yarnctl", "ann", "755")),
    ("calculator", "ok", but(scheduler={})),  # memory alone, Hadoop's default
    ("calculator", "unknown", but(scheduler={
        "yarn.scheduler.capacity.resource-calculator": "com.example.OwnCalculator"})),
    ("calculator", "unknown", but(scheduler=None)),
    ("calculator", "unknown", but(leaves=None)),
    ("apps-cache", "warn", conf("yarn.apps.cache.enable", "true")),
    ("apps-cache", "unknown", but(configuration=None)),
    ("lock", "fail", above("/yarnctl", "hdfs", "755")),
    ("lock", "fail", but(above={"/": FileStatus("DIRECTORY", owner="hdfs", permission="755")})),
    ("lock", "fail", but(lock=FileStatus("DIRECTORY", owner="hdfs", permission="755"))),
    ("lock", "fail", but(lock=FileStatus("DIRECTORY", owner="yarnctl", permission="555"))),
    ("lock", "fail", but(lock=FileStatus("FILE", owner="yarnctl", permission="644"))),
    ("lock", "unknown", but(why={"lock": "HDFS said no"})),
    ("lock", "unknown", but(above={})),
    ("lowered", "fail", but(lowered=LOWERED, scheduler={**SCHEDULER, RESEARCH_MAXIMUM: "5"})),
    ("lowered", "warn", but(lowered=LOWERED, lock_holder="a-1", scheduler={RESEARCH_MAXIMUM: "5"})),
    ("lowered", "warn", but(lowered=LOWERED, lock_holder="zookeeper", scheduler={RESEARCH_MAXIMUM: "5"})),
    ("lowered", "ok", but(lowered=LOWERED, scheduler={**SCHEDULER, RESEARCH_MAXIMUM: "100"})),
    ("lowered", "fail", but(lowered=LOWERED, leaves=(leaf("research", 5, 40, maximum_percent=5.0),))),
    ("lowered", "fail", but(lowered=LOWERED, leaves=None)),
    ("lowered", "warn", but(lowered=(LOWERED[0]._replace(record=None),))),
    ("lowered", "fail", but(lowered=(LOWERED[0]._replace(record=SHRUNK),))),
    ("lowered", "unknown", but(lowered=None)),
    ("safe-mode", "fail", but(safe_mode=True)),
    ("safe-mode", "unknown", but(safe_mode=None)),
    ("spark-shell", "ok", for_spark()),
    ("spark-shell", "unknown", for_spark(configuration=None)),
    ("spark-shell", "warn", for_spark(configuration={
        "yarn.nodemanager.container-executor.class": "org.example.MyContainerExecutor"})),
    ("spark-shell", "warn", for_spark(configuration={
        "yarn.nodemanager.container-executor.class": "org.apache.hadoop.LinuxContainerExecutor",
        "yarn.nodemanager.runtime.linux.allowed-runtimes": "default,docker"})),
    ("spark-hosts", "ok", for_spark()),
    ("spark-hosts", "warn", for_spark(hosts=1)),
    ("spark-hosts", "unknown", for_spark(hosts=None)),
    ("spark-shuffle-service", "ok", for_spark(configuration={
        "yarn.nodemanager.aux-services": "mapreduce_shuffle,spark_shuffle"})),
    ("spark-shuffle-service", "unknown", for_spark(configuration=None)),
    ("spark-fallback", "ok", for_spark()),
    ("spark-fallback", "fail", for_spark(fallback=None, absent=("/spark/fallback",))),
    ("spark-fallback", "unknown", for_spark(fallback=None)),
    ("spark-fallback", "fail", for_spark(fallback=FileStatus("FILE", owner="hdfs", permission="666"))),
    ("spark-fallback", "fail", for_spark(fallback=FileStatus("DIRECTORY", owner="hdfs", permission="755"))),
    ("spark-fallback", "warn", for_spark(fallback=FileStatus("DIRECTORY", owner="hdfs", permission="777"))),
    ("spark-fallback", "warn", for_spark(fallback=FileStatus("DIRECTORY", owner="hdfs", permission="1770"))),
]  # fmt: skip


@pytest.mark.parametrize(("name", "severity", "facts"), TABLE)
def test_each_fault_is_found(name: str, severity: str, facts: Facts) -> None:
    (found,) = [one for one in judge(facts) if one.id == name]
    assert found.severity == severity, found
    assert found.matters
    assert found.fix or severity in ("ok", "unknown")


@pytest.mark.parametrize(("levels", "severity"), [("0", "fail"), ("9", "warn"), ("10", "ok")])
def test_max_priority_of_ten_levels_is_enough(levels: str, severity: str) -> None:
    configuration = {**CONF, "yarn.cluster.max-application-priority": levels}
    findings = {one.id: one.severity for one in judge(by_deadline(configuration=configuration))}
    assert findings["max-priority"] == severity


def test_what_deadlines_need_of_a_queue_is_named_only_where_yarn_is_to_serve_by_them() -> None:
    wrong = (served(ordering_policy="fair", user_limit_percent=25.0), RESEARCH)
    few = {**CONF, "yarn.cluster.max-application-priority": "1"}
    for more, named in (
        ({"mode": "queues"}, False),
        ({"mode": "queues", "admission": "mrm"}, False),
        ({"mode": "deadlines"}, False),
        ({"mode": "deadlines", "admission": "justice"}, False),
        ({"mode": "deadlines", "admission": "mrm"}, True),
        ({"mode": "deadlines", "allow_priority": True}, True),
    ):
        findings = {one.id: one for one in judge(but(leaves=wrong, configuration=few, **more))}
        assert (findings.keys() >= BY_DEADLINE, bool(findings.keys() & BY_DEADLINE)) == (named, named), more
        assert (findings["max-priority"].severity == "warn") is named
    assert (
        findings["ordering-policy"].fix == "set yarn.scheduler.capacity.root.production.ordering-policy=fifo"
    )
    told = "set yarn.scheduler.capacity.root.production.minimum-user-limit-percent=100"
    assert findings["user-share"].fix == told


@pytest.mark.parametrize(("share", "value"), [(5, "20 (or -1)"), (0, "-1")])
def test_user_limit_fix_names_no_limit_once(share: float, value: str) -> None:
    """A factor of a guarantee of 0 % is no limit at all: only -1 lets a user have the queue."""
    findings = {one.id: one for one in judge(but(leaves=(PRODUCTION, leaf("research", share, 1))))}
    key = "yarn.scheduler.capacity.root.research.user-limit-factor"
    assert findings["user-limit"].fix == f"set {key}={value}"


def test_a_factor_that_keeps_a_user_from_the_whole_queue_is_told_once() -> None:
    facts = by_deadline(leaf("production", 50, 1, ordering_policy="fifo", user_limit_percent=100.0))
    seen = told(facts)
    assert "user-limit" not in seen
    assert seen["user-share"][0] == "warn"
    assert seen["user-share"][2].startswith("set yarn.scheduler.capacity.root.production.user-limit-factor=2")


def test_a_real_schedulers_answer_shows_order_and_shares() -> None:
    recorded = json.loads((Path(__file__).parents[1] / "contract/recorded/3.4.json").read_text())
    found = [one for one in leaves_in(recorded) if one["queueName"] == "production"]
    one = msgspec.json.decode(msgspec.json.encode(found[0]), type=QueueInfo, strict=False)
    assert (one.ordering_policy, one.user_limit_percent) == ("fifo", 100.0)


def leaves_in(value: object) -> list[dict]:
    """Return every queue that a recorded answer shows, however deep."""
    if isinstance(value, list):
        return [one for each in value for one in leaves_in(each)]
    if not isinstance(value, dict):
        return []
    own = [value] if "orderingPolicyInfo" in value and "queueName" in value else []
    return own + [one for each in value.values() for one in leaves_in(each)]


def test_what_executors_need_is_judged_only_where_they_are_to_leave() -> None:
    def spark(facts: Facts) -> list[str]:
        return [one.id for one in judge(facts) if one.id.startswith("spark-")]

    assert spark(GOOD) == []
    assert spark(for_spark(fallback_root="")) == ["spark-shell", "spark-hosts", "spark-shuffle-service"]
    assert spark(for_spark())[3:] == ["spark-fallback"]


@pytest.mark.parametrize("folder", ["spark/fallback", "hdfs:///", "/"])
def test_a_folder_that_can_be_none_is_refused_before_anything_is_asked(folder, capfd) -> None:
    rm = f"http://127.0.0.1:{closed_port()}"
    assert exit_status_of(PROGRAM, ["check", "--rm", rm, "--spark-fallback", folder]) == 2
    assert "--spark-fallback" in capfd.readouterr().err


@pytest.mark.parametrize("words", [("--admission", "magic"), ("--admission",)])
def test_a_mechanism_that_is_not_known_is_refused_before_anything_is_asked(words, capfd) -> None:
    rm = f"http://127.0.0.1:{closed_port()}"
    assert exit_status_of(PROGRAM, ["check", "--rm", rm, *words]) == 2
    assert "--admission" in capfd.readouterr().err


def test_a_queue_that_stands_lowered_is_named_with_the_command_that_mends_it() -> None:
    word = RULES["lowered"](but(lowered=LOWERED, scheduler={RESEARCH_MAXIMUM: "5"}))
    assert word.observed.startswith("yarnctl lowered the maximum of root.research from 100 % to 5 %")
    fix = "yarnctl restore --all, or: yarn schedulerconf -update root.research:maximum-capacity=100"
    assert word.fix == fix
    shrunk = RULES["lowered"](but(lowered=(LOWERED[0]._replace(record=SHRUNK),)))
    assert (shrunk.observed.split(";")[0], shrunk.fix) == (
        "yarnctl lowered the executors of application_1_1, of which it had 4",
        "yarnctl restore --all",
    )


@pytest.mark.parametrize(
    ("names", "left_alone", "severity", "shown"),
    [
        (("research",), (), "ok", "the budgets file names research"),
        (("root.research",), (), "ok", "root.research"),
        ((), (), "ok", "no queue"),
        (("production",), (), "fail", "production"),
        (("reserch",), (), "fail", "reserch"),
        (("research", "root.research"), (), "fail", "root.research"),
        (("research",), ("research",), "fail", "research"),
    ],
)
def test_budgets_file_names_preemptable_leaf_queues(
    names: tuple[str, ...], left_alone: tuple[str, ...], severity: str, shown: str
) -> None:
    found = RULES["budgets"](but(budget_queues=names, queues_left_alone=left_alone))
    assert found.severity == severity
    assert shown in found.observed


def test_own_preemption_fails_only_for_victims_that_it_may_touch() -> None:
    on = {**CONF, "yarn.resourcemanager.scheduler.monitor.enable": "true"}
    assert RULES["own-preemption"](but(configuration=on)).severity == "ok"
    open_queue = (PRODUCTION, leaf("research", 5, 40, preemption_disabled=False))
    assert RULES["own-preemption"](but(configuration=on, leaves=open_queue)).severity == "fail"


SWITCHABLE = {"configuration": {**CONF, MONITOR: "true"}, "yarn_preemption": "switch", "policy_runs": True}
OPEN_QUEUE = (PRODUCTION, leaf("research", 5, 40, preemption_disabled=False))
SWITCHED = (
    StoredRecord(
        "changes-1", 1, "one", 1, ChangeRecord((Change("preemption", "root.research", "", "true"),))
    ),
)


@pytest.mark.parametrize(
    ("more", "severity", "words"),
    [
        ({"leaves": OPEN_QUEUE}, "ok", "yarnctl switches it off for root.research while it acts"),
        ({"lowered": SWITCHED}, "ok", "yarnctl switches it off for root.research while it acts"),
        ({"lowered": ()}, "warn", "no net: its owner excludes root.research from YARN's preemption"),
        ({"leaves": OPEN_QUEUE, "policy_runs": False}, "warn", "no thread of the policy"),
        ({"leaves": OPEN_QUEUE, "policy_runs": None}, "ok", "the cluster does not show it"),
        ({"configuration": CONF}, "warn", f"no net: {MONITOR} is not true"),
        ({"leaves": OPEN_QUEUE, "scheduler": None}, "fail", "cannot be switched"),
        ({"leaves": OPEN_QUEUE, "yarn_preemption": "beside"}, "warn", "max_wait_before_kill 15 s"),
        ({"leaves": OPEN_QUEUE, "yarn_preemption": "off"}, "fail", "on for root.research"),
    ],
)
def test_own_preemption_names_a_missing_net_and_each_way_to_live_with_it(
    more: dict[str, Any], severity: str, words: str
) -> None:
    found = RULES["own-preemption"](but(**{**SWITCHABLE, **more}))
    assert (found.severity, words in str(found.observed)) == (severity, True), found
    if severity == "fail":
        assert "set yarn.scheduler.capacity.root.research.disable_preemption" in found.fix


def test_long_waits_beside_yarns_preemption_are_ok_and_name_their_cost() -> None:
    waits = {f"{WAITS}monitoring_interval": "15000", f"{WAITS}max_wait_before_kill": "45000"}
    on = {**CONF, MONITOR: "true"}
    short = RULES["own-preemption"](but(configuration=on, leaves=OPEN_QUEUE, yarn_preemption="beside"))
    assert all(f"{key}={value}" in short.fix for key, value in waits.items())
    long = RULES["own-preemption"](
        but(configuration={**on, **waits}, leaves=OPEN_QUEUE, yarn_preemption="beside")
    )
    assert (long.severity, "production then waits about 130 s" in str(long.observed)) == ("ok", True)


def test_preemption_within_a_queue_fails_only_where_it_may_touch_victims() -> None:
    on = {**CONF, MONITOR: "true", INTRA_QUEUE: "true"}
    rule = RULES["intra-queue-preemption"]
    assert rule(but(configuration=on)).severity == "fail"
    assert rule(but(configuration={**on, MONITOR: "false"})).severity == "ok"
    assert rule(but(configuration={**on, OBSERVE_ONLY: "true"})).severity == "ok"
    spared = (PRODUCTION, leaf("research", 5, 40, intra_queue_preemption_disabled=True))
    assert rule(but(configuration=on, leaves=spared)).severity == "ok"
    assert rule(but(configuration=on, leaves=spared, mode="deadlines")).severity == "fail"  # production, too


def test_the_lock_can_be_made_by_its_folders_owner_by_anybody_or_by_the_superuser() -> None:
    for owner, permission, us in (
        ("yarnctl", "755", "yarnctl"),
        ("hdfs", "1777", "yarnctl"),
        ("hdfs", "755", "hdfs"),
    ):
        facts = msgspec.structs.replace(above("/yarnctl", owner, permission), caller_identity=us)
        assert RULES["lock"](facts).severity == "ok", (owner, permission, us)


def test_the_overview_shows_no_calculator() -> None:
    """Of 3.4.2 it lists both types, whichever calculator runs."""
    found = RULES["calculator"](but(scheduler=None, counted=("memory-mb", "vcores")))
    assert found.severity == "unknown"
    assert found.keys == {"resource-calculator": DOMINANT}
    assert "restart the ResourceManager" in found.fix


def test_the_calculator_is_shown_by_a_node_with_more_vcores_in_use_than_it_has() -> None:
    nodes = (NodeRow("n1:1", used_vcores=9, available_vcores=-1),)
    found = RULES["calculator"](but(scheduler=None, nodes=nodes))
    assert (found.severity, found.observed) == ("ok", "the scheduler counts memory alone")


def test_acls_name_us_or_do_not() -> None:
    on = {"yarn.acl.enable": "true", "yarn.admin.acl": "yarn"}
    for acl, severity in (
        ("yarnctl", "ok"), ("bob,yarnctl x", "ok"), ("*", "ok"), ("bob", "fail"), (" ", "fail"),
        (" yarnctl", "unknown"),
    ):  # fmt: skip
        keys = {
            f"yarn.scheduler.capacity.root.{q}.acl_administer_queue": acl for q in ("production", "research")
        }
        assert RULES["acls"](but(configuration=on, scheduler=keys)).severity == "ok"  # root: everybody
        keys["yarn.scheduler.capacity.root.acl_administer_queue"] = " "
        assert RULES["acls"](but(configuration=on, scheduler=keys)).severity == severity, acl


def test_a_cluster_that_says_little_and_one_that_is_silent(capfd) -> None:
    info = {"clusterInfo": {"id": 1, "haState": "ACTIVE", "hadoopVersion": "3.4.2"}}
    with Replay(routes({"/ws/v1/cluster/info": json.dumps(info)})) as rm:
        assert exit_status_of(PROGRAM, ["check", "--rm", rm.url, "--json"]) == 1
    told = json.loads(capfd.readouterr().out)
    seen = {one["id"]: one["severity"] for one in told["findings"]}
    assert (told["fit"], seen["version"], seen["caller"], seen["webhdfs"]) == (False, "ok", "unknown", "fail")
    assert exit_status_of(PROGRAM, ["check", "--rm", f"http://127.0.0.1:{closed_port()}"]) == 3
    assert len(capfd.readouterr().err.splitlines()) == 1


# --- against wrong clusters ---------------------------------------------------------------------------


@pytest.mark.parametrize("daemon", ["a NameNode", "a history server"])
def test_another_daemon_of_hadoop_is_told_from_a_resource_manager(daemon: str, capfd) -> None:
    with Replay(Reply("<html>Not Found</html>", 404, "text/html")) as other:
        assert exit_status_of(PROGRAM, ["check", "--rm", other.url]) == 2
        assert capfd.readouterr().err == (
            f"error: {other.url}: this server answers, but it is not a ResourceManager; set --rm to the host"
            " and port of yarn.resourcemanager.webapp.address (default port 8088)\n"
        )


UNUSED = "HTTP 200: expected a CapacityScheduler; check that this is the right daemon"


def told(facts: Facts) -> dict[str, tuple[str, str, str]]:
    return {one.id: (one.severity, one.seen, one.fix) for one in judge(facts)}


def test_another_scheduler_is_one_failure_and_one_line_of_what_is_not_judged(capfd) -> None:
    name = "org.apache.hadoop.yarn.server.resourcemanager.scheduler.fair.FairScheduler"
    reasons = {"root": UNUSED, "scheduler": UNUSED}
    configuration = {**CONF, "yarn.resourcemanager.scheduler.class": name}
    fair = but(leaves=None, scheduler=None, configuration=configuration, why=reasons)
    seen = told(fair)
    assert seen["scheduler"][:2] == ("fail", "FairScheduler is not supported")
    assert seen["scheduler"][2].endswith(".scheduler.capacity.CapacityScheduler (yarn-site.xml)")
    assert [one for one in seen.values() if one[0] == "fail"] == [seen["scheduler"]]
    assert not any("right daemon" in one[1] for one in seen.values())
    _print(judge(fair), "table")
    lines = [line for line in capfd.readouterr().out.splitlines() if line.startswith("unknown")]
    assert len(lines) == 1
    for rule in ("queues", "production-share", "research-share", "maxima", "user-limit", "am-share"):
        assert rule in lines[0]
    assert lines[0].endswith(f": {WITHOUT_SCHEDULER}")


def test_a_wrong_name_of_a_queue_fails_once() -> None:
    seen = told(but(preemptable_queues=("reserch",)))
    fails = {name: one for name, one in seen.items() if one[0] == "fail"}
    assert list(fails) == ["queues"]
    assert fails["queues"][1] == (
        "no leaf queue reserch (nearest: root.research); leaf queues (2): root.production, root.research"
    )
    assert seen["maxima"] == (
        "unknown",
        "not checked, for the same reason as 'queues'; fix 'queues' first",
        "",
    )


def test_a_name_node_that_is_down_is_told_once() -> None:
    why = "http://nn.example:9870: Connection refused; is the NameNode up?"
    names = ("webhdfs", "requests", "store", "lock", "above", "name_node")
    facts = but(
        webhdfs=False, requests=None, store=None, above={}, name_node=None,
        configuration={name: value for name, value in CONF.items() if not name.startswith("dfs.")},
        why=dict.fromkeys(names, why),
    )  # fmt: skip
    seen = told(facts)
    assert [name for name, one in seen.items() if why in one[1]] == ["webhdfs"]
    assert seen["webhdfs"][0] == "fail"
    for name in ("permissions", "requests-root", "store-root", "folders-above", "lock"):
        assert seen[name] == (
            "unknown",
            "not checked, for the same reason as 'webhdfs'; fix 'webhdfs' first",
            "",
        )
