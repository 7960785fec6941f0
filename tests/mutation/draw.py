"""``python -m tests.mutation.draw COUNT SEED FOLDER``: draw mutants over all of yarnctl.

Writes a session of cosmic-ray per configuration, with the drawn mutants alone, and says them in the order of
the draw; ``make mutants`` runs them. Two rules leave mutants out, and are older than a draw by them:

- Mutants of ``|``: nearly each is a union of types in an annotation, which is not evaluated.
- Mutants that are no Python, as ``def f(a, %, b)``: any import notices them, which says nothing of tests.
"""

import random
import sys
import tomllib
import warnings
from pathlib import Path

from cosmic_ray.ast import ast_nodes, get_ast_from_path
from cosmic_ray.modules import find_modules
from cosmic_ray.mutating import mutate_code
from cosmic_ray.plugins import get_operator, operator_names
from cosmic_ray.work_db import WorkDB, use_db
from cosmic_ray.work_item import MutationSpec, WorkItem

OPERATORS = {
    name: get_operator(name)()
    for name in sorted(operator_names())
    if "BitOr_" not in name and not get_operator(name).arguments()
}

BUILT = Path("yarnctl/task_runner/yarnctl_task.py")


def mutants_of(path: Path) -> list[MutationSpec]:
    """Return every mutant of a module, those that are no Python among them."""
    nodes = list(ast_nodes(get_ast_from_path(path)))
    found = []
    for name, operator in OPERATORS.items():
        places = [place for node in nodes for place in operator.mutation_positions(node)]
        found += [MutationSpec(str(path), name, count, *place) for count, place in enumerate(places)]
    return found


def is_python(mutant: MutationSpec) -> bool:
    """Return whether the module can be compiled with the mutant in it."""
    source = Path(mutant.module_path).read_text(encoding="utf-8")
    changed = mutate_code(source, OPERATORS[mutant.operator_name], mutant.occurrence)
    try:
        compile(changed, mutant.module_path, "exec")
    except SyntaxError:
        return False
    return True


if __name__ == "__main__":
    count, seed, into = int(sys.argv[1]), int(sys.argv[2]), Path(sys.argv[3])
    into.mkdir(parents=True)
    warnings.simplefilter("ignore", SyntaxWarning)  # `is` with a constant, in a mutant
    owners: dict[Path, str] = {}
    for configuration in sorted(Path(__file__).parent.glob("*.toml")):
        told = tomllib.loads(configuration.read_text(encoding="utf-8"))["cosmic-ray"]["module-path"]
        owners |= dict.fromkeys(find_modules([Path(each) for each in told]), configuration.stem)
    forgotten = set(find_modules([Path("yarnctl")])) - {BUILT} - owners.keys()
    if forgotten:
        raise SystemExit(f"no configuration names {sorted(map(str, forgotten))}")
    mutants = [mutant for path in sorted(owners) for mutant in mutants_of(path)]
    random.Random(seed).shuffle(mutants)
    drawn: list[MutationSpec] = []
    looked_at = 0
    while len(drawn) < count:
        mutant, looked_at = mutants[looked_at], looked_at + 1
        if is_python(mutant):
            drawn.append(mutant)
            name = owners[Path(mutant.module_path)]
            with use_db(into / f"{name}.sqlite", WorkDB.Mode.create) as work:
                work.add_work_item(WorkItem.single(f"{len(drawn):04}", mutant))
            place = f"{mutant.module_path}:{mutant.start_pos[0]}"
            print(name, place, mutant.operator_name, mutant.occurrence, flush=True)
    passed_over = f"{looked_at - count} were passed over: they are no Python"
    print(f"{count} of {len(mutants)} mutants, seed {seed}; {passed_over}")
