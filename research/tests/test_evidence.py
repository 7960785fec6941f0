"""The index names every file once, intervals name their coverage, and the page is up to date."""

from __future__ import annotations

from collections import Counter

from yarn_research.campaigns.campaign import FOLDER
from yarn_research.campaigns.provenance import ROOT
from yarn_research.evidence import PAGE, checks, newest, page, records


def test_every_file_belongs_to_one_record():
    named = Counter(name for record in records() for name in record.files)
    there = {path.relative_to(FOLDER).with_suffix("").as_posix() for path in FOLDER.rglob("*.json")}
    assert set(named) == there
    assert {name for name, count in named.items() if count > 1} == set()


def test_intervals_name_their_coverage():
    assert [record.topic for record in records() if record.interval and "cover" not in record.interval] == []


def test_checks_name_tests_that_exist():
    assert [name for check in checks() for name in check.tests if not (ROOT / name).exists()] == []


def test_newest_keeps_the_last_record_of_a_topic():
    found = records()
    assert [record.topic for record in newest(found)] == list(dict.fromkeys(each.topic for each in found))
    study = [each for each in found if each.topic == "Study on a real Hadoop"]
    assert study[-1] in newest(found)
    assert study[0] not in newest(found)


def test_page_is_up_to_date_and_short():
    text = PAGE.read_text(encoding="utf-8")
    assert text == page(), "run `python -m yarn_research.evidence`"
    assert len(text.splitlines()) <= 120


def test_records_claim_nothing_for_today():
    assert [record.topic for record in records() if " holds" in record.was or " hold " in record.was] == []
