"""``yarnctl debug-dump``: everything is in the tar, and no secret is."""

from __future__ import annotations

import json
import tarfile
from pathlib import Path

import msgspec
import pytest

from tests.frozen.invoking import invoked
from tests.unit.hadoop.replaying import Heard, Replay, Reply
from tests.unit.service.conftest import TOKEN, Served
from yarnctl.cli.redacting import Redactor, is_secret
from yarnctl.deciding.reasons.modes import Paused

PASSWORDS = {
    "in a setting's file": "correct horse battery",
    "token of a user": "0123456789abcdef-user-ann",
    "in the environment": "hunter2-environment",
    "of a key in /conf": "wJalrXUtnFEMI/K7MDENG",
    "of an address": "pw0fProxy",
    "a header": "c3VwZXItc2VjcmV0",
    "Amazon's": "AKIAIOSFODNN7EXAMPLE",
    "of an option": "S3cr3tOfAnOption",
    "in a query": "delegation-4711",
    "a private key": "MIIEvQIBADANBgkqhkiG9w0BAQEFAASC",
    "a web token": "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.c2lnbmF0dXJl",
    "of the environment of a job": "p4ssOfJob",
}
TEXT = (
    f"https://ann:{PASSWORDS['of an address']}@proxy:3128 Authorization: Bearer {PASSWORDS['a header']} "
    f"{PASSWORDS['Amazon' + chr(39) + 's']} --password {PASSWORDS['of an option']} "
    f"?op=OPEN&delegation={PASSWORDS['in a query']} DB_PASSWORD={PASSWORDS['of the environment of a job']} "
    f"-----BEGIN RSA PRIVATE KEY-----\n{PASSWORDS['a private key']}\n-----END RSA PRIVATE KEY----- "
    f"{PASSWORDS['a web token']} {PASSWORDS[chr(105) + 'n a setting' + chr(39) + 's file']} "
    f"{PASSWORDS['token of a user']} {PASSWORDS['in the environment']}"
)
"""A text of a job's owner, or of an operator, with all of them."""
CONFIGURATION = {
    "properties": [
        {"key": "fs.s3a.secret.key", "value": PASSWORDS["of a key in /conf"], "isFinal": False},
        {"name": "javax.jdo.option.ConnectionPassword", "value": PASSWORDS["of a key in /conf"]},
        {"name": "yarn.resourcemanager.hostname", "value": "rm.example"},
    ]
}


def manager(heard: Heard) -> Reply:
    if heard.path == "/conf":
        return Reply(json.dumps(CONFIGURATION))
    return Reply(
        json.dumps({"clusterInfo": {"id": 1, "name": TEXT}, "apps": {"app": [{"diagnostics": TEXT}]}})
    )


@pytest.fixture
def written(served: Served, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Write a dump of a site with secrets everywhere; return its parts, and what the command printed."""

    def private(name: str, text: str) -> Path:
        file = tmp_path / name
        file.write_text(text)
        file.chmod(0o600)
        return file

    token = private("token", TOKEN)
    monkeypatch.setenv("YARNCTL_TOKEN_FILE", str(token))
    monkeypatch.setenv("MY_DB_PASSWORD", PASSWORDS["in the environment"])
    private("ann", PASSWORDS["token of a user"])
    tokens = private(
        "tokens.toml", '[[token]]\nname = "ann"\nuser = "ann"\nscopes = ["submit"]\nfile = "ann"\n'
    )
    operator = private("operator", PASSWORDS["in a setting's file"])
    state = tmp_path / "state"
    state.mkdir()
    records = [json.dumps({"type": "stance", "at_ms": n, "why": TEXT, "password": n}) for n in range(5_100)]
    (state / "journal.jsonl").write_text("\n".join([*records, TEXT.replace("\n", " ")]) + "\n")
    status = msgspec.structs.replace(served.view.loop, state="paused", why=(Paused(TEXT),), last_error=TEXT)
    served.view = msgspec.structs.replace(served.view, loop=status)
    with Replay(manager) as rm:
        config = private(
            "yarnctl.toml",
            f'[run]\nrm = ["{rm.url}"]\ntoken-file = "{operator}"\ntokens = "{tokens}"\n',
        )
        file = tmp_path / "dump.tar.gz"
        words = ["--config", str(config), "--state-dir", str(state), "--url", served.url]
        printed = invoked("debug-dump", "--write", str(file), *words)
        again = invoked("debug-dump", "--write", str(file), *words)
    with tarfile.open(file) as tar:
        parts = {one.name: tar.extractfile(one).read().decode() for one in tar.getmembers()}  # type: ignore[union-attr]
    assert file.stat().st_mode & 0o077 == 0
    return parts, printed, again


def test_no_secret_is_in_the_tar_and_everything_else_is(written) -> None:
    parts, printed, again = written
    assert printed["status"] == 0, printed
    whole = "\n".join(parts.values()) + "\n".join(printed["err"])
    secrets = {**PASSWORDS, "the operator's token": TOKEN}
    found = {name: next((part for part, text in parts.items() if secret in text), "printed")
        for name, secret in secrets.items() if secret in whole}  # fmt: skip
    assert found == {}
    assert "rm.example" in parts["yarnctl-dump/manager/configuration.json"]
    assert len(parts["yarnctl-dump/journal.jsonl"].splitlines()) == 5_000
    assert '"at_ms": 5099' in parts["yarnctl-dump/journal.jsonl"]
    assert json.loads(parts["yarnctl-dump/daemon/status.json"])["loop"]["loop_state"] == "paused"
    assert "yarnctl_build_info" in parts["yarnctl-dump/daemon/metrics.txt"]
    settings = json.loads(parts["yarnctl-dump/settings.json"])["settings"]
    assert next(one for one in settings if one["key"] == "run.tokens")["value"].endswith("/tokens.toml")
    assert (again["status"], "exists" in again["err"][0]) == (2, True)


def test_a_part_that_fails_is_named_and_the_others_are_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("YARNCTL_TOKEN_FILE", raising=False)
    file = tmp_path / "dump.tar"
    words = ["--rm", "http://127.0.0.1:1", "--state-dir", str(tmp_path), "--url", "http://127.0.0.1:1"]
    printed = invoked("debug-dump", "--write", str(file), *words)
    assert printed["status"] == 0
    assert any(line.startswith("missing: manager/info.json: ") for line in printed["err"])
    with tarfile.open(file) as tar:
        assert "yarnctl-dump/settings.json" in tar.getnames()


@pytest.mark.parametrize("guessed", [False, True])
def test_a_link_of_others_in_the_folder_is_not_written_through(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, guessed: bool
) -> None:
    monkeypatch.delenv("YARNCTL_TOKEN_FILE", raising=False)
    if guessed:
        monkeypatch.setattr("yarnctl.cli.debug_dump.secrets.token_hex", lambda size: "new")
    theirs, link, file = tmp_path / "theirs", tmp_path / ".dump.tar.new", tmp_path / "dump.tar"
    theirs.write_text("kept")
    link.symlink_to(theirs)
    words = ["--rm", "http://127.0.0.1:1", "--state-dir", str(tmp_path), "--url", "http://127.0.0.1:1"]
    printed = invoked("debug-dump", "--write", str(file), *words)
    assert printed["status"] == (2 if guessed else 0)
    assert theirs.read_text() == "kept"
    assert link.is_symlink()
    assert {each.name for each in tmp_path.iterdir()} == {"theirs", link.name} | (
        set() if guessed else {file.name}
    )
    assert guessed or file.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("secret", ["abc\"def\\ghi'jk", "zwölf Zeichen", "line\nbreak-secret"])
def test_a_known_secret_is_found_in_each_text_whatever_its_letters(secret: str) -> None:
    redactor = Redactor([secret])
    line = json.dumps({"note": f"before {secret} after", secret: [secret]}).encode()
    assert json.loads(redactor.lines([line])) == {"note": "before *** after", "***": ["***"]}


@pytest.mark.parametrize("key", ["fs.s3a.secret.key", "DB_PWD", "apiKey", "ssl.keystore.pass", "oauth.token"])
def test_keys_that_name_a_secret(key: str) -> None:
    assert is_secret(key)


@pytest.mark.parametrize("key", ["PWD", "OLDPWD", "YARNCTL_TOKEN_FILE", "token_over_http", "tokens", "keys"])
def test_keys_that_name_none(key: str) -> None:
    assert not is_secret(key)


@pytest.mark.parametrize(
    "secret",
    [
        {"passwords": ["hunter2", 4711]},
        {"api_key": 4711},
        {"credentials": {"ann": {"code": "hunter2", "pins": [4711, 0.4711]}}},
        {"name": "javax.jdo.option.ConnectionPassword", "value": ["hunter2"]},
    ],
)
def test_nothing_below_a_key_of_a_secret_stays(secret: dict[str, object]) -> None:
    redacted = json.dumps(Redactor().value(secret))
    assert "***" in redacted
    assert "hunter2" not in redacted
    assert "4711" not in redacted


def test_whether_a_secret_is_set_stays() -> None:
    unset: dict[str, object] = {
        "password": "",
        "secrets": [],
        "token": None,
        "webhook": {"credential": False},
    }
    assert Redactor().value(unset) == unset


def test_what_is_no_secret_stays() -> None:
    kept = {
        "token_over_http": False,
        "tokens": 3,
        "run": "http://rm:8088/ws",
        "why": "no token runs",
        "mib": 4,
    }
    assert Redactor().value(kept) == kept
