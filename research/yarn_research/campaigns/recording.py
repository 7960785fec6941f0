"""What a campaign on a real Hadoop says of itself: everything that both sides were told.

Law: addresses and folders are taken out, because they differ from one start to the next; all else that stands
in the cluster's site files is recorded as it stands there.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import msgspec

from tests.hadoop.jobs import Plan
from tests.hadoop.launcher import Cluster
from yarn_research.campaigns.campaign import KIND, Campaign
from yarn_research.campaigns.provenance import commit, load, machine, now, uncommitted, versions
from yarn_research.campaigns.schemes import Scheme

ELSEWHERE = (".", ":!research/records")
"""All files but the measurements themselves: they do not change what is measured."""

SITES = ("core-site", "hdfs-site", "yarn-site", "mapred-site", "capacity-scheduler")


def begin(configuration: Mapping[str, Any], hadoop: str, rounds: int) -> Campaign:
    """Return a campaign without runs, named by the minute in which it begins."""
    began = now()
    return Campaign(
        name=f"hadoop-{began[:10]}-{began[11:13]}{began[14:16]}",
        kind=KIND,
        began=began,
        commit=commit(),
        uncommitted=uncommitted(ELSEWHERE),
        machine=machine(),
        versions=versions(hadoop=hadoop),
        configuration=dict(configuration),
        order="round by round; within a round the schemes in the order in which they stand here",
        rounds=rounds,
    )


def configuration(
    cluster: Cluster, schemes: Mapping[str, Scheme], jobs: Mapping[str, Plan], warm_up: Mapping[str, Any]
) -> dict[str, Any]:
    """Return what a cluster, its schemes and the jobs are told, as JSON has it."""
    found = {
        "cluster": {
            "nodes": cluster.shape.nodes,
            "node_memory_mib": cluster.shape.node_memory_mib,
            "container_mib": cluster.shape.container_mib,
            "set_up": cluster.shape.set_up,
            "sites": {name: site(cluster.conf / f"{name}.xml", cluster.folder) for name in SITES},
        },
        "jobs": {name: job(plan) for name, plan in jobs.items()},
        "warm_up": dict(warm_up),
        "schemes": {name: scheme._asdict() for name, scheme in schemes.items()},
        "changes": {name: scheme.changes() for name, scheme in schemes.items()},
    }
    return msgspec.json.decode(msgspec.json.encode(found), type=dict[str, Any])


def job(plan: Plan) -> dict[str, Any]:
    """Return a job: how much work, of which kind."""
    return {
        "queue": plan.queue,
        "groups": list(plan.groups),
        "key_s": plan.key_s,
        "maps": plan.maps,
        "values": plan.values,
        "work": "time.sleep",
    }


def site(path: Path, folder: Path) -> dict[str, str]:
    """Return a site file's properties without this start's folder and ports."""
    root = ElementTree.parse(path).getroot()
    held = {entry.findtext("name", ""): entry.findtext("value", "") for entry in root}
    return {name: plain(value, folder) for name, value in sorted(held.items())}


def plain(value: str, folder: Path) -> str:
    """Return a property's value with the cluster's folder, other absolute paths and ports replaced."""
    value = value.replace(str(folder), "FOLDER")
    value = re.sub(r"(?<![\w/:])/(?:[\w.@+-]+/)+\*", "JARS/*", value)
    return re.sub(r"127\.0\.0\.1:\d+", "127.0.0.1:PORT", value)


def before(campaign: Campaign, scheme: str, round_: int) -> dict[str, Any]:
    """Return what is said of a run before it begins."""
    return {
        "scheme": scheme,
        "number": len(campaign.runs) + 1,
        "round": round_,
        "began": now(),
        "load_before": load(),
    }
