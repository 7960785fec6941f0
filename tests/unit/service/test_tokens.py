"""Tokens: the files they come from, whom they belong to, and that nobody is told a secret."""

from __future__ import annotations

import hmac
import logging
import os
from pathlib import Path

import pytest

from yarnctl.errors import BadInput
from yarnctl.service.security.tokens import OPERATOR, Caller, Credential, Tokens, read_secret, read_tokens

ANN, BOB, US = "the secret of ann", "the secret of bob", "the secret of who operates"

FILE = """
[[token]]
name = "ann-laptop"
user = "ann"
scopes = ["read", "submit"]
file = "ann"

[[token]]
name = "board"
scopes = ["read"]
file = "bob"
"""


def private(file: Path, text: str) -> Path:
    file.touch(mode=0o600)
    file.write_text(text)
    return file


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    private(tmp_path / "ann", ANN + "\n")
    private(tmp_path / "bob", BOB + "\n")
    private(tmp_path / "us", US + "\n")
    private(tmp_path / "tokens.toml", FILE)
    return tmp_path


def test_a_file_of_tokens_and_the_operator_s(folder: Path) -> None:
    tokens = read_tokens(folder / "tokens.toml", folder / "us")
    assert len(tokens) == 3
    assert tokens.caller(Credential(ANN)) == Caller("ann-laptop", "ann", frozenset({"read", "submit"}))
    assert tokens.caller(Credential(BOB)) == Caller("board", "", frozenset({"read"}))
    assert tokens.caller(Credential(US)) == Caller(OPERATOR, "", frozenset({"operate"}))
    for wrong in ("", ANN + "x", ANN[:-1], ANN.upper(), "\udcff"):
        assert tokens.caller(Credential(wrong)) is None
    assert len(read_tokens(None, None)) == 0
    assert Tokens().caller(Credential()) is None
    assert len(Tokens.of("")) == len(Tokens.of(None)) == 0


SCOPES = [  # scopes, may read, submit, operate; touches its own, another's
    (("read",), (True, False, False), (False, False)),
    (("submit",), (False, True, False), (True, False)),
    (("read", "submit"), (True, True, False), (True, False)),
    (("own",), (False, True, False), (True, False)),
    (("operate",), (True, True, True), (True, True)),
]


@pytest.mark.parametrize(("scopes", "may", "touches"), SCOPES)
def test_scopes(scopes, may, touches) -> None:
    one = Caller("x", "ann", frozenset(scopes))
    assert (one.may("read"), one.may("submit"), one.may("operate")) == may
    assert (one.may_touch("ann"), one.may_touch("bob")) == touches


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o644, 0o620, 0o602, 0o610, 0o666])
@pytest.mark.parametrize("which", ["ann", "us", "tokens.toml"])
def test_a_file_that_others_can_read_or_change_is_refused_with_the_remedy(
    folder: Path, which: str, mode: int
) -> None:
    (folder / which).chmod(mode)
    with pytest.raises(BadInput, match=f"mode {mode:o}.*chmod 600 {folder / which}") as no:
        read_tokens(folder / "tokens.toml", folder / "us")
    assert not any(secret in str(no.value) for secret in (ANN, BOB, US))


def test_the_file_that_is_read_is_the_one_that_is_judged(folder: Path) -> None:
    (folder / "link").symlink_to(folder / "ann")
    assert read_secret(folder / "link", "here") == ANN
    (folder / "ann").chmod(0o644)
    with pytest.raises(BadInput, match="chmod 600"):
        read_secret(folder / "link", "here")


WRONG = {
    "no TOML": ("[[token", "not a TOML file"),
    "nothing": ("", r"no \[\[token\]\] entry"),
    "neither": ('[[token]]\nname="a"\nscopes=["read"]\n', "needs one of file and certificate"),
    "both": ('[[token]]\nname="a"\nscopes=["read"]\nfile="ann"\ncertificate="a"\n', "needs one of file and"),
    "two with one certificate": (
        '[[token]]\nname="a"\nscopes=["read"]\ncertificate="x"\n'
        '[[token]]\nname="b"\nscopes=["read"]\ncertificate="x"\n',
        "another token has this certificate",
    ),
    "two certificates with one name": (
        '[[token]]\nname="a"\nscopes=["read"]\ncertificate="x"\n'
        '[[token]]\nname="a"\nscopes=["read"]\ncertificate="y"\n',
        "two certificates have the same name",
    ),
    "an unknown key": (FILE + "admin = true\n", "unknown field `admin`"),
    "an unknown scope": (FILE.replace('"submit"', '"root"'), "Invalid enum value 'root'"),
    "no scopes": (FILE.replace('["read"]', "[]"), r"token 2 \(board\): no scopes"),
    "submits for nobody": (FILE.replace('user = "ann"\n', ""), "needs a user"),
    "no name": (FILE.replace("ann-laptop", " "), "no printable name"),
    "a name twice": (FILE.replace("board", "ann-laptop"), "two tokens have the name ann-laptop"),
    "a secret twice": (FILE.replace('"bob"', '"ann"'), "ann-laptop and board have the same secret"),
    "no such file": (FILE.replace('"bob"', '"eve"'), r"token 2 \(board\): eve: cannot be read"),
    "a short secret": (FILE.replace('"bob"', '"short"'), "the secret is too short"),
    "two lines": (FILE.replace('"bob"', '"lines"'), "more than one line"),
}


@pytest.mark.parametrize(("text", "told"), WRONG.values(), ids=WRONG)
def test_what_is_wrong_with_a_file_is_said(folder: Path, text: str, told: str) -> None:
    private(folder / "short", "short")
    private(folder / "lines", "a line that is long\nand another")
    private(folder / "tokens.toml", text)
    with pytest.raises(BadInput, match=told) as no:
        read_tokens(folder / "tokens.toml", None)
    assert "--tokens" in str(no.value)
    assert not any(secret in str(no.value) for secret in (ANN, BOB, US))


def test_the_operator_s_secret_is_nobody_else_s(folder: Path) -> None:
    with pytest.raises(BadInput, match="--token-file and ann-laptop have the same secret"):
        read_tokens(folder / "tokens.toml", folder / "ann")


def test_every_token_is_compared_whichever_it_is(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tokens = read_tokens(folder / "tokens.toml", folder / "us")
    compared: list[int] = []
    really = hmac.compare_digest

    def counted(one: bytes, other: bytes) -> bool:
        compared.append(len(one))
        return really(one, other)

    monkeypatch.setattr(hmac, "compare_digest", counted)
    for given in (US, ANN, BOB, "", "x" * 10_000):
        compared.clear()
        tokens.caller(Credential(given))
        assert compared == [32, 32, 32]


def test_no_secret_is_kept_or_told(folder: Path, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG):
        tokens = read_tokens(folder / "tokens.toml", folder / "us")
        tokens.caller(Credential(ANN))
    shown = repr(vars(tokens)) + repr(tokens.caller(Credential(ANN))) + caplog.text
    assert not any(secret in shown for secret in (ANN, BOB, US))


def test_what_is_no_ordinary_file_is_refused(tmp_path: Path) -> None:
    for name in (tmp_path, tmp_path / "absent"):
        with pytest.raises(BadInput, match="cannot be read"):
            read_secret(name, "here")
    (tmp_path / "large").write_bytes(bytes(os.sysconf("SC_PAGE_SIZE")) * 300)
    (tmp_path / "large").chmod(0o600)
    with pytest.raises(BadInput, match="larger than"):
        read_secret(tmp_path / "large", "here")


def test_a_path_that_cannot_be_is_refused_by_its_entry(folder: Path) -> None:
    private(folder / "odd.toml", FILE.replace('"bob"', '"b\\u0000b"'))
    with pytest.raises(BadInput, match=r"token 2 \(board\)"):
        read_tokens(folder / "odd.toml", None)
