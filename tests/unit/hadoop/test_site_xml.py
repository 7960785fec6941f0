"""Site files as Hadoop reads them, and what a hostile one may not do."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.thoroughness import examples
from yarnctl.errors import BadInput, YarnctlError
from yarnctl.hadoop import addresses, site_xml


def site(
    tmp_path: Path, *, environment=None, defaults=None, properties=None, **files: str
) -> site_xml.HadoopSite:
    for name, body in files.items():
        text = (
            body
            if body.lstrip().startswith("<?") or "<configuration" in body
            else f"<configuration>{body}</configuration>"
        )
        (tmp_path / f"{name}-site.xml").write_text(text)
    return site_xml.load(tmp_path, defaults, environment, properties)


def key(name: str, value: str, final: bool = False) -> str:
    tail = "<final>true</final>" if final else ""
    return f"<property><name>{name}</name><value>{value}</value>{tail}</property>"


@pytest.mark.parametrize(
    ("core", "yarn", "expected", "claim"),
    [
        (key("a", "1"), key("a", "2"), "2", "later files win"),
        (key("a", "1", True), key("a", "2"), "1", "but not over a final value"),
        (key("a", "1", True) + key("a", "3"), "", "1", "nor does the same file"),
        (key("a", "1"), key("a", "2", True), "2", "final later on"),
        (key("a", " 1 "), "", "1", "white space at the ends is dropped"),
        ("<property name='a' value='1'/>", "", "1", "attributes"),
        ("<property><name>a</name></property>", "", "", "no value, no key"),
        ("<property><value>1</value></property>" + key("a", "1"), "", "1", "no name, no key"),
        (f"<configuration>{key('a', '1')}</configuration>", "", "1", "nested"),
        ("<!-- x --><other/>" + key("a", "&lt;1&gt;"), "", "<1>", "comments, unknown elements, references"),
    ],
)
def test_merging(tmp_path, core, yarn, expected, claim):
    text = site(tmp_path, core=f"<configuration>{core}</configuration>", yarn=yarn).text("a")
    assert text == expected, claim


@pytest.mark.parametrize(
    ("value", "expected", "claim"),
    [("${b}:1", "host:1", "another key"), ("${c}", "host-x", "in several steps"),
     ("${none}/y", "${none}/y", "what is unknown stays"), ("${a}", "${a}", "a key that names itself stays"),
     ("${env.HOME_X}", "/h", "the environment"), ("${env.NONE}", "${env.NONE}", "an unknown variable stays"),
     ("${env.NONE:-d}${env.NONE-e}", "de", "defaults"),
     ("${env.EMPTY:-d}|${env.EMPTY-e}", "d|", "an empty variable counts with - and not with :-"),
     ("${user.name}", "ann", "a property of Java"), ("${dflt}", "9", "a default"),
     ("$b {b} ${ b }", "$b {b} ${ b }", "what is no variable stays")],
)  # fmt: skip
def test_variables(tmp_path, value, expected, claim):
    core = key("a", value) + key("b", "host") + key("c", "${b}-x")
    found = site(
        tmp_path,
        core=core,
        environment={"HOME_X": "/h", "EMPTY": ""},
        properties={"user.name": "ann"},
        defaults={"dflt": "9"},
    )
    assert found.text("a") == expected, claim


@pytest.mark.parametrize(
    "core",
    [
        key("a", "${b}") + key("b", "${c}") + key("c", "${b}"),
        key("a", "${b}${b}")
        + "".join(key(f"{chr(98 + at)}", f"${{{chr(99 + at)}}}" * 2) for at in range(22)),
        key("a", "${b}${b}") + key("b", "x" * 40_000),
    ],
)
def test_variables_without_an_end_are_refused(tmp_path, core):
    with pytest.raises(BadInput, match=r"core-site.xml:\d+: a"):
        site(tmp_path, core=core).text("a")


def test_kinds_of_values(tmp_path):
    found = site(tmp_path, core=key("t", " TRUE ") + key("n", "0x10") + key("w", "a, b,,c "))
    assert (found.boolean("t"), found.boolean("n", True)) == (True, True)
    assert found.list_of("w") == ("a", "b", "c")


XI = "xmlns:xi='http://www.w3.org/2001/XInclude'"


def test_includes(tmp_path):
    (tmp_path / "more").mkdir()
    (tmp_path / "more" / "inner.xml").write_text(
        f"<configuration {XI}><xi:include href='../last.xml'/></configuration>"
    )
    (tmp_path / "last.xml").write_text(f"<configuration>{key('a', '1', True)}</configuration>")
    found = site(
        tmp_path,
        core=f"<configuration {XI}><xi:include href='more/inner.xml'/>{key('a', '2')}"
        f"<xi:include href='none.xml'><xi:fallback>{key('f', '3')}</xi:fallback></xi:include>"
        "</configuration>",
    )
    assert (found.text("a"), found.text("f")) == ("1", "3")
    assert found.where("a").startswith(f"{tmp_path}/more/../last.xml:1")


@pytest.mark.parametrize(
    ("text", "words"),
    [("<!DOCTYPE x [<!ENTITY a 'b'>]><configuration>&a;</configuration>", "DOCTYPE"),
     ("<!DOCTYPE x SYSTEM 'file:///etc/passwd'><configuration/>", "DOCTYPE"),
     (f"<configuration {XI}><xi:include href='http://h/x.xml'/></configuration>", "include a local file"),
     (f"<configuration {XI}><xi:include href='file://h/x.xml'/></configuration>", "include a local file"),
     (f"<configuration {XI}><xi:include/></configuration>", "include a local file"),
     (f"<configuration {XI}><xi:include href='none.xml'/></configuration>", "missing"),
     (f"<configuration {XI}><xi:include href='core-site.xml'/></configuration>", "includes itself"),
     ("<configuration><property>", "invalid XML"), ("<configuration>" + "<a>" * 40, "nested"),
     ("<html/>", "expected <configuration>"), ("<configuration>&undefined;</configuration>", "invalid XML"),
     ("<?xml version='1.0' encoding='klingon'?><configuration/>", "invalid XML")],
)  # fmt: skip
def test_what_a_file_may_not_do(tmp_path, text, words):
    (tmp_path / "core-site.xml").write_text(text)
    with pytest.raises(BadInput, match=words) as caught:
        site_xml.load(tmp_path)
    assert "core-site.xml" in str(caught.value)


def test_sizes_are_bounded(tmp_path, monkeypatch):
    monkeypatch.setattr(site_xml, "MAX_BYTES", 100)
    with pytest.raises(BadInput, match="longer than 100"):
        site(tmp_path, core=key("a", "x" * 100))


def test_a_folder_must_be_one(tmp_path):
    with pytest.raises(BadInput, match="HADOOP_CONF_DIR"):
        site_xml.load(tmp_path / "none")


@settings(derandomize=True, max_examples=examples(200), suppress_health_check=list(HealthCheck))
@given(
    body=st.binary(max_size=120)
    | st.text(alphabet="<>/configuratpey!&;[]'=\" ", max_size=120).map(str.encode)
)
def test_any_text_gives_a_site_or_our_error(tmp_path, body):
    (tmp_path / "core-site.xml").write_bytes(body)
    try:
        site_xml.load(tmp_path)
    except YarnctlError as error:
        assert "\n" not in str(error)


def from_files(tmp_path, **files: str):
    found = site(tmp_path, defaults=addresses.DEFAULTS, **files)
    return addresses.resource_managers(found), addresses.name_nodes(found)


@pytest.mark.parametrize(
    "yarn",
    [
        key("yarn.resourcemanager.ha.enabled", "true"),
        key("yarn.resourcemanager.ha.enabled", "true") + key("yarn.resourcemanager.ha.rm-ids", "a"),
        key("yarn.resourcemanager.webapp.address", "rm:http"),
        key("yarn.resourcemanager.webapp.address", "u:p@rm:80"),
        key("yarn.resourcemanager.hostname", "${unknown}"),
    ],
)
def test_an_address_that_cannot_be_used_names_its_key(tmp_path, yarn):
    with pytest.raises(BadInput, match=r"yarn\.resourcemanager"):
        from_files(tmp_path, yarn=yarn)
