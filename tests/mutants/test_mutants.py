"""The driver of mutants, on a planted module: what is known to be noticed is killed, the rest survives."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.mutants.__main__ import main
from tests.mutants.population import Mutant, mutants_of, population, sample
from tests.mutants.results import wilson

THING = '''"""A planted module."""

LIMIT = 10


def clipped(value: int) -> int:
    """Return a value, at most LIMIT."""
    if value > LIMIT:
        return LIMIT
    return value


def counted(rows: list[int]) -> int:
    """Count what is not 0."""
    found = 0
    while rows and found < 99:
        if rows.pop():
            found += 1
    return found


def unseen(first: bool, second: bool) -> bool:
    """Nobody tests this."""
    return first and second
'''
TEST = """from thing import clipped, counted


def test_clipped():
    assert clipped(11) == 10
    assert clipped(3) == 3


def test_counted():
    assert counted([1, 0, 2]) == 2
"""


@pytest.fixture
def planted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "thing.py").write_text(THING)
    (tmp_path / "test_thing.py").write_text(TEST)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def outcomes(folder: Path, capsys: pytest.CaptureFixture[str], *more: str) -> tuple[int, dict[str, str]]:
    """Run the driver; return its exit status, and the outcome of each mutant by function and change."""
    arguments = ["--target", "thing.py", "--tests", "test_thing.py", "--count", "1000", "--workers", "1"]
    status = main([*arguments, "--results", str(folder / "results.jsonl"), "--json", *more])
    told = json.loads(capsys.readouterr().out)
    assert told["tried"] == told["killed"] + told["survived"]
    rows = [(row["mutant"], "survived") for row in told["survivors"]]
    rows += [(row["mutant"], f"killed by {row['by']}") for row in told["killed_mutants"]]
    return status, {"::".join(name.split("::")[1:4]): outcome for name, outcome in rows}


def test_known_mutants_are_killed_or_survive(planted: Path, capsys: pytest.CaptureFixture[str]) -> None:
    status, found = outcomes(planted, capsys)
    assert found["clipped::comparison::Gt_LtE"] == "killed by test_thing.py::test_clipped"
    assert found["clipped::dropped::guard"] == "killed by test_thing.py::test_clipped"
    assert found["clipped::comparison::Gt_GtE"] == "survived"  # 10 gives 10 either way
    assert found["counted::dropped::augassign"].startswith("killed")
    assert found["counted::dropped::operand 1"] == "killed by test_thing.py::test_counted"  # pop from nothing
    assert found["module::number::NumberReplacer+1"].startswith("killed")  # runs at import
    assert found["unseen::boolean::AndWithOr"] == "survived"  # no test executes it
    assert status == 1  # survivors without a reason
    assert (planted / "thing.py").read_text() == THING


def test_a_mutant_that_never_ends_is_killed_by_its_processor_time(
    planted: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tests.mutants.trying.LEAST_CPU_S", 1)
    endless = THING.replace("rows.pop()", "not rows.append(rows.pop())")
    (planted / "thing.py").write_text(endless.replace("found < 99", "found < 1"))
    (planted / "test_thing.py").write_text(TEST.replace("== 2", "== 1"))
    _, found = outcomes(planted, capsys, "--only", "::operand 2::while")
    assert found == {"counted::dropped::operand 2": "killed by time or memory"}


def test_what_runs_at_import_is_tried_on_every_test(
    planted: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A default is evaluated by the import, which happens to be in another test than the one that notices."""
    (planted / "thing.py").write_text(
        "def padded(text: str, width: int = 3) -> str:\n    return text.rjust(width)\n"
    )
    first = "def test_first():\n    import thing\n"
    (planted / "test_thing.py").write_text(first)
    (planted / "test_zeal.py").write_text(f'{first}    assert thing.padded("a") == "  a"\n')
    _, found = outcomes(planted, capsys, "--tests", "test_thing.py", "test_zeal.py")
    assert found["padded::number::NumberReplacer+1"] == "killed by test_zeal.py::test_first"


def test_it_goes_on_from_its_results(planted: Path, capsys: pytest.CaptureFixture[str]) -> None:
    first = outcomes(planted, capsys)
    lines = (planted / "results.jsonl").read_text().splitlines()
    (planted / "results.jsonl").write_text("\n".join(lines[:4]) + "\n")
    again = ["--target", "thing.py", "--tests", "test_thing.py", "--results", "results.jsonl"]
    main([*again, "--count", "1000"])
    assert f"{len(lines) - 1} mutants, 3 known" in capsys.readouterr().err
    assert outcomes(planted, capsys) == first
    (planted / "test_thing.py").write_text(TEST + "    assert clipped(10) == 10\n")
    main([*again, "--count", "1"])
    assert " 0 known" in capsys.readouterr().err  # other tests: nothing is known any more


def test_tests_that_fail_without_a_mutant_tell_nothing(planted: Path) -> None:
    (planted / "test_thing.py").write_text(TEST + "    assert False\n")
    with pytest.raises(Exception, match="do not pass without a mutant"):
        main(["--target", "thing.py", "--tests", "test_thing.py", "--results", "results.jsonl"])


# --- the population ---------------------------------------------------------------------------


def names(mutants: list[Mutant]) -> list[str]:
    return [mutant.identity for mutant in mutants]


def test_a_name_does_not_depend_on_the_number_of_its_line(planted: Path) -> None:
    before = names(mutants_of(planted, planted / "thing.py"))
    (planted / "thing.py").write_text(THING.replace("LIMIT = 10", "\n\n\nLIMIT = 10"))
    assert names(mutants_of(planted, planted / "thing.py")) == before
    assert len(set(before)) == len(before)


def test_every_mutant_differs_compiles_and_keeps_the_lines(planted: Path) -> None:
    for mutant in mutants_of(planted, planted / "thing.py"):
        source = mutant.make()
        assert source is not None
        assert source != THING
        assert len(source.splitlines()) == len(THING.splitlines())


def test_the_sample_is_of_the_seed_and_stratified(planted: Path) -> None:
    everything = population(planted, "thing.py")
    assert sample(everything, 8, 1) == sample(everything, 8, 1)
    assert names(sample(everything, 8, 1)) != names(sample(everything, 8, 2))
    assert len(set(names(sample(everything, 8, 1)))) == 8
    kinds = {mutant.kind for mutant in everything}
    for seed in range(20):
        drawn = sample(everything, len(everything) // 2 + 1, seed)
        assert {mutant.kind for mutant in drawn} >= {"dropped", "comparison", "number"}
    assert kinds >= {"boolean", "comparison", "dropped", "number"}


def test_annotations_and_names_for_export_are_left_alone(planted: Path) -> None:
    (planted / "thing.py").write_text(
        '__all__ = ["a", "b"]\n\n\ndef f(x: "int" = 1) -> tuple[1, 2]:\n    return x\n'
    )
    assert {mutant.change for mutant in mutants_of(planted, planted / "thing.py")} == {
        "NumberReplacer+1",
        "NumberReplacer-1",
        "return",
    }


@pytest.mark.parametrize(
    ("killed", "count", "low", "high"),
    [
        (38, 65, 46.3, 69.6),  # 58 %
        (255, 300, 80.5, 88.6),  # 85 %
        (0, 10, 0.0, 27.8),
        (10, 10, 72.2, 100.0),
    ],
)
def test_wilsons_interval(killed: int, count: int, low: float, high: float) -> None:
    found = wilson(killed, count)
    assert (round(100 * found[0], 1), round(100 * found[1], 1)) == (low, high)
