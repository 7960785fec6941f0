"""Wire records of the MapReduce history server (``/ws/v1/history/mapreduce``).

Law: as in ``wire``: names and units of ours, the daemon's spelling only in ``field(name=...)``. Counters
and configuration of a job are those of ``wire_mapreduce``: both daemons write them alike. Instants are 0
where the thing has not happened or is not told; the history server says ``finishTime`` where YARN says
``finishedTime``.
"""

from __future__ import annotations

import msgspec
from msgspec import field

from yarnctl.hadoop.wire.decoders import Many, One


class EndedJob(msgspec.Struct, frozen=True):
    """GET /jobs and /jobs/{job}: a job that has ended.

    A row of the list comes from the *name* of the job's file: its ``name`` is cut after
    ``mapreduce.jobhistory.jobname.limit`` bytes (50), and it does not tell ``uberized``.
    """

    job: str = field(name="id")
    name: str = ""
    user: str = ""
    queue: str = ""
    state: str = ""
    submitted_at_ms: int = field(name="submitTime", default=0)
    started_at_ms: int = field(name="startTime", default=0)
    finished_at_ms: int = field(name="finishTime", default=0)
    maps_total: int = field(name="mapsTotal", default=0)
    reduces_total: int = field(name="reducesTotal", default=0)
    uberized: bool = False


ENDED_JOBS = Many(EndedJob, "jobs", "job")
ENDED_JOB = One(EndedJob, "job")
