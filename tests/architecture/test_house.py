"""The house check: each part is red on a planted breach and green without one; its list only shrinks."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests import http_client
from tests.architecture.house import clients, graph, ratchet, sizes, sources
from tests.architecture.house.__main__ import ROOT, document, main, measure

NOBODY = clients.Listed({}, {})
NOTHING = ratchet.Known({}, {}, {}, {})


def planted(root: Path, files: dict[str, str]) -> tuple[str, ...]:
    """Write files below a root; return what the measure says of them with an empty list."""
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return measure(root, NOTHING, NOBODY).problems


def rooms_in(folder: str, count: int) -> dict[str, str]:
    """Return files for a folder: as many modules as said, and its ``__init__.py``."""
    return {f"{folder}/__init__.py": ""} | {f"{folder}/{folder[-3:]}_{n}.py": "" for n in range(count)}


def body(lines: int, head: str = "def long():") -> str:
    """Return a function whose body has as many lines, most of them blank."""
    return f"{head}\n    first = 1" + "\n" * (lines - 1) + "    return first\n"


@pytest.mark.parametrize(
    "line",
    ["import yarnctl.one", "from yarnctl import one", "from yarnctl.one import ONE", "from . import one",
     "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from yarnctl.one import ONE",
     "def late():\n    from yarnctl.one import ONE\n    return ONE",
     "import importlib\nONE = importlib.import_module('yarnctl.one')",
     "COMMANDS = {'one': ('yarnctl.one:command', 'Help.')}"],
)  # fmt: skip
def test_a_circle_is_seen_however_it_is_imported(tmp_path, line):
    found = planted(tmp_path, {"yarnctl/one.py": "import yarnctl.two\n", "yarnctl/two.py": line + "\n"})
    assert len(found) == 1
    assert found[0].startswith(
        "yarnctl/one.py:1: 2 modules in a circle: yarnctl/one.py:1 imports yarnctl.two;"
    )


def test_what_is_only_similar_is_no_circle(tmp_path):
    files = {
        "yarnctl/__init__.py": "from yarnctl.two import TWO\n",
        "yarnctl/one.py": "import yarnctl.two\n",
        "yarnctl/two.py": "import json\nTWO = 'yarnctl.one'  # a text\n",
    }
    assert planted(tmp_path, files) == ()


@given(st.dictionaries(st.integers(0, 7), st.sets(st.integers(0, 7)), max_size=8))
def test_a_component_is_what_reaches_each_other(edges):
    arrows = {str(name): {str(other): 1 for other in edges.get(name, ())} for name in range(8)}
    reached = {name: {name} for name in arrows}
    for _ in arrows:
        for others in reached.values():
            others |= {far for near in list(others) for far in arrows[near]}
    expected = {frozenset(b for b in arrows if b in reached[a] and a in reached[b]) for a in arrows}
    assert {frozenset(group) for group in graph.components(arrows)} == expected


@pytest.mark.parametrize("folder", ["yarnctl/deciding", "yarnctl/cli", "emulator/live/cli"])
def test_some_folders_hold_any_number_of_modules(tmp_path, folder):
    assert planted(tmp_path, rooms_in(folder, 20)) == ()


def test_a_folder_holds_thirteen_modules(tmp_path):
    assert planted(tmp_path, rooms_in("yarnctl/hall", 13)) == ()
    found = planted(tmp_path, {"yarnctl/hall/one_more.py": ""})
    assert found == ("yarnctl/hall:1: 14 modules lie directly in this folder, at most 13 may",)


def test_statements_are_held_to_a_budget_per_top_folder(tmp_path):
    files = {
        "yarnctl/__init__.py": '"""A docstring is no statement."""\n',
        "yarnctl/one/a.py": "A = 1\nB = 2\n",
        "yarnctl/one/deep/b.py": "C = 3\n",
        "yarnctl/top.py": "D = 4\n",
    }
    assert planted(tmp_path, files) == ()
    modules = sources.read(tmp_path)
    assert dict(sizes.spent(modules)) == {"yarnctl": 1, "yarnctl/one": 3}
    fits = {"yarnctl": {"statements": 1, "why": "x"}, "yarnctl/one": {"statements": 3, "why": "x"}}
    assert sizes.over_budget(modules, fits) == []
    found = sizes.over_budget(
        modules, {"yarnctl/one": {"statements": 2}, "gone": {"statements": 1, "why": "x"}}
    )
    assert [line.split(":")[0] for line in found] == ["yarnctl", sizes.BUDGET, sizes.BUDGET, "yarnctl/one"]
    assert "3 statements exceed the budget of 2" in found[-1]


def test_the_product_has_a_budget():
    assert sizes.over_budget(sources.read(ROOT), sizes.budget(ROOT)) == []


@pytest.mark.parametrize(
    ("green", "red", "says"),
    [
        (body(60), body(61), "long has 61 lines in its body, at most 60 may be"),
        ("def deep(a):\n" + "    if a: pass\n" * 11, "def deep(a):\n" + "    if a: pass\n" * 12,
         "deep: `deep` is too complex (13 > 12)"),
    ],
    ids=("lines", "complexity"),
)  # fmt: skip
def test_a_function_has_limits(tmp_path, green, red, says):
    assert planted(tmp_path, {"yarnctl/a.py": green}) == ()
    found = planted(tmp_path, {"yarnctl/a.py": red})
    assert len(found) == 1
    assert found[0].endswith(says)


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
    assert planted(tmp_path, {"yarnctl/a.py": green}) == ()
    assert planted(tmp_path, {"yarnctl/a.py": red}) == (says,)


def test_five_functions_may_be_excepted_by_name(tmp_path):
    files = {f"yarnctl/a{number}.py": body(61) for number in range(6)}
    planted(tmp_path, files)
    keys = [f"{name}:long" for name in files]
    measured = measure(tmp_path, ratchet.Known({}, dict.fromkeys(keys[:5], "why"), {}, {}), NOBODY)
    assert [line.partition(":")[0] for line in measured.problems] == ["yarnctl/a5.py"]
    measured = measure(tmp_path, ratchet.Known({}, dict.fromkeys(keys, "why"), {}, {}), NOBODY)
    assert measured.problems == ("[exceptions] names 6 functions, at most 5 may be",)
    assert document(measured)["functions"]["figures"]["named_exceptions"] == 6


def test_an_exception_that_is_not_needed_is_removed(tmp_path):
    planted(tmp_path, {"yarnctl/a.py": body(60)})
    measured = measure(tmp_path, ratchet.Known({}, {"yarnctl/a.py:long": "why"}, {}, {}), NOBODY)
    assert measured.problems == ("[exceptions] yarnctl/a.py:long: it is over no limit; remove it",)


def test_a_name_stands_for_one_thing(tmp_path):
    class_ = "def f():\n    class Row: pass\n    return Row\n"
    files = {
        **{f"{folder}/port.py": "" for folder in ("yarnctl", "yarnctl/a", "emulator")},
        **{f"{folder}/first_port.py": "" for folder in ("yarnctl", "emulator")},
        **{f"{folder}/__main__.py": "" for folder in ("yarnctl", "emulator")},
        **{f"{folder}/cli/rows.py": "" for folder in ("yarnctl", "emulator")},
        "yarnctl/rows.py": "class Row: pass\n",
    }
    assert planted(tmp_path, files) == ()
    found = planted(tmp_path, {"emulator/rows.py": class_})
    assert found == (
        "emulator/rows.py:1: rows stands for 2: emulator/rows.py:1, yarnctl/rows.py:1",
        "emulator/rows.py:2: Row stands for 2: emulator/rows.py:2, yarnctl/rows.py:1",
    )


@pytest.mark.parametrize(
    "parameter",
    ["queue: RequestQueue", "old_queues: RequestQueue", "requested: RequestQueue | None", "req: RequestQueue",
     "window: str", "window: tuple[RequestQueue, ...]", "window: Sized", "window: Order", "_: RequestQueue"],
)  # fmt: skip
def test_parameter_shares_a_word_with_its_class(tmp_path, parameter):
    head = "from yarnctl.b import Order, RequestQueue\nfrom collections.abc import Sized\n"
    files = {"yarnctl/b.py": "class RequestQueue: pass\nclass Sized: pass\nOrder = RequestQueue\n"}
    assert planted(tmp_path, files | {"yarnctl/a.py": f"{head}def f({parameter}): pass\n"}) == ()


@pytest.mark.parametrize("annotation", ["Queue", "Queue | None"])
def test_parameter_named_after_something_else(tmp_path, annotation):
    files = {
        "yarnctl/b.py": "class RequestQueue: pass\n",
        "yarnctl/c.py": "from yarnctl.b import RequestQueue\n",
        "yarnctl/a.py": f"from yarnctl.c import RequestQueue as Queue\ndef f(window: {annotation}): pass\n",
        "emulator/d.py": "class Queue:\n    async def f(self, window: Queue): pass\n",
    }
    assert planted(tmp_path, files) == (
        "emulator/d.py:2: window shares no word with its class Queue",
        "yarnctl/a.py:2: window shares no word with its class Queue",
    )
    roles = {"window: Queue": "why", "gone: Queue": "why"}
    measured = measure(tmp_path, ratchet.Known({}, {}, {}, roles), NOBODY)
    assert measured.problems == ("[roles] gone: Queue: no parameter needs it; remove it",)
    roles = {f"{number}: Queue": "why" for number in range(26)}
    measured = measure(tmp_path, ratchet.Known({}, {}, {}, roles), NOBODY)
    assert measured.problems[-1] == "[roles] names 26 pairs, at most 25 may be"


# --- HTTP clients ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("line", "library"),
    [("import requests", "requests"), ("from requests import Session", "requests"),
     ("def late():\n    import requests", "requests"), ("import http.client", "http.client"),
     ("from http import client", "http.client"), ("from http.client import HTTPConnection", "http.client"),
     ("import urllib.request", "urllib.request"), ("from urllib.request import urlopen", "urllib.request"),
     ("from urllib3.connection import HTTPConnection", "urllib3"), ("import httpx", "httpx"),
     ("import aiohttp", "aiohttp"), ("import hdfs", "hdfs"),
     ("import asyncio\nasync def f(): await asyncio.open_connection('h', 1)", "sockets"),
     ("import asyncio\nasync def f(loop): await loop.create_connection(f, 'h', 1)", "sockets"),
     ("import socket\nsocket.create_connection(('h', 1))", "sockets"),
     ("import socket\nsocket.socket().connect(('h', 1))", "sockets")],
)  # fmt: skip
def test_who_opens_connections_is_listed(tmp_path, line, library):
    (found,) = planted(tmp_path, {"yarnctl/asks.py": f"{line}\n"})
    assert found.endswith(f"yarnctl.asks uses {library} and is no client's module")
    listed = clients.Listed({"asking": ("yarnctl.asks",)}, {})
    measured = measure(tmp_path, NOTHING, listed)
    assert measured.problems == ()
    assert document(measured)["http-clients"]["figures"]["clients"] == 1


@pytest.mark.parametrize(
    "line",
    ["from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from requests import Session",
     "from urllib.parse import urlsplit", "from http import HTTPStatus", "import urllib3.exceptions",
     "from requests.auth import AuthBase", "from http.client import HTTPException",
     "import socket\nsocket.create_server(('', 0))", "def f(database): database.connect()"],
)  # fmt: skip
def test_what_opens_nothing_is_no_client(tmp_path, line):
    assert planted(tmp_path, {"yarnctl/asks.py": f"{line}\n"}) == ()


def test_tests_are_one_client_with_whatever_they_use(tmp_path):
    files = {"yarnctl/a.py": "", "tests/test_a.py": "import requests\n", "tests/b.py": "import http.client\n"}
    assert planted(tmp_path, files) == ()
    figures = document(measure(tmp_path, NOTHING, NOBODY))["http-clients"]["figures"]
    assert figures == {"clients": 1, "modules_of_clients": 0, "tests_http.client": 1, "tests_requests": 1}


def test_tests_ask_through_their_client_or_say_why_not():
    opening = {
        path.relative_to(ROOT).as_posix()
        for folder in clients.TEST_FOLDERS
        for path in (ROOT / folder).rglob("*.py")
        if clients.uses(sources.parse(path, path.relative_to(ROOT).as_posix()))
    }
    assert opening == {"tests/http_client.py", *http_client.OTHERS}


def test_a_listed_client_that_opens_nothing_is_removed(tmp_path):
    planted(tmp_path, {"yarnctl/asks.py": "", "yarnctl/pipe.py": "import requests\n"})
    listed = clients.Listed({"asking": ("yarnctl.asks", "yarnctl.pipe")}, {"yarnctl.gone": "TCP"})
    assert measure(tmp_path, NOTHING, listed).problems == (
        "clients.toml: yarnctl.asks opens no connection; remove it",
        "clients.toml: yarnctl.gone opens no connection; remove it",
    )


def test_a_module_belongs_to_one_client(tmp_path):
    planted(tmp_path, {"yarnctl/asks.py": "import requests\n"})
    listed = clients.Listed({"one": ("yarnctl.asks",)}, {"yarnctl.asks": "TCP"})
    assert measure(tmp_path, NOTHING, listed).problems == ("clients.toml: yarnctl.asks stands twice",)


# --- parsed reasons ----------------------------------------------------------------------------

RECORDS = """
from typing import Annotated, Literal, NamedTuple, NewType
Absence = Literal["absent", "ended"]
Sentence = NewType("Sentence", str)
class Ended(NamedTuple): status: str
class Lost(NamedTuple): node: str
Why = Ended | Lost
class Moved:
    why: str
class Gone:
    why: Absence
class Settled:
    why: Why | None
class Noted:
    why: Annotated[str, "shown"]
class Worded:
    why: Sentence
class Asked:
    def __init__(self, reason: str, moved: Moved) -> None:
        self._reason = reason
        self.moved = moved
Record = Moved | Gone
"""

READS = [
    ("record: Moved", "record.why == DUE"), ("record: Moved", "record.why != 'due'"),
    ("record: Moved", "record.why in (ONE, TWO)"), ("record: Moved", "'lost' in record.why"),
    ("record: Moved", "record.why.startswith('with ')"), ("record: Moved", "record.why.endswith('ended')"),
    ("record: Moved", "record.why.removeprefix('with ')"),
    ("record: Moved", "record.why.strip().partition(' ')"), ("record: Moved", "record.why[5:]"),
    ("record: Moved", "record.why[:5] == 'with '"), ("record: Moved", "PATTERN.fullmatch(record.why)"),
    ("record: Moved", "re.search('[0-9]', record.why)"), ("record: Moved", "(record.why or 'none') == DUE"),
    ("record: Noted", "record.why == DUE"), ("record: Worded", "record.why == DUE"),
    ("record: Record", "record.why == DUE"), ("record: Gone", "str(record.why) == DUE"),
    ("asked: Asked", "asked._reason == DUE"), ("asked: Asked", "asked.moved.why == DUE"),
    ("record", "record.why == DUE"), ("record: Record", "isinstance(record, Moved) and record.why == DUE"),
    ("why: str", "why == DUE"), ("why", "why == DUE"), ("reason: 'str | None'", "reason == DUE"),
    ("rows", "[row for row, why in rows if why == DUE]"), ("told: str", "told.endswith(DUE)"),
    ("work", "work.why_not().startswith(DUE)"),
]  # fmt: skip

READS_NOT = [
    ("record: Moved", "record.why"), ("record: Moved", "record.why == ''"),
    ("record: Moved", "f'because {record.why}'"), ("record: Moved", "record.why[:300]"),
    ("record: Moved", "record.why is None"), ("record: Moved", "show(record.why)"),
    ("record: Gone", "record.why == 'absent'"), ("record: Settled", "record.why == Ended('lost')"),
    ("record: Settled", "isinstance(record.why, Lost)"),
    ("record: Record", "isinstance(record, Gone) and record.why == 'absent'"),
    ("why: Why", "why == Ended('lost')"), ("why: Absence", "why in ('absent',)"), ("told", "told.split()"),
    ("told: dict[str, str]", "'a' in told"), ("name: str", "name.startswith('why')"),
]  # fmt: skip


def function_of(parameter: str, expression: str) -> dict[str, str]:
    lines = f"from yarnctl.records import *\ndef reading({parameter}):\n    return {expression}\n"
    return {"yarnctl/records.py": RECORDS, "yarnctl/reads.py": lines}


@pytest.mark.parametrize(("parameter", "expression"), READS)
def test_reading_the_text_of_a_reason_is_a_breach(tmp_path, parameter, expression):
    found = planted(tmp_path, function_of(parameter, expression))
    assert len(found) == 1
    assert found[0].startswith("yarnctl/reads.py:3: reads the text of a reason: ")


@pytest.mark.parametrize(("parameter", "expression"), READS_NOT)
def test_a_value_may_be_compared_and_a_text_shown(tmp_path, parameter, expression):
    assert planted(tmp_path, function_of(parameter, expression)) == ()


@pytest.mark.parametrize(
    ("lines", "red"),
    [
        ("text = record.why\n    return text.startswith('with ')", True),
        ("a, text = 1, record.why\n    return text == DUE", True),
        ("if (text := record.why) == DUE: return 1", True),
        ("match record.why:\n        case 'due': return 1", True),
        ("match record:\n        case Moved(why='due'): return 1", True),
        ("match record:\n        case Moved(): return record.why == DUE", True),
        ("match record:\n        case Gone(why='absent'): return 1", False),
        ("match record:\n        case Gone(): return record.why == 'absent'", False),
        ("match record:\n        case Gone() as gone: return gone.why == 'absent'", False),
        ("match record.why:\n        case Ended(): return 1", False),
        ("if isinstance(record, Gone):\n        return record.why == 'absent'", False),
        ("if isinstance(record, Gone):\n        return 1\n    else:\n        return record.why == DUE", True),
        ("why: Why\n    for why in reasons_of(record):\n        return why == Ended('lost')", False),
    ],
)
def test_a_reason_is_followed_through_a_function(tmp_path, lines, red):
    text = f"from yarnctl.records import *\ndef reading(record: Record):\n    {lines}\n"
    found = planted(tmp_path, {"yarnctl/records.py": RECORDS, "yarnctl/reads.py": text})
    assert len(found) == red, found


def test_a_text_that_is_no_reason_is_named(tmp_path):
    planted(tmp_path, function_of("why: str", "why == DUE"))
    key = "yarnctl/reads.py:reading: why == DUE"
    assert measure(tmp_path, ratchet.Known({}, {}, {key: "a title"}, {}), NOBODY).problems == ()
    measured = measure(tmp_path, ratchet.Known({}, {}, {key: "a title", "gone": "a title"}, {}), NOBODY)
    assert measured.problems == ("[not-reasons] gone: there is no such place; remove it",)


# --- the ratchet -------------------------------------------------------------------------------

LIST = """# What is known.

# Names for people.
[exceptions]
"yarnctl/e.py:long" = "it is a table"

[function-lines]
# As it was.
"yarnctl/a.py:long" = {}
"yarnctl/b.py:long" = 70
"""


@pytest.fixture
def house(tmp_path: Path) -> Path:
    """Return a small product with two long functions that are listed, and an excepted one."""
    planted(tmp_path, {f"yarnctl/{name}.py": body(70) for name in "abe"})
    (tmp_path / ratchet.LISTED).parent.mkdir(parents=True)
    (tmp_path / ratchet.LISTED).write_text(LIST.format(70))
    (tmp_path / clients.LISTED).write_text("[clients]\n")
    (tmp_path / sizes.BUDGET).write_text('[yarnctl]\nstatements = 99\nwhy = "enough"\n')
    return tmp_path


def test_what_is_listed_passes_and_is_printed(house, capsys):
    assert main([], house) == 0
    assert "over function lines 2 (target 0)" in capsys.readouterr().out
    assert main(["--json"], house) == 0
    functions = json.loads(capsys.readouterr().out)["functions"]
    assert functions["figures"]["over_function_lines"] == 2
    assert functions["breaches"][0] == {
        "section": "function-lines",
        "key": "yarnctl/a.py:long",
        "figure": 70,
        "where": "yarnctl/a.py:1",
        "says": "long has 70 lines in its body, at most 60 may be",
    }


@pytest.mark.parametrize(
    ("name", "lines", "says"),
    [
        ("c", 61, "yarnctl/c.py:1: long has 61 lines in its body, at most 60 may be"),
        ("a", 71, "yarnctl/a.py:1: long has 71 lines in its body, at most 60 may be; it had 70 before"),
        ("a", 60, "known.toml: [function-lines] yarnctl/a.py:long: no longer a breach; remove it"),
        ("a", 69, "known.toml: [function-lines] yarnctl/a.py:long: lower it from 70 to 69"),
    ],
    ids=("new", "grown", "mended", "smaller"),
)
def test_the_list_only_shrinks(house, capsys, name, lines, says):
    (house / f"yarnctl/{name}.py").write_text(body(lines))
    assert main(["--quiet"], house) == 1
    errors = capsys.readouterr().err.splitlines()
    assert errors[0] == f"error: {says}"
    assert "CONTRIBUTING.md" in errors[1]


def test_shrinking_takes_out_what_is_mended_and_nothing_else(house, capsys):
    (house / "yarnctl/a.py").write_text(body(65))
    (house / "yarnctl/b.py").write_text(body(60))
    (house / "yarnctl/c.py").write_text(body(61))
    assert main(["--shrink"], house) == 1  # what is new stays a breach
    assert (house / ratchet.LISTED).read_text() == "".join(LIST.format(65).splitlines(keepends=True)[:-1])
    (house / "yarnctl/c.py").write_text("")
    assert main([], house) == 0


def test_a_table_of_no_check_is_a_problem(house, capsys):
    (house / ratchet.LISTED).write_text(LIST.format(70) + "[functoins]\n")
    assert main(["--quiet"], house) == 1
    assert "[functoins] is the table of no check" in capsys.readouterr().err


def test_a_file_that_cannot_be_read_is_named(house):
    (house / "yarnctl/torn.py").write_text("def\n")
    with pytest.raises(SyntaxError) as torn:
        main([], house)
    assert torn.value.filename == "yarnctl/torn.py"


def test_the_list_is_what_there_is():
    measured = measure(ROOT, ratchet.load(ROOT / ratchet.LISTED), clients.load(ROOT / clients.LISTED))
    assert measured.problems == ()


def test_the_product_is_read_whole():
    modules = sources.read(ROOT)
    # The runner's one file is built of the package beside it, which is counted.
    assert {module.path for module in modules.values()} | {sources.BUILT} == {
        path.relative_to(ROOT).as_posix()
        for package in sources.PACKAGES
        for path in (ROOT / package).rglob("*.py")
    }
    assert {"yarnctl.deciding", "yarnctl.deciding.controller", "emulator.live.rest.site"} <= set(modules)
