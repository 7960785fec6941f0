"""The emulator's WebHDFS: through yarnctl's client, the task runner's store, the lock, and bare requests."""

from __future__ import annotations

import json
import os
import socket
import time
from urllib.parse import urlsplit

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from emulator.live.store.permitted_paths import Owners, checked_path
from emulator.live.store.webhdfs_server import Fault, Faults, WebHdfsServer
from emulator.live.wire.web import HttpProblem, Web
from tests.hadoop.background import Background
from tests.http_client import bare
from tests.thoroughness import examples
from yarnctl.attach.check.gathering import _safe_mode
from yarnctl.cli.journal import HdfsFolder
from yarnctl.errors import BadInput, Unreachable
from yarnctl.hadoop.http.answers import BadAnswer, ExistsAlready, Missing, Rejected, SafeMode, Uncertain
from yarnctl.hadoop.http.auth import Identity
from yarnctl.hadoop.http.session import CallLimits
from yarnctl.hadoop.http.transport import Transport
from yarnctl.hadoop.lock import LockFile
from yarnctl.hadoop.webhdfs import WebHdfs
from yarnctl.task_runner.runner.protocol import stores
from yarnctl.task_runner.runner.protocol.stores import check_root
from yarnctl.task_runner.runner.protocol.webhdfs_store import open_store

PATIENT = CallLimits(connect_ms=60_000, read_timeout_ms=60_000, answer_ms=120_000, retries=0, backoff_ms=1)


class Store:
    """A server over a folder; ``as_user`` is yarnctl's client."""

    def __init__(self, folder):
        self.folder = folder / "hdfs"
        self.faults = Faults()

        def build(url: str) -> Web:
            web = Web()
            self.server = WebHdfsServer(self.folder, url, "hdfs", self.faults)
            self.server.install(web)
            return web

        self.background = Background(build)

    def __enter__(self):
        self.background.__enter__()
        self.url = self.background.url
        self.host = urlsplit(self.url).netloc
        return self

    def __exit__(self, *_):
        self.background.stop()

    def as_user(self, user: str = "ann") -> WebHdfs:
        return WebHdfs([self.url], Identity(user=user), PATIENT, bulk_limits=PATIENT)

    def ask(self, method: str, path: str, body: bytes | None = None) -> tuple[int, dict, bytes]:
        return tuple(bare(method, f"{self.url}/webhdfs/v1{path}", body))  # type: ignore[return-value]

    def refused(self, method: str, path: str) -> tuple[int, str]:
        status, _, body = self.ask(method, path)
        return status, json.loads(body)["RemoteException"]["exception"]


@pytest.fixture
def store(tmp_path):
    with Store(tmp_path) as one:
        yield one


# --- files ------------------------------------------------------------------------------------


def test_what_is_written_is_read_with_owner_mode_and_length(store):
    hdfs = store.as_user()
    data = os.urandom(3_000_000)
    hdfs.create("/user/ann/deep/file", data, mode=0o640)
    assert hdfs.read("/user/ann/deep/file") == data
    status = hdfs.status("/user/ann/deep/file")
    assert (status.owner, status.mode, status.length, status.kind) == ("ann", 0o640, len(data), "FILE")
    assert abs(status.modified_at_ms / 1000 - time.time()) < 600
    with hdfs.open("/user/ann/deep/file", 1_000_000, 10) as chunks:
        assert b"".join(chunks) == data[1_000_000:1_000_010]
    with hdfs.open("/user/ann/deep/file", 2_999_999) as chunks:
        assert b"".join(chunks) == data[-1:]
    hdfs.create("/user/ann/empty", b"")
    assert hdfs.read("/user/ann/empty") == b""


def test_of_two_that_were_both_redirected_one_succeeds(store):
    query = "/user/ann/f?op=CREATE&user.name=ann"
    where = [urlsplit(store.ask("PUT", query)[1]["location"]) for _ in range(2)]
    paths = [one.path.removeprefix("/webhdfs/v1") + "?" + one.query for one in where]
    answers = [store.ask("PUT", path, data) for path, data in zip(paths, (b"first", b"second"), strict=True)]
    assert [status for status, _, _ in answers] == [201, 403]
    assert store.as_user().read("/user/ann/f") == b"first"


def test_an_upload_whose_sender_dies_leaves_a_shorter_file_that_looks_complete(store):
    where = store.ask("PUT", "/user/ann/f?op=CREATE&user.name=ann")[1]["location"]
    parts = urlsplit(where)
    with socket.create_connection((parts.hostname, parts.port), 20) as dying:
        told = f"Host: {parts.netloc}\r\nContent-Length: 1000000"
        head = f"PUT {parts.path}?{parts.query} HTTP/1.1\r\n{told}\r\n\r\n"
        dying.sendall(head.encode() + b"half" * 1000)
    hdfs = store.as_user()
    deadline = time.monotonic() + 60
    while (found := hdfs.find("/user/ann/f")) is None or found.length < 4000:
        assert time.monotonic() < deadline
        store.background.run(lambda: None)
    assert hdfs.read("/user/ann/f") == b"half" * 1000


def test_listing_and_summary(store):
    hdfs = store.as_user()
    for name in ("b", "a", "ü %2f"):
        hdfs.create(f"/user/ann/{name}", b"123")
    hdfs.make_directories("/user/ann/c")
    rows = [(row.name, row.kind, row.length) for row in hdfs.listing("/user/ann")]
    assert rows == [("a", "FILE", 3), ("b", "FILE", 3), ("c", "DIRECTORY", 0), ("ü %2f", "FILE", 3)]
    body = json.loads(store.ask("GET", "/user/ann?op=GETCONTENTSUMMARY")[2])["ContentSummary"]
    assert (body["directoryCount"], body["fileCount"], body["length"]) == (2, 3, 9)
    (row,) = json.loads(store.ask("GET", "/user/ann/a?op=LISTSTATUS&user.name=ann")[2])["FileStatuses"][
        "FileStatus"
    ]
    assert row["pathSuffix"] == ""
    with pytest.raises(Missing):
        hdfs.listing("/user/nobody")
    assert hdfs.home() == "/user/ann"


def test_rename_says_no_in_its_body(store):
    hdfs = store.as_user()
    hdfs.create("/user/ann/a", b"a")
    hdfs.create("/user/ann/b", b"b")

    def renamed(source: str, target: str) -> tuple[int, bytes]:
        status, _, body = store.ask("PUT", f"{source}?op=RENAME&user.name=ann&destination={target}")
        return status, body

    no = (200, b'{"boolean":false}')
    assert renamed("/user/ann/a", "/user/ann/b") == no
    assert renamed("/user/ann/none", "/user/ann/c") == no
    assert renamed("/user/ann/a", "/user/ann/none/c") == no
    assert renamed("/user/ann/a", "/user/ann/b/c") == no
    assert renamed("/user/ann", "/user/ann/inside") == no
    assert renamed("/", "/tmp/x") == no
    assert hdfs.read("/user/ann/a") == b"a"
    assert renamed("/user/ann/a", "/user/ann/c") == (200, b'{"boolean":true}')
    hdfs.make_directories("/user/ann/d")
    assert renamed("/user/ann/c", "/user/ann/d") == (200, b'{"boolean":true}')
    assert hdfs.read("/user/ann/d/c") == b"a"


def test_rename_with_overwrite_replaces_a_file_and_answers_nothing(store):
    hdfs = store.as_user()
    hdfs.create("/user/ann/a", b"a", mode=0o600)
    hdfs.create("/user/ann/b", b"b", mode=0o644)
    hdfs.make_directories("/user/ann/full/x")
    path = "/user/ann/a?op=RENAME&user.name=ann&renameoptions="
    assert store.refused("PUT", path + "NONE&destination=/user/ann/b") == (403, "FileAlreadyExistsException")
    status, headers, body = store.ask("PUT", path + "OVERWRITE&destination=/user/ann/b")
    assert (status, body, headers["content-type"]) == (200, b"", "application/octet-stream")
    assert (hdfs.read("/user/ann/b"), hdfs.status("/user/ann/b").mode) == (b"a", 0o600)
    assert hdfs.find("/user/ann/a") is None
    again = "/user/ann/b?op=RENAME&user.name=ann&renameoptions=OVERWRITE&destination="
    assert store.refused("PUT", again + "/user/ann/full") == (403, "IOException")
    assert store.refused("PUT", again + "/no/where") == (404, "FileNotFoundException")
    assert store.refused("PUT", path + "OVERWRITE&destination=/user/ann/b") == (404, "FileNotFoundException")
    assert store.refused("PUT", again + "/user/ann/b") == (403, "IOException")


def test_a_renamed_folder_takes_its_owners_along(store):
    hdfs = store.as_user()
    hdfs.make_directories("/user/ann/d", 0o750)
    hdfs.create("/user/ann/d/f", b"1", mode=0o640)
    hdfs.rename("/user/ann/d", "/user/ann/e")
    assert (hdfs.status("/user/ann/e").mode, hdfs.status("/user/ann/e/f").mode) == (0o750, 0o640)


def test_delete(store):
    hdfs = store.as_user()
    hdfs.create("/user/ann/d/f", b"1")
    with pytest.raises(Rejected, match="non empty"):
        hdfs.delete("/user/ann/d")
    assert hdfs.delete("/user/ann/d", recursive=True)
    assert not hdfs.delete("/user/ann/d", recursive=True)
    assert store.ask("DELETE", "/?op=DELETE&recursive=true&user.name=hdfs")[2] == b'{"boolean":false}'
    hdfs.create("/user/ann/d", b"", mode=0o600)
    assert hdfs.status("/user/ann/d").mode == 0o600


def test_folders_over_files_are_refused(store):
    hdfs = store.as_user()
    hdfs.create("/user/ann/f", b"1")
    hdfs.make_directories("/user/ann/d")
    assert store.refused("PUT", "/user/ann/f?op=MKDIRS&user.name=ann") == (403, "FileAlreadyExistsException")
    assert store.refused("PUT", "/user/ann/f/x?op=MKDIRS&user.name=ann") == (
        403,
        "ParentNotDirectoryException",
    )
    assert store.refused("PUT", "/user/ann/f/x?op=CREATE&namenoderpcaddress=n&user.name=ann") == (
        403,
        "ParentNotDirectoryException",
    )
    assert store.refused("PUT", "/user/ann/d?op=CREATE&namenoderpcaddress=n&user.name=ann") == (
        403,
        "FileAlreadyExistsException",
    )
    assert store.ask("PUT", "/user/ann/d?op=CREATE&user.name=ann")[0] == 307  # the NameNode does not look
    assert store.refused("GET", "/user/ann/d?op=OPEN&user.name=ann") == (404, "FileNotFoundException")


# --- owners -----------------------------------------------------------------------------------


def test_permissions_bind_everybody_but_the_superuser(store):
    ann, bob, root = store.as_user("ann"), store.as_user("bob"), store.as_user("hdfs")
    ann.make_directories("/user/ann/private", 0o700)
    ann.create("/user/ann/private/f", b"secret", mode=0o600)
    ann.create("/user/ann/shown", b"shown", mode=0o644)
    ann.create("/user/ann/hidden", b"hidden", mode=0o600)
    ann.set_mode("/user/ann", 0o755)
    for refused in (
        lambda: bob.read("/user/ann/private/f"), lambda: bob.status("/user/ann/private/f"),
        lambda: bob.listing("/user/ann/private"), lambda: bob.read("/user/ann/hidden"),
        lambda: bob.create("/user/ann/mine", b""), lambda: bob.make_directories("/user/ann/mine"),
        lambda: bob.create("/user/ann/shown", b"", overwrite=True), lambda: bob.delete("/user/ann/shown"),
        lambda: bob.set_mode("/user/ann/shown", 0o777),
        lambda: bob.rename("/user/ann/shown", "/user/bob-has-it"),
        lambda: bob.delete("/user/ann", recursive=True), lambda: bob.rename("/user/ann", "/tmp/ann"),
    ):  # fmt: skip
        with pytest.raises(Rejected, match="Permission denied"):
            refused()
    assert bob.read("/user/ann/shown") == b"shown"
    assert root.read("/user/ann/private/f") == b"secret"
    assert root.delete("/user/ann", recursive=True)


def test_nobody_is_dr_who(store):
    store.ask("PUT", "/tmp/x?op=MKDIRS")
    status = json.loads(store.ask("GET", "/tmp/x?op=GETFILESTATUS")[2])["FileStatus"]
    assert (status["owner"], status["permission"]) == ("dr.who", "755")


def test_the_superuser_gives_away(store):
    root = store.as_user("hdfs")
    root.make_directories("/yarnctl", 0o755)
    store.ask("PUT", "/yarnctl?op=SETOWNER&owner=yarnctl&user.name=hdfs")
    assert root.status("/yarnctl").owner == "yarnctl"
    assert store.refused("PUT", "/yarnctl?op=SETOWNER&owner=bob&user.name=yarnctl")[0] == 403
    assert store.ask("GET", "/yarnctl?op=CHECKACCESS&fsaction=r-x&user.name=bob")[0] == 200
    assert store.refused("GET", "/yarnctl?op=CHECKACCESS&fsaction=rwx&user.name=bob")[0] == 403


def test_owners_are_kept_over_a_restart(tmp_path):
    with Store(tmp_path) as one:
        one.as_user("ann").create("/user/ann/f", b"1", mode=0o640)
    with Store(tmp_path) as two:
        status = two.as_user("ann").status("/user/ann/f")
        assert (status.owner, status.mode) == ("ann", 0o640)


def test_a_file_that_was_put_there_by_hand_is_the_superusers(store):
    (store.folder / "tmp/by-hand").write_bytes(b"12")
    status = store.as_user().status("/tmp/by-hand")
    assert (status.owner, status.mode, status.length) == ("hdfs", 0o644, 2)


def test_who_owned_what_is_gone_is_forgotten(store):
    ann = store.as_user()
    ann.create("/tmp/f", b"1")
    ann.delete("/tmp/f")
    (store.folder / "tmp/f").write_bytes(b"12")
    assert ann.status("/tmp/f").owner == "hdfs"


def test_in_a_folder_of_all_nobody_touches_what_is_anothers(store):
    ann, bob = store.as_user("ann"), store.as_user("bob")
    ann.create("/tmp/f", b"1", mode=0o644)
    bob.create("/tmp/g", b"2")
    for refused in (
        lambda: bob.create("/tmp/f", b"2", overwrite=True),
        lambda: bob.delete("/tmp/f"),
        lambda: bob.rename("/tmp/g", "/tmp/f", overwrite=True),
        lambda: bob.rename("/tmp/f", "/tmp/h"),
    ):
        with pytest.raises(Rejected, match="Permission denied"):
            refused()
    assert ann.read("/tmp/f") == b"1"


def test_one_folder_has_one_server(tmp_path):
    with Store(tmp_path), pytest.raises(BadInput, match="cannot be used"), Store(tmp_path):
        pass


def test_a_file_that_is_no_database_is_one_clear_error(tmp_path):
    (tmp_path / "hdfs-owners.sqlite").write_bytes(b"x" * 5000)
    with pytest.raises(BadInput, match="cannot be used"):
        Owners(tmp_path / "hdfs-owners.sqlite", "hdfs")


# --- hostile requests -------------------------------------------------------------------------


@pytest.mark.parametrize(
    "path",
    ["/..?op=LISTSTATUS", "/../hdfs-owners.sqlite?op=OPEN", "/%2e%2e/hdfs-owners.sqlite?op=OPEN",
     "/a/..%2f..%2fhdfs-owners.sqlite?op=OPEN", "/a%00b?op=GETFILESTATUS", "/%ff?op=GETFILESTATUS",
     "/" + "x" * 300 + "?op=GETFILESTATUS", "/" + "x/" * 3000 + "?op=GETFILESTATUS", "/./a?op=GETFILESTATUS",
     "/?op=NOSUCHOP", "/?op=APPEND", "/", "/tmp?op=RENAME", "/user?op=CHECKACCESS&fsaction=everything"],
)  # fmt: skip
def test_what_makes_no_sense_is_400(store, path):
    for method in ("GET", "PUT"):
        status, _, body = store.ask(method, path)
        assert (status, json.loads(body)["RemoteException"]["exception"]) == (400, "IllegalArgumentException")


@pytest.mark.parametrize(
    "query", ["offset=-1", "offset=x", "length=1e3", "offset=99999999999999999999", "permission=9"]
)
def test_odd_parameters_are_400(store, query):
    store.as_user().create("/user/ann/f", b"1", mode=0o644)
    method, op = ("PUT", "MKDIRS") if "permission" in query else ("GET", "OPEN")
    assert store.refused(method, f"/user/ann/f?op={op}&namenoderpcaddress=x&user.name=ann&{query}")[0] in (
        400,
        403,
    )
    assert store.ask("GET", "/user/ann/f?op=OPEN&namenoderpcaddress=x&user.name=ann&length=1")[2] == b"1"


def test_a_link_leads_nowhere(store, tmp_path):
    (tmp_path / "secret").write_bytes(b"secret")
    (store.folder / "tmp/link").symlink_to(tmp_path / "secret")
    (store.folder / "tmp/folder").symlink_to(tmp_path)
    root = store.as_user("hdfs")
    for path in ("/tmp/link", "/tmp/folder/secret", "/tmp/folder"):
        with pytest.raises(Missing):
            root.read(path)
        assert root.find(path) is None
    assert root.listing("/tmp") == ()
    with pytest.raises((Rejected, ExistsAlready)):
        root.create("/tmp/link", b"over")
    assert (tmp_path / "secret").read_bytes() == b"secret"


@given(st.text(max_size=60))
@settings(max_examples=examples(300))
def test_no_checked_path_leads_out(text):
    try:
        path = checked_path("/" + text)
    except (HttpProblem, UnicodeEncodeError):
        return
    assert os.path.normpath("/root" + path).startswith("/root")
    assert "\0" not in path


@given(
    st.sampled_from(["GET", "PUT", "DELETE", "POST"]),
    st.text(alphabet=st.characters(min_codepoint=33, max_codepoint=126, exclude_characters="#"), max_size=40),
)
@settings(max_examples=examples(150), suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_no_request_ends_in_a_failure(store, method, rest):
    status, _, _ = store.ask(method, "/" + rest)
    assert status < 500


def test_the_task_runners_store_works_on_it(store):
    store.as_user("hdfs").make_directories("/yarnctl", 0o755)
    store.ask("PUT", "/yarnctl?op=SETOWNER&owner=ann&user.name=hdfs")
    held = open_store(f"webhdfs://{store.host}/yarnctl", "ann")
    check_root(held)
    held.make_folder("job/task")
    held.create("job/task/part.tmp", 6, [b"abc", b"def"])
    held.rename("job/task/part.tmp", "job/task/part")
    with pytest.raises(stores.Exists):
        held.create("job/task/part", 1, [b"x"])
    held.create("job/task/other", 1, [b"x"])
    with pytest.raises(stores.Exists):
        held.rename("job/task/other", "job/task/part")
    assert held.read_small("job/task/part") == b"abcdef"
    entry = held.entry("job/task/part")
    assert entry is not None
    assert (entry.owner, entry.mode, entry.bytes, entry.is_folder) == ("ann", 0o640, 6, False)
    assert [each.name for each in held.list("job/task")] == ["other", "part"]
    assert held.entry("job/nothing") is None
    assert held.list("nothing") == []


def test_the_lock_works_on_it(store):
    now = [0.0]
    first = LockFile(store.as_user("yarnctl"), "/user/yarnctl/lock", "a", 1000, lambda: now[0])
    second = LockFile(store.as_user("yarnctl"), "/user/yarnctl/lock", "b", 1000, lambda: now[0])
    assert (first.acquire(), second.acquire()) == (True, False)
    assert first.renew()
    now[0] = 0.9
    assert not second.acquire()
    now[0] = 2.0
    assert (first.held, second.acquire()) == (False, True)
    second.release()
    assert first.acquire()


# --- faults -----------------------------------------------------------------------------------


def test_a_store_that_is_down_and_comes_back(store):
    hdfs = store.as_user()
    # A connection that closes without an answer has a GET sent once more, and nothing else.
    store.faults.now = Fault(down=True, count=3)
    with pytest.raises(Unreachable):
        hdfs.status("/user")
    with pytest.raises(Uncertain):
        hdfs.make_directories("/user/ann")
    assert hdfs.status("/user").owner == "hdfs"
    assert store.faults.hit == 3


def test_safe_mode_refuses_changes_and_shows_in_jmx(store):
    hdfs = store.as_user()
    node = Transport([f"http://{store.host}"], daemon="NameNode")
    assert _safe_mode(node) is False
    store.faults.now = Fault(safe_mode=True)
    assert _safe_mode(node) is True
    with pytest.raises(SafeMode):
        hdfs.create("/user/ann/f", b"x")
    assert hdfs.status("/user").owner == "hdfs"
    store.faults.now = None
    hdfs.create("/user/ann/f", b"x")


@pytest.mark.parametrize("fault", [Fault(status=500), Fault(garbage=True), Fault(status=200)])
def test_a_store_that_answers_rubbish(store, fault):
    store.faults.now = fault
    with pytest.raises(BadAnswer):
        store.as_user().status("/user")


def test_a_torn_upload_leaves_what_came(store):
    hdfs = store.as_user()
    store.faults.now = Fault(ops=("CREATE",), tear_bytes=100_000)
    with pytest.raises(Uncertain):
        hdfs.create("/user/ann/f", b"x" * 1_000_000)
    store.faults.now = None
    assert hdfs.status("/user/ann/f").length == 100_000


def test_an_answer_that_drips_is_whole_in_the_end(store):
    store.faults.now = Fault(drip_ms=1)
    assert store.as_user().status("/user").owner == "hdfs"


def test_the_switch_over_http(store):
    def ask(method: str, body: bytes | None = None) -> tuple[int, bytes]:
        answer = bare(method, f"{store.url}/emulator/v1/faults", body)
        return answer.status, answer.body

    assert ask("PUT", b'{"status":503,"ops":["OPEN"]}')[0] == 200
    assert store.faults.now == Fault(status=503, ops=("OPEN",))
    assert json.loads(ask("GET")[1])["fault"]["status"] == 503
    assert ask("PUT", b'{"nonsense":1}')[0] == 400
    assert ask("PUT", b"null")[0] == 200
    assert store.faults.now is None


def test_an_export_is_replaced_as_a_whole(store: Store) -> None:
    folder = HdfsFolder(store.as_user("hdfs"), "/warehouse/yarnctl")
    assert folder.get("a/cluster=blue/x.parquet") is None
    for data in (b"first", b"second"):
        folder.put("a/cluster=blue/x.parquet", data)
        assert folder.get("a/cluster=blue/x.parquet") == data
    names = [each.name for each in store.as_user("hdfs").listing("/warehouse/yarnctl/a/cluster=blue")]
    assert names == ["x.parquet"]
