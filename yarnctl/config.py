"""Configuration: the cluster, and yarnctl's user and authentication there.

* Everything is checked before anything is opened, and every value keeps its source.
* Precedence: an option, then an environment variable, then the TOML file, then Hadoop's own files in
  ``HADOOP_CONF_DIR``.
* An unknown key or table is rejected, with the nearest known one. ``[run]`` has the options of ``yarnctl
  run`` (:mod:`yarnctl.cli.settings_file`).

::

    [cluster]
    resource_managers = ["http://rm1:8088", "http://rm2:8088"]   # YARNCTL_RM, comma-separated
    name_nodes = ["http://nn1:9870"]                              # YARNCTL_NAME_NODE
    user = "yarnctl"                                              # YARNCTL_USER
    authentication = "simple"                          # YARNCTL_AUTHENTICATION, or "kerberos", "basic"
    password_file = "/etc/yarnctl/password"                       # YARNCTL_PASSWORD_FILE, for "basic"
    ca_file = "/etc/ssl/cluster.pem"                              # YARNCTL_CA_FILE
    token_over_http = false                                       # YARNCTL_TOKEN_OVER_HTTP=1
    hadoop_conf_dir = "/etc/hadoop/conf"                          # HADOOP_CONF_DIR
    connect_ms = 3000
    read_timeout_ms = 10000
    answer_ms = 20000
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec

from yarnctl.errors import BadInput, nearest
from yarnctl.hadoop import addresses, site_xml
from yarnctl.hadoop.http.auth import OVER_HTTP, Identity, Method
from yarnctl.hadoop.http.session import CallLimits
from yarnctl.hadoop.http.transport import Transport
from yarnctl.hadoop.resource_manager import ResourceManager
from yarnctl.hadoop.site_xml import HadoopSite
from yarnctl.hadoop.webhdfs import WebHdfs

ENVIRONMENT = {
    "YARNCTL_RM": "resource_managers",
    "YARNCTL_NAME_NODE": "name_nodes",
    "YARNCTL_USER": "user",
    "YARNCTL_AUTHENTICATION": "authentication",
    "YARNCTL_PASSWORD_FILE": "password_file",
    "YARNCTL_CA_FILE": "ca_file",
    "YARNCTL_TOKEN_OVER_HTTP": "token_over_http",
    "HADOOP_CONF_DIR": "hadoop_conf_dir",
}
TABLES = ("cluster", "run")
_LISTS = ("resource_managers", "name_nodes")
_TRUTHS = {"1": True, "0": False}


class ClusterAddress(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How to reach one cluster. Durations in milliseconds; ``name_nodes`` may be empty (no checkpoints).

    With authentication "basic" a gateway is in front: the addresses in the cluster's own configuration and in
    Hadoop's files are not used, because they are behind it.
    """

    resource_managers: tuple[str, ...] = ()
    name_nodes: tuple[str, ...] = ()
    user: str = ""
    authentication: Method = "simple"
    password_file: str = ""
    ca_file: str = ""
    token_over_http: bool = False
    hadoop_conf_dir: str = ""
    connect_ms: int = 3_000
    read_timeout_ms: int = 10_000
    answer_ms: int = 20_000

    @property
    def identity(self) -> Identity:
        """User and authentication."""
        return Identity(self.user, self.authentication, self.token_over_http, self.password_file)

    @property
    def limits(self) -> CallLimits:
        """The limits of every call."""
        return CallLimits(
            connect_ms=self.connect_ms, read_timeout_ms=self.read_timeout_ms, answer_ms=self.answer_ms
        )

    def transport(self) -> Transport:
        """Return a transport to the ResourceManagers and their proxies; nothing is sent."""
        return Transport(self.resource_managers, self.identity, self.limits, ca_file=self.ca_file)

    def resource_manager(self) -> ResourceManager:
        """Return a client of the ResourceManagers; nothing is sent."""
        return ResourceManager(self.transport())

    def store(self) -> WebHdfs:
        """Return a client of HDFS; nothing is sent."""
        return WebHdfs(self.name_nodes, self.identity, self.limits, ca_file=self.ca_file)


def load_cluster(
    file: Path | None = None,
    environment: Mapping[str, str] | None = None,
    options: Mapping[str, Any] | None = None,
    *,
    hdfs: bool = True,
    yarn: bool = True,
) -> ClusterAddress:
    """Return the configuration; BadInput names file and key, variable or option.

    ``environment`` is the caller's os.environ; ``options`` are those of the command line, with the names of
    the TOML keys; None: not given. ``hdfs``, ``yarn``: the caller uses it. Of ``HADOOP_CONF_DIR`` only the
    files of keys are read that have no other source.
    """
    values, places = gathered(file, environment or {}, options or {}, hdfs=hdfs)
    for fault in cluster_faults(values, places):
        raise fault
    cluster = msgspec.convert(values, ClusterAddress)
    if yarn and not cluster.resource_managers:
        remedy = "set --rm, YARNCTL_RM, HADOOP_CONF_DIR, or resource_managers in [cluster] of --config"
        raise BadInput("resource_managers", "no ResourceManager is configured", remedy)
    _check_password(cluster, places)
    if cluster.authentication == "kerberos" and not cluster.token_over_http:
        for address in cluster.name_nodes:
            if address.startswith("http:"):
                where = f"{places.get('name_nodes', 'HADOOP_CONF_DIR')}: name_nodes"
                problem = f"{address} would receive delegation tokens unencrypted"
                raise BadInput(where, problem, OVER_HTTP)
    return cluster


def gathered(
    file: Path | None, environment: Mapping[str, str], options: Mapping[str, Any], *, hdfs: bool = True
) -> tuple[dict[str, Any], dict[str, str]]:
    """Return the values and their places by key, unchecked; arguments as of :func:`load_cluster`.

    A place is the file, a variable or an option. What Hadoop's own files set has none.
    """
    values = dict(_from_file(file)) if file is not None else {}
    places = dict.fromkeys(values, str(file))
    for variable, key in ENVIRONMENT.items():
        if environment.get(variable):
            value = environment[variable]
            values[key] = _split(value) if key in _LISTS else value
            if key == "token_over_http":
                values[key] = _TRUTHS.get(value, value)
            places[key] = variable
    names = {key: variable.removeprefix("YARNCTL_").lower() for variable, key in ENVIRONMENT.items()}
    for key, value in options.items():
        if value is not None and value != ():
            values[key], places[key] = value, "--" + names.get(key, key).replace("_", "-")
    if values.get("password_file"):
        values.setdefault("authentication", "basic")
    is_behind_gateway = values.get("authentication") == "basic"
    if values.get("hadoop_conf_dir") and not is_behind_gateway:
        wanted = [key for key in _BY_HADOOP if key not in values and (hdfs or key != "name_nodes")]
        values |= _from_hadoop(Path(str(values["hadoop_conf_dir"])), environment, wanted)
    return values, places


def _check_password(cluster: ClusterAddress, places: Mapping[str, str]) -> None:
    if (cluster.authentication == "basic") != bool(cluster.password_file):
        where = places.get("authentication") or places.get("password_file", "")
        problem = f"authentication is {cluster.authentication}, and password_file is "
        problem += repr(cluster.password_file) if cluster.password_file else "not set"
        raise BadInput(where, problem, 'set password_file for authentication = "basic", and for no other')
    if not cluster.password_file:
        return
    if ":" in cluster.user or not cluster.user.isprintable():
        raise BadInput(places.get("user", "user"), f"{cluster.user[:60]!r} cannot be sent with HTTP Basic")
    for key in _LISTS:
        for address in getattr(cluster, key):
            if not address.startswith("https:"):
                where = f"{places.get(key, 'HADOOP_CONF_DIR')}: {key}"
                raise BadInput(
                    where, f"{address} would receive a password unencrypted", "use an https address"
                )


def read_document(file: Path) -> dict[str, Any]:
    """Return the tables of a TOML file, unchecked; raises BadInput."""
    try:
        return tomllib.loads(file.read_text(encoding="utf-8"))
    except OSError as error:
        remedy = "make it readable for this account, or use another file with --config"
        raise BadInput(str(file), f"cannot be read ({type(error).__name__})", remedy) from None
    except (tomllib.TOMLDecodeError, UnicodeError, RecursionError) as error:
        raise BadInput(str(file), f"invalid TOML ({str(error)[:120]})") from None


def _from_file(file: Path) -> dict[str, Any]:
    document = read_document(file)
    for name in document:
        if name not in TABLES:
            remedy = nearest(name, TABLES, f"use the tables {' and '.join(TABLES)}")
            raise BadInput(f"{file}: {name[:60]}", "unknown table", remedy)
    section = document.get("cluster", {})
    if not isinstance(section, dict):
        raise BadInput(f"{file}: cluster", "is not a table", "write [cluster] and its keys below")
    return section


_BY_HADOOP: dict[str, tuple[str, Callable[[HadoopSite], Any]]] = {
    "authentication": ("core-site.xml", addresses.authentication),
    "resource_managers": ("yarn-site.xml", addresses.resource_managers),
    "name_nodes": ("hdfs-site.xml", addresses.name_nodes),
}
"""Keys that Hadoop's own files can set: the file (read after core-site.xml, as in Hadoop), and the reader."""


def _from_hadoop(folder: Path, environment: Mapping[str, str], wanted: Iterable[str]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key in wanted:
        file, read = _BY_HADOOP[key]
        names = dict.fromkeys(("core-site.xml", file))
        user = {"user.name": environment.get("USER", "")}
        if value := read(site_xml.load(folder, addresses.DEFAULTS, environment, user, names)):
            found[key] = value
    return found


def cluster_faults(values: Mapping[str, Any], places: Mapping[str, str]) -> Iterator[BadInput]:
    """Yield a fault for each unknown key and each value that cannot be used."""
    fields = {one.name: one for one in msgspec.structs.fields(ClusterAddress)}
    for key, value in values.items():
        where = f"{places.get(key, 'HADOOP_CONF_DIR')}: {key[:60]}"
        if key not in fields:
            remedy = nearest(key, fields, f"use one of {', '.join(sorted(fields))}")
            yield BadInput(where, "unknown key", remedy)
            continue
        if isinstance(value, str) and "\0" in value:
            yield BadInput(where, "contains a NUL character", "remove it")
            continue
        try:
            made = msgspec.convert(value, fields[key].type)
        except msgspec.ValidationError as error:
            yield BadInput(where, str(error))
            continue
        if isinstance(made, int) and not isinstance(made, bool) and made <= 0:
            yield BadInput(where, f"{made} is not above 0", "use milliseconds above 0")


def _split(value: str) -> list[str]:
    return [part for part in (one.strip() for one in value.split(",")) if part]
