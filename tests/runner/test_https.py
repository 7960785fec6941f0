"""swebhdfs: who is trusted stands in a file, a name must fit, and nothing secure ever becomes plain."""

from __future__ import annotations

import os
import shutil
import ssl
import subprocess
from pathlib import Path

import pytest

from tests.runner.golden_tokens import IN_A_URL, WRITABLE
from tests.runner.namenode import Server
from tests.runner.running import SUM, Job, grouped, python
from yarnctl.task_runner.runner.protocol.stores import EXIT_SUSPENDED, StoreError, Unusable
from yarnctl.task_runner.runner.protocol.webhdfs_store import WebHdfsStore, trusted


def make_certificate(folder: Path, name: str) -> Path:
    """Make a key and a certificate that signs itself, for one subject's name, in one PEM file."""
    if shutil.which("openssl") is None:
        if os.environ.get("CI"):
            pytest.fail("openssl is not on the path")
        pytest.skip("openssl is not on the path: no certificate can be made")
    file = folder / "host.pem"
    words = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=test"]
    made = ["-keyout", f"{folder}/key.pem", "-out", str(file), "-addext", f"subjectAltName={name}"]
    subprocess.run([*words, *made], check=True, capture_output=True)
    return file


@pytest.fixture(scope="module")
def certificate(tmp_path_factory) -> Path:
    return make_certificate(tmp_path_factory.mktemp("tls"), "IP:127.0.0.1")


@pytest.fixture
def server(certificate):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, certificate.with_name("key.pem"))
    running = Server(context)
    yield running
    running.shutdown()
    running.server_close()


def secure_store(server: Server, ca_file: Path | str) -> WebHdfsStore:
    return WebHdfsStore([server.host], "/checkpoints", "alice", True, IN_A_URL, str(ca_file))


def test_a_store_behind_https_is_written_and_read(server, certificate):
    store = secure_store(server, certificate)
    store.make_folder("job")
    store.create("job/a", 3, [b"abc"])
    assert b"".join(store.read("job/a")) == b"abc"
    assert server.held.tokens == {IN_A_URL}


def test_the_runner_suspends_and_resumes_over_https(server, certificate, tmp_path):
    lines = grouped(80, 5)
    (tmp_path / "container_tokens").write_bytes(WRITABLE)
    (tmp_path / "ca.pem").write_bytes(certificate.read_bytes())
    given = {"USER": "alice", "YARNCTL_CA_FILE": "ca.pem"}
    job = Job(tmp_path, {**given, "HADOOP_TOKEN_FILE_LOCATION": str(tmp_path / "container_tokens")})
    where = ("--store", f"swebhdfs://{server.host}/checkpoints", "--token-service", "10.1.2.3:8020")
    first = job.run(lines, python(SUM), *where, "--suspend-at", "33", "--exit-when-saved")
    assert first[0] == EXIT_SUSPENDED, job.stderr
    assert job.run(lines, python(SUM), *where) == Job(tmp_path).run(lines, python(SUM), promise=False)
    assert b"phase=replay groups=33" in job.stderr


def test_nobody_is_trusted_who_is_not_in_the_file(server):
    with pytest.raises(StoreError, match="CERTIFICATE_VERIFY_FAILED"):
        secure_store(server, "").list("")
    assert server.held.queries == []


def test_a_certificate_for_another_host_is_refused(server, tmp_path):
    other = make_certificate(tmp_path, "DNS:elsewhere")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(other, other.with_name("key.pem"))
    impostor = Server(context)
    with pytest.raises(StoreError, match="CERTIFICATE_VERIFY_FAILED"):
        secure_store(impostor, other).list("")
    assert impostor.held.queries == []
    impostor.shutdown()
    impostor.server_close()


def test_a_redirect_to_a_plain_datanode_is_not_followed(server, certificate):
    plain = Server()
    server.held.redirects_to = f"http://{plain.host}"
    server.held.put("/checkpoints/a", b"1")
    store = secure_store(server, certificate)
    for call in (lambda: list(store.read("a")), lambda: store.create("b", 1, [b"1"])):
        with pytest.raises(StoreError, match="redirected from https to http: not followed"):
            call()
    assert plain.held.queries == []
    plain.shutdown()
    plain.server_close()


@pytest.mark.parametrize("name", ["absent.pem", "empty.pem"])
def test_a_file_without_authorities_is_said_at_once(tmp_path, name):
    (tmp_path / "empty.pem").write_text("")
    with pytest.raises(Unusable, match=name):
        trusted(str(tmp_path / name))
    job = Job(tmp_path, {"USER": "alice"})
    where = ("--store", "swebhdfs://127.0.0.1:9/x", "--ca-file", name)
    assert job.run(b"a\t1\n", ["cat"], *where) == (0, b"a\t1\n")
    assert b"the reducer runs without the task runner: HTTPS:" in job.stderr
