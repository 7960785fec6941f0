"""The built task runner: where it is, and whether it was built from the sources beside it.

Only the standard library and ``yarnctl.errors``, since the build runs before anything is installed. The
digest covers the sources, the builder and the built text, so it finds an old file and an edited one.
"""

from __future__ import annotations

import hashlib
import re
from pathlib import Path

from yarnctl.errors import BadInput

RUNNER = Path(__file__).with_name("yarnctl_task.py")  # Built, never in the repository
SOURCES = "runner"  # The folder of the sources, beside the file
BUILDER = Path(__file__).with_name("build.py")

EMPTY_DIGEST = "# digest sha256:"
"""The line of the built file that holds the digest, without its value."""
REMEDY = "run `make runner` in a checkout, or install yarnctl again"

_DIGEST = re.compile(rf"^{EMPTY_DIGEST}([0-9a-f]{{64}})$", re.MULTILINE)


def signed(text: str, source: Path) -> str:
    """Return a built text, whose digest line is empty, with the digest in it."""
    return text.replace(f"{EMPTY_DIGEST}\n", f"{EMPTY_DIGEST}{digest(text, source)}\n", 1)


def digest(text: str, source: Path) -> str:
    """Return the SHA-256, in hexadecimal digits, of the sources and of a text whose digest line is empty."""
    found = hashlib.sha256()
    paths = sorted(path for kind in ("*.py", "*.sh") for path in source.rglob(kind))
    contents = {path.relative_to(source).as_posix(): path.read_bytes() for path in paths}
    for name, content in {**contents, BUILDER.name: BUILDER.read_bytes(), "": text.encode()}.items():
        found.update(f"{name} {len(content)}\n".encode() + content)
    return found.hexdigest()


def shipped_runner() -> Path:
    """Return the built runner's path; BadInput if it is missing, or its digest is not the sources'."""
    try:
        text = RUNNER.read_text(encoding="utf-8")
        found = _DIGEST.search(text)
        expected = digest(_DIGEST.sub(EMPTY_DIGEST, text, count=1), RUNNER.with_name(SOURCES))
    except (OSError, UnicodeDecodeError) as error:
        problem = error.strerror if isinstance(error, OSError) and error.strerror else "is not UTF-8"
        raise BadInput(str(RUNNER), f"the task runner cannot be read: {problem}", REMEDY) from None
    if found is None or found[1] != expected:
        has = "none" if found is None else f"sha256:{found[1][:16]}"
        raise BadInput(
            str(RUNNER),
            f"the task runner's digest {has} differs from sha256:{expected[:16]} of its sources",
            REMEDY,
        )
    return RUNNER
