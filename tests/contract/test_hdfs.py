"""HDFS by WebHDFS: two steps, exclusive files, renames that say no in their body, permissions (facts 10)."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import pytest

from tests.contract.asking import OCTETS, Cluster, refusal

_COUNT = itertools.count()


@pytest.fixture
def folder(cluster: Cluster) -> Iterator[str]:
    """A folder of alice's own, in one where everybody may make theirs."""
    above, path = "/contract", f"/contract/folder{next(_COUNT)}"
    superuser = Cluster(cluster.host, cluster.host.superuser)
    superuser.hdfs("PUT", above, "MKDIRS", permission="1777")
    answer = cluster.hdfs("PUT", path, "MKDIRS", permission="700")
    assert (answer.status, answer.json()) == (200, {"boolean": True})
    yield path
    cluster.hdfs("DELETE", path, "DELETE", recursive="true")


def test_create_is_two_steps(cluster: Cluster, folder: str) -> None:
    first = cluster.hdfs("PUT", f"{folder}/a", "CREATE")
    assert (first.status, first.body) == (307, b"")
    assert cluster.hdfs("GET", f"{folder}/a", "GETFILESTATUS").status == 404  # nothing is there yet
    second = cluster.host.ask("PUT", first.headers["location"], b"hello", OCTETS)
    assert second.status == 201
    status = cluster.hdfs("GET", f"{folder}/a", "GETFILESTATUS").json()["FileStatus"]
    assert (status["type"], status["length"], status["owner"]) == ("FILE", 5, "alice")
    assert status["modificationTime"] > 0


def test_the_place_can_be_had_in_the_body(cluster: Cluster, folder: str) -> None:
    first = cluster.hdfs("PUT", f"{folder}/a", "CREATE", noredirect="true")
    assert first.status == 200
    where = first.json()["Location"]
    assert cluster.host.ask("PUT", where, b"x", OCTETS).status == 201


def test_open_reads_any_part(cluster: Cluster, folder: str) -> None:
    data = bytes(range(256)) * 8
    assert cluster.write(f"{folder}/a", data).status == 201
    assert cluster.hdfs("GET", f"{folder}/a", "OPEN").status == 307
    assert cluster.read(f"{folder}/a").body == data
    assert cluster.read(f"{folder}/a", offset="100", length="56").body == data[100:156]
    gone = cluster.hdfs("GET", f"{folder}/b", "OPEN")
    assert (gone.status, refusal(gone)) == (404, "FileNotFoundException")


def test_create_is_exclusive_unless_told_otherwise(cluster: Cluster, folder: str) -> None:
    assert cluster.write(f"{folder}/a", b"mine").status == 201
    loser = cluster.write(f"{folder}/a", b"yours")
    assert (loser.status, refusal(loser)) == (403, "FileAlreadyExistsException")
    assert cluster.read(f"{folder}/a").body == b"mine"
    assert cluster.write(f"{folder}/a", b"new", overwrite="true").status == 201
    assert cluster.read(f"{folder}/a").body == b"new"


def test_a_rename_onto_something_says_no_in_its_body(cluster: Cluster, folder: str) -> None:
    for name in ("a", "b"):
        assert cluster.write(f"{folder}/{name}", name.encode()).status == 201
    no = cluster.hdfs("PUT", f"{folder}/a", "RENAME", destination=f"{folder}/b")
    assert (no.status, no.json()) == (200, {"boolean": False})
    no = cluster.hdfs("PUT", f"{folder}/nothing", "RENAME", destination=f"{folder}/c")
    assert (no.status, no.json()) == (200, {"boolean": False})
    yes = cluster.hdfs("PUT", f"{folder}/a", "RENAME", destination=f"{folder}/c")
    assert (yes.status, yes.json()) == (200, {"boolean": True})
    assert cluster.read(f"{folder}/c").body == b"a"
    assert cluster.hdfs("GET", f"{folder}/a", "GETFILESTATUS").status == 404


def test_a_rename_may_replace_and_then_answers_nothing(cluster: Cluster, folder: str) -> None:
    for name in ("a", "b"):
        assert cluster.write(f"{folder}/{name}", name.encode()).status == 201
    query = {"destination": f"{folder}/b", "renameoptions": "OVERWRITE"}
    answer = cluster.hdfs("PUT", f"{folder}/a", "RENAME", **query)
    assert (answer.status, answer.body) == (200, b"")
    assert cluster.read(f"{folder}/b").body == b"a"
    gone = cluster.hdfs("PUT", f"{folder}/a", "RENAME", **query)
    assert (gone.status, refusal(gone)) == (404, "FileNotFoundException")


def test_a_modification_time_is_set_and_listed_and_writes_nothing(cluster: Cluster, folder: str) -> None:
    cluster.write(f"{folder}/a", b"1")
    set_time = cluster.hdfs("PUT", f"{folder}/a", "SETTIMES", modificationtime="1700000000123")
    assert (set_time.status, set_time.body) == (200, b"")
    (told,) = cluster.hdfs("GET", folder, "LISTSTATUS").json()["FileStatuses"]["FileStatus"]
    assert (told["modificationTime"], told["length"]) == (1_700_000_000_123, 1)
    gone = cluster.hdfs("PUT", f"{folder}/b", "SETTIMES", modificationtime="1")
    assert (gone.status, refusal(gone)) == (404, "FileNotFoundException")


def test_listing_and_deleting(cluster: Cluster, folder: str) -> None:
    assert cluster.hdfs("GET", folder, "LISTSTATUS").json() == {"FileStatuses": {"FileStatus": []}}
    cluster.write(f"{folder}/b", b"1")
    cluster.hdfs("PUT", f"{folder}/a", "MKDIRS")
    told = cluster.hdfs("GET", folder, "LISTSTATUS").json()["FileStatuses"]["FileStatus"]
    assert [(one["pathSuffix"], one["type"]) for one in told] == [("a", "DIRECTORY"), ("b", "FILE")]
    full = cluster.hdfs("DELETE", folder, "DELETE")
    assert (full.status, refusal(full)) == (403, "PathIsNotEmptyDirectoryException")
    assert cluster.hdfs("DELETE", folder, "DELETE", recursive="true").json() == {"boolean": True}
    assert cluster.hdfs("DELETE", folder, "DELETE").json() == {"boolean": False}
    gone = cluster.hdfs("GET", folder, "LISTSTATUS")
    assert (gone.status, refusal(gone)) == (404, "FileNotFoundException")


def test_permissions_bind_others_and_not_the_superuser(cluster: Cluster, folder: str) -> None:
    assert cluster.write(f"{folder}/a", b"secret").status == 201
    bob, superuser = Cluster(cluster.host, "bob"), Cluster(cluster.host, cluster.host.superuser)
    status = cluster.hdfs("GET", folder, "GETFILESTATUS").json()["FileStatus"]
    assert (status["permission"], status["owner"]) == ("700", "alice")
    for answer in (
        bob.hdfs("GET", f"{folder}/a", "OPEN"),
        bob.hdfs("GET", folder, "LISTSTATUS"),
        bob.write(f"{folder}/mine", b"mine"),
        bob.hdfs("PUT", f"{folder}/a", "RENAME", destination="/contract/stolen"),
        bob.hdfs("PUT", folder, "SETPERMISSION", permission="777"),
    ):
        assert (answer.status, refusal(answer)) == (403, "AccessControlException")
    assert superuser.read(f"{folder}/a").body == b"secret"
    assert cluster.hdfs("PUT", folder, "SETPERMISSION", permission="755").status == 200
    assert bob.read(f"{folder}/a").body == b"secret"


def test_what_makes_no_sense(cluster: Cluster) -> None:
    for method, op, query in (
        ("GET", "NOTHING", {}),
        ("GET", "CREATE", {}),
        ("PUT", "MKDIRS", {"permission": "9"}),
    ):
        answer = cluster.hdfs(method, "/contract/x", op, **query)
        assert (answer.status, refusal(answer)) == (400, "IllegalArgumentException")
