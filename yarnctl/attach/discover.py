"""Discovery: where HDFS answers, learned from the ResourceManager's own configuration.

Law: what the user names wins; this is asked only where nothing was named. A wildcard address (all
interfaces) means the host of ``fs.defaultFS``, and without one the ResourceManager's own.
"""

from __future__ import annotations

from collections.abc import Mapping
from urllib.parse import urlsplit

from yarnctl.errors import BadInput
from yarnctl.hadoop.addresses import DEFAULTS, name_nodes
from yarnctl.hadoop.resource_manager import ResourceManager
from yarnctl.hadoop.site_xml import Entry, Site

WHERE = "the ResourceManager's /conf"
_LOOPBACK = "//127.0.0.1:"


def discover_name_nodes(manager: ResourceManager, manager_url: str) -> tuple[str, ...]:
    """Return the base URLs of WebHDFS, () if nothing is said. Raises as the client does, and BadInput."""
    return name_nodes_in(manager.configuration(), manager_url)


def name_nodes_in(configuration: Mapping[str, str], manager_url: str) -> tuple[str, ...]:
    """Return the base URLs of WebHDFS by a daemon's configuration; raises BadInput naming the key."""
    entries = {name: Entry(value, False, WHERE) for name, value in configuration.items()}
    found = name_nodes(Site(entries, DEFAULTS))
    host = urlsplit(manager_url).hostname or ""
    said = configuration.get("dfs.namenode.http-address", "") + configuration.get("fs.defaultFS", "")
    if not host or "127.0.0.1" in said or "localhost" in said:
        return found
    shown = f"[{host}]" if ":" in host else host
    return tuple(one.replace(_LOOPBACK, f"//{shown}:") for one in found)


def require_name_nodes(found: tuple[str, ...]) -> tuple[str, ...]:
    """Return what was found; raises BadInput where that is nothing."""
    if not found:
        remedy = "give --name-node, set YARNCTL_NAME_NODE, or run without --enforce"
        raise BadInput(
            "name_nodes", "no NameNode is named, and the ResourceManager's /conf names none", remedy
        )
    return found
