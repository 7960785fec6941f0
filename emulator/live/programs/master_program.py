"""One master in a process of its own (``yarn-emulator am``): its REST, its clients over HTTP, its end.

Law: it leaves when its job is over (status 0 if it could say farewell) or when its node stops it; a
ResourceManager that does not answer is waited for.
"""

from __future__ import annotations

import os
import signal
import socket
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from emulator.cluster.kernel import Kernel
from emulator.live.master.live_master import LiveMaster
from emulator.live.master.master_rest import master_web
from emulator.live.programs.master_setup import open_master
from emulator.live.wire.guard import name_in
from emulator.live.wire.http_calls import HttpContainerService, HttpMasterService
from emulator.live.wire.master_calls import ThreadedCarrier
from emulator.live.wire.messages import MasterLaunch
from emulator.live.wire.real_time_driver import Pace
from emulator.live.wire.web import Web


@dataclass
class MasterProgram:
    """The process of one attempt at one application. ``host`` is the name others reach it under."""

    launch: MasterLaunch
    rm: str
    work: Path
    host: str
    bind: str
    url: str
    say: Callable[[str], None]
    status: int = 1
    _live: LiveMaster | None = None
    _ending: bool = False

    def web(self) -> Web:
        """Return what to serve; serving it starts the master."""
        web = Web()
        web.names.add(name_in(self.url))
        web.on_start.append(lambda: self._start(web))
        web.on_stop.append(self._stop)
        return web

    def _start(self, web: Web) -> None:
        clients: dict[str, HttpContainerService] = {}

        def node(address: str) -> HttpContainerService:
            if address not in clients:
                clients[address] = HttpContainerService(address)
            return clients[address]

        live = self._live = open_master(
            self.launch,
            rm=HttpMasterService(self.rm),
            nodes=node,
            carrier=ThreadedCarrier(lambda heard: live.around(heard)),
            pace=Pace(Kernel()),
            work=self.work,
            gone=self._gone,
            host=self.host,
            bind=self.bind,
            poll_ms=1000,
        )
        master_web(live, web)
        live.start(self.url)

    def _gone(self, status: int, why: str) -> None:
        self.status = status
        if why:
            self.say(why)
        if not self._ending:
            self._ending = True
            os.kill(os.getpid(), signal.SIGTERM)  # the server's own way to end

    def _stop(self) -> None:
        self._ending = True
        if self._live is not None:
            self._live.end()


def run_master(program: MasterProgram, listener: socket.socket) -> int:
    """Be the master until its job is over; return the exit status."""
    from emulator.live.wire.http_server import serve

    serve(program.web(), listener)
    return program.status
