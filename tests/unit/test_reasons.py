"""Reasons against the table of research/notes/design-notes.md: a row has its class, fields and sentence."""

from __future__ import annotations

import importlib
import pkgutil
import re
from pathlib import Path
from typing import Any, Literal, get_args

import msgspec
import pytest

from yarnctl import api
from yarnctl.deciding.reasons.demand import NotModelled, TriggerReason, Unmet
from yarnctl.deciding.reasons.eligibility import EligibilityReason, NoStreamingReducer, OtherOwner
from yarnctl.deciding.reasons.modes import Misdirected, ModeReason, Paused
from yarnctl.deciding.reasons.orders import MoveReason, QueueReason, Unclaimed
from yarnctl.deciding.reasons.outcomes import AttemptOver, OutcomeReason, OwnOutcome
from yarnctl.deciding.reasons.placements import (
    CostsMoreThanChosen,
    EndsTooLate,
    NothingFits,
    OverHourlyBudget,
    PlacementReason,
)
from yarnctl.deciding.reasons.rooting import Reason, kebab
from yarnctl.deciding.reasons.verdicts import (
    AwaitsTurn,
    CannotPay,
    CheapestInTime,
    ClosedReason,
    CostsMore,
    EndedOtherwise,
    FreeNow,
    GateReason,
    LeaseOver,
    LessonReason,
    Needs,
    NeedsMoreThanItCanUse,
    NeedsMoreThanThereIs,
    NoAccount,
    NotSubmitted,
    PaidFor,
    PlanReason,
    StartsLater,
)
from yarnctl.journal.rendering import MADE, SENTENCES, joined, text

PAGE = Path(__file__).parents[2] / "research" / "notes" / "design-notes.md"
UNIONS = {
    "TriggerReason": TriggerReason,
    "MoveReason": MoveReason,
    "QueueReason": QueueReason,
    "ModeReason": ModeReason,
    "OutcomeReason": OwnOutcome,
    "EligibilityReason": EligibilityReason,
    "PlanReason": PlanReason,
    "ClosedReason": ClosedReason,
    "LessonReason": LessonReason,
    "GateReason": GateReason,
    "PlacementReason": PlacementReason,
}
"""What each table holds; an outcome may have any reason of a mode or of eligibility, too."""
EXAMPLES: dict[object, object] = {
    int: 7,
    int | None: 8,
    bool: True,
    Literal["known", "unknown", "too-late"]: "too-late",
    tuple[str, ...]: ("bob", "cyd"),
    tuple[tuple[str, str], ...]: (("o-000001", "application_1_0001"),),
}


def rows(union: str) -> dict[str, tuple[tuple[str, ...], str]]:
    """Return tag -> fields and sentence, of the table of one union."""
    section = next(part for part in PAGE.read_text().split("\n### ") if f"`{union}`" in part.split("\n")[0])
    found = {}
    for line in section.split("\n"):
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if line.startswith("| `"):
            found[cells[0].strip("`")] = (tuple(re.findall(r"`(\w+)`", cells[1])), cells[2])
    return found


def kinds(union: str) -> dict[str, type[Reason]]:
    return {str(each.__struct_config__.tag): each for each in get_args(UNIONS[union])}


@pytest.mark.parametrize("union", sorted(UNIONS))
def test_every_row_has_its_class_and_every_class_its_row(union: str) -> None:
    assert list(kinds(union)) == list(rows(union))
    for tag, kind in kinds(union).items():
        assert rows(union)[tag][0] == kind.__struct_fields__, tag


@pytest.mark.parametrize("union", sorted(UNIONS))
def test_every_reason_reads_as_the_table_says(union: str) -> None:
    for tag, kind in kinds(union).items():
        if kind not in MADE:
            named: dict[str, Any] = {field: f"{{{field}}}" for field in kind.__struct_fields__}
            assert text(kind(**named)) == rows(union)[tag][1], tag


@pytest.mark.parametrize(
    ("why", "sentence"),
    [
        (Unmet(), "asks that fit on no node"),
        (Unmet(3), "asks that fit on no node, foreseen while its master starts: 3"),
        (NotModelled(("gpu",)), "requests nodes with the label gpu, which is not modelled"),
        (NotModelled((), ("yarn.io/gpu",)), "requests yarn.io/gpu, which is not modelled"),
        (
            NotModelled(("a", "b"), ("fpga",)),
            "requests nodes with the labels a, b and fpga, which are not modelled",
        ),
        (Unclaimed(5000), "nobody was seen to get it in 5000 ms"),
        (Unclaimed(5000, True), "nobody was seen to get it in 5000 ms, and its asker still waits"),
        (Paused("paused by a person"), "paused by a person"),
        (
            Misdirected((("o-000001", "application_1_0001"), ("o-000002", "")), 10),
            "the room of 2 of the last 10 releases went to somebody else: o-000001 (application_1_0001),"
            " o-000002 (unknown); check queue shares and priorities, then continue the loop",
        ),
        (AttemptOver("FAILED"), "the attempt is FAILED already"),
        (AttemptOver(), "the attempt is gone already"),
        (
            NoStreamingReducer(is_streaming=True, key="k"),
            "no streaming job with a reducer of its own (its reducer is a Java class, or it has none):"
            " k is not set",
        ),
        (
            NoStreamingReducer(is_streaming=False, key="k"),
            "no streaming job with a reducer of its own (a Java job): k is not set",
        ),
        (FreeNow(1), "1 container is free now, and should do"),
        (FreeNow(2), "2 containers are free now, and should do"),
        (Needs(1, 0, "known"), "1 container is needed, 0 are free now"),
        (
            Needs(5, 4, "unknown"),
            "5 containers are needed, 4 are free now; when they will be, nobody can tell",
        ),
        (
            Needs(5, 4, "too-late"),
            "5 containers are needed, 4 are free now; once they are, it will be too late",
        ),
        (
            NeedsMoreThanItCanUse(12, 10),
            "it needs 12 containers to end by its deadline, it can use 10 at once",
        ),
        (NeedsMoreThanThereIs(12, 8), "it needs 12 containers to end by its deadline, the cluster has 8"),
        (NothingFits(None), "no option fits at any time: it takes more containers or money than there are"),
        (NothingFits(94), "no option meets its deadline; one would by 94 ms"),
        (PaidFor(48_200), "its deadline costs 48.2 tokens"),
        (PaidFor(1_000), "its deadline costs 1 token"),
        (
            AwaitsTurn(48_200, 94),
            "its deadline costs 48.2 tokens and is promised; it is submitted when its turn comes,"
            " at 94 ms by the plan",
        ),
        (NoAccount(), "it names no account to pay from"),
        (NoAccount("analytics"), "there is no account analytics"),
        (
            CostsMore(52_000, 8, 40_000, 9),
            "for 52 tokens it could be done by 8 ms, and 40 tokens at most were agreed;"
            " within these it could be done by 9 ms",
        ),
        (
            CostsMore(52_000, 8, 1),
            "for 52 tokens it could be done by 8 ms, and 0.001 tokens at most were agreed",
        ),
        (CannotPay(52_000, 8, 0), "for 52 tokens it could be done by 8 ms, and its account holds 0 tokens"),
        (
            CheapestInTime("spark", 3, 48_200),
            "spark with 3 containers is the cheapest that ends in time: 48.2 tokens",
        ),
        (StartsLater("fast", 3, 94), "3 containers of pool fast are reserved from 94 ms on"),
        (EndsTooLate(94, 93), "it would end at 94 ms, after its deadline at 93 ms"),
        (OverHourlyBudget(2_000, 1_000), "with it the pool would cost 2 tokens an hour, and may 1 token"),
        (CostsMoreThanChosen(2_000, 1_000), "it costs 2 tokens, what was chosen 1 token"),
        (CostsMoreThanChosen(2_000, 2_000), "it costs as much (2 tokens), and starts no sooner"),
        (
            NothingFits(94, 4, ("flink", "spark")),
            "no option meets its deadline; one would by 94 ms; 4 containers would do if they were free now;"
            " too few runs are known on flink, spark",
        ),
        (LeaseOver(120_000), "nobody has asked for it for 120 s: nobody waits any more"),
        (NotSubmitted(60_000), "nothing was submitted with its tag within 60 s"),
        (EndedOtherwise("KILLED"), "it ended KILLED, so that its work is not known"),
        (EndedOtherwise(), "it ended in an unknown state, so that its work is not known"),
        (OtherOwner(("bob", "cyd"), "yarnctl"), "it takes requests from bob or cyd, we are yarnctl"),
    ],
)
def test_sentences_that_depend_on_their_fields(why: Reason, sentence: str) -> None:
    assert text(why) == sentence


def test_several_reasons_are_told_in_one_line() -> None:
    assert joined([LeaseOver(1_000), EndedOtherwise("KILLED")]) == (
        "nobody has asked for it for 1 s: nobody waits any more;"
        " it ended KILLED, so that its work is not known"
    )
    assert joined([]) == ""


@pytest.mark.parametrize("union", sorted(UNIONS))
def test_a_reason_is_read_back_as_it_was_written(union: str) -> None:
    for kind in get_args(UNIONS[union]):
        values: dict[str, Any] = {
            field.name: EXAMPLES.get(field.type, "lost") for field in msgspec.structs.fields(kind)
        }
        line = msgspec.json.encode(kind(**values))
        assert msgspec.json.decode(line, type=UNIONS[union]) == kind(**values)
        assert msgspec.json.encode(msgspec.json.decode(line, type=UNIONS[union])) == line


def test_an_outcome_may_have_any_reason_of_a_mode_or_of_eligibility() -> None:
    every = {kind for union in (OwnOutcome, ModeReason, EligibilityReason) for kind in get_args(union)}
    assert set(get_args(OutcomeReason)) == every
    assert len({kind.__struct_config__.tag for kind in every}) == len(every)


def api_structs() -> list[type[msgspec.Struct]]:
    """All structs of the API's answers."""
    names = [each.name for each in pkgutil.iter_modules(api.__path__)]
    modules = [importlib.import_module(f"yarnctl.api.{name}") for name in names]
    return [
        kind
        for module in modules
        for kind in vars(module).values()
        if isinstance(kind, type) and issubclass(kind, msgspec.Struct) and kind.__module__ == module.__name__
    ]


@pytest.mark.parametrize("kind", api_structs(), ids=lambda kind: kind.__name__)
def test_an_answer_that_says_why_has_the_code_beside_it(kind: type[msgspec.Struct]) -> None:
    names = set(kind.__struct_fields__)
    coded = {"why": "reason", "why_not": "reason", "problem": "reason", "left_alone": "left_alone_reasons"}
    assert {coded[name] for name in names & set(coded)} <= names


def test_there_is_one_sentence_for_each() -> None:
    every = {kind for union in UNIONS.values() for kind in get_args(union)}
    assert every == {*SENTENCES, *MADE}
    assert not SENTENCES.keys() & MADE.keys()


def test_a_tag_is_the_name_in_kebab_case() -> None:
    assert [kebab(name) for name in ("Unmet", "RoomGoesTo", "NoTaskMayStop")] == [
        "unmet",
        "room-goes-to",
        "no-task-may-stop",
    ]
