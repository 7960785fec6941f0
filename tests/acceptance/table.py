"""The table of research/notes/acceptance.md: written between two markers, from what the rows showed.

Law: nothing outside the markers is touched; without markers nothing is written.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from yarnctl.errors import BadInput

BEGIN = "<!-- acceptance:begin -->"
END = "<!-- acceptance:end -->"


HEAD = ("| | | target | measured | |", "|---|---|---|---|---|")


def lines_of(records: Iterable[Mapping[str, object]]) -> dict[str, str]:
    """Return the Markdown line of each row that ran, by id."""
    found = dict[str, str]()
    for record in records:
        if record["measured"] != "planned":
            cells = (record["id"], record["title"], record["target"], record["measured"], word(record))
            shown = (str(cell).replace("|", "\\|") for cell in cells)
            found[str(record["id"])] = "| " + " | ".join(shown) + " |"
    return found


def lines_in(text: str) -> dict[str, str]:
    """Return the rows that a document's table has, by id."""
    lines = text.partition(BEGIN)[2].partition(END)[0].strip().splitlines()
    return {line[2:].partition(" | ")[0]: line for line in lines if line not in HEAD}


def table(lines: Mapping[str, str], order: Iterable[str]) -> str:
    """Return the table of the rows that ran, in the order of their ids."""
    return "\n".join((*HEAD, *(lines[name] for name in order if name in lines)))


def word(record: Mapping[str, object]) -> str:
    """Return a record's verdict in one word."""
    if record.get("verdict") == "stale":
        return "**stale**"
    return (
        {True: "holds", False: "**missed**"}.get(bool(record["holds"]), "")
        if is_judged(record)
        else "**broken**"
    )


def is_judged(record: Mapping[str, object]) -> bool:
    """Say whether a row ran."""
    return isinstance(record["holds"], bool)


def with_table(text: str, content: str, name: str) -> str:
    """Return a document with the text between its markers replaced."""
    before, begin, rest = text.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise BadInput(
            name, "the markers of the table are absent", f"write {BEGIN} and {END} on lines of their own"
        )
    return f"{before}{BEGIN}\n{content}\n{END}{after}"
