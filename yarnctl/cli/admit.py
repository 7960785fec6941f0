"""``yarnctl admit``: ask at the gate, wait, and submit the job as oneself with what the gate gives.

Law: the daemon submits nothing and this command decides nothing. What runs in the end is the user's own
command with three more settings, run in this process's place, never by a shell. Exit status, where the
command does not run: 1 rejected, 2 bad input, 3 unreachable, 75 deferred (--no-wait), 130 and 143
interrupted.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import signal
import sys
from datetime import datetime
from typing import TYPE_CHECKING, Any

import click

from yarnctl.cli.asking import plain, url_option
from yarnctl.command_line import INTERRUPTED, output_option, print_json
from yarnctl.errors import BadInput, Different, Unreachable

if TYPE_CHECKING:
    from yarnctl.cli.gate_asking import Admission, Asking
    from yarnctl.cli.submission import Command

DEFERRED = 75
"""EX_TEMPFAIL of sysexits.h: try again later."""
TERMINATED = 143
UNNAMED = "streamjob"
UNITS_MS = {"d": 86_400_000, "h": 3_600_000, "m": 60_000, "s": 1_000}

_SPAN = re.compile(r"(?:(\d{1,6})d)?(?:(\d{1,6})h)?(?:(\d{1,6})m)?(?:(\d{1,9})s?)?")


class Terminated(KeyboardInterrupt):
    """Somebody ends this process (SIGTERM)."""


@click.command(context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False})
@click.option("--deadline", metavar="SPAN", help="Until when from now: 90s, 15m, 1h30m, 2d.")
@click.option("--deadline-at", metavar="INSTANT", help="Or the instant: ISO 8601, or seconds since 1970.")
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
def command(
    deadline: str | None,
    deadline_at: str | None,
    containers: int | None,
    name: str | None,
    queue: str | None,
    user: str | None,
    no_wait: bool,
    print_it: bool,
    url: str,
    output: str,
    words: tuple[str, ...],
) -> int:
    """Wait at the gate until the streaming job WORDS may start, then submit it.

    It meets its deadline with as few containers as the gate gives it, or is rejected with the reason. Asking
    needs the daemon's token: name its file in YARNCTL_TOKEN_FILE.
    """
    from uuid import uuid4

    from yarnctl.cli.gate_asking import Asking
    from yarnctl.cli.submission import command_of

    job = command_of(words)
    if not print_it and shutil.which(words[0]) is None:
        raise BadInput(words[0], "is no program on the PATH")
    settings = {**job.settings(), **_named(job, name, queue)}
    request = request_of(job, settings, (deadline, deadline_at), user, containers, url)
    asking = Asking(url, request, uuid4().hex)
    previous = signal.signal(signal.SIGTERM, _terminated)
    try:
        return _ask_and_submit(asking, job, settings, not no_wait, print_it, output == "json")
    except KeyboardInterrupt as interruption:
        _leave(asking)
        if isinstance(interruption, Terminated):
            return TERMINATED
        click.echo("error: interrupted", err=True)
        return INTERRUPTED
    except (BadInput, Unreachable):
        _leave(asking)
        raise
    finally:
        signal.signal(signal.SIGTERM, previous or signal.SIG_DFL)


def _terminated(*_: object) -> None:
    raise Terminated


def _leave(asking: Asking) -> None:
    """Withdraw; nothing interrupts that."""
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)
    problem = asking.withdraw()
    signal.signal(signal.SIGINT, signal.default_int_handler)
    if problem:
        click.echo(f"note: the request could not be withdrawn ({problem}); it ends by itself", err=True)


# --- what is asked ------------------------------------------------------------------------------------


def _named(job: Command, name: str | None, queue: str | None) -> dict[str, str]:
    """Return name and queue where the options say them; BadInput where the command says otherwise."""
    from yarnctl.cli.submission import NAME, QUEUE

    own = job.settings()
    found: dict[str, str] = {}
    for option, key, value in (("--name", NAME, name), ("--queue", QUEUE, queue)):
        if value is None:
            continue
        if own.get(key, value) != value:
            raise BadInput(option, f"{value!r}, but the command says {own[key]!r}", "say it once")
        found[key] = value
    return found


def request_of(
    job: Command,
    settings: dict[str, str],
    deadlines: tuple[str | None, str | None],
    user: str | None,
    containers: int | None,
    url: str,
) -> dict[str, Any]:
    """Return the body of the request. Raises BadInput where something is missing or contradicts itself."""
    import getpass
    import time

    from yarnctl.cli.gate_asking import containers_of_last_run
    from yarnctl.cli.submission import NAME, QUEUE, deadline_tag_ms, most_containers, tags_of

    said = job.user_option
    user = user or said or os.environ.get("HADOOP_USER_NAME") or getpass.getuser()
    if said is not None and said != user:
        raise BadInput("--user", f"{user!r}, but the command says {said!r}", "say it once")
    name = settings.get(NAME)
    if name is None:
        click.echo("note: without a --name the job has no history to be judged by", err=True)
        name = UNNAMED
    tagged_ms = deadline_tag_ms(tags_of(settings))
    request: dict[str, Any] = {
        "name": name,
        "user": user,
        "queue": settings.get(QUEUE, job.queue_default),
        "deadline_ms": _span_ms(deadlines, tagged_ms, int(time.time() * 1000)),
    }
    most = containers or most_containers(settings)
    if most is None:
        from yarnctl.attach.fitting import folded

        wanted = folded(name)
        known = name != UNNAMED
        most = containers_of_last_run(url, user, lambda other: known and folded(other) == wanted)
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
    if at_ms <= now_ms:
        where = "--deadline-at" if instant is not None else "the tag deadline:"
        raise BadInput(where, "is in the past")
    return at_ms - now_ms


def span_of(option: str, text: str) -> int:
    """Return a span in ms: ``90``, ``90s``, ``15m``, ``1h30m``, ``2d``; BadInput for anything else."""
    match = _SPAN.fullmatch(text.strip())
    total_ms = 0
    if match is not None:
        counts = (int(count or 0) for count in match.groups())
        total_ms = sum(count * unit for count, unit in zip(counts, UNITS_MS.values(), strict=True))
    if not total_ms:
        raise BadInput(option, f"{text[:40]!r} is no span above 0", "write it like 90s, 15m, 1h30m or 2d")
    return total_ms


def instant_of(option: str, text: str) -> int:
    """Return an instant in ms since 1970: ISO 8601 (local time without a zone), seconds, or 13 digits of
    ms.
    """
    text = text.strip()
    if re.fullmatch(r"[0-9]{9,13}", text):
        return int(text) if len(text) == 13 else int(text) * 1000
    try:
        return int(datetime.fromisoformat(text).timestamp() * 1000)
    except (ValueError, OverflowError, OSError):
        remedy = "write it like 2030-01-31T18:00, 2030-01-31T17:00Z or 1896195600"
        raise BadInput(option, f"{text[:40]!r} is no instant", remedy) from None


# --- what is answered ---------------------------------------------------------------------------------


def _ask_and_submit(
    asking: Asking, job: Command, settings: dict[str, str], wait: bool, print_it: bool, as_json: bool
) -> int:
    asking.begin()
    seen = asking.decided(Telling(), wait)
    if seen.state == "waiting":
        _leave(asking)
        print_json(asking.raw) if as_json else click.echo(f"deferred: {story(seen)}")
        return DEFERRED
    if seen.state != "admitted":
        if as_json:
            print_json(asking.raw)
        raise Different(refusal(seen, asking.url))
    line = line_of(job, settings, seen)
    if print_it:
        print_json({"admission": asking.raw, "command": line}) if as_json else click.echo(shlex.join(line))
        return 0
    click.echo(f"admitted: {story(seen)}", err=True)
    sys.stdout.flush()
    sys.stderr.flush()
    try:
        os.execvp(line[0], line)  # noqa: S606
    except OSError as error:
        raise BadInput(line[0], error.strerror or "cannot be run") from None


def line_of(job: Command, settings: dict[str, str], seen: Admission) -> list[str]:
    """Return the command line to run; BadInput names a setting that contradicts what the gate gives."""
    from yarnctl.cli.submission import NAME, QUEUE, settled

    more, notes = settled(settings, seen.settings, seen.tags)
    for note in notes:
        click.echo(f"note: {note}", err=True)
    own = job.settings()
    fresh = {key: settings[key] for key in (NAME, QUEUE) if key in settings and key not in own}
    return job.words(fresh | more)


class Telling:
    """Says on stderr what a job waits for, whenever that changes."""

    def __init__(self) -> None:
        self._said: tuple[object, ...] = ()

    def __call__(self, seen: Admission) -> None:
        """Look at an answer."""
        said = (seen.plan.reason, seen.plan.containers, (seen.plan.start_at_ms or 0) // 60_000)
        if said != self._said:
            self._said = said
            click.echo(f"waiting: {story(seen)}", err=True)


def story(seen: Admission) -> str:
    """Say a plan in words."""
    plan = seen.plan
    parts = [plain(plan.reason)]
    if seen.state == "waiting" and plan.start_at_ms is not None:
        parts.append(f"starts at {clock(plan.start_at_ms)} as things stand")
    if plan.finish_at_ms is not None:
        parts.append(f"ends by {clock(plan.finish_at_ms)}")
    parts.append(f"deadline {clock(plan.deadline_at_ms)}")
    return f"{plain(seen.id)}: {'; '.join(parts)}"


def refusal(seen: Admission, url: str) -> str:
    """Say why a job may not start, and what would do."""
    why = plain(seen.why or seen.plan.reason)
    said = f"{seen.state}: {plain(seen.request.name)} ({plain(seen.id)}): {why}"
    if seen.state != "rejected":
        return f"{said}; ask again"
    return f"{said}; {what_would_do(seen, url)}"


def what_would_do(seen: Admission, url: str) -> str:
    """Say with which deadline the gate could let the job in, if its work is known."""
    from yarnctl.cli.gate_asking import capacity

    asked = seen.request
    if asked.estimate is None:
        return "give it more time, or ask when less is going on"
    there = capacity(url)
    containers = min(asked.containers, there or asked.containers)
    least_ms = -(-asked.estimate.mean_ms // max(1, containers))
    told = f"{plain(asked.estimate.source)}: about {span_words(least_ms)} on {containers} containers"
    if least_ms > asked.deadline_ms:
        return f"a deadline of at least {span_words(least_ms)} would do ({told})"
    return f"ask earlier, or with a later deadline ({told})"


def span_words(span_ms: int) -> str:
    """Say a span, rounded up to what a person would write: 45 s, 14 min, 3 h 20 min."""
    seconds = -(-span_ms // 1000)
    if seconds < 120:
        return f"{seconds} s"
    minutes = -(-seconds // 60)
    if minutes < 120:
        return f"{minutes} min"
    return f"{minutes // 60} h {minutes % 60} min"


def clock(at_ms: int) -> str:
    """Say an instant of today or another day, in local time."""
    at = datetime.fromtimestamp(at_ms / 1000)
    is_today = at.date() == datetime.now().date()
    return at.strftime("%H:%M:%S" if is_today else "%Y-%m-%d %H:%M:%S")
