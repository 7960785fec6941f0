"""``yarnctl admissions``: show a running daemon's admissions, or withdraw one; reading renews no lease."""

from __future__ import annotations

import re
import textwrap
from datetime import datetime
from typing import get_args

import click

from yarnctl.api.admission_answers import AdmissionOut, AdmissionPage, GateOut
from yarnctl.cli.asking import client_at, limit_option, plain, showing_options
from yarnctl.command_line import print_json, print_table
from yarnctl.deciding.admission.records import State
from yarnctl.errors import BadInput, Different

MTOKENS_MAX = 10**15
_AMOUNT = re.compile(r"([0-9]{1,12})(?:\.([0-9]{1,3}))?")

UNITS_MS = {"d": 86_400_000, "h": 3_600_000, "m": 60_000, "s": 1_000}
SPAN_MAX_DAYS = 366  # The longest deadline that the daemon accepts
SHOWN_MAX = 40

_SPAN = re.compile(r"(?:([0-9]{1,15})d)?(?:([0-9]{1,15})h)?(?:([0-9]{1,15})m)?(?:([0-9]{1,15})s)?")
_EXAMPLES = "use for example 90s, 15m, 1h30m or 2d"


def span_of(option: str, text: str) -> int:
    """Return a duration in ms: ``90s``, ``15m``, ``1h30m``, ``2d``; BadInput for any other form."""
    text = text.strip()
    shown = repr(text[:SHOWN_MAX])
    match = _SPAN.fullmatch(text)
    if match is None or not text:
        raise BadInput(option, f"{shown} {_problem_of(text)}", _EXAMPLES)
    counts = (int(count or 0) for count in match.groups())
    total_ms = sum(count * unit for count, unit in zip(counts, UNITS_MS.values(), strict=True))
    if not total_ms:
        raise BadInput(option, f"{shown} is not above 0", _EXAMPLES)
    return not_too_far(option, shown, total_ms)


def _problem_of(text: str) -> str:
    if re.fullmatch(r"([0-9]+[dhms])*[0-9]+", text):
        return "ends in a number without a unit"
    if re.fullmatch(r"(?:[0-9]+[dhm])*[0-9]*[.,][0-9]+[dhms]", text):
        return "is not a whole number of a unit"
    return "is not a duration"


def not_too_far(option: str, shown: str, span_ms: int) -> int:
    """Return ``span_ms``; BadInput where it exceeds the longest deadline that a daemon accepts."""
    if span_ms > SPAN_MAX_DAYS * UNITS_MS["d"]:
        raise BadInput(option, f"{shown} exceeds the maximum of {SPAN_MAX_DAYS} days", "use less")
    return span_ms


def mtokens_of(option: str, text: str) -> int:
    """Return an amount of tokens in milli-tokens; BadInput unless above 0, with at most 3 decimals."""
    match = _AMOUNT.fullmatch(text.strip())
    mtokens = 0 if match is None else int(match[1]) * 1000 + int((match[2] or "0").ljust(3, "0"))
    if not 0 < mtokens <= MTOKENS_MAX:
        problem = f"{text[:40]!r} is not an amount above 0 with at most 3 decimals"
        raise BadInput(option, problem, "use for example 52 or 48.2")
    return mtokens


def tokens_words(mtokens: int) -> str:
    """Return an amount in milli-tokens as text in tokens."""
    return f"{mtokens / 1000:.3f}".rstrip("0").rstrip(".")


def instant_of(option: str, text: str) -> int:
    """Return an instant in ms since 1970, from ISO 8601 (local without a zone), seconds, or ms (13 digits).

    Raises BadInput for any other form, and for a local time that occurs twice or never (change of clocks).
    """
    text = text.strip()
    if re.fullmatch(r"[0-9]{9,13}", text):
        return int(text) if len(text) == 13 else int(text) * 1000
    try:
        parsed = datetime.fromisoformat(text)
        found = parsed if parsed.tzinfo is not None else _local(option, text, parsed)
        return int(found.timestamp() * 1000)
    except (ValueError, OverflowError, OSError):
        remedy = "use for example 2030-01-31T18:00, 2030-01-31T17:00Z or 1896195600"
        raise BadInput(option, f"{text[:SHOWN_MAX]!r} is not an instant", remedy) from None


def _local(option: str, text: str, parsed: datetime) -> datetime:
    first, second = parsed.replace(fold=0).astimezone(), parsed.replace(fold=1).astimezone()
    if first.utcoffset() == second.utcoffset():
        return first
    shown = f"local time {text[:SHOWN_MAX]}"
    if first.replace(tzinfo=None) == parsed.replace(fold=0):
        both = [parsed.replace(tzinfo=each.tzinfo).isoformat(timespec="minutes") for each in (first, second)]
        raise BadInput(option, f"{shown} occurs twice: clocks are set back", f"use {both[0]} or {both[1]}")
    begins, ends = _gap(*sorted((first, second)))
    gap = f"clocks are set forward from {begins:%Y-%m-%dT%H:%M} to {ends:%Y-%m-%dT%H:%M}"
    remedy = "use a time outside of this hour, or add an offset such as +01:00"
    raise BadInput(option, f"{shown} does not exist: {gap}", remedy)


def _gap(before: datetime, after: datetime) -> tuple[datetime, datetime]:
    """Return the local times from and to which clocks are set forward, between two instants around that."""
    from_s, until_s = int(before.timestamp()), int(after.timestamp())
    while until_s - from_s > 1:
        middle_s = (from_s + until_s) // 2
        if datetime.fromtimestamp(middle_s).astimezone().utcoffset() == before.utcoffset():
            from_s = middle_s
        else:
            until_s = middle_s
    return datetime.fromtimestamp(until_s, before.tzinfo), datetime.fromtimestamp(until_s, after.tzinfo)


def span_words(span_ms: int) -> str:
    """Return a duration as text, rounded up: 45 s, 14 min, 3 h 20 min, 12 days."""
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
    """Return an instant as local time; with the date unless it is today."""
    try:
        at = datetime.fromtimestamp(at_ms // 1000)
    except (ValueError, OverflowError, OSError):  # out of the platform's range
        return str(at_ms)
    is_today = at.date() == datetime.now().date()
    return at.strftime("%H:%M:%S" if is_today else "%Y-%m-%d %H:%M:%S")


def containers_words(number: int) -> str:
    """Return a number of containers as text."""
    return "1 container" if number == 1 else f"{number} containers"


WIDTHS = {
    "admission": 16,
    "state": 9,
    "name": 17,
    "user": 8,
    "granted": 7,
    "deadline in": 11,
    "plan or reason": 30,
}
NO_GATE = "admission control is disabled; restart the daemon with --admission justice --token-file FILE"


@click.command()
@click.argument("admission", required=False, metavar="[ID]")
@click.option(
    "--withdraw", "is_withdrawn", is_flag=True, help="Withdraw admission ID and release its containers."
)
@click.option("--state", type=click.Choice(get_args(State)), help="Show only admissions in this state.")
@click.option("--queue", help="Show only admissions for this queue.")
@click.option("--user", help="Show only admissions of this user.")
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
    """Show admission requests with their state and reason; with ID all fields of one admission.

    --withdraw requires a token with scope submit (for your own admissions) or operate. Set YARNCTL_TOKEN_FILE
    to the file with the token.
    """
    filters = {"state": state, "queue": queue, "user": user}
    if admission is not None and any(filters.values()):
        raise BadInput("ID", "cannot be combined with filters", "give ID, or filters")
    if is_withdrawn:
        _withdraw(url, admission, output)
    elif admission is not None:
        _one(url, admission, output)
    else:
        _all(url, filters, limit, output)


def _all(url: str, filters: dict[str, str | None], limit: int, output: str) -> None:
    page = client_at(url).admissions(filters["state"], filters["user"], filters["queue"], limit)
    if output == "json":
        print_json(page)
    if page.gate is None:
        raise Different(f"{url}: {NO_GATE}")
    if output != "json":
        print_table(tuple(WIDTHS), [_row(each, page.now_ms) for each in page.items], _title(page, page.gate))


def _row(admission: AdmissionOut, now_ms: int) -> list[str]:
    request, plan = admission.request, admission.plan
    left_ms = plan.deadline_at_ms - now_ms
    is_granted = admission.state in ("admitted", "running", "ended", "expired")
    gets = str(plan.containers) if is_granted else "-"
    cells = (
        admission.id,
        admission.state,
        request.name,
        request.user,
        f"{gets}/{request.containers}",
        span_words(left_ms) if left_ms >= 0 else "passed",
        _plan_words(admission, now_ms),
    )
    return [_folded(cell, width) for cell, width in zip(cells, WIDTHS.values(), strict=True)]


def _plan_words(admission: AdmissionOut, now_ms: int) -> str:
    start_ms = admission.plan.start_at_ms
    parts = [
        admission.application or "",
        admission.why or ("" if admission.application else admission.plan.reason),
    ]
    if admission.late is not None:
        late_ms = admission.late.projected_at_ms - admission.plan.deadline_at_ms
        parts.append(f"will be {span_words(max(0, late_ms))} late")
    if admission.delayed is not None:
        more_ms = admission.delayed.deadline_at_ms - admission.plan.deadline_at_ms
        because = ", ".join(admission.delayed.delayed_by)
        parts.append(f"delayed by {because}: a deadline {span_words(max(0, more_ms))} later can be kept")
    if admission.state == "waiting" and start_ms is not None:
        parts.append(f"starts in {span_words(max(0, start_ms - now_ms))}")
    return "; ".join(filter(None, parts))


def _folded(text: str, width: int) -> str:
    return textwrap.fill(plain(text), width)


def _title(page: AdmissionPage, gate: GateOut) -> str:
    size = "an unknown number of containers" if gate.capacity is None else containers_words(gate.capacity)
    counts = f"{_counted(gate.waiting, 'request', 'requests')} waiting, {gate.reserved} of {size} reserved"
    total = _counted(page.total, "admission", "admissions")
    learned = _counted(gate.learned, "job", "jobs")
    title = f"{total}; {plain(gate.allocator)}: {counts}, learned from {learned}"
    return f"{title}; {plain(gate.problem)}" if gate.problem else title


def _counted(number: int, one: str, many: str) -> str:
    return f"{number} {one if number == 1 else many}"


def _one(url: str, admission: str, output: str) -> None:
    _print(client_at(url).get_admission(_id(admission)), output)


def _withdraw(url: str, admission: str | None, output: str) -> None:
    from yarnctl.cli.gate_asking import WITHDRAW_S

    if admission is None:
        raise BadInput("--withdraw", "requires ID", "run yarnctl admissions to see the IDs")
    found = client_at(url).withdraw_admission(_id(admission), WITHDRAW_S)
    if output == "json":
        print_json(found)
    if found.state != "withdrawn":
        raise Different(f"{admission}: cannot be withdrawn in state {plain(found.state)}")
    if output != "json":
        click.echo(f"{plain(found.id)}: withdrawn")


def _id(admission: str) -> str:
    if not re.fullmatch(r"adm-[A-Za-z0-9]{1,40}-[0-9]{1,15}", admission):
        remedy = "use an ID such as adm-1f2e3d4c-7; run yarnctl admissions to see them"
        raise BadInput("ID", f"{admission[:60]!r} is not an admission's ID", remedy)
    return admission


def _print(admission: AdmissionOut, output: str) -> None:
    """Print each field on its own line, instants as clock times, amounts in tokens."""
    if output == "json":
        print_json(admission)
        return
    import msgspec

    fields: dict[str, object] = msgspec.to_builtins(admission)
    rows = [row for name, value in fields.items() for row in _fields(name, value)]
    print_table(("field", "value"), rows, plain(admission.id))


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
