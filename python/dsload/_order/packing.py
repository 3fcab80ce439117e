"""Rows packed while they are read, as internal/pack and the packed orders of internal/serve/sampler define them.

A window of a fixed number of rows of the order is packed at a time, from lengths alone. The numbers of packed rows
follow from arithmetic: each window has as many numbers as it could have packed rows at most, and unused numbers are
skipped. So seeking any position costs one window.
"""

from __future__ import annotations

import bisect
from collections import defaultdict, deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Callable, Optional

import numpy as np
import numpy.typing as npt

from .order import _PACK, FILLER, I64, EmptyEpoch, Order, StepOptions, TooLong, _key, _Permutation

Array = npt.NDArray[Any]
Piece = tuple[int, int, int]  # item, first token, tokens

POLICIES = ("none", "wrapped", "bfd", "bfd_split")
ALIASES = {"concat": "wrapped", "bestfit": "bfd"}
MAX_LENGTH = 1 << 20

_ROWS = 256  # about how many rows a window fills, by the mean length
_LEAST_WINDOW, _MOST_WINDOW, _MOST_NUMBERS = 1 << 12, 1 << 17, 1 << 18
_MOST_EMPTY = 16


def pack(policy: str, length: int, lengths: Sequence[int]) -> list[list[Piece]]:
    """Packs items of the given lengths into rows of at most `length` tokens."""
    if policy == "wrapped":
        return _wrap(length, lengths)
    cut = [
        (i, at, min(n - at, length))
        for i, n in enumerate(lengths)
        for at in range(0, n if policy == "bfd_split" else min(n, length), length)
    ]
    cut.sort(key=lambda piece: -piece[2])
    rows: list[list[Piece]] = []
    waiting: dict[int, deque[int]] = defaultdict(deque)  # rows by their free room
    rooms: list[int] = []  # the keys of waiting that have rows, ascending
    for piece in cut:
        at = bisect.bisect_left(rooms, piece[2])
        if at < len(rooms):
            room = rooms[at]
            row = waiting[room].popleft()
            if not waiting[room]:
                del rooms[at]
        else:
            room, row = length, len(rows)
            rows.append([])
        rows[row].append(piece)
        room -= piece[2]
        if room:
            if not waiting[room]:
                bisect.insort(rooms, room)
            waiting[room].append(row)
    return rows


def _wrap(length: int, lengths: Sequence[int]) -> list[list[Piece]]:
    rows: list[list[Piece]] = []
    room = 0
    for i, n in enumerate(lengths):
        at = 0
        while at < n:
            if room == 0:
                rows.append([])
                room = length
            k = min(n - at, room)
            rows[-1].append((i, at, k))
            at, room = at + k, room - k
    return rows


@dataclass(frozen=True)
class PackOptions:
    """tokens: of all sources. longest: length of their longest row."""

    policy: str
    length: int
    tokens: int
    longest: int

    @property
    def numbers_per_row(self) -> int:
        """How many packed rows a row can make at most."""
        return 1 if self.policy == "bfd" else max(1, -(-self.longest // self.length))

    def window(self, rows: int) -> int:
        """How many rows of the order are packed together."""
        want = -(-_ROWS * self.length // max(1, self.tokens // rows))
        most = min(max(want, _LEAST_WINDOW), _MOST_WINDOW, max(1, _MOST_NUMBERS // self.numbers_per_row))
        return 1 << (most - 1).bit_length()


# The number of tokens of the unit that begins with each of (sources, rows).
Units = Callable[[I64, I64], I64]


class Packed:
    """An order of packed rows."""

    def __init__(self, order: Order, options: PackOptions, units: Units) -> None:
        self._order, self._options, self._units = order, options, units
        self._window = options.window(order.rows)
        self.rows = order.rows * options.numbers_per_row  # numbers of rows in an epoch
        self.start = self.end = -1
        self.packed: list[list[Piece]] = []
        self._sources, self._rows = np.empty(0, np.int64), np.empty(0, np.int64)
        self._permutation: Optional[I64] = None

    def seek(self, number: int) -> None:
        """Sets the current window to the one that holds the number of a row."""
        if self.start <= number < self.end:
            return
        numbers_per_row, order, o = self._options.numbers_per_row, self._order, self._options
        epoch, i = divmod(number, self.rows)
        window = i // (self._window * numbers_per_row)
        n = min(self._window, order.rows - window * self._window)
        self._sources, self._rows = order.at(epoch * order.rows + window * self._window, n)
        self.packed = pack(o.policy, o.length, self._units(self._sources, self._rows).tolist())
        self._permutation = None
        if order.shuffle != "none" and o.policy != "wrapped" and self.packed:
            count = len(self.packed)
            permutation = _Permutation(count, _key(order.seed, _PACK, epoch, window))
            self._permutation = permutation.at(np.arange(count, dtype=np.uint64)).astype(np.int64)
        self.start = epoch * self.rows + window * self._window * numbers_per_row
        self.end = self.start + n * numbers_per_row

    def row(self, i: int) -> list[tuple[int, int, int, int]]:
        """The i-th row of the window: pieces as (source, row, first token, tokens)."""
        if self._permutation is not None:
            i = int(self._permutation[i])
        return [(int(self._sources[item]), int(self._rows[item]), at, n) for item, at, n in self.packed[i]]


@dataclass(frozen=True)
class PackedStep:
    """One rank's rows of a step, as in Step; sources and rows are those of each packed row's first piece."""

    positions: I64
    sources: I64
    rows: I64
    next: int
    pieces: list[list[tuple[int, int, int, int]]]


class _Taken:
    """The rows that a rank takes in a step."""

    def __init__(self) -> None:
        self.positions: list[int] = []
        self.pieces: list[list[tuple[int, int, int, int]]] = []


def packed_steps(packed: Packed, options: StepOptions) -> Iterator[PackedStep]:
    """The steps that have rows for this rank, from options.start to the end of the last epoch."""
    dealer = _Dealer(packed, options)
    position, rows = options.start, packed.rows
    end = options.epochs * rows if options.epochs else 1 << 60
    dealt, empty = False, 0
    while position < end:
        mine, position = dealer.step(position, (position // rows + 1) * rows)
        if mine.pieces:
            dealt = True
            yield PackedStep(
                np.array(mine.positions, np.int64),
                np.array([p[0][0] for p in mine.pieces], np.int64),
                np.array([p[0][1] for p in mine.pieces], np.int64),
                position,
                mine.pieces,
            )
        elif not dealt and position % rows == 0 and position - options.start >= rows:
            empty += 1
            if (empty >= _MOST_EMPTY or position >= end) and (options.tail == "drop" or not options.epochs):
                raise EmptyEpoch(rows, options)


class _Dealer:
    def __init__(self, packed: Packed, options: StepOptions) -> None:
        self._packed, self._options = packed, options
        self._at, self._epoch_end = 0, 0

    def step(self, position: int, epoch_end: int) -> tuple[_Taken, int]:
        o, mine, wrapped = self._options, _Taken(), False
        self._at, self._epoch_end = position, epoch_end
        if o.tail == "once" and not o.max_tokens and o.world > 1:
            last = _Taken()
            _, whole = self._batch(last, o.batch_size * o.world)
            if not whole:
                return self._share(last), epoch_end
            self._at = position
        for rank in range(o.world):
            taken = mine if rank == o.rank else _Taken()
            n, whole = self._batch(taken, o.batch_size)
            if not whole and not wrapped and o.tail == "drop":
                return _Taken(), epoch_end
            while o.tail == "pad" and not whole and (n == 0 or not o.max_tokens):
                # Repeat the epoch's rows from the first on. A batch under a budget stays short.
                self._at, wrapped = epoch_end - self._packed.rows, True
                more, whole = self._batch(taken, o.batch_size - n)
                n += more
                if o.max_tokens or not more:
                    break
            if n == 0:
                if o.tail == "once" and rank <= o.rank and rank > 0:
                    mine = self._filler(position)
                break
        return mine, epoch_end if wrapped else self._at

    def _share(self, last: _Taken) -> _Taken:
        """This rank's part of the last rows of an epoch."""
        first, n, fill = self._options.share(len(last.pieces))
        mine = _Taken()
        mine.positions, mine.pieces = last.positions[first : first + n], last.pieces[first : first + n]
        if fill:
            mine.positions, mine.pieces = [*mine.positions, FILLER], [*mine.pieces, last.pieces[0]]
        return mine

    def _filler(self, position: int) -> _Taken:
        """The first row of the step at `position`, as a FILLER."""
        filler, at, self._at = _Taken(), self._at, position
        self._batch(filler, 1)
        filler.positions, self._at = [FILLER], at
        return filler

    def _batch(self, taken: _Taken, limit: int) -> tuple[int, bool]:
        """Takes the rows of one batch, at most `limit`; False if the epoch ended it."""
        packed, o, n, longest = self._packed, self._options, 0, 0
        while n < limit:
            if self._at >= self._epoch_end:
                return n, False
            packed.seek(self._at)
            i = self._at - packed.start
            if i >= len(packed.packed):
                self._at = packed.end
                continue
            pieces = packed.row(i)
            if o.max_tokens:
                longest = max(longest, sum(p[3] for p in pieces))
                if o.padded(longest) * (n + 1) > o.max_tokens:
                    if n == 0:
                        raise TooLong(f"row {self._at} has {longest} tokens, more than max_tokens {o.max_tokens} holds")
                    return n, True
            taken.positions.append(self._at)
            taken.pieces.append(pieces)
            n += 1
            self._at += 1
        if self._at - packed.start >= len(packed.packed) and self._at < packed.end:
            self._at = packed.end
        return n, True


def cut_segments(segments: Array, start: int, n: int) -> Array:
    """The segments of the n tokens from token `start` of a row."""
    ends = np.clip(np.cumsum(segments), start, start + n)
    lengths: Array = np.diff(ends, prepend=start)
    return lengths[lengths > 0]


def varlen(segments: Array) -> tuple[Array, int]:
    """cu_seqlens and max_seqlen of a batch, over the flattened batch, for attention kernels that take sequences of
    different lengths.

    segments: the column of that name, (rows, length): the number of the document at each position. A run of padding is
    a separate sequence.
    """
    rows, length = segments.shape
    flat = segments.reshape(-1)
    begins = np.empty(len(flat), np.bool_)
    np.not_equal(flat[1:], flat[:-1], out=begins[1:])
    begins[::length] = True
    borders = np.append(np.flatnonzero(begins), rows * length).astype(np.int32)
    return borders, int(np.diff(borders).max())
