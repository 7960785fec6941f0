"""Remove secrets from what leaves a site: by the name of a key, by form, and known ones by value."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from typing import Any

GONE = "***"
KNOWN_MIN = 6
"""A known secret of fewer characters is not looked for by value: it would remove words."""

_NAME = (
    r"(?:secret|webhook|passw|[._-]pwd|credential|token|cookie|authorization"
    r"|(?:account|access|private|encryption|api)[._-]?key)"
)
_WORD = r"[\w.-]{0,60}"
_SENSITIVE = re.compile(rf"{_NAME}|\.pass$", re.IGNORECASE)
_HARMLESS = re.compile(r"(?:[-_]file|tokens|over[-_]http)$", re.IGNORECASE)
_PRIVATE_KEY = r"-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(?:-----END [A-Z ]*PRIVATE KEY-----|\Z)"
_NAMED = rf"((?:{_NAME}{_WORD}|delegation)(?:\s*[=:]\s*|\s+(?=\S*\d)))[^\s,;&\"'<>]+"
_FORMS: tuple[tuple[re.Pattern[str], str], ...] = (
    (re.compile(_PRIVATE_KEY, re.DOTALL), GONE),
    (re.compile(r"(://)[^/@\s\"']+@"), rf"\1{GONE}@"),
    (re.compile(r"\b(Bearer|Basic|Negotiate)\s+[\w.~+/=-]{6,}", re.IGNORECASE), rf"\1 {GONE}"),
    (re.compile(r"\b(?:AKIA|ASIA)[0-9A-Z]{16}\b"), GONE),
    (re.compile(r"\beyJ[\w-]{8,}\.[\w-]{8,}\.[\w-]*"), GONE),
    (re.compile(_NAMED, re.IGNORECASE), rf"\1{GONE}"),
)
"""What is found in a text, and what replaces it: private keys, user and password of an address, headers, keys
of Amazon, JSON web tokens, and what follows the name of a secret."""


class Redactor:
    """Removes secrets. ``known``: secrets by value, for example the contents of token files."""

    def __init__(self, known: Iterable[str] = ()) -> None:
        kept = {each for each in known if len(each) >= KNOWN_MIN}
        self._known = sorted(kept, key=lambda each: (-len(each), each))

    def text(self, text: str) -> str:
        """Return a text without secrets."""
        for secret in self._known:
            text = text.replace(secret, GONE)
        for form, instead in _FORMS:
            text = form.sub(instead, text)
        return text

    def value(self, value: Any) -> Any:
        """Return a value of JSON without secrets: those below a key that names one, and those in texts.

        * Below such a key each text and number is removed, however deep. An empty text, true, false and null
          stay: they hold no secret.
        * A pair of ``name`` and ``value``, as Hadoop writes its configuration, counts as a key.
        """
        if isinstance(value, Mapping):
            named = is_secret(str(value.get("name", value.get("key", ""))))
            return {
                self.text(str(key)): self._below_secret(each)
                if is_secret(str(key)) or (named and key == "value")
                else self.value(each)
                for key, each in value.items()
            }
        if isinstance(value, list | tuple):
            return [self.value(each) for each in value]
        return self.text(value) if isinstance(value, str) else value

    def _below_secret(self, value: Any) -> Any:
        if isinstance(value, Mapping):
            return {self.text(str(key)): self._below_secret(each) for key, each in value.items()}
        if isinstance(value, list | tuple):
            return [self._below_secret(each) for each in value]
        return value if value == "" or value is None or isinstance(value, bool) else GONE

    def lines(self, lines: Iterable[bytes]) -> bytes:
        """Return lines of JSON without secrets; a line that is not JSON counts as text."""
        found = []
        for line in lines:
            try:
                found.append(json.dumps(self.value(json.loads(line))))
            except ValueError:
                found.append(self.text(line.decode("utf-8", "replace").rstrip("\n")))
        return "".join(f"{line}\n" for line in found).encode()


def is_secret(key: str) -> bool:
    """Return whether the key of a setting names a secret; that of a file or a switch does not."""
    return bool(_SENSITIVE.search(key)) and not _HARMLESS.search(key)
