"""What-if questions in virtual time, and then what was supposed is done: are the chosen tasks the same?

    python -m tests.soak what-if-virtual 200 [--seed 1]

Research fills six nodes for good. Every ten minutes a question supposes an application of production with one
to five tasks, put to a copy of the very controller that decides; the application comes a millisecond later.
Half of the questions are put to a controller that suspends reduces, the others to one that runs the mix. Exit
status 1 if the chosen tasks differ for more than one question in ten.
"""

from __future__ import annotations

import argparse
import random

import msgspec

from emulator.cluster.resource_manager import application_id
from emulator.virtual.run import Run
from emulator.virtual.schemes import SCHEMES
from tests.property.stories import job, three_nodes
from yarnctl.deciding.model import TaskView
from yarnctl.deciding.records import Decision
from yarnctl.deciding.what_if.played_forward import Forward
from yarnctl.deciding.what_if.supposed import NewApplication, Supposition, supposed
from yarnctl.journal.chain import MemoryJournal
from yarnctl.traces.job import ONE_SLOT, Job

EVERY_MS = 600_000
TASK_MS = 40_000
WRONG_MAX_RATIO = 0.1


def research(chance: random.Random) -> list[Job]:
    """Return three jobs of reduces that outlast every question."""
    return [
        job(
            f"r{number}", "research", number * 1000, 2, 40,
            reduce_ms=tuple(chance.randint(40_000_000, 80_000_000) for _ in range(40)),
            reduce_keys=(200_000,) * 40,
        )
        for number in range(3)
    ]  # fmt: skip


class Asking:
    """Puts a question before each application of production."""

    def __init__(self, run: Run, jobs: list[Job]) -> None:
        self._run = run
        self.expected: dict[str, set[str]] = {}
        for each in jobs:
            run.cluster.kernel.at(each.submitted_at_ms - 1, self._ask, each)

    def _ask(self, wanted: Job) -> None:
        now_ms, port, controller = self._run.cluster.kernel.now_ms, self._run.port, self._run.controller
        assert controller is not None
        new = NewApplication(
            queue="production",
            user="asked",
            containers=len(wanted.map_ms),
            size=ONE_SLOT,
            master_size=ONE_SLOT,
        )

        def tasks_of(names: tuple[str, ...]) -> dict[str, tuple[TaskView, ...]]:
            known = port._applications
            return {name: port._tasks(known[name], now_ms) for name in names if name in known}

        changed = supposed(port._snapshot(now_ms), Supposition(application=new), now_ms)
        outcome = Forward(controller.copy(), changed, now_ms, tasks_of, new, port.sample()).play()
        self.expected[wanted.name] = {each.attempt for each in outcome.chosen}


def play(questions: int, seed: int, scheme: str) -> list[bool]:
    """Ask so many questions; return for each whether the chosen tasks were the ones that were ordered."""
    chance = random.Random(seed)
    jobs = [
        job(f"p{number}", "production", number * EVERY_MS, count, 0, map_ms=(TASK_MS,) * count)
        for number, count in enumerate((chance.randint(1, 5) for _ in range(questions)), 1)
    ]
    setup = msgspec.structs.replace(three_nodes(am_ratio=0.5, may_lose_ratio=0.9), nodes=6, seed=seed)
    journal = MemoryJournal()
    run = Run(setup, (*research(chance), *jobs), SCHEMES[scheme], journal)
    asking = Asking(run, jobs)
    run._play(None, (questions + 1) * EVERY_MS)  # research does not end
    names = {application_id(each.app): each.job.name for each in run.cluster.masters}
    picked: dict[str, set[str]] = {}
    for record in journal.records:
        if isinstance(record, Decision):
            found = picked.setdefault(names[record.trigger.application], set())
            found |= {pick.task.attempt for pick in record.picks}
    return [asking.expected[each.name] == picked.get(each.name, set()) for each in jobs]


def main(arguments: list[str]) -> int:
    """Ask the questions and print the figures."""
    parser = argparse.ArgumentParser(prog="python -m tests.soak what-if-virtual", description=__doc__)
    parser.add_argument("questions", type=int)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args(arguments)
    half, found = options.questions // 2, list[bool]()
    for scheme, count in (("natjam", options.questions - half), ("mix", half)):
        same = play(count, options.seed, scheme)
        print(f"{scheme}: {count} questions, chosen tasks equal {sum(same)}", flush=True)
        found += same
    return 1 if found.count(False) > WRONG_MAX_RATIO * len(found) else 0
