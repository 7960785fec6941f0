"""Pseudonyms: other names for users, jobs and nodes of a week, the same in every import with one key.

A name is replaced by a keyed digest (HMAC-SHA256). Without the key no list of likely names finds it. Numbers
in the name of a job are left out first, so that runs of a recurring job keep one name.
"""

from __future__ import annotations

import hashlib
import hmac
import os
import re
import secrets
from pathlib import Path

import msgspec

from yarnctl.errors import BadInput
from yarnctl.traces.week.week_rows import ImportedJob

_DIGITS = re.compile(r"\d+")
_GIVEN_BY_YARN = re.compile(r"application_[0-9]+_[0-9]+")
_NAME_DIGITS, _ID_DIGITS = 12, 24
_KEY_BYTES = 32


def key_beside(folder: Path) -> bytes:
    """Return the key of a folder's pseudonyms, in the file ``FOLDER.key``; make it if there is none.

    Raises BadInput if it cannot be read or written.
    """
    path = folder.absolute().with_name(f"{folder.absolute().name}.key")
    try:
        try:
            with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
                file.write(secrets.token_hex(_KEY_BYTES) + "\n")
        except FileExistsError:
            pass
        key = bytes.fromhex(path.read_text().strip())
    except (OSError, ValueError) as error:
        raise BadInput(
            str(path), f"cannot be used as key of pseudonyms: {error}", "check the file and its folder"
        ) from None
    if len(key) != _KEY_BYTES:
        raise BadInput(
            str(path),
            f"has {len(key)} bytes, not the {_KEY_BYTES} of a key of pseudonyms",
            "remove it, and import into another folder",
        )
    return key


def anonymous(imported: ImportedJob, key: bytes) -> ImportedJob:
    """Return a job with pseudonyms for its user, its name, its nodes and an id that YARN did not give.

    Queues and sizes stay.
    """
    replace = msgspec.structs.replace
    own = anonymous_id(imported.job.job, key)
    job = replace(
        imported.job,
        job=own,
        user=_other("user", imported.job.user, key),
        name=_other("job", _DIGITS.sub("#", imported.job.name), key),
    )
    tasks = tuple(replace(task, job=own) for task in imported.tasks)
    containers = tuple(
        replace(one, job=own, node=_other("node", one.node, key)) for one in imported.containers
    )
    return ImportedJob(job, tasks, containers)


def anonymous_id(job: str, key: bytes) -> str:
    """Return the id that stands for a job's: a trace's is the name of its file and a name of its owner's."""
    return job if _GIVEN_BY_YARN.fullmatch(job) else _other("id", job, key, _ID_DIGITS)


def _other(word: str, text: str, key: bytes, digits: int = _NAME_DIGITS) -> str:
    digest = hmac.new(key, f"{word}:{text}".encode(errors="surrogatepass"), hashlib.sha256).hexdigest()
    return f"{word}-{digest[:digits]}" if text else ""
