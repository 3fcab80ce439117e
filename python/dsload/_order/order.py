"""The order of rows, as internal/serve/sampler defines it: pure arithmetic on numpy arrays.

The in-process reader promises the same rows in the same batches as the server for the same parameters. The package
comment of the Go package sampler is normative; tests compare both through testdata/order.json and steps.json and
through a running server.

All arithmetic is on unsigned 64-bit integers that wrap.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Callable, Optional, Union

import numpy as np
import numpy.typing as npt

from .balance import Dealer
from .mix import Mix

U64 = npt.NDArray[np.uint64]
I64 = npt.NDArray[np.int64]

_MASK = (1 << 64) - 1
_GOLDEN = 0x9E3779B97F4A7C15
_BLOCK_ROWS = 256
_FULL, _BLOCK, _MIX, _GROUP, _CHANGE, _PACK = 1, 2, 3, 4, 5, 6

# Positions are computed in runs of this length, so that numpy's cost per call is shared.
_RUN = 4096


def _mix64(z: int) -> int:
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & _MASK
    return z ^ (z >> 31)


def _fold(h: int, v: int) -> int:
    return _mix64(((h ^ v) + _GOLDEN) & _MASK)


def _key(*values: int) -> int:
    h = 0
    for v in values:
        h = _fold(h, v & _MASK)
    return h


def _mix64_array(z: U64) -> U64:
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    out: U64 = z ^ (z >> np.uint64(31))
    return out


class _Permutation:
    """A keyed bijection of [0, n): a Feistel network over a × b cells with additive rounds and cycle walking."""

    def __init__(self, n: int, key: int) -> None:
        self.n = n
        rounds = 8 if n >= 1 << 20 else 16
        root = math.isqrt(n)
        self._a = root if root * root >= n else root + 1
        self._b = -(-n // self._a)
        self._keys = [np.uint64(_fold(key, t + 1)) for t in range(rounds)]

    def at(self, i: U64) -> U64:
        """Where each of `i`, all below n, goes."""
        if self.n <= 1:
            return i
        out = self._once(i)
        beyond = np.flatnonzero(out >= self.n)
        while len(beyond):
            out[beyond] = self._once(out[beyond])
            beyond = beyond[out[beyond] >= self.n]
        return out

    def _once(self, i: U64) -> U64:
        a, b, high = np.uint64(self._a), np.uint64(self._b), np.uint64(32)
        left, right = i % a, i // a
        for even, odd in zip(self._keys[::2], self._keys[1::2]):
            left = left + (((_mix64_array(right ^ even) >> high) * a) >> high)
            left = np.where(left >= a, left - a, left)
            right = right + (((_mix64_array(left ^ odd) >> high) * b) >> high)
            right = np.where(right >= b, right - b, right)
        out: U64 = right * a + left
        return out


class _SourceOrder:
    """The order of one source through its own epochs."""

    def __init__(self, rows: int, number: int, seed: int, shuffle: str) -> None:
        self._rows, self._number, self._seed, self._shuffle = rows, number, seed, shuffle
        self._epoch = -1

    def at(self, position: I64) -> I64:
        """The row at each of the source's own positions."""
        if self._shuffle == "none":
            return position % self._rows
        out = np.empty_like(position)
        epochs = position // self._rows
        for epoch in np.unique(epochs).tolist():
            here = epochs == epoch
            out[here] = self._within(epoch, (position[here] % self._rows).astype(np.uint64)).astype(np.int64)
        return out

    def _within(self, epoch: int, i: U64) -> U64:
        if epoch != self._epoch:
            self._begin(epoch)
        if self._shuffle == "full":
            return self._permutation.at(i)
        block = np.uint64(_BLOCK_ROWS)
        lacks = self._permutation.n * _BLOCK_ROWS - self._rows
        # The short block may be in the middle: positions after it are shifted by the rows that it lacks.
        begin = self._short * _BLOCK_ROWS
        after = i >= np.uint64(begin + _BLOCK_ROWS - lacks)
        shifted = np.where(after & (self._short < self._permutation.n), i + np.uint64(lacks), i)
        out: U64 = self._permutation.at(shifted // block) * block + shifted % block
        return out

    def _begin(self, epoch: int) -> None:
        self._epoch = epoch
        if self._shuffle == "full":
            self._permutation = _Permutation(self._rows, _key(self._seed, _FULL, self._number, epoch))
            return
        blocks = -(-self._rows // _BLOCK_ROWS)
        self._permutation = _Permutation(blocks, _key(self._seed, _BLOCK, self._number, epoch))
        self._short = blocks
        if self._rows % _BLOCK_ROWS:
            order = self._permutation.at(np.arange(blocks, dtype=np.uint64))
            self._short = int(np.flatnonzero(order == blocks - 1)[0])


# Fills in the number of tokens of (sources, rows).
Lengths = Callable[[I64, I64], npt.NDArray[np.int64]]


class Order:
    """Maps positions (row numbers that continue through all epochs) to (source, row).

    rows: examples of each source; weights, changes: of a mix (_mix), ignored for a single source; lengths: called only
    for bucketing.
    """

    def __init__(
        self,
        rows: Sequence[int],
        *,
        weights: Optional[Sequence[float]] = None,
        changes: Sequence[tuple[int, Sequence[float]]] = (),
        shuffle: str = "full",
        seed: int = 0,
        bucket: int = 0,
        group: int = 256,
        lengths: Optional[Lengths] = None,
    ) -> None:
        self.rows = sum(rows)
        self.shuffle, self.seed = shuffle, seed & _MASK
        self._seed, self._group = seed & _MASK, min(group or 256, bucket or 256)
        self._bucket = -(-bucket // self._group) * self._group  # windows of whole groups
        self._lengths = lengths
        self._sources = [_SourceOrder(n, s, self._seed, shuffle) for s, n in enumerate(rows)]
        self._window = -1
        self._held: tuple[I64, I64] = (np.empty(0, np.int64), np.empty(0, np.int64))
        if len(rows) > 1:
            self._mix = Mix(weights if weights is not None else [1.0] * len(rows), changes, self.rows)

    def at(self, start: int, n: int) -> tuple[I64, I64]:
        """(sources, rows) of the n positions from `start` on."""
        if self._bucket == 0:
            return self._shuffled(np.arange(start, start + n, dtype=np.int64))
        sources, rows = [], []
        while n > 0:
            first = self._seek(start)
            k = min(n, first + len(self._held[0]) - start)
            sources.append(self._held[0][start - first : start - first + k])
            rows.append(self._held[1][start - first : start - first + k])
            start, n = start + k, n - k
        if not rows:
            return np.empty(0, np.int64), np.empty(0, np.int64)
        return np.concatenate(sources), np.concatenate(rows)

    def _shuffled(self, position: I64) -> tuple[I64, I64]:
        if len(self._sources) == 1:
            return np.zeros(len(position), np.int64), self._sources[0].at(position)
        sources, places = self._mixed(position)
        rows = np.empty_like(position)
        for s, source in enumerate(self._sources):
            here = sources == s
            if here.any():
                rows[here] = source.at(places[here])
        return sources, rows

    def _mixed(self, position: I64) -> tuple[I64, I64]:
        """The source of each position, and the index of the position among the source's."""
        sources, places = np.empty_like(position), np.empty_like(position)
        done = 0
        by_position = np.argsort(position, kind="stable")
        ordered = position[by_position]
        while done < len(ordered):
            w = self._mix.window(int(ordered[done]))
            key = _key(self._seed, _CHANGE, w.start) if w.changes else _key(self._seed, _MIX, w.start // w.rows)
            permutation = _Permutation(w.rows, key)
            slots = np.repeat(np.arange(len(w.shares)), w.shares)
            source = slots[permutation.at(np.arange(w.rows, dtype=np.uint64)).astype(np.int64)]
            before = np.empty(w.rows, np.int64)
            for s in range(len(self._sources)):
                here = source == s
                before[here] = np.arange(int(here.sum()))
            end = int(np.searchsorted(ordered, w.start + w.rows))
            to, place = by_position[done:end], ordered[done:end] - w.start
            sources[to] = source[place]
            places[to] = np.asarray(w.before)[source[place]] + before[place]
            done = end
        return sources, places

    def _seek(self, position: int) -> int:
        """Sets the current window to the one that holds `position`; returns its first position."""
        epoch, i = divmod(position, self.rows)
        number = i // self._bucket
        start = epoch * self.rows + number * self._bucket
        if start == self._window:
            return start
        assert self._lengths is not None
        n = min(self._bucket, (epoch + 1) * self.rows - start)
        sources, rows = self._shuffled(np.arange(start, start + n, dtype=np.int64))
        by_length = np.argsort(self._lengths(sources, rows), kind="stable")
        whole = n // self._group
        permutation = _Permutation(max(whole, 1), _key(self._seed, _GROUP, epoch, number))
        order = permutation.at(np.arange(whole, dtype=np.uint64)).astype(np.int64)
        groups = by_length[: whole * self._group].reshape(whole, self._group)
        picked = np.concatenate([groups[order].ravel(), by_length[whole * self._group :]])
        self._held, self._window = (sources[picked], rows[picked]), start
        return start


FILLER = -1  # the position of a row that only keeps a rank in step with the others, and must not count


@dataclass(frozen=True)
class Step:
    """One rank's rows of a step: their positions in the order (or FILLER), the rows, and the position after the
    step."""

    positions: I64
    sources: I64
    rows: I64
    next: int


@dataclass(frozen=True)
class StepOptions:
    """How an order is dealt; see the feed's parameters of the same names. fixed_length: 0, or the length of every
    batch."""

    batch_size: int = 32
    max_tokens: int = 0
    pad_to_multiple_of: int = 1
    fixed_length: int = 0
    rank: int = 0
    world: int = 1
    tail: str = "keep"
    balance: str = "none"
    epochs: int = 1
    start: int = 0

    def padded(self, n: int) -> int:
        if self.fixed_length:
            return max(n, self.fixed_length)
        return -(-n // self.pad_to_multiple_of) * self.pad_to_multiple_of

    def share(self, n: int) -> tuple[int, int, bool]:
        """Which of the last n rows of an epoch the rank gets under tail="once": (the first, how many, whether it also
        gets a FILLER)."""
        each, more = divmod(n, self.world)
        return each * self.rank + min(self.rank, more), each + (self.rank < more), 0 < more <= self.rank


class TooLong(ValueError):
    """A row that exceeds the token budget by itself."""


_MOST_EMPTY = 16  # epochs without rows for a rank before giving up: under a token budget epochs differ


class EmptyEpoch(Exception):
    """Epochs have no rows for this rank: their rows make no whole step under tail="drop", or an endless stream would
    never yield a row."""

    def __init__(self, rows: int, options: StepOptions) -> None:
        if options.tail == "drop":
            ranks = f" of {options.world} ranks" if options.world > 1 else ""
            super().__init__(
                f"the {rows} rows of an epoch do not make one whole step{ranks}, and tail=drop drops the rest"
            )
        else:
            super().__init__(
                f"the {rows} rows of an epoch have none for rank {options.rank} of {options.world}, and the stream has "
                "no end"
            )


def steps(order: Order, options: StepOptions, lengths: Lengths) -> Iterator[Step]:
    """The steps that have rows for this rank, from options.start to the end of the last epoch."""
    position = options.start
    end = options.epochs * order.rows if options.epochs else 1 << 60
    dealer: Union[_ByRows, Balanced]
    if options.balance != "none" and options.world > 1:
        dealer = Balanced(order, options, lengths)
    else:
        dealer = _ByTokens(order, options, lengths) if options.max_tokens else _ByRows(order, options)
    dealt, empty = False, 0
    while position < end:
        epoch_end = (position // order.rows + 1) * order.rows
        positions, position = dealer.deal(position, epoch_end)
        if len(positions):
            sources, rows = dealer.look_up(positions)
            dealt = True
            yield Step(positions, sources, rows, position)
        elif not dealt and position % order.rows == 0 and position - options.start >= order.rows:
            empty += 1
            certain = not options.max_tokens or empty >= _MOST_EMPTY or position >= end
            if certain and (options.tail == "drop" or not options.epochs):
                raise EmptyEpoch(order.rows, options)


class _ByRows:
    def __init__(self, order: Order, options: StepOptions) -> None:
        self._order, self._options = order, options
        self._from, self._run = 0, (np.empty(0, np.int64), np.empty(0, np.int64))
        self._step = 0  # where the last step with a FILLER begins

    def deal(self, position: int, epoch_end: int) -> tuple[I64, int]:
        o = self._options
        step = o.batch_size * o.world
        if position + step > epoch_end and o.tail == "drop":
            return np.empty(0, np.int64), epoch_end
        if position + step > epoch_end and o.tail == "once":
            first, n, fill = o.share(epoch_end - position)
            return self._filled(
                np.arange(position + first, position + first + n, dtype=np.int64), fill, position
            ), epoch_end
        begin = position + o.batch_size * o.rank
        positions = np.arange(begin, begin + o.batch_size, dtype=np.int64)
        if o.tail == "pad":
            rows = self._order.rows
            beyond = positions >= epoch_end
            positions[beyond] = epoch_end - rows + (positions[beyond] - epoch_end) % rows
        else:
            positions = positions[positions < epoch_end]
        return positions, min(position + step, epoch_end)

    def _filled(self, positions: I64, fill: bool, step: int) -> I64:
        """The positions, and one more that stands for a FILLER, if fill: it repeats the first row of the step."""
        self._step = step
        return np.append(positions, FILLER) if fill else positions

    def look_up(self, positions: I64) -> tuple[I64, I64]:
        positions = np.where(positions == FILLER, self._step, positions)
        first, last = int(positions[0]), int(positions[-1])
        if last - first + 1 != len(positions) or (np.diff(positions) != 1).any():  # wrapped around by pad
            pairs = [self._order.at(int(p), 1) for p in positions]
            return np.concatenate([s for s, _ in pairs]), np.concatenate([r for _, r in pairs])
        if first < self._from or last >= self._from + len(self._run[0]):
            self._from, self._run = first, self._order.at(first, max(_RUN, len(positions)))
        a = first - self._from
        return self._run[0][a : a + len(positions)], self._run[1][a : a + len(positions)]


class _ByTokens(_ByRows):
    """Cuts `world` consecutive batches, each as long as the budget allows; every rank computes the same cuts."""

    def __init__(self, order: Order, options: StepOptions, lengths: Lengths) -> None:
        super().__init__(order, options)
        self._lengths = lengths
        self._known_from, self._known = 0, np.empty(0, np.int64)

    def deal(self, position: int, epoch_end: int) -> tuple[I64, int]:
        batches, following = self.deal_all(position, epoch_end)
        rank = self._options.rank
        if rank < len(batches):
            return batches[rank], following
        return self._filled(np.empty(0, np.int64), bool(batches) and self._options.tail == "once", position), following

    def deal_all(self, position: int, epoch_end: int) -> tuple[list[I64], int]:
        """The positions of the ranks' batches; later ranks may have none."""
        o, p = self._options, position
        batches: list[I64] = []
        for _ in range(o.world):
            n, whole = self._cut(p, epoch_end - p)
            if not whole and o.tail == "drop":
                return [], epoch_end
            if n == 0:
                if o.tail == "pad":
                    self._pad(batches, epoch_end)
                break
            batches.append(np.arange(p, p + n, dtype=np.int64))
            p += n
        return batches, p

    def _pad(self, batches: list[I64], epoch_end: int) -> None:
        i = 0
        while len(batches) < self._options.world:
            p = epoch_end - self._order.rows + i % self._order.rows
            n, _ = self._cut(p, epoch_end - p)
            batches.append(np.arange(p, p + n, dtype=np.int64))
            i += n

    def _cut(self, p: int, limit: int) -> tuple[int, bool]:
        """(how many of the rows from p on, at most `limit`, fit one batch; False if the limit ended it)."""
        o, n, longest = self._options, 0, 0
        while n < o.batch_size:
            if n >= limit:
                return n, False
            longest = max(longest, self._length(p + n))
            if o.padded(longest) * (n + 1) > o.max_tokens:
                if n == 0:
                    raise TooLong(f"row {p} has {longest} tokens, more than max_tokens {o.max_tokens} holds")
                return n, True
            n += 1
        return n, True

    def _length(self, p: int) -> int:
        i = p - self._known_from
        if not 0 <= i < len(self._known):
            sources, rows = self._order.at(p, _RUN)
            self._known_from, self._known, i = p, self._lengths(sources, rows), 0
        return int(self._known[i])


class Balanced:
    """Deals the rows of a step by cost; every rank computes the same deal."""

    def __init__(self, order: Order, options: StepOptions, lengths: Lengths) -> None:
        self._order, self._options, self._lengths = order, options, lengths
        self._by_tokens = _ByTokens(order, options, lengths)
        step = replace(options, batch_size=options.batch_size * options.world, rank=0, world=1)
        self._by_rows = _ByRows(order, step)
        self._sources, self._rows = np.empty(0, np.int64), np.empty(0, np.int64)

    def deal(self, position: int, epoch_end: int) -> tuple[I64, int]:
        o = self._options
        if o.max_tokens:
            batches, following = self._by_tokens.deal_all(position, epoch_end)
            whole = np.concatenate(batches) if batches else np.empty(0, np.int64)
        else:
            whole, following = self._by_rows.deal(position, epoch_end)
        groups = min(o.world, len(whole))
        if o.rank >= groups and (not groups or o.tail != "once"):
            return np.empty(0, np.int64), following
        sources, rows = self._by_rows.look_up(whole)
        if o.rank >= groups:
            self._sources, self._rows = sources[:1], rows[:1]
            return np.array([FILLER], np.int64), following
        lengths = self._lengths(sources, rows).tolist()
        group_of = Dealer(lengths, groups, o.balance, o.padded, o.batch_size, o.max_tokens).deal()
        turn = _mix64(position) % groups
        mine = (np.asarray(group_of) + turn) % groups == o.rank
        self._sources, self._rows = sources[mine], rows[mine]
        return whole[mine], following

    def look_up(self, positions: I64) -> tuple[I64, I64]:
        """The rows of the last deal."""
        return self._sources, self._rows
