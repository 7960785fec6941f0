"""``yarnctl what-if``: what the controller would do, from ``POST /v1/what-if`` of a running daemon."""

from __future__ import annotations

from typing import Any

import click

from yarnctl.amounts import part_of
from yarnctl.api.what_if_answers import SpanOut, WhatIfOut
from yarnctl.cli.asking import client_at, plain, url_option
from yarnctl.command_line import output_option, print_json, print_table
from yarnctl.errors import BadInput

COLUMNS = ("application", "attempt", "node", "lever", "for", "lost s", "overhead s")


@click.command()
@click.option("--queue", metavar="QUEUE", help="Queue of an application that is submitted now.")
@click.option("--containers", type=click.IntRange(1), help="Its containers, without the application master.")
@click.option("--user", metavar="USER", help="Its user.  [default: one without applications]")
@click.option("--container-mib", type=click.IntRange(1), default=1024, show_default=True)
@click.option("--container-vcores", type=click.IntRange(1), default=1, show_default=True)
@click.option("--master-mib", type=click.IntRange(1), default=1024, show_default=True)
@click.option("--master-vcores", type=click.IntRange(1), default=1, show_default=True)
@click.option(
    "--guarantee",
    "guarantees",
    multiple=True,
    metavar="QUEUE=SHARE",
    help="Another guarantee, as a share of the parent queue: etl=40%. The siblings share the rest.",
)
@click.option("--without-node", metavar="NODE", help="Id or host of a node that ends now.")
@url_option
@output_option
def command(
    queue: str | None,
    containers: int | None,
    user: str | None,
    container_mib: int,
    container_vcores: int,
    master_mib: int,
    master_vcores: int,
    guarantees: tuple[str, ...],
    without_node: str | None,
    url: str,
    output: str,
) -> None:
    """Show which tasks yarnctl would stop, when an application would start, and which deadlines would fall.

    Suppose an application (--queue and --containers), another guarantee, or one node less. The daemon's
    controller answers on a copy of its state. Nothing changes.
    """
    if (queue is None) != (containers is None):
        raise BadInput("--queue", "needs --containers, and the other way round", "set both or none")
    body: dict[str, Any] = {"guarantees": dict(_guarantee(text) for text in guarantees)}
    if queue is not None:
        body["application"] = {
            "queue": queue,
            "containers": containers,
            "container_mib": container_mib,
            "container_vcores": container_vcores,
            "master_mib": master_mib,
            "master_vcores": master_vcores,
        }
        if user is not None:
            body["application"]["user"] = user
    if without_node is not None:
        body["without_node"] = without_node
    found = client_at(url).what_if(body)
    if output == "json":
        print_json(found)
    else:
        _print(found, queue is not None)


def _guarantee(text: str) -> tuple[str, float]:
    queue, _, share = text.partition("=")
    if not queue or not share:
        raise BadInput("--guarantee", f"{text[:60]!r} has no share", "use for example etl=40%")
    return queue, part_of("--guarantee", share)


def _print(what_if: WhatIfOut, is_application: bool) -> None:
    rows = [
        (
            each.application,
            each.attempt,
            plain(each.node),
            each.lever,
            each.requester,
            f"{each.lost_ms / 1000:.1f}",
            f"{each.overhead_ms / 1000:.1f}",
        )
        for each in what_if.chosen
    ]
    print_table(COLUMNS, rows, f"{len(rows)} tasks would be stopped")
    if is_application:
        click.echo(f"first container: {_when(what_if.starts)}; all containers: {_when(what_if.complete)}")
    if what_if.waits:
        click.echo(plain(f"waits: {what_if.waits}"))
    click.echo(f"lost {what_if.lost_ms / 1000:.1f} s, overhead {what_if.overhead_ms / 1000:.1f} s")
    for each in what_if.deadlines:
        late_s = (each.after_at_ms - each.deadline_at_ms) / 1000
        click.echo(plain(f"deadline falls: {each.application} of {each.user} ends {late_s:.0f} s late"))
    click.echo(f"state {what_if.state_hash[:12]}; nothing was changed")


def _when(span: SpanOut | None) -> str:
    if span is None:
        return "not known"
    least, expected, most = (each / 1000 for each in (span.least_ms, span.expected_ms, span.most_ms))
    return f"in {expected:.1f} s ({least:.1f} to {most:.1f})"
