"""Settings: the options of the runner and the configuration of its job.

What is not understood, or could change what a line, a key or an output is, raises Unusable: nothing is
suspended.
"""

from __future__ import annotations

import math
import os
import re
from typing import Any, Iterable, Mapping, NamedTuple, Sequence

from yarnctl.task_runner.runner.protocol.key_rule import KeyRule
from yarnctl.task_runner.runner.protocol.stores import Unusable, user_name
from yarnctl.task_runner.runner.protocol.token_files import PLAIN, Secured, read_name_services

POLL_MIN_MS = 15_000
HOLD_MS = 30_000
STORE_WAIT_S = 120.0
SPOOL_LIMIT_MIB = 1024
TASK_TIMEOUT_MS = 600_000


class Settings(NamedTuple):
    """The settings from the command line and from the job's configuration."""

    rule: KeyRule
    save: str
    load: str
    store_url: str
    requests_url: str
    request_owners: tuple[str, ...]
    user: str
    hold_ms: int
    poll_ms: int
    spool_limit_bytes: int
    task_timeout_ms: int
    reporter_prefix: str
    suspend_at: tuple[int, ...]
    leave_when_saved: bool
    secured: Secured = PLAIN
    store_wait_s: float = 0.0
    bell: bool = True


class Conf:
    """A job's configuration as streaming hands it down: names with ``_`` for what is no letter or digit."""

    def __init__(self, env: Mapping[str, str]) -> None:
        self.env = env

    def get(self, name: str, default: str = "") -> str:
        """Return a value, the default where it is absent."""
        return self.env.get(re.sub(r"[^A-Za-z0-9]", "_", name), default)

    def number(self, name: str, default: int) -> int:
        """Return a whole number, the default where there is none."""
        try:
            return int(self.get(name, str(default)))
        except ValueError:
            return default


TEXT = "org.apache.hadoop.io.Text"

OUTPUT_FORMATS = (  # they write the lines and nothing beside them
    "org.apache.hadoop.mapred.TextOutputFormat",
    "org.apache.hadoop.mapred.SequenceFileOutputFormat",
    "org.apache.hadoop.mapred.lib.LazyOutputFormat",
)

ALLOWED = {
    "stream.reduce.input": ("text",),
    "stream.reduce.output": ("text",),
    "stream.reduce.input.writer.class": ("org.apache.hadoop.streaming.io.TextInputWriter",),
    "stream.reduce.output.reader.class": ("org.apache.hadoop.streaming.io.TextOutputReader",),
    "mapreduce.job.output.key.comparator.class": (TEXT + "$Comparator",),
    "mapred.output.key.comparator.class": (TEXT + "$Comparator",),
    "mapreduce.job.output.group.comparator.class": (),
    "mapred.output.value.groupfn.class": (),
    "mapreduce.map.output.key.class": (TEXT,),
    "mapred.output.format.class": OUTPUT_FORMATS,
    "mapred.output.committer.class": ("org.apache.hadoop.mapred.FileOutputCommitter",),
    "mapreduce.task.ismap": ("false",),
    "mapreduce.job.ubertask.enable": ("false",),
    "mapreduce.job.skiprecords": ("false",),
    "mapreduce.reduce.skip.maxgroups": ("0",),
    "mapred.skip.reduce.max.skip.groups": ("0",),
    "mapreduce.map.skip.maxrecords": ("0",),
    "stream.non.zero.exit.is.failure": ("true",),
}
"""What a setting may be if it is there at all; with anything else nothing is suspended."""

REQUIRED = {"mapreduce.reduce.speculative": "false"}  # what must be set, because Hadoop's default is another


def why_not(conf: Conf) -> str:
    """Return why this job's configuration forbids suspension, empty if it does not."""
    for name, values in ALLOWED.items():
        found = conf.get(name)
        if found and found not in values:
            return f"{name} is {found}"
    for name, wanted in REQUIRED.items():
        if conf.get(name) != wanted:
            return f"{name} is {conf.get(name) or 'not set'}, not {wanted}"
    for name in ("mapreduce.job.id", "mapreduce.task.id", "mapreduce.task.attempt.id"):
        if not re.fullmatch(r"[A-Za-z0-9_]+", conf.get(name)):
            return f"{name} is {conf.get(name) or 'not set'}: not started by Hadoop"
    return ""


def separator(conf: Conf, name: str) -> bytes:
    """Return a separator, which must be one byte."""
    value = conf.get(name, "\t").encode("utf-8", "surrogateescape")
    if len(value) != 1 or value == b"\n":
        raise Unusable(f"{name} is {value!r}, not one byte")
    return value


FLAGS = ("--restartable", "--token-over-http", "--exit-when-saved", "--no-bell")
TEXTS = ("--save", "--load", "--store", "--requests", "--requests-owner", "--token-service", "--ca-file")
NUMBERS = {
    "--group-fields": 0,
    "--store-wait-s": -1.0,
    "--release-wait-ms": HOLD_MS,
    "--poll-ms": POLL_MIN_MS,
    "--spool-limit-mib": SPOOL_LIMIT_MIB,
}
OPTIONS: dict[str, bool | int | float | str] = {
    **dict.fromkeys(FLAGS, False),
    **dict.fromkeys(TEXTS, ""),
    **NUMBERS,
    "--suspend-at": "",
}
"""What may be before ``--``, with its default, whose type is that of its value; False: it has none.

``--suspend-at`` (groups after which to suspend) and ``--exit-when-saved`` (end instead of waiting) are for
tests and ``wrap --verify``.
"""


def read_options(words: Iterable[str]) -> dict[str, Any]:
    """Return the options' values as ``argparse`` reads them, which takes 4 ms of each start."""
    given: dict[str, Any] = dict(OPTIONS)
    rest = iter(words)
    for word in rest:
        name, joined, value = word.partition("=")
        kind: Any = type(OPTIONS.get(name))
        if name not in OPTIONS or (kind is bool and joined):
            raise Unusable(f"unrecognized arguments: {word}")
        if kind is bool:
            given[name] = True
            continue
        if not joined:
            value = next(rest, "--")
            if re.match(r"-(?!\d+$|\d*\.\d+$)[^ ]+$", value):  # another option; a negative number is none
                raise Unusable(f"argument {name}: expected one argument")
        try:
            given[name] = kind(value)
        except ValueError:
            raise Unusable(f"argument {name}: invalid {kind.__name__} value: {value!r}") from None
    return given


def read_settings(arguments: Sequence[str], env: Mapping[str, str]) -> Settings:
    """Return the settings, or raise Unusable with why nothing can be suspended."""
    given = read_options(arguments)
    conf = Conf(env)
    if not given["--restartable"]:
        raise Unusable("--restartable is not set")
    if bool(given["--save"]) != bool(given["--load"]):
        raise Unusable("--save and --load require each other")
    reason = why_not(conf)
    if reason:
        raise Unusable(reason)
    store_url = given["--store"] or env.get("YARNCTL_STORE", "")
    if not store_url:
        raise Unusable("no store: set --store or YARNCTL_STORE")
    secured = Secured(
        env.get("HADOOP_TOKEN_FILE_LOCATION", ""),
        given["--token-service"] or env.get("YARNCTL_TOKEN_SERVICE", ""),
        given["--ca-file"] or env.get("YARNCTL_CA_FILE", ""),
        given["--token-over-http"] or env.get("YARNCTL_TOKEN_OVER_HTTP", "") == "1",
        read_name_services(env),
    )
    user = env.get("HADOOP_USER_NAME") or env.get("USER") or user_name(os.getuid())
    return Settings(
        rule=read_rule(conf, given["--group-fields"]),
        save=given["--save"],
        load=given["--load"],
        store_url=store_url,
        requests_url=given["--requests"]
        or env.get("YARNCTL_REQUESTS")
        or store_url.rstrip("/") + "/requests",
        request_owners=tuple(filter(None, (given["--requests-owner"] or env.get("YARNCTL_REQUESTS_OWNER"),))),
        user=user,
        hold_ms=max(0, given["--release-wait-ms"]),
        poll_ms=max(POLL_MIN_MS, given["--poll-ms"]) if given["--poll-ms"] > 0 else 0,
        spool_limit_bytes=max(0, given["--spool-limit-mib"]) << 20,
        task_timeout_ms=conf.number("mapreduce.task.timeout", TASK_TIMEOUT_MS) or TASK_TIMEOUT_MS,
        reporter_prefix=read_prefix(conf),
        suspend_at=read_cuts(given["--suspend-at"]),
        leave_when_saved=given["--exit-when-saved"],
        secured=secured,
        store_wait_s=read_wait_s(given["--store-wait-s"], env),
        bell=not (given["--no-bell"] or env.get("YARNCTL_NO_BELL", "") == "1"),
    )


def read_wait_s(given_s: float, env: Mapping[str, str]) -> float:
    """Return how long an attempt that may resume waits at its start for an unavailable store."""
    try:
        wait_s = given_s if given_s >= 0 else float(env.get("YARNCTL_STORE_WAIT_S", STORE_WAIT_S))
    except ValueError as error:
        raise Unusable(f"YARNCTL_STORE_WAIT_S: {error}") from error
    if not 0 <= wait_s < math.inf:
        raise Unusable(f"--store-wait-s {wait_s}: not a duration")
    return wait_s


def read_prefix(conf: Conf) -> str:
    """Return the prefix of lines to Hadoop, which Java must read as it is written here."""
    prefix = conf.get(REPORTER_PREFIX, "reporter:")
    if not prefix.isascii() or "\n" in prefix or "\r" in prefix:
        raise Unusable(f"{REPORTER_PREFIX} is {prefix!r}: not ASCII, or contains a line end")
    return prefix


def read_cuts(text: str) -> tuple[int, ...]:
    """Return group numbers of --suspend-at."""
    try:
        return tuple(sorted({int(word) for word in text.split(",") if word}))
    except ValueError as error:
        raise Unusable(f"--suspend-at: {error}") from error


KEY_FIELDS = "stream.num.map.output.key.fields"
SEPARATORS = ("stream.map.output.field.separator", "stream.reduce.input.field.separator")
REPORTER_PREFIX = "stream.stderr.reporter.prefix"
READ_SETTINGS = (KEY_FIELDS, *SEPARATORS, REPORTER_PREFIX)
"""What decides how the runner reads a reducer's lines: a test of the reducer needs the same values."""


def read_rule(conf: Conf, group_fields: int) -> KeyRule:
    """Return what a key is in this job."""
    key_fields = conf.number(KEY_FIELDS, 1)
    fields = group_fields or key_fields
    if not 1 <= fields <= key_fields:
        raise Unusable(f"--group-fields {fields}: keys have {key_fields} fields")
    map_separator, reduce_separator = (separator(conf, name) for name in SEPARATORS)
    return KeyRule(fields, map_separator, reduce_separator, key_fields)
