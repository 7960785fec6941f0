"""SWIM rows are taken as they stand, or refused by file, line and field."""

import gzip

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.thoroughness import examples
from yarnctl.errors import BadInput
from yarnctl.traces.swim import HOUR_MS, Hours, SwimRows, parse_swim, read_swim, slice_hours

TRACE = "job0\t49\t49\t740773\t2339561\t627471\njob1\t3600\t3551\t0\t0\t5\n"
_FIELDS = ("names", "submitted_at_ms", "gap_s", "input_bytes", "shuffle_bytes", "output_bytes")


def columns(rows):
    return [list(getattr(rows, field)) for field in _FIELDS]


def test_the_columns_are_those_of_the_file_plain_gzip_or_with_carriage_returns(tmp_path):
    (tmp_path / "a").write_text(TRACE)
    (tmp_path / "b").write_bytes(gzip.compress(TRACE.replace("\n", "\r\n").encode()))
    expected = [["job0", "job1"], [49_000, 3_600_000], [49, 3551], [740773, 0], [2339561, 0], [627471, 5]]
    assert columns(read_swim(tmp_path / "a")) == columns(read_swim(tmp_path / "b")) == expected


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("job1\t60\t11\t5", "t:2: field input_bytes: the row is torn, 4 columns instead of 6"),
        ("job1\t60\t11\t5\t0\t0\t0", "t:2: field output_bytes: the row is torn, 7 columns"),
        ("", "t:2: field job_id: the row is torn, 1 columns"),
        ("job1\t60\t11\t-5\t0\t0", "t:2: field input_bytes: -5 is negative"),
        ("job1\t-60\t11\t5\t0\t0", "t:2: field submitted_at_s: -60 is negative"),
        ("job1\t60\t11\t5\t1.5\t0", "t:2: field shuffle_bytes: '1.5' is not an integer"),
        ("job1\t60\t11\t5\t\t0", "t:2: field shuffle_bytes: '' is not an integer"),
        ("job1\t60\t11\t5\t1_0\t0", "t:2: field shuffle_bytes: '1_0' is not an integer"),
        ("job1\t60\t11\t5\t0\t1000000000000000", "t:2: field output_bytes: 1000000000000000 is not below"),
        ("\t60\t11\t5\t0\t0", "t:2: field job_id: empty"),
    ],
)
def test_a_bad_row_is_refused_by_file_line_and_field(line, message):
    with pytest.raises(BadInput) as caught:
        parse_swim(f"job0\t49\t49\t1\t2\t3\n{line}\njob2\t70\t1\t1\t1\t1\n", "t")
    assert str(caught.value).startswith(message)


def test_an_empty_trace_is_bad_input():
    with pytest.raises(BadInput, match="t: the trace has no rows"):
        parse_swim("", "t")


def test_rows_out_of_order_are_sorted_stably_and_repeated_ids_get_names():
    rows = parse_swim("b\t9\t0\t1\t0\t0\na\t5\t0\t2\t0\t0\na\t5\t0\t2\t0\t0\n", "t")
    assert rows.names == ["a", "a~2", "b"]
    assert rows.submitted_at_ms.tolist() == [5000, 5000, 9000]
    assert (rows.repeated_names, rows.out_of_order) == (1, 1)


def test_a_slice_is_half_open_and_starts_at_zero():
    rows = parse_swim(
        "a\t3599\t0\t1\t0\t0\nb\t3600\t0\t1\t0\t0\nc\t7199\t0\t1\t0\t0\nd\t7200\t0\t1\t0\t0\n", "t"
    )
    hour = slice_hours(rows, Hours(HOUR_MS, 2 * HOUR_MS), "t")
    assert (hour.names, hour.submitted_at_ms.tolist()) == (["b", "c"], [0, 3_599_000])
    half = slice_hours(rows, Hours(HOUR_MS // 2, HOUR_MS), "t")
    assert (half.names, half.submitted_at_ms.tolist()) == (["a"], [1_799_000])
    with pytest.raises(BadInput, match=r"no job is submitted in these hours; the trace ends at hour 2\.00"):
        slice_hours(rows, Hours(5 * HOUR_MS, 6 * HOUR_MS), "t")


_SIZE = st.integers(0, 10**15 - 1)
_NAME = st.from_regex(r"[a-zA-Z0-9_.é]{1,12}", fullmatch=True)
_ROW = st.tuples(st.integers(0, 10**6), st.integers(-5, 10**6), _SIZE, _SIZE, _SIZE)


def format_swim(rows: SwimRows) -> str:
    """Print rows as SWIM text (the inverse of ``parse_swim`` for rows in order, whole seconds)."""
    columns = zip(
        rows.names, (rows.submitted_at_ms // 1000).tolist(), rows.gap_s.tolist(), rows.input_bytes.tolist(),
        rows.shuffle_bytes.tolist(), rows.output_bytes.tolist(), strict=True,
    )  # fmt: skip
    return "".join("\t".join(map(str, row)) + "\n" for row in columns)


@settings(max_examples=examples(100))
@given(names=st.lists(_NAME, min_size=1, max_size=8, unique=True), data=st.data())
def test_what_is_printed_is_parsed_back(names, data):
    numbers = sorted(
        data.draw(st.lists(_ROW, min_size=len(names), max_size=len(names))), key=lambda row: row[0]
    )
    text = "".join("\t".join(map(str, (name, *row))) + "\n" for name, row in zip(names, numbers, strict=True))
    rows = parse_swim(text, "t")
    assert format_swim(rows) == text
    assert columns(parse_swim(format_swim(rows), "t")) == columns(rows)


_CELL = st.one_of(
    st.text(max_size=6), st.integers(-9, 10**20).map(str), st.sampled_from(["", "1", "1e3", "٣"])
)
_LINE = st.lists(_CELL, max_size=8).map("\t".join)


@settings(max_examples=examples(200))
@given(lines=st.lists(_LINE, max_size=4))
def test_garbage_gives_rows_or_bad_input_and_nothing_else(lines):
    text = "\n".join(lines)
    try:
        rows = parse_swim(text, "t")
    except BadInput as error:
        message = str(error)
    else:
        message = "t"
        assert rows.submitted_at_ms.min() >= 0
    assert message.startswith("t")
    assert "\n" not in message


def test_a_submission_after_more_than_a_year_is_refused_by_its_line():
    late = 366 * 86_400
    assert parse_swim(f"a\t{late}\t0\t1\t1\t1\n", "t").names == ["a"]
    text = f"a\t0\t0\t1\t1\t1\nb\t{late + 1}\t0\t1\t1\t1\nc\t5\t0\t1\t1\t1\n"
    with pytest.raises(BadInput, match="t:2: field submitted_at_s: 31622401 is more than 366 days after"):
        parse_swim(text, "t")
