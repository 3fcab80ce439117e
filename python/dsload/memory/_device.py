"""The device's memory: how much is free, what failed, how to free memory.

Torch is imported inside functions only, so that `import dsload.memory` costs nothing.
"""

from __future__ import annotations

import gc
import os
import re
import sys
import traceback
from dataclasses import dataclass
from typing import Any, Optional

# The words of allocators that raise a plain RuntimeError. Compared in lower case.
_OUT_OF_MEMORY_WORDS = (
    "cuda out of memory",
    "hip out of memory",
    "xpu out of memory",
    "mps backend out of memory",
    "npu out of memory",
    "defaultcpuallocator: can't allocate memory",
    "defaultcpuallocator: not enough memory",
    "cublas_status_alloc_failed",
    "cuda error: out of memory",
    "cusolver_status_alloc_failed",
)


def torch_if_loaded() -> Any:
    """The torch module if the program has already imported it, else None."""
    return sys.modules.get("torch")


def is_out_of_memory(error: Optional[BaseException]) -> bool:
    """Reports whether `error` means that an allocation failed.

    Covers torch.OutOfMemoryError on any device, the RuntimeErrors of allocators and libraries without a class of their
    own (the CPU allocator, cuBLAS workspaces, MPS), and Python's MemoryError.
    """
    if error is None:
        return False
    if isinstance(error, MemoryError):
        return True
    torch = torch_if_loaded()
    if torch is not None:
        kind = getattr(torch, "OutOfMemoryError", None) or getattr(torch.cuda, "OutOfMemoryError", None)
        if kind is not None and isinstance(error, kind):
            return True
    if isinstance(error, RuntimeError):
        text = str(error).lower()
        return any(words in text for words in _OUT_OF_MEMORY_WORDS)
    return False


def requested_bytes(error: BaseException) -> Optional[int]:
    """The size of the failed allocation, from the error's text; None if it does not say."""
    text = str(error)
    match = re.search(r"[Tt]ried to allocate ([0-9.]+) ?(bytes|[KMGT]?i?B)", text)
    if match:
        scale = {"bytes": 1, "B": 1, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30, "TiB": 2**40}
        scale.update({"KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12})
        return int(float(match.group(1)) * scale.get(match.group(2), 1))
    match = re.search(r"allocate (\d+) bytes", text)
    return int(match.group(1)) if match else None


def forget_frames(error: Optional[BaseException]) -> None:
    """Drops the local variables of the frames that `error` passed through, and of the errors that caused it.

    A traceback holds the frames, and the frames hold the activations: without this, freeing after an out-of-memory
    error frees nothing. Frames that still run (the caller's own) keep their variables.
    """
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        traceback.clear_frames(error.__traceback__)
        error = error.__cause__ or error.__context__


@dataclass(frozen=True)
class DeviceMemory:
    """Bytes on one device at one moment, as far as this process may take them. `allocated`, `reserved` and `peak` are
    None if the allocator does not count (the CPU's)."""

    total: int
    free: int
    allocated: Optional[int] = None
    reserved: Optional[int] = None
    peak: Optional[int] = None

    @property
    def available(self) -> int:
        """Free bytes plus what the caching allocator holds without using it."""
        cached = (self.reserved or 0) - (self.allocated or 0)
        return self.free + max(cached, 0)


class DeviceMeter:
    """Reads one device's memory. Subclass it (or pass any object with these methods) to meter another allocator.

    device: "cuda", "cuda:1", "cpu", a torch.device, or None for the current CUDA device if there is one, else the CPU.
    """

    def __init__(self, device: Any = None) -> None:
        torch = torch_if_loaded()
        if device is None:
            device = "cuda" if torch is not None and torch.cuda.is_available() else "cpu"
        self.device = str(device)

    @property
    def is_cuda(self) -> bool:
        return self.device.startswith("cuda")

    def read(self) -> DeviceMemory:
        if self.is_cuda:
            torch = torch_if_loaded()
            free, total = torch.cuda.mem_get_info(self.device)
            reserved = int(torch.cuda.memory_reserved(self.device))
            most = int(total * self._fraction(torch))
            return DeviceMemory(
                total=most,
                free=max(min(int(free), most - reserved), 0),
                allocated=int(torch.cuda.memory_allocated(self.device)),
                reserved=reserved,
                peak=int(torch.cuda.max_memory_allocated(self.device)),
            )
        total, free = host_memory()
        return DeviceMemory(total=total, free=free)

    def _fraction(self, torch: Any) -> float:
        """The part of the device that torch's allocator may take (torch.cuda.set_per_process_memory_fraction)."""
        asked = getattr(torch.cuda, "get_per_process_memory_fraction", None)  # torch 2.8 and later
        return float(asked(self.device)) if asked is not None else 1.0

    def reset_peak(self) -> None:
        if self.is_cuda:
            torch_if_loaded().cuda.reset_peak_memory_stats(self.device)

    def release(self) -> int:
        """Collects garbage and empties the caching allocator. Returns the bytes freed on the device."""
        before = self.read().free if self.is_cuda else None
        gc.collect()
        torch = torch_if_loaded()
        if torch is None:
            return 0
        if self.is_cuda:
            torch.cuda.empty_cache()
            return max(self.read().free - (before or 0), 0)
        if self.device.startswith("mps"):
            torch.mps.empty_cache()
        elif self.device.startswith("xpu"):
            torch.xpu.empty_cache()
        return 0


def host_rss() -> int:
    """Resident bytes of this process."""
    try:
        with open("/proc/self/statm", "rb") as f:
            return int(f.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:
        import resource

        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return int(peak if sys.platform == "darwin" else peak * 1024)


def host_memory() -> tuple[int, int]:
    """(total, free) bytes of the host, or of this process's control group if that is smaller."""
    total = free = 0
    try:
        with open("/proc/meminfo") as f:
            fields = dict(line.split(":", 1) for line in f)
        total = int(fields["MemTotal"].split()[0]) * 1024
        free = int(fields.get("MemAvailable", fields["MemFree"]).split()[0]) * 1024
    except (OSError, KeyError):
        total = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
        free = total // 2
    for limit_file, usage_file in (
        ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory.current"),
        ("/sys/fs/cgroup/memory/memory.limit_in_bytes", "/sys/fs/cgroup/memory/memory.usage_in_bytes"),
    ):
        try:
            with open(limit_file) as f:
                limit = int(f.read())
            with open(usage_file) as f:
                usage = int(f.read())
        except (OSError, ValueError):
            continue
        if limit < total:
            total, free = limit, min(free, max(limit - usage, 0))
    return total, free


def format_bytes(n: float) -> str:
    """1536 → "1.5KiB", as the program writes sizes."""
    for unit in ("B", "KiB", "MiB", "GiB"):
        if abs(n) < 1024:
            return f"{n:.0f}{unit}" if unit == "B" or n == int(n) else f"{n:.1f}{unit}"
        n /= 1024
    return f"{n:.1f}TiB"
