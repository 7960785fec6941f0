"""Options of Hadoop in every spelling, read as commons-cli 1.5.0 has answered to the same words.

The answers were printed by ``GnuParser`` (generic options, ending at the first other word) and then
``BasicParser`` (those of streaming), set up as ``GenericOptionsParser`` and ``StreamJob`` set them up.
"""

from __future__ import annotations

import pytest

from yarnctl.errors import BadInput
from yarnctl.frameworks.mapreduce.submission import JarProgram
from yarnctl.task_runner.hadoop_words import GENERIC, HadoopOption, read_generic, read_options, settings_of

ANSWERED = {
    "-files a,b -mapper cat": [("-files", "a,b"), ("-mapper", "cat")],
    "--files a,b -mapper cat": [("-files", "a,b"), ("-mapper", "cat")],
    "-files=a,b -mapper cat": [("-files", "a,b"), ("-mapper", "cat")],
    "--files=a,b -mapper cat": [("-files", "a,b"), ("-mapper", "cat")],
    "-D x=y -mapper cat": [("-D", "x=y"), ("-mapper", "cat")],
    "--D x=y -mapper cat": [("-D", "x=y"), ("-mapper", "cat")],
    "-Dx=y -mapper cat": [("-D", "x=y"), ("-mapper", "cat")],
    "-D=x=y -mapper cat": [("-D", "x=y"), ("-mapper", "cat")],
    "--D=x=y -mapper cat": [("-D", "x=y"), ("-mapper", "cat")],
    "-Dx -mapper cat": [("-D", "x"), ("-mapper", "cat")],
    "-D x=y -- -mapper cat": [("-D", "x=y"), ("--",), ("-mapper", "cat")],
    "-D x=y - -mapper cat": [("-D", "x=y"), ("-",), ("-mapper", "cat")],
    "-conf c.xml -conf=d.xml --conf e.xml": [("-conf", "c.xml"), ("-conf", "d.xml"), ("-conf", "e.xml")],
    "-tokenCacheFile t --fs=h -jt local": [("-tokenCacheFile", "t"), ("-fs", "h"), ("-jt", "local")],
    '-files "a,b" -mapper cat': [("-files", "a,b"), ("-mapper", "cat")],
    "--mapper cat --input a b -input c -verbose": [("-mapper", "cat"), ("-input", "a", "b"), ("-input", "c"),
        ("-verbose",)],
    '-file m.py r.py -reducer "uniq"': [("-file", "m.py", "r.py"), ("-reducer", "uniq")],
    "-reducer -foo -mapper cat": [("-reducer", "-foo"), ("-mapper", "cat")],
    "-jobconf x=y -cmdenv A=b": [("-jobconf", "x=y"), ("-cmdenv", "A=b")],
}  # fmt: skip
"""Words, and the options with their values."""

REFUSED = {
    "-files -libjars x": "-files: has no value",
    "-mapper cat extra": "extra: is not an option of Hadoop streaming",
    "-files a b -mapper cat": "b: is not an option of Hadoop streaming",
    "-mapper": "-mapper: has no value",
    "-reducer -mapper cat": "-reducer: has no value",
}
"""What commons-cli refuses, too, or hands on as a word that streaming refuses."""


def shape(options: list[HadoopOption]) -> list[tuple[str, ...]]:
    return [(each.name, *each.values) for each in options]


@pytest.mark.parametrize("line", list(ANSWERED))
def test_options_are_read_as_hadoop_reads_them(line):
    words = line.split()
    found = read_options(words)
    assert shape(found) == ANSWERED[line]
    assert [word for each in found for word in each.words] == words


@pytest.mark.parametrize("line", list(REFUSED))
def test_words_that_hadoop_refuses_are_refused(line):
    with pytest.raises(BadInput) as refusal:
        read_options(line.split())
    assert REFUSED[line] in str(refusal.value)


@pytest.mark.parametrize("name", GENERIC)
@pytest.mark.parametrize("hyphens", ["-", "--"])
@pytest.mark.parametrize("equals", [True, False])
def test_every_generic_option_in_every_spelling(name, hyphens, equals):
    spelled = f"{hyphens}{name[1:]}"
    words = [f"{spelled}=a=b"] if equals else [spelled, "a=b"]
    found, rest = read_generic([*words, "-mapper", "cat"])
    assert (shape(found), rest) == ([(name, "a=b")], ["-mapper", "cat"])


def test_two_hyphens_before_a_glued_setting_are_no_generic_option():
    """``--Dx=y`` ends the generic options; streaming does not know it and Hadoop refuses the job."""
    assert read_generic(["--Dx=y", "-mapper", "cat"]) == ([], ["--Dx=y", "-mapper", "cat"])
    assert shape(read_options(["-reducer", '"a" "b"'])) == [("-reducer", '"a" "b"')]


def test_settings_last_of_a_name_wins_and_jobconf_wins_over_all():
    words = [
        "-jobconf", "a=3", "-D", "a=1", "-Da=2", "-D", "no-value", "-D", "mapred.reduce.tasks=4", "-Db=1",
    ]  # fmt: skip
    assert settings_of(read_options(words)) == {"a": "3", "mapreduce.job.reduces": "4", "b": "1"}


def test_option_with_another_value_keeps_its_spelling():
    for words, changed in (
        (["--files", "a"], ("--files", "a,r")),
        (["--files=a"], ("--files=a,r",)),
        (["-files=a"], ("-files=a,r",)),
    ):
        (option,) = read_options(words)
        assert option.with_value("a,r").words == changed


def test_program_in_a_jar_reads_the_same_generic_options():
    words = [
        "hadoop", "jar", "x.jar", "wordcount", "--files=f", "-D", "a=1", "--D", "mapred.job.queue.name=q",
    ]  # fmt: skip
    job = JarProgram([*words, "-Db=2", "in", "-D", "c=3"])
    assert job.settings() == {"a": "1", "mapreduce.job.queuename": "q", "b": "2"}
    line = job.words({"mapreduce.job.queuename": "given", "a": "5"})
    assert line[4:] == [
        *("-D", "mapreduce.job.queuename=given", "-D", "a=5", "--files=f"),
        *("-Db=2", "in", "-D", "c=3"),
    ]
