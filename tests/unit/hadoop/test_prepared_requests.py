"""A plain GET is prepared without requests' own preparation: the result must be the same."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
import requests

from yarnctl.hadoop.http import session as sessions
from yarnctl.hadoop.http.session import CallLimits, open_session

ADDRESS = "http://rm.example.org:8088/ws/v1/cluster"
PLAIN = (
    f"{ADDRESS}/info",
    f"{ADDRESS}/apps?user.name=yarnctl&limit=5",
    "http://10.0.0.1:8088/proxy/application_1_2/ws/v1/mapreduce/jobs/job_1_2/tasks",
)
ODD = (
    f"{ADDRESS}/a/../info",
    f"{ADDRESS}//info",
    f"{ADDRESS}/info?states=A%2CB",
    f"{ADDRESS}/info?name=a b",
    "http://RM.example.org:8088/info",
    "http://rm.example.org:8088",
    "http://[::1]:8088/info",
)
HEADERS: tuple[Mapping[str, str], ...] = (
    {},
    {"Accept": "application/json", "accept-encoding": "identity", "user-agent": "other"},
)


@pytest.mark.parametrize("headers", HEADERS)
@pytest.mark.parametrize("url", [*PLAIN, *ODD])
def test_prepared_request_is_that_of_requests(url: str, headers: Mapping[str, str]) -> None:
    with open_session(CallLimits()) as session:
        for name in ("", "hadoop.auth"):
            if name:
                session.cookies.set(name, "signed", domain="rm.example.org", path="/")
            found = sessions._prepared(session, "GET", url, headers, b"")
            expected = session.prepare_request(requests.Request("GET", url, headers=headers))
            assert list(found.headers.items()) == list(expected.headers.items())
            for field in ("method", "url", "body", "hooks"):
                assert getattr(found, field) == getattr(expected, field)


def test_an_address_that_is_not_plain_is_left_to_requests() -> None:
    assert all(sessions._PLAIN_URL.fullmatch(url) for url in PLAIN)
    assert not any(sessions._PLAIN_URL.fullmatch(url) for url in ODD)


def test_authentication_signs_a_plain_request() -> None:
    with open_session(CallLimits(), requests.auth.HTTPBasicAuth("yarnctl", "secret")) as session:
        assert "Authorization" in sessions._prepared(session, "GET", PLAIN[0], {}, b"").headers
