"""Tasks without processes: what all jobs of timetables have in common, whatever framework they stand for.

Law: the timetable is the actor's own, the same as in virtual time. There are no files to put in place or to
remove; a store is called in threads, and what it said is handled on the event loop.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, TypeVar

from emulator.live.master.attempts import Attempt, TaskHistory
from emulator.live.master.live_master import LiveMaster, Tasks
from emulator.live.wire.messages import MasterLaunch
from emulator.live.wire.submitted_job import ModelledJob
from yarnctl.errors import BadInput
from yarnctl.task_runner.runner.protocol.stores import StoreError, Unusable
from yarnctl.traces.job import Job

T = TypeVar("T")


class Timetables(Tasks):
    """The tasks of one job; ``staging`` names its folder."""

    modelled = True

    def __init__(self, launch: MasterLaunch, job: ModelledJob, work: Path, staging: str) -> None:
        self.submitted = job
        self.job: Job = job.job
        self.history = TaskHistory((work / "staging" / staging).absolute())
        self._launch = launch
        self._threads: ThreadPoolExecutor | None = None
        self._loop: asyncio.AbstractEventLoop | None = None

    def prepare(self, live: LiveMaster) -> None:
        """Get ready."""
        super().prepare(live)
        try:
            self.history.path.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise BadInput(
                f"staging {self.history.path.parent}", error.strerror or "cannot be made"
            ) from error

    def call_in_threads(self, count: int) -> None:
        """Let ``ask`` call so many at a time; before that it asks nothing."""
        self._loop = asyncio.get_running_loop()
        self._threads = ThreadPoolExecutor(count, f"store of {self._launch.application}")

    def close(self) -> None:
        """Ignore later results of the store."""
        if self._threads is not None:
            self._threads.shutdown(wait=False, cancel_futures=True)
            self._threads = None

    def begun(self, attempt: Attempt) -> None:
        """It runs from when its JVM would be up."""
        self.live.later(max(1, self.live.timing.launch_ms), self._up, attempt)

    def _up(self, attempt: Attempt) -> None:
        if not attempt.over:
            attempt.state = "RUNNING"

    def ask(
        self, call: Callable[[], T], heard: Callable[[T], object], failed: Callable[[str], object]
    ) -> None:
        """Call in a thread; handle the result on the event loop."""
        threads, loop = self._threads, self._loop
        if threads is None or loop is None:
            return

        def work() -> None:
            try:
                answer = call()
            except (StoreError, Unusable, OSError) as error:
                why = str(error)
                loop.call_soon_threadsafe(lambda: self.live.around(lambda: failed(why)))
            else:
                loop.call_soon_threadsafe(lambda: self.live.around(lambda: heard(answer)))

        threads.submit(work)

    def later(self, span_ms: int, handler: Callable[[Any], object], argument: Any = None) -> None:
        """Call a handler after a span."""
        self.live.later(span_ms, handler, argument)
