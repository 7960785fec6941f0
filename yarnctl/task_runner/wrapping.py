"""Puts the task runner into a streaming command line, or refuses with the reason.

Law: the wrapped command does what the original one does. Whatever the runner would refuse on the
node is refused here already, with the setting that forbids it.
"""

from __future__ import annotations

import posixpath
import shlex
from collections.abc import Sequence
from pathlib import Path
from urllib.parse import urlsplit

from yarnctl.errors import BadInput
from yarnctl.task_runner.runner.protocol.job_conf import ALLOWED, OUTPUT_FORMATS

RUNNER = Path(__file__).with_name("yarnctl_task.py")
GENERIC = ("-D", "-files", "-libjars", "-archives", "-conf", "-fs", "-jt")
"""Options of Hadoop itself; they precede those of streaming and take one value."""

FLAGS = ("-verbose", "-background", "-debug", "-lazyOutput", "-help", "-info")
"""Options of streaming that take no value."""

SETTINGS = {
    "mapreduce.reduce.speculative": "false",
    "mapreduce.task.progress-report.interval": "2000",
}
"""What a wrapped job gets unless it sets another value. Reports: by default a task's status travels once in a
hundredth of its time-out (6 s), and a position so old makes a bad estimate of what is left."""

OLD_NAMES = {
    "mapred.reduce.tasks": "mapreduce.job.reduces",
    "mapred.reduce.tasks.speculative.execution": "mapreduce.reduce.speculative",
    "mapred.mapoutput.key.class": "mapreduce.map.output.key.class",
    "mapred.job.name": "mapreduce.job.name",
    "mapred.job.queue.name": "mapreduce.job.queuename",
    "mapred.map.tasks": "mapreduce.job.maps",
    "mapred.reduce.slowstart.completed.maps": "mapreduce.job.reduce.slowstart.completedmaps",
}


class CommandLine:
    """A streaming command line, taken apart: what comes before its options, then those in pairs."""

    def __init__(self, words: Sequence[str]) -> None:
        start = first_option(words)
        self.program = list(words[:start])
        self.options: list[list[str]] = []
        place = start
        while place < len(words):
            word = words[place]
            size = 1 if word in FLAGS or (word.startswith("-D") and word != "-D") else 2
            if not word.startswith("-") and place == start:
                raise BadInput(
                    word,
                    "this is no option of streaming, and only streaming jobs can be wrapped",
                    "submit other jobs as they are: they run as if yarnctl were not there",
                )
            if not word.startswith("-") or place + size > len(words):
                remedy = "quote values with blanks; only jobs of hadoop-streaming can be wrapped, no Java job"
                raise BadInput(word, "an option of streaming was expected here", remedy)
            self.options.append(list(words[place : place + size]))
            place += size

    def values(self, name: str) -> list[str]:
        """Return every value of an option."""
        return [option[1] for option in self.options if option[0] == name and len(option) == 2]

    def settings(self) -> dict[str, str]:
        """Return what ``-D`` and ``-jobconf`` set, under the names of Hadoop 3."""
        pairs = self.values("-D") + self.values("-jobconf")
        pairs += [option[0][2:] for option in self.options if len(option) == 1 and option[0].startswith("-D")]
        found = dict(pair.partition("=")[::2] for pair in pairs)
        return {OLD_NAMES.get(name, name): value for name, value in found.items()}

    def words(self) -> list[str]:
        """Return the whole command line again."""
        return self.program + [word for option in self.options for word in option]


def first_option(words: Sequence[str]) -> int:
    """Return where options begin: after ``hadoop jar X.jar`` or ``mapred streaming``."""
    for place, word in enumerate(words):
        if word.endswith(".jar") and place and words[place - 1] == "jar":
            return place + 1
        if word == "streaming" and place:
            return place + 1
    raise BadInput(
        "command line",
        "no streaming job",
        "write 'hadoop jar .../hadoop-streaming.jar ...' or 'mapred streaming ...'",
    )


def wrap(
    words: Sequence[str],
    restartable: bool,
    group_fields: int,
    store: str,
    more: Sequence[str],
    requests: str = "",
    requests_owner: str = "yarnctl",
) -> list[str]:
    """Return the command line with the runner in it; raise BadInput with why there is none.

    ``requests`` is the URL of the daemon's folder (default: ``requests`` beside a store in HDFS, as
    ``yarnctl run`` has it), ``requests_owner`` the account that the daemon runs as.
    """
    line = CommandLine(words)
    reducer = refuse_reducer(line)
    refuse_settings(line.settings(), group_fields)
    refuse_options(line)
    runner = f"sh {RUNNER.name}"
    runner += " --restartable" if restartable else ""
    runner += f" --group-fields {group_fields}" if group_fields else ""
    runner += "".join(" " + shlex.quote(word) for word in more)
    reducer[1] = f"{runner} -- {reducer[1]}"
    add_file(line)
    given = line.settings()
    ours = [["-D", f"{name}={value}"] for name, value in SETTINGS.items() if name not in given]
    line.options[:0] = ours
    add_places(line, store, requests, requests_owner)
    return line.words()


def add_places(line: CommandLine, store: str, requests: str, requests_owner: str) -> None:
    """Pass the places of checkpoints and requests to the runner; a ``-cmdenv`` of the user has precedence."""
    if not store:
        return
    places = {}
    if urlsplit(store).scheme in ("webhdfs", "swebhdfs"):
        beside = posixpath.join(posixpath.dirname(store.rstrip("/")), "requests")
        places = {"YARNCTL_REQUESTS": requests or beside, "YARNCTL_REQUESTS_OWNER": requests_owner}
    given = {pair.partition("=")[0] for pair in line.values("-cmdenv")}
    for name, value in {**places, "YARNCTL_STORE": store}.items():
        if name not in given:
            line.options.append(["-cmdenv", f"{name}={value}"])


def refuse_reducer(line: CommandLine) -> list[str]:
    """Return the option with the reducer, if it is a command of its own."""
    found = [option for option in line.options if option[0] == "-reducer" and len(option) == 2]
    if len(found) != 1:
        raise BadInput("-reducer", f"given {len(found)} times", "give it once")
    command = found[0][1]
    if command in ("NONE", "aggregate") or ("." in command and is_class(command)):
        raise BadInput(
            "-reducer", f"{command} is no command", "only commands of the user's own can be suspended"
        )
    if RUNNER.name in command:
        raise BadInput("-reducer", "the runner is already in it", "wrap the original command")
    return found[0]


def is_class(command: str) -> bool:
    """Say whether a reducer is the name of a Java class: org.example.Sum."""
    parts = command.split(".")
    return len(parts) > 2 and all(part.isidentifier() for part in parts) and parts[-1][:1].isupper()


def refuse_settings(settings: dict[str, str], group_fields: int) -> None:
    """Refuse settings under which the runner could prove nothing."""
    for name, values in ALLOWED.items():
        found = settings.get(name)
        if found and found not in values:
            raise BadInput(
                f"-D {name}={found}", "a reduce of such a job cannot be suspended", "leave it away"
            )
    if settings.get("mapreduce.reduce.speculative", "false") != "false":
        raise BadInput(
            "-D mapreduce.reduce.speculative",
            "two attempts at once cannot share a checkpoint",
            "set it to false",
        )
    if settings.get("mapreduce.job.reduces") == "0":
        raise BadInput("-D mapreduce.job.reduces=0", "there is no reduce", "only reduces are suspended")
    for name in ("stream.map.output.field.separator", "stream.reduce.input.field.separator"):
        if len(settings.get(name, "\t").encode()) != 1:
            raise BadInput(f"-D {name}", "the separator is not one byte", "use one byte")
    fields = settings.get("stream.num.map.output.key.fields", "1")
    if not fields.isdigit() or not 0 <= group_fields <= int(fields):
        raise BadInput(
            f"--group-fields {group_fields}",
            f"keys have {fields} fields",
            "see stream.num.map.output.key.fields",
        )


def refuse_options(line: CommandLine) -> None:
    """Refuse options of streaming that change what a line or an output is."""
    if "0" in line.values("-numReduceTasks"):
        raise BadInput("-numReduceTasks 0", "there is no reduce", "only reduces are suspended")
    for kind in line.values("-io"):
        if kind != "text":
            raise BadInput(f"-io {kind}", "only lines of text can be counted", "use -io text")
    for name in line.values("-outputformat"):
        if name not in OUTPUT_FORMATS:
            raise BadInput(
                f"-outputformat {name}", "it may write beside the output", f"use {OUTPUT_FORMATS[0]}"
            )


def add_file(line: CommandLine) -> None:
    """Ship the runner: one more name in ``-files``, which must be given only once."""
    for option in line.options:
        if option[0] == "-files":
            option[1] += f",{RUNNER}"
            return
    line.options.insert(0, ["-files", str(RUNNER)])
