"""The epochs of a dataset: how many rows they have, where an iteration ends, and the batches up to there.

All of it follows from the manifests.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, Optional

from .._query import Query
from . import state as states
from .columns import Batch, Columns
from .left_out import LeftOut
from .source import Source


class Epochs:
    """The epochs of a query.

    source: what is read. query: the loader's, with the server's defaults once it is described. described: whether the
    manifests are known. examples: of the split, before they are packed. rows: row numbers of an epoch.
    """

    def __init__(self, source: Source, query: Query, columns: Columns) -> None:
        self.source, self.query, self._columns = source, query, columns
        self.described = False
        self.examples = self.rows = 0
        self._left_out = LeftOut()

    def describe(self) -> None:
        """Reads the manifests."""
        source = self.source
        source.read_manifests()
        source.check_mix(self.query)
        self.query = source.with_packing(self.query)
        if self._columns.tell_sources(len(source._mixed(self.query))):
            self.query = replace(self.query, sources="yes")
        self.examples = source.count_rows(self.query)
        self.rows = self.examples * source.numbers_per_row(self.query)
        self.described = True
        self._left_out.describe(self.query, self.rows)
        self._left_out.describe_packing(source, self.query)
        self._left_out.describe_unused(source, self.query)

    @property
    def most_batches(self) -> Optional[int]:
        """The maximum number of batches of an iteration on this rank; None if there is no bound."""
        rows: Optional[int] = self.rows
        query = self.query
        if query.epochs == 0:
            return None
        if not query.uneven:
            return query.batches_from(0, self.rows) * query.epochs
        if query.packed:
            rows = self.source.most_packed_rows(query, self.examples)
        if rows is None:
            return None
        least = query.rows_a_batch  # of a batch that the end of the epoch does not cut
        if query.max_tokens:
            least = max(1, min(least, query.max_tokens // self.source.most_of_a_row(query)))
        steps, rest = divmod(rows, least * query.world)
        return (steps + (rest > 0 and query.tail_or_default != "drop")) * query.epochs

    def whole(self, start: int) -> int:
        """`start`, or the next epoch's first row if tail="drop" leaves no whole step before it."""
        query = self.query
        if query.tail_or_default == "drop" and not query.uneven and query.is_last(start, self.rows):
            return -(-start // self.rows) * self.rows
        return start

    def end(self, start: int, given: Optional[int] = None) -> int:
        """The first row after an iteration from `start`, which is `given` if a state says so; for an endless one, the
        row where it would begin again."""
        if given is not None and given > start:
            return given
        return (start // self.rows + self.query.epochs) * self.rows

    def after(self, batch: Mapping[str, Any]) -> int:
        """The row where a state right after a batch continues."""
        if "next" not in batch:
            raise ValueError("after: the batch has no column 'next', which holds its position; name it in columns=")
        following = int(batch["next"][0])
        return self.whole(following) if self.query.epochs == 1 else following

    def state(self, position: int, end: Optional[int] = None) -> dict[str, Any]:
        """The state of an iteration whose next step begins at the row `position`, and which ends at the row `end` if
        that is known."""
        source, query = self.source, self.query
        state = states.state_at(position, self.rows, source.fingerprint(query), query, source.order_of_datasets(query))
        if end is None or position >= end:
            return state
        # With one epoch in an iteration, the position says where it ends, unless it goes on into the next.
        if query.epochs == 1:
            return {**state, "goes_on": True} if end > self.end(position) else state
        return {**state, "end": end}

    def place_of(self, state: Mapping[str, Any]) -> tuple[int, Optional[int]]:
        """(the row at which a state continues, the row where its iteration ends or None for the usual one).

        Raises ValueError, naming what differs, if the state belongs to another dataset or order.
        """
        states.check(state)
        rows, source, query = self.rows, self.source, self.query
        start = states.start_of(state, rows, source.fingerprint(query), query, source.order_of_datasets(query))
        if query.epochs > 1:
            return start, states.end_of(state, start, rows)
        return start, self.end_going_on(start) if state.get("goes_on") is True else None

    def end_going_on(self, start: int) -> Optional[int]:
        """The end of an iteration from the row `start` that has as many epochs as from the beginning of one; None for
        the usual end."""
        epochs = self.query.epochs
        return (start // self.rows + 1 + epochs) * self.rows if epochs and start % self.rows else None

    def stream(self, query: Query, output: Any) -> Iterator[Batch]:
        """The batches of a query, as arrays."""
        end = query.epochs * self.rows if query.epochs and self.source.feed is not None else None
        batches = self.source.stream(query, self._columns.read, output, end)
        return batches if self._left_out.said else self._watched(batches, query)

    def _watched(self, batches: Iterator[Batch], query: Query) -> Iterator[Batch]:
        """The batches, with a note where an epoch leaves rows out."""
        before = query.start
        for arrays in batches:
            self._left_out.step(self.source, query, self.rows, before, int(arrays["row"].min()))
            before = int(arrays["next"][0])
            yield arrays
        if before > query.start:
            self._left_out.step(self.source, query, self.rows, before)

    def note_given_up(self, start: int, batches: int) -> None:
        """Takes an iteration that did not end, before the next one begins at the row `start`."""
        self._left_out.given_up(self.query, start, batches)

    def batches(self, start: int, end: Optional[int], output: Any) -> Iterator[tuple[int, Batch, bool]]:
        """Yields (where the next step begins, the batch, whether it is the iteration's last on this rank)."""
        query = self.query
        # In an uneven query, only the following batch shows whether a batch was the last.
        look = query.epochs > 0 and query.uneven and (query.tail_or_default == "drop" or query.world > 1)
        # A batch after which a whole step is left is not the last.
        near = end - min(self.rows, query.rows_a_batch * query.world) if end is not None else 0
        held: Optional[tuple[int, Batch, bool]] = None
        epochs = end // self.rows if end is not None else 0
        for arrays in self.stream(replace(query, start=start, epochs=epochs), output):
            if held is not None:
                yield held
            following = int(arrays["next"][0])
            batch = self._columns.of(arrays, output)
            if look:
                held = following, batch, False
            else:
                last = (
                    end is not None
                    and following > near
                    and (following == end or (not query.uneven and query.is_last(following, self.rows)))
                )
                yield following, batch, last
        if held is not None:
            yield held[0], held[1], True
