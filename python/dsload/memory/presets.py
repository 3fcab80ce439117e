"""Initial settings, by the memory of the device."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Optional

from . import _checks, _device


@dataclass(frozen=True)
class Preset:
    """Conservative initial settings, which should run at the first try. Raise them from there (find_max_batch_size).

    name: "medium", "small" or "tiny", the size of model that is meant (GPT-2 medium, FLAN-T5 base; GPT-2, FLAN-T5
    small; smaller).
    batch_size: rows a step. max_examples, max_val_examples: how much to build (0: no validation split asked for).
    accumulation: micro-batches that make `effective_batch_size` rows.
    """

    name: str
    min_memory_bytes: int
    batch_size: int
    max_examples: int
    max_val_examples: int
    explanation: str
    effective_batch_size: int = 128

    @property
    def accumulation(self) -> int:
        return -(-self.effective_batch_size // self.batch_size)


PRESETS = (
    Preset(
        "medium", 35 * 10**9, 16, 100_000, 0,
        "35 GB and more (A100 40 GB, A6000): a model of about 350 million parameters in float32 takes 5.6 GB with "
        "AdamW's state, and 16 rows of 512 tokens leave half of the device for activations and long rows.",
    ),
    Preset(
        "small", 14 * 10**9, 6, 50_000, 0,
        "14 GB and more (T4, V100 16 GB): a model of about 120 million parameters takes 2 GB with AdamW's state; 6 "
        "rows keep the logits of a 50,000 vocabulary under 2.5 GB at the peak of the backward pass.",
    ),
    Preset(
        "tiny", 0, 4, 30_000, 3_000,
        "less than 14 GB: 4 rows; few examples, so that a first result comes within an hour; validation is cut to "
        "3,000 rows, since evaluation that keeps its logits is what fails first on small devices.",
    ),
)  # fmt: skip


def preset(memory_bytes: Optional[int] = None, *, meter: Any = None, **overrides: Any) -> Preset:
    """The preset for a device of `memory_bytes` (its whole memory; read from the device by default), with fields
    overridden by name.

    Example: `preset(batch_size=8)`. Raises TypeError for a field that a Preset does not have.
    """
    if memory_bytes is not None:
        _checks.size("memory_bytes", memory_bytes)
    else:
        memory_bytes = (meter if meter is not None else _device.DeviceMeter()).read().total
    chosen = next(p for p in PRESETS if memory_bytes >= p.min_memory_bytes)
    return replace(chosen, **overrides)
