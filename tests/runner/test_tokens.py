"""Delegation tokens: read as Hadoop writes them, sent where they are meant for, and told to nobody."""

from __future__ import annotations

import os

import pytest
from hypothesis import given, settings
from hypothesis import strategies as some

from tests.runner.golden_tokens import IN_A_URL, PROTOBUF, WRITABLE
from tests.runner.namenode import Server
from tests.runner.running import SUM, Job, grouped, python
from tests.thoroughness import examples
from yarnctl.task_runner.runner.protocol.stores import (
    EXIT_SUSPENDED,
    Lost,
    StoreError,
    Unusable,
    without_secrets,
)
from yarnctl.task_runner.runner.protocol.token_files import (
    TOKEN_FILE_BYTES_MAX,
    Secured,
    Token,
    addresses_of,
    choose_token,
    parse_tokens,
    read_name_services,
    read_tokens,
    written_length,
)
from yarnctl.task_runner.runner.protocol.webhdfs_store import WebHdfsStore, open_store

HDFS = "HDFS_DELEGATION_TOKEN"
SECRET = IN_A_URL[:40]
ALLOWED = ("--token-service", "10.1.2.3:8020", "--token-over-http")


def token(service: str, kind: str = HDFS) -> Token:
    return Token(b"who", b"secret", kind, service)


# -- the file -------------------------------------------------------------------------------------


@pytest.mark.parametrize("data", [WRITABLE, PROTOBUF], ids=["version 0", "version 1"])
def test_both_formats_are_read_and_written_into_urls_as_hadoop_does(data):
    found = {each.kind: each for each in parse_tokens(data)}
    assert set(found) == {HDFS, "mapreduce.job"}
    assert found[HDFS].service == "10.1.2.3:8020"
    assert found[HDFS].identifier == bytes(number % 256 for number in range(300))
    assert found[HDFS].password == bytes(range(200, 220))
    assert found[HDFS].for_url() == IN_A_URL


def test_a_file_cut_anywhere_is_refused_or_has_all_tokens():
    whole = parse_tokens(WRITABLE)
    end_of_tokens = WRITABLE.index(b"MapReduceShuffleToken") - 2
    for size in range(len(WRITABLE)):
        if size >= end_of_tokens:
            assert parse_tokens(WRITABLE[:size]) == whole
        else:
            with pytest.raises(Unusable):
                parse_tokens(WRITABLE[:size])
    for size in range(len(PROTOBUF)):
        with pytest.raises(Unusable):
            parse_tokens(PROTOBUF[:size])


HOSTILE = {
    "empty": b"", "another file": b"\x7fELF" + bytes(40), "a version to come": b"HDTS\x02",
    "2 GiB of tokens": b"HDTS\x00" + bytes([256 - 112 - 4]) + b"\x7f\xff\xff\xff",
    "a length of 8 bytes": b"HDTS\x00\x01" + bytes([256 - 120]) + b"\xff" * 8,
    "fewer than none": b"HDTS\x00\xff", "a negative length": b"HDTS\x00\x01\x80",
    "a message of 2^69 bytes": b"HDTS\x01" + b"\xff" * 9 + b"\x7f",
    "an unterminated number": b"HDTS\x01" + b"\xff" * 40, "not a Protocol Buffer": b"HDTS\x01\x01\x0f",
    "many empty tokens": b"HDTS\x01\xd0\x0f" + b"\x0a\x02\x12\x00" * 500,
    "a kind that is no text": b"HDTS\x00\x01\x00\x00\x00\x01\xff\x00\x00",
}  # fmt: skip


@pytest.mark.parametrize("data", HOSTILE.values(), ids=HOSTILE)
def test_hostile_files_are_refused(data):
    try:
        found = parse_tokens(data)
    except Unusable:
        return
    assert choose_token(found, ["nn:9870"]) is None


@settings(max_examples=examples(300))
@given(some.sampled_from([WRITABLE, PROTOBUF]), some.data())
def test_a_damaged_file_never_does_worse_than_being_refused(data, drawn):
    damaged = bytearray(data)
    for _ in range(drawn.draw(some.integers(1, 6))):
        damaged[drawn.draw(some.integers(4, len(damaged) - 1))] = drawn.draw(some.integers(0, 255))
    try:
        found = parse_tokens(bytes(damaged))
    except Unusable:
        return
    assert sum(len(each.identifier) + len(each.password) for each in found) <= len(damaged)


@given(some.binary(max_size=200), some.sampled_from([0, 1]))
def test_any_bytes_are_refused_or_few(tail, version):
    try:
        assert len(parse_tokens(b"HDTS" + bytes([version]) + tail)) <= len(tail)
    except Unusable:
        return


@pytest.mark.parametrize(("size", "written"), [(0, "00"), (127, "7f"), (128, "8f80"), (300, "8e012c")])
def test_lengths_are_written_as_hadoop_s(size, written):
    assert written_length(size).hex() == written


def test_what_is_no_ordinary_file_is_refused_at_once(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "large").write_bytes(WRITABLE + bytes(TOKEN_FILE_BYTES_MAX))
    for name, why in (
        ("pipe", "not a file"),
        ("large", "larger"),
        ("absent", "No such file"),
        ("", "director"),
    ):
        with pytest.raises(Unusable, match=why):
            read_tokens(str(tmp_path / name))
    assert read_tokens("") == []


# -- which one ------------------------------------------------------------------------------------


def test_a_single_token_is_checked_against_the_store_s_host_too():
    for service in ("10.1.2.3:8020", "ha-hdfs:prod", ""):
        tokens = [token("x", "mapreduce.job"), token(service)]
        with pytest.raises(Unusable, match="--token-service"):
            choose_token(tokens, ["127.0.0.1:9870"])
    assert choose_token([token("10.1.2.3:8020")], ["127.0.0.1:9870"], "10.1.2.3:8020") is not None
    assert choose_token([token("127.0.0.1:8020")], ["127.0.0.1:9870"]) == token("127.0.0.1:8020")
    assert choose_token([token("rm:8032", "RM_DELEGATION_TOKEN")], ["nn1:9870"]) is None


def test_of_several_the_one_for_the_store_s_host_is_taken():
    here, far = token("127.0.0.1:8020"), token("10.9.9.9:8020")
    assert choose_token([far, here], ["127.0.0.1:9870"]) == here
    if "127.0.0.1" in addresses_of("localhost"):
        assert choose_token([far, here], ["localhost:9870"]) == here
        assert choose_token([token("localhost:8020")], ["127.0.0.1:9870"]) == token("localhost:8020")
    twice = token("127.0.0.1:9870", "WEBHDFS delegation")
    assert choose_token([twice, far, here], ["127.0.0.1:9870"]) == here


NAMED = {
    "dfs_nameservices": "prod, test-1",
    "dfs_namenode_https_address_prod_nn1": "127.0.0.1:9871",
    "dfs_namenode_https_address_prod_nn2": "10.8.8.8:9871",
    "dfs_namenode_rpc_address_test_1_nn1": "10.7.7.7:8020",
    "dfs_namenode_http_address_prod": "10.6.6.6:9870",
    "dfs_namenode_https_address_prodigal_nn1": "10.5.5.5:9871",
}


def test_a_name_service_s_token_is_taken_for_the_hosts_that_the_configuration_gives_it():
    services = read_name_services(NAMED)
    assert services == {"prod": frozenset({"127.0.0.1", "10.8.8.8"}), "test-1": frozenset({"10.7.7.7"})}
    high, far, other = token("ha-hdfs:prod"), token("10.9.9.9:8020"), token("ha-hdfs:test-1")
    hosts = ["127.0.0.1:9871", "10.8.8.8:9871"]
    assert choose_token([far, other, high], hosts, "", services) == high
    assert choose_token([high], hosts, "", services) == high
    for tokens in ([high], [other], [far, other]):
        with pytest.raises(Unusable, match="--token-service"):
            choose_token(tokens, ["10.4.4.4:9871"], "", services)
    with pytest.raises(Unusable, match="--token-service"):
        choose_token([high], hosts)  # nothing says whose hosts these are


@pytest.mark.parametrize(
    ("services", "hosts"),
    [
        (("10.1.1.1:8020", "10.9.9.9:8020"), ["127.0.0.1:9870"]),
        (("127.0.0.1:8020", "127.0.0.1:8030"), ["127.0.0.1:9870"]),
        (("ha-hdfs:prod", "ha-hdfs:test"), ["127.0.0.1:9870", "127.0.0.1:9871"]),
        (("ha-hdfs:prod", "10.9.9.9:8020"), ["127.0.0.1:9870"]),
    ],
)
def test_a_token_goes_to_no_hdfs_that_it_may_not_be_meant_for(services, hosts):
    tokens = [token(service) for service in services]
    with pytest.raises(Unusable, match="--token-service"):
        choose_token(tokens, hosts)
    assert choose_token(tokens, hosts, services[1]) == tokens[1]
    with pytest.raises(Unusable, match="no HDFS token for elsewhere"):
        choose_token(tokens, hosts, "elsewhere")


# -- on the wire ----------------------------------------------------------------------------------


def test_every_call_carries_the_token_and_no_name(server):
    store = WebHdfsStore([server.host], "/checkpoints", "alice", delegation=IN_A_URL)
    store.make_folder("job")
    store.create("job/a", 3, [b"abc"])
    store.rename("job/a", "job/b")
    assert [entry.name for entry in store.list("job")] == ["b"]
    assert b"".join(store.read("job/b")) == b"abc"
    assert server.held.tokens == {IN_A_URL}
    assert server.held.users == set()
    assert all("delegation=" in query for query in server.held.queries)  # the DataNode's too


@pytest.mark.parametrize(
    "says", [(403, "StandbyException"), (401, "StandbyException"), (403, "RetriableException")]
)
def test_a_standby_is_passed_over_and_the_active_one_remembered(server, says):
    standby = Server()
    standby.held.standby, standby.held.says_standby = True, says
    store = WebHdfsStore([standby.host, server.host], "/checkpoints", "alice", delegation=IN_A_URL)
    store.make_folder("job")
    store.create("job/a", 1, [b"1"])
    asked = len(standby.held.queries)
    store.rename("job/a", "job/b")
    assert (asked, len(standby.held.queries)) == (1, 1)
    standby.shutdown()
    standby.server_close()


def test_a_token_that_is_refused_is_an_error_and_no_standby(server):
    server.held.standby, server.held.says_standby = True, (403, "InvalidToken")
    store = WebHdfsStore([server.host], "/checkpoints", "alice", delegation=IN_A_URL)
    with pytest.raises(StoreError, match="InvalidToken"):
        store.list("")


def test_plain_stores_read_no_tokens(tmp_path):
    secured = Secured(token_file=str(tmp_path / "absent"))
    assert open_store(f"file://{tmp_path}", "alice", secured).list("") == []
    with pytest.raises(Unusable, match="HADOOP_TOKEN_FILE_LOCATION"):
        open_store("webhdfs://nn:9870/x", "alice", secured)


@pytest.mark.parametrize("url", ["webhdfs://127.0.0.1:9870/x", "swebhdfs://127.0.0.1:9871/x"])
def test_a_token_goes_over_plain_http_only_where_that_is_told(tmp_path, url):
    (tmp_path / "tokens").write_bytes(WRITABLE)
    told = Secured(str(tmp_path / "tokens"), "10.1.2.3:8020")
    if url.startswith("webhdfs"):
        with pytest.raises(Unusable, match=r"plain HTTP.*--token-over-http"):
            open_store(url, "alice", told)
        told = told._replace(over_http=True)
    store = open_store(url, "alice", told)
    assert isinstance(store, WebHdfsStore)
    assert store.delegation == IN_A_URL


# -- told to nobody -------------------------------------------------------------------------------


def told(error: BaseException) -> str:
    """Return all that a traceback would show."""
    found = ""
    one: BaseException | None = error
    while one is not None:
        found += f"{one!r} {one} "
        one = one.__cause__ or (None if one.__suppress_context__ else one.__context__)
    return found


@pytest.mark.parametrize(
    "where",
    ["http://127.0.0.1:9", "http://[bad", "http://127.0.0.1:x", "ftp://h", "http://127.0.0.1:9/a\x7fb"],
)
def test_an_error_on_the_way_shows_no_token(server, where):
    store = WebHdfsStore([server.host, "127.0.0.1:9"], "/checkpoints", "alice", delegation=IN_A_URL)
    server.held.redirects_to = where
    server.held.put("/checkpoints/a", b"1")
    for call in (lambda: list(store.read("a")), lambda: store.create("b", 1, [b"1"])):
        with pytest.raises(StoreError) as caught:
            call()
        assert SECRET not in told(caught.value)


def test_a_dead_namenode_and_a_lost_answer_show_no_token(server):
    store = WebHdfsStore(["127.0.0.1:9"], "/checkpoints", "alice", delegation=IN_A_URL)
    with pytest.raises(StoreError) as caught:
        store.list("")
    assert SECRET not in told(caught.value)
    server.held.lose_renames = ["before"]
    with pytest.raises(Lost) as caught:
        WebHdfsStore([server.host], "/c", "alice", delegation=IN_A_URL).rename("a", "b")
    assert SECRET not in told(caught.value)


def test_an_answer_that_quotes_the_question_shows_no_token(server):
    server.held.standby = True
    server.held.says_standby = (400, f"Invalid {IN_A_URL} delegation={IN_A_URL[:20]}")
    store = WebHdfsStore([server.host], "/checkpoints", "alice", delegation=IN_A_URL)
    with pytest.raises(StoreError, match="HTTP 400") as caught:
        store.list("")
    assert IN_A_URL[:20] not in told(caught.value)


def test_hush_blots_out_secrets_wherever_they_stand():
    assert without_secrets("GET /a?op=OPEN&delegation=AbC&x=1 'token=q' Password=p\"") == (
        "GET /a?op=OPEN&delegation=***&x=1 'token=***' Password=***\""
    )


def test_a_token_does_not_show_its_password():
    assert repr(token("nn:8020")) == "Token('HDFS_DELEGATION_TOKEN', 'nn:8020')"
    assert "secret" not in repr([token("nn:8020")]) + str(token("nn:8020"))


# -- the runner -----------------------------------------------------------------------------------


@pytest.mark.parametrize("data", [WRITABLE, PROTOBUF], ids=["version 0", "version 1"])
def test_the_runner_suspends_and_resumes_by_its_container_s_token(server, tmp_path, data):
    lines = grouped(80, 5)
    (tmp_path / "container_tokens").write_bytes(data)
    job = Job(tmp_path, {"USER": "alice", "HADOOP_TOKEN_FILE_LOCATION": str(tmp_path / "container_tokens")})
    where = ("--store", f"webhdfs://{server.host}/checkpoints", *ALLOWED)
    first = job.run(lines, python(SUM), *where, "--suspend-at", "33", "--exit-when-saved")
    assert first[0] == EXIT_SUSPENDED, job.stderr
    heard = job.stderr
    assert job.run(lines, python(SUM), *where) == Job(tmp_path).run(lines, python(SUM), promise=False)
    assert b"phase=replay groups=33" in job.stderr
    assert (server.held.tokens, server.held.users) == ({IN_A_URL}, set())
    assert SECRET.encode() not in heard + job.stderr
    assert not any(SECRET.encode() in kept for kept in server.held.files.values())


def test_the_runner_leaves_the_job_alone_where_its_tokens_cannot_be_used(server, tmp_path):
    (tmp_path / "container_tokens").write_bytes(WRITABLE[:100])
    job = Job(tmp_path, {"USER": "alice", "HADOOP_TOKEN_FILE_LOCATION": str(tmp_path / "container_tokens")})
    where = ("--store", f"webhdfs://{server.host}/checkpoints")
    assert job.run(b"a\t1\n", ["cat"], *where) == (0, b"a\t1\n")
    assert (
        b"the reducer runs without the task runner: the container's token file (HADOOP_TOKEN_FILE_LOCATION)"
        in job.stderr
    )
    assert server.held.queries == []


PLAIN_HTTP = "webhdfs:// would send the delegation token over plain HTTP"


@pytest.mark.parametrize(
    ("environment", "why"),
    [
        ({}, "the one for {host} cannot be determined; set --token-service to the store's"),
        ({"YARNCTL_TOKEN_OVER_HTTP": "1"}, "the one for {host} cannot be determined"),
        ({"YARNCTL_TOKEN_SERVICE": "10.1.2.3:8020"}, PLAIN_HTTP),
        ({"YARNCTL_TOKEN_SERVICE": "10.1.2.3:8020", "YARNCTL_TOKEN_OVER_HTTP": "no"}, PLAIN_HTTP),
    ],
)
def test_the_runner_runs_the_reducer_alone_and_says_why_no_token_is_sent(server, tmp_path, environment, why):
    (tmp_path / "container_tokens").write_bytes(WRITABLE)
    given = {"USER": "alice", "HADOOP_TOKEN_FILE_LOCATION": str(tmp_path / "container_tokens")}
    job = Job(tmp_path, {**given, **environment})
    where = ("--store", f"webhdfs://{server.host}/checkpoints")
    assert job.run(b"a\t1\n", ["cat"], *where) == (0, b"a\t1\n")
    assert b"the reducer runs without the task runner: " in job.stderr
    assert why.format(host=server.host).encode() in job.stderr
    assert server.held.queries == []


def test_the_runner_shows_no_token_when_its_store_fails(server, tmp_path):
    (tmp_path / "container_tokens").write_bytes(WRITABLE)
    job = Job(tmp_path, {"USER": "alice", "HADOOP_TOKEN_FILE_LOCATION": str(tmp_path / "container_tokens")})
    server.held.redirects_to = "http://127.0.0.1:9"
    where = (
        "--store", f"webhdfs://{server.host}/checkpoints", *ALLOWED, "--suspend-at", "20",
        "--release-wait-ms", "0",
    )  # fmt: skip
    data = grouped(80, 5)
    assert job.run(data, python(SUM), *where) == Job(tmp_path).run(data, python(SUM), promise=False)
    assert b"not saved" in job.stderr
    assert SECRET.encode() not in job.stderr
