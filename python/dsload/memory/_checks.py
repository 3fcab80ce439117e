"""Arguments that the kit refuses, by their names."""

from __future__ import annotations

import operator
from numbers import Real
from typing import Any


def whole(name: str, value: Any) -> int:
    """The value as an int. Raises ValueError unless it is a whole number, of Python, numpy or torch, of at least 1."""
    try:
        number = operator.index(value)
    except TypeError:
        number = 0
    if number < 1 or isinstance(value, bool):
        raise ValueError(f"{name} must be a whole number of at least 1, got {value!r}")
    return number


def size(name: str, value: Any) -> None:
    """Raises ValueError unless the value is a number of bytes."""
    if not isinstance(value, Real):
        raise ValueError(f"{name} must be a number of bytes, such as 16e9, got {value!r}")
