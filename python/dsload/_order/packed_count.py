"""How many rows packing makes of an epoch, from the histogram of lengths in the manifest alone.

The rows of an epoch are packed in windows, and which documents meet in one is known only by their order. So the number
is exact if one window holds the epoch and all lengths are known, and a bound otherwise: one that holds for every way to
divide the documents among windows.

The bound weighs the pieces that are packed. Best fit decreasing opens a row for a piece only where no row has room for
it. So of the rows that pieces longer than 1/(k+1) and at most 1/k of a row open, all but the last hold k of them: such
a piece weighs 1/k. And once a piece of at most 1/K opens a row, all rows before it are fuller than 1 - 1/K: then the
tokens bound their number. A piece counts by the larger of both, for the K that gives the least.
"""

from __future__ import annotations

import bisect
from collections.abc import Iterable, Sequence

from .packing import PackOptions

Bucket = tuple[int, int, int]  # the least length, the rows, and their tokens
Pieces = list[tuple[int, int]]  # lengths, and how many pieces have them

_EXACT = 128  # lengths below have a bucket each; from there on, 64 buckets lead to the next power of two
_MOST_CLASSES = 64


def most_rows(options: PackOptions, rows: int, histogram: Sequence[Bucket]) -> int:
    """The maximum number of packed rows of an epoch of `rows` rows with these lengths: the exact number where that is
    known."""
    windows = -(-rows // options.window(rows))
    length = options.length
    if options.policy == "wrapped":
        return (options.tokens + windows * (length - 1)) // length
    if windows == 1 and all(least * n == tokens or _is_cut(options, least) for least, n, tokens in histogram):
        return best_fit(length, _pieces(options, ((least, n) for least, n, _ in histogram)))
    pieces = _pieces(options, ((_upper(options, bucket), bucket[1]) for bucket in histogram))
    return min(_bound(length, windows, pieces), rows * options.numbers_per_row)


def best_fit(length: int, pieces: Pieces) -> int:
    """How many rows of `length` tokens best fit decreasing makes of the pieces."""
    rows = 0
    room: dict[int, int] = {}  # how many rows have this much room
    rooms: list[int] = []  # the keys of room, ascending

    def add(free: int, count: int) -> None:
        if free and count:
            if free not in room:
                bisect.insort(rooms, free)
            room[free] = room.get(free, 0) + count

    for size, left in sorted(pieces, reverse=True):
        while left:
            at = bisect.bisect_left(rooms, size)
            if at < len(rooms):
                free = rooms.pop(at)
                have = room.pop(free)
            else:
                free, have = length, -(-left // (length // size))
                rows += have
            # A row that took a piece has the least room for the next one, until it has none.
            each = free // size
            full = min(have, left // each)
            add(free - each * size, full)
            left, have = left - full * each, have - full
            if have and left:
                add(free - left * size, 1)
                left, have = 0, have - 1
            add(free, have)
    return rows


def _is_cut(options: PackOptions, least: int) -> bool:
    """Reports whether all rows of a bucket become one piece of a whole row."""
    return options.policy == "bfd" and least >= options.length


def _upper(options: PackOptions, bucket: Bucket) -> int:
    """The longest length that a bucket may hold."""
    least, rows, tokens = bucket
    if least < _EXACT or least * rows == tokens:
        return least
    return min(least + (1 << (least.bit_length() - 7)) - 1, options.longest)


def _pieces(options: PackOptions, lengths: Iterable[tuple[int, int]]) -> Pieces:
    """What is packed of rows of these lengths. If a length is an upper bound, so is what its pieces weigh."""
    counts: dict[int, int] = {}
    for n, rows in lengths:
        whole, rest = divmod(n, options.length)
        if options.policy == "bfd":
            whole, rest = min(whole, 1), 0 if whole else rest
        for size, pieces in ((options.length, whole * rows), (rest, rows)):
            if size and pieces:
                counts[size] = counts.get(size, 0) + pieces
    return list(counts.items())


def _bound(length: int, windows: int, pieces: Pieces) -> int:
    """The maximum number of rows of all windows together."""
    best = float("inf")
    more = 0.0  # for the last rows of the classes below
    for k in range(2, _MOST_CLASSES):
        more += 1 - 1 / (k - 1)
        weight = sum(
            n * max(1 / (length // size) if length // size < k else 0.0, size * k / (length * (k - 1)))
            for size, n in pieces
        )
        best = min(best, weight + windows * max(more, 1))
    return int(best * (1 + 1e-12) + 1e-6)
