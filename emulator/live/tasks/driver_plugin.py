"""The model of the plugin in a driver of Spark: it reads numbered orders from HDFS and obeys each once.

Law: as of the plugin itself (``yarnctl/frameworks/spark/plugin/Leave.java``), written anew from its rules: an
order is obeyed in the order of the numbers, once, and only if nobody but the daemon's account can have
written it; of two with one number only the first. What cannot be read is looked at again, or never; the
application goes on either way.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from emulator.live.master.live_driver import LiveDriver
from yarnctl.task_runner.runner.protocol.stores import Store, Unusable, check_owner

_FILE = re.compile(r"([0-9]{9})-([a-z]+)-([A-Za-z0-9._-]{1,80})\.order")
_LEAVE = re.compile(r"leave((?: [0-9]{1,9})+)")
_BACK = re.compile(r"back((?: [A-Za-z0-9._-]{1,80})+)")


class PluginOrder(NamedTuple):
    """An order as it lies in HDFS: the file's name, its kind and decision, and its one line."""

    name: str
    kind: str
    decision: str
    text: str


def orders_after(store: Store, folder: str, owner: str, last: str) -> list[PluginOrder]:
    """Return the orders after the file ``last`` that may be obeyed, in their order; reads the store.

    Raises what the store raises; Unusable: a folder is not the daemon's alone, then nothing in it counts.
    """
    above = folder.split("/")
    for depth in range(len(above) + 1):
        place = "/".join(above[:depth])
        entry = store.entry(place)
        if entry is None:
            return []
        check_owner(entry, (owner,), place or "the folder of orders")
    found: list[PluginOrder] = []
    number = int(last[:9] or 0)
    for entry in sorted(store.list(folder)):
        match = _FILE.fullmatch(entry.name)
        if match is None or int(match[1]) <= number:
            continue
        number = int(match[1])
        text = ""
        try:
            check_owner(entry, (owner,), entry.name)
            text = store.read_small(f"{folder}/{entry.name}").decode("ascii", "replace").strip()
        except Unusable:
            pass  # counted as seen, and never obeyed
        found.append(PluginOrder(entry.name, match[2], match[3], text))
    return found


def obey(driver: LiveDriver, order: PluginOrder) -> None:
    """Let a driver do what an order says; any other text says nothing."""
    if match := _LEAVE.fullmatch(order.text):
        driver.leave(order.decision, match[1].split(), only_idle=order.kind == "idle")
    elif match := _BACK.fullmatch(order.text):
        driver.back(match[1].split())
