"""What was measured stays: the index sees each file of results that was changed or removed."""

from __future__ import annotations

import json

import pytest

from yarn_research.campaigns import index
from yarn_research.campaigns.campaign import FOLDER, all_of
from yarnctl.errors import BadInput


def test_nothing_that_was_measured_was_changed_removed_or_left_out():
    assert index.entries(), "the index is absent"
    assert index.complaints() == []


@pytest.fixture
def folder(tmp_path):
    """Return a folder of two results that are in its index."""
    for name in ("a.json", "b.json"):
        (tmp_path / name).write_text(json.dumps({"name": name}))
    assert index.add(tmp_path) == ["a.json", "b.json"]
    assert index.complaints(tmp_path) == []
    return tmp_path


def test_a_changed_a_removed_and_a_new_file_are_seen(folder):
    (folder / "a.json").write_text("{}")
    (folder / "b.json").unlink()
    (folder / "c.json").write_text("{}")
    assert [line.partition(":")[0] for line in index.complaints(folder)] == [
        "b.json was removed",
        "a.json was changed",
        "c.json is not in SHA256SUMS",
    ]


def test_nothing_is_added_beside_a_changed_file(folder):
    before = (folder / index.NAME).read_bytes()
    (folder / "a.json").write_text("{}")
    (folder / "c.json").write_text("{}")
    with pytest.raises(BadInput, match=r"a\.json was changed"):
        index.add(folder)
    assert (folder / index.NAME).read_bytes() == before


def test_a_new_file_is_added_and_the_others_stay(folder):
    before = index.entries(folder)
    (folder / "c.json").write_text("{}")
    assert index.add(folder) == ["c.json"]
    assert index.entries(folder).items() > before.items()


def test_every_campaign_says_what_is_not_known():
    for campaign in all_of():
        unknown = " ".join(campaign.unknown)
        for name in ("began", "commit", "uncommitted", "machine", "order", "rounds"):
            assert getattr(campaign, name) is not None or name in unknown, f"{campaign.name}: {name}"
        for run in campaign.runs:
            for name in ("load_before", "load_after"):
                assert run[name] is not None or name in unknown, f"{campaign.name}: {name}"


def test_files_hold_no_path_of_a_machine():
    for path in FOLDER.glob("*.json"):
        assert not any(part in path.read_text() for part in ("/work/", "/home/", "/root/")), path.name
