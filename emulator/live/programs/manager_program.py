"""The program behind ``yarn-emulator rm``: manager, REST and WebHDFS on one port.

Law: everything is made before the first request is taken, and bad input is found before a port is opened.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import msgspec

from emulator.cluster.entities import ParentConfig, TreeLeafConfig
from emulator.cluster.kernel import Kernel
from emulator.cluster.timing import HADOOP3
from emulator.live.manager.manager_settings import labels_of_text, queues_of_text
from emulator.live.manager.service import QUEUES, LiveResourceManager, ManagerSettings
from emulator.live.rest.dialect import Version
from emulator.live.rest.site import ManagerSite
from emulator.live.store.webhdfs_server import Faults, WebHdfsServer
from emulator.live.wire.http_server import bind, name_in, serve, url_of
from emulator.live.wire.real_time_driver import RealTimeDriver
from emulator.scenario.resource_types import read_resource_types
from emulator.scenario.scheduler_file import SchedulerFile, read_scheduler_file
from emulator.scenario.scheduler_keys import CALCULATOR, DOMINANT, PREFIX
from yarnctl.errors import BadInput

SUPERUSER = "yarnctl"
"""The user that may read all checkpoints: by default the one that ``yarnctl run`` is to a cluster."""


class Options(msgspec.Struct, frozen=True, kw_only=True):
    """The command line's values; spans in ms of kernel time, None: the default."""

    port: int = 8088
    host: str = "127.0.0.1"
    public_url: str = ""
    work: Path
    queues: str = ""
    scheduler_xml: Path | None = None
    node_labels: str = ""
    resource_types: Path | None = None
    dialect: Version = "3.4"
    speed: float = 1.0
    node_expiry_ms: int | None = None
    am_expiry_ms: int | None = None
    superuser: str = ""
    seed: int = 1
    faults: bool = False
    allow_hosts: tuple[str, ...] = ()


def settings_of(options: Options) -> ManagerSettings:
    """Return the manager's settings. Raises BadInput."""
    if options.queues and options.scheduler_xml is not None:
        raise BadInput("--queues", "cannot be combined with --scheduler-xml", "give one of them")
    if options.node_labels and options.scheduler_xml is None:
        problem = "has no effect without --scheduler-xml"
        raise BadInput("--node-labels", problem, "give the partitions' capacities in a file")
    queues = queues_of_text(options.queues) if options.queues else QUEUES
    timing = HADOOP3
    if options.node_expiry_ms is not None:
        timing = msgspec.structs.replace(timing, node_expiry_ms=options.node_expiry_ms)
    settings = ManagerSettings(queues=queues, timing=timing, seed=options.seed)
    if options.scheduler_xml is not None:
        file = read_scheduler_file(options.scheduler_xml)
        settings = msgspec.structs.replace(settings, queues=file.leaves, parents=file.parents, keys=file.keys)
    if options.node_labels:
        settings = msgspec.structs.replace(settings, labels=labels_of_text(options.node_labels))
    if options.resource_types is not None:
        settings = msgspec.structs.replace(settings, types=_types(options.resource_types, settings))
    if options.am_expiry_ms is not None:
        settings = msgspec.structs.replace(settings, am_expiry_ms=options.am_expiry_ms)
    return settings


def _types(path: Path, settings: ManagerSettings) -> Mapping[str, int]:
    """Return the resource types of a file for the queues of a tree. Raises BadInput."""
    if not settings.parents:
        problem = "has no effect without --scheduler-xml"
        raise BadInput("--resource-types", problem, "give the queues in a file")
    if SchedulerFile((), (), settings.keys).counts_memory_alone:
        problem = "has no effect with a resource-calculator that counts memory alone, Hadoop's default"
        raise BadInput("--resource-types", problem, f"set {PREFIX}{CALCULATOR}={DOMINANT} in --scheduler-xml")
    for queue in (*settings.parents, *settings.queues):
        if isinstance(queue, ParentConfig | TreeLeafConfig) and queue.absolute is not None:
            problem = f"root.{queue.name} has absolute resources of memory and vcores only"
            raise BadInput("--resource-types", problem, "use percentages or weights in --scheduler-xml")
    return read_resource_types(path)


def site_of(options: Options, settings: ManagerSettings, url: str) -> ManagerSite:
    """Make the manager and its site at ``url``."""
    manager = LiveResourceManager(RealTimeDriver(Kernel(), options.speed), settings)
    site = ManagerSite(manager, options.public_url or url, dialect=options.dialect)
    store = WebHdfsServer(
        options.work / "hdfs",
        options.public_url or url,
        superuser=options.superuser or SUPERUSER,
        faults=Faults() if options.faults else None,
    )
    store.install(site.web)
    site.web.names |= {name_in(site.url), *options.allow_hosts}
    return site


def run(options: Options, as_json: bool, say: Callable[[str], object]) -> None:
    """Serve until it is stopped. Raises BadInput."""
    settings = settings_of(options)
    listener = bind(options.host, options.port)
    site = site_of(options, settings, url_of(listener))

    def started() -> None:
        facts = {"url": site.url, "epoch": site.manager.epoch}
        line = f"yarn-emulator rm: {site.url} answers (Hadoop {site.dialect.hadoop_version} dialect)"
        say(msgspec.json.encode(facts).decode() if as_json else line)

    serve(site.web, listener, started)
