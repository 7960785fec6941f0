"""``yarn-research admission``: the shape that other tools read, and what is refused."""

from __future__ import annotations

import json

import pytest
from click.testing import CliRunner

from yarn_research.cli.admission import command
from yarnctl.deciding.admission.mechanisms import SIZINGS
from yarnctl.errors import BadInput

TRACE = ("--trace", "packaged:fb2009", "--capacity", "100")
KEYS = [
    "sdr",
    "ptr",
    "wtr",
    "fairness",
    "equality",
    "utilisation",
    "jobs",
    "met",
    "missed",
    "dropped",
    "wall_s",
]


def run(*words: str):
    return CliRunner().invoke(command, [*TRACE, *words])


def told(*words: str) -> dict:
    result = run("--json", *words)
    assert result.exit_code == 0, result.exception
    found = json.loads(result.stdout)
    for each in found["allocators"].values():
        each.pop("wall_s")
    return found


def test_the_shape_that_other_tools_read():
    result = run("--allocators", "all", "--json")
    found = json.loads(result.stdout)["allocators"]
    assert list(found) == list(SIZINGS)
    for each in found.values():
        assert list(each) == KEYS
        assert each["met"] + each["missed"] + each["dropped"] == each["jobs"]
        assert each["sdr"] == each["met"] / each["jobs"]


def test_a_saved_trace_gives_the_same_and_a_table_is_printed(tmp_path):
    path = tmp_path / "t.parquet"
    first = told("--save", str(path))
    again = CliRunner().invoke(command, ["--trace", f"parquet:{path}", "--capacity", "100"])
    assert again.exit_code == 0
    assert f"{first['allocators']['pythia']['met']}" in again.stdout


def test_readings_of_the_papers_can_be_chosen():
    plain = told("--allocators", "justice")["allocators"]
    others = ("errors=surplus", "fraction=observed", "order=earliest", "weighting=exponential")
    words = [word for each in (*others, "drop_above_tasks=null") for word in ("--choose", each)]
    assert told("--allocators", "justice", *words)["allocators"] != plain
    tight = told("--allocators", "justice", "--choose", "optimal=requested")
    assert tight["allocators"] != plain


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--allocators", "pythia,delphi"), r"--allocators: 'delphi' is not known; one of no_drop_fs, "),
        (("--deadlines", "Fixed3x"), r"--deadlines: 'Fixed3x' is not known; one of Fixed1x, "),
        (("--choose", "order"), "--choose 'order': is not NAME=VALUE"),
        (("--choose", "mood=good"), "--choose: 'mood' is not known; one of order, "),
        (("--choose", "order=alphabetical"), "--choose: Invalid enum value 'alphabetical'"),
        (("--choose", "optimal=never"), "--choose: Invalid enum value 'never'"),
    ],
)
def test_what_is_not_known_is_one_line(words, said):
    result = run(*words)
    assert isinstance(result.exception, BadInput)
    assert result.exception.args
    with pytest.raises(BadInput, match=said):
        raise result.exception
