"""Read the resource types of a ``resource-types.xml``, and what each node has of them.

Keys of ``node-resources.xml`` may be in the same file: in the emulator all nodes are alike. A key that the
emulator does not model is an error that names it, unless its value changes nothing.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from yarnctl.errors import BadInput
from yarnctl.hadoop.site_xml import HadoopSite, SiteEntry, merge, read_file

NAMES = "yarn.resource-types"
AMOUNT = "yarn.nodemanager.resource-type."
NAME = re.compile(r"[A-Za-z][A-Za-z0-9._-]{0,63}(/[A-Za-z0-9._-]{1,63})?")
BUILT_IN = ("memory", "memory-mb", "vcores")
PLAIN = {"units": ("",), "type": ("COUNTABLE", ""), "minimum-allocation": ("0", "")}
"""What may be said of a type, and the values that mean what the emulator does; in capitals."""


def read_resource_types(path: Path) -> Mapping[str, int]:
    """Return the amount that each node has, by resource type. Raises BadInput that names key and place."""
    entries: dict[str, SiteEntry] = {}
    merge(entries, read_file(path))
    site = HadoopSite(entries)
    names = [name.strip() for name in site.text(NAMES).split(",") if name.strip()]
    if not names:
        raise BadInput(f"{path}: {NAMES}", "names no resource type", "name one, as in yarn.io/gpu")
    for name in names:
        if not NAME.fullmatch(name) or name in BUILT_IN or names.count(name) > 1:
            problem = f"{name[:60]!r} is not a name, is built in, or is named twice"
            raise BadInput(site.where(NAMES), problem, "use names as in yarn.io/gpu, each once")
    found = dict.fromkeys(names, 0)
    for key in entries:
        name = key.removeprefix(AMOUNT)
        text = site.text(key).strip()
        if key == NAMES or _changes_nothing(key, text, names):
            continue
        if not key.startswith(AMOUNT) or name not in found:
            problem = "is not modelled by the emulator, or its type is not in yarn.resource-types"
            raise BadInput(site.where(key), problem, "remove it")
        if not (text.isascii() and text.isdigit() and len(text) < 10):
            raise BadInput(site.where(key), f"{text[:60]!r} is not a whole number", "use one without a unit")
        found[name] = int(text)
    return found


def _changes_nothing(key: str, text: str, names: list[str]) -> bool:
    about = key.removeprefix(f"{NAMES}.")
    name, _, what = about.rpartition(".")
    return key.startswith(f"{NAMES}.") and name in names and text.upper() in PLAIN.get(what, ())
