"""The filter ``queue`` of lists: every spelling of a leaf queue, and the ambiguous one refused."""

from __future__ import annotations

import pytest

from yarnctl.service.answers.error_body import ApiProblem
from yarnctl.service.answers.paging import ApplicationsQuery, CheckpointsQuery
from yarnctl.service.routes.lists import with_queue

PATHS = ("root.prod.etl", "root.prod.default", "root.dev.default")


@pytest.mark.parametrize(
    ("name", "path"),
    [("root.prod.etl", "root.prod.etl"), ("etl", "root.prod.etl"), ("dev.default", "root.dev.default"),
     ("sales", "sales"), (None, None)],
)  # fmt: skip
def test_with_queue_has_the_path_of_a_name(name: str | None, path: str | None) -> None:
    assert with_queue(ApplicationsQuery(queue=name), PATHS).queue == path


def test_with_queue_refuses_an_ambiguous_name_with_the_paths() -> None:
    with pytest.raises(ApiProblem, match=r"root\.prod\.default, root\.dev\.default"):
        with_queue(ApplicationsQuery(queue="default"), PATHS)


def test_with_queue_leaves_a_list_without_the_filter_alone() -> None:
    asked = CheckpointsQuery()
    assert with_queue(asked, PATHS) is asked
