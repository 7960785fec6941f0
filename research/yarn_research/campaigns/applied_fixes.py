"""The fixes that ``yarnctl check`` prints, applied to a real ResourceManager in the way that it prints.

``python -m yarn_research.campaigns.applied_fixes --output applied-fixes.json --seeds 5001-5060`` plays random
trees of queues (``tests/property/test_queue_fixes.py``) on a real ResourceManager 3.4.2, one for each seed,
until ``TREES`` of them had a finding whose fix sets keys of the scheduler. It resumes a file.

Rule, written before the first counted run:

* Of trees with an even seed the scheduler's store is ``memory``. The command that ``check`` prints under
  ``apply`` is run as printed, by Hadoop's own client (``yarn schedulerconf``). Where ``check`` says that all
  keys of one fix are sent in one PUT, that is done, fix by fix.
* Of the others the store is the file. All keys of the printed fixes are written to capacity-scheduler.xml,
  then Hadoop's own client runs ``yarn rmadmin -refreshQueues``.
* That is one round. A tree *holds* if the ResourceManager accepts each round, and after at most
  ``ROUNDS_MAX`` rounds no rule of ``RULES`` has a finding (a larger maximum can need other limits of users
  and masters). Beside that: ``gone at once``, each finding of the first check is gone after one round.
* Thrown out, and counted as such: ``zero``, a parent has no capacity but its children have (YARN rejects
  that); ``rejected``, the ResourceManager does not start with the tree; ``nothing``, no finding's fix sets a
  key.
"""

from __future__ import annotations

import contextlib
import io
import shlex
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any
from xml.sax.saxutils import escape

import click
import msgspec

from tests import http_client
from tests.property.test_queue_fixes import MIB, RULES, VCORES, Site, applied, roles
from yarn_research.campaigns.kept_file import gone_on, keep
from yarn_research.campaigns.provenance import head
from yarn_research.campaigns.scheduler_rig import SETTINGS, VERSION, RigFailed, SchedulerRig
from yarnctl.attach.check.next_steps import BY_FILE, BY_REST
from yarnctl.cli import PROGRAM
from yarnctl.command_line import exit_status_of, print_json
from yarnctl.hadoop.wire.calculator import DOMINANT, KEY
from yarnctl.units import Resources

KIND = "applied-fixes"
TREES, ROUNDS_MAX = 20, 2
ZEROS = ("0", "[memory=0,vcores=0]")
PREFIX = "yarn.scheduler.capacity."
ADMIN = "yarn"
SITE = {
    **{key: value for key, value in SETTINGS.items() if not key.startswith(PREFIX)},
    "yarn.acl.enable": "true",
    "yarn.admin.acl": ADMIN,
    "hadoop.user.group.static.mapping.overrides": f"{ADMIN}={ADMIN};yarnctl=yarnctl",
    "hadoop.http.filter.initializers": "org.apache.hadoop.security.AuthenticationFilterInitializer",
    "hadoop.http.authentication.simple.anonymous.allowed": "true",
}


class AppliedFixes(msgspec.Struct):
    """The whole file; ``trees``: by seed."""

    head: dict[str, Any]
    trees: dict[str, dict[str, Any]] = {}


def xml(properties: Mapping[str, str]) -> str:
    """Return properties as a Hadoop configuration file."""
    rows = "".join(
        f"<property><name>{escape(key)}</name><value>{escape(value)}</value></property>\n"
        for key, value in properties.items()
    )
    return f"<configuration>\n{rows}</configuration>\n"


class ConfiguredRig(SchedulerRig):
    """The rig with queues from its file capacity-scheduler.xml, as a site has them."""

    def write_queues(self, keys: Mapping[str, str], calculator: str = DOMINANT) -> None:
        """Write the scheduler's file; ``keys`` without their prefix; ``calculator`` "": not named."""
        named = {f"{PREFIX}{key}": value for key, value in keys.items()}
        if calculator:
            named = {KEY: calculator, **named}
        path = Path(self._folder.name) / "capacity-scheduler.xml"
        path.write_text(xml(named), encoding="utf-8")

    def start(self, configuration: Mapping[str, str]) -> None:
        """Begin a new ResourceManager with one node."""
        self.start_with({**SITE, **configuration})
        self.register("127.0.0.2", Resources(MIB, VCORES))

    def client(self, command: str) -> str:
        """Run a command ``yarn ...`` of Hadoop's own client as the administrator; return its fault ("")."""
        program, *words = shlex.split(command)
        assert program == "yarn"
        try:
            answer = self.call("client", user=ADMIN, words=words)
        except RigFailed as failed:
            return str(failed)[:1500]
        said = "; ".join(
            line.strip()[:400]
            for line in answer["said"].splitlines()
            if not line.startswith("\tat") and line.strip()
        )
        return said[:1500] or f"status {answer['status']}" if answer["status"] else ""

    def put(self, keys: Mapping[str, str], paths: Sequence[str]) -> str:
        """Send keys in one PUT to scheduler-conf as the administrator; return the fault ("")."""
        updates: dict[str, dict[str, str]] = {}
        for key, value in keys.items():
            path = max((each for each in paths if key.startswith(f"{each}.")), key=len, default="")
            updates.setdefault(path, {})[key.removeprefix(f"{path}.") if path else f"{PREFIX}{key}"] = value
        body = "".join(
            f"<update-queue><queue-name>{path}</queue-name><params>{_entries(pairs)}</params></update-queue>"
            if path
            else f"<global-updates>{_entries(pairs)}</global-updates>"
            for path, pairs in updates.items()
        )
        answer = http_client.put(
            f"{self.url}/ws/v1/cluster/scheduler-conf?user.name={ADMIN}",
            data=f"<sched-conf>{body}</sched-conf>",
            headers={"Content-Type": "application/xml"},
            timeout=60,
        )
        return "" if answer.status_code == 200 else f"{answer.status_code}: {answer.text[:1500]}"


def _entries(pairs: Mapping[str, str]) -> str:
    return "".join(
        f"<entry><key>{escape(key)}</key><value>{escape(value)}</value></entry>"
        for key, value in pairs.items()
    )


def check(rig: ConfiguredRig, production: Sequence[str], research: Sequence[str]) -> dict[str, Any]:
    """Run ``yarnctl check``; return its findings of ``RULES`` that are not ok, and what it prints to apply."""
    words = ["check", "--rm", rig.url, "--user", "yarnctl", "-o", "json"]
    words += [word for path in production for word in ("--preempting", path)]
    words += [word for path in research for word in ("--preemptable", path)]
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        status = exit_status_of(PROGRAM, words)
    if not printed.getvalue():
        raise RuntimeError(f"yarnctl check: prints nothing, exit status {status}")
    told = msgspec.json.decode(printed.getvalue())
    rows = [row for row in told["findings"] if row["id"] in RULES and row["severity"] != "ok"]
    fixes = {row["id"]: row["fix"] for row in told["findings"] if row["severity"] != "ok"}
    return {
        "found": {row["id"]: {name: row[name] for name in ("severity", "seen", "fix")} for row in rows},
        "apply": (told["next"] or {}).get("apply", ""), "fixes": fixes,
    }  # fmt: skip


def apply(rig: ConfiguredRig, site: Site, keys: dict[str, str], told: Mapping[str, Any]) -> str:
    """Apply the fixes in the way that check prints; change ``keys`` alike; return the fault ("")."""
    before = dict(keys)
    for fix in told["fixes"].values():
        keys.update(applied(keys, fix))
    changed = {key: value for key, value in keys.items() if before.get(key) != value}
    way = told["apply"]
    if way == BY_FILE:
        rig.write_queues(keys)
        return rig.client("yarn rmadmin -refreshQueues")
    if way == BY_REST:
        faults = []
        for fix in told["fixes"].values():
            one = {key: value for key, value in applied({}, fix).items() if changed.get(key) == value}
            faults.append(rig.put(one, list(site.below)) if one else "")
        return "; ".join(fault for fault in faults if fault)
    return rig.client(way)


def rejection(rig: ConfiguredRig, store: str) -> list[str]:
    """Begin a ResourceManager; return why it does not start, which a busy machine alone does not cause twice."""
    try:
        rig.start({"yarn.scheduler.configuration.store.class": store})
    except RigFailed:
        try:
            rig.start({"yarn.scheduler.configuration.store.class": store})
        except RigFailed as failed:
            return causes(str(failed)) or [str(failed)[:300]]
    return []


def causes(failure: str) -> list[str]:
    """Return the last causes that a stack of Java names."""
    return [line[:300] for line in failure.splitlines() if line.startswith("Caused by:")][-3:]


def play(rig: ConfiguredRig, seed: int) -> dict[str, Any]:
    """Play one tree; return its rounds."""
    began = time.monotonic()
    site = Site(seed)
    production, research = roles(site)
    keys = {
        **site.keys,
        **{f"{path}.queues": ",".join(names) for path, names in site.below.items() if names},
    }
    store = "file" if seed % 2 else "memory"
    found: dict[str, Any] = {"unit": site.unit, "store": store, "roles": [production, research]}
    if any(names and keys.get(f"{path}.capacity") in ZEROS for path, names in site.below.items()):
        return {**found, "result": "zero"}
    rig.write_queues(keys)
    if why := rejection(rig, store):
        return {**found, "result": "rejected", "why": why}
    rounds: list[dict[str, Any]] = []
    told = check(rig, production, research)
    if not (told["apply"] and told["found"]):
        return {**found, "result": "nothing"}
    for _ in range(ROUNDS_MAX):
        fault = apply(rig, site, keys, told)
        after = check(rig, production, research)
        rounds.append({"found": told["found"], "apply": told["apply"], "fault": fault})
        told = after
        if not told["found"]:
            break
    left = told["found"]
    faults = [row["fault"] for row in rounds if row["fault"]]
    second = rounds[1]["found"] if len(rounds) > 1 else left
    return {
        **found, "result": "holds" if not left and not faults else "fails", "rounds": rounds, "left": left,
        "gone at once": not set(rounds[0]["found"]) & set(second), "keys": dict(sorted(keys.items())),
        "elapsed_s": round(time.monotonic() - began, 1),
    }  # fmt: skip


def judged(trees: Mapping[str, dict[str, Any]]) -> dict[str, Any]:
    """Return how many trees hold, and how often each rule had a finding."""
    counts = Counter(tree["result"] for tree in trees.values())
    played = [tree for tree in trees.values() if "rounds" in tree]
    counts["gone at once"] = sum(tree["gone at once"] for tree in played)
    counts["with a second round"] = sum(len(tree["rounds"]) > 1 for tree in played)
    rules = Counter(rule for tree in played for rule in tree["rounds"][0]["found"])
    return {
        **counts, "rules": dict(rules), "stores": Counter(tree["store"] for tree in played),
        "units": Counter(tree["unit"] for tree in played),
    }  # fmt: skip


@click.command()
@click.option("--output", type=click.Path(path_type=Path), required=True, help="File of results.")
@click.option("--seeds", default="5001-5060", help="First and last seed.")
def main(output: Path, seeds: str) -> None:
    """Apply the fixes of random trees to a real ResourceManager."""
    first, last = (int(each) for each in seeds.split("-"))
    held = gone_on(output, AppliedFixes(head=head(KIND, hadoop=VERSION)))
    with ConfiguredRig() as rig:
        for seed in range(first, last + 1):
            if sum("rounds" in tree for tree in held.trees.values()) >= TREES:
                break
            if str(seed) not in held.trees:
                held.trees[str(seed)] = play(rig, seed)
                keep(output, held)
    print_json(judged(held.trees))


if __name__ == "__main__":
    main()
