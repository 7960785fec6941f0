"""The runner's options are read as argparse reads them, which costs each start 4 ms that this does not."""

from __future__ import annotations

import argparse
from typing import Any, NoReturn

import pytest
from hypothesis import given
from hypothesis import strategies as st

from yarnctl.task_runner.runner.protocol.job_conf import OLD_NAMES, OPTIONS, read_options
from yarnctl.task_runner.runner.protocol.stores import Unusable


class Reference(argparse.ArgumentParser):
    """argparse with the same options, raising what it complains of."""

    def error(self, message: str) -> NoReturn:
        raise Unusable(message)


def reference() -> Reference:
    parser = Reference(add_help=False, allow_abbrev=False)
    for name, default in OPTIONS.items():
        names = [name, *(old for old, new in OLD_NAMES.items() if new == name)]
        if isinstance(default, bool):
            parser.add_argument(*names, dest=name, action="store_true")
        else:
            parser.add_argument(*names, dest=name, type=type(default), default=default)
    return parser


PARSER = reference()


def outcome(read: Any, words: list[str]) -> object:
    """Return the values, or that they are refused."""
    try:
        found = read(words)
    except Unusable:
        return "refused"
    return found if isinstance(found, dict) else vars(found)


WORDS = st.sampled_from(
    [
        *OPTIONS,
        *OLD_NAMES,
        *(f"{name}=7" for name in (*OPTIONS, *OLD_NAMES)),
        *(
            "",
            "-",
            "-1",
            "-1.5",
            "-.5",
            "-x",
            "-x y",
            "5",
            "1e3",
            "soon",
            "a=b",
            "--restart",
            "--store=",
            "--save=-x",
        ),
    ]
)


@given(st.lists(WORDS, max_size=6))
def test_options_are_read_as_argparse_reads_them(words):
    assert outcome(read_options, words) == outcome(PARSER.parse_args, words)


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--restart"], "unrecognized arguments: --restart"),
        (["stray"], "unrecognized arguments: stray"),
        (["--restartable=yes"], "unrecognized arguments: --restartable=yes"),
        (["--store"], "argument --store: expected one argument"),
        (["--store", "--restartable"], "argument --store: expected one argument"),
        (["--release-wait-ms", "soon"], "argument --release-wait-ms: invalid int value: 'soon'"),
        (["--hold-ms", "soon"], "argument --hold-ms: invalid int value: 'soon'"),
    ],
)
def test_what_is_refused_is_named(words, says):
    with pytest.raises(Unusable, match=says):
        read_options(words)


@pytest.mark.parametrize(
    ("old", "new", "values"),
    [
        ("--hold-ms", "--release-wait-ms", ["9000"]),
        ("--leave-when-saved", "--exit-when-saved", []),
    ],
)
def test_an_old_name_is_the_new_ones_other_name_for_good(old, new, values, capsys):
    """It stands in stored command lines; a node's stderr has no warning, and the last of both counts."""
    assert OLD_NAMES[old] == new
    assert read_options([old, *values]) == read_options([new, *values]) != read_options([])
    assert capsys.readouterr() == ("", "")
    both = [old, *values, new, *(["7"] if values else [])]
    assert read_options(both)[new] == (7 if values else True)
