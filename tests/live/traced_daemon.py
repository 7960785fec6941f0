"""Be ``yarnctl run`` in a quicker world, and list the files that one kill goes through.

Law: only functions that are entered count, in any thread: an import does not. Two steps of the loop are
listed: the last one before the kill that asked for the ResourceManager's applications, from that request on,
and the one that kills an attempt, up to the request that does it. What the daemon does between steps is not
listed.

``main`` takes the arguments OUTPUT SPEED and those of ``yarnctl run``, and writes the list to OUTPUT.
"""

from __future__ import annotations

import inspect
import json
import sys
import threading
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import yarnctl
from tests.soak import virtual_live_sides
from yarnctl.frameworks.mapreduce.master import MasterClient
from yarnctl.hadoop.resource_manager import ResourceManager
from yarnctl.loop import tick

ROOT = Path(yarnctl.__file__).parents[1]


class Traced:
    """Collects the files that are entered until an attempt is killed."""

    def __init__(self, output: Path) -> None:
        self.output = output
        self._looked: set[str] = set()
        self._entered: set[str] = set()
        self._in_step = self._has_asked = False
        self._known: dict[CodeType, str] = {}

    def start(self) -> None:
        """Trace this thread and those to come."""
        threading.setprofile(self.event)
        sys.setprofile(self.event)

    def stop(self) -> None:
        """Write the list; trace nothing more."""
        threading.setprofile(None)
        sys.setprofile(None)
        whole = self.output.with_name(f"{self.output.name}.part")
        whole.write_text(json.dumps(sorted(self._looked | self._entered)), encoding="utf-8")
        whole.rename(self.output)

    def event(self, frame: FrameType, kind: str, _: Any) -> None:
        code = frame.f_code
        if kind == "call" and code is STEP:
            self._entered, self._in_step, self._has_asked = {self._path(code)}, True, False
        elif kind == "return" and code is STEP:
            self._looked = self._entered if self._has_asked else self._looked
            self._in_step = False
        elif kind == "call" and self._in_step and (path := self._path(code)):
            if code is ASKED:
                self._entered, self._has_asked = {self._path(STEP)}, True
            self._entered.add(path)
            if code is KILL:
                self.stop()

    def _path(self, code: CodeType) -> str:
        """Return the file of a function of yarnctl, ``""`` of all else: an import runs no function."""
        found = self._known.get(code)
        if found is None:
            path = Path(code.co_filename)
            is_ours = bool(code.co_flags & inspect.CO_OPTIMIZED) and path.is_relative_to(ROOT / "yarnctl")
            found = self._known[code] = path.relative_to(ROOT).as_posix() if is_ours else ""
        return found


STEP = tick.__code__
ASKED = ResourceManager.applications.__code__
KILL = MasterClient.kill.__code__


def main() -> None:
    """Run yarnctl and trace it."""
    output = Path(sys.argv.pop(1))
    Traced(output).start()
    virtual_live_sides.main()
