"""Spark: settings with which executors can be decommissioned without losing their work (docs/spark.md).

* A setting of the user, or of a readable defaults file, that prevents this is rejected by name.
* The daemon checks the driver's environment later for what is not visible here.
* Two routes: SIGTERM, with a shell that survives it (``signal``), and a plugin in the driver (``plugin``).
  Facts: docs/facts/spark.md, sections 2 and 3.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Literal, NamedTuple

from yarnctl.errors import BadInput
from yarnctl.frameworks.command_words import typed_for
from yarnctl.frameworks.spark.configuration import (
    FALLBACK,
    FORCE_KILL,
    HEARTBEAT,
    HEARTBEAT_MS,
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
from yarnctl.frameworks.spark.submission import DEPLOY_MODE, MASTER_URL, TAGS, SparkWords, remedy_for
from yarnctl.frameworks.submitting import unwrapped_tags, with_drain_tags
from yarnctl.hadoop.wire.tags import drain_tags
from yarnctl.task_runner.wrapping import UNWRAPPED

TRAP_FILE = Path(__file__).with_name(TRAP)
FILES = "spark.yarn.dist.files"
JARS, SHIPPED_JARS = "spark.jars", "spark.yarn.dist.jars"
"""``--jars`` replaces the first, and is merged with the second, which is on no class path of a client."""
PLUGIN_FIRST = (
    "# Before you install these lines, copy the jar of the last line into the folder jars of each Spark that",
    "# reads them. If spark.yarn.archive or spark.yarn.jars is set, copy it there, too: a job that sets",
    "# spark.yarn.dist.jars replaces the last line. Where the jar is missing, no application starts.",
)
FALLBACK_CLEANED = "spark.storage.decommission.fallbackStorage.cleanUp"
USE_PLUGIN = "use --route plugin --plugin JAR (yarnctl spark-plugin compiles it)"


class Leaving(NamedTuple):
    """The submitter's choices: route, plugin jar, minimum of executors, folder for their blocks.

    ``requests`` is the daemon's folder in HDFS and ``owner`` its account: the plugin reads orders there.
    ``uses_pipe``: the application calls ``rdd.pipe``, whose programs would receive the signal, too.
    ``charge``: what the loss budget is charged for a drain.
    """

    route: Route = "signal"
    plugin_jar: str = ""
    min_executors: int = 1
    fallback: str = ""
    uses_pipe: bool = False
    requests: str = "/yarnctl/requests"
    owner: str = "yarnctl"
    charge: Literal["expected", "bound"] = "expected"


def settings_for(leaving: Leaving) -> dict[str, str]:
    """Return the settings with which executors can be decommissioned."""
    found = dict(REQUIRED)
    if leaving.route == "signal":
        found |= REQUIRED_BY_SIGNAL
    else:
        found |= {PLUGINS: PLUGIN, REQUESTS: leaving.requests.rstrip("/"), REQUESTS_OWNER: leaving.owner}
    if leaving.fallback:
        found |= {FALLBACK: leaving.fallback.rstrip("/") + "/", FALLBACK_CLEANED: "true"}
    return found


def wrap(
    words: SparkWords, leaving: Leaving, defaults: Mapping[str, str], version: str
) -> tuple[list[str], list[str]]:
    """Return the command line whose executors can be decommissioned, and notes; BadInput else.

    ``defaults``: the settings of the defaults file; ``version``: of the submitting Spark ("": unknown).
    """
    own = {**defaults, **words.settings()}
    refuse_options(leaving)
    if version and version_of(version) < LEAST_VERSION:
        raise BadInput(f"Spark {version}", "cannot decommission executors", "use 3.2 or newer")
    named = re.search("[0-9]", words.name)  # spark2-submit
    if not version and named is not None and int(named[0]) < LEAST_VERSION[0]:
        raise BadInput(words.name, f"Spark {named[0]} cannot decommission executors", "use 3.2 or newer")
    refuse_where(own, words)
    refuse_settings(own, leaving, lambda name: typed_for(words.options, name))
    more = {name: value for name, value in settings_for(leaving).items() if own.get(name) != value}
    if leaving.route == "plugin" and own.get(PLUGINS):
        more[PLUGINS] = _listed(own[PLUGINS], PLUGIN)
    if leaving.route == "plugin" and HEARTBEAT not in own:
        more[HEARTBEAT] = HEARTBEAT_MS
    tags = own.get(TAGS, "")
    where = f"{TAGS}={tags[:60]}"
    kept = unwrapped_tags(tags, TAGS)
    more[TAGS] = with_drain_tags(kept, leaving.route, leaving.min_executors, where, leaving.charge)
    # yarnctl's file goes into the user's option if it is given, else into the setting.
    option, name = ("--files", FILES) if leaving.route == "signal" else ("--jars", JARS)
    shipped = words.value_of(option)
    options: dict[str, str] = {}
    if shipped is None:
        more[name] = _listed(own.get(name, ""), _file_of(leaving))
    else:
        options[option] = _listed(shipped, _file_of(leaving))
    return words.words(more, options), notes_of(own, leaving, version, words.application)


def default_lines(leaving: Leaving, may_lose_tag: str = "") -> list[str]:
    """Return the settings as lines of spark-defaults.conf, for all applications.

    ``may_lose_tag`` allows each of them to lose a part of its container time; "": none.
    """
    refuse_options(leaving)
    ours = drain_tags(leaving.route, leaving.min_executors, leaving.charge)
    tags = [*([may_lose_tag] if may_lose_tag else []), *ours]
    found = {**settings_for(leaving), TAGS: ",".join(tags)}
    if leaving.route == "plugin":
        found[HEARTBEAT] = HEARTBEAT_MS
    found[FILES if leaving.route == "signal" else SHIPPED_JARS] = _file_of(leaving)
    width = max(map(len, found))
    first = PLUGIN_FIRST if leaving.route == "plugin" else ()
    return [*first, *(f"{name:<{width}} {value}" for name, value in found.items())]


def notes_of(own: Mapping[str, str], leaving: Leaving, version: str, application: str = "") -> list[str]:
    """Return notes for the submitter."""
    notes = []
    if "=" in application:
        notes.append(
            f"spark-submit uses {application[:80]!r} as the application's file; put --conf before each"
            " setting"
        )
    if not version:
        notes.append("unknown version of Spark; decommissioning requires 3.2 or newer")
    if own.get(SHUFFLE_SERVICE, "").lower() == "true":
        notes.append(
            "shuffle blocks of a drained executor move also with the external shuffle service"
            + ("; the plugin removes idle executors without that" if leaving.route == "plugin" else "")
        )
    if leaving.route == "signal":
        notes.append(
            "Spark requests a new executor for each decommissioned one; run the daemon with --cap-queue"
        )
    return notes


def refuse_options(leaving: Leaving) -> None:
    """Raise BadInput for options that the route does not support."""
    if leaving.route == "signal" and leaving.uses_pipe:
        problem = "the signal would end the programs of rdd.pipe"
        raise BadInput("--uses-pipe", problem, USE_PLUGIN)
    if leaving.route == "signal" and leaving.fallback:
        raise BadInput("--fallback", "only the plugin can suspend a job completely", USE_PLUGIN)
    if (leaving.route == "plugin") != bool(leaving.plugin_jar):
        problem = "one is given without the other"
        raise BadInput("--route, --plugin", problem, "give both: --route plugin --plugin JAR")


def refuse_where(own: Mapping[str, str], spark_words: SparkWords) -> None:
    """Raise BadInput for an application that does not run in YARN's containers."""
    master = own.get(MASTER_URL)
    if master is None:
        raise BadInput("--master", "is missing (Spark's default is local)", "add --master yarn")
    if master != "yarn":
        problem = "does not run executors in YARN's containers"
        raise BadInput(typed_for(spark_words.options, MASTER_URL), problem, remedy_for(master))
    if spark_words.is_shell and own.get(DEPLOY_MODE) == "cluster":
        problem = f"{spark_words.name} runs in client mode only"
        raise BadInput(typed_for(spark_words.options, DEPLOY_MODE), problem, "use --deploy-mode client")
    if own.get(DEPLOY_MODE, "client") not in ("client", "cluster"):
        raise BadInput(
            typed_for(spark_words.options, DEPLOY_MODE), "is not a deploy mode", "use client or cluster"
        )


def refuse_settings(own: Mapping[str, str], leaving: Leaving, shown: Callable[[str], str]) -> None:
    """Raise BadInput for a user's setting that prevents decommissioning, or would lose work."""
    for name, value in settings_for(leaving).items():
        typed = own.get(name)
        if typed is None or name == PLUGINS or typed.strip().lower() == value.lower():
            continue
        raise BadInput(shown(name), f"decommissioning requires {value}", _remedy_for(name))
    if FORCE_KILL in own:
        problem = "Spark kills executors, with their tasks, after this time"
        raise BadInput(shown(FORCE_KILL), problem, f"remove {FORCE_KILL}, or {UNWRAPPED}")
    if leaving.route == "signal":
        for name in no_signal_options(own):
            remedy = "remove -Xrs, or use --route plugin --plugin JAR"
            raise BadInput(shown(name), "with -Xrs no signal reaches the executor", remedy)


def _remedy_for(name: str) -> str:
    if name == SHELL_FILE:
        return f"use --route plugin --plugin JAR, or {UNWRAPPED}"
    return f"remove {name}, or {UNWRAPPED}"


def _file_of(leaving: Leaving) -> str:
    return str(TRAP_FILE) if leaving.route == "signal" else leaving.plugin_jar


def _listed(own: str, more: str) -> str:
    return ",".join(part for part in (own.strip().rstrip(","), more) if part)


_CORE = re.compile(r"spark-core_[0-9.]+-([0-9][0-9A-Za-z.-]*)\.jar")
_DEFAULT = re.compile(r"([^\s=:]+)\s*[\s=:]\s*(.*)")


def installed(words: SparkWords) -> tuple[dict[str, str], str]:
    """Return the settings of a command's defaults file, and the version of its Spark ("": unknown).

    Spark's folder is SPARK_HOME, else the program's. A file that is not found has no settings.
    """
    home: Path | None = None
    if named := os.environ.get("SPARK_HOME"):
        home = Path(named)
    elif program := shutil.which(words.program):
        home = Path(program).resolve().parent.parent
    version = version_in(home) if home else ""
    file = words.value_of("--properties-file")
    if file is not None:
        return defaults_in(_text(Path(file), "--properties-file")), version
    folder = os.environ.get("SPARK_CONF_DIR") or (home / "conf" if home else None)
    path = Path(folder) / "spark-defaults.conf" if folder else None
    if path is None or not path.is_file():
        return {}, version
    return defaults_in(_text(path, "spark-defaults.conf")), version


def _text(path: Path, option: str) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as problem:
        raise BadInput(f"{option} {path}", f"cannot be read: {problem}", "give a file of settings") from None


def version_in(home: Path) -> str:
    """Return the version of a Spark from the name of its core jar; "" if there is none."""
    jars = sorted(home.glob("jars/spark-core_*.jar"))
    found = [match[1] for jar in jars if (match := _CORE.fullmatch(jar.name))]
    return found[0] if found else ""


def defaults_in(text: str) -> dict[str, str]:
    """Return the settings in the text of a spark-defaults.conf: a name and a value on each line."""
    found = {}
    for line in text.splitlines():
        match = _DEFAULT.fullmatch(line.strip())
        if match is not None and not line.lstrip().startswith("#"):
            found[match[1]] = match[2].strip()
    return found
