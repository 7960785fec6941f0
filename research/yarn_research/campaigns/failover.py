"""``python -m yarn_research.campaigns.failover --output FILE``: two daemons, a real ZooKeeper, faults of the leader.

The rule, written before the first run:

* One ZooKeeper with its own ``tickTime`` of 2 s, a session of 6 s (three ticks, so it is granted as requested),
  the live emulator, research in all containers, and two daemons with ``--cap-queue``. Each fault begins with a
  leader and a standby, while production waits.
* 50 times the leader is killed (SIGKILL) while it has an order open and the maximum lowered, after a random part
  of a second.
* 20 times it is stopped (SIGSTOP) after its last check, right before the first byte of a call; the calls of
  ``CALLS`` take turns. The standby leads and serves; then the leader continues, and its call lands. A ``lower``
  or ``restore`` has left already and is held on its way, because the client does not send it after its own
  deadline. Before a ``lower`` lands production has ended, before a ``restore`` it waits again: each is wrong.
* 10 times its connection to ZooKeeper forwards nothing until the standby leads.
* *Without a leader*: from the kill, or the cut, until the standby's log says that it enforces. Target: at most
  the session and 2 s.
* An order of an old term counts as accepted if its file has a task's name after the next leader began. Target 0.
* A late ``lower`` or ``restore`` is wrong as long as the maximum is lowered without a record, or not lowered
  with one, after the leader continued. Target: each landed, and none is wrong for longer than 5 s.
* An attempt loses work if it is ended without a saved state of its own, and without the answer that the last one
  still holds. Target: no task twice.
* After each fault production ends; 60 s later no record is left and the maximum is the owner's. Target 0 left.
* A fault whose call is never reached within 60 s counts as not played. All others count.
"""

from __future__ import annotations

import contextlib
import os
import random
import re
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import click
import msgspec

from tests.hadoop.zookeeper import ZooKeeper
from tests.live.lowered_live import ROOT, Queue
from yarn_research.campaigns.bench import failure
from yarn_research.campaigns.kept_file import gone_on, keep
from yarn_research.campaigns.provenance import head, load, machine, now
from yarnctl.command_line import print_json

KIND = "failover"
SESSION_S, SLACK_S, CORRECTED_S, BACK_S, STEP_S, LANDED_S = 6, 2.0, 5.0, 60.0, 60.0, 8.0
CALLS = {
    "order": r"PUT op=RENAME.*request\.json|request\.json.*op=RENAME",
    "signal": r"POST /signal/",
    "end": r"PUT /attempts/[^/]+/state",
    "record": r"PUT \.changes-.*op=CREATE",
    "commit": r"PUT \.changes-.*op=RENAME",
    "lower": "change sent",
    "restore": "back sent",
    "remove": r"DELETE /changes-",
}
LEADS = "running (enforce)"


class Failovers(msgspec.Struct):
    """The whole file: ``head`` is of its first sitting, each row is a fault."""

    head: dict[str, Any]
    sittings: list[dict[str, Any]] = []
    faults: list[dict[str, Any]] = []
    ended: dict[str, bool] = {}


class Watched(Queue):
    """A cluster; ``ended``: attempts that a request has ended, and whether their work was saved."""

    def __init__(self, folder: Path) -> None:
        self.ended: dict[str, bool] = {}
        super().__init__(folder)

    def _name(self, method: str, path: str, query: str, body: bytes) -> str:
        if method == "PUT" and (match := re.search(r"/attempts/(attempt_[0-9_rm]+)/state", path)):
            kept = self.whole.work / "hdfs/yarnctl/checkpoints"
            self.ended.setdefault(match[1], any(match[1] in one.name for one in kept.rglob("*.json")))
        return super()._name(method, path, query, body)

    def requests(self, instance: str) -> set[str]:
        """Return the orders of one daemon that have a task's name."""
        folder = self.whole.work / "hdfs/yarnctl/requests"
        return {one.name for one in folder.rglob(f"{instance}*.request.json")}

    @property
    def is_consistent(self) -> bool:
        """Whether the maximum is lowered as a record says, and else is the owner's."""
        return (self.value() == self.before) == (not self.records)


class Line:
    """A connection to ZooKeeper that can be cut: then nothing is forwarded, and nothing is closed."""

    def __init__(self, port: int) -> None:
        self._to = port
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self.open = threading.Event()
        self.open.set()
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                near, _ = self._listener.accept()
                far = socket.create_connection(("127.0.0.1", self._to))
                for pair in ((near, far), (far, near)):
                    threading.Thread(target=self._forward, args=pair, daemon=True).start()

    def _forward(self, source: socket.socket, target: socket.socket) -> None:
        with contextlib.suppress(OSError), source, target:
            while data := source.recv(1 << 16):
                self.open.wait()
                target.sendall(data)


class Daemon:
    """A daemon and its log; ``armed``: the file that stops it before a call."""

    def __init__(self, rig: Watched, zookeeper: ZooKeeper, state: Path) -> None:
        self.line, self.state = Line(zookeeper.port), state
        self.armed = state.with_name(f"{state.name}-armed")
        self.lines: list[tuple[float, str]] = []
        words = [
            "run",
            "--rm",
            rig.url,
            "--state-dir",
            str(state),
            "--enforce",
            "--listen",
            "off",
            *rig.options,
        ]
        words += ["--lock", f"zookeeper://127.0.0.1:{self.line.port}/yarnctl"]
        words += ["--lock-session-s", str(SESSION_S)]
        self.process = subprocess.Popen(
            [sys.executable, "-m", "yarn_research.campaigns.failover_daemon", str(self.armed), *words],
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, cwd=ROOT,
            env={**os.environ, "PYTHONPATH": f"{ROOT}:{ROOT / 'research'}"},
        )  # fmt: skip
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.lines.append((time.monotonic(), line))

    @property
    def instance(self) -> str:
        """The name with which its orders begin."""
        return re.sub(r"\W", "", (self.state / "instance").read_text())

    def said(self, text: str, since: int = 0) -> float | None:
        """Return when it said a text first, after some lines (monotonic)."""
        return next((at_s for at_s, line in list(self.lines)[since:] if text in line), None)

    def is_stopped(self) -> bool:
        """Whether it is stopped by a signal."""
        stat = Path(f"/proc/{self.process.pid}/stat").read_text()
        return stat.rpartition(")")[2].split()[0] == "T"

    def end(self) -> None:
        """Kill it."""
        self.process.kill()
        self.process.wait()


def until(seen: Callable[[], object], what: str, within_s: float = STEP_S) -> None:
    """Wait until something is seen; raises TimeoutError."""
    ends_s = time.monotonic() + within_s
    while not seen():
        if time.monotonic() > ends_s:
            raise TimeoutError(f"not within {within_s:g} s: {what}")
        time.sleep(0.02)  # how exactly it is seen


class Site:
    """A leader, a standby, and what they act on."""

    def __init__(self, folder: Path, zookeeper: ZooKeeper) -> None:
        self.folder, self.zookeeper = folder, zookeeper
        (folder / "cluster").mkdir()
        self.rig = Watched(folder / "cluster")
        self.rig.renew()
        self.started = 0
        self.leader = self.start()
        until(lambda: self.leader.said(LEADS), "the first daemon leads")
        self.standby = self.start()
        until(lambda: self.standby.said("another yarnctl holds the lock"), "the second daemon waits")

    def start(self) -> Daemon:
        """Start a daemon with a state directory of its own."""
        self.started += 1
        return Daemon(self.rig, self.zookeeper, self.folder / f"state-{self.started}")

    def demand(self) -> None:
        """Let production wait until the leader has an order open and the maximum lowered."""
        since = len(self.leader.lines)
        self.rig.demand()
        until(
            lambda: self.leader.said("-> suspending", since) or self.leader.said(": suspending", since),
            "an order",
        )
        until(lambda: self.rig.value() != self.rig.before, "the maximum is lowered")

    def calm(self) -> bool:
        """End production; return whether all is as before within a minute."""
        self.rig.end_demand()
        with contextlib.suppress(TimeoutError):
            until(lambda: self.rig.value() == self.rig.before and not self.rig.records, "back", BACK_S)
            until(lambda: self.rig.allocated() >= 11, "research fills the cluster")
            return True
        return False

    def led_by_standby(self, since: int) -> float:
        """Wait until the standby leads; return when it said so."""
        until(lambda: self.standby.said(LEADS, since), "the standby leads")
        found = self.standby.said(LEADS, since)
        assert found is not None
        return found

    def close(self) -> None:
        """End all."""
        for each in (self.leader, self.standby):
            each.end()
        self.rig.close()


def kill(site: Site, chance: random.Random) -> dict[str, Any]:
    """Kill the leader; a new standby takes the other's place."""
    site.demand()
    time.sleep(chance.random())
    since = len(site.standby.lines)
    instance = site.leader.instance
    orders, killed_s = site.rig.requests(instance), time.monotonic()
    site.leader.end()
    without_s = site.led_by_standby(since) - killed_s
    site.leader, site.standby = site.standby, site.start()
    left = not site.calm()
    until(lambda: site.standby.said("another yarnctl holds the lock"), "the new standby waits")
    late = len(site.rig.requests(instance) - orders)
    return {"without_s": round(without_s, 2), "orders": len(orders), "late_orders": late, "left": left}


def stop(site: Site, call: str) -> dict[str, Any]:
    """Stop the leader before a call, let the standby lead, and let the call land."""
    rig, old, new = site.rig, site.leader, site.standby
    since, lands = len(new.lines), threading.Event()

    def hold() -> None:
        old.process.send_signal(signal.SIGSTOP)
        lands.wait(2 * STEP_S)

    if call in ("restore", "remove"):
        site.demand()
        time.sleep(1)
    if call in ("lower", "restore"):
        rig.trap.arm(CALLS[call], hold, drop=False)
    else:
        old.armed.write_text(CALLS[call])
    if call in ("restore", "remove"):
        rig.end_demand()
    else:
        rig.demand()
    until(old.is_stopped, f"the leader comes to {call}")
    stopped_s = time.monotonic()
    without_s = site.led_by_standby(since) - stopped_s
    if call in ("lower", "restore", "remove"):
        rig.end_demand()
        until(lambda: rig.value() == rig.before and not rig.records, "the standby restores", BACK_S)
    if call == "restore":
        rig.demand()
    if call == "restore":
        until(lambda: rig.is_consistent and rig.records, "the standby lowers", BACK_S)
    elif call not in ("lower", "remove"):
        time.sleep(2)  # the standby may order by itself
    orders, passed = rig.requests(old.instance), len(rig.trap.passed)
    lands.set()
    old.process.send_signal(signal.SIGCONT)
    began_s = time.monotonic()
    wrong_s, since_s = 0.0, 0.0
    while (now_s := time.monotonic()) - began_s < LANDED_S:
        since_s = 0.0 if rig.is_consistent else since_s or now_s
        wrong_s = max(wrong_s, now_s - since_s if since_s else 0.0)
        time.sleep(0.05)  # how exactly it is seen
    site.leader, site.standby = new, old
    return {
        "call": call, "without_s": round(without_s, 2),
        "wrong_s": round(wrong_s, 2) if call in ("lower", "restore") else 0.0,
        "landed": {"lower": "change done", "restore": "back done"}.get(call, "") in ("", *rig.trap.passed[passed:]),
        "late_orders": len(rig.requests(old.instance) - orders),
        "left": not site.calm(),
    }  # fmt: skip


def lose(site: Site) -> dict[str, Any]:
    """Cut the leader off from ZooKeeper until the standby leads."""
    old, new = site.leader, site.standby
    site.demand()
    since, since_old = len(new.lines), len(old.lines)
    cut_s = time.monotonic()
    old.line.open.clear()
    leads_s = site.led_by_standby(since)
    orders = site.rig.requests(old.instance)
    time.sleep(1)
    ended_s = min(
        (at for at, line in old.lines[since_old:] if re.search("blocked|waiting", line)), default=None
    )
    old.line.open.set()
    site.leader, site.standby = new, old
    left = not site.calm()
    return {
        "without_s": round(leads_s - cut_s, 2),
        "overlap_s": None if ended_s is None else round(max(0.0, ended_s - leads_s), 2),
        "late_orders": len(site.rig.requests(old.instance) - orders),
        "left": left,
    }


def judged(kept: Failovers) -> dict[str, Any]:
    """Return the figures of the rule."""
    rows = [row for row in kept.faults if "failed" not in row]
    lost = [attempt.rpartition("_")[0] for attempt, is_saved in kept.ended.items() if not is_saved]
    found: dict[str, Any] = {}
    for fault in ("kill", "stop", "lose"):
        mine = [row for row in rows if row["fault"] == fault]
        times = sorted(row["without_s"] for row in mine)
        found[fault] = {
            "played": len(mine),
            "without_s_median": times[len(times) // 2] if times else None,
            "without_s_max": max(times, default=None),
            "longer": sum(each > SESSION_S + SLACK_S for each in times),
        }
    return found | {
        "not_played": [row for row in kept.faults if "failed" in row],
        "late_orders": sum(row["late_orders"] for row in rows),
        "wrong_s_max": max((row["wrong_s"] for row in rows if "wrong_s" in row), default=None),
        "not_landed": sum(not row["landed"] for row in rows if "landed" in row),
        "attempts_ended": len(kept.ended),
        "lost_work": len(lost),
        "lost_work_twice": len({task for task in lost if lost.count(task) > 1}),
        "left": sum(row["left"] for row in rows),
    }


def turns(kills: int, stops: int, losses: int, calls: Sequence[str]) -> list[tuple[str, str]]:
    """Return the faults in their order: each kind is spread evenly, so that a part is like the whole."""
    placed = [((number + 0.5) / kills, "kill", "") for number in range(kills)]
    placed += [((number + 0.5) / stops, "stop", calls[number % len(calls)]) for number in range(stops)]
    placed += [((number + 0.5) / losses, "lose", "") for number in range(losses)]
    return [(fault, call) for _, fault, call in sorted(placed)]


@click.command(help=__doc__)
@click.option("--minutes", type=float, default=28, show_default=True, help="Begin no fault after this time.")
@click.option("--kills", type=int, default=50, show_default=True)
@click.option("--stops", type=int, default=20, show_default=True)
@click.option("--losses", type=int, default=10, show_default=True)
@click.option("--call", "calls", type=click.Choice(list(CALLS)), multiple=True, default=list(CALLS))
@click.option("--output", required=True, type=click.Path(path_type=Path, dir_okay=False))
def command(
    minutes: float, kills: int, stops: int, losses: int, calls: tuple[str, ...], output: Path
) -> None:
    """Play what is not played yet, then judge."""
    ends_s = time.monotonic() + 60 * minutes
    kept = gone_on(output, Failovers(head(KIND, session=f"{SESSION_S} s", tick="2 s")))
    kept.sittings.append({"began": now(), "machine": machine()})
    site: Site | None = None
    with (
        tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as name,
        ZooKeeper(Path(name) / "zookeeper") as zookeeper,
        contextlib.ExitStack() as stack,
    ):
        for number, (fault, call) in enumerate(turns(kills, stops, losses, calls)):
            if number < len(kept.faults):
                continue
            if time.monotonic() > ends_s:
                break
            row: dict[str, Any] = {"fault": fault, "load": load()}
            try:
                if site is None:
                    (Path(name) / f"{number}").mkdir()
                    site = Site(Path(name) / f"{number}", zookeeper)
                    stack.callback(site.close)
                chance = random.Random(number)
                row |= kill(site, chance) if fault == "kill" else stop(site, call) if call else lose(site)
            except (Exception, TimeoutError) as problem:
                row |= {"call": call, "failed": failure(problem)}
                if site is not None:
                    row["said"] = [
                        [line for _, line in each.lines[-8:]] for each in (site.leader, site.standby)
                    ]
                    site.close()
                    site = None
            kept.faults.append(row)
            if site is not None:
                kept.ended |= site.rig.ended
            keep(output, kept)
            click.echo(f"{number}: {row}", err=True)
    print_json(judged(kept))


if __name__ == "__main__":
    command()
