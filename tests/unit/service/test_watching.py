"""Clients that wait for a newer view."""

from __future__ import annotations

import asyncio

import msgspec

from tests.unit.service.played import busy
from yarnctl.service.watching import Watch

FAR_S = 3_600.0
PATIENCE_S = 60.0


def test_all_that_wait_are_woken_by_a_newer_view_and_not_by_their_time() -> None:
    view = busy()
    watch = Watch(lambda: view)

    async def wait() -> None:
        nonlocal view
        waiting = [asyncio.create_task(watch.newer(view.version, FAR_S)) for _ in range(3)]
        await asyncio.sleep(0)
        assert not any(each.done() for each in waiting)
        view = msgspec.structs.replace(view, version=view.version + 1)
        async with asyncio.timeout(PATIENCE_S):
            await asyncio.gather(*waiting)
            await watch.newer(view.version - 1, FAR_S)

    asyncio.run(wait())


def test_the_end_of_the_service_wakes_all() -> None:
    view = busy()
    watch = Watch(lambda: view)

    async def wait() -> None:
        waiting = asyncio.create_task(watch.newer(view.version, FAR_S))
        await asyncio.sleep(0)
        watch.close()
        async with asyncio.timeout(PATIENCE_S):
            await waiting
            await watch.newer(view.version, FAR_S)

    asyncio.run(wait())
