"""Arguments that the kit refuses, by their names."""

from __future__ import annotations

import operator
from collections.abc import Collection
from numbers import Real
from typing import Any

from .._words import did_you_mean


def whole(name: str, value: Any) -> int:
    """The value as an int. Raises ValueError unless it is a whole number, of Python, numpy or torch, of at least 1."""
    try:
        number = operator.index(value)
    except TypeError:
        number = 0
    if number < 1 or isinstance(value, bool):
        raise ValueError(f"{name} must be a whole number of at least 1, got {value!r}")
    return number


def count(name: str, value: Any) -> int:
    """The value as an int. Raises ValueError unless it is a whole number, of Python, numpy or torch, from 0 on."""
    try:
        number = operator.index(value)
    except TypeError:
        number = -1
    if number < 0 or isinstance(value, bool):
        raise ValueError(f"{name} must be a whole number from 0 on, got {value!r}")
    return number


def flag(name: str, value: Any) -> None:
    """Raises ValueError for what is neither True nor False: a text such as 'false' would count as True."""
    if not isinstance(value, bool):
        raise ValueError(f"{name} must be True or False, got {value!r}")


def word(name: str, value: Any, known: Collection[str]) -> None:
    """Raises ValueError, with the nearest one, unless the value is one of the known words."""
    if value not in known:
        raise ValueError(f"{name} must be one of {', '.join(known)}, got {value!r}{did_you_mean(value, known)}")


def size(name: str, value: Any) -> None:
    """Raises ValueError unless the value is a number of bytes."""
    if isinstance(value, Real) and 0 < float(value) < 1024:
        raise ValueError(f"{name}: {value!r} is a number of bytes; {value!r} GB are {value!r}e9")
    if not isinstance(value, Real) or float(value) < 0:
        raise ValueError(f"{name} must be a number of bytes, such as 16e9, got {value!r}")
