"""Loader as a torch IterableDataset, a class that DataLoader checks for. Made on first use, so that torch is imported
only then."""

from __future__ import annotations

from typing import Any

from .._feed.tensors import NumpyOutput, TorchOutput, has_torch
from .ranks import worker

_made: dict[Any, Any] = {}


def wants_torch(output: Any) -> bool:
    """Reports whether a Loader with this `output` yields tensors."""
    return output == "torch" or (output == "auto" and has_torch())


def output_of(output: str, pin_memory: bool) -> Any:
    """What makes batches of arrays. pin_memory is for a process that receives its batches itself, and only where CUDA
    is available."""
    if not wants_torch(output):
        return NumpyOutput
    return TorchOutput(pin_memory and _can_pin())


def _can_pin() -> bool:
    import torch

    return bool(torch.cuda.is_available()) and worker()[1] == 1


def class_for(base: Any, output: Any) -> Any:
    """The class of a Loader with this `output`: `base`, or its subclass that is a torch dataset."""
    if not wants_torch(output):
        return base
    if base not in _made:
        import torch.utils.data

        class TorchLoader(base, torch.utils.data.IterableDataset):  # type: ignore[misc, unused-ignore]
            __doc__ = base.__doc__

        TorchLoader.__name__, TorchLoader.__qualname__, TorchLoader.__module__ = (
            base.__name__,
            base.__qualname__,
            base.__module__,
        )
        _made[base] = TorchLoader
    return _made[base]
