"""The program: ``[options] -- reducer...``; an attempt with its phases, or the original reducer untouched.

Before anything was read or written every failure ends in the original reducer. Whatever fails later, the
output is byte for byte that of an undisturbed run, or the exit status is not 0.
"""

from __future__ import annotations

import os
import select
import signal
import sys
import time
from typing import Any, Mapping, NoReturn, Sequence

from yarnctl.task_runner.runner.attempt import STATUS_EVERY_S, AttemptState
from yarnctl.task_runner.runner.child import Leave, check_pipes, resolve, widen_pipe
from yarnctl.task_runner.runner.feeding import ChildLife, Feeder
from yarnctl.task_runner.runner.orders import OrderAnswers, Watcher
from yarnctl.task_runner.runner.protocol.job_conf import Conf, Settings, read_settings
from yarnctl.task_runner.runner.protocol.manifests import TaskId
from yarnctl.task_runner.runner.protocol.stores import (
    EXIT_UNPROVABLE,
    InvalidCheckpoint,
    StoreError,
    Unprovable,
    Unusable,
    without_secrets,
)
from yarnctl.task_runner.runner.protocol.webhdfs_store import open_store
from yarnctl.task_runner.runner.reports import Errors
from yarnctl.task_runner.runner.resuming import Resuming
from yarnctl.task_runner.runner.saving import Suspending, WorkFolder


class Runner:
    """One attempt: it resumes from a checkpoint if there is one, feeds its child, serves orders, and ends."""

    def __init__(
        self, settings: Settings, task: TaskId, words: Sequence[str], env: Mapping[str, str]
    ) -> None:
        argv = resolve(words)
        store = open_store(settings.store_url, settings.user, settings.secured)
        self._requests = open_store(settings.requests_url, settings.user, settings.secured)
        settings = settings._replace(request_owners=settings.request_owners or (store.user,))
        errors = Errors(settings.reporter_prefix)
        self.attempt = attempt = AttemptState(settings, task, words, store, errors)
        answers = OrderAnswers(attempt)
        self._life = ChildLife(attempt, argv, env, answers)
        self._feeder = Feeder(attempt, self._life)
        work = WorkFolder(Conf(env), store)
        self._suspending = Suspending(attempt, work, self._feeder, self._life, answers)
        self.resuming = Resuming(attempt, self._life, answers)
        self._began_s = time.monotonic()

    def watcher(self) -> Watcher:
        """Return a thread, not yet started, that polls for orders."""
        return Watcher(self._requests, self.attempt)

    def run(self) -> int:
        """Run the attempt and return its exit status."""
        attempt, errors = self.attempt, self.attempt.errors
        try:
            return self._phases()
        except Leave as leaving:
            return leaving.status
        except Unprovable as why:
            errors.note(f"attempt aborted: {why}")
            if isinstance(why, InvalidCheckpoint) and attempt.manifest is not None:
                self.resuming.put_aside(attempt.manifest, str(why))
            return EXIT_UNPROVABLE
        except (StoreError, OSError) as why:
            errors.note(f"attempt aborted: {why}")
            return EXIT_UNPROVABLE
        finally:
            if attempt.child is not None:
                attempt.child.kill(signal.SIGKILL)
            if errors.news:
                attempt.lines.report_position()  # the reducer's last status is the task's last

    def _phases(self) -> int:
        attempt = self.attempt
        if attempt.manifest is None or not self.resuming.resume(attempt.manifest):
            self._life.start()
        if attempt.resumed:
            attempt.back_ms = int((time.monotonic() - self._began_s) * 1000)
        attempt.lines.enter("run", attempt.lines.came_back() + attempt.lines.for_bell())
        while self._step():
            pass
        return self._end()

    def _step(self) -> bool:
        task_input = self.attempt.input
        if self.attempt.requests:
            self._suspending.serve(self.attempt.requests.popleft())
        elif self._suspending.cuts and not self.attempt.why_not:
            self._suspending.feed_to_cut()
        elif not task_input.is_taken:
            self._feeder.feed_some()
        elif task_input.ended:
            return False
        else:
            task_input.fill(STATUS_EVERY_S)
        self.attempt.lines.report(keep_alive=False)
        return True

    def _end(self) -> int:
        attempt, child, late = self.attempt, self.attempt.child, "the input is at its end"
        assert child is not None
        attempt.scanner.finish()
        attempt.check_order()
        attempt.lines.enter("end")
        self._life.let_read(child, late)
        child.close_input()
        self._life.read_out(child, late)
        return child.status()


def untouched(argv: Sequence[str], why: str) -> NoReturn:
    """Become the original reducer."""
    errors = Errors("reporter:")
    errors.note(f"the reducer runs without the task runner: {without_secrets(why)}")
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    signal.signal(signal.SIGQUIT, signal.SIG_IGN)  # as the shell above has set it
    try:
        os.execvp(argv[0], list(argv))
    except OSError as error:
        errors.note(f"{argv[0]}: {error.strerror}")
        raise SystemExit(127 if isinstance(error, FileNotFoundError) else 126) from error


def end_child_first(runner: Runner) -> None:
    """On SIGTERM end the child's group first: YARN's kill does not reach it, SIGKILL comes 250 ms later."""

    def end(number: int, _frame: Any) -> None:
        child = runner.attempt.child
        if child is not None:
            child.kill(number)
            for _ in range(20):
                if child.process.poll() is not None:
                    break
                time.sleep(0.005)
            child.kill(signal.SIGKILL)
        signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)

    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        if signal.getsignal(number) != signal.SIG_IGN:
            signal.signal(number, end)


def prepare(arguments: Sequence[str], words: Sequence[str], env: Mapping[str, str]) -> Runner:
    """Return a runner that may suspend, or raise with why there is none; no input is touched."""
    settings = read_settings(arguments, env)
    if sys.platform == "win32" or not hasattr(select, "poll"):
        raise Unusable("this system does not support poll()")
    check_pipes()
    names = ("mapreduce.job.id", "mapreduce.task.id", "mapreduce.task.attempt.id")
    job, task, attempt = map(Conf(env).get, names)
    runner = Runner(settings, TaskId(job, task, attempt, env.get("CONTAINER_ID", "")), words, env)
    runner.resuming.open_store()
    return runner


def main(words: Sequence[str]) -> int:
    """Run ``[options] -- reducer...`` and return the exit status."""
    arguments = list(words)
    if "--" not in arguments or arguments[-1] == "--":
        Errors("reporter:").note("usage: yarnctl_task.py [options] -- reducer [arguments]")
        return 2
    border = arguments.index("--")
    reducer = arguments[border + 1 :]
    try:
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)  # ignored, a failed reducer would have status 0
        runner = prepare(arguments[:border], reducer, os.environ)
        watcher = runner.watcher()
        watcher.listen()
        watcher.start()
    except Exception as why:  # nothing was read or written yet: whatever it is, the job runs without us
        known = isinstance(why, (Unusable, StoreError, OSError))
        untouched(resolve(reducer), str(why) if known else repr(why))
    end_child_first(runner)
    widen_pipe(0)
    return runner.run()


if __name__ == "__main__":
    status = main(sys.argv[1:])
    sys.stderr.flush()
    os._exit(status)  # the watcher's thread may wait for a store; nothing is buffered here
