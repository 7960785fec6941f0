"""The house check: each part is red on a planted breach and green without one; its list only shrinks."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from tests import http_client
from tests.architecture.house import clients, limits, sources
from tests.architecture.house.__main__ import LISTED, ROOT, Known, main, problems


def planted(root: Path, files: dict[str, str], known: Known | None = None) -> list[str]:
    """Write files below a root; return what the check says of them, with an empty list if none is given."""
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return problems(sources.read(root), known or {})


def modules_in(folder: str, count: int) -> dict[str, str]:
    """Return files for a folder: as many modules as said, and its ``__init__.py``."""
    return {f"{folder}/__init__.py": ""} | {f"{folder}/{folder[-3:]}_{n}.py": "" for n in range(count)}


# --- circles, folders, names, budgets ----------------------------------------------------------


@pytest.mark.parametrize(
    "line",
    ["import yarnctl.one", "from yarnctl import one", "from yarnctl.one import ONE", "from . import one",
     "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from yarnctl.one import ONE",
     "def late():\n    from yarnctl.one import ONE\n    return ONE",
     "import importlib\nONE = importlib.import_module('yarnctl.one')",
     "COMMANDS = {'one': ('yarnctl.one:command', 'Help.')}"],
)  # fmt: skip
def test_circles_however_a_module_is_imported(tmp_path, line):
    found = planted(tmp_path, {"yarnctl/one.py": "import yarnctl.two\n", "yarnctl/two.py": line + "\n"})
    assert len(found) == 1
    assert found[0].startswith(
        "yarnctl/one.py:1: 2 modules in a circle: yarnctl/one.py:1 imports yarnctl.two;"
    )


def test_circles_leave_alone_what_is_only_similar(tmp_path):
    files = {
        "yarnctl/__init__.py": "from yarnctl.two import TWO\n",
        "yarnctl/one.py": "import yarnctl.two\n",
        "yarnctl/two.py": "import json\nTWO = 'yarnctl.one'  # a text\n",
    }
    assert planted(tmp_path, files) == []


def test_folders_hold_thirteen_modules_but_for_deciding_and_cli(tmp_path):
    for folder, count in (("yarnctl/hall", 13), ("yarnctl/deciding", 20), ("emulator/live/cli", 20)):
        assert planted(tmp_path, modules_in(folder, count)) == []
    found = planted(tmp_path, {"yarnctl/hall/one_more.py": ""})
    assert found == ["yarnctl/hall:1: 14 modules lie directly in this folder, at most 13 may"]


def test_statements_are_held_to_a_budget_per_top_folder(tmp_path):
    files = {
        "yarnctl/__init__.py": '"""A docstring is no statement."""\n',
        "yarnctl/one/a.py": "A = 1\nB = 2\n",
        "yarnctl/one/deep/b.py": "C = 3\n",
        "yarnctl/top.py": "D = 4\n",
    }
    assert planted(tmp_path, files) == []
    modules = sources.read(tmp_path)
    assert dict(limits.spent(modules)) == {"yarnctl": 1, "yarnctl/one": 3}
    fits = {"yarnctl": {"statements": 1, "why": "x"}, "yarnctl/one": {"statements": 3, "why": "x"}}
    assert limits.over_budget(modules, fits) == []
    found = limits.over_budget(
        modules, {"yarnctl/one": {"statements": 2}, "gone": {"statements": 1, "why": "x"}}
    )
    assert [line.split(":")[0] for line in found] == ["yarnctl", limits.BUDGET, limits.BUDGET, "yarnctl/one"]
    assert "3 statements exceed the budget of 2" in found[-1]


def test_a_name_stands_for_one_thing(tmp_path):
    class_ = "def f():\n    class Row: pass\n    return Row\n"
    files = {
        **{f"{folder}/port.py": "" for folder in ("yarnctl", "yarnctl/a", "emulator")},
        **{f"{folder}/first_port.py": "" for folder in ("yarnctl", "emulator")},
        **{f"{folder}/__main__.py": "" for folder in ("yarnctl", "emulator")},
        **{f"{folder}/cli/rows.py": "" for folder in ("yarnctl", "emulator")},
        "yarnctl/rows.py": "class Row: pass\n",
    }
    assert planted(tmp_path, files) == []
    assert planted(tmp_path, {"emulator/rows.py": class_}) == [
        "emulator/rows.py:2: Row stands for 2: emulator/rows.py:2, yarnctl/rows.py:1",
        "emulator/rows.py:1: rows stands for 2: emulator/rows.py:1, yarnctl/rows.py:1",
    ]


# --- signatures --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("green", "red", "says"),
    [
        ("def f(*a: Any, **more: Any): g(*a, **more)", "def f(a, **more: Any): g(a, **more)",
         "yarnctl/a.py:1: f takes **more: Any; name the parameters"),
        ("class A(B):\n    def f(self, **more: Any): super().f(**more)",
         "class A(B):\n    def f(self, **more: Any): super().g(**more)",
         "yarnctl/a.py:2: A.f takes **more: Any; name the parameters"),
        ("def f(*how):\n    same = 1, 2\n    g(*how, same)", "def f(*how):\n    same = 1, 2\n    g(*same)",
         "yarnctl/a.py:3: f spreads the tuple same into a call; write the arguments out"),
        ("def f():\n    def g(a): h(*a)\n    g((1, 2))",
         "def f():\n    def g():\n        a = 1, 2\n        h(*a)",
         "yarnctl/a.py:4: f spreads the tuple a into a call; write the arguments out"),
    ],
    ids=("any", "override", "tuple", "inner function"),
)  # fmt: skip
def test_arguments_are_not_hidden(tmp_path, green, red, says):
    assert planted(tmp_path, {"yarnctl/a.py": green}) == []
    assert planted(tmp_path, {"yarnctl/a.py": red}) == [says]


@pytest.mark.parametrize(
    "parameter",
    ["queue: RequestQueue", "old_queues: RequestQueue", "requested: RequestQueue | None", "req: RequestQueue",
     "window: str", "window: tuple[RequestQueue, ...]", "window: Sized", "window: Order", "_: RequestQueue"],
)  # fmt: skip
def test_parameter_shares_a_word_with_its_class(tmp_path, parameter):
    head = "from yarnctl.b import Order, RequestQueue\nfrom collections.abc import Sized\n"
    files = {"yarnctl/b.py": "class RequestQueue: pass\nclass Sized: pass\nOrder = RequestQueue\n"}
    assert planted(tmp_path, files | {"yarnctl/a.py": f"{head}def f({parameter}): pass\n"}) == []


@pytest.mark.parametrize("annotation", ["Queue", "Queue | None"])
def test_parameter_named_after_something_else(tmp_path, annotation):
    files = {
        "yarnctl/b.py": "class RequestQueue: pass\n",
        "yarnctl/c.py": "from yarnctl.b import RequestQueue\n",
        "yarnctl/a.py": f"from yarnctl.c import RequestQueue as Queue\ndef f(window: {annotation}): pass\n",
        "emulator/d.py": "class Queue:\n    async def f(self, window: Queue): pass\n",
    }
    assert planted(tmp_path, files) == [
        "emulator/d.py:2: window shares no word with its class Queue",
        "yarnctl/a.py:2: window shares no word with its class Queue",
    ]


# --- HTTP clients ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("line", "library"),
    [("import requests", "requests"), ("from requests import Session", "requests"),
     ("def late():\n    import requests", "requests"), ("import http.client", "http.client"),
     ("from http import client", "http.client"), ("from http.client import HTTPConnection", "http.client"),
     ("from urllib3.connection import HTTPConnection", "urllib3"),
     ("import asyncio\nasync def f(): await asyncio.open_connection('h', 1)", "sockets"),
     ("import asyncio\nasync def f(loop): await loop.create_connection(f, 'h', 1)", "sockets"),
     ("import socket\nsocket.create_connection(('h', 1))", "sockets"),
     ("import socket\nsocket.socket().connect(('h', 1))", "sockets")],
)  # fmt: skip
def test_a_module_that_opens_connections_is_listed(tmp_path, line, library):
    (found,) = planted(tmp_path, {"yarnctl/asks.py": f"{line}\n"})
    assert f"yarnctl.asks opens connections ({library})" in found
    assert planted(tmp_path, {}, {"connections": {"yarnctl.asks": "why"}}) == []


@pytest.mark.parametrize(
    "line",
    ["from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from requests import Session",
     "from urllib.parse import urlsplit", "from http import HTTPStatus", "import urllib3.exceptions",
     "from requests.auth import AuthBase", "from http.client import HTTPException",
     "import socket\nsocket.create_server(('', 0))", "def f(database): database.connect()"],
)  # fmt: skip
def test_what_opens_nothing_is_no_client(tmp_path, line):
    assert planted(tmp_path, {"yarnctl/asks.py": f"{line}\n"}) == []


def test_tests_ask_through_their_client_or_say_why_not():
    opening = {
        path.relative_to(ROOT).as_posix()
        for folder in ("docker", "tests")
        for path in (ROOT / folder).rglob("*.py")
        if clients.uses(sources.parse(path, path.relative_to(ROOT).as_posix()))
    }
    assert opening == {"tests/http_client.py", *http_client.OTHERS}


# --- parsed reasons ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "expression",
    ["row.why == DUE", "row.why != 'due'", "row.why in (ONE, TWO)", "'lost' in row.why",
     "row.why.startswith('with ')", "row.why.strip().partition(' ')", "row.why[5:]",
     "PATTERN.fullmatch(row.why)", "re.search('[0-9]', row.why)", "(row.why or 'none') == DUE",
     "str(row.why) == DUE", "asked._reason == DUE", "work.why_not().startswith(DUE)",
     "[row for row, why in rows if why == DUE]", "(why := row.text) == DUE"],
)  # fmt: skip
def test_reading_the_text_of_a_reason_is_a_breach(tmp_path, expression):
    found = planted(tmp_path, {"yarnctl/reads.py": f"def reading(row):\n    return {expression}\n"})
    assert len(found) == 1
    assert found[0].startswith("yarnctl/reads.py:2: reads the text of a reason: ")


@pytest.mark.parametrize(
    "case", ["match row.why:\n  case 'due': pass", "match row:\n  case A(why='d'): pass"]
)
def test_matching_the_text_of_a_reason_is_a_breach(tmp_path, case):
    assert len(planted(tmp_path, {"yarnctl/reads.py": f"{case}\n"})) == 1


@pytest.mark.parametrize(
    "expression",
    ["row.why", "row.why == ''", "f'because {row.why}'", "row.why[:300]", "row.why is None", "show(row.why)",
     "row.why == Ended('lost')", "isinstance(row.why, Lost)", "name.startswith('why')"],
)  # fmt: skip
def test_a_value_may_be_compared_and_a_text_shown(tmp_path, expression):
    assert planted(tmp_path, {"yarnctl/reads.py": f"def reading(row):\n    return {expression}\n"}) == []


# --- the list ----------------------------------------------------------------------------------


def test_the_list_only_shrinks(tmp_path):
    files = {"yarnctl/reads.py": "def reading(row):\n    return row.why == DUE\n"}
    key = "yarnctl/reads.py:reading: row.why == DUE"
    assert planted(tmp_path, files, {"not-reasons": {key: "a title"}}) == []
    assert planted(tmp_path, files, {"not-reasons": {key: "a title", "gone": "a title"}, "roels": {}}) == [
        "known.toml: [roels] is the table of no check",
        "known.toml: [not-reasons] gone: no longer a breach; remove it",
    ]
    many = {f"{number}: Queue": "why" for number in range(26)}
    assert planted(tmp_path, files | {"yarnctl/reads.py": ""}, {"roles": many})[-1] == (
        "known.toml: [roles] has 26 entries, at most 25 may be"
    )


def test_a_breach_is_printed_and_ends_with_1(tmp_path, capsys):
    (tmp_path / LISTED).parent.mkdir(parents=True)
    (tmp_path / LISTED).write_text("")
    (tmp_path / limits.BUDGET).write_text('[yarnctl]\nstatements = 9\nwhy = "enough"\n')
    planted(tmp_path, {"yarnctl/a.py": "A = 1\n"})
    assert main(tmp_path) == 0
    assert capsys.readouterr().out == "lines 1, statements 1, modules 1\n"
    planted(tmp_path, {"yarnctl/a.py": "import requests\n" * 10})
    assert main(tmp_path) == 1
    errors = capsys.readouterr().err.splitlines()
    assert errors[0].startswith("error: yarnctl/a.py:1: yarnctl.a opens connections")
    assert errors[1].startswith("error: yarnctl: 10 statements exceed the budget of 9")
    assert "CONTRIBUTING.md" in errors[2]


def test_a_file_that_cannot_be_read_is_named(tmp_path):
    with pytest.raises(SyntaxError) as torn:
        planted(tmp_path, {"yarnctl/torn.py": "def\n"})
    assert torn.value.filename == "yarnctl/torn.py"


def test_the_product_passes_and_is_read_whole():
    modules = sources.read(ROOT)
    assert problems(modules, tomllib.loads((ROOT / LISTED).read_text())) == []
    assert limits.over_budget(modules, limits.budget(ROOT)) == []
    # The runner's one file is built of the package beside it, which is counted.
    assert {module.path for module in modules.values()} | {sources.BUILT} == {
        path.relative_to(ROOT).as_posix()
        for package in sources.PACKAGES
        for path in (ROOT / package).rglob("*.py")
    }
    assert {"yarnctl.deciding", "yarnctl.deciding.controller", "emulator.live.rest.site"} <= set(modules)
