"""Addresses: where the daemons are, by Hadoop's own configuration.

Law: pure; a site in, base URLs out, in the order of the configuration. Only the keys of daemons' addresses
are read here, with the defaults of the 3.x documents (yarn-default.xml, hdfs-default.xml).
"""

from __future__ import annotations

from urllib.parse import urlsplit

from yarnctl.errors import BadInput
from yarnctl.hadoop.site_xml import HadoopSite

DEFAULTS = {
    "yarn.resourcemanager.hostname": "0.0.0.0",  # noqa: S104  # Hadoop's default, mapped to loopback below
    "dfs.namenode.http-address": "0.0.0.0:9870",
    "dfs.namenode.https-address": "0.0.0.0:9871",
    "mapreduce.jobhistory.webapp.address": "0.0.0.0:19888",
    "mapreduce.jobhistory.webapp.https.address": "0.0.0.0:19890",
    "mapreduce.jobhistory.http.policy": "HTTP_ONLY",
    "yarn.http.policy": "HTTP_ONLY",
    "dfs.http.policy": "HTTP_ONLY",
    "yarn.resourcemanager.ha.enabled": "false",
    "hadoop.security.authentication": "simple",
    "hadoop.http.authentication.type": "simple",
}


def resource_managers(site: HadoopSite) -> tuple[str, ...]:
    """Return the base URLs of the ResourceManagers, e.g. ``http://rm1:8088``; () if none is configured."""
    secure = site.text("yarn.http.policy") == "HTTPS_ONLY"
    key = "yarn.resourcemanager.webapp." + ("https.address" if secure else "address")
    port = 8090 if secure else 8088
    if site.boolean("yarn.resourcemanager.ha.enabled"):
        ids = site.list_of("yarn.resourcemanager.ha.rm-ids")
        if not ids:
            where = site.where("yarn.resourcemanager.ha.enabled")
            raise BadInput(where, "is true without yarn.resourcemanager.ha.rm-ids", "list the ids")
        return tuple(_resource_manager(site, key, f".{one}", port, secure) for one in ids)
    if not any(name in site.entries for name in (key, "yarn.resourcemanager.hostname")):
        return ()
    return (_resource_manager(site, key, "", port, secure),)


def name_nodes(site: HadoopSite) -> tuple[str, ...]:
    """Return the base URLs of the NameNodes' WebHDFS; () if none is configured.

    With name services the one of ``fs.defaultFS`` counts, else the first.
    """
    secure = site.text("dfs.http.policy") == "HTTPS_ONLY"
    key = "dfs.namenode." + ("https-address" if secure else "http-address")
    services = site.list_of("dfs.internal.nameservices") or site.list_of("dfs.nameservices")
    default = _default_host(site)
    if services:
        service = default if default in services else services[0]
        ids = site.list_of(f"dfs.ha.namenodes.{service}")
        suffixes = [f".{service}.{one}" for one in ids] or [f".{service}"]
        return tuple(_url(site, key + suffix, site.text(key + suffix), secure) for suffix in suffixes)
    if key not in site.entries and not default:
        return ()
    address = site.text(key)
    if _host(address) in _ANY and default:
        address = f"{default}:{address.rpartition(':')[2]}"
    return (_url(site, key, address, secure),)


def history_server(site: HadoopSite) -> str:
    """Return the base URL of the MapReduce history server; "" if none is configured.

    Its own address, else the one that the ResourceManager uses for logs of ended applications
    (``yarn.log.server.url``, which is the history server's with MapReduce).
    """
    secure = site.text("mapreduce.jobhistory.http.policy") == "HTTPS_ONLY"
    key = "mapreduce.jobhistory.webapp." + ("https.address" if secure else "address")
    if key in site.entries:
        return _url(site, key, site.text(key), secure)
    logs = urlsplit(site.text("yarn.log.server.url"))
    if logs.scheme in ("http", "https") and logs.path.startswith("/jobhistory") and "@" not in logs.netloc:
        return f"{logs.scheme}://{logs.netloc}"
    return ""


def authentication(site: HadoopSite) -> str:
    """Return ``simple`` or ``kerberos``: a secured HDFS needs tickets, whatever other web interfaces need."""
    names = ("hadoop.http.authentication.type", "hadoop.security.authentication")
    return "kerberos" if any(site.text(name).lower() == "kerberos" for name in names) else "simple"


_ANY = ("0.0.0.0", "::", "[::]", "")  # noqa: S104  # recognised, not bound


def _resource_manager(site: HadoopSite, key: str, suffix: str, port: int, secure: bool) -> str:
    address = site.text(key + suffix)
    if not address:
        name = f"yarn.resourcemanager.hostname{suffix}"
        host = site.text(name)
        if not host:
            raise BadInput(site.where(name), "is not set", f"set it or {key}{suffix}")
        address = f"{host}:{port}"
    return _url(site, key + suffix, address, secure)


def _default_host(site: HadoopSite) -> str:
    scheme, _, rest = site.text("fs.defaultFS").partition("://")
    return _host(rest.partition("/")[0]) if scheme in ("hdfs", "webhdfs", "swebhdfs") else ""


def _host(address: str) -> str:
    host, colon, port = address.rpartition(":")
    return host if colon and port.isdigit() else address


def _url(site: HadoopSite, key: str, address: str, secure: bool) -> str:
    """Make a base URL; a wildcard (all interfaces) is this host."""
    host, colon, port = address.rpartition(":")
    if not colon or not port.isdigit() or "/" in address or "@" in address or "${" in address:
        raise BadInput(site.where(key), f"{address[:80]!r} is no host:port")
    return f"{'https' if secure else 'http'}://{'127.0.0.1' if host in _ANY else host}:{port}"
