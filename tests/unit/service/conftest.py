"""Served views: one app on a free port per module, over a view that tests may replace."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests import http_client
from tests.unit.service.played import busy
from yarnctl.daemon.view.published import View
from yarnctl.service.app import make_app
from yarnctl.service.serving import Handle, serve_in_thread

TOKEN = "a token of sufficient length"


class Told:
    """A control that remembers what it was told."""

    def __init__(self) -> None:
        self.orders: list[str] = []

    def pause(self, why: str, for_ms: int | None) -> None:
        self.orders.append(f"pause: {why}" + ("" if for_ms is None else f" for {for_ms} ms"))

    def go_on(self) -> None:
        self.orders.append("continue")

    def resume(self, queue: str) -> None:
        self.orders.append(f"resume: {queue}")


class Served:
    """A served view and ways to ask it; ``late_ms`` is how old the view is by the service's clock."""

    def __init__(self, token: str | None = TOKEN) -> None:
        self.view: View = busy()
        self.late_ms = 0
        self.control = Told()
        app = make_app(
            lambda: self.view,
            token=token,
            control=self.control,
            clock=lambda: self.view.now_ms + self.late_ms,
        )
        self.handle: Handle = serve_in_thread(app, token=token)

    @property
    def url(self) -> str:
        return self.handle.url

    def answer(self, path: str, method: str = "GET", **kwargs) -> http_client.Response:
        return http_client.request(method, self.url + path, timeout=30, **kwargs)

    def get(self, path: str, status: int = 200) -> dict:
        answer = self.answer(path)
        assert answer.status_code == status, answer.text
        return answer.json()

    def begin(self) -> Served:
        """Forget what the test before has done."""
        self.view, self.late_ms = busy(), 0
        self.control.orders.clear()
        return self


@pytest.fixture(scope="session")
def _serving() -> Iterator[Served]:
    made = Served()
    yield made
    made.handle.stop()


@pytest.fixture(scope="session")
def _serving_without_token() -> Iterator[Served]:
    made = Served(token=None)
    yield made
    made.handle.stop()


@pytest.fixture
def served(_serving: Served) -> Served:
    return _serving.begin()


@pytest.fixture
def served_without_token(_serving_without_token: Served) -> Served:
    return _serving_without_token.begin()
