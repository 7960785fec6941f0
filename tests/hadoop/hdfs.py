"""HDFS as the tests use it: folders, files and digests over WebHDFS, as any user of it.

Law: no client JVM is started for what one request can say; what HDFS refuses is raised with its words.
"""

from __future__ import annotations

import hashlib
from typing import Any

from tests import http_client

TIMEOUT_S = 60


class Hdfs:
    """WebHDFS of one NameNode, asked as ``user``; ``url`` is ``http://HOST:PORT``."""

    def __init__(self, url: str, user: str) -> None:
        self._root = f"{url}/webhdfs/v1"
        self._user = user

    def make(self, path: str, mode: str = "755", owner: str = "", group: str = "") -> None:
        """Make a folder with a mode; the superuser may give it to somebody, or to a group."""
        self._ask("PUT", path, op="MKDIRS", permission=mode)
        self._ask("PUT", path, op="SETPERMISSION", permission=mode)
        if owner:
            self._ask("PUT", path, op="SETOWNER", owner=owner)
        if group:
            self._ask("PUT", path, op="SETOWNER", group=group)

    def write(self, path: str, data: bytes) -> None:
        self._ask("PUT", path, data=data, op="CREATE", overwrite="true", permission="644")

    def read(self, path: str) -> bytes:
        return self._ask("GET", path, op="OPEN").content

    def names(self, path: str) -> list[str]:
        """Return what lies in a folder, in order; nothing if it is not there."""
        try:
            rows: list[dict[str, Any]] = self._ask("GET", path, op="LISTSTATUS").json()["FileStatuses"][
                "FileStatus"
            ]
        except FileNotFoundError:
            return []
        return sorted(str(row["pathSuffix"]) for row in rows)

    def remove(self, path: str) -> None:
        """Remove a file or a whole folder, if it is there."""
        self._ask("DELETE", path, op="DELETE", recursive="true")

    def digests(self, folder: str) -> dict[str, str]:
        """Return the SHA-256 of every part of a job's output; empty if the job was not committed."""
        names = self.names(folder)
        if "_SUCCESS" not in names:
            return {}
        parts = [name for name in names if name.startswith("part-")]
        return {name: hashlib.sha256(self.read(f"{folder}/{name}")).hexdigest() for name in parts}

    def _ask(self, method: str, path: str, data: bytes = b"", **query: str) -> http_client.Response:
        url = f"{self._root}{path}"
        answer = http_client.request(
            method, url, params={**query, "user.name": self._user}, data=data, timeout=TIMEOUT_S
        )
        if answer.status_code == 404:
            raise FileNotFoundError(path)
        if not answer.ok:
            raise OSError(f"{method} {url} {query}: {answer.status_code} {answer.text[:500]}")
        return answer
