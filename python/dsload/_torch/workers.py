"""Sharing an iteration among the workers of a torch DataLoader.

Worker w of W yields the batches w, w + W, w + 2W … of the iteration, which DataLoader puts back in order. A worker's
position is the row after its last batch, and how many of the following batches belong to others. After any batch of its
own that is W − 1, so a worker that continues from a state (torchdata's StatefulDataLoader keeps one per worker) needs
only that row.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, Callable, Optional

from .._query import Query

Batch = dict[str, Any]
Stream = Callable[[Query], Iterator[Batch]]

_SHAPE = ("batch_size", "max_tokens", "world", "tail", "epochs")


class Share:
    """The batches of one worker, as arrays.

    query: what is iterated. rows: of an epoch. start: the row where the worker begins. end: the row where the iteration
    ends, None for never. number: how many batches from `start` on belong to other workers. stream: returns the batches
    of a query.
    """

    def __init__(
        self, query: Query, rows: int, start: int, end: Optional[int], number: int, workers: int, stream: Stream
    ) -> None:
        self._query, self._rows, self._stream = query, rows, stream
        self.start, self.end, self._number, self._workers = start, end, number, workers

    def state(self) -> dict[str, Any]:
        """What `resumed` continues from."""
        return {"number": self._number, "workers": self._workers, "end": self.end, **_shape(self._query)}

    @classmethod
    def resumed(
        cls, query: Query, rows: int, start: int, state: Mapping[str, Any], workers: int, stream: Stream
    ) -> Share:
        """The rest of a worker's batches. Raises ValueError if they are not among those that this loader's workers
        yield together."""
        for name, now in {"workers": workers, **_shape(query)}.items():
            if state.get(name) != now:
                raise ValueError(
                    f"the state is that of one of several DataLoader workers, taken with {name}={state.get(name)!r}, "
                    f"and this loader has {now!r}; to continue with another number of workers, ranks or rows per "
                    "batch, save the loader's state_dict(after=batch)"
                )
        number, end = state.get("number"), state.get("end")
        if (
            not isinstance(number, int)
            or not 0 <= number < workers
            or not (end is None or (isinstance(end, int) and end >= start))
        ):
            raise ValueError("not a state of this loader: its worker's position is missing")
        return cls(query, rows, start, end, number, workers, stream)

    def __iter__(self) -> Iterator[Batch]:
        for arrays in self._batches():
            # Update before yielding the batch: a state may be taken while this generator waits.
            self.start, self._number = int(arrays["next"][0]), self._workers - 1
            yield arrays

    def _batches(self) -> Iterator[Batch]:
        query, workers, number, start = self._query, self._workers, self._number, self.start
        if self.end is not None and start >= self.end:
            return
        last = self.end // self._rows if self.end is not None else 0
        if query.uneven or query.tail_or_default in ("pad", "once") or workers == 1:
            # The end of a step depends on earlier ones, so read all batches and keep some.
            for i, arrays in enumerate(self._stream(replace(query, start=start, epochs=last))):
                if i % workers == number:
                    yield arrays
            return
        before = 0
        epoch = start // self._rows
        while epoch < last or last == 0:
            yield from self._of_epoch(start, epoch, (number - before) % workers)
            before += query.batches_from(start, self._rows)
            epoch += 1
            start = epoch * self._rows

    def _of_epoch(self, start: int, epoch: int, number: int) -> Iterator[Batch]:
        """Every `workers`-th batch of an epoch, as if the workers were ranks among `world` × workers, since steps are
        contiguous."""
        query, workers, end = self._query, self._workers, (epoch + 1) * self._rows
        rows, step = query.rows_a_batch, query.rows_a_batch * query.world
        dealt = replace(
            query,
            start=start,
            epochs=epoch + 1,
            rank=number * query.world + query.rank,
            world=workers * query.world,
            tail="keep",
        )
        for arrays in self._stream(dealt):
            begin = int(arrays["row"][0]) - rows * query.rank
            if query.tail_or_default == "drop" and begin + step > end:
                return
            arrays["next"][:] = min(begin + step, end)
            yield arrays


def _shape(query: Query) -> dict[str, Any]:
    """The parameters besides the order that decide which batches a worker yields."""
    return {
        **{name: getattr(query, name) for name in _SHAPE},
        "batch_size": query.rows_a_batch,
        "tail": query.tail_or_default,
    }


def repeated(batches: Iterator[Batch], times: int) -> Iterator[Batch]:
    """The batches, after `times` copies of the first, for a wrapper that drops as many."""
    for batch in batches:
        for _ in range(times):
            yield type(batch)(
                (name, v.clone() if hasattr(v, "clone") else v.copy() if hasattr(v, "copy") else v)
                for name, v in batch.items()
            )
        times = 0
        yield batch
