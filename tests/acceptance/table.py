"""The table of docs/acceptance.md: written between two markers, from what the rows showed.

Law: nothing outside the markers is touched; without markers nothing is written.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from yarnctl.errors import BadInput

BEGIN = "<!-- acceptance:begin -->"
END = "<!-- acceptance:end -->"


def table(records: Iterable[Mapping[str, object]]) -> str:
    """Return the rows that ran as a Markdown table."""
    lines = ["| | | target | measured | |", "|---|---|---|---|---|"]
    for record in records:
        if record["measured"] != "planned":
            cells = (record["id"], record["title"], record["target"], record["measured"], word(record))
            lines.append("| " + " | ".join(str(cell).replace("|", "\\|") for cell in cells) + " |")
    return "\n".join(lines)


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
