"""Rendering of explanations: their English.

Law: the text has what the story has and nothing more. Ids are written as in the journal.
A policy's key is rendered from the key, the policy and the cluster's size alone. An instant of a live daemon
is local time; one of a run in virtual time, which begins at 0, stays in ms.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby

import msgspec

from yarnctl.deciding.lifecycle import OPEN
from yarnctl.deciding.policies import FOREVER_MS
from yarnctl.deciding.releaser import REASONS
from yarnctl.journal.explaining.story import Explanation, OrderStory, RefusalStory, SavedLostStory, Tally
from yarnctl.journal.rendering import instant
from yarnctl.units import Resources

POLICIES: dict[str, str] = {
    "MR": "most resources first",
    "LR": "least resources first",
    "PR": "by chance, in proportion to its containers",
    "MDF": "latest deadline first",
    "MLF": "largest laxity first",
    "SRT": "shortest remaining time first",
    "LRT": "longest remaining time first",
    "random": "by chance",
}
"""The full names of the abbreviations of :mod:`yarnctl.deciding.policies`."""


def key_words(policy: str, key: tuple[int, ...], total: Resources | None) -> str:
    """Return a key as ``its meaning; key -12288``; the numbers alone where the policy is not known."""
    if not key:
        return "no key"
    numbers = "/".join("-" if abs(part) == FOREVER_MS else str(part) for part in key)
    said = _said(policy, -key[0] if policy == "MLF" else abs(key[0]), total)
    return f"{said}; key {numbers}" if said else f"key {numbers}"


def _said(policy: str, amount: int, total: Resources | None) -> str:
    """Return the meaning of the first part of a policy's key; "" where it has none for people."""
    if policy in ("MR", "LR") and total is not None and total[0] and total[1]:
        return f"{100 * amount / (total[0] * total[1]):.0f} % of the cluster"
    if policy in ("SRT", "LRT"):
        return "remaining time unknown" if amount == FOREVER_MS else f"{amount / 1000:.1f} s left"
    if policy in ("MDF", "MLF") and abs(amount) == FOREVER_MS:
        return "no deadline"
    if policy == "MDF":
        return f"deadline {instant(amount)}"
    return f"laxity {amount / 1000:.1f} s" if policy == "MLF" else ""


def in_words(explanation: Explanation) -> list[str]:
    """Return the explanation as lines of text."""
    lines = [f"{explanation.id} ({_named(explanation)})"]
    lines += [f"  {sentence}" for sentence in explanation.rendered]
    lines += [_tally_in_words(tally) for tally in explanation.tallies]
    for story, before in zip(explanation.orders, [None, *explanation.orders], strict=False):
        lines += ["", *_order_in_words(story, before)]
    if explanation.priorities:
        lines += ["", "priorities:"]
    for ranked in explanation.priorities:
        urgency = "no deadline" if ranked.urgency_ms >= FOREVER_MS else f"urgency {ranked.urgency_ms} ms"
        lines.append(f"  {instant(ranked.at_ms)} {ranked.priority}, as number {ranked.place} ({urgency})")
    if explanation.admissions:
        lines += ["", "at the gate:"]
    for told in explanation.admissions:
        named = "" if told.admission == explanation.id else f"{told.admission} "
        lines.append(f"  {instant(told.at_ms)} {named}{told.told}")
    own = [refused for refused in explanation.refused if refused.asker == explanation.id]
    others = [refused for refused in explanation.refused if refused.asker != explanation.id]
    for heading, refusals in (("asked in vain:", own), ("left alone:", others)):
        if refusals:
            lines += ["", heading, *_refusals_in_words(refusals)]
    return lines


def _named(explanation: Explanation) -> str:
    """Return the kind of the id, and what ran there."""
    roles, ran = ", ".join(explanation.roles), explanation.ran
    if ran is None:
        return roles
    other = f"of {ran.attempt}" if explanation.id == ran.container else f"in {ran.container}"
    return f"{roles} {other}, {ran.application}, on {ran.node}"


def _tally_in_words(tally: Tally) -> str:
    said = "asked for" if tally.role == "asker" else "was asked for"
    preposition = "of" if tally.role == "asker" else "by"
    others = ", ".join(f"{name} ({number})" for name, number in _counted(tally.others))
    verbs, states = (
        ", ".join(f"{number} {name.replace('_', ' ')}" for name, number in _counted(counts))
        for counts in (tally.verbs, tally.states)
    )
    plural = "" if tally.orders == 1 else "s"
    return (
        f"  {said} {tally.orders} container{plural} {preposition} {others}: {verbs}; {states};"
        f" {tally.lost_work_ms} ms of work lost"
    )


def _counted(counts: dict[str, int]) -> list[tuple[str, int]]:
    """Return what was counted, the most frequent first."""
    return sorted(counts.items(), key=lambda counted: (-counted[1], counted[0]))


# --- one order --------------------------------------------------------------------------------


def _order_in_words(story: OrderStory, before: OrderStory | None) -> list[str]:
    lines = [
        f"{story.order}: {instant(story.asked_at_ms)} decision {story.decision} for {story.first_asker},"
        f" which needed {story.need} ({story.trigger})",
        f"  victim   {story.victim}, {story.attempt}, {story.container} on {story.node}",
        f"  why it   {_why_it(story)}",
        *_passed_over(story, before),
    ]
    lines += [f"  passed on {transfer}" for transfer in story.transfers]
    if story.left:
        lines.append(f"  left     {story.left} on {story.left_node} instead: its application chose")
    lines.append(f"  became   {_became(story)}")
    if story.room_to_application:
        lines.append(f"  room     {_room(story)}")
    lines.append(f"  cost     {_cost(story)}")
    if story.asked_to == "suspend":
        lines.append(f"  return   {_resumed(story)}")
    return lines


def _why_it(story: OrderStory) -> str:
    job = _ranked(story.job_policy, story.job_key, story.total)
    task = _ranked(story.task_policy, story.task_key, None)
    if isinstance(story.lever, msgspec.UnsetType):
        return f"first by {job}, in it first by {task}"
    lever = story.lever
    return (
        f"lever {lever.kind}, the cheapest left: room in {lever.room_in_ms} ms,"
        f" {lever.lost_ms} ms of work lost, {lever.overhead_ms} ms of overhead predicted;"
        f" among equals first by {job}, then by {task}"
    )


def _passed_over(story: OrderStory, before: OrderStory | None) -> list[str]:
    """Name the tasks passed over; of one decision they are named once."""
    task_policy, job_policy = story.task_policy, story.job_policy
    rows = [(each.attempt, each.why, key_words(task_policy, each.key, None)) for each in story.next_tasks]
    rows += [
        (each.application, each.why, key_words(job_policy, each.key, story.total)) for each in story.next_jobs
    ]
    if (
        before is not None
        and rows
        and (before.decision, before.asked_at_ms, before.next_tasks, before.next_jobs)
        == (story.decision, story.asked_at_ms, story.next_tasks, story.next_jobs)
    ):
        return [f"  why not  as said of {before.order}"]
    return [f"  why not  {name}: {why_words(why)} ({key})" for name, why, key in rows]


def _is_rescale(story: OrderStory) -> bool:
    return not isinstance(story.lever, msgspec.UnsetType) and story.lever.kind == "rescale"


def _became(story: OrderStory) -> str:
    if story.withheld and not story.verb:
        end = "" if story.state in OPEN else f" ({story.state.replace('_', ' ')}: {story.settled_why})"
        return f"nothing: the order was not sent{end}"
    if story.state in OPEN:
        return f"{story.state} so far: the journal tells no end"
    state = story.state.replace("_", " ")
    return f"{state}: {story.settled_why}" if story.settled_why else state


def _room(story: OrderStory) -> str:
    who, container = story.room_to_application, story.room_to_container
    if story.state != "granted":
        return f"{who} took its place with {container}; {story.asker} had asked for it"
    if who == story.asker:
        return f"{who} got its place with {container}"
    instead = f"; {story.asker} has {story.exchanged_for} instead" if story.exchanged_for else ""
    return f"{who} got its place with {container}{instead}"


def _cost(story: OrderStory) -> str:
    parts = [_done(story)]
    if story.keys_done is not None:
        parts.append(f"{story.keys_done} keys done and {'saved' if story.saved_lost else 'kept'}")
    for name, at_ms in (
        ("checkpointed", story.checkpointed_at_ms),
        ("freed", story.freed_at_ms),
        (story.state.replace("_", " "), story.settled_at_ms),
    ):
        if at_ms is not None:
            parts.append(f"{name} after {at_ms - story.asked_at_ms} ms")
    return ", ".join(parts)


def _resumed(story: OrderStory) -> str:
    """Return the predicted resume cost, and the measured."""
    told, back = f"predicted to cost {story.predicted_cost_ms} ms", story.came_back
    if story.saved_lost is not None:
        return f"{told}; {_unused(story.saved_lost)}"
    if back is None:
        return told
    parts = f"leave {back.leave_ms}, launch {back.launch_ms}, shuffle {back.shuffle_ms}, skip {back.skip_ms}"
    return f"{told}, did cost {back.cost_ms} ms ({parts}): {back.attempt} goes on"


def _unused(lost: SavedLostStory) -> str:
    """Return that a checkpoint was not used, by which attempt, and from what it began."""
    keys = "unknown size" if lost.keys_lost is None else f"{lost.keys_lost} keys"
    return (
        f"LOST: the checkpoint of {keys} was not used by attempt {lost.attempt}"
        f" (it began at generation {lost.generation_found}, not {lost.generation_expected});"
        " its standard error says why"
    )


def _keys_lost(lost: SavedLostStory) -> str:
    if lost.keys_lost is None:
        return "saved work lost"
    return f"lost {'at most ' if lost.generation_found else ''}{lost.keys_lost} keys"


ASKED_TO = {"suspend": "suspend", "kill": "die", "drain": "leave"}


def _done(story: OrderStory) -> str:
    """Return what was done to the attempt, and what of its work is lost."""
    if story.withheld and not story.verb:
        return "none: the order was not sent"
    if story.verb in ("suspended", "released"):
        lost = _keys_lost(story.saved_lost) if story.saved_lost is not None else "no work lost"
        return f"{story.verb} (suspension number {story.generation}), {lost}"
    if story.verb == "left" and _is_rescale(story):
        once = "" if story.lost_work_ms else ": what its decision cost is told of another of its orders"
        return f"its application goes on without it; {story.lost_work_ms} ms of work is done again{once}"
    if story.verb == "left":
        return f"it left with its blocks; at most {story.lost_work_ms} ms of work is done again, as predicted"
    if story.verb in ("killed", "ended"):
        return f"{'killed' if story.verb == 'killed' else 'ended by others'}, {_lost(story)}"
    if story.state in OPEN or story.state == "killed":
        return f"not stopped so far (asked to {ASKED_TO[story.asked_to]})"
    if story.state == "completed":
        return "done before it was stopped, no work lost"
    return "not seen to stop" if story.lost_work_ms is None else "not stopped, no work lost"


def _lost(story: OrderStory) -> str:
    if story.lost_work_ms is None:
        return "what it did since its checkpoint, if anything, is lost"
    lost = f"{story.lost_work_ms} ms of work lost"
    if story.working_since_ms is None:
        return f"{lost} (it was not at new keys yet)"
    return f"{lost} (all since {instant(story.working_since_ms).removeprefix('at ')})"


# --- left alone, asked without effect -----------------------------------------------------------


def _refusals_in_words(refusals: list[RefusalStory]) -> Iterator[str]:
    """Yield a line for each occasion; equal ones in a row become one."""
    for (asker, why), group in groupby(refusals, key=lambda refused: (refused.asker, refused.why)):
        same = list(group)
        first, last = same[0], same[-1]
        key = f", {key_words(first.policy, first.key, first.total)}" if first.key else ""
        occasion = "no decision" if first.decision is None else f"decision {first.decision}"
        line = f"  {instant(first.at_ms)} {occasion} for {asker}: {why_words(first.reason_code) or why}{key}"
        more = len(same) - 1
        yield line + (f"; {more} times more until {instant(last.at_ms).removeprefix('at ')}" if more else "")


def why_words(code: str) -> str:
    """Return the code and meaning of why a job or task was left alone; "" for a code of another kind."""
    return f"{code}: {REASONS[code]}" if code in REASONS else ""


def _ranked(policy: str, key: tuple[int, ...], total: Resources | None) -> str:
    meaning = f": {POLICIES[policy]}" if policy in POLICIES else ""
    return f"{policy}{meaning} ({key_words(policy, key, total)})"
