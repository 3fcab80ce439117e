"""What Trainer does on several ranks with fillers: rows that only keep a rank in step with the others (tail="once").

Their labels are all -100, so in a batch with other rows they change no loss. A batch of a filler alone has a mean loss
of 0/0, and predictions of fillers are not those of a row. Neither counts: the loss of such a batch is left out when
evaluating, and is 0 when training.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .._loader.loader import Loader

_IGNORED = -100


class CountedOnce:
    """The part of TrainerMixin that leaves fillers out."""

    _gathered: Any = None  # while Trainer evaluates on a loader with fillers
    _blank = False  # the batch that is trained on has no row that counts

    def evaluation_loop(self, dataloader: Any, *args: Any, **kwargs: Any) -> Any:
        if not has_fillers(getattr(dataloader, "loader", None)):
            return super().evaluation_loop(dataloader, *args, **kwargs)  # type: ignore[misc]
        before: Any = self.gather_function  # type: ignore[has-type]
        self.gather_function = self._gathered = _Gathered(self)
        try:
            return super().evaluation_loop(dataloader, *args, **kwargs)  # type: ignore[misc]
        finally:
            self.gather_function, self._gathered = before, None

    def prediction_step(self, model: Any, inputs: Any, *args: Any, **kwargs: Any) -> Any:
        result = super().prediction_step(model, inputs, *args, **kwargs)  # type: ignore[misc]
        if self._gathered is not None:
            self._gathered.step(inputs, result[0])
        return result

    def training_step(self, model: Any, inputs: Any, *args: Any, **kwargs: Any) -> Any:
        loader = getattr(self, "train_dataset", None)
        self._blank = has_fillers(loader) and not counting(inputs).any()
        try:
            return super().training_step(model, inputs, *args, **kwargs)  # type: ignore[misc]
        finally:
            self._blank = False

    def compute_loss(self, model: Any, inputs: Any, *args: Any, **kwargs: Any) -> Any:
        if not self._blank:
            return super().compute_loss(model, inputs, *args, **kwargs)  # type: ignore[misc]
        # The gradients of 0/0 are not numbers: any labels do, times 0.
        inputs["labels"] = inputs["labels"].masked_fill(inputs["labels"] == _IGNORED, 0)
        out = super().compute_loss(model, inputs, *args, **kwargs)  # type: ignore[misc]
        return (out[0] * 0, *out[1:]) if isinstance(out, tuple) else out * 0


def has_fillers(loader: Any) -> bool:
    return isinstance(loader, Loader) and loader.world > 1 and loader._query.tail_or_default == "once"


def refuse_uneven(loader: Loader) -> None:
    """Raises ValueError if the ranks would get different numbers of batches, or of rows in a step that Trainer
    gathers."""
    query = loader._query
    if loader.world == 1 or query.tail_or_default != "keep":
        return
    if query.uneven or loader._epochs.rows % (query.rows_a_batch * loader.world):
        raise ValueError(
            'tail: with "keep" the ranks get different numbers of batches at the end of an epoch, and Trainer\'s would '
            'wait for each other for ever; leave tail out, or make the loader with tail="once", which yields every row '
            'once, or tail="drop"'
        )


def counting(inputs: Mapping[str, Any]) -> Any:
    """Which rows of a batch count. Without the column example, those that have a label."""
    example = inputs.get("example")
    return example >= 0 if example is not None else (inputs["labels"] != _IGNORED).any(dim=1)


class _Gathered:
    """Trainer's gather_function for batches with fillers: what all ranks have of a step, without the fillers."""

    def __init__(self, trainer: Any) -> None:
        self._trainer, self._accelerator = trainer, trainer.accelerator
        self._rows: Any = None  # of all ranks: whether they count
        self._ranks: Any = None  # whether the loss of each rank counts
        self._loss_is_next = False

    def step(self, inputs: Mapping[str, Any], loss: Any) -> None:
        """Takes this rank's batch of a step, and its loss, which is gathered next."""
        import torch

        rows = counting(inputs).to(self._trainer.args.device)
        counts = rows.any()
        if loss is not None and self._weighs_by_tokens():
            counts = ~loss.isnan()  # a filler's is 0, which the other ranks' shares of the step's tokens make up for
        self._rows = self._gather(rows.to(torch.uint8)).bool()
        self._ranks = self._accelerator.gather(counts.to(torch.uint8).reshape(1)).bool()
        self._loss_is_next = loss is not None

    def _weighs_by_tokens(self) -> bool:
        """Reports whether Trainer has divided the loss by the tokens of all ranks."""
        t = self._trainer
        takes = getattr(t, "model_accepts_loss_kwargs", False) or getattr(t, "compute_loss_func", None) is not None
        return bool(
            takes and getattr(t.args, "average_tokens_across_devices", False) and hasattr(t, "_get_num_items_in_batch")
        )

    def _gather(self, data: Any) -> Any:
        # Under max_tokens and balance the ranks have different numbers of rows.
        return self._accelerator.gather(self._accelerator.pad_across_processes(data, dim=0))

    def __call__(self, data: Any, *args: Any, **kwargs: Any) -> Any:
        from accelerate.utils import recursively_apply

        if self._loss_is_next:  # each rank's, repeated
            self._loss_is_next = False
            return self._accelerator.gather(data).view(len(self._ranks), -1)[self._ranks].flatten()
        rows = self._rows

        def counting_rows(tensor: Any) -> Any:
            return tensor[rows] if tensor.ndim and len(tensor) == len(rows) else tensor

        return recursively_apply(counting_rows, self._gather(data))
