"""What ``yarnctl wrap --spark`` makes of a command line, and what it refuses by name."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest
from click.testing import CliRunner

from yarnctl.cli import wrap as wrap_command
from yarnctl.errors import BadInput
from yarnctl.frameworks.spark.configuration import route_of
from yarnctl.frameworks.spark.leaving_options import TRAP_FILE, Leaving, default_lines
from yarnctl.frameworks.spark.submission import SparkWords
from yarnctl.frameworks.spark.wrapping import defaults_in, installed, version_in, wrap
from yarnctl.hadoop.wire.tags import charges_bound, drain_tags, min_executors_of

PLUGIN = Leaving("plugin", "/opt/leave.jar")


SIGNAL = Leaving()


def wrapped(line: str, leaving: Leaving = SIGNAL, defaults=None, version: str = "4.0.1") -> SparkWords:
    return SparkWords(wrap(SparkWords(shlex.split(line)), leaving, defaults or {}, version)[0])


def test_the_wrapped_command_is_the_users_with_our_settings_before_it():
    line = (
        "env A=1 spark-submit --queue research --master yarn --conf spark.yarn.tags=mine --class C a.jar -x 5"
    )
    words, _ = wrap(SparkWords(shlex.split(line)), Leaving(min_executors=2), {}, "4.0.1")
    assert words[:3] == ["env", "A=1", "spark-submit"]
    assert words[-8:] == shlex.split("--queue research --master yarn --class C a.jar -x 5")[-8:]
    settings = SparkWords(words).settings()
    assert settings["spark.yarn.tags"] == "mine,yarnctl-drain:signal,yarnctl-min-executors:2"
    assert settings["spark.executor.decommission.signal"] == "TERM"
    assert settings["spark.executorEnv.BASH_ENV"] == "./yarnctl-trap.sh"
    assert settings["spark.storage.decommission.replicationReattemptInterval"] == "1s"
    assert settings["spark.yarn.dist.files"] == str(TRAP_FILE)


def test_what_stands_there_already_is_not_said_twice():
    found = wrapped(
        "spark-submit --master yarn --conf spark.decommission.enabled=true a.py",
        defaults={"spark.storage.decommission.enabled": "true"},
    ).settings()
    assert found["spark.decommission.enabled"] == "true"
    assert "spark.storage.decommission.enabled" not in found


@pytest.mark.parametrize(
    ("line", "defaults", "files"),
    [("--files a,b", {}, [str(TRAP_FILE), "a,b"]), ("--files=a", {}, [str(TRAP_FILE), "a"]),
     ("", {"spark.yarn.dist.files": "c"}, [f"c,{TRAP_FILE}", None]),
     ("--files a", {"spark.yarn.dist.files": "c,/site/yarnctl-trap.sh"}, [f"c,{TRAP_FILE}", "a"]),
     ("--conf spark.yarn.dist.files=d", {"spark.yarn.dist.files": "c"}, [f"d,{TRAP_FILE}", None])],
)  # fmt: skip
def test_the_users_files_are_still_shipped(line: str, defaults: dict[str, str], files: list[str | None]):
    """Spark merges the setting with ``--files``, and ends a job if two files have one name."""
    found = wrapped(f"spark-submit --master yarn {line} a.py", defaults=defaults)
    assert [found.settings().get("spark.yarn.dist.files"), found.value_of("--files")] == files


def test_the_plugin_needs_no_signal_and_no_shell():
    found = wrapped(
        "spark-submit --master yarn --conf spark.plugins=org.Mine --jars x.jar a.py",
        PLUGIN._replace(fallback="hdfs:///fallback"),
    )
    settings = found.settings()
    assert settings["spark.plugins"] == "org.Mine,yarnctl.Leave"
    assert found.value_of("--jars") == "x.jar,/opt/leave.jar"
    assert settings["spark.yarn.tags"] == "yarnctl-drain:plugin"
    assert settings["spark.storage.decommission.fallbackStorage.path"] == "hdfs:///fallback/"
    assert not {"spark.executor.decommission.signal", "spark.executorEnv.BASH_ENV"} & set(settings)


REFUSED = [
    ("--master local[2]", SIGNAL, "4.0.1", "--master local[2]"),
    ("", SIGNAL, "4.0.1", "--master"),
    ("--master yarn --conf spark.decommission.enabled=false", Leaving(), "4.0.1",
     "spark.decommission.enabled"),
    ("--master yarn --conf spark.executor.decommission.signal=PWR", Leaving(), "4.0.1",
     "decommission.signal"),
    ("--master yarn --conf spark.executorEnv.BASH_ENV=x", SIGNAL, "4.0.1", "BASH_ENV"),
    ("--master yarn --conf 'spark.executor.extraJavaOptions=-Xrs -ea'", Leaving(), "4.0.1",
     "extraJavaOptions"),
    ("--master yarn", SIGNAL, "3.1.3", "Spark 3.1.3"),
    ("--master yarn", Leaving(uses_pipe=True), "4.0.1", "--uses-pipe"),
    ("--master yarn", Leaving(fallback="hdfs:///f"), "4.0.1", "--fallback"),
    ("--master yarn", Leaving("plugin"), "4.0.1", "--route, --plugin"),
    ("--master yarn --conf spark.storage.decommission.shuffleBlocks.maxDiskSize=1g", SIGNAL, "4.0.1",
     "shuffleBlocks.maxDiskSize=1g"),
    ("--master yarn --conf spark.yarn.tags=yarnctl-drain:signal", SIGNAL, "4.0.1", "spark.yarn.tags"),
    ("--master yarn --conf spark.yarn.tags=a,b,c,d,e,f,g,h,i,j", SIGNAL, "4.0.1", "spark.yarn.tags"),
]  # fmt: skip


@pytest.mark.parametrize(("options", "leaving", "version", "named"), REFUSED)
def test_what_forbids_leaving_is_refused_by_its_name(
    options: str, leaving: Leaving, version: str, named: str
):
    with pytest.raises(BadInput) as refusal:
        wrapped(f"spark-submit {options} app.py", leaving, version=version)
    assert named in str(refusal.value)


def test_the_same_in_a_file_of_defaults_is_refused_too():
    text = "# site\nspark.master yarn\nspark.executor.defaultJavaOptions=-Xrs\n\nspark.yarn.tags : t\n"
    defaults = defaults_in(text)
    assert defaults == {
        "spark.master": "yarn",
        "spark.executor.defaultJavaOptions": "-Xrs",
        "spark.yarn.tags": "t",
    }
    with pytest.raises(BadInput, match="defaultJavaOptions"):
        wrapped("spark-submit app.py", defaults=defaults)
    assert wrapped("spark-submit app.py", PLUGIN, defaults).settings()["spark.yarn.tags"].startswith("t,")


PROPERTIES = [
    ("a 1\n a = 2\n\ta:3  ", {"a": "3"}),
    ("spark.jars /a.jar,\\\n   /b.jar\nx y", {"spark.jars": "/a.jar,/b.jar", "x": "y"}),
    ("a b\\\\\nc d", {"a": "b\\", "c": "d"}),
    ("a hdfs\\://n/x\\u0041\\tb", {"a": "hdfs://n/xA\tb"}),
    ("! a b\r# c d\r\ne f", {"e": "f"}),
    ("a\\ b c", {"a b": "c"}),
    ("a b\\", {"a": "b"}),
]


@pytest.mark.parametrize(("text", "found"), PROPERTIES)
def test_a_file_of_settings_is_read_as_java_reads_it(text: str, found: dict[str, str]):
    assert defaults_in(text) == found


def test_settings_of_a_folder_named_in_front_and_of_both_files_count(tmp_path: Path):
    (tmp_path / "spark-defaults.conf").write_text("spark.jars a.jar\nspark.yarn.tags x\n")
    (tmp_path / "own").write_text("spark.jars b.jar\n")
    for words, found in [
        ("", {"spark.jars": "a.jar", "spark.yarn.tags": "x"}),
        (f"--properties-file {tmp_path}/own", {"spark.jars": "b.jar"}),
        (f"--properties-file {tmp_path}/own --load-spark-defaults",
         {"spark.jars": "b.jar", "spark.yarn.tags": "x"}),
    ]:  # fmt: skip
        line = f"env SPARK_CONF_DIR={tmp_path} spark-submit {words} a.py"
        assert installed(SparkWords(shlex.split(line)))[0] == found


def test_examples_cannot_have_the_plugins_jar_and_r_no_signal():
    with pytest.raises(BadInput, match="run-example"):
        wrapped("run-example --master yarn SparkPi 10", PLUGIN)
    assert wrapped("run-example --master yarn SparkPi 10").settings()["spark.yarn.tags"]
    for line in ("sparkR --master yarn", "sparkR --master yarn a", "spark-submit --master yarn a.R"):
        with pytest.raises(BadInput, match="processes of R"):
            wrapped(line)
        assert wrapped(line, PLUGIN).settings()["spark.plugins"] == "yarnctl.Leave"


HEARTBEAT = "spark.yarn.scheduler.heartbeat.interval-ms"


def test_the_plugins_containers_are_returned_within_a_second_unless_the_user_said_otherwise():
    assert wrapped("spark-submit --master yarn a.py", PLUGIN).settings()[HEARTBEAT] == "1000"
    own = wrapped(f"spark-submit --master yarn --conf {HEARTBEAT}=5000 a.py", PLUGIN)
    assert own.settings()[HEARTBEAT] == "5000"
    assert HEARTBEAT not in wrapped("spark-submit --master yarn a.py", PLUGIN, {HEARTBEAT: "2000"}).settings()
    assert HEARTBEAT not in wrapped("spark-submit --master yarn a.py").settings()
    assert any(line.split() == [HEARTBEAT, "1000"] for line in default_lines(PLUGIN))
    assert HEARTBEAT not in "".join(default_lines(Leaving()))


def test_the_signal_is_no_hindrance_for_the_plugin():
    said = "--conf spark.executor.extraJavaOptions=-Xrs --conf spark.executorEnv.BASH_ENV=x"
    found = wrapped(f"spark-submit --master yarn {said} a.py", PLUGIN._replace(uses_pipe=True))
    assert found.settings()["spark.plugins"] == "yarnctl.Leave"


def test_a_shuffle_service_is_told_and_not_refused():
    line = "spark-submit --master yarn --conf spark.shuffle.service.enabled=true a.py"
    _, notes = wrap(SparkWords(shlex.split(line)), PLUGIN, {}, "4.0.1")
    assert any("external shuffle service" in note for note in notes)


def test_the_charge_of_a_drain_is_a_tag():
    bound = Leaving(charge="bound")
    found = wrapped("spark-submit --master yarn a.py", bound).settings()["spark.yarn.tags"]
    assert found == "yarnctl-drain:signal,yarnctl-charge:bound"
    assert charges_bound(found.split(","))
    assert "yarnctl-charge:bound" in "".join(default_lines(bound))


def test_lines_of_defaults_hold_the_same_settings():
    found = defaults_in("\n".join(default_lines(Leaving())))
    line = wrapped("spark-submit --master yarn a.py").settings()
    assert found == {name: value for name, value in line.items() if name != "spark.master"}


def test_the_version_is_that_of_the_core(tmp_path):
    (tmp_path / "jars").mkdir()
    assert version_in(tmp_path) == ""
    (tmp_path / "jars" / "spark-core_2.13-4.0.1.jar").touch()
    assert version_in(tmp_path) == "4.0.1"


@pytest.mark.parametrize(
    ("tags", "route", "least"),
    [((), None, 1), (("other", "yarnctl-drain:signal"), "signal", 1),
     (("yarnctl-drain:plugin", "yarnctl-drain:signal", "yarnctl-min-executors:3"), "plugin", 3),
     (("yarnctl-drain:perhaps",), None, 1),
     (("yarnctl-drain:signal", "yarnctl-min-executors:few"), "signal", 1_000_000),
     (("yarnctl-min-executors:2", "yarnctl-min-executors:5"), None, 5)],
)  # fmt: skip
def test_tags_say_the_route_and_how_many_stay(tags: tuple[str, ...], route: str | None, least: int):
    assert route_of(tags) == route
    assert min_executors_of(tags) == least


# --- a site's defaults ------------------------------------------------------------------------------


def by_command(
    monkeypatch, tmp_path, options: str, line: str, site: Leaving | None, more: str = ""
) -> list[str]:
    """Return what ``yarnctl wrap --spark OPTIONS`` makes of a line where the site has these defaults."""
    monkeypatch.setenv("SPARK_CONF_DIR", str(tmp_path))
    lines = [*(default_lines(site) if site else []), *more.splitlines()]
    (tmp_path / "spark-defaults.conf").write_text("\n".join(lines))
    words = ["--spark", *options.split(), "--", *shlex.split(f"spark-submit --master yarn {line} a.py")]
    result = CliRunner().invoke(wrap_command.command, words)
    if result.exception is not None:
        raise result.exception
    return shlex.split(result.stdout)


CHOICES = [
    ("", SIGNAL),
    ("--min-executors 3 --charge bound", SIGNAL._replace(min_executors=3, charge="bound")),
    ("--route plugin --plugin /opt/leave.jar", PLUGIN),
    ("--plugin /opt/leave.jar --fallback hdfs:///f", PLUGIN._replace(fallback="hdfs:///f")),
]


@pytest.mark.parametrize("line", ["", "--jars my.jar --files f", "--conf spark.yarn.tags=mine"])
@pytest.mark.parametrize(("options", "leaving"), CHOICES)
def test_the_command_is_the_same_with_defaults_of_the_same_choices(
    options: str, leaving: Leaving, line: str, monkeypatch, tmp_path
):
    without = by_command(monkeypatch, tmp_path, options, line, None)
    assert by_command(monkeypatch, tmp_path, options, line, leaving) == without


@pytest.mark.parametrize(("options", "leaving"), CHOICES)
@pytest.mark.parametrize("site", [choice for _, choice in CHOICES])
def test_what_is_typed_replaces_the_sites_choices_and_the_rest_stays(
    options: str, leaving: Leaving, site: Leaving, monkeypatch, tmp_path
):
    found = SparkWords(by_command(monkeypatch, tmp_path, options, "", site)).settings()
    words = options.split()
    route = leaving.route if "--plugin" in words else site.route
    least = leaving.min_executors if "--min-executors" in words else site.min_executors
    charge = leaving.charge if "--charge" in words else site.charge
    assert found["spark.yarn.tags"].split(",") == drain_tags(route, least, charge)
    fallback = route == "plugin" and (leaving.fallback or site.fallback)
    assert found.get("spark.storage.decommission.fallbackStorage.path") == (
        f"{fallback}/" if fallback else None
    )
    assert found.get("spark.plugins") == ("yarnctl.Leave" if route == "plugin" else None)
    shell = {"signal": "./yarnctl-trap.sh", "plugin": "" if site.route == "signal" else None}
    assert found.get("spark.executorEnv.BASH_ENV") == shell[route]


def test_the_sites_other_tags_and_plugins_stay_and_its_jar_is_enough(monkeypatch, tmp_path):
    more = "spark.yarn.tags a,yarnctl-may-lose:2%,yarnctl-drain:plugin\nspark.plugins org.Mine,yarnctl.Leave"
    found = SparkWords(by_command(monkeypatch, tmp_path, "", "--jars my.jar", PLUGIN, more))
    assert found.settings()["spark.yarn.tags"] == "a,yarnctl-may-lose:2%,yarnctl-drain:plugin"
    assert found.settings()["spark.plugins"] == "org.Mine,yarnctl.Leave"
    assert found.value_of("--jars") == "my.jar"
    line = "--conf spark.yarn.dist.jars=x.jar --conf spark.plugins=org.Other"
    settings = SparkWords(by_command(monkeypatch, tmp_path, "", line, PLUGIN, more)).settings()
    assert settings["spark.yarn.dist.jars"] == "x.jar,/opt/leave.jar"
    assert settings["spark.plugins"] == "org.Other,yarnctl.Leave"
    settings = SparkWords(by_command(monkeypatch, tmp_path, "--route signal", "", PLUGIN, more)).settings()
    assert settings["spark.yarn.tags"] == "a,yarnctl-may-lose:2%,yarnctl-drain:signal"
    assert settings["spark.plugins"] == "org.Mine"


@pytest.mark.parametrize(
    ("options", "folder", "owner"),
    [("", "/site", "alice"), ("--requests webhdfs://h:1/typed --requests-owner bob", "/typed", "bob")],
)
def test_the_plugins_folder_is_the_sites_or_the_typed_one(
    options: str, folder: str, owner: str, monkeypatch, tmp_path
):
    site = PLUGIN._replace(requests="/site", owner="alice")
    found = SparkWords(by_command(monkeypatch, tmp_path, options, "", site)).settings()
    assert found["spark.yarnctl.requests"] == folder
    assert found["spark.yarnctl.requests.owner"] == owner


def test_a_jar_that_an_earlier_file_of_defaults_has_is_shipped_once(monkeypatch, tmp_path):
    options = "--plugin /opt/leave.jar"
    words = by_command(monkeypatch, tmp_path, options, "", PLUGIN, "spark.jars my.jar,/opt/leave.jar")
    assert SparkWords(words).settings()["spark.jars"] == "my.jar,/opt/leave.jar"


def test_a_wrapped_command_is_refused_with_defaults_too(monkeypatch, tmp_path):
    with pytest.raises(BadInput, match="wrapped already"):
        by_command(monkeypatch, tmp_path, "", "--conf spark.yarn.tags=yarnctl-drain:signal", SIGNAL)


@pytest.mark.parametrize("setting", ["spark.decommission.enabled false", "spark.executorEnv.BASH_ENV x"])
def test_what_forbids_leaving_is_refused_beside_the_sites_lines(setting: str, monkeypatch, tmp_path):
    with pytest.raises(BadInput, match=setting.split()[0]):
        by_command(monkeypatch, tmp_path, "", "", SIGNAL, setting)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [(["--spark"], "is missing"),
     (["--spark", "--print-defaults", "--", "spark-submit", "a.py"], "requires no command"),
     (["--uses-pipe", "--", "hadoop", "jar", "x.jar"], "--uses-pipe: requires --spark"), ([], "is missing")],
)  # fmt: skip
def test_options_that_do_not_go_together_are_refused(arguments: list[str], said: str):
    result = CliRunner().invoke(wrap_command.command, arguments)
    assert isinstance(result.exception, BadInput)
    assert said in str(result.exception)
