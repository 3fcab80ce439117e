"""The columns of a loader's batches: those that were asked for, as tensors, and those that are computed from them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Optional, Union

from .._for_models import COMPUTED, FOR_MODELS, MASK, PackedBatch, computed
from .._query import Query
from .._show import NotebookBatch, Origin
from .._words import did_you_mean
from .source import Source

Batch = dict[str, Any]


class Columns:
    """The columns that a loader yields. wanted: their names, or one of them; None for all. origin: what a
    notebook needs to show a batch, None for a server's, whose dataset may lie elsewhere."""

    def __init__(self, wanted: Union[Iterable[str], str, None], origin: Optional[Origin] = None) -> None:
        if wanted is not None and not isinstance(wanted, Iterable):
            raise ValueError(f"columns: {wanted!r} is not a list of names, as in ('input_ids', 'labels')")
        self._wanted = (wanted,) if isinstance(wanted, str) else tuple(wanted) if wanted is not None else None
        if self._wanted == ():
            raise ValueError("columns: it names none; leave it out for all of them")
        self._origin = origin
        given = self._wanted
        # Without its companions, position_ids would not keep documents apart.
        self._computed = frozenset(
            COMPUTED if given is None else (*given, *(FOR_MODELS if "position_ids" in given else ()))
        )

    def tell_sources(self, datasets: int) -> bool:
        """Reports whether batches of so many datasets have to be asked for the columns dataset and source."""
        wanted = self._wanted or ()
        return "source" in wanted or ("dataset" in wanted and datasets == 1)

    def check(self, source: Source, query: Query) -> None:
        """Raises ValueError for names that the query's batches do not have, and for those with which a model would take
        a packed row for one document."""
        wanted = self._wanted
        if wanted is None:
            return
        have = source.columns(query)
        if "segments" in have:
            have += [name for name in COMPUTED if name not in have]
        unknown = [name for name in wanted if name not in have]
        if unknown and have:
            hint = did_you_mean(unknown[0], have)
            raise ValueError(
                f"columns: there is no {', '.join(map(repr, unknown))}; the batches have {', '.join(have)}{hint}"
            )
        if "segments" not in have or query.borders != "mask":
            return
        if MASK in wanted:
            raise ValueError(
                f"columns: rows are packed, and a model that is given their {MASK} lets documents attend to each "
                "other; name 'position_ids' in its place, or 'segments', which is 0 on padding"
            )
        if "labels" in wanted and not {"position_ids", "segments", "cu_seqlens", "cu_seq_lens_q"}.intersection(wanted):
            raise ValueError(
                "columns: rows are packed, and without 'position_ids' a model lets their documents attend to each "
                "other; name it too, or pass borders='keep' if each row is to be one document"
            )

    @property
    def read(self) -> Optional[set[str]]:
        """The columns that have to be read; None for all."""
        if self._wanted is None:
            return None
        names = {name for name in self._wanted if name not in COMPUTED}
        return {"row", "next", *names, *(("segments",) if self._computed.intersection(COMPUTED) else ())}

    def of(self, arrays: Batch, output: Any) -> Batch:
        """The columns of a batch that was read, as `output` makes them."""
        wanted = self._wanted
        if "segments" not in arrays:
            plain = NotebookBatch(
                output.convert(arrays if wanted is None else {name: arrays[name] for name in wanted if name in arrays})
            )
            plain.origin = self._origin
            return plain
        names = (
            [name for name in arrays if name != MASK] if wanted is None else [name for name in wanted if name in arrays]
        )
        batch = PackedBatch(output.convert({name: arrays[name] for name in names}))
        if not self._computed.isdisjoint(COMPUTED):
            batch.update(
                (name, v) for name, v in computed(arrays["segments"], output.own).items() if name in self._computed
            )
        batch.origin = self._origin
        return batch
