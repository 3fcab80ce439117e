"""Figures of the feed and of memory for reports of a run: Weights & Biases, MLflow, or any function of a dict of
numbers.

    for batch in reported(loader, WandB("project"), MLflow("experiment"), every=10):
        ...

The callbacks are called in separate threads. One that is slow misses reports, one that fails is dropped with a warning,
and neither delays training. Measuring costs a few additions per batch; it never imports torch or synchronises a device.
"""

from __future__ import annotations

import contextlib
import queue
import threading
import time
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Optional, TypeVar

from .callbacks import Several
from .memory import _device

T = TypeVar("T")

_MAX_WAITING = 8
_CLOSE_SECONDS = 5.0


def reported(
    batches: Iterable[T],
    *callbacks: Any,
    every: float = 10.0,
    first_step: int = 0,
    prefix: str = "dsload/",
    device: Any = None,
) -> Iterator[T]:
    """Yields the batches, and passes each callback a dict of figures every `every` seconds and once at the end.

    Args:
        batches: a Loader, or anything that yields its batches.
        callbacks: functions of a dict of numbers, such as WandB and MLflow. They are not closed.
        every: seconds between reports. first_step: the step of the first batch in a resumed run.
        prefix: precedes each figure's name except "step".
        device: the device whose memory is reported, as DeviceMeter takes it; by default the current CUDA device, if
            torch is loaded and has one.

    The figures, each a mean since the last report where it is a rate or share: `rows_per_s`, `tokens_per_s`,
    `padding_efficiency` (tokens among the elements of batches), `waiting` (share of the time spent waiting for the next
    batch), `row` (where the order continues), `epoch`, `rss_bytes`, and on a GPU `allocated_bytes`, `reserved_bytes`,
    `peak_bytes`, `free_bytes`. Unknown figures are left out.
    """
    report = _Background(Several(*callbacks))
    figures = FeedFigures(batches, device=device)
    step, last = first_step, time.monotonic()
    try:
        for batch in figures.watch(batches):
            yield batch
            step += 1
            if time.monotonic() - last >= every:
                last = time.monotonic()
                report(figures.read(step, prefix))
    finally:
        if step > first_step:
            report(figures.read(step, prefix))
        report.close()


class FeedFigures:
    """Counts what a feed yields. `watch` yields its batches, `read` returns the figures since the last call."""

    def __init__(self, loader: Any = None, *, device: Any = None) -> None:
        self._loader, self._device = loader, device
        self._rows = self._tokens = self._elements = 0
        self._waited = 0.0
        self._next: Optional[int] = None
        self._since = time.monotonic()

    def watch(self, batches: Iterable[T]) -> Iterator[T]:
        """Yields the batches and counts them."""
        iterator = iter(batches)
        while True:
            begin = time.monotonic()
            try:
                batch = next(iterator)
            except StopIteration:
                return
            self._waited += time.monotonic() - begin
            if isinstance(batch, Mapping):
                self._count(batch)
            yield batch

    def _count(self, batch: Mapping[str, Any]) -> None:
        ids, lengths, following = batch.get("input_ids"), batch.get("length"), batch.get("next")
        if ids is not None and len(getattr(ids, "shape", ())) == 2:
            self._rows += int(ids.shape[0])
            if lengths is not None and _on_host(lengths):
                self._tokens += int(lengths.sum())
                self._elements += int(ids.shape[0]) * int(ids.shape[1])
        if following is not None and len(following) and _on_host(following):
            self._next = int(following[-1])

    def read(self, step: int, prefix: str = "dsload/") -> dict[str, float]:
        """The figures since the last call, at first since the beginning."""
        now = time.monotonic()
        seconds = max(now - self._since, 1e-9)
        figures: dict[str, float] = {"rows_per_s": self._rows / seconds, "waiting": min(1.0, self._waited / seconds)}
        if self._elements:
            figures["tokens_per_s"] = self._tokens / seconds
            figures["padding_efficiency"] = self._tokens / self._elements
        if self._next is not None:
            figures["row"] = self._next
        epoch = getattr(self._loader, "epoch", None)
        if isinstance(epoch, int):
            figures["epoch"] = epoch
        figures.update(self._memory())
        self._rows = self._tokens = self._elements = 0
        self._waited, self._since = 0.0, now
        return {"step": step, **{prefix + name: value for name, value in figures.items()}}

    def _memory(self) -> dict[str, float]:
        out: dict[str, float] = {"rss_bytes": _device.host_rss()}
        torch = _device.torch_if_loaded()
        if torch is None or not torch.cuda.is_initialized():
            return out
        meter = _device.DeviceMeter(self._device)
        if meter.is_cuda:
            memory = meter.read()
            named = {
                "allocated_bytes": memory.allocated,
                "reserved_bytes": memory.reserved,
                "peak_bytes": memory.peak,
                "free_bytes": memory.free,
            }
            out.update({name: value for name, value in named.items() if value is not None})
        return out


def _on_host(values: Any) -> bool:
    """Reports whether values can be read without waiting for a device."""
    return str(getattr(values, "device", "cpu")).startswith("cpu")


class _Background:
    """Calls a callback in a separate thread. Reports that arrive while too many wait are dropped."""

    def __init__(self, callback: Any) -> None:
        self._callback = callback
        self._waiting: queue.Queue[Optional[dict[str, float]]] = queue.Queue(_MAX_WAITING)
        self._thread = threading.Thread(target=self._run, name="dsload-report", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        while (numbers := self._waiting.get()) is not None:
            self._callback(numbers)

    def __call__(self, numbers: dict[str, float]) -> None:
        with contextlib.suppress(queue.Full):
            self._waiting.put_nowait(numbers)

    def close(self) -> None:
        """Ends the thread after it has delivered the waiting reports, or abandons it after _CLOSE_SECONDS."""
        try:
            self._waiting.put(None, timeout=_CLOSE_SECONDS)
        except queue.Full:
            return
        self._thread.join(_CLOSE_SECONDS)
