"""One shard, read without a server and checked as a server checks it.

The file must have the manifest's size, and its footer the manifest's checksum; both are checked whenever the file is
opened. When a record batch is first touched, it is compared with its CRC-32 in the footer, and its ids, offsets and
lengths with what the manifest allows.
"""

from __future__ import annotations

import mmap
import os
import struct
import zlib
from collections.abc import Iterator
from typing import Any, NoReturn, Optional, Union

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from .._order.order import I64
from ..errors import Corrupt
from .blake3 import hexdigest
from .manifest import FORMAT_VERSION, open_regular, read_seal

Array = npt.NDArray[Any]
Column = tuple[Any, Any]  # offsets (None for a column of numbers) and values: numpy's, or pyarrow's if they are bits

_MAGIC = b"ARROW1"
_END_OF_STREAM = b"\xff\xff\xff\xff\x00\x00\x00\x00"
_BLOCK = struct.Struct("<qi4xq")  # offset, bytes of metadata, bytes of body
_u16 = struct.Struct("<H").unpack_from
_i32 = struct.Struct("<i").unpack_from
_u32 = struct.Struct("<I").unpack_from


class Shard:
    """A shard by its entry in the manifest. It is opened when a row is read, and may be closed and opened again."""

    def __init__(self, folder: str, manifest: dict[str, Any], split: dict[str, Any], entry: dict[str, Any]) -> None:
        self.path = os.path.join(folder, entry["name"])
        self._folder, self._manifest, self._split, self._entry = folder, manifest, split, entry
        self._identity: Optional[tuple[int, ...]] = None  # of the file whose footer was compared
        self._checked = bytearray()  # a byte per record batch: whether it has been checked
        self._blocks: list[tuple[int, int, int]] = []  # first byte, end and CRC-32 of each record batch
        self._file: Any = None
        self._map: Optional[mmap.mmap] = None
        self.first: I64 = np.zeros(0, np.int64)  # the first row of each record batch, and the number of rows

    def bad(self, what: str) -> NoReturn:
        if read_seal(self._folder) != self._manifest["blake3"]:
            raise Corrupt(
                f"{self._folder}: the dataset was replaced since it was opened; open it again ({self.path}: {what})"
            )
        raise Corrupt(f"{self.path}: {what}; `dsload verify` names the damage")

    def check_present(self) -> None:
        """Checks that the file exists with its size."""
        try:
            info = os.stat(self.path)
        except OSError as error:
            self.bad(str(error))
        if not os.path.isfile(self.path):
            self.bad("not a regular file")
        if info.st_size != self._entry["bytes"]:
            self.bad(f"{info.st_size} bytes, the manifest says {self._entry['bytes']}")

    def open(self) -> None:
        if self._file is not None:
            return
        try:
            fd = open_regular(self.path)
        except (OSError, Corrupt) as error:
            self.bad(str(error))
        try:
            info = os.fstat(fd)
            if info.st_size != self._entry["bytes"]:
                self.bad(f"{info.st_size} bytes, the manifest says {self._entry['bytes']}")
            data = mmap.mmap(fd, info.st_size, access=mmap.ACCESS_READ)
        finally:
            os.close(fd)
        identity = (info.st_dev, info.st_ino, info.st_size, info.st_mtime_ns, info.st_ctime_ns)
        same, self._identity = identity == self._identity, None
        try:
            counts = self._read_footer(data, same)
            file = pa.ipc.open_file(pa.BufferReader(pa.py_buffer(data)))
        except (OSError, pa.ArrowException, struct.error, IndexError, ValueError) as error:
            self.bad(str(error))
        self._check_schema(file.schema)
        if file.num_record_batches != len(counts) or sum(counts) != self._entry["rows"] or min(counts, default=0) < 1:
            self.bad(f"{sum(counts)} rows, the manifest says {self._entry['rows']}")
        if not same:
            self._checked = bytearray(len(counts))
        self.first = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
        self._file, self._map, self._identity = file, data, identity

    def close(self) -> None:
        """Releases the file. Arrays that were returned keep their memory."""
        self._file = self._map = None

    def _check_schema(self, schema: pa.Schema) -> None:
        have = self._manifest["schema"]
        ids = pa.uint16() if have["vocab_size"] <= 1 << 16 else pa.int32()
        lists = [("input_ids", ids), ("labels", ids), ("loss_mask", pa.bool_()), ("segments", pa.int32())]
        want = [(n, pa.list_(pa.field("item", t))) for n, t in lists if n == "input_ids" or have[n]] + [
            ("document", pa.int64()),
            ("part", pa.int32()),
        ]
        try:
            names = [f.name for f in schema]
        except UnicodeDecodeError:
            self.bad("the name of a column is not UTF-8")
        if (
            list(zip(names, schema.types)) != want
            or (schema.metadata or {}).get(b"dsload.format") != b"%d" % FORMAT_VERSION
        ):
            self.bad("its schema is not the manifest's")

    def _read_footer(self, data: mmap.mmap, same: bool) -> list[int]:
        """The rows of each record batch. Stores their offsets and checksums."""
        end = len(data) - 10
        start = end - _u32(data, end)[0]
        stop = start - len(_END_OF_STREAM)  # where the record batches end
        if data[-len(_MAGIC) :] != _MAGIC or stop < 8 or data[stop:start] != _END_OF_STREAM:
            self.bad("not the end of a shard")
        if same:
            return [int(n) for n in np.diff(self.first)]
        if hexdigest(data[stop:]) != self._entry["footer"]:
            self.bad("its footer does not have the manifest's checksum")
        blocks, words = _footer(data[start:end])
        rows, crcs = _numbers(words[b"dsload.batch_rows"], 4), _numbers(words[b"dsload.batch_crc32"], 8)
        at = blocks[0][0]
        if zlib.crc32(memoryview(data)[:at]) != int(words[b"dsload.head_crc32"], 16):
            self.bad("damaged before its first record batch")
        self._blocks = []
        for (place, metadata, body), crc in zip(blocks, crcs):
            if place != at or metadata < 0 or body < 0:
                self.bad("record batches that are not consecutive")
            at += metadata + body
            self._blocks.append((place, at, crc))
        if at != stop or not len(blocks) == len(rows) == len(crcs):
            self.bad("a footer that contradicts itself")
        return rows

    def columns(self, batch: int) -> dict[str, Column]:
        """The columns of a record batch, as views of the mapped file."""
        self.open()
        if not self._checked[batch]:
            assert self._map is not None
            start, end, crc = self._blocks[batch]
            have = zlib.crc32(memoryview(self._map)[start:end])
            if have != crc:
                rows = f"rows {self.first[batch]} to {self.first[batch + 1] - 1}"
                self.bad(
                    f"byte {start}: record batch {batch} ({rows}) has the CRC-32 {have:08x}, the footer says {crc:08x}"
                )
        columns: dict[str, Column] = {}
        try:
            record = self._file.get_batch(batch)
            record.validate()
            for name in ("input_ids", "labels", "loss_mask", "segments"):
                if name in record.schema.names:
                    column = record.column(name)
                    values = column.values
                    columns[name] = (
                        column.offsets.to_numpy(),
                        values if pa.types.is_boolean(values.type) else values.to_numpy(),
                    )
            for name in ("document", "part"):
                columns[name] = None, record.column(name).to_numpy()
        except (OSError, pa.ArrowException) as error:
            self.bad(f"record batch {batch}: {error}")
        if not self._checked[batch]:
            self._check_rows(batch, record.num_rows, columns)
            self._checked[batch] = 1
        return columns

    def _check_rows(self, batch: int, rows: int, columns: dict[str, Column]) -> None:
        """Checks offsets, lengths and ids against the manifest."""
        if rows != self.first[batch + 1] - self.first[batch]:
            self.bad(f"record batch {batch}: {rows} rows")
        least, most = self._split["min_length"], self._split["max_length"]
        limits = {
            "input_ids": (least, most),
            "loss_mask": (least, most),
            "labels": (0, self._split["max_labels"]),
            "segments": (1, most),
        }
        vocabulary = self._manifest["schema"]["vocab_size"]
        lengths = {}
        for name, (low, high) in limits.items():
            if name not in columns:
                continue
            offsets, values = columns[name]
            lengths[name] = n = np.diff(offsets)
            if offsets[0] != 0 or offsets[-1] != len(values) or n.min() < low or n.max() > high:
                self.bad(f"record batch {batch}: offsets of {name} that the manifest does not allow")
            if name in ("input_ids", "labels") and len(values) and (values.min() < 0 or values.max() >= vocabulary):
                self.bad(f"record batch {batch}: {name}: id {values.max()} with a vocabulary of {vocabulary}")
        if "loss_mask" in columns and not np.array_equal(lengths["loss_mask"], lengths["input_ids"]):
            self.bad(f"record batch {batch}: loss_mask and input_ids differ in length")
        if "segments" in columns:
            offsets, values = columns["segments"]
            if values.min() < 1 or not np.array_equal(
                np.add.reduceat(values.astype(np.int64), offsets[:-1]), lengths["input_ids"]
            ):
                self.bad(f"record batch {batch}: segments do not add up to the rows' lengths")


def row_of(column: Column, row: int) -> Array:
    """The values of a row."""
    offsets, values = column
    if offsets is None:
        number: Array = values[row]
        return number
    start, end = int(offsets[row]), int(offsets[row + 1])
    if isinstance(values, np.ndarray):
        return values[start:end]
    bits: Array = values.slice(start, end - start).to_numpy(zero_copy_only=False)
    return bits


def _numbers(digits: bytes, width: int) -> list[int]:
    return [int(digits[i : i + width], 16) for i in range(0, len(digits), width)]


def _field(data: bytes, table: int, number: int) -> int:
    """The offset that a field of a flatbuffer's table refers to."""
    fields = table - _i32(data, table)[0]
    at = table + _u16(data, fields + 4 + 2 * number)[0]
    return int(at + _u32(data, at)[0])


def _vector(data: bytes, at: int, size: int) -> Iterator[int]:
    """The offsets of a vector's elements."""
    return iter(range(at + 4, at + 4 + size * _u32(data, at)[0], size))


def _string(data: bytes, at: int) -> bytes:
    return data[at + 4 : at + 4 + _u32(data, at)[0]]


def _footer(data: Union[bytes, bytearray]) -> tuple[list[tuple[int, int, int]], dict[bytes, bytes]]:
    """Blocks and metadata of an Arrow footer whose checksum is right."""
    data = bytes(data)
    root = _u32(data, 0)[0]
    blocks = [_BLOCK.unpack_from(data, at) for at in _vector(data, _field(data, root, 3), _BLOCK.size)]
    words = {}
    for at in _vector(data, _field(data, root, 4), 4):
        pair = at + _u32(data, at)[0]
        words[_string(data, _field(data, pair, 0))] = _string(data, _field(data, pair, 1))
    return blocks, words
