"""web: HTTP for the live emulator. A bare ASGI application.

Law: what comes in is not trusted. Bodies are bounded, a path that is not there is 404, a method that is not
offered 405, a call of the seam that is not announced as JSON 415, text that is not the expected JSON 400, and
nothing that a caller sends ends in a traceback. Which requests are answered at all is for the guard of
``http_server`` to say. The seam's calls (``Web.call``: a struct in, a struct out) are looked for first and
cost one look-up; Hadoop's REST (``Web.add``) is found by Starlette's path templates; what moves large
bodies takes ASGI as it is (``Web.mount``).

A handler is a plain function or a coroutine and runs on the event loop: it must not wait for long.
"""

from __future__ import annotations

import inspect
import logging
import re
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any, NamedTuple
from urllib.parse import parse_qsl, unquote

import msgspec
from starlette.routing import compile_path

from yarnctl.units import decode_vector

JSON = "application/json"
JSON_BYTES = JSON.encode()
TEXT = "text/plain;charset=utf-8"
LIMIT_BYTES = 16 << 20

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
Raw = Callable[[Scope, Receive, Send], Awaitable[None]]

_log = logging.getLogger("yarn-emulator")


class Reply(NamedTuple):
    """An answer. ``headers`` are added to the content type and length."""

    status: int = 200
    body: bytes = b""
    kind: str = JSON
    headers: tuple[tuple[str, str], ...] = ()


class HttpProblem(Exception):
    """A handler's no: status, the exception's name as Hadoop would say it, and what is wrong."""

    def __init__(self, status: int, kind: str, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.kind = kind
        self.message = message


class WebRequest:
    """What was asked. ``path`` is decoded, ``raw_path`` and ``raw_query`` are as sent."""

    __slots__ = ("_query", "body", "headers", "method", "path", "raw_path", "raw_query", "values")

    def __init__(
        self,
        method: str,
        path: str,
        raw_query: bytes = b"",
        headers: list[tuple[bytes, bytes]] | None = None,
        body: bytes = b"",
        raw_path: str = "",
    ) -> None:
        self.method = method
        self.path = path
        self.raw_path = raw_path or path
        self.raw_query = raw_query
        self.headers = headers or []
        self.body = body
        self.values: tuple[str, ...] = ()
        self._query: dict[str, str] | None = None

    @property
    def query(self) -> dict[str, str]:
        """The query; of a repeated name the first counts."""
        if self._query is None:
            found: dict[str, str] = {}
            for key, value in parse_qsl(
                self.raw_query.decode("latin-1"), keep_blank_values=True, max_num_fields=None
            ):
                found.setdefault(key, value)
            self._query = found
        return self._query

    def header(self, name: str) -> str:
        """Return a header, "" if there is none."""
        wanted = name.lower().encode()
        return next((value.decode("latin-1") for key, value in self.headers if key == wanted), "")


Handler = Callable[[WebRequest], Reply | Awaitable[Reply]]
"""Answers one kind of request; the parts of the path that vary are in ``request.values``."""


_Call = tuple[msgspec.json.Decoder[Any], Callable[[Any], Any], bool]


class Web:
    """An ASGI application. ``on_start`` and ``on_stop`` run on the server's event loop."""

    def __init__(self, limit_bytes: int = LIMIT_BYTES) -> None:
        self.limit_bytes = limit_bytes
        self.on_start: list[Callable[[], object]] = []
        self.on_stop: list[Callable[[], object]] = []
        self.names: set[str] = set()
        """Host names that are answered besides those of the address it listens at."""
        self.no: Callable[[HttpProblem], Reply] = remote_exception
        """How a problem is written (``HttpProblem`` -> ``Reply``)."""
        self._calls: dict[str, _Call] = {}
        self._routes: dict[str, tuple[re.Pattern[str], dict[str, Handler]]] = {}
        self._mounts: dict[str, Raw] = {}
        self._encode = msgspec.json.Encoder().encode

    def call(self, path: str, kind: type[Any], function: Callable[[Any], Any]) -> None:
        """Take ``kind`` as JSON by POST at ``path`` and answer what ``function`` makes of it, as JSON."""
        self._calls[path] = (
            msgspec.json.Decoder(kind, dec_hook=decode_vector),
            function,
            inspect.iscoroutinefunction(function),
        )

    def add(self, methods: str, template: str, handler: Handler) -> None:
        """Answer ``methods`` ("GET PUT") at a path; ``{name}`` is any one part, ``{name:path}`` all the rest.

        Of templates that fit the same path the one that was added first answers.
        """
        if template not in self._routes:
            pattern, _, _ = compile_path(template if template.endswith(":path}") else _whole_parts(template))
            self._routes[template] = pattern, {}
        self._routes[template][1].update(dict.fromkeys(methods.split(), handler))

    def mount(self, first_part: str, raw: Raw) -> None:
        """Hand everything below ``/first_part`` over as it is."""
        self._mounts[first_part] = raw

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """ASGI."""
        if scope["type"] != "http":
            return
        path: str = scope["path"]
        call = self._calls.get(path)
        if call is not None and scope["method"] == "POST":
            if not is_json(scope["headers"]):
                await send_reply(send, self.no(NO_JSON))
                return
            message = await receive()
            body: bytes | None = message.get("body", b"")
            if message.get("more_body") or len(body or b"") > self.limit_bytes:
                body = await read_on(message, receive, self.limit_bytes)
            if body is None:
                reply: bytes | Reply = self.no(too_large(self.limit_bytes))
            else:
                reply = await self._waited(call, body) if call[2] else self._called(call, body)
            if isinstance(reply, bytes):  # the hot way: thousands a second, and every header costs
                headers = [(b"content-length", b"%d" % len(reply))]
                await send({"type": "http.response.start", "status": 200, "headers": headers})
                await send({"type": "http.response.body", "body": reply})
                return
        else:
            mount = self._mounts.get(path.split("/", 2)[1] if path.startswith("/") else "")
            if mount is not None:
                await mount(scope, receive, send)
                return
            reply = await self._asked(scope, receive)
        await send_reply(send, reply)

    async def answer(self, request: WebRequest) -> Reply:
        """Answer a request whose body is here already (also without any server)."""
        try:
            handler = self._find(request)
            reply = handler(request)
            if not isinstance(reply, Reply):
                reply = await reply
        except HttpProblem as problem:
            return self.no(problem)
        except msgspec.MsgspecError as error:
            return self.no(HttpProblem(400, "BadRequestException", f"the body cannot be read: {error}"))
        except Exception as error:  # whatever it is, the caller gets one line and the others go on
            _log.exception("%s %s", request.method, request.path)
            return self.no(HttpProblem(500, type(error).__name__, "the emulator failed at this request"))
        return reply

    async def _asked(self, scope: Scope, receive: Receive) -> Reply:
        body = b""
        if scope["method"] not in ("GET", "HEAD"):
            whole = await read_body(receive, self.limit_bytes)
            if whole is None:
                return self.no(too_large(self.limit_bytes))
            body = whole
        raw_path = scope.get("raw_path") or scope["path"].encode()
        return await self.answer(
            WebRequest(
                scope["method"],
                scope["path"],
                scope["query_string"],
                scope["headers"],
                body,
                raw_path.decode("latin-1"),
            )
        )

    def _called(self, call: _Call, body: bytes) -> bytes | Reply:
        """Return a function's answer as JSON, or a no."""
        try:
            return self._encode(call[1](call[0].decode(body)))
        except Exception as error:
            return self._failed(call, error)

    async def _waited(self, call: _Call, body: bytes) -> bytes | Reply:
        """Return a coroutine's answer as JSON, or a no."""
        try:
            return self._encode(await call[1](call[0].decode(body)))
        except Exception as error:
            return self._failed(call, error)

    def _failed(self, call: _Call, error: Exception) -> Reply:
        """Handle a fault of a call: the caller gets one line, and other calls continue."""
        if isinstance(error, HttpProblem):
            return self.no(error)
        if isinstance(error, (msgspec.MsgspecError, UnicodeError, RecursionError)):
            return self.no(HttpProblem(400, "BadRequestException", f"the body cannot be read: {error}"))
        _log.error("%s", call[1], exc_info=error)
        return self.no(HttpProblem(500, type(error).__name__, "the emulator failed at this request"))

    def _find(self, request: WebRequest) -> Handler:
        """Return the handler, and put the varying parts of the path into the request."""
        path = _whole_parts(request.raw_path)
        for pattern, handlers in self._routes.values():
            if not (found := pattern.match(path)):
                continue
            request.values = tuple(map(unquote, found.groups()))
            if handler := handlers.get("GET" if request.method == "HEAD" else request.method):
                return handler
            said = f"{request.method[:20]} is not offered here ({', '.join(sorted(handlers))})"
            raise HttpProblem(405, "NotAllowedException", said)
        raise HttpProblem(404, "NotFoundException", f"nothing is at {request.path[:200]}")


def _whole_parts(path: str) -> str:
    """Return a path with one slash before, between and after its parts: Hadoop takes them all as one."""
    return "/" + "".join(f"{part}/" for part in path.split("/") if part)


NO_JSON = HttpProblem(415, "NotSupportedException", "Content-Type has to be application/json")
"""A page of another site may send forms and text without being asked first, and no JSON."""


def is_json(headers: list[tuple[bytes, bytes]]) -> bool:
    """Say whether a request's headers (names in small letters) announce JSON."""
    if (b"content-type", JSON_BYTES) in headers:
        return True
    for name, value in headers:
        if name == b"content-type":
            return value.partition(b";")[0].strip().lower() == JSON_BYTES
    return False


async def read_body(receive: Receive, limit_bytes: int) -> bytes | None:
    """Return a request's body; None if it is longer than the limit (the rest is not read)."""
    return await read_on(await receive(), receive, limit_bytes)


async def read_on(message: MutableMapping[str, Any], receive: Receive, limit_bytes: int) -> bytes | None:
    """Return a body whose first part is here already."""
    if not message.get("more_body"):
        body: bytes = message.get("body", b"")
        return body if len(body) <= limit_bytes else None
    parts = [message.get("body", b"")]
    size = len(parts[0])
    while message.get("more_body"):
        message = await receive()
        parts.append(message.get("body", b""))
        size += len(parts[-1])
        if size > limit_bytes:
            return None
    return b"".join(parts)


async def send_reply(send: Send, reply: Reply) -> None:
    """Send an answer."""
    body = reply.body
    headers = [(b"content-length", b"%d" % len(body))]
    if reply.kind:
        headers.append((b"content-type", reply.kind.encode("latin-1")))
    for name, value in reply.headers:
        headers.append((name.lower().encode("latin-1"), value.encode("latin-1", "replace")))
    await send({"type": "http.response.start", "status": reply.status, "headers": headers})
    await send({"type": "http.response.body", "body": body})


def too_large(limit_bytes: int) -> HttpProblem:
    """Return the no to a body beyond the limit."""
    return HttpProblem(413, "BadRequestException", f"the body is longer than {limit_bytes} bytes")


def json_reply(value: object, status: int = 200) -> Reply:
    """Return builtins or structs as a JSON answer."""
    return Reply(status, msgspec.json.encode(value))


_JAVA = "org.apache.hadoop.yarn.webapp."
_CLASSES = {
    "BadRequestException": _JAVA + "BadRequestException",
    "ForbiddenException": _JAVA + "ForbiddenException",
    "NotFoundException": _JAVA + "NotFoundException",
    "NotAllowedException": "javax.ws.rs.NotAllowedException",
    "NotSupportedException": "javax.ws.rs.NotSupportedException",
    "AuthorizationException": "org.apache.hadoop.security.authorize.AuthorizationException",
    "AccessControlException": "org.apache.hadoop.security.AccessControlException",
    "FileAlreadyExistsException": "org.apache.hadoop.fs.FileAlreadyExistsException",
    "FileNotFoundException": "java.io.FileNotFoundException",
    "IllegalArgumentException": "java.lang.IllegalArgumentException",
    "StandbyException": "org.apache.hadoop.ipc.StandbyException",
    "PathIsNotEmptyDirectoryException": "org.apache.hadoop.fs.PathIsNotEmptyDirectoryException",
    "ParentNotDirectoryException": "org.apache.hadoop.fs.ParentNotDirectoryException",
    "InternalServerErrorException": "javax.ws.rs.InternalServerErrorException",
    "UnsupportedOperationException": "java.lang.UnsupportedOperationException",
    "UndeclaredThrowableException": "java.lang.reflect.UndeclaredThrowableException",
    "WebApplicationException": "javax.ws.rs.WebApplicationException",
}


def remote_exception(problem: HttpProblem) -> Reply:
    """Write a problem as Hadoop does: a RemoteException in JSON."""
    said = {"exception": problem.kind, "message": problem.message}
    said["javaClassName"] = _CLASSES.get(problem.kind, f"java.lang.{problem.kind}")
    if not problem.message:  # an exception without a message has none here, either
        del said["message"]
    return json_reply({"RemoteException": said}, problem.status)
