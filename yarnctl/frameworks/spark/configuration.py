"""The settings of Spark, and the tag, with which executors may be drained (docs/facts/spark.md)."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Literal, NamedTuple

from yarnctl.hadoop.wire.tags import routes_in

Route = Literal["signal", "plugin"]  # SIGTERM to the container, or a plugin in the driver

TRAP = "yarnctl-trap.sh"  # It keeps a container's shell alive after SIGTERM (docs/facts/spark.md, 2)
PLUGIN = "yarnctl.Leave"  # The class of the driver's plugin
LEAST_VERSION = (3, 2)  # 3.1 moves shuffle blocks; 3.2 ends executors when all blocks are moved

DECOMMISSION = "spark.decommission.enabled"
MOVES = "spark.storage.decommission.enabled"
MOVES_SHUFFLE = "spark.storage.decommission.shuffleBlocks.enabled"
MOVES_CACHE = "spark.storage.decommission.rddBlocks.enabled"
MOVES_EVERY = "spark.storage.decommission.replicationReattemptInterval"
SIGNAL = "spark.executor.decommission.signal"
SHELL_FILE, FILES = "spark.executorEnv.BASH_ENV", "spark.yarn.dist.files"
ARCHIVES, OF_R = "spark.yarn.dist.archives", "#sparkr"
"""Spark ships its package for R under this name (SparkSubmit); R's processes are in a container's group."""
FORCE_KILL = "spark.executor.decommission.forceKillTimeout"
"""Spark kills an executor that has not left by then, with its tasks; not set by default. No other setting of
Spark 3.2 to 4.1 does so: ``spark.executor.decommission.killInterval`` only announces a kill from outside."""
FALLBACK = "spark.storage.decommission.fallbackStorage.path"
BLOCKS_MAX = "spark.storage.decommission.shuffleBlocks.maxDiskSize"
"""The maximum size of shuffle blocks on an executor. It rejects more; without a fallback those are lost."""
ATTEMPTS, ATTEMPTS_OF_SPARK = "spark.stage.maxConsecutiveAttempts", 4
"""Spark fails a job if this number of attempts at a stage did not find their blocks."""
SHUFFLE_SERVICE = "spark.shuffle.service.enabled"
PLUGINS = "spark.plugins"
REQUESTS, REQUESTS_OWNER = "spark.yarnctl.requests", "spark.yarnctl.requests.owner"
"""The settings with the plugin's folder of orders and the account that must have written them."""
DYNAMIC, DYNAMIC_MIN = "spark.dynamicAllocation.enabled", "spark.dynamicAllocation.minExecutors"
SHUFFLE_MANAGER, SHUFFLE_STORAGE = "spark.shuffle.manager", "spark.shuffle.sort.io.plugin.class"
CELEBORN_FALLBACK = "spark.celeborn.client.spark.shuffle.fallback.policy"
RELIABLE_VERSION = (3, 5)  # Spark reads whether shuffle storage is reliable since 3.5 (SPARK-42689)
START = "spark.app.startTime"  # Set by Spark: the instant of a driver's start

REQUIRED: Mapping[str, str] = {
    DECOMMISSION: "true",
    MOVES: "true",
    MOVES_SHUFFLE: "true",
    MOVES_CACHE: "true",
    MOVES_EVERY: "1s",
}
"""Without the last (Spark's 30 s) an executor that is empty stays for half a minute to a minute."""
HEARTBEAT, HEARTBEAT_MS = "spark.yarn.scheduler.heartbeat.interval-ms", "1000"
"""The master returns containers of removed executors with its next heartbeat (Spark: each 3 s)."""
REQUIRED_BY_SIGNAL: Mapping[str, str] = {SIGNAL: "TERM", SHELL_FILE: f"./{TRAP}"}

_JAVA_OPTIONS = (
    "spark.executor.extraJavaOptions",
    "spark.executor.defaultJavaOptions",
    "spark.executorEnv.JAVA_TOOL_OPTIONS",
    "spark.executorEnv.JDK_JAVA_OPTIONS",
    "spark.executorEnv._JAVA_OPTIONS",
)
_NO_SIGNALS = re.compile(r"""(?<!\S)["']?-(Xrs|XX:\+ReduceSignalUsage)["']?(?!\S)|\(redacted\)""")
"""Spark redacts a whole value that has a password: it may have ``-Xrs``, too."""
_VERSION = re.compile(r"([0-9]{1,3})\.([0-9]{1,4})")


def version_of(text: str) -> tuple[int, int]:
    """Return major and minor of a version; (0, 0) if it is none."""
    match = _VERSION.match(text)
    return (int(match[1]), int(match[2])) if match else (0, 0)


def no_signal_options(settings: Mapping[str, str]) -> list[str]:
    """Return the settings that give, or may give, executors ``-Xrs``: it forbids handlers of signals."""
    return [name for name in _JAVA_OPTIONS if _NO_SIGNALS.search(settings.get(name, ""))]


def is_as_needed(found: str, needed: str) -> bool:
    """Return whether a setting has a value, as Spark reads it: ``true`` in any case, others as they are."""
    return (found.strip().lower() if needed == "true" else found.strip()) == needed


def route_of(tags: Sequence[str]) -> Route | None:
    """Return the route that a tag allows; None: no executor of this application may be drained."""
    found = routes_in(tags)
    if "plugin" in found:
        return "plugin"
    return "signal" if "signal" in found else None


def leaves_whole(settings: Mapping[str, str], route: Route) -> bool:
    """Return whether all executors may leave: shuffle blocks go to a folder, and the driver waits."""
    return route == "plugin" and settings.get(FALLBACK, "").strip().endswith("/")


class BlockPlaces(NamedTuple):
    """Where shuffle blocks of an executor that leaves go.

    ``are_remote``: they are on reliable storage already. ``have_fallback``: that storage receives as many as
    an executor. ``removes_idle``: a shuffle service serves those of an executor that has no task, so that the
    plugin removes it without moving any.
    """

    are_remote: bool = False
    have_fallback: bool = False
    removes_idle: bool = False


LOCAL_BLOCKS = BlockPlaces()


def dynamic_minimum(settings: Mapping[str, str]) -> int | None:
    """Return the number of executors below which dynamic allocation requests more; None: it is off."""
    if settings.get(DYNAMIC, "").strip().lower() != "true":
        return None
    told = settings.get(DYNAMIC_MIN, "0").strip()
    return int(told) if re.fullmatch("[0-9]{1,9}", told) else 0


def ships_trap(settings: Mapping[str, str]) -> bool:
    """Return whether containers have the trap: without it the signal ends their shell, which Spark counts."""
    files = settings.get(FILES, "").split(",")
    return TRAP in {file.strip().rpartition("/")[2].rpartition("#")[2] for file in files}


def places_in(settings: Mapping[str, str], route: Route, version: str) -> BlockPlaces:
    """Return where a driver's blocks go, by its settings."""
    return BlockPlaces(
        are_remote=_are_remote(settings) and version_of(version) >= RELIABLE_VERSION,
        have_fallback=bool(settings.get(FALLBACK, "").strip()),
        removes_idle=route == "plugin" and settings.get(SHUFFLE_SERVICE, "").strip().lower() == "true",
    )


def _are_remote(settings: Mapping[str, str]) -> bool:
    """Return whether no shuffle block is on an executor: as these two declare it to Spark.

    Celeborn falls back to Spark's own shuffle unless its policy forbids that (``CelebornShuffleDataIO``);
    Uniffle's manager never does (``RssShuffleDataIo``).
    """
    manager = settings.get(SHUFFLE_MANAGER, "").rpartition(".")[2]
    storage = settings.get(SHUFFLE_STORAGE, "").rpartition(".")[2]
    if storage == "CelebornShuffleDataIO":
        return manager == "SparkShuffleManager" and settings.get(CELEBORN_FALLBACK, "").upper() == "NEVER"
    return (manager, storage) == ("RssShuffleManager", "RssShuffleDataIo")
