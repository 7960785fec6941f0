"""Audit lines in the form of the ResourceManager's RMAuditLogger: fields ``KEY=value`` with tabs between.

The keys and their order are those of Hadoop 3. The log is the logger ``yarnctl.audit``.
"""

from __future__ import annotations

import logging

_LOG = logging.getLogger("yarnctl.audit")
VALUE_MAX = 300


def audit_line(
    user: str,
    operation: str,
    target: str,
    failure: str = "",
    *,
    address: str = "",
    application: str = "",
    container: str = "",
    queue: str = "",
) -> str:
    """Return the line. ``user`` "": not known. ``failure``: why the operation failed, "" if it did not."""
    fields = {
        "USER": user or "null",
        "IP": address,
        "OPERATION": operation,
        "TARGET": target,
        "RESULT": "FAILURE" if failure else "SUCCESS",
        "DESCRIPTION": failure,
        "APPID": application,
        "CONTAINERID": container,
        "QUEUENAME": queue,
    }
    return "\t".join(f"{key}={_clean(value)}" for key, value in fields.items() if value)


def audit(line: str) -> None:
    """Write an audit line to the log."""
    _LOG.info("%s", line)


def _clean(value: str) -> str:
    """Return a value that cannot begin another field or line."""
    return "".join(each if each.isprintable() else " " for each in value[:VALUE_MAX])
