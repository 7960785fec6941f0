"""Finding an application by its tag, also when it has ended: the gate asks before it gives a place up."""

from __future__ import annotations

import pytest

from tests.live.test_rest_clients import Served

TAG = "yarnctl-admission-adm-a1b2-7"


@pytest.mark.parametrize("dialect", ["3.4", "3.5"])
def test_an_ended_application_is_found_by_its_tag(dialect: str) -> None:
    with Served(dialect) as served:

        def play() -> str:
            played = served.played
            played.node("n1:1")
            played.submit(tags=("deadline:1700000000000",))
            app = played.submit(tags=("deadline:1700000000000", TAG))
            return str(app.id)

        name = served.there(play)
        assert [row.application for row in served.rm.tagged(TAG)] == [name]
        served.rm.kill(name)
        assert served.rm.application(name).state == "KILLED"
        (row,) = served.rm.tagged(TAG)
        assert (row.application, row.user, TAG in row.tags) == (name, "ann", True)
        assert served.rm.tagged("yarnctl-admission-adm-a1b2-8") == ()
