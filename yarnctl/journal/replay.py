"""Replay: give each input of a journal to a controller again, and compare the resulting records line by line.

The recorded observations are taken as true; all else must come out the same, byte for byte. A step's records
follow its input; the outcomes of its actions follow them, each once and in order, before the next input. The
records of the daemon's own parts and of admission may come between steps; they are compared with the state
after the records before them, and so is a state at the head of a file. The first difference ends the replay
with its story.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from typing import NoReturn, get_args

import msgspec

from yarnctl.deciding import records
from yarnctl.deciding.admission.payments import sold_deadlines
from yarnctl.deciding.controller import Controller, Remembered
from yarnctl.deciding.inputs import InputReader, Observed
from yarnctl.deciding.model import Action
from yarnctl.deciding.policies import FOREVER_MS, JOB_POLICIES, TASK_POLICIES
from yarnctl.deciding.records import Record
from yarnctl.deciding.settings import PROFILES, validate
from yarnctl.errors import BadInput, Different
from yarnctl.journal.file import Line
from yarnctl.journal.fold import Fold

BETWEEN_STEPS: tuple[type, ...] = get_args(
    records.DaemonRecord | records.GateRecord | records.AdmissionRecord
)
"""Kinds of records that no step makes: the daemon's own, and those of admission."""


class Replayed(msgspec.Struct, frozen=True, omit_defaults=True):
    """How much was decided again, without a difference. ``steps``: inputs that were given again.

    ``not_replayed``: records of a pruned journal before its first ``header``. Their controller began in a
    segment that was deleted: only the chain and the states at the head of files were checked.
    """

    records: int
    decisions: int
    picks: int
    transitions: int
    refusals: int
    steps: int
    not_replayed: int = 0


class Replay:
    """Replays the journal ``source``, line by line. ``fold`` is the state after the lines so far."""

    def __init__(self, source: str) -> None:
        self.source = self.where = source
        self.fold = Fold()
        self.controller: Controller | None = None
        self.records = self.decisions = self.transitions = self.refusals = self.picks = self.steps = 0
        self.not_replayed = 0
        self._is_pruned = False
        self._reader = InputReader()
        self._header: records.Header | None = None
        self._left: Remembered | None = None
        self._opening: list[bytes] = []
        self._expected: deque[bytes] = deque()
        self._due: deque[Action] = deque()

    def differ(self, story: str) -> NoReturn:
        """End the replay."""
        raise Different(f"{self.where}: {story}")

    def line(self, line: Line) -> None:
        """Check one line; raises Different, or BadInput for a header that no controller writes."""
        record = line.record
        self.where = f"{self.source}:{line.number}"
        if records.encode(record) != line.raw:
            self.differ("the record reads back to other bytes than the line holds")
        if isinstance(record, records.State) and not self.records:
            self._is_pruned = True
        elif self._is_pruned and not isinstance(record, records.Header | records.State):
            self._between_records(record)
            self.not_replayed += 1
        else:
            self._is_pruned = self._is_pruned and isinstance(record, records.State)
            self._take(record, line.raw)
        self.fold.apply(record)
        self._count(record)

    def _take(self, record: Record, raw: bytes) -> None:
        if isinstance(record, records.Header):
            # What was due is dropped: the controller ended without writing it.
            self._check_header(record)
            self._header, self._left, self._opening = record, None, [raw]
            self._expected.clear()
            self._due.clear()
        elif isinstance(record, records.State):
            left = records.encode(self.fold.state())
            if left != raw:
                self.differ(_difference(raw.decode().rstrip(), left.decode().rstrip()))
        elif isinstance(record, records.Resumed):
            if self._header is None or len(self._opening) != 1:
                self.differ("a controller continues where a new one must begin")
            self._left = self.fold.remembered()
            self._opening.append(raw)
        elif isinstance(record, Observed):
            self._observed(record, raw)
        elif isinstance(record, records.Stopped):
            self._between_steps()
            self._begin(self._deciding().stop(record.at_ms), [raw])
        elif isinstance(record, records.Performed) and not (record.queue or record.back):
            self._performed(record, raw)
        elif isinstance(record, (records.Performed, *BETWEEN_STEPS)):
            self._between_records(record)
        else:
            if isinstance(record, records.Ranking):
                self._require_paid(record)
            self._compare(raw)

    def _between_records(self, record: Record) -> None:
        if self._expected:
            self.differ(f"before this, {self._expected[0].decode().rstrip()} is due")
        if problem := self.fold.problem(record):
            self.differ(problem)

    def _require_paid(self, record: records.Ranking) -> None:
        """End the replay where deadlines are sold, and one ranks that is not."""
        if self._deciding().settings.deadlines != "sold":
            return
        sold = sold_deadlines(self.fold.book)
        for row in record.order:
            if row.urgency_ms < FOREVER_MS and row.application not in sold:
                self.differ(f"{row.application} is ranked by a deadline, and has no paid, claimed admission")

    def _check_header(self, record: records.Header) -> None:
        """Refuse settings by which nothing can be decided."""
        settings = record.settings
        for field, known in (
            ("job_policy", JOB_POLICIES),
            ("task_policy", TASK_POLICIES),
            ("profile", PROFILES),
        ):
            if getattr(settings, field) not in known:
                kind = "profile" if field == "profile" else "policy"
                raise BadInput(self.where, f"no {kind} {getattr(settings, field)!r} in {field}")
        try:
            validate(settings)
        except BadInput as error:
            raise BadInput(self.where, str(error)) from None

    def _between_steps(self) -> None:
        if self._expected:
            self.differ(f"before this, {self._expected[0].decode().rstrip()} is due")
        if self._due:
            self.differ(f"before this, {_short(self._due[0])} must be performed")

    def _observed(self, observed: Observed, raw: bytes) -> None:
        self._between_steps()
        if self._header is not None:
            self._start(self._header)
        self._opening.append(raw)
        step = self._deciding().fed(observed, self._reader)
        if step.records:  # else a round of one decision: its result follows
            opening, self._opening = self._opening, []
            self._begin(step, opening)
        self.steps += 1

    def _start(self, header: records.Header) -> None:
        """Make the controller that a header begins."""
        self.controller = Controller(
            header.settings, frozenset(header.capabilities), validate=True, remembered=self._left
        )
        self._header, self._left, self._reader = None, None, InputReader()

    def _deciding(self) -> Controller:
        if self.controller is None or self._header is not None:
            self.differ("a step, and no controller has begun")
        return self.controller

    def _begin(self, step: records.Step, opening: list[bytes]) -> None:
        """Compare a step's first records with those read already; the others are due."""
        self._expected, self._due = deque(map(records.encode, step.records)), deque(step.actions)
        for raw in opening:
            self._compare(raw)

    def _compare(self, raw: bytes) -> None:
        if not self._expected:
            self.differ(f"{raw.decode().rstrip()}, but nothing would have been written")
        want = self._expected.popleft()
        if want != raw:
            self.differ(_difference(raw.decode().rstrip(), want.decode().rstrip()))

    def _performed(self, record: records.Performed, raw: bytes) -> None:
        if self._expected:
            self.differ(f"before this, {self._expected[0].decode().rstrip()} is due")
        if not self._due:
            self.differ(f"{raw.decode().rstrip()}, and no action was due")
        action = self._due.popleft()
        if not record.is_of(action):
            self.differ(f"{raw.decode().rstrip()}, but due is {_short(action)}")
        self._expected = deque(map(records.encode, self._deciding().settle(action, record.outcome)))
        self._compare(raw)

    def _count(self, record: Record) -> None:
        self.records += 1
        self.transitions += isinstance(record, records.Transition)
        self.refusals += isinstance(record, records.Refusal)
        if isinstance(record, records.Decision):
            self.decisions += 1
            self.picks += len(record.picks)

    def finish(self) -> None:
        """Check that a journal that was closed leaves nothing out."""
        if self._expected:
            self.differ(f"the journal ends, and {self._expected[0].decode().rstrip()} is due")
        if self._due:
            self.differ(f"the journal ends, and {_short(self._due[0])} was not performed")
        if len(self._opening) > 1:
            self.differ("the journal ends, and a look was not decided on")


def _difference(was: str, want: str) -> str:
    """Return both lines from shortly before the first position where they differ."""
    place = next((i for i, (one, other) in enumerate(zip(was, want, strict=False)) if one != other), 0)
    begin = max(0, place - 200)
    return f"{was[:60]}: ...{was[begin : place + 200]}, but due is ...{want[begin : place + 200]}"


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
    return msgspec.convert(state, Replayed, from_attributes=True)
