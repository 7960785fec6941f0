"""Spark: the settings with which executors can leave with their work when they are asked to (docs/spark.md).

Law: see the package. What the user set otherwise is refused by its name and never overwritten. A file of
defaults that can be read counts as the user's words; what cannot be seen here is proven later by the daemon
from the driver's own environment. Two routes: by SIGTERM with a shell that outlives it (``signal``), and by a
plugin in the driver (``plugin``); facts: docs/facts/spark.md, 2 and 3.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from yarnctl.errors import BadInput
from yarnctl.hadoop.wire.drain_tags import DRAIN_TAG, MIN_EXECUTORS_TAG, without_ours
from yarnctl.hadoop.wire.mapreduce import TAGS_MAX, tags_in
from yarnctl.hadoop.wire.spark_rest import (
    FALLBACK,
    FORCE_KILL,
    LEAST_VERSION,
    PLUGIN,
    PLUGINS,
    REQUESTS,
    REQUESTS_OWNER,
    REQUIRED,
    REQUIRED_BY_SIGNAL,
    SHELL_FILE,
    SHUFFLE_SERVICE,
    TRAP,
    Route,
    no_signal_options,
    version_of,
)
from yarnctl.submitting.spark import DEPLOY_MODE, MASTER_URL, TAGS, SparkWords
from yarnctl.submitting.typed_options import typed_for
from yarnctl.task_runner.wrapping import UNWRAPPED

TRAP_FILE = Path(__file__).with_name(TRAP)
FILES = "spark.yarn.dist.files"
JARS = "spark.jars"
FALLBACK_CLEANED = "spark.storage.decommission.fallbackStorage.cleanUp"


class Leaving(NamedTuple):
    """What a submitter says: the route, the plugin's jar, executors that stay, where all may put blocks.

    ``requests`` is the daemon's folder in HDFS and ``owner`` its account: the plugin reads orders there.
    ``uses_pipe``: the application calls ``rdd.pipe``, whose programs would be given the signal, too.
    """

    route: Route = "signal"
    plugin_jar: str = ""
    min_executors: int = 1
    fallback: str = ""
    uses_pipe: bool = False
    requests: str = "/yarnctl/requests"
    owner: str = "yarnctl"


def settings_for(leaving: Leaving) -> dict[str, str]:
    """Return the settings that let executors leave by a route."""
    found = dict(REQUIRED)
    if leaving.route == "signal":
        found |= REQUIRED_BY_SIGNAL
    else:
        found |= {PLUGINS: PLUGIN, REQUESTS: leaving.requests.rstrip("/"), REQUESTS_OWNER: leaving.owner}
    if leaving.fallback:
        found |= {FALLBACK: leaving.fallback.rstrip("/") + "/", FALLBACK_CLEANED: "true"}
    return found


def tags_for(leaving: Leaving) -> tuple[str, ...]:
    """Return the tags by which the daemon knows that, and how, an application's executors may be asked."""
    tags = [f"{DRAIN_TAG}{leaving.route}"]
    if leaving.min_executors > 1:
        tags.append(f"{MIN_EXECUTORS_TAG}{leaving.min_executors}")
    return tuple(tags)


def wrap(
    words: Sequence[str], leaving: Leaving, defaults: Mapping[str, str], version: str
) -> tuple[list[str], list[str]]:
    """Return the command line whose executors may leave, and notes; BadInput names what forbids it.

    ``defaults``: what files of defaults say; ``version``: that of the Spark that submits ("": not known).
    """
    line = SparkWords(words)
    typed = line.settings()
    own = {**defaults, **typed}
    refuse_options(leaving)
    refuse_version(version)
    refuse_where(own, line)
    refuse_settings(own, leaving, lambda name: typed_for(line.options, name))
    more = {name: value for name, value in settings_for(leaving).items() if own.get(name) != value}
    if leaving.route == "plugin" and own.get(PLUGINS):
        more[PLUGINS] = _listed(own[PLUGINS], PLUGIN)
    more[TAGS] = _tagged(own.get(TAGS, ""), leaving)
    shipped = _shipped(line, own, leaving)
    notes = notes_of(own, leaving, version, line.application)
    return line.words({**more, **shipped.settings}, shipped.options), notes


def default_lines(leaving: Leaving) -> list[str]:
    """Return the same as lines of spark-defaults.conf, for an administrator who sets them for all."""
    refuse_options(leaving)
    found = {**settings_for(leaving), TAGS: ",".join(tags_for(leaving))}
    found[FILES if leaving.route == "signal" else JARS] = _file_of(leaving)
    width = max(map(len, found))
    return [f"{name:<{width}} {value}" for name, value in found.items()]


def notes_of(own: Mapping[str, str], leaving: Leaving, version: str, application: str = "") -> list[str]:
    """Return what a submitter should know, which is no reason to refuse."""
    notes = []
    if "=" in application:
        notes.append(
            f"spark-submit takes {application[:80]!r} for the application's file:"
            " each setting needs a --conf in front of it"
        )
    if not version:
        notes.append("the version of Spark could not be seen; it must be 3.2 or newer")
    if own.get(SHUFFLE_SERVICE, "").lower() == "true":
        notes.append(
            "with an external shuffle service shuffle blocks stay on their nodes: cached ones alone move"
        )
    if leaving.route == "signal":
        notes.append(
            "Spark asks for executors that left again: the daemon needs --cap-queue, or they return at once"
        )
    return notes


# --- refusing -----------------------------------------------------------------------------------------


def refuse_options(leaving: Leaving) -> None:
    """Refuse what the submitter says that no route can do."""
    if leaving.route == "signal" and leaving.uses_pipe:
        told = "the programs of rdd.pipe would be ended by the signal"
        raise BadInput("--uses-pipe", told, "use --route plugin --plugin JAR (yarnctl spark-plugin makes it)")
    if leaving.route == "signal" and leaving.fallback:
        told = "a job is suspended whole by the plugin alone"
        raise BadInput("--fallback", told, "use --route plugin --plugin JAR (yarnctl spark-plugin makes it)")
    if (leaving.route == "plugin") != bool(leaving.plugin_jar):
        raise BadInput("--route, --plugin", "one without the other", "give both: --route plugin --plugin JAR")


def refuse_version(version: str) -> None:
    """Refuse a Spark whose executors cannot leave with their blocks."""
    if version and version_of(version) < LEAST_VERSION:
        raise BadInput(f"Spark {version}", "its executors cannot leave with their blocks", "use 3.2 or newer")


def refuse_where(own: Mapping[str, str], line: SparkWords) -> None:
    """Refuse what does not run in containers of YARN."""
    master = own.get(MASTER_URL)
    if master is None:
        raise BadInput("--master", "is not said, and Spark's default is local", "write --master yarn")
    if master != "yarn":
        told = "runs no executors in containers of YARN"
        raise BadInput(typed_for(line.options, MASTER_URL), told, "write --master yarn")
    if own.get(DEPLOY_MODE, "client") not in ("client", "cluster"):
        raise BadInput(typed_for(line.options, DEPLOY_MODE), "is no deploy mode", "write client or cluster")


def refuse_settings(own: Mapping[str, str], leaving: Leaving, shown: Callable[[str], str]) -> None:
    """Refuse settings of the user's under which executors would not leave, or not with their work.

    ``shown``: how a setting was typed.
    """
    for name, value in settings_for(leaving).items():
        said = own.get(name)
        if said is None or name == PLUGINS or _same(said, value):
            continue
        raise BadInput(shown(name), f"executors leave only with {value}", _remedy_for(name))
    if FORCE_KILL in own:
        told = "Spark kills executors that have not left by then, with their tasks"
        raise BadInput(shown(FORCE_KILL), told, f"do not set {FORCE_KILL}, or {UNWRAPPED}")
    if leaving.route == "signal":
        for name in no_signal_options(own):
            remedy = "do not set -Xrs, or use --route plugin --plugin JAR"
            raise BadInput(shown(name), "with -Xrs no signal reaches the executor", remedy)


def _remedy_for(name: str) -> str:
    """Return what to do about a setting: what the user's own programs may need is never taken from them."""
    if name == SHELL_FILE:
        return f"use --route plugin --plugin JAR, or {UNWRAPPED}"
    return f"do not set {name}, or {UNWRAPPED}"


def _same(one: str, other: str) -> bool:
    return one.strip().lower() == other.lower()


def _tagged(own: str, leaving: Leaving) -> str:
    """Return the value of the setting of tags: the user's and ours."""
    tags = tags_in(own)
    kept = without_ours(tags)
    if len(kept) < len(tags):
        raise BadInput(f"{TAGS}={own[:60]}", "it is wrapped already", "wrap the original command")
    found = [*kept, *tags_for(leaving)]
    if len(found) > TAGS_MAX:
        raise BadInput(f"{TAGS}={own[:60]}", f"YARN takes {TAGS_MAX} tags", "remove some")
    return ",".join(found)


# --- files --------------------------------------------------------------------------------------------


class Shipped(NamedTuple):
    """What is given along with an application: settings, or an option of the line with its whole value."""

    settings: dict[str, str]
    options: dict[str, str]


def _file_of(leaving: Leaving) -> str:
    return str(TRAP_FILE) if leaving.route == "signal" else leaving.plugin_jar


def _shipped(line: SparkWords, own: Mapping[str, str], leaving: Leaving) -> Shipped:
    """Add our file to those of the user: to the option that is on the line, else to the setting."""
    option, name = ("--files", FILES) if leaving.route == "signal" else ("--jars", JARS)
    typed = line.value_of(option)
    if typed is not None:
        return Shipped({}, {option: _listed(typed, _file_of(leaving))})
    return Shipped({name: _listed(own.get(name, ""), _file_of(leaving))}, {})


def _listed(own: str, more: str) -> str:
    return ",".join(part for part in (own.strip().rstrip(","), more) if part)


# --- the Spark that submits ---------------------------------------------------------------------------

_CORE = re.compile(r"spark-core_[0-9.]+-([0-9][0-9A-Za-z.-]*)\.jar")
_DEFAULT = re.compile(r"([^\s=:]+)\s*[\s=:]\s*(.*)")


def version_in(home: Path) -> str:
    """Return the version of a Spark by the name of its core's jar; "" if there is none."""
    jars = sorted(home.glob("jars/spark-core_*.jar"))
    found = [match[1] for jar in jars if (match := _CORE.fullmatch(jar.name))]
    return found[0] if found else ""


def defaults_in(text: str) -> dict[str, str]:
    """Return the settings of a spark-defaults.conf: a name and a value on each line."""
    found = {}
    for line in text.splitlines():
        match = _DEFAULT.fullmatch(line.strip())
        if match is not None and not line.lstrip().startswith("#"):
            found[match[1]] = match[2].strip()
    return found
