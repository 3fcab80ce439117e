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

import copy
import inspect
import operator
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from multiprocessing import context
from typing import TYPE_CHECKING, Any, NoReturn, Optional, Union

from .._feed.feed import Feed
from .._feed.server import Server
from .._feed.transport import Endpoint
from .._order import mix as mixes
from .._query import Query
from .._show import Origin
from .._torch import wrapped
from .._torch.dataset import class_for
from .._torch.ranks import rank_and_world
from .._torch.shared_start import SharedStart
from .._words import did_you_mean
from ..errors import WrongWrapping
from .columns import Batch, Columns
from .epochs import Epochs
from .iterations import Iterations
from .recognised import recognise, refuse_unused
from .source import Source, check_seconds
from .text import Held

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from .._options import LoaderOptions

PathLike = Union[str, "os.PathLike[str]"]


class Loader:
    """Iterates over one epoch of a dataset as dicts of tensors; the next iteration is the next epoch.

    Example::

        with dsload.Loader("data", batch_size=32, seed=1) as loader:
            for epoch in range(3):
                for batch in loader:
                    ...  # batch["input_ids"]: (rows, length) int64, and attention_mask, labels, length, …

    Args:
        dataset: a folder, or {name: folder} for a mix; a folder may be in a bucket, s3://…, gs://… or az://…. The
            loader starts its own server for it. The path of a unix socket or an http(s) URL means `socket` or `url`. A
            text file, or with options of `dsload.build` (tokenizer, max_length, text_field, …) any source or list of
            sources of a build, is built into the user's cache, unless it is there and unchanged.
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
            (or those of a step of Slurm, or MPI's), else 0 of 1.
        epochs: epochs in an iteration: 1, or 0 for an endless one.
        columns: names of the columns to yield; None for all. A model's forward takes ("input_ids", "attention_mask",
            "labels"), and of packed rows ("input_ids", "position_ids", "labels"). An unknown name is an error that
            lists the existing ones. "dataset" and "source" are there on request: which of the mix, and which of
            its sources (`loader.sources`), a row came from; dsload.by_source takes them.
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
        memory: Union[str, int, None] = None,
        in_process: Optional[bool] = None,
        reconnect_seconds: float = 60.0,
        timeout: float = 300.0,
        **text: Unpack[LoaderOptions],
    ) -> None:
        self._source: Optional[Source] = None
        self._start = SharedStart()
        if output not in ("auto", "torch", "numpy"):
            hint = did_you_mean(output, ("auto", "torch", "numpy"))
            raise ValueError(f"output: {output!r} is not one of auto, torch, numpy{hint}")
        check_seconds("reconnect_seconds", reconnect_seconds)
        check_seconds("timeout", timeout, positive=True)
        read = recognise(dataset, socket, url, text, _PARAMETERS, pack=pack, max_length=max_length)
        refuse_unused(read, output, pin_memory, token=token, ca_file=ca_file, memory=memory, in_process=in_process)
        self._held: Optional[Held] = read.held
        if read.held is not None:
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
        self._output = output
        chosen = Columns(columns, None if read.dataset is None else Origin(read.dataset, split))
        self._source = Source(
            read.dataset,
            read.socket,
            read.url,
            token=token,
            ca_file=ca_file,
            memory=memory,
            in_process=in_process,
            reconnect_seconds=reconnect_seconds,
            timeout=timeout,
            is_closed=self._start.is_closed,
        )
        self._epochs = Epochs(self._source, query, chosen)
        self._iterations = Iterations(self._start, self._epochs, chosen, output, pin_memory)
        try:
            self._epochs.describe()
            chosen.check(self._source, self._query)
        except BaseException:
            self.close()
            raise

    def __setattr__(self, name: str, value: Any) -> None:
        if name in _PARAMETERS:
            raise AttributeError(
                f"{name}: a Loader's parameters cannot be changed: make another, whose load_state_dict continues from "
                "this one's state_dict()"
            )
        super().__setattr__(name, value)

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
        """Examples of the split, over all ranks; with `pack`, before they are packed."""
        return self._epochs.examples

    @property
    def manifest(self) -> dict[str, Any]:
        """The dataset's manifest; for a mix {name: manifest}."""
        manifests = self._epochs.source.manifests
        return next(iter(manifests.values())) if len(manifests) == 1 else manifests

    @property
    def sources(self) -> list[str]:
        """The names of the split's sources, by the numbers in the column `source`: dsload.by_source takes them."""
        return self._epochs.source.source_names(self._query)

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
        """Batches of an epoch on this rank. Raises TypeError for max_tokens, pack and endless loaders, where the number
        is unknown; max_batches bounds it."""
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
    def dataset(self) -> NoReturn:
        """A DataLoader's, which accelerate.skip_first_batches asks for: a loader has none."""
        raise AttributeError(
            "a Loader has no attribute 'dataset': give accelerate.skip_first_batches a DataLoader(loader, "
            "batch_size=None), or continue with loader.load_state_dict() of a state_dict(), which skips nothing"
        )

    @property
    def max_batches(self) -> Optional[int]:
        """The maximum number of batches of an iteration on this rank: len() where that is known. With max_tokens and
        pack it is a bound for every seed and epoch, which follows from the lengths in the manifest; with
        pack="wrapped", and where one window of the order is packed (see docs/packing.md), it counts the packed rows
        almost exactly. None for an endless loader, and for a mix that is packed."""
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
        self._iterations.set_epoch(epoch)

    def state_dict(self, after: Optional[Mapping[str, Any]] = None) -> dict[str, Any]:
        """The state of the iteration: a few integers that JSON can hold, the same on every rank. In a DataLoader's
        worker, that worker's.

        after: a batch; the state is then the one right after it. Use it if something reads ahead: DataLoader's workers,
        or Accelerate's data loaders. It needs the column `next`. Raises ValueError if `after` is needed and missing.
        """
        return self._iterations.state(after)

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Makes the next iteration resume where `state` was taken, with any batch size, rank and world.

        Raises ValueError, naming what differs, if the state belongs to another dataset or order.
        """
        self._iterations.load(state)

    def _check_use(self) -> None:
        """Raises LoaderClosed, and WrongWrapping if a wrapper would distribute the loader's batches wrongly."""
        self._iterations.check_open()
        wrapped.refuse_second_dealing()
        wrapped.refuse_stacking(self)
        wrapped.refuse_uneven_evaluation(self)
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
        return self._iterations.begin(dropped)

    def _left(self) -> tuple[int, int]:
        """(the epoch of the next iteration, its batches on this rank). Raises TypeError as len does."""
        len(self)
        return self._iterations.left()

    def close(self) -> None:
        """Ends this loader's iterations and the server that it started. Calling it again does nothing."""
        if not hasattr(self, "_iterations") or self._iterations.closed:
            return
        self._iterations.closed = True
        if self._source is not None:
            self._source.close()
        if self._held is not None:
            self._held.close()
        self._start.close()

    def __repr__(self) -> str:
        source: Optional[Source] = getattr(self, "_source", None)
        if source is None or not hasattr(self, "_epochs") or not self._epochs.described:
            return "<dsload.Loader, not opened>"
        query = self._query
        shape = f"max_tokens={query.max_tokens}" if query.max_tokens else f"batch_size={query.rows_a_batch}"
        start = self._start.start
        at = (
            "closed"
            if self._iterations.closed
            else f"next: epoch {start // self._epochs.rows}, row {start % self._epochs.rows}"
        )
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
        return {**self.__dict__, "_iterations": copy.copy(self._iterations), "_held": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)

    def __reduce__(self) -> Any:
        return _unpickle, (self._output, self.__getstate__())


# Of __init__, without self: what help() and notebooks show would be that of __new__.
_SIGNATURE = inspect.signature(Loader.__init__)
_SIGNATURE = _SIGNATURE.replace(
    parameters=list(_SIGNATURE.parameters.values())[1:], return_annotation=inspect.Signature.empty
)
Loader.__signature__ = _SIGNATURE  # type: ignore[attr-defined]
_PARAMETERS = [p.name for p in _SIGNATURE.parameters.values() if p.kind != p.VAR_KEYWORD]


def _unpickle(output: str, state: dict[str, Any]) -> Loader:
    loader: Loader = object.__new__(class_for(Loader, output))
    loader.__setstate__(state)
    return loader
