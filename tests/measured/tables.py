"""The tables of the documents, each a function of what was measured.

Law: a table names the campaigns that it is made of; medians, sums and single runs are labelled; a campaign
stands beside an older one, never in its place; what was not run is a dash.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from tests.measured.campaign import FOLDER, JOBS, Campaign, all_of
from tests.measured.summary import of_scheme

NAMES = {
    "production-alone": "production alone",
    "research-alone": "research alone",
    "hard-cap": "hard cap 25/75",
    "hard-cap-half": "hard cap 50/50",
    "soft-cap": "soft cap 25/75",
    "yarn-defaults": "YARN's preemption, defaults",
    "yarn-tuned": "YARN's preemption, well tuned",
}
USUAL_S = 46.0
LINK = "[{0}]({1}{0}.json)"
NEW_NAMES = {"--hold-queue": "--cap-queue", "--ahead": "--predicted-demand"}
"""Options of older campaigns by their present names: one row for what is one option."""


def table(head: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """Return a Markdown table."""
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    return "\n".join(lines + ["| " + " | ".join(map(str, row)) + " |" for row in rows])


def label(campaign: Campaign, scheme: str) -> str:
    """Return what a scheme was, by what it was told: one name has meant several things."""
    told = campaign.configuration["schemes"].get(scheme, {})
    arrives_s = told.get("arrives_s", USUAL_S)
    when = "" if arrives_s == USUAL_S else f", production after {arrives_s:g} s"
    if told.get("attached"):
        options = " ".join(NEW_NAMES.get(word, word) for word in told["options"])
        return f"**yarnctl** {f'(`{options}`)' if options else 'as shipped (no option)'}{when}"
    base = scheme.removesuffix("-late").removesuffix("-early")
    return f"{NAMES.get(base, base)}{when}"


def rank(name: str) -> tuple[int, int, str]:
    """Order schemes: alone, caps, YARN, yarnctl; other arrivals last."""
    kinds = [*NAMES.values(), "**yarnctl** as shipped", "**yarnctl**"]
    kind = next((place for place, each in enumerate(kinds) if name.startswith(each)), len(kinds))
    return ("production after" in name, kind, name)


def overview(_: Sequence[str]) -> str:
    """Return every scheme against every campaign: ratios of medians, production / research (runs)."""
    campaigns = all_of()
    cells: dict[str, dict[str, str]] = {}
    for campaign in campaigns:
        for scheme in [*campaign.schemes(), *campaign.ranges]:
            cells.setdefault(label(campaign, scheme), {})[campaign.name] = _ratios(campaign, scheme)
    head = ["production / research, against each alone", *(short(each.name) for each in campaigns)]
    rows = [
        [name, *(cells[name].get(campaign.name, "-") for campaign in campaigns)]
        for name in sorted(cells, key=rank)
    ]
    return table(head, rows)


def short(name: str) -> str:
    """Return a campaign's name as a column's head."""
    return name.removeprefix("hadoop-")


def _ratios(campaign: Campaign, scheme: str) -> str:
    if scheme in campaign.ranges:
        spans = [_span(campaign.ranges[scheme].get(f"{job}_s")) for job in JOBS]
        return f"{' / '.join(spans)} s ({campaign.ranges[scheme]['runs']})"
    found = of_scheme(campaign, scheme)
    if scheme.endswith("-alone"):
        seconds = found[f"{scheme.removesuffix('-alone')}_s"]
        return f"{seconds:.1f} s ({found['runs']})"
    shown = [_ratio(found, job) for job in JOBS]
    return f"{' / '.join(shown)} ({found['runs']})"


def _ratio(found: dict[str, Any], job: str) -> str:
    ratio, seconds = found[f"{job}_ratio"], found[f"{job}_s"]
    return f"{ratio:.2f}" if ratio else f"{seconds:.1f} s" if seconds else "-"


def _span(least_and_most: list[float] | None) -> str:
    return f"{least_and_most[0]:g} to {least_and_most[1]:g}" if least_and_most else "-"


def campaigns(words: Sequence[str]) -> str:
    """Return every campaign's own table, the newest first, each under a heading."""
    folder = words[0] if words else "measured/"
    parts = [section(campaign, folder) for campaign in reversed(all_of())]
    return "\n\n".join(parts)


def section(campaign: Campaign, folder: str) -> str:
    """Return one campaign: what is known of it, its table, what was left out."""
    made = f"commit {campaign.commit[:8]}" if campaign.commit else "commit not recorded"
    if campaign.uncommitted:
        made += f" with {len(campaign.uncommitted)} files changed"
    lines = [
        f"### {short(campaign.name)}",
        "",
        f"{LINK.format(campaign.name, folder)}: Hadoop {campaign.versions['hadoop']}, {made}, "
        f"{_load(campaign)}.",
    ]
    lines += ["", *(f"* {note}" for note in campaign.notes)] if campaign.notes else []
    lines += ["", schemes_of(campaign)] if campaign.runs else []
    left = [run for run in campaign.runs if run.get("left_out")]
    if left:
        lines += ["", "Left out: " + "; ".join(_left_out(campaign, run) for run in left) + "."]
    return "\n".join(lines)


def _load(campaign: Campaign) -> str:
    before = [run["load_before"][0] for run in campaign.runs if run.get("load_before")]
    if not before:
        return "load of the machine not recorded"
    return f"load average (1 min) before a run {min(before):.1f} to {max(before):.1f}"


def _left_out(campaign: Campaign, run: dict[str, Any]) -> str:
    times = [f"{job} {run[f'{job}_s']:.1f} s" for job in JOBS if run.get(f"{job}_s")]
    return f"{', '.join([label(campaign, run['scheme']), *times])}: {run['left_out']}"


def schemes_of(campaign: Campaign) -> str:
    """Return a campaign's schemes: medians, spread, sums."""
    head = [
        "scheme",
        "runs",
        "production, median (against alone; least to most)",
        "research",
        "suspended / killed (sums)",
        "groups begun twice (sum)",
        "a run's interruptions cost (median)",
        "outputs identical",
    ]
    rows = [
        _row(campaign, scheme)
        for scheme in sorted(campaign.schemes(), key=lambda name: rank(label(campaign, name)))
    ]
    return table(head, rows)


def _row(campaign: Campaign, scheme: str) -> list[object]:
    found = of_scheme(campaign, scheme)
    cost = found["overhead_s"]
    return [
        label(campaign, scheme),
        found["runs"],
        *(_cell(found, job) for job in JOBS),
        f"{_known(found['suspensions_sum'])} / {_known(found['killed_sum'])}",
        _known(found["groups_twice_sum"]),
        "-" if cost is None else f"{cost:.1f} s",
        {True: "yes", False: "**no**"}.get(found["identical"], "not known"),
    ]


def _known(value: int | None) -> object:
    return "not known" if value is None else value


def _cell(found: dict[str, Any], job: str) -> str:
    if found[f"{job}_s"] is None:
        return "-"
    inside = [f"{found[f'{job}_ratio']:.2f}"] if found[f"{job}_ratio"] else []
    if found["runs"] > 1:
        inside.append(f"{found[f'{job}_least_s']:.1f} to {found[f'{job}_most_s']:.1f}")
    return f"{found[f'{job}_s']:.1f} s" + (f" ({', '.join(inside)})" if inside else "")


def coming_back(words: Sequence[str]) -> str:
    """Return what an interruption costs where there is much reduce input, run by run of all files named."""
    runs = [run for word in words for run in json.loads((FOLDER / f"{word}.json").read_bytes())["runs"]]
    rows = []
    for number, run in enumerate(runs, 1):
        for scheme, name in (("yarnctl", "**yarnctl**"), ("yarn-tuned", NAMES["yarn-tuned"])):
            found = run[scheme]
            costs = [f"{each['overhead_s']:.1f} s" for each in found["interruptions"]]
            masters = found.get("masters", "not recorded")
            cells = [
                ", ".join(costs) or "not recorded",
                f"{found['research_s']:.1f} s",
                found["groups_twice"],
            ]
            rows.append([number, name, *cells, masters])
    head = ["run", "scheme", "interruption cost", "research ends after", "groups begun twice", "masters"]
    return table(head, rows)


def speed(words: Sequence[str]) -> str:
    """Return the newest record of ``make bench``."""
    path = sorted(FOLDER.glob("speed-*.json"))[-1]
    document = json.loads(path.read_bytes())
    rows = [
        [
            f"`{row['name']}`: {row['what']}",
            _amount(row["ours"], row["unit"]),
            _amount(row["baseline"], row["unit"]),
            f"{row['ratio']:,.2f}",
            row["target"],
            "yes" if row["holds"] else "**no**",
        ]
        for row in document["rows"]
    ]
    made = f"commit {document['commit'][:8]}" if document["commit"] else "commit not recorded"
    text = table(["benchmark", "ours", "beside", "ratio", "target", "holds"], rows)
    return f"{text}\n\nFrom {LINK.format(path.stem, words[0] if words else 'measured/')}, {made}."


def _amount(value: float, unit: str) -> str:
    return f"{value:,.2f} {unit}" if value < 10 and unit != "ms" else f"{value:,.1f} {unit}"


def admission(words: Sequence[str]) -> str:
    """Return deadlines met and times taken with plain queues and through the gate, by kind of job."""
    document = json.loads((FOLDER / f"{words[0]}.json").read_bytes())
    hopeless = {job["name"] for job in document["jobs"] if job["hopeless"]}
    sides = {side: {row["name"]: row for row in document[side]["jobs"]} for side in ("plain", "gate")}
    rows: list[list[object]] = [
        [f"deadlines met, of {len(document['jobs'])}", *(document[side]["met"] for side in sides)]
    ]
    for kind in dict.fromkeys(job["kind"]["name"] for job in document["jobs"]):
        alike = [job["name"] for job in document["jobs"] if job["kind"]["name"] == kind]
        for title, names in (
            (f"{kind}, could be met", [name for name in alike if name not in hopeless]),
            (f"{kind}, hopeless", [name for name in alike if name in hopeless]),
        ):
            if names:
                cells = [_taken([found[name] for name in names]) for found in sides.values()]
                rows.append([f"{len(names)} {title}", *cells])
    return table([f"{document['on']}, {words[0]}", "plain queue", "gate"], rows)


def _taken(jobs: Sequence[dict[str, Any]]) -> str:
    """Return how long jobs took from their submission, and what became of them."""
    spans = [(job["ended_at_ms"] - job["submitted_at_ms"]) / 1000 for job in jobs if job["ended_at_ms"]]
    outcomes = ", ".join(dict.fromkeys(job["outcome"] for job in jobs))
    return f"{min(spans):.0f} to {max(spans):.0f} s: {outcomes}" if spans else outcomes
