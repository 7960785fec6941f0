"""Tampering: whatever is changed in a journal, replay does not call it the same.

Law: with the chain as it was written *every* change of a byte, removal, swap and repetition is
found; with a chain that a forger computed anew, all that does not follow from the inputs is found still.
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
from tests.thoroughness import examples
from yarnctl.deciding.inputs import Observed
from yarnctl.deciding.model import Accepted, Kill, Refused, Suspend, Withdraw
from yarnctl.deciding.reasons.demand import ClusterFull
from yarnctl.deciding.reasons.orders import ContainerHasEnded, Stopping
from yarnctl.deciding.reasons.outcomes import ClientFault
from yarnctl.deciding.records import Decision, Performed, Record, Requests, Transition, decode, performed
from yarnctl.deciding.settings import DEFAULT, PAPER
from yarnctl.errors import Different, YarnctlError
from yarnctl.journal.chain import Chain, MemoryJournal, body_of
from yarnctl.journal.file import Line, read
from yarnctl.journal.replay import Replay, replay
from yarnctl.units import Resources

FLIPS = examples(1500)


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


PLAYED = [
    ("natjam", "default"),
    pytest.param("natjam", "paper", marks=pytest.mark.thorough),
    ("kill", "default"),
]


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
    """Nothing may be missing, stand twice or elsewhere, but for a header of one that stopped at once."""
    records, path = bodies(journal(scheme, profile)), tmp_path / "j"
    doubled = [n for n in range(len(records)) if unseen(path, forged(records[: n + 1] + records[n:]))]
    assert doubled == [0]  # a controller that stopped at once and was started again
    missing = [n for n in range(len(records)) if unseen(path, forged(records[:n] + records[n + 1 :]))]
    assert missing == []
    for n in range(len(records) - 1):
        swapped = forged([*records[:n], records[n + 1], records[n], *records[n + 2 :]])
        assert records[n] == records[n + 1] or not unseen(path, swapped), n


# --- a forger who computes the chain anew -----------------------------------------------------


def first(kind: type, records: list[Record], **wanted: object) -> int:
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


def outcome(**values):
    return lambda r: changed(first(Performed, r), r, **values)


def request(**values):
    def change(r):
        n = first(Requests, r)
        asked, *others = r[n].actions
        return changed(n, r, actions=(msgspec.structs.replace(asked, **values), *others))

    return change


def observed(name, change):
    """Change a part of the first input that has one."""

    def forge(r):
        n = next(n for n, each in enumerate(r) if isinstance(each, Observed) and getattr(each, name))
        return changed(n, r, **{name: change(getattr(r[n], name))})

    return forge


def row(**values):
    """Change what each application that gives is, in all looks up to the first decision."""

    def change(r):
        spoiled = list(r)
        for n in range(first(Decision, r)):
            if isinstance(r[n], Observed) and r[n].change is not None:
                rows = tuple(
                    msgspec.structs.replace(each, **values) if each.queue == "research" else each
                    for each in r[n].change.applications
                )
                made = msgspec.structs.replace(r[n].change, applications=rows)
                spoiled[n] = msgspec.structs.replace(r[n], change=made)
        return spoiled

    return change


def picked(**values):
    """Change the first task that was picked, where it was observed."""

    def change(tasks):
        return {
            name: tuple(task._replace(**values) if n == 0 else task for n, task in enumerate(told))
            for name, told in tasks.items()
        }

    return observed("tasks", change)


def header(**values):
    return lambda r: changed(0, r, settings=msgspec.structs.replace(r[0].settings, **values))


FORGERIES = {
    "decision at another instant": (decision(at_ms=1), "but due is"),
    "number": (decision(number=7), "but due is"),
    "total": (decision(total=Resources(1, 1)), "but due is"),
    "unmet": (decision(unmet=99), "but due is"),
    "nobody passed over": (decision(refused_tasks=()), "but due is"),
    "pending": (in_decision("trigger", pending=99), "but due is"),
    "shortfall": (in_decision("trigger", shortfall=98), "but due is"),
    "asks": (in_decision("trigger", requests=()), "but due is"),
    "trigger's reason": (in_decision("trigger", why=ClusterFull()), "but due is"),
    "requester": (in_decision("trigger", application="x"), "but due is"),
    "step at another instant": (
        lambda r: changed(first(Observed, r, at_ms=r[first(Decision, r)].at_ms), r, at_ms=10**9),
        "due is",
    ),
    "another task picked": (picked(attempt="x"), "due is"),
    "nearly done": (picked(remaining_ms=0), "due is"),
    "on another node": (picked(node="x"), "due is"),
    "no task": (observed("tasks", lambda tasks: dict.fromkeys(tasks, ())), "nothing would have been written"),
    "who gives holds more": (row(containers=77), "due is"),
    "who gives cannot": (row(runner=False), "is due"),
    "who gives is in another queue": (row(queue="x"), "due is"),
    "no fact": (observed("facts", lambda facts: facts[1:]), "nothing would have been written"),
    "a fact twice": (observed("facts", lambda facts: (*facts, *facts)), "due is"),
    "manifest's reason": (transition("manifest", why=Stopping()), "but due is"),
    "manifest's keys": (transition("manifest", keys_done=-1), "but due is"),
    "accepted at another instant": (transition("accepted", at_ms=1), "but due is"),
    "granted to somebody else": (transition("granted", application="zz"), "but due is"),
    "granted for another reason": (transition("granted", why=Stopping()), "but due is"),
    "ended for another reason": (transition("ended-as-ordered", why=ContainerHasEnded("failed")),
        "but due is"),
    "asked of another container": (request(container="x"), "but due is"),
    "asked of another attempt": (request(attempt="x"), "but due is"),
    "asked of another application": (request(application="x"), "but due is"),
    "asked for another generation": (request(generation=7), "but due is"),
    "asked with another deadline": (request(deadline_at_ms=7), "but due is"),
    "performed for another order": (outcome(order="o-000099"), "but due is"),
    "another action performed": (outcome(action="kill"), "but due is"),
    "performed at another instant": (outcome(at_ms=10**9), "but due is"),
    "performed in the past": (outcome(at_ms=1), "but due is"),
    "another outcome": (outcome(outcome=Refused(ClientFault("no"))), "but due is"),
    "the same outcome": (outcome(outcome=Accepted()), None),  # it was accepted
    "kill timeout": (header(kill_timeout_ms=13_000), "but due is"),
    "tasks killed": (header(eviction="kill"), "due is"),
    "refused shown": (header(refused_shown=1), "but due is"),
    "job policy": (header(job_policy="LR"), "but due is"),
    "hurried queues": (header(preempting_queues=("x",)), "nothing would have been written"),
    "model": (header(model_scheduler=False), "but due is"),
    "profile": (header(profile="x"), "no profile 'x'"),
    "spans": (header(settle_ms=-1), "settle_ms: -1 ms is out of range"),
    "capabilities": (lambda r: changed(0, r, capabilities=("releases-itself",)),
        "nothing would have been written"),
    "capabilities out of order": (lambda r: changed(0, r, capabilities=("b", "a")), "but due is"),
    "another format": (lambda r: changed(0, r, format=2), "the journal has format 2"),
}  # fmt: skip


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
    requests = records[first(Requests, records)]
    assert isinstance(requests, Requests)
    asked = requests.actions[0]
    assert isinstance(asked, Suspend)
    names = (asked.order, asked.application, asked.attempt, asked.container)
    path = tmp_path / "j"
    for action in (asked, Kill(*names), Withdraw(*names)):
        kept = MemoryJournal()
        kept.append([*records, performed(10**9, action, Accepted())])
        path.write_bytes(kept.encoded())
        with pytest.raises(YarnctlError, match="no action was due"):
            replay(read(path, closed=True), "j")


def test_of_several_that_are_due_the_first_is_named():
    """Whoever looks for what is missing begins there."""
    found_lines = [Line(n, decode(body), body) for n, body in enumerate(bodies(journal()), start=1)]
    state, told = Replay("j"), set()
    for line in found_lines:
        performed_too_early = performed(10**9, Withdraw("o-000001", "a", "b", "c"), Accepted())
        if len(state._expected) > 1:
            told.add("records")
            with pytest.raises(Different, match="before this, ") as found:
                state._performed(performed_too_early, b"")
            assert f"before this, {line.raw.decode().rstrip()} is due" in str(found.value)
        elif not state._expected and len(state._due) > 1:
            told.add("actions")
            assert isinstance(line.record, Performed)
            with pytest.raises(Different, match="the journal ends, and ") as found:
                state.finish()
            assert f'"type":"{line.record.action}","order":"{line.record.order}"' in str(found.value)
        elif not state._expected and state._due:
            told.add("action")
            with pytest.raises(Different, match=r"the journal ends, and (.*) was not performed"):
                state.finish()
        state.line(line)
    state.finish()
    assert told == {"records", "actions", "action"}
