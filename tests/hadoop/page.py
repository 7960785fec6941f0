"""A page of the documentation as a script: its console blocks run in order, outputs compared, or recorded.

Law: a page shows what was really printed. What differs from run to run (numbers, ids, addresses, how wide a
table is) is made equal on both sides before comparing; everything else must be as the page says.

A block is ``console`` with one of these words after it, which a reader does not see:

* none: each command runs once, what it prints follows it on the page;
* ``wait``: the last command is asked again until it prints what the page says (within a time);
* ``background``: the last command is left running, and what the page shows of it must come.

A line ``...`` stands for any lines, in a line for anything. Comments before a block: ``until: REGEX`` is what
a waiting block awaits as well, in the output as it is; ``stop: WORDS`` ends the program with WORDS in its
command, as Ctrl-C does.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

PATIENCE_S = 300.0
LOOK_S = 1.0
ENDS_S = 60.0
BLOCK = re.compile(r"((?:<!-- [^\n]* -->\n)*)```console *([a-z]*)\n(.*?)```\n", re.DOTALL)
TABLE = str.maketrans({"━": "─", "┏": "┌", "┓": "┐", "┳": "┬", "┡": "├", "╇": "┼", "┩": "┤", "┃": "│"})
NATIVE = "WARN org.apache.hadoop.util.NativeCodeLoader"
"""Said by every client of a Hadoop without its C library, which is that of the tests."""
SPAN = re.compile(r"\b0 ?(?:ms|s|min|m|h|d)\b(?: 0 ?(?:ms|s|min|m|h|d)\b)*")


@dataclass
class Command:
    """One command of a page, and what the page says that it prints."""

    words: str
    shown: str


@dataclass
class Block:
    """The commands of one block, how the last is run, and what its comments say."""

    kind: str
    commands: list[Command]
    until: str = ""
    stops: str = ""


def blocks(text: str) -> Iterator[Block]:
    """Yield a page's console blocks, in order."""
    for comments, kind, body in BLOCK.findall(text):
        said = dict(re.findall(r"<!-- (until|stop): (.*?) -->", comments))
        parts = re.findall(r"^\$ ((?:[^\n]*\\\n)*[^\n]*\n)((?:(?!\$ )[^\n]*\n)*)", body, re.MULTILINE)
        commands = [Command(words.rstrip("\n"), shown) for words, shown in parts]
        yield Block(kind, commands, said.get("until", ""), said.get("stop", ""))


def unfolded(text: str) -> list[str]:
    """Return lines with each row of a table on one: the rest of a cell stands below an empty first one."""
    lines: list[str] = []
    for line in text.splitlines():
        cells = line.split("│")
        if lines and len(cells) > 2 and not cells[1].strip() and lines[-1].count("│") == len(cells) - 1:
            above = lines.pop().split("│")
            cells = [f"{one.rstrip()} {more.strip()} " for one, more in zip(above, cells, strict=True)]
            line = "│".join(cells).strip()
        lines.append(line)
    return lines


def plain(text: str) -> list[str]:
    """Return lines with all that differs between runs made equal; rows of a table that are alike, once."""
    lines: list[str] = []
    for line in unfolded(text.translate(TABLE)):
        line = re.sub(r"\d+(?:\.\d+)?", "0", line)
        line = re.sub(r"─+", "─", re.sub(r"│ +- +(?=│)", "│ 0 ", line))
        line = re.sub(r" +", " ", SPAN.sub("0 s", line)).replace("│ 0 s │", "│ 0 │").rstrip()
        if line and not (line.startswith("│") and lines[-1:] == [line]):
            lines.append(line)
    return lines


def is_as_shown(shown: str, seen: str) -> bool:
    """Say whether an output is what a page shows; a line ``...`` there stands for any lines."""
    wanted = "".join(
        r"(?:.*\n)*?" if line == "..." else ".*".join(map(re.escape, line.split("..."))) + r"\n"
        for line in plain(shown)
    )
    return re.fullmatch(wanted, "".join(f"{line}\n" for line in plain(seen))) is not None


@dataclass
class Script:
    """Runs a page. ``names`` are put into commands in place of the page's, and taken out of outputs again.

    With ``records`` every output is taken for what the page should show. ``folder`` is where the next command
    runs: as in a shell, ``cd`` changes it. ``logs`` keeps what programs print that are left running.
    """

    folder: Path
    logs: Path
    environment: dict[str, str]
    names: Mapping[str, str]
    records: bool = False
    _left: list[subprocess.Popen[bytes]] = field(default_factory=list)

    def run(self, text: str) -> Iterator[tuple[Command, str, bool]]:
        """Run every command; yield it with what it printed, and whether that is what the page shows."""
        for block in blocks(text):
            if block.stops:
                self.stop(block.stops)
            for command in block.commands:
                is_last = command is block.commands[-1]
                yield command, *self._one(block if is_last else Block("", []), command)

    def stop(self, words: str) -> None:
        """End the program that is left running with these words in its command."""
        (program,) = [one for one in self._left if words in str(one.args) and one.poll() is None]
        os.killpg(program.pid, signal.SIGINT)
        program.wait(ENDS_S)

    def end(self) -> None:
        while self._left:
            program = self._left.pop()
            if program.poll() is None:
                os.killpg(program.pid, signal.SIGTERM)
            program.wait(ENDS_S)

    def _one(self, block: Block, command: Command) -> tuple[str, bool]:
        words = self._with_names(command.words)
        log = self._leave(words) if block.kind == "background" else None
        records = self.records and log is None  # the next commands need what a background one prints
        ends = time.monotonic() + (PATIENCE_S if block.kind else 0)
        while True:
            seen = self._ours(self._run(words) if log is None else log.read_text(errors="replace"))
            good = (records or is_as_shown(command.shown, seen)) and bool(re.search(block.until, seen))
            if good or time.monotonic() > ends:
                return seen, good
            time.sleep(LOOK_S)  # the pace of a poll

    def _run(self, words: str) -> str:
        """Run a command in a shell whose exported variables the next one finds."""
        with tempfile.NamedTemporaryFile() as kept:
            line = f"{words}\nstatus=$?; env -0 >{kept.name}; exit $status"
            done = self._start(line, subprocess.PIPE)
            told, _ = done.communicate(timeout=2 * PATIENCE_S)
            pairs = Path(kept.name).read_bytes().decode().split("\0")
        self.environment = dict(pair.split("=", 1) for pair in pairs if "=" in pair)
        self.folder = Path(self.environment["PWD"])
        return told.decode(errors="replace")

    def _leave(self, words: str) -> Path:
        log = self.logs / f"left-{len(self._left)}.log"
        with log.open("wb") as out:
            self._left.append(self._start(words, out.fileno()))
        return log

    def _start(self, line: str, out: int) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            ["bash", "-c", line], cwd=self.folder, env=self.environment, stdin=subprocess.DEVNULL, stdout=out,
            stderr=subprocess.STDOUT, start_new_session=True,
        )  # fmt: skip

    def _with_names(self, words: str) -> str:
        for shown, real in self.names.items():
            words = words.replace(shown, real)
        return words

    def _ours(self, seen: str) -> str:
        for shown, real in self.names.items():
            seen = seen.replace(real, shown)
        return "".join(line for line in seen.splitlines(keepends=True) if NATIVE not in line)
