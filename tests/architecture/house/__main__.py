"""``python -m tests.architecture.house [--json] [--shrink]``: measure the house, hold it against the list.

Exit status 1 if a breach is not on the list, or an entry of it is no breach; the targets do not change the
status. ``--quiet`` leaves out the breaches that are on the list. ``--shrink`` removes from ``known.toml``
what is mended, and lowers what got smaller; it adds nothing.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from tests.architecture.house import (
    clients,
    functions,
    graph,
    hidden,
    names,
    parameters,
    ratchet,
    reasons,
    rooms,
    sizes,
    sources,
)
from tests.architecture.house.sources import Finding

ROOT = Path(__file__).parents[3]


class Measured(NamedTuple):
    """The findings of each check by its name, and what makes the whole fail."""

    checks: Mapping[str, tuple[Finding, ...]]
    problems: tuple[str, ...]

    @property
    def findings(self) -> list[Finding]:
        return [finding for group in self.checks.values() for finding in group]


def measure(
    root: Path, known: ratchet.Known, listed: clients.Listed, allowed: sizes.Allowed | None = None
) -> Measured:
    """Run every check; statements are judged where ``allowed`` has the budgets."""
    modules = sources.read(root)
    of_functions, wrong_exceptions = functions.functions(modules, root, known.exceptions)
    of_clients, wrong_clients = clients.clients(modules, root, listed)
    of_reasons, wrong_reasons = reasons.reasons(modules, known.not_reasons)
    of_parameters, wrong_roles = parameters.parameters(modules, known.roles)
    checks = {
        "circles": (graph.circles(modules),), "rooms": (rooms.rooms(modules),),
        "size": (sizes.sizes(modules),), "functions": of_functions, "names": names.names(modules),
        "hidden-arguments": (hidden.hidden(modules),),
        "http-clients": (of_clients,), "parsed-reasons": (of_reasons,),
        "parameter-names": (of_parameters,),
    }  # fmt: skip
    findings = [finding for group in checks.values() for finding in group]
    wrong = [
        *ratchet.problems(findings, known),
        *wrong_exceptions,
        *wrong_clients,
        *wrong_reasons,
        *wrong_roles,
    ]
    wrong += sizes.over_budget(modules, allowed) if allowed is not None else []
    return Measured(checks, tuple(wrong))


def document(measured: Measured) -> dict[str, Any]:
    checks = {
        name: {
            "figures": {figure.name: figure.value for finding in group for figure in finding.figures},
            "targets": {
                figure.name: figure.target
                for finding in group
                for figure in finding.figures
                if figure.target is not None
            },
            "breaches": [
                {"section": finding.section, **breach._asdict()}
                for finding in group
                for breach in finding.breaches
            ],
        }
        for name, group in measured.checks.items()
    }
    return {**checks, "problems": list(measured.problems)}


def lines(measured: Measured, breaches: bool) -> Iterable[str]:
    """Yield what people read: each figure with its target, and each breach if asked for."""
    for name, group in measured.checks.items():
        figures = [figure for finding in group for figure in finding.figures]
        parts = (
            f"{figure.name.replace('_', ' ')} {figure.value}"
            + (f" (target {figure.target})" if figure.target is not None else "")
            for figure in figures
        )
        yield f"{name}: {', '.join(parts)}"
        if breaches:
            yield from (f"  {one.where}: {one.says}" for finding in group for one in finding.breaches)


def main(arguments: Sequence[str] | None = None, root: Path = ROOT) -> int:
    """Measure what lies below ``root``, print, compare; return the exit status."""
    parser = argparse.ArgumentParser(prog="python -m tests.architecture.house", description=__doc__)
    parser.add_argument("--json", action="store_true", help="figures, targets and breaches as JSON")
    parser.add_argument("--quiet", action="store_true", help="leave out the breaches that are on the list")
    parser.add_argument("--shrink", action="store_true", help="take out of known.toml what is mended")
    options = parser.parse_args(arguments)
    known, listed = root / ratchet.LISTED, clients.load(root / clients.LISTED)
    measured = measure(root, ratchet.load(known), listed, sizes.budget(root))
    if options.shrink:
        known.write_text(ratchet.shrunk(known.read_text("utf-8"), measured.findings), "utf-8")
        measured = measure(root, ratchet.load(known), listed, sizes.budget(root))
    if options.json:
        print(json.dumps(document(measured), indent=1, ensure_ascii=False))
    else:
        print("\n".join(lines(measured, breaches=not options.quiet)))
    for line in measured.problems:
        print(f"error: {line}", file=sys.stderr)
    if measured.problems:
        print("error: what to do: CONTRIBUTING.md, section 'When the house check is red'", file=sys.stderr)
    return 1 if measured.problems else 0


if __name__ == "__main__":
    sys.exit(main())
