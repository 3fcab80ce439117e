"""MemoryRecorder: what memory did, step by step, as JSON Lines.

Format of a record (version 1). One JSON object a line; unknown keys are to be ignored, missing ones are unknown.

    {"type": "start", "version": 1, "time": …, "device": "cuda:0", "device_name": …, "device_total": bytes,
     "parameters": n, "parameter_bytes": bytes, "dtype": "torch.float32", "vocab_size": n, "settings": {…}}
    {"type": "snapshot", "time": seconds since start, "step": n, "phase": "load" | "forward" | "backward" | "optimizer"
     | …, "allocated": bytes after the phase, "reserved": bytes, "peak": largest allocated within the phase, "growth":
     bytes allocated since the same phase of the step before, "free": bytes free on the device, "rss": host bytes,
     "seconds": duration of the phase, "batch": {"rows": n, "length": n, "label_length": n, "tokens": n}, "grad_norm":
     x, "nonfinite": n}
    {"type": "oom", "time": …, "step": n, "phase": …, "message": …, "requested": bytes, "batch": {…}, "allocated": …,
     "reserved": …, "free": …, "rss": …, "report": path}
    {"type": "end", "time": …, "steps": n}

`allocated`, `reserved` and `peak` are null on devices whose allocator does not count. `grad_norm` and `nonfinite` are
in the phase "backward" of every `gradients_every`-th step. A non-finite number is written as null.
"""

from __future__ import annotations

import contextlib
import json
import math
import os
import time
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Optional, TypeVar

from .._secrets import without_secrets
from ..errors import DsloadError
from . import _batches, _device
from .analyze import Verdict, analyze

T = TypeVar("T")
VERSION = 1


class MemoryRecorder:
    """Writes a snapshot after each phase of each step, and a report where memory runs out.

    Example::

        with MemoryRecorder("memory.jsonl", model=model) as record:
            for batch in record.loading(loader):
                with record.phase("forward"):
                    loss = model(**batch).loss
                with record.phase("backward"):
                    loss.backward()
                with record.phase("optimizer"):
                    optimizer.step(); optimizer.zero_grad()

    A snapshot takes a few microseconds (without synchronising the device); gradient norms are measured only every
    `gradients_every` steps, since they synchronise. The per-phase peak resets torch's own peak counter.

    Args:
        path: the record; it is appended to if it exists, so that a resumed run continues in the same file.
        model: for its size, dtype and gradients. device: as DeviceMeter takes it; the model's by default.
        every: write only the snapshots of every n-th step (the report still has the steps around an out-of-memory
        error).
        settings: whatever the first line should have (batch size, optimizer, …); secrets are removed.

    An out-of-memory error that leaves a phase is written to the record and to `report_path` (PATH.oom-N.txt), and then
    passes on.
    """

    def __init__(
        self,
        path: str,
        *,
        model: Any = None,
        device: Any = None,
        every: int = 1,
        gradients_every: int = 10,
        meter: Any = None,
        settings: Optional[dict[str, Any]] = None,
    ) -> None:
        if every < 1 or gradients_every < 0:
            raise ValueError(f"need every >= 1 and gradients_every >= 0, got {every} and {gradients_every}")
        self.path = os.path.abspath(path)  # the report of an error lies beside it, whatever the folder is then
        self._model, self._every, self._gradients_every = model, every, gradients_every
        first = next(iter(model.parameters()), None) if model is not None else None
        if device is None and first is not None:
            device = first.device
        self.meter = meter if meter is not None else _device.DeviceMeter(device)
        self.step = 0
        self.report_path: Optional[str] = None
        self._batch: dict[str, Any] = {}
        self._last_allocated: dict[str, int] = {}
        self._recent: list[dict[str, Any]] = []
        self._ooms = 0
        self._file = open(self.path, "a", buffering=1 << 16)  # noqa: SIM115 (closed by close)
        if _ends_within_a_line(self.path):
            self._file.write("\n")  # end the line of a run that was killed
        self._start = time.perf_counter()
        self._write(self._first_line(first, settings or {}))
        self._file.flush()

    def _first_line(self, first: Any, settings: dict[str, Any]) -> dict[str, Any]:
        line: dict[str, Any] = {"type": "start", "version": VERSION, "time": time.time()}
        line.update(
            device=getattr(self.meter, "device", "unknown"),
            device_total=self.meter.read().total,
            settings=without_secrets(settings),
        )
        if getattr(self.meter, "is_cuda", False):
            line["device_name"] = _device.torch_if_loaded().cuda.get_device_name(self.meter.device)
        if self._model is not None:
            tensors = list(self._model.parameters())
            line["parameters"] = sum(p.numel() for p in tensors)
            line["parameter_bytes"] = sum(p.numel() * p.element_size() for p in tensors)
            if first is not None:
                line["dtype"] = str(first.dtype)
            vocab = getattr(getattr(self._model, "config", None), "vocab_size", None)
            if vocab is not None:
                line["vocab_size"] = int(vocab)
        return line

    def loading(self, loader: Iterable[T]) -> Iterator[T]:
        """Yields the loader's batches; each begins a step, and the time and memory of fetching it are its phase
        "load"."""
        batches = iter(loader)
        while True:
            self.step += 1
            self._batch = {}
            with self.phase("load"):
                try:
                    batch = next(batches)
                except StopIteration:
                    self.step -= 1
                    return
                self._batch = _safe_shape(batch)
            yield batch

    def begin_step(self, batch: Any = None) -> None:
        """Begins a step, for loops that do not use `loading`."""
        self.step += 1
        self._batch = _safe_shape(batch) if batch is not None else {}

    @contextlib.contextmanager
    def phase(self, name: str) -> Iterator[None]:
        """Measures what runs inside. Names known to `analyze`: load, forward, backward, optimizer."""
        self.meter.reset_peak()
        start, step = time.perf_counter(), self.step
        try:
            yield
        except BaseException as error:
            if _device.is_out_of_memory(error):
                self._out_of_memory(name, error)
            raise
        if step != self.step:
            return
        line = self._snapshot(name, time.perf_counter() - start)
        if name == "backward" and self._gradients_every and self.step % self._gradients_every == 0:
            line.update(self._gradients())
        self._recent.append(line)
        del self._recent[:-40]
        if self.step % self._every == 0:
            self._write(line)

    def _snapshot(self, phase: str, seconds: float) -> dict[str, Any]:
        memory = self.meter.read()
        line: dict[str, Any] = {
            "type": "snapshot",
            "time": round(time.perf_counter() - self._start, 6),
            "step": self.step,
            "phase": phase,
            "allocated": memory.allocated,
            "reserved": memory.reserved,
            "peak": memory.peak,
            "free": memory.free,
            "rss": _device.host_rss(),
            "seconds": round(seconds, 6),
        }
        if memory.allocated is not None:
            line["growth"] = memory.allocated - self._last_allocated.get(phase, memory.allocated)
            self._last_allocated[phase] = memory.allocated
        if self._batch:
            line["batch"] = self._batch
        return line

    def _gradients(self) -> dict[str, Any]:
        if self._model is None:
            return {}
        torch = _device.torch_if_loaded()
        grads = [p.grad for p in self._model.parameters() if p.grad is not None]
        if not grads:
            return {}
        with torch.no_grad():
            norms = torch.stack([n.float() for n in torch._foreach_norm(grads)])
            total = float(torch.linalg.vector_norm(norms))
            nonfinite = 0
            if not math.isfinite(total):
                nonfinite = sum(int((~torch.isfinite(g)).sum()) for g in grads)
        return {"grad_norm": total, "nonfinite": nonfinite}

    def _out_of_memory(self, phase: str, error: BaseException) -> None:
        self._ooms += 1
        line = self._snapshot(phase, 0.0)
        line.update(type="oom", message=str(error)[:2000], requested=_device.requested_bytes(error))
        self.report_path = line["report"] = f"{self.path}.oom-{self._ooms}.txt"
        self._write(line)
        self._file.flush()
        # The report must not hide the error it reports.
        verdicts: Sequence[Verdict] = ()
        missing = ""
        try:
            verdicts = analyze(self.path).verdicts
        except (OSError, ValueError, DsloadError) as reason:
            missing = f"none: {reason}"
        try:
            with open(self.report_path, "w") as report:
                report.write(_report(line, verdicts, missing, self._recent[-8:]))
        except OSError:
            self.report_path = None

    def _write(self, line: dict[str, Any]) -> None:
        self._file.write(json.dumps(_finite(line), separators=(",", ":")) + "\n")

    def close(self) -> None:
        """Writes the last line and closes the file. Calling it again does nothing."""
        if self._file.closed:
            return
        self._write({"type": "end", "time": round(time.perf_counter() - self._start, 6), "steps": self.step})
        self._file.close()

    def __enter__(self) -> MemoryRecorder:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()


def _safe_shape(batch: Any) -> dict[str, Any]:
    try:
        return _batches.shape_of(batch)
    except (ValueError, TypeError):
        return {}


def _finite(value: Any) -> Any:
    if isinstance(value, dict):
        return {k: _finite(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [_finite(v) for v in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _report(line: dict[str, Any], verdicts: Sequence[Verdict], missing: str, recent: list[dict[str, Any]]) -> str:
    """missing: why there are no findings; empty if the record was analysed."""
    show = _device.format_bytes
    out = [f"Out of memory in step {line['step']}, phase {line['phase']}", "", line["message"], ""]
    names = ("allocated", "reserved", "peak", "free", "rss", "requested")
    out += [f"{n:<10} {show(line[n])}" for n in names if line.get(n) is not None]
    out += [f"batch      {json.dumps(line.get('batch', {}))}", "", "What to do, the most effective first:", ""]
    actions = [a for v in verdicts for a in v.actions] or ["halve the batch size and double the accumulation"]
    out += [f"{i}. {a}" for i, a in enumerate(dict.fromkeys(actions), 1)]
    out += (
        ["", "Findings:", ""]
        + [f"- {v.message}" for v in verdicts]
        + [missing] * bool(missing)
        + ["", "The last snapshots:", ""]
    )
    out += [json.dumps(_finite(r)) for r in recent]
    return "\n".join(out) + "\n"


def _ends_within_a_line(path: str) -> bool:
    with open(path, "rb") as file:
        if file.seek(0, os.SEEK_END) == 0:
            return False
        file.seek(-1, os.SEEK_END)
        return file.read(1) != b"\n"
