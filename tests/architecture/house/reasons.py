"""Parsed reasons: code that compares, cuts or searches the text of a reason.

Law: a reason is a value, rendered to English in one place; a better sentence changes no decision. What is
called ``why``, ``reason`` and the like, or is a local copy of it, may be passed on, shown and tested for
being empty where it is text. Text is what is annotated ``str``, and what nothing is known of. A tagged
union, an enumeration or a ``Literal`` is a value and may be compared. The class of ``x`` in ``x.why`` is
read from annotations, ``isinstance`` and ``case``; where it cannot be, every class with such a field is
asked. A local name whose type cannot be read is annotated (``why: Why``). ``[:300]`` bounds a text and
reads nothing. The names in ``WEAK`` have other meanings, too: they count where they are known as text.
"""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping

from tests.architecture.house.declared import DEPTH, Kind, World, name_of
from tests.architecture.house.sources import Breach, Figure, Finding, Function, Module

STRONG = frozenset(("why", "why_not", "reason", "cause", "because"))
WEAK = frozenset(("told", "said", "seen"))
CUTTERS = frozenset(
    (
        *("startswith", "endswith", "removeprefix", "removesuffix", "partition", "rpartition", "split",
            "rsplit"),
        *("splitlines", "find", "rfind", "index", "rindex", "count", "replace"),
    )
)  # fmt: skip
COPIES = frozenset(("strip", "lstrip", "rstrip", "lower", "upper", "casefold"))
"""Methods whose result is still the reason."""
PATTERNS = frozenset(("match", "fullmatch", "search", "findall", "finditer", "split", "sub"))
"""Methods and functions of ``re`` that search an argument."""

Known = Mapping[str, list[str]]
"""For names the classes that they have been tested for."""


def reasons(modules: Mapping[str, Module], others: Mapping[str, str]) -> tuple[Finding, list[str]]:
    """Return the places that read the text of a reason; ``others`` names those whose text is no reason."""
    world = World(modules.values())
    places: dict[str, list[tuple[str, str]]] = defaultdict(list)
    for module in modules.values():
        for function, line, expression in Reading(world).places(module.tree):
            places[f"{module.path}:{function}: {expression}"].append((f"{module.path}:{line}", expression))
    breaches = tuple(
        Breach(key, len(found), found[0][0], f"reads the text of a reason: {found[0][1]}")
        for key, found in places.items()
        if key not in others
    )
    count = sum(breach.figure for breach in breaches)
    problems = [
        f"[not-reasons] {key}: there is no such place; remove it" for key in others if key not in places
    ]
    return Finding("parsed-reasons", (Figure("places", count, 0),), breaches), problems


class Scope:
    """What is known of names inside one function, class or module."""

    def __init__(self, name: str = "", owner: str = "", outer: Scope | None = None) -> None:
        self.name = name
        self.owner = owner
        self.annotations: dict[str, ast.expr] = dict(outer.annotations) if outer else {}
        self.sources: dict[str, ast.expr] = dict(outer.sources) if outer else {}

    def inside(self, name: str, owner: str) -> Scope:
        return Scope(f"{self.name}.{name}" if self.name else name, owner, self)

    def learn(self, node: ast.AST) -> None:
        """Read parameters and plain assignments."""
        if isinstance(node, Function):
            arguments = node.args
            for given in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs):
                self.sources.pop(given.arg, None)
                self.annotations.pop(given.arg, None)
                if given.annotation is not None:
                    self.annotations[given.arg] = given.annotation
        for each in own_nodes(node):
            if isinstance(each, ast.AnnAssign) and isinstance(each.target, ast.Name):
                self.annotations[each.target.id] = each.annotation
            elif isinstance(each, ast.NamedExpr):
                self.sources[each.target.id] = each.value
            elif isinstance(each, ast.Assign) and len(each.targets) == 1:
                self.sources.update(pairs(each.targets[0], each.value))


def pairs(target: ast.expr, value: ast.expr) -> Iterator[tuple[str, ast.expr]]:
    if isinstance(target, ast.Name):
        yield target.id, value
    elif (
        isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple) and len(target.elts) == len(value.elts)
    ):
        for one, other in zip(target.elts, value.elts, strict=True):
            yield from pairs(one, other)


def own_nodes(node: ast.AST) -> Iterator[ast.AST]:
    """Yield the nodes below one, without those inside its functions and classes."""
    for each in ast.iter_child_nodes(node):
        if not isinstance(each, Function | ast.ClassDef):
            yield each
            yield from own_nodes(each)


def tested(test: ast.expr) -> dict[str, list[str]]:
    """Return the classes that names have where a test holds."""
    if isinstance(test, ast.BoolOp) and isinstance(test.op, ast.And):
        return {name: classes for value in test.values for name, classes in tested(value).items()}
    if isinstance(test, ast.Call) and name_of(test.func) == "isinstance" and len(test.args) == 2:
        subject, kinds = test.args
        elements = kinds.elts if isinstance(kinds, ast.Tuple) else [kinds]
        return {ast.unparse(subject): [name_of(each) for each in elements]}
    return {}


class Reading:
    """One module, searched for what reads reasons."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.found: set[tuple[int, int, str, str]] = set()

    def places(self, tree: ast.Module) -> list[tuple[str, int, str]]:
        """Return function, line and expression of each place."""
        top = Scope()
        top.learn(tree)
        self.children(tree, top, {})
        return [(function or "module", line, text) for line, _, function, text in sorted(self.found)]

    # --- going through the code --------------------------------------------------------------

    def visit(self, node: ast.AST, scope: Scope, known: Known) -> None:
        """Go through a node and what is below it."""
        if isinstance(node, Function | ast.ClassDef):
            inner = scope.inside(node.name, node.name if isinstance(node, ast.ClassDef) else scope.owner)
            inner.learn(node)
            self.children(node, inner, {})
        elif isinstance(node, ast.If | ast.IfExp | ast.While):
            self.branches(node, scope, known)
        elif isinstance(node, ast.BoolOp) and isinstance(node.op, ast.And):
            for value in node.values:
                self.visit(value, scope, known)
                known = {**known, **tested(value)}
        elif isinstance(node, ast.Match):
            self.cases(node, scope, known)
        else:
            if isinstance(node, ast.expr) and self.reads(node, scope, known):
                self.note(node, scope, ast.unparse(node))
            self.children(node, scope, known)

    def children(self, node: ast.AST, scope: Scope, known: Known) -> None:
        """Go through all that is below a node."""
        for each in ast.iter_child_nodes(node):
            self.visit(each, scope, known)

    def branches(self, node: ast.If | ast.IfExp | ast.While, scope: Scope, known: Known) -> None:
        """Go through what a test divides."""
        self.visit(node.test, scope, known)
        for each in node.body if isinstance(node.body, list) else [node.body]:
            self.visit(each, scope, {**known, **tested(node.test)})
        for each in node.orelse if isinstance(node.orelse, list) else [node.orelse]:
            self.visit(each, scope, known)

    def cases(self, node: ast.Match, scope: Scope, known: Known) -> None:
        """Go through a ``match``: over a reason, or over what holds one."""
        self.visit(node.subject, scope, known)
        literal = any(
            isinstance(each, ast.MatchValue) for case in node.cases for each in ast.walk(case.pattern)
        )
        if literal and self.is_text(node.subject, scope, known):
            self.note(node, scope, f"match {ast.unparse(node.subject)}")
        for case in node.cases:
            classes = [each for each in ast.walk(case.pattern) if isinstance(each, ast.MatchClass)]
            for each in classes:
                self.keywords(each, scope)
            outer = case.pattern.pattern if isinstance(case.pattern, ast.MatchAs) else case.pattern
            outers = outer.patterns if isinstance(outer, ast.MatchOr) else [outer]
            names = [name_of(each.cls) for each in outers if isinstance(each, ast.MatchClass)]
            inside = {**known, ast.unparse(node.subject): names} if names else dict(known)
            if isinstance(case.pattern, ast.MatchAs) and case.pattern.name and names:
                inside[case.pattern.name] = names
            for part in (*([case.guard] if case.guard else []), *case.body):
                self.visit(part, scope, inside)

    def keywords(self, pattern: ast.MatchClass, scope: Scope) -> None:
        for name, value in zip(pattern.kwd_attrs, pattern.kwd_patterns, strict=True):
            compares = any(isinstance(each, ast.MatchValue) for each in ast.walk(value))
            if compares and name in STRONG:
                annotations = self.world.field(name_of(pattern.cls), name) or self.world.anywhere(name)
                if self.world.kind(annotations) != "value":
                    self.note(pattern, scope, ast.unparse(pattern))

    def note(self, node: ast.AST, scope: Scope, expression: str) -> None:
        self.found.add((node.lineno, node.col_offset, scope.name, expression))  # type: ignore[attr-defined]

    # --- what reads a reason -----------------------------------------------------------------

    def reads(self, node: ast.expr, scope: Scope, known: Known) -> bool:
        """Say whether an expression compares, cuts or searches a reason's text."""
        if isinstance(node, ast.Compare):
            sides = [node.left, *node.comparators]
            return any(
                isinstance(operator, ast.Eq | ast.NotEq | ast.In | ast.NotIn)
                and not any(is_empty(side) for side in sides[place : place + 2])
                and any(self.is_text(side, scope, known) for side in sides[place : place + 2])
                for place, operator in enumerate(node.ops)
            )
        if isinstance(node, ast.Subscript):
            cuts = isinstance(node.slice, ast.Slice) and not is_bound(node.slice)
            return cuts and self.is_text(node.value, scope, known)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            cut = node.func.attr in CUTTERS and self.is_text(node.func.value, scope, known)
            searched = node.func.attr in PATTERNS and any(
                self.is_text(one, scope, known) for one in node.args
            )
            return cut or searched
        return False

    def is_text(self, node: ast.expr, scope: Scope, known: Known) -> bool:
        """Say whether an expression is a reason that is not known to be a value."""
        return self.kind(node, scope, known) in ("text", "unknown")

    def kind(self, node: ast.expr, scope: Scope, known: Known, depth: int = DEPTH) -> Kind | None:
        if not depth:
            return None
        if isinstance(node, ast.Name):
            return self.name_kind(node.id, scope, known, depth)
        if isinstance(node, ast.Attribute):
            return self.attribute_kind(node, scope, known)
        if isinstance(node, ast.Call):
            if isinstance(node.func, ast.Attribute) and node.func.attr in COPIES:
                return self.kind(node.func.value, scope, known, depth - 1)
            if name_of(node.func) == "str" and len(node.args) == 1:
                return "text" if self.kind(node.args[0], scope, known, depth - 1) else None
            return (
                self.kind(node.func, scope, known, depth - 1) if bare(name_of(node.func)) in STRONG else None
            )
        parts: Iterable[ast.expr] = ()
        if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Slice):
            parts = (node.value,)
        elif isinstance(node, ast.BoolOp):
            parts = node.values
        elif isinstance(node, ast.IfExp):
            parts = (node.body, node.orelse)
        elif isinstance(node, ast.NamedExpr):
            parts = (node.value, node.target)
        kinds = {self.kind(part, scope, known, depth - 1) for part in parts}
        return next((kind for kind in ("text", "unknown", "value") if kind in kinds), None)

    def name_kind(self, name: str, scope: Scope, known: Known, depth: int) -> Kind | None:
        source = scope.sources.get(name)
        if name in scope.annotations:
            kind: Kind | None = self.world.kind([scope.annotations[name]])
        else:
            kind = self.kind(source, scope, known, depth - 1) if source is not None else None
        if bare(name) in STRONG:
            return kind or "unknown"
        if bare(name) in WEAK:
            return kind if kind == "text" else None
        return kind if source is not None and self.kind(source, scope, known, depth - 1) else None

    def attribute_kind(self, node: ast.Attribute, scope: Scope, known: Known) -> Kind | None:
        if bare(node.attr) not in STRONG | WEAK:
            return None
        owners = self.classes(node.value, scope, known)
        declared = [one for owner in owners for one in self.world.field(owner, node.attr)]
        if bare(node.attr) in WEAK:
            return "text" if self.world.kind(declared) == "text" else None
        return self.world.kind(declared or self.world.anywhere(node.attr))

    def classes(self, node: ast.expr, scope: Scope, known: Known, depth: int = DEPTH) -> list[str]:
        """Return the names of the classes that an expression may have, as far as they can be read."""
        if not depth:
            return []
        if (written := known.get(ast.unparse(node))) is not None:
            return list(written)
        annotations: list[ast.expr] = []
        if isinstance(node, ast.Name):
            if node.id == "self":
                return [scope.owner]
            if node.id in scope.annotations:
                annotations = [scope.annotations[node.id]]
            elif node.id in scope.sources:
                return self.classes(scope.sources[node.id], scope, known, depth - 1)
        elif isinstance(node, ast.Attribute):
            owners = self.classes(node.value, scope, known, depth - 1)
            annotations = [one for owner in owners for one in self.world.field(owner, node.attr)]
        elif isinstance(node, ast.Call):
            return [name_of(node.func)] if name_of(node.func) in self.world.classes else []
        return [name_of(one) for each in annotations for one in self.world.members(each)]


def bare(name: str) -> str:
    """Return a name without leading underscores."""
    return name.lstrip("_")


def is_bound(node: ast.Slice) -> bool:
    """Say whether a slice only bounds the length of a text: ``[:300]``."""
    return node.lower is None and node.step is None


def is_empty(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value == ""
