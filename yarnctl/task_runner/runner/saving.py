"""Saving: a running attempt is suspended at a border between groups, and its next generation is written.

Nothing is saved that was not finished by the reducer, read out and counted, or beside which side files would
be lost. A save that fails costs no earlier generation, and the work continues in place.
"""

from __future__ import annotations

import base64
import os
import re
import time
from typing import Any

from yarnctl.task_runner.runner.attempt import AttemptState
from yarnctl.task_runner.runner.child import Leave, run_command
from yarnctl.task_runner.runner.feeding import ChildLife, Feeder
from yarnctl.task_runner.runner.orders import OrderAnswers
from yarnctl.task_runner.runner.protocol.generations import PerhapsSaved, write_checkpoint
from yarnctl.task_runner.runner.protocol.job_conf import Conf
from yarnctl.task_runner.runner.protocol.manifests import SCHEMA, VERSION, Counters, Manifest, Request
from yarnctl.task_runner.runner.protocol.stores import (
    EXIT_SUSPENDED,
    LocalStore,
    Store,
    StoreError,
    Unprovable,
    Unusable,
)
from yarnctl.task_runner.runner.protocol.webhdfs_store import WebHdfsStore
from yarnctl.task_runner.runner.reports import add_counter

UPLOAD_BYTES_PER_S_GUESS = 20 << 20

CHECKS_FOR_PART, CHECKS_FOR_PART_S = 5, 0.1
"""With LazyOutputFormat Java makes the part when it has read the first output."""


class NotSeen(str):
    """Why an attempt is not suspended: the job's own output is not found, perhaps not yet."""

    __slots__ = ()


class WorkFolder:
    """The attempt's own folder below the job's output: Hadoop commits it, or drops it with a killed attempt.

    Side files of the reducer there would be lost with a suspended attempt, so such an attempt is never
    suspended. That this is the right folder is certain only if the job's own part is found in it: Hadoop
    makes it before the first line comes (with LazyOutputFormat: before the first output).
    """

    def __init__(self, conf: Conf, store: Store) -> None:
        self.url = conf.get("mapreduce.task.output.dir")
        partition = conf.number("mapreduce.task.partition", -1)
        packed = conf.get("mapreduce.output.fileoutputformat.compress") == "true"
        self.own = re.compile(rf"part-{partition:05d}" + (r"(\.[A-Za-z0-9_]{1,20})?" if packed else ""))
        self.store = self._open(store)

    def _open(self, store: Store) -> Store | None:
        """Return the folder as a store of its own; in HDFS it is read by the client of the checkpoints."""
        scheme, found, rest = self.url.partition("://")
        if not found:  # Hadoop writes local paths as file:/folder
            scheme, path = "file", self.url[5:] if self.url.startswith("file:") else self.url
        else:
            path = rest[rest.find("/") :] if "/" in rest else ""
        if not path.startswith("/"):
            return None
        if scheme == "file":
            return LocalStore(path)
        in_hdfs = scheme in ("hdfs", "webhdfs", "swebhdfs") and isinstance(store, WebHdfsStore)
        return store.at_root(path) if in_hdfs else None

    def why_not(self) -> str:
        """Return what forbids a suspension for now, empty if nothing; raise Unusable if it is for good."""
        if self.store is None:
            raise Unusable(f"the attempt's output folder cannot be listed: {self.url or 'no folder is set'}")
        try:
            names = [entry.name for entry in self.store.list("")]
        except StoreError as error:
            return f"the attempt's output folder cannot be listed: {error}"
        own = [name for name in names if self.own.fullmatch(name)]
        beside = [name for name in names if name not in own[:1] and name != f".{(own or names)[0]}.crc"]
        if beside:
            told = ", ".join(beside[:3]) + (", ..." if len(beside) > 3 else "")
            raise Unusable(f"side files would be lost: {told} in {self.url}")
        return (
            ""
            if own
            else NotSeen(f"the job's output file is missing in the attempt's output folder: {self.url}")
        )


class Suspending:
    """Serves orders while the child may be at work: refuses, waits, or suspends and continues in place."""

    def __init__(
        self, attempt: AttemptState, work: WorkFolder, feeder: Feeder, life: ChildLife, answers: OrderAnswers
    ) -> None:
        self.cuts = list(attempt.settings.suspend_at)
        self._attempt = attempt
        self._work = work
        self._feeder = feeder
        self._life = life
        self._answers = answers
        self._drain_s = 1.0
        self._upload_bytes_per_s = float(UPLOAD_BYTES_PER_S_GUESS)

    def feed_to_cut(self) -> None:
        """Feed up to the next group number of --suspend-at, and suspend there."""
        limit = max(self.cuts[0], self._attempt.scanner.groups)
        if self._feeder.feed_groups(limit):
            self.cuts.pop(0)
            self.serve(Request(f"cut-{limit}", 0))
        elif self._attempt.input.ended and self._attempt.input.is_taken:
            self.cuts.clear()

    def serve(self, request: Request) -> None:
        """Do what an order asks, in the phases in which the child may be at work."""
        if self._answers.is_withdrawn(request):
            return
        self._attempt.check_counters()
        if self._attempt.why_not:
            self._answers.answer(request, "refused", self._attempt.why_not)
        elif self._nothing_new():
            self._answers.unchanged(request)
        elif why := self._too_large() or self._why_not_here(seen=False):
            self._answers.answer(request, "refused", why)
        else:
            self._suspend(request)

    def _nothing_new(self) -> bool:
        """Say whether nothing was done since the valid generation.

        A child that was given nothing is not enough: after a save that failed there are groups before it.
        """
        attempt = self._attempt
        saved = attempt.manifest.groups_done if attempt.manifest else 0
        return attempt.child is None or (not attempt.child.fed_bytes and attempt.scanner.groups == saved)

    def _too_large(self) -> str:
        """Return why draining and uploading might take more than half of the time-out."""
        need_s = self._drain_s + self._attempt.output.bytes / self._upload_bytes_per_s
        limit_s = self._attempt.settings.task_timeout_ms / 2000
        return f"about {need_s:.0f} s to drain and upload, limit {limit_s:.0f} s" if need_s > limit_s else ""

    def _suspend(self, request: Request) -> None:
        """Finish the group, let the child end, save, hold, and go on in place unless killed."""
        attempt, started_s = self._attempt, time.monotonic()
        attempt.lines.enter("finish", f" order={request.order}")
        if not self._feeder.finish_group():
            why = attempt.why_not or "the input is at its end"
            self._answers.answer(request, "refused" if attempt.why_not else "completing", why)
        elif not self._answers.is_withdrawn(request):
            self._drain()
            self._drain_s = time.monotonic() - started_s
            attempt.reducer_state = self._taken_state(request)  # in any case: the next child begins with it
            if attempt.check_output():
                self._save(request, started_s)
            else:
                self._answers.answer(request, "refused", attempt.why_not)
            self._life.start()
        attempt.lines.enter("run")

    def _drain(self) -> None:
        """Close the child's input and read it out; only status 0 after reading everything is an end."""
        child = self._attempt.child
        assert child is not None
        self._attempt.lines.enter("drain")
        self._life.mark_suspending()
        self._life.let_read(child)
        child.close_input()
        self._life.read_out(child)
        status = child.status()
        if status:
            raise Leave(status)
        self._attempt.child = None

    def _taken_state(self, request: Request) -> bytes | None:
        """Return what --save prints for a drained child; None: not declared, so none can go on."""
        if not self._attempt.settings.save:
            return None
        try:
            status, state = run_command(self._attempt.settings.save)
            self._life.unmark_suspending()
            if status:
                raise Unusable(f"--save ended with status {status}")
            return state
        except Unusable as error:
            self._answers.answer(request, "refused", f"not saved: {error}")
            raise Unprovable("the reducer has written its state, but it could not be stored") from error

    # -- the next generation ---------------------------------------------------------------

    def _save(self, request: Request, started_s: float) -> None:
        """Write the next generation and wait; where the store fails the work continues."""
        attempt = self._attempt
        attempt.lines.enter("save")
        began_s = time.monotonic()
        manifest, word = self._write(request, began_s - started_s)
        if manifest is None:
            return
        took_s = max(time.monotonic() - began_s, 0.001)
        if attempt.output.bytes > 1 << 20:
            self._upload_bytes_per_s = attempt.output.bytes / took_s
        attempt.manifest = manifest
        attempt.highest_generation = manifest.generation
        attempt.output.clear()
        attempt.errors.status(
            f"ckpt={word} gen={manifest.generation} order={request.order} groups={manifest.groups_done}"
            f" bytes={manifest.output_bytes} ms={int((time.monotonic() - started_s) * 1000)}"
        )
        if attempt.settings.leave_when_saved:
            raise Leave(EXIT_SUSPENDED)
        self._answers.hold(request)

    def _write(self, request: Request, drain_s: float) -> tuple[Manifest | None, str]:
        """Return the new generation's manifest and the word for it, None where it was not saved.

        Where it is unknown whether the manifest is there the attempt continues as if it were: its files are
        there, so later generations may need them. It waits, because yarnctl may find the manifest and have
        it killed.
        """
        attempt = self._attempt
        try:
            manifest = write_checkpoint(
                attempt.store,
                attempt.task,
                self._fields(request, drain_s),
                attempt.output,
                attempt.reducer_state,
                attempt.lines.keep_alive,
                self._last_check,
            )
            return manifest, "saved"
        except PerhapsSaved as error:
            attempt.errors.note(f"possibly saved: {error}")
            return error.manifest, "unsure"
        except (StoreError, Unusable) as error:
            attempt.highest_generation += 1  # the name may be half taken
            self._answers.answer(request, "refused", f"not saved: {error}")
            return None, ""

    def _why_not_here(self, seen: bool = True) -> str:
        """Return what in the work folder forbids a suspension, or ""; ``seen``: its part must be there."""
        try:
            for _ in range(CHECKS_FOR_PART if seen else 1):
                why = self._work.why_not()
                if not isinstance(why, NotSeen):
                    return why
                if seen:
                    self._attempt.wakeup.wait(-1, 0, CHECKS_FOR_PART_S)
                    self._attempt.lines.keep_alive()
            return why if seen else ""
        except Unusable as why:
            self._attempt.cannot(str(why))
            return self._attempt.why_not

    def _last_check(self) -> None:
        """Raise Unusable with what forbids this generation, noticed while its files were written."""
        self._attempt.check_counters()
        why = self._attempt.why_not or self._why_not_here()
        if why:
            raise Unusable(why)

    def _fields(self, request: Request, drain_s: float) -> dict[str, Any]:
        attempt, task, last = self._attempt, self._attempt.task, self._attempt.manifest
        past = [*last.past_containers, str(last.raw["container"])] if last else []
        return {
            "schema": SCHEMA,
            "tool": "yarnctl",
            "version": VERSION,
            "job": task.job,
            "task": task.task,
            "attempt": task.attempt,
            "container": task.container,
            "past_containers": list(dict.fromkeys(name for name in past if name != task.container)),
            "host": os.uname().nodename,
            "user": attempt.settings.user,
            "order": request.order,
            "created_at_ms": int(time.time() * 1000),
            "took_ms": {"drain": int(drain_s * 1000)},
            "generation": max(attempt.highest_generation, attempt.generation) + 1,
            "previous_generation": attempt.generation,
            "key_rule": attempt.settings.rule.as_json(),
            "reducer": attempt.words,
            "groups_done": attempt.scanner.groups,
            "keys_digest": attempt.scanner.digest(),
            "last_key": base64.b64encode(attempt.scanner.key or b"").decode(),
            "input_bytes": attempt.scanner.bytes,
            "parts": [part._asdict() for part in last.parts] if last else [],
            "counters": self._all_counters(),
        }

    def _all_counters(self) -> Counters:
        """Return user counters since the task's beginning, over all attempts that count."""
        total: Counters = {}
        for counters in (self._attempt.past_counters, self._attempt.errors.counters):
            for group, inside in counters.items():
                for name, amount in inside.items():
                    add_counter(total, group, name, amount)
        return total
