"""The base is enough for the daemon, the command line and ``wrap``; what needs an extra names it.

Programs run in processes that see the standard library, the project and the packages that the base requires.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tomllib
from collections.abc import Iterable
from functools import cache
from importlib.metadata import packages_distributions, requires
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.live.test_all_in_one import cluster
from yarnctl.daemon.admission.placement_desk import PlacementPredictions
from yarnctl.errors import BadInput
from yarnctl.extras import EXTRAS

PROJECT = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())["project"]
top_level = cache(packages_distributions)
"""The installed distributions of each top-level module; reads all metadata, so not at import."""
LEARNED = "yarnctl.prediction."
"""Modules below it may need the extra ``prediction``."""

HIDING = """
import sys
from importlib.machinery import PathFinder

class Allowed(PathFinder):
    @classmethod
    def find_spec(cls, name, path=None, target=None):
        return None if name in HIDDEN else super().find_spec(name, path, target)

sys.meta_path = [Allowed if each is PathFinder else each for each in sys.meta_path]
"""
HELP = """
import click, contextlib, io
import emulator.cli, yarnctl.cli
from yarnctl.command_line import exit_status_of

def walk(group, words):
    if group.context_settings.get("help_option_names") != []:  # those stand for another program
        yield words
    if isinstance(group, click.Group):
        context = click.Context(group)
        for name in group.list_commands(context):
            yield from walk(group.get_command(context, name), [*words, name])

for program in (yarnctl.cli.PROGRAM, emulator.cli.PROGRAM):
    for words in walk(program, []):
        with contextlib.redirect_stdout(io.StringIO()) as shown:
            status = exit_status_of(program, [*words, "--help"])
        print(status, shown.getvalue().startswith("Usage: "), program.name, *words)
"""
MODULES = """
import importlib, pkgutil
import yarnctl

for each in pkgutil.walk_packages(yarnctl.__path__, "yarnctl."):
    if not each.name.endswith(("__main__", "yarnctl_task")):
        try:
            importlib.import_module(each.name)
        except ModuleNotFoundError as error:
            print(each.name, error.name)
"""


def closure(names: Iterable[str]) -> set[str]:
    """Return the top-level modules that requirements bring, with all that these require."""
    waiting, seen = [(Requirement(name), "") for name in names], set()
    while waiting:
        wanted, extra = waiting.pop()
        if wanted.marker is not None and not wanted.marker.evaluate({"extra": extra}):
            continue
        for each in wanted.extras or {""}:
            key = (canonicalize_name(wanted.name), each)
            if key not in seen:
                seen.add(key)
                waiting += [(Requirement(more), each) for more in requires(wanted.name) or []]
    distributions = {name for name, _ in seen}
    return {top for top, those in top_level().items() if distributions & set(map(canonicalize_name, those))}


@cache
def base() -> set[str]:
    """Return the top-level modules of the base."""
    return closure(PROJECT["dependencies"])


def alone(program: str, *words: str, more: Iterable[str] = ()) -> subprocess.CompletedProcess[str]:
    """Run a program that sees of all installed packages the base and ``more`` only."""
    hidden = set(top_level()) - base() - set(more) - {"yarnctl", "emulator"}
    source = f"HIDDEN = {hidden}\n{HIDING}\n{program}"
    return subprocess.run([sys.executable, "-c", source, *words], capture_output=True, text=True, check=False)


def command(name: str, *words: str, more: Iterable[str] = ()) -> subprocess.CompletedProcess[str]:
    """Run a command of one of both programs likewise."""
    module = {"yarnctl": "yarnctl.cli", "yarn-emulator": "emulator.cli"}[name]
    return alone(f"from {module} import main\nmain()", *words, more=more)


def test_every_command_shows_its_help_without_extras() -> None:
    done = alone(HELP)
    assert done.returncode == 0, done.stderr
    shown = done.stdout.splitlines()
    assert {"0 True yarnctl run", "0 True yarnctl checkpoints gc", "0 True yarn-emulator serve"} <= set(shown)
    assert [line for line in shown if not line.startswith("0 True ")] == []


def test_every_module_of_yarnctl_but_learned_times_imports_without_extras() -> None:
    done = alone(MODULES)
    assert done.returncode == 0, done.stderr
    failed = dict(line.split() for line in done.stdout.splitlines())
    assert [name for name in failed if not name.startswith(LEARNED)] == []
    assert set(failed.values()) == {"numpy"}


def test_daemon_attaches_to_a_cluster_and_serves_without_extras(tmp_path: Path) -> None:
    with cluster(tmp_path) as (client, _):
        where = ("--rm", client.url, "--name-node", client.url)
        state = ("--state-dir", str(tmp_path / "state"), "--ticks", "2", "--listen", "127.0.0.1:0")
        ran = command("yarnctl", "run", *where, *state)
        assert ran.returncode == 0, ran.stderr
        assert "http://127.0.0.1:" in ran.stderr
        checked = command("yarnctl", "check", *where, "--json")
    assert checked.returncode in (0, 1), checked.stderr
    assert json.loads(checked.stdout)["findings"]


SPECS = ("--production", "packaged:fb2009@18-19", "--research", "packaged:fb2009@21-22")
SMALL = ("--nodes", "2", "--slots", "2")
RUN = {"application": "a", "kind": "mapreduce", "containers": 2, "elapsed_ms": 1000, "source": "x"}


@pytest.mark.parametrize(
    ("extra", "more", "words"),
    [
        ("emulator", "", ("yarn-emulator", "serve", "--nodes", "1")),
        ("emulator", "", ("yarn-emulator", "compare", *SPECS, *SMALL)),
        ("report", "emulator", ("yarn-emulator", "demo", "--out", "OUT")),
        ("report", "emulator", ("yarn-emulator", "compare", *SPECS, *SMALL, "--out", "OUT")),
        ("export", "emulator", ("yarn-emulator", "convert", SPECS[1], "--out", "OUT")),
        ("ha", "", ("yarnctl", "run", "--rm", "http://127.0.0.1:9", "--lock", "zookeeper://127.0.0.1/a")),
        ("prediction", "", ("yarnctl", "runs", "--store", "RUNS")),
        ("prediction", "", ("yarnctl", "run", "--admission", "orion", "--pools", "POOLS", "--runs", "RUNS")),
    ],
)  # fmt: skip
def test_command_without_its_extra_names_it_and_writes_nothing(
    tmp_path: Path, extra: str, more: str, words: tuple[str, ...]
) -> None:
    places = {name: tmp_path / name.lower() for name in ("OUT", "RUNS", "POOLS")}
    places["RUNS"].write_text(json.dumps({**RUN, "features": {}, "settings": {}}) + "\n")
    places["POOLS"].write_text('[[pool]]\nname = "a"\nqueue = "root.research"\n')
    given = [word.replace("RUNS", str(places["RUNS"])) for word in words]
    given = [str(places.get(word, word)) for word in given]
    brought = closure(PROJECT["optional-dependencies"][more]) if more else ()
    done = command(*given, more=brought)
    assert (done.returncode, done.stdout) == (2, ""), done.stderr
    assert done.stderr.startswith("error: package ")
    assert f"needs the extra {extra!r}; run pip install 'yarnctl[{extra}]'" in done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert not places["OUT"].exists()


def test_daemon_without_learned_times_says_so_to_who_asks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "numpy", None)
    with pytest.raises(BadInput, match=r"yarnctl\[prediction\]"):
        PlacementPredictions().alternatives("a", {}, 0.05, ())


def test_table_of_extras_is_that_of_the_project() -> None:
    optional = PROJECT["optional-dependencies"]
    for extra, packages in EXTRAS.items():
        assert set(packages) <= closure(optional[extra])
        assert not set(packages) & base()
    (whole,) = optional["all"]
    assert Requirement(whole).extras == set(EXTRAS)
