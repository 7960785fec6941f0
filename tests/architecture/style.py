"""``python -m tests.architecture.style [PATH ...]``: check the English of all texts that a person reads.

Without paths: the product's packages and the user pages. A path is a folder, a Python file or a page
(``.md``), relative to the root. Exit status 1 if a text breaks a rule.

* In Python: each string with a blank in it (help, errors, reasons, findings, log lines, headings), and the
  docstrings that are printed: of click commands, and of all that lies in ``PRINTED``.
* In pages: prose outside of code. A line has at most ``LINE_MAX`` characters, a paragraph at most
  ``PARAGRAPH_MAX`` lines.

The rules are those of STYLE.md that a machine can judge.
"""

from __future__ import annotations

import argparse
import ast
import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[2]
PACKAGES = ("yarnctl", "emulator", "research/yarn_research")
BUILT = "yarnctl/task_runner/yarnctl_task.py"
PRINTED = ("yarnctl/api", "yarnctl/attach/check", "yarnctl/deciding/reasons")
"""Folders and files with docstrings that a person reads: descriptions of the API, of findings, of reasons."""

STYLE = "docs/style.md"
"""The page with the rules and the list of user pages. It is not checked: it quotes what it rejects."""
_PAGE = re.compile(r"^(?:README\.md|docs/[a-z-]+\.md)$", re.MULTILINE)

WORDS = re.compile(
    r"\b(who|whose|nobody|somebody|mend|dear|told|leave [^.]*\baway|so (long|many|often)|is no(?! longer)"
    r"|go(es)? on|comes? back)\b",
    re.IGNORECASE,
)
LINE_MAX = 110
PARAGRAPH_MAX = 5
_FENCE = re.compile(r"\s*(```|~~~)")
_INLINE = re.compile(r"`[^`]*`")
_CODE = re.compile(r"``[^`]*``|\{[^{}]*\}")
"""Names in a text of Python: identifiers, and fields that are filled in."""
_APART = re.compile(r"\s*(#|\||[-*+] |[0-9]+[.)] |>|<|!\[|\[[^]]*\]:)")
"""How a line begins that belongs to no paragraph before it: heading, table, item, quote, picture, link."""


class Breach(NamedTuple):
    """One text that breaks a rule: ``where`` is the file with its line."""

    where: str
    says: str


def user_pages(root: Path = ROOT) -> list[str]:
    """Return the user pages, as ``docs/style.md`` lists them: one on a line of its own."""
    return _PAGE.findall((root / STYLE).read_text("utf-8"))


def breaches(paths: Iterable[Path], root: Path = ROOT) -> list[Breach]:
    """Return all breaches in folders, Python files and pages; an OSError or SyntaxError is raised."""
    found: list[Breach] = []
    for path in paths:
        for file in sorted(path.rglob("*.py")) if path.is_dir() else [path]:
            name = file.relative_to(root).as_posix()
            text = file.read_text("utf-8")
            if file.suffix == ".md":
                found += in_page(name, text)
            elif name != BUILT:
                found += in_source(name, text)
    return found


def in_source(name: str, source: str) -> list[Breach]:
    is_printed = any(name == place or name.startswith(f"{place}/") for place in PRINTED)
    return [
        Breach(f"{name}:{line}", f"'{match[0]}' in: {_short(text, match.start())}")
        for line, found in texts(ast.parse(source), is_printed)
        if (match := WORDS.search(text := _CODE.sub("{}", found)))
    ]


def texts(tree: ast.Module, is_printed: bool) -> Iterator[tuple[int, str]]:
    """Yield each text that a person may read, with its line; ``is_printed``: docstrings, too."""
    unread = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            unread |= set() if is_printed or _is_command(node) else set(_documentation(node.body))
        if isinstance(node, ast.JoinedStr):
            unread |= set(node.values)
            parts = (part.value if isinstance(part, ast.Constant) else "{}" for part in node.values)
            yield node.lineno, " ".join("".join(map(str, parts)).split())
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and node not in unread:
            text = " ".join(node.value.split())
            if " " in text:
                yield node.lineno, text


def _documentation(body: Sequence[ast.stmt]) -> Iterator[ast.expr]:
    """Yield the strings that stand alone in a body: its docstring, and those of its names."""
    for statement in body:
        if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant):
            yield statement.value


def _is_command(node: ast.AST) -> bool:
    """Return whether a function is a click command or group: its docstring is its help."""
    called = (
        each.func if isinstance(each, ast.Call) else each for each in getattr(node, "decorator_list", ())
    )
    names = {getattr(each, "attr", getattr(each, "id", "")) for each in called}
    return bool(names & {"command", "group"})


def in_page(name: str, text: str) -> list[Breach]:
    found = []
    is_code, paragraph = False, 0
    for number, line in enumerate(text.splitlines(), 1):
        where = f"{name}:{number}"
        if len(line) > LINE_MAX:
            found.append(Breach(where, f"a line of {len(line)} characters (at most {LINE_MAX})"))
        if _FENCE.match(line):
            is_code, paragraph = not is_code, 0
            continue
        if is_code:
            continue
        prose = _INLINE.sub("`", line)
        if match := WORDS.search(prose):
            found.append(Breach(where, f"'{match[0]}' in: {_short(prose, match.start())}"))
        is_first = not paragraph or _APART.match(line)
        paragraph = 0 if not line.strip() else 1 if is_first else paragraph + 1
        if paragraph == PARAGRAPH_MAX + 1:
            found.append(Breach(where, f"a paragraph of more than {PARAGRAPH_MAX} lines"))
    return found


def _short(text: str, start: int) -> str:
    """Return what stands around a position."""
    return text[max(0, start - 40) : start + 60].strip()


def main(arguments: Sequence[str] | None = None, root: Path = ROOT) -> int:
    """Check the paths (none: everything), print each breach; return the exit status."""
    parser = argparse.ArgumentParser(prog="python -m tests.architecture.style", description=__doc__)
    parser.add_argument("paths", nargs="*", type=Path)
    paths = [root / path for path in parser.parse_args(arguments).paths]
    everything = [path for name in (*PACKAGES, *user_pages(root)) if (path := root / name).exists()]
    found = breaches(paths or everything, root)
    for breach in found:
        print(f"{breach.where}: {breach.says}")
    print(f"style: {len(found)} breaches")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
