"""Addresses as Hadoop derives them, and files that are not needed."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from tests import shared_cases
from tests.soak.addresses import disagreement
from yarnctl.config import load_cluster
from yarnctl.errors import BadInput
from yarnctl.hadoop.addresses import DEFAULTS, history_server, name_nodes, resource_managers, web_proxy
from yarnctl.hadoop.site_xml import HadoopSite, SiteEntry

HA = {"fs.defaultFS": "hdfs://ns", "dfs.nameservices": "ns", "dfs.ha.namenodes.ns": "a,b"}
RPC = {"dfs.namenode.rpc-address.ns.a": "ha:8020", "dfs.namenode.rpc-address.ns.b": "hb:8020"}
TWO = {"yarn.resourcemanager.ha.enabled": "true", "yarn.resourcemanager.ha.rm-ids": "a,b"}
HOSTS = {"yarn.resourcemanager.hostname.a": "ha", "yarn.resourcemanager.hostname.b": "hb"}


def site(told: Mapping[str, str]) -> HadoopSite:
    return HadoopSite({name: SiteEntry(value, False, "f.xml") for name, value in told.items()}, DEFAULTS)


def written(folder: Path, **files: Mapping[str, str]) -> Path:
    for name, told in files.items():
        rows = (
            f"<property><name>{key}</name><value>{value}</value></property>" for key, value in told.items()
        )
        (folder / f"{name}-site.xml").write_text(f"<configuration>{''.join(rows)}</configuration>")
    return folder


def test_load_cluster_derives_addresses_of_an_ha_pair_from_rpc_addresses() -> None:
    conf = str(shared_cases.folder("c19-ha-without-http-address"))
    cluster = load_cluster(environment={"HADOOP_CONF_DIR": conf})
    assert cluster.resource_managers == ("http://10.0.0.27:8088",)
    assert cluster.name_nodes == ("http://10.0.0.18:9870", "http://10.0.0.19:9870")


NAME_NODES = [
    ({**HA, **RPC}, ("http://ha:9870", "http://hb:9870")),
    ({**HA, **RPC, "dfs.http.policy": "HTTPS_ONLY"}, ("https://ha:9871", "https://hb:9871")),
    ({**HA, **RPC, "dfs.http.policy": "https_only"}, ("https://ha:9871", "https://hb:9871")),
    ({**HA, **RPC, "dfs.http.policy": "HTTP_AND_HTTPS"}, ("http://ha:9870", "http://hb:9870")),
    ({**HA, **RPC, "dfs.namenode.http-address.ns.a": ""}, ("http://ha:9870", "http://hb:9870")),
    ({**HA, **RPC, "dfs.namenode.http-address.ns.a": "0.0.0.0:5"}, ("http://ha:5", "http://hb:9870")),
    ({**HA, **RPC, "dfs.namenode.http-address": "0.0.0.0:5"}, ("http://ha:5", "http://hb:5")),
    ({**HA, **RPC, "dfs.namenode.https-address.ns.a": "x:6"}, ("http://ha:9870", "http://hb:9870")),
    (
        {**HA, **RPC, "dfs.namenode.https-address.ns.a": "x:6", "dfs.http.policy": "HTTPS_ONLY"},
        ("https://x:6", "https://hb:9871"),
    ),
    (
        {**HA, "dfs.namenode.rpc-address.ns.a": "ha", "dfs.namenode.rpc-address.ns.b": "[::2]:8020"},
        ("http://ha:9870", "http://[::2]:9870"),
    ),
    ({"dfs.nameservices": "ns", "dfs.namenode.rpc-address.ns": "h:8020"}, ("http://h:9870",)),
    ({"dfs.nameservices": "ns", "fs.defaultFS": "hdfs://h:8020"}, ("http://h:9870",)),
    ({"dfs.namenode.rpc-address": "h:8020"}, ("http://h:9870",)),
    ({"dfs.namenode.rpc-address": "h:8020", "fs.defaultFS": "hdfs://other:8020"}, ("http://h:9870",)),
    ({"fs.defaultFS": "hdfs://h:8020", "dfs.namenode.http-address": ""}, ("http://h:9870",)),
    ({"fs.defaultFS": "hdfs://h:8020", "dfs.http.policy": "HTTPS_ONLY"}, ("https://h:9871",)),
    ({"fs.defaultFS": "hdfs://[::3]:8020"}, ("http://[::3]:9870",)),
]  # fmt: skip


@pytest.mark.parametrize(("told", "expected"), NAME_NODES)
def test_name_nodes_as_hadoop_derives_them(told: dict[str, str], expected: tuple[str, ...]) -> None:
    assert name_nodes(site(told)) == expected


MANAGERS = [
    ({"yarn.resourcemanager.hostname": "h", "yarn.resourcemanager.webapp.address": ""}, ("http://h:8088",)),
    ({"yarn.resourcemanager.hostname": "h", "yarn.http.policy": "https_only"}, ("https://h:8090",)),
    ({"yarn.resourcemanager.webapp.address": "h"}, ("http://h:8088",)),
    ({"yarn.resourcemanager.webapp.https.address": "h", "yarn.http.policy": "HTTPS_ONLY"}, ("https://h:8090",)),
    ({**TWO, **HOSTS}, ("http://ha:8088", "http://hb:8088")),
    ({**TWO, **HOSTS, "yarn.http.policy": "HTTPS_ONLY"}, ("https://ha:8090", "https://hb:8090")),
    ({**TWO, **HOSTS, "yarn.resourcemanager.webapp.address.a": "0.0.0.0:1"}, ("http://ha:1", "http://hb:8088")),
    ({**TWO, **HOSTS, "yarn.resourcemanager.webapp.address": "unused:1"}, ("http://ha:8088", "http://hb:8088")),
]  # fmt: skip


@pytest.mark.parametrize(("told", "expected"), MANAGERS)
def test_resource_managers_as_hadoop_derives_them(told: dict[str, str], expected: tuple[str, ...]) -> None:
    assert resource_managers(site(told)) == expected


WEB = "mapreduce.jobhistory.webapp.address"
SERVERS = [
    ({}, ""),
    ({WEB: "h:1"}, "http://h:1"),
    ({WEB: "h"}, "http://h:19888"),
    ({"mapreduce.jobhistory.address": "h:10020"}, "http://h:19888"),
    ({"mapreduce.jobhistory.address": "h:10020", WEB: "0.0.0.0:5"}, "http://h:5"),
    (
        {"mapreduce.jobhistory.address": "h:10020", "mapreduce.jobhistory.http.policy": "HTTPS_ONLY"},
        "https://h:19890",
    ),
    ({WEB: "0.0.0.0:19888", "yarn.log.server.url": "http://h:7/jobhistory/logs"}, "http://h:7"),
    ({WEB: "0.0.0.0:19888"}, "http://127.0.0.1:19888"),
]


@pytest.mark.parametrize(("told", "expected"), SERVERS)
def test_history_server_as_hadoop_derives_it(told: dict[str, str], expected: str) -> None:
    assert history_server(site(told)) == expected


PROXY = "yarn.web-proxy.address"
RM = {"yarn.resourcemanager.hostname": "h"}
PROXIES = [
    ({}, None), ({PROXY: ""}, ""), ({PROXY: "p:20888"}, "http://p:20888"),
    ({PROXY: "p:20888", "yarn.http.policy": "HTTPS_ONLY"}, "https://p:20888"),
    ({PROXY: "p"}, "http://p:9099"), ({PROXY: "0.0.0.0:20888"}, "http://here:20888"),
    ({**RM, PROXY: "h:8088"}, ""), ({**RM, PROXY: "h:8090", "yarn.http.policy": "HTTPS_ONLY"}, ""),
    ({**TWO, **HOSTS, PROXY: "hb:8088"}, ""), ({**TWO, PROXY: "p:1"}, "http://p:1"),
]  # fmt: skip


@pytest.mark.parametrize(("told", "expected"), PROXIES)
def test_web_proxy_as_hadoop_derives_it(told: dict[str, str], expected: str | None) -> None:
    assert web_proxy(site(told), "here") == expected


def test_load_cluster_reads_hadoops_old_names_of_keys(tmp_path: Path) -> None:
    conf = written(tmp_path, core={"fs.default.name": "hdfs://h:8020"}, hdfs={"dfs.http.address": "h:7"})
    found = load_cluster(None, {"HADOOP_CONF_DIR": str(conf)}, {"resource_managers": ["http://rm:1"]})
    assert found.name_nodes == ("http://h:7",)


def test_addresses_agree_with_an_oracle_of_hadoop() -> None:
    assert [said for seed in range(1_000) if (said := disagreement(seed))] == []


# --- files that are not needed ----------------------------------------------------------------

GIVEN = {"resource_managers": ("http://127.0.0.1:1",), "name_nodes": ("http://127.0.0.1:2",)}
TEMPLATES = {
    "core": {"fs.defaultFS": "hdfs://[% nn %]:8020"},
    "hdfs": {"dfs.namenode.http-address": "[% nn %]:9870"},
    "yarn": {
        "yarn.resourcemanager.webapp.address": "[% rm %]:8088",
        "yarn.resourcemanager.ha.enabled": "true",
    },
}


def test_load_cluster_with_both_named_needs_no_address_of_the_files(tmp_path: Path) -> None:
    conf = shared_cases.folder("c19-ha-without-http-address")
    for folder in (conf, written(tmp_path, **TEMPLATES)):
        found = load_cluster(None, {"HADOOP_CONF_DIR": str(folder)}, GIVEN)
        assert (found.resource_managers, found.name_nodes) == tuple(GIVEN.values())


@pytest.mark.parametrize(
    "name", ["hdfs-site.xml", "yarn-site.xml", "mapred-site.xml", "capacity-scheduler.xml"]
)
def test_load_cluster_does_not_read_a_file_that_is_not_needed(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text("<configuration><property>")
    assert load_cluster(None, {"HADOOP_CONF_DIR": str(tmp_path)}, GIVEN).name_nodes == GIVEN["name_nodes"]


@pytest.mark.parametrize(
    ("given", "key"),
    [
        ({"resource_managers": GIVEN["resource_managers"]}, "dfs.namenode.http-address"),
        ({"name_nodes": GIVEN["name_nodes"]}, "yarn.resourcemanager.ha"),
    ],
)
def test_load_cluster_names_the_template_that_it_needs(
    tmp_path: Path, given: dict[str, tuple[str, ...]], key: str
) -> None:
    with pytest.raises(BadInput, match=key):
        load_cluster(None, {"HADOOP_CONF_DIR": str(written(tmp_path, **TEMPLATES))}, given)


def test_load_cluster_ignores_a_template_in_a_key_beside_the_needed_one(tmp_path: Path) -> None:
    told = {
        **HA,
        **RPC,
        "dfs.namenode.https-address.ns.a": "[% x %]:1",
        "dfs.namenode.rpc-address": "[% y %]",
    }
    found = load_cluster(
        None, {"HADOOP_CONF_DIR": str(written(tmp_path, hdfs=told))}, {"resource_managers": ("http://rm:1",)}
    )
    assert found.name_nodes == ("http://ha:9870", "http://hb:9870")
