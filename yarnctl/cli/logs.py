"""How ``yarnctl run`` logs: text for people, or one JSON object a line; audit lines always.

A message and an exception can have text of a job's owner. So neither has a control character, and the lines
of an exception begin with a tab: they cannot forge a line.
"""

from __future__ import annotations

import json
import logging
import sys
from datetime import UTC, datetime
from typing import Literal, TextIO

LogFormat = Literal["text", "json"]
LogLevel = Literal["debug", "info", "warning", "error"]
AUDIT = "yarnctl.audit"
NOISY = ("urllib3", "hdfs")
"""Libraries that log each failed call, and raise it as well."""


def set_up(level: LogLevel, log_format: LogFormat, stream: TextIO = sys.stderr) -> None:
    """Log to a stream from now on. Audit lines do not depend on the level."""
    handler = logging.StreamHandler(stream)
    handler.setFormatter(JsonFormatter() if log_format == "json" else TextFormatter())
    root = logging.getLogger()
    root.handlers[:] = [handler]
    set_level(level)
    logging.getLogger(AUDIT).setLevel(logging.INFO)
    for name in NOISY:
        logging.getLogger(name).setLevel(logging.CRITICAL)


def set_level(level: LogLevel) -> None:
    """Log lines of this level and above from now on."""
    logging.getLogger().setLevel(level.upper())


class TextFormatter(logging.Formatter):
    """``2026-11-29 00:31:07,199 INFO message``; tabs stay, they divide the fields of an audit line.

    Each line of an exception has a tab in front: its text can come from a job's owner.
    """

    def __init__(self) -> None:
        super().__init__("%(asctime)s %(levelname)s %(message)s")

    def format(self, record: logging.LogRecord) -> str:
        """Return the line, and below it those of an exception."""
        line, *more = super().format(record).split("\n")
        return "\n\t".join([line, *map(_printable, more)])

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802  # the library's name
        """Return the line without what follows of an exception."""
        return _printable(super().formatMessage(record))


def _printable(line: str) -> str:
    return "".join(each if each.isprintable() or each == "\t" else ascii(each)[1:-1] for each in line)


class JsonFormatter(logging.Formatter):
    """One object with the keys of the Elastic Common Schema; times in UTC."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the line."""
        at = datetime.fromtimestamp(record.created, UTC)
        line = {
            "@timestamp": at.isoformat(timespec="milliseconds").replace("+00:00", "Z"),
            "log.level": record.levelname.lower(),
            "log.logger": record.name,
            "message": record.getMessage(),
        }
        if record.exc_info:
            line["error.stack_trace"] = self.formatException(record.exc_info)
        return json.dumps(line)
