"""Which source each row of a split came from, as its manifest says."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Optional

import numpy as np
import numpy.typing as npt

from ..errors import ParameterError

I64 = npt.NDArray[np.int64]


def _split(manifest: dict[str, Any], split: str) -> dict[str, Any]:
    return next((s for s in manifest["splits"] if s["name"] == split), {})


def names(manifest: dict[str, Any], split: str) -> list[str]:
    """The names of a split's sources, in the order of the column `source`."""
    given = [str(s["uri"]) for s in _split(manifest, split).get("sources") or ()]
    return given if len(given) > 1 else [str(s["uri"]) for s in manifest["sources"]][:1] or [""]


def _starts(manifest: dict[str, Any], split: str) -> Optional[I64]:
    """How many rows come before each source; None if rows do not tell theirs."""
    counts = _split(manifest, split).get("sources") or ()
    if len(counts) < 2 or manifest["schema"]["segments"]:
        return np.zeros(1, np.int64) if len(manifest["sources"]) == 1 else None
    rows = np.array([s["rows"] for s in counts], np.int64)
    return np.cumsum(rows) - rows


class RowSources:
    """The sources of the rows of a stream. datasets: (name, manifest) pairs. packed: rows are packed while they are
    read. Raises ParameterError, as a server would, where rows do not tell their source."""

    def __init__(self, datasets: Sequence[tuple[str, dict[str, Any]]], split: str, packed: bool) -> None:
        self._starts, self._first, total = [], [], 0
        for name, manifest in datasets:
            starts = _starts(manifest, split)
            if starts is None and manifest["schema"]["segments"]:
                raise ParameterError(
                    f"sources: the build of {name} packed its rows, each of several sources",
                    400,
                    "build without pack, and pack nothing here either; or serve each source as a dataset of its own, "
                    "whose mix has the column dataset",
                )
            if starts is None:
                raise ParameterError(
                    f"sources: dataset {name} does not record which rows came from which source",
                    400,
                    "it was built by an earlier version: build it again",
                )
            self._starts.append(starts)
            self._first.append(total)
            total += len(starts)
        if packed and total > 1:
            raise ParameterError(
                "sources: packed rows hold documents of several sources", 400, "leave pack out, or sources"
            )

    def of(self, datasets: I64, rows: I64) -> npt.NDArray[np.int32]:
        """The sources of rows of datasets, which are given by their numbers."""
        out = np.zeros(len(rows), np.int32)
        for d, starts in enumerate(self._starts):
            here = datasets == d
            out[here] = self._first[d] + np.searchsorted(starts, rows[here], side="right") - 1
        return out
