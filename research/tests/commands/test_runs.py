"""``yarnctl runs``: what is imported is shown again, once, and a file with a fault is taken not at all."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.thoroughness import examples
from yarn_research.market.recorded import PACKAGED
from yarnctl.cli import PROGRAM
from yarnctl.command_line import exit_status_of
from yarnctl.errors import BadInput
from yarnctl.prediction.application_runs import KnownRun, identity, merged, runs_in_lines

TABLE = "nodes,size,memory,seconds,ended\n4,1024,1g,12.5,true\n8,2048,640m,7,true\n8,2048,1g,600,false\n"
COLUMNS = ("--application", "grep", "--kind", "spark", "--containers", "nodes", "--elapsed-s", "seconds")
MORE = ("--features", "size", "--settings", "memory", "--only", "ended=true")
RUNTIMES = Path(__file__).parents[3] / "shared" / "traces" / "runtimes"
LINE = {
    "application": "grep",
    "kind": "spark",
    "features": {"size": 1024.0},
    "settings": {"memory": "1g"},
    "containers": 4,
    "elapsed_ms": 12_500,
    "source": "table.csv:2",
}


def runs(store: Path, *words: str) -> int:
    return exit_status_of(PROGRAM, ["runs", *words, "--store", str(store)])


def shown(store: Path, capsys: Any, *words: str) -> Any:
    capsys.readouterr()
    assert runs(store, *words, "--json") == 0
    return json.loads(capsys.readouterr().out)


def test_a_table_is_imported_once_and_shown(tmp_path, capsys):
    file, store = tmp_path / "table.csv", tmp_path / "new" / "runs.jsonl"
    file.write_text(TABLE)
    assert shown(store, capsys, "import", str(file), *COLUMNS, *MORE) == {"read": 2, "added": 2, "runs": 2}
    found = shown(store, capsys, "grep")
    assert found[0] == LINE
    assert [(run["containers"], run["elapsed_ms"], run["source"]) for run in found] == [
        (4, 12_500, "table.csv:2"),
        (8, 7_000, "table.csv:3"),
    ]
    assert shown(store, capsys, "import", str(file), *COLUMNS, *MORE) == {"read": 2, "added": 0, "runs": 2}
    assert runs(store) == 0
    told = capsys.readouterr().out
    assert "4 to 8" in told
    assert "7 to 12.5" in told
    assert shown(store, capsys, "--kind", "flink") == []


def test_what_is_kept_can_be_imported_elsewhere(tmp_path, capsys):
    file, store, other = tmp_path / "table.csv", tmp_path / "a.jsonl", tmp_path / "b.jsonl"
    file.write_text(TABLE.replace(",", "\t"))
    assert runs(store, "import", str(file), *COLUMNS, *MORE) == 0
    assert shown(other, capsys, "import", str(store))["added"] == 2
    assert other.read_bytes() == store.read_bytes()


def recorded(name: str) -> Path:
    """Return a recorded table: packaged, or beside the project."""
    if (PACKAGED / name).exists():
        return PACKAGED / name
    if not (RUNTIMES / name).exists():
        pytest.skip("the recorded run times that are not packaged are not here")
    return RUNTIMES / name


@pytest.mark.parametrize(
    ("name", "words", "rows"),
    [
        ("bell/grep.spark.csv", ("--kind", "spark", "--containers", "Nodes", "--elapsed-ms", "Runtime"), 105),
        (
            "scout/wordcount-large_hadoop.csv",
            (
                "--kind",
                "mapreduce",
                "--containers",
                "nodes",
                "--elapsed-s",
                "elapsed_s",
                "--only",
                "completed=true",
            ),
            136,
        ),
        (
            "c3o/grep.tsv",
            (
                *("--kind", "spark", "--containers", "instance_count", "--elapsed-s", "gross_runtime"),
                *("--features", "slots,memory,data_size_MB", "--settings", "machine_type"),
            ),
            None,
        ),
    ],
)
def test_recorded_tables_are_read_row_by_row(name, words, rows, tmp_path, capsys):
    table = recorded(name)
    lines = len(table.read_text().splitlines()) - 1
    told = shown(tmp_path / "runs.jsonl", capsys, "import", str(table), "--application", "a", *words)
    assert told["read"] == told["runs"] == (rows or lines)


def bad_table(old: str, new: str) -> str:
    assert old in TABLE
    return TABLE.replace(old, new)


@pytest.mark.parametrize(
    ("text", "words", "said"),
    [
        (bad_table("4,1024,1g,12.5", "4,1024,1g,NaN"), (*COLUMNS, *MORE), "line 2: seconds is 'NaN'"),
        (bad_table("8,2048,640m,7,", "8,2048,640m,-7,"), (*COLUMNS, *MORE), "line 3: elapsed_ms -7000"),
        (bad_table("8,2048,640m,7,", "8,2048,640m,0,"), (*COLUMNS, *MORE), "line 3: elapsed_ms 0"),
        (bad_table("8,2048,640m", "8,many,640m"), (*COLUMNS, *MORE), "line 3: size is 'many'"),
        (bad_table("8,2048,640m", "1.5,2048,640m"), (*COLUMNS, *MORE), "line 3: nodes is 1.5"),
        (bad_table("8,2048,640m", "0,2048,640m"), (*COLUMNS, *MORE), "line 3: containers 0"),
        (bad_table("8,2048,640m,7", "8,2048,640m"), (*COLUMNS, *MORE), "line 3: has fewer columns"),
        (bad_table("8,2048,640m,7", "8,2048,640m,7,7"), (*COLUMNS, *MORE), "line 3: has more columns"),
        (TABLE, (*COLUMNS, "--features", "sise"), "line 1: column 'sise' does not exist"),
        (TABLE, (*COLUMNS, "--only", "finished=true"), "line 1: column 'finished' does not exist"),
        (TABLE, (*COLUMNS, "--only", "ended=maybe"), "contains no runs"),
        (TABLE, (*COLUMNS, "--only", "ended"), "--only ended: has no ="),
        (TABLE, (*COLUMNS, "--only", "e" * 99), f"--only {'e' * 60}: has no ="),
        (TABLE, COLUMNS[:-2], "--elapsed-s: give exactly one"),
        (
            TABLE,
            (*COLUMNS, "--elapsed-ms", "seconds"),
            "--elapsed-s: give exactly one",
        ),
        (TABLE, (*COLUMNS[:2], *COLUMNS[4:]), "--kind: is missing"),
        (TABLE, COLUMNS[2:], "--kind: requires --application"),
        (TABLE, (*COLUMNS[:2], "--kind", "Spark 4", *COLUMNS[4:]), "line 2: kind 'Spark 4' is not a word"),
        (TABLE, (), "line 1: JSON is malformed"),
        (json.dumps(LINE | {"containers": 0}), (), "line 1: containers 0"),
        (
            json.dumps(LINE) + "\n" + json.dumps(LINE | {"cost": 1}),
            (),
            "line 2: Object contains unknown field",
        ),
        (json.dumps({**LINE, "elapsed_ms": "1"}), (), "line 1: Expected `int`"),
        ("", (), "contains no runs"),
    ],
)
def test_a_fault_is_named_by_its_line_and_nothing_of_the_file_is_taken(text, words, said, tmp_path, capsys):
    file, store = tmp_path / "table.csv", tmp_path / "runs.jsonl"
    store.write_text(json.dumps(LINE | {"application": "before"}) + "\n")
    before = store.read_bytes()
    file.write_text(text)
    assert runs(store, "import", str(file), *words) == 2
    assert said in capsys.readouterr().err
    assert store.read_bytes() == before
    assert not store.with_suffix(".tmp").exists()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("import",), "import: requires one file"),
        (("import", "a", "b"), "import: requires one file"),
        (("import", "no-such-file"), "no-such-file: cannot be read"),
        (("a", "b"), "b: requires import"),
        (("a", "--features", "x"), "--features: requires import"),
        (("nosuch",), "nosuch: has no known runs; applications with runs: none"),
    ],
)
def test_what_cannot_be_is_refused(words, said, tmp_path, capsys):
    assert runs(tmp_path / "runs.jsonl", *words) == 2
    assert said in capsys.readouterr().err


def test_a_store_with_a_fault_is_named_by_its_line(tmp_path, capsys):
    store = tmp_path / "runs.jsonl"
    store.write_text(json.dumps(LINE) + "\n{}\n")
    assert runs(store) == 2
    assert f"{store}: line 2: Object missing required field" in capsys.readouterr().err


NAMES = st.text(st.characters(codec="utf-8", exclude_categories=("Cc", "Cs")), min_size=1, max_size=6)
RUNS = st.builds(
    KnownRun,
    application=NAMES,
    kind=st.sampled_from(["spark", "flink"]),
    features=st.dictionaries(NAMES, st.floats(allow_nan=False, allow_infinity=False), max_size=2),
    settings=st.dictionaries(NAMES, NAMES, max_size=2),
    containers=st.integers(1, 9),
    elapsed_ms=st.integers(1, 10**6),
    source=NAMES,
)


@settings(max_examples=examples(200))
@given(st.lists(RUNS, max_size=6), st.lists(RUNS, max_size=6))
def test_runs_are_written_and_read_as_they_were_each_once(known, new):
    found = merged(known, new)
    assert [identity(run) for run in merged(found, (*new, *known))] == [identity(run) for run in found]
    text = "".join(identity(run).decode() + "\n" for run in found)
    assert runs_in_lines(text, "store") == found
    assert {identity(run) for run in found} == {identity(run) for run in (*known, *new)}


def test_a_feature_that_is_no_number_is_refused():
    with pytest.raises(BadInput, match="line 1"):
        runs_in_lines(json.dumps(LINE).replace("1024.0", "NaN"), "store")


def test_a_name_with_a_separator_of_lines_is_one_line():
    run = KnownRun("a\u2028b", "spark", {}, {}, 2, 5, "s")
    assert runs_in_lines(identity(run).decode() + "\n", "store") == (run,)
