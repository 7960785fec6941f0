"""Black boxes: applications of Spark and Flink as the ResourceManager sees them, from their command lines.

The file of the application is the model: ``modelled:2+24`` takes 2 s, and 24 s divided by the executors. It
holds all its containers from its start to its end. One of Spark whose tags let executors leave has a driver:
the shared work is cut into tasks of a second, and the rest is one task. Parsed here as spark-submit and flink
do, so that what yarnctl writes is read by another program.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Literal

import msgspec

from emulator.live.wire.submitted_job import ModelledJob
from yarnctl.errors import BadInput
from yarnctl.traces.job import Job, SparkShape

SPARK, FLINK = "SPARK", "Apache Flink"
_MODEL = re.compile(r"modelled:([0-9]{1,6}(?:\.[0-9]{1,3})?)\+([0-9]{1,6}(?:\.[0-9]{1,3})?)")
_DRAIN = re.compile(r"yarnctl-drain:([a-z]+)")
TASK_MS = 1000
SPARK_FLAGS = ("--verbose", "-v", "--supervise")
SPARK_SETTINGS = {
    "--num-executors": "spark.executor.instances",
    "--queue": "spark.yarn.queue",
    "--name": "spark.app.name",
    "--class": "class",
}
FLINK_FLAGS = ("-d", "--detached", "-n", "--allowNonRestoredState")
FLINK_SETTINGS = {"-p": "parallelism.default", "-c": "class", "-t": "execution.target"}


class BlackBox(msgspec.Struct, frozen=True):
    """One application: ``kind`` is YARN's application type, ``executors`` are beside its master."""

    kind: str
    name: str
    queue: str
    executors: int
    tags: tuple[str, ...]
    priority: int
    alone_ms: int
    work_ms: int
    settings: dict[str, str] = {}

    @property
    def route(self) -> Literal["signal", "plugin"] | None:
        """How executors are asked to leave, by its tags; None: they are not."""
        for tag in self.tags:
            if self.kind == SPARK and (match := _DRAIN.fullmatch(tag)):
                return "plugin" if match[1] == "plugin" else "signal"
        return None

    def job(self, user: str, environment: Mapping[str, str] = {}) -> ModelledJob:
        """Return it as a job of timetables; ``environment`` says where a driver finds orders.

        Executors that stay are one task each, all as long as it takes.
        """
        length_ms = max(1, self.alone_ms + -(-self.work_ms // self.executors))
        work = Job(
            name=self.name,
            job_class="production" if self.queue == "production" else "research",
            submitted_at_ms=0,
            map_ms=(length_ms,) * self.executors,
            user=user,
            queue=self.queue,
        )
        if self.route is None:
            return ModelledJob(job=msgspec.structs.replace(work, shuffle_ms=0), runner=False)
        work = msgspec.structs.replace(
            work,
            map_ms=(TASK_MS,) * -(-self.work_ms // TASK_MS),
            reduce_ms=(self.alone_ms,) if self.alone_ms else (),
            reduce_keys=(1,) if self.alone_ms else (),
            spark=SparkShape(executors=self.executors, block_mib=1, start_ms=TASK_MS, route=self.route),
        )
        return ModelledJob(job=work, runner=False, settings=self.settings, cmdenv=dict(environment))


def spark_box(words: Sequence[str]) -> BlackBox:
    """Return the application that the words after ``spark-submit`` describe; BadInput names what is wrong."""
    told, rest = _told(words, SPARK_FLAGS, SPARK_SETTINGS)
    alone_ms, work_ms = _model(rest)
    return BlackBox(
        kind=SPARK,
        name=told.get("spark.app.name") or told.get("class") or rest[0],
        queue=told.get("spark.yarn.queue", "default"),
        executors=_count(told, "spark.executor.instances", 2),
        tags=_tags(told.get("spark.yarn.tags", "")),
        priority=_count(told, "spark.yarn.priority", 0),
        alone_ms=alone_ms,
        work_ms=work_ms,
        settings={name: value for name, value in told.items() if name.startswith("spark.")},
    )


def flink_box(words: Sequence[str]) -> BlackBox:
    """Return the application that the words after ``flink`` describe; BadInput names what is wrong."""
    if not words or words[0] not in ("run", "run-application"):
        raise BadInput("flink", "runs applications only", "use flink run-application ...")
    told, rest = _told(words[1:], FLINK_FLAGS, FLINK_SETTINGS)
    alone_ms, work_ms = _model(rest)
    slots = max(1, _count(told, "taskmanager.numberOfTaskSlots", 1))
    return BlackBox(
        kind=FLINK,
        name=told.get("yarn.application.name", "Flink Application Cluster"),
        queue=told.get("yarn.application.queue", "default"),
        executors=-(-_count(told, "parallelism.default", 1) // slots),
        tags=_tags(told.get("yarn.tags", "")),
        priority=_count(told, "yarn.application.priority", 0),
        alone_ms=alone_ms,
        work_ms=work_ms,
    )


def _told(
    words: Sequence[str], flags: Sequence[str], settings: Mapping[str, str]
) -> tuple[dict[str, str], list[str]]:
    """Return a command line's settings and the words after its options; an option wins over a setting."""
    told: dict[str, str] = {}
    options: dict[str, str] = {}
    rest = list(words)
    while rest and rest[0].startswith("-"):
        option = rest.pop(0)
        if option in flags:
            continue
        name, equals, value = option.partition("=")
        if option.startswith("-D"):  # Flink's
            name, value = "-D", option[2:] or _next(option, rest)
        elif not (equals and option.startswith("--")):
            name, value = option, _next(option, rest)
        if name in ("-D", "--conf") or (name == "-c" and name not in settings):
            name, _, value = value.partition("=")
            told[name] = value
        else:
            options[settings.get(name, name)] = value
    return told | options, rest


def _next(option: str, rest: list[str]) -> str:
    if not rest:
        raise BadInput(option, "its value is missing")
    return rest.pop(0)


def _model(rest: Sequence[str]) -> tuple[int, int]:
    """Return the two spans of an application's file, in ms."""
    match = _MODEL.fullmatch(rest[0]) if rest else None
    if match is None:
        named = rest[0][:60] if rest else "the application"
        raise BadInput(named, "is not modelled:SECONDS+SECONDS", "use for example modelled:2+24")
    return round(float(match[1]) * 1000), round(float(match[2]) * 1000)


def _count(told: dict[str, str], name: str, default: int) -> int:
    text = told.get(name, str(default))
    if not re.fullmatch(r"[0-9]{1,5}", text) or (default and not int(text)):
        raise BadInput(f"{name}={text[:40]}", "is not a count")
    return int(text)


def _tags(text: str) -> tuple[str, ...]:
    return tuple(tag.strip() for tag in text.split(",") if tag.strip())
