"""The web proxy: the address at which the pages of applications' masters are served.

Law: the first source that names an address counts.

1. ``yarn.web-proxy.address`` in the ResourceManager's /conf. Empty, or the ResourceManager's own address: the
   ResourceManagers serve the proxy.
2. The same key in the yarn-site.xml of HADOOP_CONF_DIR. The file is not read where /conf shows the key, and
   one that cannot be used is passed over.
3. The part before ``/proxy/`` of the applications' ``trackingUrl``.
4. The ResourceManagers.

Behind a gateway with a password the gateway's own address counts: the others are inside.

An application's owner must not choose an address. The ResourceManager makes the ``trackingUrl`` of a master
that it started itself, and repeats what an *unmanaged* master registered. So a ``trackingUrl`` counts only if

* it has the form ``http(s)://HOST[:PORT]/proxy/APPLICATION/...`` with the id of exactly that application,
* the ResourceManager reports that the application is not unmanaged, to a caller with the right to see it
  (if a version does not report it: if the host is a ResourceManager's),
* all such applications name the same address, and its port is not a ResourceManager's (then it is another
  name of that ResourceManager), and
* authentication is ``simple``: a ticket goes only to hosts that the administrator's options and files, or the
  ResourceManager's own configuration, name.

``originalTrackingUrl`` is set by the owner, and never read.
"""

from __future__ import annotations

import contextlib
import logging
import os
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlsplit

from yarnctl.attach.connection.connection import host_in, site_of
from yarnctl.config import ClusterAddress
from yarnctl.errors import BadInput, YarnctlError
from yarnctl.hadoop import site_xml
from yarnctl.hadoop.addresses import DEFAULTS, WEB_PROXY, web_proxy
from yarnctl.hadoop.http.transport import Transport
from yarnctl.hadoop.resource_manager import ResourceManager
from yarnctl.hadoop.wire.yarn import TrackedApplication

SITE_FILES = ("core-site.xml", "yarn-site.xml")
RESOURCE_MANAGER, PROXY = "ResourceManager", "web proxy"
AGAIN_MS, NOT_FOUND_AGAIN_MS = 60_000, 5_000  # Determine it again: one was found, none was found

_LOG = logging.getLogger("yarnctl.attach")


class ProxyAddress(NamedTuple):
    """The address of masters. ``source``: the setting that names it; ``is_named`` False: none does so far."""

    addresses: tuple[str, ...]
    daemon: str
    source: str
    is_named: bool = True


def find_proxy(
    cluster: ClusterAddress,
    manager: ResourceManager,
    configuration: Mapping[str, str] | None,
    manager_url: str,
) -> ProxyAddress:
    """Return the proxy's address; ``configuration`` is the ResourceManager's (None: not shown)."""
    if cluster.authentication == "basic":
        return ProxyAddress(cluster.resource_managers, PROXY, "the gateway serves the web proxy")
    here = host_in(manager_url)
    address = None if configuration is None else _usable(configuration, here)
    source = f"{WEB_PROXY} in the ResourceManager's /conf"
    if address is None and cluster.hadoop_conf_dir:
        address, source = _by_files(Path(cluster.hadoop_conf_dir), here), f"{WEB_PROXY} in yarn-site.xml"
    if address is None and cluster.identity.method == "simple":
        try:
            rows = manager.tracked_applications()
        except YarnctlError:
            rows = ()
        address = tracked_base(rows, cluster.resource_managers) or None
        source = "the applications' trackingUrl"
    if address:
        return ProxyAddress((address,), PROXY, source)
    is_named = address is not None
    source = "the ResourceManager serves the web proxy" if is_named else f"{WEB_PROXY} is not shown"
    return ProxyAddress(cluster.resource_managers, RESOURCE_MANAGER, source, is_named)


def _usable(configuration: Mapping[str, str], here: str) -> str | None:
    with contextlib.suppress(BadInput):
        return web_proxy(site_of(configuration), here)
    return None


def _by_files(folder: Path, here: str) -> str | None:
    with contextlib.suppress(BadInput):
        return web_proxy(site_xml.load(folder, DEFAULTS, os.environ, names=SITE_FILES), here)
    return None


def tracked_base(rows: Iterable[TrackedApplication], managers: Iterable[str]) -> str:
    """Return the one address before ``/proxy/`` of all applications that count; "" if there is none."""
    hosts, ports = zip(*map(_host_and_port, managers), strict=True)
    found = set()
    for row in rows:
        match = re.fullmatch(_BASE + re.escape(f"/proxy/{row.application}") + "(?:/.*)?", row.tracking_url)
        if match is None or row.state != "RUNNING":
            continue
        is_managed = row.unmanaged is False and row.submitted_at_ms > 0  # without the right all is false
        if is_managed or (row.unmanaged is None and _host_and_port(match[1])[0] in hosts):
            found.add(match[1])
    base = found.pop() if len(found) == 1 else ""
    return base if base and _host_and_port(base)[1] not in ports else ""


_BASE = (
    r"(https?://(?:[A-Za-z0-9._-]+|\[[0-9A-Fa-f:]+\])(?::[1-9][0-9]{0,3}|:[1-5][0-9]{4}|:6[0-4][0-9]{3})?)"
)


def _host_and_port(url: str) -> tuple[str, int]:
    parts = urlsplit(url)
    return parts.hostname or "", parts.port or (443 if parts.scheme == "https" else 80)


class WebProxy:
    """Keeps the transport of ``masters`` at the web proxy's address."""

    def __init__(self, cluster: ClusterAddress, manager: Transport, masters: Transport) -> None:
        self._cluster = cluster
        self._manager = manager
        self._masters = masters
        self._by: Mapping[str, str] | None = None
        self._due_ms = 0

    def locate(self, configuration: Mapping[str, str] | None, now_ms: int) -> None:
        """Determine the address again if ``configuration`` is a new object or the last result is too old."""
        if configuration is self._by and now_ms < self._due_ms:
            return
        found = find_proxy(self._cluster, ResourceManager(self._manager), configuration, self._manager.pinned)
        self._by = configuration
        self._due_ms = now_ms + (AGAIN_MS if found.is_named else NOT_FOUND_AGAIN_MS)
        if found.addresses != self._masters.addresses:
            _LOG.info("address of ApplicationMasters: %s (%s)", " and ".join(found.addresses), found.source)
            self._masters.move_to(found.addresses, found.daemon)
