"""Tools against running out of device memory. They need torch only to touch tensors, and do not need the loader.

Before a run: `check_configuration`, `estimate`, `summary`, `preset`, `suggest_batch_size`, `find_max_batch_size`,
`configure_allocator`.
During it: `AdaptiveBatchSizer`, `MemoryRecorder`, `MemoryGuard`, `enable_gradient_checkpointing`, `bf16`.
For generation and evaluation: `generate_in_chunks`, `evaluate_in_batches`. Afterwards: `analyze`.
"""

from __future__ import annotations

from ._device import DeviceMemory, DeviceMeter, is_out_of_memory
from .allocator import AllocatorSettings, bf16, configure_allocator, enable_gradient_checkpointing, supports_bf16
from .analyze import Analysis, Verdict, analyze
from .checkup import Checkup, Finding, Point, check_configuration
from .chunks import Evaluation, Generated, evaluate_in_batches, generate_in_chunks
from .estimate import Estimate, estimate, suggest_batch_size
from .guard import GuardReport, MemoryGuard
from .layers import Layer, Summary, summary
from .presets import PRESETS, Preset, preset
from .recorder import MemoryRecorder
from .search import MaxBatchSize, find_max_batch_size
from .shape import ModelShape
from .sizer import AdaptiveBatchSizer, CannotSplit, MicroBatch

__all__ = [
    "PRESETS",
    "AdaptiveBatchSizer",
    "AllocatorSettings",
    "Analysis",
    "CannotSplit",
    "Checkup",
    "DeviceMemory",
    "DeviceMeter",
    "Estimate",
    "Evaluation",
    "Finding",
    "Generated",
    "GuardReport",
    "Layer",
    "MaxBatchSize",
    "MemoryGuard",
    "MemoryRecorder",
    "MicroBatch",
    "ModelShape",
    "Point",
    "Preset",
    "Summary",
    "Verdict",
    "analyze",
    "bf16",
    "check_configuration",
    "configure_allocator",
    "enable_gradient_checkpointing",
    "estimate",
    "evaluate_in_batches",
    "find_max_batch_size",
    "generate_in_chunks",
    "is_out_of_memory",
    "preset",
    "suggest_batch_size",
    "summary",
    "supports_bf16",
]
