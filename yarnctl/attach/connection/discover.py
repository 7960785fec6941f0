"""Discovery: where HDFS and the history server answer, learned from the ResourceManager's configuration.

Law: what the user names wins; this is asked only where nothing was named. A wildcard address (all
interfaces) means the host of ``fs.defaultFS``, and without one the ResourceManager's own.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from urllib.parse import urlsplit

from yarnctl.errors import BadInput
from yarnctl.hadoop import site_xml
from yarnctl.hadoop.addresses import DEFAULTS, history_server, name_nodes
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
    said = configuration.get("dfs.namenode.http-address", "") + configuration.get("fs.defaultFS", "")
    return tuple(_seen_from(one, said, manager_url) for one in found)


def history_server_in(configuration: Mapping[str, str], manager_url: str) -> str:
    """Return the base URL of the MapReduce history server by a daemon's configuration, "" if it says none.

    A ResourceManager need not know it (it reads no mapred-site.xml); then ``history_server_by`` may.
    """
    entries = {name: Entry(value, False, WHERE) for name, value in configuration.items()}
    said = configuration.get("mapreduce.jobhistory.webapp.address", "")
    return _seen_from(history_server(Site(entries, DEFAULTS)), said, manager_url)


def history_server_by(folder: Path, environment: Mapping[str, str]) -> str:
    """Return the base URL of the MapReduce history server by the files in HADOOP_CONF_DIR, "" if none."""
    return history_server(site_xml.load(folder, DEFAULTS, environment))


def _seen_from(address: str, said: str, manager_url: str) -> str:
    """Return an address with the ResourceManager's host where it was a wildcard."""
    host = urlsplit(manager_url).hostname or ""
    if not host or "127.0.0.1" in said or "localhost" in said:
        return address
    return address.replace(_LOOPBACK, f"//[{host}]:" if ":" in host else f"//{host}:")


def require_name_nodes(found: tuple[str, ...]) -> tuple[str, ...]:
    """Return what was found; raises BadInput where that is nothing."""
    if not found:
        remedy = "give --name-node, set YARNCTL_NAME_NODE, or run without --enforce"
        raise BadInput(
            "name_nodes", "no NameNode is named, and the ResourceManager's /conf names none", remedy
        )
    return found
