"""WebHDFS: NameNode and DataNode of an HDFS in a folder (facts, section 10), and its planted faults.

Law: it has the traps of the real one. A create is two requests; an upload whose client ends leaves a
shorter file that looks complete; a refused rename is a body with status 200. Bodies are streamed to
disk and from it, never kept. The user is ``user.name``, else dr.who. No fault happens unless a test (or
``--faults``) asked for it, and faults are counted down, so that a store recovers by itself.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, MutableMapping
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote, urlencode, urlsplit

import msgspec

from emulator.live.store.namespace import Namespace
from emulator.live.store.permitted_paths import ENTER, READ, WRITE, checked_path
from emulator.live.wire.hadoop_request import caller
from emulator.live.wire.web import (
    JSON,
    HttpProblem,
    Receive,
    Reply,
    Scope,
    Send,
    Web,
    WebRequest,
    json_reply,
    remote_exception,
    send_reply,
)


class Fault(msgspec.Struct, forbid_unknown_fields=True):
    """What goes wrong with the next ``count`` requests (-1: with all) whose op is in ``ops`` (none: any).

    ``down``: the connection is cut without an answer. ``status``: this status and a page.
    ``garbage``: 200 and no JSON. ``delay_ms``: the answer comes later. ``drip_ms``: it comes byte by byte.
    ``safe_mode``: what would change something is refused, as by a NameNode in safe mode.
    ``tear_bytes``: an upload is cut off after so many bytes (the file stays as it is then).
    """

    ops: tuple[str, ...] = ()
    count: int = -1
    down: bool = False
    status: int = 0
    garbage: bool = False
    delay_ms: int = 0
    drip_ms: int = 0
    tear_bytes: int = -1
    safe_mode: bool = False


class Faults:
    """The switch. ``now`` is what goes wrong, None: nothing. ``hit`` counts requests that met a fault."""

    def __init__(self) -> None:
        self.now: Fault | None = None
        self.hit = 0

    def next_fault(self, op: str) -> Fault | None:
        """Return the fault for a request, counted down."""
        fault = self.now
        if fault is None or fault.count == 0 or (fault.ops and op not in fault.ops):
            return None
        if fault.count > 0:
            fault.count -= 1
        self.hit += 1
        return fault


def cut(receive: Receive) -> bool:
    """Cut the connection of a request off, where the server (uvicorn) lets it be found."""
    transport = getattr(getattr(receive, "__self__", None), "transport", None)
    if transport is None:
        return False
    transport.abort()
    return True


async def gone(receive: Receive) -> None:
    """Wait until a connection that was cut is closed (the server would complain of no answer)."""
    while (await receive())["type"] != "http.disconnect":
        pass


async def break_answer(fault: Fault, receive: Receive, send: Send) -> bool:
    """Answer wrongly; False if the fault leaves the answer itself alone."""
    if fault.delay_ms:
        await asyncio.sleep(fault.delay_ms / 1000)
    if fault.down:
        if cut(receive):
            await gone(receive)
        else:
            await send_reply(send, Reply(503))
    elif fault.status:
        await send_reply(send, Reply(fault.status, b"<html>broken on purpose</html>", "text/html"))
    elif fault.garbage:
        await send_reply(send, Reply(200, b'{"Fi\x00\xff<not json', JSON))
    else:
        return False
    return True


def dripping(send: Send, drip_ms: int) -> Send:
    """Return a ``send`` that lets a body out byte by byte."""

    async def slowly(message: MutableMapping[str, Any]) -> None:
        body = message.get("body", b"") if message["type"] == "http.response.body" else b""
        if len(body) < 2:
            await send(message)
            return
        for at in range(len(body)):
            more = message.get("more_body", False) or at + 1 < len(body)
            await send({"type": "http.response.body", "body": body[at : at + 1], "more_body": more})
            await asyncio.sleep(drip_ms / 1000)

    return slowly


PREFIX = "/webhdfs/v1"
SECOND_STEP = "namenoderpcaddress"
"""The parameter of real redirects: a request with it is for the DataNode."""
CHUNK_BYTES = 1 << 18
STREAM = "application/octet-stream"
_HOST = re.compile(r"[A-Za-z0-9.\-]{1,253}(:[0-9]{1,5})?|\[[0-9a-fA-F:]{2,45}\](:[0-9]{1,5})?")
_METHODS = {
    "GETFILESTATUS": "GET", "LISTSTATUS": "GET", "OPEN": "GET", "GETCONTENTSUMMARY": "GET",
    "GETHOMEDIRECTORY": "GET", "CHECKACCESS": "GET", "CREATE": "PUT", "MKDIRS": "PUT", "RENAME": "PUT",
    "SETPERMISSION": "PUT", "SETOWNER": "PUT", "SETTIMES": "PUT", "DELETE": "DELETE",
}  # fmt: skip
_ACTIONS = {"r": READ, "w": WRITE, "x": ENTER, "-": 0}


class WebHdfsServer:
    """WebHDFS over ``folder`` at ``url``. ``faults`` is the switch of tests (None: there is none)."""

    def __init__(self, folder: Path, url: str, superuser: str, faults: Faults | None = None) -> None:
        self.names = names = Namespace(folder, superuser)
        self.faults = faults
        self._url = url.rstrip("/")
        self._answers: dict[str, Callable[[str, str, WebRequest], Reply]] = {
            "GETFILESTATUS": lambda user, path, _: json_reply({"FileStatus": names.status(user, path)}),
            "LISTSTATUS": lambda user, path, _: json_reply(
                {"FileStatuses": {"FileStatus": names.listing(user, path)}}
            ),
            "GETCONTENTSUMMARY": lambda user, path, _: json_reply(
                {"ContentSummary": names.summary(user, path)}
            ),
            "GETHOMEDIRECTORY": lambda user, path, _: json_reply({"Path": f"/user/{user}"}),
            "CHECKACCESS": self._check,
            "MKDIRS": lambda user, path, request: _boolean(
                names.make_folders(user, path, _mode(request, 0o755))
            ),
            "RENAME": self._rename,
            "SETPERMISSION": self._set_mode,
            "SETOWNER": self._set_owner,
            "SETTIMES": self._set_times,
            "DELETE": lambda user, path, request: _boolean(
                names.delete(user, path, _flag(request, "recursive"))
            ),
        }

    def install(self, web: Web) -> None:
        """Answer below /webhdfs, and at /emulator/v1/faults if there is a switch."""
        web.mount("webhdfs", self)
        web.on_stop.append(self.names.owners.close)
        if self.faults is not None:
            web.add("GET PUT", "/emulator/v1/faults", self._switch)
        web.add("GET", "/jmx", self._jmx)

    def _jmx(self, _: WebRequest) -> Reply:
        """Answer a NameNode's bean FSNamesystemState."""
        fault = self.faults.now if self.faults is not None else None
        state = "safeMode" if fault is not None and fault.safe_mode else "Operational"
        name = "Hadoop:service=NameNode,name=FSNamesystemState"
        return json_reply({"beans": [{"name": name, "FSState": state}]})

    def _switch(self, request: WebRequest) -> Reply:
        assert self.faults is not None
        if request.method == "PUT":
            self.faults.now = msgspec.json.decode(request.body or b"null", type=Fault | None)
        return json_reply({"fault": self.faults.now, "hit": self.faults.hit})

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """ASGI."""
        request = WebRequest(scope["method"], "", scope["query_string"], scope["headers"])
        op = request.query.get("op", "").upper()
        fault = self.faults.next_fault(op) if self.faults is not None else None
        if fault is not None:
            if await break_answer(fault, receive, send):
                return
            if fault.drip_ms:
                send = dripping(send, fault.drip_ms)
        try:
            user, path = caller(request), _path(scope)
            if _METHODS.get(op) != scope["method"]:
                what = f'Invalid value for webhdfs parameter "op": {op[:40]} by {scope["method"][:10]}'
                raise HttpProblem(400, "IllegalArgumentException", what)
            if fault is not None and fault.safe_mode and scope["method"] != "GET":
                raise HttpProblem(
                    403, "SafeModeException", f"Cannot change {path}. Name node is in safe mode."
                )
            if op == "CREATE" and SECOND_STEP in request.query:
                reply = await self._receive(user, path, request, receive, fault)
            elif op == "OPEN" and SECOND_STEP in request.query:
                await self._send(user, path, request, send)
                return
            elif op in ("CREATE", "OPEN"):
                reply = self._redirect(user, path, op, request)
            else:
                reply = self._answers[op](user, path, request)
        except HttpProblem as problem:
            reply = remote_exception(problem)
        except OSError as error:
            reply = remote_exception(HttpProblem(403, "IOException", error.strerror or "the folder failed"))
        if reply is not None:
            await send_reply(send, reply)

    # --- the two-step operations --------------------------------------------------------------

    def _redirect(self, user: str, path: str, op: str, request: WebRequest) -> Reply:
        """Name the DataNode: this very server, as the caller reached it.

        A NameNode looks at a file to be read; whether one may be created is known when its bytes come.
        """
        if op == "OPEN":
            self.names.open(user, path)[0].close()
        host = request.header("host")
        base = f"http://{host}" if _HOST.fullmatch(host) else self._url
        query = {key: value for key, value in request.query.items() if key != "noredirect"}
        query[SECOND_STEP] = urlsplit(self._url).netloc
        where = f"{base}{PREFIX}{quote(path)}?{urlencode(query)}"
        if _flag(request, "noredirect"):
            return json_reply({"Location": where})
        return Reply(307, b"", STREAM, (("Location", where),))

    async def _receive(
        self, user: str, path: str, request: WebRequest, receive: Receive, fault: Fault | None
    ) -> Reply | None:
        """Write a body to a new file; None if its sender went away (what came stays, as in HDFS)."""
        overwrite, mode = _flag(request, "overwrite"), _mode(request, 0o644)
        tear = fault.tear_bytes if fault is not None else -1
        with self.names.create(user, path, overwrite, mode) as file:
            size = 0
            while True:
                message = await receive()
                if message["type"] == "http.disconnect":
                    return None
                chunk = message.get("body", b"")
                if 0 <= tear < size + len(chunk):
                    _write(file, chunk[: tear - size])
                    cut(receive)
                    return None
                _write(file, chunk)
                size += len(chunk)
                if not message.get("more_body"):
                    break
        where = f"webhdfs://{urlsplit(self._url).netloc}{quote(path)}"
        return Reply(201, b"", "", (("Location", where),))

    async def _send(self, user: str, path: str, request: WebRequest, send: Send) -> None:
        """Send a file's bytes from ``offset`` on, at most ``length``."""
        offset, wanted = _number(request, "offset", 0), _number(request, "length", -1)
        file, size = self.names.open(user, path)
        with file:
            if offset > size:
                raise HttpProblem(
                    403, "IOException", f"Offset={offset} out of the range [0, {size}); OPEN, path={path}"
                )
            left = size - offset if wanted < 0 else min(wanted, size - offset)
            headers = [(b"content-length", b"%d" % left), (b"content-type", STREAM.encode())]
            await send({"type": "http.response.start", "status": 200, "headers": headers})
            file.seek(offset)
            while left:
                chunk = file.read(min(left, CHUNK_BYTES))
                if not chunk:  # it became shorter meanwhile: the server cuts the connection off
                    return
                left -= len(chunk)
                await send({"type": "http.response.body", "body": chunk, "more_body": True})
            await send({"type": "http.response.body", "body": b""})

    # --- the NameNode's own -------------------------------------------------------------------

    def _check(self, user: str, path: str, request: WebRequest) -> Reply:
        action = request.query.get("fsaction", "")
        if not re.fullmatch("[r-][w-][x-]", action):
            raise HttpProblem(
                400, "IllegalArgumentException", 'Invalid value for webhdfs parameter "fsaction"'
            )
        self.names.check(user, path, sum(_ACTIONS[letter] for letter in action))
        return Reply(200, b"", STREAM)

    def _rename(self, user: str, path: str, request: WebRequest) -> Reply:
        target = checked_path(request.query.get("destination", ""))
        options = request.query.get("renameoptions", "").upper()
        if not options:
            return _boolean(self.names.rename(user, path, target))
        if options not in ("NONE", "OVERWRITE"):
            raise HttpProblem(
                400, "IllegalArgumentException", 'Invalid value for webhdfs parameter "renameoptions"'
            )
        self.names.replace(user, path, target, overwrite=options == "OVERWRITE")
        return Reply(200, b"", STREAM)

    def _set_mode(self, user: str, path: str, request: WebRequest) -> Reply:
        self.names.set_mode(user, path, _mode(request, 0o755))
        return Reply(200, b"", STREAM)

    def _set_owner(self, user: str, path: str, request: WebRequest) -> Reply:
        self.names.set_owner(user, path, request.query.get("owner", "")[:255])
        return Reply(200, b"", STREAM)

    def _set_times(self, user: str, path: str, request: WebRequest) -> Reply:
        self.names.set_modified(user, path, _number(request, "modificationtime", 0))
        return Reply(200, b"", STREAM)


def _path(scope: Scope) -> str:
    raw = (scope.get("raw_path") or scope["path"].encode()).decode("latin-1").partition("?")[0]
    if not raw.startswith(PREFIX) or (len(raw) > len(PREFIX) and raw[len(PREFIX)] != "/"):
        raise HttpProblem(404, "FileNotFoundException", f"not below {PREFIX}")
    try:
        return checked_path(unquote(raw[len(PREFIX) :], errors="strict") or "/")
    except UnicodeDecodeError:
        raise HttpProblem(400, "IllegalArgumentException", "the path is not UTF-8") from None


def _write(file: Any, data: bytes) -> None:
    """Write all of it: an unbuffered file may take less."""
    view = memoryview(data)
    while view:
        view = view[file.write(view) :]


def _boolean(value: bool) -> Reply:
    return json_reply({"boolean": value})


def _flag(request: WebRequest, name: str) -> bool:
    text = request.query.get(name, "false").lower()
    if text not in ("true", "false", ""):
        raise _invalid(name, text)
    return text == "true"


def _mode(request: WebRequest, default: int) -> int:
    text = request.query.get("permission", "")
    if not text:
        return default
    if not re.fullmatch("[01]?[0-7]{1,3}", text):
        raise _invalid("permission", text)
    return int(text, 8)


def _number(request: WebRequest, name: str, default: int) -> int:
    text = request.query.get(name, "")
    if not text or text == "null":
        return default
    if not (text.isascii() and text.isdigit() and len(text) < 19):
        raise _invalid(name, text)
    return int(text)


def _invalid(name: str, text: str) -> HttpProblem:
    what = f'Invalid value for webhdfs parameter "{name}": {text[:60]!r}'
    return HttpProblem(400, "IllegalArgumentException", what)
