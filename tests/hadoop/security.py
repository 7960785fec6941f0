"""A Kerberised Hadoop on loopback: a KDC of its own, keytabs, certificates, and every daemon behind them.

Law: nothing of the host's own Kerberos is read or changed; realm, tickets, keys and certificates lie in the
cluster's folder and are good for nothing else. HDFS speaks HTTPS only, data transfer is authenticated, the
ResourceManager, NameNode and history server want SPNEGO. The submitter must be the user that the NodeManagers
run as: without the setuid executor the shuffle serves nobody else's files.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
import socket
import subprocess
import zipfile
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import Any, Self
from xml.etree import ElementTree

from tests import http_client
from tests.hadoop import daemons
from tests.hadoop.artifacts import NotToBeHad, cache_folder
from tests.hadoop.configuration import Shape, free_ports
from tests.hadoop.launcher import Cluster
from yarnctl.hadoop.http.auth import Identity, session_auth

REALM = "YARNCTL.TEST"
HOST = "localhost"
USERS = ("hdfs", "yarnctl", "mallory")
SERVICES = ("nn", "dn", "rm", "nm", "jhs", "HTTP")
PROGRAMS = ("krb5kdc", "kdb5_util", "kadmin.local", "kinit", "keytool")
FOLDERS = (
    "/tmp/hadoop-yarn/staging/history",
    "/tmp/hadoop-yarn/staging",
    "/tmp/hadoop-yarn",
    "/tmp",
    "/user",
)
NATIVE = "io.trino.hadoop:hadoop-apache:3.2.0-18"
"""Holds libhadoop.so, without which a secure NodeManager serves no shuffle; Hadoop's own jars do not."""
FILTER = "org.apache.hadoop.security.AuthenticationFilterInitializer"
OPENS = "--add-opens=java.security.jgss/sun.security.krb5=ALL-UNNAMED"
WHITELIST = (
    "JAVA_HOME,HADOOP_COMMON_HOME,HADOOP_HDFS_HOME,HADOOP_CONF_DIR,CLASSPATH_PREPEND_DISTCACHE,HADOOP_YARN_HOME,"
    "HADOOP_HOME,PATH,LANG,TZ,HADOOP_MAPRED_HOME,JAVA_TOOL_OPTIONS"
)


def missing_programs() -> list[str]:
    """Return which programs of Kerberos are not on the path (some distributions keep them in sbin)."""
    return [name for name in PROGRAMS if shutil.which(name, path=_path()) is None]


def _path() -> str:
    return f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin"


def native_folder() -> Path:
    """Return the folder with libhadoop.so, fetched on first use; raises NotToBeHad."""
    kept = cache_folder() / "hadoop-native" / "libhadoop.so"
    if kept.is_file():
        return kept.parent
    kept.parent.mkdir(parents=True, exist_ok=True)
    goal = ["dependency:copy", f"-Dartifact={NATIVE}", f"-DoutputDirectory={kept.parent}"]
    done = subprocess.run(["mvn", "-B", "-q", *goal], capture_output=True, text=True)
    if done.returncode:
        raise NotToBeHad(f"Maven could not fetch {NATIVE}: {done.stdout[-1000:]}")
    (jar,) = kept.parent.glob("hadoop-apache-*.jar")
    machine = {"x86_64": "amd64"}.get(os.uname().machine, os.uname().machine)
    with zipfile.ZipFile(jar) as opened:
        beside = kept.with_suffix(".new")
        beside.write_bytes(opened.read(f"nativelib/Linux-{machine}/libhadoop.so"))
    beside.rename(kept)
    jar.unlink()
    return kept.parent


class Kdc:
    """A key distribution centre on a free port of loopback; as a context it is what this process uses."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.folder.mkdir(parents=True, exist_ok=True)
        self.keytab = folder / "keytab"
        (self.port,) = free_ports(1)
        self._process: subprocess.Popen[bytes] | None = None
        self._before: dict[str, str | None] = {}

    @property
    def environment(self) -> dict[str, str]:
        """Return what makes a program use this realm and nothing else of the host's."""
        opens = f"-Djava.security.krb5.conf={self.folder}/krb5.conf {OPENS}"
        return {
            "KRB5_CONFIG": f"{self.folder}/krb5.conf",
            "KRB5_KDC_PROFILE": f"{self.folder}/kdc.conf",
            "KRB5CCNAME": str(self.folder / "tickets"),
            "JAVA_TOOL_OPTIONS": f"{opens} -Djava.library.path={native_folder()}",
            "PATH": _path(),
        }

    def __enter__(self) -> Self:
        for name, value in self.environment.items():
            self._before[name] = os.environ.get(name)
            os.environ[name] = value
        try:
            self._start()
        except BaseException:
            self.__exit__(None, None, None)
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._process is not None:
            self._process.terminate()
            self._process.wait()
        for name, value in self._before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value

    def principals(self, *names: str) -> None:
        """Make principals with random keys and add them to the keytab."""
        for name in names:
            _run("kadmin.local", "-q", f"addprinc -randkey {name}")
        _run("kadmin.local", "-q", f"ktadd -norandkey -k {self.keytab} {' '.join(names)}")

    def login(self, name: str, cache: Path | None = None) -> dict[str, str]:
        """Get a ticket from the keytab; return what makes a program use it."""
        told = {"KRB5CCNAME": str(cache or self.folder / "tickets")}
        _run("kinit", "-k", "-t", str(self.keytab), name, env={**os.environ, **told})
        return told

    def _start(self) -> None:
        for name, text in (("krb5.conf", KRB5_CONF), ("kdc.conf", KDC_CONF)):
            written = text.format(realm=REALM, host=HOST, port=self.port, folder=self.folder)
            (self.folder / name).write_text(written, encoding="ascii")
        _run("kdb5_util", "create", "-s", "-r", REALM, "-P", secrets.token_hex(16))
        with (self.folder / "kdc.log").open("ab") as log:
            self._process = subprocess.Popen(
                ["krb5kdc", "-n"], stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd=self.folder
            )
        daemon = daemons.Daemon("krb5kdc", self._process, self.folder / "kdc.log")
        daemons.wait([daemon], self._answers, "the KDC")

    def _answers(self) -> bool:
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", self.port), 1):
            return True
        return False


KRB5_CONF = """\
[libdefaults]
    default_realm = {realm}
    dns_lookup_realm = false
    dns_lookup_kdc = false
    dns_canonicalize_hostname = false
    rdns = false
    udp_preference_limit = 1
    permitted_enctypes = aes256-cts-hmac-sha1-96
    ticket_lifetime = 1h
[realms]
    {realm} = {{
        kdc = 127.0.0.1:{port}
    }}
[domain_realm]
    {host} = {realm}
"""
KDC_CONF = """\
[kdcdefaults]
    kdc_listen = 127.0.0.1:{port}
    kdc_tcp_listen = 127.0.0.1:{port}
[realms]
    {realm} = {{
        database_name = {folder}/principal
        key_stash_file = {folder}/stash
        acl_file = {folder}/kadm5.acl
        supported_enctypes = aes256-cts-hmac-sha1-96:normal
    }}
[logging]
    kdc = FILE:{folder}/kdc.log
"""


def _run(*words: str, env: dict[str, str] | None = None) -> None:
    done = subprocess.run(words, capture_output=True, text=True, env=env, stdin=subprocess.DEVNULL)
    if done.returncode:
        raise AssertionError(f"{' '.join(words)} left with {done.returncode}: {done.stderr[-1000:]}")


class SecureCluster(Cluster):
    """A Hadoop in which nobody is believed without a ticket. ``folder`` must be empty."""

    def __init__(self, shape: Shape | None = None, folder: Path | None = None) -> None:
        super().__init__(shape, folder)
        self.kdc = Kdc(self.folder / "kdc")
        self.user = os.environ.get("USER") or "root"
        self.ca_file = self.folder / "tls" / "ca.pem"
        self._stack = contextlib.ExitStack()

    def up(self) -> None:
        """Start the KDC, then everything else."""
        self._stack.enter_context(self.kdc)
        try:
            self.kdc.principals(
                *(f"{name}/{HOST}" for name in SERVICES), self.user, "yarnctl", "hdfs", "mallory"
            )
            self._make_certificate()
            self.kdc.login("hdfs")
            super().up()
        except BaseException:
            self._stack.close()
            raise

    def down(self) -> None:
        """Stop everything, the KDC last."""
        try:
            super().down()
        finally:
            self._stack.close()

    # -- what differs from a cluster that believes everybody -----------------------------------------

    def _write_programs(self) -> None:
        """Secure the configuration right after it was written, then go on as usual."""
        for conf in self.folder.glob("conf*"):
            for name, more in self._sites().items():
                _add(conf / f"{name}.xml", more)
            for side in ("server", "client"):
                _add(conf / f"ssl-{side}.xml", self._stores(side))
        super()._write_programs()

    def _format(self) -> None:
        self.rm_url = f"http://{HOST}:{self.ports.resource_manager_http}"
        self.hdfs_url = f"https://{HOST}:{self.ports.name_node_http}"
        self.history_url = f"http://{HOST}:{self.ports.history_http}"
        super()._format()

    def _make_folders(self) -> None:
        with self.session() as session:
            for path in (
                "/tmp/hadoop-yarn/staging/history",
                "/tmp/hadoop-yarn/staging",
                "/tmp/hadoop-yarn",
                "/tmp",
                "/user",
            ):
                for operation in ("MKDIRS", "SETPERMISSION"):
                    url = f"{self.hdfs_url}/webhdfs/v1{path}?op={operation}&permission=1777"
                    session.put(url, timeout=180).raise_for_status()

    def session(self) -> http_client.Session:
        """Return a session that answers for the ticket of this process."""
        session = http_client.Session()
        session.trust_env = False
        session.verify = str(self.ca_file)
        session.auth = session_auth(Identity(method="kerberos"))
        return session

    def _answer(self, url: str) -> Any:
        try:
            with self.session() as session:
                answer = session.get(url, timeout=5, headers={"Accept": "application/json"})
            return answer.json() if answer.ok else None
        except (http_client.RequestException, ValueError):
            return None

    def _sites(self) -> dict[str, dict[str, str]]:
        keytab = str(self.kdc.keytab)
        spnego = f"HTTP/{HOST}@{REALM}"
        (data_https,) = free_ports(1)
        name_https = str(self.ports.name_node_http)
        return {
            "core-site": {"hadoop.security.authentication": "kerberos",
                "hadoop.security.auth_to_local": f"RULE:[2:$1@$0]({_daemons()})s/.*/hdfs/\nDEFAULT",
                "hadoop.http.filter.initializers": FILTER, "hadoop.http.authentication.type": "kerberos",
                "hadoop.http.authentication.simple.anonymous.allowed": "false",
                "hadoop.http.authentication.kerberos.principal": spnego,
                "hadoop.http.authentication.kerberos.keytab": keytab,
                "hadoop.http.authentication.signature.secret.file": f"{self.folder}/tls/signature",
                "hadoop.ssl.require.client.cert": "false",
                "hadoop.user.group.static.mapping.overrides": "dr.who=;yarnctl=yarnctl;hdfs=;mallory="},
            "hdfs-site": {"dfs.block.access.token.enable": "true",
                "dfs.data.transfer.protection": "authentication", "dfs.http.policy": "HTTPS_ONLY",
                "dfs.namenode.https-address": f"{HOST}:{name_https}",
                "dfs.datanode.https.address": f"{HOST}:{data_https}",
                "dfs.namenode.kerberos.principal": f"nn/{HOST}@{REALM}", "dfs.namenode.keytab.file": keytab,
                "dfs.namenode.kerberos.internal.spnego.principal": spnego,
                "dfs.web.authentication.kerberos.principal": spnego,
                "dfs.web.authentication.kerberos.keytab": keytab,
                "dfs.datanode.kerberos.principal": f"dn/{HOST}@{REALM}", "dfs.datanode.keytab.file": keytab},
            "yarn-site": {"yarn.resourcemanager.principal": f"rm/{HOST}@{REALM}",
                "yarn.resourcemanager.keytab": keytab, "yarn.resourcemanager.webapp.spnego-principal": spnego,
                "yarn.resourcemanager.webapp.spnego-keytab-file": keytab,
                "yarn.nodemanager.principal": f"nm/{HOST}@{REALM}", "yarn.nodemanager.keytab": keytab,
                "yarn.nodemanager.webapp.spnego-principal": spnego,
                "yarn.nodemanager.webapp.spnego-keytab-file": keytab,
                "yarn.nodemanager.env-whitelist": WHITELIST},
            "mapred-site": {"mapreduce.jobhistory.principal": f"jhs/{HOST}@{REALM}",
                "mapreduce.jobhistory.keytab": keytab, "mapreduce.jobhistory.webapp.spnego-principal": spnego,
                "mapreduce.jobhistory.webapp.spnego-keytab-file": keytab},
        }  # fmt: skip

    def _stores(self, side: str) -> dict[str, str]:
        folder = self.ca_file.parent
        password = (folder / "password").read_text(encoding="ascii")
        stores = {"truststore": "trust.p12", **({"keystore": "keys.p12"} if side == "server" else {})}
        found = {}
        for kind, name in stores.items():
            found[f"ssl.{side}.{kind}.location"] = f"{folder}/{name}"
            found[f"ssl.{side}.{kind}.password"] = password
            found[f"ssl.{side}.{kind}.type"] = "pkcs12"
        return {**found, **({"ssl.server.keystore.keypassword": password} if side == "server" else {})}

    def _make_certificate(self) -> None:
        """Make a key pair for this host, signed by itself, and both stores; the password stands in a file."""
        folder = self.ca_file.parent
        folder.mkdir(parents=True)
        password = secrets.token_hex(16)
        (folder / "password").write_text(password, encoding="ascii")
        (folder / "signature").write_text(secrets.token_hex(32), encoding="ascii")
        secret = [
            "-storetype", "PKCS12", "-storepass:file", f"{folder}/password", "-alias", "host", "-noprompt",
        ]  # fmt: skip
        keys = ["-keystore", f"{folder}/keys.p12", *secret]
        kinds = ["-keyalg", "RSA", "-keysize", "2048", "-validity", "30", "-dname", f"CN={HOST}"]
        names = ["-ext", f"san=dns:{HOST},ip:127.0.0.1", "-ext", "bc:c=ca:true"]
        use = ["-ext", "ku:c=digitalSignature,keyEncipherment,keyCertSign"]
        _run("keytool", "-genkeypair", *keys, *kinds, *names, *use)
        _run("keytool", "-exportcert", "-rfc", "-file", str(self.ca_file), *keys)
        trust = ["-keystore", f"{folder}/trust.p12", *secret]
        _run("keytool", "-importcert", "-noprompt", "-file", str(self.ca_file), *trust)


def _daemons() -> str:
    """Return a pattern for the daemons' principals (Hadoop's rules allow no brackets within brackets)."""
    return "|".join(f"{name}@{REALM}" for name in SERVICES if name != "HTTP")


def _add(file: Path, properties: dict[str, str]) -> None:
    """Add properties to a site file (or make it), and name the host instead of its address in all."""
    found: dict[str, str] = {}
    if file.exists():
        for entry in ElementTree.parse(file).getroot():
            found[entry.findtext("name", "")] = entry.findtext("value", "").replace("127.0.0.1", HOST)
    root = ElementTree.Element("configuration")
    for key, value in {**found, **properties}.items():
        entry = ElementTree.SubElement(root, "property")
        ElementTree.SubElement(entry, "name").text = key
        ElementTree.SubElement(entry, "value").text = value
    file.write_bytes(ElementTree.tostring(root, encoding="utf-8", xml_declaration=True))


@contextlib.contextmanager
def as_user(cluster: SecureCluster, name: str) -> Iterator[dict[str, str]]:
    """Give the environment of a client program with a ticket of its own."""
    cache = cluster.kdc.folder / f"tickets-{name}"
    yield {**cluster.environment, **cluster.kdc.login(name, cache)}
