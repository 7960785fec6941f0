"""Tampering: whatever is changed in a journal, replay does not call it the same.

Law: with the chain as it was written *every* change of a byte, removal, swap and repetition is
found; with a chain that a forger computed anew, all that the records imply is found still.
"""

from __future__ import annotations

import random
import re
from functools import cache
from pathlib import Path

import msgspec
import pytest

from emulator.cluster.timing import HADOOP3
from emulator.virtual.run import Run, Setup
from emulator.virtual.schemes import SCHEMES
from tests.property.stories import job
from yarnctl.deciding.model import Accepted, Kill, Suspend, Withdraw
from yarnctl.deciding.records import (
    Decision,
    Forgotten,
    KilledEnded,
    Performed,
    Progressed,
    Record,
    Refusal,
    Return,
    Transition,
    decode,
)
from yarnctl.deciding.settings import DEFAULT, PAPER
from yarnctl.errors import YarnctlError
from yarnctl.journal.chain import Chain, body_of
from yarnctl.journal.file import read
from yarnctl.journal.memory import MemoryJournal
from yarnctl.journal.replay import replay
from yarnctl.units import Resources

FLIPS = 1500


@cache
def journal(scheme: str = "natjam", profile: str = "default") -> bytes:
    """Play a crowded story and return its journal."""
    settings = {"default": DEFAULT, "paper": PAPER}[profile]
    setup = Setup(
        nodes=3,
        node_size=Resources(4096, 4),
        timing=HADOOP3,
        settings=msgspec.structs.replace(settings, cost_guard=False, settle_ms=0),
        seed=3,
    )
    jobs = (
        job("r1", "research", 0, 2, 6),
        job("r2", "research", 500, 2, 5),
        job("p", "production", 14_000, 2, 6),
        job("q", "production", 24_000, 0, 4),
    )
    kept = MemoryJournal()
    Run(setup, jobs, SCHEMES[scheme], kept).go()
    return kept.encoded()


def lines(raw: bytes) -> list[bytes]:
    return raw.splitlines(keepends=True)


def bodies(raw: bytes) -> list[bytes]:
    """Return the records' own bytes: no envelopes, no closing line."""
    return [body for line in lines(raw)[:-1] if (body := body_of(line))]


def forged(changed: list[bytes]) -> bytes:
    """Chain lines anew, as a forger would who knows how."""
    chain = Chain()
    return b"".join(map(chain.seal_body, changed)) + chain.seal_end()


def unseen(path: Path, raw: bytes) -> bool:
    """Say whether replay calls these bytes the same."""
    path.write_bytes(raw)
    try:
        replay(read(path, closed=True), "j")
    except YarnctlError:
        return False
    return True


def flips(raw: bytes, seed: int) -> list[bytes]:
    """Return copies with one digit changed to another, spread over the whole."""
    chance = random.Random(seed)
    places = [found.start() for found in re.finditer(rb"[0-9]", raw)]
    changed = []
    for place in chance.sample(places, min(FLIPS, len(places))):
        other = chance.choice([digit for digit in b"0123456789" if digit != raw[place]])
        changed.append(raw[:place] + bytes([other]) + raw[place + 1 :])
    return changed


TOLD_ALONE = Progressed | Forgotten | KilledEnded
"""Records of what was observed and moved no order."""

PLAYED = [("natjam", "default"), ("natjam", "paper"), ("kill", "default")]


@pytest.mark.parametrize(("scheme", "profile"), PLAYED)
def test_every_flip_removal_swap_and_duplicate_is_found(tmp_path, scheme, profile):
    raw, path = journal(scheme, profile), tmp_path / "j"
    assert unseen(path, raw)
    whole = lines(raw)
    spoiled = {
        "flip": flips(raw, 7),
        "removal": [b"".join(whole[:n] + whole[n + 1 :]) for n in range(len(whole))],
        "cut": [b"".join(whole[:n]) for n in range(len(whole))],
        "swap": [
            b"".join([*whole[:n], whole[n + 1], whole[n], *whole[n + 2 :]]) for n in range(len(whole) - 1)
        ],
        "duplicate": [b"".join(whole[: n + 1] + whole[n:]) for n in range(len(whole))],
    }
    for kind, changed in spoiled.items():
        missed = [n for n, each in enumerate(changed) if unseen(path, each)]
        assert not missed, (kind, missed)


@pytest.mark.parametrize(("scheme", "profile"), PLAYED)
def test_with_a_chain_made_anew_removals_swaps_and_duplicates_are_found(tmp_path, scheme, profile):
    """What may be missing is what was only observed: that nothing was done, or who got a freed room last."""
    records, path = bodies(journal(scheme, profile)), tmp_path / "j"
    doubled = [n for n in range(len(records)) if unseen(path, forged(records[: n + 1] + records[n:]))]
    assert doubled[0] == 0  # a controller that stopped at once and was started again
    assert all(isinstance(decode(records[n]), Refusal) for n in doubled[1:])
    for n in range(len(records)):
        if unseen(path, forged(records[:n] + records[n + 1 :])):
            gone = decode(records[n])
            is_of_freed_room = isinstance(gone, Transition) and gone.source == "freed"
            assert isinstance(gone, Refusal | Return | TOLD_ALONE) or is_of_freed_room
    for n in range(len(records) - 1):
        if unseen(path, forged([*records[:n], records[n + 1], records[n], *records[n + 2 :]])):
            pair = [decode(records[n]), decode(records[n + 1])]
            if isinstance(pair[1], Refusal) and isinstance(pair[0], Decision):
                assert pair[0].at_ms == pair[1].at_ms  # two answers of one look, to two applications
                continue
            facts = [each for each in pair if isinstance(each, Transition | Return | TOLD_ALONE)]
            assert facts, pair  # when a fact is told, only who observed it knows
            about = {each.application if isinstance(each, Forgotten) else each.order for each in facts}
            assert len(about) == len(facts)


# --- a forger who computes the chain anew -----------------------------------------------------


def first(kind: type, records: list[Record], **wanted: object) -> int:
    """Return the place of the first record of a kind with these values."""
    return next(
        n
        for n, each in enumerate(records)
        if isinstance(each, kind) and all(getattr(each, name) == value for name, value in wanted.items())
    )


def changed(n: int, records: list[Record], **values: object) -> list[Record]:
    return [*records[:n], msgspec.structs.replace(records[n], **values), *records[n + 1 :]]


def decision(**values):
    return lambda r: changed(first(Decision, r), r, **values)


def in_decision(part, **values):
    def change(r):
        n = first(Decision, r)
        old = getattr(r[n], part)
        return changed(n, r, **{part: msgspec.structs.replace(old, **values)})

    return change


def transition(event, **values):
    return lambda r: changed(first(Transition, r, event=event), r, **values)


def performed(**values):
    def change(r):
        n = first(Performed, r)
        return changed(n, r, action=msgspec.structs.replace(r[n].action, **values))

    return change


def header(**values):
    return lambda r: changed(0, r, settings=msgspec.structs.replace(r[0].settings, **values))


def job_of_case(**values):
    def change(r):
        n = first(Decision, r)
        case = r[n].case
        spoiled = case.jobs[0]._replace(usage=case.jobs[0].usage._replace(**values))
        return changed(n, r, case=msgspec.structs.replace(case, jobs=(spoiled, *case.jobs[1:])))

    return change


FORGERIES = {
    "decision at another instant": (decision(at_ms=1), "its case at"),
    "case at another instant": (in_decision("case", now_ms=1), "its case at"),
    "pending": (in_decision("trigger", pending=99), "99 pending, its asks are"),
    "promised": (in_decision("trigger", promised=1), "1 promised, the open orders are for 0"),
    "placed": (in_decision("trigger", placed=98), "98 placed and"),
    "need": (in_decision("trigger", need=98), "need 98, its case"),
    "asks": (in_decision("trigger", asks=()), "of (1024, 1), asks for 0"),
    "trigger's queue": (in_decision("trigger", queue="research"), "queue research is not hurried"),
    "trigger's reason": (in_decision("trigger", why="because"), "trigger 'because'"),
    "asker": (in_decision("trigger", application="x"), "which has no order of that size"),
    "releasable": (job_of_case(containers=77), "of 77 containers releasable"),
    "share": (job_of_case(share=-1), "decision 1"),
    "barred": (in_decision("case", barred={"nobody": "cost"}), "more than led to the choice"),
    "room": (in_decision("case", room={"nowhere": Resources(1, 1)}), "more than led to the choice"),
    "manifest's reason": (transition("manifest", why="x"), "but due is"),
    "manifest's keys": (transition("manifest", keys_done=-1), "no keys are counted"),
    "accepted at another instant": (transition("accepted", at_ms=1), "but due is"),
    "granted to somebody else": (transition("granted", application="zz"), "zz"),
    "granted for another reason": (transition("granted", why="x"), "but due is"),
    "ended for another reason": (transition("ended-as-ordered", why="container failed"), "but due is"),
    "performed on another container": (performed(container="x"), "but due is"),
    "performed on another attempt": (performed(attempt="x"), "but due is"),
    "performed for another application": (performed(application="x"), "but due is"),
    "performed of another generation": (performed(generation=7), "but due is"),
    "performed with another deadline": (performed(deadline_at_ms=7), "but due is"),
    "performed at another instant": (
        lambda r: changed(first(Performed, r), r, at_ms=10**9),
        "must be performed",
    ),
    "performed in the past": (lambda r: changed(first(Performed, r), r, at_ms=1), "must be performed"),
    "another outcome": (
        lambda r: changed(first(Performed, r), r, outcome=Accepted()),
        None,  # it was accepted: the same
    ),
    "kill timeout": (header(kill_timeout_ms=13_000), "but due is"),
    "tasks killed": (header(eviction="kill"), "due is"),
    "refused shown": (header(refused_shown=1), "refused_"),
    "job policy": (header(job_policy="LR"), "decision 1"),
    "hurried queues": (header(hurried_queues=("x",)), "is not hurried"),
    "model": (header(model_scheduler=False), "trigger"),
    "profile": (header(profile="x"), "no profile 'x'"),
    "spans": (header(settle_ms=-1), "settle_ms: -1 ms is no span"),
    "capabilities": (lambda r: changed(0, r, capabilities=("releases-itself",)), "no action was due"),
}


@pytest.mark.parametrize("name", FORGERIES)
def test_a_forger_who_chains_anew_is_found_at_the_first_wrong_record(tmp_path, name):
    change, story = FORGERIES[name]
    records = [decode(body) for body in bodies(journal())]
    kept = MemoryJournal()
    kept.append(change(records))
    path = tmp_path / "j"
    path.write_bytes(kept.encoded())
    if story is None:
        assert replay(read(path, closed=True), "j").records == len(records)
        return
    with pytest.raises(YarnctlError) as found:
        replay(read(path, closed=True), "j")
    assert re.search(re.escape(story), str(found.value))


def test_an_action_that_was_never_due_or_performed_twice_is_found(tmp_path):
    records = [decode(body) for body in bodies(journal())]
    n = first(Performed, records)
    performed = records[n]
    assert isinstance(performed, Performed)
    asked = performed.action
    assert isinstance(asked, Suspend)
    names = (asked.order, asked.application, asked.attempt, asked.container)
    path = tmp_path / "j"
    for action in (asked, Kill(*names), Withdraw(*names)):
        kept = MemoryJournal()
        kept.append([*records, Performed(10**9, action, Accepted())])
        path.write_bytes(kept.encoded())
        with pytest.raises(YarnctlError, match="no action was due"):
            replay(read(path, closed=True), "j")
