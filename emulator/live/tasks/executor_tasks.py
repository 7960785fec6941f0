"""The executors of a modelled application of Spark: containers without processes, and how they are asked.

Law: the timetable is the actor's own, the same as in virtual time. A signal reaches the model of a container
that traps it; orders to the plugin are read from the real HDFS, each second as Spark's plugin does.
"""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import cast

from emulator.cluster.entities import Container
from emulator.cluster.executors.spark_master import ORDER_LOOK_MS
from emulator.live.master.attempts import Attempt, FinishedTask, TaskHistory
from emulator.live.master.live_driver import LiveDriver
from emulator.live.master.live_master import LiveMaster
from emulator.live.tasks.driver_plugin import PluginOrder, obey, orders_after
from emulator.live.wire.messages import MasterLaunch, Signal, TaskLaunch
from emulator.live.wire.submitted_job import ModelledJob
from emulator.workload.job import Job, SparkShape
from yarnctl.errors import BadInput
from yarnctl.task_runner.runner.protocol.stores import Store, StoreError, Unusable
from yarnctl.task_runner.runner.protocol.webhdfs_store import open_store


class ExecutorTasks:
    """The executors of one application."""

    actor_kind = LiveDriver
    modelled = True

    def __init__(self, launch: MasterLaunch, submitted: ModelledJob, work: Path) -> None:
        self.job: Job = submitted.job
        self._shape = cast(SparkShape, submitted.job.spark)
        self._told = submitted.cmdenv
        self._launch = launch
        staging = launch.application.replace("application_", "spark_", 1)
        self.history = TaskHistory((work / "staging" / staging).absolute())
        self._live: LiveMaster | None = None
        self._reader: ThreadPoolExecutor | None = None
        self._store: Store | None = None
        self._last = ""

    @property
    def live(self) -> LiveMaster:
        """The master whose executors these are."""
        assert self._live is not None
        return self._live

    @property
    def driver(self) -> LiveDriver:
        """The application's actor."""
        return cast(LiveDriver, self.live.actor)

    # --- beginning and end ----------------------------------------------------------------------

    def prepare(self, live: LiveMaster) -> None:
        """Get ready; open the folder of orders if a plugin is to read them."""
        self._live = live
        try:
            self.history.path.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise BadInput(
                f"staging {self.history.path.parent}", error.strerror or "cannot be made"
            ) from error
        orders = self._told.get("YARNCTL_REQUESTS", "")
        if self._shape.route != "plugin" or not orders:
            return
        try:
            self._store = open_store(orders, self._launch.user)
        except StoreError as error:
            raise BadInput("YARNCTL_REQUESTS", str(error)) from error
        self._reader = ThreadPoolExecutor(1, f"orders of {self._launch.application}")
        live.later(ORDER_LOOK_MS, self._look)

    def recover(self, done: dict[tuple[str, int], FinishedTask]) -> dict[tuple[str, int], FinishedTask]:
        """Return nothing: another driver begins anew, as Spark's does."""
        return {}

    def commit(self) -> None:
        """Do nothing: there are no files."""

    def abort(self) -> None:
        """Do nothing: there are no files."""

    def close(self) -> None:
        """Read no more orders."""
        if self._reader is not None:
            self._reader.shutdown(wait=False, cancel_futures=True)
            self._reader = None

    # --- attempts -------------------------------------------------------------------------------

    def launch(self, attempt: Attempt) -> TaskLaunch:
        """Return the launch of a container without a process."""
        return TaskLaunch(
            container=attempt.container_id,
            application=self._launch.application,
            kind="executor",
            modelled=True,
            traps_term=self._shape.route == "signal",
        )

    def begun(self, attempt: Attempt) -> None:
        """It runs from when its JVM would be up."""
        self.live.later(max(1, self.live.timing.launch_ms), self._up, attempt)

    @staticmethod
    def _up(attempt: Attempt) -> None:
        if not attempt.over:
            attempt.state = "RUNNING"

    def ended(self, attempt: Attempt) -> None:
        """Nothing is left of it."""

    def ask_to_end(self, attempt: Attempt, ending: str) -> None:
        """End an executor at once."""
        live, container = self.live, cast(Container, attempt.container)
        live.actor.kill(container, ending, live.kernel.now_ms + live.timing.exit_ms)

    def poll(self, attempt: Attempt) -> None:
        """An executor has no progress of its own."""

    def notify(self, container: str, signal: Signal) -> None:
        """A signal has arrived at a container, of this application or of another."""
        mine = self.live.containers.mirrors.get(container)
        if signal == "GRACEFUL_SHUTDOWN" and mine is not None:
            self.driver.signalled(mine.number)

    # --- the plugin's orders --------------------------------------------------------------------

    def _look(self, _: object) -> None:
        """Read new orders in a thread, and obey them on the event loop."""
        reader, store, last = self._reader, self._store, self._last
        if reader is None or store is None:
            return
        owner = self._told.get("YARNCTL_REQUESTS_OWNER") or self._launch.user
        start_ms = self.live.driver.wall_of(self.live.started_at_ms)
        folder = f"{self._launch.application}/driver-{start_ms}"
        loop = asyncio.get_running_loop()

        def read() -> None:
            try:
                found = orders_after(store, folder, owner, last)
            except (StoreError, Unusable, OSError):
                found = []
            loop.call_soon_threadsafe(lambda: self.live.around(lambda: self._seen(found)))

        reader.submit(read)

    def _seen(self, orders: list[PluginOrder]) -> None:
        for order in orders:
            self._last = order.name
            obey(self.driver, order)
        self.live.later(ORDER_LOOK_MS, self._look)
