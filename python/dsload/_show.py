"""Shows the rows of a batch as text: what carries loss in colour, where documents begin, where rows came from. The
program renders them, as `dsload view` does."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple, Optional, Union

from ._binary import required_binary
from .errors import DsloadError

PathLike = Union[str, "os.PathLike[str]"]
_ROWS = 8  # of a batch that are shown, unless more are asked for


class Origin(NamedTuple):
    """What a batch was read from. dataset: a folder, or {name: folder}."""

    dataset: Any
    split: str


class NotebookBatch(dict):  # type: ignore[type-arg]
    """A batch that a notebook shows as text. origin: what it was read from, if that is known."""

    origin: Optional[Origin] = None

    def _repr_html_(self) -> Optional[str]:
        try:
            return None if self.origin is None else show(self, *self.origin)._repr_html_()
        except (DsloadError, ValueError, KeyError):
            return None  # the notebook shows it as the dict that it is


class Shown:
    """Rows as text: a notebook shows them in colour, print with ⟦ and ⟧ around what carries loss."""

    def __init__(self, html: str, text: str) -> None:
        self._html, self._text = html, text

    def _repr_html_(self) -> str:
        return self._html

    def __repr__(self) -> str:
        return self._text


def show(batch: Mapping[str, Any], dataset: PathLike, split: str = "train", rows: Optional[int] = _ROWS) -> Shown:
    """The rows of a batch as text, with what carries loss in colour.

    batch: what a Loader yields, or a dict of arrays with `input_ids` and, as far as they are there, `labels` (−100
    where there is no loss), `attention_mask`, `length`, `segments` and `example`.
    dataset: the folder that it was read from, here or in a bucket. A mix, {name: folder}, has one tokenizer; where its
    rows came from is not shown. rows: how many are shown; None for all.

    Raises DsloadError where there is no dsload program, or the dataset cannot be read; KeyError without `input_ids`;
    ValueError if these are not rows of ids.
    """
    if rows is not None and (not isinstance(rows, int) or rows < 1):
        raise ValueError(f"rows: {rows!r} is not a whole number from 1 on, or None for all")
    folders = list(dataset.values()) if isinstance(dataset, Mapping) else [dataset]
    arrays = {name: _listed(v) for name, v in batch.items() if name in _COLUMNS}
    if any(not isinstance(ids, list) for ids in arrays["input_ids"]):
        raise ValueError(
            "input_ids of a batch are a list of ids for each row; a row alone is shown as {'input_ids': [ids]}"
        )
    given = list(_given(arrays, len(folders) == 1))
    shown = given if rows is None else given[:rows]
    command = [required_binary("dsload.show"), "view", "--given", "--split", split, "--", os.fspath(folders[0])]
    done = subprocess.run(command, input=json.dumps(shown), capture_output=True, encoding="utf-8")
    if done.returncode != 0:
        raise DsloadError(f"show {os.fspath(folders[0])}: {done.stderr.strip().removeprefix('dsload: ')}")
    made = json.loads(done.stdout)
    if len(shown) < len(given):
        more = f"{len(shown)} of {len(given)} rows; dsload.show(batch, dataset, rows=None) shows all"
        made = {"html": f"{made['html']}<p>{more}</p>", "text": f"{made['text']}\n{more}"}
    return Shown(made["html"], made["text"])


_COLUMNS = ("input_ids", "labels", "attention_mask", "length", "segments", "example")


def _listed(column: Any) -> Any:
    """A column as plain values."""
    return column.tolist() if hasattr(column, "tolist") else [list(v) if hasattr(v, "__iter__") else v for v in column]


def _given(arrays: dict[str, Any], one_dataset: bool) -> Iterator[dict[str, Any]]:
    """The rows of a batch without padding."""
    for i, ids in enumerate(arrays["input_ids"]):
        segments = arrays["segments"][i] if "segments" in arrays else None
        if segments is not None:
            real = [s != 0 for s in segments]
        elif "attention_mask" in arrays:
            real = [m != 0 for m in arrays["attention_mask"][i]]
        else:
            real = [k < arrays["length"][i] for k in range(len(ids))] if "length" in arrays else [True] * len(ids)
        row: dict[str, Any] = {
            "example": arrays["example"][i] if one_dataset and "example" in arrays else -1,
            "input_ids": [v for v, keep in zip(ids, real) if keep],
        }
        if segments is not None:
            row["segments"] = _lengths([s for s in segments if s != 0])
        labels = arrays["labels"][i] if "labels" in arrays else None
        if labels is not None and len(labels) == len(ids) and all(n in (-100, v) for v, n in zip(ids, labels)):
            row["loss_mask"] = [n != -100 for n, keep in zip(labels, real) if keep]
        elif labels is not None:
            row["labels"] = [n for n in labels if n != -100]
        yield row


def _lengths(numbers: list[int]) -> list[int]:
    """The lengths of runs of equal numbers."""
    lengths: list[int] = []
    for k, number in enumerate(numbers):
        if k and number == numbers[k - 1]:
            lengths[-1] += 1
        else:
            lengths.append(1)
    return lengths
