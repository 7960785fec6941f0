"""Modelled tasks: containers that are occupied for as long as a timetable says, by the wall clock.

Law: the timetable is the actor's own, the same as in virtual time; what a reduce's runner does goes through
the real store. Only latencies of the wires make a difference between the two.
"""

from __future__ import annotations

from pathlib import Path
from typing import cast

from emulator.cluster.entities import MAP, NEVER, RELEASE_WAIT, Container
from emulator.cluster.task import SavedReduce as Saved
from emulator.cluster.task import key_end_ms
from emulator.live.master.attempts import Attempt, FinishedTask
from emulator.live.master.live_master import LiveMaster
from emulator.live.tasks.modelled_runner import ModelledRunners, RunnerHost, RunnerMemory, status_of
from emulator.live.wire.messages import MasterLaunch, Signal, TaskLaunch
from emulator.live.wire.submitted_job import ModelledJob
from yarnctl.errors import BadInput
from yarnctl.task_runner.runner.protocol.manifests import attempt_number
from yarnctl.task_runner.runner.protocol.stores import StoreError

STORE_THREADS = 4


class ModelledTasks(RunnerHost):
    """The tasks of one modelled job. ``poll_ms``: poll for requests so often where no doorbell can ring."""

    def __init__(self, launch: MasterLaunch, job: ModelledJob, work: Path, poll_ms: int = 0) -> None:
        self.job_id = launch.application.replace("application_", "job_", 1)
        super().__init__(launch, job, work, self.job_id)
        self.runners: ModelledRunners | None = None
        self._poll_ms = poll_ms

    def prepare(self, live: LiveMaster) -> None:
        """Get ready; open the store if the job's reduces carry a runner."""
        super().prepare(live)
        told = self.submitted.cmdenv
        if not self.submitted.runner or not told.get("YARNCTL_STORE"):
            return
        self.call_in_threads(STORE_THREADS)
        store = told["YARNCTL_STORE"]
        requests = told.get("YARNCTL_REQUESTS") or store.rstrip("/") + "/requests"
        owners = tuple(filter(None, (told.get("YARNCTL_REQUESTS_OWNER"),))) or (self._launch.user,)
        try:
            self.runners = ModelledRunners(self, store, requests, owners, self._launch.user)
        except StoreError as error:
            raise BadInput("YARNCTL_STORE", str(error)) from error
        if self._poll_ms:
            live.later(self._poll_ms, self._poll)

    def recover(self, done: dict[tuple[str, int], FinishedTask]) -> dict[tuple[str, int], FinishedTask]:
        """Return what is done; take over which checkpoints there are."""
        for (kind, task), finished in done.items():
            if kind == "saved" and ("reduce", task) not in done:
                told = finished.counters["checkpoint"]
                self.actor.store[task] = Saved(told["generation"], told["keys_done"])
                self.actor.keys.save(task, attempt_number(finished.attempt), 0, told["keys_done"])
        return {key: finished for key, finished in done.items() if key[0] != "saved"}

    def launch(self, attempt: Attempt) -> TaskLaunch:
        """Return the launch of a container without a process."""
        kind = "map" if attempt.is_map else "reduce"
        return TaskLaunch(
            container=attempt.container_id,
            application=self._launch.application,
            kind=kind,  # type: ignore[arg-type]
            modelled=True,
        )

    def begun(self, attempt: Attempt) -> None:
        """It runs from when its JVM would be up; a reduce's runner finds its checkpoint meanwhile."""
        super().begun(attempt)
        container = cast(Container, attempt.container)
        if container.kind != MAP and self.runners is not None:
            self.runners.begin(attempt, container)

    def ask_to_end(self, attempt: Attempt, ending: str) -> None:
        """Release an attempt whose work is saved, kill any other."""
        live, container = self.live, cast(Container, attempt.container)
        exit_at_ms = live.kernel.now_ms + live.timing.exit_ms
        if container.stage == RELEASE_WAIT:
            live.actor.suspended(container, exit_at_ms)
        else:
            live.actor.kill(container, ending, exit_at_ms)

    def poll(self, attempt: Attempt) -> None:
        """Derive the attempt's position from its timetable."""
        container = attempt.container
        if attempt.over or container is None or attempt.state != "RUNNING":
            return
        now_ms = self.live.kernel.now_ms
        if attempt.is_map:
            span_ms = max(1, container.length_ms)
            attempt.progress_ratio = min(1.0, max(0.0, (now_ms - container.work_at_ms) / span_ms))
        elif container.work_at_ms != NEVER:
            self._poll_reduce(attempt, container, now_ms)

    def _poll_reduce(self, attempt: Attempt, container: Container, now_ms: int) -> None:
        actor = self.actor
        if not attempt.merged_at_ms:
            returning_ms = actor.launching.return_ms(container.task, container.from_key) - self.job.shuffle_ms
            merged_ms = container.work_at_ms - (max(0, returning_ms) if container.resumed else 0)
            if now_ms < merged_ms:
                return
            attempt.shuffled_at_ms = attempt.merged_at_ms = merged_ms
        keys = self.job.reduce_keys[container.task]
        from_ms = key_end_ms(container.from_key, keys, container.length_ms)
        done_ms = from_ms + max(0, min(now_ms, container.finish_at_ms) - container.work_at_ms)
        attempt.progress_ratio = min(1.0, 2 / 3 + done_ms / max(1, container.length_ms) / 3)
        if isinstance(attempt.kept, RunnerMemory):
            attempt.status = status_of(container, actor, attempt.kept, now_ms)

    def notify(self, container: str, signal: Signal) -> None:
        """A doorbell was rung at a container of this job; other containers are none of ours."""
        for attempt in self.live.attempts.all.values():
            if attempt.container_id == container and not attempt.over and self.runners is not None:
                self.runners.notify(attempt)
                return

    def _poll(self, _: object) -> None:
        """Find which attempts have requests, and let those that run read them."""
        runners = self.runners
        assert runners is not None

        def listed(names: list[str]) -> None:
            for name in names:
                attempt = self.live.attempts.all.get(name)
                if attempt is not None and not attempt.over:
                    runners.notify(attempt)
            self.live.later(self._poll_ms, self._poll)

        self.ask(
            lambda: [entry.name for entry in runners.requests.list(self.job_id)],
            listed,
            lambda _: self.live.later(self._poll_ms, self._poll),
        )
