"""Jobs come back from Parquet as they went in, or not at all."""

import contextlib
import importlib
import os
import string

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from emulator.workload.spec import load
from emulator.workload.synthetic import synthetic
from tests.thoroughness import examples
from yarnctl.errors import BadInput
from yarnctl.traces.job import Job
from yarnctl.traces.parquet import read_parquet, write_parquet
from yarnctl.units import Resources

_MS = st.integers(1, 10**9)
_SIZE = st.builds(Resources, st.integers(1, 2**20), st.integers(1, 64))
_LETTERS = "".join(sorted(set(string.printable) - set(string.whitespace)))


@st.composite
def a_job(draw):
    reduce_ms = tuple(draw(st.lists(_MS, max_size=4)))
    keys = st.lists(st.integers(1, 10**6), min_size=len(reduce_ms), max_size=len(reduce_ms))
    return Job(
        name=draw(st.text(_LETTERS, min_size=1, max_size=8)),
        job_class=draw(st.sampled_from(["production", "research"])), submitted_at_ms=draw(_MS),
        map_ms=tuple(draw(st.lists(_MS, min_size=1, max_size=4))), reduce_ms=reduce_ms,
        reduce_keys=tuple(draw(keys)), shuffle_ms=draw(_MS), replay_ms=draw(_MS),
        deadline_at_ms=draw(st.none() | _MS), user=draw(st.text(_LETTERS, min_size=1, max_size=8)),
        queue=draw(st.none() | st.text(_LETTERS, min_size=1, max_size=8)), am_size=draw(_SIZE),
        map_size=draw(_SIZE), reduce_size=draw(_SIZE),
    )  # fmt: skip


@settings(max_examples=examples(30))
@given(jobs=st.lists(a_job(), min_size=1, max_size=4))
def test_jobs_come_back_identical(tmp_path_factory, jobs):
    path = tmp_path_factory.mktemp("parquet") / "jobs.parquet"
    write_parquet(jobs, path)
    assert read_parquet(path) == tuple(jobs)
    assert [entry.name for entry in path.parent.iterdir()] == ["jobs.parquet"]


@pytest.fixture
def stored(tmp_path):
    path = tmp_path / "jobs.parquet"
    write_parquet(synthetic("research-xl", "research"), path)
    return path


def test_the_class_is_the_callers(stored):
    (job,) = load(f"parquet:{stored}", "production").jobs
    assert (job.job_class, len(job.reduce_ms)) == ("production", 47)


def test_a_torn_file_is_bad_input_at_every_cut(stored):
    whole = stored.read_bytes()
    for cut in range(0, len(whole), 97):
        stored.write_bytes(whole[:cut])
        with pytest.raises(BadInput, match=r"jobs\.parquet: the Parquet data is torn or foreign"):
            read_parquet(stored)


def test_flipped_bytes_give_the_same_jobs_or_bad_input(stored):
    whole, before = stored.read_bytes(), read_parquet(stored)
    for at in range(4, 1500, 41):
        stored.write_bytes(whole[:at] + bytes([whole[at] ^ 0xFF]) + whole[at + 1 :])
        with contextlib.suppress(BadInput):
            assert read_parquet(stored) == before


def changed(stored, change):
    pq = importlib.import_module("pyarrow.parquet")
    pq.write_table(change(pq.read_table(stored)), stored)


def test_foreign_files_and_other_versions_are_bad_input(stored):
    changed(stored, lambda table: table.replace_schema_metadata({b"yarnctl.jobs.version": b"0"}))
    with pytest.raises(BadInput, match="schema version 0, not 2"):
        read_parquet(stored)
    changed(stored, lambda table: table.select(["name"]))
    with pytest.raises(BadInput, match="not a file of jobs"):
        read_parquet(stored)
    with pytest.raises(BadInput, match="cannot be read: no such file"):
        read_parquet(stored.with_name("none"))


def without_queue(table):
    metadata = {**table.schema.metadata, b"yarnctl.jobs.version": b"1"}
    return table.drop_columns(["queue"]).replace_schema_metadata(metadata)


def test_a_file_without_the_column_of_queues_is_read(stored):
    before = read_parquet(stored)
    changed(stored, without_queue)
    assert read_parquet(stored) == before
    assert {job.queue for job in before} == {None}
    write_parquet(before, stored)  # it counts as a file of jobs, and may be replaced
    assert read_parquet(stored) == before


def test_columns_and_version_must_belong_together(stored):
    changed(stored, lambda table: table.drop_columns(["queue"]))
    with pytest.raises(BadInput, match="columns of another version than 2"):
        read_parquet(stored)


@pytest.mark.parametrize(
    ("column", "values", "message"),
    [("submitted_at_ms", [-1], "field submitted_at_ms, row 1: -1 is not within 0 to"),
     ("submitted_at_ms", [2**62], "field submitted_at_ms, row 1: "),
     ("deadline_at_ms", [-5], "field deadline_at_ms, row 1: -5 is not within"),
     ("deadline_at_ms", [2**62], "field deadline_at_ms, row 1: "),
     ("shuffle_ms", [2**62], "field shuffle_ms, row 1: "), ("replay_ms", [2**62], "field replay_ms, row 1: "),
     ("map_ms", [[5, 2**62]], "field map_ms, row 1: 4611686018427387904 is not within"),
     ("map_ms", [[0]], "field map_ms, row 1: 0 is not within"),
     ("map_ms", [[]], "field map_ms, row 1: the job has no map"),
     ("map_memory_mib", [0], "field map_memory_mib, row 1: 0 is not within"),
     ("am_vcores", [-1], "field am_vcores, row 1: -1 is not within"),
     ("reduce_vcores", [0], "field reduce_vcores, row 1: 0 is not within"),
     ("name", [""], "field name, row 1: empty"),
     ("name", ["a\nb"], "field name, row 1: empty, too long, or with blanks"),
     ("user", ["a\0b"], "field user, row 1: "), ("user", [None], "field user: 1 values are missing"),
     ("queue", ["a b"], "field queue, row 1: empty, too long, or with blanks"),
     ("queue", [""], "field queue, row 1: empty"), ("map_ms", [[5, -2]], "field map_ms, row 1"),
     ("map_ms", [[5, None]], "field map_ms, row 1"), ("map_ms", [None], "field map_ms: 1 values are missing"),
     ("reduce_keys", [[1]], "field reduce_keys, row 1: not one per reduce"),
     ("job_class", ["vip"], "field job_class, row 1: 'vip'")],
)  # fmt: skip
def test_values_no_job_can_have_are_bad_input(stored, column, values, message):
    def change(table):
        pa = importlib.import_module("pyarrow")
        field = table.schema.field(column)
        return table.set_column(table.schema.names.index(column), field, pa.array(values, type=field.type))

    changed(stored, change)
    with pytest.raises(BadInput, match=message):
        read_parquet(stored)


def test_no_rows_are_bad_input(stored):
    write_parquet((), stored)
    with pytest.raises(BadInput, match="holds no jobs"):
        read_parquet(stored)


def test_text_that_is_no_text_is_bad_input(stored):
    def change(table):
        pa = importlib.import_module("pyarrow")
        torn = pa.Array.from_buffers(pa.string(), 1, pa.array([b"\xff"]).buffers())
        return table.set_column(0, table.schema.field("name"), torn)

    changed(stored, change)
    with pytest.raises(BadInput, match="field name: not UTF-8"):
        read_parquet(stored)


def test_only_a_file_of_jobs_is_replaced(stored, tmp_path):
    jobs = read_parquet(stored)
    write_parquet(jobs, stored)
    letter, link, pipe = tmp_path / "letter", tmp_path / "link", tmp_path / "pipe"
    letter.write_text("dear")
    link.symlink_to(stored)
    os.mkfifo(pipe)
    for path in (letter, link, pipe, tmp_path, tmp_path / "a\0b"):
        with pytest.raises(BadInput, match=r"exists and is not a file of jobs|NUL"):
            write_parquet(jobs, path)
    assert letter.read_text() == "dear"
    assert link.is_symlink()
    assert pipe.is_fifo()


def test_a_folder_that_is_not_there_is_bad_input(tmp_path):
    with pytest.raises(BadInput, match="cannot be written") as caught:
        write_parquet((), tmp_path / "none" / "jobs.parquet")
    assert ".part" not in str(caught.value)
