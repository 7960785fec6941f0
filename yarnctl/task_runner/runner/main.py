"""The program: ``[options] -- reducer...``; an attempt, or the original reducer untouched.

Law: before anything was read or written every failure ends in the original reducer, as if this program were
not there.
"""

from __future__ import annotations

import os
import select
import signal
import sys
import time
from typing import Any, Mapping, NoReturn, Sequence

from yarnctl.task_runner.runner.child import check_pipes, resolve, widen_pipe
from yarnctl.task_runner.runner.phases import Runner
from yarnctl.task_runner.runner.protocol.failures import StoreError, Unusable, hush
from yarnctl.task_runner.runner.protocol.job_conf import Conf, read_settings
from yarnctl.task_runner.runner.protocol.manifests import TaskId
from yarnctl.task_runner.runner.reports import Errors


def untouched(argv: Sequence[str], why: str) -> NoReturn:
    """Become the original reducer."""
    Errors("reporter:").note(f"runs untouched: {hush(why)}")
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    signal.signal(signal.SIGQUIT, signal.SIG_IGN)  # as the shell above has set it
    try:
        os.execvp(argv[0], list(argv))
    except OSError as error:
        Errors("reporter:").note(f"{argv[0]}: {error.strerror}")
        raise SystemExit(127 if isinstance(error, FileNotFoundError) else 126) from error


def die_together(runner: Runner) -> None:
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
        raise Unusable("this system has no poll")
    check_pipes()
    conf = Conf(env)
    task = TaskId(
        conf.get("mapreduce.job.id"),
        conf.get("mapreduce.task.id"),
        conf.get("mapreduce.task.attempt.id"),
        env.get("CONTAINER_ID", ""),
    )
    runner = Runner(settings, task, words, env)
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
    except Exception as why:  # nothing was read or written yet: whatever it is, the job goes on without us
        known = isinstance(why, (Unusable, StoreError, OSError))
        untouched(resolve(reducer), str(why) if known else repr(why))
    die_together(runner)
    widen_pipe(0)
    return runner.run()


if __name__ == "__main__":
    status = main(sys.argv[1:])
    sys.stderr.flush()
    os._exit(status)  # the watcher may hang in a store; nothing is buffered here
