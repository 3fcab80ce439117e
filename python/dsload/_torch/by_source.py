"""The loss of each source of a step, exact over ranks."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from typing import Any, Optional, Union

import numpy as np

from .._query import IGNORED_LABEL


def by_source(
    losses: Any, batch: Mapping[str, Any], names: Optional[Sequence[str]] = None, *, column: str = "source"
) -> dict[Union[int, str], float]:
    """The mean loss of each source of a batch; with torch.distributed initialised, of the step's batches of all ranks,
    each of which has to call it. It is the mean over all ranks' tokens or rows, not of the ranks' means.

    Args:
        losses: of rows (rows,), each of which counts once; or of tokens, (rows, length) in the places of labels or
            (rows, length - 1) as models shift them, of which those count whose label is not -100.
        batch: with the column `source`: `dsload.Loader(…, columns=("input_ids", "attention_mask", "labels",
            "example", "dataset", "source"))`. Fillers, whose example is -1, do not count.
        names: what the sources are called: `loader.sources`. None for their numbers.
        column: "dataset" for the datasets of a mix.

    Example::

        with torch.no_grad():
            losses = torch.nn.functional.cross_entropy(
                logits[:, :-1].transpose(1, 2), batch["labels"][:, 1:], reduction="none")  # -100 gives 0
        log(dsload.by_source(losses, batch, loader.sources))
    """
    if column not in batch:
        raise ValueError(
            f"the batch has no column {column!r}; make the loader with columns=(…, {column!r}), as in "
            "columns=('input_ids', 'attention_mask', 'labels', 'example', 'dataset', 'source')"
        )
    torch = sys.modules.get("torch")
    values = _array(losses)
    sources = _array(batch[column]).astype(np.int64)
    if values.ndim == 0 or len(sources) != len(values):
        raise ValueError(
            f"losses of shape {values.shape}: the batch has {len(sources)} rows, each with losses of its own"
        )
    counts = _counts(values, batch)
    values = np.where(counts, values, 0.0)  # what does not count may be infinite
    axes = tuple(range(1, values.ndim))
    sums, numbers = values.sum(axes), counts.sum(axes).astype(np.float64)
    total = np.zeros((2, int(sources.max(initial=-1)) + 1))
    np.add.at(total, (0, sources), sums)
    np.add.at(total, (1, sources), numbers)
    if torch is not None and torch.distributed.is_available() and torch.distributed.is_initialized():
        total = _over_ranks(torch, total)
    found = np.flatnonzero(total[1]).tolist()
    if names is not None and found and found[-1] >= len(names):
        raise ValueError(
            f"the batch has rows of source {found[-1]}, counted from 0, and there are {len(names)} names: give "
            "loader.sources of the loader that made the batch, or None for numbers"
        )
    return {names[i] if names is not None else i: float(total[0, i] / total[1, i]) for i in found}


def _array(values: Any) -> Any:
    if hasattr(values, "detach"):
        values = values.detach()
        values = values.double().cpu().numpy() if values.is_floating_point() else values.cpu().numpy()
    return np.asarray(values)


def _counts(values: Any, batch: Mapping[str, Any]) -> Any:
    """Which of the losses count."""
    counts = np.ones(values.shape, bool)
    if values.ndim == 2:
        if "labels" not in batch:
            raise ValueError("losses of tokens need the column 'labels', which says which of them count; name it, too")
        labels = _array(batch["labels"])
        if values.shape[1] not in (labels.shape[1], labels.shape[1] - 1):
            raise ValueError(
                f"losses of {values.shape[1]} tokens a row do not belong to labels of {labels.shape[1]}: give (rows, "
                "length), (rows, length - 1) or (rows,)"
            )
        counts = labels[:, labels.shape[1] - values.shape[1] :] != IGNORED_LABEL
    elif values.ndim != 1:
        raise ValueError(f"losses of shape {tuple(values.shape)}: give (rows,), or (rows, length) with labels")
    if "example" in batch:
        counts = counts & (_array(batch["example"]) >= 0).reshape(-1, *[1] * (values.ndim - 1))
    return counts


def _over_ranks(torch: Any, total: Any) -> Any:
    """The sums of all ranks, which may have met different sources."""
    dist = torch.distributed
    device = torch.device("cuda", torch.cuda.current_device()) if dist.get_backend() == "nccl" else "cpu"
    most = torch.tensor([total.shape[1]], dtype=torch.int64, device=device)
    dist.all_reduce(most, op=dist.ReduceOp.MAX)
    whole = torch.zeros(2, int(most), dtype=torch.float64, device=device)
    whole[:, : total.shape[1]] = torch.from_numpy(total).to(device)
    dist.all_reduce(whole)
    return whole.cpu().numpy()
