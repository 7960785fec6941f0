"""What the readers of files share."""

from __future__ import annotations

from yarnctl.errors import YarnctlError


class UnreadableJob(YarnctlError):
    """One job of a file cannot be read: it is skipped and counted, and others are read."""
