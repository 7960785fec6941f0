"""The scope ``own``: what a user sees of a cluster that others use, and that nothing else is told."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import msgspec
import pytest

from tests import http_client
from tests.unit.service.played import JOBS, PublishedRun
from yarnctl.daemon.view.published import View
from yarnctl.service.answers.from_view import snapshot
from yarnctl.service.answers.own_view import own_view
from yarnctl.service.app import make_app
from yarnctl.service.routes.events import OWN_STREAMS_MAX
from yarnctl.service.security.tokens import Caller, Tokens
from yarnctl.service.serving import Handle, serve_in_thread

RESEARCH, PRODUCTION = "application_1_000001", "application_1_000002"
NAMES = {"ann": "names-of-ann", "bob": "names-of-bob"}
OF = {"ann": RESEARCH, "bob": PRODUCTION}
SECRETS = {name: f"the secret of {name}, who sees her own" for name in (*NAMES, "carl")}


@pytest.fixture(scope="module")
def view() -> View:
    """A view with open orders of bob's production against ann's research."""
    jobs = tuple(
        msgspec.structs.replace(job, user=user, name=name)
        for job, (user, name) in zip(JOBS, NAMES.items(), strict=True)
    )
    views: list[View] = []
    PublishedRun(views.append, jobs=jobs).go(until_ms=10 * 60_000)
    return next(each for each in views if len(each.entries) > 1 and each.checkpoints and each.refusals)


@pytest.fixture(scope="module")
def served(view: View) -> Iterator[Handle]:
    callers = [(Caller(name, name, frozenset({"own"})), secret) for name, secret in SECRETS.items()]
    tokens = Tokens(callers)
    handle = serve_in_thread(make_app(lambda: view, token=tokens, open_reads=False), token=tokens)
    yield handle
    handle.stop()


def asked(served: Handle, user: str, path: str) -> http_client.Response:
    return http_client.get(served.url + path, headers={"Authorization": f"Bearer {SECRETS[user]}"})


PATHS = ("applications", "reclaims?retired=true", "refusals", "checkpoints", "snapshot", "budgets",
         f"reclaims/{PRODUCTION}", f"explanations/{PRODUCTION}", f"explanations/{RESEARCH}",
         "explanations/o-000001", "events?cursor=0&wait_ms=0")  # fmt: skip


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize(("user", "other"), [("ann", "bob"), ("bob", "ann")])
def test_no_answer_names_another_user_or_its_job(served: Handle, user: str, other: str, path: str) -> None:
    answer = asked(served, user, f"/v1/{path}")
    assert answer.status_code == 200, answer.text
    assert NAMES[other] not in answer.text
    assert f'"{other}"' not in answer.text
    assert f"user {other}" not in answer.text


@pytest.mark.parametrize("user", ["ann", "bob"])
def test_a_user_sees_its_own_applications_and_the_orders_about_them(
    served: Handle, view: View, user: str
) -> None:
    listed = asked(served, user, "/v1/applications").json()["items"]
    assert [(each["application"], each["user"]) for each in listed] == [(OF[user], user)]
    reclaims = asked(served, user, "/v1/reclaims?retired=true").json()["items"]
    orders = {entry["order"] for each in reclaims for entry in each["entries"]}
    assert orders == {each.order for each in (*view.entries, *view.ended)}
    found = asked(served, user, f"/v1/explanations/{OF[user]}").json()
    assert NAMES[user] in str(found)
    checkpoints = asked(served, user, "/v1/checkpoints").json()["total"]
    assert checkpoints == (len(view.checkpoints) if user == "ann" else 0)


@pytest.mark.parametrize(("user", "other"), [("ann", "bob"), ("bob", "ann")])
def test_silent_masters_and_errors_of_others_are_left_out(view: View, user: str, other: str) -> None:
    status = msgspec.structs.replace(view.loop, last_error=f"{OF[other]}: connection refused")
    troubled = msgspec.structs.replace(view, unreachable=(RESEARCH, PRODUCTION), loop=status)
    answer = snapshot(own_view(troubled, user))
    assert answer.unreachable == [OF[user]]
    assert OF[other] not in str(answer)


def test_a_user_without_applications_sees_none(served: Handle) -> None:
    for path in ("applications", "reclaims?retired=true", "refusals", "checkpoints", "budgets"):
        assert asked(served, "carl", f"/v1/{path}").json()["items"] == [], path
    assert asked(served, "carl", f"/v1/explanations/{RESEARCH}").status_code == 404
    assert asked(served, "carl", "/v1/snapshot").json()["applications"] == 0


def test_one_request_does_not_restrict_the_next_on_the_same_connection(view: View) -> None:
    own, whole = "the secret of ann, who sees her own", "the secret of a reader"
    tokens = Tokens(
        [(Caller("ann", "ann", frozenset({"own"})), own), (Caller("all", "", frozenset({"read"})), whole)]
    )
    handle = serve_in_thread(make_app(lambda: view, token=tokens, open_reads=False), token=tokens)
    try:
        with http_client.Session() as session:
            for secret, seen in ((own, 1), (whole, 2), (own, 1), (whole, 2)):
                answer = session.get(
                    f"{handle.url}/v1/applications", headers={"Authorization": f"Bearer {secret}"}
                )
                assert answer.json()["total"] == seen
    finally:
        handle.stop()


def test_readers_that_wait_for_the_same_view_receive_what_each_may_read(view: View) -> None:
    secrets = {**SECRETS, "": "the secret of a reader"}
    scopes = {name: frozenset({"own" if name else "read"}) for name in secrets}
    tokens = Tokens([(Caller(name or "all", name, scopes[name]), secrets[name]) for name in secrets])
    newest = [view]
    handle = serve_in_thread(make_app(lambda: newest[-1], token=tokens, open_reads=False), token=tokens)

    def ask(name: str, more: str) -> tuple[int, bool]:
        url = f"{handle.url}/v1/snapshot?since={view.version}&wait_ms=30000{more}"
        answer = http_client.get(url, headers={"Authorization": f"Bearer {secrets[name]}"}).json()
        return answer["applications"], "now" in answer

    try:
        with ThreadPoolExecutor(2 * len(secrets)) as pool:
            keys = [(name, more) for name in secrets for more in ("", "&iso=true")]
            found = {key: pool.submit(ask, *key) for key in keys}
            newest.append(msgspec.structs.replace(view, version=view.version + 1))
        counts = {"ann": 1, "bob": 1, "carl": 0, "": 2}
        assert {key: each.result() for key, each in found.items()} == {
            (name, more): (counts[name], bool(more)) for name, more in keys
        }
    finally:
        handle.stop()


def test_the_view_of_a_user_is_made_once_and_off_the_event_loop(
    view: View, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[tuple[str, bool]] = []

    def counted(seen: View, user: str) -> View:
        made.append((user, _is_event_loop()))
        return own_view(seen, user)

    monkeypatch.setattr("yarnctl.service.app.own_view", counted)
    newest = [view]
    tokens = Tokens([(Caller(name, name, frozenset({"own"})), secret) for name, secret in SECRETS.items()])
    handle = serve_in_thread(make_app(lambda: newest[-1], token=tokens, open_reads=False), token=tokens)
    try:
        for _ in range(2):
            for user in ("ann", "bob"):
                assert asked(handle, user, "/v1/events?wait_ms=0").status_code == 200
                assert asked(handle, user, "/v1/applications").json()["total"] == 1
        assert made == [("ann", False), ("bob", False)]
        newest.append(msgspec.structs.replace(view, version=view.version + 1))
        assert asked(handle, "ann", "/v1/applications").json()["version"] == view.version + 1
        assert made[2:] == [("ann", False)]
    finally:
        handle.stop()


def _is_event_loop() -> bool:
    try:
        return asyncio.get_running_loop().is_running()
    except RuntimeError:
        return False


def test_one_user_cannot_hold_all_streams(view: View) -> None:
    callers = [(Caller(name, name, frozenset({"own"})), secret) for name, secret in SECRETS.items()]
    tokens = Tokens(callers)
    handle = serve_in_thread(make_app(lambda: view, token=tokens, open_reads=False), token=tokens)
    headers = {"Authorization": f"Bearer {SECRETS['ann']}"}
    streams: list[Iterator[bytes]] = []
    try:
        for _ in range(OWN_STREAMS_MAX):
            answer = http_client.get(f"{handle.url}/v1/events", headers=headers, stream=True)
            streams.append(answer.iter_lines(chunk_size=1))
            assert next(streams[-1]).startswith(b": from ")
        refused = asked(handle, "ann", "/v1/events?wait_ms=0")
        assert (refused.status_code, refused.json()["error"]["code"]) == (503, "too-many-streams")
        assert asked(handle, "bob", "/v1/events?wait_ms=0").status_code == 200
    finally:
        handle.stop()
