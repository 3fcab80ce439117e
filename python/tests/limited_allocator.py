"""A device of a few megabytes on the CPU: tensors made inside are counted, and one that does not fit raises torch's own
error."""

from __future__ import annotations

import weakref
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_iter

from dsload.memory import DeviceMemory


class LimitedAllocator(TorchDispatchMode):
    """Counts the bytes of storages created while it is entered, until they are freed. It is a meter for the memory kit
    too."""

    device = "limited"
    is_cuda = False

    def __init__(self, limit: int) -> None:
        super().__init__()
        self.limit = limit
        self.allocated = 0
        self.peak = 0
        self.failures = 0
        self.released = 0
        self.foreign = 0
        self._known: dict[int, int] = {}

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        out = func(*args, **(kwargs or {}))
        for leaf in tree_iter(out):
            if isinstance(leaf, torch.Tensor):
                self._count(leaf.untyped_storage())
        return out

    def _count(self, storage: Any) -> None:
        key = storage._cdata
        if key in self._known or storage.nbytes() == 0:
            return
        size = storage.nbytes()
        if self.allocated + size > self.limit:
            self.failures += 1
            raise torch.OutOfMemoryError(
                f"limited device out of memory. Tried to allocate {size / 2**20:.2f} MiB. {self.allocated} of "
                f"{self.limit} bytes in use."
            )
        self._known[key] = size
        self.allocated += size
        self.peak = max(self.peak, self.allocated)
        weakref.finalize(storage, self._free, key)

    def _free(self, key: int) -> None:
        self.allocated -= self._known.pop(key)

    def read(self) -> DeviceMemory:
        free = self.limit - self.allocated - self.foreign
        return DeviceMemory(self.limit, free, self.allocated, self.allocated, self.peak)

    def reset_peak(self) -> None:
        self.peak = self.allocated

    def release(self) -> int:
        import gc

        gc.collect()
        self.released += 1
        return 0
