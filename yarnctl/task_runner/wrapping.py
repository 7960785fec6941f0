"""Puts the task runner into a streaming command line, or rejects it with the reason.

The wrapped command computes what the original one does. What the task runner would reject on the node is
rejected here, by the same rules. A remedy never changes what the job computes.
"""

from __future__ import annotations

import posixpath
import re
import shlex
from collections.abc import Mapping, Sequence
from urllib.parse import urlsplit

from yarnctl.errors import BadInput
from yarnctl.task_runner.hadoop_words import HadoopOption, option, read_options, settings_of, split_command
from yarnctl.task_runner.runner.protocol.job_conf import (
    ALLOWED,
    KEY_FIELDS,
    OUTPUT_FORMATS,
    READ_SETTINGS,
    SEPARATORS,
    Conf,
    read_prefix,
    read_rule,
    separator,
)
from yarnctl.task_runner.runner.protocol.stores import StoreError, Unusable
from yarnctl.task_runner.runner.protocol.webhdfs_store import split_store
from yarnctl.task_runner.shipped import RUNNER, shipped_runner

SETTINGS = {"mapreduce.reduce.speculative": "false", "mapreduce.task.progress-report.interval": "2000"}
"""Settings that a wrapped job gets unless it sets them. Reports: by default a task reports its status once in
a hundredth of its timeout (6 s), which is too rare to estimate its remaining work."""

UNWRAPPED = "submit it without yarnctl wrap"
"""The remedy where every other one would change what the job computes."""

_LIBRARIES = ("org.apache.hadoop.mapred.lib", "org.apache.hadoop.mapreduce.lib.partition")
_BY_FIELDS = tuple(f"{library}.KeyFieldBasedPartitioner" for library in _LIBRARIES)
_BY_KEY = tuple(f"{library}.{name}Partitioner" for library in _LIBRARIES for name in ("Hash", "TotalOrder"))
_PARTITIONERS = ("mapred.partitioner.class", "mapreduce.job.partitioner.class", "mapreduce.partitioner.class")
_KEY_SPEC = re.compile(r"-[nr]*k\s*([0-9]+)(?:\.[0-9]+)?[nr]*(?:,([0-9]+))?")


class CommandLine:
    """A parsed streaming command line: the words before its options, and the options as typed."""

    def __init__(self, words: Sequence[str]) -> None:
        start = first_option(words)
        self.program = list(words[:start])
        self.options = read_options(words[start:])

    def values(self, name: str) -> list[str]:
        """Return every value of an option."""
        return [value for each in self.options if each.name == name for value in each.values]

    def settings(self) -> dict[str, str]:
        """Return the settings of ``-D`` and ``-jobconf``, under the names of Hadoop 3."""
        return settings_of(self.options)

    def words(self) -> list[str]:
        """Return the whole command line."""
        return self.program + [word for each in self.options for word in each.words]


def first_option(words: Sequence[str]) -> int:
    """Return the index of the first option after ``hadoop jar X.jar`` or ``mapred streaming``.

    Amazon's clusters have a program ``hadoop-streaming``; the jar's main class takes the name ``streamjob``.
    """
    for place, word in enumerate(words):
        in_front = words[place - 1] if place else "-u"
        if (
            (word.endswith(".jar") and in_front == "jar")
            or (word == "streaming" and in_front not in ("-u", "--user"))
            or posixpath.basename(word) == "hadoop-streaming"
        ):
            is_named = "".join(words[place + 1 : place + 2]).lower() == "streamjob"
            return place + (2 if is_named else 1)
    raise BadInput(
        "command line",
        "is not a streaming job",
        "use 'hadoop jar .../hadoop-streaming.jar ...' or 'mapred streaming ...'",
    )


def wrap(
    words: Sequence[str],
    restartable: bool,
    group_fields: int,
    store: str,
    more: Sequence[str],
    requests: str = "",
    requests_owner: str = "yarnctl",
    configured: Mapping[str, str] | None = None,
) -> list[str]:
    """Return the command line with the task runner in it; BadInput names what prevents it.

    ``requests`` is the URL of the daemon's folder (default: ``requests`` beside a store in HDFS),
    ``requests_owner`` the daemon's account; ``configured`` are the settings of the files in ``-conf``.
    """
    line = CommandLine(words)
    given = {**(configured or {}), **line.settings()}
    refuse_settings(given, group_fields)
    refuse_options(line)
    place = place_of_reducer(line)
    if "tmpfiles" in given:
        problem = "Hadoop would read it instead of -files, which ships the task runner"
        raise BadInput(f"tmpfiles={given['tmpfiles'][:120]}", problem, "list these files in -files")
    if restartable and not group_fields:
        refuse_partial_key(given, line.values("-partitioner"))
    runner = f"sh {RUNNER.name}"
    runner += " --restartable" if restartable else ""
    runner += f" --group-fields {group_fields}" if group_fields else ""
    runner += "".join(" " + shlex.quote(word) for word in more)
    line.options[place] = line.options[place].with_value(f"{runner} -- {line.options[place].value}")
    add_file(line)
    line.options[:0] = [
        option("-D", f"{name}={value}") for name, value in SETTINGS.items() if name not in given
    ]
    add_places(line, store, requests, requests_owner)
    return line.words()


def add_places(line: CommandLine, store: str, requests: str, requests_owner: str) -> None:
    """Pass the places of checkpoints and requests to the runner; a ``-cmdenv`` of the user has precedence."""
    typed = dict(pair.partition("=")[::2] for pair in line.values("-cmdenv"))
    for where, url in (
        ("--store", store),
        ("--requests", requests),
        *((f"-cmdenv {name}", typed.get(name, "")) for name in ("YARNCTL_STORE", "YARNCTL_REQUESTS")),
    ):
        refuse_address(where, url)
    if not store:
        return
    places = {}
    if urlsplit(store).scheme in ("webhdfs", "swebhdfs"):
        beside = posixpath.join(posixpath.dirname(store.rstrip("/")), "requests")
        places = {"YARNCTL_REQUESTS": requests or beside, "YARNCTL_REQUESTS_OWNER": requests_owner}
    for name, value in {**places, "YARNCTL_STORE": store}.items():
        if name not in typed:
            line.options.append(option("-cmdenv", f"{name}={value}"))


def refuse_address(where: str, url: str) -> None:
    """Raise BadInput for a folder's address that the task runner cannot use; "": no address."""
    try:
        if url:
            split_store(url)
    except StoreError:
        problem = "the task runner cannot use this address"
        raise BadInput(
            f"{where} {url[:120]}", problem, f"use {address_for(url)} (a NameNode's HTTP port)"
        ) from None


def address_for(url: str) -> str:
    """Return the WebHDFS address of a folder that another form of address names."""
    parts = urlsplit(url)
    host = parts.netloc if parts.scheme in ("http", "https", "webhdfs", "swebhdfs") else ""
    if parts.scheme == "hdfs" and parts.port is not None:
        host = f"{parts.hostname}:9870"
    folder = posixpath.normpath("/" + parts.path.removeprefix("/webhdfs/v1").strip("/"))
    scheme = "swebhdfs" if parts.scheme in ("https", "swebhdfs") else "webhdfs"
    return f"{scheme}://{host or 'NAMENODE:9870'}{folder if folder != '/' else '/yarnctl/checkpoints'}"


def place_of_reducer(line: CommandLine) -> int:
    """Return the index of the option with the reducer; raises BadInput unless it is one command."""
    found = [place for place, each in enumerate(line.options) if each.name == "-reducer"]
    if not found:
        raise BadInput("-reducer", "is missing; Hadoop runs its identity reducer, a Java class", UNWRAPPED)
    if len(found) > 1:
        raise BadInput("-reducer", f"given {len(found)} times", "keep only the first, which Hadoop runs")
    command = line.options[found[0]].value
    if command in ("NONE", "aggregate") or ("." in command and is_class(command)):
        raise BadInput(
            "-reducer", f"{command} is not a command", f"{UNWRAPPED}; only commands can be suspended"
        )
    if RUNNER.name in command:
        raise BadInput("-reducer", "is wrapped already", "wrap the original command")
    return found[0]


def is_class(command: str) -> bool:
    """Return whether a reducer is the name of a Java class: org.example.Sum."""
    parts = command.split(".")
    return len(parts) > 2 and all(part.isidentifier() for part in parts) and parts[-1][:1].isupper()


def refuse_settings(settings: Mapping[str, str], group_fields: int) -> None:
    """Raise BadInput for settings with which the task runner does not suspend, by its own rules."""
    for name, values in ALLOWED.items():
        found = settings.get(name)
        if found and found not in values:
            raise BadInput(f"-D {name}={found}", "reduces of such a job cannot be suspended", UNWRAPPED)
    if settings.get("mapreduce.reduce.speculative", "false") != "false":
        raise BadInput(
            "-D mapreduce.reduce.speculative",
            "concurrent attempts cannot share a checkpoint",
            "set it to false",
        )
    if settings.get("mapreduce.job.reduces") == "0":
        raise BadInput("-D mapreduce.job.reduces=0", "the job has no reduces", UNWRAPPED)
    conf = conf_of(settings)
    fields = settings.get(KEY_FIELDS, "1").strip()
    if not fields.isdecimal() or not 0 <= group_fields <= int(fields):
        raise BadInput(f"--group-fields {group_fields}", f"keys have {fields} fields", f"check {KEY_FIELDS}")
    for name in SEPARATORS:
        try:
            separator(conf, name)
        except Unusable:
            raise BadInput(f"-D {name}", "the separator is not one byte", UNWRAPPED) from None
    try:
        read_rule(conf, group_fields)
        read_prefix(conf)
    except Unusable as why:
        raise BadInput("the job's settings", str(why), UNWRAPPED) from None


def conf_of(settings: Mapping[str, str]) -> Conf:
    """Return settings as the task runner reads them from its environment."""
    return Conf({re.sub(r"[^A-Za-z0-9]", "_", name): value for name, value in settings.items()})


def refuse_partial_key(settings: Mapping[str, str], partitioners: Sequence[str] = ()) -> None:
    """Raise BadInput for no ``--group-fields`` where the partitioner may use fewer fields than the key.

    Such a reducer groups by fewer fields, too, and would be suspended within one of its groups.
    """
    key_fields = conf_of(settings).number(KEY_FIELDS, 1)
    used = partitioned_fields(settings, partitioners, key_fields)
    if key_fields > 1 and used != key_fields:
        problem = f"the key has {key_fields} fields, but the partitioner uses {used or 'other fields'}"
        remedy = "set the number of fields that the reducer groups by: "
        remedy += f"--group-fields {used}, or {key_fields} for the whole key" if used else "--group-fields N"
        raise BadInput("--restartable", problem, remedy)


def partitioned_fields(settings: Mapping[str, str], partitioners: Sequence[str], key_fields: int) -> int:
    """Return how many of the key's first fields the partitioner uses; 0: unknown."""
    named = [*partitioners[:1], *(settings[name] for name in _PARTITIONERS if name in settings)]
    if any(each not in (*_BY_FIELDS, *_BY_KEY) for each in named):
        return 0
    if named and named[0] in _BY_KEY:
        return key_fields
    own = settings.get("mapreduce.map.output.key.field.separator", "\t")
    options = settings.get("mapreduce.partition.keypartitioner.options", "")
    number = settings.get("num.key.fields.for.partition", "")
    specs = _KEY_SPEC.findall(options or (f"-k1,{number}" if number else ""))
    if not specs:
        return key_fields
    if own != settings.get(SEPARATORS[0], "\t"):
        return 0
    spans = [range(int(first), int(last or key_fields) + 1) for first, last in specs]
    fields = {field for span in spans for field in span}
    return next((field - 1 for field in range(1, key_fields + 1) if field not in fields), key_fields)


def refuse_options(line: CommandLine) -> None:
    """Raise BadInput for streaming options that change the format of lines or the output."""
    if "0" in line.values("-numReduceTasks"):
        raise BadInput("-numReduceTasks 0", "the job has no reduces", UNWRAPPED)
    for kind in line.values("-io"):
        if kind != "text":
            raise BadInput(f"-io {kind}", "only text lines are supported", UNWRAPPED)
    for name in line.values("-outputformat"):
        if name not in OUTPUT_FORMATS:
            raise BadInput(f"-outputformat {name}", "it may write files besides the output", UNWRAPPED)


def add_file(line: CommandLine) -> None:
    """Add the task runner to the first ``-files``, the only one that Hadoop reads; or BadInput."""
    runner = shipped_runner()
    for place, each in enumerate(line.options):
        if each.name == "-files":
            line.options[place] = each.with_value(f"{each.value},{runner}")
            return
    line.options.insert(0, option("-files", str(runner)))


def promise_test(
    line: CommandLine, settings: Mapping[str, str], group_fields: int, more: Sequence[str]
) -> list[str]:
    """Return the command that tests this job's promise, with every setting that defines a key."""
    pairs = [f"{name}={settings[name]}" for name in READ_SETTINGS if name in settings]
    words = ["yarnctl", "wrap", "--verify", "SORTED_SAMPLE"]
    words += [word for pair in pairs for word in ("-D", pair)]
    words += ["--group-fields", str(group_fields)] if group_fields else []
    variables = " ".join(line.values("-cmdenv")).split()  # streaming splits them at blanks
    own = [pair for pair in variables if "=" in pair and not pair.startswith("YARNCTL_")]
    reducer = split_command(line.values("-reducer")[0])
    places = shipped(line.options)
    reducer = [places.get(word, word) for word in reducer]
    if reducer and reducer[0] in places.values() and "/" not in reducer[0]:
        reducer[0] = f"./{reducer[0]}"
    return [*words, *more, "--", *(["env", *own] if own else []), *reducer]


def shipped(options: Sequence[HadoopOption]) -> dict[str, str]:
    """Return the shipped local files: name in the reducer's work folder -> local path."""
    listed = [each.value.split(",") for each in options if each.name == "-files"][:1]
    listed += [list(each.values) for each in options if each.name == "-file"]
    found = {}
    for name in (name for names in listed for name in names):
        path, _, link = name.partition("#")
        if path.startswith("file:") or "://" not in path:
            path = urlsplit(path).path if path.startswith("file:") else path
            found[link or posixpath.basename(path)] = path
    return found
