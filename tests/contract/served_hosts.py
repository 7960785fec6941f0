"""The served hosts: the emulator behind real HTTP, in one process and in many.

Law: these are the programs of ``yarn-emulator`` with shorter heartbeats. Tasks of the one are timetables,
those of the other real processes; who asks cannot tell.
"""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

from emulator.live.programs.all_in_one import AllInOne, ClusterPlan, build
from emulator.live.programs.manager_program import Options, site_of
from emulator.live.rest.dialect import Version
from emulator.live.wire.http_server import bind, serve, url_of
from emulator.live.wire.submitted_job import StreamingJob, write_job
from tests.contract.emulated import NODES, SETTINGS, SLOTS, Emulated, modelled, patient
from tests.contract.host import PATIENCE_S, JobPlan
from tests.contract.over_http import OverHttp
from tests.hadoop.background import Background


class Served(OverHttp, Emulated):
    """A host behind HTTP, in real time."""


class LiveHost(Served):
    """ResourceManager, nodes and masters on one event loop, tasks are timetables."""

    def __init__(self, folder: Path, version: Version) -> None:
        made: list[AllInOne] = []

        def web(url: str) -> Any:
            plan = ClusterPlan(nodes=NODES, memory_mib=1024 * SLOTS, vcores=SLOTS)
            made.append(build(Options(work=folder, dialect=version), plan, url, SETTINGS))
            return made[0].web

        self._server = Background(web)
        super().__init__(f"live-{version}", version, self._server.url)
        self._server.__enter__()
        silent = list(made[0].nodes.values())[-1]
        self.silent_node = silent.name
        self._server.run(silent.leave)

    def job(self, plan: JobPlan) -> str:
        return modelled(plan)

    def close(self) -> None:
        self._server.stop()


class SeparateHost(Served):
    """ResourceManager, nodes, masters and tasks: each a process."""

    def __init__(self, folder: Path, version: Version) -> None:
        self._folder = folder
        self._input = folder / "input"
        self._input.mkdir(parents=True)
        (self._input / "part").write_text("a\t1\nb\t2\n")
        self._programs: list[subprocess.Popen[str]] = []
        work = str(folder / "work")
        manager = f"from tests.contract.served_hosts import manager; manager({work!r}, {version!r})"
        try:
            super().__init__(f"separate-{version}", version, said(self._start(manager))["url"])
            nodes = "from emulator.cli import main; main()"
            options = ("nm", "--rm", self.rm, "--work", work, "--slots", str(SLOTS), "--json")
            started = [self._start(nodes, *options) for _ in range(NODES)]
            names = [said(one)["nodes"][0] for one in started]
        except BaseException:
            self.close()
            raise
        silent, self.silent_node = started[-1], names[-1]
        silent.send_signal(signal.SIGKILL)
        silent.wait(PATIENCE_S)

    def _start(self, code: str, *arguments: str) -> subprocess.Popen[str]:
        program = subprocess.Popen(
            [sys.executable, "-c", code, *arguments], stdout=subprocess.PIPE, text=True
        )
        self._programs.append(program)
        return program

    def job(self, plan: JobPlan) -> str:
        """Return a streaming job's text; every map has a file of its own."""
        for number in range(1, plan.maps):
            (self._input / f"part{number}").write_text(f"c{number}\t1\n")
        files = sorted(str(path) for path in self._input.iterdir())[: plan.maps]
        waits = f"test $mapreduce_task_partition -lt {plan.done} ||"
        job = StreamingJob(
            name=plan.name, inputs=tuple(files), output=str(self._folder / f"out-{plan.name}"), mapper="cat",
            reducer=f"sh -c '{waits} exec sleep 3600; cat'" if plan.holds else "cat", reduces=plan.reduces,
            user=plan.user, queue=plan.queue, settings={"mapreduce.job.maps": str(plan.maps)},
        )  # fmt: skip
        return write_job(job)

    def close(self) -> None:
        """End every program."""
        for program in self._programs:
            program.terminate()
        for program in self._programs:
            program.wait(PATIENCE_S)
            if program.stdout is not None:
                program.stdout.close()


def said(program: subprocess.Popen[str]) -> dict[str, Any]:
    """Wait for the line that says that a program is ready; return it."""
    assert program.stdout is not None
    line = program.stdout.readline()
    assert line, f"{program.args!r} ended with {program.wait(PATIENCE_S)}"
    told: dict[str, Any] = json.loads(line)
    return told


def manager(work: str, version: Version) -> None:
    """Be the ResourceManager: that of ``yarn-emulator rm``, with the shorter spans."""
    listener = bind("127.0.0.1", 0)
    site = site_of(Options(work=Path(work), dialect=version), patient(SETTINGS), url_of(listener))
    serve(site.web, listener, lambda: print(json.dumps({"url": site.url}), flush=True))
