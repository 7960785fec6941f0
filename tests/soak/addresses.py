"""Addresses of random site files, beside an oracle of Hadoop's own: ``python -m tests.soak.addresses``.

The oracle follows Hadoop's daemons, and shares no code with ``yarnctl.hadoop.addresses``. A NameNode copies
the keys with its suffixes over those without (``DFSUtil.setGenericConf``), sets ``fs.defaultFS`` to its RPC
address, and puts that host in place of a wildcard in its web address (``substituteForWildcardAddress``). A
ResourceManager has ``${yarn.resourcemanager.hostname}:8088`` as default. Two departures: an empty value
counts as absent, and a host that no key names is :data:`HERE`.
"""

from __future__ import annotations

import argparse
import random
import time

from yarnctl.errors import BadInput
from yarnctl.hadoop.addresses import DEFAULTS, name_nodes, resource_managers
from yarnctl.hadoop.site_xml import HadoopSite, SiteEntry

HERE = "here"
Conf = dict[str, str]
VALUES = ("", "0.0.0.0:1234", "h1:50070", "h2:8020", "[::]:7", "[2001:db8::1]:9", "h3", "[% h %]:1", "u@h:1")
NODE_KEYS = ("dfs.namenode.http-address", "dfs.namenode.https-address", "dfs.namenode.rpc-address")
MANAGER_KEYS = (
    "yarn.resourcemanager.hostname",
    "yarn.resourcemanager.webapp.address",
    "yarn.resourcemanager.webapp.https.address",
)
POLICIES = ("HTTP_ONLY", "HTTPS_ONLY", "https_only", "HTTP_AND_HTTPS", "")


def drawn(seed: int) -> Conf:
    """Return a configuration: HA, federated or plain, each key there or not."""
    draw = random.Random(seed)
    conf = {"dfs.http.policy": draw.choice(POLICIES), "yarn.http.policy": draw.choice(POLICIES)}
    conf["fs.defaultFS"] = draw.choice(
        ("", "hdfs://ns", "hdfs://h9:8020", "hdfs://h9", "s3a://b", "hdfs://[% h %]")
    )
    suffixes = draw.choice(([""], ["", ".ns"], ["", ".ns", ".ns.a", ".ns.b"]))
    if len(suffixes) > 1:
        conf["dfs.nameservices"] = draw.choice(("ns", "ns,other"))
    if len(suffixes) > 2:
        conf["dfs.ha.namenodes.ns"] = draw.choice(("a,b", " b , a", "a"))
    own = draw.choice(([""], ["", ".a", ".b"]))
    if len(own) > 1:
        conf |= {"yarn.resourcemanager.ha.enabled": "true", "yarn.resourcemanager.ha.rm-ids": "a,b"}
    keys = [key + end for key in NODE_KEYS for end in suffixes]
    keys += [key + end for key in MANAGER_KEYS for end in own]
    return conf | {key: draw.choice(VALUES) for key in keys if draw.random() < 0.5}


def split(address: str) -> tuple[str, int] | None:
    """Return host ("" for a wildcard) and port (0: none), None for what is no address."""
    if any(letter in address for letter in "@/% "):
        return None
    host, _, port = (
        address.rpartition(":") if not address.endswith("]") and ":" in address else (address, "", "0")
    )
    return ("" if host in ("0.0.0.0", "[::]") else host), int(port)


def hadoop_name_nodes(conf: Conf) -> tuple[str, ...] | None:
    """Return the web addresses of the NameNodes; None: a needed value is missing or is no address."""
    services = [one for one in conf.get("dfs.nameservices", "").split(",") if one]
    secure = conf["dfs.http.policy"].upper() == "HTTPS_ONLY"
    web, rpc = NODE_KEYS[secure], NODE_KEYS[2]
    filesystem = (
        conf["fs.defaultFS"].removeprefix("hdfs://") if conf["fs.defaultFS"].startswith("hdfs") else ""
    )
    if not services and not filesystem and not conf.get(web) and not conf.get(rpc):
        return ()
    ids = [one.strip() for one in conf.get("dfs.ha.namenodes.ns", "").split(",") if one.strip()]
    found = []
    for suffix in [f".ns.{one}" for one in ids] or ([".ns"] if services else [""]):
        generic = {key: value for key, value in conf.items() if key in NODE_KEYS and value}
        for key in NODE_KEYS:
            for end in (".ns", suffix) if services else ():
                if conf.get(key + end):
                    generic[key] = conf[key + end]
        address = split(generic[web]) if web in generic else ("", 9871 if secure else 9870)
        if address is None:
            return None
        host = address[0]
        if not host and rpc in generic:
            if (node := split(generic[rpc])) is None:
                return None
            host = node[0]
        if not host and not ids and filesystem and filesystem not in services:
            if (node := split(filesystem)) is None:
                return None
            host = node[0]
        elif not host and web not in generic and rpc not in generic:
            return None
        url = f"{'https' if secure else 'http'}://{host or HERE}:{address[1] or (9871 if secure else 9870)}"
        found += [url] if url not in found else []
    return tuple(found)


def hadoop_resource_managers(conf: Conf) -> tuple[str, ...] | None:
    """Return the web addresses of the ResourceManagers; None: as above."""
    secure = conf["yarn.http.policy"].upper() == "HTTPS_ONLY"
    name, web, port = MANAGER_KEYS[0], MANAGER_KEYS[1 + secure], 8090 if secure else 8088
    ids = [f".{one}" for one in conf.get("yarn.resourcemanager.ha.rm-ids", "").split(",") if one] or [""]
    if ids == [""] and name not in conf and web not in conf:
        return ()
    found = []
    for suffix in ids:
        if suffix and not conf.get(name + suffix) and not conf.get(web + suffix):
            return None
        address = split(conf.get(web + suffix) or f":{port}")
        if address is None:
            return None
        host = address[0]
        if not host and conf.get(name + suffix):
            if (named := split(conf[name + suffix])) is None:
                return None
            host = named[0]
        found.append(f"{'https' if secure else 'http'}://{host or HERE}:{address[1] or port}")
    return tuple(found)


def disagreement(seed: int) -> str:
    """Return how the product and the oracle differ over one drawn configuration; "": they do not."""
    conf = drawn(seed)
    site = HadoopSite({name: SiteEntry(value, False, "f.xml") for name, value in conf.items()}, DEFAULTS)
    for derive, oracle in ((name_nodes, hadoop_name_nodes), (resource_managers, hadoop_resource_managers)):
        expected = oracle(conf)
        try:
            got: tuple[str, ...] | None = derive(site, HERE)
        except BadInput:
            got = None
        if got != expected:
            return f"{seed}: {derive.__name__} {got}, by Hadoop {expected}: {conf}"
    return ""


def main() -> int:
    """Compare ``--count`` configurations; return 1 if any differs."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--count", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    begun, first = time.monotonic(), given.seed * given.count
    found = [said for seed in range(first, first + given.count) if (said := disagreement(seed))]
    print("\n".join(found[:10]))
    print(f"{given.count} site files, {len(found)} differ ({time.monotonic() - begun:.0f} s)")
    return 1 if found else 0


if __name__ == "__main__":
    raise SystemExit(main())
