"""Delegation tokens: read from the container's token file, chosen for one HDFS.

A token is sent only to the HDFS that it is certainly meant for, over plain HTTP only where that was allowed,
and no message contains it.
"""

from __future__ import annotations

import base64
import os
import re
import stat
from typing import Iterable, Iterator, Mapping, NamedTuple, Sequence

from yarnctl.task_runner.runner.protocol.stores import Unusable

TOKEN_FILE_BYTES_MAX = 1 << 20
TOKENS_MAX = 1_000
TOKEN_KINDS = ("HDFS_DELEGATION_TOKEN", "SWEBHDFS delegation", "WEBHDFS delegation")


class Token(NamedTuple):
    """A delegation token. ``service``: ``address:port`` of a NameNode's RPC, or ``ha-hdfs:NAME``."""

    identifier: bytes
    password: bytes
    kind: str
    service: str

    def __repr__(self) -> str:
        """Return kind and service, which are no secret."""
        return f"Token({self.kind!r}, {self.service!r})"

    def for_url(self) -> str:
        """Return it as WebHDFS takes it: the bytes of Hadoop's Writable in base64 for URLs, unpadded."""
        parts = (self.identifier, self.password, self.kind.encode(), self.service.encode())
        whole = b"".join(written_length(len(part)) + part for part in parts)
        return base64.urlsafe_b64encode(whole).decode().rstrip("=")


def written_length(size: int) -> bytes:
    """Return a length as Hadoop's WritableUtils writes it."""
    if size <= 127:
        return bytes([size])
    data = size.to_bytes((size.bit_length() + 7) // 8, "big")
    return bytes([256 - 112 - len(data)]) + data


class Cursor:
    """Reads a token file from left to right; raises Unusable where it ends too soon."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.at = 0

    def more(self) -> bool:
        """Say whether there is more."""
        return self.at < len(self.data)

    def take(self, size: int) -> bytes:
        """Return the next bytes."""
        if not 0 <= size <= len(self.data) - self.at:
            raise Unusable("it is truncated")
        self.at += size
        return self.data[self.at - size : self.at]

    def length(self) -> int:
        """Return a length as Hadoop's Writables have it; a negative one is no length."""
        first = self.take(1)[0]
        if first <= 127:
            return first
        if first < 256 - 120 or first >= 256 - 112:
            raise Unusable("it contains a negative length")
        return int.from_bytes(self.take(256 - 112 - first), "big")

    def counted(self) -> bytes:
        """Return bytes with their length before them."""
        return self.take(self.length())

    def varint(self) -> int:
        """Return a whole number as Protocol Buffers have it."""
        value = 0
        for place in range(10):
            byte = self.take(1)[0]
            value |= (byte & 127) << (7 * place)
            if byte < 128:
                return value
        raise Unusable("it contains an unterminated number")

    def fields(self) -> Iterator[tuple[int, bytes]]:
        """Yield a message's fields with bytes in them; others are passed over."""
        while self.more():
            number, kind = divmod(self.varint(), 8)
            if kind == 2:
                yield number, self.take(self.varint())
            elif kind == 0:
                self.varint()
            elif kind in (1, 5):
                self.take(8 if kind == 1 else 4)
            else:
                raise Unusable("it is not a Protocol Buffer")


def parse_tokens(data: bytes) -> list[Token]:
    """Return the tokens of a token storage file (HDTS, version 0 or 1), or raise Unusable."""
    if data[:4] != b"HDTS" or len(data) < 5:
        raise Unusable("it is not a token file")
    cursor = Cursor(data[5:])
    if data[4] == 0:
        found = written_tokens(cursor)
    elif data[4] == 1:
        found = message_tokens(Cursor(cursor.take(cursor.varint())))
    else:
        raise Unusable(f"its version {data[4]} is not supported (0 and 1 are)")
    try:
        return [Token(one[0], one[1], one[2].decode(), one[3].decode()) for one in found]
    except UnicodeDecodeError:
        raise Unusable("it contains a kind or service that is not text") from None


def written_tokens(cursor: Cursor) -> list[tuple[bytes, bytes, bytes, bytes]]:
    """Return what version 0 holds: a count, then alias, identifier, password, kind, service of each."""
    count = cursor.length()
    if count > TOKENS_MAX:
        raise Unusable(f"it has more than {TOKENS_MAX} tokens")
    found = []
    for _ in range(count):
        cursor.counted()
        found.append((cursor.counted(), cursor.counted(), cursor.counted(), cursor.counted()))
    return found


def message_tokens(cursor: Cursor) -> list[tuple[bytes, bytes, bytes, bytes]]:
    """Return what version 1 holds: messages in field 1, in each its token in field 2."""
    found = []
    for number, entry in cursor.fields():
        if number != 1:
            continue
        for inner, token in Cursor(entry).fields():
            if inner == 2:
                parts = dict(Cursor(token).fields())
                found.append((parts.get(1, b""), parts.get(2, b""), parts.get(3, b""), parts.get(4, b"")))
        if len(found) > TOKENS_MAX:
            raise Unusable(f"it has more than {TOKENS_MAX} tokens")
    return found


def read_tokens(path: str) -> list[Token]:
    """Return the tokens in a file, none where no file is named; raise Unusable with why it cannot be used."""
    if not path:
        return []
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK)  # opening a pipe would block
        with open(handle, "rb") as file:
            if not stat.S_ISREG(os.fstat(handle).st_mode):
                raise Unusable("it is not a file")
            data = file.read(TOKEN_FILE_BYTES_MAX + 1)
        if len(data) > TOKEN_FILE_BYTES_MAX:
            raise Unusable(f"it is larger than {TOKEN_FILE_BYTES_MAX} bytes")
        return parse_tokens(data)
    except (OSError, Unusable) as error:
        why = error.strerror if isinstance(error, OSError) else error
        raise Unusable(f"the container's token file (HADOOP_TOKEN_FILE_LOCATION): {why}") from None


def choose_token(
    tokens: Iterable[Token],
    hosts: Sequence[str],
    service: str = "",
    name_services: Mapping[str, frozenset[str]] | None = None,
) -> Token | None:
    """Return the token for the HDFS at ``hosts`` (``host:port`` of WebHDFS), None if there is none at all.

    ``name_services``: name -> hosts of its NameNodes. A token is sent only where it is certainly meant for:
    a single one must fit, too, or be named.
    """
    ours = sorted((each for each in tokens if each.kind in TOKEN_KINDS), key=lambda each: each.kind)
    if not ours:
        if service:
            raise Unusable(f"no HDFS token for {service} (--token-service)")
        return None
    if service:
        ours = [each for each in ours if each.service == service]
        if not ours:
            raise Unusable(f"no HDFS token for {service} (--token-service)")
        return ours[0]
    names = {address for host in hosts for address in addresses_of(host.rpartition(":")[0])}
    fitting = [each for each in ours if names & service_addresses(each.service, name_services or {})]
    if len({each.service for each in fitting if each.kind == fitting[0].kind}) != 1:
        told = ", ".join(sorted({each.service for each in ours}))
        where = ",".join(hosts)
        problem = f"HDFS tokens for {told}: the one for {where} cannot be determined"
        raise Unusable(f"{problem}; set --token-service to the store's")
    return fitting[0]


def service_addresses(service: str, name_services: Mapping[str, frozenset[str]]) -> set[str]:
    """Return the names and addresses of a token's service."""
    kind, found, name = service.partition(":")
    if found and kind == "ha-hdfs":
        return {address for host in name_services.get(name, ()) for address in addresses_of(host)}
    return addresses_of(service.rpartition(":")[0])


def read_name_services(env: Mapping[str, str]) -> dict[str, frozenset[str]]:
    """Return the name services in a job's configuration, as streaming hands it down, with their hosts."""
    found = {}
    for name in filter(None, re.split(r"[,\s]+", env.get("dfs_nameservices", ""))):
        written = re.escape(re.sub(r"[^A-Za-z0-9]", "_", name))
        key = re.compile(rf"dfs_namenode_(rpc|http|https)_address_{written}_[A-Za-z0-9_]+")
        values = (value for each, value in env.items() if key.fullmatch(each))
        found[name] = frozenset(value.strip().rpartition(":")[0] for value in values) - {""}
    return found


def addresses_of(host: str) -> set[str]:
    """Return a host's name and addresses: a token's service has the one or the other."""
    import socket

    if not host:
        return set()
    try:
        found = socket.getaddrinfo(host.strip("[]"), None, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError):
        return {host}
    return {host, *(str(each[4][0]) for each in found)}


class Secured(NamedTuple):
    """What makes calls secure: the container's token file, which token, and the authorities of HTTPS.

    ``over_http``: a token may also go over plain HTTP. ``name_services``: as in :func:`choose_token`.
    """

    token_file: str = ""
    token_service: str = ""
    ca_file: str = ""
    over_http: bool = False
    name_services: Mapping[str, frozenset[str]] | None = None

    def delegation(self, hosts: Sequence[str], https: bool) -> str:
        """Return the token for these NameNodes as in URLs, "" if none; Unusable if unsure or plain HTTP."""
        token = choose_token(read_tokens(self.token_file), hosts, self.token_service, self.name_services)
        if token and not (https or self.over_http):
            raise Unusable(
                "webhdfs:// would send the delegation token over plain HTTP; use swebhdfs://, or set"
                " --token-over-http (YARNCTL_TOKEN_OVER_HTTP=1)"
            )
        return token.for_url() if token else ""


PLAIN = Secured()
