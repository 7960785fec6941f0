"""HTTP clients: who opens connections, and through which library.

Law: a module of the product that imports a client library, or opens a connection itself, stands below
``[connections]`` in ``known.toml`` with what it is for. An import for types alone, or of exceptions alone,
opens nothing. Of the tests ``tests.http_client`` alone opens connections, and those that say why not.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import NamedTuple

from tests.architecture.house.graph import absolute
from tests.architecture.house.sources import Breach, Module, Modules

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


class Use(NamedTuple):
    """One place where a module may open a connection."""

    library: str
    line: int


def clients(modules: Modules) -> Iterator[Breach]:
    """Yield the modules that open connections."""
    for name, module in modules.items():
        if found := sorted(uses(module)):
            libraries = ", ".join(sorted({each.library for each in found}))
            says = f"{name} opens connections ({libraries}); use a module below [connections] in known.toml"
            yield Breach(name, f"{module.path}:{found[0].line}", says)


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
