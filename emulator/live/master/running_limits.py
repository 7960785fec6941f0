"""Running limits: at most so many maps, and so many reduces, of one job at once.

Law: what a job asks for beyond its limit is held back by its master, as MapReduce does it (MAPREDUCE-5583:
``mapreduce.job.running.map.limit`` and ``.reduce.limit``, 0 or less: none). A container counts from the
ask until the ResourceManager has told its end; a failed map goes before the others, a reduce that resumes
likewise.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from emulator.cluster.entities import Container
from emulator.cluster.pending_tasks import FAILED_MAP, MAP_PRIORITY
from emulator.live.wire.submitted_job import number_setting


def is_map(priority: int) -> bool:
    """Whether containers of this priority are for maps."""
    return priority in (FAILED_MAP, MAP_PRIORITY)


class RunningLimits:
    """What a job may ask for now. ``limit``: by whether for maps; 0: none."""

    def __init__(self, conf: dict[str, str]) -> None:
        self.limit = {
            True: max(0, int(number_setting(conf, "mapreduce.job.running.map.limit", 0))),
            False: max(0, int(number_setting(conf, "mapreduce.job.running.reduce.limit", 0))),
        }
        self._held: dict[int, int] = {}
        self._open = {True: 0, False: 0}

    def asked(self, priority: int, count: int) -> int:
        """Take in an ask; return how many of it go out at once: all without a limit, else none yet."""
        if not self.limit[is_map(priority)]:
            return count
        self._held[priority] = self._held.get(priority, 0) + count
        return 0

    def due(self, held: Iterable[Container]) -> Iterator[tuple[int, int]]:
        """Yield priority and count of what may go out now, while the job holds these containers."""
        if not self._held:
            return
        kinds = [is_map(container.priority) for container in held]
        for priority in sorted(self._held):
            for_maps = is_map(priority)
            room = self.limit[for_maps] - kinds.count(for_maps) - self._open[for_maps]
            count = min(room, self._held[priority])
            if count <= 0:
                continue
            self._held[priority] -= count
            self._open[for_maps] += count
            if not self._held[priority]:
                del self._held[priority]
            yield priority, count

    def granted(self, containers: Iterable[Container]) -> None:
        """Take in what was granted."""
        for container in containers:
            for_maps = is_map(container.priority)
            self._open[for_maps] = max(0, self._open[for_maps] - 1)

    def forget(self) -> None:
        """Nothing that was asked for is known any more."""
        self._held.clear()
        self._open = {True: 0, False: 0}
