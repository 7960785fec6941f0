"""The lock in ZooKeeper: one holder at a time, whatever a client believes of its session."""

from __future__ import annotations

import itertools
import random
from typing import NamedTuple

import pytest

from tests.thoroughness import examples
from tests.unit.hadoop.little_ensemble import LittleEnsemble, LittleSession
from tests.unit.hadoop.little_hdfs import LittleHdfs
from tests.unit.hadoop.test_webhdfs import Clock, store
from yarnctl.errors import BadInput, Unreachable
from yarnctl.hadoop.lock import LOCK_PATH, LockFile, LockKind
from yarnctl.hadoop.zookeeper_lock import ZooKeeperAddress, ZooKeeperLock, lock_address

ADDRESS = ZooKeeperAddress(("zk1:2181",), "/yarnctl", 6_000)


class Kind(LockKind):
    """A kind in memory, shared by all locks of a test."""

    def __init__(self, kept: dict[str, str]) -> None:
        self.kept = kept

    def require(self, kind: str, is_there: bool = False) -> None:
        if self.kept.setdefault("kind", kind) != kind:
            raise BadInput("kind", f"is {self.kept['kind']!r}, this lock is {kind!r}")

    def forget(self) -> None:
        del self.kept["kind"]


class Candidate(NamedTuple):
    """A lock and its session."""

    lock: ZooKeeperLock
    session: LittleSession


class Site:
    """An ensemble, one clock, and candidates."""

    def __init__(self) -> None:
        self.ensemble, self.clock, self.kept = LittleEnsemble(), Clock(), dict[str, str]()

    def candidate(self, name: str, place: str = "") -> Candidate:
        session = LittleSession(self.ensemble)
        lock = ZooKeeperLock(
            session, ADDRESS, Kind(self.kept), name, clock=self.clock, place=place, host=f"h-{name}"
        )
        return Candidate(lock, session)


@pytest.fixture
def site() -> Site:
    return Site()


def test_one_holds_and_the_other_is_woken_when_it_releases(site: Site) -> None:
    (ann, _), (bob, _) = site.candidate("ann"), site.candidate("bob")
    woken: list[bool] = []
    bob.on_free = lambda: woken.append(bob.acquire())
    assert ann.acquire()
    assert not bob.acquire()
    assert (bob.has_rival, bob.leader) == (True, "ann on h-ann")
    assert ann.renew()
    assert not woken
    ann.release()
    assert (ann.held, woken, bob.held) == (False, [True], True)


def test_the_term_grows_although_the_session_id_falls(site: Site) -> None:
    (ann, first), (bob, second) = site.candidate("ann"), site.candidate("bob")
    assert ann.acquire()
    ann.release()
    assert bob.acquire()
    assert second.session < first.session
    assert bob.term > ann.term


def test_a_frozen_leader_does_not_act_when_it_wakes(site: Site) -> None:
    """Its client believes to be connected: no answer has said otherwise."""
    (ann, session), (bob, _) = site.candidate("ann"), site.candidate("bob")
    assert ann.acquire()
    assert not bob.acquire()
    site.clock.now += 6.1
    session.lose()
    assert bob.acquire()
    assert not ann.held
    assert not ann.renew()
    session.begin_again()
    assert not ann.acquire()
    assert ann.leader == "bob on h-bob"


@pytest.mark.parametrize(("passed_s", "holds"), [(2.9, True), (3.0, False)])
def test_it_holds_for_half_of_the_session_after_the_request_began(
    site: Site, passed_s: float, holds: bool
) -> None:
    ann, session = site.candidate("ann")
    assert ann.acquire()
    session.after = lambda: setattr(site.clock, "now", site.clock.now + 1.0)  # a slow answer
    began_s = site.clock.now
    assert ann.renew()
    site.clock.now = began_s + passed_s
    assert ann.held is holds


def test_an_answer_that_took_longer_than_the_lease_gives_none(site: Site) -> None:
    ann, session = site.candidate("ann")
    session.after = lambda: setattr(site.clock, "now", site.clock.now + 3.0)
    assert not ann.acquire()
    assert not ann.has_rival


def test_without_an_answer_it_holds_until_the_lease_ends_and_no_longer(site: Site) -> None:
    ann, session = site.candidate("ann")
    assert ann.acquire()
    session.is_cut = True
    site.clock.now += 1.2
    with pytest.raises(Unreachable):
        ann.renew()
    assert ann.held
    site.clock.now += 1.8
    assert not ann.held
    session.is_cut = False
    assert ann.acquire(), "the session still lives: no other could start"


def test_a_node_of_a_session_that_was_lost_since_confirms_nothing(site: Site) -> None:
    """Two servers of an ensemble: one has not heard yet that the session is over."""
    ann, session = site.candidate("ann")
    assert ann.acquire()
    session.begin_again()  # its old node is still there
    assert not ann.renew()
    assert not ann.held
    assert not ann.acquire()


def test_a_node_that_was_deleted_ends_the_lease_at_the_next_look(site: Site) -> None:
    ann, _ = site.candidate("ann")
    assert ann.acquire()
    before = ann.term
    site.ensemble.drop("/yarnctl/ann-0000000000")
    assert not ann.renew()
    assert not ann.held
    assert ann.acquire()
    assert ann.term > before


def test_a_create_with_a_lost_answer_is_found_again(site: Site) -> None:
    ann, session = site.candidate("ann")
    done = itertools.count()

    def lose_answer() -> None:
        if session.asked[-1] == "create" and next(done) == 0:
            raise Unreachable("no answer")

    session.after = lose_answer
    with pytest.raises(Unreachable):
        ann.acquire()
    assert ann.acquire()
    assert session.asked.count("create") == 1


def test_a_restart_at_one_place_does_not_wait_for_its_own_past(site: Site) -> None:
    (old, _), (other, _) = site.candidate("old", "boot-1:7"), site.candidate("other", "boot-2:7")
    (new, _), (copy, _) = site.candidate("new", "boot-1:7"), site.candidate("copy", "boot-1:8")
    assert old.acquire()
    assert not copy.acquire()
    assert not new.acquire()
    assert new.has_rival, "the copy stood in the queue before it"
    assert "/yarnctl/old-0000000000" not in site.ensemble.nodes
    assert copy.acquire()
    assert not other.acquire()


def test_a_term_is_fenced_once_and_before_it_is_held(site: Site) -> None:
    fenced: list[tuple[int, bool]] = []
    ann = ZooKeeperLock(
        LittleSession(site.ensemble), ADDRESS, Kind({}), "ann", clock=site.clock,
        fence=lambda term: fenced.append((term, ann.held)),
    )  # fmt: skip
    assert ann.acquire()
    assert ann.renew()
    site.clock.now += 4
    assert ann.acquire(), "its lease had lapsed, its term goes on"
    assert fenced == [(ann.term, False)]


def test_a_folder_that_was_emptied_is_another_lock(site: Site) -> None:
    """Its terms begin anew with the servers' data: a smaller one must never follow."""
    ann, _ = site.candidate("ann")
    assert ann.acquire()
    ann.release()
    site.ensemble = LittleEnsemble()
    site.ensemble.czxid = 7
    bob, _ = site.candidate("bob")
    with pytest.raises(BadInput, match=r"zookeeper /yarnctl 100000001.*zookeeper /yarnctl 8"):
        bob.acquire()
    bob.forget_kind()
    assert bob.acquire()


def test_the_lock_in_hdfs_and_that_in_zookeeper_exclude_each_other(site: Site) -> None:
    little = LittleHdfs()
    with little.serve():
        hdfs = store(little.replay)
        in_hdfs = LockFile(hdfs, LOCK_PATH, "ann", 10_000, site.clock)
        session = LittleSession(site.ensemble)
        bob = ZooKeeperLock(session, ADDRESS, LockKind(hdfs, LOCK_PATH), "bob", clock=site.clock)
        assert in_hdfs.acquire()
        with pytest.raises(BadInput, match=r"is 'hdfs', this lock is 'zookeeper /yarnctl"):
            bob.acquire()
        assert "create" not in session.asked
        in_hdfs.release()
        in_hdfs.forget_kind()
        assert bob.acquire()
        with pytest.raises(BadInput, match=r"is 'zookeeper /yarnctl [0-9a-f]+', this lock is 'hdfs'"):
            LockFile(hdfs, LOCK_PATH, "carl", 10_000, site.clock).acquire()


def test_no_candidate_is_put_into_a_folder_that_others_may_change(site: Site) -> None:
    site.ensemble.is_open = True
    ann, session = site.candidate("ann")
    with pytest.raises(BadInput, match="is open"):
        ann.acquire()
    assert "create" not in session.asked


def test_a_folder_that_was_replaced_before_the_candidate_was_in_it_gives_no_lock(site: Site) -> None:
    ann, session = site.candidate("ann")
    session.after = lambda: setattr(site.ensemble, "is_open", "create" in session.asked)
    for _ in range(2):
        with pytest.raises(BadInput, match="is open"):
            ann.acquire()
        assert not ann.held
    assert session.asked.count("create") == 1


class Wandering:
    """A candidate whose connection comes and goes; the ensemble ends a session 6 s after its last request."""

    def __init__(self, site: Site, name: str, chance: random.Random) -> None:
        self.site, self.chance = site, chance
        self.lock, self.session = site.candidate(name)
        self.session.before, self.session.after = self._arrive, self._travel
        self.heard_s = site.clock.now

    def _arrive(self) -> None:
        """A request reaches the ensemble: the session lasts from now."""
        self._travel()
        if not self.session.is_cut:
            self.heard_s = self.site.clock.now

    def _travel(self) -> None:
        """A request or an answer is on its way."""
        self.site.clock.now += self.chance.choice((0.0, 0.0, 0.0, 0.1, 0.4, 2.0))
        self.expire()

    def expire(self) -> None:
        if self.site.clock.now - self.heard_s > 6:
            self.session.lose()
            if not self.session.is_cut:
                self.connect()

    def connect(self) -> None:
        if self.site.clock.now - self.heard_s > 6:
            self.session.begin_again()
        self.session.is_cut, self.heard_s = False, self.site.clock.now

    def step(self) -> bool:
        """Do one thing; return whether it holds the lock by what it did."""
        draw = self.chance.random()
        if draw < 0.1:
            self.session.is_cut = True
        elif draw < 0.2:
            self.connect()
        else:
            try:
                return (self.lock.held and self.lock.renew()) or self.lock.acquire()
            except Unreachable:
                pass
        return False


@pytest.mark.parametrize("seed", range(examples(40)))
def test_whatever_happens_two_never_hold_and_terms_grow(seed: int) -> None:
    chance, site = random.Random(seed), Site()
    rivals = [Wandering(site, name, chance) for name in ("ann", "bob", "carl")]
    terms = [0]
    for _ in range(400):
        site.clock.now += chance.choice((0.05, 0.3, 1.2))
        for each in rivals:
            each.expire()
        one = chance.choice(rivals)
        if one.step() and terms[-1] != one.lock.term:
            terms.append(one.lock.term)
        assert sum(each.lock.held for each in rivals) <= 1
    assert len(terms) > 3, "the lead changed"
    assert terms == sorted(terms)


@pytest.mark.parametrize(
    ("text", "hosts", "folder"),
    [
        ("zookeeper://zk1:2181,zk2:2182/yarnctl", ("zk1:2181", "zk2:2182"), "/yarnctl"),
        ("zookeeper://zk1,[::1]:7/a/b-c", ("zk1:2181", "[::1]:7"), "/a/b-c"),
    ],
)
def test_a_place_in_zookeeper(text: str, hosts: tuple[str, ...], folder: str) -> None:
    assert lock_address(text, 10) == ZooKeeperAddress(hosts, folder, 10_000)
    assert lock_address("hdfs", 10) is None


@pytest.mark.parametrize(
    ("text", "session_s", "problem"),
    [
        ("zookeper://zk1:2181/yarnctl", 10, "unknown lock; did you mean zookeeper?"),
        ("hdf", 10, "unknown lock; did you mean hdfs?"),
        ("zookeeper", 10, "unknown lock; use hdfs, or zookeeper://zk1:2181"),
        ("zookeeper://", 10, "'' is not HOST or HOST:PORT"),
        ("zookeeper://zk1:0/y", 10, "'zk1:0' is not HOST or HOST:PORT"),
        ("zookeeper://zk1:99999/y", 10, "'zk1:99999' is not HOST or HOST:PORT"),
        ("zookeeper://ann:secret@zk1:1/y", 10, "is not HOST or HOST:PORT"),
        ("zookeeper://zk1:2181", 10, "'' is not the path of a folder"),
        ("zookeeper://zk1:2181/", 10, "'' is not the path of a folder"),
        ("zookeeper://zk1:2181/a b", 10, "'a b' is not the path of a folder"),
        ("zookeeper://zk1:2181/y", 3, "3 is not from 4 to 30"),
        ("zookeeper://zk1:2181/y", 31, "31 is not from 4 to 30"),
    ],
)
def test_a_place_that_cannot_be_used(text: str, session_s: int, problem: str) -> None:
    with pytest.raises(BadInput) as wrong:
        lock_address(text, session_s)
    assert problem in str(wrong.value)
