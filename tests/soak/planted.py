"""Bugs planted into the task runner, to see that a campaign notices each of them.

Law: a bug replaces text that stands in the runner exactly once for each of its replacements; where it does
not stand there any more, planting fails rather than testing nothing.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from yarnctl.task_runner.shipped import RUNNER


class Bug(NamedTuple):
    """What is replaced by what, the workload that shows it, and words of what the campaign must say."""

    workload: str
    says: str
    replaced: tuple[tuple[str, str], ...]


SKIP = "take_groups(rest, manifest.groups_done"
MATCHES = 'return "" if here == there else'
FINISHED = "            if self.feed_groups(limit):\n                return True"
COUNTED = "attempt.errors.count(group, name, amount)"
KEPT = "if output is not None and output.bytes:"
STATE = "output, attempt.reducer_state = fetched"
TRUSTS = (MATCHES, 'return "" if here else')
BUGS = {
    "skips-one-group-too-few": Bug("slow", "again, done by", ((SKIP, SKIP + " - 1"), TRUSTS)),
    "never-resumes": Bug("sum", "again, done by", ((MATCHES, 'return "no" if here == there else'),)),
    "forgets-counters": Bug("silent", "counters:", ((COUNTED, "(group, name, amount)"),)),
    "saves-inside-a-group": Bug("secondary", "output:", ((FINISHED, "            return True"),)),
    "forgets-state": Bug("stateful", "output:", ((STATE, "output = fetched[0]"),)),
    "saves-no-output": Bug("binary", "output:", ((KEPT, "if output is None:"),)),
}


def plant(name: str, folder: Path) -> Path:
    """Write a runner with this bug below ``folder`` and return it; LookupError if it cannot be planted."""
    return plant_text(name, BUGS[name].replaced, folder)


def plant_text(name: str, replaced: Iterable[tuple[str, str]], folder: Path) -> Path:
    """Write a runner in which text is replaced below ``folder``; LookupError where it does not stand once."""
    text = RUNNER.read_text(encoding="utf-8")
    for old, new in replaced:
        if text.count(old) != 1:
            raise LookupError(f"{name}: {old!r} stands in the runner {text.count(old)} times")
        text = text.replace(old, new)
    path = folder / f"runner-{name}" / RUNNER.name
    path.parent.mkdir(parents=True)
    path.write_text(text, encoding="utf-8")
    return path
