"""What an engine changes in the machine's network, and putting it back.

Law: only what was not there before is taken away, and only after the engine that made it has ended. An
engine leaves its bridge, its packet filter rules and a changed switch or two behind; nobody else does it.
"""

from __future__ import annotations

import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

FILTERS = ("iptables", "ip6tables")
TABLES = ("filter", "nat", "raw")
SWITCHES = ("ipv4/ip_forward", "bridge/bridge-nf-call-iptables", "bridge/bridge-nf-call-ip6tables")
LINKS_OF_ENGINES = ("docker", "br-", "veth")

Rules = dict[tuple[str, str], list[str]]


@dataclass(frozen=True)
class NetworkState:
    """Rules by filter and table (lines as ``iptables-save`` prints them), links, and switches."""

    rules: Rules
    links: frozenset[str]
    switches: dict[Path, str]

    @classmethod
    def now(cls) -> NetworkState:
        rules = {
            (name, table): _saved(name, table)
            for name in FILTERS
            if shutil.which(f"{name}-save")
            for table in TABLES
        }
        links = frozenset(path.name for path in Path("/sys/class/net").iterdir())
        files = [Path("/proc/sys/net", name) for name in SWITCHES]
        return cls(rules, links, {file: file.read_text() for file in files if file.exists()})

    def put_back(self) -> None:
        """Take away what was added since, and set back what was set."""
        for (name, table), before in self.rules.items():
            for words in undoing(before, _saved(name, table)):
                subprocess.run([name, "-w", "-t", table, *words], check=True)
        for link in NetworkState.now().links - self.links:
            if link.startswith(LINKS_OF_ENGINES):
                subprocess.run(["ip", "link", "delete", link], check=False)
        for file, text in self.switches.items():
            if file.read_text() != text:
                file.write_text(text)


def undoing(before: list[str], after: list[str]) -> list[list[str]]:
    """Return the arguments of the calls that lead from ``after`` back to ``before``."""
    calls = [["-D", *line.split()[1:]] for line in after if line.startswith("-A") and line not in before]
    policies = dict(line[1:].split() for line in before if line.startswith(":"))
    chains = dict(line[1:].split() for line in after if line.startswith(":"))
    added = [chain for chain in chains if chain not in policies]
    calls += [["-F", chain] for chain in added] + [["-X", chain] for chain in added]
    calls += [
        ["-P", chain, policy] for chain, policy in policies.items() if chains.get(chain, policy) != policy
    ]
    return calls


def _saved(name: str, table: str) -> list[str]:
    """Return a table's chains and rules, without comments and counters."""
    told = subprocess.run([f"{name}-save", "-t", table], capture_output=True, text=True)
    lines = [line.partition(" [")[0] for line in told.stdout.splitlines()]
    return [line for line in lines if line.startswith((":", "-A"))]
