"""``python -m yarnctl.task_runner.build``: makes the one file that is shipped to the nodes.

The file is the text of the package ``runner`` and nothing else: its head, its standard imports merged, then
every module in the order of ``MODULES`` as it is written, without its imports. The same sources give the same
bytes. What cannot be put together without a change of meaning is refused: a name that is defined twice or
renamed by an import, an import below other statements, and one of a module that comes later or that is not of
the standard library. The build of a wheel runs this, so it needs no package.
"""

from __future__ import annotations

import ast
import builtins
import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from yarnctl.task_runner.shipped import EMPTY_DIGEST, RUNNER, SOURCES, signed

PACKAGE = "yarnctl.task_runner.runner"
SOURCE = RUNNER.with_name(SOURCES)
BUILT = RUNNER
HEAD = "head.sh"
MODULES = (
    "protocol/key_rule",
    "protocol/stores",
    "protocol/token_files",
    "protocol/webhdfs_store",
    "protocol/manifests",
    "protocol/generations",
    "protocol/job_conf",
    "reports",
    "child",
    "attempt",
    "orders",
    "feeding",
    "saving",
    "resuming",
    "main",
)
"""Each imports only from those before it."""

NOTICE = f"""\
# BUILT from yarnctl/task_runner/runner by `python -m yarnctl.task_runner.build`: change that package and
# build again. In this file no change lasts.
{EMPTY_DIGEST}
"""
WIDTH = 110


class CannotBuild(Exception):
    """The package cannot become one file; the text names where and why."""


class ModuleText(NamedTuple):
    """A module, taken apart: imports as module -> names ("": the module itself); ``ours``: the package's."""

    law: str
    imports: dict[str, set[str]]
    ours: dict[str, set[str]]
    body: str
    defined: set[str]


def built(source: Path = SOURCE, modules: Sequence[str] = MODULES) -> str:
    """Return the text of the one file; raise CannotBuild with the reason."""
    pieces = {
        name: taken_apart(name, (source / f"{name}.py").read_text(encoding="utf-8")) for name in modules
    }
    check_complete(source, modules)
    check_names(pieces)
    imports: dict[str, set[str]] = {}
    for piece in pieces.values():
        for module, names in piece.imports.items():
            imports.setdefault(module, set()).update(names)
    head = (source / HEAD).read_text(encoding="utf-8").rstrip("\n")
    start = f"{head}\n#\n{NOTICE}\nfrom __future__ import annotations\n\n{merged(imports)}\n"
    rest = "\n\n".join(f"{commented(name, one.law)}\n\n\n{one.body}" for name, one in pieces.items())
    return signed(start + rest, source)


def taken_apart(name: str, text: str) -> ModuleText:
    """Return a module's law, imports and body."""
    tree = ast.parse(text, name, feature_version=(3, 8))
    law = ast.get_docstring(tree)
    if law is None:
        raise CannotBuild(f"{name}: it does not open with its law")
    imports: dict[str, set[str]] = {}
    ours: dict[str, set[str]] = {}
    nodes = tree.body[1:]
    while nodes and isinstance(nodes[0], ast.Import | ast.ImportFrom):
        note(name, nodes.pop(0), imports, ours)
    if not nodes:
        raise CannotBuild(f"{name}: there is nothing in it")
    last = tree.body[len(tree.body) - len(nodes) - 1].end_lineno or 0
    body = "".join(text.splitlines(keepends=True)[last:]).lstrip("\n")
    defined = {each for node in nodes for each in bound(name, node)}
    return ModuleText(law, imports, ours, body, defined)


def note(name: str, node: ast.stmt, imports: dict[str, set[str]], ours: dict[str, set[str]]) -> None:
    """Note what one import brings, from the standard library or from the package."""
    assert isinstance(node, ast.Import | ast.ImportFrom)
    if any(alias.asname for alias in node.names):
        raise CannotBuild(f"{name}:{node.lineno}: an import renames what it brings")
    if isinstance(node, ast.Import):
        found = {alias.name: {""} for alias in node.names}
    else:
        found = {node.module or "": {alias.name for alias in node.names}}
    for module, names in found.items():
        if module.startswith(PACKAGE + ".") and "" not in names:
            ours.setdefault(module[len(PACKAGE) + 1 :].replace(".", "/"), set()).update(names)
        elif module != "__future__":
            if module.partition(".")[0] not in sys.stdlib_module_names:
                raise CannotBuild(f"{name}:{node.lineno}: {module} is not of the standard library")
            imports.setdefault(module, set()).update(names)


def bound(name: str, node: ast.stmt) -> set[str]:
    """Return the names that a statement of a module binds; refuse an import below other statements."""
    if isinstance(node, ast.Import | ast.ImportFrom):
        raise CannotBuild(f"{name}:{node.lineno}: imports stand first")
    if isinstance(node, ast.ClassDef | ast.FunctionDef):
        return {node.name}
    if isinstance(node, ast.Try):  # a module of the standard library that not every system has
        tried = [each for each in node.body if isinstance(each, ast.Import)]
        return {alias.name for each in tried for alias in each.names}
    if isinstance(node, ast.If):  # the program's last lines
        return set()
    return {
        each.id for each in ast.walk(node) if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Store)
    }


def check_complete(source: Path, modules: Sequence[str]) -> None:
    """Refuse a package that has other modules than those that are put together."""
    found = {path.relative_to(source).with_suffix("").as_posix() for path in source.rglob("*.py")}
    other = {name for name in found if not name.endswith("__init__")} ^ set(modules)
    if other:
        raise CannotBuild(f"{', '.join(sorted(other))}: in the package or in MODULES, not in both")


def check_names(pieces: Mapping[str, ModuleText]) -> None:
    """Refuse names with two meanings, and names that are used before they are there."""
    owner: dict[str, str] = {}
    brought = {
        each or module for one in pieces.values() for module, got in one.imports.items() for each in got
    }
    for name, piece in pieces.items():
        for module, names in piece.ours.items():
            for each in sorted(names):
                if owner.get(each) != module:
                    raise CannotBuild(f"{name}: {each} is not defined by {module}, or only later")
        for each in sorted(piece.defined):
            if each in owner or each in brought or hasattr(builtins, each):
                raise CannotBuild(
                    f"{name}: {each} means something else in {owner.get(each, 'an import or in Python')}"
                )
            owner[each] = name


def merged(imports: Mapping[str, set[str]]) -> str:
    """Return the imports of all modules as they are written once."""
    whole = [f"import {module}\n" for module, names in sorted(imports.items()) if "" in names]
    parts = [
        taken(module, sorted(names - {""}, key=by_kind))
        for module, names in sorted(imports.items())
        if names - {""}
    ]
    return "".join(whole + parts)


def taken(module: str, names: Sequence[str]) -> str:
    """Return one ``from`` import, a name a line where it is long."""
    line = f"from {module} import {', '.join(names)}\n"
    if len(line) <= WIDTH:
        return line
    return f"from {module} import (\n" + "".join(f"    {name},\n" for name in names) + ")\n"


def by_kind(name: str) -> tuple[int, str]:
    """Return the rank of a name among those imported: constants, classes, functions."""
    return (0 if name.isupper() else 1 if name[0].isupper() else 2), name


def commented(name: str, law: str) -> str:
    """Return a module's name and law as comments."""
    rule = "-" * (WIDTH - 6 - len(name))
    return "\n".join([f"# {rule} {name}.py", *(f"# {line}".rstrip() for line in law.splitlines())])


def main() -> int:
    """Build the file; exit status 1 and the reason on stderr if that is not possible."""
    try:
        text = built()
    except (CannotBuild, SyntaxError) as why:
        sys.stderr.write(f"error: {BUILT.name} cannot be built: {why}\n")
        return 1
    part = BUILT.with_name(f".{BUILT.name}.{os.getpid()}")
    part.write_text(text, encoding="utf-8")
    part.chmod(0o755)
    part.replace(BUILT)  # whole or not at all: another process may be reading it
    return 0


if __name__ == "__main__":
    sys.exit(main())
