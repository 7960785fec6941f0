"""Whatever nodes, masters and clients do in whatever order: the sums stay those of the containers."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from emulator.live.manager.service import ManagerSettings
from emulator.live.rest.changes import move_application
from emulator.live.rest.configuration import SchedulerConfiguration
from tests.live.rm_playing import Played
from tests.thoroughness import examples

NODES = ("n1:1", "n2:1", "n3:1")
KINDS = ["node", "beat", "beat", "beat", "again", "end", "submit", "up", "up", "call", "call", "release"]
KINDS += ["bye", "kill", "pass", "long", "move", "priority", "resync", "limit"]
STEPS = st.lists(st.tuples(st.sampled_from(KINDS), st.integers(0, 40)), min_size=20, max_size=120)


def step(played: Played, what: str, pick: int) -> None:
    manager = played.manager
    node = NODES[pick % 3]
    apps = list(manager.applications.values())
    app = apps[pick % len(apps)] if apps else None
    held = [name for name, one in manager.containers.items() if one.node.id == node]
    number = len(app.attempts) if app is not None else 0
    if what == "node":
        played.node(node, slots=2 + pick % 2, running=tuple(held[: pick % 4]))
    elif what in ("beat", "end", "again") and node in played.beats:
        ended = held[:1] if what == "end" else ()
        if what != "again":
            played.beat(node, *ended, exit_status=pick % 3, running=tuple(held))
        else:
            played.again(node, *ended)
    elif what == "submit":
        played.submit(queue=("research", "production")[pick % 2], user=("ann", "bob")[pick % 3 > 0])
    elif what == "limit":
        factor = ("-1", "5", "40")[pick % 3]
        SchedulerConfiguration(manager, mutable=True).change([("root.research", "user-limit-factor", factor)])
    elif what == "pass":
        played.pass_ms(pick * 50)
    elif what == "long":
        for _ in range(11):
            played.pass_ms(1000)
    elif app is None:
        return
    elif what == "up":
        played.up(app, number)
    elif what == "call":
        played.call(app, (20, pick % 4), (10, pick % 3 - 1), attempt=number)
    elif what == "release":
        played.call(app, attempt=number, release=tuple(app.containers)[1:2])
    elif what == "bye":
        played.bye(app, attempt=number)
    elif what == "kill":
        manager.kill(app, "")
    elif what == "priority":
        manager.actor.scheduler.reprioritise(app.actor, pick % 3)
    elif what == "move":
        move_application(
            manager.actor, app.actor, manager.actor.scheduler.queues[("research", "production")[pick % 2]]
        )
    elif what == "resync":
        played.beats[node] = played.beats.get(node, 0) + pick


@given(STEPS)
@settings(max_examples=examples(200))
def test_sums_hold_after_every_step(steps):
    played = Played(ManagerSettings(am_expiry_ms=15_000))
    played.node("n1:1")
    played.node("n2:1")
    played.running("research", 3)
    played.running("production", 2, "n2:1")
    for what, pick in steps:
        step(played, what, pick)
        played.check_sums()
        for app in played.manager.applications.values():
            attempts = [one.state for one in app.attempts]
            assert sum(state in ("LAUNCHED", "RUNNING") for state in attempts) <= 1
            assert (app.state == "RUNNING") is (attempts[-1:] == ["RUNNING"])
            assert app.actor.pending == sum(ask.count for ask in app.actor.asks)
    for app in played.manager.finished.values():
        assert not [one for one in app.containers.values() if not one.is_master]
