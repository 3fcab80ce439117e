"""Notes on stderr, once a loader, from rank 0 alone: how many rows tail="drop" leaves out, how many tokens pack="bfd"
drops, which rows a loop that ends early never sees, and what has no effect."""

from __future__ import annotations

import sys
from dataclasses import replace
from typing import Optional

from .._feed.tensors import NumpyOutput
from .._query import Query
from .._torch import wrapped
from .source import Source


class LeftOut:
    """What a loader's epochs leave out. said: whether the note was printed, or nothing is left out."""

    def __init__(self) -> None:
        self.said = False
        self._given_up: Optional[tuple[int, int]] = (-1, 0)  # the last iteration that did not end; None: was named

    def describe(self, query: Query, rows: int) -> None:
        """Takes the loader's query once the rows of an epoch are known: without a token budget and packing, the rest
        follows from them."""
        self.said = self.said or query.rank > 0 or query.tail_or_default != "drop"
        if not query.uneven:
            self._say(query.left_out(0, rows), rows, query)
            self.said = True

    def step(self, source: Source, query: Query, rows: int, position: int, row: Optional[int] = None) -> None:
        """Takes the row where a step was requested, and a row of that step; None if there was no step. Rows of other
        epochs are left out."""
        end = -(-position // rows) * rows
        info = wrapped.worker_info()
        if self.said or position == end or (row is not None and row < end) or (info is not None and info.id > 0):
            return
        if not query.packed:
            self._say(end - position, rows, query)
            return
        # Not every number has a packed row: count those that have.
        rest = replace(query, start=position, epochs=end // rows, rank=0, world=1, tail="keep")
        self._say(sum(len(b["row"]) for b in source.stream(rest, {"row", "next"}, NumpyOutput, end)), 0, query)

    def given_up(self, query: Query, start: int, batches: int) -> None:
        """Takes the number of batches of an iteration that did not end, and where the next one begins. Two alike are a
        loop that ends each epoch early, and never sees the rest; a single batch is looked at."""
        if self._given_up is None or query.rank > 0 or query.split != "train" or query.shuffle == "none":
            return
        if batches > 1 and self._given_up == (start, batches):
            _note(
                f"iterations end after {batches} batches, and each begins the same epoch again, so that its other rows "
                "never come: loader.load_state_dict(loader.state_dict()) before the next one continues, "
                "loader.set_epoch(n) gives another order"
            )
            self._given_up = None
        else:
            self._given_up = start, batches

    def describe_unused(self, source: Source, query: Query) -> None:
        """Takes the loader's query once the datasets are known, and names what it does not use of them or of itself."""
        if query.rank > 0:
            return
        if query.group != Query.group and not query.bucket:
            _note(f"group={query.group} has no effect, since no window of rows is sorted by length; bucket=2048 sorts")
        if query.labels == "causal" and source.has_targets(query):
            _note('labels="causal" leaves the targets out: the rows are the prompts alone; labels="auto" has both')

    def describe_packing(self, source: Source, query: Query) -> None:
        """Takes the loader's query once the lengths of rows are known."""
        dropped, tokens = source.dropped_tokens(query)
        if dropped and query.rank == 0:
            _note(
                f'pack="bfd" cuts rows that are longer than {query.max_length} tokens: at least {dropped} of '
                f'{tokens} tokens of an epoch are dropped; pack="bfd_split" keeps them'
            )

    def _say(self, rows: int, of: int, query: Query) -> None:
        if self.said or not rows:
            return
        self.said = True
        part = f"{rows} of {of} rows of an epoch" if of else f"the last {rows} rows that were packed"
        ranks = f" of {query.world} ranks" if query.world > 1 else ""
        _note(f'{part} are left out, which make no whole step{ranks} (tail="drop"); tail="once" yields every row once')


def _note(text: str) -> None:
    print(f"note: {text}", file=sys.stderr, flush=True)
