"""``yarnctl runs``: show the known runs of applications, and import more from files.

A file is imported completely or not at all: the store is rewritten beside itself and renamed, under a lock.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from yarnctl.command_line import option_group, output_option, print_json, print_table
from yarnctl.errors import BadInput

if TYPE_CHECKING:
    from yarnctl.prediction.application_runs import KnownRun, RunColumns

STORE = "runs.jsonl"
FILE_BYTES_MAX = 64 << 20
IMPORT = "import"
DAEMON_RUNS_MAX = 1_000
SUMMARY = ("application", "kind", "runs", "containers", "seconds", "features", "R2", "below bound")


class TableOptions(NamedTuple):
    """What ``import`` reads from a table; names of columns, None or empty: not given."""

    application: str | None = None
    kind: str | None = None
    containers: str | None = None
    elapsed_s: str | None = None
    elapsed_ms: str | None = None
    features: str | None = None
    settings: str | None = None
    only: tuple[str, ...] = ()

    def first_given(self, *apart: str) -> str:
        """Return the first option that is given, without those ``apart``; "" if none is."""
        given = (name for name, value in self._asdict().items() if value and name not in apart)
        return next((f"--{name.replace('_', '-')}" for name in given), "")


_TABLE = (
    click.option(
        "--application", metavar="NAME", help="import: FILE is a table of runs of this application."
    ),
    click.option(
        "--kind",
        metavar="KIND",
        help="import: framework of the runs (mapreduce, spark, flink). Otherwise: show only runs on it.",
    ),
    click.option(
        "--containers", metavar="COLUMN", help="import: number of containers, with the application master's."
    ),
    click.option("--elapsed-s", metavar="COLUMN", help="import: run time in seconds."),
    click.option("--elapsed-ms", metavar="COLUMN", help="import: run time in milliseconds."),
    click.option("--features", metavar="A,B", help="import: columns of numbers that are known before a run."),
    click.option("--settings", metavar="A,B", help="import: columns of settings."),
    click.option(
        "--only", multiple=True, metavar="COLUMN=VALUE", help="import: read only these rows; repeatable."
    ),
)


@click.command()
@click.argument("words", nargs=-1, metavar="[APP] | import FILE")
@option_group(TableOptions, "table", _TABLE)
@click.option("--store", type=click.Path(path_type=Path, dir_okay=False), help="File with the known runs.")
@click.option("--url", help="Show also the runs in the journal of the daemon at this address.")
@click.option("--quality", is_flag=True, help="Show how well the runs of each application are predicted.")
@output_option
def command(
    words: tuple[str, ...],
    table: TableOptions,
    store: Path | None,
    url: str | None,
    quality: bool,
    output: str,
) -> None:
    """Show the runs of APP; without APP, the number and prediction quality of all runs; or import FILE.

    FILE is a table with column names in its first line (give --application, --kind, --containers and
    --elapsed-s), or has one run per line as JSON, as in the store.
    """
    from yarnctl.prediction.application_runs import merged

    path = store or default_store()
    if words[:1] == (IMPORT,):
        if len(words) != 2:
            raise BadInput(
                "import", f"requires one file, {len(words) - 1} given", "run yarnctl runs import FILE"
            )
        _import(Path(words[1]), path, table, output)
        return
    odd = table.first_given("kind") or (words[1] if len(words) > 1 else "")
    if odd:
        raise BadInput(odd, "requires import", "run yarnctl runs [APP], or yarnctl runs import FILE ...")
    known = merged(kept_runs(path), () if url is None else runs_at(url, None))
    _show(known, words[0] if words else None, table.kind, output, quality)


def default_store() -> Path:
    """Return the path of this user's file of runs."""
    root = os.environ.get("XDG_STATE_HOME") or str(Path("~/.local/state").expanduser())
    return Path(root) / "yarnctl" / STORE


def kept_runs(path: Path) -> tuple[KnownRun, ...]:
    """Return the runs of a store, none if the file is missing; BadInput names a line that is not a run."""
    from yarnctl.prediction.application_runs import runs_in_lines

    return runs_in_lines(_text(path), str(path)) if path.exists() else ()


def keep_run(path: Path, run: KnownRun) -> None:
    """Add one run to a store."""
    from yarnctl.prediction.application_runs import merged

    with _locked(path):
        _write(path, merged(kept_runs(path), (run,)))


def _import(file: Path, store: Path, table: TableOptions, output: str) -> None:
    from yarnctl.prediction.application_runs import merged, runs_in_lines, runs_in_table

    text = _text(file)
    if table.application is None:
        if odd := table.first_given():
            raise BadInput(odd, "requires --application", "add --application NAME")
        new = runs_in_lines(text, str(file))
    else:
        new = runs_in_table(text, str(file), _columns(table.application, table))
    if not new:
        raise BadInput(str(file), "contains no runs", "see yarnctl runs --help")
    with _locked(store):
        known = kept_runs(store)
        found = merged(known, new)
        _write(store, found)
    added = len(found) - len(known)
    if output == "json":
        print_json({"read": len(new), "added": added, "runs": len(found)})
    else:
        click.echo(f"{file}: {len(new)} runs, {added} new; {len(found)} runs known")


def _columns(application: str, table: TableOptions) -> RunColumns:
    from yarnctl.prediction.application_runs import RunColumns

    if not table.kind:
        raise BadInput("--kind", "is missing", "add --kind KIND")
    if not table.containers:
        raise BadInput("--containers", "is missing", "add --containers COLUMN")
    elapsed = table.elapsed_s or table.elapsed_ms
    if not elapsed or (table.elapsed_s and table.elapsed_ms):
        raise BadInput("--elapsed-s", "give exactly one of --elapsed-s and --elapsed-ms")
    only = dict(pair.partition("=")[::2] for pair in table.only)
    odd = next((pair for pair in table.only if "=" not in pair), None)
    if odd is not None:
        raise BadInput(f"--only {odd[:60]}", "has no =", "use COLUMN=VALUE")
    return RunColumns(
        application=application,
        kind=table.kind,
        containers=table.containers,
        elapsed=elapsed,
        unit_ms=1000 if table.elapsed_s else 1,
        features=_names(table.features),
        settings=_names(table.settings),
        only=only,
    )


def _names(text: str | None) -> Sequence[str]:
    return [name.strip() for name in (text or "").split(",") if name.strip()]


def _text(path: Path) -> str:
    try:
        if path.stat().st_size > FILE_BYTES_MAX:
            raise BadInput(str(path), "exceeds the maximum of 64 MiB", "import fewer runs at a time")
        return path.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise BadInput(str(path), f"cannot be read ({error.strerror})", "give a readable file") from None
    except UnicodeDecodeError:
        raise BadInput(str(path), "is not UTF-8 text", "give a table, or one run per line as JSON") from None


@contextmanager
def _locked(store: Path) -> Iterator[None]:
    """Hold the lock of a store: one process writes it at a time. Raises BadInput."""
    import fcntl

    try:
        store.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        lock = os.open(store.with_suffix(".lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise BadInput(f"--store {store}", f"cannot be locked ({error.strerror})") from None
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
    finally:
        os.close(lock)


def _write(store: Path, runs: Sequence[KnownRun]) -> None:
    from yarnctl.prediction.application_runs import identity

    unfinished = store.with_suffix(".tmp")
    try:
        with unfinished.open("wb") as file:
            file.writelines(identity(run) + b"\n" for run in runs)
            file.flush()
            os.fsync(file.fileno())
        unfinished.replace(store)
    except OSError as error:
        raise BadInput(f"--store {store}", f"cannot be written ({error.strerror})") from None


def runs_at(url: str, application: str | None) -> tuple[KnownRun, ...]:
    """Return the runs of the daemon at ``url``; raises Unreachable, and Different if it keeps none."""
    import msgspec

    from yarnctl.cli.asking import client_at
    from yarnctl.prediction.application_runs import KnownRun

    found = client_at(url).runs(application, DAEMON_RUNS_MAX).items
    return tuple(msgspec.convert(found, list[KnownRun], from_attributes=True))


def _show(
    runs: Sequence[KnownRun], application: str | None, kind: str | None, output: str, quality: bool
) -> None:
    chosen = [run for run in runs if application in (None, run.application) and kind in (None, run.kind)]
    if application is not None and not chosen:
        known = ", ".join(sorted({run.application for run in runs})) or "none"
        raise BadInput(application, "has no known runs", f"applications with runs: {known[:200]}")
    if output == "json":
        print_json(_learned(chosen) if quality else chosen)
    elif application is None or quality:
        print_table(SUMMARY, _summary(chosen))
    else:
        header = ("kind", "containers", "seconds", "features", "settings", "source")
        print_table(header, [_row(run) for run in chosen])


def _row(run: KnownRun) -> tuple[object, ...]:
    features = ", ".join(f"{name}={value:g}" for name, value in sorted(run.features.items()))
    settings = ", ".join(f"{name}={value}" for name, value in sorted(run.settings.items()))
    return (run.kind, run.containers, f"{run.elapsed_ms / 1000:g}", features, settings, run.source)


def _learned(runs: Sequence[KnownRun]) -> list[dict[str, Any]]:
    from yarnctl.prediction.application_options import learned_kinds
    from yarnctl.prediction.bounded_times import BETA

    return [each._asdict() for each in learned_kinds(runs, BETA)]


def _summary(runs: Sequence[KnownRun]) -> list[tuple[object, ...]]:
    """Return a row for each application and framework: the ranges of its runs, and the prediction quality.

    R2 and the share below the upper bound are measured on runs that the model was not fitted to; "-" where
    too few are known.
    """
    judged = {(each["application"], each["kind"]): each for each in _learned(runs)}
    found: dict[tuple[str, str], list[KnownRun]] = {}
    for run in runs:
        found.setdefault((run.application, run.kind), []).append(run)
    rows: list[tuple[object, ...]] = [
        (
            application,
            kind,
            len(each),
            _range(run.containers for run in each),
            _range(run.elapsed_ms / 1000 for run in each),
            ", ".join(sorted({name for run in each for name in run.features})),
            _figure(judged[application, kind]["r2"]),
            _figure(judged[application, kind]["covered_ratio"]),
        )
        for (application, kind), each in sorted(found.items())
    ]
    return rows


def _figure(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f}"


def _range(values: Iterator[float]) -> str:
    known = sorted(values)
    return f"{known[0]:g}" if known[0] == known[-1] else f"{known[0]:g} to {known[-1]:g}"
