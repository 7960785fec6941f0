"""The transport: standbys, redirects, pages, silence and garbage, each with one right ending."""

from __future__ import annotations

import gzip
import logging
import time
from contextlib import ExitStack

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.thoroughness import examples
from tests.unit.hadoop.replaying import (
    HASTY,
    NEVER_S,
    PATIENT,
    Heard,
    Replay,
    Reply,
    closed_port,
    page,
    routes,
)
from yarnctl.errors import BadInput, Unreachable, YarnctlError
from yarnctl.hadoop.http.answers import BadAnswer, Missing, Rejected, Standby, Uncertain, excerpt, safe_url
from yarnctl.hadoop.http.auth import Identity
from yarnctl.hadoop.http.session import FREE_BYTES, Allowance, ByteReserve, CallLimits, TooLarge, allowed
from yarnctl.hadoop.http.transport import Transport
from yarnctl.hadoop.wire import yarn

AGAIN = {"answer_bytes": 100_000, "retries": 1}
PLAIN = msgspec.structs.replace(PATIENT, **AGAIN)
SHORT = msgspec.structs.replace(HASTY, **AGAIN)
METRICS = '{"clusterMetrics":{"totalMB":1024,"activeNodes":3}}'
PATH = "/ws/v1/cluster/metrics"


def metrics(*urls: str, limits: CallLimits = PLAIN, user: str = "") -> yarn.ClusterMetrics:
    with Transport(urls, Identity(user), limits) as to:
        return to.read(PATH, yarn.CLUSTER_METRICS)


def test_a_get_says_who_we_are_and_what_we_want():
    with Replay(Reply(METRICS)) as rm:
        assert metrics(rm.url, user="ann b").nodes_active == 3
    (heard,) = rm.heard
    assert (heard.method, heard.path, heard.query) == ("GET", PATH, {"user.name": "ann b"})
    assert heard.headers["Accept"] == "application/json"
    assert heard.headers["Accept-Encoding"] == "gzip"
    assert "Content-Type" not in heard.headers


def test_a_compressed_answer_is_read():
    body = gzip.compress(METRICS.encode())
    with Replay(Reply(body, headers=(("Content-Encoding", "gzip"),))) as rm:
        assert metrics(rm.url).total_mib == 1024


def test_the_constructor_sends_nothing():
    with Replay(Reply(METRICS)) as rm, Transport([rm.url, f"http://127.0.0.1:{closed_port()}"]):
        pass
    assert rm.heard == []


@pytest.mark.parametrize(
    ("reply", "kind", "words"),
    [
        (page(), BadAnswer, "HTML page"),
        (page("<form><input name=login><input type=password></form>"), BadAnswer, "login page"),
        (page("<b>WARNING: The following page may not be safe!</b> proxyapproved=true"), BadAnswer,
         "warning page"),
        (page("This is standby RM. The redirect url is: http://x"), BadAnswer, "standby's page"),
        (Reply("There is no active RM right now.", kind="text/plain"), Standby,
         "no ResourceManager is active"),
        (Reply("", 307, headers=(("Refresh", "3; url=http://x/"),)), Standby, "reports no active one"),
        (Reply("", 307, headers=(("Location", "ftp://x/"),)), BadAnswer, "redirected to an invalid address"),
        (Reply("", 307, headers=(("Location", "http://u:p@127.0.0.1:1/"),)), BadAnswer,
         "redirected to an invalid address"),
        (Reply("", 307, headers=(("Location", "http://[::1/"),)), BadAnswer,
         "redirected to an invalid address"),
        (Reply("", 307, headers=(("Location", PATH),)), BadAnswer, "too many redirects"),
        (Reply("", 302, headers=(("Location", "http://h/x?token=abc"),)), BadAnswer,
         "HTTP 302 to http://h/x;"),
        (Reply(METRICS, kind="text/plain"), BadAnswer, "type text/plain"),
        (Reply('{"apps":{}}'), BadAnswer, "clusterMetrics"),
        (Reply("{not json"), BadAnswer, "not JSON"),
        (Reply("", 204), BadAnswer, "HTTP 204"),
        (Reply(METRICS, 500), BadAnswer, "HTTP 500"),
        (Reply(METRICS, 503), BadAnswer, "HTTP 503"),
        (page("<h1>no</h1>", 401), Rejected, "set user"),
        (page("<h1>no</h1>", 403), Rejected, "ACLs"),
        (page("<h1>no</h1>", 404), Missing, "HTTP 404"),
        (Reply('{"RemoteException":{"exception":"NotFoundException","message":"app x not found"}}', 404),
         Missing, "app x not found"),
        (Reply('{"RemoteException":{"exception":"StandbyException","message":"READ"}}', 403), Standby,
         "StandbyException"),
        (Reply("x" * 100_001), BadAnswer, "too long"),
        (Reply(gzip.compress(b"0" * 5_000_000), headers=(("Content-Encoding", "gzip"),)), BadAnswer,
         "too long"),
        (Reply(b"junk", headers=(("Content-Encoding", "gzip"),)), Unreachable,
         "compressed answer is damaged"),
        (Reply(METRICS, cut=10), Unreachable, "the answer is incomplete"),
        (Reply(METRICS, delay_s=NEVER_S), Unreachable, "in time"),
        (Reply(METRICS + " " * 1200, drip_s=0.05), Unreachable, "in time"),
        (Reply(raw=b"SSH-2.0-OpenSSH_9\r\n"), Unreachable, "does not speak HTTP"),
        (Reply(raw=b"HTTP/1.1 200 OK\r\n" + b"a: b\r\n" * 200 + b"\r\n"), Unreachable, ""),
        (Reply(raw=b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n"), Unreachable, ""),
    ],
)  # fmt: skip
def test_what_is_no_answer_ends_in_one_clear_error(reply, kind, words):
    with Replay(reply) as rm, pytest.raises(YarnctlError) as caught:
        metrics(rm.url, user="ann", limits=SHORT if reply.is_endless else PLAIN)
    message = str(caught.value)
    assert type(caught.value) is kind, message
    assert words in message
    assert rm.url.removeprefix("http://") in message or "127.0.0.1" in message
    assert "\n" not in message
    assert "user.name" not in message


def test_headers_that_drip_are_bounded_too():
    class Slow(Replay):
        def _send(self, handler, reply):
            handler.wfile.write(b"HTTP/1.1 200 OK\r\n")
            handler.close_connection = True
            for _ in range(1200):
                handler.wfile.write(b"x")
                if self.stopping.wait(0.05):
                    return

    with Slow(Reply()) as rm, pytest.raises(Unreachable, match="in time"):
        metrics(rm.url, limits=msgspec.structs.replace(SHORT, read_timeout_ms=60_000))


def test_nothing_listens():
    with pytest.raises(Unreachable, match="connection refused"):
        metrics(f"http://127.0.0.1:{closed_port()}")


@pytest.mark.parametrize(
    "bad",
    [Reply("There is no active RM right now.", kind="text/plain"),
     Reply("", 307, headers=(("Refresh", "3; url=http://x/"),)), Reply("no", 500), page(),
     Reply('{"RemoteException":{"exception":"StandbyException"}}', 403)],
)  # fmt: skip
def test_one_that_is_of_no_use_passes_the_question_on_and_the_good_one_is_kept(bad):
    with (
        Replay(bad) as first,
        Replay(Reply(METRICS)) as second,
        Transport([first.url, second.url], limits=PLAIN) as to,
    ):
        for _ in range(3):
            assert to.read(PATH, yarn.CLUSTER_METRICS).total_mib == 1024
        assert to.pinned == second.url
        asked = len(first.heard)
        assert asked >= 1
        assert len(second.heard) == 3
        second.answer = lambda _heard: bad
        first.answer = lambda _heard: Reply(METRICS)
        assert to.read(PATH, yarn.CLUSTER_METRICS).total_mib == 1024
        assert to.pinned == first.url
        assert len(first.heard) == asked + 1


def test_all_are_standby():
    bad = Reply("There is no active RM right now.", kind="text/plain")
    with (
        Replay(bad) as first,
        Replay(bad) as second,
        pytest.raises(Standby, match="all 2 ResourceManager addresses failed"),
    ):
        metrics(first.url, second.url)


def test_a_redirect_keeps_method_body_and_name_and_pins_its_target():
    with ExitStack() as stack:
        active = stack.enter_context(Replay(Reply('{"priority":8}')))
        target = (("Location", f"{active.url}/ws/v1/cluster/apps/a/priority?user.name=ann"),)
        standby = stack.enter_context(Replay(Reply("This is standby RM", 307, "text/plain", target)))
        to = stack.enter_context(Transport([standby.url, active.url], Identity("ann"), PLAIN))
        to.change("PUT", "/ws/v1/cluster/apps/a/priority", b'{"priority":8}')
        assert to.pinned == active.url
        (heard,) = active.heard
        assert (heard.method, heard.body, heard.query) == ("PUT", b'{"priority":8}', {"user.name": "ann"})
        assert heard.headers["Content-Type"] == "application/json"
        assert heard.headers["Accept"] == "application/json"


@pytest.mark.parametrize("method", ["GET", "PUT"])
def test_a_redirect_to_an_address_nobody_named_is_not_followed(method):
    with ExitStack() as stack:
        stranger = stack.enter_context(Replay(Reply(METRICS)))
        target = (("Location", f"{stranger.url}/ws/v1/cluster/metrics"),)
        standby = stack.enter_context(Replay(Reply("This is standby RM", 307, "text/plain", target)))
        to = stack.enter_context(Transport([standby.url], Identity("ann"), PLAIN))
        with pytest.raises(Standby, match="add this address"):
            to.change("PUT", PATH, b"{}") if method == "PUT" else to.read(PATH, yarn.CLUSTER_METRICS)
        assert stranger.heard == []


def test_a_redirect_to_an_address_nobody_named_passes_the_question_on():
    """The same ResourceManager under another of its names: it is asked by the name that we know."""
    with ExitStack() as stack:
        active = stack.enter_context(Replay(Reply(METRICS)))
        other_name = active.url.replace("127.0.0.1", "localhost")
        target = (("Location", f"{other_name}{PATH}"),)
        standby = stack.enter_context(Replay(Reply("This is standby RM", 307, "text/plain", target)))
        assert metrics(standby.url, active.url).total_mib == 1024


def test_a_get_is_repeated_after_a_503_and_a_change_is_not():
    seen = iter([Reply("", 503), Reply(METRICS)] * 2)
    with Replay(lambda _heard: next(seen)) as rm, Transport([rm.url], limits=PLAIN) as to:
        assert to.read(PATH, yarn.CLUSTER_METRICS).total_mib == 1024
        with pytest.raises(Uncertain, match="check the state"):
            to.change("PUT", PATH, b"{}")
        assert len(rm.heard) == 3


def test_a_retry_after_of_an_hour_is_not_obeyed():
    with Replay(Reply("", 503, headers=(("Retry-After", "3600"),))) as rm, pytest.raises(BadAnswer):
        metrics(rm.url)


@pytest.mark.parametrize(
    "reply", [Reply("{}", delay_s=NEVER_S), Reply("{}" + " " * 1200, drip_s=0.05), Reply("x" * 99, cut=3)]
)
def test_a_change_without_an_answer_is_uncertain_and_not_passed_on(reply):
    with (
        Replay(reply) as first,
        Replay(Reply("{}")) as second,
        Transport([first.url, second.url], limits=SHORT if reply.is_endless else PLAIN) as to,
    ):
        with pytest.raises(Uncertain, match="PUT was sent, but not answered"):
            to.change("PUT", "/x", b"{}")
        assert (first.heard[1:], second.heard) == ([], []), "asked once, heard in time or not"


def test_a_change_that_surely_did_not_arrive_is_passed_on():
    dead = f"http://127.0.0.1:{closed_port()}"
    with Replay(Reply("{}")) as second, Transport([dead, second.url], limits=PLAIN) as to:
        to.change("PUT", "/x", b"{}")
        assert len(second.heard) == 1


def test_one_user_s_cookie_is_never_sent_for_another():
    cookie = Reply(METRICS, headers=(("Set-Cookie", "hadoop.auth=ann-s-secret; Path=/"),))
    with Replay(cookie) as rm:
        with (
            Transport([rm.url], Identity("ann"), PLAIN) as ann,
            Transport([rm.url], Identity("bob"), PLAIN) as bob,
        ):
            for to in (ann, bob, ann):
                to.read(PATH, yarn.CLUSTER_METRICS)
        cookies = [heard.headers.get("Cookie", "") for heard in rm.heard]
    assert cookies == ["", "", "hadoop.auth=ann-s-secret"]


@pytest.mark.parametrize(
    "address",
    ["", "rm:8088", "ftp://rm", "http://", "http://u:pw@rm:8088", "http://rm:8088/?x=pw", "http://rm:99999",
     "http://[::1"],
)  # fmt: skip
def test_an_address_that_cannot_be_used_is_the_user_s_to_mend(address):
    with pytest.raises(BadInput) as caught:
        Transport([address])
    assert "pw" not in str(caught.value)


def test_kerberos_without_its_package_says_what_to_install():
    with pytest.raises(BadInput, match=r"pip install 'yarnctl\[kerberos\]'"):
        Transport(["http://rm:8088"], Identity("", "kerberos"))


@pytest.mark.parametrize(
    ("text", "hidden"),
    [("see http://h/x?delegation=HAAEX&op=OPEN", "HAAEX"), ('{"token": "abc def"}', "abc"),
     ("Authorization: Negotiate YII", "YII"), ("at http://joe:pass@h/", "pass"),
     ("hadoop.auth=u%3Dann&s=zzz", "ann")],
)  # fmt: skip
def test_secrets_are_blotted_out_of_foreign_texts(text, hidden):
    assert hidden not in excerpt(text)
    assert len(excerpt(text * 500)) <= 160


def test_a_url_is_shown_without_what_it_carries():
    assert safe_url("http://u:p@h:1/a?op=OPEN&delegation=S#f") == "http://h:1/a?op=OPEN"


def test_nothing_of_a_query_is_logged_above_debug(caplog):
    caplog.set_level(logging.INFO)
    with Replay(Reply(METRICS, cut=5)) as rm, pytest.raises(Unreachable):
        metrics(rm.url, user="ann")
    assert "user.name" not in caplog.text


NOISE = st.one_of(
    st.binary(max_size=200).map(lambda body: Reply(raw=body or b"\0")),
    st.binary(max_size=200).map(lambda body: Reply(raw=b"HTTP/1.1 200 OK\r\n" + body)),
    st.builds(
        Reply,
        body=st.binary(max_size=80) | st.just(METRICS.encode()),
        status=st.sampled_from([200, 201, 202, 204, 301, 304, 307, 308, 400, 401, 404, 429, 500, 502, 599]),
        kind=st.sampled_from(
            ["application/json", "text/html", "text/plain", "", "application/json; charset=\u00e9"]
        ),
        headers=st.sampled_from(
            [(), (("Location", "http://127.0.0.1:1/"),), (("Location", "//"),),
             (("Location", "http://\u00e9/"),)]
        ),
        cut=st.sampled_from([-1, -1, 0, 7]),
        delay_s=st.just(0.0),
        drip_s=st.just(0.0),
        raw=st.just(b""),
    ),
)  # fmt: skip


@settings(derandomize=True, max_examples=examples(150), suppress_health_check=list(HealthCheck))
@given(reply=NOISE)
def test_noise_gives_an_answer_or_our_error_and_never_a_hang(noisy, reply):
    noisy.answer = lambda _heard: reply
    with Transport([noisy.url], limits=PLAIN) as to:
        for ask in (
            lambda: to.read(PATH, yarn.CLUSTER_METRICS),
            lambda: to.change("PUT", PATH, b"{}"),
            lambda: to.fetch(PATH),
        ):
            try:
                ask()
            except YarnctlError as error:
                assert "\n" not in str(error)


@pytest.fixture(scope="module")
def noisy():
    with Replay(Reply()) as rm:
        yield rm


def test_routes_of_the_fake_answer_as_hadoop_does():
    assert routes({})(Heard("GET", "/x", {}, {}, b"")).status == 404


# --- an allowance: what one application's answers may take together -----------------------------------


def allowance(span_s: float = NEVER_S, size_bytes: int = 10_000, reserve_bytes: int = 1 << 30) -> Allowance:
    return Allowance(time.monotonic() + span_s, size_bytes, ByteReserve(reserve_bytes))


def test_allowance_bounds_the_bytes_of_all_exchanges_together():
    with Replay(Reply(METRICS + " " * 4000)) as rm, allowed(allowance()):
        metrics(rm.url)
        metrics(rm.url)
        with pytest.raises(Unreachable, match="too long"):
            metrics(rm.url)


def test_allowance_whose_time_is_over_sends_nothing():
    with Replay(Reply(METRICS)) as rm, allowed(allowance(0)):
        with pytest.raises(Unreachable, match="in time"):
            metrics(rm.url)
        with pytest.raises(Unreachable):
            Transport([rm.url], Identity(), PLAIN).change("PUT", PATH)
        assert rm.heard == []


def test_allowance_ends_an_answer_that_drips():
    drip = Reply(METRICS, drip_s=0.05)
    with Replay(drip) as rm, allowed(allowance(0.3)), pytest.raises(Unreachable, match="in time"):
        metrics(rm.url, limits=msgspec.structs.replace(PATIENT, retries=0))


def test_allowance_refuses_a_compressed_answer_before_it_is_unpacked():
    body = gzip.compress(b" " * 50_000_000)
    packed = Reply(body, headers=(("Content-Encoding", "gzip"),))
    with Replay(packed) as rm, allowed(allowance()), pytest.raises(Unreachable, match="compressed"):
        metrics(rm.url)


def test_allowance_beyond_the_free_bytes_comes_from_the_reserve_and_goes_back():
    reserve = ByteReserve(1000)
    first, second = (Allowance(time.monotonic() + NEVER_S, 1 << 30, reserve) for _ in range(2))
    first.take(FREE_BYTES + 800)
    with pytest.raises(TooLarge):
        second.take(FREE_BYTES + 300)
    first.close()
    third = Allowance(time.monotonic() + NEVER_S, 1 << 30, reserve)
    third.take(FREE_BYTES + 300)
