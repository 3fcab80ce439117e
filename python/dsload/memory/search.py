"""find_max_batch_size: finds the largest batch by trying it on the device."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Callable

from . import _checks, _device


@dataclass(frozen=True)
class MaxBatchSize:
    """safe: 75% of `maximum`, at least 1. maximum: the largest batch whose step succeeded.

    trials: (batch size, succeeded) in the order tried. limited: True if `limit` ended the search and not the memory.
    """

    safe: int
    maximum: int
    trials: tuple[tuple[int, bool], ...]
    limited: bool = False


def find_max_batch_size(
    step: Callable[[int], Any],
    *,
    start: int = 1,
    limit: int = 65536,
    safety: float = 0.75,
    meter: Any = None,
) -> MaxBatchSize:
    """Doubles the batch until `step(batch_size)` runs out of memory, then bisects between the last success and the
    failure.

    step: runs a whole training step (forward, backward, optimizer) on a batch of that many rows, as long as the longest
        that training will see. Its return value is dropped. It should leave the model as a fresh step expects it
        (`zero_grad(set_to_none=True)`).
    start: the first size tried; limit: the largest; safety: the share of the maximum that is returned as safe, since
        real batches fragment memory and vary in length.

    Raises:
        The allocator's own error if even `start` rows do not fit; any other error of `step` unchanged.
        ValueError: for start < 1, limit < start or a safety outside (0, 1].
    """
    start, limit = _checks.whole("start", start), _checks.whole("limit", limit)
    if limit < start or not 0 < safety <= 1:
        raise ValueError(f"need start <= limit and 0 < safety <= 1, got start={start}, limit={limit}, safety={safety}")
    meter = meter if meter is not None else _device.DeviceMeter()
    trials: list[tuple[int, bool]] = []

    def fits(size: int, must: bool = False) -> bool:
        try:
            step(size)
            ok = True
        except BaseException as error:
            if not _device.is_out_of_memory(error) or must:
                raise
            _device.forget_frames(error)
            ok = False
        trials.append((size, ok))
        meter.release()
        return ok

    fits(start, must=True)
    low, high = start, min(start * 2, limit)
    while low < limit and fits(high):
        low, high = high, min(high * 2, limit)
        if low == high:
            break
    limited = low == limit
    if not limited:
        while high - low > 1:
            middle = (low + high) // 2
            if fits(middle):
                low = middle
            else:
                high = middle
    return MaxBatchSize(max(1, int(low * safety)), low, tuple(trials), limited)
