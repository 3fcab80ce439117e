"""The loader without a server: pyarrow reads shards, _order orders rows, and batches are made here. They equal the
server's, but take longer.

A shard is mapped into memory, so only the rows in use are read; but a record batch is read whole when it is first
touched, for its checksum. The index in memory is a few numbers per record batch.
"""

from __future__ import annotations

import bisect
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Optional, Union

import numpy as np
import numpy.typing as npt

from .._order.mix import Segment, named, parse, weights_of
from .._order.order import FILLER, I64, EmptyEpoch, Order, Step, StepOptions, TooLong, steps
from .._order.packing import MAX_LENGTH, Packed, PackedStep, PackOptions, cut_segments, packed_steps
from .._query import IGNORED_LABEL, Query
from .._words import did_you_mean
from ..errors import ParameterError
from .manifest import MAX_ROW_TOKENS, read_manifest
from .shard import Column, Shard, row_of
from .shardlist import shards_of
from .sources import RowSources

Array = npt.NDArray[Any]

_MAX_BALANCED = 1 << 20  # rows of a step
_MAX_OPEN_SHARDS = 64
_MAX_CLOSED_SHARDS = 100_000  # closed shards that are remembered
_MAX_BATCHES = 4096  # record batches whose columns are cached: views of the mapped files


class Split:
    """One split of one dataset: rows by number."""

    def __init__(self, folder: str, manifest: dict[str, Any], name: str) -> None:
        found = [s for s in manifest["splits"] if s["name"] == name]
        if not found:
            names = [s["name"] for s in manifest["splits"]]
            have = ", ".join(names) + did_you_mean(name, names)
            raise ParameterError(f"split: dataset {folder} has no split {name!r}", 400, f"it has {have}")
        self.info = found[0]
        self._folder, self._manifest = folder, manifest
        self._shards = shards_of(folder, manifest, self.info)
        self._closed: dict[int, Shard] = {}  # were open before; they know what was checked
        for number in range(len(self._shards)):
            self._new(number).check_present()
        self.rows = int(self._shards.ends[-1])
        self._open: dict[int, Shard] = {}  # in the order of opening
        self._batches: dict[tuple[int, int], dict[str, Column]] = {}

    def _new(self, number: int) -> Shard:
        return Shard(self._folder, self._manifest, self.info, self._shards[number])

    def _shard(self, number: int) -> Shard:
        """The shard, open."""
        if number not in self._open:
            if len(self._open) >= _MAX_OPEN_SHARDS:
                oldest = next(iter(self._open))
                self._closed[oldest] = self._open.pop(oldest)
                self._closed[oldest].close()
                if len(self._closed) > _MAX_CLOSED_SHARDS:
                    self._closed.pop(next(iter(self._closed)))
                self._batches = {k: v for k, v in self._batches.items() if k[0] != oldest}
            shard = self._closed.pop(number, None) or self._new(number)
            shard.open()
            self._open[number] = shard
        return self._open[number]

    def _columns(self, shard: int, batch: int) -> dict[str, Column]:
        key = (shard, batch)
        if key not in self._batches:
            if len(self._batches) > _MAX_BATCHES:
                self._batches.clear()
            self._batches[key] = self._shard(shard).columns(batch)
        return self._batches[key]

    def _locate(self, rows: I64) -> Iterator[tuple[int, int, int]]:
        """(shard, record batch, row in it) of each row."""
        shards = np.searchsorted(self._shards.ends, rows, side="right")
        for row, shard in zip(rows.tolist(), shards.tolist()):
            first = self._shard(shard).first
            within = row - (int(self._shards.ends[shard - 1]) if shard else 0)
            batch = bisect.bisect_right(first, within) - 1
            yield shard, batch, within - int(first[batch])

    def lengths(self, rows: I64) -> I64:
        out = np.empty(len(rows), np.int64)
        for i, (shard, batch, k) in enumerate(self._locate(rows)):
            offsets = self._columns(shard, batch)["input_ids"][0]
            out[i] = offsets[k + 1] - offsets[k]
        return out

    def read(self, rows: I64, names: Sequence[str]) -> list[dict[str, Array]]:
        """The named columns of each row, as views, without columns that the dataset lacks."""
        out = []
        for shard, batch, k in self._locate(rows):
            columns = self._columns(shard, batch)
            out.append({n: row_of(columns[n], k) for n in names if n in columns})
        return out


class InProcess:
    """Reads dataset folders as their server would. datasets: (name, folder) pairs."""

    def __init__(self, datasets: Sequence[tuple[str, str]]) -> None:
        # Shards are opened when they are needed, and the process may have changed its folder by then.
        self._folders = {name: os.path.abspath(folder) for name, folder in datasets}
        self.manifests = {name: read_manifest(folder) for name, folder in datasets}
        self._splits: dict[tuple[str, str], Split] = {}

    def _parts(self, query: Query) -> list[tuple[str, Split, float]]:
        segments = parse(query.mix) if query.mix else []
        parts = []
        for name in named(segments, list(self._folders)) if segments else self._folders:
            if name not in self._folders:
                raise ParameterError(
                    f"mix: no dataset {name!r} is served", 400, f"served are {', '.join(self._folders)}"
                )
            key = (name, query.split)
            if key not in self._splits:
                self._splits[key] = Split(self._folders[name], self.manifests[name], query.split)
            split = self._splits[key]
            parts.append((name, split, float(split.rows)))
        if segments:
            weights = self._weights(segments[0], parts)
            parts = [(name, split, w) for (name, split, _), w in zip(parts, weights)]
        first = self.manifests[parts[0][0]]
        for name, _, _ in parts[1:]:
            other = self.manifests[name]
            if (
                other["schema"] != first["schema"]
                or other["tokenizer"]["fingerprint"] != first["tokenizer"]["fingerprint"]
            ):
                raise ParameterError(f"mix: datasets {parts[0][0]} and {name} differ in tokenizer or columns", 400)
        return parts

    def _weights(self, segment: Segment, parts: Sequence[tuple[str, Split, float]]) -> list[float]:
        return weights_of(segment, [name for name, _, _ in parts], [split.rows for _, split, _ in parts])

    def batches(self, query: Query) -> Iterator[dict[str, Array]]:
        """The batches that the feed would send for the query, as arrays of the same columns."""
        parts = self._parts(query)
        splits = [s for _, s, _ in parts]
        manifest = self.manifests[parts[0][0]]
        if query.labels == "auto":
            query = replace(query, labels="seq2seq" if manifest["schema"]["labels"] else "causal")
        if query.labels == "seq2seq" and not manifest["schema"]["labels"]:
            raise ParameterError(
                "labels: the dataset has no targets for seq2seq",
                400,
                "build it from prompts and targets, or omit labels",
            )

        def lengths(sources: I64, rows: I64) -> I64:
            out = np.empty(len(rows), np.int64)
            for s, split in enumerate(splits):
                here = sources == s
                if here.any():
                    out[here] = split.lengths(rows[here])
            return out

        total = sum(s.rows for s in splits)
        changes = [(s.at, self._weights(s, parts)) for s in parse(query.mix)[1:]] if query.mix else []
        order = Order(
            [s.rows for s in splits],
            weights=[w for _, _, w in parts],
            changes=changes,
            shuffle=query.shuffle,
            seed=query.seed,
            bucket=min(query.bucket, total),
            group=query.group,
            lengths=lengths,
        )
        packing = self._packing(query, parts)
        deal = self._deal(query, parts, packing)
        told = [(name, self.manifests[name]) for name, _, _ in parts] if query.sources == "yes" else None
        sources = RowSources(told, query.split, query.packed) if told else None
        make = _Collate(query, manifest, deal, mixed=len(parts) > 1, sources=sources)
        dealt: Iterator[Any] = (
            packed_steps(Packed(order, packing, lengths), deal) if packing else steps(order, deal, lengths)
        )
        try:
            for step in dealt:
                yield make(step, splits)
        except TooLong as error:
            raise ParameterError(str(error), 400) from error
        except EmptyEpoch as error:
            hint = "ask for a smaller batch_size or world, or for tail=once, which serves every row"
            raise ParameterError(f"world: {error}", 400, hint) from error

    def _packing(self, query: Query, parts: list[tuple[str, Split, float]]) -> Optional[PackOptions]:
        if not query.packed:
            if query.max_length is not None:
                raise ParameterError(
                    "max_length: rows are not packed, and this is the length of packed rows",
                    400,
                    "name a policy by pack, too",
                )
            return None
        if query.labels == "seq2seq":
            raise ParameterError(
                "pack: the dataset has prompts with targets, which cannot share rows",
                400,
                "omit pack, or use labels=causal, which ignores the targets",
            )
        length = query.max_length or self._longest(parts)
        if length > MAX_LENGTH:
            raise ParameterError(
                f"max_length: the build's are up to {length} tokens long, and rows are packed to at most {MAX_LENGTH}",
                400,
            )
        tokens = sum(int(s.info["tokens"]) for _, s, _ in parts)
        return PackOptions(str(query.pack), length, tokens, max(int(s.info["max_length"]) for _, s, _ in parts))

    def _longest(self, parts: list[tuple[str, Split, float]]) -> int:
        """--max-length of the builds, or the longest row."""
        return max(max(_max_length(self.manifests[name]), int(split.info["max_length"])) for name, split, _ in parts)

    def _deal(self, query: Query, parts: list[tuple[str, Split, float]], packing: Optional[PackOptions]) -> StepOptions:
        fixed = 0
        if query.padding == "max_length":
            fixed = packing.length if packing else self._longest(parts)
            fixed = -(-fixed // query.pad_to_multiple_of) * query.pad_to_multiple_of
        deal = StepOptions(
            batch_size=query.rows_a_batch,
            max_tokens=query.max_tokens,
            pad_to_multiple_of=query.pad_to_multiple_of,
            fixed_length=fixed,
            rank=query.rank,
            world=query.world,
            tail=query.tail_or_default,
            balance=query.balance,
            epochs=query.epochs,
            start=query.start,
        )
        if query.max_tokens:
            longest = deal.padded(packing.length if packing else max(int(s.info["max_length"]) for _, s, _ in parts))
            if longest > query.max_tokens:
                raise ParameterError(
                    f"max_tokens: the longest row takes {longest} tokens with padding",
                    400,
                    f"ask for max_tokens={longest} at least, or build with a smaller max-length",
                )
            shortest = deal.padded(min(int(s.info["min_length"]) for _, s, _ in parts))
            deal = replace(deal, batch_size=min(deal.batch_size, query.max_tokens // max(1, shortest)))
        step = deal.batch_size * deal.world
        if query.balance != "none" and query.world > 1 and step > _MAX_BALANCED:
            hint = f"ask for a batch_size of {_MAX_BALANCED // query.world} at most"
            raise ParameterError(f"balance: a step of {step} rows cannot be balanced", 400, hint)
        return deal


def _max_length(manifest: dict[str, Any]) -> int:
    """--max-length of the build, 0 if the settings lack it."""
    settings = manifest.get("settings")
    value = settings.get("max-length") if isinstance(settings, dict) else None
    return value if isinstance(value, int) and 0 < value <= MAX_ROW_TOKENS else 0


def causal_labels(row: Mapping[str, Array], dtype: np.dtype[Any], borders: bool = True) -> Array:
    """The labels of a row: its ids, but what its mask leaves out, and with borders the first of each segment, is
    ignored."""
    labels = row["input_ids"].astype(dtype)
    if "loss_mask" in row:
        labels[~row["loss_mask"]] = IGNORED_LABEL
    if borders and "segments" in row:
        labels[np.cumsum(row["segments"]) - row["segments"]] = IGNORED_LABEL
    return labels


class _Collate:
    """Turns a step's rows into a padded batch."""

    def __init__(
        self,
        query: Query,
        manifest: dict[str, Any],
        deal: StepOptions,
        mixed: bool,
        sources: Optional[RowSources] = None,
    ) -> None:
        self._query, self._deal, self._mixed, self._sources = query, deal, mixed, sources
        self._dtype = np.dtype(query.dtype)
        special = manifest["tokenizer"].get("special") or {}
        self._pad = next((special[k] for k in ("pad", "eos") if k in special), 0)
        schema = manifest["schema"]
        self._packed = bool(schema["segments"]) or query.packed
        self._names = ["input_ids"]
        if query.labels == "seq2seq":
            self._names.append("labels")
        if query.labels == "causal" and schema["loss_mask"]:
            self._names.append("loss_mask")
        if schema["segments"]:
            self._names.append("segments")

    def _join(self, pieces: list[tuple[int, int, int, int]], splits: Sequence[Split]) -> dict[str, Array]:
        """A packed row of pieces, each (source, row, first token, tokens)."""
        found = []
        for source, number, at, n in pieces:
            row = splits[source].read(np.array([number], np.int64), self._names)[0]
            whole = row.get("segments")
            found.append({name: values[at : at + n] for name, values in row.items() if name != "segments"})
            found[-1]["segments"] = np.array([n], np.int32) if whole is None else cut_segments(whole, at, n)
        return {name: np.concatenate([f[name] for f in found]) for name in found[0]}

    def _rows(self, step: Union[Step, PackedStep], splits: Sequence[Split]) -> list[dict[str, Array]]:
        if isinstance(step, PackedStep):
            return [self._join(pieces, splits) for pieces in step.pieces]
        if len(splits) == 1:
            return splits[0].read(step.rows, self._names)
        out: list[Any] = [None] * len(step.rows)
        for s, split in enumerate(splits):
            here = np.flatnonzero(step.sources == s)
            for i, row in zip(here.tolist(), split.read(step.rows[here], self._names)):
                out[i] = row
        return out

    def __call__(self, step: Union[Step, PackedStep], splits: Sequence[Split]) -> dict[str, Array]:
        rows = self._rows(step, splits)
        ids = [r["input_ids"] for r in rows]
        lengths = np.array([len(x) for x in ids], np.int32)
        length = self._deal.padded(int(lengths.max()))
        out = {
            "input_ids": self._padded(ids, length, self._pad),
            "attention_mask": self._padded([np.ones(n, np.int8) for n in lengths], length, 0),
        }
        if self._query.labels == "causal":
            borders = self._packed and self._query.borders == "mask"
            labels = ids
            if borders or "loss_mask" in self._names:
                labels = [causal_labels(r, self._dtype, borders) for r in rows]
            out["labels"] = self._padded(labels, length, IGNORED_LABEL)
        elif self._query.labels == "seq2seq":
            targets = [r["labels"] for r in rows]
            out["labels"] = self._padded(targets, self._deal.padded(max(map(len, targets))), IGNORED_LABEL)
        if self._packed:
            segments = [r["segments"] for r in rows]
            places = [np.concatenate([np.arange(n) for n in s]) for s in segments]
            numbers = [np.repeat(np.arange(1, len(s) + 1), s) for s in segments]
            out["position_ids"] = self._padded(places, length, 0)
            out["segments"] = self._padded(numbers, length, 0)
        out["length"] = lengths
        fillers = step.positions == FILLER
        if fillers.any() and "labels" in out:
            out["labels"][fillers] = IGNORED_LABEL
        out["example"] = np.where(fillers, FILLER, step.rows).astype(np.int64)
        out["row"] = step.positions
        out["next"] = np.full(len(rows), step.next, np.int64)
        if self._mixed or self._sources is not None:
            out["dataset"] = step.sources.astype(np.int32)
        if self._sources is not None:
            out["source"] = self._sources.of(step.sources, step.rows)
        return out

    def _padded(self, rows: Sequence[Array], length: int, value: int) -> Array:
        out = np.full((len(rows), length), value, self._dtype)
        for i, row in enumerate(rows):
            if self._query.padding_side == "left":
                out[i, length - len(row) :] = row
            else:
                out[i, : len(row)] = row
        return out
