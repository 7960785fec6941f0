"""Hidden arguments: signatures and calls whose arguments a reader cannot see.

Law: a function names its parameters; ``**name: Any`` stands in a wrapper, which has ``*args`` beside it, and
in a method that hands it to the one it overrides. A call names its arguments: it spreads no tuple that the
same function has written down before.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping

from tests.architecture.house.sources import Breach, Figure, Finding, Function, Module, definitions


def hidden(modules: Mapping[str, Module]) -> Finding:
    """Return the functions with such a parameter or call."""
    found: dict[str, Breach] = {}
    for module in modules.values():
        for name, node in definitions(module.tree):
            for line, says in problems(node) if isinstance(node, Function) else ():
                where = f"{module.path}:{line}"  # a function inside another one is seen twice
                found.setdefault(where, Breach(f"{module.path}:{name}", 1, where, f"{name} {says}"))
    return Finding("hidden-arguments", (Figure("hidden_arguments", len(found), 0),), tuple(found.values()))


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
