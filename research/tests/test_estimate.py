"""``yarn-research estimate``: anybody's table in, qualities and late ratios out; each fault by its place."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from yarn_research.cli.estimate import command
from yarn_research.placement.learned_times import late, parted, quality
from yarn_research.placement.user_table import read_table
from yarnctl.errors import BadInput
from yarnctl.prediction.bounded_times import RunTable, bounded

OPTIONS = ("--target", "time_s", "--features", "nodes,codec,input_mib")


def written(folder: Path, separator: str = ",", rows: int = 200) -> Path:
    """Write runs whose time is a smooth function of three columns, one of them words."""
    chance = np.random.default_rng(7)
    lines = [separator.join(("nodes", "codec", "input_mib", "time_s"))]
    for _ in range(rows):
        nodes, input_mib = int(chance.integers(1, 20)), int(chance.integers(1, 40)) * 64
        codec = ("lz4", "none", "zstd")[chance.integers(0, 3)]
        time_s = (
            5 + input_mib / nodes * {"lz4": 0.1, "none": 0.2, "zstd": 0.15}[codec] + chance.normal(0, 0.5)
        )
        lines.append(separator.join(map(str, (nodes, codec, input_mib, max(0.1, round(time_s, 3))))))
    path = folder / ("runs.tsv" if separator == "\t" else "runs.csv")
    path.write_text("\n".join(lines) + "\n")
    return path


def asked(path: Path, *more: str) -> dict:
    done = CliRunner().invoke(command, [str(path), *OPTIONS, *more, "--json"], catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return json.loads(done.output)


@pytest.mark.parametrize("separator", [",", "\t"], ids=["commas", "tabs"])
def test_a_table_of_numbers_and_words_is_predicted(tmp_path: Path, separator: str) -> None:
    told = asked(written(tmp_path, separator))
    assert set(told) == {"rows", "r2", "late_ratio"}
    assert told["rows"] == 200
    assert set(told["r2"]) == {"model_tree", "tree", "line"}
    assert list(told["r2"]["tree"]) == ["20", "40", "60", "80"]
    assert told["r2"]["model_tree"]["80"] > max(told["r2"]["tree"]["80"], told["r2"]["line"]["80"])
    assert set(told["late_ratio"]) == {"conformal", "point"}
    assert told["late_ratio"]["conformal"] < 0.15 < told["late_ratio"]["point"]


def test_the_same_seed_gives_the_same_bytes(tmp_path: Path) -> None:
    path = written(tmp_path)
    assert asked(path, "--seed", "3") == asked(path, "--seed", "3") != asked(path, "--seed", "4")


def test_a_share_that_leaves_nothing_to_judge_is_null(tmp_path: Path) -> None:
    told = asked(written(tmp_path, rows=3), "--learn", "50,99")
    assert told["r2"]["line"]["99"] is None


FAULTS = [
    ("nodes,codec,input_mib,time_s\n1,a,1,x\n1,a,1,2\n2,a,1,2", (), "line 2", "time_s is 'x'"),
    ("nodes,codec,input_mib,time_s\n1,a,1,1\n1,a,1,nan\n2,a,1,2", (), "line 3", "time_s is 'nan'"),
    ("nodes,codec,input_mib,time_s\n1,a,1,1\n1,a,1,-2\n2,a,1,2", (), "line 3", "time_s is '-2'"),
    ("nodes,codec,input_mib,time_s\n1,a,1,1\n1,a,1,0\n2,a,1,2", (), "line 3", "time_s is '0'"),
    ("nodes,codec,input_mib,time_s\n1,a,1,1\nnan,a,1,2\n2,a,1,2", (), "line 3", "nodes is not finite"),
    ("nodes,codec,input_mib,time_s\n1,a,1,1\n,a,1,2\n2,a,1,2", (), "line 3", "nodes is empty"),
    ("nodes,codec,time_s\n1,a,1\n1,a,2\n2,a,2", (), "line 1", "column 'input_mib' not found"),
    ("nodes,codec,input_mib,time_s\n1,a,1,1\n1,a,1\n2,a,1,2", (), "line 3", "fewer columns"),
    ("nodes,codec,input_mib,time_s\n1,a,1,1\n1,a,1,2,9\n2,a,1,2", (), "line 3", "more columns"),
    ("nodes,codec,input_mib,time_s\n1,a,1,1\n1,a,1,2", (), "runs.csv", "has 2 rows"),
    ("", (), "runs.csv", "has 0 rows"),
    ("nodes,codec,input_mib,time_s\n1,a,1,1\n1,a,1,2\n1,a,1,2", (), "--split-by", "one configuration"),
    ("nodes,codec,input_mib,time_s\n1,a,1,1\n1,b,1,2\n1,c,1,2", (), "column codec", "another word in each"),
    ("nodes,codec,input_mib,time_s\n1,a,1,1\n1,a,1,2\n2,a,1,2", ("--learn", "0"), "--learn", "not a list of"),
    ("nodes,codec,input_mib,time_s\n1,a,1,1\n1,a,1,2\n2,a,1,2", ("--learn", "x"), "--learn", "not a list of"),
    (
        "nodes,codec,input_mib,time_s\n1,a,1,1\n1,a,1,2\n2,a,1,2",
        ("--features", ","),
        "--features",
        "no column",
    ),
    (
        "nodes,codec,input_mib,time_s\n1,a,1,1\n1,a,1,2\n2,a,1,2",
        ("--features", "time_s"),
        "--features",
        "column to predict",
    ),
]


@pytest.mark.parametrize(("text", "more", "where", "problem"), FAULTS, ids=[row[3] for row in FAULTS])
def test_what_cannot_be_read_is_refused_by_its_place(
    tmp_path: Path, text: str, more: tuple[str, ...], where: str, problem: str
) -> None:
    path = tmp_path / "runs.csv"
    path.write_text(text)
    with pytest.raises(BadInput) as refused:
        command.main([str(path), *OPTIONS, *more], standalone_mode=False)
    assert where in refused.value.where
    assert problem in str(refused.value)


def test_a_file_that_is_not_there_or_no_text_is_refused(tmp_path: Path) -> None:
    (tmp_path / "binary").write_bytes(b"\xff\xfe\x00\x01")
    for name in ("none", "binary"):
        with pytest.raises(BadInput, match=name):
            read_table(tmp_path / name, "a", ["b"])


# --- splits and bounds ------------------------------------------------------------------------------------


def repeated(configurations: int, each: int, seed: int = 1) -> RunTable:
    chance = np.random.default_rng(seed)
    at = np.repeat(np.arange(1.0, configurations + 1), each)
    numbers = np.repeat(np.arange(configurations), each)
    return RunTable(at[:, None], 10 * at * chance.lognormal(0, 0.1, len(at)), numbers)


def test_a_split_by_configuration_parts_no_repetitions() -> None:
    table = repeated(10, 5)
    learned, rest = parted(table, 0.4, 1, "configuration")
    assert len(learned.configurations) == 4
    assert not set(learned.configurations) & set(rest.configurations)
    assert len(learned.duration) + len(rest.duration) == 50
    by_row, _ = parted(table, 0.4, 1, "row")
    assert len(by_row.duration) == 20
    assert len(by_row.configurations) > 4


def test_a_quarter_calibrates_if_it_is_19_else_each_is_left_out_once() -> None:
    assert bounded(repeated(80, 1), 0)[1].certified
    assert bounded(repeated(40, 2), 0)[1].certified  # 40 left out once each
    few = bounded(repeated(12, 3), 0)[1]
    assert not few.certified
    assert few.factor > 1


def test_a_bound_is_exceeded_less_often_than_the_prediction() -> None:
    table = repeated(200, 1)
    found = [late(table, 0.75, seed) for seed in range(20)]
    assert np.mean([each.conformal for each in found]) == pytest.approx(0.05, abs=0.02)
    assert 0.3 < np.mean([each.point for each in found]) < 0.7


def test_what_does_not_vary_has_no_quality() -> None:
    table = RunTable(np.arange(8.0)[:, None], np.full(8, 3.0), np.arange(8))
    assert set(quality(table, 0.5, 1, "row").values()) == {-np.inf}
