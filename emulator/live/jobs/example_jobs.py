"""Example jobs: what ``yarn-emulator serve`` prints and provides for a first try of preemption.

Research fills the cluster for about two minutes. Production needs half of it and takes some seconds. Both
count words with the reducer of the demo, which spends ``PAUSE_S`` on each word.
"""

from __future__ import annotations

import shlex
import shutil
from itertools import count
from pathlib import Path

REDUCER = Path(__file__).resolve().parents[2] / "data" / "demo" / "count_words.py"
WORDS_PER_REDUCE = 120
"""Words of each reduce of research, about; at a pause of 1 s it runs for two minutes."""


def write_example(folder: Path, containers: int) -> None:
    """Write the input and the reducer into ``folder`` for a cluster of so many containers."""
    folder.mkdir(parents=True, exist_ok=True)
    words = containers * WORDS_PER_REDUCE
    lines = (f"word{number:05d}\tdocument{copy}\n" for number in range(words) for copy in range(2))
    (folder / "words.txt").write_text("".join(lines))
    shutil.copyfile(REDUCER, folder / REDUCER.name)


def next_commands(url: str, folder: Path, containers: int) -> tuple[str, str, str]:
    """Return the commands for a shell: attach yarnctl, submit research, and from the same shell production.

    Outputs are new folders beside the input, whatever earlier clusters have left there.
    """
    number = next(
        each
        for each in count(1)
        if not any((folder / f"{job_class}-{each}").exists() for job_class in ("production", "research"))
    )

    def submit(job_class: str, pause_s: str, *more: str) -> str:
        name = f"{job_class}-{number}"
        first = ("yarn-emulator", "submit", "--rm", url, "--queue", job_class, "--name", name)
        second = ("--input", "words.txt", "--output", name, "--reducer", f"python3 {REDUCER.name}")
        third = ("--cmdenv", f"PAUSE_S={pause_s}", *more)
        return " \\\n    ".join(map(shlex.join, (first, second, third)))

    research = submit("research", "1", "--reduces", str(max(1, containers - 1)), "--restartable", "--no-wait")
    return (
        shlex.join(("yarnctl", "run", "--rm", url, "--state-dir", "state", "--enforce")),
        f"{shlex.join(('cd', str(folder)))} && {research}",
        submit("production", "0.05", "--reduces", str(max(1, containers // 2)), "--no-runner"),
    )


def next_steps(url: str, folder: Path, containers: int) -> str:
    """Return the commands with what they do, for a terminal; the lines of a command are indented."""
    attach, research, production = (f"  {each}" for each in next_commands(url, folder, containers))
    return (
        "\nIn a second terminal attach yarnctl, and open its page http://127.0.0.1:8188/ in a browser:\n"
        f"{attach}\n"
        "In a third terminal fill the cluster with a research job:\n"
        f"{research}\n"
        "15 s later submit a production job there; yarnctl suspends reduces of research for it:\n"
        f"{production}"
    )
