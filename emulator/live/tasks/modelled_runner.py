"""The modelled task runner: it has the real runner's protocol, so that yarnctl cannot distinguish them.

Law: the store and the requests are the real ones, read and written by the real runner's own functions; only
the reducer is a timetable. The time of a suspension is that of ``emulator.cluster.suspension`` in virtual
time: the key that is under way after ``drain_ms`` is finished, ``upload_ms`` later the manifest is written,
and the attempt waits until it is killed, the order is withdrawn, or ``hold_ms`` is over and it continues in
place.

Calls to the store wait in a thread (``ask``); their results are handled on the event loop.
"""

from __future__ import annotations

import base64
import hashlib
from typing import Any, NamedTuple

from emulator.cluster.entities import DRAINING, NEVER, NOT_REQUESTED, RELEASE_WAIT, RUNNING, Container
from emulator.cluster.task import Piece, drained, key_end_ms, keys_done
from emulator.cluster.task import SavedReduce as Saved
from emulator.live.master.attempts import Attempt, FinishedTask
from emulator.live.master.live_actor import LiveActor
from emulator.live.tasks.timetables import Timetables
from yarnctl.task_runner.runner.protocol import manifests
from yarnctl.task_runner.runner.protocol.generations import Found, find_checkpoint, write_checkpoint
from yarnctl.task_runner.runner.protocol.key_rule import KeyRule
from yarnctl.task_runner.runner.protocol.stores import Spool, Unusable, check_owner
from yarnctl.task_runner.runner.protocol.webhdfs_store import open_store

REDUCER = ["modelled"]
RULE = KeyRule()
PART_BYTES_OF_KEY = 16


class RunnerHost(Timetables):
    """A job with reduces that may carry runners."""

    job_id: str

    @property
    def actor(self) -> LiveActor:
        """The job's actor."""
        return self.live.actor

    def task_id(self, attempt: Attempt) -> manifests.TaskId:
        """Return the attempt's ids as the runner writes them."""
        task = self.live.attempts.task_id(attempt.is_map, attempt.task)
        return manifests.TaskId(self.job_id, task, attempt.id, attempt.container_id)

    def saved(self, attempt: Attempt, generation: int, keys_done: int) -> None:
        """Note a checkpoint for the next master."""
        self.history.finished(
            FinishedTask(
                kind="saved",
                task=attempt.task,
                attempt=attempt.id,
                container=attempt.container_id,
                node=attempt.node,
                counters={"checkpoint": {"generation": generation, "keys_done": keys_done}},
            )
        )


class RequestFolder(NamedTuple):
    """What is in an attempt's folder of requests."""

    requests: tuple[manifests.Request, ...]
    withdrawn: frozenset[str]


class RunnerMemory:
    """The state of one attempt's runner."""

    def __init__(self) -> None:
        self.known: set[str] = set()
        self.withdrawn: set[str] = set()
        self.order = ""
        self.release_wait_ms: int | None = None
        self.manifest: manifests.Manifest | None = None
        self.highest = 0
        self.polling = False
        self.again = False
        self.notified = False


class ModelledRunners:
    """The runners of one job's reduces."""

    def __init__(
        self, host: RunnerHost, store: str, requests: str, owners: tuple[str, ...], user: str
    ) -> None:
        self._host = host
        self._user = user
        self._owners = owners
        self.store = open_store(store, user)
        self.requests = open_store(requests, user)

    # --- beginning ------------------------------------------------------------------------

    def begin(self, attempt: Attempt, container: Container) -> None:
        """A reduce attempt is launched: find what it may go on from."""
        attempt.kept = kept = RunnerMemory()
        task = self._host.task_id(attempt)

        def find() -> Found:
            return find_checkpoint(self.store, task, RULE, REDUCER, (self._user,))

        def found(found: Found) -> None:
            kept.manifest, kept.highest = found.manifest, found.highest_generation
            self._fit(attempt, container, found.manifest)

        self._host.ask(find, found, lambda why: self._fit(attempt, container, None))

    def _fit(self, attempt: Attempt, container: Container, manifest: manifests.Manifest | None) -> None:
        """Let the attempt begin where the store's checkpoint ends, also if the master assumed otherwise."""
        actor = self._host.actor
        done = manifest.groups_done if manifest is not None else 0
        task = container.task
        if container.state != RUNNING or done == container.log_from_key:
            return
        if done > actor.job.reduce_keys[task] or container.stage != NOT_REQUESTED:
            return
        number = manifests.attempt_number(manifest.attempt) if manifest is not None else 0
        if done:
            actor.keys._pieces[task] = [Piece(number, 0, done)]
            actor.store[task] = Saved(manifest.generation if manifest is not None else 0, done)
        else:
            actor.keys._pieces.pop(task, None)
            actor.store.pop(task, None)
        container.from_key = container.log_from_key = done
        container.resumed = bool(done)
        if container.work_at_ms != NEVER:  # it has a timetable already: another one
            ready_ms = max(container.launched_at_ms + actor.timing.launch_ms, actor.kernel.now_ms)
            actor.launching.timetable(container, ready_ms)

    # --- requests -------------------------------------------------------------------------

    def notify(self, attempt: Attempt) -> None:
        """The doorbell: check for a request."""
        kept = attempt.kept
        if not isinstance(kept, RunnerMemory) or attempt.over:
            return
        kept.notified = True
        if kept.polling:
            kept.again = True
            return
        kept.polling = True
        task = self._host.task_id(attempt)

        def seen(folder: RequestFolder) -> None:
            kept.polling = False
            self._known(attempt, folder)
            if kept.again:
                kept.again = False
                self.notify(attempt)

        def failed(_: str) -> None:
            kept.polling = False
            self._host.later(1000, lambda _: self.notify(attempt))

        self._host.ask(lambda: self._poll(task, set(kept.known)), seen, failed)

    def _poll(self, task: manifests.TaskId, known: set[str]) -> RequestFolder:
        folder = f"{task.job}/{task.attempt}"
        above = self.requests.entry(folder)
        if above is None:
            return RequestFolder((), frozenset())
        found: list[manifests.Request] = []
        withdrawn: set[str] = set()
        try:
            check_owner(above, self._owners, folder)
            for entry in self.requests.list(folder):
                if entry.name.endswith(".withdrawn"):
                    check_owner(entry, self._owners, entry.name)
                    withdrawn.add(entry.name.removesuffix(".withdrawn"))
                elif entry.name.endswith(".request.json") and entry.name not in known:
                    check_owner(entry, self._owners, entry.name)
                    data = self.requests.read_small(f"{folder}/{entry.name}")
                    found.append(manifests.read_request(data, entry.name, task))
        except Unusable:
            pass  # what is not to be believed does not count
        return RequestFolder(tuple(found), frozenset(withdrawn))

    def _known(self, attempt: Attempt, folder: RequestFolder) -> None:
        kept: RunnerMemory = attempt.kept
        container = attempt.container
        if attempt.over or container is None:
            return
        kept.withdrawn |= folder.withdrawn
        if kept.order in kept.withdrawn and container.stage == RELEASE_WAIT:
            self._go_on(container)
        for request in folder.requests:
            name = f"{request.order}.request.json"
            if name not in kept.known:
                kept.known.add(name)
                if request.order not in kept.withdrawn:
                    self._serve(attempt, container, request)

    def _serve(self, attempt: Attempt, container: Container, request: manifests.Request) -> None:
        actor = self._host.actor
        now_ms = actor.kernel.now_ms
        kept: RunnerMemory = attempt.kept
        waits = container.stage == RELEASE_WAIT
        if not waits and (container.stage != NOT_REQUESTED or container.work_at_ms == NEVER):
            return  # asked already; or its reducer does not run yet
        if waits or now_ms <= container.work_at_ms:
            still = f"generation {self._generation(kept)} still valid"
            self._answer(attempt, request.order, "unchanged", still)
            # A late order has a hold of its own, and the status names it.
            kept.order, kept.release_wait_ms = request.order, request.hold_ms
            if not waits:
                container.to_key = container.from_key
            self._wait_for_release(attempt, container)
            return
        kept.order, kept.release_wait_ms = request.order, request.hold_ms
        keys = actor.job.reduce_keys[container.task]
        to_key, drained_ms = drained(container, now_ms, actor.timing.drain_ms, keys)
        if to_key >= keys:
            self._answer(attempt, request.order, "completing", "the input is at its end")
            return
        container.order, container.stage, container.to_key = request.order, DRAINING, to_key
        container.release_wait_token += 1
        container.finish_at_ms = NEVER
        wait_ms = drained_ms + actor.timing.upload_ms - now_ms
        self._host.later(
            wait_ms, lambda token: self._save(attempt, container, token), container.release_wait_token
        )

    @staticmethod
    def _generation(memory: RunnerMemory) -> int:
        return memory.manifest.generation if memory.manifest is not None else 0

    # --- saving and holding ---------------------------------------------------------------

    def _save(self, attempt: Attempt, container: Container, token: int) -> None:
        if container.state != RUNNING or container.release_wait_token != token:
            return
        kept: RunnerMemory = attempt.kept
        task = self._host.task_id(attempt)
        fields = self._fields(task, kept, container.to_key, self._host.actor.kernel.now_ms)
        output = Spool(1 << 20)
        # A tiny part: the output is a model, too.
        output.add(b"%015d\n" % container.to_key)

        def written(manifest: manifests.Manifest) -> None:
            if container.state == RUNNING and container.release_wait_token == token:
                self._saved(attempt, container, manifest)

        def failed(why: str) -> None:
            if container.state == RUNNING and container.release_wait_token == token:
                kept.highest += 1
                self._answer(attempt, kept.order, "refused", f"not saved: {why}")
                self._go_on(container)

        self._host.ask(lambda: write_checkpoint(self.store, task, fields, output), written, failed)

    def _fields(
        self, task: manifests.TaskId, memory: RunnerMemory, to_key: int, now_ms: int
    ) -> dict[str, Any]:
        """Return the manifest's content, as the real runner's does."""
        last = memory.manifest
        past = [*last.past_containers, str(last.raw["container"])] if last is not None else []
        generation = max(memory.highest, self._generation(memory)) + 1
        memory.highest = generation
        return {
            "schema": manifests.SCHEMA,
            "tool": "yarn-emulator",
            "version": manifests.VERSION,
            "job": task.job,
            "task": task.task,
            "attempt": task.attempt,
            "container": task.container,
            "past_containers": list(dict.fromkeys(name for name in past if name != task.container)),
            "host": "modelled",
            "user": self._user,
            "order": memory.order,
            "created_at_ms": now_ms,
            "took_ms": {"drain": 0},
            "generation": generation,
            "previous_generation": self._generation(memory),
            "key_rule": RULE.as_json(),
            "reducer": REDUCER,
            "groups_done": to_key,
            "keys_digest": hashlib.sha256(b"%d keys\n" % to_key).hexdigest(),
            "last_key": base64.b64encode(b"%09d" % to_key).decode(),
            "input_bytes": to_key * PART_BYTES_OF_KEY,
            "parts": [part._asdict() for part in last.parts] if last is not None else [],
            "counters": {},
        }

    def _saved(self, attempt: Attempt, container: Container, manifest: manifests.Manifest) -> None:
        actor, kept = self._host.actor, attempt.kept
        kept.manifest = manifest
        actor.keys.save(container.task, container.attempt, container.log_from_key, container.to_key)
        container.log_from_key = container.to_key
        actor.store[container.task] = Saved(manifest.generation, container.to_key)
        self._host.saved(attempt, manifest.generation, container.to_key)
        self._wait_for_release(attempt, container)

    def _wait_for_release(self, attempt: Attempt, container: Container) -> None:
        """Wait to be killed; continue when that does not happen, or when the order is withdrawn."""
        kept: RunnerMemory = attempt.kept
        container.stage = RELEASE_WAIT
        container.order = kept.order
        container.finish_at_ms = NEVER
        container.release_wait_token += 1
        if kept.order in kept.withdrawn:
            self._go_on(container)
            return
        timing = self._host.actor.timing
        hold_ms = timing.release_wait_ms if kept.release_wait_ms is None else kept.release_wait_ms

        def over(token: int) -> None:
            if container.state == RUNNING and container.release_wait_token == token:
                self._go_on(container)

        self._host.later(max(1, hold_ms), over, container.release_wait_token)

    def _go_on(self, container: Container) -> None:
        """Restart the reducer in place behind the last key it finished (as ``Suspension`` does)."""
        actor = self._host.actor
        container.stage = NOT_REQUESTED
        container.order = ""
        container.release_wait_token += 1
        actor.launching.restart_in_place(container, actor.kernel.now_ms)

    def _answer(self, attempt: Attempt, order: str, kind: str, reason: str) -> None:
        """Leave an answer that is no manifest, as the real runner does."""
        task = self._host.task_id(attempt)
        said = {"schema": manifests.SCHEMA, "order": order, "attempt": task.attempt, "answer": kind}
        data = manifests.canonical({**said, "generation": self._generation(attempt.kept), "reason": reason})
        name = f"{task.folder}/answer-{order}-{task.attempt}.json"

        def write() -> None:
            self.store.make_folder(task.folder)
            self.store.create(f"{name}.tmp", len(data), [data])
            self.store.rename(f"{name}.tmp", name)

        self._host.ask(write, lambda _: None, lambda _: None)


def status_of(container: Container, actor: LiveActor, memory: RunnerMemory, now_ms: int) -> str:
    """Return the status line the real runner would have reported by now.

    Bytes are a model: one for every ms of the reduce, so that a rate of bytes is a rate of work.
    """
    keys, length_ms = actor.job.reduce_keys[container.task], container.length_ms
    generation = memory.manifest.generation if memory.manifest is not None else 0
    if container.stage in (DRAINING, RELEASE_WAIT):
        groups, phase = container.to_key, "hold" if container.stage == RELEASE_WAIT else "drain"
        done = key_end_ms(groups, keys, length_ms)
    elif now_ms < container.work_at_ms:
        groups = container.from_key
        return f"yarnctl phase={'skip' if groups else 'run'} groups={groups} gen={generation}"
    else:
        groups, phase = min(keys, keys_done(container, now_ms, keys) + 1), "run"
        begun_ms = container.work_at_ms - key_end_ms(container.from_key, keys, length_ms)
        done = min(length_ms, now_ms - begun_ms)
    line = f"yarnctl phase={phase} groups={groups} done={done} known={length_ms} all=1 gen={generation} can=1"
    if phase == "run":
        base = key_end_ms(container.from_key, keys, length_ms)
        line += f" ran={max(0, now_ms - container.work_at_ms)} base={base}"
    if container.resumed:
        line += f" back={_back_ms(container, actor)}"
    return line + (f" order={container.order}" if phase == "hold" and container.order else "")


def _back_ms(container: Container, actor: LiveActor) -> int:
    """Return how long a resumed attempt took from its process's start to its first new key, without shuffle.

    ``log_from_key`` grows when it saves: by then it has been reported.
    """
    shuffle_ms = actor.job.shuffle_ms if actor.timing.reshuffle else 0
    return max(0, actor.launching.return_ms(container.task, container.from_key) - shuffle_ms)
