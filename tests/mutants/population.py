"""The population: every mutant of a folder that the kinds below can make, and a sample of it.

Law: a mutant is one small change of one file, named by file, function, kind, the text of its line and a
number among equals, never by a line's number: unrelated changes leave its name. Same sources, same
population; same seed, same sample, stratified by file and kind (:func:`sample`). Left out, for they change
nothing or cannot run: annotations, docstrings, decorators, ``__all__``, ``|`` (types, mostly), and a
comparison of kinds that no number distinguishes (``==`` to ``is``).
"""

from __future__ import annotations

import ast
import hashlib
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from cosmic_ray.ast import ast_nodes, get_ast
from cosmic_ray.mutating import mutate_code
from cosmic_ray.operators import (
    binary_operator_replacement,
    boolean_replacer,
    break_continue,
    comparison_operator_replacement,
    number_replacer,
    unary_operator_replacement,
    zero_iteration_for_loop,
)

COMPARED = (
    *("Lt_LtE", "LtE_Lt", "Gt_GtE", "GtE_Gt"),  # at the border
    *("Lt_GtE", "GtE_Lt", "Gt_LtE", "LtE_Gt", "Eq_NotEq", "NotEq_Eq", "Is_IsNot", "IsNot_Is"),  # the contrary
)
RECKONED = (
    *("Add_Sub", "Sub_Add", "Mul_FloorDiv", "FloorDiv_Mul", "Mod_FloorDiv", "Pow_Mul"),
    *("LShift_RShift", "RShift_LShift", "BitAnd_BitXor", "BitXor_BitAnd"),
)
OPERATORS: dict[str, list[type]] = {
    "comparison": [
        vars(comparison_operator_replacement)[f"ReplaceComparisonOperator_{name}"] for name in COMPARED
    ],
    "arithmetic": [vars(binary_operator_replacement)[f"ReplaceBinaryOperator_{name}"] for name in RECKONED],
    "boolean": [
        boolean_replacer.ReplaceTrueWithFalse,
        boolean_replacer.ReplaceFalseWithTrue,
        boolean_replacer.ReplaceAndWithOr,
        boolean_replacer.ReplaceOrWithAnd,
        boolean_replacer.AddNot,
        unary_operator_replacement.ReplaceUnaryOperator_Delete_Not,
    ],
    "number": [number_replacer.NumberReplacer, unary_operator_replacement.ReplaceUnaryOperator_Delete_USub],
    "loop": [
        break_continue.ReplaceBreakWithContinue,
        break_continue.ReplaceContinueWithBreak,
        zero_iteration_for_loop.ZeroIterationForLoop,
    ],
}
"""cosmic-ray's operators, by our kinds; "dropped" and "swapped" are made here (:func:`_own`)."""

SWAPPED = {"min": "max", "max": "min", "any": "all", "all": "any"}


class Mutant(NamedTuple):
    """One change. ``make`` returns the whole changed source, None where the change cannot be made."""

    identity: str
    path: str
    function: str
    kind: str
    change: str
    line: int
    make: Callable[[], str | None]


class _Place(NamedTuple):
    """Where a mutant is to be made; ``make`` as above."""

    line: int
    column: int
    kind: str
    change: str
    make: Callable[[], str | None]


def population(root: Path, target: str) -> list[Mutant]:
    """Return all mutants of the Python files below ``target``, in the order of their names."""
    files = sorted((root / target).rglob("*.py")) if (root / target).is_dir() else [root / target]
    return [mutant for path in files for mutant in mutants_of(root, path)]


def mutants_of(root: Path, path: Path) -> list[Mutant]:
    """Return all mutants of one file."""
    source, name = path.read_text(), path.relative_to(root).as_posix()
    tree = ast.parse(source)
    skipped, functions, lines = _skipped(tree), _functions(tree), source.splitlines()
    places = sorted([*_by_operators(source), *_own(source, tree)], key=lambda place: place[:4])
    alike: Counter[str] = Counter()
    found = []
    for line, column, kind, change, make in places:
        if any(begin <= (line, column) < end for begin, end in skipped):
            continue
        function = next((name for name, first, last in functions if first <= line <= last), "module")
        stem = f"{name}::{function}::{kind}::{change}::{' '.join(lines[line - 1].split())}"
        alike[stem] += 1
        found.append(Mutant(f"{stem}::{alike[stem]}", name, function, kind, change, line, make))
    return found


def sample(mutants: Sequence[Mutant], count: int, seed: int) -> list[Mutant]:
    """Return ``count`` mutants, stratified by file and kind in proportion (largest remainders).

    Inside a stratum the seed and a mutant's name decide, so that a change elsewhere leaves nearly all of the
    sample; of a change that cannot be made the next one is taken.
    """

    def chance(name: str) -> bytes:
        return hashlib.sha256(f"{seed}:{name}".encode()).digest()

    strata: dict[tuple[str, str], list[Mutant]] = {}
    for mutant in mutants:
        strata.setdefault((mutant.path, mutant.kind), []).append(mutant)
    count = min(count, len(mutants))
    shares = {name: count * len(rows) / len(mutants) for name, rows in strata.items()}
    taken = {name: int(share) for name, share in shares.items()}
    rest = sorted(shares, key=lambda name: (taken[name] - shares[name], chance("::".join(name))))
    for name in rest[: count - sum(taken.values())]:
        taken[name] += 1
    chosen: list[Mutant] = []
    for name, rows in strata.items():
        ordered = sorted(rows, key=lambda one: chance(one.identity))
        made = (one for one in ordered if one.make() is not None)
        chosen += islice(made, taken[name])
    return chosen


# --- what is left out, and whose a line is -------------------------------------------------------


Span = tuple[tuple[int, int], tuple[int, int]]


def _span(node: ast.AST) -> Span:
    return (node.lineno, node.col_offset), (node.end_lineno or 0, node.end_col_offset or 0)  # type: ignore[attr-defined]


def _skipped(tree: ast.Module) -> list[Span]:
    """Return the places where no mutant is made."""
    found: list[Span] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            found += map(_span, node.decorator_list)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.returns is not None:
            found.append(_span(node.returns))
        if isinstance(node, ast.arg | ast.AnnAssign) and node.annotation is not None:
            found.append(_span(node.annotation))
        if isinstance(node, ast.Assign) and _names(node.targets) & {"__all__"}:
            found.append(_span(node))
        if isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING":
            found.append(_span(node))
    return found


def _names(targets: Sequence[ast.expr]) -> set[str]:
    return {target.id for target in targets if isinstance(target, ast.Name)}


def _functions(tree: ast.Module) -> list[tuple[str, int, int]]:
    """Return (qualified name, first line, last line) of functions and classes, innermost first."""
    found: list[tuple[str, int, int]] = []

    def walk(node: ast.AST, prefix: str) -> None:
        for child in ast.iter_child_nodes(node):
            name = prefix
            if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                name = f"{prefix}.{child.name}" if prefix else child.name
                found.append((name, child.lineno, child.end_lineno or child.lineno))
            walk(child, name)

    walk(tree, "")
    return sorted(found, key=lambda row: row[2] - row[1])


# --- making them ----------------------------------------------------------------------------------


def _by_operators(source: str) -> Iterator[_Place]:
    """Yield the places of cosmic-ray's operators."""
    nodes = list(ast_nodes(get_ast(source)))
    for kind, operators in OPERATORS.items():
        for operator in operators:
            name = operator.__name__.removeprefix("Replace").removeprefix("ComparisonOperator_")
            name = name.removeprefix("BinaryOperator_").removeprefix("UnaryOperator_")
            positions = [place for node in nodes for place in operator().mutation_positions(node)]
            for number, ((line, column), _) in enumerate(positions):
                sign = ("+1", "-1")[number % 2] if operator is number_replacer.NumberReplacer else ""
                yield _Place(line, column, kind, name + sign, partial(_mutated, source, operator, number))


def _mutated(source: str, operator: type, number: int) -> str | None:
    return _running(mutate_code(source, operator(), number))


def _running(source: str | None) -> str | None:
    """Return a source that compiles, None for any other."""
    try:
        return (
            None if source is None or compile(source, "mutant", "exec", dont_inherit=True) is None else source
        )
    except (SyntaxError, ValueError):
        return None


def _own(source: str, tree: ast.Module) -> Iterator[_Place]:
    """Yield what cosmic-ray has no operator for: things dropped, things swapped."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr | ast.AugAssign | ast.Delete | ast.Raise | ast.Return | ast.If):
            yield from _dropped(source, node)
        elif isinstance(node, ast.BoolOp):
            for number, value in enumerate(node.values):
                rest = [one for one in node.values if one is not value]
                text = f" {'and' if isinstance(node.op, ast.And) else 'or'} ".join(
                    _text(source, one) for one in rest
                )
                yield _place(source, value, node, "dropped", f"operand {number + 1}", f"({text})")
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in SWAPPED:
            other = SWAPPED[node.func.id]
            yield _place(source, node.func, node.func, "swapped", f"{node.func.id} with {other}", other)
        elif isinstance(node, ast.Tuple) and isinstance(node.ctx, ast.Load) and len(node.elts) > 1:
            yield from _turned(source, node)
        elif (
            isinstance(node, ast.Compare)
            and isinstance(node.ops[0], ast.In | ast.NotIn)
            and len(node.ops) == 1
        ):
            word = "not in" if isinstance(node.ops[0], ast.In) else "in"
            text = f"{_text(source, node.left)} {word} {_text(source, node.comparators[0])}"
            yield _place(source, node, node, "comparison", f"to {word}", f"({text})")


def _dropped(source: str, node: ast.stmt) -> Iterator[_Place]:
    """A statement that does something, or a guard: an ``if`` that ends in leaving, without ``else``."""
    if isinstance(node, ast.Expr) and not isinstance(node.value, ast.Call):
        return
    if isinstance(node, ast.If):
        leaves = isinstance(node.body[-1], ast.Return | ast.Continue | ast.Raise | ast.Break)
        if node.orelse or not leaves:
            return
    word = "guard" if isinstance(node, ast.If) else type(node).__name__.lower()
    yield _place(source, node, node, "dropped", word, "pass")


def _turned(source: str, node: ast.Tuple) -> Iterator[_Place]:
    """The first two of a tuple: the order of a key, mostly."""
    first, second = node.elts[:2]
    one, other = _text(source, first), _text(source, second)
    if one != other and not isinstance(first, ast.Starred) and not isinstance(second, ast.Starred):
        begin, end = _offset(source, *_span(first)[0]), _offset(source, *_span(second)[1])
        between = source[_offset(source, *_span(first)[1]) : _offset(source, *_span(second)[0])]
        make = partial(_spliced, source, begin, end, other + between + one)
        yield _Place(first.lineno, first.col_offset, "swapped", "first two", make)


def _place(source: str, at: ast.AST, node: ast.AST, kind: str, change: str, text: str) -> _Place:
    (begin, end), (line, column) = _span(node), _span(at)[0]
    make = partial(_spliced, source, _offset(source, *begin), _offset(source, *end), text)
    return _Place(line, column, kind, change, make)


def _spliced(source: str, begin: int, end: int, text: str) -> str | None:
    """Put ``text`` in the place of a part; all other lines keep their numbers."""
    lost = source[begin:end].count("\n") - text.count("\n")
    rest = source[end:]
    if lost > 0:  # blank lines behind the line on which it ended
        line, newline, more = rest.partition("\n")
        rest = line + newline + "\n" * lost + more
    return _running(source[:begin] + text + rest)


def _offset(source: str, line: int, column: int) -> int:
    """Return the place in the text; columns count bytes of UTF-8."""
    lines = source.splitlines(keepends=True)
    return sum(map(len, lines[: line - 1])) + len(lines[line - 1].encode()[:column].decode())


def _text(source: str, node: ast.AST) -> str:
    begin, end = _span(node)
    text = source[_offset(source, *begin) : _offset(source, *end)]
    return f"({text})"
