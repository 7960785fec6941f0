"""Why a job's reduces cannot be suspended, or its executors or workers not drained."""

from __future__ import annotations

from typing import Literal

from yarnctl.deciding.reasons.rooting import Reason


class InNoPreemptableQueue(Reason, frozen=True):
    sentence = "the application's queue is not preemptable"


class LeftAlone(Reason, frozen=True):
    """``by``: what opts out. ``name``: the tag, the user or the queue."""

    sentence = "the application is left alone, because its {by} opts out: {name}"
    by: Literal["tag", "user", "queue"]
    name: str


class QueueUnclear(Reason, frozen=True):
    """Before Hadoop 3.4 YARN writes the name of the queue only."""

    sentence = "several leaf queues are named {queue}, and this version of YARN does not report the path"
    queue: str


class OtherKind(Reason, frozen=True):
    sentence = "yarnctl cannot suspend or shrink applications of type {kind}"
    kind: str


class ConfigurationUnread(Reason, frozen=True):
    sentence = "the application's configuration has not been read yet"


class AnswerLate(Reason, frozen=True):
    sentence = "the application master or driver has not answered yet; yarnctl continues to read it"


class DriverStarting(Reason, frozen=True):
    """In an application's first minute, when YARN's proxy redirects or nothing listens yet."""

    sentence = "its driver does not answer yet; yarnctl reads it again"


class ConfigurationUnreadable(Reason, frozen=True):
    sentence = "the application's configuration cannot be read: {fault}"
    fault: str


class MasterUnreachable(Reason, frozen=True):
    sentence = "the application master cannot be reached at {at}: {fault}"
    at: str
    fault: str


class ConfigurationOdd(Reason, frozen=True):
    """``error``: the kind of the error."""

    sentence = "the application's configuration is not valid ({error})"
    error: str


class NoStreamingReducer(Reason, frozen=True):
    sentence = (
        "[is_streaming?the streaming job has no reducer command|the job is a Java job, not a streaming job]:"
        " {key} is not set"
    )
    is_streaming: bool
    key: str


class NoReduces(Reason, frozen=True):
    sentence = "the job has no reduces"


class NoRunnerCarried(Reason, frozen=True):
    sentence = "the job's reducer is not wrapped in the task runner"
    remedy = "submit it with yarnctl wrap"


class RunnerOptionsOpen(Reason, frozen=True):
    sentence = "the task runner's options do not end with --"
    remedy = "submit it with yarnctl wrap"


class RunnerWithoutReducer(Reason, frozen=True):
    sentence = "the task runner's command line has no reducer after --"
    remedy = "submit it with yarnctl wrap"


class NotInHdfs(Reason, frozen=True):
    """``what``: its store, or its folder of requests; so below."""

    sentence = "the job's {what} {url} is not in HDFS, so yarnctl cannot read it"
    what: str
    url: str


class OtherNameNode(Reason, frozen=True):
    sentence = "the job's {what} is at {at}, yarnctl's NameNodes are {ours}"
    what: str
    at: str
    ours: str


class PathOdd(Reason, frozen=True):
    """With "..": it leaves its folder."""

    sentence = "the job's {what} has the unsafe path {path}"
    what: str
    path: str


class StoreOutside(Reason, frozen=True):
    sentence = "the job's store {path} is not below {root}"
    path: str
    root: str


class RequestsElsewhere(Reason, frozen=True):
    sentence = "the job reads orders from {path}, yarnctl writes to {ours}"
    path: str
    ours: str


class OtherOwner(Reason, frozen=True):
    sentence = "the job accepts orders from {owners:either}, yarnctl runs as {us}"
    owners: tuple[str, ...]
    us: str


class RunnerSays(Reason, frozen=True):
    """The task runner's own message."""

    sentence = "{text}"
    text: str


class CheckpointUnseen(Reason, frozen=True):
    sentence = "yarnctl cannot read the job's checkpoint, so it sends no order: {fault}"
    remedy = "give the store's folder a group that contains only the daemon"
    fault: str


class NoDrainTag(Reason, frozen=True):
    sentence = "the application has no tag that allows yarnctl to drain its executors"
    remedy = "submit it with yarnctl wrap --spark"


class SettingForbidsDrain(Reason, frozen=True):
    sentence = "the driver has {name}={said}; draining needs {needed}"
    remedy = "submit it with yarnctl wrap --spark"
    name: str
    said: str
    needed: str


class SparkTooOld(Reason, frozen=True):
    sentence = "executors of Spark {version} cannot be decommissioned with their blocks; 3.2 or newer can"
    version: str


class OnLabelledNode(Reason, frozen=True):
    """An application with workers chooses which leave, and capacity serves requests for its node's label."""

    sentence = "only some of the application's workers run on nodes with the label {label}"
    label: str


class HoldsResource(Reason, frozen=True):
    sentence = "the task's container holds {resource}, which yarnctl does not model"
    resource: str


_NotYet = ConfigurationUnread | AnswerLate | DriverStarting
_Unread = _NotYet | ConfigurationUnreadable | MasterUnreachable | ConfigurationOdd
_Foreign = InNoPreemptableQueue | LeftAlone | QueueUnclear | OtherKind
_Unwrapped = NoStreamingReducer | NoReduces | NoRunnerCarried | RunnerOptionsOpen | RunnerWithoutReducer
_Path = NotInHdfs | OtherNameNode | PathOdd | StoreOutside | RequestsElsewhere
_Store = OtherOwner | RunnerSays | CheckpointUnseen
_Undrained = NoDrainTag | SettingForbidsDrain | SparkTooOld | OnLabelledNode | HoldsResource
EligibilityReason = _Unread | _Foreign | _Unwrapped | _Path | _Store | _Undrained
"""Why a job's tasks cannot be suspended or drained (``why_not`` in the API)."""
