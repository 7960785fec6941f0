"""Decode an answer from any of the forms that Hadoop's versions use.

The common form is decoded straight into its struct (fast); only when that fails is the text read untyped and
coerced (tolerant), guided by the struct's own types. An answer is never taken for an empty list by accident.

Forms met in the wild (Jersey 1 natural and mapped, Jersey 2 with MOXy):

* with or without the root element, and with or without the element of the list;
* a list of one as a bare object; an empty list as ``{}``, ``null``, ``""`` or nothing at all;
* numbers and booleans as strings, whole numbers as floats, ``NaN`` and ``Infinity``;
* ``null`` where a number stands; a scalar wrapped in an object of one field.

An ``owned`` answer is made by a job's owner: it has a bounded number of parts, it is not coerced where it is
long, a truth value is no number, and a list of numbers has no gap. ``skips``: a list with rows of many owners
leaves out the rows that cannot be read.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from typing import Any, Generic, TypeVar

import msgspec
from msgspec import inspect

from yarnctl.errors import YarnctlError

T = TypeVar("T")

_NOTHING = object()
_NOT_DECODED = (msgspec.MsgspecError, ValueError, RecursionError)
"""ValueError: not UTF-8, or a whole number of thousands of digits."""

ELEMENTS_MAX, NESTED_MAX = 3_000_000, 500_000  # In an owned answer: a part takes more memory than text
COERCED_BYTES_MAX = 4 << 20  # A longer owned answer is not read untyped: that takes a hundred times as long


class Unreadable(YarnctlError):
    """The text is not the expected answer; the message names the place within it."""


class _Decoder(Generic[T]):
    """The common part of single objects and lists: the path of names above the value."""

    def __init__(self, item: type[T], path: tuple[str, ...], leaf: Any, *, owned: bool) -> None:
        self.path = path
        self._item = item
        self._owned = owned
        self._kind = inspect.type_info(item)
        self._fast = msgspec.json.Decoder(_nest(path, leaf))
        self.words = "JSON with " + ".".join(path) if path else f"JSON of {item.__name__}"

    def _check_size(self, body: bytes) -> None:
        """Refuse an owned answer of too many parts; raises Unreadable."""
        if not self._owned or len(body) < NESTED_MAX:
            return
        if body.count(b",") > ELEMENTS_MAX or body.count(b"{") + body.count(b"[") > NESTED_MAX:
            raise Unreadable("the answer has too many parts")

    def _untyped(self, body: bytes, size_bytes: int | None = None) -> Any:
        """Read JSON of any kind; ``size_bytes``: what is read so of this answer, if not all of ``body``."""
        if self._owned and (len(body) if size_bytes is None else size_bytes) > COERCED_BYTES_MAX:
            raise Unreadable("the answer is too long and not in the usual form")
        return _load(body)

    def _coerced(self, value: Any, place: str) -> T:
        try:
            return msgspec.convert(_coerce(value, self._kind, place, self._owned), self._item)
        except msgspec.ValidationError as error:
            raise Unreadable(f"{place}: {error}") from None
        except RecursionError:
            raise Unreadable(f"{place}: nested too deeply") from None

    def _unwrap(self, value: Any, needed: int) -> tuple[Any, bool]:
        """Go down the path where its names are there; return whether the last one was."""
        found = not self.path
        for name in self.path[:needed]:
            found = isinstance(value, dict) and name in value
            if found:
                value = value[name]
        return value, found


class OneDecoder(_Decoder[T]):
    """One object under a path of names, e.g. ``OneDecoder(ClusterInfo, "clusterInfo")``."""

    def __init__(self, item: type[T], *path: str, owned: bool = False) -> None:
        super().__init__(item, path, item, owned=owned)

    def read(self, body: bytes) -> T:
        """Return the object; raises Unreadable."""
        self._check_size(body)
        try:
            value: Any = self._fast.decode(body)
        except _NOT_DECODED:
            return self._tolerant(body)
        for name in self.path:
            value = getattr(value, _attribute(name))
        return value  # type: ignore[no-any-return]  # the decoder was built from item

    def _tolerant(self, body: bytes) -> T:
        value, _ = self._unwrap(self._untyped(body), len(self.path))
        return self._coerced(value, ".".join(self.path) or "$")


class ListDecoder(_Decoder[T]):
    """A list under a path of names, e.g. ``ListDecoder(Application, "apps", "app")``."""

    def __init__(self, item: type[T], *path: str, owned: bool = False, skips: bool = False) -> None:
        super().__init__(item, path, list[item], owned=owned)  # type: ignore[valid-type]  # built at run time
        self._skips = skips
        self._raw = msgspec.json.Decoder(_nest(path, list[msgspec.Raw]))
        self._row = msgspec.json.Decoder(item)

    def read(self, body: bytes) -> list[T]:
        """Return the rows in the order of the answer; raises Unreadable."""
        self._check_size(body)
        try:
            return self._list(self._fast.decode(body))
        except _NOT_DECODED:
            pass
        try:
            rows: list[Any] = self._list(self._raw.decode(body))
        except _NOT_DECODED:
            return self._tolerant(body)
        odd_bytes = 0

        def one(row: bytes, place: str) -> T:
            """Read one row separately, so that one unusual row does not make the whole answer slow."""
            nonlocal odd_bytes
            try:
                return self._row.decode(row)
            except _NOT_DECODED:
                odd_bytes += len(row)
                return self._coerced(self._untyped(row, odd_bytes), place)

        return self._each([bytes(row) for row in rows if bytes(row) != b"null"], one)

    def _each(self, rows: list[Any], read: Callable[[Any, str], T]) -> list[T]:
        """Read rows one by one; one that cannot be read is left out, or makes all of them unreadable."""
        found: list[T] = []
        for at, row in enumerate(rows):
            try:
                found.append(read(row, f"{'.'.join(self.path) or '$'}[{at}]"))
            except Unreadable:
                if not self._skips:
                    raise
        return found

    def _list(self, value: Any) -> list[T]:
        for name in self.path:
            value = getattr(value, _attribute(name))
            if value is None:
                return []
        return value  # type: ignore[no-any-return]  # the decoder was built from item

    def _tolerant(self, body: bytes) -> list[T]:
        value, found = self._unwrap(self._untyped(body), len(self.path))
        place = ".".join(self.path) or "$"
        if value is None or value in ({}, "", []):
            return []
        if isinstance(value, dict):
            if not found:
                raise Unreadable(f"no {place} in an object of {_names(value)}")
            value = [value]
        if not isinstance(value, list):
            raise Unreadable(f"{place} is {_sort(value)}, not a list")
        return self._each([row for row in value if row is not None], self._coerced)


def _nest(path: tuple[str, ...], leaf: Any) -> Any:
    """Wrap a type into one struct for each name of the path; unknown keys beside it are refused.

    The innermost list may be missing or null (an empty list), the outermost name must be there.
    """
    kind = leaf
    many = not (isinstance(leaf, type) and issubclass(leaf, msgspec.Struct))
    for depth, name in reversed(list(enumerate(path))):
        field: Any = (_attribute(name), kind | None) if many else (_attribute(name), kind)
        if many and depth > 0:
            field = (*field, None)
        kind = msgspec.defstruct(
            f"Under_{_attribute(name)}", [field], rename={_attribute(name): name}, forbid_unknown_fields=many
        )
    return kind


def _attribute(name: str) -> str:
    return "".join(letter if letter.isalnum() else "_" for letter in name)


def _load(body: bytes) -> Any:
    try:
        return msgspec.json.decode(body)
    except _NOT_DECODED:
        pass
    try:
        return json.loads(body, parse_constant=lambda _word: None)
    except RecursionError:
        raise Unreadable("nested too deeply") from None
    except ValueError as error:
        raise Unreadable(f"not JSON ({str(error)[:80]})") from None


def _coerce(value: Any, kind: inspect.Type, place: str, owned: bool) -> Any:
    """Convert an untyped value to the form that ``kind`` requires; _NOTHING: leave it out."""
    if isinstance(kind, inspect.UnionType):
        kinds = [one for one in kind.types if not isinstance(one, inspect.NoneType)]
        return _coerce(value, kinds[0], place, owned)
    if isinstance(kind, inspect.StructType):
        return _coerce_struct(value, kind, place, owned)
    if isinstance(kind, inspect.ListType | inspect.VarTupleType):
        if value in (None, "", {}):
            return []
        rows = value if isinstance(value, list) else [value]
        mended = [_coerce(row, kind.item_type, place, owned) for row in rows]
        if owned and _NOTHING in mended:
            raise Unreadable(f"{place} has an empty element")
        return [row for row in mended if row is not _NOTHING]
    if isinstance(kind, inspect.RawType) and value is not None:
        return msgspec.Raw(msgspec.json.encode(value))
    return _NOTHING if value is None else _coerce_scalar(value, kind, place, owned)


def _coerce_struct(value: Any, kind: inspect.StructType, place: str, owned: bool) -> Any:
    if isinstance(value, list) and len(value) == 1:
        value = value[0]
    if value is None:
        return _NOTHING
    if value in ("", []):
        value = {}
    if not isinstance(value, dict):
        raise Unreadable(f"{place} is {_sort(value)}, not an object")
    mended = {}
    for field in kind.fields:
        if field.encode_name in value:
            part = _coerce(value[field.encode_name], field.type, f"{place}.{field.encode_name}", owned)
            if part is not _NOTHING:
                mended[field.encode_name] = part
    return mended


def _coerce_scalar(value: Any, kind: inspect.Type, place: str, owned: bool) -> Any:
    if isinstance(value, dict) and len(value) == 1:
        (value,) = value.values()
        if value is None:
            return _NOTHING
    if isinstance(value, dict | list):
        raise Unreadable(f"{place} is {_sort(value)}, not a single value")
    if isinstance(kind, inspect.StrType):
        return _writable(str(value).lower() if isinstance(value, bool) else str(value), place, owned)
    if isinstance(kind, inspect.BoolType):
        return str(value).strip().lower() in ("true", "1", "yes")
    if isinstance(kind, inspect.IntType | inspect.FloatType):
        if owned and isinstance(value, bool):
            raise Unreadable(f"{place} is a boolean, not a number")
        return _coerce_number(value, whole=isinstance(kind, inspect.IntType), place=place)
    return value


def _writable(text: str, place: str, owned: bool) -> str:
    """Return a text that can be written in UTF-8; half of a surrogate pair becomes "?"."""
    try:
        text.encode()
    except UnicodeEncodeError:
        if owned:
            raise Unreadable(f"{place} contains characters that cannot be encoded in UTF-8") from None
        return text.encode("utf-8", "replace").decode()
    return text


def _coerce_number(value: Any, whole: bool, place: str) -> Any:
    if isinstance(value, str):
        value = value.strip()
        if not value:
            return _NOTHING
        try:
            value = int(value) if value.lstrip("+-").isdigit() else float(value)
        except ValueError:
            raise Unreadable(f"{place} is {value[:40]!a}, not a number") from None
    try:
        if not math.isfinite(value):
            return _NOTHING
        return int(value) if whole else float(value)
    except OverflowError:
        raise Unreadable(f"{place} is too large a number") from None


def _sort(value: Any) -> str:
    words = {dict: "an object", list: "a list", str: "a text", bool: "a boolean", type(None): "null"}
    return words.get(type(value), "a number")


def _names(value: dict[str, Any]) -> str:
    shown = ", ".join(sorted(value)[:4])
    return f"{len(value)} other fields ({shown[:80]})"
