"""``python -m tests.mutation.draw --count 200 --seed 1 --into FOLDER``: draw mutants over all of yarnctl.

Writes one session of cosmic-ray per configuration, with the drawn mutants alone; ``make mutants`` runs them.
The draw is a function of the sources, the count and the seed. It leaves out annotations of functions and
variables, which are not evaluated; those of class fields stay, because msgspec evaluates them.
"""

from __future__ import annotations

import argparse
import ast
import random
import subprocess
import sys
from functools import cache
from pathlib import Path

from cosmic_ray.work_db import WorkDB, use_db

HERE = Path(__file__).parent
PROGRAM = Path(sys.executable).with_name("cosmic-ray")


@cache
def annotations_in(module: Path) -> list[ast.expr]:
    """Return the annotations of functions, of what is in them, and of the module's variables."""
    tree = ast.parse(module.read_text(encoding="utf-8"))
    functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
    parts = [part for function in functions for part in ast.walk(function)]
    parts += [part for part in tree.body if isinstance(part, ast.AnnAssign)]
    given = [getattr(part, name, None) for part in parts for name in ("annotation", "returns")]
    return [each for each in given if each is not None]


def runs(module: Path, position: tuple[int, int]) -> bool:
    """Return whether the code at (line, column) is outside of those annotations."""
    spans = [
        ((each.lineno, each.col_offset), (each.end_lineno, each.end_col_offset))
        for each in annotations_in(module)
    ]
    return not any(begin <= position < end for begin, end in spans)


def main() -> None:
    """Initialise every session, draw, and keep what was drawn."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--into", type=Path, default=Path("mutants-out"))
    given = parser.parse_args()
    given.into.mkdir(parents=True)
    found = {}
    for path in sorted(HERE.glob("*.toml")):
        session = given.into / f"{path.stem}.sqlite"
        subprocess.run([PROGRAM, "init", path, session], check=True)
        with use_db(session, WorkDB.Mode.open) as work:
            for item in work.work_items:
                each = item.mutations[0]
                if not runs(each.module_path, each.start_pos):
                    continue
                place = (str(each.module_path), each.start_pos, each.operator_name, each.occurrence)
                found[place] = session, item
    drawn = random.Random(given.seed).sample(sorted(found), given.count)
    for session in {session for session, _ in found.values()}:
        with use_db(session, WorkDB.Mode.open) as work:
            work.clear()
            work.add_work_items([found[place][1] for place in drawn if found[place][0] == session])
            print(f"{session.stem}: {work.num_work_items} mutants")
    print(f"{given.count} of {len(found)} possible mutants, seed {given.seed}")


if __name__ == "__main__":
    main()
