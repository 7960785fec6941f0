"""HTTP clients: who opens connections, and through which library.

Law: a module of the product that imports a client library, or opens a connection itself, stands below one
client in ``clients.toml``, and each client there counts as one. What opens connections and speaks no HTTP
stands below ``[others]`` with its protocol. Tests may use any library: together they count as one client,
and the figures say which libraries they use. An import for types alone, or of exceptions alone, opens
nothing.
"""

from __future__ import annotations

import ast
import tomllib
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from tests.architecture.house.graph import absolute
from tests.architecture.house.sources import Breach, Figure, Finding, Module, parse

MOST = 4
LISTED = "tests/architecture/house/clients.toml"

LIBRARIES = (
    *("aiohttp", "hdfs", "http.client", "httplib2", "httpx", "pycurl", "requests", "tornado.httpclient"),
    *("urllib.request", "urllib3", "websocket", "websockets"),
)
NAMED = ("socket", "asyncio", *(library.partition(".")[0] for library in LIBRARIES))
"""One of these stands in the text of whatever opens a connection."""
HARMLESS = ("hdfs.util", "requests.auth", "requests.exceptions", "urllib3.exceptions")
"""Parts of those libraries that open nothing."""
OPENERS = ("create_connection", "open_connection", "open_unix_connection", "create_unix_connection")
CONNECT = ("connect", "connect_ex", "sock_connect")
TEST_FOLDERS = ("docker", "tests")


class Use(NamedTuple):
    """One place where a module may open a connection."""

    library: str
    line: int


class Listed(NamedTuple):
    """Who may open connections: the modules of each client, and the protocols of the others."""

    clients: Mapping[str, tuple[str, ...]]
    others: Mapping[str, str]

    def owner(self, name: str) -> str | None:
        """Return the client a module belongs to, "" if it speaks no HTTP, None if it is not listed."""
        if name in self.others:
            return ""
        return next((client for client, modules in self.clients.items() if name in modules), None)


def load(path: Path) -> Listed:
    document: dict[str, Any] = tomllib.loads(path.read_text(encoding="utf-8"))
    clients = {name: tuple(client["modules"]) for name, client in document["clients"].items()}
    return Listed(clients, document.get("others", {}))


def clients(modules: Mapping[str, Module], root: Path, listed: Listed) -> tuple[Finding, list[str]]:
    """Return the modules that open connections and are not listed, and the entries that open none."""
    used = {name: found for name, module in modules.items() if (found := sorted(uses(module)))}
    breaches = tuple(
        Breach(name, len(found), f"{modules[name].path}:{found[0].line}",
            f"{name} uses {', '.join(sorted({each.library for each in found}))} and is no client's module")
        for name, found in used.items()
        if listed.owner(name) is None
    )  # fmt: skip
    named = [name for group in listed.clients.values() for name in group]
    doubled = [name for name, count in Counter([*named, *listed.others]).items() if count > 1]
    problems = [
        f"clients.toml: {name} opens no connection; remove it"
        for name in (*named, *listed.others)
        if name not in used
    ]
    problems += [f"clients.toml: {name} stands twice" for name in doubled]
    live = [client for client, group in listed.clients.items() if any(name in used for name in group)]
    tests = of_tests(root)
    count = len(live) + len(breaches) + bool(tests)
    figures = (Figure("clients", count, MOST), Figure("modules_of_clients", len(used) - len(listed.others)))
    libraries = (Figure(f"tests_{library}", number) for library, number in sorted(tests.items()))
    return Finding("http-clients", (*figures, *libraries), breaches), problems


def of_tests(root: Path) -> dict[str, int]:
    """Return how many files of the tests use each library."""
    counts: Counter[str] = Counter()
    for folder in TEST_FOLDERS:
        for path in sorted((root / folder).rglob("*.py")):
            counts.update({use.library for use in uses(parse(path, path.relative_to(root).as_posix()))})
    return dict(counts)


def uses(module: Module) -> set[Use]:
    """Return where a module may open a connection."""
    if not any(word in module.text for word in NAMED):
        return set()
    has_sockets = False
    found: set[Use] = set()
    calls: list[tuple[str, int]] = []
    for node in at_run_time(module.tree):
        if isinstance(node, ast.Import | ast.ImportFrom):
            for name in imported(module, node):
                has_sockets |= name.partition(".")[0] in ("socket", "asyncio")
                if (library := library_of(name)) is not None:
                    found.add(Use(library, node.lineno))
        elif isinstance(node, ast.Call):
            calls.append((getattr(node.func, "attr", getattr(node.func, "id", "")), node.lineno))
    if has_sockets:
        found |= {Use("sockets", line) for name, line in calls if name in OPENERS or name in CONNECT}
    return found


def at_run_time(tree: ast.AST) -> Iterator[ast.AST]:
    """Yield all nodes but those below ``if TYPE_CHECKING``."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            continue
        yield node
        yield from at_run_time(node)


def imported(module: Module, node: ast.Import | ast.ImportFrom) -> list[str]:
    """Return the full names that one statement imports."""
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    source = absolute(module, node)
    return [f"{source}.{alias.name}" for alias in node.names]


def library_of(name: str) -> str | None:
    """Return the client library that a name belongs to, None if it can open nothing."""
    last = name.rpartition(".")[2]
    if any(is_within(name, part) for part in HARMLESS) or last.endswith(("Exception", "Error", "Response")):
        return None
    return next((library for library in LIBRARIES if is_within(name, library)), None)


def is_within(name: str, package: str) -> bool:
    return name == package or name.startswith(f"{package}.")
