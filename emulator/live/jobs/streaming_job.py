"""A streaming job from a command line: what is shipped, how its reducer is wrapped, what is refused.

What the task runner would refuse on a node is refused here, with the setting that is the reason.
"""

from __future__ import annotations

import shlex
from pathlib import Path

import msgspec

from emulator.live.tasks.task_faults import read_faults
from emulator.live.tasks.task_specs import input_files
from emulator.live.wire.submitted_job import StreamingJob, check, number_setting
from yarnctl.errors import BadInput
from yarnctl.task_runner.hadoop_words import configured
from yarnctl.task_runner.shipped import shipped_runner
from yarnctl.task_runner.wrapping import refuse_partial_key, refuse_settings
from yarnctl.units import Resources

SIZES = {
    "am_size": "yarn.app.mapreduce.am.resource",
    "map_size": "mapreduce.map",
    "reduce_size": "mapreduce.reduce",
}


def pairs(option: str, given: tuple[str, ...]) -> dict[str, str]:
    """Return NAME=VALUE pairs of an option that may be repeated; BadInput names one that is none."""
    found: dict[str, str] = {}
    for text in given:
        name, equals, value = text.partition("=")
        if not equals or not name:
            raise BadInput(f"{option} {text[:80]}", "is not NAME=VALUE")
        found[name] = value
    return found


def shipped(commands: tuple[str, ...], given: tuple[str, ...]) -> dict[str, str]:
    """Return the files to ship: those given, and every word of a command that is a file beside us.

    As streaming ships an executable that is named as mapper or reducer. Only plain names in the current
    folder are taken: with a slash a word is a path that every node can read.
    """
    files: dict[str, str] = {}
    for name in given:
        path = Path(name)
        if not path.is_file():
            raise BadInput(f"--file {name}", "is not a file")
        files[path.name] = str(path.absolute())
    for command in commands:
        for word in words_of(command):
            if word not in files and Path(word).name == word and Path(word).is_file():
                files[word] = str(Path(word).absolute())
    return files


def words_of(command: str) -> list[str]:
    """Return a command's words; BadInput if its quotes do not match."""
    try:
        return shlex.split(command)
    except ValueError as error:
        raise BadInput(f"command {command[:80]!r}", str(error)) from error


def wrapped(
    job: StreamingJob, restartable: bool, group_fields: int, environment: dict[str, str]
) -> StreamingJob:
    """Return the job with the task runner around its reducer; BadInput names why that is not possible."""
    if not job.reduces:
        return job
    settings = configured(job.settings)
    refuse_settings(settings, group_fields)
    if restartable and not group_fields:
        refuse_partial_key(settings)
    runner = shipped_runner()
    options = "--restartable " if restartable else ""
    options += f"--group-fields {group_fields} " if group_fields else ""
    return msgspec.structs.replace(
        job,
        reducer=f"sh {runner.name} {options}-- {job.reducer}",
        files={**job.files, runner.name: str(runner)},
        settings={"mapreduce.reduce.speculative": "false", **job.settings},
        cmdenv={**environment, **job.cmdenv},
    )


def sized(job: StreamingJob) -> StreamingJob:
    """Return the job with the container sizes that its settings name."""
    sizes: dict[str, Resources] = {}
    for field, name in SIZES.items():
        vcores_name = f"{name}.cpu-vcores" if field == "am_size" else f"{name}.cpu.vcores"
        mib_name = f"{name}.mb" if field == "am_size" else f"{name}.memory.mb"
        memory_mib = int(number_setting(job.settings, mib_name, 1024))
        vcores = int(number_setting(job.settings, vcores_name, 1))
        if memory_mib < 1 or vcores < 1:
            raise BadInput(f"-D {mib_name}", "a container has at least 1 MiB and 1 vcore")
        sizes[field] = Resources(memory_mib, vcores)
    return msgspec.structs.replace(job, **sizes)


def checked(job: StreamingJob) -> StreamingJob:
    """Return the job if a master could run it: its input is there, its output is not, its settings hold."""
    check(job)
    read_faults(job.settings)
    for command in (job.mapper, job.reducer, job.combiner):
        words_of(command)
    if not input_files(job.inputs) and job.reduces:
        raise BadInput("--input", "has no file", "name a file, or a folder with files")
    output = Path(job.output)
    if output.exists() and (not output.is_dir() or any(output.iterdir())):
        raise BadInput(f"--output {output}", "exists", "use a new folder")
    return job
