"""The API: queries of the daemon's state, and the commands that change it.

Every answer is made from one view; nothing here reaches the cluster or the journal. Reading is free on
loopback and needs a token elsewhere, unless configured otherwise; every write needs one. An unknown query
parameter is an error, so that a mistyped filter does not return everything.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from importlib.resources import files
from pathlib import Path
from threading import Lock

from fastapi import APIRouter, FastAPI, Response

import yarnctl.service.answers.error_body as problems
from yarnctl.daemon.admission.request_queue import RequestQueue
from yarnctl.daemon.questions.what_if_desk import WhatIfDesk
from yarnctl.daemon.view.published import Control, View
from yarnctl.listening.names import LOOPBACK_NAMES
from yarnctl.service.answers.own_view import own_view
from yarnctl.service.conditional import Conditional
from yarnctl.service.routes.admissions import admission_routes
from yarnctl.service.routes.events import event_routes
from yarnctl.service.routes.health import state_routes, writing_routes
from yarnctl.service.routes.lists import reading_routes
from yarnctl.service.routes.market import market_routes
from yarnctl.service.routes.placement import run_routes
from yarnctl.service.routes.questions import question_routes
from yarnctl.service.security.audited import Audited
from yarnctl.service.security.middleware import PAGE_FILES, READER, Guards
from yarnctl.service.security.proxies import Prefixed
from yarnctl.service.security.tokens import Tokens
from yarnctl.service.watching import Watch

STUCK_MS = 60_000  # After this time without a published view the loop counts as stuck

TYPES = {"html": "text/html", "js": "text/javascript", "css": "text/css"}
ABOUT = """\
What yarnctl observes, decides and does. The loop publishes a view after each tick; answers are made from it.

* Instants (`..._at_ms`) and spans (`..._ms`) are integer milliseconds of the loop's clock.
* With `iso=true` an answer also has each instant as `..._at`, in ISO 8601 and UTC.
* An answer has an `ETag`; with `If-None-Match` it is 304 until there is a newer view. With `since=VERSION`
  and `wait_ms` it comes as soon as there is one. `GET /v1/events` streams what happens.
* Lists are paged: set `limit`, and `cursor` to the `next` of the previous page.
* An unknown query parameter is an error (422 `unknown-parameter`).
* Every error has the body `{"error": {"code", "message", "next"}}`. Compare `code`; `next` is what to do.
* With `--admission` a client requests the admission of a job with `POST /v1/admissions`, waits with
  `POST /v1/admissions/ID/renew?wait_ms=20000`, and submits the job when the state is `admitted`.
* A token has scopes: `read`; `submit` (request, read, renew and withdraw admissions of its own user);
  `own` (as `submit`, and read about the applications of its own user);
  `operate` (everything: pause and continue the loop, admissions of all users). Send it in the header
  `Authorization: Bearer TOKEN`. Set the daemon's tokens with `--tokens` or `--token-file`.
* Reading is free if the daemon listens on loopback. Elsewhere it needs the scope `read`, except this page,
  `/healthz` and `/readyz`, unless the daemon was started with `--open-reads`.
* The Host header must be `localhost`, `127.0.0.1`, a name given with `--allow-host`, or, beyond loopback, an
  IP address (421 `bad-host` otherwise). A foreign `Origin` is an error (403 `foreign-origin`). CORS is
  not supported.
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
    request_queue: RequestQueue | None = None,
    what_if: WhatIfDesk | None = None,
    prefix: str = "",
) -> FastAPI:
    """Return the app.

    ``source`` returns the newest view. ``token``: the tokens, or the secret of one operator token; without
    tokens or without ``control`` every write is an error. ``journal``: the path named in errors about ids
    that are no longer kept. ``names``: the host names that are answered. Without ``open_reads`` reading needs
    a token. ``clock``: that of :attr:`View.now_ms`, in ms. ``request_queue`` None: admission is disabled.
    ``what_if`` None: no loop answers questions.
    ``prefix``: the path behind a proxy ("": none).
    """
    app = FastAPI(
        title="yarnctl",
        version="1",
        description=ABOUT,
        servers=[{"url": prefix}] if prefix else None,
        docs_url=None,
        redoc_url=None,
        swagger_ui_oauth2_redirect_url=None,
        generate_unique_id_function=lambda route: route.name,  # the operation ids of the OpenAPI document
        redirect_slashes=False,  # such a redirect names the host of the request
    )
    problems.install(app)
    newest, source = source, restricted(source)
    watch = Watch(newest)
    app.state.watch = watch
    app.include_router(state_routes(source, clock, STUCK_MS))
    app.include_router(reading_routes(source, journal))
    tokens = Tokens.of(token)
    app.include_router(writing_routes(source, tokens, control))
    app.include_router(admission_routes(source, tokens, request_queue))
    app.include_router(market_routes(source, tokens, request_queue))
    app.include_router(run_routes(source))
    app.include_router(question_routes(what_if, None if open_reads else tokens))
    app.include_router(event_routes(source, watch))
    app.include_router(page_routes(accepts_commands=len(tokens) > 0))
    app.add_middleware(Conditional, source=newest, watch=watch)
    app.add_middleware(Guards, names=names, tokens=None if open_reads else tokens)
    app.add_middleware(Audited, tokens=tokens)
    if prefix:
        app.add_middleware(Prefixed, prefix=prefix)
    return app


def restricted(source: Callable[[], View]) -> Callable[[], View]:
    """Return the source of views for routes: the newest one, as the reader of the request may see it.

    One user's view of a version is made once, however many streams and requests read it.
    """
    lock = Lock()
    of: View | None = None
    own: dict[str, View] = {}

    def seen() -> View:
        nonlocal of, own
        user = READER.get()
        if user is None:
            return source()
        with lock:
            newest = source()
            if newest is not of:
                of, own = newest, {}
            if user not in own:
                own[user] = own_view(newest, user)
            return own[user]

    return seen


def page_routes(*, accepts_commands: bool) -> APIRouter:
    """Return a route for each file; the files are read once, at the start.

    Without ``accepts_commands`` the page explains why it has no form for them.
    """
    router = APIRouter(include_in_schema=False)
    folder = files("yarnctl.service").joinpath("page")
    for path, name in PAGE_FILES.items():
        content = folder.joinpath(name).read_bytes()
        if not accepts_commands:
            content = content.replace(b"<body>", b'<body class="no-tokens">')
        _add(router, path, content, TYPES[name.rpartition(".")[2]])
    return router


def _add(router: APIRouter, path: str, content: bytes, media_type: str) -> None:
    @router.get(path, name=path)
    def file() -> Response:
        return Response(content, media_type=f"{media_type}; charset=utf-8")
