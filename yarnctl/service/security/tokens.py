"""Tokens: what a caller may do, by the secret that it sends.

Law: a token belongs to one name and one user, and has scopes: ``read``; ``submit`` (ask for admissions of its
own user, see, renew and withdraw these); ``operate`` (everything). A secret is read from a file that no other
user can read, is kept as a digest only, and is in no message and no log. A token is compared with all
that there are, each in constant time.

``yarnctl run --tokens FILE`` reads TOML; a relative ``file`` is beside it::

    [[token]]
    name = "ann-laptop"             # told in messages; once only
    user = "ann"                    # whose admissions these are; needed for submit
    scopes = ["read", "submit"]
    file = "tokens/ann-laptop"      # its first and only line is the secret
    account = "analytics"           # where deadlines have a price: the one account it spends from
"""

from __future__ import annotations

import hashlib
import hmac
import os
import stat
import tomllib
from collections.abc import Iterable
from pathlib import Path
from typing import Literal

import msgspec

from yarnctl.errors import BadInput

Scope = Literal["read", "submit", "operate"]

SECRET_CHARACTERS_MIN = 16
FILE_BYTES_MAX = 1 << 20
OTHERS = stat.S_IRWXG | stat.S_IRWXO
OPERATOR = "--token-file"
"""The name of the one operator's token."""
_BEARER = "bearer "


def bearer_of(headers: Iterable[tuple[bytes, bytes]]) -> str:
    """Return what the one Authorization header carries as a bearer, "" if there is none (or are several)."""
    given = [value.decode("latin-1") for name, value in headers if name == b"authorization"]
    if len(given) != 1 or not given[0].lower().startswith(_BEARER):
        return ""
    return given[0][len(_BEARER) :].strip()


def digest(secret: str) -> bytes:
    """Return the digest by which a secret is kept and compared."""
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).digest()


class Caller(msgspec.Struct, frozen=True):
    """A token's owner, and what it allows. ``user`` "": it owns no admissions.

    ``account``: the one account that it spends from ("": none).
    """

    name: str
    user: str
    scopes: frozenset[str]
    account: str = ""

    def may(self, scope: Scope) -> bool:
        """Say whether this is allowed."""
        return scope in self.scopes or "operate" in self.scopes

    def may_touch(self, user: str) -> bool:
        """Say whether an admission of this user may be made, renewed and withdrawn."""
        return "operate" in self.scopes or ("submit" in self.scopes and user == self.user)


class Tokens:
    """All tokens of a daemon: (caller, secret)."""

    def __init__(self, tokens: Iterable[tuple[Caller, str]] = ()) -> None:
        self._tokens = tuple((caller, digest(secret)) for caller, secret in tokens)

    @classmethod
    def of(cls, token: str | Tokens | None) -> Tokens:
        """Return tokens; a text is the one operator's."""
        if isinstance(token, Tokens):
            return token
        return cls([(Caller(OPERATOR, "", frozenset({"operate"})), token)] if token else ())

    def __len__(self) -> int:
        """So many there are."""
        return len(self._tokens)

    def caller(self, given: str) -> Caller | None:
        """Return the caller of a token, None: there is none."""
        found, sent = None, digest(given)
        for caller, expected in self._tokens:  # to the end: its duration reveals nothing
            if hmac.compare_digest(sent, expected):
                found = caller
        return found


class _Entry(msgspec.Struct, forbid_unknown_fields=True):
    name: str
    scopes: list[Scope]
    file: str
    user: str = ""
    account: str = ""


class _File(msgspec.Struct, forbid_unknown_fields=True):
    token: list[_Entry] = []


def read_private(file: Path, where: str) -> bytes:
    """Return the bytes of a file that only its owner can read; raises BadInput naming ``where``."""
    try:
        with file.open("rb") as opened:
            mode = stat.S_IMODE(os.fstat(opened.fileno()).st_mode)
            if mode & OTHERS:
                raise BadInput(where, f"others can read or change it (mode {mode:o})", f"chmod 600 {file}")
            data = opened.read(FILE_BYTES_MAX + 1)
    except (OSError, ValueError) as error:  # ValueError: a NUL in the path
        raise BadInput(where, f"cannot be read ({type(error).__name__})") from None
    if len(data) > FILE_BYTES_MAX:
        raise BadInput(where, "is too large", "name the file that holds the token")
    return data


def read_secret(file: Path, where: str) -> str:
    """Return the secret in a file; raises BadInput for what is none."""
    try:
        secret = read_private(file, where).decode("ascii").strip()
    except UnicodeDecodeError:
        raise BadInput(where, "is no text", "name the file that holds the token") from None
    if len(secret) < SECRET_CHARACTERS_MIN:
        raise BadInput(
            where, "is too short for a secret", f"write at least {SECRET_CHARACTERS_MIN} characters"
        )
    if not secret.isprintable():
        raise BadInput(where, "is of several lines", "write one line")
    return secret


def read_tokens(file: Path | None, operator: Path | None) -> Tokens:
    """Return the tokens of ``--tokens`` and ``--token-file``; raises BadInput naming file and entry."""
    found: list[tuple[Caller, str]] = []
    if operator is not None:
        secret = read_secret(operator, f"--token-file {operator}")
        found.append((Caller(OPERATOR, "", frozenset({"operate"})), secret))
    if file is not None:
        found += [_token(file, number, each) for number, each in enumerate(_entries(file), 1)]
    _require_distinct(found)
    return Tokens(found)


def _entries(file: Path) -> list[_Entry]:
    where = f"--tokens {file}"
    try:
        told = tomllib.loads(read_private(file, where).decode("utf-8"))
        entries = msgspec.convert(told, _File).token
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError):
        raise BadInput(where, "is no TOML", "see docs/admission.md for its form") from None
    except msgspec.ValidationError as error:
        raise BadInput(where, str(error), "see docs/admission.md for its form") from None
    if not entries:
        raise BadInput(where, "has no [[token]]", "see docs/admission.md for its form")
    return entries


def _token(file: Path, number: int, entry: _Entry) -> tuple[Caller, str]:
    where = f"--tokens {file}: token {number} ({entry.name[:60]})"
    if not entry.name.strip() or not entry.name.isprintable():
        raise BadInput(where, "has no name")
    if not entry.scopes:
        raise BadInput(where, "has no scopes", "give read, submit or operate")
    if "submit" in entry.scopes and not entry.user:
        raise BadInput(where, "submits for no user", 'give user = "NAME": its admissions are that user\'s')
    secret = read_secret(file.parent / entry.file, f"{where}: {entry.file}")
    return Caller(entry.name, entry.user, frozenset(entry.scopes), entry.account), secret


def _require_distinct(tokens: list[tuple[Caller, str]]) -> None:
    names: set[str] = set()
    secrets: dict[str, str] = {}
    for caller, secret in tokens:
        if caller.name in names:
            raise BadInput("--tokens", f"two tokens have the name {caller.name}", "give each its own")
        if secret in secrets:
            told = f"{secrets[secret]} and {caller.name} have the same secret"
            raise BadInput("--tokens", told, "give each its own")
        names.add(caller.name)
        secrets[secret] = caller.name
