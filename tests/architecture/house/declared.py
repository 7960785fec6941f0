"""Declared types: what annotations say of a name, without running or checking anything.

Law: an answer is what somebody wrote: ``text`` if one member of the annotation is ``str`` (through aliases,
``NewType``, ``Annotated`` and ``Optional``), ``value`` if there is an annotation and none is, else
``unknown``.
"""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import Literal, NamedTuple

from tests.architecture.house.sources import Function, Module

Kind = Literal["text", "value", "unknown"]

WRAPPERS = ("Annotated", "Final", "ClassVar", "Optional", "Union")
DEPTH = 10
"""How far aliases and base classes are followed; a circle ends there."""


class Class(NamedTuple):
    """What one class declares: annotations by name, and its bases."""

    fields: dict[str, ast.expr]
    bases: tuple[str, ...]


class World:
    """The classes and aliases of all modules, by their last names; one name may stand for several."""

    def __init__(self, modules: Iterable[Module]) -> None:
        self.classes: dict[str, list[Class]] = defaultdict(list)
        self.aliases: dict[str, list[ast.expr]] = defaultdict(list)
        for module in modules:
            for node in ast.walk(module.tree):
                if isinstance(node, ast.ClassDef):
                    bases = tuple(name_of(base) for base in node.bases)
                    self.classes[node.name].append(Class(dict(declarations(node)), bases))
            for name, value in aliases_of(module.tree):
                self.aliases[name].append(value)

    def members(self, annotation: ast.expr, depth: int = DEPTH) -> Iterator[ast.expr]:
        """Yield the members of a union; aliases are replaced by what they stand for."""
        if isinstance(annotation, ast.BinOp) and isinstance(annotation.op, ast.BitOr):
            parts = [annotation.left, annotation.right]
        elif isinstance(annotation, ast.Constant) and isinstance(annotation.value, str):
            parts = [ast.parse(annotation.value, mode="eval").body]
        elif isinstance(annotation, ast.Subscript) and name_of(annotation.value) in WRAPPERS:
            inner = annotation.slice
            elements = inner.elts if isinstance(inner, ast.Tuple) else [inner]
            parts = elements[:1] if name_of(annotation.value) == "Annotated" else elements
        else:
            parts = self.aliases.get(name_of(annotation), []) if name_of(annotation) else []
        if not parts or not depth:
            yield annotation
        for part in parts if depth else ():
            yield from self.members(part, depth - 1)

    def kind(self, annotations: Iterable[ast.expr]) -> Kind:
        names = [name_of(member) for annotation in annotations for member in self.members(annotation)]
        return "text" if "str" in names else "value" if names else "unknown"

    def field(self, owner: str, name: str, depth: int = DEPTH) -> list[ast.expr]:
        """Return the annotations of one field in every class of a name, or in their bases."""
        found = []
        for each in self.classes.get(owner, ()) if depth else ():
            if name in each.fields:
                found.append(each.fields[name])
            else:
                found += [one for base in each.bases for one in self.field(base, name, depth - 1)]
        return found

    def anywhere(self, name: str) -> list[ast.expr]:
        return [each.fields[name] for group in self.classes.values() for each in group if name in each.fields]


def name_of(node: ast.AST) -> str:
    """Return the last part of a name, "" if a node is none."""
    return node.attr if isinstance(node, ast.Attribute) else str(getattr(node, "id", ""))


def declarations(node: ast.ClassDef) -> Iterator[tuple[str, ast.expr]]:
    """Yield what a class declares: fields, results of methods, and annotated attributes of ``self``."""
    for each in node.body:
        if isinstance(each, ast.AnnAssign):
            yield name_of(each.target), each.annotation
        elif isinstance(each, Function):
            if each.returns is not None:
                yield each.name, each.returns
            given = {one.arg: one.annotation for one in (*each.args.args, *each.args.kwonlyargs)}
            for inner in ast.walk(each):
                yield from own_attributes(inner, given)


def own_attributes(node: ast.AST, given: dict[str, ast.expr | None]) -> Iterator[tuple[str, ast.expr]]:
    """Yield an attribute of ``self`` that is annotated, or takes over an annotated parameter."""
    target: ast.expr | None = node.target if isinstance(node, ast.AnnAssign) else None
    annotation = node.annotation if isinstance(node, ast.AnnAssign) else None
    if isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.value, ast.Name):
        target, annotation = node.targets[0], given.get(node.value.id)
    if isinstance(target, ast.Attribute) and name_of(target.value) == "self" and annotation is not None:
        yield target.attr, annotation


def aliases_of(tree: ast.Module) -> Iterator[tuple[str, ast.expr]]:
    """Yield the names at the top of a module that stand for a type: unions, plain names, ``NewType``."""
    for node in tree.body:
        if isinstance(node, ast.AnnAssign) and name_of(node.annotation) == "TypeAlias" and node.value:
            yield name_of(node.target), node.value
        elif (
            isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name)
        ):
            name, value = node.targets[0].id, node.value
            if isinstance(value, ast.Call) and name_of(value.func) == "NewType" and len(value.args) == 2:
                yield name, value.args[1]
            elif isinstance(value, ast.BinOp) or (isinstance(value, ast.Name) and value.id != name):
                yield name, value
