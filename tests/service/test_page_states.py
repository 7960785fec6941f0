"""The page in ten states and three widths: axe-core finds nothing serious, nothing is cut off."""

from __future__ import annotations

from collections.abc import Callable

import msgspec
import pytest

from tests.service.axe import axe_script
from tests.service.browser import Browser
from tests.service.test_page import chromium, like, placed, shown, sold, with_jobs
from tests.unit.service.played import busy, last
from yarnctl.daemon.view.published import LoopStatus, View
from yarnctl.daemon.view.why_waiting import Waiting
from yarnctl.deciding.loss_budget import BudgetStanding
from yarnctl.deciding.model import Change
from yarnctl.deciding.reasons.demand import NoTaskMayStop
from yarnctl.deciding.reasons.modes import ClusterUnseen, Paused

__all__ = ["chromium"]

pytestmark = pytest.mark.xdist_group("page")  # one browser for all


def with_loop(view: View, **more) -> View:
    return msgspec.structs.replace(view, loop=msgspec.structs.replace(view.loop, **more))


def with_budget() -> View:
    budget = BudgetStanding("queue", "research", "", 0.02, 3_600_000, 0, 90_000 * 1024, 0, 0, 0)
    return msgspec.structs.replace(busy(), budgets=(budget,))


def refused() -> View:
    waiting = {"application_1_000002": Waiting("rejected", NoTaskMayStop(), ())}
    return msgspec.structs.replace(busy(), entries=(), waiting=waiting)


def crowded() -> View:
    jobs = [
        like(busy(), "research", application=f"application_1_{n:06}", name=f"job {n}") for n in range(9, 60)
    ]
    return with_jobs(busy(), *jobs)


STATES: dict[str, Callable[[], View]] = {
    "starting": lambda: View(version=1, now_ms=1, loop=LoopStatus()),
    "busy": busy,
    "over": last,
    "paused": lambda: with_loop(busy(), state="paused", why=(Paused("maintenance"),)),
    "unreachable": lambda: with_loop(busy(), state="waiting", reachable=False, why=(ClusterUnseen(),)),
    "failing": lambda: with_loop(busy(), tick_errors=3, last_error="KeyError: 'x'", last_error_at_ms=36_000),
    "lowered": lambda: with_loop(
        busy(), changes=(Change("queue", "root.research", "1.0", "0.3"),), leads=True
    ),
    "rejected": refused,
    "sold": lambda: msgspec.structs.replace(with_budget(), admission=sold().desk.shown()),
    "placed": lambda: msgspec.structs.replace(crowded(), admission=placed().desk.shown()),
}
ALWAYS = ("starting", "lowered", "sold")
VIEWS = ("operator", "production", "research")
WIDTHS = (420, 800, 1280)
SCROLLED = """
return [...document.querySelectorAll('.scroll')].filter(e => e.scrollWidth > e.clientWidth)
  .map(e => e.parentElement.id)
"""
SERIOUS = """
const done = arguments[arguments.length - 1];
axe.run(document, { resultTypes: ['violations'] }).then(found => done(found.violations
  .filter(each => ['serious', 'critical'].includes(each.impact))
  .map(each => `${each.id}: ${each.nodes.map(node => node.html.slice(0, 120)).slice(0, 3).join(' | ')}`)));
"""


@pytest.mark.parametrize(
    "state",
    [name if name in ALWAYS else pytest.param(name, marks=pytest.mark.thorough) for name in STATES],
)
def test_a_state_is_accessible_and_fits(chromium: Browser, served, state):
    served.view = STATES[state]()
    script = axe_script() + "; window.axe = axe"
    for view in VIEWS:
        chromium.open("about:blank")
        chromium.open(f"{served.url}/#view={view}")
        chromium.until("document.querySelector('#cluster').textContent")
        chromium.script(script)
        for width in WIDTHS:
            chromium.size(width, 1000)
            fits = chromium.script("return document.documentElement.scrollWidth <= window.innerWidth")
            assert fits, (view, width)
            assert set(chromium.script(SCROLLED)) <= ({"placed"} if width == 800 else set()), (view, width)
            assert chromium.call("POST", "/execute/async", {"script": SERIOUS, "args": []}) == [], (
                view,
                width,
            )
    chromium.log()


def test_axe_sees_a_picture_without_a_text(chromium: Browser, served):
    shown(chromium, served.url, "operator")
    chromium.script("document.querySelector('main').append(document.createElement('img'))")
    chromium.script(axe_script() + "; window.axe = axe")
    (found,) = chromium.call("POST", "/execute/async", {"script": SERIOUS, "args": []})
    assert found.startswith("image-alt")
