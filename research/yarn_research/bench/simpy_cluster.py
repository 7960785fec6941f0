"""The same cluster as a SimPy model, without preemption: a process per NodeManager, AM and task.

Written the way SimPy is meant to be used: a heartbeat is a loop with a timeout, a task a process,
the end of the last map an event. It has its own capacity scheduler (two queues by used /
guaranteed, FIFO within, one off-switch container per node heartbeat) and imports nothing from
the emulator's actors, so that equal allocations say something. Left out because nothing in the
benchmarked hour needs them: failures, user limits, reservations, suspending; the AM share
is the whole queue.
"""

from __future__ import annotations

from collections import deque

import simpy

from emulator.cluster.timing import Timing
from yarnctl.traces.job import Job

AM, REDUCE, MAP = 0, 10, 20
MIB = 1024


class Queue:
    """A leaf queue: containers used, and the applications that ask, in order."""

    def __init__(self, total: int, share: float) -> None:
        self.used = 0
        self.maximum = total
        self.per_mib = 1.0 / int(total * MIB * share)
        self.per_vcore = 1.0 / int(total * share)
        self.waiting: list[App] = []

    def ratio(self) -> float:
        return max(self.used * MIB * self.per_mib, self.used * self.per_vcore)


class App:
    """What ResourceManager and AM know of one job. ``asks`` counts containers by priority."""

    def __init__(self, env: simpy.Environment, number: int, job: Job, queue: Queue) -> None:
        self.number, self.job, self.queue = number, job, queue
        self.asks: dict[int, int] = {}
        self.unsent: list[tuple[int, int]] = []
        self.granted: list[tuple[Node, int]] = []
        self.maps, self.reduces = deque(job.map_ms), deque(job.reduce_ms)
        self.maps_left, self.reduces_left = len(job.map_ms), len(job.reduce_ms)
        self.reduces_asked = False
        self.all_maps_done = env.event()
        self.done = False
        self.master_node: Node


class Node:
    """A node: free containers, and the processes that are gone but not reported."""

    def __init__(self, index: int, slots: int) -> None:
        self.index, self.free = index, slots
        self.exited: list[tuple[float, App]] = []


class Model:
    """``allocations`` holds (time, node, application) of every container given."""

    def __init__(self, jobs: tuple[Job, ...], phases_ms: list[int], slots: int, timing: Timing, caps) -> None:
        self.env, self.timing = simpy.Environment(), timing
        self.queues = {name: Queue(len(phases_ms) * slots, caps[name]) for name in caps}
        self.order = list(self.queues.values())
        self.allocations: list[tuple[float, int, int]] = []
        for number, job in enumerate(jobs, 1):
            self.env.process(self.submit(number, job))
        for index, phase_ms in enumerate(phases_ms):
            self.env.process(self.node_manager(Node(index, slots), phase_ms))

    def submit(self, number: int, job: Job):
        yield self.env.timeout(job.submitted_at_ms + self.timing.submit_ms)
        self.ask(App(self.env, number, job, self.queues[job.job_class]), AM, 1)

    # --- ResourceManager -------------------------------------------------------------------

    def ask(self, app: App, priority: int, count: int) -> None:
        if not app.asks:
            app.queue.waiting.append(app)
            app.queue.waiting.sort(key=lambda each: each.number)
        app.asks[priority] = app.asks.get(priority, 0) + count

    def next(self) -> App | None:
        for queue in sorted((queue for queue in self.order if queue.waiting), key=Queue.ratio):
            if queue.used < queue.maximum:
                return queue.waiting[0]
        return None

    def offer(self, node: Node) -> None:
        while node.free:
            app = self.next()
            if app is None:
                return
            priority = min(app.asks)
            app.asks[priority] -= 1
            if not app.asks[priority]:
                del app.asks[priority]
                if not app.asks:
                    app.queue.waiting.remove(app)
            node.free -= 1
            app.queue.used += 1
            self.allocations.append((self.env.now, node.index, app.number))
            if priority == AM:
                self.env.process(self.master(app, node))
            else:
                app.granted.append((node, priority))
            if priority != MAP:
                return

    def node_manager(self, node: Node, phase_ms: int):
        env, interval_ms = self.env, self.timing.nm_heartbeat_ms
        yield env.timeout(phase_ms)
        while True:
            if node.exited:
                gone = [app for at_ms, app in node.exited if at_ms <= env.now]
                node.exited = [left for left in node.exited if left[0] > env.now]
                for app in gone:
                    node.free += 1
                    app.queue.used -= 1
            if node.free:
                self.offer(node)
            yield env.timeout(interval_ms)

    # --- ApplicationMaster and tasks -------------------------------------------------------

    def master(self, app: App, node: Node):
        env, timing = self.env, self.timing
        app.master_node = node
        yield env.timeout(timing.am_start_ms)
        app.unsent.append((MAP, len(app.maps)))
        while not app.done:
            for priority, count in app.unsent:
                self.ask(app, priority, count)
            app.unsent.clear()
            granted, app.granted = app.granted, []
            for at, priority in granted:
                if priority == MAP:
                    env.process(self.map(app, at, app.maps.popleft()))
                else:
                    env.process(self.reduce(app, at, app.reduces.popleft()))
            self.consider_reduces(app)
            yield env.timeout(timing.am_heartbeat_ms)

    def consider_reduces(self, app: App) -> None:
        maps = len(app.job.map_ms)
        if app.reduces_asked or app.maps or maps - app.maps_left < self.timing.slow_start_ratio * maps:
            return
        app.reduces_asked = True
        app.unsent.append((REDUCE, len(app.reduces)))

    def map(self, app: App, node: Node, length_ms: int):
        yield self.env.timeout(self.timing.launch_ms + length_ms)
        node.exited.append((self.env.now + self.timing.exit_ms, app))
        app.maps_left -= 1
        self.consider_reduces(app)
        if not app.maps_left:
            app.all_maps_done.succeed()

    def reduce(self, app: App, node: Node, length_ms: int):
        timing = self.timing
        yield self.env.timeout(timing.launch_ms)
        yield app.all_maps_done
        yield self.env.timeout(app.job.shuffle_ms + length_ms + timing.task_commit_ms)
        node.exited.append((self.env.now + timing.exit_ms, app))
        app.reduces_left -= 1
        if not app.reduces_left:
            self.env.process(self.commit(app))

    def commit(self, app: App):
        yield self.env.timeout(self.timing.job_commit_ms)
        app.done = True
        app.master_node.exited.append((self.env.now + self.timing.exit_ms, app))
