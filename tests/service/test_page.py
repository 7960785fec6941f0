"""The page in a real browser: what it shows, what it must not do, and what it says when nobody answers.

``YARNCTL_PICTURE=docs/page.png`` writes the picture that the documentation shows.
"""

from __future__ import annotations

import json
import os
from pathlib import Path

import msgspec
import pytest

from tests.service.browser import Browser, browsing
from tests.unit.service.conftest import TOKEN, Served
from tests.unit.service.played import busy, last
from yarnctl.daemon.view import View
from yarnctl.service.app import make_app
from yarnctl.service.serving import serve_in_thread

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
    chromium.open(served.url)
    chromium.until("document.querySelector('#state').textContent !== '…'")
    return chromium


def renamed(view: View, old: str, new: str) -> View:
    """Give an application another name wherever the view names it."""
    assert view.snapshot is not None

    def anew(record):
        text = msgspec.json.encode(record).decode().replace(json.dumps(old), json.dumps(new))
        return msgspec.json.decode(text, type=type(record))

    decisions = tuple(
        msgspec.structs.replace(
            decided,
            record=anew(decided.record),
            log=tuple(logged._replace(record=anew(logged.record)) for logged in decided.log),
        )
        for decided in view.decisions
    )
    return msgspec.structs.replace(
        view,
        snapshot=anew(view.snapshot),
        entries=tuple(anew(entry) for entry in view.entries),
        decisions=decisions,
        refusals=tuple(logged._replace(record=anew(logged.record)) for logged in view.refusals),
    )


def test_it_shows_the_reclaim_list_and_the_loop(page):
    text = page.text()
    for entry in busy().entries:
        assert entry.order.order in text
        assert entry.order.attempt in text
    assert f"{PRODUCTION} waits for" in text
    assert "checkpointed" in text
    assert "running" in text
    assert "3 nodes" in text
    assert "gives as many containers as it may at once" in text


def test_a_click_tells_why(page):
    assert "why it" not in page.text()
    page.script("document.querySelector('[data-decision=\"2\"]').click()")
    told = page.until(
        "(() => { const p = document.querySelector('pre:not([hidden])'); return p && p.textContent })()"
    )
    assert "why it   first by MR" in told
    assert "could have been taken, others came first" in told
    page.script("document.querySelector('[data-decision=\"2\"]').click()")
    page.until("!document.querySelector('pre:not([hidden])')")


def test_occupancy_is_drawn_by_class(page):
    paths = page.script(
        "return [...document.querySelectorAll('#chart path')].map(p => p.getAttribute('class'))"
    )
    assert sorted(paths) == ["hurried", "other", "victim", "waiting"]
    heights = page.script("return [...document.querySelectorAll('#chart path')].map(p => p.getBBox().height)")
    assert max(heights) > 50
    assert not page.script("return document.querySelector('#chart').innerHTML.includes('NaN')")


def test_it_follows_the_view(page, served):
    served.view = last()
    page.until("document.body.innerText.includes('nothing is being taken back')")
    served.view = msgspec.structs.replace(
        last(), loop=msgspec.structs.replace(last().loop, state="paused", why="maintenance at noon")
    )
    page.until("document.querySelector('#state').textContent === 'paused'")
    assert "maintenance at noon" in page.text()


def test_names_are_text_whatever_they_hold(page, served):
    served.view = renamed(busy(), PRODUCTION, PROBE)
    page.until("document.querySelector('#reclaims').innerText.includes('onerror')")
    assert PROBE in page.script("return document.querySelector('#reclaims caption').textContent")
    assert PROBE in page.script("return document.querySelector('#decisions button').textContent")
    page.script("document.querySelector('[data-decision=\"2\"]').click()")
    page.until("(document.querySelector('pre:not([hidden])') || {}).textContent")
    assert PROBE in page.script("return document.querySelector('pre').textContent")
    assert page.script("return document.querySelectorAll('img, main script').length") == 0
    assert page.script("return document.title") == "yarnctl"


def test_no_errors_in_the_console_and_no_other_host_is_asked(page, served):
    page.log("performance")
    page.open(f"{served.url}/docs")
    page.until("document.querySelectorAll('#api section').length > 20")
    assert "GET /v1/reclaims/{application_id}" in page.text()
    page.open(served.url)
    page.until("document.querySelectorAll('#reclaims table').length")
    assert [each["message"] for each in page.log()] == []
    events = [json.loads(each["message"])["message"] for each in page.log("performance")]
    asked = [e["params"]["request"]["url"] for e in events if e["method"] == "Network.requestWillBeSent"]
    assert len(asked) > 5
    assert [url for url in asked if not url.startswith((served.url, "data:"))] == []


def test_a_daemon_that_is_gone_is_said_to_be(chromium):
    gone = Served()
    try:
        chromium.open(gone.url)
        chromium.until("document.querySelectorAll('#reclaims table').length")
    finally:
        gone.handle.stop()
    chromium.until("!document.querySelector('#gone').hidden")
    assert "yarnctl does not answer" in chromium.text()
    assert chromium.script("return document.querySelector('#state').textContent") == "gone"
    assert busy().entries[0].order.order in chromium.text()


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
    page.script("document.querySelector('[data-decision=\"2\"]').click()")
    page.until("document.querySelector('pre:not([hidden])')")
    to = Path(os.environ.get("YARNCTL_PICTURE", tmp_path / "page.png"))
    page.picture(to)
    assert to.read_bytes().startswith(b"\x89PNG")
    assert to.stat().st_size > 10_000


def test_where_reading_needs_the_token_the_page_asks_for_it(chromium):
    handle = serve_in_thread(make_app(busy, token=TOKEN, open_reads=False), token=TOKEN)
    try:
        chromium.open(handle.url)
        chromium.until("!document.querySelector('#ask').hidden")
        assert "reading needs the token" in chromium.text()
        chromium.script("document.querySelector('#token').value = arguments[0]", TOKEN)
        chromium.script("document.querySelector('#ask button').click()")
        chromium.until("document.querySelector('#ask').hidden")
        chromium.until("document.querySelector('#state').textContent === 'running'")
    finally:
        handle.stop()
