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
from pathlib import Path, PurePath

from yarnctl.errors import BadInput
from yarnctl.frameworks.command_words import typed_for
from yarnctl.frameworks.spark.configuration import (
    BLOCKS_MAX,
    FALLBACK,
    FILES,
    FORCE_KILL,
    HEARTBEAT,
    HEARTBEAT_MS,
    LEAST_VERSION,
    PLUGIN,
    PLUGINS,
    SHELL_FILE,
    SHUFFLE_SERVICE,
    SIGNAL,
    TRAP,
    is_as_needed,
    no_signal_options,
    version_of,
)
from yarnctl.frameworks.spark.leaving_options import (
    JARS,
    SHIPPED_JARS,
    TRAP_FILE,
    USE_PLUGIN,
    Leaving,
    refuse_options,
    settings_for,
    site_of,
    without_site,
)
from yarnctl.frameworks.spark.submission import DEPLOY_MODE, MASTER_URL, TAGS, SparkWords, remedy_for
from yarnctl.frameworks.submitting import unwrapped_tags, with_drain_tags
from yarnctl.hadoop.wire.tags import tags_in, without_ours
from yarnctl.task_runner.wrapping import UNWRAPPED

OF_ONE_ROUTE = {PLUGINS: "", SIGNAL: "PWR", SHELL_FILE: ""}
"""Spark's own values of settings that only one route requires."""


def wrap(
    words: SparkWords, leaving: Leaving, defaults: Mapping[str, str], version: str
) -> tuple[list[str], list[str]]:
    """Return the command line whose executors can be decommissioned, and notes; BadInput else.

    ``defaults``: the settings of the defaults file; ``version``: of the submitting Spark ("": unknown).
    yarnctl's own lines in that file are the site's choices, which ``leaving`` has replaced.
    """
    site, typed = site_of(defaults), words.settings()
    own = {**(without_site(defaults, site) if site else defaults), **typed}
    refuse_options(leaving)
    if version and version_of(version) < LEAST_VERSION:
        raise BadInput(f"Spark {version}", "cannot decommission executors", "use 3.2 or newer")
    named = re.search("[0-9]", words.name)  # spark2-submit
    if not version and named is not None and int(named[0]) < LEAST_VERSION[0]:
        raise BadInput(words.name, f"Spark {named[0]} cannot decommission executors", "use 3.2 or newer")
    refuse_where(own, words)
    refuse_words(words, leaving)
    refuse_settings(own, leaving, lambda name: typed_for(words.options, name))
    more = {name: value for name, value in settings_for(leaving).items() if own.get(name) != value}
    if leaving.route == "plugin" and own.get(PLUGINS):
        more[PLUGINS] = _listed(own[PLUGINS], PLUGIN)
    if leaving.route == "plugin" and HEARTBEAT not in own:
        more[HEARTBEAT] = HEARTBEAT_MS
    if site and site.route != leaving.route:
        unset = OF_ONE_ROUTE.keys() & defaults.keys() - typed.keys() - settings_for(leaving).keys()
        more |= {name: own.get(name, value) for name, value in OF_ONE_ROUTE.items() if name in unset}
    kept = unwrapped_tags(typed[TAGS], TAGS) if TAGS in typed else without_ours(tags_in(own.get(TAGS, "")))
    where = f"{TAGS}={own.get(TAGS, '')[:60]}"
    more[TAGS] = with_drain_tags(kept, leaving.route, leaving.min_executors, where, leaving.charge)
    options: dict[str, str] = {}
    if leaving.route == "signal":
        # Spark merges this with --files, and ends a job whose lists have two files of one name.
        others = [file for file in own.get(FILES, "").split(",") if PurePath(file).name != TRAP]
        more[FILES] = _listed(",".join(others), str(TRAP_FILE))
    elif leaving.site_has_jar:
        if SHIPPED_JARS in typed:
            more[SHIPPED_JARS] = _listed(typed[SHIPPED_JARS], defaults.get(SHIPPED_JARS, ""))
    elif (shipped := words.value_of("--jars")) is not None:
        options["--jars"] = _listed(shipped, leaving.plugin_jar)
    else:
        more[JARS] = _listed(own.get(JARS, ""), leaving.plugin_jar)
    return words.words(more, options), notes_of(own, leaving, version, words.application)


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


def refuse_words(words: SparkWords, leaving: Leaving) -> None:
    """Raise BadInput for a program that the route would harm."""
    typed = f"{words.name} {words.application}".rstrip()
    if leaving.route == "signal" and re.search(r"^sparkR|\.[rR]$", typed):
        raise BadInput(typed, "the signal would end the processes of R", USE_PLUGIN)
    if leaving.route == "plugin" and words.name == "run-example" and not leaving.site_has_jar:
        remedy = "use spark-submit --jars, or --route signal"
        raise BadInput(words.name, "replaces the plugin's jar by jars of its own", remedy)


def refuse_settings(own: Mapping[str, str], leaving: Leaving, shown: Callable[[str], str]) -> None:
    """Raise BadInput for a user's setting that prevents decommissioning, or would lose work."""
    for name, value in settings_for(leaving).items():
        typed = own.get(name)
        if typed is None or name == PLUGINS or is_as_needed(typed, value):
            continue
        raise BadInput(shown(name), f"decommissioning requires {value}", _remedy_for(name))
    if FORCE_KILL in own:
        problem = "Spark kills executors, with their tasks, after this time"
        raise BadInput(shown(FORCE_KILL), problem, f"remove {FORCE_KILL}, or {UNWRAPPED}")
    if BLOCKS_MAX in own and not (leaving.fallback or own.get(FALLBACK)):
        problem = "blocks that exceed this size are lost"
        raise BadInput(shown(BLOCKS_MAX), problem, f"remove {BLOCKS_MAX}, or {UNWRAPPED}")
    if leaving.route == "signal":
        for name in no_signal_options(own):
            remedy = "remove -Xrs, or use --route plugin --plugin JAR"
            raise BadInput(shown(name), "with -Xrs no signal reaches the executor", remedy)


def _remedy_for(name: str) -> str:
    if name == SHELL_FILE:
        return f"use --route plugin --plugin JAR, or {UNWRAPPED}"
    return f"remove {name}, or {UNWRAPPED}"


def _listed(own: str, more: str) -> str:
    """Return both lists as one, each part once."""
    parts = (part.strip() for part in f"{own},{more}".split(","))
    return ",".join(dict.fromkeys(part for part in parts if part))


_CORE = re.compile(r"spark-core_[0-9.]+-([0-9][0-9A-Za-z.-]*)\.jar")
_DEFAULT = re.compile(r"((?:\\.|[^\\ \t\f=:])+)[ \t\f]*[ \t\f=:][ \t\f]*(.*)")
_ESCAPE = re.compile(r"\\(?:u([0-9A-Fa-f]{4})|(.))")
_ESCAPED = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}


def installed(words: SparkWords) -> tuple[dict[str, str], str]:
    """Return the settings of a command's defaults file, and the version of its Spark ("": unknown).

    Spark's folder is SPARK_HOME, else the program's. A file that is not found has no settings. Words in
    front of the command may set variables (``env SPARK_CONF_DIR=/etc/spark spark-submit``).
    """
    home: Path | None = None
    in_front = words.variables()
    if named := in_front.get("SPARK_HOME") or os.environ.get("SPARK_HOME"):
        home = Path(named)
    elif program := shutil.which(words.program):
        home = Path(program).resolve().parent.parent
    version = version_in(home) if home else ""
    file = words.value_of("--properties-file")
    found: dict[str, str] = {}
    set_to = in_front.get("SPARK_CONF_DIR") or os.environ.get("SPARK_CONF_DIR")
    folder = set_to or (home / "conf" if home else None)
    path = Path(folder) / "spark-defaults.conf" if folder else None
    is_read = file is None or any(each.option == "--load-spark-defaults" for each in words.options)
    if is_read and path is not None and path.is_file():
        found = defaults_in(_text(path, "spark-defaults.conf"))
    if file is not None:
        found |= defaults_in(_text(Path(file), "--properties-file"))
    return found, version


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
    """Return the settings in the text of a spark-defaults.conf, read as java.util.Properties reads it."""
    found = {}
    lines = iter(re.split("\r\n|\r|\n", text))
    for line in lines:
        line = line.strip()
        if line.startswith(("#", "!")):
            continue
        while re.search(r"(?<!\\)(?:\\\\)*\\$", line):
            line = line[:-1] + next(lines, "").strip()
        if match := _DEFAULT.fullmatch(line):
            found[_unescaped(match[1])] = _unescaped(match[2]).strip()
    return found


def _unescaped(text: str) -> str:
    return _ESCAPE.sub(
        lambda each: chr(int(each[1], 16)) if each[1] else _ESCAPED.get(each[2], each[2]), text
    )
