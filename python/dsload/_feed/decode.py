"""Arrow record batches to arrays, without a copy.

All batches of a stream have the same columns, known from the schema message that pyarrow reads. A record batch's
metadata is a small flatbuffer. The relevant parts (rows, lengths of nodes, positions of buffers) are read with struct,
at a tenth of the cost of a general reader.
Nothing in it is trusted: every length and position is checked against the received message. The metadata depends only
on the batch's shape, so the result is reused for later messages of the same size that begin with the same bytes.
"""

from __future__ import annotations

import struct
from collections.abc import Collection
from dataclasses import dataclass
from typing import Any, Optional

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from .transport import StreamCut

Array = npt.NDArray[Any]

_CONTINUATION = 0xFFFFFFFF
_RECORD_BATCH = 3
_MAX_LAYOUTS = 256  # cached shapes of batches
_DTYPES: dict[str, np.dtype[Any]] = {"int64": np.dtype(np.int64), "int32": np.dtype(np.int32)}
_NARROW_DTYPES = {"uint16": np.dtype(np.uint16), **_DTYPES}

_u16 = struct.Struct("<H").unpack_from
_i32 = struct.Struct("<i").unpack_from
_u32 = struct.Struct("<I").unpack_from
_i64 = struct.Struct("<q").unpack_from
_prefix = struct.Struct("<II").unpack_from


@dataclass(frozen=True)
class _Column:
    name: str
    dtype: np.dtype[Any]
    is_list: bool


@dataclass(frozen=True)
class _Layout:
    """Where the columns are in messages of one size with the same metadata."""

    size: int  # of the message
    columns: list[tuple[str, tuple[int, ...], np.dtype[Any], int]]  # name, shape, type, offset in the message


def _column(field: pa.Field, narrow: bool) -> _Column:
    is_list = pa.types.is_list(field.type)
    kind = str(field.type.value_type if is_list else field.type)
    dtypes = _NARROW_DTYPES if narrow and is_list else _DTYPES
    if kind not in dtypes:
        raise StreamCut(f"column {field.name} has the unknown type {field.type}")
    return _Column(field.name, dtypes[kind], is_list)


class Decoder:
    """Decodes the messages of one stream. metadata: the schema's key and value pairs. keep: the columns to decode, None
    for all. narrow: list columns may be uint16."""

    def __init__(self, schema_message: Array, keep: Optional[Collection[str]] = None, *, narrow: bool = False) -> None:
        try:
            schema = pa.ipc.read_schema(pa.py_buffer(schema_message))
            self.metadata = {k.decode(): v.decode() for k, v in (schema.metadata or {}).items()}
        except Exception as error:  # whatever pyarrow raises for bytes that are not a schema
            raise StreamCut(f"not an Arrow schema: {str(error)[:200]}") from error
        try:
            self._columns = [_column(field, narrow) for field in schema]
        except UnicodeDecodeError as error:  # pyarrow decodes a name when it is asked for it
            raise StreamCut(f"a column whose name is not UTF-8: {error.object[:40]!r}") from error
        self.names = [c.name for c in self._columns]
        self.numbers = [c.name for c in self._columns if not c.is_list]  # the columns with one number per row
        self._keep = frozenset(keep) if keep is not None else None
        self._layouts: dict[bytes, _Layout] = {}
        lists = sum(c.is_list for c in self._columns)
        self._nodes = struct.Struct(f"<{2 * (len(self._columns) + lists)}q")
        self._buffers = struct.Struct(f"<{4 * len(self._columns) + 4 * lists}q")

    def decode(self, message: Array) -> dict[str, Array]:
        """Columns of a record batch: lists as (rows, length) arrays, the others as (rows,); all are views of `message`.

        Returns an empty dict for the end-of-stream marker. Raises StreamCut for anything that does not match the
        schema.
        """
        try:
            return self._decode(message)
        except (struct.error, IndexError) as error:
            raise StreamCut(f"a record batch whose metadata points outside it: {error}") from error

    def _decode(self, message: Array) -> dict[str, Array]:
        data = message.data
        mark, size = _prefix(data)
        if mark != _CONTINUATION:
            raise StreamCut("a chunk that is not an Arrow message")
        if size == 0:
            return {}
        head = bytes(data[: 8 + size])
        layout = self._layouts.get(head)
        if layout is None or layout.size != len(data):
            layout = self._layout(head, len(data))
            if len(self._layouts) >= _MAX_LAYOUTS:
                self._layouts.clear()
            self._layouts[head] = layout
        return {name: np.ndarray(shape, dtype, message, at) for name, shape, dtype, at in layout.columns}

    def _layout(self, head: bytes, size: int) -> _Layout:
        """Reads the metadata in head, prefix included, of a message of the given size."""
        room = size - len(head)
        rows, nodes, buffers = self._metadata(memoryview(head)[8:])
        columns: list[tuple[str, tuple[int, ...], np.dtype[Any], int]] = []
        n = b = 0
        for column in self._columns:
            if nodes[n] != rows or nodes[n + 1] != 0:
                raise StreamCut(f"column {column.name}: {nodes[n]} rows with {nodes[n + 1]} nulls in a batch of {rows}")
            if column.is_list:
                count, b, n = nodes[n + 2], b + 6, n + 4
            else:
                count, b, n = rows, b + 2, n + 2
            at, taken = buffers[b], buffers[b + 1]
            b += 2
            if at < 0 or count < 0 or taken != count * column.dtype.itemsize or at + taken > room:
                raise StreamCut(f"column {column.name}: {count} values in {taken} bytes at {at} of {room}")
            if column.is_list and count % rows:
                raise StreamCut(f"column {column.name}: {count} values do not make {rows} rows of one length")
            if self._keep is None or column.name in self._keep:
                shape = (rows, count // rows) if column.is_list else (rows,)
                columns.append((column.name, shape, column.dtype, len(head) + at))
        return _Layout(size, columns)

    def _metadata(self, data: memoryview) -> tuple[int, tuple[int, ...], tuple[int, ...]]:
        """(rows, nodes as length and nulls, buffers as offset and size) of a Message flatbuffer with a RecordBatch."""
        message = _u32(data, 0)[0]
        fields = message - _i32(data, message)[0]
        if data[message + _u16(data, fields + 6)[0]] != _RECORD_BATCH:
            raise StreamCut("a message that is not a record batch")
        at = message + _u16(data, fields + 8)[0]
        batch = at + _u32(data, at)[0]
        fields = batch - _i32(data, batch)[0]
        rows = _i64(data, batch + _u16(data, fields + 4)[0])[0]
        at = batch + _u16(data, fields + 6)[0]
        nodes = at + _u32(data, at)[0]
        at = batch + _u16(data, fields + 8)[0]
        buffers = at + _u32(data, at)[0]
        if (
            16 * _u32(data, nodes)[0] != self._nodes.size
            or 16 * _u32(data, buffers)[0] != self._buffers.size
            or rows < 1
        ):
            raise StreamCut("a record batch with other columns than its schema")
        return rows, self._nodes.unpack_from(data, nodes + 4), self._buffers.unpack_from(data, buffers + 4)
