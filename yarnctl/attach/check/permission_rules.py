"""Rules of fitness about our rights in the scheduler's queues.

Law: pure; see ``fitness``. A group is not known here: what only a group could grant is "unknown".
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


def acls(facts: Facts) -> Word:
    """Where ACLs count, stopping an attempt and setting a priority need the right to administer the queue."""
    if facts.configuration is None:
        return unknown(conf_reason(facts))
    if not is_true(facts.setting("yarn.acl.enable")):
        return ok("yarn.acl.enable is false: anybody may, and so may we")
    admins = facts.setting("yarn.admin.acl")
    if _listed(facts.us, "*" if admins is None else admins):
        return ok("yarn.admin.acl names us")
    names = facts.hurried + (facts.victims if facts.mode == "queues" else ())
    found, word = leaf_queues(facts, names)
    if word is not None:
        return word
    if facts.scheduler is None:
        reason = facts.reason("scheduler", "capacity-scheduler.xml is not shown")
        return unknown(f"yarn.acl.enable is true; {reason}", f"let each acl_administer_queue name {facts.us}")
    for leaf in found:
        told = _queue_acls(facts, leaf.path)
        if any(_listed(facts.us, acl) for acl in told):
            continue
        fix = f"set {CAPACITY}{leaf.path}.acl_administer_queue={facts.us or 'yarnctl'}"
        if any(acl.partition(" ")[2].strip() for acl in told):
            return unknown(f"{leaf.path} is administered by groups, and ours are not known here", fix)
        return fail(f"{facts.us or 'we'} may not administer {leaf.path}", fix)
    return ok("we may administer the queues")


def _queue_acls(facts: Facts, path: str) -> list[str]:
    """Return the ACLs that grant administration of a queue: its own and those above it (root: everybody)."""
    parts = path.split(".")
    above = [".".join(parts[: end + 1]) for end in range(len(parts))]
    default = {"root": "*"}
    told = [(facts.capacity(f"{one}.acl_administer_queue"), default.get(one, " ")) for one in above]
    return [otherwise if acl is None else acl for acl, otherwise in told]


def _listed(user: str, acl: str) -> bool:
    """Say whether an ACL ("users groups") names a user or everybody; groups are not known here."""
    users = acl.partition(" ")[0]
    return acl.strip() == "*" or (bool(user) and user in users.split(","))
