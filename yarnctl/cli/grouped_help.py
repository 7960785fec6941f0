"""Help in sections: the first sentence of common options, everything with ``--help-all``."""

from __future__ import annotations

import re

import click

_WHOLE = "yarnctl.cli.grouped_help.whole"
_WORDS = "yarnctl.cli.grouped_help.words"
_EXTRA = re.compile(r"(.*?)((?:  \[[^\]]*\])*)", re.DOTALL)
_FIRST = re.compile(r"(.*?)\.(?= |$)", re.DOTALL)


class RareOption(click.Option):
    """An option that only ``--help-all`` shows."""


def _show_all(context: click.Context, option: click.Parameter, value: bool) -> None:
    if value and not context.resilient_parsing:
        context.meta[_WHOLE] = True
        click.echo(context.get_help(), color=context.color)
        context.exit()


help_all_option = click.option(
    "--help-all",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_show_all,
    help="Show all options with their full description and exit.",
)


class GroupedCommand(click.Command):
    """A command whose options are shown below the headings that ``option_group`` has set."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse the command line, and keep it for :func:`words_of`."""
        ctx.meta[_WORDS] = tuple(args)
        return super().parse_args(ctx, args)

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the options by section."""
        is_whole = ctx.meta.get(_WHOLE, False)
        sections: dict[str, list[tuple[str, str]]] = {}
        left_out = 0
        for option in self.get_params(ctx):
            record = option.get_help_record(ctx)
            if record is None:
                continue
            if isinstance(option, RareOption) and not is_whole:
                left_out += 1
                continue
            names, text = record
            heading = getattr(option, "section", "") or "Other options"
            sections.setdefault(heading, []).append((names, text if is_whole else first_sentence(text)))
        for heading, rows in sections.items():
            with formatter.section(heading):
                formatter.write_dl(rows)
        if left_out:
            formatter.write_paragraph()
            formatter.write_text(
                f"{left_out} rare options and full descriptions: {ctx.command_path} --help-all"
            )


def first_sentence(text: str) -> str:
    """Return the first sentence of an option's help, with its default."""
    match = _EXTRA.fullmatch(text)
    assert match is not None  # the pattern matches every text
    first = _FIRST.match(match[1])
    return f"{match[1] if first is None else first[1] + '.'}{match[2]}"


def words_of(context: click.Context) -> tuple[str, ...]:
    """Return the command line of a :class:`GroupedCommand`."""
    words: tuple[str, ...] = context.meta[_WORDS]
    return words
