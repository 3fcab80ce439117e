"""stats: `dsload stats` as a function, whose figures are plain values."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Union, overload

from .._binary import required_binary
from .._read.manifest import is_address, open_manifest
from .._words import in_python
from ..errors import Corrupt, DsloadError

if TYPE_CHECKING:
    from matplotlib.figure import Figure

PathLike = Union[str, "os.PathLike[str]"]
Row = dict[str, Any]

_CORRUPT = 3  # the command's exit code for damaged data
_SUMMARIES = ("length", "document_length")
_LISTS = ("lengths", "document_lengths", "padding", "packing", "top_tokens", "samples")


def stats(dataset: PathLike) -> Stats:
    """Reads a dataset and returns its figures: lengths, padding by batch size and bucket, how full packed rows would
    be, and frequent tokens.

    Example::

        figures = dsload.stats("data")
        pandas.DataFrame(figures)                # a row a split
        pandas.DataFrame(figures.padding)        # a row a batch size and bucket
        figures.plot()                           # in a notebook: the charts of dsload stats --html

    Args:
        dataset: a folder, or its address in a bucket (s3://…, gs://…, az://…).

    Raises:
        FileNotFoundError, NotADirectoryError: if no dataset is there. Corrupt: if it is damaged.
        DsloadError: with the command's message for any other failure, and where there is no dsload program.
    """
    folder = os.fspath(dataset)
    if not is_address(folder):
        os.close(open_manifest(folder))
    command = [required_binary("stats"), "stats", "--json", "--", folder]
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True)
    if done.returncode != 0:
        lines = done.stderr.decode(errors="replace").strip().splitlines()
        message = in_python(lines[-1]) if lines else f"dsload stats ended with exit code {done.returncode}"
        raise (Corrupt if done.returncode == _CORRUPT else DsloadError)(message)
    return Stats(json.loads(done.stdout))


class Stats(Sequence[Row]):
    """The figures of a dataset: a sequence with a dict for each split, of numbers and strings alone, from which
    pandas.DataFrame and polars.DataFrame make a table.

    The keys are `split`, `examples`, `tokens` and `documents`; `length_min`, `length_mean`, `length_p50`, `length_p95`
    and `length_max` in tokens, and the same of `document_length`; `best_batch_size` and `best_bucket`, with
    `best_waste` and `best_waste_without` the bucket, shares of padding; and `bytes_per_token`, `unknown`, `replaced`,
    `byte_fallback` and `duplicates`, None where unknown. The other tables are attributes.

    report: all that `dsload stats --json` prints.
    """

    def __init__(self, report: dict[str, Any]) -> None:
        self.report = report
        self._rows = [_flat(split) for split in report["splits"]]

    @property
    def lengths(self) -> list[Row]:
        """How many rows have a length: `split`, `tokens`, `rows`. From 65,536 tokens on, lower bounds of buckets."""
        return self._pairs("lengths", "rows")

    @property
    def document_lengths(self) -> list[Row]:
        """How many documents have a length: `split`, `tokens`, `documents`."""
        return self._pairs("document_lengths", "documents")

    @property
    def padding(self) -> list[Row]:
        """`waste`, the share of padding in all batches, by `split`, `batch_size` and `bucket`, the window in rows that
        is sorted by length (0: none)."""
        return self._table("padding")

    @property
    def packing(self) -> list[Row]:
        """`fill`, the share of packed rows that holds tokens, by `split`, `policy` and `length`; the number of `rows`,
        and the tokens that are `dropped`."""
        return self._table("packing")

    @property
    def top_tokens(self) -> list[Row]:
        """The most frequent tokens: `split`, `id`, `text`, `count`, `share`."""
        return self._table("top_tokens")

    def plot(self) -> Figure:
        """Draws the charts of `dsload stats --html`, a row of four for each split: lengths of rows, tokens a document,
        padding, packing. Returns a matplotlib Figure, which a notebook shows and `savefig` writes.

        Raises ImportError where matplotlib is not installed."""
        from .plot import figure

        return figure(self.report)

    def _pairs(self, name: str, what: str) -> list[Row]:
        return [
            {"split": split["name"], "tokens": tokens, what: count}
            for split in self.report["splits"]
            for tokens, count in split[name]
        ]

    def _table(self, name: str) -> list[Row]:
        return [{"split": split["name"], **row} for split in self.report["splits"] for row in split[name]]

    def __len__(self) -> int:
        return len(self._rows)

    @overload
    def __getitem__(self, index: int) -> Row: ...

    @overload
    def __getitem__(self, index: slice) -> list[Row]: ...

    def __getitem__(self, index: Union[int, slice]) -> Union[Row, list[Row]]:
        return self._rows[index]

    def __iter__(self) -> Iterator[Row]:
        return iter(self._rows)

    def __repr__(self) -> str:
        splits = "; ".join(
            f"{r['split']} {r['examples']:,} rows, {r['tokens']:,} tokens, lengths {r['length_min']:,} to "
            f"{r['length_max']:,}, mean {r['length_mean']:.1f}"
            for r in self._rows
        )
        return f"Stats({self.report['dataset']}: {splits})"


def _flat(split: dict[str, Any]) -> Row:
    row: Row = {"split": split["name"]}
    for name, value in split.items():
        if name in _SUMMARIES or name == "best":
            row.update({f"{name}_{key}": v for key, v in value.items()})
        elif name != "name" and name not in _LISTS:
            row[name] = value
    return row
