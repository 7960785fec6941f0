"""Parameters: names that say what is given.

Law: a parameter that is annotated with one class of the product (``X`` or ``X | None``) shares a word with
its name: ``queue: RequestQueue``. Words are split at underscores and capitals; a plural, an abbreviation of
three letters and a common stem of four count. ``[roles]`` in ``known.toml`` names pairs whose role says more
than the class, each with its reason: at most 25.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping

from tests.architecture.house.sources import Breach, Figure, Finding, Function, Module

ROLES = 25
STEM = 4
SHORT = 3


def parameters(modules: Mapping[str, Module], roles: Mapping[str, str]) -> tuple[Finding, list[str]]:
    """Return the parameters named after something else, without the pairs that ``roles`` names."""
    classes = {
        node.name
        for each in modules.values()
        for node in ast.walk(each.tree)
        if isinstance(node, ast.ClassDef)
    }
    found = [
        Breach(
            f"{name}: {class_}", 1, f"{module.path}:{line}", f"{name} shares no word with its class {class_}"
        )
        for module in modules.values()
        for name, class_, line in annotated(module.tree)
        if class_ in classes and not related(name, class_) and is_class(modules, module, class_)
    ]
    counted = tuple(breach for breach in found if breach.key not in roles)
    needed = {breach.key for breach in found}
    problems = [f"[roles] {pair}: no parameter needs it; remove it" for pair in roles if pair not in needed]
    if len(roles) > ROLES:
        problems.append(f"[roles] names {len(roles)} pairs, at most {ROLES} may be")
    return Finding("parameter-names", (Figure("parameter_names", len(counted), 0),), counted), problems


def annotated(tree: ast.Module) -> Iterator[tuple[str, str, int]]:
    """Yield the name of each parameter, what it is annotated with, and its line."""
    for given in (node.args for node in ast.walk(tree) if isinstance(node, Function)):
        for each in (*given.posonlyargs, *given.args, *given.kwonlyargs):
            if each.arg != "_" and (class_ := class_of(each.annotation)):
                yield each.arg, class_, each.lineno


def is_class(modules: Mapping[str, Module], module: Module, name: str) -> bool:
    """Return whether a name in a module is a class of the product, defined there or imported."""
    for node in ast.walk(module.tree):
        if isinstance(node, ast.ClassDef) and node.name == name:
            return True
        if isinstance(node, ast.ImportFrom) and name in (each.asname or each.name for each in node.names):
            original = next(each.name for each in node.names if name in (each.asname, each.name))
            source = modules.get(str(node.module))
            return source is not None and is_class(modules, source, original)
    return False


def class_of(annotation: ast.expr | None) -> str:
    """Return a plain name, also beside ``None``; "" for any other annotation."""
    if isinstance(annotation, ast.BinOp) and isinstance(annotation.right, ast.Constant):
        annotation = annotation.left
    return annotation.id if isinstance(annotation, ast.Name) else ""


def related(name: str, class_: str) -> bool:
    """Return whether a word of one begins a word of the other (``app``), or both begin alike (``ending``)."""
    ours, theirs = (re.findall("[A-Z]?[a-z]+|[A-Z]+", each) for each in (name, class_))
    return any(alike(one.lower(), other.lower()) for one in ours for other in theirs)


def alike(one: str, other: str) -> bool:
    shorter, longer = sorted((one, other), key=len)
    return one[:STEM] == other[:STEM] or (len(shorter) >= SHORT and longer.startswith(shorter))
