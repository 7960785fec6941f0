"""Traps of the way to a cluster: what yarnctl must send, must not send and must not rely on.

Each test is about one trap of the facts that no other test meets (``traps.toml`` names them all).
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from xml.etree import ElementTree

import pytest

from emulator.live.tasks.user_command import CommandFailed, Piped, Reporter
from tests.unit.hadoop.replaying import Replay, Reply
from yarnctl.frameworks.mapreduce.master import MasterClient
from yarnctl.hadoop.http.auth import Identity
from yarnctl.hadoop.http.transport import Transport
from yarnctl.hadoop.resource_manager import ResourceManager

ROOT = Path(__file__).resolve().parents[2]
APP = "application_1700000000000_0007"
ROW = {"id": APP, "user": "ann", "queue": "research", "state": "RUNNING", "progress": 50.0, "priority": 0}


def test_headers_are_spelled_as_the_proxy_compares_them() -> None:
    """The proxy passes on what is spelled exactly so; a filter wants X-XSRF-Header (facts 1.5, 2.2)."""
    with Replay(Reply('{"state":"KILLED"}')) as rm:
        number = APP.removeprefix("application_")
        MasterClient(Transport([rm.url]), APP).kill(f"task_{number}_r_000000", f"attempt_{number}_r_000000_0")
    (heard,) = rm.heard
    assert heard.method == "PUT"
    assert {"Content-Type", "Accept", "X-XSRF-Header"} <= set(heard.headers)


def test_every_change_says_who_asks() -> None:
    """Without a name the caller is dr.who, or nobody at all: 401, or an NPE in the AM (facts 1.5, 2.1)."""
    with Replay(Reply('{"priority":3}')) as rm, Transport([rm.url], Identity("ann")) as to:
        ResourceManager(to).set_priority(APP, 3)
    assert [one.query for one in rm.heard if one.method == "PUT"] == [{"user.name": "ann"}]


def test_a_row_of_which_only_the_public_part_is_shown_is_read() -> None:
    """Without VIEW_APP sizes and instants are left out, which is no error and no demand (facts 1.2)."""
    with Replay(Reply(json.dumps({"app": ROW}))) as rm, Transport([rm.url]) as to:
        app = ResourceManager(to).application(APP)
    assert (app.state, app.allocated_mib, app.submitted_at_ms, app.requests, app.uses) == (
        "RUNNING",
        0,
        0,
        (),
        None,
    )


def test_no_code_names_the_destructive_get() -> None:
    """GET /scheduler-conf/format wipes the store (facts 1.1)."""
    sources = [*ROOT.glob("yarnctl/**/*.py"), *ROOT.glob("emulator/**/*.py")]
    assert len(sources) > 100
    assert [path for path in sources if re.search(r"scheduler-conf/\w", path.read_text())] == []


@pytest.mark.parametrize("folder", ["dual-queue", "deadline"])
def test_the_ready_configuration_counts_vcores_and_grants_reduces_at_once(folder: str) -> None:
    """The default calculator ignores vcores, the default delay lets research take maps' room (facts 5)."""
    tree = ElementTree.parse(ROOT / "hadoop-conf" / folder / "capacity-scheduler.xml")
    told = {one.findtext("name"): (one.findtext("value") or "").strip() for one in tree.iter("property")}
    assert told["yarn.scheduler.capacity.resource-calculator"].endswith(".DominantResourceCalculator")
    assert int(told["yarn.scheduler.capacity.node-locality-delay"]) <= 0


def test_a_command_that_ends_well_before_its_input_has_failed() -> None:
    """Exit 0 while Java still writes is a broken pipe: FAILED, never a short output (facts 4.2)."""
    said: list[bytes] = []
    piped = Piped(["true"], {"PATH": "/usr/bin:/bin"}, Reporter(), said.append)
    with pytest.raises(CommandFailed, match="before all its input was read"):
        piped.feed(b"k\tv\n" * 4096 for _ in range(1000))
