"""One test for each law of performing: what is never done, whatever the caller says."""

from __future__ import annotations

import json

import pytest

from tests.unit.attach.fake_cluster import EPOCH, App, application, attempt, container, task
from tests.unit.hadoop.replaying import Reply
from yarnctl.attach.connection.connection import Attachment
from yarnctl.deciding.model import (
    Accepted,
    Kill,
    ManifestSeen,
    ObservationRequest,
    Refused,
    Release,
    SetPriority,
    Suspend,
    Unknown,
    Withdraw,
    Withheld,
)
from yarnctl.deciding.reasons.modes import LockRanOut
from yarnctl.deciding.reasons.orders import Stopping
from yarnctl.hadoop.term_folders import remove_older_terms
from yarnctl.journal.rendering import said, text

NAMES = (application(1), attempt(1, 1), container(1, 2))
SUSPEND = Suspend("o-1", *NAMES, 1, EPOCH)
RELEASE = Release("o-1", *NAMES, 1)
WITHDRAW = Withdraw("o-1", *NAMES)
KILL = Kill("o-1", *NAMES)
FOLDER = f"/yarnctl/requests/job_{EPOCH}_0001/{attempt(1, 1)}"
RUNG = f"OUTPUT_THREAD_DUMP {container(1, 2)}"
KILLED = f"KILL {attempt(1, 1)}"
MANIFEST = f"/yarnctl/checkpoints/job_{EPOCH}_0001/{task(1, 1)}/gen-000001-{attempt(1, 1)}.manifest.json"


DOUBT_MS = Attachment().quarantine_ms


def looking(cluster, **settings):
    port = cluster.port(**settings)
    assert port.observe(ObservationRequest()).cluster == "seen"
    return port


def asked(cluster, **settings):
    """Return a port that has sent the request."""
    port = looking(cluster, **settings)
    assert port.perform(SUSPEND) == Accepted()
    port.observe(ObservationRequest(cluster=False, orders=("o-1",)))
    cluster.changes.clear()
    return port


def why(outcome) -> str:
    assert isinstance(outcome, Refused), outcome
    return text(outcome.why)


def not_now(outcome, action) -> str:
    """Check that the no is none of the attempt's: a Suspend is not counted, a Release is sent again."""
    kind = Withheld if isinstance(action, Suspend) else Unknown if isinstance(action, Release) else Refused
    assert isinstance(outcome, kind), outcome
    return said(outcome.why)


# --- who may be touched at all ------------------------------------------------------------------


@pytest.mark.parametrize("action", [SUSPEND, RELEASE, WITHDRAW, KILL, SetPriority(application(1), 3)])
def test_nothing_is_changed_without_enforce(cluster, action):
    port = looking(cluster, enforce=False, allow_kill=True, allow_priority=True)
    cluster.save(1, 1, "o-1")
    files = dict(cluster.hdfs.files)
    assert isinstance(port.perform(action), Withheld)
    assert (cluster.changes, cluster.hdfs.files) == ([], files)


@pytest.mark.parametrize("action", [SUSPEND, RELEASE, KILL])
def test_nothing_outside_the_victim_queues(cluster, action):
    port = looking(cluster, allow_kill=True)
    cluster.save(1, 1, "o-1")
    cluster.apps[application(1)].queue = "production"
    port.observe(ObservationRequest())
    assert "is not preemptable" in why(port.perform(action))
    fresh = cluster.port(allow_kill=True)  # and one that has seen nothing asks before it acts
    fresh.observe(ObservationRequest(probe_queues=("nothing",)))
    assert "is not preemptable" in why(fresh.perform(action))
    assert cluster.changes == []


@pytest.mark.parametrize("action", [SUSPEND, RELEASE, KILL])
def test_nothing_without_a_proven_runner(cluster, action):
    cluster.apps[application(1)].configuration["mapreduce.reduce.speculative"] = "true"
    port = looking(cluster, allow_kill=True)
    cluster.save(1, 1, "o-1")
    assert "mapreduce.reduce.speculative is true" in why(port.perform(action))
    assert "speculative" in text(port.why_not[application(1)])
    assert cluster.changes == []


@pytest.mark.parametrize("action", [SUSPEND, RELEASE, KILL])
def test_nothing_while_yarn_itself_preempts(cluster, action):
    cluster.configuration["yarn.resourcemanager.scheduler.monitor.enable"] = "true"
    cluster.preemption_disabled = False
    port = looking(cluster, allow_kill=True)
    cluster.save(1, 1, "o-1")
    assert "YARN itself preempts containers of queue root.research" in said(port.permission.why_nothing())
    assert "YARN itself preempts" in not_now(port.perform(action), action)
    assert cluster.changes == []
    cluster.preemption_disabled = True
    port.observe(ObservationRequest())
    assert port.permission.why_nothing() is None


def test_beside_yarns_own_preemption_orders_are_sent(cluster):
    cluster.configuration["yarn.resourcemanager.scheduler.monitor.enable"] = "true"
    cluster.preemption_disabled = False
    port = looking(cluster, yarn_preemption="beside")
    assert port.permission.why_nothing() is None
    assert port.perform(SUSPEND) == Accepted()


def test_nothing_before_yarns_own_preemption_is_known(cluster):
    cluster.break_("GET /conf", Reply("", 500))
    port = cluster.port()
    port.observe(ObservationRequest())
    assert "is unknown" in not_now(port.perform(SUSPEND), SUSPEND)


# --- asking -------------------------------------------------------------------------------------


def test_twice_suspended_is_once_suspended(cluster):
    port = looking(cluster)
    assert port.perform(SUSPEND) == port.perform(SUSPEND) == Accepted()
    assert list(cluster.hdfs.files) == [f"{FOLDER}/o-1.request.json"]
    assert cluster.hdfs.owners[FOLDER] == ("yarnctl", "755")
    assert cluster.hdfs.owners[f"{FOLDER}/o-1.request.json"] == ("yarnctl", "644")


def test_names_on_the_cluster_are_ours_alone(cluster):
    """An order carries the daemon's name there; a checkpoint for another daemon's order is no answer."""
    port = looking(cluster, instance="here")
    assert port.perform(SUSPEND) == Accepted()
    assert json.loads(cluster.hdfs.files[f"{FOLDER}/here-o-1.request.json"])["order"] == "here-o-1"
    cluster.save(1, 1, "there-o-1")
    assert not [
        fact
        for fact in port.observe(ObservationRequest(orders=("o-1",))).facts
        if isinstance(fact, ManifestSeen)
    ]
    cluster.save(1, 1, "here-o-1", generation=2)
    (told,) = [
        fact
        for fact in port.observe(ObservationRequest(orders=("o-1",))).facts
        if isinstance(fact, ManifestSeen)
    ]
    assert told.order == "o-1"
    assert port.perform(WITHDRAW) == Accepted()
    assert f"{FOLDER}/here-o-1.withdrawn" in cluster.hdfs.files


def test_a_request_half_written_by_a_dead_yarnctl_is_finished(cluster):
    port = looking(cluster)
    cluster.hdfs.folders.update({"/yarnctl", FOLDER})
    cluster.hdfs.files["/yarnctl/requests/.term-0/o-1"] = b"{"
    assert port.perform(SUSPEND) == Accepted()
    assert json.loads(cluster.hdfs.files[f"{FOLDER}/o-1.request.json"])["order"] == "o-1"
    assert len(cluster.hdfs.files) == 1


def test_an_order_that_is_renamed_after_the_next_leader_began_is_never_read(cluster):
    """Frozen after its last check: YARN's side cannot be fenced, the rename can."""
    port = looking(cluster)
    port.permission.term = lambda: 7
    hdfs, rename = port._connection.hdfs, port._connection.hdfs.rename

    def late(*paths, **how):
        remove_older_terms(hdfs, "/yarnctl/requests", 8)
        rename(*paths, **how)

    hdfs.rename = late
    assert not_now(port.perform(SUSPEND), SUSPEND) == LockRanOut.sentence
    assert cluster.hdfs.files == {}
    remove_older_terms(hdfs, "/yarnctl/requests", 8)
    hdfs.rename = rename
    port.permission.term = lambda: 8
    assert port.perform(SUSPEND) == Accepted()


def test_the_folder_of_the_own_term_and_what_is_no_term_stay(cluster):
    port = looking(cluster)
    for name in (".term-7", ".term-8", ".term-x", "job_1"):
        cluster.hdfs.files[f"/yarnctl/requests/{name}/o-1"] = b"{"
        cluster.hdfs.folders.update({"/yarnctl", "/yarnctl/requests", f"/yarnctl/requests/{name}"})
    remove_older_terms(port._connection.hdfs, "/yarnctl/requests", 8)
    assert sorted(path.split("/")[3] for path in cluster.hdfs.files) == [".term-8", ".term-x", "job_1"]


def test_a_doorbell_that_does_not_ring_is_noted_and_the_request_stands(cluster):
    port = looking(cluster)
    cluster.break_("POST .*/signal/", Reply("", 500))
    assert port.perform(SUSPEND) == Accepted()
    assert "the signal to the task runner failed" in port.notes["o-1"]
    assert f"{FOLDER}/o-1.request.json" in cluster.hdfs.files


def test_a_request_that_cannot_be_written_is_refused_and_nobody_is_rung(cluster):
    port = looking(cluster)
    cluster.hdfs.denied = "/yarnctl/requests"
    assert "AccessControlException" in not_now(port.perform(SUSPEND), SUSPEND)
    assert cluster.changes == []


def test_nobody_is_asked_whose_checkpoint_we_could_not_see(cluster):
    """All tasks of the job keep theirs in that folder: the whole job is left alone, for a while."""
    port = looking(cluster)
    cluster.hdfs.denied = "/yarnctl/checkpoints"
    told = not_now(port.perform(SUSPEND), SUSPEND)
    assert "cannot read the job's checkpoint" in told
    assert "AccessControlException" in told
    assert "give the store's folder a group" in told
    assert text(port.why_not[SUSPEND.application]) == told
    assert (cluster.hdfs.files, cluster.changes) == ({}, [])
    cluster.hdfs.denied = ""
    assert isinstance(port.perform(SUSPEND), Refused)
    cluster.now_ms += DOUBT_MS
    port.observe(ObservationRequest())
    assert SUSPEND.application not in port.why_not
    assert port.perform(SUSPEND) == Accepted()


def test_a_store_that_does_not_answer_is_no_word_against_the_job(cluster):
    port = looking(cluster)
    cluster.hdfs.silent = "/yarnctl/checkpoints"
    assert "cannot read the job's checkpoint" in not_now(port.perform(SUSPEND), SUSPEND)
    assert SUSPEND.application not in port.why_not


def test_an_attempt_of_another_job_is_refused(cluster):
    port = looking(cluster)
    foreign = Suspend("o-1", application(1), attempt(7, 1), container(1, 2), 1, EPOCH)
    assert "is not a task of" in why(port.perform(foreign))
    assert cluster.hdfs.files == {}
    assert cluster.changes == []


def test_withdraw_leaves_word_once_and_rings(cluster):
    port = asked(cluster)
    assert port.perform(WITHDRAW) == port.perform(WITHDRAW) == Accepted()
    assert cluster.hdfs.files[f"{FOLDER}/o-1.withdrawn"] == b""
    assert cluster.changes == [RUNG]


def test_withdraw_works_after_a_restart_that_forgot_the_order(cluster):
    asked(cluster)
    assert looking(cluster).perform(WITHDRAW) == Accepted()
    assert f"{FOLDER}/o-1.withdrawn" in cluster.hdfs.files


def test_nothing_is_withdrawn_that_was_never_asked_for(cluster):
    files = dict(cluster.hdfs.files)
    assert "holds no order" in why(looking(cluster).perform(WITHDRAW))
    assert (cluster.changes, cluster.hdfs.files) == ([], files)


# --- releasing ----------------------------------------------------------------------------------


def test_release_kills_once_it_is_safe_and_again_changes_nothing(cluster):
    port = asked(cluster)
    cluster.save(1, 1, "o-1")
    assert port.perform(RELEASE) == port.perform(RELEASE) == Accepted()
    assert cluster.changes == [KILLED]


def test_never_a_release_without_a_manifest(cluster):
    port = asked(cluster)
    assert "no manifest" in why(port.perform(RELEASE))
    assert cluster.changes == []


def tear(cluster):
    cluster.hdfs.files[MANIFEST] = cluster.hdfs.files[MANIFEST][:-3]


def change(cluster):
    cluster.hdfs.files[MANIFEST] = cluster.hdfs.files[MANIFEST].replace(
        b'"groups_done":50', b'"groups_done":5'
    )


def lose_part(cluster):
    del cluster.hdfs.files[MANIFEST.replace("manifest.json", "part")]


def shorten_part(cluster):
    cluster.hdfs.files[MANIFEST.replace("manifest.json", "part")] = b"saved"


def give_away(cluster):
    cluster.hdfs.owners[MANIFEST] = ("eve", "600")


def open_to_all(cluster):
    cluster.hdfs.owners[MANIFEST] = ("ann", "666")


def put_aside(cluster):
    cluster.hdfs.files[f"{MANIFEST}.aside-{attempt(1, 1, 1)}"] = b"{}"


@pytest.mark.parametrize("harm", [tear, change, lose_part, shorten_part, give_away, open_to_all, put_aside])
def test_never_a_release_on_a_harmed_checkpoint(cluster, harm):
    port = asked(cluster)
    cluster.save(1, 1, "o-1")
    assert [type(fact) for fact in port.observe(ObservationRequest(False, orders=("o-1",))).facts] == [
        ManifestSeen
    ]
    harm(cluster)  # after it was seen: it is read again right before
    why(port.perform(RELEASE))
    assert cluster.changes == []


@pytest.mark.parametrize(
    "more",
    [{"order": "o-9"}, {"order": "o-1", "reducer": ["awk", "1"]}, {"order": "o-1", "key_rule": {"fields": 2}},
     {"order": "o-1", "task": task(1, 2)}, {"order": "o-1", "previous_generation": 7}],
    ids=["another order", "another reducer", "another key rule", "another task", "out of order"],
)  # fmt: skip
def test_never_a_release_on_a_foreign_manifest(cluster, more):
    port = asked(cluster)
    cluster.save(1, 1, **{"order": "o-1", **more})
    facts = port.observe(ObservationRequest(False, orders=("o-1",))).facts
    assert not any(isinstance(fact, ManifestSeen) for fact in facts)
    why(port.perform(RELEASE))
    assert cluster.changes == []


def test_no_release_of_an_attempt_that_runs_elsewhere_or_is_over(cluster):
    port = asked(cluster)
    cluster.save(1, 1, "o-1")
    row = cluster.attempt(1, 1)
    row["assignedContainerId"] = container(1, 9)
    assert "runs in" in why(port.perform(RELEASE))
    row["state"] = "SUCCEEDED"
    assert "(SUCCEEDED)" in why(port.perform(RELEASE))
    row["state"] = "KILLED"  # by somebody else
    assert "(KILLED)" in why(port.perform(RELEASE))
    assert cluster.changes == []


def test_no_release_after_the_hold(cluster):
    port = asked(cluster)
    cluster.save(1, 1, "o-1")
    port.observe(ObservationRequest(False, orders=("o-1",)))
    cluster.now_ms += 26_000
    assert "release wait has expired" in why(port.perform(RELEASE))
    assert cluster.changes == []


def test_no_release_when_the_runner_has_gone_on(cluster):
    port = asked(cluster)
    cluster.save(1, 1, "o-1")
    cluster.attempt(1, 1)["status"] = "yarnctl phase=run groups=60 gen=1"
    assert "processed input after its checkpoint" in why(port.perform(RELEASE))
    assert cluster.changes == []


def test_an_uncertain_release_is_unknown_and_may_be_repeated(cluster):
    port = asked(cluster)
    cluster.save(1, 1, "o-1")
    cluster.break_("PUT .*/state", Reply("{}", cut=0))
    assert isinstance(port.perform(RELEASE), Unknown)
    cluster.broken.clear()
    assert port.perform(RELEASE) == Accepted()
    assert cluster.changes == [KILLED]


def test_a_release_that_reaches_no_master_is_sent_again(cluster):
    port = asked(cluster)
    cluster.save(1, 1, "o-1")
    cluster.break_("GET /proxy/", Reply("<html>", 302, "text/html"))
    assert "does not answer" in not_now(port.perform(RELEASE), RELEASE)
    assert cluster.changes == []
    cluster.broken.clear()
    assert port.perform(RELEASE) == Accepted()


@pytest.mark.parametrize("action", [SUSPEND, RELEASE])
def test_after_a_restart_nobody_is_refused_because_the_master_is_silent(cluster, action):
    """Whether it may be touched is not known yet: a checkpoint that lies there is not thrown away."""
    asked(cluster)
    cluster.save(1, 1, "o-1")
    cluster.break_("GET /proxy/", Reply("<html>", 302, "text/html"))
    port = looking(cluster)
    assert "cannot be reached" in not_now(port.perform(action), action)
    assert cluster.changes == []


def test_a_request_that_cannot_be_taken_back_now_is_taken_back_later(cluster):
    port = asked(cluster)
    answer, cluster.hdfs.replay.answer = cluster.hdfs.replay.answer, lambda _: Reply("<html>", 500)
    assert isinstance(port.perform(WITHDRAW), Unknown)
    cluster.hdfs.replay.answer = answer
    assert port.perform(WITHDRAW) == Accepted()
    assert cluster.hdfs.files[f"{FOLDER}/o-1.withdrawn"] == b""


def test_killing_is_off_unless_allowed(cluster):
    assert "do not allow" in why(looking(cluster).perform(KILL))
    assert cluster.changes == []
    port = looking(cluster, allow_kill=True)
    assert port.perform(KILL) == port.perform(KILL) == Accepted()
    assert cluster.changes == [KILLED]


def test_priorities_are_off_unless_allowed(cluster):
    change_it = SetPriority(application(2), 5)
    assert "may not change" in why(looking(cluster).perform(change_it))
    port = looking(cluster, allow_priority=True)
    assert port.perform(change_it) == Accepted()
    cluster.break_("PUT .*/priority", Reply('{"priority":3}'))
    capped = port.perform(change_it)
    assert isinstance(capped, Unknown), "it was changed, though otherwise"
    assert "max-application-priority" in said(capped.why)
    assert len(cluster.changes) == 1
    assert port.restorer.covers("priority", application(2), "3"), "what YARN set is restored"


def test_a_priority_is_restored_whatever_is_allowed_now(cluster):
    port = looking(cluster, allow_priority=True)
    assert port.perform(SetPriority(application(2), 5)) == Accepted()
    assert cluster.apps[application(2)].priority == 5
    cluster.apps[application(2)].queue = "elsewhere"
    again = cluster.port(preempting_queues=("other",), preemptable_queues=("another",))
    again.restore_due()
    assert cluster.apps[application(2)].priority == 0
    assert cluster.apps[application(2)].served_priority == 1, "the scheduler is one level off"
    cluster.now_ms += 2_000
    again.restore_due()
    assert again.restorer.open == {}
    assert not [path for path in cluster.hdfs.files if "/changes-" in path]


@pytest.mark.parametrize(("found", "shown"), [(1, 0), (2, 2), (5, 0)])
def test_a_daemon_that_died_between_the_two_requests_is_no_owner(cluster, found, shown):
    port = looking(cluster, allow_priority=True)
    assert port.perform(SetPriority(application(2), 5)) == Accepted()
    cluster.apps[application(2)].priority = found
    again = cluster.port()
    again.restore_due()
    assert cluster.apps[application(2)].priority == shown


def test_a_ranking_that_returns_to_the_value_before_takes_two_requests(cluster):
    port = looking(cluster, allow_priority=True)
    for priority in (5, 0):
        assert port.perform(SetPriority(application(2), priority)) == Accepted()
        port.observe(ObservationRequest())
    app = cluster.apps[application(2)]
    assert (app.priority, app.served_priority) == (0, 1)
    port.restorer.stop(Stopping())
    assert port.restorer.open == {}
    assert (app.priority, app.served_priority) == (0, 1)


def test_the_priority_of_an_ended_application_is_left_alone(cluster):
    port = looking(cluster, allow_priority=True)
    port.perform(SetPriority(application(2), 5))
    del cluster.apps[application(2)]
    again = cluster.port()
    again.restore_due()
    assert (again.restorer.open, len(cluster.changes)) == ({}, 1)


def test_priorities_stay_within_the_named_queues(cluster):
    cluster.add(App(3, "other", containers={}))
    cluster.queues["other"] = 0.0
    port = looking(cluster, allow_priority=True)
    assert "neither preempting nor preemptable" in why(port.perform(SetPriority(application(3), 5)))
    assert cluster.changes == []
