"""``yarnctl runs``: the runs of applications that are known on this machine, and importing more from files.

Law: no cluster and no daemon is asked. A file is taken whole or not at all: what is known is written anew
beside itself and renamed, under a lock.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from yarnctl.command_line import output_option, print_json, print_table
from yarnctl.errors import BadInput, Unreachable

if TYPE_CHECKING:
    from yarnctl.prediction.application_runs import KnownRun, RunColumns

STORE = "runs.jsonl"
FILE_BYTES_MAX = 64 << 20
IMPORT = "import"
DAEMON_RUNS_MAX = 1_000
SUMMARY = ("application", "kind", "runs", "containers", "seconds", "features", "R2", "below bound")
TABLE_OPTIONS = (
    "application",
    "kind",
    "containers",
    "elapsed_s",
    "elapsed_ms",
    "features",
    "settings",
    "only",
)


@click.command()
@click.argument("words", nargs=-1, metavar="[APP] | import FILE")
@click.option(
    "--application", metavar="NAME", help="import: the file is a table, of runs of this application."
)
@click.option(
    "--kind", metavar="KIND", help="import: they ran on mapreduce, spark, flink, ...; else: only these."
)
@click.option("--containers", metavar="COLUMN", help="import: how many containers, the master's included.")
@click.option("--elapsed-s", metavar="COLUMN", help="import: how long a run took, in seconds.")
@click.option("--elapsed-ms", metavar="COLUMN", help="import: or in milliseconds.")
@click.option("--features", metavar="A,B", help="import: columns of numbers that are known before a run.")
@click.option("--settings", metavar="A,B", help="import: columns of settings.")
@click.option("--only", multiple=True, metavar="COLUMN=VALUE", help="import: just these rows; repeatable.")
@click.option(
    "--store", type=click.Path(path_type=Path, dir_okay=False), help="The file that runs are kept in."
)
@click.option("--url", help="Show those, too, that the daemon there has of its journal.")
@click.option("--quality", is_flag=True, help="Show how well the runs of each application are predicted.")
@output_option
def command(words: tuple[str, ...], store: Path | None, output: str, **given: Any) -> None:
    """Show the runs of APP, or how many of which there are and how well they are predicted; or import FILE.

    FILE is a table whose first line names columns (with --application, --kind, --containers, --elapsed-s),
    or has one run a line as JSON, as the store has them.
    """
    from yarnctl.prediction.application_runs import merged

    path = store or default_store()
    if words[:1] == (IMPORT,):
        if len(words) != 2:
            raise BadInput(
                "import", f"takes one file, and {len(words) - 1} are named", "write runs import FILE"
            )
        _import(Path(words[1]), path, given, output)
        return
    odd = next((name for name in TABLE_OPTIONS if given[name] and name != "kind"), None)
    if odd is not None or len(words) > 1:
        where = f"--{odd.replace('_', '-')}" if odd else words[1]
        raise BadInput(
            where, "belongs to import", "write yarnctl runs [APP], or yarnctl runs import FILE ..."
        )
    known = merged(kept_runs(path), () if given["url"] is None else _runs_at(given["url"]))
    _show(known, (words[0] if words else None, given["kind"]), output, given["quality"])


def default_store() -> Path:
    """Return where this user's runs are kept."""
    root = os.environ.get("XDG_STATE_HOME") or str(Path("~/.local/state").expanduser())
    return Path(root) / "yarnctl" / STORE


def kept_runs(path: Path) -> tuple[KnownRun, ...]:
    """Return the runs of a store; none where there is no file. BadInput names a line that is no run."""
    from yarnctl.prediction.application_runs import runs_in_lines

    return runs_in_lines(_text(path), str(path)) if path.exists() else ()


def keep_run(path: Path, run: KnownRun) -> None:
    """Add one run to a store."""
    from yarnctl.prediction.application_runs import merged

    with _locked(path):
        _write(path, merged(kept_runs(path), (run,)))


def _import(file: Path, store: Path, given: dict[str, Any], output: str) -> None:
    from yarnctl.prediction.application_runs import merged, runs_in_lines, runs_in_table

    text = _text(file)
    if given["application"] is None:
        odd = next((name for name in TABLE_OPTIONS if given[name]), None)
        if odd is not None:
            told = "is of a table, and no --application says whose runs it has"
            raise BadInput(f"--{odd.replace('_', '-')}", told, "give --application NAME")
        new = runs_in_lines(text, str(file))
    else:
        new = runs_in_table(text, str(file), _columns(given))
    if not new:
        raise BadInput(str(file), "holds no run", "see yarnctl runs --help")
    with _locked(store):
        known = kept_runs(store)
        found = merged(known, new)
        _write(store, found)
    added = len(found) - len(known)
    if output == "json":
        print_json({"read": len(new), "added": added, "runs": len(found)})
    else:
        click.echo(f"{file}: {len(new)} runs, {added} of them new; {len(found)} are known now")


def _columns(given: dict[str, Any]) -> RunColumns:
    from yarnctl.prediction.application_runs import RunColumns

    for name in ("kind", "containers"):
        if not given[name]:
            raise BadInput(f"--{name}", "is missing", "a table needs it")
    if (given["elapsed_s"] is None) == (given["elapsed_ms"] is None):
        raise BadInput("--elapsed-s", "or --elapsed-ms names the time, and one of them", "give one")
    only = dict(pair.partition("=")[::2] for pair in given["only"])
    odd = next((pair for pair in given["only"] if "=" not in pair), None)
    if odd is not None:
        raise BadInput(f"--only {odd[:60]}", "is no COLUMN=VALUE")
    return RunColumns(
        application=given["application"],
        kind=given["kind"],
        containers=given["containers"],
        elapsed=given["elapsed_s"] or given["elapsed_ms"],
        unit_ms=1000 if given["elapsed_s"] else 1,
        features=_names(given["features"]),
        settings=_names(given["settings"]),
        only=only,
    )


def _names(text: str | None) -> Sequence[str]:
    return [name.strip() for name in (text or "").split(",") if name.strip()]


def _text(path: Path) -> str:
    try:
        if path.stat().st_size > FILE_BYTES_MAX:
            raise BadInput(str(path), "is larger than 64 MiB", "give fewer runs at a time")
        return path.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise BadInput(str(path), f"cannot be read ({error.strerror})", "name a readable file") from None
    except UnicodeDecodeError:
        raise BadInput(str(path), "is no text", "give a table, or runs as JSON, one a line") from None


@contextmanager
def _locked(store: Path) -> Iterator[None]:
    """Let one process at a time write a store."""
    import fcntl

    try:
        store.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        lock = os.open(store.with_suffix(".lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise BadInput(f"--store {store}", f"cannot be used ({error.strerror})") from None
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
    finally:
        os.close(lock)


def _write(store: Path, runs: Sequence[KnownRun]) -> None:
    """Replace a store at once."""
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


def _runs_at(url: str) -> tuple[KnownRun, ...]:
    """Return the runs that the daemon at ``url`` has."""
    import msgspec

    from yarnctl.cli.asking import ask_all
    from yarnctl.prediction.application_runs import KnownRun

    answer = ask_all(url, "v1/runs", {}, DAEMON_RUNS_MAX)
    try:
        return tuple(msgspec.convert(answer["items"], list[KnownRun]))
    except msgspec.ValidationError as error:
        raise Unreachable(f"{url}: answers, but not with runs ({error})") from None


def _show(runs: Sequence[KnownRun], of: tuple[str | None, str | None], output: str, quality: bool) -> None:
    application, kind = of
    chosen = [run for run in runs if application in (None, run.application) and kind in (None, run.kind)]
    if application is not None and not chosen:
        known = ", ".join(sorted({run.application for run in runs})) or "none"
        raise BadInput(application, "has no runs", f"known are: {known[:200]}")
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
    """Return how well the runs of each application and kind are predicted by the others."""
    from yarnctl.prediction.application_options import learned_kinds
    from yarnctl.prediction.upper_bounds import BETA

    return [each._asdict() for each in learned_kinds(runs, BETA)]


def _summary(runs: Sequence[KnownRun]) -> list[tuple[object, ...]]:
    """Return a row for each application and kind: the ranges of its runs, and how well they are predicted.

    R2 and the share below the upper bound are of runs that were left out; "-" where too few are known.
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
