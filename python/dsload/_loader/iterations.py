"""The iterations of a Loader: the row where the next one begins, the batches of the one under way, and its state.

A position is a row at which a step begins, so that resuming is arithmetic. SharedStart holds the next iteration's, for
this process and the workers of its DataLoaders; a worker's own is its Share's.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Optional

from .._torch import wrapped
from .._torch.dataset import output_of
from .._torch.ranks import worker
from .._torch.shared_start import SharedStart
from .._torch.workers import Share, repeated
from ..errors import LoaderClosed
from .columns import Batch, Columns
from .epochs import Epochs


class Iterations:
    """What a Loader iterates.

    start: where the next iteration begins. columns, output, pin_memory: what batches are made of.
    """

    def __init__(self, start: SharedStart, epochs: Epochs, columns: Columns, output: str, pin_memory: bool) -> None:
        self._start, self._epochs, self._columns = start, epochs, columns
        self._output, self._pin = output, pin_memory
        self._position = 0
        self._share: Optional[Share] = None  # what this process yields as a DataLoader's worker
        self._resumed: Optional[Share] = None  # what its next iteration continues with
        self._end: Optional[int] = None  # the row where the iteration ends, as far as it is known
        self._turn = 0  # counts set starts: an iteration from before moves nothing
        self._current: object = None  # the iteration that gave the last batch, which a state is of
        self._taken = 0  # batches of an iteration that has not ended
        self._ahead = False  # a wrapper holds back the iteration's batches
        self.closed = False

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_share": None, "_resumed": None}

    def check_open(self) -> None:
        if self.closed:
            raise LoaderClosed("the loader is closed; make a new one to read on")

    def left(self) -> tuple[int, int]:
        """(the epoch of the next iteration, its batches on this rank, where their number is known)."""
        start = self._epochs.whole(self._start.start)
        return start // self._epochs.rows, self._epochs.query.batches_from(start, self._epochs.rows)

    def set_epoch(self, epoch: int) -> None:
        """Makes the next iteration `epoch`, from its first row, or from a loaded state in the middle of it."""
        begun = self._start.read()
        if begun["loaded"] and wrapped.counted_by_accelerate():
            # Accelerate counts from 0 in every process. The loader's own count continues from the state.
            return
        start = self._start.start
        inside = start and (start % self._epochs.rows or self._start.end is not None)
        if inside and start // self._epochs.rows == epoch:
            return
        self._turn += 1
        self._taken, self._end = 0, None
        self._position = epoch * self._epochs.rows
        self._start.set(self._position)

    def state(self, after: Optional[Mapping[str, Any]]) -> dict[str, Any]:
        """The state of the iteration, or the one right after a batch. Raises ValueError where only that is right."""
        if after is None and self._share is not None and wrapped.worker_info() is not None:
            return {**self._epochs.state(self._share.start), "worker": self._share.state()}
        if after is None and self._start.read()["by_workers"]:
            raise ValueError(
                "DataLoader's workers read ahead of the batches that are in use: save state_dict(after=batch), which "
                "needs the column 'next'"
            )
        if after is None and self._ahead:
            raise ValueError(
                "Accelerate's data loader reads a batch ahead of the one in use: save state_dict(after=batch), which "
                "needs the column 'next', or iterate a DataLoader that it did not prepare"
            )
        position = self._position if after is None else self._epochs.after(after)
        begun = self._start.read()
        end = begun["begun"][-1]["end"] if begun["by_workers"] and begun["begun"] else self._end
        return self._epochs.state(position, end)

    def load(self, state: Mapping[str, Any]) -> None:
        """Makes the next iteration resume where `state` was taken. Raises ValueError if it belongs elsewhere."""
        start, end = self._epochs.place_of(state)
        if "worker" in state:
            self._load_share(start, state["worker"])
            return
        self._turn += 1
        self._ahead = False
        self._taken = 0
        self._position, self._end = start, end
        self._start.set(start, end=end, loaded=True)

    def go_on(self, state: Mapping[str, Any]) -> None:
        """Makes the next iteration continue after `state`, for as many epochs as from the beginning of one: a trainer
        that ends its epochs early takes equally many batches in each."""
        self.load(state)
        start = self._start.start
        end = self._epochs.end_going_on(start)
        if end is not None:
            self._end = end
            self._start.set(start, end=end)

    def _load_share(self, start: int, state: Any) -> None:
        """Makes the next iteration of this DataLoader worker continue with the rest of a worker's batches."""
        if wrapped.worker_info() is None or not isinstance(state, Mapping):
            raise ValueError(
                "the state belongs to one DataLoader worker: load it through the StatefulDataLoader that saved it"
            )
        output = output_of(self._output, pin_memory=False)
        self._resumed = Share.resumed(
            self._epochs.query,
            self._epochs.rows,
            start,
            state,
            worker()[1],
            lambda query: self._epochs.stream(query, output),
        )

    def begin(self, dropped: int) -> Iterator[Batch]:
        """Begins an iteration. dropped: the number of batches at its beginning that the caller will drop; they are not
        read."""
        output = output_of(self._output, self._pin)
        if wrapped.worker_info() is not None:
            return (self._columns.of(arrays, output) for arrays in self._begin_share(output))
        start, given = self._epochs.whole(self._start.start), self._start.end
        self._ahead = False
        self._position, self._end = start, given
        # An abandoned iteration starts again.
        self._epochs.note_given_up(start, self._taken)
        self._taken = 0
        self._start.set(start // self._epochs.rows * self._epochs.rows, end=given)
        query = self._epochs.query
        if dropped and not query.uneven and dropped < query.batches_from(start, self._epochs.rows):
            self._position = start = start + dropped * query.rows_a_batch * query.world
            return repeated(self._iterate(start, given, self._turn, output), dropped)
        return self._iterate(start, given, self._turn, output)

    @contextmanager
    def aside(self) -> Iterator[None]:
        """Around iterations from the beginning of an epoch, after which the others continue as if there were none."""
        kept = self._turn, self._current, self._position, self._end, self._ahead, self._taken
        start, given = self._start.start, self._start.end
        self._turn += 1
        self._taken = 0
        self._start.set(start // self._epochs.rows * self._epochs.rows)
        try:
            yield
        finally:
            self._turn, self._current, self._position, self._end, self._ahead, self._taken = kept
            self._start.set(start, end=given)

    def _begin_share(self, output: Any) -> Iterator[Batch]:
        """The batches of this worker, from the start of its DataLoader's iteration or from a loaded state."""
        share, self._resumed = self._resumed, None
        if share is None:
            number, workers = worker()
            start, last = self._start.begin(lambda row, given: self._epochs.end(self._epochs.whole(row), given))
            start, end = self._epochs.whole(start), last if self._epochs.query.epochs else None
            share = Share(
                self._epochs.query,
                self._epochs.rows,
                start,
                end,
                number,
                workers,
                lambda query: self._epochs.stream(query, output),
            )
        elif share.end is not None:
            self._start.leave(share.end)
        self._share = share
        return iter(share)

    def _iterate(self, start: int, given: Optional[int], turn: int, output: Any) -> Iterator[Batch]:
        """The batches of an iteration, up to the row `given` if a state says so. With the last, the start moves to the
        next iteration (I4)."""
        query, mine = self._epochs.query, object()
        ahead = wrapped.reads_ahead()
        self.check_open()
        with wrapped.shown_to_accelerate() as shown:
            while True:
                end = self._epochs.end(start, given) if query.epochs else None
                if self._turn == turn:
                    self._current, self._end = mine, end
                some = False
                for following, batch, last in self._epochs.batches(start, end, output):
                    some = True
                    shown.end_of_dataloader = last
                    if self._turn == turn:
                        self._current, self._ahead = mine, ahead
                        self._position, self._end = following, end
                        self._taken += 1
                        if last and end is not None:
                            self._finish(end, following)
                    yield batch
                    self.check_open()
                if self._turn == turn and self._current is mine and end is not None:
                    self._ahead = False
                    self._position = end
                    self._finish(end, end)
                # The state was taken where tail="drop" leaves no whole step: the epoch was over.
                if some or end is None or start % self._epochs.rows == 0 or query.tail_or_default != "drop":
                    return
                start, given = end, None

    def _finish(self, end: int, following: int) -> None:
        """Ends the iteration, with its last batch: the next one begins at `end`."""
        if self._epochs.query.tail_or_default == "drop":
            following = end
        # With tail="keep" other ranks may have rows in the last step: a state taken here still holds them (I1).
        self._position, self._taken = following, 0
        self._start.set(end)
