"""Queues and workloads of a scenario file: described in TOML, and seen in what the cluster does."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import msgspec
import pytest

from emulator.scenario import Scenario, Tuning, prepare, read_scenario, settings, setup
from emulator.virtual.run import Run
from emulator.virtual.schemes import SCHEMES, LeafLimits, limited, queues_of
from emulator.workload.spec import load
from yarnctl.deciding.records import Decision
from yarnctl.errors import BadInput
from yarnctl.journal.chain import MemoryJournal
from yarnctl.traces.parquet import write_parquet

ROOT = Path(__file__).parents[2]
SAMPLE = ROOT / "docs/scenarios/three-queues.toml"
SLOT_MIB = 1024

PINNED = {
    "deadlines": "3e114e23b39f39c917c4ca5ab7e68a7319411e3a1766d073bdcdb833e338c4fa",
    "facebook-2009": "65beb9379cc4908fe256805ea4f83c8459947cc2a0f2c250150ba169b1c7b003",
    "faults": "7d34be3c9a8dd4f85fcb96faa315b5b07c5b3bf5c03ccc88f45701c29c65c2ca",
    "steady-250": "d9d2e900e8fe6f96e8133389d4394cc226558e6bb69f0be4112625f8cf92caff",
}
"""The identities of scenarios written before there were queues and workloads in them."""

BASE = """production = "synthetic:production-s"
research = "synthetic:research-xl"
nodes = 7
slots = 7
shares = [0.6, 0.15]
caps = [0.6, 0.15]
"""
ETL = """[[queues]]
name = "etl"
guaranteed_ratio = 0.25
"""
LOAD = """[[workloads]]
spec = "synthetic:production-s"
job_class = "production"
queue = "etl"
"""


def written(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "scenario.toml"
    path.write_text(text)
    return path


class Played(NamedTuple):
    """What came of a run: seconds by job, the most that each queue and each of its users held, in MiB."""

    completion_s: dict[str, float]
    queue_mib: dict[str, int]
    user_mib: dict[tuple[str, str], int]
    queue_of: dict[str, str]
    guaranteed_mib: dict[str, int]
    requesters: set[str]
    victims: set[str]
    picks: int


def played(scenario: Scenario, scheme: str = "natjam") -> Played:
    prepared = prepare(scenario)
    journal = MemoryJournal()
    run = Run(setup(scenario), prepared.jobs, SCHEMES[scheme], journal)
    queues = run.cluster.rm.scheduler.queues
    most = dict.fromkeys(queues, 0)
    users: dict[tuple[str, str], int] = {}

    def look() -> None:
        for name, queue in queues.items():
            most[name] = max(most[name], queue.used_mib)
            for user, mib in queue.users.items():
                users[name, user] = max(users.get((name, user), 0), mib)

    result = run.go(look)
    decisions = [record for record in journal.records if isinstance(record, Decision)]
    return Played(
        {job.name: job.completion_ms / 1000 for job in result.jobs},
        most,
        users,
        {master.job.name: master.app.queue.name for master in run.cluster.masters},
        {name: queue.guaranteed.memory_mib for name, queue in queues.items()},
        {record.trigger.queue for record in decisions},
        {queue_of(run, pick.application) for record in decisions for pick in record.picks},
        sum(len(record.picks) for record in decisions),
    )


def queue_of(run: Run, application: str) -> str:
    return run.cluster.masters[int(application.rpartition("_")[2]) - 1].app.queue.name


def read(tmp_path: Path, text: str) -> Scenario:
    return read_scenario(written(tmp_path, text))[0]


@pytest.mark.parametrize("name", PINNED)
def test_the_identity_of_older_scenarios_is_what_it_was(name: str) -> None:
    scenario, where = read_scenario(ROOT / f"docs/scenarios/{name}.toml")
    assert prepare(scenario, where).identity == PINNED[name]


def test_the_identity_holds_queues_and_workloads(tmp_path: Path) -> None:
    texts = (
        BASE, BASE + ETL, BASE + ETL + "maximum_ratio = 0.5\n", BASE + ETL + "am_ratio = 0.25\n",
        BASE + ETL + "user_limit_factor = 1.0\n", BASE + ETL + 'role = "preempting"\n', BASE + ETL + LOAD,
        BASE + ETL + LOAD + 'users = ["ann"]\n',
        BASE + '[[queues]]\nname = "research"\nuser_limit_factor = 1.0\n',
        BASE + '[[queues]]\nname = "production"\nuser_limit_factor = 1.0\n',
    )  # fmt: skip
    assert len({prepare(read(tmp_path, text)).identity for text in texts}) == len(texts)


def test_settings_that_came_later_count_only_when_they_differ(monkeypatch: pytest.MonkeyPatch) -> None:
    from emulator.scenario import preparing

    before = prepare(read_scenario(SAMPLE)[0]).identity
    monkeypatch.setattr(preparing, "LATER", (*preparing.LATER, "kill_maps"))
    scenario = read_scenario(SAMPLE)[0]
    assert prepare(scenario).identity != before  # left out at its default ...
    tuned = msgspec.structs.replace(scenario, tuning=Tuning(kill_maps=True))
    assert prepare(tuned).identity != prepare(scenario).identity  # ... and only there


def test_a_third_queue_competes_for_the_room(tmp_path: Path) -> None:
    """What comes free goes to the queue that is furthest below its guarantee: to etl before research."""
    alone = played(read(tmp_path, BASE + ETL), "soft-cap")
    third = played(read(tmp_path, BASE + ETL + LOAD), "soft-cap")
    behind = played(read(tmp_path, BASE + ETL + LOAD.replace("etl", "research")), "soft-cap")
    other, own = "w1-production-s", "p-production-s"
    assert (third.queue_of[other], behind.queue_of[other]) == ("etl", "research")
    assert third.guaranteed_mib["etl"] == 49 * SLOT_MIB // 4
    assert third.queue_mib["etl"] > 0 == behind.queue_mib["etl"]
    assert third.completion_s[own] > behind.completion_s[own] + 5 > alone.completion_s[own] + 5


def test_its_maximum_binds(tmp_path: Path) -> None:
    wide = played(read(tmp_path, BASE + ETL + LOAD), "soft-cap")
    narrow = played(
        read(tmp_path, BASE + ETL.replace("0.25", "0.1") + "maximum_ratio = 0.1\n" + LOAD), "soft-cap"
    )
    assert narrow.queue_mib["etl"] == 4 * SLOT_MIB < wide.queue_mib["etl"]
    assert narrow.completion_s["w1-production-s"] > wide.completion_s["w1-production-s"]


@pytest.mark.parametrize("role", ["unmanaged", "preempting"])
def test_yarnctl_makes_room_for_a_hurried_queue_only(tmp_path: Path, role: str) -> None:
    scenario = read(tmp_path, BASE + ETL + f'role = "{role}"\n' + LOAD)
    found = played(scenario)
    expected = ("production", "etl") if role == "preempting" else ("production",)
    assert found.requesters == set(expected)
    assert settings(scenario).preempting_queues == expected


def test_yarnctl_takes_from_a_victim_queue(tmp_path: Path) -> None:
    text = BASE.replace('research = "synthetic:research-xl"\n', "")
    text += ETL.replace("0.25", "0.1") + 'role = "{role}"\n'
    text += LOAD.replace("production", "research").replace("research-s", "research-xl")
    assert played(read(tmp_path, text.format(role="preemptable"))).victims == {"etl"}
    assert played(read(tmp_path, text.format(role="unmanaged"))).victims == set()


def test_a_user_limit_binds(tmp_path: Path) -> None:
    """Three times the guarantee of 7 slots: the user holds 22, and the one that crosses it."""
    text = BASE + '[[queues]]\nname = "research"\nuser_limit_factor = 3.0\n'
    free, bound = (played(read(tmp_path, each), "soft-cap") for each in (BASE, text))
    limit_mib = int(bound.guaranteed_mib["research"] * 3.0)
    assert bound.guaranteed_mib == free.guaranteed_mib
    assert limit_mib < bound.user_mib["research", "hadoop"] <= limit_mib + SLOT_MIB
    assert free.queue_mib["research"] > 40 * SLOT_MIB > bound.queue_mib["research"]
    assert bound.completion_s["r-research-xl"] > free.completion_s["r-research-xl"]


def test_nothing_is_freed_for_a_user_at_the_limit(tmp_path: Path) -> None:
    """A tenth of the guarantee of 29 slots: what is freed beyond would go to nobody in the queue."""
    text = BASE + '[[queues]]\nname = "production"\nuser_limit_factor = 0.1\n'
    free, bound = (played(read(tmp_path, each)) for each in (BASE, text))
    assert 0 < bound.queue_mib["production"] < free.queue_mib["production"]
    assert bound.picks < free.picks, "or orders would be made again and again for what YARN withholds"


def test_each_user_has_a_limit_of_their_own(tmp_path: Path) -> None:
    text = BASE + '[[queues]]\nname = "research"\nuser_limit_factor = 3.0\n'
    text += '[[workloads]]\nspec = "synthetic:research-m"\nqueue = "research"\nusers = ["{user}"]\n'
    other, same = (played(read(tmp_path, text.format(user=user)), "soft-cap") for user in ("ann", "hadoop"))
    assert other.user_mib["research", "ann"] > 20 * SLOT_MIB
    assert other.completion_s["w1-research-m"] < same.completion_s["w1-research-m"]


def test_jobs_take_turns_among_users(tmp_path: Path) -> None:
    text = BASE + '[[workloads]]\nspec = "packaged:fb2009@18-18.2"\nusers = ["ann", "bob"]\n'
    jobs = [job for job in prepare(read(tmp_path, text)).jobs if job.name.startswith("w1-")]
    assert len(jobs) > 3
    assert [job.user for job in jobs] == [("ann", "bob")[place % 2] for place in range(len(jobs))]


def test_the_peak_of_a_workload(tmp_path: Path) -> None:
    text = BASE + '[[workloads]]\nspec = "packaged:fb2009@18-18.5"\npeak = 0.5\n'
    prepared = prepare(read(tmp_path, text))
    assert any(note.endswith("(wanted 0.5)") for note in prepared.notes)
    assert "packaged:fb2009@18-18.5" in prepared.sources


def test_the_limits_of_an_own_queue_never_widen_it() -> None:
    queues = queues_of(SCHEMES["hard-cap"], (0.9, 0.1), (0.8, 0.2), 0.5)
    limits = (LeafLimits(name="research", maximum_ratio=0.5, am_ratio=0.1), LeafLimits(name="none"))
    production, research = limited(queues, limits)
    assert production == queues[0]
    assert (research.maximum_ratio, research.am_ratio, research.user_limit_factor) == (0.2, 0.1, None)


def test_stored_jobs_name_their_queue(tmp_path: Path) -> None:
    (job,) = load("synthetic:production-s", "research").jobs
    stored = tmp_path / "jobs.parquet"
    write_parquet([msgspec.structs.replace(job, queue="etl", user="ann")], stored)
    text = BASE + ETL + f'[[workloads]]\nspec = "parquet:{stored}"\n'
    jobs = {job.name: job for job in prepare(read(tmp_path, text)).jobs}
    assert (jobs["w1-production-s"].queue, jobs["w1-production-s"].user) == ("etl", "ann")
    text = BASE + f'[[workloads]]\nspec = "parquet:{stored}"\n'
    with pytest.raises(
        BadInput, match=r":8, \[\[workloads\]\] 1, field spec: job .* 'etl', which does not exist; add a"
    ):
        prepare(*read_scenario(written(tmp_path, text)))
    text = BASE.replace("synthetic:research-xl", f"parquet:{stored}")
    with pytest.raises(BadInput, match=r":2, field research: job .* 'etl', which does not exist"):
        prepare(*read_scenario(written(tmp_path, text)))


def test_the_sample_shows_what_it_says() -> None:
    scenario, where = read_scenario(SAMPLE)
    assert prepare(scenario, where).notes == (
        "queue etl: unmanaged, guaranteed_ratio 0.25, maximum_ratio 0.5, am_ratio 0.5",
        "queue research: user_limit_factor 3",
    )
    found = played(scenario)
    limit_mib = int(found.guaranteed_mib["research"] * 3.0)
    assert limit_mib < max(found.user_mib.values()) <= limit_mib + SLOT_MIB
    assert found.queue_of == {
        "p-production-s": "production",
        "w1-research-xl": "research",
        "w2-research-m": "research",
        "w3-production-s": "etl",
    }


def test_it_runs_under_every_scheme(tmp_path: Path) -> None:
    scenario = read(tmp_path, BASE + ETL + LOAD)
    times = {scheme: played(scenario, scheme).completion_s for scheme in SCHEMES if scheme != "ideal"}
    assert {len(each) for each in times.values()} == {3}


# --- what is refused --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "named"),
    [
        (ETL + "maximum = 1\n",
         r":10, \[\[queues\]\] 1, field maximum: .*unknown field.*has name, guaranteed_r"),
        ("[[queues]]\nguaranteed_ratio = 0.1\n", r":7, \[\[queues\]\] 1, field name: .*missing required"),
        ('[[queues]]\nname = "etl"\n', r"field guaranteed_ratio: is missing; give the guaranteed part"),
        (ETL.replace("0.25", '"x"'), r":9, \[\[queues\]\] 1, field guaranteed_ratio: Expected `float"),
        (ETL.replace("0.25", "0"), r":9, .*guaranteed_ratio: 0.0 is not above 0 and at most 1; give"),
        (ETL.replace("0.25", "nan"), r":9, .*guaranteed_ratio: nan is not above 0"),
        (ETL + "maximum_ratio = 1.5\n", r":10, .*maximum_ratio: 1.5 is not above 0"),
        (ETL + "maximum_ratio = 0.2\n", r":10, .*maximum_ratio: 0.2 is below the guarantee, 0.25; use the g"),
        (ETL + "am_ratio = 0\n", r":10, .*field am_ratio: 0.0 is not above 0"),
        (ETL + "user_limit_factor = 0\n", r":10, .*user_limit_factor: 0.0 is not above 0 .*; 1.0 lets"),
        (ETL + "user_limit_factor = inf\n", r":10, .*user_limit_factor: inf is not above 0"),
        (ETL + 'role = "boss"\n', r":10, \[\[queues\]\] 1, field role: Invalid enum value 'boss'"),
        (ETL.replace("etl", "a b"), r":8, .*field name: 'a b' is not a valid queue name; use"),
        (ETL.replace("etl", "default"), r":8, .*field name: 'default' is not a valid queue name"),
        (ETL + ETL, r":11, \[\[queues\]\] 2, field name: 'etl' has two tables; keep one"),
        (ETL.replace("0.25", "0.3"), r":5, field shares: guarantees, .* sum up to 1.05 of .*; reduce shares"),
        (ETL.replace("etl", "research"), r":9, .*guaranteed_ratio: research has a fixed one; use sh"),
        ('[[queues]]\nname = "research"\nrole = "preemptable"\n',
         r":9, .*field role: research has a fixed one"),
        (LOAD, r":10, \[\[workloads\]\] 1, field queue: unknown: 'etl'; use one of production, research"),
        (ETL + LOAD.replace("etl", "elt"),
         r":13, .*field queue: unknown: 'elt'; use one of production, research, etl"),
        (ETL + LOAD + 'class = "x"\n', r":14, \[\[workloads\]\] 1, field class: .*has spec, job_class"),
        (ETL + LOAD.replace('"production"', '"x"'), r":12, .*field job_class: Invalid enum value 'x'"),
        (ETL + LOAD + 'users = ["a b"]\n', r":14, .*field users: 'a b' is not a valid user name; use"),
        (ETL + LOAD + "peak = 0\n", r":14, .*field peak: 0.0 is not a positive number"),
        (LOAD.replace("synthetic:", "syn:"),
         r":8, .*field spec: SPEC 'syn:production-s': not a workload; use one of"),
        ('[[workloads]]\nqueue = "research"\n', r":7, .*field spec: .*missing required"),
        ('mode = "deadlines"\n' + ETL,
         r":8, \[\[queues\]\] 1: under mode deadlines there is one queue for all; remove"),
        ('mode = "deadlines"\n' + LOAD, r":11, .*field queue: under mode deadlines there is one queue"),
    ],
)  # fmt: skip
def test_refuses_with_file_line_field_and_remedy(tmp_path: Path, text: str, named: str) -> None:
    path = written(tmp_path, BASE + text)
    with pytest.raises(BadInput, match=named) as caught:
        read_scenario(path)
    assert str(caught.value).startswith(f"{path}:")
    assert "\n" not in str(caught.value)


def test_caps_count_only_where_a_scheme_has_them(tmp_path: Path) -> None:
    text = BASE.replace("caps = [0.6, 0.15]\n", "") + "schemes = [{schemes}]\n" + ETL
    read(tmp_path, text.format(schemes='"natjam"'))
    with pytest.raises(BadInput, match=r"field caps: guarantees, those of \[\[queues\]\] included"):
        read(tmp_path, text.format(schemes='"natjam", "soft-cap"'))


def test_a_workload_alone_is_enough(tmp_path: Path) -> None:
    text = "nodes = 3\nslots = 5\n" + '[[workloads]]\nspec = "synthetic:research-s"\n'
    assert [job.name for job in prepare(read(tmp_path, text)).jobs] == ["w1-research-s"]
    with pytest.raises(BadInput, match=r"no workload; give production, research, or \[\[workloads\]\]"):
        read(tmp_path, "nodes = 3\nslots = 5\n")


def test_two_jobs_of_one_name_are_refused(tmp_path: Path) -> None:
    (job,) = load("synthetic:production-s", "research").jobs
    stored = tmp_path / "jobs.parquet"
    write_parquet([job, job], stored)
    text = BASE + f'[[workloads]]\nspec = "parquet:{stored}"\n'
    with pytest.raises(BadInput, match="two jobs of one workload have this name"):
        prepare(read(tmp_path, text))
