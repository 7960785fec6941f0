"""Deadlines sold and kept: the same jobs under first come first served, two priorities, and the market.

``python -m yarn_research.campaigns.market_bench --on live|hadoop --output FILE``

Law: research/notes/market.md has the rule by which it is judged. First each kind of job runs alone, which is all that
the gate knows. Jobs go in as a user's do, by a command line; the schemes of a round differ in that alone:
with the market ``yarnctl admit`` stands in front of it, with priorities a job whose user cannot wait has one.
With ``--keep`` each run that ended is a file; a campaign that broke off goes on from the first without one.
"""

from __future__ import annotations

import json
import secrets
import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import click
import msgspec

from yarn_research.campaigns.admission_bench import Unfinished, rows
from yarn_research.campaigns.admission_hosts import BIN, Gate, Host, gate, live
from yarn_research.campaigns.admission_set import Kind
from yarn_research.campaigns.market_set import (
    Bought,
    Claims,
    Figures,
    MarketMix,
    Outcome,
    Scheme,
    arrivals,
    claims,
    figures,
    order_of,
)
from yarn_research.campaigns.provenance import head, load
from yarnctl.command_line import print_table

PATIENCE_S = 1200.0
TRAINED = 3
"""So often each kind runs alone before: a mean and a standard deviation."""
CREDIT_TOKENS = 10**9
NO_OVERLAP = {"mapreduce.job.reduce.slowstart.completedmaps": "1.0"}
LIVE_KINDS = (Kind("short", 8, 2.4, 2, 1.6), Kind("long", 16, 3.2, 4, 3.2))
COLUMNS = ("round", "scheme", "wait, cannot", "wait, can", "late, cannot", "late, can", "kept", "promised")
Say = Callable[[str], object]
T = TypeVar("T")


class Terms(NamedTuple):
    """What is chosen beforehand: jobs, rounds, load, kappa, and the budget of users who can wait (x p_j)."""

    jobs: int = 24
    rounds: int = 3
    load: float = 0.8
    kappa: float = 2.0
    tolerant: float = 0.5
    seed: int = 4


class Market(NamedTuple):
    """A gate that sells deadlines; ``environment`` of a client by whether its user cannot wait."""

    through: Gate
    environment: Mapping[bool, Mapping[str, str]]


@contextmanager
def market(host: Host, folder: Path, terms: Terms) -> Iterator[Market]:
    """Run the daemon with two accounts, each with a token of its own."""
    folder.mkdir(parents=True, exist_ok=True)
    tokens, files = [], {}
    for sensitive, account in ((True, "sensitive"), (False, "tolerant")):
        file = folder / f"{account}.token"
        file.write_text(secrets.token_hex(16))
        file.chmod(0o600)
        files[sensitive] = file
        told = {"name": account, "user": "ann", "account": account, "file": str(file)}
        entries = "".join(f"{key} = {json.dumps(value)}\n" for key, value in told.items())
        tokens.append(f'[[token]]\nscopes = ["submit"]\n{entries}')
    table = folder / "tokens.toml"
    table.write_text("\n".join(tokens))
    table.chmod(0o600)
    more = ["--mode", "deadlines", "--preempting", host.queue, "--allow-priority", "--enforce"]
    more += ["--tokens", str(table), "--admission-kappa", str(terms.kappa)]
    with gate(host, folder, "mrm", more) as through:
        base = {**host.environment, **through.environment}
        for account in ("sensitive", "tolerant"):
            _said(["yarnctl", "accounts", "--add", account], base)
            _said(["yarnctl", "accounts", "--credit", account, str(CREDIT_TOKENS)], base)
        clients = {sensitive: {**base, "YARNCTL_TOKEN_FILE": str(file)} for sensitive, file in files.items()}
        yield Market(through, clients)


def _said(words: Sequence[str], environment: Mapping[str, str]) -> str:
    """Return what a command prints; raises Unfinished with what it says if it fails."""
    done = subprocess.run(
        [str(BIN / words[0]), *words[1:]], env=dict(environment), capture_output=True, text=True, timeout=120
    )
    if done.returncode:
        raise Unfinished(f"{' '.join(words[:3])}: {done.stderr[-2000:]}")
    return done.stdout


class Alone(NamedTuple):
    """A kind of job on an empty cluster, medians: from client to end, and the container-seconds it held."""

    span_ms: float
    held_s: float


class Played(NamedTuple):
    """A cluster with its kinds of jobs, what each takes alone, and its folder."""

    host: Host
    kinds: tuple[Kind, ...]
    alone: Mapping[str, Alone]
    folder: Path

    @property
    def alone_ms(self) -> dict[str, float]:
        """How long each kind takes alone, from client to end."""
        return {name: one.span_ms for name, one in self.alone.items()}


def train(host: Host, kinds: Sequence[Kind], folder: Path) -> dict[str, Alone]:
    """Run each kind alone, several times."""
    folder.mkdir(parents=True, exist_ok=True)
    alone = {}
    for kind in kinds:
        spans_ms, held_s = [], []
        for number in range(TRAINED):
            began_ms, name = int(time.time() * 1000), f"{kind.name}-0{number}"
            with (folder / f"{name}.log").open("wb") as said:
                words = host.words(kind, name, NO_OVERLAP)
                done = subprocess.run(
                    words, env=dict(host.environment), stdout=said, stderr=said, timeout=PATIENCE_S
                )
            if done.returncode:
                raise Unfinished(f"{name}: {(folder / f'{name}.log').read_text()[-2000:]}")
            row = rows(host.rm, began_ms)[name]
            spans_ms.append(int(row["finishedTime"]) - began_ms)
            held_s.append(int(row["memorySeconds"]) / host.container_mib)
        alone[kind.name] = Alone(statistics.median(spans_ms), statistics.median(held_s))
    return alone


def quoted_work(sold: Market, host: Host, kinds: Sequence[Kind], kappa: float) -> dict[str, float]:
    """Return p_j of each kind in tokens: its earliest deadline on an empty cluster costs kappa times that."""
    found = {}
    for kind in kinds:
        most = max(kind.maps, kind.reduces) + 1
        words = ["yarnctl", "quote", "-o", "json", "--containers", str(most), "--user", "ann", "--"]
        told = json.loads(_said([*words, *host.words(kind, f"{kind.name}-0", {})], sold.environment[True]))
        found[kind.name] = told["points"][0]["price_mtokens"] / 1000 / kappa
    return found


def run(on: Played, jobs: Sequence[Bought], scheme: Scheme, terms: Terms, folder: Path) -> list[Outcome]:
    """Let the jobs arrive under a scheme and wait until all is over."""
    folder.mkdir(parents=True, exist_ok=True)
    if scheme != "mrm":
        return _outcomes(jobs, _played(on.host, jobs, folder, lambda job: _words(on.host, job, scheme)), {})
    with market(on.host, folder / "gate", terms) as sold:
        work = quoted_work(sold, on.host, on.kinds, terms.kappa)

        def bought(job: Bought) -> tuple[list[str], Mapping[str, str]]:
            tokens = CREDIT_TOKENS / 100 if job.sensitive else round(terms.tolerant * work[job.kind.name], 3)
            most = max(job.kind.maps, job.kind.reduces) + 1
            asks = ["yarnctl", "admit", "--budget", str(tokens), "--containers", str(most), "--user", "ann"]
            return [*asks, "--", *_words(on.host, job, scheme)[0]], sold.environment[job.sensitive]

        found = _played(on.host, jobs, folder, bought)
        items = sold.through.asked("?limit=500")["items"]
        plans = {one["request"]["name"]: one["plan"] for one in items if one["plan"]["price_mtokens"]}
    return _outcomes(jobs, found, plans)


def _words(host: Host, job: Bought, scheme: Scheme) -> tuple[list[str], Mapping[str, str]]:
    """Return what a user types, and the environment."""
    urgent = scheme == "priority" and job.sensitive
    if host.name == "live emulator":
        words = host.words(job.kind, job.name, {})
        return [*words, *(["--priority", "5"] if urgent else [])], host.environment
    return host.words(job.kind, job.name, {"mapreduce.job.priority": "5"} if urgent else {}), host.environment


def _played(
    host: Host,
    jobs: Sequence[Bought],
    folder: Path,
    typed: Callable[[Bought], tuple[list[str], Mapping[str, str]]],
) -> tuple[int, dict[str, dict[str, Any]]]:
    """Start each client at its instant; return when the first came, and YARN's rows by name."""
    began_ms = int(time.time() * 1000)
    clients: dict[str, subprocess.Popen[bytes]] = {}
    try:
        for job in jobs:
            while (left_s := began_ms / 1000 + job.at_s - time.time()) > 0:
                time.sleep(left_s)  # the set's own pace
            words, environment = typed(job)
            with (folder / f"{job.name}.log").open("wb") as said:
                clients[job.name] = subprocess.Popen(
                    words, env=dict(environment), stdin=subprocess.DEVNULL, stdout=said, stderr=said
                )
        for client in clients.values():
            client.wait(PATIENCE_S)
    finally:
        for client in clients.values():
            if client.poll() is None:
                client.kill()
                client.wait()
    found = rows(host.rm, began_ms)
    for job in jobs:
        if job.name not in found and clients[job.name].returncode != 1:
            said_last = (folder / f"{job.name}.log").read_text(errors="replace")[-2000:]
            raise Unfinished(f"{job.name} was neither submitted nor rejected: {said_last}")
    return began_ms, found


def _outcomes(
    jobs: Sequence[Bought],
    played: tuple[int, dict[str, dict[str, Any]]],
    plans: Mapping[str, Mapping[str, Any]],
) -> list[Outcome]:
    began_ms, found = played
    outcomes = []
    for job in jobs:
        row, plan = found.get(job.name, {}), plans.get(job.name, {})
        outcomes.append(
            Outcome(
                name=job.name,
                kind=job.kind.name,
                sensitive=job.sensitive,
                arrived_at_ms=began_ms + round(job.at_s * 1000),
                ended_at_ms=int(row["finishedTime"]) if row.get("finishedTime") else None,
                final=str(row.get("finalStatus", "")),
                deadline_at_ms=plan.get("deadline_at_ms"),
                price_mtokens=plan.get("price_mtokens"),
            )
        )
    return outcomes


def play(on: Played, capacity: int, terms: Terms, say: Say) -> dict[str, Any]:
    """Play all rounds; return what is written down."""
    told, judged = list[dict[str, Any]](), list[Mapping[Scheme, Figures]]()
    for number in range(terms.rounds):
        held_s = {name: one.held_s for name, one in on.alone.items()}
        mix = MarketMix(on.kinds, capacity, terms.jobs, terms.load, terms.seed + number, held_s)
        jobs = arrivals(mix)
        outcomes: dict[Scheme, list[Outcome]] = {}
        for scheme in order_of(number):
            say(f"round {number + 1} of {terms.rounds}: {scheme}")
            folder = on.folder / f"{number + 1}-{scheme}"
            file = on.folder / f"{number + 1}-{scheme}.json"
            outcomes[scheme] = kept(file, list[Outcome], partial(run, on, jobs, scheme, terms, folder))
        found = {scheme: figures(each, outcomes["mrm"], on.alone_ms) for scheme, each in outcomes.items()}
        judged.append(found)
        told.append({"outcomes": outcomes, "figures": found})
    verdict: Claims = claims(judged)
    return {
        "on": on.host.name,
        "terms": terms._asdict(),
        "kinds": [kind._asdict() for kind in on.kinds],
        "capacity": capacity,
        "alone_ms": on.alone_ms,
        "held_s": {name: one.held_s for name, one in on.alone.items()},
        "claims": verdict,
        "holds": verdict.holds,
        "rounds": told,
    }


def kept(file: Path, of: type[T], find: Callable[[], T]) -> T:
    """Return what a file holds; without the file find it, and write it whole or not at all."""
    if file.exists():
        return msgspec.json.decode(file.read_bytes(), type=of)
    found = find()
    part = file.with_suffix(".part")
    part.write_bytes(msgspec.json.encode(found))
    part.replace(file)
    return found


def begun(folder: Path, first: dict[str, Any], terms: Terms) -> dict[str, Any]:
    """Return the head of the campaign in a folder: ``first``, or that of the one to go on with.

    Raises click.UsageError if the folder holds a campaign of another commit, of other changes or other terms.
    """
    asked = {"head": first, "terms": terms._asdict()}
    found = kept(folder / "campaign.json", dict[str, Any], lambda: asked)
    for name, old, new in (
        ("terms", found["terms"], asked["terms"]),
        *((name, found["head"][name], first[name]) for name in ("kind", "commit", "uncommitted")),
    ):
        if old != new:
            told = f"{folder}: holds a campaign with {name} {old}, this run has {new}; name another folder"
            raise click.UsageError(told)
    return dict(found["head"])


def table(rounds: Sequence[Mapping[str, Any]]) -> list[tuple[object, ...]]:
    """Return a row for each run (``COLUMNS``), waits in seconds."""
    return [
        (
            number,
            scheme,
            one.sensitive_wait_s,
            one.tolerant_wait_s,
            one.sensitive_late,
            one.tolerant_late,
            one.kept,
            one.promised,
        )
        for number, each in enumerate(rounds, 1)
        for scheme, one in each["figures"].items()
    ]


@contextmanager
def host_of(on: str, folder: Path) -> Iterator[tuple[Host, tuple[Kind, ...], int]]:
    """Start a cluster with one queue; return it, its kinds of jobs and its containers."""
    if on == "live":
        with live(folder, max_priority=100, one_queue=True) as emulated:
            yield emulated, LIVE_KINDS, 12
        return
    from yarn_research.campaigns.admission_hadoop import MARKET_KINDS, hadoop_by_deadline

    with hadoop_by_deadline(folder) as real:
        yield real, MARKET_KINDS, 12


@click.command()
@click.option("--on", type=click.Choice(("live", "hadoop")), default="live", show_default=True)
@click.option("--output", type=click.Path(path_type=Path, dir_okay=False), help="Write the result there.")
@click.option("--keep", type=click.Path(path_type=Path, file_okay=False), help="Keep logs in this folder.")
@click.option("--jobs", default=Terms().jobs, show_default=True)
@click.option("--rounds", default=Terms().rounds, show_default=True)
@click.option("--load", "load_ratio", default=Terms().load, show_default=True)
@click.option("--kappa", default=Terms().kappa, show_default=True)
@click.option("--tolerant", default=Terms().tolerant, show_default=True)
@click.option("--seed", default=Terms().seed, show_default=True)
def main(
    on: str,
    output: Path | None,
    keep: Path | None,
    jobs: int,
    rounds: int,
    load_ratio: float,
    kappa: float,
    tolerant: float,
    seed: int,
) -> None:
    """Sell deadlines beside first come first served and priorities; print a table."""
    terms = Terms(jobs=jobs, rounds=rounds, load=load_ratio, kappa=kappa, tolerant=tolerant, seed=seed)
    with tempfile.TemporaryDirectory(prefix="yarnctl-market-") as own:
        folder = keep or Path(own)
        folder.mkdir(parents=True, exist_ok=True)
        first = begun(folder, head(f"market-{on}"), terms)

        def say(text: str) -> None:
            click.echo(text, err=True)

        with host_of(on, folder) as (host, kinds, capacity):
            say(f"{host.name}: each kind of job {TRAINED} times, alone")
            learn = partial(train, host, kinds, folder / "alone")
            alone = kept(folder / "alone.json", dict[str, Alone], learn)
            for name, one in alone.items():
                say(f"{name}: {one.span_ms / 1000:.1f} s, holds {one.held_s:.1f} container-seconds")
            found = first | play(Played(host, kinds, alone, folder), capacity, terms, say)
    found["load_after"] = load()
    print_table(COLUMNS, table(found["rounds"]), f"{found['on']}: waits in s, late jobs, promises")
    click.echo(msgspec.json.encode(found["claims"]).decode())
    if output is not None:
        output.write_bytes(msgspec.json.format(msgspec.json.encode(found), indent=1) + b"\n")


if __name__ == "__main__":
    main()
