"""Host: one cluster that the contract is held against, and what a test may ask of it.

Law: what stands here can be had of any Hadoop 3 cluster by its URLs: requests, time that passes, a job that
is submitted as that cluster's users do. Nothing knows an emulator. What a host cannot do is in ``cannot``:
ability -> reason, and the test that needs it is skipped with that reason.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any, Literal, NamedTuple, Protocol, TypeVar

import pytest

T = TypeVar("T")

PATIENCE_S = 120.0
"""A test gives up waiting for an emulated host after so long (of the host's own time)."""

LOOK_S = 0.1

Ability = Literal["scheduler-conf", "history", "standby", "silent-node"]
"""What a cluster may lack: a scheduler store that can be changed, a history server, a ResourceManager on
standby, a node that fell silent when the host began."""


class Answer(NamedTuple):
    """What a server said; header names are in lower case. No redirect was followed."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def kind(self) -> str:
        """The media type, without parameters."""
        return self.headers.get("content-type", "").partition(";")[0].strip().lower()

    def json(self) -> Any:
        return json.loads(self.body)


class JobPlan(NamedTuple):
    """A MapReduce job. ``holds``: its reduces go on until they are ended, all but the first ``done`` ones."""

    name: str
    queue: str
    user: str = "alice"
    maps: int = 1
    reduces: int = 1
    holds: bool = False
    done: int = 0
    tags: str = ""


class Host(Protocol):
    """A running cluster with the queues ``production`` (95 %) and ``research`` (5 %), maxima 100 %.

    ``rm``: base URL of the ResourceManager; ``hdfs``: base URL of WebHDFS (with /webhdfs/v1); ``history``: of
    the history server, ``standby``: of a ResourceManager that is one ("" where there is none). ``superuser``:
    of HDFS. ``silent_node``: a node that beat no more from the beginning on. A container of a job is
    ``slot_mib``; whoever waits gives up after ``patience_s``.
    """

    name: str

    @property
    def version(self) -> Literal["3.3", "3.4", "3.5"]:
        """Which Hadoop answers."""

    rm: str
    hdfs: str
    history: str
    superuser: str
    slot_mib: int
    patience_s: float
    silent_node: str
    standby: str
    cannot: Mapping[Ability, str]

    def ask(self, method: str, url: str, body: bytes = b"", headers: Mapping[str, str] = {}) -> Answer:
        """Ask once, following nothing."""
        ...

    def now_s(self) -> float:
        """Return the host's time, from any zero."""
        ...

    def wait(self, span_s: float) -> None:
        """Let time pass."""
        ...

    def submit(self, plan: JobPlan) -> str:
        """Submit a job as users of this cluster do; return its application's id."""
        ...

    def context(self, application: str, plan: JobPlan) -> dict[str, Any]:
        """Return a submission context for POST /apps; its application may run or wait, and can be killed."""
        ...

    def close(self) -> None: ...


def need(host: Host, ability: Ability) -> None:
    """Skip a test that this host cannot pass, with the host's own reason."""
    if ability in host.cannot:
        pytest.skip(f"{host.name}: {host.cannot[ability]}")


def until(host: Host, look: Callable[[], T], what: str) -> T:
    began_s = host.now_s()
    while not (found := look()):
        assert host.now_s() - began_s < host.patience_s, f"{host.name}: never {what}"
        host.wait(LOOK_S)
    return found
