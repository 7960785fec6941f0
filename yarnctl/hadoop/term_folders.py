"""Folders in which orders are written before a rename gives them the names that tasks read.

A leader can be frozen after its last check and rename an order late. So each term of the lock has a folder of
its own, and a new leader removes those of older terms before it acts: a late rename finds nothing to rename,
and no task ever reads an order of an old term.
"""

from __future__ import annotations

import re

from yarnctl.hadoop.http.answers import Missing
from yarnctl.hadoop.webhdfs import WebHdfs

_NAME = re.compile(r"\.term-([0-9]{1,19})")


def term_folder(root: str, term: int) -> str:
    """Return the folder of a term below the folder of requests; writing a file makes it."""
    return f"{root.rstrip('/')}/.term-{term}"


def remove_older_terms(hdfs: WebHdfs, root: str, term: int) -> None:
    """Remove the folders of older terms, with what was not renamed; raises as the store does."""
    try:
        names = [row.name for row in hdfs.listing(root)]
    except Missing:
        return
    for name in names:
        match = _NAME.fullmatch(name)
        if match is not None and int(match[1]) < term:
            hdfs.delete(f"{root.rstrip('/')}/{name}", recursive=True)
