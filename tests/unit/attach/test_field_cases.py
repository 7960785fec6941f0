"""Recorded cases of clusters in the field: what yarnctl decides and says for each (../shared/CASES.md)."""

from __future__ import annotations

import msgspec

from tests.unit.attach.recorded_case import AS_RUN, RecordedCase
from yarnctl.deciding.settings import Settings

MONITOR = "yarn.resourcemanager.scheduler.monitor.enable"


def of(preempting: str, preemptable: str) -> Settings:
    return msgspec.structs.replace(AS_RUN, preempting_queues=(preempting,), preemptable_queues=(preemptable,))


def test_an_observing_daemon_decides_beside_yarns_own_preemption() -> None:
    """c15: its first look shows the same as on a cluster without YARN's preemption."""
    case = RecordedCase("c15-observing-where-yarn-preempts")
    rules = of("root.production", "root.research")
    with case.served():
        beside = case.wanted(rules=rules)
    keys = {row["key"]: row for row in case.answers["/conf"]["properties"]}
    assert keys[MONITOR]["value"] == "true"
    keys[MONITOR]["value"] = "false"
    with case.served():
        alone = case.wanted(rules=rules)
    assert beside == alone
    # 10 containers are requested; orders for a tenth of the 79 research containers may be open at once
    assert [one.need for one in beside] == [int(79 * 0.1)]
