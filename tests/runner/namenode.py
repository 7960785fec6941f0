"""A NameNode and a DataNode in one small server, with the traps of the real ones.

CREATE and OPEN answer 307 with a Location; RENAME says by a boolean whether it happened; a client
that dies in the middle of a body leaves a shorter file that looks complete; a standby answers 403.
"""

from __future__ import annotations

import contextlib
import json
import ssl
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit

PREFIX = "/webhdfs/v1"


class Files:
    """What the server keeps, and the faults a test wants."""

    def __init__(self) -> None:
        self.files: dict[str, bytes] = {}
        self.folders: dict[str, str] = {"/": "755"}
        self.owners: dict[str, str] = {}
        self.modes: dict[str, str] = {}  # as asked for by CREATE
        self.users: set[str] = set()
        self.tokens: set[str] = set()
        self.queries: list[str] = []
        self.standby = False
        self.says_standby = (403, "StandbyException")
        self.redirects_to = ""  # scheme and host of the DataNode, "" this server
        self.rename_fails = False
        self.cut_next_bodies = 0
        self.cut_reads = False
        self.lose_renames: list[str] = []  # "before" or "after" it is carried out, one for each to come
        self.dead_after_loss = False
        self.dead = False
        self.instead: object = None
        self.drip = False
        self.gate = threading.Event()

    def put(self, path: str, data: bytes) -> None:
        folder = path.rsplit("/", 1)[0]
        while folder:
            self.folders.setdefault(folder, "700")
            folder = folder.rsplit("/", 1)[0]
        self.files[path] = data

    def status(self, path: str) -> dict[str, object] | None:
        if path not in self.files and path not in self.folders:
            return None
        return {
            "pathSuffix": "",
            "length": len(self.files.get(path, b"")),
            "owner": self.owners.get(path, "alice"),
            "permission": self.folders.get(path, "600"),
            "type": "DIRECTORY" if path in self.folders else "FILE",
        }

    def children(self, path: str) -> list[str]:
        start = path.rstrip("/") + "/"
        return sorted(
            p
            for p in {**self.files, **self.folders}
            if p.startswith(start) and "/" not in p[len(start) :] and p != "/"
        )


class Server(ThreadingHTTPServer):
    """Listens on a free port of loopback until the test ends."""

    daemon_threads = True

    def __init__(self, context: ssl.SSLContext | None = None) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.held = Files()
        self.scheme = "https" if context else "http"
        if context is not None:
            self.socket = context.wrap_socket(self.socket, server_side=True)
        self.host = f"127.0.0.1:{self.server_port}"
        threading.Thread(target=self.serve_forever, args=(0.01,), daemon=True).start()

    def handle_error(self, *_: object) -> None:
        """A client that died is what some tests want."""


class Handler(BaseHTTPRequestHandler):
    """Answers both steps."""

    server: Server
    protocol_version = "HTTP/1.1"

    def log_message(self, *_: object) -> None:
        """Say nothing."""

    def say(self, status: int, value: object = None, **headers: str) -> None:
        body = b"" if value is None else json.dumps(value).encode()
        self.send_response(status)
        for name, text in headers.items():
            self.send_header(name, text)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def refuse(self, status: int, kind: str) -> None:
        self.say(status, {"RemoteException": {"exception": kind, "message": "as asked"}})

    def do_GET(self) -> None:
        files, path, asked = self.taken_apart()
        op = asked["op"]
        if self.is_odd() or self.refused_as_standby():
            return
        if op == "OPEN" and path in files.files:
            if asked.get("at") != "datanode":
                self.say(307, Location=f"{self.datanode()}{self.path}&at=datanode")
            else:
                self.send_data(files.files[path])
        elif op == "GETFILESTATUS" and files.status(path):
            self.say(200, {"FileStatus": files.status(path)})
        elif op == "LISTSTATUS" and path in files.folders:
            found = [
                {**(files.status(each) or {}), "pathSuffix": each.rsplit("/", 1)[1]}
                for each in files.children(path)
            ]
            self.say(200, {"FileStatuses": {"FileStatus": found}})
        else:
            self.refuse(404, "FileNotFoundException")

    def do_PUT(self) -> None:
        files, path, asked = self.taken_apart()
        if self.is_odd() or self.refused_as_standby():
            return
        if asked["op"] == "MKDIRS":
            parts = path.strip("/").split("/")
            for end in range(1, len(parts) + 1):
                files.folders.setdefault("/" + "/".join(parts[:end]), asked.get("permission", "755"))
            self.say(200, {"boolean": True})
        elif asked["op"] == "RENAME":
            lost = files.lose_renames.pop(0) if files.lose_renames else ""
            if lost == "before":
                self.fall_silent()
                return
            happens = (
                not files.rename_fails and path in files.files and asked["destination"] not in files.files
            )
            if happens:
                files.files[asked["destination"]] = files.files.pop(path)
            if lost:
                self.fall_silent()
            else:
                self.say(200, {"boolean": happens})
        elif asked["op"] == "CREATE" and path in files.files:
            self.refuse(403, "FileAlreadyExistsException")
        elif asked.get("at") != "datanode":
            self.say(307, Location=f"{self.datanode()}{self.path}&at=datanode")
        else:
            files.modes[path] = asked.get("permission", "")
            self.take_data(files, path)

    def taken_apart(self) -> tuple[Files, str, dict[str, str]]:
        parts = urlsplit(self.path)
        asked = {name: values[0] for name, values in parse_qs(parts.query).items()}
        self.server.held.queries.append(parts.query)
        if "user.name" in asked:
            self.server.held.users.add(asked["user.name"])
        if "delegation" in asked:
            self.server.held.tokens.add(asked["delegation"])
        return self.server.held, parts.path[len(PREFIX) :], asked

    def datanode(self) -> str:
        return self.server.held.redirects_to or f"{self.server.scheme}://{self.server.host}"

    def fall_silent(self) -> None:
        """Take the question and never answer it."""
        self.server.held.dead = self.server.held.dead_after_loss
        self.close_connection = True
        self.connection.close()

    def is_odd(self) -> bool:
        """Do what no good server does, if a test wants it."""
        held = self.server.held
        if held.dead:
            self.fall_silent()
        elif held.drip:
            self.drip()
        elif held.instead is not None:
            self.say(200, held.instead)
        return held.dead or held.drip or held.instead is not None

    def drip(self) -> None:
        """Answer byte after byte, for ever."""
        where = "" if "at=datanode" in self.path else f"{self.path}&at=datanode"
        if where and "op=OPEN" in self.path:
            self.say(307, Location=f"http://{self.server.host}{where}")
            return
        self.send_response(200)
        self.send_header("Content-Length", str(1 << 40))
        self.end_headers()
        with contextlib.suppress(OSError):
            while not self.server.held.gate.wait(0.01):
                self.wfile.write(b"x")
        self.close_connection = True

    def refused_as_standby(self) -> bool:
        if self.server.held.standby:
            self.refuse(*self.server.held.says_standby)
        return self.server.held.standby

    def take_data(self, files: Files, path: str) -> None:
        size = int(self.headers["Content-Length"])
        cut = files.cut_next_bodies > 0
        files.files[path] = self.rfile.read(size // 2 if cut else size)
        if cut:
            files.cut_next_bodies -= 1
            self.close_connection = True
            self.connection.close()
        else:
            self.say(201)

    def send_data(self, data: bytes) -> None:
        self.send_response(200)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data[: len(data) // 2] if self.server.held.cut_reads else data)
        self.close_connection = self.server.held.cut_reads
