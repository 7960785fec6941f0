"""Instants at which a task was suspended or killed, read from a scheme's journal.

Law: the journal is read, never interpreted: a suspension is where a manifest was seen to be
valid, a kill where a kill was performed.
"""

from __future__ import annotations

from pathlib import Path

from emulator.experiments.results.folder import JOURNAL


def evicted_at_ms(out: Path | None, scheme: str) -> tuple[int, ...]:
    """Return the instants in order; none if the scheme has no journal."""
    from yarnctl.deciding.records import Performed, Transition, decode
    from yarnctl.journal.chain import body_of

    path = out / scheme / JOURNAL if out else None
    if path is None or not path.exists():
        return ()
    found = []
    with path.open("rb") as lines:
        for line in lines:
            if not line.startswith((b'{"type":"transition"', b'{"type":"performed"')):
                continue  # decisions are long, and hold nothing that is looked for here
            record = decode(body_of(line) or line)
            manifest = isinstance(record, Transition) and record.event == "manifest"
            if manifest or (isinstance(record, Performed) and record.action == "kill"):
                found.append(record.at_ms)  # type: ignore[union-attr]
    return tuple(found)
