"""The columns of a loader's batches: those that were asked for, as tensors, and those that are computed from them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Optional, Union

from ._packing import varlen
from ._query import Query
from ._source import Source

Batch = dict[str, Any]

_VARLEN = ("cu_seqlens", "max_seqlen")  # computed from the column segments


class Columns:
    """The columns that a loader yields. wanted: their names, or one of them; None for all."""

    def __init__(self, wanted: Union[Iterable[str], str, None]) -> None:
        self._wanted = (wanted,) if isinstance(wanted, str) else tuple(wanted) if wanted is not None else None

    def check(self, source: Source, query: Query) -> None:
        """Raises ValueError for names that the query's batches do not have."""
        if self._wanted is None:
            return
        have = source.columns(query)
        if "segments" in have:
            have += [name for name in _VARLEN if name not in have]
        unknown = [name for name in self._wanted if name not in have]
        if unknown and have:
            raise ValueError(f"columns: there is no {', '.join(map(repr, unknown))}; the batches have {', '.join(have)}")

    @property
    def read(self) -> Optional[set[str]]:
        """The columns that have to be read; None for all."""
        if self._wanted is None:
            return None
        return {"row", "next", *(name if name not in _VARLEN else "segments" for name in self._wanted)}

    def of(self, arrays: Batch, output: Any) -> Batch:
        """The columns of a batch that was read, as `output` makes them."""
        wanted = self._wanted
        batch: Batch = output.convert(arrays if wanted is None else {name: arrays[name] for name in wanted if name in arrays})
        if "segments" in arrays and (wanted is None or not set(_VARLEN).isdisjoint(wanted)):
            borders, longest = varlen(arrays["segments"])
            computed = {"cu_seqlens": output.own(borders), "max_seqlen": longest}
            batch.update(computed if wanted is None else {name: v for name, v in computed.items() if name in wanted})
        return batch
