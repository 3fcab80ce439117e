"""TrainerMixin: Hugging Face's Trainer fed by a Loader, without Accelerate's data loaders in between.

Trainer counts batches; the loader counts rows. A checkpoint holds the loader's state, so that a resume costs the same
anywhere and may happen with other numbers of processes or rows a batch. If these have changed, Trainer's own counts of
steps are corrected from the state.
"""

from __future__ import annotations

import json
import math
import os
import warnings
from collections.abc import Iterator
from typing import Any, Optional

from .._for_models import PackedBatch
from .._loader.loader import Loader
from .._torch import wrapped
from .._torch.collate import first
from ..errors import DsloadError
from . import _documents
from ._counted_once import CountedOnce, counting, refuse_uneven

STATE_FILE = "dsload.json"  # in a checkpoint's folder
_STATE_VERSION = 1


class TrainerMixin(CountedOnce):
    """Makes a Trainer whose `train_dataset` is a dsload.Loader.

    Example::

        class MyTrainer(TrainerMixin, Trainer): ...

        loader = dsload.Loader("data", batch_size=8)
        MyTrainer(model, arguments, train_dataset=loader).train(resume_from_checkpoint=True)

    The loader makes whole batches for its rank and world. Trainer counts samples with the loader's batch_size:
    `per_device_train_batch_size` and `per_device_eval_batch_size` are set to it, with a warning if they were given
    another value. Arguments about the order of rows, such as `train_sampling_strategy`, have no effect, and a warning
    says so: the loader's shuffle, bucket, seed and tail decide. Nor has `dataloader_num_workers`: the loader's server
    does the work. Columns that the model's
    forward does not take are dropped, unless `remove_unused_columns=False`. `eval_dataset` may be a Loader too.

    Every checkpoint holds the loader's state, in `dsload.json`. A resume loads it, also in the middle of an epoch, and
    reads none of the earlier batches. If the number of processes, rows per batch or gradient_accumulation_steps have
    changed, the rest of the epochs is counted again, and `global_step` continues from the checkpoint's. With
    `ignore_data_skip=True` the loader keeps its position.

    Epochs are the loader's: training begins at the loader's position, so a second call of train() continues with the
    next order.

    Ids and positions that the model has no embedding for are an error, before the batch goes to the model.

    Packed rows give the loss of their documents alone. A model of transformers that does not keep documents apart is
    refused at its first batch; set `keeps_documents_apart = True` in your class for one that does so in a way of its
    own.

    An evaluation counts every row once, on any number of ranks: in the loss, which is the mean over the rows, and in
    predictions and metrics. An epoch that ends within gradient_accumulation_steps ends with a step of fewer batches.

    Raises:
        DsloadError: on resuming from a checkpoint without a loader's state. ValueError: if the state belongs to another
        dataset, for auto_find_batch_size=True, since the loader makes the batches, for an evaluation of an endless
        loader, and on several ranks for a loader with tail="keep" that gives them different numbers of batches.
    """

    keeps_documents_apart = False

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        _refuse_trl(type(self), args, kwargs)
        super().__init__(*args, **kwargs)
        self._given_collator = kwargs.get("data_collator", args[2] if len(args) > 2 else None)
        self._watch = _documents.Watch(self)
        self._resumed: Optional[_Resumed] = None
        self._first_epoch = 0
        self._rows = 0  # trained on by this rank since train() was called
        self.add_callback(_state_saver(self))  # type: ignore[attr-defined]

    def train(self, resume_from_checkpoint: Any = None, *args: Any, **kwargs: Any) -> Any:
        self._resumed = None
        loader = _loader_of(self, "train_dataset")
        if loader is not None:
            options: Any = self.args  # type: ignore[attr-defined]
            if options.auto_find_batch_size:
                raise ValueError(
                    "auto_find_batch_size: the loader makes the batches; use dsload.memory.find_max_batch_size, and "
                    "make a new Loader"
                )
            _say_ignored(options, loader)
            if self._given_collator not in (None, first):
                warnings.warn(
                    "data_collator has no effect: the loader's batches are whole, with their labels; masks and labels "
                    "of a collator's own need dsload.RandomAccess as train_dataset, in a plain Trainer",
                    stacklevel=2,
                )
            _say_unmasked(self.model, loader)  # type: ignore[attr-defined]
            rows = _set_batch_size(options, "train", loader)
            if rows is not None:
                self._train_batch_size = rows
            self._rows = 0
            checkpoint = _checkpoint(resume_from_checkpoint, options.output_dir)
            self._first_epoch = loader.epoch
            if checkpoint is not None and not options.ignore_data_skip:
                self._load(loader, checkpoint)
        try:
            return super().train(resume_from_checkpoint, *args, **kwargs)  # type: ignore[misc]
        finally:
            self._resumed = None

    def _load(self, loader: Loader, checkpoint: str) -> None:
        saved = _read(checkpoint)
        loader.load_state_dict(saved["loader"])
        self._first_epoch = saved["first_epoch"]
        self._resumed = _Resumed(loader, checkpoint)
        if saved["shape"] != _shape(self, loader) and not hasattr(super(), "_init_training_state"):
            raise DsloadError(
                f"{checkpoint}: taken with another number of processes, rows per batch or "
                "gradient_accumulation_steps; this version of transformers counts steps from the checkpoint's, so "
                "resume with the same ones, or with transformers 5"
            )

    def get_train_dataloader(self) -> Any:
        loader = _loader_of(self, "train_dataset")
        if loader is None:
            return super().get_train_dataloader()  # type: ignore[misc]
        return _batches(loader, self._resumed)

    def get_eval_dataloader(self, eval_dataset: Any = None) -> Any:
        loader = _loader_of(self, "eval_dataset", eval_dataset)
        if loader is None:
            return super().get_eval_dataloader(eval_dataset)  # type: ignore[misc]
        return self._evaluated(loader)

    def get_test_dataloader(self, test_dataset: Any) -> Any:
        if not isinstance(test_dataset, Loader):
            return super().get_test_dataloader(test_dataset)  # type: ignore[misc]
        return self._evaluated(test_dataset)

    def _evaluated(self, loader: Loader) -> Any:
        wrapped.refuse_endless(loader._query)
        _set_batch_size(self.args, "eval", loader)  # type: ignore[attr-defined]
        return _batches(loader, None)

    def num_examples(self, dataloader: Any) -> int:
        loader = getattr(dataloader, "loader", None)
        return loader.num_examples if isinstance(loader, Loader) else super().num_examples(dataloader)  # type: ignore[misc]

    def _prepare_inputs(self, inputs: Any) -> Any:
        packed = isinstance(inputs, PackedBatch)
        ours = packed or (isinstance(inputs, dict) and "input_ids" in inputs and "next" in inputs)
        if ours:
            _documents.check(self.model, inputs)  # type: ignore[attr-defined]
        if ours and self.args.remove_unused_columns:  # type: ignore[attr-defined]
            self._set_signature_columns_if_needed()  # type: ignore[attr-defined]
            names = {*self._signature_columns, *(_documents.taken(self.model) if packed else ())}  # type: ignore[attr-defined]
            inputs = {name: value for name, value in inputs.items() if name in names}
        inputs = super()._prepare_inputs(inputs)  # type: ignore[misc]
        return self._with_decoder_input(inputs) if ours else inputs

    def _with_decoder_input(self, inputs: Any) -> Any:
        """What an encoder-decoder's forward makes of the labels, where Trainer keeps them for a loss of its own."""
        own = getattr(self, "label_smoother", None) is not None or getattr(self, "compute_loss_func", None) is not None
        shifted = getattr(_documents.base_of(self.model), "prepare_decoder_input_ids_from_labels", None)  # type: ignore[attr-defined]
        if own and shifted is not None and "labels" in inputs and "decoder_input_ids" not in inputs:
            inputs["decoder_input_ids"] = shifted(labels=inputs["labels"])
        return inputs

    def training_step(self, model: Any, inputs: Any, *args: Any, **kwargs: Any) -> Any:
        if "input_ids" in inputs:
            self._rows += int(counting(inputs).sum()) if "example" in inputs else len(inputs["input_ids"])
        with self._watch.step(inputs):
            return super().training_step(model, inputs, *args, **kwargs)

    def prediction_step(self, model: Any, inputs: Any, *args: Any, **kwargs: Any) -> Any:
        with self._watch.step(inputs):
            return super().prediction_step(model, inputs, *args, **kwargs)

    def _finalize_training(self, trial: Any, num_train_samples: Any, start_time: Any) -> Any:
        """Batches of different numbers of rows are counted as they come; Trainer would multiply the steps by a
        batch."""
        loader, state = _loader_of(self, "train_dataset"), self.state  # type: ignore[attr-defined]
        steps = state.global_step - getattr(self, "_initial_global_step", 0)
        if loader is not None and loader._query.uneven and steps > 0:
            num_train_samples = self._rows * loader.world * state.max_steps / steps
        return super()._finalize_training(trial, num_train_samples, start_time)  # type: ignore[misc]

    # The following methods correct Trainer's counts on a resume. If nothing has changed, its own counts stand.

    def set_initial_training_values(self, args: Any, dataloader: Any, *more: Any) -> Any:
        values = super().set_initial_training_values(args, dataloader, *more)  # type: ignore[misc]
        resumed = self._resumed
        if resumed is None or resumed.left is None:
            return values
        epochs, steps_per_epoch, *middle, steps_in_epoch, max_steps = values
        epoch, left = resumed.left
        done, batches = epoch - self._first_epoch, steps_in_epoch - left
        resumed.place = done, batches
        done_steps = done * steps_per_epoch + batches // args.gradient_accumulation_steps
        if args.max_steps > 0:
            epochs = max(epochs, math.ceil((done_steps + max_steps - resumed.global_step) / steps_per_epoch))
        else:
            max_steps = resumed.global_step + max(0, math.ceil(args.num_train_epochs * steps_per_epoch) - done_steps)
        return (epochs, steps_per_epoch, *middle, steps_in_epoch, max_steps)

    def _init_training_state(self, *args: Any, **kwargs: Any) -> Any:
        place = super()._init_training_state(*args, **kwargs)  # type: ignore[misc]
        if self._resumed is not None and self._resumed.place is not None:
            return self._resumed.place
        return place


class _Resumed:
    """A checkpoint from which training continues, after its state is loaded."""

    def __init__(self, loader: Loader, checkpoint: str) -> None:
        self.left: Optional[tuple[int, int]] = None  # the loader's epoch and its remaining batches, if known
        self.place: Optional[tuple[int, int]] = None  # finished epochs, and batches of the current one
        if loader._query.epochs == 1 and not loader._query.uneven:
            self.left = loader._left()
        with open(os.path.join(checkpoint, "trainer_state.json"), encoding="utf-8") as f:
            self.global_step = int(json.load(f)["global_step"])


def _refuse_trl(kind: type, args: Any, kwargs: Any) -> None:
    """Raises DsloadError for a trainer of TRL that is given a Loader."""
    theirs = next((c.__name__ for c in kind.__mro__ if c.__module__.partition(".")[0] == "trl"), None)
    if theirs is not None and any(isinstance(given, Loader) for given in (*args, *kwargs.values())):
        raise DsloadError(
            f"TRL's {theirs} takes a datasets.Dataset of rows, which it collates itself, and no Loader: give it "
            'datasets.load_from_disk of what "dsload export DATASET --to trl --out DIR" writes, or train with '
            "class T(TrainerMixin, transformers.Trainer), for which the loader's batches are complete"
        )


def _shape(trainer: Any, loader: Loader) -> list[int]:
    """What Trainer's count of steps depends on."""
    return [loader._query.rows_a_batch, loader.world, trainer.args.gradient_accumulation_steps]


def _set_batch_size(options: Any, what: str, loader: Loader) -> Optional[int]:
    """Makes Trainer count with the loader's batches. Returns their rows; None if that differs from batch to batch."""
    if loader._query.max_tokens:
        return None
    name, rows = f"per_device_{what}_batch_size", loader._query.rows_a_batch
    each, given = -(-rows // max(1, options.n_gpu)), getattr(options, name)
    if given not in (each, type(options).__dataclass_fields__[name].default):
        warnings.warn(
            f"{name}={given} has no effect: the loader makes the batches, of {rows} rows; its batch_size says how many",
            stacklevel=3,
        )
    setattr(options, name, each)
    return rows


def _say_ignored(options: Any, loader: Loader) -> None:
    """Warns of arguments that ask for another order of the rows than the loader's."""
    query = loader._query
    arguments: tuple[tuple[str, str, set[Any]], ...] = (  # with the values that change nothing
        (
            "train_sampling_strategy",
            "shuffle and bucket",
            {"random", *(["sequential"] if query.shuffle == "none" else ())},
        ),
        ("group_by_length", "bucket", {False}),  # before transformers 5
        ("data_seed", "seed", {query.seed}),
        ("dataloader_drop_last", "tail", {False, query.tail_or_default == "drop"}),
    )
    for name, ours, harmless in arguments:
        given = getattr(options, name, None)
        if given is not None and given not in harmless:
            warnings.warn(
                f"{name}={given!r} has no effect: the loader decides the rows and their order; see its {ours}",
                stacklevel=3,
            )


def _say_unmasked(model: Any, loader: Loader) -> None:
    """Warns of a masked language model, whose loss is small if it copies the loader's labels."""
    name = type(_documents.base_of(model)).__name__
    if name.endswith("ForMaskedLM") and loader._query.labels != "none":
        warnings.warn(
            f"{name}: no token of the loader's batches is masked, and their labels are the ids, which the model learns "
            "to copy; train it on dsload.RandomAccess with transformers' DataCollatorForLanguageModeling, which masks",
            stacklevel=3,
        )


def _loader_of(trainer: Any, name: str, given: Any = None) -> Optional[Loader]:
    """The Loader that is the trainer's train_dataset or eval_dataset, or the one given instead."""
    dataset = getattr(trainer, name, None)
    if isinstance(given, str) and isinstance(dataset, dict):
        given = dataset[given]
    dataset = dataset if given is None else given
    return dataset if isinstance(dataset, Loader) else None


def _checkpoint(asked: Any, output_dir: str) -> Optional[str]:
    """The folder from which train(resume_from_checkpoint=asked) continues."""
    if asked is True:
        from transformers.trainer_utils import get_last_checkpoint

        found: Optional[str] = get_last_checkpoint(output_dir)
        return found  # if there is none, Trainer reports it
    return os.fspath(asked) if asked else None


def _read(checkpoint: str) -> dict[str, Any]:
    path = os.path.join(checkpoint, STATE_FILE)
    try:
        with open(path, encoding="utf-8") as f:
            saved = json.load(f)
    except FileNotFoundError as error:
        raise DsloadError(
            f"{path}: the checkpoint has no loader's state, so the position of its data is unknown; resume from one "
            "that TrainerMixin saved, or set ignore_data_skip=True and the loader's position yourself"
        ) from error
    except ValueError as error:
        raise DsloadError(f"{path}: not a state of a loader: {error}; resume from an earlier checkpoint") from error
    known = isinstance(saved, dict) and saved.get("version") == _STATE_VERSION and isinstance(saved.get("loader"), dict)
    if not known or not isinstance(saved.get("first_epoch"), int) or not isinstance(saved.get("shape"), list):
        raise DsloadError(f"{path}: not a state of a loader that this version knows; resume from an earlier checkpoint")
    return dict(saved)


def _write(checkpoint: str, trainer: Any, loader: Loader) -> None:
    path = os.path.join(checkpoint, STATE_FILE)
    with open(path + ".tmp", "w", encoding="utf-8") as f:
        state = {
            "version": _STATE_VERSION,
            "first_epoch": trainer._first_epoch,
            "shape": _shape(trainer, loader),
            "loader": loader.state_dict(),
        }
        json.dump(state, f)
        f.flush()
        os.fsync(f.fileno())
    os.replace(path + ".tmp", path)


def _state_saver(trainer: Any) -> Any:
    from transformers import TrainerCallback

    class SaveLoader(TrainerCallback):  # type: ignore[misc]
        """Keeps the loader's state in every checkpoint."""

        def on_save(self, args: Any, state: Any, control: Any, **_: Any) -> None:
            loader = _loader_of(trainer, "train_dataset")
            if loader is not None and args.should_save:
                folder = (
                    trainer._get_output_dir(trial=trainer._trial)
                    if getattr(trainer, "_trial", None)
                    else args.output_dir
                )
                _write(os.path.join(folder, f"checkpoint-{state.global_step}"), trainer, loader)

    return SaveLoader()


def _batches(loader: Loader, resumed: Optional[_Resumed]) -> Any:
    """A DataLoader of the loader's batches that needs no prepare()."""
    import torch.utils.data

    refuse_uneven(loader)

    class Batches(torch.utils.data.IterableDataset):  # type: ignore[misc]
        """The loader; or after a resume the rest of its epoch, preceded by empty batches for the earlier ones, which
        Trainer drops."""

        def __iter__(self) -> Iterator[Any]:
            # The state is the one after the batches that were trained on.
            return _after_empty(wrapped.batches_dropped(), loader._begin(0)) if resumed is not None else iter(loader)

        def __len__(self) -> int:
            """Examples, which Trainer counts when it evaluates."""
            len(loader)  # raises TypeError where the number of batches is unknown
            return loader.num_examples * loader._query.epochs

    class LoaderBatches(torch.utils.data.DataLoader):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__(Batches(), batch_size=None)
            self.loader = loader

        def __len__(self) -> int:
            return len(loader)

        @property
        def rank(self) -> int:
            return loader.rank

        @property
        def world(self) -> int:
            return loader.world

    return LoaderBatches()


def _after_empty(dropped: int, batches: Iterator[Any]) -> Iterator[Any]:
    for _ in range(dropped):
        yield {}
    yield from batches
