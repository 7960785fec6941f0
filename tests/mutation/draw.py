"""``python -m tests.mutation.draw --count 200 --seed 1 --into FOLDER``: draw mutants over all of yarnctl.

Writes a session of cosmic-ray per configuration, with the drawn mutants alone; ``make mutants`` runs them.
Annotations of functions and variables, which are not evaluated, are left out; msgspec evaluates class fields.
"""

import argparse
import ast
import random
import subprocess
import sys
from functools import cache
from pathlib import Path

from cosmic_ray.work_db import WorkDB, use_db


@cache
def annotations_in(module: Path) -> list[tuple[tuple[int, int], tuple[int, int]]]:
    """Return where each such annotation begins and ends: (line, column)."""
    tree = ast.parse(module.read_text(encoding="utf-8"))
    functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
    parts = [part for function in functions for part in ast.walk(function)]
    parts += [part for part in tree.body if isinstance(part, ast.AnnAssign)]
    found = [getattr(part, name, None) for part in parts for name in ("annotation", "returns")]
    return [((e.lineno, e.col_offset), (e.end_lineno, e.end_col_offset)) for e in found if e is not None]


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--into", type=Path, default=Path("mutants-out"))
    given = parser.parse_args()
    given.into.mkdir(parents=True)
    found = {}
    for path in sorted(Path(__file__).parent.glob("*.toml")):
        session = given.into / f"{path.stem}.sqlite"
        subprocess.run([Path(sys.executable).with_name("cosmic-ray"), "init", path, session], check=True)
        with use_db(session, WorkDB.Mode.open) as work:
            for item in work.work_items:
                each = item.mutations[0]
                if not any(begin <= each.start_pos < end for begin, end in annotations_in(each.module_path)):
                    place = str(each.module_path), each.start_pos, each.operator_name, each.occurrence
                    found[place] = session, item
    drawn = random.Random(given.seed).sample(sorted(found), given.count)
    for session in sorted(given.into.glob("*.sqlite")):
        with use_db(session, WorkDB.Mode.open) as work:
            work.clear()
            work.add_work_items([found[place][1] for place in drawn if found[place][0] == session])
            print(f"{session.stem}: {work.num_work_items} mutants")
    print(f"{given.count} of {len(found)} possible mutants, seed {given.seed}")
