"""The row where the next iteration begins, shared by a process and the workers of its DataLoaders.

DataLoader gives its workers copies of the dataset, new ones in every epoch unless they are persistent, and does not
call the original meanwhile. So the workers' progress is recorded where both sides see it: in an anonymous file of a few
numbers, under a file lock. Fork passes on the file, and so does the pickling that spawns a process. A copy made by any
other pickling has its own file.

Invariants:

  P1  All workers of an iteration begin at the same row. The first of them takes the start, moves it to the epoch after
      the iteration, and records both; the others read the record.
  P2  An iteration by workers uses up its epochs, even if it was not read to the end, since workers read ahead.
  P3  Processes that only share an ancestor, such as ranks, share nothing here: each has its own entry, which its
      workers find by its process id.
"""

from __future__ import annotations

import fcntl
import json
import multiprocessing
import os
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from multiprocessing import context, reduction
from typing import Any, Callable, Optional

_KEPT = 32  # iterations whose start is kept
_MAX_BYTES = 1 << 20

Entry = dict[str, Any]


def _new_file() -> int:
    if hasattr(os, "memfd_create"):
        with suppress(OSError):
            return os.memfd_create("dsload-start")
    with tempfile.TemporaryFile(prefix="dsload-start-") as f:
        return os.dup(f.fileno())


class SharedStart:
    """The row where the next iteration begins. start: the first one."""

    def __init__(self, start: int = 0) -> None:
        self._first: Entry = {
            "start": start,
            "loaded": False,
            "by_workers": False,
            "closed": False,
            "begun": [],
            "end": None,
        }
        self._fd = _new_file()
        self._owner = str(os.getpid())  # whose entry a forked process starts with
        self._begin_in_process()

    def _begin_in_process(self) -> None:
        self._pid = os.getpid()
        self._thread_lock = threading.Lock()
        self._iterations = 0  # begun by this process as a worker
        self._own: Optional[tuple[int, Optional[int]]] = None  # (start, end), set in a worker, for this worker only

    def __del__(self, close: Callable[[int], None] = os.close) -> None:
        # When the interpreter exits, modules are gone: only arguments and builtins can be used.
        try:  # noqa: SIM105
            close(self._fd)
        except Exception:
            pass

    def __getstate__(self) -> dict[str, Any]:
        with self._locked() as table:
            first = dict(self._entry(table))
        handed_on: Any = None
        if context.get_spawning_popen() is not None:
            handed_on = reduction.DupFd(self._fd)
        return {"first": first, "file": handed_on}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self._first = state["first"]
        self._fd = state["file"].detach() if state["file"] is not None else _new_file()
        self._owner = ""
        self._begin_in_process()

    @contextmanager
    def _locked(self, write: bool = False) -> Iterator[dict[str, Entry]]:
        """The entries of all processes that share the file; changes are kept with write=True."""
        if self._pid != os.getpid():
            self._begin_in_process()
        with self._thread_lock:
            fcntl.lockf(self._fd, fcntl.LOCK_EX)
            try:
                data = os.pread(self._fd, _MAX_BYTES, 0)
                table: dict[str, Entry] = json.loads(data) if data else {}
                yield table
                if write:
                    data = json.dumps(table).encode()
                    os.pwrite(self._fd, data, 0)
                    os.ftruncate(self._fd, len(data))
            finally:
                fcntl.lockf(self._fd, fcntl.LOCK_UN)

    def _entry(self, table: dict[str, Entry]) -> Entry:
        """This process's entry; for a worker the one of the process whose DataLoader it serves (P3)."""
        key = str(_trainer())
        if key not in table:
            table[key] = json.loads(json.dumps(table.get(self._owner, self._first)))
        return table[key]

    def read(self) -> Entry:
        with self._locked() as table:
            return self._entry(table)

    @property
    def start(self) -> int:
        if self._own is not None:
            return self._own[0]
        return int(self.read()["start"])

    @property
    def end(self) -> Optional[int]:
        """The row where the next iteration ends; None where its number of epochs decides."""
        if self._own is not None:
            return self._own[1]
        end: Optional[int] = self.read()["end"]
        return end

    def set(self, start: int, *, end: Optional[int] = None, loaded: Optional[bool] = None) -> None:
        """Moves the start and the end. loaded: the row comes from a state. In a worker, only its own next iteration is
        moved."""
        if _worker() is not None:
            self._own = start, end
            return
        with self._locked(write=True) as table:
            entry = self._entry(table)
            entry["start"], entry["end"], entry["by_workers"] = start, end, False
            if loaded is not None:
                entry["loaded"] = loaded

    def leave(self, end: int) -> None:
        """Records that a worker continues an iteration from a state: the next one begins at `end`."""
        with self._locked(write=True) as table:
            entry = self._entry(table)
            entry["start"], entry["end"], entry["by_workers"] = end, None, True

    def close(self) -> None:
        """Tells workers that the loader was closed."""
        if _worker() is not None:
            return
        with self._locked(write=True) as table:
            self._entry(table)["closed"] = True

    def is_closed(self) -> bool:
        return bool(self.read()["closed"])

    def begin(self, after: Callable[[int, Optional[int]], int]) -> tuple[int, int]:
        """Begins a worker's iteration and returns (its first row, its end), the same for all its workers (P1).

        It ends at after(its first row, the end that a state gave or None), where the next iteration begins.
        """
        info = _worker()
        if self._own is not None:
            start, given = self._own
            self._own = after(start, given), None
            return start, self._own[0]
        self._iterations += 1
        # Each iteration has a new seed; persistent workers keep theirs, and count.
        name = [int(info.seed) - int(info.id), int(info.num_workers), self._iterations]
        with self._locked(write=True) as table:
            entry = self._entry(table)
            for begun in reversed(entry["begun"]):
                # If seeds repeat (torch.manual_seed before each epoch), a worker that calls again begins another
                # iteration.
                if begun["name"] == name and int(info.id) not in begun["workers"]:
                    begun["workers"].append(int(info.id))
                    return int(begun["start"]), int(begun["end"])
            start = int(entry["start"])
            end = after(start, entry["end"])
            entry["begun"] = [
                *entry["begun"][1 - _KEPT :],
                {"name": name, "workers": [int(info.id)], "start": start, "end": end},
            ]
            entry["start"], entry["end"], entry["by_workers"] = end, None, True
        return start, end


def _worker() -> Any:
    module = sys.modules.get("torch.utils.data")
    return module.get_worker_info() if module is not None else None


def _trainer() -> int:
    """The id of the training process: this one, or the one that started a DataLoader's worker."""
    if _worker() is None:
        return os.getpid()
    parent = multiprocessing.parent_process()
    return parent.pid if parent is not None and parent.pid is not None else os.getppid()
