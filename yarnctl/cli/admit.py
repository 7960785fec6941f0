"""``yarnctl admit``: ask at the gate, wait, and submit the job as oneself with what the gate gives.

Law: the daemon submits nothing and this command decides nothing. What runs in the end is the user's own
command with what the gate gives set in front of it, in this process's place, never by a shell. What is not
submitted is withdrawn, whatever the reason. Exit status, where the command does not run: 1 rejected,
2 bad input, 3 unreachable, 75 deferred (--no-wait), 129, 130 and 143 interrupted.
"""

from __future__ import annotations

import contextlib
import os
import shlex
import signal
import sys
from functools import partial
from typing import TYPE_CHECKING, Any

import click

from yarnctl.cli.admissions import (
    clock,
    containers_words,
    instant_of,
    mtokens_of,
    not_too_far,
    span_of,
    span_words,
    tokens_words,
)
from yarnctl.cli.asking import Busy, Repriced, plain, shown, url_option
from yarnctl.cli.taking_place import require_program, run_in_place
from yarnctl.command_line import complain, output_option, print_json
from yarnctl.errors import BadInput, Different

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from yarnctl.api.admission_answers import AdmissionOut
    from yarnctl.cli.gate_asking import GateRequest
    from yarnctl.submitting.framework import Framework, Submission

DEFERRED = 75
"""EX_TEMPFAIL of sysexits.h: try again later."""
LONGEST = {"--name": 200, "--queue": 200, "--user": 100}
"""So many characters the daemon takes."""
SIGNALS = {signal.SIGHUP: "hung up", signal.SIGINT: "interrupted", signal.SIGTERM: "terminated"}


class EndedBySignal(KeyboardInterrupt):
    """A signal ``number`` ends this process."""

    def __init__(self, number: int = signal.SIGINT) -> None:
        super().__init__(number)
        self.number = signal.Signals(number)


@click.command(context_settings={"allow_interspersed_args": False})
@click.option("--deadline", metavar="SPAN", help="Until when from now: 90s, 15m, 1h30m, 2d.")
@click.option("--deadline-at", metavar="INSTANT", help="Or the instant: ISO 8601, or seconds since 1970.")
@click.option(
    "--budget", metavar="TOKENS", help="What it may cost at most; alone: the earliest deadline for it."
)
@click.option("--account", metavar="NAME", help="Who pays.  [default: the account of your token]")
@click.option("--quote", metavar="ID", help="The quote that --budget and --deadline were chosen from.")
@click.option(
    "--refund",
    type=click.Choice(["none", "unused", "late", "both"]),
    help="What is paid back of a job that ran.  [default: both]",
)
@click.option(
    "--containers",
    type=click.IntRange(2, 1_000_000),
    metavar="N",
    help="The most it can use at once, its master included.  [default: as its -D or its last run say]",
)
@click.option("--name", metavar="NAME", help="The job's name, by which its history is found.")
@click.option("--queue", metavar="QUEUE", help="The queue it goes to.")
@click.option("--user", metavar="USER", help="Whose job it is.  [default: HADOOP_USER_NAME, else you]")
@click.option("--no-wait", is_flag=True, help="Leave with 75 if it cannot start now.")
@click.option("--print", "print_it", is_flag=True, help="Print the command instead of running it.")
@url_option
@output_option
@click.argument("words", nargs=-1, required=True, type=click.UNPROCESSED)
def command(words: tuple[str, ...], url: str, output: str, **given: Any) -> int:
    """Wait at the gate until the job WORDS (Hadoop streaming, spark-submit, flink) may start, then submit it.

    It meets its deadline with as few containers as the gate gives it, or is rejected with the reason. Asking
    needs a token with the scope submit, for the job's user: name its file in YARNCTL_TOKEN_FILE.
    """
    from uuid import uuid4

    from yarnctl.cli.gate_asking import GateRequest
    from yarnctl.submitting import FRAMEWORKS, kind_of

    if words[0].startswith("-"):
        raise BadInput(words[0][:60], "is no program", "options of yarnctl admit stand before the --")
    kind = kind_of(words)
    framework = FRAMEWORKS[kind]
    job = framework.command_of(words)
    if not given["print_it"]:
        require_program(words)
    settings = job_settings(framework, job, given["name"], given["queue"])
    budget = budget_of(given)
    deadlines = (
        None if _is_budget_alone(given, framework, settings) else (given["deadline"], given["deadline_at"])
    )
    request = request_of(kind, job, settings, deadlines, given["user"], given["containers"], url)
    asking = GateRequest(url, request | budget, uuid4().hex, StderrNotes())
    with with_signals():
        try:
            how = (not given["no_wait"], given["print_it"], output == "json")
            line_for = partial(line_of, framework, job, settings)
            return ask_and_submit(asking, _with_note_of_price(line_for) if budget else line_for, *how)
        except KeyboardInterrupt as ending:
            return ended_by(asking, ending.number if isinstance(ending, EndedBySignal) else signal.SIGINT)
        except Exception:
            leave(asking)
            raise


def _with_note_of_price(line_for: Callable[[AdmissionOut], list[str]]) -> Callable[[AdmissionOut], list[str]]:
    """Let a user with a budget know where nothing is paid."""

    def told(seen: AdmissionOut) -> list[str]:
        if seen.plan.price_mtokens is None:
            click.echo("note: deadlines have no price at this gate: nothing of --budget is paid", err=True)
        return line_for(seen)

    return told


@contextlib.contextmanager
def with_signals() -> Iterator[None]:
    """Let the signals that end us raise Ended; one that is ignored (nohup) stays so."""
    before = {number: signal.getsignal(number) for number in SIGNALS}
    try:
        for number, handler in before.items():
            if handler is not signal.SIG_IGN:
                signal.signal(number, _raise_ended)
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler or signal.SIG_DFL)


def _raise_ended(number: int, _: object) -> None:
    raise EndedBySignal(number)


def ended_by(asking: GateRequest, number: signal.Signals) -> int:
    """Withdraw and say so; return the exit status."""
    was_open = asking.is_open
    withdrawn = leave(asking)
    said = f"{plain(asking.latest.id)} is withdrawn" if asking.latest and was_open and withdrawn else ""
    return complain("; ".join(filter(None, (SIGNALS[number], said))), 128 + number)


def leave(asking: GateRequest) -> bool:
    """Withdraw; nothing interrupts that. Return False where it cannot be done."""
    for number in SIGNALS:
        signal.signal(number, signal.SIG_IGN)
    problem = asking.withdraw()
    if problem:
        with contextlib.suppress(OSError):
            click.echo(f"note: the request could not be withdrawn ({problem}); it ends by itself", err=True)
    return not problem


# --- the request --------------------------------------------------------------------------------------


def job_settings(
    framework: Framework, job: Submission, name: str | None, queue: str | None
) -> dict[str, str]:
    """Return the job's settings with the name and the queue that options give."""
    return {**job.settings(), **_named(framework, job, name, queue)}


def budget_of(given: dict[str, Any]) -> dict[str, Any]:
    """Return a request's fields of payment; BadInput for an option without --budget."""
    if given["budget"] is None:
        for option in ("account", "quote", "refund"):
            if given[option] is not None:
                raise BadInput(
                    f"--{option}", "says how to pay, and there is no --budget", "give --budget TOKENS"
                )
        return {}
    said = {"budget_mtokens": mtokens_of("--budget", given["budget"])}
    return said | {name: given[name] for name in ("account", "quote", "refund") if given[name] is not None}


def _is_budget_alone(given: dict[str, Any], framework: Framework, settings: dict[str, str]) -> bool:
    from yarnctl.hadoop.wire.mapreduce import deadline_tag_ms

    dated = given["deadline"], given["deadline_at"], deadline_tag_ms(framework.tags_of(settings))
    return given["budget"] is not None and all(each is None for each in dated)


def _named(framework: Framework, job: Submission, name: str | None, queue: str | None) -> dict[str, str]:
    """Return name and queue where options give them; BadInput where the command differs."""
    own = job.settings()
    found: dict[str, str] = {}
    for option, key, value in (("--name", framework.NAME, name), ("--queue", framework.QUEUE, queue)):
        if value is None:
            continue
        if own.get(key, value) != value:
            raise BadInput(option, f"{value!r}, but the command says {own[key]!r}", "say it once")
        found[key] = value
    return found


def _checked(option: str, value: str) -> str:
    """Return a name as the daemon takes it."""
    odd = next((each for each in value if ord(each) < 32 or ord(each) == 127), None)
    if odd is not None:
        raise BadInput(option, f"{plain(value)[:60]!r} has a character that cannot be printed ({odd!a})")
    if not 0 < len(value) <= LONGEST[option]:
        wrong = "is empty" if not value else f"has {len(value)} characters"
        raise BadInput(option, wrong, f"use 1 to {LONGEST[option]} characters")
    return value


def request_of(
    kind: str,
    job: Submission,
    settings: dict[str, str],
    deadlines: tuple[str | None, str | None] | None,
    user: str | None,
    containers: int | None,
    url: str,
) -> dict[str, Any]:
    """Return the body of the request. Raises BadInput where something is missing or contradicts itself."""
    import getpass
    import time

    from yarnctl.cli.gate_asking import containers_of_last_run
    from yarnctl.hadoop.wire.mapreduce import deadline_tag_ms
    from yarnctl.submitting import FRAMEWORKS, PLAIN_KIND

    framework = FRAMEWORKS[kind]
    said = job.user_option
    user = user or said or os.environ.get("HADOOP_USER_NAME") or getpass.getuser()
    if said is not None and said != user:
        raise BadInput("--user", f"{user!r}, but the command says {said!r}", "say it once")
    name = settings.get(framework.NAME, job.name_default)
    if name == framework.UNNAMED:
        click.echo("note: without a --name the job has no history to be judged by", err=True)
    tagged_ms = deadline_tag_ms(framework.tags_of(settings))
    request: dict[str, Any] = {
        "name": _checked("--name", name),
        "user": _checked("--user", user),
        "queue": _checked("--queue", settings.get(framework.QUEUE, job.queue_default)),
    }
    if kind != PLAIN_KIND:  # a daemon of an older version knows no other
        request["kind"] = kind
    if deadlines is not None:
        request["deadline_ms"] = _span_ms(deadlines, tagged_ms, int(time.time() * 1000))
    most = containers or framework.most_containers(settings)
    if most is None:
        from yarnctl.attach.history.fitting import folded

        wanted = folded(name)
        known = name != framework.UNNAMED
        same = (kind, lambda other: known and folded(other) == wanted)
        most = containers_of_last_run(url, user, *same, framework.MOST_REMEDY)
    return request | {"containers": most}


def _span_ms(deadlines: tuple[str | None, str | None], tagged_ms: int | None, now_ms: int) -> int:
    """Return the span to the deadline that exactly one of two options and a tag names."""
    span, instant = deadlines
    given = [one for one in (span, instant, tagged_ms) if one is not None]
    if len(given) != 1:
        remedy = "give --deadline 15m, or --deadline-at 2030-01-31T18:00, or the tag deadline:SECONDS"
        raise BadInput("--deadline", "is missing" if not given else f"is said {len(given)} times", remedy)
    if span is not None:
        return span_of("--deadline", span)
    at_ms = instant_of("--deadline-at", instant) if instant is not None else tagged_ms
    assert at_ms is not None
    where = "--deadline-at" if instant is not None else "the tag deadline:"
    if at_ms <= now_ms:
        raise BadInput(where, "is in the past")
    return not_too_far(where, clock(at_ms), at_ms - now_ms)


# --- what is answered ---------------------------------------------------------------------------------


def ask_and_submit(
    asking: GateRequest,
    line_for: Callable[[AdmissionOut], list[str]],
    wait: bool,
    print_it: bool,
    as_json: bool,
) -> int:
    """Ask, wait, and let the command line that follows from the answer take this process's place."""
    try:
        asking.begin(wait)
    except Repriced as error:
        click.echo("\n".join(_curve_lines(error.quote, asking.url)), err=True)
        raise
    except Busy as error:  # without waiting
        print_json({"state": "waiting", "why": error.reason}) if as_json else None
        return DEFERRED if as_json else _deferred(error.reason)
    seen = asking.decided(wait)
    if seen.state == "waiting":
        leave(asking)
        print_json(asking.raw) if as_json else None
        return DEFERRED if as_json else _deferred(story(seen))
    if seen.state != "admitted":
        if as_json:
            print_json(asking.raw)
        raise Different(refusal(seen, asking.url))
    line = line_for(seen)
    if print_it:
        print_json({"admission": asking.raw, "command": line}) if as_json else click.echo(shlex.join(line))
        sys.stdout.flush()
        return 0
    click.echo(one_line(asking.raw) if as_json else f"admitted: {story(seen)}", err=True)
    return _run(line)


def _deferred(why: str) -> int:
    click.echo(f"deferred: {why}")
    return DEFERRED


def _run(line: list[str]) -> int:
    """Let the user's command take this process's place; BadInput if it cannot be run."""
    sys.stdout.flush()
    sys.stderr.flush()
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # Python ignores it, and what is run would, too
    try:
        run_in_place(line)
    finally:
        signal.signal(signal.SIGPIPE, signal.SIG_IGN)


def line_of(framework: Framework, job: Submission, settings: dict[str, str], seen: AdmissionOut) -> list[str]:
    """Return the command line to run; BadInput names a setting that contradicts what the gate gives."""
    more, notes = framework.settled(settings, seen.settings, seen.tags)
    for note in notes:
        click.echo(f"note: {note}", err=True)
    own = job.settings()
    fresh = {
        key: settings[key] for key in (framework.NAME, framework.QUEUE) if key in settings and key not in own
    }
    return job.words(fresh | more)


class StderrNotes:
    """Prints on stderr what a job waits for, whenever that changes."""

    def __init__(self) -> None:
        self._printed: tuple[object, ...] = ()
        self._is_unreachable = False

    def waits(self, seen: AdmissionOut, problem: str) -> None:
        """Say what an admission waits for."""
        why = plain(problem)
        about = (seen.plan.reason, seen.plan.containers, (seen.plan.start_at_ms or 0) // 60_000, why)
        self._print(about, f"waiting: {story(seen)}" + (f"; {why}" if why else ""))

    def waiting(self, problem: str) -> None:
        """Say why the daemon has not written the request down yet."""
        self._print((problem,), f"waiting: not asked yet: {plain(problem)}")

    def unreachable(self, said: str) -> None:
        """Say once that the daemon does not answer."""
        if not self._is_unreachable:
            self._is_unreachable = True
            click.echo(f"note: {plain(said)}; waiting a minute for it", err=True)

    def back(self, said: str) -> None:
        """Say that it answers again."""
        self._is_unreachable = False
        click.echo(f"note: {plain(said)}", err=True)

    def _print(self, about: tuple[object, ...], text: str) -> None:
        if about != self._printed:
            self._printed = about
            click.echo(text, err=True)


def one_line(value: object) -> str:
    """Return a value as JSON in one line."""
    import msgspec

    return msgspec.json.encode(value).decode()


def story(seen: AdmissionOut) -> str:
    """Say a plan in words."""
    plan = seen.plan
    parts = [plain(plan.reason)]
    if seen.state == "waiting" and plan.start_at_ms is not None:
        parts.append(f"starts at {clock(plan.start_at_ms)} as things stand")
    if plan.finish_at_ms is not None:
        parts.append(f"ends by {clock(plan.finish_at_ms)}")
    parts.append(f"deadline {clock(plan.deadline_at_ms)}")
    return f"{plain(seen.id)}: {'; '.join(parts)}"


def _curve_lines(answer: dict[str, Any], url: str) -> list[str]:
    """Return what each deadline costs now, a line each; ``answer`` is a quote."""
    from yarnctl.api.market_answers import QuoteOut

    made = shown(QuoteOut, answer, url)
    return [
        f"{made.id}: done by {clock(each.deadline_at_ms)} for {tokens_words(each.price_mtokens)} tokens"
        for each in made.points
    ]


def refusal(seen: AdmissionOut, url: str) -> str:
    """Say why a job may not start, and what would do."""
    why = plain(seen.why or seen.plan.reason)
    said = f"{seen.state}: {plain(seen.request.name)} ({plain(seen.id)}): {why}"
    if seen.state != "rejected":
        return f"{said}; ask again"
    if seen.placement is not None:
        return said  # the reason names what would do
    return f"{said}; {what_would_do(seen, url)}"


def what_would_do(seen: AdmissionOut, url: str) -> str:
    """Say with which deadline the gate could let the job in, if its work is known."""
    from yarnctl.cli.gate_asking import gate_at

    asked, gate = seen.request, gate_at(url)
    if asked.estimate is None:
        if gate is not None and gate.allocator == "oracle":
            once = "run it once without the gate under this name, and the history knows it"
            return f"{once}; or keep the gate with yarnctl run --admission justice, which need not know"
        return "give it more time, or ask when less is going on"
    there = None if gate is None else gate.capacity
    containers = min(asked.containers, there or asked.containers)
    least_ms = -(-asked.estimate.mean_ms // max(1, containers))
    told = f"{plain(asked.estimate.source)}: about {span_words(least_ms)} on {containers_words(containers)}"
    if least_ms > asked.deadline_ms:
        return f"a deadline of at least {span_words(least_ms)} would do ({told})"
    return f"ask earlier, or with a later deadline ({told})"
