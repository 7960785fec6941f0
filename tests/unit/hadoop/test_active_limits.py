"""The limits of active users: what a ResourceManager 3.4.2 showed once its preemption policy had run."""

from __future__ import annotations

import pytest

from yarnctl.deciding.model import QueueView
from yarnctl.hadoop.wire import yarn
from yarnctl.hadoop.wire.active_limits import active_limits
from yarnctl.units import Resources

TOTAL, LEAST = Resources(20480, 40), Resources(512, 1)


@pytest.mark.parametrize(
    ("guaranteed", "factor", "percent", "users", "limit"),
    [
        ((1351, 2), 2.0, 25.0, {"ben": (0, 0)}, (512, 1)),
        ((254, 0), 2.0, 50.0, {"cid": (0, 0)}, (512, 1)),
        ((1520, 2), 100.0, 50.0, {"cid": (0, 0)}, (1024, 1)),
        ((1032, 2), 100.0, 25.0, {"ben": (0, 0), "cid": (0, 0)}, (512, 1)),
        ((7314, 14), 100.0, 25.0, {"ann": (7680, 15), "cid": (0, 0)}, (4096, 8)),
        ((756, 1), 2.0, 50.0, {"ann": (2048, 4), "cid": (0, 0)}, (1536, 2)),
        ((0, 0), 2.0, 50.0, {"ann": (2048, 4), "cid": (0, 0)}, (1536, 3)),  # By the source, not seen
    ],
)
def test_the_limit_of_a_user_that_was_never_served_is_that_of_the_policy(
    guaranteed: tuple[int, int],
    factor: float,
    percent: float,
    users: dict[str, tuple[int, int]],
    limit: tuple[int, int],
) -> None:
    rows = tuple(yarn.QueueUser(user, used=yarn.Vector(*used), limit=None) for user, used in users.items())
    leaf = yarn.QueueInfo(
        "a",
        queue_type="leaf",
        user_limit_factor=factor,
        user_limit_percent=percent,
        users=yarn.QueueUsers(rows),
    )
    view = QueueView(queue="root.a", guaranteed=Resources(*guaranteed), maximum=TOTAL, used=Resources(0, 0))
    root = yarn.QueueInfo("root", below=yarn.QueueList((leaf,)))
    assert active_limits(root, [view], TOTAL, LEAST) == {"root.a": dict.fromkeys(users, Resources(*limit))}


def test_a_limit_that_is_shown_is_kept_and_a_user_that_is_not_active_has_none() -> None:
    rows = (
        yarn.QueueUser("ann", limit=yarn.Vector(1536, 3)),
        yarn.QueueUser("ben", limit=yarn.Vector(9999, 9), is_active=False),
    )
    root = yarn.QueueInfo(
        "root", below=yarn.QueueList((yarn.QueueInfo("a", queue_type="leaf", users=yarn.QueueUsers(rows)),))
    )
    view = QueueView(queue="root.a", guaranteed=TOTAL, maximum=TOTAL, used=Resources(0, 0))
    assert active_limits(root, [view], TOTAL, LEAST) == {
        "root.a": {"ann": Resources(1536, 3), "ben": Resources(0, 0)}
    }
