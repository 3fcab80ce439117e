"""A collate function for what is a batch already."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..errors import WrongWrapping


def first(batches: Sequence[Any]) -> Any:
    """A collate function for DataLoader and Trainer with batch_size=1: each item is a batch already. Raises
    WrongWrapping for more than one."""
    if len(batches) != 1:
        raise WrongWrapping(
            f"dsload.first got {len(batches)} of the loader's batches and would drop all but one: each is whole, so "
            "use batch_size=1 (per_device_train_batch_size=1 and per_device_eval_batch_size=1 under Trainer), or "
            "DataLoader(loader, batch_size=None)"
        )
    return batches[0]
