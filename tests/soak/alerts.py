"""Each alert rule in a real Prometheus: its fault is planted on the live emulator; it fires, and resolves.

The rules are those of the package, with their times divided by ``FASTER``; so is the wait of ProductionWaits.
Prometheus reads ``/metrics`` of a daemon that is a process of its own. Faults are struck where a site would
have them: in the answers of the ResourceManager and of HDFS, in the daemon's process, in its journal.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Collection, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import yaml

from emulator.live.jobs.workload_replay import play as submit
from emulator.live.wire.web import Receive, Reply, Scope, Send, Web, send_reply
from tests import http_client
from tests.live.lowered_live import LONG_MS, Daemon, Queue, free_port
from tests.monitoring.promtool import RULES
from tests.soak.rig import wait_until
from yarnctl.deciding.reasons.demand import StandingAside
from yarnctl.deciding.records import FORMAT, Header, StoodAside
from yarnctl.deciding.settings import DEFAULT
from yarnctl.journal.file import JournalFile
from yarnctl.traces.job import Job

FASTER = 120
SECONDS = {"m": 60, "h": 3600}
THRESHOLDS = {
    "YarnctlLoopStuck": ("> 60", "> 3"),
    "YarnctlTicksFail": ("> 5", "> 1"),
    "ProductionWaits": ("> 600", "> 5"),
}
"""Bounds of spans and of counts in the rules' expressions, and what they are here."""
MANAGER, HDFS = "/ws/v1/cluster", "/webhdfs/"


class Faults(Web):
    """Serves another web; requests below the paths of ``down`` get 503, those of ``slow_s`` wait first."""

    def __init__(self, web: Web) -> None:
        super().__init__()
        self.on_start, self.on_stop, self.names = web.on_start, web.on_stop, web.names
        self._whole = web
        self.down: set[str] = set()
        self.no_puts = False
        self.slow_s: dict[str, float] = {}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """ASGI."""
        path = scope.get("path", "")
        is_put = self.no_puts and scope.get("method") == "PUT" and path.endswith("/scheduler-conf")
        if is_put or any(path.startswith(each) for each in self.down):
            await send_reply(send, Reply(503))
            return
        for place, span_s in list(self.slow_s.items()):
            if path.startswith(place) and scope.get("method") == "GET":
                await asyncio.sleep(span_s)
        await self._whole(scope, receive, send)


class Stage(Queue):
    """The cluster, a daemon that lowers research's queue for production, and Prometheus."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.daemon: Daemon | None = None
        self.port = free_port()

    def before_web(self, web: Web) -> Web:
        """Put the faults before the cluster's web."""
        self.faults = Faults(web)
        return self.faults

    def start(self, *options: str, enforce: bool = True, state: str = "state") -> None:
        """Start a daemon, after the one before has ended."""
        self.end()
        given = (*self.options, *options) if enforce else options
        self.daemon = Daemon(
            self.url, self.folder / state, *given, enforce=enforce, api=True, at_port=self.port
        )
        wait_until(self.answers, "the daemon answers")

    def end(self) -> None:
        """Stop the daemon."""
        if self.daemon is not None:
            self.daemon.end()
            self.daemon = None

    def answers(self) -> bool:
        """Return whether the daemon has done a tick."""
        try:
            return http_client.get(f"http://127.0.0.1:{self.port}/readyz", timeout=5).status_code == 200
        except OSError:
            return False

    def close(self) -> None:
        self.end()
        super().close()


class Prometheus:
    """Debian's prometheus over one daemon. Use as a context."""

    def __init__(self, program: str, folder: Path, target: int) -> None:
        folder.mkdir()
        rules, config = folder / "alerts.yaml", folder / "prometheus.yaml"
        rules.write_text(faster(RULES.read_text()))
        often = {"scrape_interval": "500ms", "scrape_timeout": "500ms", "evaluation_interval": "500ms"}
        jobs = [{"job_name": "yarnctl", "static_configs": [{"targets": [f"127.0.0.1:{target}"]}]}]
        config.write_text(json.dumps({"global": often, "rule_files": [str(rules)], "scrape_configs": jobs}))
        self.port = free_port()
        words = [f"--config.file={config}", f"--web.listen-address=127.0.0.1:{self.port}"]
        words += [f"--storage.tsdb.path={folder / 'data'}", "--log.level=error"]
        with (folder / "log").open("w") as log:
            self._process = subprocess.Popen([program, *words], stdout=log, stderr=log)

    def __enter__(self) -> Prometheus:
        """Return it once it answers."""
        wait_until(lambda: self._answer("/-/ready") is not None, "Prometheus is ready")
        return self

    def __exit__(self, *_: object) -> None:
        """End it."""
        self._process.terminate()
        self._process.wait(60)

    def _answer(self, path: str) -> Any:
        try:
            answer = http_client.get(f"http://127.0.0.1:{self.port}{path}", timeout=10)
        except OSError:
            return None
        return answer if answer.status_code == 200 else None

    def state(self, alert: str) -> str:
        """Return ``inactive``, ``pending`` or ``firing``."""
        answer = self._answer("/api/v1/rules?type=alert")
        (group,) = [] if answer is None else answer.json()["data"]["groups"]
        return next(str(rule["state"]) for rule in group["rules"] if rule["name"] == alert)


def faster(text: str) -> str:
    """Return the rules with all their times divided by ``FASTER``."""
    rules = yaml.safe_load(text)

    def short(span: str) -> str:
        return f"{max(1, round(int(span[:-1]) * SECONDS[span[-1]] * 1000 / FASTER))}ms"

    for rule in rules["groups"][0]["rules"]:
        known, here = THRESHOLDS.get(rule["alert"], ("", ""))
        assert known in rule["expr"]
        expr = rule["expr"].replace(known, here) if known else rule["expr"]
        rule["expr"] = re.sub(r"\[(\d+[mh])\]", lambda found: f"[{short(found[1])}]", expr)
        if "for" in rule:
            rule["for"] = short(rule["for"])
    return json.dumps(rules)


class Fault(NamedTuple):
    """``plant`` and ``mend`` act on the stage; before ``plant`` the daemon runs and enforces."""

    plant: Callable[[Stage], object]
    mend: Callable[[Stage], object]


def _down(path: str) -> Fault:
    return Fault(lambda stage: stage.faults.down.add(path), lambda stage: stage.faults.down.clear())


def _slow(path: str, span_s: float) -> Fault:
    return Fault(
        lambda stage: stage.faults.slow_s.update({path: span_s}), lambda stage: stage.faults.slow_s.clear()
    )


def _mode(stage: Stage, mode: str) -> None:
    url = f"{stage.url}{HDFS}v1/yarnctl/requests?op=SETPERMISSION&permission={mode}&user.name=yarnctl"
    assert http_client.put(url, timeout=60).status_code == 200


def _command(word: str) -> Callable[[Stage], None]:
    def send(stage: Stage) -> None:
        assert stage.daemon is not None
        stage.daemon.command(word)

    return send


def _restart_often(stage: Stage) -> None:
    for _ in range(4):
        stage.start()


def _pause_queue(stage: Stage) -> None:
    """Continue a journal in which freed containers went elsewhere."""
    stage.end()
    folder = stage.folder / "aside"
    folder.mkdir(mode=0o700)
    now_ms = time.time_ns() // 1_000_000
    orders = tuple((f"o-00000{number}", "application_1_0001") for number in (1, 2, 3))
    journal = JournalFile(folder / "journal.jsonl")
    why = StandingAside("root.production", now_ms + 600_000, orders, 10, "queue")
    journal.append([Header(FORMAT, DEFAULT, ()), StoodAside(now_ms, why)])
    journal.close()
    stage.start(state="aside")


def _leave_lowered(stage: Stage) -> None:
    stage.demand()
    wait_until(lambda: stage.value() != stage.before, "the queue is lowered")
    stage.faults.no_puts = True
    stage.end_demand()


def _allow_puts(stage: Stage) -> None:
    stage.faults.no_puts = False


def _end_demand(stage: Stage) -> None:
    stage.end_demand()
    stage.start()


def _wait_in_vain(stage: Stage) -> None:
    stage.start(enforce=False)
    stage.demand()


def _replace_research(stage: Stage, **job: Any) -> str:
    """End research and fill the cluster with another job of it; return the application's id."""
    for app in list(stage.whole.site.manager.register.unfinished.values()):
        if app.queue.endswith("research"):
            stage.end_application(app.id)
    new = Job(name="another", job_class="research", submitted_at_ms=0, user="alice", **job)
    (row,) = submit(stage.submitter, (new,), wait=False)
    wait_until(lambda: stage.allocated() >= 11, "research fills the cluster")
    return row.application


def _metric(stage: Stage, name: str) -> float:
    """Return the sum of a metric's samples, or the sample that is named whole; 0: none, or no answer."""
    try:
        answer = http_client.get(f"http://127.0.0.1:{stage.port}/metrics", timeout=5)
    except OSError:
        return 0.0
    lines = [line for line in answer.text.splitlines() if line.startswith((f"{name} ", f"{name}{{"))]
    return sum(float(line.rpartition(" ")[2]) for line in lines)


def _end_job_with_orders(stage: Stage) -> None:
    """An owner kills the job of which five tasks are under order; each needs 20 s before it can save."""
    victim = _replace_research(
        stage, map_ms=(200,), reduce_ms=(LONG_MS,) * 10, reduce_keys=(1_000,) * 10, shuffle_ms=100
    )
    stage.start("--in-flight", "1", "--in-flight-least", "8")
    stage.demand(maps=8)
    wait_until(lambda: _metric(stage, "yarnctl_open_orders") >= 5, "five tasks are under order")
    stage.end_application(victim)


def _spend_budget(stage: Stage) -> None:
    """Kill maps within a budget, then continue with one that is smaller than what was lost."""
    _replace_research(stage, map_ms=(LONG_MS,) * 10)
    stage.start(*MIX, "100%")
    stage.demand()
    wait_until(lambda: _metric(stage, "yarnctl_budget_lost_seconds") > 0, "a map is killed")
    stage.start(*MIX, "0.01%")


def _remove_checkpoints(stage: Stage) -> None:
    """Suspend tasks, remove what they have saved, and let them continue."""
    stage.demand()
    wait_until(lambda: _metric(stage, 'yarnctl_orders_ended_total{state="granted"}') >= 1, "a task has saved")
    for saved in (stage.whole.work / "hdfs/yarnctl/checkpoints").iterdir():
        shutil.rmtree(saved)
    stage.end_demand()


MIX = ("--eviction", "mix", "--may-lose")

FAULTS: dict[str, Fault] = {
    "YarnctlDown": Fault(Stage.end, Stage.start),
    "YarnctlNoLeader": _down(HDFS),
    "YarnctlLoopStuck": _slow(MANAGER, 30.0),
    "YarnctlClusterUnreachable": _down(MANAGER),
    "YarnctlRequestsFail": _down(HDFS),
    "YarnctlBlocked": Fault(lambda stage: _mode(stage, "777"), lambda stage: _mode(stage, "755")),
    "YarnctlPaused": Fault(_command("pause"), _command("continue")),
    "YarnctlQueuePaused": Fault(_pause_queue, _command("continue")),
    "YarnctlTicksFail": _down(HDFS),
    "YarnctlTicksSlow": _slow(MANAGER, 2.5),
    "YarnctlRestarts": Fault(_restart_often, lambda _: None),
    "YarnctlSettingLeftLowered": Fault(_leave_lowered, _allow_puts),
    "YarnctlOrdersFail": Fault(_end_job_with_orders, _end_demand),
    "YarnctlBudgetSpent": Fault(_spend_budget, lambda stage: stage.start(*MIX, "100%")),
    "YarnctlWorkLost": Fault(_remove_checkpoints, lambda _: None),
    "ProductionWaits": Fault(_wait_in_vain, _end_demand),
}
"""The fault of each rule."""


class Seen(msgspec.Struct):
    """``fired_s``: from the fault to the alert; ``resolved_s``: from its repair to the alert's end."""

    alert: str
    fired_s: float
    resolved_s: float


def play(alerts: Collection[str], folder: Path, program: str) -> list[Seen]:
    """Plant the fault of each alert, one after the other; AssertionError if one does not fire or resolve."""
    with ExitStack() as stack:
        stage = Stage(folder)
        stack.callback(stage.close)
        stage.fill()
        prometheus = stack.enter_context(Prometheus(program, folder / "prometheus", stage.port))
        return [_played(alert, stage, prometheus) for alert in alerts]


def _played(alert: str, stage: Stage, prometheus: Prometheus) -> Seen:
    def until(state: str, do: Callable[[Stage], object]) -> float:
        began_s = time.monotonic()
        do(stage)
        wait_until(lambda: prometheus.state(alert) == state, f"{alert} is {state}")
        return time.monotonic() - began_s

    until("inactive", Stage.start)
    fired_s = until("firing", FAULTS[alert].plant)
    return Seen(alert, fired_s, until("inactive", FAULTS[alert].mend))


def main(arguments: Sequence[str]) -> int:
    """Play all alerts, or those that are named."""
    parser = argparse.ArgumentParser(prog="python -m tests.soak alerts", description=__doc__)
    parser.add_argument("alerts", nargs="*", metavar="ALERT", help="rules to play (default: all)")
    wanted = parser.parse_args(arguments).alerts or list(FAULTS)
    program = shutil.which("prometheus")
    if program is None:
        print(
            "prometheus is missing: apt-get download prometheus, dpkg-deb -x, and set PATH", file=sys.stderr
        )
        return 2
    lost = 0
    for alert in wanted:
        with tempfile.TemporaryDirectory() as folder:
            try:
                (seen,) = play((alert,), Path(folder), program)
            except AssertionError as error:
                lost += 1
                print(f"{alert:<28} LOST: {error}")
            else:
                print(f"{alert:<28} fires after {seen.fired_s:.1f} s, resolves after {seen.resolved_s:.1f} s")
    print(f"{len(wanted) - lost} of {len(wanted)} fire and resolve")
    return int(lost > 0)
