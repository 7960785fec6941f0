"""Jobs: what is submitted to the live emulator, and the configuration a job shows.

Law: the ResourceManager passes a job on unread, as JSON in the environment entry ``ENTRY``; only masters
read it. A job names no folder of the cluster's own (staging, shuffle): what starts the master does.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Literal
from urllib.parse import quote_plus

import msgspec

from yarnctl.errors import BadInput
from yarnctl.traces.job import ONE_SLOT, Job
from yarnctl.units import Resources, decode_vector

ENTRY = "YARN_EMULATOR_JOB"
"""The name of the environment entry that carries a job."""

LARGEST_JOB_BYTES = 8 << 20
MOST_TASKS = 100_000


class StreamingJob(msgspec.Struct, frozen=True, kw_only=True, tag_field="kind", tag="streaming"):
    """A job of real processes, as ``hadoop jar hadoop-streaming.jar`` would submit it.

    ``inputs`` are files or folders, ``output`` a folder that does not exist yet; all paths are absolute and
    readable by all processes. ``files``: name in a task's folder -> path of the file. ``settings`` are from
    ``-D``, ``cmdenv`` those of ``-cmdenv``. The runner, where there is one, is part of ``reducer``.
    """

    name: str
    inputs: tuple[str, ...]
    output: str
    mapper: str
    reducer: str = ""
    combiner: str = ""
    reduces: int = 1
    user: str = "hadoop"
    queue: str = "default"
    settings: dict[str, str] = {}
    cmdenv: dict[str, str] = {}
    files: dict[str, str] = {}
    am_size: Resources = ONE_SLOT
    map_size: Resources = ONE_SLOT
    reduce_size: Resources = ONE_SLOT
    deadline_at_ms: int | None = None


class ModelledJob(msgspec.Struct, frozen=True, kw_only=True, tag_field="kind", tag="modelled"):
    """A job without processes: the timetable of the virtual emulator, lived through in real time.

    ``runner``: its reduces carry the task runner (they answer requests); without it they are left alone.
    ``cmdenv`` has the places of its checkpoints and requests (YARNCTL_STORE, YARNCTL_REQUESTS).
    """

    job: Job
    runner: bool = True
    settings: dict[str, str] = {}
    cmdenv: dict[str, str] = {}


SubmittedJob = StreamingJob | ModelledJob

_DECODER: msgspec.json.Decoder[SubmittedJob] = msgspec.json.Decoder(SubmittedJob, dec_hook=decode_vector)


def read_job(data: bytes | str | msgspec.Raw) -> SubmittedJob:
    """Return a submitted job from its JSON; BadInput names what is wrong with it."""
    raw = data.encode() if isinstance(data, str) else bytes(data)
    if len(raw) > LARGEST_JOB_BYTES:
        raise BadInput(ENTRY, f"{len(raw)} bytes", f"a job may have {LARGEST_JOB_BYTES}")
    try:
        job = _DECODER.decode(raw)
    except msgspec.DecodeError as error:
        raise BadInput(ENTRY, f"not a job: {error}", "see emulator/live/wire/submitted_job.py") from error
    check(job)
    return job


NUMBERS = (
    "mapreduce.job.reduce.slowstart.completedmaps",
    "mapreduce.map.maxattempts",
    "mapreduce.reduce.maxattempts",
    "mapreduce.task.timeout",
    "mapreduce.task.io.sort.mb",
    "mapreduce.job.maps",
    "mapreduce.job.running.map.limit",
    "mapreduce.job.running.reduce.limit",
    "mapreduce.input.fileinputformat.split.minsize",
    "stream.num.map.output.key.fields",
    "stream.num.reduce.output.key.fields",
)
"""Settings that must be numbers."""


RESOURCE = re.compile(r"(mapreduce\.(?:map|reduce)|yarn\.app\.mapreduce\.am)\.resource\.(.+)")
"""A setting that requests a resource type for each map, reduce, or for the master."""


def others_wanted(settings: Mapping[str, str], kind: Literal["map", "reduce"]) -> dict[str, int]:
    """Return what each map or reduce of a job wants beside memory and vcores, by resource type."""
    found = ((RESOURCE.fullmatch(key), text) for key, text in settings.items())
    return {each[2]: int(text) for each, text in found if each is not None and each[1] == f"mapreduce.{kind}"}


LABEL = "mapreduce.{}.node-label-expression"
"""The setting with the node label that each map or reduce requests (absent: the application's)."""


def _check_resources(settings: Mapping[str, str]) -> None:
    for key, text in settings.items():
        wanted = RESOURCE.fullmatch(key)
        if wanted is None or key == "yarn.app.mapreduce.am.resource.mb":
            continue
        if wanted[1].endswith("am") or wanted[2] in ("memory", "memory-mb", "mb", "vcores"):
            remedy = "set it for maps and reduces; use mapreduce.map.memory.mb for memory"
            raise BadInput(f"-D {key}", "is not modelled by the emulator", remedy)
        if not (text.isascii() and text.isdigit() and 0 < len(text) < 10):
            raise BadInput(f"-D {key}={text[:60]}", "is not a whole number", "use a number without a unit")


def check(job: SubmittedJob) -> None:
    """Refuse a job that no master could run."""
    for name in NUMBERS:
        number_setting(job.settings, name, 0)
    _check_resources(job.settings)
    if isinstance(job, ModelledJob):
        work = job.job
        if len(work.reduce_ms) != len(work.reduce_keys) or any(keys < 1 for keys in work.reduce_keys):
            raise BadInput(f"job {work.name}", "reduce_ms and reduce_keys do not match")
        if len(work.map_ms) + len(work.reduce_ms) > MOST_TASKS:
            raise BadInput(f"job {work.name}", f"more than {MOST_TASKS} tasks")
        return
    if not 0 <= job.reduces <= MOST_TASKS:
        raise BadInput(f"job {job.name}", f"{job.reduces} reduces", f"0 to {MOST_TASKS}")
    if not job.inputs or not job.output or not job.mapper:
        raise BadInput(f"job {job.name}", "input, output and mapper are needed")
    if job.reduces and not job.reducer:
        raise BadInput(f"job {job.name}", "reduces without a reducer", "set reduces to 0")
    if any("/" in name or name in ("", ".", "..") for name in job.files):
        raise BadInput(f"job {job.name}", "a file's name in the task's folder has a path", "use plain names")


def write_job(job: SubmittedJob) -> str:
    """Return the JSON text of a job."""
    return msgspec.json.encode(job).decode()


def configuration(job: SubmittedJob) -> dict[str, str]:
    """Return the job's configuration as its master shows it, and as streaming hands it to commands."""
    return {**DEFAULTS, **_base(job), **job.settings}


DEFAULTS = {
    "mapreduce.framework.name": "yarn",
    "mapreduce.job.reduce.slowstart.completedmaps": "0.05",
    "mapreduce.map.maxattempts": "4",
    "mapreduce.reduce.maxattempts": "4",
    "mapreduce.task.timeout": "600000",
    "mapreduce.job.running.map.limit": "0",
    "mapreduce.job.running.reduce.limit": "0",
    "mapreduce.map.speculative": "true",
    "mapreduce.reduce.speculative": "true",
    "mapreduce.job.ubertask.enable": "false",
    "mapreduce.task.io.sort.mb": "100",
    "mapreduce.map.output.key.class": "org.apache.hadoop.io.Text",
    "mapreduce.map.output.value.class": "org.apache.hadoop.io.Text",
    "mapreduce.job.output.key.class": "org.apache.hadoop.io.Text",
    "mapreduce.job.output.value.class": "org.apache.hadoop.io.Text",
    "mapred.input.format.class": "org.apache.hadoop.mapred.TextInputFormat",
    "mapred.output.format.class": "org.apache.hadoop.mapred.TextOutputFormat",
    "mapred.output.committer.class": "org.apache.hadoop.mapred.FileOutputCommitter",
    "stream.map.input": "text",
    "stream.map.output": "text",
    "stream.reduce.input": "text",
    "stream.reduce.output": "text",
    "stream.num.map.output.key.fields": "1",
    "stream.num.reduce.output.key.fields": "1",
}
"""The values of mapred-default.xml and streaming, as far as a client may read them."""


MODELLED_REDUCER = "sh yarnctl_task.py --restartable -- modelled"


def _base(job: SubmittedJob) -> dict[str, str]:
    work: Job | StreamingJob
    if isinstance(job, ModelledJob):
        work = job.job
        queue, reduces = work.queue or work.job_class, len(work.reduce_ms)
        more = {"mapreduce.reduce.speculative": "false"}
        for kind, label in (("map", job.job.map_label), ("reduce", job.job.reduce_label)):
            if isinstance(label, str):
                more[LABEL.format(kind)] = label
        commands = {"reduce": MODELLED_REDUCER if job.runner else "modelled"}
    else:
        work, queue, reduces = job, job.queue, job.reduces
        more = {
            "mapreduce.input.fileinputformat.inputdir": ",".join(job.inputs),
            "mapreduce.output.fileoutputformat.outputdir": job.output,
        }
        commands = {"map": job.mapper, "reduce": job.reducer, "combine": job.combiner}
    return {
        "mapreduce.job.name": work.name,
        "mapreduce.job.user.name": work.user,
        "mapreduce.job.queuename": queue,
        "mapreduce.job.reduces": str(reduces),
        "mapreduce.map.memory.mb": str(work.map_size.memory_mib),
        "mapreduce.reduce.memory.mb": str(work.reduce_size.memory_mib),
        "yarn.app.mapreduce.am.resource.mb": str(work.am_size.memory_mib),
        # The pairs of -cmdenv, one blank between.
        "stream.addenvironment": " ".join(f"{name}={value}" for name, value in job.cmdenv.items()),
        **more,
        **{f"stream.{side}.streamprocessor": quote_plus(text) for side, text in commands.items() if text},
    }


def number_setting(settings: dict[str, str], name: str, default: float) -> float:
    """Return a numeric setting, the default where it is absent; BadInput if it is not a number."""
    text = settings.get(name, "")
    try:
        return float(text) if text else default
    except ValueError as error:
        raise BadInput(f"-D {name}={text[:60]}", "is not a number") from error
