"""The shards of a split: listed in the manifest, or, where there are very many, in a file of entries of equal length
(shard/FORMAT.md).

Such a file is mapped, so that its entries take no memory; its checksum and every entry are compared when it is opened.
"""

from __future__ import annotations

import mmap
import os
import struct
from typing import Any, Union

import numpy as np
import numpy.typing as npt

from .._order.order import I64
from ..errors import Corrupt
from .blake3 import hexdigest
from .manifest import MAX_SHARD_BYTES, MAX_SHARDS, open_regular

_HEAD = struct.Struct("<8sQ")
_MAGIC = b"DSLSHRD\x01"
_CUT = 1 << 31  # of an entry's number
_ENTRY = np.dtype(
    [
        ("blake3", "V32"),
        ("footer", "V32"),
        ("end", "<i8"),
        ("tokens", "<i8"),
        ("bytes", "<i8"),
        ("part", "<u4"),
        ("number", "<u4"),
    ]
)
_PIECE = 1 << 16  # entries that are looked at together


class HeldShards:
    """The shards that a manifest lists."""

    def __init__(self, split: dict[str, Any]) -> None:
        self._entries = split["shards"]
        self.ends: I64 = np.cumsum([s["rows"] for s in self._entries]).astype(np.int64)

    def __len__(self) -> int:
        return len(self._entries)

    def __getitem__(self, number: int) -> dict[str, Any]:
        entry: dict[str, Any] = self._entries[number]
        return entry


class ListedShards:
    """The shards that a file lists."""

    def __init__(self, folder: str, manifest: dict[str, Any], split: dict[str, Any]) -> None:
        self._name, self._info = split["name"], split["shard_list"]
        self.path = os.path.join(folder, self._info["file"])
        file = next(f for f in manifest["files"] if f["name"] == self._info["file"])
        try:
            fd = open_regular(self.path)
        except OSError as error:
            raise Corrupt(f"{self.path}: {error}; `dsload verify` names what is damaged") from error
        try:
            size = os.fstat(fd).st_size
            if size != file["bytes"]:
                self._bad(f"{size} bytes where the manifest says {file['bytes']}")
            self._map = mmap.mmap(fd, size, access=mmap.ACCESS_READ)
        finally:
            os.close(fd)
        if hexdigest(memoryview(self._map)) != file["blake3"]:
            self._bad("its checksum is not the manifest's")
        if _HEAD.unpack_from(self._map) != (_MAGIC, self._info["shards"]):
            self._bad(f"not the head of a list of {self._info['shards']} shards")
        self._entries = np.frombuffer(self._map, _ENTRY, offset=_HEAD.size)
        self.ends: Union[I64, npt.NDArray[Any]] = self._entries["end"]
        self._check(split, manifest["merged"]["partitions"])

    def _bad(self, what: str) -> None:
        raise Corrupt(f"{self.path}: {what}; `dsload verify` names what is damaged")

    def _check(self, split: dict[str, Any], partitions: int) -> None:
        end, place, tokens, size = 0, -1, 0, 0
        for at in range(0, len(self), _PIECE):
            e = self._entries[at : at + _PIECE]
            part, number = e["part"].astype(np.int64), (e["number"] & (_CUT - 1)).astype(np.int64)
            rows, places = np.diff(e["end"], prepend=end), part * (MAX_SHARDS + 1) + number
            wrong = (
                (rows < 1)
                | (rows > e["bytes"])
                | (e["tokens"] < rows)
                | (e["tokens"] > e["bytes"])
                | (e["bytes"] > MAX_SHARD_BYTES)
            )
            wrong |= (part >= partitions) | (number >= MAX_SHARDS) | (np.diff(places, prepend=place) < 1)
            if wrong.any():
                self._bad(f"entry {at + int(wrong.argmax())}")
            end, place = int(e["end"][-1]), int(places[-1])
            tokens, size = tokens + int(e["tokens"].sum()), size + int(e["bytes"].sum())
        if (end, tokens, size) != (split["examples"], split["tokens"], self._info["bytes"]):
            self._bad(f"{end} rows, {tokens} tokens and {size} bytes, which is not what the manifest says")

    def __len__(self) -> int:
        return int(self._info["shards"])

    def __getitem__(self, number: int) -> dict[str, Any]:
        e = self._entries[number]
        cut = "-cut" if int(e["number"]) & _CUT else ""
        return {
            "name": f"{self._name}-p{int(e['part']):05d}-{int(e['number']) & (_CUT - 1):05d}{cut}.arrow",
            "rows": int(e["end"]) - (int(self.ends[number - 1]) if number else 0),
            "tokens": int(e["tokens"]),
            "bytes": int(e["bytes"]),
            "blake3": e["blake3"].tobytes().hex(),
            "footer": e["footer"].tobytes().hex(),
        }


def shards_of(folder: str, manifest: dict[str, Any], split: dict[str, Any]) -> Union[HeldShards, ListedShards]:
    return ListedShards(folder, manifest, split) if split.get("shard_list") is not None else HeldShards(split)
