"""Parsed reasons: code that compares, cuts or searches the text of a reason.

Law: a reason is a value, rendered to English in one place; a better sentence changes no decision. What is
called ``why``, ``reason`` and the like is not compared with a text, cut or searched. Of a reason that is no
text mypy reports each of these (strict equality); here it is seen of any. ``[:300]`` bounds a text and reads
nothing. ``[not-reasons]`` in ``known.toml`` names the places whose reason is a ``Literal``, or none.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from tests.architecture.house.sources import Breach, Function, Modules, definitions

NAMES = frozenset(("why", "why_not", "reason", "cause", "because"))
CUTTERS = frozenset(
    (
        *("startswith", "endswith", "removeprefix", "removesuffix", "partition", "rpartition", "split"),
        *("rsplit", "splitlines", "find", "rfind", "index", "rindex", "count", "replace"),
    )
)
COPIES = frozenset(("strip", "lstrip", "rstrip", "lower", "upper", "casefold"))
"""Methods whose result is still the reason."""
PATTERNS = frozenset(("match", "fullmatch", "search", "findall", "finditer", "split", "sub"))
"""Methods and functions of ``re`` that search an argument."""


def reasons(modules: Modules) -> Iterator[Breach]:
    """Yield the places that read the text of a reason, each in its innermost function."""
    for module in modules.values():
        found: dict[ast.AST, str] = {}
        for name, function in (("module", module.tree), *definitions(module.tree)):
            if isinstance(function, ast.Module | Function):
                found.update((node, name) for node in ast.walk(function) if reads(node))
        for node, name in found.items():
            where, text = f"{module.path}:{getattr(node, 'lineno', 1)}", ast.unparse(node)
            yield Breach(f"{module.path}:{name}: {text}", where, f"reads the text of a reason: {text}")


def reads(node: ast.AST) -> bool:
    """Return whether an expression compares, cuts or searches a reason."""
    match node:
        case ast.Compare(left=left, ops=ops, comparators=others):
            sides = [left, *others]
            return any(
                isinstance(operator, ast.Eq | ast.NotEq | ast.In | ast.NotIn)
                and any(map(is_reason, sides[place : place + 2]))
                and any(map(is_text, sides[place : place + 2]))
                for place, operator in enumerate(ops)
            )
        case ast.Call(func=ast.Attribute(value=value, attr=method), args=args):
            return (method in CUTTERS and is_reason(value)) or (
                method in PATTERNS and any(map(is_reason, args))
            )
        case ast.Subscript(value=value, slice=ast.Slice(lower=lower, step=step)):
            return is_reason(value) and not (lower is None and step is None)
        case ast.Match(subject=subject, cases=cases):
            parts = (part for each in cases for part in ast.walk(each.pattern))
            return is_reason(subject) and any(isinstance(part, ast.MatchValue) for part in parts)
        case ast.MatchClass(kwd_attrs=names, kwd_patterns=patterns):
            return any(
                name in NAMES and isinstance(pattern, ast.MatchValue)
                for name, pattern in zip(names, patterns, strict=True)
            )
    return False


def is_reason(node: ast.expr) -> bool:
    match node:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name.strip("_") in NAMES
        case ast.Call(func=ast.Attribute(value=value, attr=method)) if method in COPIES:
            return is_reason(value)
        case ast.Call(func=ast.Name(id="str"), args=[value]):
            return is_reason(value)
        case ast.Call(func=ast.Attribute() | ast.Name() as function):
            return is_reason(function)
        case ast.BoolOp(values=values):
            return any(map(is_reason, values))
        case ast.NamedExpr(target=target, value=value):
            return is_reason(target) or is_reason(value)
        case ast.Subscript(value=value, slice=ast.Slice()):
            return is_reason(value)
    return False


def is_text(node: ast.expr) -> bool:
    """Return whether a side of a comparison is a text, or a constant that may be one."""
    match node:
        case ast.Constant(value=str() as value):
            return value != ""
        case ast.Name(id=name):
            return name.isupper()
        case ast.Tuple(elts=elements) | ast.Set(elts=elements) | ast.List(elts=elements):
            return any(map(is_text, elements))
    return False
