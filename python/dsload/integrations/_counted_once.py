"""What Trainer does with batches that count differently: of fewer rows than others, of fillers (rows that only keep a
rank in step with the others, tail="once"), of rows without a trained token, and of an epoch's end that does not fill a
step.

An evaluation weighs the loss of a batch by its rows, where Trainer repeats each alike. Fillers count neither in it nor
in predictions. A batch without a token that carries loss, whose mean would be 0/0, is left out when evaluating, and its
loss is 0 when training.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any

from .._for_models import PackedBatch
from .._loader.loader import Loader
from .._query import IGNORED_LABEL
from ._documents import base_of


class CountedOnce:
    """The part of TrainerMixin that counts rows."""

    _gathered: Any = None  # while Trainer evaluates on a loader
    _blank = False  # no token of the batch that is trained on carries loss
    _batches_of_step = 0  # of a loader, without those that only fill the step

    def evaluation_loop(self, dataloader: Any, *args: Any, **kwargs: Any) -> Any:
        loader = getattr(dataloader, "loader", None)
        if not isinstance(loader, Loader):
            return super().evaluation_loop(dataloader, *args, **kwargs)  # type: ignore[misc]
        before: Any = self.gather_function  # type: ignore[has-type]
        self.gather_function = self._gathered = _Gathered(self, has_fillers(loader))
        try:
            with loader._iterations.aside():  # it may be the one that is trained on
                return super().evaluation_loop(dataloader, *args, **kwargs)  # type: ignore[misc]
        finally:
            self.gather_function, self._gathered = before, None

    def prediction_step(self, model: Any, inputs: Any, *args: Any, **kwargs: Any) -> Any:
        if self._gathered is None:
            return super().prediction_step(model, inputs, *args, **kwargs)  # type: ignore[misc]
        accepts = getattr(self, "model_accepts_loss_kwargs", False)
        self.model_accepts_loss_kwargs = accepts and _divides_by_tokens(self.model)  # type: ignore[attr-defined]
        try:
            result = super().prediction_step(model, inputs, *args, **kwargs)  # type: ignore[misc]
        finally:
            self.model_accepts_loss_kwargs = accepts
        self._gathered.step(inputs, result[0])
        return result

    def get_batch_samples(self, epoch_iterator: Any, num_batches: int, *args: Any, **kwargs: Any) -> Any:
        """The batches of a step. Where an epoch of unknown length ends within one, Trainer would add the step's
        gradients to those of the next epoch's first: it takes a step when it has seen num_batches."""
        samples, items = super().get_batch_samples(epoch_iterator, num_batches, *args, **kwargs)  # type: ignore[misc]
        loader = getattr(self, "train_dataset", None)
        if isinstance(loader, Loader) and samples:
            self._batches_of_step = len(samples)
            if loader._query.uneven:
                samples += [_unlabelled(samples[-1])] * (num_batches - len(samples))
        return samples, items

    def training_step(self, model: Any, inputs: Any, *args: Any, **kwargs: Any) -> Any:
        if self._batches_of_step:
            self.current_gradient_accumulation_steps = self._batches_of_step
        self._blank = isinstance(getattr(self, "train_dataset", None), Loader) and not self._trains(inputs)
        try:
            return super().training_step(model, inputs, *args, **kwargs)  # type: ignore[misc]
        finally:
            self._blank = False

    def compute_loss(self, model: Any, inputs: Any, *args: Any, **kwargs: Any) -> Any:
        if not self._blank:
            return super().compute_loss(model, inputs, *args, **kwargs)  # type: ignore[misc]
        from .._feed.no_loss import NoLoss

        labels, items = inputs["labels"], kwargs.get("num_items_in_batch")
        if items is not None:  # the sum of the losses is divided by it
            kwargs["num_items_in_batch"] = items.clamp(min=1) if hasattr(items, "clamp") else max(items, 1)
        # A model that computes its loss without torch's functions gets other labels: any do, times 0.
        for some in labels.as_subclass(NoLoss), labels.masked_fill(labels == IGNORED_LABEL, 0):
            out = super().compute_loss(model, {**inputs, "labels": some}, *args, **kwargs)  # type: ignore[misc]
            loss, *rest = out if isinstance(out, tuple) else (out,)
            if loss.isfinite().all():
                break
        # Nor does what a model adds to its loss count, as for the balance of experts.
        return (loss * 0, *rest) if rest else loss * 0

    def _trains(self, inputs: Mapping[str, Any]) -> bool:
        """Reports whether a token of the batch carries loss."""
        labels = inputs.get("labels")
        if labels is None:
            return True
        first = 1 if getattr(self, "_loss_shifts_labels", False) else 0
        return bool((labels[:, first:] != IGNORED_LABEL).any())


def _divides_by_tokens(model: Any) -> bool:
    """Reports whether the model divides its loss by the number of tokens that Trainer gives it. Trainer expects it of
    every forward with **kwargs, and on several ranks it multiplies the loss; but T5's is the mean over its own
    batch."""
    forward = inspect.unwrap(type(base_of(model)).forward)
    if not forward.__module__.startswith("transformers."):
        return True
    return "loss_function" in getattr(getattr(forward, "__code__", None), "co_names", ("loss_function",))


def _unlabelled(batch: Mapping[str, Any]) -> Any:
    """A copy of a batch in which nothing counts."""
    copy = PackedBatch(batch) if isinstance(batch, PackedBatch) else dict(batch)
    for name, nothing in ("labels", IGNORED_LABEL), ("example", -1):
        if name in copy:
            copy[name] = copy[name].new_full(copy[name].shape, nothing)
    return copy


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
    return example >= 0 if example is not None else (inputs["labels"] != IGNORED_LABEL).any(dim=1)


class _Gathered:
    """Trainer's gather_function for a loader's batches: what all ranks have of a step, without fillers, and each loss
    as often as its batch has rows that count."""

    def __init__(self, trainer: Any, fillers: bool) -> None:
        self._trainer, self._accelerator, self._fillers = trainer, trainer.accelerator, fillers
        self._rows: Any = None  # of all ranks: whether they count
        self._weights: Any = None  # of each rank's loss: the rows of its batch; 0 if no token of it carries loss
        self._loss_is_next = False

    def step(self, inputs: Mapping[str, Any], loss: Any) -> None:
        """Takes this rank's batch of a step, and its loss, which is gathered next."""
        ids = inputs["input_ids"]
        rows = (counting(inputs) if self._fillers else ids.new_ones(len(ids))).to(self._trainer.args.device)
        self._rows = self._gather(rows.byte()).bool()
        self._weights = self._accelerator.gather(rows.sum().reshape(1) * int(self._trainer._trains(inputs)))
        self._loss_is_next = loss is not None

    def _weighs_by_tokens(self) -> bool:
        """Reports whether Trainer has divided the loss by the tokens of all ranks."""
        t = self._trainer
        takes = getattr(t, "model_accepts_loss_kwargs", False) and _divides_by_tokens(t.model)
        takes = takes or getattr(t, "compute_loss_func", None) is not None
        return bool(
            takes and getattr(t.args, "average_tokens_across_devices", False) and hasattr(t, "_get_num_items_in_batch")
        )

    def _gather(self, data: Any) -> Any:
        # Under max_tokens and balance the ranks have different numbers of rows.
        return self._accelerator.gather(self._accelerator.pad_across_processes(data, dim=0))

    def __call__(self, data: Any, *args: Any, **kwargs: Any) -> Any:
        from accelerate.utils import recursively_apply

        if self._loss_is_next:
            self._loss_is_next = False
            losses = self._accelerator.gather(data[:1])
            if len(losses) > 1 and self._weighs_by_tokens():
                # Parts of one mean, over all ranks: those of fillers are 0, which the others' make up for.
                losses = losses.mean().expand(len(losses))
            return losses.repeat_interleave(self._weights)
        rows = self._rows
        if rows.all():
            return self._gather(data)

        def counting_rows(tensor: Any) -> Any:
            return tensor[rows] if tensor.ndim and len(tensor) == len(rows) else tensor

        return recursively_apply(counting_rows, self._gather(data))
