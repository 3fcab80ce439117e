"""Deals the rows of a step to ranks by cost. internal/serve/sampler/balance.go is normative. All arithmetic is on
integers, so that every rank and both implementations agree."""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from typing import Callable, Optional

_MAX_SQUARED = 1 << 21
_EVENINGS = 8


def _search(n: int, found: Callable[[int], bool]) -> int:
    """The first of 0 … n-1 for which `found` is true, n if there is none. `found` must stay true from there on."""
    low, high = 0, max(0, n)
    while low < high:
        middle = (low + high) // 2
        if found(middle):
            high = middle
        else:
            low = middle + 1
    return low


class Dealer:
    """Divides rows of these lengths into groups of about equal cost. most_rows and max_tokens bound a group;
    max_tokens=0 means no bound."""

    def __init__(
        self,
        lengths: Sequence[int],
        groups: int,
        mode: str,
        padded: Callable[[int], int],
        most_rows: int,
        max_tokens: int,
    ) -> None:
        self._groups, self._mode, self._padded, self._most_rows, self._max_tokens = (
            groups,
            mode,
            padded,
            most_rows,
            max_tokens,
        )
        self._by_length = sorted(range(len(lengths)), key=lambda i: -lengths[i])
        self._length = [int(lengths[i]) for i in self._by_length]
        self._squares = [0]
        for n in self._length:
            self._squares.append(self._squares[-1] + min(n, _MAX_SQUARED) ** 2)

    def deal(self) -> list[int]:
        """The group of each row."""
        if self._mode == "quadratic" and not self._max_tokens:
            return self._equal_counts()
        return self._runs()

    def _equal_counts(self) -> list[int]:
        """Each row, longest first, goes to the group with the least sum so far among those that are not full."""
        out = [0] * len(self._length)
        n, groups = len(out), self._groups
        heap = [(0, g, n // groups + (g < n % groups)) for g in range(groups)]
        for i, row in enumerate(self._by_length):
            total, group, left = heap[0]
            out[row] = group
            if left == 1:
                heapq.heappop(heap)
            else:
                heapq.heapreplace(heap, (total + self._squares[i + 1] - self._squares[i], group, left - 1))
        return out

    def _cost(self, i: int, j: int) -> int:
        if self._mode == "quadratic":
            return self._squares[j] - self._squares[i]
        return (j - i) * self._padded(self._length[i])

    def _fits(self, i: int, j: int) -> bool:
        if not self._max_tokens:
            return True
        return j - i <= self._most_rows and (j - i) * self._padded(self._length[i]) <= self._max_tokens

    def _runs(self) -> list[int]:
        """Cuts the rows, sorted by length, into runs so that the costliest costs as little as possible, and evens out
        neighbours."""
        groups, n = self._groups, len(self._length)
        low, high = 0, self._cost(0, n) + self._cost(0, 1)
        while low < high:
            middle = (low + high) // 2
            if self._cut(middle) is not None:
                high = middle
            else:
                low = middle + 1
        borders = self._cut(low, exactly=True)
        assert borders is not None
        for _ in range(_EVENINGS):
            before = list(borders)
            for k in range(groups - 1, 0, -1):
                borders[k] = self._border(borders[k - 1], borders[k], borders[k + 1])
            if borders == before:
                break
        out = [0] * n
        for k in range(groups):
            for row in self._by_length[borders[k] : borders[k + 1]]:
                out[row] = k
        if self._mode == "tokens":
            self._lengthen(borders, out)
        return out

    def _cut(self, limit: int, exactly: bool = False) -> Optional[list[int]]:
        """Where runs that cost at most limit begin, each as long as possible, and the end; None if there are too many.
        exactly: make as many as groups."""
        n, i = len(self._length), 0
        borders: list[int] = []
        while i < n:
            if len(borders) == self._groups or self._cost(i, i + 1) > limit:
                return None
            end = n - (self._groups - 1 - len(borders)) if exactly else n
            borders.append(i)
            i = self._longest_run(i, end, limit)
        return [*borders, n]

    def _longest_run(self, i: int, end: int, limit: int) -> int:
        """The end of the longest run from i that costs at most limit."""
        return i + 1 + _search(end - i - 1, lambda k: self._cost(i, i + k + 2) > limit or not self._fits(i, i + k + 2))

    def _border(self, a: int, b: int, c: int) -> int:
        low = a + 1 + _search(b - a - 1, lambda k: self._fits(a + 1 + k, c))
        high = b + 1 + _search(c - b - 1, lambda k: not self._fits(a, b + 1 + k))
        at = low + _search(high - low, lambda k: self._cost(a, low + k) >= self._cost(low + k, c))
        best = b
        for p in (at - 1, at):
            if low <= p < high and max(self._cost(a, p), self._cost(p, c)) < max(
                self._cost(a, best), self._cost(best, c)
            ):
                best = p
        return best

    def _lengthen(self, borders: list[int], out: list[int]) -> None:
        """Swaps the longest row of each run with a longer row of an earlier run, if the run then costs no more than the
        costliest."""
        most = max(self._cost(borders[k], borders[k + 1]) for k in range(self._groups))
        taken = set(borders)
        for k in range(self._groups - 1, 0, -1):
            first, rows = borders[k], borders[k + 1] - borders[k]
            i = self._first_within(first, most // rows)
            while i < first and i in taken:
                i += 1
            if i < first:
                taken.add(i)
                a, b = self._by_length[i], self._by_length[first]
                out[a], out[b] = out[b], out[a]

    def _first_within(self, end: int, length: int) -> int:
        """The first row before `end` that is padded to at most `length`."""
        return _search(end, lambda i: self._padded(self._length[i]) <= length)
