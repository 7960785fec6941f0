"""``python -m tests.mutation.draw COUNT SEED FOLDER``: draw mutants over all of yarnctl.

Writes a session of cosmic-ray per configuration, with the drawn mutants alone; ``make mutants`` runs them.
Annotations of functions and variables, which are not evaluated, are left out; msgspec evaluates class fields.
"""

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
    nodes = list(ast.walk(ast.parse(module.read_text("utf-8"))))
    classes = [node for node in nodes if isinstance(node, ast.ClassDef)]
    fields = {each for node in classes for each in node.body if isinstance(each, ast.AnnAssign)}
    parts = [node for node in nodes if node not in fields]
    found = [getattr(part, name, None) for part in parts for name in ("annotation", "returns")]
    return [((e.lineno, e.col_offset), (e.end_lineno, e.end_col_offset)) for e in found if e]


if __name__ == "__main__":
    count, seed, into = int(sys.argv[1]), int(sys.argv[2]), Path(sys.argv[3])
    into.mkdir(parents=True)
    found = {}
    for path in sorted(Path(__file__).parent.glob("*.toml")):
        session = into / f"{path.stem}.sqlite"
        subprocess.run([Path(sys.executable).with_name("cosmic-ray"), "init", path, session], check=True)
        with use_db(session, WorkDB.Mode.open) as work:
            for item in work.work_items:
                (each,) = item.mutations
                if not any(begin <= each.start_pos < end for begin, end in annotations_in(each.module_path)):
                    place = str(each.module_path), each.start_pos, each.operator_name, each.occurrence
                    found[place] = session, item
            work.clear()
    for place in random.Random(seed).sample(sorted(found), count):
        with use_db(found[place][0], WorkDB.Mode.open) as work:
            work.add_work_item(found[place][1])
    print(f"{count} of {len(found)} possible mutants, seed {seed}")
