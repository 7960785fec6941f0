"""``yarnctl journal``: export a journal to Parquet, and delete the segments that an export holds.

An export only reads the journal, also that of a running daemon. Only ``prune`` deletes anything, and
nothing that it did not find in the export.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import click

from yarnctl.cli.cluster import ClusterOptions, cluster_of, cluster_options
from yarnctl.command_line import ProgressBar, lines_in, output_option, print_json, print_table
from yarnctl.errors import BadInput

if TYPE_CHECKING:
    from yarnctl.hadoop.webhdfs import WebHdfs
    from yarnctl.journal.exporting.export_folder import ExportFolder

_CLUSTER = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
_SCHEMES = {"hdfs": "", "webhdfs": "http", "swebhdfs": "https"}
"""The schemes of addresses, and those of a NameNode's HTTP port ("": it is configured)."""
FILE_MAX_BYTES = 1 << 30


@click.group(no_args_is_help=True)
def command() -> None:
    """Export a journal to Parquet, and delete the segments that an export holds."""


def _folder_options(to: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Add the journal, the export's folder and the options of its cluster."""

    def decorated(function: Callable[..., Any]) -> Callable[..., Any]:
        options = (
            click.argument("journal", metavar="FILE", type=click.Path(path_type=Path)),
            click.option(to, "place", required=True, metavar="DIR|hdfs://...", help="Folder of the export."),
            click.option(
                "--cluster",
                "cluster_name",
                default="default",
                show_default=True,
                metavar="NAME",
                help="Name of the cluster, a partition of the tables.",
            ),
            cluster_options,
            output_option,
        )
        for option in reversed(options):
            function = option(function)
        return function

    return decorated


@command.command("export")
@_folder_options("--to")
def export_command(
    journal: Path, place: str, cluster_name: str, cluster: ClusterOptions, output: str
) -> None:
    """Write what is new in FILE, a journal or a state directory, as tables of an hour each.

    Every file is read back and compared. A second run writes only hours that are new or have grown.
    """
    from yarnctl.journal.exporting.export import export
    from yarnctl.journal.file import journal_at
    from yarnctl.journal.pruned import left_of

    folder = _folder("--to", place, cluster)
    with ProgressBar("lines exported", lambda: lines_in(*left_of(journal_at(journal)).files)) as progress:
        done = export(journal, folder, _named(cluster_name), lambda line: progress.step())
    if output == "json":
        print_json(done)
        return
    print_table(
        ("table", "rows"),
        list(done.rows.items()),
        f"{done.where}: lines {done.first_line} to {done.last_line} in {done.hours} hours,"
        f" {done.written_hours} written now",
    )


@command.command("prune")
@_folder_options("--exported-to")
@click.option("--dry-run", is_flag=True, help="Delete nothing; show what would be deleted.")
def prune_command(
    journal: Path, place: str, cluster_name: str, cluster: ClusterOptions, output: str, dry_run: bool
) -> int:
    """Delete the oldest segments of FILE, after each row was found in the export.

    The file that is written to, the segment before it and the last exported hour stay.
    Exit with 1 if a segment stays because the export does not hold it.
    """
    from yarnctl.journal.exporting.pruning import prune
    from yarnctl.journal.file import journal_at
    from yarnctl.journal.pruned import left_of

    folder = _folder("--exported-to", place, cluster)
    with ProgressBar("lines compared", lambda: lines_in(*left_of(journal_at(journal)).files)) as progress:
        done = prune(
            journal, folder, _named(cluster_name), dry_run=dry_run, seen=lambda line: progress.step()
        )
    if output == "json":
        print_json(done)
    else:
        verb = "would delete" if dry_run else "deleted"
        click.echo(
            f"{verb} {len(done.deleted)} segments, {done.bytes} bytes; {len(done.kept)} files are left,"
            f" from line {done.first_line} on"
        )
        if done.problem:
            click.echo(done.problem)
    return 1 if done.problem else 0


def _named(cluster: str) -> str:
    if not _CLUSTER.fullmatch(cluster):
        raise BadInput("--cluster", f"invalid name {cluster[:80]!r}", "use letters, digits, '.', '_' and '-'")
    return cluster


def _folder(option: str, place: str, options: ClusterOptions) -> ExportFolder:
    """Return the folder that ``place`` names; raises BadInput."""
    from yarnctl.extras import require_extra
    from yarnctl.journal.exporting.export_folder import LocalFolder

    require_extra("export")
    if "://" not in place:
        return LocalFolder(Path(place))
    from yarnctl.checkpoint.opened_store import checked_root

    parts = urlsplit(place)
    if parts.scheme not in _SCHEMES:
        remedy = f"give a folder, or {', '.join(f'{each}://' for each in _SCHEMES)}"
        raise BadInput(option, f"unknown address {place[:80]!r}", remedy)
    root, scheme = checked_root(option, parts.path), _SCHEMES[parts.scheme]
    if scheme:
        hosts = tuple(f"{scheme}://{host}" for host in parts.netloc.split(",") if host)
        options = options._replace(name_nodes=options.name_nodes or hosts)
    known = cluster_of(options, yarn=False)
    if not known.name_nodes:
        remedy = "set --name-node http://HOST:9870, or HADOOP_CONF_DIR"
        raise BadInput(option, f"the NameNode of {place[:80]} is not known", remedy)
    return HdfsFolder(known.store(), root)


class HdfsFolder:
    """A folder in HDFS, through WebHDFS."""

    def __init__(self, hdfs: WebHdfs, root: str) -> None:
        self._hdfs, self._root, self.where = hdfs, root, f"hdfs:{root}"

    def put(self, name: str, data: bytes) -> None:
        """Write a file beside, and rename it over the one before. Raises as the client does."""
        place = f"{self._root}/{name}"
        folder, _, file = place.rpartition("/")
        beside = f"{folder}/.{file}.part"
        self._hdfs.make_directories(folder, mode=0o755)
        self._hdfs.create(beside, data, mode=0o644, overwrite=True)
        self._hdfs.rename(beside, place, overwrite=True)

    def get(self, name: str) -> bytes | None:
        """Return a file; None: there is none."""
        from yarnctl.hadoop.http.answers import Missing

        try:
            return self._hdfs.read(f"{self._root}/{name}", FILE_MAX_BYTES)
        except Missing:
            return None
