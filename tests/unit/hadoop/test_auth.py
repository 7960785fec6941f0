"""Tickets and delegation tokens: asked for once, from any thread, sent where they belong, shown nowhere."""

from __future__ import annotations

import logging
import sys
import threading
import types

import pytest
from requests.auth import AuthBase

from tests import http_client
from tests.unit.hadoop.replaying import Replay, Reply
from yarnctl.errors import BadInput, Unreachable
from yarnctl.hadoop.addresses import DEFAULTS, authentication
from yarnctl.hadoop.http.answers import Rejected
from yarnctl.hadoop.http.auth import TOKEN_KEPT_S, Delegation, Identity, Ticket, session_auth
from yarnctl.hadoop.http.session import CallLimits
from yarnctl.hadoop.http.transport import Transport
from yarnctl.hadoop.site_xml import HadoopSite, SiteEntry
from yarnctl.hadoop.webhdfs import WebHdfs

QUICK = CallLimits(retries=0)
TICKET = "Negotiate ticket"
PLAIN_HTTP = Identity("ann", "kerberos", token_over_http=True)
"""The daemons played here speak plain HTTP."""

COOKIE = ("Set-Cookie", "hadoop.auth=u=ann&t=kerberos; Path=/; HttpOnly")
ISSUED = '{"Token":{"urlString":"SeCrEt"}}'


class Spnego(AuthBase):
    """Stands for the package: answers a 401 that asks for a ticket."""

    def __call__(self, request):
        request.register_hook("response", self.answer)
        return request

    def answer(self, response, **kwargs):
        if response.status_code != 401 or "Authorization" in response.request.headers:
            return response
        response.content  # noqa: B018  # read, so that the connection is free
        response.request.headers["Authorization"] = TICKET
        again = response.connection.send(response.request, **kwargs)
        again.history.append(response)
        return again


@pytest.fixture(autouse=True)
def package(monkeypatch):
    made = types.SimpleNamespace(OPTIONAL=2, HTTPSPNEGOAuth=lambda **_options: Spnego())
    monkeypatch.setitem(sys.modules, "requests_gssapi", made)


def secured(answer):
    """Make a daemon's answers such that only a ticket, its cookie or a delegation token is believed."""

    def judge(heard):
        believed = heard.headers.get("Authorization") == TICKET or "hadoop.auth" in heard.headers.get(
            "Cookie", ""
        )
        if not believed and "delegation" not in heard.query:
            return Reply("", 401, headers=(("WWW-Authenticate", "Negotiate"),))
        reply = answer(heard)
        return reply._replace(headers=(*reply.headers, COOKIE)) if believed else reply

    return judge


def tickets(daemon):
    return [heard.headers["Authorization"] for heard in daemon.heard if "Authorization" in heard.headers]


# -- tickets --------------------------------------------------------------------------------------


def test_a_ticket_is_sent_when_asked_for_and_its_cookie_from_then_on():
    with (
        Replay(secured(lambda _heard: Reply("{}"))) as rm,
        Transport([rm.url], Identity("", "kerberos")) as to,
    ):
        to.fetch("/ws/v1/cluster/info")
        to.change("PUT", "/ws/v1/cluster/apps/a/state", b"{}")
        to.fetch("/ws/v1/cluster/info")
    assert tickets(rm) == [TICKET]
    assert [heard.method for heard in rm.heard] == ["GET", "GET", "PUT", "GET"]


def test_a_change_that_was_asked_for_a_ticket_is_made_once_with_its_body():
    with (
        Replay(secured(lambda _heard: Reply("{}"))) as rm,
        Transport([rm.url], Identity("", "kerberos")) as to,
    ):
        to.change("PUT", "/x", b'{"state":"KILLED"}')
    assert [heard.body for heard in rm.heard] == [b'{"state":"KILLED"}'] * 2
    assert "Authorization" not in rm.heard[0].headers


def test_without_a_ticket_the_message_says_so():
    refuse = Reply("", 401, headers=(("WWW-Authenticate", "Negotiate"),))
    with Replay(refuse) as rm, pytest.raises(Rejected, match="klist, kinit") as caught:
        Transport([rm.url], Identity("", "kerberos"), QUICK).fetch("/ws/v1/cluster/info")
    assert caught.value.exit_status == 2


def test_each_thread_has_an_exchange_of_its_own():
    made = []

    class One(AuthBase):
        def __init__(self):
            made.append(self)
            self.threads = set()

        def __call__(self, request):
            self.threads.add(threading.get_ident())
            return request

    ticket = Ticket(One)
    together = threading.Barrier(4)

    def use():
        for _ in range(3):
            ticket(http_client.Request("GET", "http://rm:8088/").prepare())
        together.wait(30)  # so that no thread's number is given twice

    threads = [threading.Thread(target=use) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(made) == 4
    assert all(len(one.threads) == 1 for one in made)


def test_the_package_s_own_log_is_kept_to_itself(caplog):
    session_auth(Identity("", "kerberos"))
    logging.getLogger("requests_gssapi.gssapi_").critical("Authorization: Negotiate abc")
    assert caplog.text == ""


@pytest.mark.parametrize(
    ("told", "wanted"),
    [({}, "simple"), ({"hadoop.security.authentication": "kerberos"}, "kerberos"),
     ({"hadoop.http.authentication.type": "Kerberos"}, "kerberos"),
     ({"hadoop.security.authentication": "simple"}, "simple")],
)  # fmt: skip
def test_who_we_must_be_is_read_from_the_cluster_s_own_files(told, wanted):
    entries = {name: SiteEntry(value, False, "core-site.xml:1") for name, value in told.items()}
    assert authentication(HadoopSite(entries, DEFAULTS)) == wanted


@pytest.mark.parametrize("text", [None, "", "no certificate"])
def test_a_file_without_authorities_is_said_before_anything_is_sent(tmp_path, text):
    file = tmp_path / "ca.pem"
    if text is not None:
        file.write_text(text)
    with Replay(Reply("{}")) as rm, pytest.raises(BadInput, match=r"ca\.pem: cannot be used"):
        Transport([rm.url], ca_file=str(file)).fetch("/ws/v1/cluster/info")
    assert rm.heard == []


# -- files by one delegation token ----------------------------------------------------------------


def little_hdfs(token=ISSUED):
    """Answer as a NameNode that is its own DataNode; the token comes back in the redirect, as there."""

    def answer(heard):
        op = heard.query.get("op")
        if op == "GETDELEGATIONTOKEN":
            return Reply(token)
        if op in ("OPEN", "CREATE") and "at" not in heard.query:
            query = "&".join(f"{name}={value}" for name, value in heard.query.items())
            return Reply(
                "", 307, headers=(("Location", f"http://{heard.headers['Host']}/data?{query}&at=dn"),)
            )
        return Reply("abc", 201 if op == "CREATE" else 200, "application/octet-stream")

    return secured(answer)


def ops(daemon):
    return [heard.query["op"] for heard in daemon.heard]


def test_files_go_by_one_token_and_the_datanode_gets_no_ticket():
    with Replay(little_hdfs()) as nn:
        store = WebHdfs([nn.url], PLAIN_HTTP, QUICK)
        for _ in range(3):
            assert store.read("/a") == b"abc"
        store.create("/b", b"1")
    assert ops(nn).count("GETDELEGATIONTOKEN") == 2  # asked for a ticket, and given
    carried = [heard for heard in nn.heard if heard.query["op"] in ("OPEN", "CREATE")]
    assert {heard.query.get("delegation") for heard in carried} == {"SeCrEt"}
    assert not [heard for heard in carried if "Authorization" in heard.headers]
    assert all("user.name" not in heard.query for heard in nn.heard)


def test_an_address_that_comes_with_a_token_is_left_as_it_is():
    url = "https://dn:9865/webhdfs/v1/x?op=CREATE&delegation=theirs"
    assert http_client.Request("PUT", url, auth=Delegation(lambda: "ours")).prepare().url == url


def test_an_hdfs_that_gives_no_token_is_asked_without():
    with Replay(little_hdfs('{"Token":null}')) as nn:
        nn.answer = lambda heard, inner=nn.answer: inner(
            heard._replace(headers={**heard.headers, "Authorization": TICKET})
        )
        assert WebHdfs([nn.url], PLAIN_HTTP, QUICK).read("/a") == b"abc"
    assert all("delegation" not in heard.query for heard in nn.heard)


def test_a_token_that_is_refused_or_old_is_replaced():
    now = [0.0]
    given = iter("abc")
    auth = Delegation(lambda: next(given), lambda: now[0])

    def sent(status=200):
        request = http_client.Request("GET", "https://nn:9871/webhdfs/v1/x?op=OPEN", auth=auth).prepare()
        response = http_client.Response()
        response.status_code = status
        for hook in request.hooks["response"]:
            hook(response)
        return str(request.url).partition("delegation=")[2]

    assert [sent(), sent(403), sent(), sent()] == ["a", "a", "b", "b"]
    now[0] = TOKEN_KEPT_S
    assert sent() == "c"


def test_no_token_no_transfer_and_no_secret_in_the_message():
    with Replay(secured(lambda _heard: Reply("<html>"))) as nn, pytest.raises(Unreachable):
        WebHdfs([nn.url], PLAIN_HTTP, QUICK).create("/b", b"1")
    assert set(ops(nn)) == {"GETDELEGATIONTOKEN"}

    def cut(heard):
        return Reply(ISSUED) if heard.query["op"] == "GETDELEGATIONTOKEN" else Reply("delegation=SeCrEt", 403)

    with Replay(secured(cut)) as nn, pytest.raises((Rejected, Unreachable)) as caught:
        WebHdfs([nn.url], PLAIN_HTTP, QUICK).create("/b", b"1")
    assert "SeCrEt" not in repr(caught.value) + str(caught.value)


def test_no_token_goes_over_plain_http_unless_told():
    with Replay(little_hdfs()) as nn, pytest.raises(Rejected, match=r"plain HTTP.*token_over_http") as caught:
        WebHdfs([nn.url], Identity("ann", "kerberos"), QUICK).create("/b", b"1")
    assert nn.heard == []  # not even a token was asked for
    assert "SeCrEt" not in str(caught.value)
