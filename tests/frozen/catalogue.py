"""The catalogue: every frozen file, what it is made of, and what may differ.

Law: one row a file; what is not in here is not frozen. ``kept``: more may come, nothing may go or change.
"""

from __future__ import annotations

from tests.frozen import answers, journals, outputs
from tests.frozen.commands import programs
from tests.frozen.configuration import configuration, records
from tests.frozen.documents import documents
from tests.frozen.environment import variables
from tests.frozen.interface import interface
from tests.frozen.live_documents import live_documents
from tests.frozen.pieces import Piece
from tests.frozen.recorded import sums

PIECES: tuple[Piece, ...] = (
    Piece("commands", programs, "kept"), Piece("environment", variables, "kept"),
    Piece("configuration", configuration, "kept"), Piece("records", records, "kept"),
    Piece("interface", interface, "kept"), Piece("documents", documents, "kept"),
    Piece("live-documents", live_documents, "kept", slow=True), Piece("recorded", sums, "kept"),
    Piece("answers", answers.answers, packed=True),
    Piece("command-answers", answers.command_answers, packed=True), *outputs.pieces(), *journals.pieces(),
)  # fmt: skip


def piece(name: str) -> Piece:
    return next(each for each in PIECES if each.name == name)
