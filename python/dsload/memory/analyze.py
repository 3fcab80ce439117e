"""analyze: read a memory record and report where memory goes, why, and what to change, with numbers.

Each check looks for one cause in the snapshots and returns a Verdict or nothing. Checks are ordered by how surely their remedy helps;
`Analysis.verdicts` keeps that order, with causes that ended in an out-of-memory error first. The thresholds are next to the checks; `dsload
doctor RECORD` applies the same ones.
"""

from __future__ import annotations

import json
import os
import statistics
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Callable, Optional, Union

from . import _device

_LEAK_STEPS = 8  # snapshots of a phase needed to call growth a leak
_LEAK_SHARE = 0.7  # share of steps that must grow
_SPIKE = 10.0  # gradient norm against the median
_FRAGMENTED = 0.25  # reserved but not allocated, as a share of reserved
_FOREIGN = 0.10  # share of the device used by others


@dataclass(frozen=True)
class Verdict:
    """kind: "batch_too_large", "leak", "host_leak", "unstable_gradients", "fragmentation", "other_processes", "logits",
    "long_sequences", "optimizer_state" or "loader". phase: where it appears. message: what was found, with numbers. actions: what to change,
    the most effective first. evidence: the numbers by name."""

    kind: str
    phase: str
    message: str
    actions: tuple[str, ...]
    evidence: dict[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class Analysis:
    """where: the phase that ran out of memory, or the one with the highest peak. out_of_memory: whether it ran out. steps: snapshots' steps.
    peak: the highest allocation seen (None if the device does not count). runs: in the record; the last one was analysed."""

    where: str
    out_of_memory: bool
    steps: int
    peak: Optional[int]
    verdicts: tuple[Verdict, ...]
    runs: int = 1

    def __str__(self) -> str:
        how = "ran out of memory in" if self.out_of_memory else "highest memory in"
        peak = f", peak {_device.format_bytes(self.peak)}" if self.peak is not None else ""
        runs = f"the last of {self.runs} runs in the record: " if self.runs > 1 else ""
        lines = [f"{runs}{self.steps} steps{peak}; {how} phase {self.where}"]
        for v in self.verdicts:
            lines += [f"{v.kind} ({v.phase}): {v.message}", *(f"    - {a}" for a in v.actions)]
        return "\n".join(lines if self.verdicts else [*lines, "nothing out of the ordinary"])


class _Record:
    """A record's lines, sorted by kind."""

    def __init__(self, lines: Iterable[dict[str, Any]]) -> None:
        self.start: dict[str, Any] = {}
        self.snapshots: list[dict[str, Any]] = []
        self.ooms: list[dict[str, Any]] = []
        self.runs = 0
        for line in lines:
            kind = line.get("type")
            if kind == "start":
                self.start, self.snapshots, self.ooms = line, [], []
                self.runs += 1
            elif kind == "snapshot":
                self.snapshots.append(line)
            elif kind == "oom":
                self.ooms.append(line)

    @property
    def oom(self) -> Optional[dict[str, Any]]:
        return self.ooms[-1] if self.ooms else None

    @property
    def total(self) -> int:
        return int(self.start.get("device_total") or 0)

    def phase(self, name: str) -> list[dict[str, Any]]:
        return [s for s in self.snapshots if s.get("phase") == name]

    def last_batch(self) -> dict[str, Any]:
        for line in [*self.ooms[-1:], *reversed(self.snapshots)]:
            if line.get("batch"):
                return dict(line["batch"])
        return {}


def analyze(record: Union[str, os.PathLike[str]]) -> Analysis:
    """Analyses the last run of the record at a path.

    Raises:
        OSError: if the file cannot be read.
        ValueError: if it is not a record of MemoryRecorder. A last line of a run cut off by a kill is ignored.
    """
    with open(record, encoding="utf-8") as lines:
        return analyze_lines(lines)


def analyze_lines(lines: Iterable[str]) -> Analysis:
    """Analyses a record given as lines."""
    parsed: list[dict[str, Any]] = []
    broken: Optional[int] = None
    for number, text in enumerate(lines, 1):
        if not text.strip():
            continue
        try:
            value = json.loads(text)
        except ValueError:
            value = None
        if broken is not None and not (isinstance(value, dict) and value.get("type") == "start"):
            raise ValueError(f"line {broken} is not a line of a memory record")
        broken = None
        if value is None:
            broken = number  # allowed only for the last line of a run
            continue
        if not isinstance(value, dict) or "type" not in value:
            raise ValueError(f"line {number} is not a line of a memory record")
        parsed.append(value)
    record = _Record(parsed)
    if not record.start:
        raise ValueError("not a memory record: it has no line of type start")
    verdicts = [v for check in _CHECKS if (v := check(record)) is not None]
    peaks = [s for s in record.snapshots if s.get("peak") is not None]
    highest = max(peaks, key=lambda s: int(s["peak"]), default=None)
    if record.oom is not None:
        where = str(record.oom.get("phase"))
    elif highest is not None:
        where = str(highest["phase"])
    else:
        where = str(max(record.snapshots, key=lambda s: int(s.get("rss") or 0), default={}).get("phase", "unknown"))
    return Analysis(
        where=where,
        out_of_memory=record.oom is not None,
        steps=len({s.get("step") for s in record.snapshots}),
        peak=int(highest["peak"]) if highest is not None else None,
        verdicts=tuple(verdicts),
        runs=record.runs,
    )


def _trend(values: list[int]) -> tuple[float, float]:
    """(median growth a step, share of steps that grow) of a series."""
    steps = [b - a for a, b in zip(values, values[1:])]
    if not steps:
        return 0.0, 0.0
    return float(statistics.median(steps)), sum(s > 0 for s in steps) / len(steps)


def _leak(record: _Record) -> Optional[Verdict]:
    """Memory held after the same phase grows step by step. The first two steps set up state and do not count."""
    best: Optional[tuple[float, str, int]] = None
    for name in ("optimizer", "backward", "forward", "load"):
        series = [int(s["allocated"]) for s in record.phase(name)[2:] if s.get("allocated") is not None]
        if len(series) < _LEAK_STEPS:
            continue
        growth, share = _trend(series)
        if share >= _LEAK_SHARE and growth > 0 and series[-1] - series[0] > 0.02 * max(series[0], 1) and (best is None or growth > best[0]):
            best = (growth, name, len(series))
    if best is None:
        return None
    growth, name, steps = best
    left = ""
    free = record.snapshots[-1].get("free") or 0
    if free and record.oom is None:
        left = f"; the {_device.format_bytes(free)} that are free last {int(free / growth)} more steps"
    return Verdict(
        "leak", name,
        f"allocated memory grows by {_device.format_bytes(growth)} a step over {steps} steps{left}",
        (
            "keep numbers, not tensors: total += loss.item(), not total += loss, which keeps every step's graph",
            "detach what outlives a step (outputs, hidden states, metrics): x.detach().cpu()",
            "look for lists that grow, hooks registered in each step, and retain_graph=True",
        ),
        {"growth_per_step": growth, "steps": float(steps)},
    )  # fmt: skip


def _host_leak(record: _Record) -> Optional[Verdict]:
    series = [int(s["rss"]) for s in record.phase("load")[2:] if s.get("rss")]
    if len(series) < 2 * _LEAK_STEPS:
        return None
    growth = (series[-1] - series[len(series) // 4]) / max(len(series) - len(series) // 4 - 1, 1)
    half = series[len(series) // 2]
    if series[-1] - series[0] < 64 << 20 or not series[0] < half < series[-1] or growth < 4096:
        return None
    return Verdict(
        "host_leak", "load",
        f"the process grows by {_device.format_bytes(growth)} of host memory a step, {_device.format_bytes(series[-1] - series[0])} so far",
        (
            "do not keep batches or outputs in lists; write them out",
            "with worker processes, avoid Python objects in the dataset (reference counts unshare pages); dsload's loader needs no workers",
        ),
        {"growth_per_step": growth},
    )  # fmt: skip


def _batch_too_large(record: _Record) -> Optional[Verdict]:
    oom = record.oom
    if oom is None or oom.get("phase") not in ("forward", "backward"):
        return None
    batch = record.last_batch()
    rows = int(batch.get("rows") or 0)
    if rows <= 1:
        return None
    phase = str(oom["phase"])
    held = _resting(record)
    allocated = oom.get("allocated")
    room, fits = record.total - held, rows // 2
    per_row = _bytes_per_token(record, held) * int(batch.get("length") or 1)
    if allocated is not None and room > 0:
        # The failed batch took at least this much; batches that succeeded show what a row takes at its peak.
        per_row = max(per_row, (int(allocated) + int(oom.get("requested") or 0) - held) / rows)
        fits = max(1, min(fits, int(0.9 * room / per_row))) if per_row > 0 else fits
    length = f" of length {batch['length']}" if batch.get("length") else ""
    return Verdict(
        "batch_too_large", phase,
        f"a batch of {rows} rows{length} ran out in {phase}; {_device.format_bytes(held)} were held before the step",
        (
            f"batch {fits} with {-(-rows // fits)} times the accumulation keeps the effective batch of {rows}; AdaptiveBatchSizer does it by itself",
            "enable_gradient_checkpointing(model): activations shrink to about a layer's worth for 30% more time",
            "bf16 halves activations where the device has it",
        ),
        {"rows": float(rows), "suggested_rows": float(fits), "held": float(held)},
    )  # fmt: skip


def _bytes_per_token(record: _Record, held: int) -> float:
    """The most that a successful step took above the bytes held between steps, per token of its batch with padding."""
    most = 0.0
    for line in record.snapshots:
        batch = line.get("batch") or {}
        tokens = int(batch.get("rows") or 0) * int(batch.get("length") or 1)
        if tokens and line.get("peak") is not None and line.get("phase") in ("forward", "backward"):
            most = max(most, (int(line["peak"]) - held) / tokens)
    return most


def _resting(record: _Record) -> int:
    """The bytes held between steps: parameters, gradients, optimizer state."""
    loads = [int(s["allocated"]) for s in record.phase("load") if s.get("allocated") is not None]
    return loads[-1] if loads else int(record.start.get("parameter_bytes") or 0)


def _optimizer_state(record: _Record) -> Optional[Verdict]:
    oom = record.oom
    if oom is None or oom.get("phase") != "optimizer":
        return None
    size = int(record.start.get("parameter_bytes") or 0)
    return Verdict(
        "optimizer_state", "optimizer",
        f"the optimizer's step ran out of memory: AdamW keeps two values a parameter, {_device.format_bytes(2 * size)} here, from its first step on",
        (
            "an optimizer with smaller state: Adafactor (almost none) or 8-bit AdamW (a quarter)",
            "foreach=False saves a temporary copy of the parameters during the step",
            "freeze layers, or train adapters only; a smaller batch does not help here",
        ),
        {"parameter_bytes": float(size)},
    )  # fmt: skip


def _loader(record: _Record) -> Optional[Verdict]:
    oom = record.oom
    if oom is None or oom.get("phase") != "load":
        return None
    return Verdict(
        "loader", "load",
        "memory ran out while a batch was fetched or moved to the device",
        (
            "move only the batch in use to the device, and drop the last one first (del batch, outputs)",
            "fewer prefetched batches (prefetch_factor) and no pinned copies of columns that the model does not take",
        ),
    )  # fmt: skip


def _logits(record: _Record) -> Optional[Verdict]:
    vocab, batch = int(record.start.get("vocab_size") or 0), record.last_batch()
    tokens = int(batch.get("rows") or 0) * int(batch.get("label_length") or batch.get("length") or 0)
    peaks = [int(s["peak"]) for s in record.snapshots if s.get("peak") is not None]
    peak = max([*peaks, *(int(o.get("allocated") or 0) + int(o.get("requested") or 0) for o in record.ooms)], default=0)
    logits = vocab * tokens * 4
    if not logits or not peak or logits * 4 < 0.4 * max(peak - _resting(record), 1):
        return None
    share = min(logits * 4 / max(peak - _resting(record), 1), 1.0)
    return Verdict(
        "logits", "backward",
        f"logits of {tokens:,} tokens × {vocab:,} words are {_device.format_bytes(logits)} in float32, and the loss and its gradient hold four such"
        f" tensors at once: {share:.0%} of what a step allocates",
        (
            "compute the loss in chunks of tokens (a fused linear cross-entropy), so that the logits never exist at once",
            "fewer tokens a batch; for evaluation keep predictions, not logits",
            "a smaller vocabulary, where the tokenizer is yours",
        ),
        {"logits_bytes": float(logits), "share": share},
    )  # fmt: skip


def _long_sequences(record: _Record) -> Optional[Verdict]:
    forward = [s for s in record.phase("forward") if (s.get("batch") or {}).get("length")]
    lengths = [int(s["batch"]["length"]) for s in forward]
    if record.oom is not None and (record.oom.get("batch") or {}).get("length"):
        lengths.append(int(record.oom["batch"]["length"]))
    if len(lengths) < 4:
        return None
    usual, longest = statistics.median(lengths), max(lengths)
    last = lengths[-1]
    if longest < 2 * usual or (record.oom is not None and last < 1.5 * usual):
        return None
    return Verdict(
        "long_sequences", str(record.oom["phase"]) if record.oom is not None else "forward",
        f"rows are usually {usual:.0f} tokens long, the longest batch {longest}: its attention takes {(longest / usual) ** 2:.0f} times the memory",
        (
            f"cap rows at build time: --max-length {int(usual * 1.5)}",
            f"batch by tokens instead of rows: Loader(max_tokens={int(usual) * int(record.last_batch().get('rows') or 1)})",
            "length buckets (bucket=2048) keep long rows together, where the sizer splits only those batches",
        ),
        {"usual": float(usual), "longest": float(longest)},
    )  # fmt: skip


def _fragmentation(record: _Record) -> Optional[Verdict]:
    line = record.oom or max(
        (s for s in record.snapshots if s.get("reserved")), key=lambda s: int(s["reserved"]) - int(s["allocated"] or 0), default=None
    )
    if line is None or not line.get("reserved") or line.get("allocated") is None:
        return None
    reserved, allocated = int(line["reserved"]), int(line["allocated"])
    wasted, requested = reserved - allocated, int(line.get("requested") or 0)
    if record.oom is not None:
        # Enough memory was cached for the request, but in fragments.
        if wasted < max(requested, 0.1 * reserved) or not requested:
            return None
    elif wasted < _FRAGMENTED * reserved or not _reserve_near_full(record, reserved):
        return None
    asked = f" while {_device.format_bytes(requested)} could not be found" if requested else ""
    return Verdict(
        "fragmentation", str(line.get("phase")),
        f"{_device.format_bytes(wasted)} of {_device.format_bytes(reserved)} reserved lie unused in pieces{asked}",
        (
            "configure_allocator(expandable_segments=True) before the first CUDA tensor",
            "pad to a multiple (pad_to_multiple_of=64) so that sizes repeat, or batch by tokens",
            "MemoryGuard(threshold=0.9) empties the cache before it is too late",
        ),
        {"reserved": float(reserved), "allocated": float(allocated)},
    )  # fmt: skip


def _reserve_near_full(record: _Record, reserved: int) -> bool:
    return bool(record.total) and reserved > 0.6 * record.total


def _other_processes(record: _Record) -> Optional[Verdict]:
    lines = [s for s in [*record.snapshots, *record.ooms] if s.get("reserved") is not None and s.get("free") is not None]
    if not lines or not record.total or str(record.start.get("device", "")).startswith("cpu"):
        return None
    foreign = statistics.median(record.total - int(s["free"]) - int(s["reserved"]) for s in lines)
    # The CUDA context and libraries of this process take a few hundred MB.
    if foreign < max(_FOREIGN * record.total, 1 << 30):
        return None
    return Verdict(
        "other_processes", "load",
        f"{_device.format_bytes(foreign)} of the device's {_device.format_bytes(record.total)} are in use, but not by this process's allocator",
        (
            "`dsload doctor` lists the processes on each device: end them, or choose another with CUDA_VISIBLE_DEVICES",
            "a notebook's kernel or a crashed run's children often hold it",
        ),
        {"foreign": float(foreign)},
    )  # fmt: skip


def _unstable_gradients(record: _Record) -> Optional[Verdict]:
    backward = [s for s in record.phase("backward") if "grad_norm" in s]
    bad = [s for s in backward if s.get("nonfinite") or s.get("grad_norm") is None]
    norms = [float(s["grad_norm"]) for s in backward if s.get("grad_norm") is not None]
    spikes = []
    if len(norms) >= 4:
        usual = statistics.median(norms)
        spikes = [s for s in backward if s.get("grad_norm") is not None and usual > 0 and float(s["grad_norm"]) > _SPIKE * usual]
    if not bad and not spikes:
        return None
    first = min(int(s.get("step", 0)) for s in [*bad, *spikes])
    what = f"{len(spikes)} spikes of the gradient norm above {_SPIKE:.0f} times its median" if spikes else ""
    if bad:
        what += (" and " if what else "") + f"NaN or infinite gradients in {len(bad)} steps"
    return Verdict(
        "unstable_gradients", "backward",
        f"{what}, first in step {first}",
        (
            "clip: torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)",
            "lower the learning rate or lengthen the warm-up",
            "bf16 instead of fp16; look at the batch of that step for empty or repeated rows",
        ),
        {"spikes": float(len(spikes)), "nonfinite_steps": float(len(bad)), "first_step": float(first)},
    )  # fmt: skip


# Those whose remedy is surest come first.
_CHECKS: tuple[Callable[[_Record], Optional[Verdict]], ...] = (
    _leak,
    _other_processes,
    _optimizer_state,
    _loader,
    _fragmentation,
    _batch_too_large,
    _logits,
    _long_sequences,
    _unstable_gradients,
    _host_leak,
)
