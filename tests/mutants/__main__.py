"""``python -m tests.mutants --seed N [--count 300] [--part NAME | --target FOLDER]``: the score of the tests.

Law: what is drawn depends on seed and sources only. A mutant is killed if a test fails, if the tests cannot
be collected, or if it takes ten times the processor time of what it replaces; it survives if the tests that
execute its line pass. Survivors stay in the denominator, also those that ``explained.toml`` calls equivalent;
both figures are told. A mutant that no test executes survives.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path

from tests.mutants.population import population, sample
from tests.mutants.results import Results, summary, told
from tests.mutants.trying import Trials

PARTS = {
    "deciding": "yarnctl/deciding",
    "journal": "yarnctl/journal",
    "runner": "yarnctl/task_runner/runner",
}
RINGS: dict[str, tuple[str, ...]] = {
    "yarnctl/deciding": (
        "tests/golden",
        "tests/unit/deciding",
        "tests/unit/admission/test_allocators.py",
        "tests/unit/admission/test_capacity.py",
        "tests/unit/admission/test_fair_share.py",
        "tests/unit/admission/test_gate.py",
        "tests/unit/admission/test_warm.py",
        "tests/unit/admission/test_words.py",
        "tests/unit/test_forecast_against_scheduler.py",
        "tests/unit/daemon/test_desk.py",
        "tests/unit/daemon/test_going_on.py",
        "tests/unit/daemon/test_holding.py",
        "tests/journal/test_rebuild.py",
        "tests/journal/test_restart.py",
        "tests/journal/test_admissions.py",
        "tests/journal/test_tampering.py",
        "tests/property/test_admission.py",
        "tests/property/test_scenarios.py",
    ),
    "yarnctl/journal": (
        "tests/journal",
        "tests/unit/test_reasons.py",
        "tests/unit/daemon/test_clock_set_back.py",
        "tests/unit/daemon/test_going_on.py",
        "tests/unit/daemon/test_holding.py",
        "tests/unit/daemon/test_lowered_queue.py",
        "tests/unit/daemon/test_returns_shown.py",
        "tests/unit/daemon/test_state_replaced.py",
        "tests/unit/deciding/test_controller_under_random_facts.py",
    ),
    "yarnctl/task_runner/runner": (
        "tests/unit/task_runner/test_attempt.py",
        "tests/unit/task_runner/test_borders.py",
        "tests/unit/task_runner/test_bounds.py",
        "tests/unit/task_runner/test_feeding.py",
        "tests/unit/task_runner/test_keeping_alive.py",
        "tests/unit/task_runner/test_keys_and_pace.py",
        "tests/unit/task_runner/test_options.py",
        "tests/unit/task_runner/test_stores_and_errors.py",
        "tests/property/test_task_runner.py",
        "tests/runner",
    ),
}
"""The nearest tests of a folder; another one names its own with ``--tests``.

Not ``test_built``: it compares the shipped file with its package, so it would notice every mutant.
"""


def options_of(arguments: Sequence[str]) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(prog="python -m tests.mutants", description=__doc__)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=300)
    drawn_from = parser.add_mutually_exclusive_group()
    drawn_from.add_argument("--part", choices=PARTS, default="deciding", help="whose tests are known")
    drawn_from.add_argument("--target", default=None, help="a folder or file of Python sources")
    parser.add_argument("--tests", nargs="+", default=None, help="default: the nearest of the part")
    parser.add_argument(
        "--results",
        type=Path,
        default=None,
        help="goes on from it; default: mutants-SEED.jsonl, of other parts mutants-PART-SEED.jsonl",
    )
    parser.add_argument(
        "--keep-killed", action="store_true", help="try survivors again; tests were only added"
    )
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--only", default="", help="of those drawn, the mutants whose name holds this text")
    parser.add_argument("--campaign", type=Path, help="write the summary there, for docs/measured")
    parser.add_argument("--json", action="store_true", help="the summary as JSON on standard output")
    options = parser.parse_args(arguments)
    part = "" if options.target or options.part == "deciding" else f"{options.part}-"
    options.target = options.target or PARTS[options.part]
    if options.tests is None:
        if options.target not in RINGS:
            parser.error(f"no tests are known for {options.target}; name them with --tests")
        options.tests = list(RINGS[options.target])
    if not Path(options.target).exists():
        parser.error(f"--target: {options.target} does not exist; use a folder or file of this repository")
    if min(options.count, options.workers) < 1:
        parser.error("--count and --workers: use 1 or more")
    options.results = options.results or Path(f"mutants-{part}{options.seed}.jsonl")
    return options


def main(arguments: Sequence[str]) -> int:
    """Try the mutants that are drawn; exit status 1 if a survivor has no reason."""
    options = options_of(arguments)
    root = Path.cwd()
    everything = population(root, options.target)
    drawn = [one for one in sample(everything, options.count, options.seed) if options.only in one.identity]
    results = Results(options.results, root, options.target, options.tests, keep_killed=options.keep_killed)
    todo = [one for one in drawn if one.identity not in results.known]
    print(
        f"{len(drawn)} of {len(everything)} mutants, {len(drawn) - len(todo)} known",
        file=sys.stderr,
        flush=True,
    )
    if todo:
        trials = Trials(root, options.target, options.tests, options.workers, results.baseline)
        for number, result in enumerate(trials.run(todo), start=1):
            results.add(result)
            line = f"{number:4} {result.outcome:<8} {result.identity}  ({result.by})"
            print(line, file=sys.stderr, flush=True)
    found = summary(root, [results.known[one.identity] for one in drawn], options, len(everything))
    if options.campaign:
        options.campaign.write_text(json.dumps(found, indent=1, ensure_ascii=False) + "\n")
    print(json.dumps(found, indent=1, ensure_ascii=False) if options.json else told(found))
    return 1 if found["unexplained"] else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
