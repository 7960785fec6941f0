"""Looks at applications whose answers are mutated: the slice of ``python -m tests.soak hostile``.

The planted bugs are the two that once were there: numbers that were checked nowhere ended the look at all
others, and a look that waited for every application was as slow as the slowest.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import msgspec
import pytest

from tests.soak import hostile
from tests.soak.hostile_world import HONEST, SPARK, HostileCluster, direct_port
from tests.thoroughness import examples
from tests.unit.hadoop.replaying import Heard, Reply
from yarnctl.attach import port as port_module
from yarnctl.attach.connection.application_guard import ApplicationGuard, ApplicationLook, ReadAnswer
from yarnctl.attach.observing import victims
from yarnctl.attach.port import AttachedPort
from yarnctl.deciding.model import ObservationRequest
from yarnctl.frameworks.spark import rest as spark_rest
from yarnctl.hadoop.wire.decoders import OneDecoder

ENDLESS = '{"executorRunTime":[1e308,1e308],"executorDeserializeTime":[1e308,1e308]}'


def test_fuzz_no_answer_hides_another_application_or_ends_a_look():
    found = hostile.fuzz(examples(400), seed=7)
    assert found.escapes == []
    assert found.orders > 0


def one_look(cluster: HostileCluster, port: AttachedPort) -> str | None:
    """Return why the honest job was hidden by the driver; None: it was not."""
    scope = ObservationRequest(victims=(HONEST, SPARK))
    port.observe(scope)
    port.observe(scope)
    cluster.now_ms += 1000
    return hostile.judged(port.observe(scope))


def endless(heard: Heard, reply: Reply) -> Reply:
    return reply._replace(body=ENDLESS) if heard.path.endswith("/taskSummary") else reply


class Unbounded(msgspec.Struct, frozen=True):
    """Quantiles as they were once read: any numbers."""

    run_ms: tuple[float, ...] = msgspec.field(name="executorRunTime", default=())
    begin_ms: tuple[float, ...] = msgspec.field(name="executorDeserializeTime", default=())

    @property
    def spans_ms(self) -> tuple[float, ...]:
        return tuple(map(sum, zip(self.run_ms, self.begin_ms, strict=False)))


def unguarded(make: Callable[[Any], Any], key: Any) -> Any:
    return make(key)


def test_planted_numbers_that_are_checked_nowhere_end_the_look(monkeypatch):
    with HostileCluster() as cluster:
        cluster.hostile[SPARK] = endless
        port = direct_port(cluster)
        assert one_look(cluster, port) is None
        monkeypatch.setattr(spark_rest, "QUANTILES", OneDecoder(Unbounded))
        port = direct_port(cluster)
        assert one_look(cluster, port) is None, "the second wall: making its tasks hides it alone"
        monkeypatch.setattr(victims, "attempt", unguarded)
        monkeypatch.setattr(port_module, "attempt", unguarded)
        with pytest.raises(OverflowError):
            one_look(cluster, direct_port(cluster))


def test_planted_look_that_waits_for_all_is_held_up_by_one(monkeypatch):
    """The driver answers when the look is over, or after a while if it is not over then."""
    held_up: list[str] = []
    with HostileCluster() as cluster:
        port = direct_port(cluster)
        assert one_look(cluster, port) is None
        silent = hostile.SilentOnes(port)

        def hang(heard: Heard, reply: Reply) -> Reply:
            if SPARK in silent.names and not silent.over.wait(0.5):
                held_up.append(heard.path)
            return reply

        cluster.hostile[SPARK] = hang
        for guarded in (True, False):
            if not guarded:
                monkeypatch.setattr(ApplicationGuard, "read_each", waiting_for_all)
            silent.begin([SPARK])
            seen = port.observe(ObservationRequest(victims=(HONEST, SPARK)))
            silent.end()
            assert hostile.judged(seen) is None
            assert (seen.late == (SPARK,)) is guarded
            assert bool(held_up) is not guarded


def waiting_for_all(
    guard: ApplicationGuard, _purpose: str, read: Callable[[str, ApplicationLook], Any], names: Iterable[str]
) -> Mapping[str, ReadAnswer[Any]]:
    return {name: ReadAnswer(read(name, ApplicationLook(guard._helpers, 0)), 0) for name in names}
