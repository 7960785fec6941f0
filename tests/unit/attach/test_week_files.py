"""``yarnctl history import FILE``: each kind of file is read, or named and refused with what to do."""

from __future__ import annotations

import gzip
import json
import re
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from tests import shared_cases
from tests.unit.attach.week_samples import JHIST_WHOLE, JHIST_WRAPPED, READ, REFUSED, SPARK_ENDED, SWF_ROW, T0
from yarnctl.attach.importing import published_traces
from yarnctl.attach.importing.file_import import KINDS, files_below, read_file
from yarnctl.attach.importing.reading import UnreadableJob
from yarnctl.cli.history import import_command
from yarnctl.errors import BadInput
from yarnctl.traces.week.week_folder import read_week
from yarnctl.traces.week.week_rows import ImportedJob

JOBS = shared_cases.FOLDER / "jobs"
CASES = {
    "h01-sls-two-jobs.json": (2, 5, 0),
    "h02-rm-apps.json": (2, 0, 0),
    "h03-five-jobs.swf": (5, 417, 0),
    "h04-swim-nine-columns.tsv": (3, 170, 0),
    "h05-alibaba2017-batch_task.csv": (2, 178, 0),
    "h06-tracebuilder-unreadable-job.json": (2, 5, 1),
}
"""Jobs, containers and jobs skipped of the public files."""
PUBLIC = sorted(path.name for path in JOBS.glob("*"))


def read(path: Path) -> tuple[list[ImportedJob], list[UnreadableJob]]:
    found = list(read_file(path))
    return [one for one in found if isinstance(one, ImportedJob)], [
        one for one in found if isinstance(one, UnreadableJob)
    ]


def shape(path: Path) -> tuple[int, int, int]:
    jobs, skipped = read(path)
    containers = [one for job in jobs for one in job.containers if one.kind != "master"]
    return len(jobs), len(containers), len(skipped)


def imported(*words: str | Path) -> Result:
    return CliRunner().invoke(import_command, [str(word) for word in words])


@pytest.mark.parametrize("name", CASES)
def test_public_files_are_read(name: str) -> None:
    path = JOBS / name
    assert path.is_file(), f"../shared/cases/jobs/{name} is missing beside the project"
    assert shape(path) == CASES[name]


@pytest.mark.parametrize("name", [name for name in PUBLIC if name not in CASES])
def test_public_files_without_jobs_are_refused_by_their_first_bytes(name: str) -> None:
    with pytest.raises(BadInput, match="not recognised by its first bytes"):
        read(JOBS / name)


@pytest.mark.parametrize("name", READ)
def test_file_is_read(tmp_path: Path, name: str) -> None:
    sample = READ[name]
    path = tmp_path / "file.any"
    path.write_text(sample.text)
    assert shape(path) == (sample.jobs, sample.containers, sample.skipped)
    packed = tmp_path / "file.gz"
    packed.write_bytes(gzip.compress(sample.text.encode()))
    assert shape(packed) == shape(path)
    for job in read(path)[0]:
        assert job.job.ended_at_ms is not None
        assert 0 <= job.job.submitted_at_ms <= job.job.ended_at_ms
        for one in job.containers:
            assert one.job == job.job.job
            assert 0 <= one.started_at_ms <= one.ended_at_ms


@pytest.mark.parametrize("name", REFUSED)
def test_file_of_another_kind_is_refused_with_what_to_do(tmp_path: Path, name: str) -> None:
    data, said = REFUSED[name]
    path = tmp_path / "file"
    path.write_bytes(data)
    with pytest.raises(BadInput) as caught:
        read(path)
    assert said in str(caught.value)
    assert caught.value.remedy


COLUMNS = {"SWIM trace": (8, 9), "Alibaba batch_task.csv": (8, 9)}
"""Kinds of two forms each; Alibaba's are those of 2017 and 2018."""


def kind_and_columns(text: str) -> tuple[str, int]:
    """Return the kind of a sample, and its columns if the kind has several forms."""
    kind = next(kind.name for kind in KINDS if kind.pattern.match(text[:4096]))
    return kind, len(re.split("[\t,]", text.partition("\n")[0])) if kind in COLUMNS else 0


def test_every_kind_and_form_has_three_files_of_its_own() -> None:
    counts = Counter(kind_and_columns(sample.text) for sample in READ.values())
    needed = [(kind.name, columns) for kind in KINDS for columns in COLUMNS.get(kind.name, (0,))]
    assert not {each: counts[each] for each in needed if counts[each] < 3}


def test_jhist_has_attempts_sizes_and_ends(tmp_path: Path) -> None:
    (tmp_path / "a.jhist").write_text(JHIST_WHOLE)
    ((job,), _) = read(tmp_path / "a.jhist")
    row = job.job
    assert (row.job, row.queue, row.user, row.name, row.state) == (
        "application_1_0001", "etl", "alice", "daily", "SUCCEEDED",
    )  # fmt: skip
    assert (row.submitted_at_ms, row.started_at_ms, row.ended_at_ms) == (T0, T0 + 4000, T0 + 42_000)
    rows = [
        (one.kind, one.span_ms, one.state, one.ended_by, one.memory_mib, one.vcores) for one in job.containers
    ]
    assert rows == [
        ("master", 40_000, "SUCCEEDED", "", None, None),
        ("map", 4000, "KILLED", "preempted", 2048, 2),
        ("map", 10_000, "SUCCEEDED", "", 2048, 2),
        ("reduce", 28_000, "SUCCEEDED", "", None, None),
    ]
    assert job.containers[3].merged_at_ms == T0 + 25_000
    assert [(task.state, task.work_ms) for task in job.tasks] == [("SUCCEEDED", 10_000)]


def test_jhist_of_a_newer_version_wraps_texts(tmp_path: Path) -> None:
    (tmp_path / "a.jhist").write_text(JHIST_WRAPPED)
    ((job,), _) = read(tmp_path / "a.jhist")
    assert (job.job.queue, job.job.state) == ("etl", "FAILED")
    assert [one.ended_by for one in job.containers] == ["failed", "killed"]


def test_spark_log_has_executors_and_stages(tmp_path: Path) -> None:
    (tmp_path / "log").write_text(SPARK_ENDED)
    ((job,), _) = read(tmp_path / "log")
    assert (job.job.queue, job.job.user, job.job.ended_at_ms) == ("adhoc", "bob", T0 + 30_000)
    rows = [(one.node, one.span_ms, one.memory_mib, one.vcores, one.ended_by) for one in job.containers]
    assert rows == [("n7", 15_000, 2432, 2, "preempted"), ("n8", 24_000, 2432, 2, "")]
    assert [(task.count, task.work_ms) for task in job.tasks] == [(1, 2000)]


def rows_of(name: str, tmp_path: Path) -> list[Any]:
    path = tmp_path / "file"
    path.write_text(READ[name].text)
    return [one.job for one in read(path)[0]]


def test_summary_line_has_escaped_commas_and_sums(tmp_path: Path) -> None:
    (row,) = rows_of("log of 2017", tmp_path)
    assert (row.name, row.held_mib_s, row.held_vcore_s, row.preempted_containers) == (
        "select count(*), sum(a)", 95_465, 54, 2,
    )  # fmt: skip
    assert (row.kind, row.detail, row.ended_at_ms - row.submitted_at_ms) == ("MAPREDUCE", "sums", 60_000)


@pytest.mark.parametrize("end", ["\n", "\r\n"])
@pytest.mark.parametrize(
    ("kind", "name"), [("jhist whole", "daily"), ("spark ended", "scan"), ("log of 2017", "select")]
)
def test_name_with_other_ends_of_lines_does_not_tear_its_line(
    tmp_path: Path, kind: str, name: str, end: str
) -> None:
    path = tmp_path / "file"
    texts = {"jhist whole": JHIST_WHOLE, "spark ended": SPARK_ENDED, "log of 2017": READ["log of 2017"].text}
    odd = f"{name}\u2028\u2029\u0085 "
    path.write_bytes(texts[kind].replace(name, odd, 1).replace("\n", end).encode())
    ((job,), skipped) = read(path)
    assert (job.job.name.startswith(odd), skipped) == (True, [])
    assert job.job.kind in ("MAPREDUCE", "SPARK")


@pytest.mark.parametrize("odd", ["\u2028", "\u0085", "\f", "\v"])
@pytest.mark.parametrize(
    ("kind", "name"), [("swf with a header", "; "), ("alibaba 2018", READ["alibaba 2018"].text.split(",")[2])]
)
def test_line_of_a_table_ends_at_its_newline_only(tmp_path: Path, kind: str, name: str, odd: str) -> None:
    sample = READ[kind]
    path = tmp_path / "file"
    path.write_bytes(sample.text.replace(name, f"{name}{odd}", 1).encode() + b"\n\n")
    assert shape(path)[1:] == (sample.containers, sample.skipped)


def test_swf_waits_sizes_and_origin(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_text(READ["swf with a header"].text)
    ((job,), _) = read(path)
    assert job.job.submitted_at_ms == 1_700_000_005_000
    assert job.containers[0].started_at_ms - job.job.submitted_at_ms == 7000
    assert (job.containers[0].memory_mib, job.job.user, job.job.queue, job.job.name) == (
        2,
        "user3",
        "queue2",
        "program7",
    )


def test_import_of_files_skips_and_counts(tmp_path: Path) -> None:
    folder = tmp_path / "files"
    folder.mkdir()
    (folder / "a.jhist").write_text(JHIST_WHOLE)
    (folder / "a_conf.xml").write_text("<?xml version='1.0'?><configuration/>")
    (folder / ".a.jhist.crc").write_bytes(b"crc")
    (folder / "b.jhist").write_text(READ["jhist torn"].text)
    (folder / "c.txt").write_text("hello\n")
    (folder / "d").write_text(SPARK_ENDED)
    result = imported(folder, "--out", tmp_path / "week", "-o", "json")
    assert result.exit_code == 0, result.output
    found = json.loads(result.stdout)
    assert (found["imported"], found["skipped"], found["requests"]) == (2, 2, 0)
    assert any("b.jhist: line" in problem for problem in found["problems"])
    assert any("c.txt: is not recognised" in problem for problem in found["problems"])
    assert {one.job.source for one in read_week(tmp_path / "week")} == {"jhist", "spark-event-log"}
    again = json.loads(imported(folder, "--out", tmp_path / "week", "-o", "json").stdout)
    assert (again["imported"], again["known_before"]) == (0, 2)


def sls(job: str, start_at_ms: int) -> str:
    return json.dumps({"job.start.ms": start_at_ms, "job.id": job, "job.tasks": []})


DEEP = "[" * 200_000
ALIBABA_ROW = "1,9,7,t1,3,Terminated,50,0.1\n"
HOSTILE = {
    "an instant beyond the column": (sls("far", 2**62), "<= 99999999999999"),
    "an instant beyond 64 bits": (sls("far", 10**40), "can't serialize ints"),
    "an instant before 1970": (sls("early", -5), ">= 0"),
    "a text that is not Unicode": (sls("\ud800", 1), "surrogates not allowed"),
    "a deep line of a jhist": (JHIST_WHOLE + '{"type":"X","a":' + DEEP, "line 15: max"),
    "a deep line of a Spark log": (SPARK_ENDED + f'{{"Event":"X","a":{DEEP}\n{{}}\n', "is torn"),
    "a number that has no end": (ALIBABA_ROW + "1,9,7,t1,3,Terminated,inf,0.1\n", "a:2: not 8 columns"),
    "a size that is no number": (ALIBABA_ROW + "1,9,7,t1,3,Terminated,x,0.1\n", "a:2: not 8 columns"),
    "a field without an end": (ALIBABA_ROW + '"' + "x" * 200_000, "field larger than field limit"),
    "a start of thousands of digits": (f"; UnixStartTime: {'9' * 5000}\n1\n", "a:2: not 18 numbers"),
}
"""Files, and what their problem says."""


@pytest.mark.parametrize("name", HOSTILE)
@pytest.mark.parametrize("options", [(), ("--anonymous",)], ids=["", "anonymous"])
def test_row_that_cannot_be_stored_is_skipped_and_others_are_kept(
    tmp_path: Path, name: str, options: tuple[str, ...]
) -> None:
    text, said = HOSTILE[name]
    folder = tmp_path / "files"
    folder.mkdir()
    (folder / "a").write_text(text)
    (folder / "b.jhist").write_text(JHIST_WHOLE)
    result = imported(folder, "--out", tmp_path / "week", "-o", "json", *options)
    assert result.exit_code == 0, result.exception
    (problem,) = json.loads(result.stdout)["problems"]
    assert said in problem
    assert "application_1_0001" in {one.job.job for one in read_week(tmp_path / "week")}


def sls_tasks(*counts: int) -> str:
    return json.dumps({"job.start.ms": 1, "job.tasks": [{"count": count} for count in counts]})


def dyno_requests(*counts: int) -> str:
    return json.dumps({"appId": "a", "resourceRequestSpecs": [{"numInstances": count} for count in counts]})


TOO_MANY = {
    "SLS, one task": sls_tasks(10**9),
    "SLS, all tasks": sls_tasks(3, 4, 4),
    "SLS, a number below 0": sls_tasks(20, -10),
    "DynoYARN, one request": dyno_requests(10**9),
    "DynoYARN, all requests": dyno_requests(3, 4, 4),
    "SWF": SWF_ROW.format(1, 0, 1, 9, 11, 11, 9, 1),
    "Alibaba, one task": ALIBABA_ROW.replace(",3,", ",11,"),
}


@pytest.mark.parametrize("name", TOO_MANY)
def test_job_with_too_many_containers_is_skipped(
    tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(published_traces, "CONTAINERS_MAX", 10)
    monkeypatch.setattr(published_traces, "_alike", lambda *_, **__: pytest.fail("containers were made"))
    (tmp_path / "file").write_text(TOO_MANY[name])
    assert shape(tmp_path / "file") == (0, 0, 1)


def test_alibaba_job_takes_tasks_up_to_the_most_containers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(published_traces, "CONTAINERS_MAX", 10)
    (tmp_path / "file").write_text(ALIBABA_ROW * 4)
    assert shape(tmp_path / "file") == (1, 9, 1)


@pytest.mark.parametrize(
    "name",
    ["sls a job a line", "dynoyarn average", "swf with a header", "alibaba 2018", "swim of six columns"],
)
def test_anonymous_replaces_ids_that_yarn_did_not_give(tmp_path: Path, name: str) -> None:
    path, week = tmp_path / "bank-of-x.trace", tmp_path / "week"
    path.write_text(READ[name].text)
    plain = {one.job.job for one in read(path)[0]}
    words = (path, "--out", week, "--anonymous", "-o", "json")
    assert json.loads(imported(*words).stdout)["imported"] == len(plain)
    jobs = read_week(week)
    ids = {one.job.job for one in jobs}
    assert len(ids) == len(plain)
    assert all(each.startswith("id-") for each in ids)
    assert sum(len(one.containers) for one in jobs) == sum(len(one.containers) for one in read(path)[0])
    assert not [file for file in week.rglob("*.parquet") if b"bank-of-x" in file.read_bytes()]
    again = json.loads(imported(*words).stdout)
    assert (again["imported"], again["known_before"]) == (0, len(plain))
    assert len(read_week(week)) == len(plain)


def test_import_of_one_file_that_is_not_read_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "x").write_text("hello\n")
    result = imported(tmp_path / "x", "--out", tmp_path / "week")
    assert isinstance(result.exception, BadInput)
    result = imported(tmp_path / "none", "--out", tmp_path / "week")
    assert isinstance(result.exception, BadInput)
    assert "No such file" in str(result.exception)


@pytest.mark.parametrize("option", ["--rm", "--history", "--spark-history"])
def test_servers_and_files_exclude_each_other(tmp_path: Path, option: str) -> None:
    (tmp_path / "x").write_text(JHIST_WHOLE)
    result = imported(tmp_path / "x", "--out", tmp_path / "week", option, "http://127.0.0.1:1")
    assert isinstance(result.exception, BadInput)
    assert str(result.exception).startswith(option)


def test_files_below_a_folder_are_in_order_without_hidden_ones(tmp_path: Path) -> None:
    for name in ("b/2", "b/_SUCCESS", "a/1", ".hidden"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    assert [path.name for path in files_below(tmp_path)] == ["1", "2"]
