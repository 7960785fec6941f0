"""Reading: a scenario from TOML.

Law: a key that is not understood is refused with its file, line and field, and with what to do.
"""

from __future__ import annotations

import re
import tomllib
from collections import Counter
from pathlib import Path
from typing import get_args

import msgspec

from emulator.cluster.faults import Fault
from emulator.scenario.checking import check
from emulator.scenario.record import QueueEntry, Scenario, Tuning, Where, WorkloadEntry
from yarnctl.errors import BadInput


def read_scenario(path: Path) -> tuple[Scenario, Where]:
    """Read a scenario file. Raises BadInput naming file, line and field."""
    text = _text(path)
    where = _where_in(path, text)
    try:
        scenario = msgspec.convert(tomllib.loads(text), Scenario)
    except tomllib.TOMLDecodeError as error:
        raise _torn(path, error) from None
    except msgspec.ValidationError as error:
        raise _refused(where, error) from None
    except RecursionError:
        raise BadInput(str(path), "not TOML: nested too deeply", _LIKE) from None
    except (ValueError, OverflowError):
        raise BadInput(str(path), "not TOML: a number has too many digits", _LIKE) from None
    check(scenario, where)
    return scenario, where


_TABLES: dict[str, type[msgspec.Struct] | None] = {
    "faults": None,
    "queues": QueueEntry,
    "workloads": WorkloadEntry,
}
"""The tables that may occur several times, and the contents of each (None: it depends)."""

_LIKE = "a scenario has lines like nodes = 7"
_HEADER = re.compile(r"\s*\[\[?\s*([\w-]+)\s*\]\]?\s*(?:#.*)?")
_KEY = re.compile(r"\s*[\"']?([\w-]+)[\"']?\s*[=.]")
_FIELD = re.compile(r"(\w+)(?:\[(\d+)\])?(?:\.([\w-]+))?")


def _text(path: Path) -> str:
    try:
        return path.read_bytes().decode("utf-8-sig")
    except OSError as error:
        raise BadInput(str(path), f"cannot be read: {error.strerror}", "check the path") from None
    except UnicodeDecodeError:
        raise BadInput(str(path), "not UTF-8 text", "give a scenario in TOML") from None
    except ValueError as error:  # a NUL in the name
        raise BadInput(str(path), f"cannot be read: {error}", "check the path") from None


def _where_in(path: Path, text: str) -> Where:
    lines = _lines_of(text)

    def where(field: str) -> str:
        found = _FIELD.match(field)
        name, index, key = found.groups() if found else (field, None, None)
        number = int(index) + 1 if index else 1
        label = f"field {name}"
        if name in _TABLES and index is not None:
            label = f"[[{name}]] {number}" + (f", field {key}" if key else "")
        elif name == "tuning" and key is not None:
            label = f"[tuning], field {key}"
        places = (name, number, key or ""), (name, number, ""), ("", 0, name)
        line = next((lines[place] for place in places if place in lines), None)
        return f"{path}, {label}" if line is None else f"{path}:{line}, {label}"

    return where


def _lines_of(text: str) -> dict[tuple[str, int, str], int]:
    """Return the line of each (section, how many of its name so far, key); "" 0 is above all sections."""
    found: dict[tuple[str, int, str], int] = {}
    sections: Counter[str] = Counter()
    section = ""
    for number, line in enumerate(text.split("\n"), 1):
        if header := _HEADER.fullmatch(line.rstrip()):
            section = header[1]
            sections[section] += 1
            found[section, sections[section], ""] = number
        elif key := _KEY.match(line):
            found.setdefault((section, sections[section], key[1]), number)
    return found


def _torn(path: Path, error: tomllib.TOMLDecodeError) -> BadInput:
    found = re.search(r"\(at line (\d+), column \d+\)$", str(error))
    problem = str(error)[: found.start()].strip() if found else str(error)
    place = f"{path}:{found.group(1)}" if found else str(path)
    return BadInput(place, f"not TOML: {problem[:200]}", _LIKE)


def _refused(where: Where, error: msgspec.ValidationError) -> BadInput:
    problem, _, place = str(error).partition(" - at ")
    named = re.search(r"field `([^`]+)`", problem)
    inner = place.strip("`").removeprefix("$").lstrip(".")
    field = f"{inner}.{named[1]}" if inner and named else inner or (named[1] if named else "scenario")
    problem = problem[0].lower() + problem[1:200] if "missing required" in problem else problem[:200]
    return BadInput(where(field), problem, _remedy(inner, named is not None and "missing" not in problem))


def _remedy(inner: str, unknown: bool) -> str:
    if inner.startswith("faults") and inner.endswith(".type"):
        return f"use one of {', '.join(str(kind.__struct_config__.tag) for kind in get_args(Fault))}"
    table = inner.partition("[")[0]
    if not unknown or table == "faults":
        return ""
    record = _TABLES.get(table)
    if record is not None:
        return f"[[{table}]] has {', '.join(record.__struct_fields__)}"
    fields = Tuning.__struct_fields__ if inner == "tuning" else Scenario.__struct_fields__
    return f"{'[tuning]' if inner == 'tuning' else 'a scenario'} has {', '.join(fields)}"
