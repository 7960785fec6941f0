"""Compute the base URLs of daemons from Hadoop's own configuration; pure.

Defaults are those of the 3.x documents (yarn-default.xml, hdfs-default.xml). A key is checked only if its
value is used. An address that is not set, or empty, is derived as Hadoop derives it:

* A daemon's web address has the host of its RPC address, or of ``yarn.resourcemanager.hostname``, and the
  default port. So has a wildcard (``0.0.0.0``), which listens on all interfaces.
* A NameNode's key is looked for with the suffixes of name service and NameNode, of the name service, and
  without one. The host of ``fs.defaultFS`` counts for a single NameNode.
* ``here`` is the host that a wildcard means where no key names a host: that of the daemon with this
  configuration.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from urllib.parse import urlsplit

from yarnctl.errors import BadInput
from yarnctl.hadoop.site_xml import HadoopSite

LOCAL = "127.0.0.1"
DEFAULTS = {
    "mapreduce.jobhistory.http.policy": "HTTP_ONLY",
    "yarn.http.policy": "HTTP_ONLY",
    "dfs.http.policy": "HTTP_ONLY",
    "yarn.resourcemanager.ha.enabled": "false",
    "hadoop.security.authentication": "simple",
    "hadoop.http.authentication.type": "simple",
}
WEB_PROXY = "yarn.web-proxy.address"
WEB_PROXY_PORT = 9099
_AUTHORITY = re.compile(r"(\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9._-]*)(?::([0-9]{1,5}))?")
_ANY = ("0.0.0.0", "[::]", "")  # noqa: S104  # recognised, not bound


def resource_managers(site: HadoopSite, here: str = LOCAL) -> tuple[str, ...]:
    """Return the base URLs of the ResourceManagers, e.g. ``http://rm1:8088``; () if none is configured."""
    secure = _https_only(site, "yarn.http.policy")
    key = "yarn.resourcemanager.webapp." + ("https.address" if secure else "address")
    if site.boolean("yarn.resourcemanager.ha.enabled"):
        ids = site.list_of("yarn.resourcemanager.ha.rm-ids")
        if not ids:
            where = site.where("yarn.resourcemanager.ha.enabled")
            raise BadInput(
                where,
                "true, but yarn.resourcemanager.ha.rm-ids is not set",
                "set it to the ids of the ResourceManagers",
            )
        return tuple(_resource_manager(site, key, f".{one}", secure, here) for one in ids)
    if not any(name in site.entries for name in (key, "yarn.resourcemanager.hostname")):
        return ()
    return (_resource_manager(site, key, "", secure, here),)


def name_nodes(site: HadoopSite, here: str = LOCAL) -> tuple[str, ...]:
    """Return the NameNodes' base URLs, of the name service of ``fs.defaultFS``, else of the first."""
    services = site.list_of("dfs.internal.nameservices") or site.list_of("dfs.nameservices")
    default = _default_authority(site)
    own: list[tuple[str, ...]]
    if services:
        service = default if default in services else services[0]
        ids = site.list_of(f"dfs.ha.namenodes.{service}")
        own = [(f".{service}.{one}", f".{service}", "") for one in ids]
        own = own or [(f".{service}", "")]
    elif default or any(site.text(key) for key in (_web_key(site), "dfs.namenode.rpc-address")):
        own, ids = [("",)], ()
    else:
        return ()
    fallback = "fs.defaultFS" if default and not ids and default not in services else ""
    return tuple(dict.fromkeys(_name_node(site, suffixes, fallback, here) for suffixes in own))


def history_server(site: HadoopSite, here: str = LOCAL) -> str:
    """Return the base URL of the MapReduce history server; "" if none is configured.

    Its own web address, else the host of its RPC address, else the address that the ResourceManager uses for
    logs of ended applications (``yarn.log.server.url``, which is the history server's with MapReduce).
    """
    secure = _https_only(site, "mapreduce.jobhistory.http.policy")
    key = "mapreduce.jobhistory.webapp." + ("https.address" if secure else "address")
    host, port = _told(site, (key,))
    host = host or _told(site, ("mapreduce.jobhistory.address",))[0]
    logs = urlsplit(site.text("yarn.log.server.url"))
    is_history = logs.scheme in ("http", "https") and logs.path.startswith("/jobhistory")
    if not host and is_history and "@" not in logs.netloc:
        return f"{logs.scheme}://{logs.netloc}"
    if not host and not site.text(key):
        return ""
    return _url(secure, host or here, port or (19890 if secure else 19888))


def web_proxy(site: HadoopSite, here: str = LOCAL) -> str | None:
    """Return the web proxy's base URL; "": the ResourceManagers serve it; None: no key is set."""
    if site.raw(WEB_PROXY) is None:
        return None
    if not site.text(WEB_PROXY):
        return ""
    host, port = _told(site, (WEB_PROXY,))
    secure = _https_only(site, "yarn.http.policy")
    found = _url(secure, host or here, port or WEB_PROXY_PORT)
    try:
        return "" if found in resource_managers(site, here) else found
    except BadInput:  # the ResourceManagers' own keys are not needed
        return found


def authentication(site: HadoopSite) -> str:
    """Return ``simple`` or ``kerberos``: a secured HDFS needs tickets even if other web interfaces do not."""
    names = ("hadoop.http.authentication.type", "hadoop.security.authentication")
    return "kerberos" if any(site.text(name).lower() == "kerberos" for name in names) else "simple"


def _resource_manager(site: HadoopSite, key: str, suffix: str, secure: bool, here: str) -> str:
    host, port = _told(site, (key + suffix,))
    name = f"yarn.resourcemanager.hostname{suffix}"
    host = host or _told(site, (name,))[0]
    if not host and suffix and not site.text(key + suffix) and not site.text(name):
        raise BadInput(site.where(name), "is not set", f"set it or {key}{suffix}")
    return _url(secure, host or here, port or (8090 if secure else 8088))


def _name_node(site: HadoopSite, suffixes: tuple[str, ...], fallback: str, here: str) -> str:
    keys = tuple(f"{_web_key(site)}{one}" for one in suffixes)
    host, port = _told(site, keys)
    if not host:
        rpc = tuple(f"dfs.namenode.rpc-address{one}" for one in suffixes)
        host = _told(site, rpc)[0] or (_told(site, (fallback,))[0] if fallback else "")
        if not host and not any(site.text(key) for key in (*keys, *rpc, fallback)):
            raise BadInput(site.where(rpc[0]), "is not set", f"set it or {keys[0]}")
    secure = _https_only(site, "dfs.http.policy")
    return _url(secure, host or here, port or (9871 if secure else 9870))


def _web_key(site: HadoopSite) -> str:
    return f"dfs.namenode.{'https' if _https_only(site, 'dfs.http.policy') else 'http'}-address"


def _told(site: HadoopSite, keys: Iterable[str]) -> tuple[str, int]:
    """Return host ("": a wildcard, or none) and port (0: none) of the first of ``keys`` that is set.

    Raises BadInput if they cannot be used.
    """
    key = next((one for one in keys if site.text(one)), "")
    text = _default_authority(site) if key == "fs.defaultFS" else site.text(key) if key else ""
    match = _AUTHORITY.fullmatch(text)
    if match is None or int(match[2] or 1) not in range(1, 1 << 16):
        raise BadInput(site.where(key), f"{text[:80]!r} does not have the form host:port")
    return "" if match[1] in _ANY else match[1], int(match[2] or 0)


def _default_authority(site: HadoopSite) -> str:
    scheme, _, rest = site.text("fs.defaultFS").partition("://")
    return rest.partition("/")[0] if scheme in ("hdfs", "webhdfs", "swebhdfs") else ""


def _https_only(site: HadoopSite, key: str) -> bool:
    return site.text(key).upper() == "HTTPS_ONLY"


def _url(secure: bool, host: str, port: int) -> str:
    return f"{'https' if secure else 'http'}://{host}:{port}"
