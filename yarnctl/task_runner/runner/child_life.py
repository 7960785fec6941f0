"""Start and end of a child: its state is loaded before, and how it ends is judged as Hadoop would judge it.

Law: only status 0 after reading everything is an end. Who closed the input early ends the attempt, with
status 0 only where plain Hadoop might have ended so, too.
"""

from __future__ import annotations

import contextlib
import os
import select
import time
from typing import Mapping, NoReturn, Sequence

from yarnctl.task_runner.runner.attempt import STATUS_EVERY_S, AttemptState, StatusLines
from yarnctl.task_runner.runner.child import Child, Leave, run_command, unread_bytes
from yarnctl.task_runner.runner.orders import OrderAnswers
from yarnctl.task_runner.runner.protocol.failures import EXIT_UNPROVABLE, Discredited, Unprovable
from yarnctl.task_runner.runner.protocol.stores import spool_folder


class SuspendingFile:
    """The file YARNCTL_SUSPENDING: a reducer with state that finds it at its end of input is suspended."""

    def __init__(self) -> None:
        self._path = ""

    def name_in(self, env: dict[str, str]) -> None:
        """Tell a child that is to be started where the file will be."""
        if not self._path:
            name = os.path.join(os.path.abspath(spool_folder()), f"yarnctl-suspending-{os.getpid()}")
            self._path = env["YARNCTL_SUSPENDING"] = name

    def write(self) -> None:
        """Make the file, where it has a name."""
        if self._path:
            with open(self._path, "wb"):
                pass

    def remove(self) -> None:
        """Remove it: a child that finds it at its end of input takes itself for suspended."""
        if self._path:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(self._path)


class ChildStart:
    """Starts the reducer; with --load its state comes first."""

    def __init__(self, attempt: AttemptState, argv: Sequence[str], env: Mapping[str, str]) -> None:
        self.suspending = SuspendingFile()
        self._attempt = attempt
        self._argv = argv
        self._env = dict(env)

    def start(self) -> None:
        """Start a child at the border where the input now stands."""
        attempt = self._attempt
        self._load()
        if attempt.settings.save:
            self.suspending.name_in(self._env)
        self.suspending.remove()
        try:
            attempt.child = Child(self._argv, self._env, attempt.output, attempt.errors, attempt.wakeup)
        except OSError as error:
            attempt.errors.note(f"{self._argv[0]}: {error.strerror}")
            raise Leave(127 if isinstance(error, FileNotFoundError) else 126) from error
        attempt.child.begins_at = attempt.scanner.bytes
        attempt.child.began_s = time.monotonic()

    def _load(self) -> None:
        attempt = self._attempt
        if attempt.settings.load and attempt.reducer_state is not None:
            status, _ = run_command(attempt.settings.load, attempt.reducer_state)
            if status:
                manifest = attempt.manifest
                is_saved = manifest is not None and manifest.groups_done == attempt.scanner.groups
                kind = Discredited if is_saved else Unprovable
                raise kind(f"--load ended with status {status}")


class ChildEnding:
    """Waits until the child has read and written everything, and judges one that has left early."""

    def __init__(self, attempt: AttemptState, answers: OrderAnswers, lines: StatusLines) -> None:
        self._attempt = attempt
        self._answers = answers
        self._lines = lines

    def let_read(self, child: Child, late: str = "") -> None:
        """Wait until the child has taken all that it was given; it may leave instead.

        Its end of input comes after that. So who has read everything, and who just went away, are not
        mixed up, whether the child itself reads or a program it has started. ``late``: what is answered
        meanwhile to orders, if they are answered.
        """
        wakeup = self._attempt.wakeup
        began_s = time.monotonic()
        while unread_bytes(child.input):
            self._answer_late(late)
            nap_s = min(0.01, max(0.0002, (time.monotonic() - began_s) / 8))
            if wakeup.wait(child.input, select.POLLERR, nap_s) or not child.reading:
                self.child_left()
            self._lines.tell(keep_alive=False)
        if wakeup.wait(child.input, select.POLLERR, 0):
            self.child_left()

    def read_out(self, child: Child, late: str = "") -> None:
        """Wait until the child has written everything; ``late``: as above."""
        while child.reading:
            self._answer_late(late)
            self._attempt.wakeup.wait(-1, 0, STATUS_EVERY_S)
            self._lines.tell(keep_alive=False)

    def child_left(self) -> NoReturn:
        """End as the child did: it closed its input early, and Java must see that as it would."""
        attempt, child = self._attempt, self._attempt.child
        assert child is not None
        position_bytes = child.begins_at + child.fed_bytes - unread_bytes(child.input)
        child.close_input()
        self.read_out(child, "the reducer has closed its input")
        status = child.status()
        if not status and attempt.phase == "drain" and attempt.settings.save:
            raise Unprovable("the reducer closed its input while it was suspended: nobody has its summary")
        if not status and not self._could_leave(position_bytes):
            attempt.errors.note(
                f"the reducer ended with status 0 having read {position_bytes} bytes; plain Hadoop, with"
                f" {attempt.input.sender.sent_bytes} to write before its last flush, meets a broken pipe: it"
                " fails"
            )
            status = EXIT_UNPROVABLE
        raise Leave(status)

    def _could_leave(self, position_bytes: int) -> bool:
        """Say whether Java without us might have met no broken pipe but at its last flush.

        What Java still writes is looked at and dropped: whether it can end is the question.
        """
        task_input = self._attempt.input
        sender = task_input.sender
        while not task_input.ended and sender.pipe_bytes >= 0 and sender.within(position_bytes):
            self._answers.completing("the reducer has closed its input")
            task_input.drop()
            task_input.fill(STATUS_EVERY_S)
        return sender.within(position_bytes)

    def _answer_late(self, why: str) -> None:
        if why:
            self._answers.completing(why)
