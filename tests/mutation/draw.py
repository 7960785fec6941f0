"""``python -m tests.mutation.draw COUNT SEED FOLDER``: draw mutants over all of yarnctl.

Writes a session of cosmic-ray per configuration, with the drawn mutants alone; ``make mutants`` runs them.
Mutants of ``|`` are left out: nearly each is a union of types in an annotation, which is not evaluated.
"""

import random
import subprocess
import sys
from pathlib import Path

from cosmic_ray.work_db import WorkDB, use_db

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
                if "BinaryOperator_BitOr" not in each.operator_name:
                    found[str(each.module_path), each.start_pos, each.operator_name, each.occurrence] = (
                        session,
                        item,
                    )
            work.clear()
    for place in random.Random(seed).sample(sorted(found), count):
        with use_db(found[place][0], WorkDB.Mode.open) as work:
            work.add_work_item(found[place][1])
    print(f"{count} of {len(found)} possible mutants, seed {seed}")
