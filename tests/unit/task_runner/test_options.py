"""The runner's options are read as argparse reads them, which costs each start 4 ms that this does not."""

from __future__ import annotations

import argparse
from typing import Any, NoReturn

import pytest
from hypothesis import given
from hypothesis import strategies as st

from yarnctl.task_runner.runner.protocol.job_conf import OPTIONS, read_options
from yarnctl.task_runner.runner.protocol.stores import Unusable


class Reference(argparse.ArgumentParser):
    """argparse with the same options, raising what it complains of."""

    def error(self, message: str) -> NoReturn:
        raise Unusable(message)


def reference() -> Reference:
    parser = Reference(add_help=False, allow_abbrev=False)
    for name, default in OPTIONS.items():
        if isinstance(default, bool):
            parser.add_argument(name, dest=name, action="store_true")
        else:
            parser.add_argument(name, dest=name, type=type(default), default=default)
    return parser


PARSER = reference()


def outcome(read: Any, words: list[str]) -> object:
    try:
        found = read(words)
    except Unusable:
        return "refused"
    return found if isinstance(found, dict) else vars(found)


WORDS = st.sampled_from(
    [
        *OPTIONS,
        *(f"{name}=7" for name in OPTIONS),
        *("", "-", "-1", "-1.5", "-.5", "-x", "-x y", "5", "1e3", "soon", "a=b", "--restart", "--store=",
            "--save=-x"),
    ]
)  # fmt: skip


@given(st.lists(WORDS, max_size=6))
def test_options_are_read_as_argparse_reads_them(words):
    assert outcome(read_options, words) == outcome(PARSER.parse_args, words)


@pytest.mark.parametrize(
    ("words", "says"),
    [(["--restart"], "unrecognized arguments: --restart"), (["stray"], "unrecognized arguments: stray"),
     (["--restartable=yes"], "unrecognized arguments: --restartable=yes"),
     (["--store"], "argument --store: expected one argument"),
     (["--store", "--restartable"], "argument --store: expected one argument"),
     (["--release-wait-ms", "soon"], "argument --release-wait-ms: invalid int value: 'soon'")],
)  # fmt: skip
def test_what_is_refused_is_named(words, says):
    with pytest.raises(Unusable, match=says):
        read_options(words)
