"""The executors of a modelled application of Spark: containers without processes, and how they are asked.

Law: the timetable is the actor's own, the same as in virtual time. A signal reaches the model of a container
that traps it; orders to the plugin are read from the real HDFS, each second as Spark's plugin does.
"""

from __future__ import annotations

from pathlib import Path
from typing import cast

from emulator.cluster.entities import Container
from emulator.cluster.executors.spark_master import ORDER_LOOK_MS
from emulator.live.master.attempts import Attempt, FinishedTask
from emulator.live.master.live_driver import LiveDriver
from emulator.live.master.live_master import LiveMaster
from emulator.live.tasks.driver_plugin import PluginOrder, obey, orders_after
from emulator.live.tasks.timetables import Timetables
from emulator.live.wire.messages import MasterLaunch, Signal, TaskLaunch
from emulator.live.wire.submitted_job import ModelledJob
from yarnctl.errors import BadInput
from yarnctl.task_runner.runner.protocol.stores import Store, StoreError
from yarnctl.task_runner.runner.protocol.webhdfs_store import open_store
from yarnctl.traces.job import SparkShape


class ExecutorTasks(Timetables):
    """The executors of one application."""

    actor_kind = LiveDriver

    def __init__(self, launch: MasterLaunch, job: ModelledJob, work: Path) -> None:
        staging = launch.application.replace("application_", "spark_", 1)
        super().__init__(launch, job, work, staging)
        self._shape = cast(SparkShape, job.job.spark)
        self._store: Store | None = None
        self._last = ""

    @property
    def driver(self) -> LiveDriver:
        """The application's actor."""
        return cast(LiveDriver, self.live.actor)

    def prepare(self, live: LiveMaster) -> None:
        """Get ready; open the folder of orders if a plugin is to read them."""
        super().prepare(live)
        orders = self.submitted.cmdenv.get("YARNCTL_REQUESTS", "")
        if self._shape.route != "plugin" or not orders:
            return
        try:
            self._store = open_store(orders, self._launch.user)
        except StoreError as error:
            raise BadInput("YARNCTL_REQUESTS", str(error)) from error
        self.call_in_threads(1)
        self.driver.last_order = 0
        live.later(ORDER_LOOK_MS, self._look)

    def recover(self, done: dict[tuple[str, int], FinishedTask]) -> dict[tuple[str, int], FinishedTask]:
        """Return nothing: another driver begins anew, as Spark's does."""
        return {}

    def launch(self, attempt: Attempt) -> TaskLaunch:
        """Return the launch of a container without a process."""
        return TaskLaunch(
            container=attempt.container_id,
            application=self._launch.application,
            kind="executor",
            modelled=True,
            traps_term=self._shape.route == "signal",
        )

    def ask_to_end(self, attempt: Attempt, ending: str) -> None:
        """End an executor at once."""
        live, container = self.live, cast(Container, attempt.container)
        live.actor.kill(container, ending, live.kernel.now_ms + live.timing.exit_ms)

    def notify(self, container: str, signal: Signal) -> None:
        """A signal has arrived at a container, of this application or of another."""
        mine = self.live.containers.mirrors.get(container)
        if signal == "GRACEFUL_SHUTDOWN" and mine is not None:
            self.driver.signalled(mine.number)

    def _look(self, _: object) -> None:
        """Read new orders in a thread, and obey them on the event loop."""
        store, last = self._store, self._last
        if store is None:
            return
        owner = self.submitted.cmdenv.get("YARNCTL_REQUESTS_OWNER") or self._launch.user
        start_ms = self.live.driver.wall_of(self.live.started_at_ms)
        folder = f"{self._launch.application}/driver-{start_ms}"
        self.ask(lambda: orders_after(store, folder, owner, last), self._seen, lambda _: self._seen([]))

    def _seen(self, orders: list[PluginOrder]) -> None:
        for order in orders:
            self._last = order.name
            obey(self.driver, order)
            self.driver.last_order = int(order.name[:9])
        self.live.later(ORDER_LOOK_MS, self._look)
