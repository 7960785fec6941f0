"""Decide which jobs' reduces may be suspended, and which folders their runners use.

The job's effective configuration is read by the runner's own code (``read_settings``): a job that the
runner would reject on the node is not eligible, with the runner's text. In addition the port must be able to
reach the same store and requests, and the runner must accept yarnctl's user as their owner.
"""

from __future__ import annotations

import logging
import re
import shlex
from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple
from urllib.parse import unquote_plus, urlsplit

from yarnctl.attach.connection.calls import Problem, attempt
from yarnctl.attach.connection.connection import Attachment, CheckpointStore, Connection
from yarnctl.attach.eligibility.settings_reader import SettingsReader
from yarnctl.deciding.reasons.eligibility import (
    ConfigurationOdd,
    EligibilityReason,
    NoReduces,
    NoRunnerCarried,
    NoStreamingReducer,
    NotInHdfs,
    OtherNameNode,
    OtherOwner,
    PathOdd,
    RequestsElsewhere,
    RunnerOptionsOpen,
    RunnerSays,
    RunnerWithoutReducer,
    StoreOutside,
)
from yarnctl.frameworks.mapreduce.master import MasterClient
from yarnctl.frameworks.mapreduce.rest import KIND
from yarnctl.hadoop.proxied import Absent
from yarnctl.hadoop.wire import yarn
from yarnctl.journal.rendering import text
from yarnctl.task_runner.hadoop_words import split_command
from yarnctl.task_runner.runner.protocol.job_conf import HOLD_MS, read_settings
from yarnctl.task_runner.runner.protocol.key_rule import KeyRule
from yarnctl.task_runner.runner.protocol.manifests import NO_SENSE, printable
from yarnctl.task_runner.runner.protocol.stores import Unusable

_LOG = logging.getLogger("yarnctl.attach")

REDUCER = "stream.reduce.streamprocessor"
ENVIRONMENT = "stream.addenvironment"
RUNNER = "yarnctl_task.py"
STARTERS = ("sh", "/bin/sh", "python3", "python", "/usr/bin/python3")
_TASK = {
    "mapreduce_job_id": "job_0_0",
    "mapreduce_task_id": "task_0_0_r_0",
    "mapreduce_task_attempt_id": "attempt_0_0_r_0_0",
}
"""Variables of each task's own environment; the job's configuration does not contain them."""


class Eligibility(NamedTuple):
    """A job whose reduces can be suspended. ``store_path``: the folder of checkpoints in our HDFS.

    ``owners``: the users that may own its contents. ``reducers``: the original reducer, in each split.
    """

    rule: KeyRule
    reducers: tuple[tuple[str, ...], ...]
    store_path: str
    owners: tuple[str, ...]
    release_wait_ms: int = HOLD_MS


COMMAND_MAX = 1 << 16  # The maximum length of a reducer's command, which is split character by character
PATH_MAX = 200  # The characters of a path that a reason repeats


class _Unfit(Exception):
    """The job cannot be suspended."""

    def __init__(self, why: EligibilityReason) -> None:
        super().__init__(why)
        self.why = why


def judge(
    configuration: Mapping[str, str], user: str, attachment: Attachment
) -> Eligibility | EligibilityReason:
    """Return the eligibility, or why there is none. ``user`` is the application's."""
    try:
        return _judge(configuration, user, attachment)
    except _Unfit as unfit:
        return unfit.why
    except Unusable as problem:
        return RunnerSays(str(problem)[:300])
    except NO_SENSE as error:
        return ConfigurationOdd(type(error).__name__)


def _judge(configuration: Mapping[str, str], user: str, attachment: Attachment) -> Eligibility:
    command = unquote_plus(configuration.get(REDUCER, ""))
    if not command:
        is_streaming = any(name.startswith("stream.") for name in configuration)
        raise _Unfit(NoStreamingReducer(is_streaming, REDUCER))
    if len(command) > COMMAND_MAX:
        raise _Unfit(ConfigurationOdd("TooLong"))
    splits = [words for words in (split_command(command), _by_shell(command)) if words]
    found = [_runner_words(words) for words in splits]
    options, _ = found[0]
    added = environment(configuration.get(ENVIRONMENT, ""))
    words = {re.sub(r"[^A-Za-z0-9]", "_", name): value for name, value in configuration.items()}
    settings = read_settings(options, {**words, "USER": user, **added, **_TASK})
    if configuration.get("mapreduce.job.reduces", "1") == "0":
        raise _Unfit(NoReduces())
    store_path = _reachable(settings.store_url, attachment, "store")
    if attachment.store_root and not (
        store_path == attachment.store_root.rstrip("/")
        or store_path.startswith(attachment.store_root.rstrip("/") + "/")
    ):
        raise _Unfit(StoreOutside(store_path[:PATH_MAX], attachment.store_root))
    path = _reachable(settings.requests_url, attachment, "folder of requests")
    if path != attachment.requests_root.rstrip("/"):
        raise _Unfit(RequestsElsewhere(path[:PATH_MAX], attachment.requests_root))
    owners = settings.request_owners or (settings.user,)
    if attachment.requests_owner not in owners:
        raise _Unfit(OtherOwner(owners, attachment.requests_owner))
    reducers = tuple(dict.fromkeys(tuple(printable(rest)) for _, rest in found))
    return Eligibility(settings.rule, reducers, store_path, (settings.user,), settings.hold_ms)


def _runner_words(words: list[str]) -> tuple[list[str], list[str]]:
    place = 1 if words[0] in STARTERS else 0
    if len(words) <= place or words[place].rpartition("/")[2] != RUNNER:
        raise _Unfit(NoRunnerCarried())
    if "--" not in words:
        raise _Unfit(RunnerOptionsOpen())
    end = words.index("--")
    if not words[end + 1 :]:
        raise _Unfit(RunnerWithoutReducer())
    return words[place + 1 : end], words[end + 1 :]


def _by_shell(command: str) -> list[str]:
    try:
        return shlex.split(command)
    except ValueError:
        return []


def environment(words: str) -> dict[str, str]:
    """Return the variables of ``-cmdenv``: ``A=1 B=2``, split at blanks as streaming does."""
    pairs = (word.partition("=") for word in words.split())
    return {name: value for name, equals, value in pairs if equals}


def _reachable(url: str, attachment: Attachment, what: str) -> str:
    """Return the path of a store's URL in yarnctl's HDFS; a URL elsewhere makes the job ineligible."""
    parts = urlsplit(url)
    if parts.scheme not in ("webhdfs", "swebhdfs"):
        raise _Unfit(NotInHdfs(what, url[:120]))
    hosts = {host.lower() for host in parts.netloc.split(",") if host}
    if not hosts & attachment.hosts:
        ours = ", ".join(sorted(attachment.hosts)) or "none"
        raise _Unfit(OtherNameNode(what, parts.netloc[:120], ours))
    path = "/" + parts.path.strip("/")
    if ".." in path.split("/"):
        raise _Unfit(PathOdd(what, path[:120]))
    return path


class EligibilityReader(SettingsReader[Eligibility]):
    """Reads jobs' configurations from their masters, and keeps their eligibility."""

    verbs = ("suspend", "kill")
    least, note = 2, "%s is never suspended: %s"

    def __init__(
        self,
        connection: Connection,
        master: Callable[[str], MasterClient],
        reasons: dict[str, EligibilityReason],
    ) -> None:
        super().__init__(connection, KIND, Eligibility, reasons)
        self._master = master
        self._quarantined: dict[str, tuple[int, Eligibility]] = {}

    def _judge(self, row: yarn.AppInfo) -> Eligibility | EligibilityReason | Absent:
        """Read a job's configuration and judge it. One that cannot be parsed is not read again."""
        configuration = self._master(row.application).configuration()
        if isinstance(configuration, Absent):
            return configuration
        found = attempt(lambda user: judge(configuration, user, self._connection.settings), row.user)
        return ConfigurationOdd(str(found)[:80]) if isinstance(found, Problem) else found

    def read_some(self, rows: Iterable[yarn.AppInfo]) -> None:
        """End quarantines that are over, and read some configurations."""
        now_ms = self._connection.clock()
        for name in [name for name, (until_ms, _) in self._quarantined.items() if now_ms >= until_ms]:
            self.allowed[name] = self._quarantined.pop(name)[1]
            self.reasons.pop(name, None)
        super().read_some(rows)

    def store_of(self, application: str) -> tuple[CheckpointStore, Eligibility] | None:
        """Return the store of a job's checkpoints; None if the job is not eligible or there is no HDFS."""
        if self._connection.hdfs is None:
            return None
        found = self.allowed.get(application) or self.judged(self._connection.row(application))
        if found is None:
            return None
        most = self._connection.settings.observation_bytes
        return CheckpointStore(self._connection.hdfs, found.store_path, most), found

    def quarantine(self, application: str, why: EligibilityReason) -> None:
        """Exclude an eligible job for ``quarantine_ms``, for a cause outside its configuration."""
        eligibility = self.allowed.pop(application, None)
        if eligibility is not None:
            until_ms = self._connection.clock() + self._connection.settings.quarantine_ms
            self._quarantined[application] = until_ms, eligibility
            self.reasons[application] = why
            _LOG.warning("%s is not suspended for now: %s", application, text(why))

    def drop(self, applications: Iterable[str]) -> None:
        """Drop jobs that have ended."""
        for name in (ended := tuple(applications)):
            self._quarantined.pop(name, None)
        super().drop(ended)
