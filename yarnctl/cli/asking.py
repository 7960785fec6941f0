"""What the commands that show a running daemon's state share: its client, their options, words.

Text from a cluster is printed without control characters.
"""

from __future__ import annotations

import functools
import os
import sys
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from yarnctl.client.requesting import CREDENTIALS_ENV, DEFAULT_URL, DaemonAddress
from yarnctl.command_line import output_option
from yarnctl.deciding.lifecycle import State

if TYPE_CHECKING:
    from yarnctl.client.daemon_client import DaemonClient

AUTHORITIES_ENV = "YARNCTL_CA_FILE"  # PEM: whom to trust for https
CERTIFICATE_ENV = "YARNCTL_CERTIFICATE_FILE"  # PEM: the caller's certificate and key
Function = Callable[..., Any]


def client_at(url: str) -> DaemonClient:
    """Return the client of the daemon at ``url``, known by the environment; raises BadInput."""
    from yarnctl.client.daemon_client import DaemonClient

    file = os.environ.get(CREDENTIALS_ENV)
    token = ""
    if file:
        from yarnctl.service.security.tokens import read_secret

        token = read_secret(Path(file), f"{CREDENTIALS_ENV}={file}")
    authorities, certificate = os.environ.get(AUTHORITIES_ENV, ""), os.environ.get(CERTIFICATE_ENV, "")
    return DaemonClient(DaemonAddress(url, token, authorities, certificate))


def url_option(function: Function) -> Function:
    """Add ``--url URL`` (``YARNCTL_URL``) to a command."""
    add_url = click.option(
        "--url",
        envvar="YARNCTL_URL",
        default=DEFAULT_URL,
        show_default=True,
        help="Address of the daemon (yarnctl run --listen). If it requires a token for reads, set"
        f" {CREDENTIALS_ENV} to the file with the token.  [env: YARNCTL_URL]",
    )
    return add_url(function)


def showing_options(function: Function) -> Function:
    """Add ``--url``, ``-o`` and ``--watch`` to a command; with ``--watch`` it runs periodically."""

    @functools.wraps(function)
    def watched(*args: Any, watch_s: float | None, **kwargs: Any) -> None:
        function(*args, **kwargs)
        never = threading.Event()
        while watch_s is not None:
            never.wait(watch_s)
            if sys.stdout.isatty():
                click.clear()
            function(*args, **kwargs)

    add_watch = click.option(
        "--watch",
        "watch_s",
        type=click.FloatRange(min=0.1, max=3600),
        metavar="SECONDS",
        help="Repeat every SECONDS until interrupted.",
    )
    return url_option(output_option(add_watch(watched)))


def limit_option(function: Function) -> Function:
    """Add ``--limit N`` to a command."""
    kind = click.IntRange(min=1, max=1_000_000)
    about = "Maximum number of rows."
    add_limit = click.option("--limit", type=kind, default=100, show_default=True, help=about)
    return add_limit(function)


def plain(text: str) -> str:
    """Return a text with its control characters escaped."""
    return "".join(each if each.isprintable() else ascii(each)[1:-1] for each in text)


def job_of(application: str, names: Mapping[str, tuple[str, str, str]]) -> str | None:
    """Return the job's name and user of an application for a table; None: not known."""
    known = names.get(application)
    return None if known is None else plain(f"{known[0] or 'unnamed'} ({known[1]})")


def short(queue: str) -> str:
    """Return a queue's full path without ``root``, for a table."""
    return plain(queue.removeprefix("root."))


def ago(then_ms: int | None, now_ms: int) -> str:
    """Return the age of an instant as text; None: "-"."""
    return "-" if then_ms is None else f"{max(0, now_ms - then_ms) / 1000:.1f} s"


def span(span_ms: int | None) -> str:
    """Return a duration as text; None or -1 (unknown): "-"."""
    return "-" if span_ms is None or span_ms < 0 else f"{span_ms / 1000:.1f} s"


def counted(states: Mapping[State, int]) -> str:
    """Return the number of each state as text; "-" if there are none."""
    return ", ".join(f"{number} {name.replace('_', ' ')}" for name, number in sorted(states.items())) or "-"
