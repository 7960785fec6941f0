"""``yarnctl admissions``: a running daemon's admissions: waiting, admitted, running, decided on lately.

Law: what is shown is what ``GET /v1/admissions`` answers; reading renews no lease. A table fits into 120
columns: a long field continues in the next line. One change is possible: an admission that is not used is
withdrawn (``--withdraw``), with the token. A span is rounded up, an instant down to its second.
"""

from __future__ import annotations

import re
import textwrap
from datetime import datetime
from typing import get_args

import click

from yarnctl.api.admission_answers import AdmissionOut, AdmissionPage, GateOut
from yarnctl.cli.asking import Answer, ask, ask_all, limit_option, part, plain, showing_options, shown
from yarnctl.command_line import print_json, print_table
from yarnctl.deciding.admission.records import State
from yarnctl.errors import BadInput, Different

MTOKENS_MAX = 10**15
_AMOUNT = re.compile(r"([0-9]{1,12})(?:\.([0-9]{1,3}))?")

UNITS_MS = {"d": 86_400_000, "h": 3_600_000, "m": 60_000, "s": 1_000}
SPAN_MAX_DAYS = 366
"""The longest deadline that the daemon takes."""
SHOWN_MAX = 40

_SPAN = re.compile(r"(?:([0-9]{1,15})d)?(?:([0-9]{1,15})h)?(?:([0-9]{1,15})m)?(?:([0-9]{1,15})s)?")
_AS_IN = "write it like 90s, 15m, 1h30m or 2d"


def span_of(option: str, text: str) -> int:
    """Return a span in ms: ``90s``, ``15m``, ``1h30m``, ``2d``; BadInput for anything else."""
    text = text.strip()
    shown = repr(text[:SHOWN_MAX])
    match = _SPAN.fullmatch(text)
    if match is None or not text:
        raise BadInput(option, f"{shown} {_what_is_wrong(text)}", _AS_IN)
    counts = (int(count or 0) for count in match.groups())
    total_ms = sum(count * unit for count, unit in zip(counts, UNITS_MS.values(), strict=True))
    if not total_ms:
        raise BadInput(option, f"{shown} is no span above 0", _AS_IN)
    return not_too_far(option, shown, total_ms)


def _what_is_wrong(text: str) -> str:
    if re.fullmatch(r"([0-9]+[dhms])*[0-9]+", text):
        return "ends in a number without its unit"
    if re.fullmatch(r"(?:[0-9]+[dhm])*[0-9]*[.,][0-9]+[dhms]", text):
        return "is no whole number of its unit"
    return "is no span"


def not_too_far(option: str, shown: str, span_ms: int) -> int:
    """Return the span, if a daemon takes one that long; else BadInput."""
    if span_ms > SPAN_MAX_DAYS * UNITS_MS["d"]:
        raise BadInput(
            option, f"{shown} is further than {SPAN_MAX_DAYS} days away", "a gate plans no longer ahead"
        )
    return span_ms


def mtokens_of(option: str, text: str) -> int:
    """Return an amount of tokens in milli-tokens: above 0, with at most 3 decimals; else BadInput."""
    match = _AMOUNT.fullmatch(text.strip())
    mtokens = 0 if match is None else int(match[1]) * 1000 + int((match[2] or "0").ljust(3, "0"))
    if not 0 < mtokens <= MTOKENS_MAX:
        told = f"{text[:40]!r} is no number of tokens above 0 with at most 3 decimals"
        raise BadInput(option, told, "write it like 52 or 48.2")
    return mtokens


def tokens_words(mtokens: int) -> str:
    """Say milli-tokens in tokens."""
    return f"{mtokens / 1000:.3f}".rstrip("0").rstrip(".")


def instant_of(option: str, text: str) -> int:
    """Return an instant in ms since 1970: ISO 8601 (local time without a zone), seconds, or 13 digits of
    ms.

    Raises BadInput for a local time that a change of clocks leaves out, or that comes twice.
    """
    text = text.strip()
    if re.fullmatch(r"[0-9]{9,13}", text):
        return int(text) if len(text) == 13 else int(text) * 1000
    try:
        told = datetime.fromisoformat(text)
        found = told if told.tzinfo is not None else _local(option, text, told)
        return int(found.timestamp() * 1000)
    except (ValueError, OverflowError, OSError):
        remedy = "write it like 2030-01-31T18:00, 2030-01-31T17:00Z or 1896195600"
        raise BadInput(option, f"{text[:SHOWN_MAX]!r} is no instant", remedy) from None


def _local(option: str, text: str, told: datetime) -> datetime:
    """Return a local time with its offset; BadInput if it does not exist, or comes twice."""
    first, second = told.replace(fold=0).astimezone(), told.replace(fold=1).astimezone()
    if first.utcoffset() == second.utcoffset():
        return first
    shown = f"local time {text[:SHOWN_MAX]}"
    if first.replace(tzinfo=None) == told.replace(fold=0):
        both = [told.replace(tzinfo=each.tzinfo).isoformat(timespec="minutes") for each in (first, second)]
        raise BadInput(option, f"{shown} comes twice: clocks go back", f"write {both[0]} or {both[1]}")
    begins, ends = _gap(*sorted((first, second)))
    gap = f"clocks go forward from {begins:%Y-%m-%dT%H:%M} to {ends:%Y-%m-%dT%H:%M}"
    remedy = "name a time outside that span, or give an offset such as +01:00"
    raise BadInput(option, f"{shown} does not exist: {gap}", remedy)


def _gap(before: datetime, after: datetime) -> tuple[datetime, datetime]:
    """Return the local times between which clocks go forward, at an instant between these two."""
    from_s, until_s = int(before.timestamp()), int(after.timestamp())
    while until_s - from_s > 1:
        middle_s = (from_s + until_s) // 2
        if datetime.fromtimestamp(middle_s).astimezone().utcoffset() == before.utcoffset():
            from_s = middle_s
        else:
            until_s = middle_s
    return datetime.fromtimestamp(until_s, before.tzinfo), datetime.fromtimestamp(until_s, after.tzinfo)


def span_words(span_ms: int) -> str:
    """Say a span, rounded up to what a person would write: 45 s, 14 min, 3 h 20 min, 12 days."""
    seconds = -(-span_ms // 1000)
    if seconds < 120:
        return f"{seconds} s"
    minutes = -(-seconds // 60)
    if minutes < 120:
        return f"{minutes} min"
    if minutes < 48 * 60:
        return f"{minutes // 60} h {minutes % 60} min"
    return f"{-(-minutes // (24 * 60))} days"


def clock(at_ms: int) -> str:
    """Say an instant of today or another day, in local time."""
    try:
        at = datetime.fromtimestamp(at_ms // 1000)
    except (ValueError, OverflowError, OSError):  # the daemon said it, and no clock shows it
        return str(at_ms)
    is_today = at.date() == datetime.now().date()
    return at.strftime("%H:%M:%S" if is_today else "%Y-%m-%d %H:%M:%S")


def containers_words(number: int) -> str:
    """Say how many containers."""
    return "1 container" if number == 1 else f"{number} containers"


WIDTHS = {
    "admission": 16,
    "state": 9,
    "name": 17,
    "user": 8,
    "gets": 7,
    "deadline in": 11,
    "what becomes of it": 30,
}
NO_GATE = "has no gate; start it with yarnctl run --admission justice --token-file FILE"


@click.command()
@click.argument("admission", required=False, metavar="[ID]")
@click.option("--withdraw", "is_withdrawn", is_flag=True, help="Give ID back; its containers are free then.")
@click.option("--state", type=click.Choice(get_args(State)), help="Only in this state.")
@click.option("--queue", help="Only for this queue.")
@click.option("--user", help="Only of this user.")
@limit_option
@showing_options
def command(
    admission: str | None,
    is_withdrawn: bool,
    state: str | None,
    queue: str | None,
    user: str | None,
    limit: int,
    url: str,
    output: str,
) -> None:
    """Show who asked to be let in, what became of it and why; with ID one admission in full.

    --withdraw needs a token with the scope submit (for what is yours) or operate: name its file in
    YARNCTL_TOKEN_FILE.
    """
    filters = {"state": state, "queue": queue, "user": user}
    if admission is not None and any(filters.values()):
        raise BadInput("ID", "is one admission, and filters choose among all", "give one or the other")
    if is_withdrawn:
        _withdraw(url, admission, output)
    elif admission is not None:
        _one(url, admission, output)
    else:
        _all(url, filters, limit, output)


def _all(url: str, filters: dict[str, str | None], limit: int, output: str) -> None:
    answer = ask_all(url, "v1/admissions", filters, limit)
    page = shown(AdmissionPage, answer, url)
    if output == "json":
        print_json(answer)
    if page.gate is None:
        raise Different(f"the daemon at {url} {NO_GATE}")
    if output != "json":
        print_table(tuple(WIDTHS), [_row(each, page.now_ms) for each in page.items], _title(page, page.gate))


def _row(each: AdmissionOut, now_ms: int) -> list[str]:
    request, plan = each.request, each.plan
    left_ms = plan.deadline_at_ms - now_ms
    is_granted = each.state in ("admitted", "taken", "ended", "expired")
    gets = str(plan.containers) if is_granted else "-"
    cells = (
        each.id,
        each.state,
        request.name,
        request.user,
        f"{gets}/{request.containers}",
        span_words(left_ms) if left_ms >= 0 else "passed",
        _becomes(each, now_ms),
    )
    return [_folded(cell, width) for cell, width in zip(cells, WIDTHS.values(), strict=True)]


def _becomes(each: AdmissionOut, now_ms: int) -> str:
    """Say as what it runs, or why it does not."""
    start_ms = each.plan.start_at_ms
    said = [each.application or "", each.why or ("" if each.application else each.plan.reason)]
    if each.state == "waiting" and start_ms is not None:
        said.append(f"starts in {span_words(max(0, start_ms - now_ms))}")
    return "; ".join(filter(None, said))


def _folded(text: str, width: int) -> str:
    return textwrap.fill(plain(text), width)


def _title(page: AdmissionPage, gate: GateOut) -> str:
    size = "an unknown number of containers" if gate.capacity is None else containers_words(gate.capacity)
    counts = f"{_counted(gate.waiting, 'request waits', 'requests wait')}, {gate.reserved} of {size} reserved"
    shown_of = _counted(page.total, "admission", "admissions")
    learned = _counted(gate.learned, "job", "jobs")
    title = f"{shown_of}; {plain(gate.allocator)}: {counts}, learned from {learned}"
    return f"{title}; {plain(gate.problem)}" if gate.problem else title


def _counted(number: int, one: str, many: str) -> str:
    return f"{number} {one if number == 1 else many}"


# --- one admission ------------------------------------------------------------------------------------


def _one(url: str, admission: str, output: str) -> None:
    _print(ask(url, f"v1/admissions/{_id(admission)}"), output)


def _withdraw(url: str, admission: str | None, output: str) -> None:
    """Give an admission back; BadInput where its application runs already."""
    from yarnctl.cli.gate_asking import withdraw

    if admission is None:
        raise BadInput("--withdraw", "of which admission?", "name its ID; see yarnctl admissions")
    answer = withdraw(url, _id(admission))
    if output == "json":
        print_json(answer)
    found = shown(AdmissionOut, answer, url)
    if found.state != "withdrawn":
        raise Different(f"{admission} is {plain(found.state)} already; there is nothing to give back")
    if output != "json":
        click.echo(f"{plain(found.id)} is withdrawn")


def _id(admission: str) -> str:
    """Return an admission's id as a part of a path."""
    if not re.fullmatch(r"adm-[A-Za-z0-9]{1,40}-[0-9]{1,15}", admission):
        remedy = "it looks like adm-1f2e3d4c-7; see yarnctl admissions"
        raise BadInput("ID", f"{admission[:60]!r} is no admission", remedy)
    return part(admission)


def _print(answer: Answer, output: str) -> None:
    """Show every field on a line of its own, instants as clock times, amounts in tokens."""
    if output == "json":
        print_json(answer)
        return
    rows = [row for name, value in answer.items() for row in _fields(name, value)]
    print_table(("field", "value"), rows, plain(str(answer.get("id", ""))))


def _fields(name: str, value: object) -> list[tuple[str, str | None]]:
    if isinstance(value, dict):
        return [row for key, part_ in value.items() for row in _fields(f"{name}.{key}", part_)]
    if isinstance(value, list):
        text = "\n".join(plain(str(each)) for each in value)
        return [(plain(name), text or None)]
    if name.endswith("_ms") and (value is None or isinstance(value, int)):
        words = clock if name.endswith("_at_ms") else span_words
        return [(plain(name.removesuffix("_ms")), None if value is None else words(value))]
    if name.endswith("_mtokens") and isinstance(value, int):
        return [(plain(name.removesuffix("_mtokens")), f"{tokens_words(value)} tokens")]
    return [(plain(name), None if value is None else _folded(str(value), 60) or None)]
