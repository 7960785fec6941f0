"""Reasons: each has one sentence, at its class; the reference page is generated from them."""

from __future__ import annotations

import importlib
import pkgutil
from typing import Any, Literal, get_args

import msgspec
import pytest

from tests.architecture.reasons_page import PAGE, SECTIONS, page, reasons_of
from yarnctl import api
from yarnctl.deciding.reasons.demand import BindingLimit, NotModelled, StandingAside, Unmet
from yarnctl.deciding.reasons.eligibility import EligibilityReason, NoStreamingReducer, OtherOwner
from yarnctl.deciding.reasons.modes import ModeReason, Paused
from yarnctl.deciding.reasons.orders import Unclaimed
from yarnctl.deciding.reasons.outcomes import AttemptOver, OutcomeReason, OwnOutcome
from yarnctl.deciding.reasons.placements import (
    CostsMoreThanChosen,
    EndsTooLate,
    NothingFits,
    OverHourlyBudget,
)
from yarnctl.deciding.reasons.queue_naming import AmbiguousQueue, NoLeafQueue, ParentQueue
from yarnctl.deciding.reasons.rooting import Reason, kebab
from yarnctl.deciding.reasons.verdicts import (
    AwaitsTurn,
    CannotPay,
    CheapestInTime,
    CostsMore,
    EndedOtherwise,
    FreeNow,
    LeaseOver,
    Needs,
    NeedsMoreThanItCanUse,
    NeedsMoreThanThereIs,
    NoAccount,
    NotSubmitted,
    PaidFor,
    StartsLater,
)
from yarnctl.journal.rendering import FIELD, SECTION, UNITS, joined, span, text

EXAMPLES: dict[object, object] = {
    int: 7, int | None: 8, bool: True, Literal["known", "unknown", "too-late"]: "too-late",
    BindingLimit: "user", Literal["tag", "user", "queue"]: "user",
    tuple[str, ...]: ("bob", "cyd"), tuple[tuple[str, str], ...]: (("o-000001", "application_1_0001"),),
    tuple[tuple[str, int], ...]: (("application_1_0001", 2),),
}  # fmt: skip


LIMITS: tuple[tuple[BindingLimit, str, str], ...] = (
    ("user", "ada", "user ada is at the user limit"),
    ("queue", "", "the queue is at its maximum"),
    ("parent", "root.p", "parent queue root.p is at its maximum"),
    ("masters", "", "the queue's limit on application masters"),
)

EVERY = sorted(
    {each for union in SECTIONS.values() for each in reasons_of(union)}, key=lambda kind: kind.__name__
)


def test_reference_page_is_up_to_date() -> None:
    """Run ``python -m tests.architecture.reasons_page --write`` after a change of a sentence."""
    assert PAGE.read_text(encoding="utf-8") == page()


@pytest.mark.parametrize("kind", EVERY, ids=lambda kind: kind.__name__)
def test_template_uses_fields_of_its_class(kind: type[Reason]) -> None:
    assert kind.sentence
    template = f"{kind.sentence} {kind.remedy}"
    named = {name for name, *_ in SECTION.findall(template)} | {name for name, _ in FIELD.findall(template)}
    assert named <= set(kind.__struct_fields__)
    assert {unit for _, unit in FIELD.findall(template)} <= {"", *UNITS}


@pytest.mark.parametrize("kind", EVERY, ids=lambda kind: kind.__name__)
def test_every_reason_renders_without_placeholders(kind: type[Reason]) -> None:
    values: dict[str, Any] = {
        field.name: EXAMPLES.get(field.type, "lost") for field in msgspec.structs.fields(kind)
    }
    assert not set("[]{}?") & set(text(kind(**values)))


@pytest.mark.parametrize(
    ("span_ms", "shown"),
    [(0, "0 ms"), (999, "999 ms"), (1000, "1 s"), (1250, "1.25 s"), (12_000, "12 s"), (12_340, "12.3 s"),
     (119_900, "119.9 s"), (120_000, "2 min"), (125_400, "2 min 5 s"), (7_199_999, "120 min"),
     (7_200_000, "2 h"), (9_000_000, "2 h 30 min"), (-1500, "-1.5 s"), (9_990, "9.99 s")],
)  # fmt: skip
def test_span_for_people(span_ms: int, shown: str) -> None:
    assert span(span_ms) == shown


@pytest.mark.parametrize(
    ("why", "sentence"),
    [
        (Unmet(), "pending requests fit on no node"),
        (Unmet(3), "pending requests fit on no node; 3 of them are predicted, not sent yet"),
        (NotModelled(("gpu",)),
         "no container is freed for some requests; the queue has no capacity of node labels: gpu"),
        (NotModelled((), ("yarn.io/gpu",)),
         "no container is freed for some requests; yarnctl does not model resource types: yarn.io/gpu"),
        (NotModelled(("a", "b"), ("fpga",)),
         "no container is freed for some requests; the queue has no capacity of node labels: a, b;"
         " yarnctl does not model resource types: fpga"),
        (Unclaimed(5000), "no application received the freed container within 5 s"),
        (Unclaimed(12_000, True),
         "no application received the freed container within 12 s; the requesting application still waits"),
        (Paused("paused by a person"), "paused by a person"),
        (
            StandingAside("root.etl", 7, (("o-000001", "application_1_0001"), ("o-000002", "")), 10),
            "no container is freed for queue root.etl until 7 ms: other applications received 2 of the last"
            " 10 containers freed for it (o-000001 (application_1_0001), o-000002 (unknown)); probable cause:"
            " the queue's limits (yarnctl check shows them);"
            " to end the pause earlier, run yarnctl resume root.etl",
        ),
        *(
            (
                StandingAside("root.p.etl", 7, (("o-000001", "a"),), 1, limit, holder),
                "no container is freed for queue root.p.etl until 7 ms: other applications received 1 of the"
                f" last 1 containers freed for it (o-000001 (a)); probable cause: {cause};"
                " to end the pause earlier, run yarnctl resume root.p.etl",
            )
            for limit, holder, cause in LIMITS
        ),
        (NoLeafQueue(("a", "b"), ("root.c", "root.d"), 7, ("root.aa",)),
         "no leaf queue a, b (nearest: root.aa); leaf queues (7): root.c, root.d"),
        (NoLeafQueue(("a",), (), 0), "no leaf queue a; leaf queues (0): none"),
        (AmbiguousQueue("a", ("root.x.a", "root.y.a"), 2),
         "queue name a is ambiguous, it matches 2 queues: root.x.a, root.y.a; give the full path"),
        (ParentQueue("a", ("root.a.b",), 1),
         "queue a is a parent queue; name one of its 1 leaf queues: root.a.b"),
        (ParentQueue("a", (), 0),
         "queue a is a parent queue; it has no leaf queue now: name one when it has"),
        (AttemptOver("FAILED"), "the attempt no longer runs (FAILED)"),
        (AttemptOver(), "the attempt no longer runs"),
        (NoStreamingReducer(is_streaming=True, key="k"),
         "the streaming job has no reducer command: k is not set"),
        (NoStreamingReducer(is_streaming=False, key="k"),
         "the job is a Java job, not a streaming job: k is not set"),
        (FreeNow(1), "1 container free now, enough to meet the deadline"),
        (FreeNow(2), "2 containers free now, enough to meet the deadline"),
        (Needs(1, 0, "known"), "needs 1 container, 0 free now"),
        (Needs(5, 4, "unknown"), "needs 5 containers, 4 free now; start time unknown"),
        (Needs(5, 4, "too-late"), "needs 5 containers, 4 free now; they become free too late"),
        (NeedsMoreThanItCanUse(12, 10), "needs 12 containers to end by its deadline and can use 10 at once"),
        (NeedsMoreThanThereIs(12, 8), "needs 12 containers to end by its deadline and the cluster has 8"),
        (NothingFits(None), "no option fits at any time: each needs more containers or money than available"),
        (NothingFits(94), "no option meets the deadline; the earliest possible end is 94 ms"),
        (PaidFor(48_200), "the deadline costs 48.2 tokens"),
        (PaidFor(1_000), "the deadline costs 1 token"),
        (AwaitsTurn(48_200, 94),
         "the deadline is promised for 48.2 tokens; the job is submitted at its turn, planned for 94 ms"),
        (NoAccount(), "the request names no account to pay from"),
        (NoAccount("analytics"), "account analytics does not exist"),
        (
            CostsMore(52_000, 8, 40_000, 9),
            "the deadline 8 ms costs 52 tokens, above the budget of 40 tokens;"
            " within the budget the earliest is 9 ms",
        ),
        (CostsMore(52_000, 8, 1), "the deadline 8 ms costs 52 tokens, above the budget of 0.001 tokens"),
        (CannotPay(52_000, 8, 0), "the deadline 8 ms costs 52 tokens, and the account holds 0 tokens"),
        (CheapestInTime("spark", 3, 48_200),
         "spark with 3 containers is the cheapest option that meets the deadline: 48.2 tokens"),
        (StartsLater("fast", 3, 94), "3 containers of pool fast reserved from 94 ms"),
        (EndsTooLate(94, 93), "would end at 94 ms, after the deadline at 93 ms"),
        (OverHourlyBudget(2_000, 1_000),
         "would raise the pool's cost to 2 tokens an hour, above its limit of 1 token"),
        (CostsMoreThanChosen(2_000, 1_000), "costs 2 tokens; the chosen option costs 1 token"),
        (
            NothingFits(94, 4, ("flink", "spark")),
            "no option meets the deadline; the earliest possible end is 94 ms;"
            " 4 containers would suffice if free now; too few known runs on flink, spark",
        ),
        (LeaseOver(120_000), "the lease expired: no client renewed it within 2 min"),
        (NotSubmitted(60_000), "no application with its tag was submitted within 60 s"),
        (EndedOtherwise("KILLED"), "the job did not succeed (KILLED), so its work is unknown"),
        (EndedOtherwise(), "the job did not succeed (unknown state), so its work is unknown"),
        (OtherOwner(("bob", "cyd"), "yarnctl"),
         "the job accepts orders from bob or cyd, yarnctl runs as yarnctl"),
    ],
)  # fmt: skip
def test_sentences_that_depend_on_their_fields(why: Reason, sentence: str) -> None:
    assert text(why) == sentence


def test_foreign_text_is_not_read_as_a_template() -> None:
    assert text(Paused("{text:span} [text?x|y]")) == "{text:span} [text?x|y]"


def test_several_reasons_are_joined_in_one_line() -> None:
    assert joined([LeaseOver(1_000), EndedOtherwise("KILLED")]) == (
        "the lease expired: no client renewed it within 1 s;"
        " the job did not succeed (KILLED), so its work is unknown"
    )
    assert joined([]) == ""


@pytest.mark.parametrize("heading", SECTIONS)
def test_a_reason_is_read_back_as_it_was_written(heading: str) -> None:
    union = SECTIONS[heading]
    for kind in get_args(union):
        values: dict[str, Any] = {
            field.name: EXAMPLES.get(field.type, "lost") for field in msgspec.structs.fields(kind)
        }
        line = msgspec.json.encode(kind(**values))
        assert msgspec.json.decode(line, type=union) == kind(**values)
        assert msgspec.json.encode(msgspec.json.decode(line, type=union)) == line


def test_an_outcome_may_have_any_reason_of_a_mode_or_of_eligibility() -> None:
    every = {kind for union in (OwnOutcome, ModeReason, EligibilityReason) for kind in get_args(union)}
    assert set(get_args(OutcomeReason)) == every
    assert len({kind.__struct_config__.tag for kind in every}) == len(every)


def api_structs() -> list[type[msgspec.Struct]]:
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


def test_a_tag_is_the_name_in_kebab_case() -> None:
    assert [kebab(name) for name in ("Unmet", "RoomGoesTo", "NoTaskMayStop")] == [
        "unmet",
        "room-goes-to",
        "no-task-may-stop",
    ]
