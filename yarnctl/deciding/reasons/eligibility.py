"""Why a job's reduces may not be suspended."""

from __future__ import annotations

from yarnctl.deciding.reasons.rooting import Reason


class InNoVictimQueue(Reason, frozen=True):
    """Its queue is not preemptable."""


class QueueUnclear(Reason, frozen=True):
    """Several leaf queues have the name that YARN writes beside the application (before Hadoop 3.4)."""

    queue: str


class OtherKind(Reason, frozen=True):
    """It is of another framework."""

    kind: str


class ConfigurationUnread(Reason, frozen=True):
    """Its configuration has not been read yet."""


class AnswerLate(Reason, frozen=True):
    """Its master or driver has not answered within this look; reading it goes on."""


class ConfigurationUnreadable(Reason, frozen=True):
    """Its master did not give its configuration."""

    fault: str


class MasterUnreachable(Reason, frozen=True):
    """Its master was not reached at this address; nothing is known of its configuration."""

    at: str
    fault: str


class ConfigurationOdd(Reason, frozen=True):
    """Its configuration is not valid; the kind of error."""

    error: str


class NoStreamingReducer(Reason, frozen=True):
    """No streaming job with a reducer of its own; ``key`` is not set."""

    is_streaming: bool
    key: str


class NoReduces(Reason, frozen=True):
    """It has no reduces."""


class NoRunnerCarried(Reason, frozen=True):
    """Its reducer is not wrapped in the task runner."""


class RunnerOptionsOpen(Reason, frozen=True):
    """The runner's options are not ended."""


class RunnerWithoutReducer(Reason, frozen=True):
    """The command line ends after the runner's options."""


class NotInHdfs(Reason, frozen=True):
    """Its store, or its folder of requests, is not in HDFS."""

    what: str
    url: str


class OtherNameNode(Reason, frozen=True):
    """Its store, or its folder of requests, is in another HDFS."""

    what: str
    at: str
    ours: str


class PathOdd(Reason, frozen=True):
    """Its store, or its folder of requests, has a path with "..": it leaves its folder."""

    what: str
    path: str


class StoreOutside(Reason, frozen=True):
    """Its store is not below the root that yarnctl may read."""

    path: str
    root: str


class RequestsElsewhere(Reason, frozen=True):
    """It reads requests from another folder than yarnctl writes to."""

    path: str
    ours: str


class OtherOwner(Reason, frozen=True):
    """It would not accept requests of yarnctl's user."""

    owners: tuple[str, ...]
    us: str


class RunnerSays(Reason, frozen=True):
    """The runner's own message."""

    text: str


class CheckpointUnseen(Reason, frozen=True):
    """yarnctl may not read its checkpoints."""

    fault: str


class NoDrainTag(Reason, frozen=True):
    """No tag of its submitter says that executors may be asked to leave."""


class SettingForbidsDrain(Reason, frozen=True):
    """A setting of its driver does not hold what its tag promises."""

    name: str
    said: str
    needed: str


class SparkTooOld(Reason, frozen=True):
    """Executors of this Spark cannot leave with their blocks."""

    version: str


class OnLabelledNode(Reason, frozen=True):
    """Its node has a label: what it would free serves no request without one."""

    label: str


class HoldsResource(Reason, frozen=True):
    """Its container holds a resource beside memory and vcores, of which no guarantee is modelled."""

    resource: str


EligibilityReason = (
    InNoVictimQueue
    | QueueUnclear
    | OtherKind
    | ConfigurationUnread
    | AnswerLate
    | ConfigurationUnreadable
    | MasterUnreachable
    | ConfigurationOdd
    | NoStreamingReducer
    | NoReduces
    | NoRunnerCarried
    | RunnerOptionsOpen
    | RunnerWithoutReducer
    | NotInHdfs
    | OtherNameNode
    | PathOdd
    | StoreOutside
    | RequestsElsewhere
    | OtherOwner
    | RunnerSays
    | CheckpointUnseen
    | NoDrainTag
    | SettingForbidsDrain
    | SparkTooOld
    | OnLabelledNode
    | HoldsResource
)
