"""``python -m tests.architecture.house``: circles, folders, names, signatures, clients, reasons, budgets.

Exit status 1 if a breach does not stand in ``known.toml``, or an entry there is no breach any more.
"""

from __future__ import annotations

import sys
import tomllib
from collections.abc import Mapping
from pathlib import Path

from tests.architecture.house import limits, sources
from tests.architecture.house.clients import clients
from tests.architecture.house.graph import circles
from tests.architecture.house.reasons import reasons
from tests.architecture.house.signatures import hidden, parameters

ROOT = Path(__file__).parents[3]
LISTED = "tests/architecture/house/known.toml"
CHECKS = {
    "circles": circles, "folders": limits.folders, "names": limits.names, "hidden-arguments": hidden,
    "roles": parameters, "connections": clients, "not-reasons": reasons,
}  # fmt: skip
"""Each check by its table in ``known.toml``."""
MOST = {"connections": 7, "roles": 25}
"""Tables that are bounded."""

Known = Mapping[str, Mapping[str, str]]
"""``known.toml``: for each table its keys, each with a reason for people."""


def problems(modules: sources.Modules, known: Known) -> list[str]:
    """Return what makes the check fail: one line each."""
    found = [f"known.toml: [{name}] is the table of no check" for name in known.keys() - CHECKS.keys()]
    for name, check in CHECKS.items():
        listed, breaches = known.get(name, {}), list(check(modules))
        found += [f"{each.where}: {each.says}" for each in breaches if each.key not in listed]
        gone = listed.keys() - {each.key for each in breaches}
        found += [f"known.toml: [{name}] {key}: no longer a breach; remove it" for key in sorted(gone)]
        if len(listed) > MOST.get(name, len(listed)):
            found.append(f"known.toml: [{name}] has {len(listed)} entries, at most {MOST[name]} may be")
    return found


def main(root: Path = ROOT) -> int:
    """Measure what lies below ``root``, print, compare; return the exit status."""
    modules = sources.read(root)
    lines = sum(len(module.text.splitlines()) for module in modules.values())
    count = sum(not module.is_package for module in modules.values())
    print(f"lines {lines}, statements {limits.spent(modules).total()}, modules {count}")
    found = problems(modules, tomllib.loads((root / LISTED).read_text(encoding="utf-8")))
    found += limits.over_budget(modules, limits.budget(root))
    for line in found:
        print(f"error: {line}", file=sys.stderr)
    if found:
        print("error: what to do: CONTRIBUTING.md, section 'Tests'", file=sys.stderr)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
