"""Where a Loader's batches come from: a server, or shards read in this process."""

from __future__ import annotations

import atexit
import contextlib
import hashlib
import os
import warnings
import weakref
from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace
from numbers import Real
from typing import Any, Callable, Optional, Union

from .._binary import find_binary
from .._feed.feed import Feed
from .._feed.served import lengths_of, longest_of, rows_of, shard_checksums, split_of, splits_of
from .._feed.server import Server
from .._feed.transport import Endpoint
from .._order.mix import named, parse
from .._order.packed_count import most_rows
from .._order.packing import PackOptions
from .._query import Query, with_defaults
from .._read import sources as row_sources
from .._read.inprocess import InProcess
from .._read.manifest import is_address, open_manifest
from .._words import did_you_mean
from ..errors import FeedError, ParameterError, ServerFailed

PathLike = Union[str, "os.PathLike[str]"]
Batch = dict[str, Any]

_streams: weakref.WeakSet[Any] = weakref.WeakSet()  # generators of batches


@atexit.register
def _end_streams() -> None:
    """Ends the streams that were not read to their end, while the modules that they need to end are still there."""
    for stream in list(_streams):
        with contextlib.suppress(ValueError):  # another thread reads it
            stream.close()


_MOST_SECONDS = 1e9  # far below what a system's timers can count
_FINAL = (2, 3, 4)  # exit codes for usage, damaged data and limits: reading the data here would only hide the error


def check_seconds(name: str, seconds: Any, positive: bool = False) -> None:
    """Raises ValueError unless seconds is a time that the system can wait."""
    number = seconds if isinstance(seconds, Real) and seconds is not True and seconds is not False else None
    if number is None or not 0 <= float(number) <= _MOST_SECONDS or (positive and not number):
        least = "above 0" if positive else "from 0 on"
        raise ValueError(f"{name}: {seconds!r} is not a number of seconds {least}, up to {_MOST_SECONDS:.0e}")


class Source:
    """The datasets that a Loader reads. Exactly one of `feed` and `local` is set.

    feed: the server's responses. local: shards read in this process. name: the datasets for messages. manifests: by the
    name in a mix; empty until read_manifests has them.
    """

    def __init__(
        self,
        dataset: Any,
        socket: Optional[PathLike],
        url: Optional[str],
        *,
        token: Optional[str],
        ca_file: Optional[PathLike],
        memory: Union[str, int, None],
        in_process: Optional[bool],
        reconnect_seconds: float,
        timeout: float,
        is_closed: Callable[[], bool],
    ) -> None:
        self.feed: Optional[Feed] = None
        self.local: Optional[InProcess] = None
        self._reconnect_seconds, self._is_closed = reconnect_seconds, is_closed
        self.manifests: dict[str, Any] = {}
        if dataset is not None:
            datasets = _named(dataset)
            self.name = ", ".join(folder for _, folder in datasets)
            self._open_folders(datasets, memory, in_process, timeout)
        else:
            if socket is not None:
                endpoint = Endpoint(path=os.fspath(socket), timeout=timeout)
            else:
                token = token if token is not None else os.environ.get("DSLOAD_TOKEN")
                endpoint = Endpoint.of_url(
                    url or "", token=token, ca_file=os.fspath(ca_file) if ca_file else None, timeout=timeout
                )
            self.name = repr(endpoint)
            self._use(endpoint)

    def _use(self, endpoint: Endpoint, server: Optional[Server] = None) -> None:
        self.feed = Feed(endpoint, server, reconnect_seconds=self._reconnect_seconds)
        self.feed.closed_elsewhere = self._is_closed

    def _open_folders(
        self, datasets: list[tuple[str, str]], memory: Union[str, int, None], in_process: Optional[bool], timeout: float
    ) -> None:
        """Starts a server for the folders, or reads them here if none can run. A dataset in a bucket needs a server."""
        why = "in_process=True was asked for" if in_process else None
        binary = find_binary()
        if why is None and binary is None:
            why = "there is no dsload program for this platform"
        remote = next((folder for _, folder in datasets if is_address(folder)), None)
        local: Optional[InProcess] = None
        for _, folder in datasets:
            if not is_address(folder):
                os.close(open_manifest(folder))  # a server would take a file for text to build
        if why is None and binary is not None:
            names = [folder if len(datasets) == 1 else f"{name}={folder}" for name, folder in datasets]
            try:
                server = Server(binary, names, memory=memory, timeout=timeout)
                self._use(server.endpoint, server)
                return
            except (OSError, ServerFailed) as error:
                failed = error
            if remote is None:
                local = InProcess(datasets)  # a folder at fault is an error of its own
            if isinstance(failed, ServerFailed) and (remote is not None or failed.returncode in _FINAL):
                raise failed
            why = f"no server could be started: {failed}"
        if remote is not None:
            raise ServerFailed(
                f"{remote}: only a dsload server reads datasets in buckets, but {why}; copy the dataset to a folder"
            )
        if in_process is False:
            raise ServerFailed(f"in_process=False, but {why}")
        if not in_process:
            warnings.warn(
                f"dsload reads the dataset inside this process, which is slower: {why}", RuntimeWarning, stacklevel=4
            )
        self.local = local or InProcess(datasets)

    def read_manifests(self) -> None:
        """Sets manifests."""
        if self.local is not None:
            self.manifests = dict(self.local.manifests)
            return
        assert self.feed is not None
        answer = self.feed.manifests()
        served = answer["datasets"] if isinstance(answer, dict) and "datasets" in answer else {"": answer}
        if not isinstance(served, dict) or not served:
            raise FeedError(f"{self.name}: the server is not a dsload server: its answer has no datasets")
        self.manifests = dict(served)

    def _mixed(self, query: Query) -> list[dict[str, Any]]:
        """The manifests of the datasets that a query reads."""
        names = named(parse(query.mix), list(self.manifests)) if query.mix else list(self.manifests)
        manifests = []
        for name in names:
            # A single dataset is served without its name.
            manifest = self.manifests.get(name) or (self.manifests.get("") if len(names) == 1 else None)
            if manifest is None:
                raise ParameterError(
                    f"mix: no dataset {name!r} is served", 400, f"served are {', '.join(self.manifests)}"
                )
            manifests.append(manifest)
        return manifests

    def check_mix(self, query: Query) -> None:
        """Raises ParameterError for a mix of another dataset than the only one, whose server names it in its errors
        alone."""
        if query.mix and list(self.manifests) == [""]:
            self.columns(query)

    def with_packing(self, query: Query) -> Query:
        """The query with the server's default packing, and with the length of its packed rows."""
        if query.pack is None and self.feed is not None:
            query = with_defaults(query, self.feed.defaults)
        if query.max_length is not None and not query.packed:
            raise ValueError(
                "max_length: rows are not packed, and this is the length of packed rows; name a policy by pack, too"
            )
        query.validate()
        if query.packed and query.max_length is None:
            query = replace(query, max_length=max(longest_of(m, query.split, self.name) for m in self._mixed(query)))
        return query

    def numbers_per_row(self, query: Query) -> int:
        """How many row numbers the order has for each row of the datasets; more than 1 only for packed rows."""
        if not query.packed:
            return 1
        longest = max(longest_of(m, query.split, self.name, rows=True) for m in self._mixed(query))
        return PackOptions(str(query.pack), query.max_length or 1, 0, longest).numbers_per_row

    def most_packed_rows(self, query: Query, rows: int) -> Optional[int]:
        """The maximum number of packed rows of an epoch of `rows` rows; None for a mix, whose lengths differ from epoch
        to epoch."""
        manifests = self._mixed(query)
        split = split_of(manifests[0], query.split, self.name)
        if len(manifests) > 1 or split is None:
            return None
        histogram = lengths_of(split, self.name)
        longest = longest_of(manifests[0], query.split, self.name, rows=True)
        tokens = sum(bucket[2] for bucket in histogram)
        return most_rows(PackOptions(str(query.pack), query.max_length or 1, tokens, longest), rows, histogram)

    def dropped_tokens(self, query: Query) -> tuple[int, int]:
        """(how many tokens of an epoch best fit decreasing drops at least, of how many): those beyond the length of a
        packed row. Rows of one bucket of the histogram may have any of its lengths."""
        dropped = tokens = 0
        for manifest in self._mixed(query) if query.pack == "bfd" else ():
            split = split_of(manifest, query.split, self.name)
            if split is not None:
                length = query.max_length or 1
                histogram = lengths_of(split, self.name)
                beyond = sum(max(0, held - rows * length) for _, rows, held in histogram)
                dropped += max(beyond, longest_of(manifest, query.split, self.name, rows=True) - length)
                tokens += sum(held for _, _, held in histogram)
        return dropped, tokens

    def most_of_a_row(self, query: Query) -> int:
        """The maximum length of a batch's rows in tokens, with padding."""
        fixed = query.padding == "max_length"
        longest = query.max_length if query.packed else None
        if longest is None:
            longest = max(longest_of(m, query.split, self.name, rows=not fixed) for m in self._mixed(query))
        return -(-longest // query.pad_to_multiple_of) * query.pad_to_multiple_of

    def source_names(self, query: Query) -> list[str]:
        """The names of the sources of the query's rows, in the order of the column `source`. Those of a mix begin with
        their dataset's name."""
        datasets = named(parse(query.mix), list(self.manifests)) if query.mix else list(self.manifests)
        return [
            f"{dataset}: {name}" if len(datasets) > 1 else name
            for dataset, manifest in zip(datasets, self._mixed(query))
            for name in row_sources.names(manifest, query.split)
        ]

    def count_rows(self, query: Query) -> int:
        """The rows of the query's split in all datasets, at least 1."""
        rows = 0
        for manifest in self._mixed(query):
            split = split_of(manifest, query.split, self.name)
            if split is None:
                have = ", ".join(str(s["name"]) for s in splits_of(manifest, self.name))
                hint = did_you_mean(query.split, (s["name"] for s in splits_of(manifest, self.name)))
                raise ParameterError(f"split: there is no split {query.split!r}", 400, f"there is {have}{hint}")
            rows += rows_of(split, self.name)
        if rows == 0:
            raise ParameterError(
                f"{self.name}: split {query.split!r} has no rows", 400, "there is nothing to iterate over"
            )
        return rows

    def has_targets(self, query: Query) -> bool:
        """Reports whether rows of the query's datasets have targets in a column of their own."""
        return any(bool(m.get("schema", {}).get("labels")) for m in self._mixed(query))

    def columns(self, query: Query) -> list[str]:
        """The names of the columns of the query's batches."""
        if self.feed is not None:
            return self.feed.columns(query)
        assert self.local is not None
        small = replace(query, batch_size=1, max_tokens=0, bucket=0, rank=0, world=1, tail="keep", epochs=1)
        return list(next(iter(self.local.batches(small)), {}))

    def fingerprint(self, query: Query) -> str:
        """Identifies the data of the query's split by the checksums of all its shards."""
        digest = hashlib.sha256()
        for name in sorted(self.manifests):
            split = split_of(self.manifests[name], query.split, self.name)
            for checksum in shard_checksums(self.manifests[name], split, self.name) if split is not None else ():
                digest.update(checksum.encode())
        return digest.hexdigest()[:32]

    def order_of_datasets(self, query: Query) -> list[str]:
        """The names of the datasets, if their order decides that of the rows, as it does where the query names none."""
        segments = parse(query.mix) if query.mix else [None]
        by_order = any(segment is None or segment.weights is None for segment in segments)
        return list(self.manifests) if by_order and len(self.manifests) > 1 else []

    def stream(self, query: Query, keep: Optional[Collection[str]], output: Any, end: Optional[int]) -> Iterator[Batch]:
        """The query's batches up to the row `end`, as arrays, with at least the columns in `keep` (None: all)."""
        if self.local is not None:
            stream = self.local.batches(query)
        else:
            assert self.feed is not None
            stream = self.feed.stream(query, keep, output, end)
        _streams.add(stream)
        return stream

    def close(self) -> None:
        """Ends the streams and the server that this process started. Calling it again does nothing."""
        if self.feed is not None:
            self.feed.close()

    def __getstate__(self) -> dict[str, Any]:
        # InProcess holds open files: a copy in another process opens its own.
        return {**self.__dict__, "local": list(self.local._folders.items()) if self.local is not None else None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        local: Any = state["local"]
        if local is not None:
            self.local = InProcess(local)


def _named(dataset: Union[PathLike, Mapping[str, PathLike]]) -> list[tuple[str, str]]:
    """(name, folder) pairs; a single folder's name is its own, as on the server."""
    if isinstance(dataset, Mapping):
        return [(name, os.fspath(folder)) for name, folder in dataset.items()]
    folder = os.fspath(dataset)
    name = os.path.basename(os.path.abspath(folder)).replace("=", "_").replace(",", "_")
    return [(name, folder)]
