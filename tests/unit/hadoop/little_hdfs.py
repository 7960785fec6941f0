"""A little HDFS behind WebHDFS's rules: one dictionary, NameNode and DataNode on one port.

Law: it answers as the facts (section 10) say a NameNode does: creates in two steps, exclusive unless told
otherwise, a rename that says no in its body, ``renameoptions=OVERWRITE`` with an empty 200.
"""

from __future__ import annotations

import json
import posixpath
import threading
from collections.abc import Callable

from tests.unit.hadoop.replaying import Heard, Replay, Reply

PREFIX = "/webhdfs/v1"


def remote(exception: str, status: int = 403, message: str = "said the NameNode") -> Reply:
    return Reply(json.dumps({"RemoteException": {"exception": exception, "message": message}}), status)


class LittleHdfs:
    """``files``: path -> bytes; ``folders``: the paths of directories; ``clock``: ms. Use ``serve()``."""

    def __init__(self) -> None:
        self.files: dict[str, bytes] = {}
        self.folders = {"/"}
        self.owners: dict[str, tuple[str, str]] = {}
        self.modified: dict[str, int] = {}
        self.clock: Callable[[], int] = lambda: 1
        self.guard = threading.Lock()

    def serve(self) -> Replay:
        self.replay = Replay(self.answer)
        return self.replay

    def answer(self, heard: Heard) -> Reply:
        with self.guard:
            path = posixpath.normpath("/" + heard.path.removeprefix(PREFIX).lstrip("/")).replace("%20", " ")
            return getattr(self, "_" + heard.query["op"].lower())(path, heard)

    def _create(self, path: str, heard: Heard) -> Reply:
        if "datanode" not in heard.query:
            query = "&".join(f"{key}={value}" for key, value in heard.query.items())
            where = f"{self.replay.url}{heard.path}?{query}&datanode=1"
            return Reply(b"", 307, headers=(("Location", where),))
        if path in self.files and heard.query.get("overwrite", "false").lower() != "true":
            return remote("FileAlreadyExistsException")
        self._parents(path)
        self.files[path] = heard.body
        self.modified[path] = self.clock()
        self.owners[path] = (heard.query.get("user.name", "dr.who"), heard.query.get("permission", "644"))
        return Reply(b"", 201)

    def _mkdirs(self, path: str, heard: Heard) -> Reply:
        if path in self.files:
            return remote("FileAlreadyExistsException")
        self._parents(path + "/x")
        self.owners.setdefault(path, (heard.query.get("user.name", "dr.who"), heard.query["permission"]))
        return Reply('{"boolean":true}')

    def _parents(self, path: str) -> None:
        while (path := posixpath.dirname(path)) != "/":
            self.folders.add(path)

    def _rename(self, path: str, heard: Heard) -> Reply:
        target = heard.query["destination"]
        if heard.query.get("renameoptions") == "OVERWRITE":
            if path not in self.files:
                return remote("FileNotFoundException", 404)
            self._move(path, target)
            return Reply(b"", kind="application/octet-stream")
        if path not in self.files or target in self.files or posixpath.dirname(target) not in self.folders:
            return Reply('{"boolean":false}')
        self._move(path, target)
        return Reply('{"boolean":true}')

    def _move(self, path: str, target: str) -> None:
        self.files[target] = self.files.pop(path)
        self.modified[target] = self.modified.pop(path, 1)

    def _delete(self, path: str, heard: Heard) -> Reply:
        below = [one for one in self.files if one == path or one.startswith(f"{path}/")]
        if heard.query.get("recursive") != "true" and below not in ([], [path]):
            return remote("PathIsNotEmptyDirectoryException")
        for one in below:
            del self.files[one]
        was_folder = path in self.folders
        self.folders = {one for one in self.folders if one != path and not one.startswith(f"{path}/")}
        return Reply(json.dumps({"boolean": bool(below) or was_folder}))

    def _setpermission(self, path: str, heard: Heard) -> Reply:
        self.owners[path] = (self.owners[path][0], heard.query["permission"])
        return Reply(b"", kind="application/octet-stream")

    def _settimes(self, path: str, heard: Heard) -> Reply:
        if path not in self.files:
            return remote("FileNotFoundException", 404)
        self.modified[path] = int(heard.query["modificationtime"])
        return Reply(b"", kind="application/octet-stream")

    def _status(self, path: str, name: str) -> dict:
        owner, permission = self.owners.get(path, ("hdfs", "755"))
        kind = "FILE" if path in self.files else "DIRECTORY"
        return {
            "type": kind, "pathSuffix": name, "owner": owner, "group": "g", "permission": permission,
            "length": len(self.files.get(path, b"")), "fileId": 7,
            "modificationTime": self.modified.get(path, 1),
        }  # fmt: skip

    def _getfilestatus(self, path: str, _heard: Heard) -> Reply:
        if path not in self.files and path not in self.folders:
            return remote("FileNotFoundException", 404)
        return Reply(json.dumps({"FileStatus": self._status(path, "")}))

    def _liststatus(self, path: str, _heard: Heard) -> Reply:
        if path in self.files:
            return Reply(json.dumps({"FileStatuses": {"FileStatus": [self._status(path, "")]}}))
        if path not in self.folders:
            return remote("FileNotFoundException", 404)
        below = [one for one in (*self.files, *self.folders) if posixpath.dirname(one) == path and one != "/"]
        rows = [self._status(one, posixpath.basename(one)) for one in below]
        return Reply(json.dumps({"FileStatuses": {"FileStatus": rows}}))

    def _gethomedirectory(self, _path: str, heard: Heard) -> Reply:
        return Reply(json.dumps({"Path": f"/user/{heard.query.get('user.name', 'dr.who')}"}))

    def _open(self, path: str, heard: Heard) -> Reply:
        if path not in self.files:
            return remote("FileNotFoundException", 404)
        start = int(heard.query.get("offset", 0))
        stop = start + int(heard.query["length"]) if "length" in heard.query else None
        return Reply(self.files[path][start:stop], kind="application/octet-stream")
