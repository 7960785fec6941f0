"""Read site files such as ``core-site.xml`` by the rules of Hadoop's ``Configuration``.

A file is untrusted text. Document types and entities are rejected, size and depth are bounded, and an include
is a local file without a cycle. Later files win, except over a value marked final; ``${name}`` is replaced by
another key, a property or ``${env.NAME}`` (with ``${env.NAME:-default}`` and ``${env.NAME-default}``), at
most 20 times; an unknown name stays as it is.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from urllib.parse import unquote, urlsplit
from xml.parsers import expat

import msgspec

from yarnctl.errors import BadInput

INCLUDE = "http://www.w3.org/2001/XInclude include"
FALLBACK = "http://www.w3.org/2001/XInclude fallback"
OLD_NAMES = {
    "fs.default.name": "fs.defaultFS",
    "dfs.http.address": "dfs.namenode.http-address",
    "dfs.https.address": "dfs.namenode.https-address",
    "dfs.federation.nameservices": "dfs.nameservices",
}
"""Names that Hadoop still reads, and the names that it reads them as (DeprecatedProperties.md)."""
FILES = ("core-site.xml", "hdfs-site.xml", "yarn-site.xml", "mapred-site.xml", "capacity-scheduler.xml")
MAX_BYTES = 8 << 20
MAX_DEPTH = 32
MAX_INCLUDES = 16
MAX_SUBSTITUTIONS = 20
MAX_VALUE = 1 << 16

_VARIABLE = re.compile(r"\$\{([^}$\s]+)\}")
_ENVIRONMENT = re.compile(r"env\.([^:\-]+)(?:(:?-)(.*))?")


class SiteEntry(msgspec.Struct, frozen=True):
    """One key as written: the raw value, whether it is final, and its file."""

    value: str
    final: bool
    file: str


class HadoopSite:
    """The merged configuration of some site files, with ``defaults`` below them."""

    def __init__(
        self,
        entries: Mapping[str, SiteEntry],
        defaults: Mapping[str, str] | None = None,
        environment: Mapping[str, str] | None = None,
        properties: Mapping[str, str] | None = None,
    ) -> None:
        self.entries = dict(entries)
        self._defaults = dict(defaults or {})
        self._environment = environment or {}
        self._properties = properties or {}

    def raw(self, name: str) -> str | None:
        """Return the value as written (None: not set), without any replacement."""
        entry = self.entries.get(name)
        return entry.value if entry is not None else self._defaults.get(name)

    def where(self, name: str) -> str:
        """Return ``file: key`` for messages."""
        entry = self.entries.get(name)
        return f"{entry.file if entry else '(default)'}: {name}"

    def text(self, name: str, default: str = "") -> str:
        """Return the value with its variables replaced and white space at the ends removed."""
        value = self.raw(name)
        return default if value is None else self._replace(value.strip(), name)

    def list_of(self, name: str) -> tuple[str, ...]:
        """Return a comma-separated list."""
        return tuple(word for word in (part.strip() for part in self.text(name).split(",")) if word)

    def boolean(self, name: str, default: bool = False) -> bool:
        """Return true or false; anything else is the default, as in Hadoop."""
        return {"true": True, "false": False}.get(self.text(name).lower(), default)

    def _replace(self, value: str, name: str) -> str:
        for _ in range(MAX_SUBSTITUTIONS):
            match = next((one for one in _VARIABLE.finditer(value) if self._known(one[1]) is not None), None)
            if match is None:
                return value
            if match[1] == name:
                return value  # a key that refers to itself stays as written
            value = value[: match.start()] + (self._known(match[1]) or "") + value[match.end() :]
            if len(value) > MAX_VALUE:
                raise BadInput(
                    self.where(name), f"exceeds {MAX_VALUE} characters after the replacement of variables"
                )
        if any(self._known(one[1]) is not None for one in _VARIABLE.finditer(value)):
            remedy = "remove variables that refer to each other"
            raise BadInput(
                self.where(name), f"needs more than {MAX_SUBSTITUTIONS} replacements of variables", remedy
            )
        return value

    def _known(self, variable: str) -> str | None:
        match = _ENVIRONMENT.fullmatch(variable)
        if match is not None:
            found = self._environment.get(match[1])
            if found is None or (match[2] == ":-" and not found):
                return match[3] if match[2] else None
            return found
        if variable in self._properties:
            return self._properties[variable]
        return self.raw(variable)


def load(
    folder: Path,
    defaults: Mapping[str, str] | None = None,
    environment: Mapping[str, str] | None = None,
    properties: Mapping[str, str] | None = None,
    names: Iterable[str] = FILES,
) -> HadoopSite:
    """Read a folder's site files in Hadoop's order, those that exist; BadInput names file and line."""
    if not folder.is_dir():
        raise BadInput(str(folder), "not a folder", "set HADOOP_CONF_DIR to the folder with core-site.xml")
    merged: dict[str, SiteEntry] = {}
    for name in names:
        if (folder / name).is_file():
            merge(merged, read_file(folder / name))
    return HadoopSite(merged, defaults, environment, properties)


def merge(into: dict[str, SiteEntry], entries: Iterable[tuple[str, SiteEntry]]) -> None:
    """Add entries in order: later ones win, except over a final one."""
    for name, entry in entries:
        present = into.get(name)
        if present is None or not present.final:
            into[name] = entry


def read_file(path: Path, above: tuple[Path, ...] = ()) -> list[tuple[str, SiteEntry]]:
    """Return the entries of one file in order, includes in their place; raises BadInput."""
    try:
        real = path.resolve(strict=True)
        with real.open("rb") as file:
            text = file.read(MAX_BYTES + 1)
    except (OSError, RuntimeError, ValueError) as error:  # ValueError: a NUL in the path
        raise BadInput(str(path), f"cannot be read ({type(error).__name__})") from None
    if real in above:
        raise BadInput(str(path), "includes itself", "remove this include")
    if len(text) > MAX_BYTES or len(above) >= MAX_INCLUDES:
        raise BadInput(str(path), f"longer than {MAX_BYTES} bytes, or more than {MAX_INCLUDES} includes deep")
    return _entries(_parse(text, path), path, (*above, real))


class _Element:
    """An element of the small tree: its name (``namespace name``), attributes, children and text."""

    __slots__ = ("attributes", "children", "line", "name", "text")

    def __init__(self, name: str, attributes: dict[str, str], line: int) -> None:
        self.name = name
        self.attributes = attributes
        self.line = line
        self.children: list[_Element] = []
        self.text = ""


def _parse(text: bytes, path: Path) -> _Element:
    """Parse without document types, entities or external references."""
    parser = expat.ParserCreate(namespace_separator=" ")
    top = _Element("", {}, 0)
    open_elements = [top]

    def refuse(*_: object) -> None:
        place = f"{path}:{parser.CurrentLineNumber}"
        raise BadInput(place, "document types and entities are not supported", "remove the DOCTYPE")

    def start(name: str, attributes: dict[str, str]) -> None:
        if len(open_elements) > MAX_DEPTH:
            raise BadInput(
                f"{path}:{parser.CurrentLineNumber}", f"elements are nested more than {MAX_DEPTH} deep"
            )
        element = _Element(name, attributes, parser.CurrentLineNumber)
        open_elements[-1].children.append(element)
        open_elements.append(element)

    def end(_name: str) -> None:
        open_elements.pop()

    def data(letters: str) -> None:
        open_elements[-1].text += letters

    parser.StartDoctypeDeclHandler = refuse
    parser.EntityDeclHandler = refuse
    parser.ExternalEntityRefHandler = lambda *_: 0
    parser.StartElementHandler, parser.EndElementHandler = start, end
    parser.CharacterDataHandler = data
    parser.buffer_text = True
    try:
        parser.Parse(text, True)
    except (expat.ExpatError, ValueError, LookupError) as error:
        line = getattr(error, "lineno", 1)
        raise BadInput(f"{path}:{line}", f"invalid XML ({str(error)[:80]})") from None
    return top.children[0]


def _entries(top_element: _Element, path: Path, above: tuple[Path, ...]) -> list[tuple[str, SiteEntry]]:
    if top_element.name != "configuration":
        raise BadInput(
            f"{path}:{top_element.line}", f"begins with <{top_element.name[:40]}>", "expected <configuration>"
        )
    found: list[tuple[str, SiteEntry]] = []
    for element in top_element.children:
        if element.name == "property":
            found += _property(element, path)
        elif element.name == "configuration":
            found += _entries(element, path, above)
        elif element.name == INCLUDE:
            found += _include(element, path, above)
    return found


def _property(element: _Element, path: Path) -> list[tuple[str, SiteEntry]]:
    """Read <property>, in its long form or with attributes; one without name or value is skipped."""
    parts = dict(element.attributes) | {child.name: child.text for child in element.children}
    name = parts.get("name", "").strip()
    if not name or "value" not in parts:
        return []
    final = parts.get("final", "").strip().lower() == "true"
    return [(OLD_NAMES.get(name, name), SiteEntry(parts["value"], final, f"{path}:{element.line}"))]


def _include(element: _Element, path: Path, above: tuple[Path, ...]) -> list[tuple[str, SiteEntry]]:
    place, href = f"{path}:{element.line}", element.attributes.get("href", "")
    parts = urlsplit(href)
    if not href or parts.scheme not in ("", "file") or parts.netloc not in ("", "localhost"):
        raise BadInput(place, f"includes {href[:120]!r}", "include a local file instead")
    target = path.parent / unquote(parts.path)
    if not target.is_file():
        fallback = next((child for child in element.children if child.name == FALLBACK), None)
        if fallback is None:
            raise BadInput(place, f"includes {target}, which is missing", "add the file or a fallback")
        fallback.name = "configuration"
        return _entries(fallback, path, above)
    return read_file(target, above)
