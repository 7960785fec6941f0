"""Recorded answers of a real Hadoop: taken, made small and free of chance, kept and compared.

Law: what is kept is what was said, but for ids, instants, addresses and builds, which are written alike each
time, and for long lists of settings, of which some are kept. ``python -m tests.contract.recording`` takes
them again (Java, Maven; some minutes).
"""

from __future__ import annotations

import json
import re
import tempfile
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import click

from tests.contract.host import Answer
from tests.contract.story import Told, tell

KEPT = Path(__file__).parent / "recorded"
VERSIONS = {"3.4": "3.4.2", "3.5": "3.5.0"}
"""Dialect -> the Hadoop that was recorded."""

EPOCH = "1700000000000"
SETTINGS_KEPT = (
    "dfs.permissions.enabled", "fs.defaultFS", "hadoop.security.authentication", "mapreduce.job.queuename",
    "mapreduce.job.reduces", "mapreduce.reduce.maxattempts", "stream.reduce.streamprocessor",
    "yarn.cluster.max-application-priority", "yarn.resourcemanager.scheduler.class",
    "yarn.scheduler.capacity.root.queues", "yarn.scheduler.capacity.root.research.maximum-capacity",
)  # fmt: skip
"""Of thousands of settings these are kept: some of a daemon, of the scheduler and of a job."""

ALIKE: tuple[tuple[str, str | Callable[[re.Match[str]], str]], ...] = (
    (r"(?<![0-9])1[6-9][0-9]{11}(?![0-9])", EPOCH),
    (r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:.]+(?:Z|[+-][0-9]{4})?", "2023-11-14T22:13:20Z"),
    (r"(application|appattempt|job|task|attempt|container)_1700000000000_[0-9]{4,}", rf"\1_{EPOCH}_0007"),
    (r"(?<![0-9.])(127\.0\.0\.1|localhost):[0-9]+", r"\1:8088"),
    (r"\b([0-9]\.[0-9]\.[0-9]) from [^\"]*", r"\1 from a build"),
    (r"/tmp/[^\"\s,]*/", "/work/"),
)
"""What is written alike, in this order."""


def body_of(answer: Answer) -> Any:
    """Return an answer's body: JSON as a value, else the text."""
    text = answer.body.decode("utf-8", "replace")
    try:
        return json.loads(text)
    except ValueError:
        return text


def entry(told: Told) -> dict[str, Any]:
    _, method, path, answer = told
    kept: dict[str, Any] = {"method": method, "path": path, "status": answer.status, "kind": answer.kind}
    if "location" in answer.headers:
        kept["location"] = answer.headers["location"]
    body = shortened(body_of(answer)) if answer.kind != "text/html" else "(a page)"
    return alike(kept | {"body": body})


def alike(value: Any) -> Any:
    """Return JSON without what differs from time to time."""
    text = json.dumps(value)
    for pattern, said in ALIKE:
        text = re.sub(pattern, said, text)
    return json.loads(text)


def shortened(value: Any) -> Any:
    """Return JSON with its lists of settings and of counters cut to what is kept."""
    if isinstance(value, dict):
        return {key: shortened(one) for key, one in value.items()}
    if isinstance(value, list):
        names = [str(one.get("key", one.get("name"))) if isinstance(one, dict) else "" for one in value]
        if len(value) > 20 and all("." in name for name in names[:3]):
            value = [one for one, name in zip(value, names, strict=True) if name in SETTINGS_KEPT]
        return [shortened(one) for one in value]
    return value


def load(version: str) -> dict[str, dict[str, Any]]:
    """Return the recorded answers of a dialect by name."""
    found: dict[str, dict[str, Any]] = json.loads((KEPT / f"{version}.json").read_text(encoding="utf-8"))
    return found


def save(version: str, told: Iterable[Told]) -> Path:
    """Write the answers of a dialect."""
    KEPT.mkdir(exist_ok=True)
    path = KEPT / f"{version}.json"
    rows = {one[0]: entry(one) for one in told}
    path.write_text(json.dumps(rows, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    return path


@click.command()
@click.option("--dialect", "versions", multiple=True, type=click.Choice(list(VERSIONS)), help="[both]")
def main(versions: tuple[str, ...]) -> None:
    """Start a real Hadoop of each dialect and record what it answers."""
    from tests.contract.hadoop_host import HadoopHost

    for version in versions or tuple(VERSIONS):
        with tempfile.TemporaryDirectory(prefix="yarnctl-recording-") as folder:
            host = HadoopHost(Path(folder), VERSIONS[version])
            try:
                click.echo(save(version, tell(host)))
            finally:
                host.close()


if __name__ == "__main__":
    main()
