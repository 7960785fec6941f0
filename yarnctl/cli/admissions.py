"""``yarnctl admissions``: who waits at a running daemon's gate, is let in, runs, or was decided on lately.

Law: what is shown is what ``GET /v1/admissions`` answers; looking renews no lease.
"""

from __future__ import annotations

import click
import msgspec

from yarnctl.cli.asking import ago, ask, ask_all, limit_option, part, plain, showing_options, shown, span
from yarnctl.command_line import print_json, print_table

COLUMNS = (
    "admission",
    "state",
    "name",
    "user",
    "queue",
    "asked",
    "can use",
    "gets",
    "left to deadline",
    "starts in",
    "application",
    "why",
)
STATES = ("waiting", "admitted", "taken", "rejected", "expired", "withdrawn", "ended")


class Asked(msgspec.Struct):
    """What was asked for, as far as it is shown."""

    name: str
    user: str
    queue: str
    containers: int
    submitted_at_ms: int


class Plan(msgspec.Struct):
    """The newest verdict."""

    containers: int
    deadline_at_ms: int
    start_at_ms: int | None
    reason: str


class Admission(msgspec.Struct):
    """One admission, as far as it is shown."""

    id: str
    state: str
    why: str
    request: Asked
    plan: Plan
    application: str | None


class Gate(msgspec.Struct):
    """The gate in a line."""

    allocator: str
    capacity: int | None
    waiting: int
    reserved: int
    learned: int
    problem: str


class Page(msgspec.Struct):
    """All admissions."""

    now_ms: int
    total: int
    gate: Gate | None
    items: list[Admission]


@click.command()
@click.argument("admission", required=False, metavar="[ID]")
@click.option("--state", type=click.Choice(STATES), help="Only in this state.")
@click.option("--queue", help="Only for this queue.")
@click.option("--user", help="Only of this user.")
@limit_option
@showing_options
def command(
    admission: str | None,
    state: str | None,
    queue: str | None,
    user: str | None,
    limit: int,
    url: str,
    output: str,
) -> None:
    """Show who asked to be let in, what became of it and why; with ID one admission in full."""
    if admission is not None:
        _one(url, admission, output)
        return
    filters = {"state": state, "queue": queue, "user": user}
    answer = ask_all(url, "v1/admissions", filters, limit)
    if output == "json":
        print_json(answer)
        return
    page = shown(Page, answer, url)
    print_table(COLUMNS, [_row(each, page.now_ms) for each in page.items], _title(page))


def _row(each: Admission, now_ms: int) -> tuple[object, ...]:
    request, plan = each.request, each.plan
    waiting = each.state == "waiting"
    left_ms = plan.deadline_at_ms - now_ms
    starts_ms = None if plan.start_at_ms is None else max(0, plan.start_at_ms - now_ms)
    return (
        plain(each.id),
        each.state,
        plain(request.name),
        plain(request.user),
        plain(request.queue),
        f"{ago(request.submitted_at_ms, now_ms)} ago",
        request.containers,
        plan.containers,
        span(left_ms) if left_ms >= 0 else "passed",
        span(starts_ms) if waiting else "-",
        plain(each.application or "-"),
        plain(each.why or plan.reason),
    )


def _title(page: Page) -> str:
    if page.gate is None:
        return "no gate: the daemon was started without --admission"
    gate = page.gate
    size = "an unknown number of" if gate.capacity is None else str(gate.capacity)
    title = (
        f"{page.total} admissions; {gate.allocator}: {gate.reserved} of {size} containers reserved,"
        f" {gate.waiting} requests wait, {gate.learned} jobs learned from"
    )
    return f"{title}; {plain(gate.problem)}" if gate.problem else title


def _one(url: str, admission: str, output: str) -> None:
    """Show one admission: every field on a line of its own."""
    answer = ask(url, f"v1/admissions/{part(admission)}")
    if output == "json":
        print_json(answer)
        return
    rows = [row for name, value in answer.items() for row in _fields(name, value)]
    print_table(("field", "value"), rows, plain(admission))


def _fields(name: str, value: object) -> list[tuple[str, str | None]]:
    if isinstance(value, dict):
        return [row for key, part_ in value.items() for row in _fields(f"{name}.{key}", part_)]
    if isinstance(value, list):
        return [(plain(name), plain(", ".join(map(str, value))))]
    return [(plain(name), None if value is None else plain(str(value)))]
