"""The parameter mix: how many of each 1,024 rows come from which dataset, and where that changes.
internal/serve/sampler/doc.go is normative."""

from __future__ import annotations

import bisect
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Optional, Union

_WINDOW = 1024
_MAX_SEGMENTS, _MAX_TEMPERATURE = 64, 8


@dataclass(frozen=True)
class Segment:
    """The weights from row `at` on; None means rows to the power of `temperature`."""

    at: int
    weights: Optional[dict[str, float]]
    temperature: float = 1.0


def parse(mix: str) -> list[Segment]:
    """The segments of a mix. Raises ValueError with the feed's message."""
    out: list[Segment] = []
    for i, text in enumerate(mix.split(";")):
        if i == _MAX_SEGMENTS:
            raise ValueError(f"more than {_MAX_SEGMENTS - 1} changes")
        at = 0
        if i > 0:
            head, colon, rest = text.partition(":")
            if not colon or not head.startswith("at=") or not head[3:].isdigit():
                raise ValueError(f"{text!r} is not at=ROW:NAME=W,…")
            at, text = int(head[3:]), rest
            if at <= out[-1].at:
                raise ValueError(f"at={at} is not after the change before it")
        if text.startswith("temperature:"):
            out.append(Segment(at, None, _temperature(text[len("temperature:") :])))
            continue
        weights: dict[str, float] = {}
        for part in text.split(","):
            name, equals, weight = part.rpartition("=")
            if not equals or not name or not 0 < _number(weight) < float("inf"):
                raise ValueError(f"{part!r} is not name=weight with a weight above 0")
            if name in weights:
                raise ValueError(f"{name!r} is named twice")
            weights[name] = float(weight)
        out.append(Segment(at, weights))
    return out


def check(mix: Union[Mapping[str, float], str, None]) -> None:
    """Raises ValueError, which names the parameter, for an invalid mix."""
    if mix is None:
        return
    if isinstance(mix, str):
        try:
            parse(mix)
        except ValueError as error:
            raise ValueError(f"mix: {error}") from None
        return
    if not isinstance(mix, Mapping):
        raise ValueError(f"mix: {mix!r} is neither {{name: weight}} nor text such as 'a=3,b=1'")
    if not mix:
        raise ValueError("mix: names no dataset")
    for name, weight in mix.items():
        if not _number(weight) > 0 or _number(weight) == float("inf"):
            raise ValueError(f"mix: {name!r} has weight {weight!r}, which is not a number above 0")


def written(mix: Union[Mapping[str, float], str, None]) -> str:
    """The parameter's value."""
    if mix is None or isinstance(mix, str):
        return mix or ""
    return ",".join(f"{name}={float(weight)!r}" for name, weight in mix.items())


def _number(weight: Union[str, float]) -> float:
    """-1 for anything that is not a number."""
    try:
        return float(weight)
    except (TypeError, ValueError):
        return -1.0


def _temperature(text: str) -> float:
    if not 0 <= _number(text) <= _MAX_TEMPERATURE:
        raise ValueError(f"{text!r} is not a temperature from 0 to {_MAX_TEMPERATURE}")
    return float(text)


def named(segments: Sequence[Segment], served: Sequence[str]) -> list[str]:
    """The datasets of a mix, in the order in which it names them."""
    return list(dict.fromkeys(name for s in segments for name in (s.weights if s.weights is not None else served)))


def weights_of(segment: Segment, names: Sequence[str], rows: Sequence[int]) -> list[float]:
    """The weight of each of the datasets `names`, which have `rows` rows."""
    if segment.weights is not None:
        return [segment.weights.get(name, 0.0) for name in names]
    # 12 digits, on which all implementations of powers agree.
    return [float(f"{float(n) ** segment.temperature:.11e}") for n in rows]


def shares(weights: Sequence[float], n: int) -> list[int]:
    """n positions by weight: rounded down, in a whole window at least 1 for a weight above 0; the rest goes to the
    largest remainders."""
    total = 0.0
    for w in weights:
        total += w / len(weights)
    exact = [w / len(weights) / total * n for w in weights]
    out = [max(1, int(e)) if w > 0 and n == _WINDOW else int(e) for e, w in zip(exact, weights)]
    by_remainder = sorted((i for i, w in enumerate(weights) if w > 0), key=lambda i: -(exact[i] - out[i]))
    k = 0
    while sum(out) < n:
        out[by_remainder[k % len(by_remainder)]] += 1
        k += 1
    while sum(out) > n:
        out[out.index(max(out))] -= 1
    return out


@dataclass(frozen=True)
class Window:
    """The positions start … start+rows-1, of which each source has its share. before: the source's rows in all earlier
    windows."""

    start: int
    rows: int
    shares: list[int]
    before: list[int]
    changes: bool


class Mix:
    """The weights of sources and their changes: (position, weights). rows: positions of an epoch."""

    def __init__(self, weights: Sequence[float], changes: Sequence[tuple[int, Sequence[float]]], rows: int) -> None:
        self._rows = rows
        self._from = [0, *(at for at, _ in changes)]
        self._weights = [weights, *(w for _, w in changes)]
        self._shares = [shares(w, _WINDOW) for w in self._weights]

    def window(self, position: int) -> Window:
        """The window that holds a position."""
        if len(self._from) == 1:
            c = position // _WINDOW
            return Window(c * _WINDOW, _WINDOW, self._shares[0], [c * s for s in self._shares[0]], False)
        i = bisect.bisect_right(self._from, position) - 1
        epoch = position // self._rows * self._rows
        begin = max(self._from[i], epoch)
        end = epoch + self._rows
        if i + 1 < len(self._from):
            end = min(end, self._from[i + 1])
        start = begin + (position - begin) // _WINDOW * _WINDOW
        rows = min(_WINDOW, end - start)
        return Window(start, rows, shares(self._weights[i], rows), self._before(start), True)

    def _before(self, start: int) -> list[int]:
        counts = [0] * len(self._weights[0])
        for i, begin in enumerate(self._from):
            end = min(start, self._from[i + 1]) if i + 1 < len(self._from) else start
            if begin >= end:
                break
            head = min(-begin % self._rows, end - begin)
            epochs, tail = divmod(end - begin - head, self._rows)
            for length, times in ((head, 1), (self._rows, epochs), (tail, 1)):
                if length and times:
                    counts = [a + times * b for a, b in zip(counts, self._count(i, length))]
        return counts

    def _count(self, i: int, n: int) -> list[int]:
        rest = shares(self._weights[i], n % _WINDOW)
        return [n // _WINDOW * s + r for s, r in zip(self._shares[i], rest)]
