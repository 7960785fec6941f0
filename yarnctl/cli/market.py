"""``yarnctl quote`` and ``yarnctl accounts``: what deadlines cost, and which accounts can pay.

Law: they query the daemon's API and decide nothing; a quote reserves nothing. Amounts are printed in tokens,
to the milli-token; an amount that is not whole milli-tokens is refused.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import click

from yarnctl.api.market_answers import AccountList, AccountOut, QuoteOut
from yarnctl.cli.admissions import clock, mtokens_of, span_words, tokens_words
from yarnctl.cli.asking import ask, part, plain, send, shown, url_option
from yarnctl.command_line import output_option, print_json, print_table
from yarnctl.errors import BadInput, Different

ACCOUNT = r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}"


@click.command(context_settings={"allow_interspersed_args": False})
@click.option("--points", type=click.IntRange(2, 64), default=8, show_default=True, help="So many deadlines.")
@click.option(
    "--containers", type=click.IntRange(2, 1_000_000), metavar="N", help="The most it can use at once."
)
@click.option("--name", metavar="NAME", help="The job's name, by which its history is found.")
@click.option("--queue", metavar="QUEUE", help="The queue it goes to.")
@click.option("--user", metavar="USER", help="Whose job it is.  [default: HADOOP_USER_NAME, else you]")
@click.option("--account", metavar="NAME", help="Who pays.  [default: the account of your token]")
@url_option
@output_option
@click.argument("words", nargs=-1, required=True, type=click.UNPROCESSED)
def quote(words: tuple[str, ...], url: str, output: str, **given: Any) -> None:
    """Say when the job WORDS (as for admit) could be done, and what each deadline costs. Nothing is held."""
    from yarnctl.cli.admit import job_settings, request_of
    from yarnctl.submitting import FRAMEWORKS, kind_of

    kind = kind_of(words)
    framework = FRAMEWORKS[kind]
    job = framework.command_of(words)
    settings = job_settings(framework, job, given["name"], given["queue"])
    asked = request_of(kind, job, settings, None, given["user"], given["containers"], url)
    asked |= {"points": given["points"], "account": given["account"]}
    raw = send(
        "POST", url, "v1/quotes", body={name: value for name, value in asked.items() if value is not None}
    )
    made = shown(QuoteOut, raw, url)
    if output == "json":
        print_json(raw)
        return
    click.echo(
        f"{made.id}: {made.account} holds {tokens_words(made.balance_mtokens)} tokens;"
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
            ", ".join(f"{who} {tokens_words(amount)}" for who, amount in each.because[:3]),
        )
        for each in made.points
    ]
    print_table(("done by", "tokens", "later by", "late at most", "because"), rows)


@click.command()
@click.option("--add", "new", metavar="NAME", help="Open an account.")
@click.option("--credit", nargs=2, metavar="NAME TOKENS", help="Give tokens to an account.")
@click.option("--daily", metavar="TOKENS", help="With --add: so many are given each day ...")
@click.option("--cap", metavar="TOKENS", help="... until it holds so many.")
@click.option(
    "--token-file",
    type=click.Path(path_type=Path),
    help="The operator's token, for --add and --credit.  [default: YARNCTL_TOKEN_FILE]",
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
    """Show who can pay for deadlines, and how much; or open an account, or give it tokens."""
    if sum(each is not None for each in (name, new, credit)) > 1:
        raise BadInput(
            "accounts", "does one thing at a time", "give NAME, or --add NAME, or --credit NAME TOKENS"
        )
    if (daily is None) != (cap is None) or (daily is not None and new is None):
        raise BadInput("--daily", "belongs to --add and --cap", "give all three")
    if token_file is not None:
        import os

        from yarnctl.cli.asking import CREDENTIALS_ENV

        os.environ[CREDENTIALS_ENV] = str(token_file)
    if new is not None:
        body: dict[str, Any] = {"name": new}
        if daily is not None and cap is not None:
            body |= {"daily_mtokens": mtokens_of("--daily", daily), "cap_mtokens": mtokens_of("--cap", cap)}
        raw = send("POST", url, "v1/accounts", body=body)
    elif credit is not None:
        given = {"mtokens": mtokens_of("--credit", credit[1])}
        raw = send("POST", url, f"v1/accounts/{part(credit[0])}/credit", body=given)
    elif name is not None:
        raw = _account(url, name)
    else:
        raw = ask(url, "v1/accounts")
    _print(raw, url, output)


def _account(url: str, name: str) -> dict[str, Any]:
    """Return one account; BadInput for one that there is not."""
    remedy = "yarnctl accounts lists those there are"
    if not re.fullmatch(ACCOUNT, name):
        raise BadInput(f"account {plain(name)[:60]!r}", "is no account's name", remedy)
    try:
        return ask(url, f"v1/accounts/{part(name)}")
    except Different:
        raise BadInput(f"account {name}", "there is none of this name", remedy) from None


def _print(raw: dict[str, Any], url: str, output: str) -> None:
    if output == "json":
        print_json(raw)
        return
    items = shown(AccountList, raw, url).items if "items" in raw else [shown(AccountOut, raw, url)]
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
    print_table(("account", "balance", "given", "spent", "daily"), rows)
