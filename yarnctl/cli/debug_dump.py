"""``yarnctl debug-dump``: one tar with what is needed to find a fault, without secrets. It only reads.

Each part is collected by itself: one that fails is named in ``about.json``. Exit status 0: the tar is
written.
"""

from __future__ import annotations

import io
import json
import os
import platform
import secrets
import tarfile
import time
import tomllib
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Literal

import click

from yarnctl.cli.asking import client_at, plain, url_option
from yarnctl.cli.cluster import (
    ClusterOptions,
    FolderOptions,
    QueueOptions,
    cluster_of,
    cluster_options,
    folder_options,
    queue_options,
)
from yarnctl.cli.redacting import Redactor, is_secret
from yarnctl.client.requesting import CREDENTIALS_ENV, send
from yarnctl.errors import BadInput, YarnctlError

RECORDS = 5_000
SECRET_BYTES = 65_536
"""A file of a setting that may hold a secret is read up to here."""
API = ("status", "snapshot", "applications", "reclaims", "decisions", "refusals", "time-lost", "report")
MANAGER = {
    "info": "/ws/v1/cluster/info",
    "metrics": "/ws/v1/cluster/metrics",
    "scheduler": "/ws/v1/cluster/scheduler",
    "scheduler-conf": "/ws/v1/cluster/scheduler-conf",
    "nodes": "/ws/v1/cluster/nodes",
    "applications": "/ws/v1/cluster/apps?states=ACCEPTED,RUNNING&limit=500",
    "configuration": "/conf",
}
"""Answers of the ResourceManager that the dump has."""

Parts = Iterator[tuple[str, Callable[[], bytes]]]


@click.command()
@click.option(
    "--write",
    "file",
    required=True,
    type=click.Path(path_type=Path, dir_okay=False),
    help="The tar to write, for example dump.tar.gz. It must not exist.",
)
@click.option(
    "--state-dir",
    type=click.Path(path_type=Path, file_okay=False),
    help="The daemon's state directory.  [default: by cluster, below ~/.local/state]",
)
@cluster_options
@queue_options
@folder_options
@url_option
def command(
    file: Path,
    state_dir: Path | None,
    cluster: ClusterOptions,
    queues: QueueOptions,
    folders: FolderOptions,
    url: str,
) -> None:
    """Write one tar with the check, the settings, the daemon's answers, its last records, and the cluster's.

    Passwords, tokens and keys are removed; names of users, queues, jobs and hosts stay. Read it before you
    send it.
    """
    if file.exists():
        raise BadInput("--write", f"{file} exists", "name another file")
    words = [] if cluster.config is None else ["--config", str(cluster.config)]
    redactor = Redactor(_known_secrets(words))
    contents: dict[str, bytes] = {}
    failed: dict[str, str] = {}
    for name, collect in _parts(words, state_dir, cluster, queues, folders, url, redactor):
        try:
            contents[name] = collect()
        except (YarnctlError, OSError, ValueError, click.ClickException) as error:
            said = error.format_message() if isinstance(error, click.ClickException) else str(error)
            failed[name] = redactor.text(f"{type(error).__name__}: {said}")
    about = {
        "yarnctl": version("yarnctl"),
        "python": platform.python_version(),
        "system": platform.platform(),
        "at_ms": time.time_ns() // 1_000_000,
        "failed": failed,
    }
    contents["about.json"] = json.dumps(about, indent=1).encode()
    try:
        _write(file, contents)
    except OSError as error:
        raise BadInput("--write", str(error), "use a folder that you may write") from None
    click.echo(f"{file}: {len(contents)} parts")
    for name, why in failed.items():
        click.echo(f"missing: {name}: {plain(why)[:300]}", err=True)


def _parts(
    words: list[str],
    state_dir: Path | None,
    cluster: ClusterOptions,
    queues: QueueOptions,
    folders: FolderOptions,
    url: str,
    redactor: Redactor,
) -> Parts:
    def as_json(value: Callable[[], object]) -> bytes:
        return json.dumps(redactor.value(value()), indent=1).encode()

    yield "settings.json", partial(as_json, partial(_settings, words))
    yield "check.json", partial(as_json, partial(_check, cluster, queues, folders))
    for name in API:
        answer = partial(lambda name: send(client_at(url).daemon, "GET", f"v1/{name}"), name)
        yield f"daemon/{name}.json", partial(as_json, answer)
    yield "daemon/metrics.txt", lambda: redactor.text(client_at(url).get_metrics()).encode()
    yield "journal.jsonl", lambda: redactor.lines(_records(_journal(state_dir, cluster)))
    for name, path in MANAGER.items():
        yield f"manager/{name}.json", partial(as_json, partial(_of_manager, cluster, path))


def _known_secrets(words: list[str]) -> Iterator[str]:
    """Yield the secrets that this site's settings and environment name."""
    from yarnctl.cli.config import settings_rows
    from yarnctl.config import read_document

    for name, value in os.environ.items():
        if is_secret(name):
            yield value
    files: list[Path] = []
    with suppress(YarnctlError, click.ClickException):  # the settings' own part reports it
        config, rows = settings_rows(words)
        files += [Path(str(value)) for key, value, *_ in rows if value and _may_hold_secret(key)]
        for table in ({} if config is None else read_document(config)).values():  # also what a flag replaces
            files += [Path(str(value)) for key, value in table.items() if _may_hold_secret(key)]
    files += [Path(os.environ[name]) for name in (CREDENTIALS_ENV,) if os.environ.get(name)]
    for file in files:
        yield from _in_file(file)


def _may_hold_secret(key: str) -> bool:
    return (
        any(part in key for part in ("token", "password", "secret", "tls-key", "webhook"))
        and "over" not in key
    )


def _in_file(file: Path) -> Iterator[str]:
    try:
        with file.open("rb") as opened:
            text = opened.read(SECRET_BYTES).decode("utf-8", "replace")
    except OSError:
        return
    yield text.strip()
    try:
        entries = tomllib.loads(text).get("token", [])
    except tomllib.TOMLDecodeError:
        yield from (line.strip() for line in text.splitlines())
        return
    for entry in entries if isinstance(entries, list) else []:
        if isinstance(entry, dict) and isinstance(entry.get("file"), str):
            yield from _in_file(file.parent / entry["file"])


def _settings(words: list[str]) -> object:
    from yarnctl.cli.config import settings_rows

    file, rows = settings_rows(words)
    keys = ("key", "value", "origin", "place")
    return {"file": str(file), "settings": [dict(zip(keys, row, strict=True)) for row in rows]}


def _check(cluster: ClusterOptions, queues: QueueOptions, folders: FolderOptions) -> object:
    import msgspec

    from yarnctl.attach.check.rules import findings_of
    from yarnctl.cli.check import examined

    results, steps = examined(cluster, queues, folders)
    return msgspec.to_builtins({"findings": findings_of(results), "next": steps})


def _journal(state_dir: Path | None, cluster: ClusterOptions) -> Path:
    from yarnctl.daemon.running import cluster_name
    from yarnctl.daemon.state_dir import default_path

    folder = state_dir or default_path(cluster_name(cluster_of(cluster)), os.environ)
    return folder / "journal.jsonl"


def _records(journal: Path) -> deque[bytes]:
    """Return the last lines of the newest two files of a journal."""
    from yarnctl.journal.segments import segments

    kept: deque[bytes] = deque(maxlen=RECORDS)
    for path in segments(journal)[-2:]:
        if path.suffix != ".gz":
            with path.open("rb") as file:
                kept.extend(file)
    return kept


def _of_manager(cluster: ClusterOptions, path: str) -> object:
    with cluster_of(cluster).transport() as transport:
        place, _, query = path.partition("?")
        pairs = dict(part.split("=", 1) for part in query.split("&")) if query else {}
        return json.loads(transport.fetch(place, pairs).body)


def _write(file: Path, contents: dict[str, bytes]) -> None:
    """Write the tar, whole or not at all, for its owner only; never into a file of others."""
    beside = file.with_name(f".{file.name}.{secrets.token_hex(4)}")
    mode: Literal["w:gz", "w"] = "w:gz" if file.suffix in (".gz", ".tgz") else "w"
    descriptor = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
    try:
        with os.fdopen(descriptor, "wb") as opened, tarfile.open(fileobj=opened, mode=mode) as tar:
            for name, content in sorted(contents.items()):
                member = tarfile.TarInfo(f"yarnctl-dump/{name}")
                member.size, member.mode, member.mtime = len(content), 0o600, int(time.time())
                tar.addfile(member, io.BytesIO(content))
        os.link(beside, file)
    finally:
        beside.unlink()
