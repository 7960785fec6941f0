"""``yarnctl quote`` and ``yarnctl accounts``: prices of deadlines, and the accounts that pay.

Amounts are printed in tokens with up to three decimals; an amount with more is rejected.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

import click

from yarnctl.api.market_answers import AccountList, AccountOut
from yarnctl.cli.admissions import clock, mtokens_of, span_words, tokens_words
from yarnctl.cli.admit import JobOptions, job_options, job_settings, request_of
from yarnctl.cli.asking import client_at, plain, url_option
from yarnctl.client.requesting import CREDENTIALS_ENV
from yarnctl.command_line import output_option, print_json, print_table
from yarnctl.errors import BadInput, Different

ACCOUNT = r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}"


@click.command(context_settings={"allow_interspersed_args": False})
@click.option(
    "--points", type=click.IntRange(2, 64), default=8, show_default=True, help="Number of deadlines to price."
)
@job_options
@url_option
@output_option
@click.argument("words", nargs=-1, required=True, type=click.UNPROCESSED)
def quote(words: tuple[str, ...], points: int, job_options: JobOptions, url: str, output: str) -> None:
    """Show possible deadlines of the job WORDS (as for admit) and their prices. Nothing is reserved."""
    from yarnctl.frameworks.submissions import FRAMEWORKS, kind_of

    kind = kind_of(words)
    framework = FRAMEWORKS[kind]
    submission = framework.command_of(words)
    settings = job_settings(framework, submission, job_options)
    body = request_of(kind, submission, settings, job_options, url) | {"points": points}
    if job_options.account is not None:
        body["account"] = job_options.account
    made = client_at(url).quote(body)
    if output == "json":
        print_json(made)
        return
    click.echo(
        f"{made.id}: account {made.account} has {tokens_words(made.balance_mtokens)} tokens;"
        f" valid until {clock(made.valid_until_ms)}"
    )
    rows = [
        (
            clock(each.deadline_at_ms),
            tokens_words(each.price_mtokens),
            span_words(each.deadline_at_ms - made.earliest_at_ms)
            if each is not made.points[0]
            else "earliest",
            f"{each.late_ratio * 100:g}%",
            ", ".join(f"{cause} {tokens_words(amount)}" for cause, amount in each.because[:3]),
        )
        for each in made.points
    ]
    print_table(("deadline", "tokens", "later by", "late at most", "price consists of"), rows)


@click.command()
@click.option("--add", "new", metavar="NAME", help="Open an account.")
@click.option("--credit", nargs=2, metavar="NAME TOKENS", help="Credit tokens to an account.")
@click.option("--daily", metavar="TOKENS", help="With --add: tokens credited each day, up to --cap.")
@click.option("--cap", metavar="TOKENS", help="With --daily: maximum balance that daily credits reach.")
@click.option(
    "--token-file",
    type=click.Path(path_type=Path),
    help="File with the operator's token, for --add and --credit.  [default: YARNCTL_TOKEN_FILE]",
)
@url_option
@output_option
@click.argument("name", required=False)
def accounts(
    name: str | None,
    new: str | None,
    credit: tuple[str, str] | None,
    daily: str | None,
    cap: str | None,
    token_file: Path | None,
    url: str,
    output: str,
) -> None:
    """Show accounts and their balances; or open an account, or credit tokens to it."""
    if sum(each is not None for each in (name, new, credit)) > 1:
        remedy = "give one of NAME, --add NAME, --credit NAME TOKENS"
        raise BadInput("accounts", "options cannot be combined", remedy)
    if (daily is None) != (cap is None) or (daily is not None and new is None):
        raise BadInput("--daily", "requires --add and --cap", "give all three")
    if token_file is not None:
        os.environ[CREDENTIALS_ENV] = str(token_file)
    if new is not None:
        daily_mtokens = 0 if daily is None else mtokens_of("--daily", daily)
        cap_mtokens = 0 if cap is None else mtokens_of("--cap", cap)
        _print(client_at(url).open_account(new, daily_mtokens, cap_mtokens), output)
    elif credit is not None:
        mtokens = mtokens_of("--credit", credit[1])
        _print(client_at(url).credit_account(credit[0], mtokens), output)
    elif name is not None:
        _print(_account(url, name), output)
    else:
        _print(client_at(url).accounts(), output)


def _account(url: str, name: str) -> AccountOut:
    remedy = "run yarnctl accounts to list the accounts"
    if not re.fullmatch(ACCOUNT, name):
        raise BadInput(f"account {plain(name)[:60]!r}", "is not a valid name", remedy)
    try:
        return client_at(url).get_account(name)
    except Different:
        raise BadInput(f"account {name}", "does not exist", remedy) from None


def _print(found: AccountList | AccountOut, output: str) -> None:
    if output == "json":
        print_json(found)
        return
    items = [found] if isinstance(found, AccountOut) else found.items
    rows = [
        (
            each.name,
            tokens_words(each.balance_mtokens),
            tokens_words(each.given_mtokens),
            tokens_words(each.spent_mtokens),
            f"{tokens_words(each.daily_mtokens)} up to {tokens_words(each.cap_mtokens)}"
            if each.daily_mtokens
            else "-",
        )
        for each in items
    ]
    print_table(("account", "balance", "credited", "spent", "daily"), rows)
