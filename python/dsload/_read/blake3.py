"""BLAKE3 (https://github.com/BLAKE3-team/BLAKE3-specs), for the seals of manifests and the footers of shards.

All chunks of 1 KiB are hashed in parallel, each in a lane of numpy arrays, and so are the nodes of each level of the
tree. That takes a few milliseconds for a few KiB and a second for 64 MiB. The `blake3` package is used if it is
installed.
"""

from __future__ import annotations

import functools
import importlib
import struct
from typing import Any, Optional, Union

import numpy as np
import numpy.typing as npt

Words = npt.NDArray[np.uint32]

_IV = np.array(
    [0x6A09E667, 0xBB67AE85, 0x3C6EF372, 0xA54FF53A, 0x510E527F, 0x9B05688C, 0x1F83D9AB, 0x5BE0CD19], np.uint32
).reshape(8, 1)
_PERMUTATION = [2, 6, 3, 10, 7, 0, 4, 13, 1, 11, 12, 5, 9, 14, 15, 8]
_CHUNK, _BLOCK = 1024, 64
_CHUNK_START, _CHUNK_END, _PARENT, _ROOT = 1, 2, 4, 8
_LANES = 8192  # chunks at once, so that 64 MiB take only a few times 8 MiB of memory besides


def _schedule() -> list[list[list[int]]]:
    """For each round, the words for the columns and then the diagonals: for the first and second addition of each."""
    rounds, order = [], list(range(16))
    for _ in range(7):
        rounds.append([order[0:8:2], order[1:8:2], order[8:16:2], order[9:16:2]])
        order = [order[i] for i in _PERMUTATION]
    return rounds


_ROUNDS = _schedule()


def _rotate(x: Words, n: int) -> Words:
    out: Words = (x >> np.uint32(n)) | (x << np.uint32(32 - n))
    return out


def _mix(a: Words, b: Words, c: Words, d: Words, x: Words, y: Words) -> tuple[Words, Words, Words, Words]:
    a = a + b + x
    d = _rotate(d ^ a, 16)
    c = c + d
    b = _rotate(b ^ c, 12)
    a = a + b + y
    d = _rotate(d ^ a, 8)
    c = c + d
    return a, _rotate(b ^ c, 7), c, d


def _compress(cv: Words, block: Words, counter: Words, length: Words, flags: Words) -> Words:
    """The chaining values, 8 words per lane, after a block of 16 words."""
    a, b = cv[:4], cv[4:]
    c = np.broadcast_to(_IV[:4], a.shape)
    d = np.stack([counter, np.zeros_like(counter), length, flags])
    for x0, y0, x1, y1 in _ROUNDS:
        a, b, c, d = _mix(a, b, c, d, block[x0], block[y0])
        b, c, d = b[[1, 2, 3, 0]], c[[2, 3, 0, 1]], d[[3, 0, 1, 2]]
        a, b, c, d = _mix(a, b, c, d, block[x1], block[y1])
        b, c, d = b[[3, 0, 1, 2]], c[[2, 3, 0, 1]], d[[1, 2, 3, 0]]
    return np.concatenate([a ^ c, b ^ d])


def _leaves(data: memoryview, first: int, alone: bool) -> Words:
    """The chaining values of the chunks of data; first is the number of the first chunk. alone: the only chunk is the
    root."""
    count = max(1, -(-len(data) // _CHUNK))
    padded = np.zeros(count * _CHUNK, np.uint8)
    padded[: len(data)] = np.frombuffer(data, np.uint8)
    words = padded.view("<u4").astype(np.uint32).reshape(count, 16, 16).transpose(1, 2, 0)  # block, word, lane
    last = len(data) - (count - 1) * _CHUNK  # bytes of the last chunk
    blocks = max(1, -(-last // _BLOCK))  # of the last chunk
    counter = np.arange(first, first + count, dtype=np.uint32)
    cv = np.repeat(_IV, count, axis=1)
    for i in range(16 if count > 1 else blocks):
        length = np.full(count, _BLOCK, np.uint32)
        flags = np.full(count, (_CHUNK_START if i == 0 else 0) | (_CHUNK_END if i == 15 else 0), np.uint32)
        if i == blocks - 1:
            length[-1] = last - i * _BLOCK
            flags[-1] = (_CHUNK_START if i == 0 else 0) | _CHUNK_END | (_ROOT if alone else 0)
        after = _compress(cv, words[i], counter, length, flags)
        if i >= blocks:
            after[:, -1] = cv[:, -1]  # the last chunk has ended
        cv = after
    return cv


def _digest(data: memoryview) -> bytes:
    chunks = max(1, -(-len(data) // _CHUNK))
    cv = np.concatenate(
        [_leaves(data[at * _CHUNK : (at + _LANES) * _CHUNK], at, chunks == 1) for at in range(0, chunks, _LANES)],
        axis=1,
    )
    while (count := cv.shape[1]) > 1:
        pairs = count // 2
        blocks = np.concatenate([cv[:, 0 : 2 * pairs : 2], cv[:, 1 : 2 * pairs : 2]])
        flags = np.full(pairs, _PARENT | (_ROOT if count == 2 else 0), np.uint32)
        start = np.repeat(_IV, pairs, axis=1)
        parents = _compress(start, blocks, np.zeros(pairs, np.uint32), np.full(pairs, _BLOCK, np.uint32), flags)
        cv = np.concatenate([parents, cv[:, 2 * pairs :]], axis=1)  # an odd one moves up unchanged
    return struct.pack("<8I", *cv[:, 0].tolist())


@functools.cache  # looking for what is not installed takes a millisecond
def _package() -> Optional[Any]:
    try:
        return importlib.import_module("blake3").blake3
    except ImportError:
        return None


def hexdigest(data: Union[bytes, memoryview]) -> str:
    """The BLAKE3 of data, 64 hexadecimal digits."""
    if (package := _package()) is not None:
        return str(package(data).hexdigest())
    return _digest(memoryview(data)).hex()
