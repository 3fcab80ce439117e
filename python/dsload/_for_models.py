"""Packed rows as models take them.

Models of the transformers library, called as model(**batch), keep documents apart where they get the position of
each token in its document, no attention_mask and no cache, and flash attention also the borders over the flattened
batch. So a packed batch has no attention_mask among its columns, and says use_cache=False.
"""

from __future__ import annotations

import warnings
from typing import Any

from ._show import NotebookBatch

# Computed from the column segments. transformers takes the last five, which come along with position_ids.
COMPUTED = ("cu_seqlens", "max_seqlen", "cu_seq_lens_q", "cu_seq_lens_k", "max_length_q", "max_length_k", "use_cache")
FOR_MODELS = COMPUTED[2:]
BORDERS = COMPUTED[:-1]
MASK = "attention_mask"


class PackedBatch(NotebookBatch):
    """A batch of packed rows. Its attention_mask, which marks padding only, is made for those who ask for it by
    name."""

    def __missing__(self, name: str) -> Any:
        if name != MASK or "segments" not in self:
            raise KeyError(name)
        warnings.warn(
            "attention_mask of packed rows marks padding only: a model of transformers that is given it lets "
            "documents attend to each other; call model(**batch), or give it position_ids and use_cache=False in its "
            "place",
            stacklevel=2,
        )
        segments = self["segments"]
        mask = segments != 0
        return mask.astype(segments.dtype) if hasattr(mask, "astype") else mask.to(segments.dtype)


def computed(segments: Any, own: Any) -> dict[str, Any]:
    """The columns that are computed from the column segments, an array. own: makes a tensor of an array."""
    from ._order.packing import varlen  # here, so that dsload.memory loads without numpy

    borders, longest = varlen(segments)
    borders = own(borders)
    return dict(zip(COMPUTED, (borders, longest, borders, borders, longest, longest, False)))
