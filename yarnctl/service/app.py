"""The API: queries of the daemon's state, and the few commands that change it.

Law: every answer is made from one view; nothing here reaches the cluster or the journal. Reading is free
on loopback and needs a token elsewhere, unless configured otherwise; every write needs one. An
unknown query parameter is refused, never ignored: a mistyped filter must not return everything.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from importlib.resources import files
from pathlib import Path

from fastapi import APIRouter, FastAPI, Response

import yarnctl.service.answers.error_body as problems
from yarnctl.daemon.admission.request_queue import RequestQueue
from yarnctl.daemon.view.published import Control, View
from yarnctl.listening.names import LOOPBACK_NAMES
from yarnctl.service.routes.admissions import admission_routes
from yarnctl.service.routes.health import state_routes, writing_routes
from yarnctl.service.routes.lists import reading_routes
from yarnctl.service.routes.market import market_routes
from yarnctl.service.routes.placement import run_routes
from yarnctl.service.security.middleware import Guards
from yarnctl.service.security.tokens import Tokens

STUCK_MS = 60_000
"""A loop that has published nothing for so long is stuck."""

TYPES = {"html": "text/html", "js": "text/javascript", "css": "text/css"}
FILES = {
    "/": "index.html",
    "/page.js": "page.js",
    "/page.css": "page.css",
    "/docs": "docs.html",
    "/docs.js": "docs.js",
}
"""The page and the description: files of this package, nothing from elsewhere."""

ABOUT = """\
What yarnctl sees, decides and does, read from the view that its loop publishes after each tick.

* Instants (`..._at_ms`) and spans (`..._ms`) are integer milliseconds of the loop's clock.
* Lists come in pages: `limit`, and `cursor` set to the `next` of the page before.
* A query parameter that is not known is refused with 422 (`unknown-parameter`).
* Every error has the body `{"error": {"code", "message", "next"}}`; `next` says what to do.
* A job with a deadline asks to be let in with `POST /v1/admissions` (if the daemon keeps a gate:
  `--admission`), waits with `POST /v1/admissions/ID/renew?wait_ms=20000`, and is submitted by who asked.
* A token has scopes: `read`; `submit` (ask for admissions of its own user, see, renew and withdraw these);
  `operate` (everything: pause and continue the loop, anybody's admissions). It is sent as
  `Authorization: Bearer TOKEN`; the daemon has tokens only if it was given some (`--tokens`, `--token-file`).
* Reading is free where the daemon listens on loopback. Elsewhere it needs the scope `read`, except for this
  page, `/healthz` and `/readyz`, unless the daemon was started with `--open-reads`.
* Only the Host names `localhost` and `127.0.0.1`, those given with `--allow-host`, and beyond loopback any
  IP address are answered (421 `bad-host` otherwise), so that no name can be pointed here from outside.
  A request with a foreign `Origin` is refused (403 `foreign-origin`).
  There is no CORS: pages of other origins read nothing.
"""


def now_ms() -> int:
    """Return the wall clock, in ms since the epoch."""
    return time.time_ns() // 1_000_000


def make_app(
    source: Callable[[], View],
    *,
    token: str | Tokens | None = None,
    control: Control | None = None,
    journal: Path | None = None,
    names: frozenset[str] = LOOPBACK_NAMES,
    open_reads: bool = True,
    clock: Callable[[], int] = now_ms,
    window: RequestQueue | None = None,
) -> FastAPI:
    """Make the app.

    ``source`` returns the newest view. ``token``: the tokens, or the one operator's; without any (or without
    ``control``) writes are always refused.
    ``journal`` is only named, in answers about what has been forgotten. ``names`` are the host names
    that are answered. Without ``open_reads`` reading needs a token, too. ``clock`` is the clock of
    :attr:`View.now_ms`, in ms. ``window`` is the admission controller's request queue (None: no gate).
    """
    app = FastAPI(
        title="yarnctl",
        version="1",
        description=ABOUT,
        docs_url=None,
        redoc_url=None,
        swagger_ui_oauth2_redirect_url=None,
    )
    problems.install(app)
    app.include_router(state_routes(source, clock, STUCK_MS))
    app.include_router(reading_routes(source, journal))
    tokens = Tokens.of(token)
    app.include_router(writing_routes(source, tokens, control))
    app.include_router(admission_routes(source, tokens, window))
    app.include_router(market_routes(source, tokens, window))
    app.include_router(run_routes(source))
    app.include_router(page_routes())
    app.add_middleware(Guards, names=names, readers=None if open_reads else tokens)
    return app


def page_routes() -> APIRouter:
    """Make a route per file; the files are read once, at start: what is served is what was installed."""
    router = APIRouter(include_in_schema=False)
    folder = files("yarnctl.service").joinpath("page")
    for path, name in FILES.items():
        _add(router, path, folder.joinpath(name).read_bytes(), TYPES[name.rpartition(".")[2]])
    return router


def _add(router: APIRouter, path: str, content: bytes, media_type: str) -> None:
    @router.get(path, name=path)
    def file() -> Response:
        return Response(content, media_type=f"{media_type}; charset=utf-8")
