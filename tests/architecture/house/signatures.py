"""Signatures: parameters that are named after their type, and no arguments that a reader cannot see.

* A function names its parameters; ``**name: Any`` stands in a wrapper, which has ``*args`` beside it, and in
  a method that hands it to the one it overrides. A call names its arguments: it spreads no tuple that the
  same function has written down before.
* A parameter that is annotated with one class of the product (``X`` or ``X | None``) shares a word with its
  name: ``queue: RequestQueue``. Words are split at underscores and capitals; a plural, an abbreviation of
  three letters and a common stem of four count.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from tests.architecture.house.sources import Breach, Function, Module, Modules, definitions

STEM = 4
SHORT = 3


def hidden(modules: Modules) -> Iterator[Breach]:
    """Yield the functions with a hidden parameter, and the calls with hidden arguments."""
    found: dict[str, Breach] = {}
    for module in modules.values():
        for name, node in definitions(module.tree):
            for line, says in problems(node) if isinstance(node, Function) else ():
                where = f"{module.path}:{line}"  # a function inside another one is seen twice
                found.setdefault(where, Breach(f"{module.path}:{name}", where, f"{name} {says}"))
    yield from found.values()


def problems(function: Function) -> Iterator[tuple[int, str]]:
    """Yield the line of each, and what hides the arguments."""
    rest = function.args.kwarg
    any_type = rest is not None and rest.annotation is not None and ast.unparse(rest.annotation) == "Any"
    override = f"super().{function.name}("
    if (
        rest is not None
        and any_type
        and function.args.vararg is None
        and override not in ast.unparse(function)
    ):
        yield rest.lineno, f"takes **{rest.arg}: Any; name the parameters"
    tuples = {
        target.id
        for node in ast.walk(function)
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Tuple)
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    calls = (node for node in ast.walk(function) if isinstance(node, ast.Call))
    for each in (each for call in calls for each in call.args if isinstance(each, ast.Starred)):
        if isinstance(each.value, ast.Name) and each.value.id in tuples:
            yield each.lineno, f"spreads the tuple {each.value.id} into a call; write the arguments out"


def parameters(modules: Modules) -> Iterator[Breach]:
    """Yield the parameters named after something else than their class."""
    classes = {
        node.name
        for each in modules.values()
        for node in ast.walk(each.tree)
        if isinstance(node, ast.ClassDef)
    }
    for module in modules.values():
        for name, class_, line in annotated(module.tree):
            if class_ in classes and not related(name, class_) and is_class(modules, module, class_):
                says = f"{name} shares no word with its class {class_}"
                yield Breach(f"{name}: {class_}", f"{module.path}:{line}", says)


def annotated(tree: ast.Module) -> Iterator[tuple[str, str, int]]:
    """Yield the name of each parameter, what it is annotated with, and its line."""
    for given in (node.args for node in ast.walk(tree) if isinstance(node, Function)):
        for each in (*given.posonlyargs, *given.args, *given.kwonlyargs):
            if each.arg != "_" and (class_ := class_of(each.annotation)):
                yield each.arg, class_, each.lineno


def is_class(modules: Modules, module: Module, name: str) -> bool:
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
