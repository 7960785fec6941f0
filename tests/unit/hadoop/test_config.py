"""The configuration of the clients: what is said nearest wins, and a mistake names its place."""

from __future__ import annotations

import pytest

from yarnctl.config import load_cluster
from yarnctl.errors import BadInput


@pytest.fixture
def conf(tmp_path):
    (tmp_path / "yarn-site.xml").write_text(
        "<configuration><property><name>yarn.resourcemanager.hostname</name><value>hadoop</value></property></configuration>"
    )
    (tmp_path / "core-site.xml").write_text(
        "<configuration><property><name>fs.defaultFS</name><value>hdfs://nn</value></property></configuration>"
    )
    return tmp_path


def write(tmp_path, text: str):
    path = tmp_path / "yarnctl.toml"
    path.write_text(text)
    return path


def test_each_source_wins_over_the_next(conf):
    environment = {"HADOOP_CONF_DIR": str(conf)}
    cluster = load_cluster(environment=environment)
    assert (cluster.resource_managers, cluster.name_nodes) == (("http://hadoop:8088",), ("http://nn:9870",))
    file = write(conf, '[cluster]\nresource_managers = ["http://file:1"]\nuser = "fred"\nanswer_ms = 5')
    assert load_cluster(file, environment).resource_managers == ("http://file:1",)
    environment["YARNCTL_RM"] = "http://env:1, http://env:2"
    cluster = load_cluster(file, environment)
    assert (cluster.resource_managers, cluster.user) == (("http://env:1", "http://env:2"), "fred")
    assert cluster.limits.answer_ms == 5
    given = load_cluster(file, environment, {"resource_managers": ["http://option:1"], "user": None})
    assert (given.resource_managers, given.user) == (("http://option:1",), "fred")
    assert given.transport().addresses == ("http://option:1",)
    given.resource_manager()
    given.store()


@pytest.mark.parametrize(
    ("text", "words"),
    [("[cluster", "invalid TOML"), ("cluster = 1", "not a table"),
     ("[cluster]\nrm = 1", "yarnctl.toml: rm: unknown key"),
     ("[cluster]\nresource_managers = 'http://x'", "yarnctl.toml: resource_managers: Expected"),
     ("[cluster]\nauthentication = 'trust'", "yarnctl.toml: authentication"),
     ("[cluster]\nanswer_ms = 0", "yarnctl.toml: answer_ms"),
     ("", "no ResourceManager is configured; set --rm")],
)  # fmt: skip
def test_a_mistake_names_its_place(tmp_path, text, words):
    with pytest.raises(BadInput) as caught:
        load_cluster(write(tmp_path, text))
    assert words in str(caught.value)


def test_other_places_are_named_too(tmp_path):
    with pytest.raises(BadInput, match="cannot be read"):
        load_cluster(tmp_path / "none.toml")
    with pytest.raises(BadInput, match="YARNCTL_AUTHENTICATION: authentication"):
        load_cluster(environment={"YARNCTL_AUTHENTICATION": "x", "YARNCTL_RM": "http://x"})
    with pytest.raises(BadInput, match="--answer-ms: answer_ms"):
        load_cluster(options={"answer_ms": "soon"})
    with pytest.raises(BadInput, match="not a folder"):
        load_cluster(environment={"HADOOP_CONF_DIR": str(tmp_path / "none")})


RM = {"YARNCTL_RM": "http://rm:8088", "YARNCTL_AUTHENTICATION": "kerberos"}


@pytest.mark.parametrize(
    ("more", "refused"),
    [({"YARNCTL_NAME_NODE": "http://nn:9870"}, True),
     ({"YARNCTL_NAME_NODE": "https://nn:9871,http://nn2:9870"}, True),
     ({"YARNCTL_NAME_NODE": "https://nn:9871"}, False),
     ({"YARNCTL_NAME_NODE": "http://nn:9870", "YARNCTL_TOKEN_OVER_HTTP": "1"}, False),
     ({"YARNCTL_NAME_NODE": "http://nn:9870", "YARNCTL_AUTHENTICATION": "simple"}, False), ({}, False)],
)  # fmt: skip
def test_with_kerberos_plain_http_to_a_name_node_must_be_allowed(more, refused):
    """Files go with a delegation token in the URL: over plain HTTP whoever listens can use it."""
    if refused:
        with pytest.raises(
            BadInput, match=r"YARNCTL_NAME_NODE: name_nodes: http://nn.*YARNCTL_TOKEN_OVER_HTTP"
        ):
            load_cluster(environment=RM | more)
    else:
        cluster = load_cluster(environment=RM | more)
        assert cluster.identity.token_over_http == ("YARNCTL_TOKEN_OVER_HTTP" in more)


def test_token_over_http_is_0_or_1():
    with pytest.raises(BadInput, match="YARNCTL_TOKEN_OVER_HTTP"):
        load_cluster(environment=RM | {"YARNCTL_TOKEN_OVER_HTTP": "perhaps"})
