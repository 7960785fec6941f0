"""Functions: lines of a body, cyclomatic complexity.

Law: lines are counted here: from the first statement of the body to the last line, docstring, comments,
blank lines and inner functions included. Complexity (C901) is ruff's, run without the project's
configuration and without heeding ``noqa``.
``[exceptions]`` in ``known.toml`` names functions that may stay over a limit, each with its reason: at most
five.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

from tests.architecture.house.sources import PACKAGES, Breach, Figure, Finding, Function, Module, definitions

BODY_LINES = 60
COMPLEXITY = 12
EXCEPTIONS = 5

NUMBERS = re.compile(r"\((?P<found>\d+) > \d+\)")
RULES = {"C901": "complexity"}


def functions(
    modules: Mapping[str, Module], root: Path, exceptions: Mapping[str, str]
) -> tuple[tuple[Finding, ...], list[str]]:
    """Return the functions over a limit, without those that ``exceptions`` names."""
    over = {"function-lines": list(long_bodies(modules)), **measured_by_ruff(modules, root)}
    findings = [Finding("exceptions", (Figure("named_exceptions", len(exceptions), EXCEPTIONS),), ())]
    for section, found in over.items():
        counted = tuple(breach for breach in found if breach.key not in exceptions)
        figure = Figure(f"over_{section.replace('-', '_')}", len(counted), 0)
        findings.append(Finding(section, (figure,), counted))
    keys = {breach.key for found in over.values() for breach in found}
    problems = [
        f"[exceptions] {key}: it is over no limit; remove it" for key in exceptions if key not in keys
    ]
    if len(exceptions) > EXCEPTIONS:
        problems.append(f"[exceptions] names {len(exceptions)} functions, at most {EXCEPTIONS} may be")
    return tuple(findings), problems


def long_bodies(modules: Mapping[str, Module]) -> Iterator[Breach]:
    for module in modules.values():
        for name, node in definitions(module.tree):
            if isinstance(node, Function):
                lines = body_lines(node)
                if lines > BODY_LINES:
                    says = f"{name} has {lines} lines in its body, at most {BODY_LINES} may be"
                    yield Breach(f"{module.path}:{name}", lines, f"{module.path}:{node.lineno}", says)


def body_lines(node: Function) -> int:
    """Return how many lines a function has from its first statement to its last line."""
    return (node.end_lineno or 0) - node.body[0].lineno + 1


def measured_by_ruff(modules: Mapping[str, Module], root: Path) -> dict[str, list[Breach]]:
    """Return the functions that are too complex."""
    by_path = {(root / module.path).resolve(): module for module in modules.values()}
    found: dict[str, list[Breach]] = {section: [] for section in RULES.values()}
    for row in ruff(root):
        module = by_path[Path(row["filename"]).resolve()]
        line = row["location"]["row"]
        at = next(((name, node) for name, node in definitions(module.tree) if node.lineno == line), None)
        number = NUMBERS.search(row["message"])
        if at is None or number is None:
            raise ValueError(f"{module.path}:{line}: ruff says what is not understood: {row['message']}")
        name, _ = at
        section, figure = RULES[row["code"]], int(number["found"])
        says = f"{name}: {row['message']}"
        found[section].append(Breach(f"{module.path}:{name}", figure, f"{module.path}:{line}", says))
    return found


def ruff(root: Path) -> list[dict]:
    """Run ruff's rules over the product; return its rows."""
    program = Path(sys.executable).parent / "ruff"
    options = ["--config", f"lint.mccabe.max-complexity={COMPLEXITY}"]
    fixed = ("--isolated", "--ignore-noqa", "--no-cache", "--exit-zero", "--target-version", "py311")
    folders = [package for package in PACKAGES if (root / package).is_dir()]
    argv = [str(program), "check", *fixed, *options, "--select", ",".join(RULES), "--output-format", "json"]
    done = subprocess.run([*argv, *folders], cwd=root, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{' '.join(argv)}: exit status {done.returncode}: {done.stderr.strip()}")
    return json.loads(done.stdout)
