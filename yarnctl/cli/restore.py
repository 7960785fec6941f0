"""``yarnctl restore``: restore settings that yarnctl has lowered, by the records in HDFS, without a daemon.

Exit status 0: each wanted setting was restored, or belongs to its owner again; 1: some could not be restored
in time, and their records stay; 3: another process holds the lock and restores them, or no server answers.
"""

from __future__ import annotations

import secrets
import threading
import time
from collections.abc import Collection, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

import click

from yarnctl.cli.asking import plain
from yarnctl.cli.cluster import ClusterOptions, cluster_of, cluster_options
from yarnctl.cli.lock_options import LockOptions, lock_of, lock_options
from yarnctl.cli.settings_file import shared_with_run
from yarnctl.command_line import output_option, print_json, print_table
from yarnctl.errors import BadInput, Unreachable, nearest

if TYPE_CHECKING:
    from yarnctl.attach.port import AttachedPort
    from yarnctl.config import ClusterAddress
    from yarnctl.daemon.daemon_lock import NamedLock
    from yarnctl.deciding.model import Change
    from yarnctl.deciding.records import Restored
    from yarnctl.hadoop.webhdfs import WebHdfs

EVERY_S = 0.5  # The interval of readings; the lock is renewed with each
COLUMNS = ("kind", "target", "state", "by hand")


@click.command()
@click.argument("targets", metavar="[TARGET]...", nargs=-1)
@click.option("--all", "everything", is_flag=True, help="Restore every setting on record.")
@click.option(
    "--wait",
    "wait_s",
    type=click.IntRange(1, 3600),
    default=60,
    show_default=True,
    metavar="SECONDS",
    help="How long to read the settings until they are restored.",
)
@click.option(
    "--state-dir",
    type=click.Path(path_type=Path, file_okay=False, exists=True),
    help="State directory of the daemon that has ended on this host: its lock is taken at once.",
)
@shared_with_run(
    click.option(
        "--requests",
        default="/yarnctl/requests",
        show_default=True,
        help="HDFS folder of the daemon's requests.",
    )
)
@cluster_options
@lock_options
@output_option
def command(
    targets: tuple[str, ...],
    everything: bool,
    wait_s: int,
    state_dir: Path | None,
    requests: str,
    cluster: ClusterOptions,
    locking: LockOptions,
    output: str,
) -> int:
    """List settings that yarnctl has lowered; restore the TARGETs (queues, applications), or --all.

    A daemon restores them itself. This command works when none runs: it takes the daemon's lock meanwhile.
    """
    from yarnctl.attach.port import loop_manager
    from yarnctl.daemon.daemon_lock import make_lock
    from yarnctl.daemon.running import found_hdfs, hdfs_client
    from yarnctl.daemon.state_dir import StateDir
    from yarnctl.hadoop.lock import LOCK_PATH
    from yarnctl.restoring.change_file import stored_records

    if targets and everything:
        raise BadInput("--all", f"and TARGET {targets[0][:120]} are both given", "use one of them")
    lock_place, address = lock_of(locking), cluster_of(cluster)
    if not address.name_nodes:
        address = found_hdfs(address, required=True)
    loop_manager(address).identify()
    hdfs = hdfs_client(address)
    stored = stored_records(hdfs, LOCK_PATH)
    changes = [change for one in stored if one.record is not None for change in one.record.changes]
    _require_known(targets, changes)
    wanted = frozenset(targets) if targets else frozenset(change.target for change in changes)
    with ExitStack() as stack:
        place = ""
        if state_dir is not None:  # held meanwhile: no daemon runs on it, and none starts
            place = stack.enter_context(StateDir(state_dir, lambda: secrets.token_hex(4))).journal_path
        if not (targets or everything):
            return _print([(change, "lowered") for change in changes], output)
        lock = make_lock(lock_place, hdfs, f"restore-{secrets.token_hex(4)}", place, requests)
        stack.callback(lock.release)
        if not changes:
            if lock.acquire():  # no process leads, and nothing is lowered
                lock.forget_kind()
            elif lock.leader:
                click.echo(
                    f"{lock.leader} has the lock, so another kind of lock is not allowed yet", err=True
                )
            return _print([], output)
        is_clean = _acquire(lock)
        status = _restore(address, hdfs, lock, requests, wanted, wait_s, output, is_clean)
        if everything and not stored_records(hdfs, LOCK_PATH):
            lock.forget_kind()
        return status


def _require_known(targets: Sequence[str], changes: Sequence[Change]) -> None:
    known = {change.target for change in changes}
    for target in targets:
        if target not in known:
            remedy = nearest(target, known, "run yarnctl restore to list the settings")
            raise BadInput(f"TARGET {target[:120]}", "no record in HDFS names it", remedy)


def _acquire(lock: NamedLock) -> bool:
    """Take the lock; return whether its last holder certainly had released it.

    Raises Unreachable if another process holds it: its record changes.
    """
    seen, until_s = lock.current(), time.monotonic() + 2 * lock.ttl_ms / 1000
    if lock.acquire():
        return lock.kind == "hdfs" and (seen is None or seen.released)
    click.echo(f"waiting up to {lock.ttl_ms / 1000:.0f} s for the lock of a process that has ended", err=True)
    while not lock.acquire():
        now = lock.current()
        if seen is not None and now is not None and (now.term, now.beat) != (seen.term, seen.beat):
            problem = f"{now.holder} holds the lock and restores the settings itself"
            raise Unreachable(f"{problem}; stop it first, or see yarnctl check")
        if time.monotonic() > until_s:
            problem = f"{lock.leader} holds it" if lock.leader else "see yarnctl check"
            raise Unreachable(f"the lock could not be taken; {problem}")
        threading.Event().wait(EVERY_S)
    return False


def _restore(
    address: ClusterAddress,
    hdfs: WebHdfs,
    lock: NamedLock,
    requests: str,
    wanted: Collection[str],
    wait_s: int,
    output: str,
    is_clean: bool,
) -> int:
    """Restore and print; where the last holder may live, frozen, correct its late request, too."""
    from yarnctl.attach.connection.connection import Attachment
    from yarnctl.attach.port import attach
    from yarnctl.daemon.daemon_lock import lead
    from yarnctl.deciding.reasons.orders import OperatorRestores
    from yarnctl.deciding.records import Record, Restored
    from yarnctl.journal.rendering import text

    ended: list[Restored] = []

    def note(record: Record) -> None:
        if isinstance(record, Restored):
            ended.append(record)

    settings = Attachment(enforce=True, requests_root=requests, requests_owner=address.user)
    port: AttachedPort = attach(address, settings, lambda: time.time_ns() // 1_000_000)
    try:
        restorer = port.restorer
        restorer.write = note
        lead(restorer, lock, hdfs)
        until_s = time.monotonic() + wait_s
        while True:
            restorer.adopt()
            for one in restorer.open.values():
                one.why = OperatorRestores() if one.change.target in wanted else None
            port.restore_due()
            left = [one.change for one in restorer.open.values() if one.why is not None]
            is_done = restorer.is_current and not left and (is_clean or not restorer.is_watching)
            if is_done or time.monotonic() > until_s or not lock.renew():
                break
            threading.Event().wait(EVERY_S)
        last = {(one.kind, one.target): one for one in ended}  # a late request is restored again
        rows: list[tuple[Change | Restored, str]] = [(change, "not restored") for change in left]
        rows += [(record, text(record.why)) for record in last.values()]
        return _print(rows, output)
    finally:
        port.close()


def _print(rows: Sequence[tuple[Change | Restored, str]], output: str) -> int:
    """Print the settings; return 1 if some could not be restored."""
    from yarnctl.deciding.model import Change
    from yarnctl.restoring.change_file import command_for

    shown = [
        {
            "kind": one.kind,
            "target": plain(one.target),
            "state": state,
            "command": command_for(one) if isinstance(one, Change) else "",
        }
        for one, state in rows
    ]
    if output == "json":
        print_json({"settings": shown})
    elif not shown:
        click.echo("yarnctl has lowered no setting that is not restored")
    else:
        print_table(COLUMNS, [tuple(row.values()) for row in shown])
        if any(state == "lowered" for _, state in rows):
            click.echo("restore them: yarnctl restore --all")
    return 1 if any(state == "not restored" for _, state in rows) else 0
