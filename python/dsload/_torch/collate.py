"""A collate function for what is a batch already."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Union

from .wrapped import refuse_dropping


def first(batches: Union[Sequence[Any], Mapping[str, Any]]) -> Any:
    """A collate function for DataLoader and Trainer with batch_size=1: each item is a batch already, which
    batch_size=None gives by itself. Raises WrongWrapping for more than one."""
    if isinstance(batches, Mapping):
        return batches
    if len(batches) != 1:
        refuse_dropping("dsload.first", len(batches))
    return batches[0]
