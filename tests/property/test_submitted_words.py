"""No word of a user's is changed, but what a white list names: every command line, every answer of a gate.

Law: the words that come out are those that went in, less options that set what the gate sets, and with the
gate's own in front of the options. A bug is planted for each way to break it, and seen.
"""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.thoroughness import examples
from yarnctl.frameworks.command_words import TypedOption
from yarnctl.frameworks.flink import submission as flink
from yarnctl.frameworks.spark import submission as spark

TAGS = ["deadline:1900000000000", "yarnctl-admission-adm-1f2e3d4c-7"]
TEXT = st.text(st.characters(codec="utf-8", exclude_categories=("Cs", "Cc")), min_size=1, max_size=12)
REST = st.lists(
    st.one_of(TEXT, st.sampled_from(["--conf", "-D", "-p", "--queue", "spark.yarn.tags=x", "-Dyarn.tags=x"])),
    max_size=5,
)
FRONT = st.sampled_from([[], ["env", "A=--conf"], ["nice", "-n", "5"], ["yarnctl", "wrap", "--exec", "--"]])
VALUES = TEXT.filter(lambda text: "=" not in text)


def pairs(names: list[str]) -> st.SearchStrategy[str]:
    return st.tuples(st.sampled_from(names), TEXT).map(lambda pair: f"{pair[0]}={pair[1]}")


SPARK_OPTIONS = st.lists(
    st.one_of(
        st.tuples(st.just("--conf"), pairs(["spark.a", "spark.executor.memory", "x"])),
        pairs(["--conf=spark.b", "--conf=y"]).map(lambda word: (word,)),
        st.tuples(st.sampled_from(["--class", "--files", "--properties-file", "--driver-memory"]), TEXT),
        st.tuples(st.sampled_from(["--verbose", "--supervise"])),
    ),
    max_size=6,
).map(lambda rows: [list(row) for row in rows])
FLINK_OPTIONS = st.lists(
    st.one_of(
        st.tuples(st.just("-D"), pairs(["a.b", "taskmanager.memory.process.size"])),
        pairs(["-Dc.d", "-De"]).map(lambda word: (word,)),
        st.tuples(st.sampled_from(["-c", "--classpath", "-s"]), TEXT),
        st.tuples(st.sampled_from(["-d", "--allowNonRestoredState"])),
    ),
    max_size=6,
).map(lambda rows: [list(row) for row in rows])

LISTED: dict[str, Any] = {
    "spark": [["--conf", "spark.yarn.tags=mine"], ["-c", "spark.yarn.tags=a,b"],
        ["--conf=spark.yarn.tags=c"]],
    "flink": [["-Dyarn.tags=mine"], ["-D", "yarn.tags=a,b"]],
}  # fmt: skip
"""Options that the gate's settings replace."""
DIALECTS: dict[str, tuple[Any, list[str], list[str]]] = {
    "spark": (spark, ["spark-submit"], ["--master", "yarn", "--deploy-mode=cluster"]),
    "flink": (flink, ["flink", "run-application"], ["-t", "yarn-application"]),
}


Drawn = tuple[str, list[str], list[list[str]], list[str], int]
"""Framework, words in front, options, what follows the job's file, containers."""


def typed(kind: str) -> st.SearchStrategy[Drawn]:
    """Draw a command line: words in front, options, those that are replaced among them, the rest."""
    options = SPARK_OPTIONS if kind == "spark" else FLINK_OPTIONS
    listed = st.lists(st.sampled_from(LISTED[kind]), max_size=2)
    mixed = st.tuples(options, listed).flatmap(lambda both: st.permutations([*both[0], *both[1]]))
    return st.tuples(st.just(kind), FRONT, mixed, REST, st.integers(1, 50))


LINES = st.one_of(typed("spark"), typed("flink"))


def judge(drawn: Drawn) -> None:
    """Say what came out against what was drawn; AssertionError."""
    kind, front, options, rest, containers = drawn
    framework, program, needed = DIALECTS[kind]
    rest = ["job.jar", *rest]
    before = [*front, *program, *needed, *(word for option in options for word in option), *rest]
    job = framework.command_of(before)
    more, _ = framework.settled(job.settings(), framework.given(containers), TAGS)
    after = job.words(more)
    head = [*front, *program]
    kept = [word for option in options if option not in LISTED[kind] for word in option]
    tail = [*needed, *kept, *rest]
    assert after[: len(head)] == head
    assert after[len(after) - len(tail) :] == tail
    ours = after[len(head) : len(after) - len(tail)]
    words = [word for word in ours if word != "--conf"] if kind == "spark" else [one[2:] for one in ours]
    assert {word.partition("=")[0] for word in words} == {*framework.given(1), framework.TAGS}
    assert len(words) == len(framework.given(1)) + 1


@settings(max_examples=examples(400))
@given(LINES)
def test_no_word_of_a_user_s_is_changed_but_what_the_white_list_names(drawn):
    judge(drawn)


def all_are_options(words: Any, is_mixed: bool) -> Any:
    """Read options to the end of the line: what follows the job's file, too."""
    options, rest = spark_parsed(words, is_mixed)
    found: list[Any] = []
    while rest:
        word = rest.pop(0)
        if word == "--conf" and rest and "=" in rest[0]:
            name, _, value = rest[0].partition("=")
            found.append(TypedOption((word, rest.pop(0)), word, value, name))
        else:
            found.append(TypedOption((word,), word))
    return [*options, *found], ["job.jar"]


spark_parsed = spark._parsed


def test_planted_a_parser_that_reads_the_job_s_own_arguments_is_seen(monkeypatch):
    drawn: Drawn = ("spark", [], [], ["--conf", "spark.yarn.tags=x"], 4)
    judge(drawn)
    monkeypatch.setattr(spark, "_parsed", all_are_options)
    with pytest.raises(AssertionError):
        judge(drawn)


@pytest.mark.parametrize(
    ("module", "drawn"),
    [(spark, ("spark", [], [["--conf", "spark.a=1"]], [], 4)), (flink, ("flink", [], [["-Da=1"]], [], 4))],
)
def test_planted_settings_written_anew_are_seen(module, drawn, monkeypatch):
    """As one that writes options from what was understood, and not as they were typed."""
    judge(drawn)
    monkeypatch.setattr(
        module,
        "kept_words",
        lambda options, more: [word for each in options for word in (each.option, each.value or "")],
    )
    with pytest.raises(AssertionError):
        judge(drawn)


def test_planted_an_option_of_the_user_s_that_is_dropped_is_seen(monkeypatch):
    drawn: Drawn = ("flink", [], [["-Da.b=1"], ["-d"]], [], 4)
    judge(drawn)
    monkeypatch.setattr(
        flink,
        "kept_words",
        lambda options, more: [word for each in options if each.value for word in each.words],
    )
    with pytest.raises(AssertionError):
        judge(drawn)
