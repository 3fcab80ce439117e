"""The options of a build as flags of the command."""

from __future__ import annotations

import os
from numbers import Number
from typing import Any

from .._options import BuildOptions
from .._words import named

_KINDS: dict[str, Any] = {**BuildOptions.__annotations__, "map": "str", "preview": "int"}


def flags(name: str, value: Any) -> list[str]:
    """The flags of an option: one, several for a list, none for None and False. Raises TypeError for a value that is no
    option's. An unknown option is a flag whatever its value, so that the command refuses it."""
    flag = "--" + name.replace("_", "-")
    value = _plain(value)
    if value is False and name in ("eos", "bos"):
        return [f"{flag}=off"]  # pack adds an end token unless it is told not to
    if value is None or value is False:
        return [] if name in _KINDS else [flag]
    if value is True:
        if name in _KINDS and "bool" not in str(_KINDS[name]):
            raise TypeError(f"{name}: it takes a value, which True is not")
        return [flag]
    if isinstance(value, (list, tuple)):
        return [f"{flag}={_text(name, v)}" for v in value]
    return [f"{flag}={_text(name, value)}"]


def _plain(value: Any) -> Any:
    """A scalar of numpy as Python's."""
    return value.item() if type(value).__module__ == "numpy" and getattr(value, "shape", None) == () else value


def _text(name: str, value: Any) -> str:
    if isinstance(value, (str, os.PathLike)):
        return str(os.fspath(value))
    if isinstance(value, Number):
        return str(value)
    what = f"{name}: {named(value)} is not a string, a path, a number or a list of them"
    if name == "tokenizer":
        what += "; if it is a tokenizer, save it by its save_pretrained(FOLDER), and name the folder"
    raise TypeError(what)
