"""RandomAccess: a dataset as a sequence of examples, read in this process and checked as a server checks it.

It is what map-style loaders expect: torch's DataLoader with a sampler, torchtitan, and Grain, whose
RandomAccessDataSource asks for `__len__`, `__getitem__` and a `__repr__` that is the same wherever the same data are
read.
"""

from __future__ import annotations

import operator
import os
import threading
from collections.abc import Iterator, Sequence
from typing import Any, SupportsIndex, Union, overload

import numpy as np
import numpy.typing as npt

from ..errors import DatasetChanged
from .inprocess import Split, causal_labels
from .manifest import is_address, read_manifest

Array = npt.NDArray[Any]
Example = dict[str, Array]

_TOKENS = ("input_ids", "labels")
_DTYPES = ("int64", "int32")


class RandomAccess:
    """The examples of a split by number, in the dataset's own order.

    Example::

        examples = dsload.RandomAccess("data")
        examples[17]                # {"input_ids": int64 array, "document": …, "part": …}
        len(examples), examples[-1], examples[10:20]

    Args:
        dataset: a folder that `dsload build` wrote.
        split: "train" or "val".
        dtype: of input_ids and labels: "int64" or "int32".

    An example is a dict of numpy arrays: input_ids; labels, loss_mask (bool) and segments (int32) if the dataset has
    them; document and part, which are arrays without dimensions. Where there is a loss_mask, labels are a Loader's:
    -100 for what carries no loss, and for the first token of each document of a packed row. Nothing is padded or
    shuffled. The arrays are copies that the caller may change.

    A shard is mapped into memory when one of its examples is first read. Each record batch is compared with its
    checksum on first touch. The object may be pickled, sent to DataLoader workers by fork or spawn, and read by several
    threads at once.

    Raises:
        FileNotFoundError: if there is no dataset. Corrupt: if the files do not match the manifest. FeedError: for a
        missing split. IndexError and TypeError: as for a list. DatasetChanged: if it is unpickled and the folder holds
        another dataset.
    """

    def __init__(self, dataset: Union[str, os.PathLike[str]], split: str = "train", *, dtype: str = "int64") -> None:
        if dtype not in _DTYPES:
            raise ValueError(f"dtype: {dtype!r} is not one of {', '.join(_DTYPES)}")
        folder: str = os.fspath(dataset)
        if is_address(folder):
            raise ValueError(
                f"{folder}: RandomAccess maps files of this machine; copy the dataset to a folder, or read it in order "
                "with dsload.Loader"
            )
        self._folder = os.path.abspath(folder)
        self._manifest = read_manifest(self._folder)
        self._split_name = split
        self._dtype = np.dtype(dtype)
        self._split = Split(self._folder, self._manifest, split)
        schema = self._manifest["schema"]
        lists = tuple(n for n in ("labels", "loss_mask", "segments") if schema[n])
        self._columns = ("input_ids", *lists, "document", "part")
        self._masked = schema["loss_mask"] and not schema["labels"]
        self._names = self._columns if not self._masked else ("input_ids", "labels", *self._columns[1:])
        self._guard()

    def _guard(self) -> None:
        # A lock that another thread held at the fork is never released in this process.
        self._pid, self._lock = os.getpid(), threading.Lock()

    @property
    def manifest(self) -> dict[str, Any]:
        """The dataset's manifest."""
        return self._manifest

    @property
    def column_names(self) -> tuple[str, ...]:
        """The keys of every example."""
        return self._names

    def __len__(self) -> int:
        return self._split.rows

    @overload
    def __getitem__(self, index: SupportsIndex) -> Example: ...

    @overload
    def __getitem__(self, index: slice) -> list[Example]: ...

    def __getitem__(self, index: Union[SupportsIndex, slice]) -> Union[Example, list[Example]]:
        if isinstance(index, slice):
            return self._read(range(len(self))[index])
        try:
            number = operator.index(index)
        except TypeError:
            raise TypeError(f"examples are indexed by integers or slices, not {type(index).__name__}") from None
        return self._read([self._placed(number)])[0]

    def __getitems__(self, indices: Sequence[SupportsIndex]) -> list[Example]:
        """Several examples at once, as torch's DataLoader asks for a batch."""
        return self._read([self._placed(operator.index(i)) for i in indices])

    def __iter__(self) -> Iterator[Example]:
        for number in range(len(self)):
            yield self[number]

    def _placed(self, number: int) -> int:
        rows = len(self)
        if not -rows <= number < rows:
            raise IndexError(f"there is no example {number}: {self._split_name} has {rows}")
        return number % rows

    def _read(self, numbers: Sequence[int]) -> list[Example]:
        if self._pid != os.getpid():
            self._guard()
        with self._lock:
            rows = self._split.read(np.asarray(numbers, np.int64), self._columns)
        return [self._example(row) for row in rows]

    def _example(self, row: Example) -> Example:
        if self._masked:
            row = {**row, "labels": causal_labels(row, self._dtype)}
        return {name: self._own(name, row[name]) for name in self._names}

    def _own(self, name: str, values: Array) -> Array:
        """A copy, since the array is a view of the shard's file."""
        return values.astype(self._dtype) if name in _TOKENS else np.array(values)

    def __repr__(self) -> str:
        # The folder is left out: Grain compares this text with its checkpoints, and the same data may have moved.
        seal = self._manifest["blake3"]
        return (
            f"RandomAccess(split={self._split_name!r}, examples={len(self)}, dtype={self._dtype.name!r}, seal={seal!r})"
        )

    def __reduce__(self) -> Any:
        return _reopened, (self._folder, self._split_name, self._dtype.name, self._manifest["blake3"])


def _reopened(folder: str, split: str, dtype: str, seal: str) -> RandomAccess:
    access = RandomAccess(folder, split, dtype=dtype)
    if access.manifest["blake3"] != seal:
        raise DatasetChanged(f"{folder}: the dataset was replaced since this RandomAccess was pickled; open it again")
    return access
