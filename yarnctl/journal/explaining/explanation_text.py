"""Explanations as lines of text.

The text has what the story has and nothing more; ids are those of the journal. The meaning of a policy's key
follows from the key, the policy and the cluster's size. An instant of a live daemon is local time; one of a
run in virtual time, which begins at 0, stays in ms.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby

import msgspec

from yarnctl.deciding.levers import Lever
from yarnctl.deciding.lifecycle import OPEN
from yarnctl.deciding.policies import FOREVER_MS
from yarnctl.deciding.releaser import REASONS
from yarnctl.journal.explaining.story import (
    Explanation,
    OrderStory,
    RefusalStory,
    SavedLostStory,
    Tally,
    named,
)
from yarnctl.journal.rendering import containers, instant, span, when
from yarnctl.units import Resources

POLICIES: dict[str, str] = {
    "MR": "most resources first",
    "LR": "least resources first",
    "PR": "at random, weighted by containers",
    "MDF": "latest deadline first",
    "MLF": "largest laxity first",
    "SRT": "shortest remaining time first",
    "LRT": "longest remaining time first",
    "random": "at random",
}
"""The full names of the abbreviations of :mod:`yarnctl.deciding.policies`."""


def key_words(policy: str, key: tuple[int, ...], total: Resources | None) -> str:
    """Return a key as ``MEANING; key -12288``; the numbers alone for an unknown policy."""
    if not key:
        return "no key"
    numbers = "/".join("-" if abs(part) == FOREVER_MS else str(part) for part in key)
    meaning = _meaning(policy, -key[0] if policy == "MLF" else abs(key[0]), total)
    return f"{meaning}; key {numbers}" if meaning else f"key {numbers}"


def _meaning(policy: str, amount: int, total: Resources | None) -> str:
    """Return the meaning of the first part of a policy's key, "" if it has none for people."""
    if policy in ("MR", "LR") and total is not None and total[0] and total[1]:
        return f"{100 * amount / (total[0] * total[1]):.0f} % of the cluster"
    if policy in ("SRT", "LRT"):
        return "remaining time unknown" if amount == FOREVER_MS else f"{span(amount)} left"
    if policy in ("MDF", "MLF") and abs(amount) == FOREVER_MS:
        return "no deadline"
    if policy == "MDF":
        return f"deadline {instant(amount)}"
    return f"laxity {span(amount)}" if policy == "MLF" else ""


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
        urgency = "no deadline" if ranked.urgency_ms >= FOREVER_MS else f"urgency {span(ranked.urgency_ms)}"
        lines.append(f"  {instant(ranked.at_ms)} priority {ranked.priority}, rank {ranked.place} ({urgency})")
    if explanation.admissions:
        lines += ["", "admission:"]
    for event in explanation.admissions:
        named = "" if event.admission == explanation.id else f"{event.admission} "
        lines.append(f"  {instant(event.at_ms)} {named}{event.text}")
    own = [refused for refused in explanation.refused if refused.requester == explanation.id]
    others = [refused for refused in explanation.refused if refused.requester != explanation.id]
    for heading, refusals in (("requests without an order:", own), ("considered and not chosen:", others)):
        if refusals:
            lines += ["", heading, *_refusals_in_words(refusals)]
    return lines


def _named(explanation: Explanation) -> str:
    """Return the kind of the id, with its attempt or container."""
    roles, ran = ", ".join(explanation.roles), explanation.ran
    if ran is None:
        return roles
    other = f"of {ran.attempt}" if explanation.id == ran.container else f"in {ran.container}"
    return f"{roles} {other}, {ran.application}, on {ran.node}"


def _tally_in_words(tally: Tally) -> str:
    sides = "for it, from" if tally.role == "requester" else "from it, for"
    others = ", ".join(f"{name} ({number})" for name, number in _counted(tally.others))
    verbs, states = (
        ", ".join(f"{number} {name.replace('_', ' ')}" for name, number in _counted(counts))
        for counts in (tally.verbs, tally.states)
    )
    return (
        f"  {containers(tally.orders)} ordered {sides} {others}: {verbs}; {states};"
        f" {span(tally.lost_work_ms)} of work lost"
    )


def _counted(counts: dict[str, int]) -> list[tuple[str, int]]:
    return sorted(counts.items(), key=lambda counted: (-counted[1], counted[0]))


# --- one order --------------------------------------------------------------------------------


def _order_in_words(story: OrderStory, story_before: OrderStory | None) -> list[str]:
    lines = [
        f"{story.order}: decision {story.decision} {instant(story.ordered_at_ms)}"
        f" for {named(story.first_requester, story.names)}, {containers(story.shortfall)} short"
        f" ({story.trigger})",
        f"  victim   {named(story.victim, story.names)}, {story.attempt}, {story.container} on {story.node}",
        f"  chosen   {_chosen(story)}",
        *_not_chosen(story, story_before),
    ]
    lines += [f"  moved    {transfer}" for transfer in story.transfers]
    if story.left:
        lines.append(f"  instead  {story.left} on {story.left_node}: the application chose this container")
    lines.append(f"  result   {_result(story)}")
    if story.receiver_application:
        lines.append(f"  freed    {_receiver(story)}")
    lines.append(f"  cost     {_cost(story)}")
    if story.order_verb == "suspend":
        lines.append(f"  resume   {_resumed(story)}")
    return lines


def _chosen(story: OrderStory) -> str:
    job = _ranked(story.job_policy, story.job_key, story.total)
    task = _ranked(story.task_policy, story.task_key, None)
    if isinstance(story.lever, msgspec.UnsetType):
        return f"job first by {job}; task first by {task}"
    lever = story.lever
    lost = f"{span(lever.lost_ms)} of work lost"
    if story.bound_ms and story.bound_ms == lever.lost_ms:  # the application may be charged its bound
        lost = f"at most {lost} in 95 of 100 drains"
    elif story.bound_ms:
        lost += f", at most {span(story.bound_ms)} in 95 of 100 drains"
    return (
        f"lever {lever.kind}, the cheapest available (predicted: container freed in {span(lever.free_in_ms)},"
        f" {lost}, {span(lever.overhead_ms)} of overhead);"
        f" among equals job first by {job}, task first by {task}"
    )


def _not_chosen(story: OrderStory, story_before: OrderStory | None) -> list[str]:
    """Return the jobs and tasks not chosen; once for each decision."""
    task_policy, job_policy = story.task_policy, story.job_policy
    rows = [(each.attempt, each.why, key_words(task_policy, each.key, None)) for each in story.next_tasks]
    rows += [
        (each.application, each.why, key_words(job_policy, each.key, story.total)) for each in story.next_jobs
    ]
    if (
        story_before is not None
        and rows
        and (
            story_before.decision,
            story_before.ordered_at_ms,
            story_before.next_tasks,
            story_before.next_jobs,
        )
        == (story.decision, story.ordered_at_ms, story.next_tasks, story.next_jobs)
    ):
        return [f"  not      as for {story_before.order}"]
    return [f"  not      {name}: {why_words(why)} ({key})" for name, why, key in rows]


def _result(story: OrderStory) -> str:
    # An event that is named like its state says no more than the state.
    why = "" if story.reason_code == story.state else story.why
    if story.sent == "withheld" and not story.verb:
        end = "" if story.state in OPEN else f"{story.state.replace('_', ' ')}: "
        return "none: the order was not sent" + (f" ({end}{why})" if why else "")
    if story.state in OPEN:
        return f"the order is open: {story.state}"
    state = story.state.replace("_", " ")
    return f"{state}: {why}" if why else state


def _receiver(story: OrderStory) -> str:
    received = f"{named(story.receiver_application, story.names)} received {story.receiver_container}"
    if story.state != "granted":
        return f"{received}; the order was for {story.requester}"
    if story.receiver_application != story.requester and story.exchanged_for:
        return f"{received}; {story.requester} was given {story.exchanged_for} in exchange"
    return received


def _cost(story: OrderStory) -> str:
    parts = [_done(story)]
    if story.keys_done is not None:
        parts.append(f"{story.keys_done} keys {'saved' if story.saved_lost else 'kept'}")
    for name, at_ms in (
        ("checkpointed", story.checkpointed_at_ms),
        ("freed", story.freed_at_ms),
        (story.state.replace("_", " "), story.settled_at_ms),
    ):
        if at_ms is not None:
            parts.append(f"{name} after {span(at_ms - story.ordered_at_ms)}")
    return ", ".join(parts)


def _resumed(story: OrderStory) -> str:
    """Return the predicted resume cost, and the measured."""
    predicted, back = f"predicted cost {span(story.predicted_cost_ms)}", story.came_back
    if story.saved_lost is not None:
        return f"{predicted}; {_unused(story.saved_lost)}"
    if back is None:
        return predicted
    parts = (
        f"leave {span(back.leave_ms)}, launch {span(back.launch_ms)}, shuffle {span(back.shuffle_ms)},"
        f" skip {span(back.skip_ms)}"
    )
    return f"{predicted}, measured {span(back.cost_ms)} ({parts}); resumed by {back.attempt}"


def _unused(lost: SavedLostStory) -> str:
    """Return the line of a checkpoint that an attempt did not use, with the generation it used."""
    keys = "unknown size" if lost.keys_lost is None else f"{lost.keys_lost} keys"
    return (
        f"LOST: attempt {lost.attempt} did not use the checkpoint of {keys}"
        f" (it started from generation {lost.generation_found}, not {lost.generation_expected});"
        " see its standard error"
    )


def _keys_lost(lost: SavedLostStory) -> str:
    if lost.keys_lost is None:
        return "saved work lost"
    return f"lost {'at most ' if lost.generation_found else ''}{lost.keys_lost} keys"


def _done(story: OrderStory) -> str:
    """Return how the attempt ended, and the work lost."""
    if story.sent == "withheld" and not story.verb:
        return "none: the order was not sent"
    if story.verb in ("suspended", "released"):
        lost = _keys_lost(story.saved_lost) if story.saved_lost is not None else "no work lost"
        return f"{story.verb} (suspension {story.generation}), {lost}"
    if story.verb == "left" and isinstance(story.lever, Lever) and story.lever.kind == "rescale":
        if not story.lost_work_ms:
            return "drained; another order of the decision shows the cost"
        return f"drained; the application repeats {span(story.lost_work_ms)} of work"
    if story.verb == "left":
        return (
            f"drained with its blocks; predicted: about {span(story.lost_work_ms or 0)} of work is repeated"
        )
    if story.verb in ("killed", "ended"):
        return f"{'killed' if story.verb == 'killed' else 'ended, not by yarnctl'}, {_lost(story)}"
    if story.state in OPEN or story.state == "killed":
        return f"not stopped yet (order: {story.order_verb})"
    if story.state == "completed":
        return "completed before it stopped, no work lost"
    return "end not observed" if story.lost_work_ms is None else "not stopped, no work lost"


def _lost(story: OrderStory) -> str:
    if story.lost_work_ms is None:
        return "work since its checkpoint, if any, is lost"
    lost = f"{span(story.lost_work_ms)} of work lost"
    if story.working_since_ms is None:
        return f"{lost} (it had processed no new keys)"
    return f"{lost} (since {when(story.working_since_ms)})"


# --- not chosen, or without an order -----------------------------------------------------------


def _refusals_in_words(refusals: list[RefusalStory]) -> Iterator[str]:
    """Yield a line for each occasion; consecutive equal ones become one line."""
    for (requester, why), group in groupby(refusals, key=lambda refused: (refused.requester, refused.why)):
        same = list(group)
        first, last = same[0], same[-1]
        key = f", {key_words(first.policy, first.key, first.total)}" if first.key else ""
        occasion = "no decision" if first.decision is None else f"decision {first.decision}"
        line = (
            f"  {instant(first.at_ms)} {occasion} for {requester}: {why_words(first.reason_code) or why}{key}"
        )
        more = len(same) - 1
        yield line + (f"; {more} more until {when(last.at_ms)}" if more else "")


def why_words(code: str) -> str:
    """Return the code and sentence of why a job or task was not chosen; "" for another kind of code."""
    return f"{code}: {REASONS[code]}" if code in REASONS else ""


def _ranked(policy: str, key: tuple[int, ...], total: Resources | None) -> str:
    meaning = f": {POLICIES[policy]}" if policy in POLICIES else ""
    return f"{policy}{meaning} ({key_words(policy, key, total)})"
