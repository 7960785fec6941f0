"""Dialects: one answer, written as Hadoop 3.4 (Jersey 1) or as 3.5 (Jersey 2) writes it.

Law: no I/O. Answers are made once, in the natural form; a dialect changes the form and never the content.
Sources: facts, sections 1.4 and 11 (observed on 3.4.2, 3.5.0). Where a class was never observed, the
client must be tolerant anyway, and the two dialects differ as far as the sources allow.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, Literal

import msgspec

from emulator.live.wire.web import HttpProblem, Reply, remote_exception

Version = Literal["3.4", "3.5"]
JSON_KIND = "application/json;charset=utf-8"

_DATA = Path(__file__).parents[2] / "data" / "hadoop" / "constant-fields.json"
CONSTANT_FIELDS: dict[str, dict[str, Any]] = msgspec.json.decode(_DATA.read_bytes())
"""By kind of answer: the fields that are the same in all, as recorded; live fields are laid over them."""


class Dialect:
    """How a version writes. ``hadoop_version`` is the version it answers."""

    def __init__(self, version: Version = "3.4") -> None:
        self.version = version
        self.hadoop_version = {"3.4": "3.4.2", "3.5": "3.5.0"}[version]
        self._encoder = msgspec.json.Encoder()

    def _encode(self, value: object) -> bytes:
        """Write JSON; 3.5 leaves out the attributes of a resource, which are empty here."""
        body = self._encoder.encode(value)
        return body.replace(b'"attributes":{},', b"") if self.version == "3.5" else body

    def numbers(self, told: dict[str, int]) -> dict[str, Any]:
        """Return what Java keeps as a map: in 3.4 its values are text and one entry is no list."""
        if self.version == "3.5":
            return {"entry": [{"key": key, "value": value} for key, value in told.items()]}
        rows = [{"key": key, "value": str(value)} for key, value in told.items()]
        return {"entry": rows[0] if len(rows) == 1 else rows}

    def natural(self, root: str, value: object) -> Reply:
        """Write a class that both versions list: root kept, numbers as numbers, lists as lists."""
        return Reply(200, self._encode({root: value}), JSON_KIND)

    def history(self, root: str, value: object) -> Reply:
        """Write an answer of the history server: that of 3.5 writes text as what it seems to be.

        On 3.5.0: a setting "0" is written as 0, "false" as false, "0.05" as 0.05, but "0.10", "022", "+5"
        and "1e3" remain text, as any text does that would not be read back as it was.
        """
        return self.natural(root, _guessed(value) if self.version == "3.5" else value)

    def listed(self, root: str, item: str, rows: list[dict[str, Any]]) -> Reply:
        """Write a list in the natural form; an empty one is an empty object."""
        return self.natural(root, {item: rows} if rows else {})

    def mapped(
        self, value: dict[str, Any], status: int = 200, headers: tuple[tuple[str, str], ...] = ()
    ) -> Reply:
        """Write a class that 3.4 does not list: no root, numbers as text, a list of one as its element."""
        told = _mapped(value) if self.version == "3.4" else value
        return Reply(status, self._encode(told), JSON_KIND, headers)

    def bare(self, value: dict[str, Any]) -> Reply:
        """Write an object without a root, numbers as numbers (AppPriority, AppQueue; observed on 3.4.2)."""
        return Reply(200, self._encode(value), JSON_KIND)

    def no(self, problem: HttpProblem) -> Reply:
        """Write a problem; what Hadoop has no number for is a 503, a wrong method or type among them."""
        if problem.status not in (405, 415):
            told = problem.message
            if self.version == "3.5":  # Jersey 2 writes the message alone
                told = told.removeprefix("java.lang.Exception: ")
            return remote_exception(HttpProblem(problem.status, problem.kind, told))
        if self.version == "3.4":
            return remote_exception(HttpProblem(503, "WebApplicationException", ""))
        words = {405: "HTTP 405 Method Not Allowed", 415: "HTTP 415 Unsupported Media Type"}
        return remote_exception(HttpProblem(503, problem.kind, words[problem.status]))._replace(kind="")


_LONG = re.compile(r"0|-?[1-9][0-9]{0,18}")
_DOUBLE = re.compile(r"-?(0|[1-9][0-9]{0,6})\.(0|[0-9]{0,14}[1-9])")
"""What Java writes a double as, where it needs no exponent (0.001 to 10,000,000)."""


def _guessed(value: Any) -> Any:
    """Return a value whose texts are what they seem to be."""
    if isinstance(value, dict):
        return {key: _guessed(one) for key, one in value.items()}
    if isinstance(value, list):
        return [_guessed(one) for one in value]
    if value in ("true", "false"):
        return value == "true"
    if isinstance(value, str) and _LONG.fullmatch(value) and -(1 << 63) <= int(value) < 1 << 63:
        return int(value)
    if isinstance(value, str) and _DOUBLE.fullmatch(value) and abs(float(value)) >= 0.001:
        return float(value)
    return value


def _mapped(value: Any) -> Any:
    if isinstance(value, dict):
        rows = {key: one for key, one in value.items() if one is not None and one != []}
        return {key: None if one == {} else _mapped(one) for key, one in rows.items()}
    if isinstance(value, list):
        return _mapped(value[0]) if len(value) == 1 else [_mapped(one) for one in value]
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value) if isinstance(value, int | float) else value
