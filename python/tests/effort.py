"""How much the tests try: pytest runs the whole set, and DSLOAD_SOAK=1, as make soak sets it, adds what takes longer.
internal/effort does the same for Go's tests."""

from __future__ import annotations

import os
import time
from typing import TypeVar

Case = TypeVar("Case")

SOAK = bool(os.environ.get("DSLOAD_SOAK"))


def soaked(*cases: Case) -> tuple[Case, ...]:
    """Cases that only make soak runs."""
    return cases if SOAK else ()


def seed(usual: int) -> int:
    """The seed of a test's random values, which the test prints: DSLOAD_SEED, or the time in make soak, or the usual
    one."""
    value = int(os.environ.get("DSLOAD_SEED") or (time.time_ns() if SOAK else usual))
    print(f"the same random values again: DSLOAD_SEED={value}")
    return value
