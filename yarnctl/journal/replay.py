"""Replay: decide a whole journal again, and compare.

Law: nothing in a record is believed that can be derived. Each decision is chosen again from its
case; order ids and groups are counted again; the ledger and the settlement that decide for a
cluster are moved by the events that the records tell, and must make the same records; the actions
that follow must be performed, each once and in order, before the next step. What remains to be
believed is what was observed: views of the cluster, the instants and contents of facts. The first
difference ends the replay with its story.

A step's records stand in this order (``RANK``): facts, time-outs, what is forgotten, orders passed on,
orders taken back, decisions, other refusals, and then what came of its actions.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from typing import NamedTuple, NoReturn, get_args

import msgspec

from yarnctl.deciding.admission.book import Book
from yarnctl.deciding.deadlines import level
from yarnctl.deciding.leaving import in_leaving_order
from yarnctl.deciding.ledger import Order, name_orders, new_order
from yarnctl.deciding.lifecycle import OPEN, RECALLABLE, after
from yarnctl.deciding.model import (
    Action,
    ApplicationEnded,
    CameBack,
    CameBackWithout,
    ContainerEnded,
    Ending,
    EpochChanged,
    Kill,
    ManifestSeen,
    Release,
    SetPriority,
    SetQueueMaximum,
    Suspend,
    UploadProgressed,
    Withdraw,
)
from yarnctl.deciding.policies import JOB_POLICIES, TASK_POLICIES
from yarnctl.deciding.records import (
    Contact,
    Decision,
    Epoch,
    Forgotten,
    Header,
    HoldEnded,
    HoldFound,
    Holding,
    KilledEnded,
    Performed,
    Progressed,
    Ranking,
    Record,
    Refusal,
    Restoring,
    Resumed,
    Return,
    SavedLost,
    Stance,
    Transfer,
    Transition,
    encode,
)
from yarnctl.deciding.selector import choose
from yarnctl.deciding.settings import Settings
from yarnctl.deciding.settlement import STOPPING
from yarnctl.errors import BadInput, Different
from yarnctl.journal.believing import requested
from yarnctl.journal.consistency import (
    NO_JOB,
    NO_TASK,
    asked_for_problem,
    case_problem,
    header_problem,
    refusal_problem,
    trigger_problem,
)
from yarnctl.journal.file import Line
from yarnctl.journal.implied import Implied
from yarnctl.journal.maxima import Maxima
from yarnctl.journal.priorities import Priorities

COMPARED = ("picks", "handed_back", "unmet", "refused_jobs", "refused_tasks")
"""The parts of a choice that stand in the decision's record."""

FACT, TIME_OUT, FORGOTTEN, PASSED_ON, TAKEN_BACK, GONE, RANKED, DECIDED, NOTED, DONE = range(10)

ENDINGS: tuple[str, ...] = get_args(Ending)
ELSEWHERE = ("the asker finds room elsewhere", "nobody hurried waits", STOPPING)


class Replayed(msgspec.Struct, frozen=True):
    """How much was decided again, without a difference."""

    records: int
    decisions: int
    picks: int
    transitions: int
    refusals: int


class Left(NamedTuple):
    """What a controller has left at the end of its records."""

    work: Implied
    numbered: int
    named: dict[str, None]
    due: tuple[Action, ...]
    now_ms: int | None


class Replay:
    """The state that a journal implies, rebuilt line by line.

    ``decide`` False: decisions are not chosen again, only what follows from them is compared.
    """

    def __init__(self, source: str, *, decide: bool = True) -> None:
        self.source = source
        self.decide = decide
        self.where = source
        self.records = self.decisions = self.transitions = self.refusals = self.picks = 0
        self.before: Left | None = None
        self.stances: list[Stance] = []
        self.priorities = Priorities()
        self.maxima = Maxima()
        self.book = Book()
        self.epoch = ""
        self._begin(Settings(), (), complete=True)

    def _begin(self, settings: Settings, capabilities: tuple[str, ...], *, complete: bool) -> None:
        """A header starts a controller: orders and numbers begin anew, if it does not go on with them."""
        self.lines = 0
        self.settings = settings
        self.work = Implied(settings, "releases-itself" in capabilities, complete)
        self.ledger = self.work.ledger
        self.numbered = 0
        self.named: dict[str, None] = {}
        self.ranking: dict[str, int] = {}
        self.expected: deque[Record] = deque()
        self.due: deque[Action] = deque()
        self.now_ms: int | None = None
        self.dated = False
        self.rank = FACT

    def differ(self, story: str) -> NoReturn:
        """End the replay."""
        raise Different(f"{self.where}: {story}")

    def line(self, line: Line) -> None:
        """Check one line; raises Different, or BadInput for a header that names no policy."""
        record = line.record
        self.where = f"{self.source}:{line.number}"
        if encode(record) != line.raw:
            self.differ("the record reads back to other bytes than the line holds")
        if isinstance(record, Header):
            self._header(record)
        elif self.expected:
            self._compare(record, self.expected.popleft())
        else:
            self._take(record)
        self.priorities.take(record)
        self.maxima.take(record)
        self.book.take(record)
        self.records += 1
        self.lines += not isinstance(record, Header)
        self.transitions += isinstance(record, Transition)

    def _take(self, record: Record) -> None:
        """Check a record that nothing before calls for."""
        if isinstance(record, Decision):
            self._decision(record)
        elif isinstance(record, Transition):
            self._transition(record)
        elif isinstance(record, Transfer):
            self._transfer(record)
        elif isinstance(record, Performed):
            self._performed(record)
        elif isinstance(record, Refusal):
            self._refusal(record)
        elif isinstance(record, Ranking):
            self._ranking(record)
        elif isinstance(record, Resumed):
            self._resumed(record)
        elif isinstance(record, Return):
            self._returned(record)
        elif isinstance(record, SavedLost):
            self._saved_lost(record)
        elif isinstance(record, Progressed):
            self._enter(FACT, None)
            self.work.note(self.work.take((UploadProgressed(record.order, record.at_ms),)))
            self._follow(record)
        elif isinstance(record, Forgotten):
            self._forgotten(record)
        elif isinstance(record, KilledEnded):
            self._killed_ended(record)
        elif isinstance(record, Stance):
            self.stances.append(record)
        elif isinstance(record, Holding | HoldFound | HoldEnded):
            if problem := self.maxima.problem(record):
                self.differ(problem)
        elif isinstance(record, Restoring):
            if problem := self.priorities.problem(record):
                self.differ(problem)
        elif isinstance(record, Contact):
            self.epoch = record.epoch
        elif isinstance(record, Epoch):
            self.epoch = record.epoch
            self._enter(FACT, None)
            self.work.note(self.work.take((EpochChanged(record.epoch, record.at_ms),)))
            self._follow(record)
        elif problem := self.book.problem(record, decide=self.decide):
            self.differ(problem)

    def finish(self) -> None:
        """Check that a journal that was closed leaves nothing out."""
        if self.expected:
            self.differ(f"the journal ends, and {_short(self.expected[0])} is due")
        if self.due:
            self.differ(f"the journal ends, and {_short(self.due[0])} was not performed")

    def _header(self, record: Header) -> None:
        if self.decide:
            self._check_header(record)
        # A controller that wrote nothing but its header leaves what was before it.
        if self.lines or self.before is None:
            self.before = self.left()
        self._begin(record.settings, record.capabilities, complete=record.complete)

    def _check_header(self, record: Header) -> None:
        """Say no to settings by which nothing can be decided."""
        for field, known in (("job_policy", JOB_POLICIES), ("task_policy", TASK_POLICIES)):
            if getattr(record.settings, field) not in known:
                raise BadInput(self.where, f"no policy {getattr(record.settings, field)!r} in {field}")
        if problem := header_problem(record):
            raise BadInput(self.where, problem)

    def left(self) -> Left:
        """Return what the controller whose records were read last has left."""
        if not self.lines and self.before is not None:
            return self.before
        return Left(self.work, self.numbered, dict(self.named), self._due_in_order(), self.now_ms)

    def _resumed(self, record: Resumed) -> None:
        """Go on with the ledger of the controller before."""
        left = self.before
        if left is None or self.lines:
            self.differ("a controller goes on, and there is none before it")
        self.work.go_on(left.work)
        self.ledger = self.work.ledger
        self.numbered, self.named, self.now_ms = left.numbered, left.named, left.now_ms
        if self.now_ms is not None and record.at_ms < self.now_ms:
            self.work.set_back(self.now_ms - record.at_ms)
            self.now_ms = record.at_ms
        self._enter(FACT, record.at_ms)
        self.dated = False  # nothing else may belong to its step: the facts that follow are of a later one
        if record.orders != tuple(self.ledger.open):
            self.differ(f"orders {record.orders} go on, open are {tuple(self.ledger.open)}")
        undone = list(left.due)
        for action in record.again:
            if action not in undone:
                self.differ(f"{_short(action)} is asked again, and it was not due")
            undone.remove(action)
        self.due.extend(record.again)
        self.work.note(self.work.drop_observed(record.at_ms))
        self.expected = deque(self.work.made())

    # --- the order of things ----------------------------------------------------------------------

    def _enter(self, rank: int, at_ms: int | None) -> None:
        """Go on with the step, or begin the next; ``at_ms`` is an instant on the controller's clock."""
        if rank < self.rank or (at_ms is not None and self.dated and at_ms != self.now_ms):
            if self.due:
                self.differ(f"before this, {_short(self.due[0])} must be performed")
            self.rank, self.dated, self.ranking = FACT, False, {}
        if at_ms is not None:
            if self.now_ms is not None and at_ms < self.now_ms:
                self.differ(f"at {at_ms} ms, after {self.now_ms} ms")
            self.now_ms, self.dated = at_ms, True
            if rank > TIME_OUT >= self.rank and (late := self.work.overdue(at_ms)):
                self.differ(f"{late} was freed too long ago to be still open")
        self.rank = rank

    def _follow(self, record: Record) -> None:
        """Compare a record, and those that must come after it, with what the settlement made."""
        made = deque(self.work.made())
        if not made:
            self.differ(f"{_short(record)}, but nothing would have been written")
        self.due += self.work.asked()
        self._compare(record, made.popleft())
        self.expected = made

    def _compare(self, record: Record, want: Record) -> None:
        if record != want:
            self.differ(f"{_short(record)}, but due is {_short(want)}")

    # --- decisions --------------------------------------------------------------------------------

    def _decision(self, record: Decision) -> None:
        self.numbered += 1
        if not record.number == record.case.number == self.numbered:
            self.differ(f"decision {record.number} stands where number {self.numbered} is due")
        if record.at_ms != record.case.now_ms:
            self.differ(f"decision {record.number} at {record.at_ms} ms, its case at {record.case.now_ms} ms")
        self._enter(DECIDED, record.at_ms)
        self.work.retire(record.at_ms)
        if self.decide:
            self._choose_again(record)
        self._name(record)
        self.decisions += 1
        self.picks += len(record.picks)

    def _choose_again(self, record: Decision) -> None:
        """Decide again, and compare choice, trigger and case."""
        choice = choose(record.case, self.settings)
        for field in COMPARED:
            was, now = getattr(record, field), getattr(choice, field)
            if was != now:
                self.differ(f"decision {record.number}: {field}: {_difference(was, now)}")
        problem = (
            asked_for_problem(record, self.settings)
            or trigger_problem(record.trigger, record.at_ms, self.work)
            or case_problem(record.case, choice, self.work)
        )
        if problem:
            self.differ(f"decision {record.number}: {problem}")

    def _name(self, record: Decision) -> None:
        """Enter the orders of a decision, and expect that they are asked for."""
        orders, groups = name_orders(record.picks, self.ledger.issued)
        if (orders, groups) != (record.orders, record.groups):
            self.differ(
                f"decision {record.number}: orders {record.orders} in groups {record.groups},"
                f" now {orders} in {groups}"
            )
        for name, pick, group in zip(orders, record.picks, groups, strict=True):
            if pick.task.container in self.ledger.by_container:
                self.differ(f"decision {record.number}: {pick.task.container} is under order already")
            asker = record.trigger.application
            order = new_order(pick, name, group, asker, record.number, record.at_ms, self.settings)
            self.named[name] = None
            self.ledger.add(order)
            self.due.append(requested(order, self.settings))

    def _refusal(self, record: Refusal) -> None:
        self._enter(DECIDED if record.why in (NO_TASK, NO_JOB) else NOTED, record.at_ms)
        self.work.retire(record.at_ms)
        self.refusals += 1
        if not self.decide:
            return
        name = record.trigger.application
        problem = trigger_problem(record.trigger, record.at_ms, self.work) or refusal_problem(
            record, self.settings
        )
        if problem:
            self.differ(f"refusal for {name}: {problem}")

    # --- orders -----------------------------------------------------------------------------------

    def _unknown(self, name: str) -> str:
        return "it is settled for good" if name in self.named else "no decision made it"

    def _check_move(self, record: Transition) -> None:
        """Check a move against the life cycle alone."""
        name = record.order
        order = self.ledger.open.get(name) or self.ledger.settled.get(name)
        if order is None:
            self.differ(f"{name} moves, and {self._unknown(name)}")
        if record.source != order.state:
            self.differ(f"{name} leaves {record.source}, but it is {order.state}")
        target = after(order.state, record.event)
        if target != record.target:
            now = f"{record.event} leads to {target or 'nothing'}"
            self.differ(f"{name}: {record.source} -> {record.target}, but {now}")

    def _transition(self, record: Transition) -> None:
        self._check_move(record)
        order = self.ledger.open[record.order]
        match record.event:
            case "give-up" | "kill" | "unclaimed":
                self._enter(TIME_OUT, record.at_ms)
                problem = self.work.time_one_out(order, record.at_ms, record.why)
            case "not-needed":
                self._enter(TAKEN_BACK if record.why in ELSEWHERE else GONE, record.at_ms)
                problem = self._not_needed(order, record)
            case _:
                self._enter(FACT, None)
                problem = self._fact(order, record)
        if problem:
            self.differ(f"{record.order}: {problem}")
        self._follow(record)

    def _fact(self, order: Order, record: Transition) -> str:
        """Tell the settlement the fact that a record speaks of."""
        at_ms, ending = record.at_ms, record.why.removeprefix("container ")
        match record.event:
            case "progress":
                self.work.note(self.work.take((UploadProgressed(order.order, at_ms),)))
            case "manifest":
                seen = ManifestSeen(order.order, order.attempt, order.generation, record.keys_done, at_ms)
                self.work.note(self.work.take((seen,)))
                return "" if record.keys_done >= 0 else "no keys are counted"
            case "granted" | "taken":
                return self.work.answer(order, record)
            case "asker-ended" | "completed" if record.why.endswith(" has ended"):
                ended = order.asker if record.event == "asker-ended" else order.victim
                self.work.note(self.work.take((ApplicationEnded(ended, at_ms),)))
            case "ended-as-ordered" | "ended-otherwise" | "completed" if ending in ENDINGS:
                seen_end = ContainerEnded(order.container, order.victim, order.node, ending, at_ms)  # type: ignore[arg-type]
                self.work.container_ended(seen_end)
            case _:
                return f"{record.event}, and nothing before it says so"
        return ""

    def _not_needed(self, order: Order, record: Transition) -> str:
        if not self.settings.model_scheduler:
            return "Natjam never takes a request back"
        if record.why in ELSEWHERE and order.state in RECALLABLE:
            self.work.note(self.work.recall(order, "not-needed", record.at_ms, record.why))
            return ""
        freed_ms = record.at_ms - (order.freed_at_ms or 0)
        if order.state != "freed" or freed_ms < self.settings.expire_ms:
            return f"taken back while {order.state} ({freed_ms} ms)"
        self.work.note(self.work.move(order.order, "not-needed", record.at_ms, why="the ask is gone"))
        return ""

    def _transfer(self, record: Transfer) -> None:
        name = record.order
        order = self.ledger.open.get(name) or self.ledger.settled.get(name)
        if order is None:
            self.differ(f"{name} is transferred, and {self._unknown(name)}")
        if order.state not in OPEN or record.source != order.asker:
            self.differ(
                f"{name} is transferred from {record.source}, but it is {order.state} for {order.asker}"
            )
        self._enter(PASSED_ON, record.at_ms)
        why = f"{order.asker} finds room elsewhere"
        if record.target == record.source or not self.settings.model_scheduler or record.why != why:
            self.differ(f"{name} is transferred to {record.target}: {record.why}")
        self.work.note(self.work.transfer(order, record.target, record.at_ms, why))
        self._follow(record)

    def _returned(self, record: Return) -> None:
        """A suspended task came back: its parts are believed, what follows from them is derived."""
        self._enter(FACT, None)
        parts = (record.launch_ms, record.shuffle_ms, record.skip_ms)
        self.work.note(self.work.take((CameBack(record.order, record.attempt, *parts, record.at_ms),)))
        self._follow(record)

    def _saved_lost(self, record: SavedLost) -> None:
        """What an attempt began from is believed; that its task was away is derived."""
        self._enter(FACT, None)
        generations = (record.generation_expected, record.generation_found)
        fact = CameBackWithout(record.order, record.attempt, record.keys_lost, *generations, record.at_ms)
        self.work.note(self.work.take((fact,)))
        self._follow(record)

    def _forgotten(self, record: Forgotten) -> None:
        """That an application is gone is believed; that anything of it was remembered is derived."""
        if record.why == "absent":
            self._enter(FORGOTTEN, record.at_ms)
            self.work.note(self.work.forget(record.application, record.at_ms, record.why))
        else:
            self._enter(FACT, None)
            self.work.note(self.work.take((ApplicationEnded(record.application, record.at_ms),)))
        self._follow(record)

    def _killed_ended(self, record: KilledEnded) -> None:
        """A killed container's end is believed; that its order still waited for it is derived."""
        self._enter(FACT, None)
        self.work.note(self.work.killed_ended(record.container, record.ending, record.at_ms))
        self._follow(record)

    # --- actions ----------------------------------------------------------------------------------

    def _performed(self, record: Performed) -> None:
        action = record.action
        if self.rank < DONE:
            self.due = deque(self._due_in_order())
        self._enter(DONE, record.at_ms)
        if isinstance(action, SetPriority):
            if action.back:
                if problem := self.priorities.performed_problem(action):
                    self.differ(problem)
            elif self.ranking.pop(action.application, None) != action.priority:
                self.differ(f"{_short(action)} was performed, and no ranking says so")
        elif isinstance(action, SetQueueMaximum):
            if problem := self.maxima.performed_problem(action):
                self.differ(problem)
        else:
            self._compare_action(action, record.at_ms)
        self.work.note(self.work.outcome(action, record.outcome, record.at_ms))
        self.expected = deque(self.work.made())

    def _due_in_order(self) -> tuple[Action, ...]:
        """Return what is due as the controller performs it."""
        return in_leaving_order(self.due, self.ledger, self.settings)

    def _compare_action(self, action: Suspend | Withdraw | Release | Kill, at_ms: int) -> None:
        """Compare an action with the one that is due, if it is not one that is sent again."""
        if action.order not in self.named:
            self.differ(f"an action for {action.order}, and no decision made it")
        if self.work.sent_again(action, at_ms):
            return
        if not self.due:
            self.differ(f"{_short(action)} was performed, and no action was due")
        want = self.due.popleft()
        if isinstance(want, Release) and isinstance(action, Release):
            seen = min(max(action.generation, 0), want.generation)  # an older one means "unchanged"
            want = msgspec.structs.replace(want, generation=seen)
        if action != want:
            self.differ(f"{_short(action)} was performed, but due is {_short(want)}")

    def _ranking(self, record: Ranking) -> None:
        """Natjam-R: levels are given from the top; the priorities that follow must be among them."""
        self._enter(RANKED, record.at_ms)
        if self.settings.mode != "deadlines" or not record.order:
            self.differ("a ranking without deadlines, or of nobody")
        levels = [row.priority for row in record.order]
        if levels != [level(place, self.settings) for place in range(len(levels))] and 0 not in levels:
            self.differ(f"priorities {levels}")
        self.ranking = {row.application: row.priority for row in record.order}


def _difference(was: object, now: object) -> str:
    """Name the first place where two parts of a choice differ."""
    if isinstance(was, tuple) and isinstance(now, tuple):
        for place, (old, new) in enumerate(zip(was, now, strict=False)):
            if old != new:
                return f"number {place + 1} was {_short(old)}, is now {_short(new)}"
        return f"there were {len(was)}, there are now {len(now)}"
    return f"was {was}, is now {now}"


def _short(value: object) -> str:
    return msgspec.json.encode(value).decode()


def replay(lines: Iterable[Line], source: str, *, closed: bool = True) -> Replayed:
    """Decide every record again; raises Different at the first difference, BadInput for bad lines.

    ``source`` names the journal in messages; ``closed``: it must leave no action out at its end.
    """
    state = Replay(source)
    for line in lines:
        state.line(line)
    if closed:
        state.finish()
    return Replayed(state.records, state.decisions, state.picks, state.transitions, state.refusals)
