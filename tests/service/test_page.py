"""The page in a real browser: what it shows, what it must not do, and what it says when nobody answers.

``YARNCTL_PICTURE=docs/page.png`` writes the picture that the documentation shows.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from importlib.resources import files
from pathlib import Path

import msgspec
import pytest

from tests.service.browser import Browser, browsing
from tests.unit.daemon.at_the_desk import MINUTE, AtTheDesk, Past
from tests.unit.daemon.test_placement_desk import POOLS
from tests.unit.service.conftest import TOKEN, Served
from tests.unit.service.played import busy, last
from yarnctl.daemon.admission.backlog import tag_of
from yarnctl.daemon.admission.request_queue import AccountCommand
from yarnctl.daemon.view.published import View
from yarnctl.daemon.view.when_followed import When, unforetold
from yarnctl.daemon.view.why_waiting import Waiting
from yarnctl.deciding.admission.placement_options import Alternatives, PlacementOption
from yarnctl.deciding.admission.records import Budget, Estimate, Finished
from yarnctl.deciding.loss_budget import BudgetStanding
from yarnctl.deciding.model import ApplicationView, Change
from yarnctl.deciding.reasons.demand import NoTaskMayStop
from yarnctl.deciding.reasons.eligibility import NoStreamingReducer, RunnerSays
from yarnctl.deciding.reasons.modes import Paused
from yarnctl.deciding.records import ApplicationName
from yarnctl.deciding.time_lost import TIME_CAUSES
from yarnctl.deciding.waiting_verdicts import Cause
from yarnctl.journal.rendering import text
from yarnctl.prediction.when_ending import Interval
from yarnctl.service.app import make_app
from yarnctl.service.security.tokens import Caller, Tokens
from yarnctl.service.serving import serve_in_thread
from yarnctl.units import decode_vector

PRODUCTION = "application_1_000002"
PROBE = "<img src=x onerror=\"document.title='taken'\"><script>document.title='taken'</script>"


pytestmark = pytest.mark.xdist_group("page")  # one browser for all


@pytest.fixture(scope="module")
def chromium():
    with browsing() as browser:
        yield browser


@pytest.fixture
def page(chromium: Browser, served: Served) -> Browser:
    chromium.size(1100, 1000)
    chromium.log()
    shown(chromium, served.url, "production")
    return chromium


def shown(browser: Browser, url: str, view: str, more: str = "") -> None:
    """Open a view of the page, and wait for its first answers."""
    browser.open("about:blank")
    browser.open(f"{url}/#view={view}{more}")
    browser.until("document.querySelector('#chart canvas')")


def renamed(view: View, old: str, new: str) -> View:
    """Give an application another name wherever the view names it."""
    assert view.snapshot is not None

    def anew(record):
        text = msgspec.json.encode(record).decode().replace(json.dumps(old), json.dumps(new))
        return msgspec.json.decode(text, type=type(record), dec_hook=decode_vector)

    return msgspec.structs.replace(
        view,
        snapshot=anew(view.snapshot),
        entries=tuple(anew(entry) for entry in view.entries),
        decisions=tuple(anew(decided) for decided in view.decisions),
        refusals=tuple(anew(refused) for refused in view.refusals),
    )


def test_it_shows_the_reclaim_list_and_the_loop(page):
    text = page.text()
    for entry in busy().entries:
        assert entry.order in text
        assert entry.attempt in text
    assert f"{PRODUCTION} requests " in text
    assert "checkpointed" in text
    assert "running" in text
    assert "3 nodes" in text
    assert "the job has the highest allowed number of open orders" in text


def test_a_click_tells_why(page):
    assert "chosen   " not in page.text()
    page.script("[...document.querySelectorAll('#decisions a')].find(a => a.textContent === '2').click()")
    told = page.until("(document.querySelector('#story pre') || {}).textContent")
    assert "chosen   job first by MR" in told
    assert "eligible; other tasks came first" in told
    page.script("document.querySelector('#close').click()")
    page.until("document.querySelector('#explained').hidden")
    assert page.script("return location.hash") == "#view=production"


COLOURS = """
const canvas = document.querySelector('#chart canvas'), found = {};
const { data } = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height);
for (let i = 0; i < data.length; i += 4) {
  const name = data.slice(i, i + 3).join();
  if (data[i + 3] === 255) found[name] = (found[name] || 0) + 1;
}
return found;
"""


def test_occupancy_is_drawn_by_role_with_a_mark_for_each_order(page):
    found = page.script(COLOURS)
    for name, colour in (("preemptable", "47,111,176"), ("preempting", "194,87,26"), ("a mark", "179,38,30")):
        assert found.get(colour, 0) > 5, name
    assert f"▼ {len(busy().entries) + len(busy().ended)} orders" in page.script(
        "return document.querySelector('#marker').textContent"
    )
    labels = page.script("return [...document.querySelectorAll('#chart .u-label')].map(e => e.textContent)")
    assert labels == ["Time", "other", "production", "research", "cluster", "requested"]


def test_the_time_range_is_a_part_of_the_address(page):
    page.script("[...document.querySelectorAll('#ranges a')].find(a => a.textContent === '10 min').click()")
    page.until("document.querySelector('#ranges .chosen').textContent === '10 min'")
    assert page.script("return location.hash") == "#view=production&range=10+min"


def test_each_reader_has_a_view(page, served):
    def headings() -> list[str]:
        seen = "[...document.querySelectorAll('h2')].filter(e => e.checkVisibility())"
        return page.script(f"return {seen}.map(e => e.textContent)")

    assert headings()[0] == "Waiting applications, in the order of service"
    assert "What was taken" not in headings()
    page.script("document.querySelector('[data-to=research]').click()")
    page.until("document.querySelector('#taken tr')")
    assert headings()[:2] == ["What was taken", "Use of the cluster"]
    taken = rows_of(page, "taken")
    assert len(taken) == len(busy().entries) + len(busy().ended)
    assert {row[1] for row in taken} == {"r (hadoop)"}
    page.script("document.querySelector('[data-to=operator]').click()")
    page.until("document.querySelector('#health dd')")
    assert headings()[:2] == ["Health", "Lowered settings"]
    shown(page, served.url, "nothing")
    assert headings()[0] == "Health"


def test_lowered_settings_name_what_restores_them_by_hand(page, served):
    change = Change("queue", "root.research", "1.0", "0.3")
    view = busy()
    served.view = msgspec.structs.replace(view, loop=msgspec.structs.replace(view.loop, changes=(change,)))
    shown(page, served.url, "operator")
    page.until("document.querySelector('#changes tr')")
    (row,) = rows_of(page, "changes")
    assert row[:2] == ["queue", "root.research"]
    assert "root.research:maximum-capacity=100" in row[3]


def test_the_filter_and_the_order_of_a_table_are_parts_of_the_address(page, served):
    shown(page, served.url, "production", "&sort=reclaims:order:down&filter=r_00000")
    page.until("document.querySelector('#reclaims tr')")
    orders = [row[0] for row in rows_of(page, "reclaims")]
    assert len(orders) > 1
    assert orders == sorted(orders, reverse=True)
    assert page.script("return document.querySelector('#filter').value") == "r_00000"
    page.script("document.querySelector('#reclaims button[data-column=order]').click()")
    page.until("document.querySelector('#reclaims th[aria-sort=ascending]')")
    assert [row[0] for row in rows_of(page, "reclaims")] == sorted(orders)
    typed = "const filter = document.querySelector('#filter'); filter.value = 'nowhere';"
    page.script(
        f"{typed} filter.dispatchEvent(new Event('input'))"
    )  # at once: a poll shows the address again
    page.until("document.querySelector('#reclaims').textContent.includes('No row matches the filter')")
    assert "filter=nowhere" in page.script("return location.hash")


def test_the_focus_survives_new_answers(page, served):
    page.script("document.querySelector('#reclaims td a').focus()")
    kept = page.script("return document.activeElement.textContent")
    served.view = with_jobs(
        busy(), like(busy(), "production", application="application_1_000009", name="late")
    )
    page.until("document.querySelector('#waiting').textContent.includes('late')")
    assert page.script("return document.activeElement.textContent") == kept


def test_a_link_leads_to_the_resource_manager_by_http_alone(page, served):
    links = "[...document.querySelectorAll('#waiting a')].filter(a => a.textContent === 'YARN')"
    leads_to = {
        "http://rm.example:8088": ["http://rm.example:8088/cluster/app/application_1_000002"],
        "javascript:alert(1)//": [""],
    }
    for address, wanted in leads_to.items():
        view = busy()
        served.view = msgspec.structs.replace(
            view, loop=msgspec.structs.replace(view.loop, resource_manager=address)
        )
        shown(page, served.url, "production")
        assert page.script(f"return {links}.map(a => a.href)") == wanted


class Recorded:
    """The control of a loop, which notes what it is asked."""

    def __init__(self) -> None:
        self.said: list[str] = []

    def pause(self, why: str, for_ms: int | None) -> None:
        self.said.append(f"pause {why}")

    def go_on(self) -> None:
        self.said.append("go on")

    def resume(self, queue: str) -> None:
        self.said.append(f"resume {queue}")


def test_an_operator_pauses_with_a_token(chromium):
    control = Recorded()
    handle = serve_in_thread(make_app(busy, token=TOKEN, control=control), token=TOKEN)
    click = "document.querySelector('#pause').click()"
    try:
        shown(chromium, handle.url, "operator")
        chromium.script("document.querySelector('#pause-why').value = 'noon'")
        chromium.script(click)
        chromium.until("document.querySelector('#paused').textContent.includes('token')")
        chromium.script("document.querySelector('#pause-token').value = 'another'")
        chromium.script(click)
        chromium.until("document.querySelector('#paused').textContent === 'this token is wrong'")
        assert control.said == []
        chromium.script("document.querySelector('#pause-token').value = arguments[0]", TOKEN)
        chromium.script(click)
        chromium.until("document.querySelector('#paused').textContent === 'paused'")
        assert control.said == ["pause noon"]
    finally:
        handle.stop()


def test_without_tokens_a_sentence_is_shown_in_place_of_the_pause_form(
    chromium, served, served_without_token
):
    for daemon, visible, absent in (
        (served, "#pause-form", "#no-tokens"),
        (served_without_token, "#no-tokens", "#pause-form"),
    ):
        shown(chromium, daemon.url, "operator")
        assert chromium.script("return document.querySelector(arguments[0]).checkVisibility()", visible)
        assert not chromium.script("return document.querySelector(arguments[0]).checkVisibility()", absent)


def test_it_follows_the_view(page, served):
    served.view = last()
    page.until("document.body.innerText.includes('no order is open')")
    served.view = msgspec.structs.replace(
        last(),
        loop=msgspec.structs.replace(last().loop, state="paused", why=(Paused("maintenance at noon"),)),
    )
    page.until("document.querySelector('#state').textContent === 'paused'")
    assert "maintenance at noon" in page.text()


def test_names_are_text_whatever_they_hold(page, served):
    served.view = renamed(busy(), PRODUCTION, PROBE)
    page.until("document.querySelector('#reclaims').innerText.includes('onerror')")
    assert PROBE in page.script("return document.querySelector('#reclaims caption').textContent")
    page.script("[...document.querySelectorAll('#decisions a')].find(a => a.textContent === '2').click()")
    page.until("(document.querySelector('#story pre') || {}).textContent")
    assert PROBE in page.script("return document.querySelector('#story pre').textContent")
    assert page.script("return document.querySelectorAll('img, main script').length") == 0
    assert page.script("return document.title") == "yarnctl"


def test_no_errors_in_the_console_and_no_other_host_is_asked(page, served):
    page.log("performance")
    page.open(f"{served.url}/docs")
    page.until("document.querySelectorAll('#api section').length > 20")
    assert "GET /v1/reclaims/{application_id}" in page.text()
    shown(page, served.url, "production")
    page.until("document.querySelectorAll('#reclaims table').length")
    assert [each["message"] for each in page.log()] == []
    events = [json.loads(each["message"])["message"] for each in page.log("performance")]
    asked = [e["params"]["request"]["url"] for e in events if e["method"] == "Network.requestWillBeSent"]
    assert len(asked) > 5
    assert [url for url in asked if not url.startswith((served.url, "data:"))] == []


def test_a_daemon_that_is_gone_is_said_to_be(chromium):
    gone = Served()
    try:
        shown(chromium, gone.url, "production")
        chromium.until("document.querySelectorAll('#reclaims table').length")
    finally:
        gone.handle.stop()
    chromium.until("!document.querySelector('#unreachable').hidden")
    assert "yarnctl does not answer" in chromium.text()
    assert chromium.script("return document.querySelector('#state').textContent") == "unreachable"
    assert busy().entries[0].order in chromium.text()


def test_failed_polls_repeat_after_longer_and_longer_pauses(page):
    page.script("""
        window.pauses = []; window.fails = true;
        const later = window.setTimeout, request = window.fetch;
        window.setTimeout = (what, ms) => what === run ? later(run, 1, pauses.push(ms)) : later(what, ms);
        window.fetch = (...given) => fails ? Promise.reject(new Error("refused")) : request(...given);
    """)
    page.until("pauses.filter(each => each === 10000).length > 1")
    page.script("window.failed = pauses.length; window.fails = false")
    page.until("pauses.slice(failed).includes(1000)")
    pauses = [each for each in page.script("return pauses.slice(0, failed)") if each != 1000]
    assert pauses[:5] == [2000, 4000, 8000, 10_000, 10_000]


def test_it_fits_a_phone(page):
    page.call(
        "POST",
        "/goog/cdp/execute",
        {
            "cmd": "Emulation.setDeviceMetricsOverride",
            "params": {"width": 390, "height": 800, "deviceScaleFactor": 1, "mobile": True},
        },
    )
    try:
        assert page.script("return window.innerWidth") == 390
        assert page.script("return document.documentElement.scrollWidth") <= 390
    finally:
        page.call("POST", "/goog/cdp/execute", {"cmd": "Emulation.clearDeviceMetricsOverride", "params": {}})


def test_a_row_is_a_paragraph_with_its_columns_on_a_phone(page):
    page.size(420, 1000)
    label = "return getComputedStyle(document.querySelector('#reclaims td'), '::before').content"
    assert page.script(label) == '"order "'
    names = page.script("return [...document.querySelectorAll('#reclaims td')].map(e => e.dataset.label)")
    assert names[:3] == ["order", "from", "attempt"]
    page.size(1100, 1000)
    assert page.script(label) == "none"


def test_each_cause_of_waiting_has_words(page):
    assert set(page.script("return Object.keys(CAUSES)")) == set(TIME_CAUSES)


def test_dark_and_light(page):
    grounds = []
    for scheme in ("light", "dark"):
        features = [{"name": "prefers-color-scheme", "value": scheme}]
        body = {"cmd": "Emulation.setEmulatedMedia", "params": {"features": features}}
        page.call("POST", "/goog/cdp/execute", body)
        grounds.append(page.script("return getComputedStyle(document.body).backgroundColor"))
    page.call("POST", "/goog/cdp/execute", {"cmd": "Emulation.setEmulatedMedia", "params": {"features": []}})
    assert len(set(grounds)) == 2


def test_a_picture_can_be_taken(page, tmp_path):
    to = Path(os.environ.get("YARNCTL_PICTURE", tmp_path / "page.png"))
    page.picture(to)
    assert to.read_bytes().startswith(b"\x89PNG")
    assert to.stat().st_size > 10_000


def test_where_reading_needs_the_token_the_page_asks_for_it(chromium):
    handle = serve_in_thread(make_app(busy, token=TOKEN, open_reads=False), token=TOKEN)
    try:
        chromium.open(handle.url)
        chromium.until("!document.querySelector('#token-form').hidden")
        assert "reading needs a token" in chromium.text()
        chromium.script("document.querySelector('#token').value = arguments[0]", TOKEN)
        chromium.script("document.querySelector('#token-form button').click()")
        chromium.until("document.querySelector('#token-form').hidden")
        chromium.until("document.querySelector('#state').textContent === 'running'")
    finally:
        handle.stop()


# --- people and jobs ------------------------------------------------------------------------------------

OVERFLOWS = "return [...document.querySelectorAll('.scroll')].map(e => e.scrollWidth - e.clientWidth)"


def rows_of(page: Browser, section: str) -> list[list[str]]:
    """Return the cells of a section's table, without its head."""
    return page.script(
        f"return [...document.querySelectorAll('#{section} tr')].map(row =>"
        " [...row.querySelectorAll('td')].map(cell => cell.textContent)).filter(cells => cells.length)"
    )


def with_jobs(view: View, *jobs: ApplicationView) -> View:
    assert view.snapshot is not None
    listed = (*view.snapshot.applications, *jobs)
    return msgspec.structs.replace(view, snapshot=msgspec.structs.replace(view.snapshot, applications=listed))


def like(view: View, queue: str, **more) -> ApplicationView:
    assert view.snapshot is not None
    (found,) = [each for each in view.snapshot.applications if each.queue == queue]
    return msgspec.structs.replace(found, **more)


def test_applications_are_shown_by_job_user_and_queue_with_what_may_be_suspended(page, served):
    why = NoStreamingReducer(is_streaming=False, key="stream.reduce.streamprocessor")
    java = "application_1_000777"
    more = like(busy(), "research", application=java, name="count", user="carol", runner=False, why_not=why)
    served.view = with_jobs(busy(), more)
    shown(page, served.url, "research")
    page.until("document.querySelector('#applications').textContent.includes('carol')")
    (row,) = [each for each in rows_of(page, "applications") if each[0] == "count"]
    assert row[1:3] == ["carol", "research"]
    assert row[-3:] == [f"no: {text(why)}", "-", java]
    (row,) = [each for each in rows_of(page, "applications") if each[0] == "r"]
    assert row[-3:] == ["yes", "-", "application_1_000001"]


def test_who_waits_stands_in_the_order_of_service_with_the_reason(page, served):
    second = like(busy(), "production", application="application_1_000003", name="later", rank=99)
    first = like(busy(), "production", application="application_1_000004", name="sooner", rank=-1)
    served.view = with_jobs(busy(), second, first)
    page.until("document.querySelectorAll('#waiting tr').length === 4")
    rows = rows_of(page, "waiting")
    assert [row[0] for row in rows] == ["sooner", "p", "later"]
    assert rows[1][1:3] == ["hadoop", "production"]
    assert "5 containers ordered from r (hadoop) (5); no order for the rest: every task" in rows[1][5]
    caption = "[...document.querySelectorAll('#reclaims caption')].map(c => c.textContent).join('\\n')"
    assert "later (hadoop): application_1_000003 requests " in page.script(f"return {caption}")
    assert "no order is open" in page.script(f"return {caption}")


def test_an_empty_list_says_why_where_one_looks_for_it(page, served):
    view = busy()
    cause = Cause("application_1_000001", "r", "reduce", 4, "job-budget")
    waiting = {"application_1_000002": Waiting("rejected", NoTaskMayStop(), (cause,))}
    served.view = msgspec.structs.replace(view, entries=(), waiting=waiting)
    page.until("document.querySelector('#reclaims').textContent.includes('no container is ordered')")
    caption = page.script("return document.querySelector('#reclaims caption').textContent")
    shown = (
        "no container is ordered: every task of the preemptable jobs is excluded"
        " (4 reduces of r: the job has the highest allowed number of open orders)"
    )
    assert caption.endswith(shown)
    (row,) = rows_of(page, "waiting")
    assert row[5] == shown


def test_a_link_leads_to_the_explanation_and_can_be_kept(page, served):
    order = busy().entries[0]
    assert page.script("return document.querySelector('#explained').hidden")
    page.script("document.querySelector('#reclaims a').click()")
    told = page.until("(document.querySelector('#story pre') || {}).textContent")
    assert told.startswith(f"{order.order} (order)")
    page.open("about:blank")
    page.open(f"{served.url}/#view=research&explain={order.victim}")
    told = page.until("(document.querySelector('#story pre') || {}).textContent")
    assert told.startswith(f"{order.victim} (application)")
    assert "now: user hadoop, queue research" in told
    page.script("document.querySelector('#close').click()")
    page.until("document.querySelector('#explained').hidden")
    for broken in ("%E0%A4%A", "nothing"):
        page.script("location.hash = arguments[0]", f"#view=production&explain={broken}")
        page.until("(document.querySelector('#story pre') || {}).textContent?.includes('does not exist')")
        page.script("location.hash = 'view=production'")
        page.until("document.querySelector('#explained').hidden")


def sold() -> AtTheDesk:
    """Return a gate with one account that has bought two deadlines, of which one is kept."""
    there = AtTheDesk("mrm")
    there.go(4_000)
    for wanted in (
        AccountCommand(account="analytics"),
        AccountCommand(account="analytics", credit_mtokens=5_000_000),
    ):
        there.hand(wanted)
        there.tick()
    known = {"estimate": Estimate(600_000, 0, "me"), "budget": Budget("analytics", 10**9)}
    first = there.ask(10, 10, name="daily", **known)
    there.ask(10, 5, name="weekly", **known)
    there.yarn.run("application_1_000777", 10, tags=tag_of(first.admission))
    there.go(20_000)
    there.past.jobs["application_1_000777"] = Finished(150_000, 10, 60_000, 10, 10, 1.0, True)
    there.yarn.end("application_1_000777")
    there.go(20_000)
    return there


def test_accounts_and_sold_deadlines_are_shown_promised_against_kept(page, served):
    assert not page.script("return document.querySelector('#market').checkVisibility()")
    there = sold()
    served.view = msgspec.structs.replace(busy(), admission=there.desk.shown())
    page.until("document.querySelector('#market').checkVisibility()")
    (account,) = rows_of(page, "accounts")
    assert account[0] == "analytics"
    weekly, daily = rows_of(page, "promises")
    assert [weekly[1], weekly[3], weekly[5], weekly[7]] == ["weekly", "analytics", "0", "promised"]
    assert [daily[1], daily[7][:5]] == ["daily", "met, "]
    price = there.book.admissions[daily[0]].plan.price_mtokens
    assert price is not None
    assert daily[4] == f"{price / 1000:,.3f}".rstrip("0").rstrip(".")
    back = there.book.accounts.payments[daily[0]].refunded_mtokens
    assert back is not None
    assert back > 0
    assert daily[5] == f"{back / 1000:,.3f}".rstrip("0").rstrip(".")
    assert "itself" in daily[8]
    assert "adm-a1b2-1" in weekly[8]


def placed() -> AtTheDesk:
    """Return a gate of two pools: one application has ended, one is reserved for later, one fits nowhere."""
    past = Past()
    there = AtTheDesk("orion", pools=POOLS, past=past)
    options = (PlacementOption("spark", 3, 2 * MINUTE, 3 * MINUTE),)
    known = {"queue": "", "alternatives": Alternatives(options, "wordcount", (("input_mib", 64.0),))}
    first = there.ask(3, 20, name="first", **known)
    there.submit(first, queue="root.fast")
    there.go(2_000)
    there.yarn.end("application_1_0001")
    past.jobs["application_1_0001"] = Finished(1, 3, 1, 3, 4, 1.0, met=True, elapsed_ms=100_000)
    there.go(20_000)
    for name, minutes in (("second", 20), ("third", 20), ("fourth", 1)):
        there.ask(3, minutes, name=name, **known)
    return there


def test_pools_and_what_was_placed_are_shown_predicted_against_what_it_took(page, served):
    assert not page.script("return document.querySelector('#placement').checkVisibility()")
    there = placed()
    served.view = msgspec.structs.replace(busy(), admission=there.desk.shown())
    page.until("document.querySelector('#placement').checkVisibility()")
    assert "fast: 4 containers of root.fast, accepts spark, flink" in page.text()
    assert "slow: 6 containers of root.slow, accepts mapreduce" in page.text()
    assert "no reservations" in page.text()
    reserved = rows_of(page, "pools")
    assert [(row[1], row[2]) for row in reserved] == [("spark", "3"), ("spark", "3")]
    fourth, third, second, first = rows_of(page, "placed")
    assert [row[1] for row in (first, second, third, fourth)] == ["first", "second", "third", "fourth"]
    assert (first[3], first[8], first[10]) == ("spark with 3 in fast", "2 min", "ended")
    assert first[9] not in ("-", "0.0 s")
    assert (second[10], third[10], fourth[10]) == ("admitted", "waiting", "rejected")
    assert third[9] == fourth[3] == "-"
    assert "no option meets the deadline" in fourth[11]
    assert "spark with 3 in fast: " in fourth[12]


def test_budgets_are_shown_with_what_was_lost_and_what_that_bought(page, served):
    assert not page.script("return document.querySelector('#losses').checkVisibility()")
    rows = (
        BudgetStanding("queue", "research", "", 0.02, 3_600_000, 0, 90_000 * 1024, 0, 0, 0),
        BudgetStanding("user", "ann", "ann", 0.005, 86_400_000, 7_000 * 1024, 0, 7_000, 1, 30_000),
        BudgetStanding("job", "application_1_000777", PROBE, 1.0, 3_600_000, 0, 0, 0, 0, 0),
    )
    served.view = msgspec.structs.replace(busy(), budgets=rows)
    shown(page, served.url, "research")
    page.until("document.querySelector('#losses').checkVisibility()")
    job, queue, user = rows_of(page, "budgets")
    assert queue == ["queue research", "2 %", "60 min", "0.0 s", "90 s of 1.0 GiB containers", "0", "0.0 s"]
    assert user == ["user ann", "0.5 %", "24.0 h", "7.0 s", "0.0 s of 1.0 GiB containers", "1", "30 s"]
    assert job[:2] == [f"job of {PROBE}", "100 %"]
    assert page.script("return document.querySelectorAll('img, main script').length") == 0


def test_the_last_day_is_shown_with_what_production_gained_and_research_lost(page, served):
    reporting = last().reporting
    assert reporting is not None
    report = reporting.report(0)
    (gain,), (loss,) = report.gains, report.losses
    served.view = last()
    shown(page, served.url, "research")
    page.until("document.querySelector('#report').checkVisibility()")
    assert rows_of(page, "gains")[0][:6] == [
        str(cell) for cell in (gain.queue, gain.user, gain.decisions, gain.ordered, gain.received, gain.unmet)
    ]
    assert rows_of(page, "given")[0][:3] == ["research", loss.user, str(loss.containers)]
    assert page.script("return document.querySelector('#gain').textContent").startswith(
        "Production waited less: "
    )


def test_ended_jobs_keep_name_user_and_queue(page, served):
    snapshot = busy().snapshot
    assert snapshot is not None
    ended = msgspec.structs.replace(snapshot, applications=())
    foul = {"application_1_000001": ApplicationName(PROBE, "ann", "root.research")}
    entries = tuple(msgspec.structs.replace(story, names={**story.names, **foul}) for story in busy().entries)
    served.view = msgspec.structs.replace(busy(), snapshot=ended, entries=entries)
    page.until("document.querySelector('#reclaims').textContent.includes('no longer exists')")
    caption = page.script("return document.querySelector('#reclaims caption').textContent")
    assert caption.startswith("p (hadoop, production): application_1_000002 no longer exists")
    assert rows_of(page, "reclaims")[0][1] == f"{PROBE} (ann, research)"
    decisions = page.script("return document.querySelector('#decisions').textContent")
    assert "p (hadoop, production) in production" in decisions
    (row,) = rows_of(page, "ended")
    assert row[:3] == ["p", "hadoop", "production"]
    assert page.script("return document.querySelectorAll('img, main script').length") == 0


def test_a_container_that_another_application_received_does_not_count(page, served):
    snapshot = busy().snapshot
    assert snapshot is not None
    first, *others = busy().entries
    freed = [msgspec.structs.replace(first, freed_at_ms=5, receiver_application="application_1_000777")]
    freed += [
        msgspec.structs.replace(each, freed_at_ms=5, receiver_application=each.requester) for each in others
    ]
    ended = msgspec.structs.replace(snapshot, applications=())
    served.view = msgspec.structs.replace(busy(), snapshot=ended, entries=tuple(freed), ended=())
    page.until("document.querySelector('#reclaims').textContent.includes('no longer exists')")
    (row,) = rows_of(page, "ended")
    assert row[3:5] == [str(len(freed)), str(sum(each.serves for each in others))]


def test_instants_are_local_time(page):
    entry = busy().entries[0]
    (shown,) = page.script(
        "return [new Date(arguments[0]).toLocaleTimeString([], { hour12: false })]", entry.ordered_at_ms
    )
    assert rows_of(page, "reclaims")[0][4] == shown


@pytest.mark.parametrize("field", ["name", "user", "why_not"])
def test_what_users_write_is_text(page, served, field):
    said = RunnerSays(PROBE) if field == "why_not" else PROBE
    more = like(busy(), "research", application="application_1_000777", runner=False, **{field: said})
    served.view = with_jobs(busy(), more)
    shown(page, served.url, "research")
    page.until("document.querySelector('#applications').textContent.includes('onerror')")
    assert page.script("return document.querySelectorAll('img, main script').length") == 0
    assert page.script("return document.title") == "yarnctl"


@pytest.mark.parametrize("width", [800, 1200])
def test_ids_of_today_fit_without_scrolling_sideways(page, served, width):
    view, long = busy(), "_1795286111346_00"
    for entry in view.entries:
        view = renamed(view, entry.attempt, entry.attempt.replace("_1_00", long))
    for name in ("application_1_000001", "application_1_000002"):
        view = renamed(view, name, name.replace("_1_00", long))
    served.view = view
    page.size(width, 1000)
    page.until("document.querySelector('#reclaims').textContent.includes('attempt_1795286111346_0000')")
    assert set(page.script(OVERFLOWS)) == {0}
    words = page.script("return document.querySelector('#reclaims td:nth-child(3)').innerText")
    assert words == view.entries[0].attempt  # whole, though it may be shown on two lines


def test_no_column_of_the_description_is_cut_off(page, served):
    page.size(1200, 1000)
    page.open(f"{served.url}/docs")
    page.until("document.querySelectorAll('#api section').length > 20")
    assert set(page.script(OVERFLOWS)) == {0}


UPLOT = {
    "uPlot.iife.min.js": "19c8d4c6ad88929a79f4ae49d6f7161566dfd0ba3d15cc495e974f787eb78f1f",
    "uPlot.min.css": "df630c6a8d6f8eeaff264b50f73ce5b114f646ffd9a0bb74f049b0a00135fa04",
    "uPlot.LICENSE": "8f989229699b4fe2f1a0432d0e9edc338a8a911e250e2d1b01ecd770a5f5b1bd",
}
"""uPlot 1.6.32 as the npm registry has it (`npm pack uplot@1.6.32`), with its licence (MIT)."""


def test_the_chart_s_library_is_as_it_was_published():
    folder = files("yarnctl.service").joinpath("page")
    assert {name: hashlib.sha256(folder.joinpath(name).read_bytes()).hexdigest() for name in UPLOT} == UPLOT


def test_a_token_for_one_s_own_applications_shows_these(chromium):
    tokens = Tokens([(Caller("ann", "ann", frozenset({"own"})), "ANNS-OWN-SECRET-0123456789")])
    handle = serve_in_thread(make_app(busy, token=tokens, open_reads=False), token=tokens)
    try:
        chromium.open("about:blank")
        chromium.open(f"{handle.url}/#view=research")
        chromium.until("!document.querySelector('#token-form').hidden")
        chromium.script("document.querySelector('#token').value = 'ANNS-OWN-SECRET-0123456789'")
        chromium.script("document.querySelector('#token-form button').click()")
        chromium.until("document.querySelector('#state').textContent === 'running'")
        assert "attempt_" not in chromium.text()
    finally:
        handle.stop()


def test_who_waits_sees_when_it_is_expected_to_start_and_end(page, served):
    when = When(Interval(1_000, 2_000, 3_000, 7), Interval(61_000, 62_000, 63_000, 7))
    served.view = msgspec.structs.replace(
        busy(), when=lambda name, _: when if name == PRODUCTION else unforetold(name, 0)
    )
    page.until("document.querySelector('#waiting').textContent.includes('starts')")
    (row,) = rows_of(page, "waiting")
    assert re.fullmatch(r"starts \S+ to \S+, ends \S+ to \S+", row[8])
    assert len(set(re.findall(r"\d\d:\d\d:\d\d", row[8]))) == 4


def test_a_name_cannot_turn_the_words_beside_it_nor_hide_a_column(page, served):
    served.view = renamed(busy(), PRODUCTION, "\u202e" + "x" * 300)
    page.until("document.querySelector('#reclaims').textContent.includes('xxx')")
    assert "\u202e" not in page.text()
    assert "\ufffdxxx" in page.text()
    page.size(1100, 1000)
    assert max(page.script(OVERFLOWS)) == 0


def test_the_mode_agrees_with_the_state(page, served):
    view = busy()
    served.view = msgspec.structs.replace(
        view, loop=msgspec.structs.replace(view.loop, mode="enforce", state="paused")
    )
    page.until("document.querySelector('#state').textContent === 'paused'")
    assert page.script("return document.querySelector('#mode').textContent") == "sends no orders now"


def test_escape_closes_an_explanation_and_returns_to_its_link(page):
    page.script("document.querySelector('#reclaims td a').focus()")
    kept = page.script("return document.activeElement.getAttribute('href')")
    page.script("document.activeElement.click()")
    page.until("document.activeElement.id === 'h-explained'")
    page.script("document.dispatchEvent(new KeyboardEvent('keydown', { key: 'Escape' }))")
    page.until("document.querySelector('#explained').hidden")
    page.until(f"document.activeElement.getAttribute('href') === {json.dumps(kept)}")


def test_a_small_loss_is_not_shown_as_none(page):
    shown = page.script("return [0, 7000 * 1024, 3600000 * 1024].map(gibHours)")
    assert shown == ["0 GiB h", "< 0.01 GiB h", "1 GiB h"]
