"""Settings of PyTorch's allocator, and the two switches that save the most memory: checkpointing and bfloat16."""

from __future__ import annotations

import contextlib
import os
import warnings
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Optional

from . import _checks, _device

VARIABLE = "PYTORCH_CUDA_ALLOC_CONF"


@dataclass(frozen=True)
class AllocatorSettings:
    """value: of the environment variable. explanation: a sentence for each setting. applied: False if CUDA had already
    been initialised, so that only a new process will see it."""

    value: str
    explanation: tuple[str, ...]
    applied: bool


def configure_allocator(
    *,
    expandable_segments: bool = True,
    max_split_size_mb: Optional[int] = None,
    garbage_collection_threshold: Optional[float] = None,
) -> AllocatorSettings:
    """Sets PYTORCH_CUDA_ALLOC_CONF. Other settings that it already holds stay.

    Call it before the first CUDA tensor: the allocator reads the variable once. Later it warns and changes the
        environment for child processes only.

    Args:
        expandable_segments: let segments grow, so that batches of varying length do not fragment the device.
        max_split_size_mb: never split cached blocks larger than this (at least 21), against fragmentation if segments
        cannot grow.
        garbage_collection_threshold: share of the device above which the allocator frees old cached blocks by itself,
            in (0, 1).

    Raises:
        ValueError: for values that PyTorch would refuse.
    """
    _checks.flag("expandable_segments", expandable_segments)
    settings = dict(part.split(":", 1) for part in os.environ.get(VARIABLE, "").split(",") if ":" in part)
    why = []
    settings["expandable_segments"] = str(bool(expandable_segments))
    if expandable_segments:
        why.append("expandable_segments:True lets a segment grow in place: rows of varying length stop leaving holes.")
    else:
        why.append(
            "expandable_segments:False keeps fixed segments, as virtual memory tools and some older drivers need."
        )
    if max_split_size_mb is not None:
        if max_split_size_mb < 21:
            raise ValueError(f"max_split_size_mb must be more than 20, got {max_split_size_mb}")
        settings["max_split_size_mb"] = str(max_split_size_mb)
        why.append(
            f"max_split_size_mb:{max_split_size_mb} keeps blocks above that size whole, so that large requests find "
            "them again."
        )
    if garbage_collection_threshold is not None:
        if not 0 < garbage_collection_threshold < 1:
            raise ValueError(
                f"garbage_collection_threshold must lie between 0 and 1, got {garbage_collection_threshold}"
            )
        settings["garbage_collection_threshold"] = str(garbage_collection_threshold)
        why.append(
            f"garbage_collection_threshold:{garbage_collection_threshold} frees old cached blocks above that share of "
            "the device."
        )
    value = ",".join(f"{k}:{v}" for k, v in settings.items())
    os.environ[VARIABLE] = value
    torch = _device.torch_if_loaded()
    applied = torch is None or not torch.cuda.is_initialized()
    if not applied:
        warnings.warn(
            f"CUDA is already initialised: {VARIABLE} affects new processes only", RuntimeWarning, stacklevel=2
        )
    return AllocatorSettings(value, tuple(why), applied)


def enable_gradient_checkpointing(model: Any, blocks: Optional[Iterable[Any]] = None) -> int:
    """Recomputes activations in the backward pass instead of keeping them: about 30% more time for a fraction of the
    memory.

    model: a transformers model uses its own `gradient_checkpointing_enable`; for any other module `blocks` names the
    submodules to wrap (its layers). Returns the number of blocks wrapped (0 for transformers models). Results do not
    change; dropout draws the same numbers again.

    Raises:
        ValueError: for a module without its own checkpointing, if no blocks are named.
    """
    if blocks is None:
        enable = getattr(model, "gradient_checkpointing_enable", None)
        if enable is None:
            raise ValueError(
                f"{type(model).__name__} has no checkpointing of its own: name its blocks, for example model.layers"
            )
        enable(gradient_checkpointing_kwargs={"use_reentrant": False})
        if hasattr(getattr(model, "config", None), "use_cache"):
            model.config.use_cache = False
        return 0
    from torch.utils.checkpoint import checkpoint

    wrapped = 0
    for block in blocks:
        inner = block.forward

        def forward(*args: Any, _inner: Any = inner, _block: Any = block, **kwargs: Any) -> Any:
            if not _block.training:
                return _inner(*args, **kwargs)
            return checkpoint(_inner, *args, use_reentrant=False, **kwargs)

        block.forward = forward
        wrapped += 1
    return wrapped


def supports_bf16(device: Any = None) -> bool:
    """Reports whether bfloat16 arithmetic is native on the device (CUDA: compute capability 8.0 and later; the CPU is
    slow)."""
    torch = _device.torch_if_loaded()
    if torch is None:
        return False
    name = str(device if device is not None else ("cuda" if torch.cuda.is_available() else "cpu"))
    if name.startswith("cuda"):
        return bool(torch.cuda.is_available() and torch.cuda.get_device_capability(name)[0] >= 8)
    return name.startswith("cpu")


@contextlib.contextmanager
def bf16(device: Any = "cuda", enabled: Optional[bool] = None) -> Iterator[None]:
    """Autocast to bfloat16 if the device has it natively (or `enabled` says so), else full precision. No loss scaling
    is needed."""
    import torch

    kind = str(device).split(":")[0]
    if enabled is not None:
        _checks.flag("enabled", enabled)
    use = supports_bf16(device) if enabled is None else enabled
    with torch.autocast(device_type=kind, dtype=torch.bfloat16, enabled=use):
        yield
