"""The gate over the API: asking, waiting, withdrawing, who may, and what ``yarnctl admissions`` shows."""

from __future__ import annotations

import json
import queue
import threading
from collections.abc import Iterator
from typing import Any

import msgspec
import pytest

from tests import http_client
from tests.unit.daemon.at_the_desk import AtTheDesk
from tests.unit.service.conftest import TOKEN, Told
from yarnctl.cli import PROGRAM
from yarnctl.command_line import exit_status_of
from yarnctl.daemon.admission.request_queue import WAITERS_MAX, WAITING_THREADS_MAX
from yarnctl.daemon.view.published import LoopStatus, View
from yarnctl.listening.names import names_for
from yarnctl.service.app import make_app
from yarnctl.service.security.tls import Tls
from yarnctl.service.security.tokens import Caller, Tokens
from yarnctl.service.serving import serve_in_thread

WISH: dict[str, Any] = {
    "name": "job",
    "user": "ann",
    "queue": "root.production",
    "containers": 6,
    "deadline_ms": 1_200_000,
}
BEARER = {"Authorization": f"Bearer {TOKEN}"}


class Daemon:
    """A desk with a loop of its own, served. ``held`` keeps the loop from going round."""

    def __init__(
        self,
        token: str | Tokens = TOKEN,
        host: str = "127.0.0.1",
        open_reads: bool = True,
        there: AtTheDesk | None = None,
        tls: Tls | None = None,
        proxies: tuple[str, ...] = (),
    ) -> None:
        self.there = there or AtTheDesk(history=False)
        self.view = View(version=0, now_ms=self.there.now_ms, loop=LoopStatus(ticks=1))
        self._held, self._going = False, threading.Lock()
        self._wake, self._over = threading.Event(), False
        self.there.window.on_wake = self._wake.set
        self.thread = threading.Thread(target=self._loop, daemon=True)
        self.control = Told()
        app = make_app(
            lambda: self.view, token=token, request_queue=self.there.window, control=self.control,
            names=names_for(host), open_reads=open_reads, clock=lambda: self.view.now_ms,
        )  # fmt: skip
        self.handle = serve_in_thread(app, host, token=token, tls=tls, proxies=proxies)
        self.thread.start()

    @property
    def held(self) -> bool:
        """Whether the loop stands still."""
        return self._held

    @held.setter
    def held(self, held: bool) -> None:
        with self._going:
            self._held = held

    @property
    def url(self) -> str:
        return self.handle.url

    def _loop(self) -> None:
        while not self._over:
            with self._going:
                if not self._held:
                    self.go_round()
            self._wake.wait(0.01)
            self._wake.clear()

    def go_round(self) -> None:
        """Tick; some time has passed."""
        there = self.there
        there.now_ms += 500 if there.book.gate is None else 20
        there.desk.after_tick(there.write, there.now_ms)
        self.view = msgspec.structs.replace(
            self.view, version=self.view.version + 1, now_ms=there.now_ms, admission=there.desk.shown()
        )
        there.desk.published()

    def stop(self) -> None:
        self._over = True
        self._wake.set()
        self.there.desk.stop()
        self.thread.join()
        self.handle.stop()

    def ask(self, method: str, path: str, status: int, token: bool = True, **given: Any) -> dict:
        answer = http_client.request(
            method,
            f"{self.handle.url}/v1/admissions{path}",
            timeout=60,
            headers=BEARER if token else {},
            **given,
        )
        assert answer.status_code == status, answer.text
        return answer.json()

    def fill(self) -> None:
        """Let somebody else hold everything."""
        self.there.yarn.run("application_9_0001", 10, user="bob")


@pytest.fixture
def daemon() -> Iterator[Daemon]:
    served = Daemon()
    yield served
    served.stop()


def test_asking_answers_what_to_submit_with(daemon):
    said = daemon.ask("POST", "", 202, json=WISH)
    assert (said["state"], said["plan"]["verdict"], said["plan"]["containers"]) == ("admitted", "admit", 6)
    assert said["tags"] == [f"deadline:{said['plan']['deadline_at_ms']}", f"yarnctl-admission-{said['id']}"]
    limits = {name: value for name, value in said["settings"].items() if "limit" in name}
    assert set(limits) == {"mapreduce.job.running.map.limit", "mapreduce.job.running.reduce.limit"}
    assert said["expires_at_ms"] > said["request"]["submitted_at_ms"]
    assert daemon.ask("GET", f"/{said['id']}", 200, token=False) == said
    page = daemon.ask("GET", "", 200, token=False)
    assert page["items"] == [said]
    assert (page["gate"]["capacity"], page["gate"]["reserved"]) == (10, 6)


def test_what_is_no_mapreduce_job_gets_settings_of_its_own_framework_or_none(daemon):
    said = daemon.ask("POST", "", 202, json={**WISH, "kind": "spark"})
    executors = str(said["plan"]["containers"] - 1)  # one of the containers is its master's
    assert (said["state"], said["settings"]) == (
        "admitted",
        {"spark.executor.instances": executors, "spark.dynamicAllocation.enabled": "false"},
    )
    assert daemon.ask("POST", "", 202, json={**WISH, "kind": "tez"})["settings"] == {}


def test_what_is_answered_is_written_down(daemon):
    said = daemon.ask("POST", "", 202, json=WISH)
    assert said["id"] in {getattr(record, "admission", "") for record in daemon.there.records}


def test_a_wait_ends_with_the_verdict(daemon):
    daemon.fill()
    name = daemon.ask("POST", "", 202, json=WISH)["id"]
    assert daemon.ask("GET", f"/{name}?wait_ms=1", 200)["state"] == "waiting"
    heard: list[dict] = []
    waiters = [
        threading.Thread(target=lambda path=path: heard.append(daemon.ask(*path)))
        for path in (("POST", f"/{name}/renew?wait_ms=30000", 200), ("GET", f"/{name}?wait_ms=30000", 200))
    ]
    for waiter in waiters:
        waiter.start()
    daemon.there.yarn.end("application_9_0001")
    for waiter in waiters:
        waiter.join()
    assert [each["state"] for each in heard] == ["admitted", "admitted"]


def test_renewing_says_that_somebody_waits_and_looking_does_not(daemon):
    daemon.fill()
    name = daemon.ask("POST", "", 202, json=WISH)["id"]
    daemon.held = True
    heard: list[dict[str, int]] = []
    daemon.there.window.renewals()
    daemon.ask("GET", f"/{name}", 200)
    heard.append(daemon.there.window.renewals())
    daemon.ask("POST", f"/{name}/renew", 200)
    heard.append(daemon.there.window.renewals())
    assert [list(each) for each in heard] == [[], [name]]
    assert daemon.ask("POST", "/adm-a1b2-99/renew", 404)["error"]["code"] == "not-found"


def test_a_daemon_that_stops_lets_waiters_go(daemon):
    daemon.fill()
    name = daemon.ask("POST", "", 202, json=WISH)["id"]
    heard: list[dict] = []
    waiter = threading.Thread(target=lambda: heard.append(daemon.ask("GET", f"/{name}?wait_ms=30000", 200)))
    waiter.start()
    daemon.there.desk.stop()
    waiter.join()
    assert heard[0]["state"] == "waiting"


def test_who_finds_no_place_to_wait_is_answered_at_once(daemon):
    daemon.fill()
    name = daemon.ask("POST", "", 202, json=WISH)["id"]
    daemon.there.window._waiters.taken = WAITERS_MAX
    said = daemon.ask("GET", f"/{name}?wait_ms=30000", 200)
    daemon.there.window._waiters.taken = 0
    assert said["state"] == "waiting"


def test_withdrawing(daemon):
    name = daemon.ask("POST", "", 202, json=WISH)["id"]
    for _ in range(2):
        assert daemon.ask("DELETE", f"/{name}", 200)["state"] == "withdrawn"
    assert daemon.ask("DELETE", "/adm-a1b2-99", 404)["error"]["code"] == "not-found"


def test_wait_ends_with_the_withdrawal(daemon):
    """The client is answered at once, not after its 30 s."""
    daemon.fill()
    name = daemon.ask("POST", "", 202, json=WISH)["id"]
    heard: list[dict] = []
    waiter = threading.Thread(target=lambda: heard.append(daemon.ask("GET", f"/{name}?wait_ms=30000", 200)))
    waiter.start()
    daemon.ask("DELETE", f"/{name}", 200)
    waiter.join(timeout=10)
    assert [each["state"] for each in heard] == ["withdrawn"]


def test_a_repeated_request_is_one(daemon):
    first = daemon.ask("POST", "", 202, json={**WISH, "request_key": "k"})
    assert daemon.ask("POST", "", 202, json={**WISH, "request_key": "k"})["id"] == first["id"]
    other = {**WISH, "request_key": "k", "containers": 7}
    assert daemon.ask("POST", "", 409, json=other)["error"]["code"] == "request-key-used"


def test_a_request_that_was_not_written_in_time_is_found_by_its_key(daemon, monkeypatch):
    monkeypatch.setattr("yarnctl.service.routes.admissions.DONE_MS", 20)
    daemon.held = True
    wish = {**WISH, "request_key": "late"}
    for _ in range(2):
        assert daemon.ask("POST", "", 503, json=wish)["error"]["code"] == "not-written"
    daemon.held = False
    monkeypatch.setattr("yarnctl.service.routes.admissions.DONE_MS", 10_000)
    said = daemon.ask("POST", "", 202, json=wish)
    assert said["id"].endswith("-1")
    assert daemon.ask("GET", "", 200)["total"] == 1


def test_health_is_told_while_many_wait_for_a_loop_that_does_not_come(daemon, monkeypatch):
    """Where the ResourceManager is down, the loop does not come; threads are left for everything else."""
    monkeypatch.setattr("yarnctl.service.routes.admissions.DONE_MS", 60_000)
    daemon.fill()
    name = daemon.ask("POST", "", 202, json=WISH)["id"]
    daemon.held = True
    heard: queue.Queue[int] = queue.Queue()

    def ask(path: str, **given: Any) -> None:
        url = f"{daemon.url}/v1/admissions{path}"
        heard.put(http_client.post(url, timeout=120, headers=BEARER, **given).status_code)

    waits = [threading.Thread(target=ask, args=(f"/{name}/renew?wait_ms=30000",)) for _ in range(30)]
    posts = [threading.Thread(target=ask, args=("",), kwargs={"json": WISH}) for _ in range(30)]
    for each in (*waits, *posts):
        each.start()
    at_once = [heard.get(timeout=60) for _ in range(30 - WAITERS_MAX + 30 - WAITING_THREADS_MAX)]
    assert sorted(at_once) == [200] * (30 - WAITERS_MAX) + [503] * (30 - WAITING_THREADS_MAX)
    assert http_client.get(f"{daemon.url}/healthz", timeout=20).json()
    daemon.there.desk.stop()
    for each in (*waits, *posts):
        each.join()


@pytest.mark.parametrize(
    "wrong",
    [{"containers": 0}, {"deadline_ms": 0}, {"deadline_ms": 1 << 60}, {"name": ""}, {"user": "a\nb"},
     {"user": "a\x9bb"}, {"name": "a\x85b"}, {"queue": "a\x7fb"},
     {"estimate": {"mean_ms": 1, "source": "a\x9bb"}}, {"estimate": {"mean_ms": 1, "source": "a\nb"}},
     {"estimate": {"mean_ms": 0}}, {"kind": "../x"}, {"request_key": "a b"}, {"more": 1}],
)  # fmt: skip
def test_what_cannot_be_is_refused(daemon, wrong):
    code = daemon.ask("POST", "", 422, json={**WISH, **wrong})["error"]["code"]
    assert code in ("invalid-parameter", "unknown-parameter")
    assert daemon.ask("GET", "", 200)["total"] == 0


def test_one_user_fills_no_queue_and_an_operator_has_a_place() -> None:
    ann, carl = "the secret of ann", "the secret of carl"
    submit = frozenset({"submit"})
    callers = [(Caller("ann", "ann", submit), ann), (Caller("carl", "carl", submit), carl)]
    served = Daemon(Tokens([*callers, (Caller("ops", "", frozenset({"operate"})), TOKEN)]))
    try:
        served.held = True
        statuses: queue.Queue[tuple[str, int, str]] = queue.Queue()

        def ask(token: str, user: str) -> None:
            answer = http_client.request(
                "POST",
                f"{served.url}/v1/admissions",
                timeout=60,
                headers={"Authorization": f"Bearer {token}"},
                json={**WISH, "user": user, "containers": 1},
            )
            statuses.put((user, answer.status_code, answer.text))

        threads = [threading.Thread(target=ask, args=(ann, "ann")) for _ in range(30)]
        for thread in threads:
            thread.start()
        refused = [statuses.get(timeout=60) for _ in range(18)]
        assert {(user, status) for user, status, _ in refused} == {("ann", 503)}
        assert "ann" in refused[0][2]
        others = [threading.Thread(target=ask, args=each) for each in ((carl, "carl"), (TOKEN, "dora"))]
        for thread in others:
            thread.start()
        threading.Timer(0.2, setattr, (served, "held", False)).start()
        for thread in (*threads, *others):
            thread.join()
        answers = [statuses.get(timeout=60) for _ in range(14)]
        assert {(user, status) for user, status, _ in answers if user != "ann"} == {
            ("carl", 202),
            ("dora", 202),
        }
    finally:
        served.stop()


def test_only_who_has_the_token_asks(daemon):
    for method, path, given in (
        ("POST", "", {"json": WISH}),
        ("DELETE", "/adm-a-1", {}),
        ("POST", "/adm-a-1/renew", {}),
    ):
        said = daemon.ask(method, path, 401, token=False, **given)
        assert said["error"]["code"] == "unauthorized"


@pytest.mark.parametrize(("token", "status", "code"), [(TOKEN, 409, "gate-off"), (None, 403, "writes-off")])
def test_a_daemon_without_a_gate_or_without_a_token(token, status, code):
    view = View(version=0, now_ms=0, loop=LoopStatus())
    handle = serve_in_thread(make_app(lambda: view, token=token), token=token)
    try:
        url = f"{handle.url}/v1/admissions"
        answer = http_client.post(url, json=WISH, headers=BEARER, timeout=30)
        assert (answer.status_code, answer.json()["error"]["code"]) == (status, code)
        page = http_client.get(url, timeout=30).json()
        assert (page["gate"], page["items"]) == (None, [])
        assert http_client.get(f"{url}/adm-a-1", timeout=30).status_code == 404
    finally:
        handle.stop()


def test_pages_and_filters(daemon):
    names = [daemon.ask("POST", "", 202, json={**WISH, "user": user})["id"] for user in ("ann", "bob", "ann")]
    page = daemon.ask("GET", "?limit=2", 200)
    assert [each["id"] for each in page["items"]] == names[:0:-1]
    page = daemon.ask("GET", f"?limit=2&cursor={page['next']}", 200)
    assert [each["id"] for each in page["items"]] == names[:1]
    assert daemon.ask("GET", "?user=bob", 200)["total"] == 1
    assert daemon.ask("GET", "?state=waiting&queue=root.production", 200)["total"] == 1
    assert daemon.ask("GET", "?colour=red", 422)["error"]["code"] == "unknown-parameter"


def test_metrics_count_what_is_open(daemon):
    daemon.ask("POST", "", 202, json=WISH)
    text = http_client.get(f"{daemon.url}/metrics", timeout=30).text
    assert 'yarnctl_admissions{state="admitted"} 1.0' in text
    assert "yarnctl_gate_reserved_containers 6.0" in text
    assert "yarnctl_gate_capacity_containers 10.0" in text


def said(capsys, *words: str) -> tuple[int, str]:
    capsys.readouterr()
    return exit_status_of(PROGRAM, list(words)), capsys.readouterr().out


def test_the_command_shows_what_the_api_answers(daemon, capsys, monkeypatch):
    monkeypatch.setenv("YARNCTL_URL", daemon.handle.url)
    name = daemon.ask("POST", "", 202, json=WISH)["id"]
    daemon.held = True
    status, out = said(capsys, "admissions", "--json")
    assert (status, json.loads(out)) == (0, daemon.ask("GET", "?limit=100", 200))
    status, out = said(capsys, "admissions", name, "-o", "json")
    assert (status, json.loads(out)) == (0, daemon.ask("GET", f"/{name}", 200))
    status, out = said(capsys, "admissions")
    assert status == 0
    for word in (name, "admitted", "pythia", "6 of 10 containers reserved"):
        assert word in out
    status, out = said(capsys, "admissions", name)
    assert status == 0
    assert "plan.deadline_at" in out
    assert said(capsys, "admissions", "adm-a-99")[0] == 1
