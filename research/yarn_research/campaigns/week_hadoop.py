"""A short week on a real Hadoop: what the bill, the week replayed, When and ``--oversized`` are worth.

``python -m yarn_research.campaigns.week_hadoop --output week.json`` plays the parts that the file has not. With
``--minutes`` no part begins later, with ``--parts`` only those named are played. What it imports is kept in
the folder ``week.kept`` beside the file.

Rule, written before the first run.

The load (``week_load``, seed 46): 55 jobs, submitted at fixed instants over 28 minutes to twelve containers of
512 MiB on three nodes. Research has 33: 18 streaming jobs, nine of Hadoop's word counts, and six applications
of Spark in client mode, three of them with a shuffle service. Production comes eleven times, two streaming
jobs at once. Names recur. The queues are 95 and 5 %.

Parts, in their order; the ResourceManager is restarted before each that plays, without a state store.

* ``yarn-1``: under YARN's own preemption, tuned. Each reduce of research requests 768 MiB, of production 512,
  about two to three times its need; it works .6 times as long as later, so that the cluster is as full.
* ``yarn-2``: the same jobs at their full length; reduces request what ``bill --oversized`` advised after
  ``yarn-1``. A daemon observes.
* ``as-it-was``: the weeks imported after ``yarn-1`` and ``yarn-2``, replayed by ``yarn-emulator compare``.
* ``sealed``: the prediction of scheme mix from the week of ``yarn-2``; its SHA-256 is written down and printed.
  To commit it before ``mix``, play ``mix`` in a later sitting, and commit in another work tree: a file is gone
  on with at its own commit only. Where the week is not reproduced, the emulator predicts nothing: claim 4 does
  not hold then, and claim 5 is judged by what it predicts with that limit taken away, and says so.
* ``mix``: jobs as in ``yarn-2``; research is wrapped but for the word counts, which need no wrapping.
  ``yarnctl run --enforce --eviction mix --may-lose 2% --room-within 15s``, without YARN's preemption.

A part in which a job fails counts and is told; a part that breaks off is left out and played again whole.

Claims.

1. Jobs that failed: none.
2. Bill, of ``yarn-1`` and of ``yarn-2``: after all jobs have ended, the ResourceManager's sums are noted (work
   and containers preempted, by application), then ``yarnctl bill -o json``, then the ResourceManager is
   restarted and forgets, then the bill again. Both bills: the work of each job is within 2 % of its sum, and
   the containers of each, masters among them, billed or unattributed, are as many as in the sum. MapReduce and
   Spark are judged each for itself. After the restart Spark's is not expected to be within 2 %: its history
   knows when an executor registered, not when its container began. Where none of a kind was preempted, nothing
   is shown.
3. Oversized. The issue asks for 60 jobs of known need; here it is about the 49 MapReduce jobs of one load, and
   their reduces alone: maps keep their size, so that the load stays that of twelve containers. A reducer
   holds 0, 40, 60 or 80 MiB by its job's name; the need of a job is the peak that the history server has of
   its reduces in ``yarn-2``. No peak is above the container that was advised for it, and of (requested before
   advice - need), summed over the jobs, at least 70 % are freed by the advice.
4. As it was, of ``yarn-2``: the median deviation of completion times is at most 5 %, that of preempted
   container time by queue too. The week of ``yarn-1`` is told beside. In virtual time, where a week of this load
   was replayed by the program that had played it, completion was off by 2 to 7 %, preempted time by 3 to 52 %:
   some 50 containers are too few for 5 %.
5. Predicted: of the jobs' completion times under ``mix``, the median of |predicted - measured| / measured is at
   most 8 %, over all jobs, by a prediction whose hash was in the file before ``mix`` began. Each job is listed.
6. When, of ``yarn-2`` and ``mix``: of each job the first interval of its end counts that the daemon gives within
   30 s of first showing it. It has none until eight jobs of its queue have ended. At least 50 jobs; the exact
   interval (Clopper and Pearson, 95 %) of the part that ended inside meets 87 to 93 %; the median width is at
   most 0.7 of the range (5 to 95 %) of all spans of the queue in that part. So few jobs cannot show more than
   that the share is not far off, and of fewer than 19 earlier jobs an interval ends at twice the longest: in
   virtual time the width was 1.6, so it is expected not to hold. Intervals from 19 jobs on, and those of
   starts, are told beside.
"""

from __future__ import annotations

import json
import math
import shutil
import subprocess
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import click
import msgspec

from tests.hadoop.artifacts import SPARK
from tests.hadoop.attached import Attached, prepare
from tests.hadoop.configuration import Shape, free_ports
from tests.hadoop.jobs import YARNCTL, Job, Plan
from tests.hadoop.launcher import Cluster
from tests.hadoop.spark_draining import plugin_in
from yarn_research.campaigns.bench import failure
from yarn_research.campaigns.kept_file import gone_on, keep
from yarn_research.campaigns.mixed_bench import orders_of
from yarn_research.campaigns.provenance import head, load, machine, now
from yarn_research.campaigns.schemes import SCHEMES, Scheme
from yarn_research.campaigns.spark_map_stages import shuffle_service
from yarn_research.campaigns.week_judging import judged, seal_of
from yarn_research.campaigns.week_load import SLOT_MIB, Advice, WeekJob, load_of, submitted_as
from yarn_research.campaigns.week_playing import (
    Services,
    note_sums,
    play,
    spark_history,
    until_in_histories,
)
from yarnctl.command_line import print_json
from yarnctl.errors import BadInput

KIND = "week-hadoop"
STEP_MIB = 64
"""The scheduler's step: what advice is rounded to."""
SHAPE = Shape(
    nodes=3,
    node_memory_mib=4 * SLOT_MIB,
    container_mib=SLOT_MIB,
    own_hosts=True,
    overrides={"yarn-site": {"yarn.scheduler.minimum-allocation-mb": str(STEP_MIB)}},
)
LEAVES = ("--preempting", "production", "--preemptable", "research")
LOSES = ("--may-lose", "2%", "--room-within", "15s")
"""What both the daemon and the emulator are told of scheme mix."""
MIX = Scheme("mix", 95, 5, attached=True, options=(*LEAVES, "--eviction", "mix", *LOSES))
WARMING = Plan("warming", "production", (5, 5), user="bob")
EMULATOR = str(Path(sys.executable).with_name("yarn-emulator"))
WITHOUT_LIMIT = (
    sys.executable,
    "-c",
    "from emulator.experiments.week import as_it_was; as_it_was.OFF_MAX = float('inf');"
    "from emulator.cli import main; main()",
)
"""The emulator, which here also predicts from a week that it does not reproduce."""

Part = dict[str, Any]


class Week(msgspec.Struct):
    """The whole file. ``parts``: what was played, by name; ``broken``: parts that broke off, and why.

    ``first``: only so many jobs of the load are played; 0: all.
    """

    head: dict[str, Any]
    first: int = 0
    sittings: list[dict[str, Any]] = []
    parts: dict[str, Part] = {}
    broken: list[Part] = []

    def jobs(self) -> list[WeekJob]:
        """Return the load."""
        return load_of()[: self.first or None]


def told(words: list[str]) -> dict[str, Any]:
    """Return what a program prints as JSON; raises AssertionError. Status 1 is a result of the emulator's."""
    done = subprocess.run(words, capture_output=True, text=True, check=False, timeout=900)
    if done.returncode not in (0, 1) or not done.stdout.strip():
        raise AssertionError(f"{' '.join(words[:3])} left with {done.returncode}: {done.stderr[-500:]}")
    return {"status": done.returncode, **json.loads(done.stdout)}


def advice_of(answer: dict[str, Any]) -> Advice:
    """Return the memory that ``bill --oversized`` advises for reduces, MiB by ``queue/name``."""
    rows = answer["rows"]
    return {f"{row['queue']}/{row['name']}": row["advised_mib"] for row in rows if row["kind"] == "reduce"}


# -- the parts: each is given what was played before, and what the sitting has ------------------------


def play_yarn(services: Services, week: Week, kept: Path, name: str) -> Part:
    """Play the load under YARN's own preemption; bill it, import it, bill it again after a restart."""
    cluster = services.cluster
    cluster.restart_manager(SCHEMES["yarn-tuned"].changes())
    began_s = time.time()
    advice = advice_of(week.parts["yarn-1"]["oversized"]) if name == "yarn-2" else None
    jobs = [submitted_as(job, advice) for job in week.jobs()]
    (port,) = free_ports(1)
    with ExitStack() as stack:
        if name == "yarn-2":
            options = (*LEAVES, "--listen", f"127.0.0.1:{port}")
            stack.enter_context(Attached(cluster, services.folder / f"state-{name}", options, enforce=False))
        played = play(services, jobs, name, f"http://127.0.0.1:{port}" if name == "yarn-2" else "")
    until_in_histories(services, played)
    note_sums(services, played)
    part: Part = {"jobs": played, "bill": billed(services, began_s, "--by", "application")}
    part["imported"] = imported(services, began_s, kept, name)
    part["oversized"] = billed(services, began_s, "--oversized")
    cluster.restart_manager({})
    part["bill_forgotten"] = billed(services, began_s, "--by", "application")
    return part


def as_it_was(week: Week, kept: Path) -> Part:
    """Replay both weeks as they were."""
    return {name: compared(kept, name, "as-it-was") for name in ("yarn-1", "yarn-2")}


def sealed(week: Week, kept: Path) -> Part:
    """Predict ``mix`` from the second week, also where that is not reproduced."""
    prediction = compared(kept, "yarn-2", "as-it-was,mix")
    is_reproduced = prediction["status"] == 0
    if not is_reproduced:
        prediction = compared(kept, "yarn-2", "as-it-was,mix", WITHOUT_LIMIT)
    found = {"prediction": prediction, "reproduced": is_reproduced, "sha256": seal_of(prediction)}
    click.echo(f"sealed: {found['sha256']}" + ("" if is_reproduced else " (not reproduced)"), err=True)
    return found


def play_mix(services: Services, week: Week, kept: Path, name: str) -> Part:
    """Play the load under yarnctl."""
    services.cluster.restart_manager(MIX.changes())
    began_s = time.time()
    advice = advice_of(week.parts["yarn-1"]["oversized"])
    jobs = [submitted_as(job, advice, services.plugin) for job in week.jobs()]
    (port,) = free_ports(1)
    options = (*MIX.options, "--listen", f"127.0.0.1:{port}")
    with Attached(services.cluster, services.folder / f"state-{name}", options) as daemon:
        played = play(services, jobs, name, f"http://127.0.0.1:{port}")
        orders = orders_of(daemon.records())
    until_in_histories(services, played)
    note_sums(services, played)
    part: Part = {"jobs": played, "sealed_sha256": week.parts["sealed"]["sha256"]}
    part["levers"] = Counter(f"{order['lever']} {order['state']}" for order in orders)
    part["imported"] = imported(services, began_s, kept, name)
    return part


Playing = Callable[[Services, Week, Path, str], Part]
Computing = Callable[[Week, Path], Part]
PLAYED: dict[str, Playing] = {"yarn-1": play_yarn, "yarn-2": play_yarn, "mix": play_mix}
COMPUTED: dict[str, Computing] = {"as-it-was": as_it_was, "sealed": sealed}
ORDER = ("yarn-1", "yarn-2", "as-it-was", "sealed", "mix")
"""Each part needs those before it."""


def servers(services: Services) -> list[str]:
    """Return the options that name the servers."""
    cluster = services.cluster
    return [
        *("--rm", cluster.rm_url, "--history", cluster.history_url),
        *("--spark-history", services.spark_history_url),
    ]


def billed(services: Services, began_s: float, *words: str) -> dict[str, Any]:
    """Return a bill since an instant."""
    since = f"{math.ceil(time.time() - began_s)}s"
    return told([YARNCTL, "bill", *servers(services), "--since", since, *words, "-o", "json"])


def imported(services: Services, began_s: float, kept: Path, name: str) -> dict[str, Any]:
    """Import what ended since an instant, and keep it with the queues that it ran in."""
    shutil.rmtree(kept / name, ignore_errors=True)
    kept.mkdir(parents=True, exist_ok=True)
    shutil.copy(services.cluster.conf / "capacity-scheduler.xml", kept / f"{name}.xml")
    days = f"{(time.time() - began_s) / 86_400:.6f}"
    words = [YARNCTL, "history", "import", *servers(services), "--days", days, "--out", str(kept / name)]
    return told([*words, "-o", "json"])


def compared(kept: Path, name: str, schemes: str, emulator: Sequence[str] = (EMULATOR,)) -> dict[str, Any]:
    """Replay a kept week."""
    words = [*emulator, "compare", "--week", str(kept / name), "--scheduler-xml", str(kept / f"{name}.xml")]
    words += ["--as-it-was", "yarn-tuned", "--schemes", schemes, "--workers", "1", "-o", "json"]
    return told([*words, *(LOSES if "mix" in schemes else ())])


# -- a sitting ----------------------------------------------------------------------------------------


def wanted(week: Week, names: str) -> list[str]:
    """Return the parts to play, in their order; raises BadInput for one that there is not, or too early."""
    chosen = names.split(",") if names else list(ORDER)
    if unknown := [name for name in chosen if name not in ORDER]:
        raise BadInput("--parts", f"unknown: {', '.join(unknown)}", f"use some of {', '.join(ORDER)}")
    found = [name for name in ORDER if name in chosen and name not in week.parts]
    for name in found:
        for before in ORDER[: ORDER.index(name)]:
            if before not in week.parts and before not in found:
                raise BadInput("--parts", f"{name} needs {before}, which is not played", f"add {before}")
    return found


def sit(week: Week, names: list[str], output: Path, ends_s: float, services: Callable[[], Services]) -> None:
    """Play parts in their order, and write each down; the first that breaks off ends the sitting.

    ``services`` starts a cluster, once; it is not called for parts that need none.
    """
    kept = output.with_suffix(".kept")
    for name in names:
        if time.monotonic() > ends_s:
            click.echo(f"no time is left: {name} does not begin", err=True)
            return
        run: Part = {"began": now(), "sitting": len(week.sittings), "load_before": load()}
        began_s = time.monotonic()
        try:
            if name in PLAYED:
                run |= PLAYED[name](services(), week, kept, name)
            else:
                run |= COMPUTED[name](week, kept)
        except Exception as problem:
            week.broken.append({"part": name, **run, "why": failure(problem)})
            keep(output, week)
            traceback.print_exc()
            return
        run |= {"ended": now(), "load_after": load()}
        week.parts[name] = run
        keep(output, week)
        click.echo(f"{name} is played ({time.monotonic() - began_s:.0f} s)", err=True)


@contextmanager
def served() -> Iterator[Callable[[], Services]]:
    """Give a function that starts a cluster and its servers on its first call; end them at last."""
    found: list[Services] = []
    with ExitStack() as stack:

        def services() -> Services:
            if not found:
                found.append(_started(stack))
            return found[0]

        yield services


def _started(stack: ExitStack) -> Services:
    folder = Path(
        stack.enter_context(tempfile.TemporaryDirectory(prefix="week-", ignore_cleanup_errors=True))
    )
    events = folder / "events"
    events.mkdir()
    plugin = plugin_in(folder)
    port = stack.enter_context(shuffle_service(folder))
    history_url = stack.enter_context(spark_history(folder, events))
    cluster = stack.enter_context(Cluster(SHAPE))
    prepare(cluster)
    for number in ("1", "2"):  # the first jobs on a new cluster begin late
        Job(cluster, WARMING, folder, number).wait()
    return Services(cluster, folder, plugin, port, events, history_url)


@click.command(help=__doc__)
@click.option("--parts", default="", help=f"Only these, by comma, of {', '.join(ORDER)}.")
@click.option("--minutes", type=float, help="Start no part after this many minutes.")
@click.option("--first", default=0, help="For a trial: play the first N jobs only.  [default: all]")
@click.option("--output", required=True, type=click.Path(path_type=Path, dir_okay=False))
def command(parts: str, minutes: float | None, first: int, output: Path) -> None:
    """Play what is not played yet, then judge."""
    ends_s = time.monotonic() + 60 * minutes if minutes else math.inf
    week = gone_on(output, Week(head(KIND, hadoop=SHAPE.version, spark=SPARK["pyspark"]), first))
    if week.first != first:
        raise BadInput("--first", f"{output} was begun with {week.first}", "name another file")
    names = wanted(week, parts)
    if names:
        week.sittings.append({"began": now(), "machine": machine()})
        with served() as services:
            sit(week, names, output, ends_s, services)
    claims = judged(week.parts)
    for each in claims:
        holds = {True: "holds", False: "does not hold", None: "told"}[each.holds]
        click.echo(f"{each.claim}: {each.ours} ({each.target}; {each.count} jobs): {holds}", err=True)
    print_json({"claims": claims})


if __name__ == "__main__":
    command()
