"""Journals of formats 4 and 5 are read, gone on from and explained as the programs did that wrote them.

What those programs made of each golden journal was recorded with them (``tests/frozen``). Here: that what
they wrote is read whole, that it is translated, and what is left where a crash tore the last line.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, get_args

import msgspec
import pytest

from tests.frozen import journals
from tests.frozen.catalogue import piece
from tests.frozen.invoking import invoked
from tests.frozen.rebuilt import rebuilt
from yarnctl.deciding import records as today
from yarnctl.deciding.admission.entries import GateLearned
from yarnctl.deciding.admission.records import Choices
from yarnctl.deciding.inputs import Observed
from yarnctl.deciding.reasons.orders import Unclaimed
from yarnctl.deciding.reasons.rooting import Reason, Said
from yarnctl.deciding.reasons.verdicts import PlanReason
from yarnctl.errors import BadInput
from yarnctl.journal.chain import Chain, body_of
from yarnctl.journal.fold import Fold
from yarnctl.journal.older.records_5 import OLDER, Record5, decode_5
from yarnctl.journal.older.translating import OUR_CLOCK, Translator
from yarnctl.journal.rebuild import rebuild
from yarnctl.journal.rendering import text

WHOLE = ("format-4-all-at-once", "format-5-all-at-once")
OLD = [name for name, facts in piece("journals").frozen().items() if set(facts["formats"]) <= set(OLDER)]
"""Golden journals in an older format, whatever is written today."""
LEFT_OUT = {"header": {"complete"}, "decision": {"case"}, "resumed": {"orders", "again"}}
"""What no record of today says in that place."""
STATES = {"asked", "suspending", "checkpointed", "freed"}
EXPLAINED = 5


def _gate_set_as_before(made: dict[str, Any]) -> dict[str, Any]:
    """A mechanism's own choices are some of those that all have; the others stood at their defaults."""
    (pool,) = made.pop("pools")
    assert pool.pop("name") == ""
    own, name = made.pop("choices"), made.pop("mechanism")
    assert own.pop("mechanism") == name
    choices = {**msgspec.to_builtins(Choices()), **own}
    return {**made, "allocator": name, "queues": [], **pool, "choices": choices}


def _round_as_before(made: dict[str, Any]) -> dict[str, Any]:
    plans = [
        {"start_at_ms": None, "finish_at_ms": None, **plan, "reason": _sentence(plan["reason"])}
        for plan in made["plans"]
    ]
    granted = [{"application": "", **one, **one.pop("claim")} for one in made["granted"]]
    assert {one.pop("claim") for one in granted} <= {"rectangle"}
    return {**made, "plans": plans, "granted": granted}


def _why_as_before(made: dict[str, Any]) -> dict[str, Any]:
    return {"why": "", **made}


def _sentence(why: dict[str, Any] | str) -> str:
    return why if isinstance(why, str) else text(msgspec.convert(why, PlanReason))


AS_BEFORE = {
    "gate-set": _gate_set_as_before,
    "admission-round": _round_as_before,
    "admission-closed": _why_as_before,
    "gate-learned": _why_as_before,
}
"""The records of admission of today, as format 5 had them."""


def bodies(name: str) -> list[bytes]:
    """Return the records of a golden journal, without their envelopes and the closing line."""
    found = [body_of(line) for line in journals.raw(name).splitlines(keepends=True)]
    assert None not in found
    return [body for body in found if body and b'{"type":"end"' not in body]


def test_the_kinds_of_format_5_are_all_in_the_frozen_records() -> None:
    kinds = {struct.__struct_config__.tag for struct in Record5.__args__}
    held = {kind for name in OLD for kind in piece("journals").frozen()[name]["records"]}
    assert len(OLD) >= 48
    assert held - {"end"} == kinds


@pytest.mark.parametrize("name", OLD)
def test_each_line_of_an_older_journal_is_read_whole(name: str) -> None:
    for body in bodies(name):
        assert msgspec.json.encode(decode_5(body)) + b"\n" == body


def as_text(told: dict[str, Any]) -> Any:
    """Return an old sentence that became a value as the sentence again."""
    if told.get("type") == "unknown":
        return {**told, "why": told["why"] or ""}
    return told["text"] if told.get("code") == "said" else told


def in_words(record: today.Record) -> dict[str, Any]:
    """Return a record as JSON, its reasons as sentences."""
    told = json.loads(today.encode(record), object_hook=as_text)
    why, trigger = getattr(record, "why", None), getattr(record, "trigger", None)
    if isinstance(why, Reason):
        told["why"] = text(why)
    if trigger is not None:
        told["trigger"]["why"] = text(trigger.why)
    return told


@pytest.mark.parametrize("name", OLD)
def test_a_translation_gives_what_a_line_says(name: str) -> None:
    translator = Translator()
    for body in bodies(name):
        told = json.loads(body)
        made = [in_words(record) for record in translator.take(decode_5(body))]
        (same,) = [record for record in made if record["type"] == told["type"]]
        if told["type"] == "performed":
            action = told.pop("action")
            assert same["action"] == action["type"]
            assert [same[key] for key in ("order", "application", "queue") if key in same] in (
                [action.get("order")],
                [action.get("application")],
                [action.get("queue")],
            )
        same = AS_BEFORE.get(told["type"], dict)(same)
        for key in told.keys() & same.keys() - {"action"}:
            was = [row[:4] for row in same[key]] if key == "refused_tasks" else same[key]
            assert was == told[key], (told["type"], key)
        assert told.keys() - same.keys() <= LEFT_OUT.get(told["type"], set())


@pytest.mark.parametrize("name", WHOLE)
def test_a_move_that_todays_life_cycle_does_not_have_is_a_loss(name: str) -> None:
    """That leaves its task alone; as it is told, nothing would be known of its container."""
    translator, lost = Translator(), set[str]()
    for body in bodies(name):
        told = json.loads(body)
        if told["type"] == "transition" and told["event"] == "manifest":
            wrong = msgspec.json.encode({**told, "target": "withdrawn"})
            (made,) = [
                each for each in translator.take(decode_5(wrong)) if isinstance(each, today.Transition)
            ]
            assert (made.order, made.event, made.target) == (told["order"], "epoch-changed", "lost")
            lost.add(told["order"])
        else:
            translator.take(decode_5(body))
    assert lost


BEGINS = {"ranking", "transfer", "performed", "refusal", "decision"}
"""Kinds of which those programs wrote none before their step had begun."""


@pytest.mark.parametrize("name", OLD)
def test_what_a_step_did_stands_behind_a_step_of_that_instant(name: str) -> None:
    """A restart reads the instant of the last step; these journals do not tell it by itself."""
    translator, fold = Translator(), Fold()
    for body in bodies(name):
        told, before_ms = json.loads(body), fold.now_ms
        made = translator.take(decode_5(body))
        for record in made:
            fold.apply(record)
        begins = told["type"] in BEGINS or told.get("why") == "absent" or told.get("event") in OUR_CLOCK
        if begins:
            assert fold.now_ms == max(before_ms, told["at_ms"]), told
        elif told["type"] == "forgotten":
            assert [type(record) for record in made] == [today.UnknownApplication]


def test_a_step_is_begun_once_for_all_that_it_did() -> None:
    """What happened at the instant of a step that has begun begins no other."""
    translator = Translator()
    translator.take(decode_5(bodies("format-5-all-at-once")[0]))
    told = [decode_5(b'{"type":"ranking","at_ms":%d,"order":[]}' % at_ms) for at_ms in (5000, 5000, 6000)]
    made = [[type(record) for record in translator.take(record)] for record in told]
    begun = [Observed, today.Ranking]
    assert made == [begun, [today.Ranking], begun]


def test_that_an_asker_still_waits_is_read_from_the_sentence() -> None:
    """A daemon that goes on counts by it how often room went to somebody else."""
    found = []
    translator = Translator()
    for body in bodies("format-5-all-at-once"):
        told = json.loads(body)
        if told.get("event") == "unclaimed":
            told["why"] = "nobody was seen to get it in 12000 ms, and its asker still waits"
        made = translator.take(decode_5(msgspec.json.encode(told)))
        found += [one.why for one in made if isinstance(one, today.Transition) and one.event == "unclaimed"]
    assert found == [Unclaimed(12_000, asker_waits=True)]


@pytest.mark.parametrize(("sentence", "why"), [("", None), ("it ended FAILED", Said("it ended FAILED"))])
def test_why_nothing_was_learned_is_kept(sentence: str, why: Said | None) -> None:
    old = {"type": "gate-learned", "at_ms": 9, "application": "application_1_0001", "finished": []}
    (made,) = Translator().take(decode_5(msgspec.json.encode({**old, "why": sentence})))
    assert isinstance(made, GateLearned)
    assert made.why == why


TODAY = {kind.__struct_config__.tag: kind for kind in get_args(today.Record)}
MADE_VALUES = {"why", "choices"}
"""Fields that the translation makes anew: a sentence is a value today, and choices have another shape."""


@pytest.mark.parametrize("kind", get_args(Record5))
def test_what_an_older_line_leaves_out_means_what_it_means_today(kind: type[msgspec.Struct]) -> None:
    now = TODAY[kind.__struct_config__.tag]
    was, is_now = ({each.name: each.default for each in msgspec.structs.fields(one)} for one in (kind, now))
    for name in was.keys() & is_now.keys() - MADE_VALUES:
        assert was[name] == is_now[name], name


# --- what is left ---------------------------------------------------------------------------------


@pytest.mark.parametrize("name", WHOLE)
def test_the_fixture_leaves_all_that_must_be_gone_on_with(name: str) -> None:
    left = piece(f"journals/{name}").frozen()["rebuilt"]
    orders, gate = left["orders"], left["admissions"]["gate"]
    assert {order["state"] for order in orders["open"]} == STATES
    for part in ("due", "sent", "priorities", "queues_held"):
        assert left[part], part
    for part in ("barred_attempts", "tries", "suspended_not_back"):
        assert orders[part], part
    if name.startswith("format-5"):
        assert gate["reserved"]
        assert gate["waiting"]
        assert [each for each in left["admissions"]["admissions"].values() if each["state"] == "taken"]


@pytest.mark.parametrize("name", WHOLE)
def test_half_a_line_at_the_end_changes_nothing(name: str, tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    whole = journals.raw(name)
    path.write_bytes(whole + whole.splitlines()[-1][:100])
    assert rebuilt(path) == piece(f"journals/{name}").frozen()["rebuilt"]
    assert path.read_bytes() == whole
    assert [each.name for each in tmp_path.iterdir() if "torn" in each.name] == [
        f"journal.jsonl.torn-{len(whole)}"
    ]


@pytest.mark.parametrize("name", WHOLE)
def test_explanations_are_as_they_were(name: str, tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    path.write_bytes(journals.raw(name))
    was = piece(f"journals/{name}").frozen()["explained"]
    wanted = [*was][:2] + [*was][-EXPLAINED + 2 :]
    for each in wanted:
        told = invoked("explain", "--journal", str(path), each, hidden=str(path))
        assert told == was[each]["text"]
        assert told["status"] == 0


@pytest.mark.parametrize(
    ("header", "told"),
    [
        (b'{"type":"header","format":3}', "format 3 of the journal is not known"),
        (b'{"format":3,"type":"header"}', "no record of a yarnctl journal"),
    ],
)
def test_a_header_of_another_format_is_refused(tmp_path: Path, header: bytes, told: str) -> None:
    path = tmp_path / "journal.jsonl"
    path.write_bytes(Chain().seal_body(header + b"\n"))
    answer = invoked("replay", str(path), hidden=str(path))
    assert answer["status"] == 2
    assert told in "\n".join(answer["err"])


@pytest.mark.parametrize(
    ("line", "told"),
    [
        (b'{"type":"header","format":7}', "format 7 of the journal is newer than this yarnctl (6)"),
        (b'{"type":"quoted","at_ms":5}', "records of kind 'quoted' are not known to this yarnctl"),
    ],
)
def test_what_a_newer_program_wrote_is_refused_and_left_as_it_is(
    tmp_path: Path, line: bytes, told: str
) -> None:
    path, chain = tmp_path / "journal.jsonl", Chain()
    begin = [chain.seal_body(body) for body in bodies("format-6-natjam")]
    whole = b"".join([*begin, chain.seal_body(line + b"\n"), b'{"type":"torn'])
    path.write_bytes(whole)
    for command in (("replay", str(path)), ("explain", "--journal", str(path), "1")):
        answer = invoked(*command, hidden=str(path))
        assert answer["status"] == 2
        assert f"{told}; start the version that wrote it; nothing was changed" in "\n".join(answer["err"])
    with pytest.raises(BadInput, match="start the version that wrote it"):
        rebuild(path)
    assert path.read_bytes() == whole
    assert [each.name for each in tmp_path.iterdir()] == ["journal.jsonl"]
