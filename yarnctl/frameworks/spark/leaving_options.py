"""Spark: the submitter's choices for a drain, their settings, and a site's lines of spark-defaults.conf."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Literal, NamedTuple

from yarnctl.errors import BadInput
from yarnctl.frameworks.spark.configuration import (
    FALLBACK,
    FILES,
    HEARTBEAT,
    HEARTBEAT_MS,
    PLUGIN,
    PLUGINS,
    REQUESTS,
    REQUESTS_OWNER,
    REQUIRED,
    REQUIRED_BY_SIGNAL,
    TRAP,
    Route,
    route_of,
)
from yarnctl.frameworks.spark.submission import TAGS
from yarnctl.hadoop.wire.tags import charges_bound, drain_tags, min_executors_of, tags_in

TRAP_FILE = Path(__file__).with_name(TRAP)
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
    ``charge``: what the loss budget is charged for a drain. ``site_has_jar``: the site's defaults ship the
    plugin, so that no jar is needed here.
    """

    route: Route = "signal"
    plugin_jar: str = ""
    min_executors: int = 1
    fallback: str = ""
    uses_pipe: bool = False
    requests: str = "/yarnctl/requests"
    owner: str = "yarnctl"
    charge: Literal["expected", "bound"] = "expected"
    site_has_jar: bool = False


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


def refuse_options(leaving: Leaving) -> None:
    """Raise BadInput for options that the route does not support."""
    if leaving.route == "signal" and leaving.uses_pipe:
        problem = "the signal would end the programs of rdd.pipe"
        raise BadInput("--uses-pipe", problem, USE_PLUGIN)
    if leaving.route == "signal" and leaving.fallback:
        raise BadInput("--fallback", "only the plugin can suspend a job completely", USE_PLUGIN)
    if (leaving.route == "plugin") != (leaving.site_has_jar or bool(leaving.plugin_jar)):
        problem = "one is given without the other"
        raise BadInput("--route, --plugin", problem, "give both: --route plugin --plugin JAR")


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
        found[SHIPPED_JARS] = leaving.plugin_jar
    else:
        found[FILES] = str(TRAP_FILE)
    width = max(map(len, found))
    first = PLUGIN_FIRST if leaving.route == "plugin" else ()
    return [*first, *(f"{name:<{width}} {value}" for name, value in found.items())]


def site_of(defaults: Mapping[str, str]) -> Leaving | None:
    """Return the choices in the lines of ``default_lines`` in a defaults file; None: it has no such lines."""
    tags = tags_in(defaults.get(TAGS, ""))
    route = route_of(tags)
    if route is None:
        return None
    is_plugin = route == "plugin"
    return Leaving(
        route=route,
        min_executors=min_executors_of(tags),
        fallback=defaults.get(FALLBACK, "") if is_plugin and defaults.get(FALLBACK_CLEANED) == "true" else "",
        requests=defaults.get(REQUESTS, Leaving().requests),
        owner=defaults.get(REQUESTS_OWNER, Leaving().owner),
        charge="bound" if charges_bound(tags) else "expected",
        site_has_jar=is_plugin,
    )


def without_site(defaults: Mapping[str, str], site_leaving: Leaving) -> dict[str, str]:
    """Return a defaults file's settings without those of the site's choices; tags, files and jars stay."""
    ours = settings_for(site_leaving) | ({HEARTBEAT: HEARTBEAT_MS} if site_leaving.route == "plugin" else {})
    found = {name: value for name, value in defaults.items() if ours.get(name) != value}
    plugins = ",".join(each for each in tags_in(found.pop(PLUGINS, "")) if each != PLUGIN)
    return found | ({PLUGINS: plugins} if plugins else {})
