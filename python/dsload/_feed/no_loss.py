"""Labels of a batch in which no token carries loss: a rank's fillers, or rows without a trained token.

The mean loss of such a batch is 0/0, and the loss of a plain loop would not be a number. With these labels it is 0.
"""

from __future__ import annotations

from typing import Any

import torch
from torch.nn import functional

from .._query import IGNORED_LABEL

_LOSSES = (functional.cross_entropy, functional.nll_loss)


class NoLoss(torch.Tensor):  # type: ignore[misc]
    """Labels for which torch's losses are 0, not 0/0, with gradients of 0, where none of them counts.

    Models shift, pad and flatten labels before they compute a loss: integers that follow from these labels are such
    labels too.
    """

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if func in _LOSSES:
            scores, labels = args[0], args[1].as_subclass(torch.Tensor)
            if kwargs.get("reduction") == "mean" and not (labels != kwargs.get("ignore_index", IGNORED_LABEL)).any():
                return scores.flatten()[:0].sum()
            return func(scores, labels, *args[2:], **kwargs)
        out = super().__torch_function__(func, types, args, kwargs)
        counted = isinstance(out, cls) and (out.ndim == 0 or out.dtype not in (torch.int64, torch.int32))
        return out.as_subclass(torch.Tensor) if counted else out


def are_ignored(labels: Any) -> bool:
    """Reports whether no label of an array counts. The first of a row does not: causal models predict the others."""
    if not len(labels) or (labels.shape[1] > 1 and labels[0, 1] != IGNORED_LABEL):  # almost always, and at once
        return False
    return not (labels[0, 1:] != IGNORED_LABEL).any() and not (labels[:, 1:] != IGNORED_LABEL).any()
