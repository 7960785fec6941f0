"""Rules of fitness about YARN's own preemption: it must not touch what yarnctl would save.

Law: pure; see ``fitness``. They say beforehand what ``standing`` will make the daemon do: stand aside.
"""

from __future__ import annotations

from yarnctl.attach.check.preflight import (
    CAPACITY,
    Facts,
    Word,
    conf_reason,
    fail,
    is_true,
    leaf_queues,
    ok,
    unknown,
)
from yarnctl.attach.eligibility.yarn_preemption import INTRA_QUEUE, MONITOR, OBSERVE_ONLY, POLICIES, POLICY


def _is_on(facts: Facts) -> bool:
    policies = facts.setting(POLICIES) or POLICY
    return is_true(facts.setting(MONITOR)) and POLICY in policies and not is_true(facts.setting(OBSERVE_ONLY))


def own_preemption(facts: Facts) -> Word:
    """YARN's own preemption kills what yarnctl would save; yarnctl stands aside where it is on."""
    if facts.configuration is None:
        return unknown(conf_reason(facts))
    if not _is_on(facts):
        return ok("off")
    found, word = leaf_queues(facts, facts.victims)
    if word is not None:
        return word
    for leaf in found:
        if leaf.queue.preemption_disabled is not True:
            fix = f"set {CAPACITY}{leaf.path}.disable_preemption=true, or {MONITOR}=false (yarn-site.xml)"
            return fail(f"it is on for {leaf.path}", fix)
    return ok("on, but not for the victims' queues")


def intra_queue_preemption(facts: Facts) -> Word:
    """YARN may also kill within a queue, for users and priorities; its victims lose their work just so."""
    if facts.configuration is None:
        return unknown(conf_reason(facts))
    if not _is_on(facts) or not is_true(facts.setting(INTRA_QUEUE)):
        return ok("off")
    found, word = leaf_queues(facts, facts.victims if facts.mode == "queues" else facts.hurried)
    if word is not None:
        return word
    for leaf in found:
        if leaf.queue.intra_queue_preemption_disabled is not True:
            key = f"{CAPACITY}{leaf.path}.intra-queue-preemption.disable_preemption"
            return fail(
                f"it is on within {leaf.path}", f"set {key}=true, or {INTRA_QUEUE}=false (yarn-site.xml)"
            )
    return ok("on, but not within the victims' queues")
