"""Tokens: the permissions of a caller, by the secret that it sends.

A token has one name, one user, and scopes: ``read``; ``submit`` (request, read, renew and withdraw admissions
of its own user); ``own`` (the same, and reading about its user's applications); ``operate`` (everything). A
secret is read from a file that no other user can read, is kept as a digest only, and appears in no message
and no log. It is compared with every token, each in constant time. In place of a secret an entry can have a
client certificate, by the common name of its subject.

``yarnctl run --tokens FILE`` reads TOML; a relative ``file`` is in the folder of FILE::

    [[token]]
    name = "ann-laptop"             # appears in messages; unique
    user = "ann"                    # the user of its admissions; required for submit
    scopes = ["read", "submit"]
    file = "tokens/ann-laptop"      # its only line is the secret
    account = "analytics"           # where deadlines have a price: the account that pays

    [[token]]
    name = "prometheus"
    scopes = ["read"]
    certificate = "prometheus.example"   # in place of file; needs --tls-client-ca
"""

from __future__ import annotations

import hashlib
import hmac
import os
import stat
import tomllib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Literal, NamedTuple

import msgspec

from yarnctl.errors import BadInput

Scope = Literal["read", "submit", "own", "operate"]

SECRET_CHARACTERS_MIN = 16
FILE_BYTES_MAX = 1 << 20
OTHERS = stat.S_IRWXG | stat.S_IRWXO
OPERATOR = "--token-file"  # The name of the one operator's token
_BEARER = "bearer "


def bearer_of(headers: Iterable[tuple[bytes, bytes]]) -> str:
    """Return the bearer token of the only Authorization header, "" if there is none or several."""
    given = [value.decode("latin-1") for name, value in headers if name == b"authorization"]
    if len(given) != 1 or not given[0].lower().startswith(_BEARER):
        return ""
    return given[0][len(_BEARER) :].strip()


def digest(secret: str) -> bytes:
    """Return the digest that stands for a secret."""
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).digest()


class Credential(NamedTuple):
    """What a request comes with. ``certificate``: the common name in its verified certificate ("": none)."""

    secret: str = ""
    certificate: str = ""


class Caller(msgspec.Struct, frozen=True):
    """A token's name and permissions. ``user`` "": no admissions of its own; ``account`` "": none."""

    name: str
    user: str
    scopes: frozenset[str]
    account: str = ""

    def may(self, scope: Scope) -> bool:
        """Return whether the token has a scope."""
        granting = {scope, "operate", "own"} if scope == "submit" else {scope, "operate"}
        return not granting.isdisjoint(self.scopes)

    def may_touch(self, user: str) -> bool:
        """Return whether the token may request, renew and withdraw admissions of a user."""
        return self.may("operate") or (self.may("submit") and user == self.user)


class Tokens:
    """All tokens of a daemon: (caller, secret). ``certificates``: callers by the common name in theirs."""

    def __init__(
        self, tokens: Iterable[tuple[Caller, str]] = (), certificates: Mapping[str, Caller] = {}
    ) -> None:
        self._tokens = tuple((caller, digest(secret)) for caller, secret in tokens)
        self.certificates = dict(certificates)

    @classmethod
    def of(cls, token: str | Tokens | None) -> Tokens:
        """Return tokens; a text is the secret of one operator token."""
        if isinstance(token, Tokens):
            return token
        return cls([(Caller(OPERATOR, "", frozenset({"operate"})), token)] if token else ())

    def __len__(self) -> int:
        """Return the number of tokens and certificates."""
        return len(self._tokens) + len(self.certificates)

    def caller(self, credential: Credential) -> Caller | None:
        """Return the caller with this secret, or if none was sent with this certificate; None: unknown."""
        if credential.certificate and not credential.secret:
            return self.certificates.get(credential.certificate)
        found, sent = None, digest(credential.secret)
        for caller, expected in self._tokens:  # compare with all, so that the duration reveals nothing
            if hmac.compare_digest(sent, expected):
                found = caller
        return found


class _Entry(msgspec.Struct, forbid_unknown_fields=True):
    name: str
    scopes: list[Scope]
    file: str = ""
    certificate: str = ""
    user: str = ""
    account: str = ""


class _File(msgspec.Struct, forbid_unknown_fields=True):
    token: list[_Entry] = []


def read_private(file: Path, where: str) -> bytes:
    """Return the bytes of a file that only its owner can read; raises BadInput naming ``where``.

    A credential of the service manager is in a folder that no other user can enter. Its mode may show the
    access list by which this user reads it.
    """
    credentials = os.environ.get("CREDENTIALS_DIRECTORY", "")
    is_credential = bool(credentials) and file.parent == Path(credentials)
    try:
        with file.open("rb") as opened:
            mode = stat.S_IMODE(os.fstat(opened.fileno()).st_mode)
            if mode & OTHERS and not is_credential:
                raise BadInput(
                    where, f"other users can read or change it (mode {mode:o})", f"chmod 600 {file}"
                )
            data = opened.read(FILE_BYTES_MAX + 1)
    except (OSError, ValueError) as error:  # ValueError: a NUL in the path
        raise BadInput(where, f"cannot be read ({type(error).__name__})") from None
    if len(data) > FILE_BYTES_MAX:
        raise BadInput(where, f"larger than {FILE_BYTES_MAX} bytes", "name the file that holds the secret")
    return data


def read_secret(file: Path, where: str) -> str:
    """Return the secret in a file; raises BadInput if it is not a usable secret."""
    try:
        secret = read_private(file, where).decode("ascii").strip()
    except UnicodeDecodeError:
        raise BadInput(where, "not an ASCII text", "name the file that holds the secret") from None
    if len(secret) < SECRET_CHARACTERS_MIN:
        raise BadInput(where, "the secret is too short", f"use at least {SECRET_CHARACTERS_MIN} characters")
    if not secret.isprintable():
        raise BadInput(where, "has more than one line", "write one line")
    return secret


def read_tokens(file: Path | None, operator: Path | None) -> Tokens:
    """Return the tokens of ``--tokens`` and ``--token-file``; raises BadInput naming file and entry."""
    found: list[tuple[Caller, str]] = []
    certificates: dict[str, Caller] = {}
    if operator is not None:
        secret = read_secret(operator, f"--token-file {operator}")
        found.append((Caller(OPERATOR, "", frozenset({"operate"})), secret))
    if file is not None:
        for number, entry in enumerate(_entries(file), 1):
            where = f"--tokens {file}: token {number} ({entry.name[:60]})"
            caller = _caller(where, entry)
            if not entry.certificate:
                found.append((caller, read_secret(file.parent / entry.file, f"{where}: {entry.file}")))
            elif certificates.setdefault(entry.certificate, caller) is not caller:
                raise BadInput(where, "another token has this certificate", "use a certificate for each")
    _require_distinct(found, certificates)
    return Tokens(found, certificates)


def _entries(file: Path) -> list[_Entry]:
    where = f"--tokens {file}"
    try:
        content = tomllib.loads(read_private(file, where).decode("utf-8"))
        entries = msgspec.convert(content, _File).token
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError):
        raise BadInput(where, "not a TOML file", "see docs/admission.md for its format") from None
    except msgspec.ValidationError as error:
        raise BadInput(where, str(error), "see docs/admission.md for its format") from None
    if not entries:
        raise BadInput(where, "no [[token]] entry", "see docs/admission.md for its format")
    return entries


def _caller(where: str, entry: _Entry) -> Caller:
    if bool(entry.file) == bool(entry.certificate):
        raise BadInput(
            where, "needs one of file and certificate", 'set file = "FILE" or certificate = "NAME"'
        )
    if not entry.name.strip() or not entry.name.isprintable():
        raise BadInput(where, "no printable name", 'set name = "NAME"')
    if not entry.scopes:
        raise BadInput(where, "no scopes", "set scopes to some of read, submit, own and operate")
    for scope in ("submit", "own"):
        if scope in entry.scopes and not entry.user:
            raise BadInput(where, f"the scope {scope} needs a user", 'set user = "NAME"')
    return Caller(entry.name, entry.user, frozenset(entry.scopes), entry.account)


def _require_distinct(tokens: list[tuple[Caller, str]], certificates: Mapping[str, Caller]) -> None:
    names = {caller.name for caller in certificates.values()}
    if len(names) < len(certificates):
        raise BadInput("--tokens", "two certificates have the same name", "use unique names")
    secrets: dict[str, str] = {}
    for caller, secret in tokens:
        if caller.name in names:
            raise BadInput("--tokens", f"two tokens have the name {caller.name}", "use unique names")
        if secret in secrets:
            problem = f"the tokens {secrets[secret]} and {caller.name} have the same secret"
            raise BadInput("--tokens", problem, "use a secret for each token")
        names.add(caller.name)
        secrets[secret] = caller.name
