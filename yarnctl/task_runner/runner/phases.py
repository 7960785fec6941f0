"""Phases: an attempt resumes from a checkpoint if there is one, feeds its child, serves orders, and ends.

Law: all decisions are taken in one thread. Whatever fails, the output is byte for byte that of an
undisturbed run, or the exit status is not 0.
"""

from __future__ import annotations

import signal
import time
from typing import Mapping, Sequence

from yarnctl.task_runner.runner.attempt import STATUS_EVERY_S, AttemptState, StatusLines
from yarnctl.task_runner.runner.child import Leave, Wakeup, resolve
from yarnctl.task_runner.runner.child_life import ChildEnding, ChildStart
from yarnctl.task_runner.runner.feeding import Accounting, Feeder
from yarnctl.task_runner.runner.orders import Inbox, OrderAnswers, Watcher
from yarnctl.task_runner.runner.protocol.failures import (
    EXIT_UNPROVABLE,
    Discredited,
    StoreError,
    Unprovable,
)
from yarnctl.task_runner.runner.protocol.job_conf import Conf, Settings
from yarnctl.task_runner.runner.protocol.manifests import TaskId
from yarnctl.task_runner.runner.protocol.webhdfs_store import open_store
from yarnctl.task_runner.runner.reports import Errors
from yarnctl.task_runner.runner.resuming import Resuming
from yarnctl.task_runner.runner.saving import Saving, Suspending, WorkFolder


class Runner:
    """One attempt with its parts, and the order of its phases."""

    def __init__(
        self, settings: Settings, task: TaskId, words: Sequence[str], env: Mapping[str, str]
    ) -> None:
        argv = resolve(words)
        errors = Errors(settings.reporter_prefix)
        store = open_store(settings.store_url, settings.user, settings.secured)
        work = WorkFolder(Conf(env), store)
        self._requests = open_store(settings.requests_url, settings.user, settings.secured)
        settings = settings._replace(request_owners=settings.request_owners or (store.user,))
        wakeup = Wakeup()
        self.attempt = attempt = AttemptState(settings, task, words, store, errors, wakeup)
        self._inbox = Inbox(wakeup)
        self._lines = lines = StatusLines(attempt)
        answers = OrderAnswers(attempt, self._inbox, lines)
        self._starter = ChildStart(attempt, argv, env)
        self._ending = ChildEnding(attempt, answers, lines)
        self._accounting = accounting = Accounting(attempt, lines)
        self._feeder = Feeder(attempt, accounting, self._ending, lines)
        saving = Saving(attempt, work, accounting, answers, lines)
        self._suspending = Suspending(
            attempt, self._feeder, accounting, self._starter, self._ending, saving, answers, lines
        )
        self.resuming = Resuming(attempt, self._starter, answers, lines)
        self._began_s = time.monotonic()

    def watcher(self) -> Watcher:
        """Return a thread, not yet started, that looks for orders."""
        return Watcher(self._requests, self.attempt, self._inbox)

    def run(self) -> int:
        """Run the attempt and return its exit status."""
        attempt, errors = self.attempt, self.attempt.errors
        try:
            return self._phases()
        except Leave as leaving:
            return leaving.status
        except Unprovable as why:
            errors.note(f"this attempt ends here: {why}")
            if isinstance(why, Discredited) and attempt.manifest is not None:
                self.resuming.put_aside(attempt.manifest, str(why))
            return EXIT_UNPROVABLE
        except (StoreError, OSError) as why:
            errors.note(f"this attempt ends here: {why}")
            return EXIT_UNPROVABLE
        finally:
            if attempt.child is not None:
                attempt.child.kill(signal.SIGKILL)
            if errors.news:
                self._lines.say_position()  # the reducer's last status is the task's last

    def _phases(self) -> int:
        """Go through the phases and return the child's exit status."""
        attempt = self.attempt
        if attempt.manifest is None or not self.resuming.resume(attempt.manifest):
            self._starter.start()
        if attempt.resumed:
            attempt.back_ms = int((time.monotonic() - self._began_s) * 1000)
        self._lines.enter("run", self._lines.came_back())
        while self._step():
            pass
        return self._end()

    def _step(self) -> bool:
        """Do one small thing of the phase ``run``; return False at the end of the input."""
        task_input = self.attempt.input
        if self._inbox.waiting:
            self._suspending.serve(self._inbox.waiting.popleft())
        elif self._suspending.cuts and not self.attempt.why_not:
            self._suspending.feed_to_cut()
        elif not task_input.is_taken:
            self._feeder.feed_some()
        elif task_input.ended:
            return False
        else:
            task_input.fill(STATUS_EVERY_S)
        self._lines.tell(keep_alive=False)
        return True

    def _end(self) -> int:
        """Let the child finish after the last line and return its status."""
        child, late = self.attempt.child, "the input is at its end"
        assert child is not None
        self.attempt.scanner.finish()
        self._accounting.check_order()
        self._lines.enter("end")
        self._ending.let_read(child, late)
        child.close_input()
        self._ending.read_out(child, late)
        return child.status()
