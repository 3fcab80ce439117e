"""Batches as torch tensors or numpy arrays, and the memory into which they are received. Torch is imported only if
tensors are requested."""

from __future__ import annotations

import importlib.util
import sys
from typing import Any

import numpy as np


def has_torch() -> bool:
    return "torch" in sys.modules or importlib.util.find_spec("torch") is not None


class NumpyOutput:
    """Arrays, unchanged."""

    @staticmethod
    def allocate(size: int) -> Any:
        return np.empty(size, np.uint8)

    @staticmethod
    def convert(arrays: dict[str, Any]) -> dict[str, Any]:
        return arrays

    @staticmethod
    def own(array: Any) -> Any:
        return array


class TorchOutput:
    """Tensors that share the memory of their message, which lives as long as any of them."""

    def __init__(self, pin_memory: bool) -> None:
        import torch

        from . import no_loss

        self._torch, self._no_loss = torch, no_loss
        self._from_numpy = torch.from_numpy
        self._pin = pin_memory
        self._dtypes = {np.dtype(np.int64): torch.int64, np.dtype(np.int32): torch.int32}
        self._message: Any = None

    def allocate(self, size: int) -> Any:
        if not self._pin:
            return np.empty(size, np.uint8)
        # Receive into pinned memory, so that a copy to the device needs no copy on the host.
        self._message = self._torch.empty(size, dtype=self._torch.uint8, pin_memory=True)
        return self._message.numpy()

    def own(self, array: Any) -> Any:
        """An array that is not part of a message."""
        tensor = self._from_numpy(array)
        return tensor.pin_memory() if self._pin else tensor

    def convert(self, arrays: dict[str, Any]) -> dict[str, Any]:
        out = self._tensors(arrays)
        if "labels" in arrays and self._no_loss.are_ignored(arrays["labels"]):
            out["labels"] = out["labels"].as_subclass(self._no_loss.NoLoss)
        return out

    def _tensors(self, arrays: dict[str, Any]) -> dict[str, Any]:
        message, self._message = self._message, None
        if message is None:
            from_numpy = self._from_numpy
            out = {name: from_numpy(array) for name, array in arrays.items()}
            return {name: t.pin_memory() for name, t in out.items()} if self._pin else out
        # Views of the pinned tensor itself, not of its numpy array: the allocator must know which copies still read it.
        base = message.data_ptr()
        out = {}
        for name, array in arrays.items():
            at = array.__array_interface__["data"][0] - base
            if 0 <= at < message.numel():
                out[name] = message[at : at + array.nbytes].view(self._dtypes[array.dtype]).view(array.shape)
            else:
                out[name] = self.own(array)
        return out
