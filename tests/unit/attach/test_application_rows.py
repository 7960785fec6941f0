"""Application rows: what is made anew only where something changed is what would be made from nothing."""

from __future__ import annotations

import random

import msgspec

from yarnctl.attach.connection.application_rows import ApplicationRows, serving_order
from yarnctl.deciding.model import ApplicationView, ContainerRequest
from yarnctl.deciding.reasons.eligibility import NoReduces, OtherKind
from yarnctl.hadoop.wire import views, yarn
from yarnctl.units import Resources

SIZE = Resources(1024, 1)


def row(number: int, chance: random.Random) -> yarn.AppInfo:
    pending = chance.choice([0, 0, 1024])
    use = yarn.PartitionUse(pending=yarn.Vector(pending, pending // 1024))
    return yarn.AppInfo(
        application=f"application_1_{number:04d}", user=f"u{number % 3}",
        queue=chance.choice(["research", "team"]), state="RUNNING", progress_percent=chance.random() * 100,
        kind="MAPREDUCE", tags=chance.choice(["", "", "deadline:1700000000"]),
        priority=chance.choice([0, 0, 0, 1]), submitted_at_ms=number // 2,
        allocated_mib=1024 * chance.randrange(4), allocated_vcores=chance.randrange(4),
        containers=chance.randrange(4), uses=chance.choice([None, yarn.Uses((use,)), yarn.Uses((use,))]),
    )  # fmt: skip


def moved(one: yarn.AppInfo, chance: random.Random) -> yarn.AppInfo:
    """Return the row as it may look a second later: mostly it has only got on a little."""
    other = row(int(one.application[-4:]), chance)
    names = [name for name in one.__struct_fields__ if name not in ("application", "user", "kind")]
    drawn = chance.choice(["progress_percent", "progress_percent", *names])
    if chance.random() < 0.3:
        return one
    return msgspec.structs.replace(one, **{drawn: getattr(other, drawn)})


def test_the_same_as_made_from_nothing():
    chance = random.Random(7)
    rows, number = [row(number, chance) for number in range(30)], 30
    kept, asks, why_not = ApplicationRows(), {}, {}
    for _ in range(300):
        kept.update(rows)
        waiting = {
            one.application: views.pending(one)
            for one in rows
            if one.uses is None or views.pending(one) != views.PendingSum(0, 0)
        }
        assert kept.waiting == waiting
        if chance.random() < 0.8:  # a look that ends before its snapshot must not lose what changed
            asks = {name: (ContainerRequest(10, SIZE, chance.choice([1, 1, 2])),) for name in waiting}
            for one in chance.sample(rows, 3):
                why_not[one.application] = chance.choice(
                    [OtherKind("SPARK"), OtherKind("SPARK"), NoReduces()]
                )
            why_not.pop(chance.choice(list(why_not)), None)
            check(kept, rows, asks, why_not)
        rows = [moved(one, chance) for one in rows]
        if chance.random() < 0.4:
            del rows[chance.randrange(len(rows))]
            rows.insert(chance.randrange(len(rows)), row(number, chance))
            number += 1
        if chance.random() < 0.1:
            chance.shuffle(rows)


def check(kept: ApplicationRows, rows: list[yarn.AppInfo], asks: dict, why_not: dict) -> None:
    def make(one: yarn.AppInfo, rank: int) -> ApplicationView:
        name = one.application
        return views.application_view(
            one, queue=one.queue, rank=rank, am_size=SIZE, task_size=SIZE, demand=asks.get(name, ()),
            why_not=why_not.get(name),
        )  # fmt: skip

    shown = kept.views(make, asks, why_not)
    ordered = sorted(rows, key=serving_order)
    assert [view.application for view in shown] == [one.application for one in ordered]
    ranks = [view.rank for view in shown]
    assert ranks == sorted(set(ranks)), "ranks order, and no two are alike"
    for view, one, rank in zip(shown, ordered, ranks, strict=True):
        fresh = make(one, rank)
        exact = bool(one.tags)
        if not exact:  # to the percent
            assert view.progress_ratio * 100 // 1 == one.progress_percent // 1
            fresh = msgspec.structs.replace(fresh, progress_ratio=view.progress_ratio)
        assert view == fresh


def test_rank_is_priority_then_submission_then_the_number_in_the_id():
    rows = [
        yarn.AppInfo(application=f"application_1_{number}", priority=priority, submitted_at_ms=at_ms)
        for number, priority, at_ms in [(10000, 0, 5), (9999, 0, 5), (7, 0, 4), (8, 3, 9)]
    ]
    kept = ApplicationRows()
    kept.update(rows)
    shown = kept.views(make_plain, {}, {})
    assert [view.application[14:] for view in shown] == ["8", "7", "9999", "10000"]
    assert [view.rank for view in shown] == sorted({view.rank for view in shown})


def test_only_who_is_new_or_has_changed_is_judged_again():
    chance = random.Random(3)
    rows, kept = [row(number, chance) for number in range(5)], ApplicationRows()
    kept.update(rows)
    assert kept.unjudged() == rows
    kept.update(rows)
    assert kept.unjudged() == []
    rows[2] = msgspec.structs.replace(rows[2], queue="other")
    kept.update(rows)
    kept.update(rows)
    assert kept.unjudged() == [rows[2]], "and it is not forgotten by a look in between"
    kept.update(rows[:2])
    assert kept.unjudged() == []
    kept.update(rows[:3])
    assert kept.ended() == {one.application for one in rows[3:]}
    assert kept.ended() == set()


def test_who_keeps_its_rank_keeps_its_record():
    chance = random.Random(5)
    rows, kept = [row(number, chance) for number in range(6)], ApplicationRows()
    make = make_plain
    kept.update(rows)
    before = {view.application: view for view in kept.views(make)}
    ended = sorted(rows, key=serving_order)[1]
    kept.update([one for one in rows if one is not ended])
    after = kept.views(make)
    assert len(after) == 5
    assert all(before[view.application] is view for view in after)


def make_plain(one: yarn.AppInfo, rank: int) -> ApplicationView:
    return views.application_view(one, queue=one.queue, rank=rank, am_size=SIZE, task_size=SIZE)
