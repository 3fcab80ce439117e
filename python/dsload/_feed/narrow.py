"""Batches from what a server sends with wire=narrow: ids as wide as on disk, and no column that follows from others.

A row of 512 tokens then takes 1 KiB on the wire in place of 12. The columns are widened and completed here, by one
operation each on the whole batch. The result equals what the server sends without the parameter.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any, Optional

import numpy as np
import numpy.typing as npt

from .._query import IGNORED_LABEL, Query
from .decode import Decoder
from .transport import StreamCut

Array = npt.NDArray[Any]

_ALIGNMENT = 64
_FEW = 4  # short rows are few if they are at most one in so many


class NarrowDecoder:
    """Decodes the messages of one stream, as Decoder does for complete batches. allocate: gives the memory of a batch's
    list columns; the other columns are views of the message."""

    def __init__(self, schema_message: Array, query: Query, keep: Optional[Collection[str]], allocate: Any) -> None:
        needed = {"input_ids", "length", "row", *keep} if keep is not None else None
        decoder = Decoder(schema_message, needed, narrow=True)
        self._decode, self._allocate, self.numbers = decoder.decode, allocate, decoder.numbers
        sent = [name for name in decoder.names if name not in decoder.numbers]
        if "input_ids" not in sent or "length" not in decoder.numbers or "row" not in decoder.numbers:
            raise StreamCut(f"a stream without rows; it has {', '.join(decoder.names)}")
        lists = ["input_ids", "attention_mask", *(["labels"] if query.labels != "none" else []), *sent]
        lists = list(dict.fromkeys(lists))
        self.names = lists + self.numbers
        self._lists = [name for name in lists if keep is None or name in keep]
        self._rest = [name for name in self.numbers if keep is None or name in keep]
        self._sent = frozenset(sent)
        self._dtype = np.dtype(query.dtype)
        self._left = query.padding_side == "left"
        self._fillers = query.tail_or_default == "once"
        # Of the last shape, since most batches have the same: its columns' places in memory, and lengths unpadded.
        self._shape: tuple[Any, ...] = ()
        self._columns: list[tuple[str, tuple[int, ...], int]] = []
        self._size, self._whole = 0, b""

    def decode(self, message: Array) -> dict[str, Array]:
        """Columns of a record batch, as Decoder.decode returns them."""
        narrow = self._decode(message)
        try:
            return self._complete(narrow) if narrow else {}
        except ValueError as error:  # numpy's
            raise StreamCut(f"columns that do not fit together: {error}") from error

    def _complete(self, narrow: dict[str, Array]) -> dict[str, Array]:
        ids, lengths = narrow["input_ids"], narrow["length"]
        labels = narrow.get("labels", ids)  # targets have a length of their own
        if self._shape != (ids.shape, labels.shape):
            self._plan(ids.shape, labels.shape)
        memory = self._allocate(self._size)
        out = {name: np.ndarray(shape, self._dtype, memory, at) for name, shape, at in self._columns}
        inside, padding = self._padding(lengths, ids.shape[1]) if lengths.tobytes() != self._whole else (None, ())
        for name, column in out.items():
            if name in self._sent:
                column[...] = narrow[name]
            elif name == "attention_mask":
                column[...] = 1 if inside is None else inside
                for place in padding:
                    column[place] = 0
            else:
                column[...] = ids
                if inside is not None:
                    np.copyto(column, IGNORED_LABEL, where=~inside)
                for place in padding:
                    column[place] = IGNORED_LABEL
                if self._fillers:
                    column[narrow["row"] < 0] = IGNORED_LABEL
        for name in self._rest:
            out[name] = narrow[name]
        return out

    def _plan(self, shape: tuple[int, ...], labels: tuple[int, ...]) -> None:
        """Lays out the list columns of batches of a shape in one allocation."""
        self._shape, self._columns, self._size = (shape, labels), [], 0
        for name in self._lists:
            of = labels if name == "labels" else shape
            self._columns.append((name, of, self._size))
            self._size += -(-of[0] * of[1] * self._dtype.itemsize // _ALIGNMENT) * _ALIGNMENT
        self._whole = np.full(shape[0], shape[1], np.int32).tobytes()

    def _padding(self, lengths: Array, width: int) -> tuple[Optional[Array], Sequence[tuple[int, slice]]]:
        """Where the padding is: an array that reports for each element whether it is a token, or for a few short rows
        None and the places of their padding, which cost less."""
        short = np.flatnonzero(lengths < width)
        if _FEW * len(short) <= len(lengths):
            lens = np.maximum(lengths[short], 0).tolist()
            runs = (slice(width - n) if self._left else slice(n, None) for n in lens)
            return None, list(zip(short.tolist(), runs))
        places = np.arange(width, dtype=np.int32)  # in a row, from the side where there is no padding
        return np.less(places[::-1] if self._left else places, lengths[:, None]), ()
