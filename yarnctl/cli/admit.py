"""``yarnctl admit``: request admission for a job, wait, and submit it as the user with the granted settings.

* The user's command runs in this process's place, with the granted settings in front; never by a shell.
* A request whose job is not submitted is withdrawn, whatever the reason.
* Exit status where the command does not run: 1 rejected, 2 bad input, 3 unreachable, 75 deferred
  (``--no-wait``), 129, 130 and 143 interrupted.
"""

from __future__ import annotations

import contextlib
import os
import shlex
import signal
import sys
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

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
from yarnctl.cli.asking import plain, url_option
from yarnctl.cli.taking_place import require_program, run_in_place
from yarnctl.client.requesting import Busy, Repriced
from yarnctl.command_line import complain, option_group, output_option, print_json
from yarnctl.errors import BadInput, Different

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from yarnctl.api.admission_answers import AdmissionOut
    from yarnctl.api.market_answers import QuoteOut
    from yarnctl.cli.gate_asking import GateRequest
    from yarnctl.frameworks.submitting import Submission, Submitter

    LineMaker = Callable[[AdmissionOut], list[str]]

DEFERRED = 75  # EX_TEMPFAIL of sysexits.h: try again later
LONGEST = {"--name": 200, "--queue": 200, "--user": 100}  # The most characters that the daemon accepts
SIGNALS = {signal.SIGHUP: "hung up", signal.SIGINT: "interrupted", signal.SIGTERM: "terminated"}


class EndedBySignal(KeyboardInterrupt):
    """A signal ``number`` ends this process."""

    def __init__(self, number: int = signal.SIGINT) -> None:
        super().__init__(number)
        self.number = signal.Signals(number)


class JobOptions(NamedTuple):
    """What ``admit`` and ``quote`` let the user specify of a job; None: not given."""

    account: str | None = None
    containers: int | None = None
    name: str | None = None
    queue: str | None = None
    user: str | None = None


class TermOptions(NamedTuple):
    """When a job must be done, and how its deadline is paid; None: not given."""

    deadline: str | None = None
    deadline_at: str | None = None
    budget: str | None = None
    quote: str | None = None
    refund: str | None = None


_JOB = (
    click.option(
        "--account", metavar="NAME", help="Account that pays.  [default: the account of your token]"
    ),
    click.option(
        "--containers",
        type=click.IntRange(2, 1_000_000),
        metavar="N",
        help="Maximum number of containers the job can use at once, with its application master."
        "  [default: from its -D options or its last run]",
    ),
    click.option("--name", metavar="NAME", help="Job name; earlier runs of this name give its estimate."),
    click.option("--queue", metavar="QUEUE", help="Queue to submit to."),
    click.option("--user", metavar="USER", help="Owner of the job.  [default: HADOOP_USER_NAME, else you]"),
)
_TERMS = (
    click.option("--deadline", metavar="SPAN", help="Time until the deadline: 90s, 15m, 1h30m, 2d."),
    click.option(
        "--deadline-at", metavar="INSTANT", help="Deadline as an instant: ISO 8601, or seconds since 1970."
    ),
    click.option(
        "--budget",
        metavar="TOKENS",
        help="Maximum price in tokens. Without a deadline, buys the earliest one at this price.",
    ),
    click.option("--quote", metavar="ID", help="Quote from which you chose --budget and --deadline."),
    click.option(
        "--refund",
        type=click.Choice(["none", "unused", "late", "both"]),
        help="When tokens are refunded after the run.  [default: both]",
    ),
)
job_options = option_group(JobOptions, "job_options", _JOB)
"""Add the options that specify a job; the argument ``job_options``."""


@click.command(context_settings={"allow_interspersed_args": False})
@option_group(TermOptions, "terms", _TERMS)
@job_options
@click.option("--no-wait", is_flag=True, help="Exit with 75 if the job cannot start now.")
@click.option("--print", "print_it", is_flag=True, help="Print the command instead of running it.")
@url_option
@output_option
@click.argument("words", nargs=-1, required=True, type=click.UNPROCESSED)
def command(
    words: tuple[str, ...],
    terms: TermOptions,
    job_options: JobOptions,
    no_wait: bool,
    print_it: bool,
    url: str,
    output: str,
) -> int:
    """Wait for admission of the job WORDS (Hadoop streaming, spark-submit, flink), then submit it.

    The job meets its deadline with as few containers as possible, or is rejected with a reason. Requires a
    token with scope submit for the job's user. Set YARNCTL_TOKEN_FILE to the file with the token.
    """
    from uuid import uuid4

    from yarnctl.cli.gate_asking import GateRequest
    from yarnctl.frameworks.submissions import FRAMEWORKS, kind_of

    if words[0].startswith("-"):
        raise BadInput(words[0][:60], "is not a program", "put options of yarnctl admit before the --")
    kind = kind_of(words)
    framework = FRAMEWORKS[kind]
    submission = framework.command_of(words)
    if not print_it:
        require_program(words)
    settings = job_settings(framework, submission, job_options)
    payment = payment_of(terms, job_options.account)
    from yarnctl.hadoop.wire.tags import deadline_tag_ms

    deadlines = terms.deadline, terms.deadline_at, deadline_tag_ms(framework.tags_of(settings))
    is_earliest = terms.budget is not None and all(each is None for each in deadlines)
    deadline = {} if is_earliest else {"deadline_ms": deadline_ms_of(terms, framework, settings)}
    body = request_of(kind, submission, settings, job_options, url) | deadline | payment
    request = GateRequest(url, body, uuid4().hex, StderrNotes())
    line_for = partial(line_of, framework, submission, settings)
    noted = _with_note_of_price(line_for) if payment else line_for
    return submit(request, noted, wait=not no_wait, print_it=print_it, as_json=output == "json")


def _with_note_of_price(line_for: LineMaker) -> LineMaker:
    """Return ``line_for`` with a note to a user with a budget where deadlines have no price."""

    def with_note(admission: AdmissionOut) -> list[str]:
        if admission.plan.price_mtokens is None:
            click.echo("note: this daemon does not price deadlines; --budget is not charged", err=True)
        return line_for(admission)

    return with_note


@contextlib.contextmanager
def with_signals() -> Iterator[None]:
    """Raise EndedBySignal on the signals that end the process; an ignored one (nohup) stays ignored."""
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


def leave(request: GateRequest) -> bool:
    """Withdraw the request and ignore signals meanwhile; return False where it cannot be withdrawn."""
    for number in SIGNALS:
        signal.signal(number, signal.SIG_IGN)
    problem = request.withdraw()
    if problem:
        with contextlib.suppress(OSError):
            click.echo(f"note: request not withdrawn ({problem}); it expires with its lease", err=True)
    return not problem


def job_settings(submitter: Submitter, submission: Submission, job_options: JobOptions) -> dict[str, str]:
    """Return the job's settings with ``--name`` and ``--queue``; BadInput where the command differs."""
    own = submission.settings()
    found = dict(own)
    for option, key, value in (
        ("--name", submitter.NAME, job_options.name),
        ("--queue", submitter.QUEUE, job_options.queue),
    ):
        if value is None:
            continue
        if own.get(key, value) != value:
            raise BadInput(option, f"{value!r} differs from {own[key]!r} in the command", "give one of them")
        found[key] = value
    return found


def payment_of(terms: TermOptions, account: str | None) -> dict[str, Any]:
    """Return a request's fields of payment; BadInput for an option that requires --budget."""
    fields = {"account": account, "quote": terms.quote, "refund": terms.refund}
    given = {name: value for name, value in fields.items() if value is not None}
    if terms.budget is not None:
        return {"budget_mtokens": mtokens_of("--budget", terms.budget), **given}
    for name in given:
        raise BadInput(f"--{name}", "requires --budget", "add --budget TOKENS")
    return {}


def _checked(option: str, value: str) -> str:
    odd = next((each for each in value if ord(each) < 32 or ord(each) == 127), None)
    if odd is not None:
        raise BadInput(option, f"{plain(value)[:60]!r} contains a control character ({odd!a})", "remove it")
    if not 0 < len(value) <= LONGEST[option]:
        problem = "is empty" if not value else f"has {len(value)} characters"
        raise BadInput(option, problem, f"use 1 to {LONGEST[option]} characters")
    return value


def request_of(
    kind: str, submission: Submission, settings: dict[str, str], job_options: JobOptions, url: str
) -> dict[str, Any]:
    """Return the body of the request without its deadline; raises BadInput."""
    import getpass

    from yarnctl.frameworks.submissions import FRAMEWORKS, PLAIN_KIND

    framework = FRAMEWORKS[kind]
    own_user = submission.user_option
    user = job_options.user or own_user or os.environ.get("HADOOP_USER_NAME") or getpass.getuser()
    if own_user is not None and own_user != user:
        raise BadInput("--user", f"{user!r} differs from {own_user!r} in the command", "give one of them")
    name = settings.get(framework.NAME, submission.name_default)
    if name == framework.UNNAMED:
        click.echo("note: the job has no name; without --name no earlier run gives an estimate", err=True)
    body: dict[str, Any] = {
        "name": _checked("--name", name),
        "user": _checked("--user", user),
        "queue": _checked("--queue", settings.get(framework.QUEUE, submission.queue_default)),
    }
    if kind != PLAIN_KIND:
        body["kind"] = kind
    containers = job_options.containers or framework.most_containers(settings)
    body["containers"] = containers or _containers_of_last_run(kind, name, user, url)
    return body


def _containers_of_last_run(kind: str, name: str, user: str, url: str) -> int:
    from yarnctl.attach.history.fitting import folded
    from yarnctl.cli.gate_asking import containers_of_last_run
    from yarnctl.frameworks.submissions import FRAMEWORKS

    framework, wanted = FRAMEWORKS[kind], folded(name)

    def is_same(other: str) -> bool:
        return name != framework.UNNAMED and folded(other) == wanted

    return containers_of_last_run(url, user, kind, is_same, framework.MOST_REMEDY)


def deadline_ms_of(terms: TermOptions, submitter: Submitter, settings: dict[str, str]) -> int:
    """Return the time in ms to the deadline that one of two options and a tag names; raises BadInput."""
    import time

    from yarnctl.hadoop.wire.tags import deadline_tag_ms

    now_ms = int(time.time() * 1000)
    tagged_ms = deadline_tag_ms(submitter.tags_of(settings))
    given = [one for one in (terms.deadline, terms.deadline_at, tagged_ms) if one is not None]
    if len(given) != 1:
        remedy = (
            "give --deadline 15m, or --deadline-at 2030-01-31T18:00, or the tag deadline:1893456000 (seconds"
            " since 1970)"
        )
        raise BadInput("--deadline", "is missing" if not given else f"is given {len(given)} times", remedy)
    if terms.deadline is not None:
        return span_of("--deadline", terms.deadline)
    at_ms = tagged_ms if terms.deadline_at is None else instant_of("--deadline-at", terms.deadline_at)
    assert at_ms is not None
    where = "the tag deadline:" if terms.deadline_at is None else "--deadline-at"
    if at_ms <= now_ms:
        raise BadInput(where, f"{clock(at_ms)} is in the past", "use a later instant")
    return not_too_far(where, clock(at_ms), at_ms - now_ms)


def submit(request: GateRequest, line_for: LineMaker, *, wait: bool, print_it: bool, as_json: bool) -> int:
    """Send the request, wait, and run the command line that the answer gives in this process's place.

    A request whose job is not submitted is withdrawn; returns the exit status.
    """
    with with_signals():
        try:
            return _submit_admitted(request, line_for, wait=wait, print_it=print_it, as_json=as_json)
        except KeyboardInterrupt as ending:
            number = ending.number if isinstance(ending, EndedBySignal) else signal.SIGINT
            was_open = request.is_open
            withdrawn = leave(request)
            note = (
                f"{plain(request.latest.id)}: withdrawn" if request.latest and was_open and withdrawn else ""
            )
            return complain("; ".join(filter(None, (SIGNALS[number], note))), 128 + number)
        except Exception:
            leave(request)
            raise


def _submit_admitted(
    request: GateRequest, line_for: LineMaker, *, wait: bool, print_it: bool, as_json: bool
) -> int:
    try:
        request.begin(wait)
    except Repriced as error:
        click.echo("\n".join(_curve_lines(error.quote)), err=True)
        raise
    except Busy as error:  # without waiting
        print_json({"state": "waiting", "why": error.reason}) if as_json else None
        return DEFERRED if as_json else _deferred(error.reason)
    admission = request.decided(wait)
    if admission.state == "waiting":
        leave(request)
        print_json(request.latest) if as_json else None
        return DEFERRED if as_json else _deferred(story(admission))
    if admission.state != "admitted":
        if as_json:
            print_json(request.latest)
        raise Different(refusal(admission, request.url))
    line = line_for(admission)
    if print_it:
        print_json({"admission": request.latest, "command": line}) if as_json else click.echo(
            shlex.join(line)
        )
        sys.stdout.flush()
        return 0
    click.echo(one_line(request.latest) if as_json else f"admitted: {story(admission)}", err=True)
    return run_in_place(line)


def _deferred(why: str) -> int:
    click.echo(f"deferred: {why}")
    return DEFERRED


def line_of(
    submitter: Submitter, submission: Submission, settings: dict[str, str], admission: AdmissionOut
) -> list[str]:
    """Return the command line to run; BadInput names a setting that contradicts a granted one."""
    more, notes = submitter.settled(settings, admission.settings, admission.tags)
    for note in notes:
        click.echo(f"note: {note}", err=True)
    own = submission.settings()
    fresh = {
        key: settings[key] for key in (submitter.NAME, submitter.QUEUE) if key in settings and key not in own
    }
    return submission.words(fresh | more)


class StderrNotes:
    """Prints on stderr what a job waits for, whenever that changes."""

    def __init__(self) -> None:
        self._printed: tuple[object, ...] = ()
        self._is_unreachable = False

    def waits(self, admission: AdmissionOut, problem: str) -> None:
        """Print what an admission waits for."""
        why, plan = plain(problem), admission.plan
        about = (plan.reason, plan.containers, (plan.start_at_ms or 0) // 60_000, why)
        self._print(about, f"waiting: {story(admission)}" + (f"; {why}" if why else ""))

    def waiting(self, problem: str) -> None:
        """Print why the daemon has not recorded the request yet."""
        self._print((problem,), f"waiting: request not recorded yet: {plain(problem)}")

    def unreachable(self, problem: str) -> None:
        """Print once that the daemon does not answer."""
        if not self._is_unreachable:
            self._is_unreachable = True
            click.echo(f"note: {plain(problem)}; retrying for 1 min", err=True)

    def back(self, note: str) -> None:
        """Print that it answers again."""
        self._is_unreachable = False
        click.echo(f"note: {plain(note)}", err=True)

    def _print(self, about: tuple[object, ...], text: str) -> None:
        if about != self._printed:
            self._printed = about
            click.echo(text, err=True)


def one_line(value: object) -> str:
    """Return a value as JSON in one line."""
    import msgspec

    return msgspec.json.encode(value).decode()


def story(admission: AdmissionOut) -> str:
    """Return an admission's plan as text."""
    plan = admission.plan
    parts = [plain(plan.reason)]
    if admission.state == "waiting" and plan.start_at_ms is not None:
        parts.append(f"expected start {clock(plan.start_at_ms)}")
    if plan.finish_at_ms is not None:
        parts.append(f"ends by {clock(plan.finish_at_ms)}")
    parts.append(f"deadline {clock(plan.deadline_at_ms)}")
    return f"{plain(admission.id)}: {'; '.join(parts)}"


def _curve_lines(quote: QuoteOut) -> list[str]:
    return [
        f"{quote.id}: done by {clock(each.deadline_at_ms)} for {tokens_words(each.price_mtokens)} tokens"
        for each in quote.points
    ]


def refusal(admission: AdmissionOut, url: str) -> str:
    """Return why a job may not start, and what to do."""
    why = plain(admission.why or admission.plan.reason)
    problem = f"{admission.state}: {plain(admission.request.name)} ({plain(admission.id)}): {why}"
    if admission.state != "rejected":
        return f"{problem}; send a new request"
    if admission.placement is not None:
        return problem  # the reason contains the remedy
    return f"{problem}; {remedy_of(admission, url)}"


def remedy_of(admission: AdmissionOut, url: str) -> str:
    """Return which deadline the job could get, as far as its work is known."""
    from yarnctl.cli.gate_asking import gate_at

    request, gate = admission.request, gate_at(url)
    if request.estimate is None:
        if gate is not None and gate.allocator == "oracle":
            once = "run it once without yarnctl admit under this name, so that the history has a run"
            return f"{once}; or run the daemon with --admission justice, which needs no estimate"
        return "use a later deadline, or try again when the cluster is less busy"
    there = None if gate is None else gate.capacity
    containers = min(request.containers, there or request.containers)
    least_ms = -(-request.estimate.mean_ms // max(1, containers))
    estimate = (
        f"{plain(request.estimate.source)}: about {span_words(least_ms)} on {containers_words(containers)}"
    )
    if least_ms > request.deadline_ms:
        return f"use a deadline of at least {span_words(least_ms)} ({estimate})"
    return f"submit earlier, or use a later deadline ({estimate})"
