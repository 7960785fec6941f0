"""``python -m tests.papers.pages``: render the tables of docs/paper.md and research/notes/admission.md.

Law: what stands between the markers ``paper-table`` of a page is a function of the files in docs/figures,
which are what the commands of ``COMMANDS`` printed (rows that no table shows are left out). Nobody types a
figure into one. ``--run NAME`` runs a command and keeps what it prints; ``--check`` names pages that differ.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import msgspec

ROOT = Path(__file__).parents[2]
DATA = ROOT / "docs/figures"
PAGES = (ROOT / "docs/paper.md", ROOT / "research/notes/admission.md")
PAPER = ("yarn-emulator", "paper")
COMMANDS: dict[str, tuple[str, ...]] = {
    "natjam-blocks": (*PAPER, "natjam", "--blocks", "10", "--json"),
    "natjam-blocks-of-5": (*PAPER, "natjam", "--blocks", "40", "--runs", "5", "--json"),
    "natjam-alternatives": (*PAPER, "natjam", "--alternatives", "--json"),
    "natjam-10": (*PAPER, "natjam", "--figure", "10", "--json"),
    "natjam-11": (*PAPER, "natjam", "--figure", "11", "--json"),
    "pythia": (*PAPER, "pythia", "--runs", "5", "--json"),
    "justice": (*PAPER, "justice", "--runs", "5", "--json"),
    "mrm": (*PAPER, "mrm", "--json"),
    "mrm-alternatives": (*PAPER, "mrm", "--alternatives", "--json"),
    "orion-alternatives": (*PAPER, "orion", "--alternatives", "--json"),
}
CLAIMS_ONLY = ("pythia", "justice", "natjam-11", "mrm")
"""Reports of which only claims are kept, and the rows of ROWS_SHOWN."""
ROWS_SHOWN = ("8", "t2", "t3", "t4")
"""Justice's Fig 8, which has no claim, and MRM's Tables 2 to 4, whose rows stand beside the paper's."""
MARKED = re.compile(r"(<!-- paper-table: (?P<name>[a-z0-9-]+) -->\n).*?(<!-- /paper-table -->)", re.DOTALL)


def load(name: str, folder: Path = DATA) -> Any:
    """Return what a command has printed."""
    return msgspec.json.decode((folder / f"{name}.json").read_bytes())


def table(columns: Iterable[str], rows: Iterable[Iterable[object]]) -> str:
    """Return a table in Markdown."""
    names = list(columns)
    lines = [names, ["---"] * len(names), *([str(cell) for cell in row] for row in rows)]
    return "\n".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines)


def share(ratio: float) -> str:
    """Return a ratio in percent with two digits, as the errors are told."""
    return f"{ratio:.2%}"


# --- the tables ------------------------------------------------------------------------------


def bars(folder: Path) -> str:
    """Every bar of Figs 4 to 6: the first block, 20 seeds."""
    report = load("natjam-blocks", folder)
    rows = [
        (
            f"Fig {figure['figure']} {bar['label']}, {bar['metric'].removesuffix('_s')}",
            f"{bar['paper']:.1f}",
            f"{bar['ours']:.1f}",
            f"{bar['relative_error']:+.1%}",
        )
        for figure in report["figures"]
        for bar in figure["rows"]
        if bar["relative_error"] is not None
    ]
    errors = (report["mean_abs_relative_error"], report["worst_abs_relative_error"])
    mean, worst = map(share, errors)
    said = f"Figs 4 to 6 together: mean absolute relative error {mean}, worst {worst} (seeds 0 to 19)."
    return f"{said}\n\n{table(('', 'paper s', 'ours s', 'error'), rows)}"


def errors_over_blocks(folder: Path) -> str:
    """The errors: over blocks of 20 and of 5 seeds, and over all seeds."""
    rows = []
    for name in ("natjam-blocks", "natjam-blocks-of-5"):
        blocks = load(name, folder)["blocks"]
        for error, said in (("mean_abs_relative_error", "mean"), ("worst_abs_relative_error", "worst")):
            found = blocks[error]
            rows.append(
                (
                    f"{said}, {blocks['count']} blocks of {blocks['runs']}",
                    *(share(found[each]) for each in ("min", "median", "max")),
                    share(blocks["all_seeds"][error]),
                )
            )
    return table(("error", "smallest", "median", "largest", "all 200 seeds"), rows)


def claims_over_blocks(folder: Path) -> str:
    """Every claim of Figs 4 to 6 over the blocks."""
    twenty, five = (
        load(name, folder)["blocks"]["claims"] for name in ("natjam-blocks", "natjam-blocks-of-5")
    )
    rows = []
    for one, other in zip(twenty, five, strict=True):
        spread = "; ".join(
            f"{each['what']}: {each['min']:.4g} / {each['median']:.4g} / {each['max']:.4g}"
            for each in one["measured"]
        )
        rows.append((one["figure"], one["claim"], _blocks(one), _blocks(other), spread))
    columns = ("Fig", "claim", "10 blocks of 20", "40 blocks of 5", "of 20: smallest / median / largest")
    return table(columns, rows)


def _blocks(claim: dict[str, Any]) -> str:
    counts = (claim["blocks_hold"], claim["blocks_tie"], claim["blocks_fail"])
    said = ", ".join(
        f"{what} {number}" for what, number in zip(("holds", "tie", "fails"), counts, strict=True) if number
    )
    return f"**{claim['verdict']}** ({said})"


def alternatives(folder: Path) -> str:
    """What Fig 3 cannot fix."""
    rows = []
    said: set[str] = set()
    for each in load("natjam-alternatives", folder)["alternatives"]:
        choice = f"**{each['choice']}**" if each["ours"] else f"{each['constant']}: {each['choice']}"
        reason = "" if each["reason"] in said else each["reason"]
        said.add(each["reason"])
        errors = (share(each["mean_abs_relative_error"]), share(each["worst_abs_relative_error"]))
        rows.append((choice, *errors, each["claims_failed"], reason))
    return table(("choice", "mean error", "worst", "claims that fail", "why ours"), rows)


def splits(folder: Path) -> str:
    """How the 87 s of Figs 10 and 11 are split."""
    rows = [
        (
            f"{each['map_s']:g} s, {each['longest_reduce_s']:g} s{' (ours)' if each['ours'] else ''}",
            *(f"{each[name]:.1f}" for name in ("alone_s", "mdf_s", "mlf_s")),
            each["claims_failed"],
            "; ".join(each["failed"]),
        )
        for each in load("natjam-alternatives", folder)["splits"]
    ]
    columns = (
        "map, longest reduce",
        "alone (87 s)",
        "MDF (175 s)",
        "MLF (239 s)",
        "claims that fail",
        "which",
    )
    return table(columns, rows)


def claims_10_11(folder: Path) -> str:
    """Figs 10 and 11 under the profile ``paper``."""
    rows = [
        (figure["figure"], claim["claim"], claim["paper"], claim["ours"], _held(claim))
        for name in ("natjam-10", "natjam-11")
        for figure in load(name, folder)["figures"]
        for claim in figure["claims"]
        if claim["profile"] == "paper"
    ]
    return table(("Fig", "claim", "paper", "ours", ""), rows)


def _held(claim: dict[str, Any]) -> str:
    if claim["holds"]:
        return "holds"
    return "tie" if claim.get("verdict") == "tie" else "**does not**"


def claims_of(name: str) -> Callable[[Path], str]:
    """Return the table of every claim of a paper on admission."""

    def render(folder: Path) -> str:
        figures = load(name, folder)["figures"]
        claims = [(figure["figure"], claim) for figure in figures for claim in figure["claims"]]
        rows = [(fig, one["claim"], one["paper"], one["ours"], _held(one)) for fig, one in claims]
        judged = [one["holds"] for _, one in claims if one["judged"] in ("ordering", "sign")]
        every = [one["holds"] for _, one in claims]
        said = (
            f"{sum(judged)} of {len(judged)} orderings and signs hold, {sum(every)} of {len(every)} claims"
            " in all (five generated traces):"
        )
        return f"{said}\n\n{table(('Fig', 'claim', 'paper', 'ours', ''), rows)}"

    return render


def idle_groups(folder: Path) -> str:
    """Justice's Fig 8, which has no claim."""
    (figure,) = (one for one in load("justice", folder)["figures"] if one["figure"] == "8")
    told = "; ".join(
        f"{bar['label']} {bar['metric']} {bar['paper']:.2f} / {bar['ours']:.2f}" for bar in figure["rows"]
    )
    return f"Fig 8, idle groups of CPUs (TR1, 2250 CPUs, Aria1x3x), paper / ours: {told}."


def mrm_claims(folder: Path) -> str:
    """Every claim of MRM; those of Tables 5 to 8 that hold are counted, cell by cell is the command's."""
    claims = [
        (figure["figure"], one) for figure in load("mrm", folder)["figures"] for one in figure["claims"]
    ]
    cells = [(fig, one) for fig, one in claims if fig.startswith("t")]
    counted = "; ".join(
        f"Table {fig[1:]}: {sum(one['holds'] for each, one in cells if each == fig)} of"
        f" {sum(each == fig for each, _ in cells)} cells hold"
        for fig in dict.fromkeys(fig for fig, _ in cells)
    )
    rows = [
        (fig, one["claim"], one["paper"], one["ours"], _held(one))
        for fig, one in claims
        if fig in ("t5", "t6", "t7") or not fig.startswith("t") or not one["holds"]
    ]
    said = f"{sum(one['holds'] for _, one in claims)} of {len(claims)} claims hold. {counted}."
    return f"{said}\n\n{table(('Fig', 'claim', 'paper', 'ours', ''), rows)}"


def mrm_estimates(folder: Path) -> str:
    """MRM's Tables 2 to 4, the paper's numbers beside ours."""
    rows = [
        (figure["figure"], bar["label"], bar["metric"], _number(bar["paper"]), _number(bar["ours"]))
        for figure in load("mrm", folder)["figures"]
        if figure["figure"] in ("t2", "t3", "t4")
        for bar in figure["rows"]
    ]
    return table(("Table", "phase, model; load", "", "paper", "ours"), rows)


def _number(told: float | None) -> str:
    return "" if told is None else f"{told:.3g}"


def mrm_alternatives(folder: Path) -> str:
    """What MRM leaves open: how many claims of Tables 5 to 8 (or Fig 6) fail under each reading."""
    rows = [
        (
            f"**{each['choice']}**" if each["ours"] else each["choice"],
            each["claims_failed"],
            "; ".join(each["failed"][:6]),
        )
        for each in load("mrm-alternatives", folder)["alternatives"]
    ]
    return table(("reading", "claims that fail", "the first six"), rows)


def orion_alternatives(folder: Path) -> str:
    """What ORiON's Alg 2 leaves open: what 75 applications meet and use by gap, and which claims fail."""
    found = load("orion-alternatives", folder)["alternatives"]
    gaps = list(found[0]["met_ratio"])
    rows = [
        (
            f"**{each['choice']}**" if each["ours"] else each["choice"],
            *(f"{each['met_ratio'][gap]:.1%}" for gap in gaps),
            " / ".join(f"{each['containers_mean'][gap]:.1f}" for gap in gaps),
            " / ".join(f"{each['late_of_admitted_ratio'][gap]:.1%}" for gap in gaps),
            each["claims_failed"],
            "; ".join(each["failed"]),
        )
        for each in found
    ]
    told = ("containers", "late of the admitted", "claims that fail", "which")
    return table(("reading", *(f"met, {gap} s" for gap in gaps), *told), rows)


TABLES: dict[str, Callable[[Path], str]] = {
    "natjam-bars": bars,
    "natjam-errors": errors_over_blocks,
    "natjam-claims": claims_over_blocks,
    "natjam-alternatives": alternatives,
    "natjam-splits": splits,
    "natjam-deadlines": claims_10_11,
    "pythia-claims": claims_of("pythia"),
    "justice-claims": claims_of("justice"),
    "justice-idle": idle_groups,
    "mrm-claims": mrm_claims,
    "mrm-estimates": mrm_estimates,
    "mrm-alternatives": mrm_alternatives,
    "orion-alternatives": orion_alternatives,
}


# --- pages -----------------------------------------------------------------------------------


def rendered(text: str, folder: Path = DATA) -> str:
    """Return a page with every marked table made anew."""
    return MARKED.sub(lambda found: f"{found[1]}{TABLES[found['name']](folder)}\n{found[3]}", text)


def kept(name: str, report: Any) -> Any:
    """Return a command's report without the rows that no table shows."""
    if name in CLAIMS_ONLY:
        for figure in report["figures"]:
            if figure["figure"] not in ROWS_SHOWN:
                figure["rows"] = []
    return report


def run(name: str) -> None:
    """Run a command and keep what it prints."""
    program, *words = COMMANDS[name]
    beside = Path(sys.executable).parent / program
    done = subprocess.run([str(beside), *words], capture_output=True, check=True, cwd=ROOT)
    DATA.mkdir(exist_ok=True)
    data = msgspec.json.format(msgspec.json.encode(kept(name, msgspec.json.decode(done.stdout))), indent=1)
    (DATA / f"{name}.json").write_bytes(data + b"\n")


def main(arguments: list[str]) -> int:
    """Run as a program; return the exit status: 1 if ``--check`` finds a page that is not as its data."""
    parser = argparse.ArgumentParser(prog="python -m tests.papers.pages", description=__doc__)
    parser.add_argument("--run", action="append", default=[], choices=[*COMMANDS, "all"], metavar="NAME")
    parser.add_argument("--check", action="store_true")
    given = parser.parse_args(arguments)
    for name in COMMANDS if "all" in given.run else given.run:
        run(name)
    old = []
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        if rendered(text) != text:
            old.append(page.name)
            if not given.check:
                page.write_text(rendered(text), encoding="utf-8")
    for name in old:
        print(f"{name}: {'is not as its data' if given.check else 'rendered'}")
    return 1 if given.check and old else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
