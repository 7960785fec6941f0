"""Bytes become tasks and milliseconds by one documented rule, the same in every slice."""

import pytest

from yarnctl.errors import BadInput
from yarnctl.traces.swim import HOUR_MS, Hours, TaskModel, jobs_from_swim, parse_swim, slice_hours

MIB, GIB = 2**20, 2**30
MODEL = TaskModel()


def one(name="job0", input_bytes=0, shuffle_bytes=0, output_bytes=0, model=MODEL):
    rows = parse_swim(f"{name}\t7\t7\t{input_bytes}\t{shuffle_bytes}\t{output_bytes}\n", "t")
    (job,), notes = jobs_from_swim(rows, "research", model)
    return job, notes


@pytest.mark.parametrize(
    ("input_bytes", "shuffle_bytes", "maps", "reduces"),
    [
        (0, 0, 1, 0),  # no input still takes one map; no shuffle means map-only
        (1, 1, 1, 1),
        (128 * MIB, GIB, 1, 1),  # a full block, a full GiB
        (128 * MIB + 1, GIB + 1, 2, 2),
        (300 * 128 * MIB, 250 * GIB, 300, 250),  # past one cycle of the length table
        (7_000 * GIB, 8_000 * GIB, 5000, 1000),  # the caps
    ],
)
def test_task_counts(input_bytes, shuffle_bytes, maps, reduces):
    job, _ = one(input_bytes=input_bytes, shuffle_bytes=shuffle_bytes)
    assert (len(job.map_ms), len(job.reduce_ms), len(job.reduce_keys)) == (maps, reduces, reduces)


def test_lengths_lie_between_half_and_all_of_the_longest_above_the_floor():
    job, _ = one(input_bytes=200 * 128 * MIB, shuffle_bytes=200 * GIB)
    longest_map_ms = 128 * MIB * 1000 / MODEL.map_rate
    assert max(job.map_ms) == MODEL.map_fixed_ms + round(longest_map_ms) == 136_218
    assert min(job.map_ms) > MODEL.map_fixed_ms + longest_map_ms / 2
    assert max(job.reduce_ms) == MODEL.reduce_fixed_ms + round(GIB * 1000 / MODEL.reduce_rate) == 768_158
    assert job.map_ms[:100] == job.map_ms[100:]
    assert [
        keys * 80 <= ms < (keys + 1) * 80 for keys, ms in zip(job.reduce_keys, job.reduce_ms, strict=True)
    ]


def test_an_empty_task_takes_its_floor_and_a_map_only_job_replays_nothing():
    job, _ = one(shuffle_bytes=0, output_bytes=GIB)
    assert (job.map_ms, job.reduce_ms, job.replay_ms) == ((2000,), (), 0)


def test_saved_output_is_read_back_no_slower_than_a_tenth_of_the_longest_reduce():
    small, _ = one(shuffle_bytes=GIB, output_bytes=100 * MIB)
    huge, _ = one(shuffle_bytes=GIB, output_bytes=500 * GIB)
    assert small.replay_ms == round(100 * MIB / 50_000)
    assert huge.replay_ms == round(GIB / 14_000)


def test_saved_output_is_divided_among_the_reduces():
    model = TaskModel(replay_rate=1)
    assert one(shuffle_bytes=3 * GIB, output_bytes=4, model=model)[0].replay_ms == 1333


def test_the_cap_is_told():
    _, notes = one(input_bytes=7_000 * GIB)
    assert notes == ["1 jobs were cut to 5000 maps"]


def test_the_same_row_gives_the_same_tasks_in_every_slice():
    lines = [f"job{i}\t{i * 1800}\t1\t{i * GIB}\t{i * GIB}\t0\n" for i in range(6)]
    rows = parse_swim("".join(lines), "t")
    whole, _ = jobs_from_swim(rows, "production", MODEL)
    part, _ = jobs_from_swim(slice_hours(rows, Hours(HOUR_MS, 2 * HOUR_MS), "t"), "production", MODEL)
    assert [job.name for job in part] == ["job2", "job3"]
    assert [(job.map_ms, job.reduce_ms) for job in part] == [
        (job.map_ms, job.reduce_ms) for job in whole[2:4]
    ]


def test_a_rate_of_zero_is_bad_input():
    with pytest.raises(BadInput, match="task model, field map_rate: must be at least 1"):
        TaskModel(map_rate=0)
