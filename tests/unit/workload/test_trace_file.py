"""A trace file is known by its bytes; what is wrong with it is said in one line."""

import gzip

import pytest

from yarnctl.errors import BadInput
from yarnctl.traces import trace_file
from yarnctl.traces.trace_file import read_text, unique_names


def test_gzip_is_known_by_its_first_bytes_not_by_its_name(tmp_path):
    (tmp_path / "plain.gz").write_bytes(b"text")
    (tmp_path / "packed.tsv").write_bytes(gzip.compress(b"text", mtime=0))
    assert read_text(tmp_path / "plain.gz", "w") == read_text(tmp_path / "packed.tsv", "w") == "text"


@pytest.mark.parametrize(
    ("data", "message"),
    [(gzip.compress(b"text" * 100, mtime=0)[:-9], "w: the gzip data is torn"),
     (b"\x1f\x8b", "w: the gzip data is torn"), (b"good\n\xff\xfe", "w:2: not UTF-8 text")],
)  # fmt: skip
def test_torn_and_binary_files_are_bad_input(tmp_path, data, message):
    (tmp_path / "f").write_bytes(data)
    with pytest.raises(BadInput) as caught:
        read_text(tmp_path / "f", "w")
    assert str(caught.value).startswith(message)


def test_gzip_that_holds_too_much_is_refused_before_all_of_it_is_unpacked(tmp_path, monkeypatch):
    monkeypatch.setattr(trace_file, "FILE_MAX_BYTES", 1 << 20)
    (tmp_path / "f").write_bytes(gzip.compress(bytes(1 << 20), mtime=0))
    assert len(read_text(tmp_path / "f", "w")) == 1 << 20
    (tmp_path / "f").write_bytes(
        gzip.compress(bytes(4 << 20), mtime=0)[:-9]
    )  # torn, but that far nothing is read
    with pytest.raises(BadInput, match="w: holds more than"):
        read_text(tmp_path / "f", "w")


def test_a_missing_file_and_a_folder_are_bad_input(tmp_path):
    for path in (tmp_path / "none", tmp_path, tmp_path / "nul\0"):
        with pytest.raises(BadInput, match="cannot be read"):
            read_text(path, "w")


@pytest.mark.parametrize(
    ("names", "given", "changed"),
    [
        (["a", "b"], ["a", "b"], 0),  # nothing to do
        (["a", "a", "a"], ["a", "a~2", "a~3"], 2),  # the first keeps its name
        (["a", "a", "a~2"], ["a", "a~3", "a~2"], 1),  # a made name never takes a given one
    ],
)
def test_repeated_names_become_unique(names, given, changed):
    assert unique_names(names) == (given, changed)
