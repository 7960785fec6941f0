"""The bench's pages request what the page requests, as often."""

from __future__ import annotations

import re
from importlib.resources import files

from yarn_research.bench.watchers import PAUSE_S, POLLED

PAGE = files("yarnctl.service").joinpath("page/page.js").read_text()


def _polled(text: str) -> list[str]:
    """Return the addresses that a function of the page requests, in order."""
    return [f"/{path}" for path in re.findall(r"get(?:Allowed)?\([\"`](v1/[^\"`]+)", text)]


def test_a_watching_page_requests_what_the_page_polls() -> None:
    poll = PAGE[PAGE.index("async function poll(") : PAGE.index("async function newHistory(")]
    first, *rest = _polled(poll)
    _, newer = _polled(
        PAGE[PAGE.index("async function newHistory(") : PAGE.index("// --- what a person does")]
    )
    assert [first, newer.replace("${since}", "9999999999999"), *rest] == list(POLLED)
    (pause_ms,) = re.findall(r"\bPOLL_MS = (\d+)", PAGE)
    assert int(pause_ms) / 1000 == PAUSE_S
