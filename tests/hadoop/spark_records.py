"""What a journal says of executors: which were asked to leave, and which applications were told to grow.

Law: what was asked is what was accepted; the rest was only decided.
"""

from __future__ import annotations

from tests.hadoop.attached import Attached
from yarnctl.deciding.model import Accepted, Drain, Grow
from yarnctl.deciding.records import Performed, Requests


def asked(daemon: Attached) -> list[Drain]:
    wanted: dict[str, Drain] = {}
    found = []
    for record in daemon.records():
        if isinstance(record, Requests):
            wanted |= {each.order: each for each in record.actions if isinstance(each, Drain)}
        elif isinstance(record, Performed) and record.action == "drain":
            found += [wanted[record.order]] if isinstance(record.outcome, Accepted) else []
    return found


def grows(daemon: Attached) -> list[Grow]:
    """Return every request that an application grow again."""
    return [
        action
        for record in daemon.records()
        if isinstance(record, Requests)
        for action in record.actions
        if isinstance(action, Grow)
    ]
