"""MemoryGuard: empties caches from time to time, and reports what that freed."""

from __future__ import annotations

import gc
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Callable, Optional, TypeVar

from . import _checks, _device

T = TypeVar("T")


@dataclass
class GuardReport:
    """What the guard has done so far. freed_bytes: on the device, or of the host's resident memory without a device."""

    batches: int = 0
    cleanings: int = 0
    freed_bytes: int = 0
    seconds: float = 0.0
    collected_objects: int = 0

    def __str__(self) -> str:
        return (
            f"{self.cleanings} cleanings in {self.batches} batches freed {_device.format_bytes(self.freed_bytes)}"
            f" and {self.collected_objects} objects in {self.seconds:.2f} s"
        )


class MemoryGuard:
    """Collects garbage and empties the device's cache every `every` batches, or when use passes `threshold` of the
    device.

    Example: `for batch in MemoryGuard(every=10).watch(loader): ...`

    Emptying the cache costs a synchronisation and makes the next allocations slow, so look at `report` and raise
    `every` where it frees nothing.

    Args:
        every: batches between cleanings (0: only above the threshold).
        threshold: share of the device's memory in use above which a batch is followed by a cleaning (1.0: never).
        on_clean: called with (freed bytes, seconds) after each cleaning.
    """

    def __init__(
        self,
        every: int = 10,
        threshold: float = 0.9,
        *,
        meter: Any = None,
        on_clean: Optional[Callable[[int, float], None]] = None,
    ) -> None:
        every = _checks.count("every", every)
        if not 0 < threshold <= 1:
            raise ValueError(f"need 0 < threshold <= 1, got threshold={threshold}")
        self.every, self.threshold = every, threshold
        self.meter = meter if meter is not None else _device.DeviceMeter()
        self.report = GuardReport()
        self._on_clean = on_clean

    def after_batch(self) -> int:
        """Counts a batch, and cleans if due. Returns the bytes freed."""
        self.report.batches += 1
        due = self.every > 0 and self.report.batches % self.every == 0
        if not due and self.threshold < 1:
            memory = self.meter.read()
            due = memory.total > 0 and 1 - memory.free / memory.total > self.threshold
        return self.clean() if due else 0

    def clean(self) -> int:
        """Cleans now. Returns the bytes freed."""
        start, rss = time.perf_counter(), _device.host_rss()
        self.report.collected_objects += gc.collect()
        freed = int(self.meter.release())
        if freed == 0 and not getattr(self.meter, "is_cuda", False):
            freed = max(rss - _device.host_rss(), 0)
        seconds = time.perf_counter() - start
        self.report.cleanings += 1
        self.report.freed_bytes += freed
        self.report.seconds += seconds
        if self._on_clean is not None:
            self._on_clean(freed, seconds)
        return freed

    def watch(self, loader: Iterable[T]) -> Iterator[T]:
        """Yields the loader's batches and calls `after_batch` after each."""
        for batch in loader:
            yield batch
            self.after_batch()
