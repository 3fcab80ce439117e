"""Loader: a dataset as an iterable of batches.

A Loader is a position in an order and a place to ask for what follows it. The position is one integer, the global row at which the next
step begins, and everything else (resuming, reconnecting, splitting batches among DataLoader's workers) is arithmetic on it.

Invariants:

  I1  What has been yielded and what a state taken after it yields add up to the whole epoch, for any batch size, rank and world.
  I2  The end of an iteration is the end of the epoch. A stream that was cut is asked for again from the row after the last batch; where that
      fails for `reconnect_seconds`, StreamEnded is raised.
  I3  The workers of a torch DataLoader together yield the batches that one process would, each once, in the same order.
"""

from __future__ import annotations

import hashlib
import os
import time
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Optional, Union

from ._binary import find_binary
from ._decode import Decoder
from ._inprocess import InProcess
from ._query import Query
from ._ranks import rank_and_world, worker
from ._server import Server
from ._tensors import NumpyOutput, TorchOutput, has_torch
from ._transport import Endpoint, StreamCut
from .errors import FeedError, ServerFailed, StreamEnded

PathLike = Union[str, "os.PathLike[str]"]
Batch = dict[str, Any]

_STATE_VERSION = 1
_ORDER = ("split", "shuffle", "seed", "bucket", "group", "mix")


class Loader:
    """Iterates over one epoch of a dataset as dicts of tensors; the next iteration is the next epoch.

    Example::

        with dsload.Loader("data", batch_size=32, seed=1) as loader:
            for epoch in range(3):
                for batch in loader:          # {"input_ids": (rows, length) int64, "attention_mask": …, "labels": …, "length": …, …}
                    ...

    Args:
        dataset: a folder, or {name: folder} for a mix; a server of its own is started for it. Leave it out with `socket` or `url`.
        socket, url: a server that runs already: the path of its unix socket, or http(s)://HOST:PORT.
        batch_size, max_tokens, pad_to_multiple_of, padding, padding_side, shuffle, seed, bucket, group, tail, dtype, labels, split: as the
            feed's parameters of the same names; batch_size is 32 by default.
        mix: {name: weight} where several datasets are served.
        rank, world: this process among the trainers; by default torch.distributed's, else RANK and WORLD_SIZE (or SLURM's, MPI's), else 0 of 1.
        epochs: epochs an iteration goes through: 1, or 0 for no end.
        columns: names of the columns to yield; None for all. A model's forward takes ("input_ids", "attention_mask", "labels").
        output: "torch", "numpy", or "auto" for torch where it is installed.
        pin_memory: receive batches into pinned memory (where CUDA is available), for copies to the device that do not wait.
        token, ca_file: for `url`: the bearer token (default: the environment's DSLOAD_TOKEN), and the certificate authority's file.
        memory: the server's --memory.
        in_process: read shards without a server; None does so only where none can run, with one warning.
        reconnect_seconds: how long to try to reach a server that went away. timeout: seconds to wait for a batch.

    Yields:
        The feed's columns: input_ids, attention_mask and labels (rows, length); position_ids and segments for packed rows; length (rows,)
        int32; example, row and next (rows,) int64. Tensors share the memory of the message they arrived in and are the caller's to change.

    Raises:
        ValueError: for parameters that cannot be. FeedError: for what the server refuses. FileNotFoundError, ServerFailed: where there is nothing
        to serve. StreamEnded: where the data end before the epoch does.

    In a torch DataLoader use `batch_size=None`, with any number of workers under fork or spawn: `DataLoader(loader, batch_size=None,
    num_workers=2)`. Workers see the epoch that the loader had when they were started: call `set_epoch` before each epoch.
    """

    def __new__(cls, *args: Any, **kwargs: Any) -> Loader:
        if cls is Loader and _wants_torch(kwargs.get("output", "auto")):
            loader: Loader = super().__new__(_torch_class())
            return loader
        return super().__new__(cls)

    def __init__(
        self,
        dataset: Union[PathLike, Mapping[str, PathLike], None] = None,
        *,
        socket: Optional[PathLike] = None,
        url: Optional[str] = None,
        split: str = "train",
        batch_size: Optional[int] = None,
        max_tokens: int = 0,
        pad_to_multiple_of: int = 1,
        padding: str = "longest",
        padding_side: str = "right",
        shuffle: str = "full",
        seed: int = 0,
        bucket: int = 0,
        group: int = 256,
        rank: Optional[int] = None,
        world: Optional[int] = None,
        tail: Optional[str] = None,
        dtype: str = "int64",
        labels: str = "causal",
        mix: Optional[Mapping[str, float]] = None,
        epochs: int = 1,
        columns: Optional[Sequence[str]] = None,
        output: str = "auto",
        pin_memory: bool = False,
        token: Optional[str] = None,
        ca_file: Optional[PathLike] = None,
        memory: Optional[str] = None,
        in_process: Optional[bool] = None,
        reconnect_seconds: float = 60.0,
        timeout: float = 300.0,
    ) -> None:
        self._server: Optional[Server] = None
        self._endpoint: Optional[Endpoint] = None
        self._local: Optional[InProcess] = None
        if output not in ("auto", "torch", "numpy"):
            raise ValueError(f"output: {output!r} is none of auto, torch, numpy")
        if sum(x is not None for x in (dataset, socket, url)) != 1:
            raise ValueError("name exactly one of a dataset folder, socket= and url=")
        if isinstance(mix, Mapping) and not mix:
            raise ValueError("mix: names no dataset")
        rank, world = rank_and_world(rank, world)
        self._query = Query(
            split=split, batch_size=batch_size, max_tokens=max_tokens, pad_to_multiple_of=pad_to_multiple_of, padding=padding,
            padding_side=padding_side, shuffle=shuffle, seed=seed, bucket=bucket, group=group, rank=rank, world=world, tail=tail,
            dtype=dtype, labels=labels, mix=",".join(f"{n}={w!r}" for n, w in mix.items()) if mix else "", epochs=epochs,
        ).validate()  # fmt: skip
        self._columns = tuple(columns) if columns is not None else None
        self._output = output
        self._pin = pin_memory
        self._reconnect_seconds = reconnect_seconds
        if dataset is not None:
            self._own(_named(dataset), memory, in_process, timeout)
        elif socket is not None:
            self._endpoint = Endpoint(path=os.fspath(socket), timeout=timeout)
        else:
            token = token if token is not None else os.environ.get("DSLOAD_TOKEN")
            self._endpoint = Endpoint.of_url(url or "", token=token, ca_file=os.fspath(ca_file) if ca_file else None, timeout=timeout)
        try:
            self._manifests = self._read_manifests()
            self._rows = self._count_rows()
        except BaseException:
            self.close()
            raise
        self._epoch = 0
        self._resume: Optional[int] = None
        self._position = 0

    def _own(self, datasets: list[tuple[str, str]], memory: Optional[str], in_process: Optional[bool], timeout: float) -> None:
        """Starts a server for the folders, or reads them here where none can run."""
        why = "in_process=True was asked for" if in_process else None
        binary = find_binary()
        if why is None and binary is None:
            why = "there is no dsload program for this platform"
        if why is None and binary is not None:
            self._local = InProcess(datasets)  # the manifests are checked before a process is started
            self._local = None
            names = [folder if len(datasets) == 1 else f"{name}={folder}" for name, folder in datasets]
            try:
                self._server = Server(binary, names, memory=memory, timeout=timeout)
                self._endpoint = self._server.endpoint
                return
            except (OSError, ServerFailed) as error:
                # 3 and 4: the data or a limit; reading them here would only hide that.
                if isinstance(error, ServerFailed) and error.returncode in (2, 3, 4):
                    raise
                why = f"no server could be started: {error}"
        if in_process is False:
            raise ServerFailed(f"in_process=False, but {why}")
        if not in_process:
            warnings.warn(f"dsload reads the dataset inside this process, which is slower: {why}", RuntimeWarning, stacklevel=4)
        self._local = InProcess(datasets)

    def _read_manifests(self) -> dict[str, Any]:
        if self._local is not None:
            return dict(self._local.manifests)
        assert self._endpoint is not None
        answer = self._retrying(lambda endpoint: endpoint.get_json("/v1/dataset"))
        return dict(answer["datasets"]) if "datasets" in answer else {"": answer}

    def _count_rows(self) -> int:
        named = [part.rpartition("=")[0] for part in self._query.mix.split(",")] if self._query.mix else list(self._manifests)
        rows = 0
        for name in named:
            # A single dataset is served without its name.
            manifest = self._manifests.get(name) or (self._manifests.get("") if len(named) == 1 else None)
            if manifest is None:
                raise FeedError(f"mix: no dataset {name!r} is served", 400, f"served are {', '.join(self._manifests)}")
            found = [s for s in manifest["splits"] if s["name"] == self._query.split]
            if not found:
                have = ", ".join(s["name"] for s in manifest["splits"])
                raise FeedError(f"split: there is no split {self._query.split!r}", 400, f"there is {have}")
            rows += int(found[0]["examples"])
        return rows

    @property
    def num_examples(self) -> int:
        """Rows of an epoch, over all ranks."""
        return self._rows

    @property
    def manifest(self) -> dict[str, Any]:
        """The dataset's manifest; for a mix {name: manifest}."""
        return next(iter(self._manifests.values())) if len(self._manifests) == 1 else self._manifests

    @property
    def epoch(self) -> int:
        """The epoch that the next iteration begins in (or goes on with)."""
        return self._resume // self._rows if self._resume is not None else self._epoch

    @property
    def rank(self) -> int:
        return self._query.rank

    @property
    def world(self) -> int:
        return self._query.world

    def __len__(self) -> int:
        """Batches of an epoch on this rank. Raises TypeError under a token budget and for endless loaders, whose number is not known."""
        if self._query.max_tokens or self._query.epochs == 0:
            raise TypeError("the number of batches is not known beforehand under max_tokens or without end (epochs=0)")
        return self._query.batches_from(0, self._rows) * self._query.epochs

    def set_epoch(self, epoch: int) -> None:
        """The next iteration is `epoch`, from its first row; one that a loaded state is in the middle of goes on there."""
        if epoch < 0:
            raise ValueError(f"epoch must not be negative, got {epoch}")
        if self._resume is not None and self._resume // self._rows == epoch:
            return
        self._epoch, self._resume = epoch, None
        self._position = epoch * self._rows

    def state_dict(self, after: Optional[Mapping[str, Any]] = None) -> dict[str, Any]:
        """Where the iteration stands: a few integers, JSON-able, the same on every rank.

        after: a batch; the state is then the one right behind it, which is what to save where DataLoader's workers have read ahead.
        It needs the column `next`.
        """
        position = self._position if after is None else int(after["next"][0])
        return {
            "version": _STATE_VERSION,
            "start": position,
            "rows": self._rows,
            "dataset": self._fingerprint(),
            "order": {name: getattr(self._query, name) for name in _ORDER},
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """The next iteration goes on where `state` was taken, whatever batch size, rank and world it was taken under.

        Raises ValueError where the state belongs to another dataset or order, naming what differs.
        """
        if state.get("version") != _STATE_VERSION:
            raise ValueError(f"not a state of this loader: version {state.get('version')!r}")
        if state["dataset"] != self._fingerprint() or state["rows"] != self._rows:
            raise ValueError("the state was taken on another dataset")
        for name in _ORDER:
            if state["order"].get(name) != getattr(self._query, name):
                raise ValueError(
                    f"the state was taken with {name}={state['order'].get(name)!r}, this loader has {getattr(self._query, name)!r}"
                )
        self._resume = self._position = int(state["start"])

    def _fingerprint(self) -> str:
        """Names the data: checksums of all shards of the split."""
        digest = hashlib.sha256()
        for name in sorted(self._manifests):
            for split in self._manifests[name]["splits"]:
                if split["name"] == self._query.split:
                    for shard in split["shards"]:
                        digest.update(shard["blake3"].encode())
        return digest.hexdigest()[:32]

    def __iter__(self) -> Iterator[Batch]:
        start = self._resume if self._resume is not None else self._epoch * self._rows
        self._resume = None
        self._position = start
        return self._iterate(start)

    def _iterate(self, start: int) -> Iterator[Batch]:
        first = start // self._rows
        last = first + self._query.epochs if self._query.epochs else 0
        output: Any = TorchOutput(self._pin and _can_pin()) if _wants_torch(self._output) else NumpyOutput
        columns = self._columns
        number, workers = worker()
        batches = (
            self._stream(replace(self._query, start=start, epochs=last), output)
            if workers == 1
            else self._share(start, last, number, workers, output)
        )
        for arrays in batches:
            self._position = int(arrays["next"][0])
            if columns is not None:
                arrays = {name: arrays[name] for name in columns if name in arrays}
            yield output.convert(arrays)
        self._epoch = last
        self._position = last * self._rows

    def _share(self, start: int, last: int, number: int, workers: int, output: Any) -> Iterator[Batch]:
        """This worker's batches: the number-th of every `workers` ones, counted from the beginning of the iteration (I3)."""
        query = self._query
        if query.max_tokens or query.tail_or_default == "pad":
            # Where a step ends depends on the ones before it: read all, keep some.
            for i, arrays in enumerate(self._stream(replace(query, start=start, epochs=last), output)):
                if i % workers == number:
                    yield arrays
            return
        before = 0
        epoch = start // self._rows
        while epoch < last or last == 0:
            yield from self._share_of_epoch(start, epoch, (number - before) % workers, workers, output)
            before += query.batches_from(start, self._rows)
            epoch += 1
            start = epoch * self._rows

    def _share_of_epoch(self, start: int, epoch: int, number: int, workers: int, output: Any) -> Iterator[Batch]:
        """Every `workers`-th batch of an epoch: as if the workers were ranks among `world` × workers, since steps follow each other without gaps."""
        query, end = self._query, (epoch + 1) * self._rows
        rows, step = query.rows_a_batch, query.rows_a_batch * query.world
        dealt = replace(
            query, start=start, epochs=epoch + 1, rank=number * query.world + query.rank, world=workers * query.world, tail="keep",
        )  # fmt: skip
        for arrays in self._stream(dealt, output):
            begin = int(arrays["row"][0]) - rows * query.rank
            if query.tail_or_default == "drop" and begin + step > end:
                return
            arrays["next"][:] = min(begin + step, end)
            yield arrays

    def _stream(self, query: Query, output: Any) -> Iterator[Batch]:
        """The query's batches, through cuts and restarts of the server (I2)."""
        if self._local is not None:
            yield from self._local.batches(query)
            return
        start = query.start
        deadline: Optional[float] = None
        wait = 0.05
        while True:
            try:
                for arrays in self._read(replace(query, start=start), output):
                    deadline, wait = None, 0.05
                    start = int(arrays["next"][0])
                    yield arrays
                return
            except (OSError, FeedError) as error:
                if isinstance(error, FeedError) and error.status != 503:
                    raise
                now = time.monotonic()
                deadline = deadline if deadline is not None else now + self._reconnect_seconds
                if now >= deadline:
                    raise StreamEnded(
                        f"the stream of {self._endpoint} ended at row {start}, before its end, and could not be continued"
                        f" within {self._reconnect_seconds:g} s: {error}"
                    ) from error
            time.sleep(wait)
            wait = min(wait * 2, 2.0)
            self._revive()

    def _read(self, query: Query, output: Any) -> Iterator[Batch]:
        """One request's batches. Raises StreamCut or another OSError where it ends early."""
        assert self._endpoint is not None
        with self._endpoint.request(query.path()) as response:
            if not response.chunked or response.headers.get("content-type") != "application/vnd.apache.arrow.stream":
                raise StreamCut("what answers is not a dsload server")
            schema = response.read_message(NumpyOutput.allocate)
            if schema is None:
                raise StreamCut("a stream without a schema")
            decoder = Decoder(schema, None if self._columns is None else (*self._columns, "row", "next"))
            read, decode, allocate = response.read_message, decoder.decode, output.allocate
            ended = False
            while (message := read(allocate)) is not None:
                arrays = decode(message)
                if not arrays:
                    ended = True
                elif ended:
                    raise StreamCut("a batch behind the end of the stream")
                else:
                    yield arrays
            if not ended:
                raise StreamCut("the stream ended without its end marker")

    def _retrying(self, ask: Any) -> Any:
        """ask(endpoint), again for reconnect_seconds where the server cannot be reached."""
        deadline, wait = time.monotonic() + self._reconnect_seconds, 0.05
        while True:
            try:
                return ask(self._endpoint)
            except OSError as error:
                if time.monotonic() >= deadline or isinstance(error, FileNotFoundError):
                    raise FeedError(
                        f"the server at {self._endpoint} cannot be reached: {error}", 0, "start it with dsload serve"
                    ) from error
            time.sleep(wait)
            wait = min(wait * 2, 2.0)
            self._revive()

    def _revive(self) -> None:
        """Starts the own server again where it has ended. What keeps it from starting is the reason that the stream ended."""
        if self._server is not None:
            try:
                self._server.revive()
            except ServerFailed as error:
                raise StreamEnded(f"the server ended and could not be started again: {error}") from error

    def close(self) -> None:
        """Ends the server that this loader started. Calling it again does nothing."""
        server, self._server = self._server, None
        if server is not None:
            server.close()

    def __enter__(self) -> Loader:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def __getstate__(self) -> dict[str, Any]:
        # A copy in another process reads from the server and does not own it.
        state = dict(self.__dict__)
        state["_server"] = None
        if self._local is not None:
            state["_local"] = list(self._local._folders.items())
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        local: Any = state["_local"]
        if local is not None:
            self._local = InProcess(local)

    def __reduce__(self) -> Any:
        return _unpickle, (self._output, self.__getstate__())


def _named(dataset: Union[PathLike, Mapping[str, PathLike]]) -> list[tuple[str, str]]:
    """(name, folder) pairs; a single folder's name is its own, as the server does it."""
    if isinstance(dataset, Mapping):
        return [(name, os.fspath(folder)) for name, folder in dataset.items()]
    folder = os.fspath(dataset)
    name = os.path.basename(os.path.abspath(folder)).replace("=", "_").replace(",", "_")
    return [(name, folder)]


def _wants_torch(output: Any) -> bool:
    return output == "torch" or (output == "auto" and has_torch())


def _can_pin() -> bool:
    import torch

    return bool(torch.cuda.is_available()) and worker()[1] == 1


def _unpickle(output: str, state: dict[str, Any]) -> Loader:
    loader: Loader = object.__new__(_torch_class() if _wants_torch(output) else Loader)
    loader.__setstate__(state)
    return loader


_torch_loader: Any = None


def _torch_class() -> Any:
    """Loader as a torch IterableDataset, which DataLoader asks for by class. Made on first use, so that torch is imported only then."""
    global _torch_loader
    if _torch_loader is None:
        import torch.utils.data

        class TorchLoader(Loader, torch.utils.data.IterableDataset):  # type: ignore[misc, unused-ignore]
            __doc__ = Loader.__doc__

        TorchLoader.__name__ = TorchLoader.__qualname__ = "Loader"
        _torch_loader = TorchLoader
    return _torch_loader


def first(batches: Sequence[Any]) -> Any:
    """A collate function for DataLoader and Trainer with batch_size=1: the batch is one already."""
    return batches[0]
