"""Loader: a dataset as an iterable of batches.

A Loader is a position in an order and a source for the rows after it. The position is one integer, the global row at
which the next step begins. Everything else (resuming, reconnecting, splitting batches among DataLoader's workers) is
arithmetic on it.

Invariants:

  I1  The batches yielded before a state was taken and those after loading it add up to the whole epoch, for any batch
      size, rank and world, except for the rows that tail="drop" drops at its end.
  I2  The end of an iteration is the end of the epoch. A stream that was cut is requested again from the row after the
      last batch; if that fails for `reconnect_seconds`, StreamEnded is raised.
  I3  The workers of a torch DataLoader together yield the batches that one process would, each once, in the same order.
  I4  An epoch ends with its last batch, not with a request for one more: trainers that count len(loader) batches never
  make it.
  I5  All rows come from the dataset that the loader began with (DatasetChanged).
"""

from __future__ import annotations

import operator
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from multiprocessing import context
from typing import TYPE_CHECKING, Any, Optional, Union

from .._feed.feed import Feed
from .._feed.server import Server
from .._feed.transport import Endpoint
from .._order import mix as mixes
from .._query import Query
from .._torch import wrapped
from .._torch.dataset import class_for, output_of
from .._torch.ranks import rank_and_world, worker
from .._torch.shared_start import SharedStart
from .._torch.workers import Share, repeated
from .._words import did_you_mean
from ..errors import LoaderClosed, WrongWrapping
from .columns import Batch, Columns
from .epochs import Epochs
from .recognised import recognise
from .source import Source
from .text import Held
from .unbuilt import can_stream

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from .._options import LoaderOptions

PathLike = Union[str, "os.PathLike[str]"]


class Loader:
    """Iterates over one epoch of a dataset as dicts of tensors; the next iteration is the next epoch.

    Example::

        with dsload.Loader("data", batch_size=32, seed=1) as loader:
            for epoch in range(3):
                for batch in loader:          # {"input_ids": (rows, length) int64, "attention_mask": …, "labels": …,
                    "length": …, …} ...

    Args:
        dataset: a folder, or {name: folder} for a mix; a folder may be in a bucket, s3://… or gs://…. The loader starts
            its own server for it. The path of a unix socket or an http(s) URL means `socket` or `url`. A text file, or
            with options of `dsload.build` (tokenizer, max_length, text_field, …) any source or list of sources of a
            build, is built into the user's cache, unless it is there and unchanged.
        socket, url: a running server: the path of its unix socket, or http(s)://HOST:PORT.
        batch_size, max_tokens, pad_to_multiple_of, padding, padding_side, shuffle, seed, bucket, group, tail, dtype,
            labels, balance, split: the feed's parameters of the same names. batch_size is 32 by default, labels is
            "auto": "seq2seq" if the dataset has targets, else "causal". shuffle=True means "full", False means "none".
        pack, max_length, borders: fill rows of max_length tokens with several documents while they are read, by the
             policy "wrapped", "bfd" or "bfd_split". The label of each document's first token is -100, unless
             borders="keep". See docs/packing.md.
        mix: {name: weight} if several datasets are served, or the feed's syntax for a mix that changes, as in
        "a=3,b=1;at=100000:temperature:0.5".
        rank, world: this process's rank among the trainers; by default torch.distributed's, else RANK and WORLD_SIZE
            (or SLURM's, MPI's), else 0 of 1.
        epochs: epochs in an iteration: 1, or 0 for an endless one.
        columns: names of the columns to yield; None for all. A model's forward takes ("input_ids", "attention_mask",
            "labels"), and of packed rows ("input_ids", "position_ids", "labels"). An unknown name is an error that
            lists the existing ones.
        output: "torch", "numpy", or "auto" for torch if it is installed.
        pin_memory: receive batches into pinned memory if CUDA is available, for asynchronous copies to the device.
        token, ca_file: for `url`: the bearer token (default: the environment variable DSLOAD_TOKEN), and the
        certificate authority's file.
        memory: the server's --memory.
        in_process: read shards without a server; None does so only if none can run, with one warning.
        reconnect_seconds: how long to try to reach a server that went away. timeout: seconds to wait for a batch.

    Yields:
        The feed's columns: input_ids, attention_mask and labels (rows, length); length (rows,) int32; example, row and
        next (rows,) int64. Packed rows have position_ids and segments in place of attention_mask, with which
        transformers' models would let documents attend to each other, and what models need to keep them apart:
        use_cache=False, and cu_seqlens (int32, the borders of the documents over the flattened batch) and max_seqlen
        (an int), also by transformers' names for flash attention. Tensors share the memory of the message in which they
        arrived. The caller may change them.

    Raises:
        ValueError: for invalid parameters; ParameterError, which is a FeedError too, for those that the server refuses.
        FeedError: for a server that cannot be reached. TypeError: for an unknown parameter, with the nearest one.
        FileNotFoundError, ServerFailed: if there is nothing to serve. StreamEnded: if the data ends before the epoch
        does. DatasetChanged: if the server changes to another dataset.
        LoaderClosed: for a batch after close. WrongWrapping: if a wrapper around the loader would lose or repeat rows.

    An epoch ends with its last batch. From then on, the state and the next iteration begin at the next epoch's first
    row.

    In a torch DataLoader use `batch_size=None`, with any number of workers under fork or spawn: `DataLoader(loader,
    batch_size=None, num_workers=2)`. Each iteration by workers is the next epoch, even if it is not read to the end;
    call `set_epoch` before it for another.
    """

    def __new__(cls, *args: Any, **kwargs: Any) -> Loader:
        made: Loader = super().__new__(class_for(cls, kwargs.get("output", "auto")) if cls is Loader else cls)
        return made

    def __init__(
        self,
        dataset: Union[PathLike, Mapping[str, PathLike], Sequence[PathLike], None] = None,
        *,
        socket: Optional[PathLike] = None,
        url: Optional[str] = None,
        split: str = "train",
        batch_size: Optional[int] = None,
        max_tokens: int = 0,
        pad_to_multiple_of: int = 1,
        padding: str = "longest",
        padding_side: str = "right",
        shuffle: Union[str, bool] = "full",
        seed: int = 0,
        bucket: int = 0,
        group: int = 256,
        rank: Optional[int] = None,
        world: Optional[int] = None,
        tail: Optional[str] = None,
        dtype: str = "int64",
        labels: str = "auto",
        pack: Optional[str] = None,
        max_length: Optional[int] = None,
        borders: str = "mask",
        balance: str = "none",
        mix: Union[Mapping[str, float], str, None] = None,
        epochs: int = 1,
        columns: Optional[Iterable[str]] = None,
        output: str = "auto",
        pin_memory: bool = False,
        token: Optional[str] = None,
        ca_file: Optional[PathLike] = None,
        memory: Optional[str] = None,
        in_process: Optional[bool] = None,
        reconnect_seconds: float = 60.0,
        timeout: float = 300.0,
        **text: Unpack[LoaderOptions],
    ) -> None:
        self._source: Optional[Source] = None
        self._closed = False
        self._start = SharedStart()
        if output not in ("auto", "torch", "numpy"):
            hint = did_you_mean(output, ("auto", "torch", "numpy"))
            raise ValueError(f"output: {output!r} is not one of auto, torch, numpy{hint}")
        self._held: Optional[Held] = None
        in_build_order = (
            shuffle in (False, "none") and not bucket and balance == "none" and mix is None and not in_process
        )
        read = recognise(dataset, socket, url, text, pack=pack, max_length=max_length, in_build_order=in_build_order)
        self._held = read.held
        if read.from_text:
            pack, max_length = None, None
        mixes.check(mix)
        self._found_rank = rank is None
        rank, world = rank_and_world(rank, world)
        if isinstance(shuffle, bool):
            shuffle = "full" if shuffle else "none"
        query = Query(
            split=split,
            batch_size=batch_size,
            max_tokens=max_tokens,
            pad_to_multiple_of=pad_to_multiple_of,
            padding=padding,
            padding_side=padding_side,
            shuffle=shuffle,
            seed=seed,
            bucket=bucket,
            group=group,
            rank=rank,
            world=world,
            tail=tail,
            dtype=dtype,
            labels=labels,
            balance=balance,
            pack=pack,
            max_length=max_length,
            borders=borders,
            mix=mixes.written(mix),
            epochs=epochs,
        ).validate()
        self._columns = Columns(columns)
        self._output, self._pin = output, pin_memory
        self._source = Source(
            read.dataset,
            read.socket,
            read.url,
            unbuilt=read.unbuilt,
            token=token,
            ca_file=ca_file,
            memory=memory,
            in_process=in_process,
            reconnect_seconds=reconnect_seconds,
            timeout=timeout,
            is_closed=self._start.is_closed,
        )
        self._epochs = Epochs(self._source, query, self._columns)
        try:
            self._epochs.describe(wait=not can_stream(query))
            self._columns.check(self._source, self._query)
        except BaseException:
            self.close()
            raise
        self._position = 0
        self._share: Optional[Share] = None  # what this process yields as a DataLoader's worker
        self._resumed: Optional[Share] = None  # what its next iteration continues with
        self._end: Optional[int] = None  # the row where the iteration ends, as far as it is known
        self._turn = 0  # counts iterations and set starts: only the latest moves the start
        self._ahead = False  # a wrapper holds back the iteration's batches

    @property
    def _query(self) -> Query:
        return self._epochs.query

    @property
    def _feed(self) -> Optional[Feed]:
        return self._source.feed if self._source is not None else None

    @property
    def _endpoint(self) -> Optional[Endpoint]:
        return self._feed.endpoint if self._feed is not None else None

    @property
    def _server(self) -> Optional[Server]:
        return self._feed.server if self._feed is not None else None

    @property
    def num_examples(self) -> int:
        """Examples of the split, over all ranks; with `pack`, before they are packed. While text is being built, this
        waits for its end."""
        return self._epochs.examples

    @property
    def manifest(self) -> dict[str, Any]:
        """The dataset's manifest; for a mix {name: manifest}."""
        self._epochs.describe()
        manifests = self._epochs.source.manifests
        return next(iter(manifests.values())) if len(manifests) == 1 else manifests

    @property
    def epoch(self) -> int:
        """The epoch in which the next iteration begins or resumes."""
        return self._start.start // self._epochs.rows

    @property
    def rank(self) -> int:
        return self._query.rank

    @property
    def world(self) -> int:
        return self._query.world

    def __len__(self) -> int:
        """Batches of an epoch on this rank. While text is being built, this waits for its end. Raises TypeError for
        max_tokens, pack and endless loaders, where the number is unknown; max_batches bounds it."""
        most, query = self.max_batches, self._query
        if query.epochs == 0:
            raise TypeError("an endless loader (epochs=0) has no number of batches; give the trainer a number of steps")
        if query.uneven:
            bound = "" if most is None else f": at most {most} here (loader.max_batches)"
            raise TypeError(
                f"with {'pack' if query.packed else 'max_tokens'}, the number of batches is known only after an epoch"
                f"{bound}; give the trainer a number of steps"
                + (", or build the dataset with pack, which then has packed rows" if query.packed else "")
            )
        assert most is not None
        return most

    @property
    def max_batches(self) -> Optional[int]:
        """The maximum number of batches of an iteration on this rank: len() where that is known. With max_tokens and
        pack it is a bound for every seed and epoch, which follows from the lengths in the manifest; with
        pack="wrapped", and where one window of the order is packed (see docs/packing.md), it counts the packed rows
        almost exactly. None for an endless loader, and for a mix that is packed. While text is being built, this waits
        for its end."""
        return self._epochs.most_batches

    def set_epoch(self, epoch: int) -> None:
        """Makes the next iteration `epoch`, from its first row, or from a loaded state in the middle of it."""
        try:
            epoch = operator.index(epoch)
        except TypeError:
            raise ValueError(f"epoch must be a whole number, got {epoch!r}") from None
        if epoch < 0:
            raise ValueError(f"epoch must not be negative, got {epoch}")
        wrapped.refuse_second_dealing()
        begun = self._start.read()
        if begun["loaded"] and wrapped.counted_by_accelerate():
            # Accelerate counts from 0 in every process. The loader's own count continues from the state.
            return
        start = self._start.start
        inside = start and (start % self._epochs.rows or self._start.end is not None)
        if inside and start // self._epochs.rows == epoch:
            return
        self._turn += 1
        self._end = None
        self._position = epoch * self._epochs.rows if epoch else 0
        self._start.set(self._position)

    def state_dict(self, after: Optional[Mapping[str, Any]] = None) -> dict[str, Any]:
        """The state of the iteration: a few integers that JSON can hold, the same on every rank. In a DataLoader's
        worker, that worker's.

        after: a batch; the state is then the one right after it. Use it if something reads ahead: DataLoader's workers,
        or Accelerate's data loaders. It needs the column `next`. Raises ValueError if `after` is needed and missing.
        """
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

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Makes the next iteration resume where `state` was taken, with any batch size, rank and world.

        Raises ValueError, naming what differs, if the state belongs to another dataset or order.
        """
        start, end = self._epochs.place_of(state)
        if "worker" in state:
            self._load_share(start, state["worker"])
            return
        self._turn += 1
        self._ahead = False
        self._position, self._end = start, end
        self._start.set(start, end=end, loaded=True)

    def _load_share(self, start: int, state: Any) -> None:
        """Makes the next iteration of this DataLoader worker continue with the rest of a worker's batches."""
        if wrapped.worker_info() is None or not isinstance(state, Mapping):
            raise ValueError(
                "the state belongs to one DataLoader worker: load it through the StatefulDataLoader that saved it"
            )
        output = output_of(self._output, pin_memory=False)
        self._resumed = Share.resumed(
            self._query, self._epochs.rows, start, state, worker()[1], lambda query: self._epochs.stream(query, output)
        )

    def _check_open(self) -> None:
        if self._closed:
            raise LoaderClosed("the loader is closed; make a new one to read on")

    def _check_use(self) -> None:
        """Raises LoaderClosed, and WrongWrapping if a wrapper would distribute the loader's batches wrongly."""
        self._check_open()
        wrapped.refuse_second_dealing()
        wrapped.refuse_stacking(self)
        if self._found_rank:
            wrapped.refuse_other_rank(self.rank, self.world)

    def __iter__(self) -> Iterator[Batch]:
        return self._begin(wrapped.batches_dropped())

    def __getitem__(self, index: Any) -> Any:
        raise WrongWrapping(
            "the loader's batches come in order, not by number: iterate it, in a torch DataLoader with "
            "output='torch' and batch_size=None; dsload.RandomAccess has rows by number"
        )

    def _begin(self, dropped: int) -> Iterator[Batch]:
        """Begins an iteration. dropped: the number of batches at its beginning that the caller will drop; they are not
        read."""
        self._check_use()
        output = output_of(self._output, self._pin)
        if wrapped.worker_info() is not None:
            return (self._columns.of(arrays, output) for arrays in self._begin_share(output))
        start, given = self._start.start, self._start.end
        if start:  # else nothing of the dataset need be known
            start = self._epochs.whole(start)
        self._turn += 1
        self._ahead = False
        self._position, self._end = start, given
        # An abandoned iteration starts again.
        self._start.set(start // self._epochs.rows * self._epochs.rows if start else 0, end=given)
        query = self._query
        if dropped and not query.uneven and dropped < query.batches_from(start, self._epochs.rows):
            self._position = start = start + dropped * query.rows_a_batch * query.world
            return repeated(self._iterate(start, given, self._turn, output), dropped)
        return self._iterate(start, given, self._turn, output)

    def _begin_share(self, output: Any) -> Iterator[Batch]:
        """The batches of this worker, from the start of its DataLoader's iteration or from a loaded state."""
        share, self._resumed = self._resumed, None
        if share is None:
            number, workers = worker()
            start, last = self._start.begin(lambda row, given: self._epochs.end(self._epochs.whole(row), given))
            start, end = self._epochs.whole(start), last if self._query.epochs else None
            share = Share(
                self._query,
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

    def _left(self) -> tuple[int, int]:
        """(the epoch of the next iteration, its batches on this rank). Raises TypeError as len does."""
        len(self)
        start = self._epochs.whole(self._start.start)
        return start // self._epochs.rows, self._query.batches_from(start, self._epochs.rows)

    def _iterate(self, start: int, given: Optional[int], turn: int, output: Any) -> Iterator[Batch]:
        """The batches of an iteration, up to the row `given` if a state says so. With the last, the start moves to the
        next iteration (I4)."""
        query = self._query
        ahead = wrapped.reads_ahead()
        self._check_open()
        while True:
            unbuilt = start == 0 and not self._epochs.describe(wait=False)
            end = self._epochs.end(start, given) if query.epochs and not unbuilt else None
            if self._turn == turn:
                self._end = end
            some = False
            for following, batch, last in self._epochs.batches(start, end, output, unbuilt=unbuilt):
                some = True
                if last and unbuilt:
                    end = self._epochs.end(start)  # the build ended before its last rows came
                if self._turn == turn:
                    self._ahead = ahead
                    self._position = following
                    if last and end is not None:
                        self._finish(end, following)
                yield batch
                self._check_open()
            if unbuilt and query.epochs and end is None:
                end = self._epochs.end(start)
            if self._turn == turn and end is not None:
                self._ahead = False
                self._position = end
                self._finish(end, end)
            # The state was taken where tail="drop" leaves no whole step: the epoch was over.
            if some or end is None or start % self._epochs.rows == 0 or query.tail_or_default != "drop":
                return
            start, given = end, None

    def _finish(self, end: int, following: int) -> None:
        """Ends the iteration, with its last batch: the next one begins at `end`."""
        if self._query.tail_or_default == "drop":
            following = end
        # With tail="keep" other ranks may have rows in the last step: a state taken here still holds them (I1).
        self._position = following
        self._start.set(end)

    def close(self) -> None:
        """Ends this loader's iterations and the server that it started. Calling it again does nothing."""
        if getattr(self, "_closed", True):
            return
        self._closed = True
        if self._source is not None:
            self._source.close()
        if self._held is not None:
            self._held.close()
        self._start.close()

    def __repr__(self) -> str:
        source: Optional[Source] = getattr(self, "_source", None)
        if source is None or not hasattr(self, "_epochs"):
            return "<dsload.Loader, not opened>"
        query = self._query
        if not self._epochs.described:
            return (
                f"<dsload.Loader {source.name}, which is being built: {query.split}, in its own order, "
                f"rank {query.rank} of {query.world}>"
            )
        shape = f"max_tokens={query.max_tokens}" if query.max_tokens else f"batch_size={query.rows_a_batch}"
        start = self._start.start
        at = "closed" if self._closed else f"next: epoch {start // self._epochs.rows}, row {start % self._epochs.rows}"
        return (
            f"<dsload.Loader {source.name}: {self._epochs.rows} rows of {query.split}, {shape}, "
            f"shuffle={query.shuffle}, seed={query.seed}, rank {query.rank} of {query.world}; {at}>"
        )

    def __enter__(self) -> Loader:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def __getstate__(self) -> dict[str, Any]:
        if context.get_spawning_popen() is not None:
            self._check_use()
        return {**self.__dict__, "_share": None, "_resumed": None, "_held": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)

    def __reduce__(self) -> Any:
        return _unpickle, (self._output, self.__getstate__())


def _unpickle(output: str, state: dict[str, Any]) -> Loader:
    loader: Loader = object.__new__(class_for(Loader, output))
    loader.__setstate__(state)
    return loader


def first(batches: Sequence[Any]) -> Any:
    """A collate function for DataLoader and Trainer with batch_size=1: each item is a batch already. Raises
    WrongWrapping for more than one."""
    if len(batches) != 1:
        raise WrongWrapping(
            f"dsload.first got {len(batches)} of the loader's batches and would drop all but one: each is whole, so "
            "use batch_size=1 (per_device_train_batch_size=1 and per_device_eval_batch_size=1 under Trainer), or "
            "DataLoader(loader, batch_size=None)"
        )
    return batches[0]
