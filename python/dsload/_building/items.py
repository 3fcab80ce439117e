"""Texts and records of a Python iterator as bytes for `dsload build -`: JSON Lines in gzip.

Gzip, without compression, is used for its end mark: if this process dies while it feeds the build, the build sees
truncated data and does not take it for complete.
"""

from __future__ import annotations

import io
import json
import os
import re
import zlib
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain
from typing import Any, Optional

from .._words import named

_GZIP = 31  # zlib's window bits for gzip's frame
_FIELD = re.compile(r"[^.,\[\]]+")


def sources_or_items(source: Any) -> tuple[Optional[list[str]], Optional[Iterator[Any]]]:
    """(paths and URIs, None), or (None, items) for an iterable of texts or records.

    A list or tuple of strings holds paths; an iterator of strings yields texts. Raises ValueError or TypeError for
    anything else.
    """
    if source is None:
        return [], None
    if isinstance(source, (str, os.PathLike)):
        return [os.fspath(source)], None
    if hasattr(source, "columns") and hasattr(source, "to_dict"):
        raise TypeError(
            f"source: {named(source)} is a table, which iterates over its columns; pass the texts of one, as in "
            "iter(table['text']), or its records, as in iter(table.to_dict('records')) of pandas"
        )
    if isinstance(source, (bytes, bytearray, Mapping)) or not isinstance(source, Iterable):
        raise TypeError(f"source: {named(source)} is not a path, a list of paths, or an iterable of strings or dicts")
    if isinstance(source, (list, tuple)) and all(isinstance(s, (str, os.PathLike)) for s in source):
        if not source:
            raise ValueError("source: the list of sources is empty; leave it out for generated text")
        return [os.fspath(s) for s in source], None
    items = iter(source)
    for item in items:
        if isinstance(item, os.PathLike):
            return [os.fspath(s) for s in chain([item], items)], None
        if isinstance(item, str) and os.path.exists(item):
            raise ValueError(
                f"source: {named(source)} yields texts, and the first of them, {item!r}, is the name of a file: pass a "
                "list of names, list(…), to read files, or records, {'text': …}, where that is the text"
            )
        if isinstance(item, str) and _is_record(item):
            raise ValueError(
                f"source: {named(source)} yields texts, and the first of them is a JSON object: pass the name of its "
                "file, or records, json.loads of each; where the JSON is the text, {'text': …}"
            )
        if isinstance(source, io.TextIOBase):
            raise ValueError(
                f"source: {named(source)} yields lines with their ends, whatever the format: pass the name of its "
                "file, or texts, as in (line.rstrip('\\n') for line in file)"
            )
        return None, chain([item], items)
    return None, iter(())


def _is_record(text: str) -> bool:
    try:
        return text.lstrip().startswith("{") and isinstance(json.loads(text), dict)
    except (ValueError, RecursionError):
        return False


def hold_text(items: Iterator[Any]) -> tuple[bool, Iterator[Any]]:
    """(whether the first item is a text, or a record with a field `text`; all items)."""
    for item in items:
        return not isinstance(item, Mapping) or "text" in item, chain([item], items)
    return True, items


def text_key(text_field: Optional[str]) -> str:
    """The field that a plain string is put into. Raises ValueError for a path inside records."""
    if text_field is None:
        return "text"
    if not _FIELD.fullmatch(text_field):
        raise ValueError(
            f"text_field: {text_field!r} is not the name of a single field, into which the strings of an iterable are "
            "put"
        )
    return text_field


def encoded(items: Iterator[Any], text_field: Optional[str]) -> Iterator[bytes]:
    """Parts of the gzip stream. Exceptions of the iterator pass through; ValueError and TypeError name an item, counted
    from 0."""
    packer = zlib.compressobj(0, zlib.DEFLATED, _GZIP)
    kind: Any = None
    for number, item in enumerate(items):
        this = str if isinstance(item, str) else dict if isinstance(item, Mapping) else None
        if this is None:
            raise TypeError(f"item {number} of the source is {named(item)}; items are strings or dicts")
        if kind is not None and this is not kind:
            raise TypeError(
                f"item {number} of the source is {named(item)}, and earlier items are not: use one kind throughout"
            )
        kind = this
        yield packer.compress(
            line(f"item {number} of the source", {text_key(text_field): item} if kind is str else item)
        )
    yield packer.flush()


def line(what: str, record: Any) -> bytes:
    """A record as a line of JSON. what: its name in errors."""
    try:
        # A NaN in an unused field is harmless; as a text, the build refuses it.
        text = json.dumps(record if isinstance(record, dict) else dict(record), ensure_ascii=False, default=_plain)
        return text.encode() + b"\n"
    except UnicodeEncodeError as error:
        found = f"U+{ord(error.object[error.start]):04X}"
        raise ValueError(
            f"{what} holds a lone surrogate, {found}, which is not a character;"
            " decode the text with errors='replace', or drop the item"
        ) from error
    except (TypeError, ValueError, RecursionError) as error:
        raise type(error)(f"{what} is not JSON: {error}") from error


def _plain(value: Any) -> Any:
    """Numpy's numbers as Python's, for types that json does not know."""
    if type(value).__module__ == "numpy" and hasattr(value, "item") and getattr(value, "ndim", 0) == 0:
        return value.item()
    raise TypeError(f"a value is {named(value)}; make it a string, number, list or dict")
