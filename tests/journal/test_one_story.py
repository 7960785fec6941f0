"""One story of an order: the same from explain over a journal, from the API, and in the reclaim lists."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any
from unittest.mock import patch

import msgspec
import pytest

from tests.frozen.journals import names, raw
from yarnctl.api.order_answers import EntryOut
from yarnctl.cli import reclaims
from yarnctl.daemon.view.published import LoopStatus, View
from yarnctl.daemon.view.recent_orders import RecentOrders
from yarnctl.deciding.inputs import Observed
from yarnctl.deciding.order import order_number
from yarnctl.deciding.records import Decision, Record, Transition, decode
from yarnctl.journal.explaining.explain import explain
from yarnctl.journal.explaining.order_stories import OrderStories
from yarnctl.journal.explaining.story import OrderStory
from yarnctl.journal.fold import Fold
from yarnctl.service.answers.explanations import everything_about, stories_of, summary
from yarnctl.service.answers.from_view import entry, reclaim_list

END = b'{"type":"end"'
SAME = (
    "order", "decision", "requester", "victim", "attempt", "generation", "state", "sent", "why",
    "ordered_at_ms", "progress_at_ms", "checkpointed_at_ms", "freed_at_ms", "settled_at_ms", "keys_done",
    "remaining_ms", "predicted_cost_ms", "lost_work_ms", "receiver_application", "receiver_container",
    "names", "observed", "serves", "group",
)  # fmt: skip
"""What an entry of a reclaim list and a story have under one name."""


def records_of(name: str) -> list[Record]:
    return [decode(line) for line in raw(name).splitlines() if not line.startswith(END)]


def fed(records: Sequence[Record]) -> tuple[RecentOrders, Fold]:
    """Return what a running daemon shows after these records, and its ledger; published at each step."""
    recent, fold = RecentOrders(), Fold()
    for record in records:
        if isinstance(record, Observed):
            recent.update(fold.ledger)
        fold.apply(record)
        recent.apply(record)
    recent.update(fold.ledger)
    return recent, fold


def view_of(recent: RecentOrders) -> View:
    return View(
        version=1, now_ms=0, loop=LoopStatus(), entries=recent.entries, ended=recent.ended,
        decisions=recent.decisions, refusals=tuple(recent.refusals), rankings=tuple(recent.rankings),
    )  # fmt: skip


def explained(records: Sequence[Record]) -> dict[str, OrderStory]:
    """Return the stories that explain has of the last controller's orders, by id."""
    numbers = {str(record.number) for record in records if isinstance(record, Decision)}
    found = [story for number in sorted(numbers) for story in explain(records, number).orders]
    return {story.order: story for story in found}


def told(name: str) -> Iterator[tuple[OrderStory, OrderStory, dict[str, Any]]]:
    """Yield each order's story in a journal, in the API's explanation, and its entry in the reclaim lists."""
    records = records_of(name)
    recent, _ = fed(records)
    view, journal = view_of(recent), explained(records)
    shown = sorted((*view.entries, *view.ended), key=lambda story: order_number(story.order))
    for story in shown:
        (api,) = everything_about(view, story.order).orders
        listed = reclaim_list(story.requester, None, [story], view).entries[0]
        yield journal[story.order], api, msgspec.structs.asdict(listed)


WITH_ORDERS = [name for name in names() if b'"type":"decision"' in raw(name)]


@pytest.mark.parametrize("name", WITH_ORDERS)
def test_story_is_equal_in_explain_api_and_reclaims(name: str) -> None:
    count = 0
    for journal, api, listed in told(name):
        count += 1
        assert api == journal
        assert {field: listed[field] for field in SAME} == {field: getattr(journal, field) for field in SAME}
        assert listed["verb"] == journal.order_verb
        assert listed["container"] == (journal.left or journal.container)
        assert listed["cost_ms"] == (journal.came_back.cost_ms if journal.came_back else None)
        assert set(journal.names) >= {journal.first_requester, journal.victim}
    assert count > 0


@pytest.mark.parametrize("name", WITH_ORDERS)
def test_decisions_count_what_their_stories_say(name: str) -> None:
    recent, _ = fed(records_of(name))
    for decided in recent.decisions:
        shown = summary(decided)
        assert sum(shown.states.values()) == shown.chosen == len(decided.record.orders)
        assert shown.withheld == sum(story.sent == "withheld" for story in decided.orders)
        assert set(shown.names) == {shown.application, *shown.victims}


def test_stories_follow_the_ledger() -> None:
    """An order that is in the ledger has its state there, also one whose decision was not read."""
    for name in WITH_ORDERS:
        records = records_of(name)
        recent, fold = fed(records)
        orders = {**fold.ledger.open, **fold.ledger.settled}
        assert {story.order: story.state for story in recent.entries} == {
            each.order: each.state for each in orders.values()
        }
        late = RecentOrders()
        late.update(fold.ledger)
        assert {story.order: (story.state, story.victim) for story in late.entries} == {
            each.order: (each.state, each.victim) for each in orders.values()
        }


def test_reclaims_prints_names_without_control_characters(capsys) -> None:
    recent, _ = fed(records_of("virtual-natjam"))
    view, story = view_of(recent), recent.ended[0]
    (known,) = (one for each, one in story.names.items() if each == story.victim)
    evil = msgspec.structs.replace(
        story, names={**story.names, story.victim: known._replace(name="\x1b[2Jx")}
    )
    reclaims._print_list(reclaim_list(story.requester, None, [evil], view), 0)
    out = capsys.readouterr().out
    assert "\x1b" not in out
    assert "\\x1b[2Jx" in out
    assert entry(evil, True).names[story.victim].name == "\x1b[2Jx"  # JSON escapes it


def forgetful(record: Record) -> bool:
    return isinstance(record, Transition) and record.target == "checkpointed"


class ForgetsCheckpoints(OrderStories):
    """A fold that overlooks manifests."""

    def apply(self, record: Record) -> Sequence[OrderStory]:
        return () if forgetful(record) else super().apply(record)


def keys_lost(story: OrderStory, retired: bool) -> EntryOut:
    return msgspec.structs.replace(entry(story, retired), keys_done=None)


def still_open(view: View) -> list[OrderStory]:
    return [msgspec.structs.replace(story, state="freed") for story in stories_of(view)]


@pytest.mark.parametrize(
    ("place", "fault"),
    [("yarnctl.journal.explaining.explain.OrderStories", ForgetsCheckpoints),
     ("yarnctl.daemon.view.recent_orders.OrderStories", ForgetsCheckpoints),
     ("yarnctl.service.answers.explanations.stories_of", still_open),
     ("yarnctl.service.answers.from_view.entry", keys_lost)],
)  # fmt: skip
def test_a_fault_in_one_reader_is_seen(place: str, fault: object) -> None:
    with patch(place, fault), pytest.raises(AssertionError):
        test_story_is_equal_in_explain_api_and_reclaims("virtual-natjam")
