"""Detects wrappers that would distribute a loader's batches to the processes a second time, or that read ahead.

A Loader deals batches to ranks itself. Accelerate's wrappers for iterable datasets do so too, from what rank 0 reads or
by dropping other ranks' batches, and they do not tell the dataset. They are visible on the call stack: of the training
process, of a worker forked from it, and while a loader is pickled for a spawned worker.
"""

from __future__ import annotations

import contextlib
import functools
import sys
from collections.abc import Iterator, Mapping
from typing import Any, Optional

from ..errors import WrongWrapping

_DEALERS = ("DataLoaderDispatcher", "IterableDatasetShard")
_HOW = (
    "the loader distributes its batches to the processes itself: iterate it, or DataLoader(loader, batch_size=None), "
    "without accelerator.prepare; under Hugging Face's Trainer use dsload.integrations.TrainerMixin "
    "(examples/hf_trainer.py)"
)


def _accelerate_frames() -> list[tuple[str, Any]]:
    """(function, its self) of every call of Accelerate's or transformers' data loaders on the stack, innermost
    first."""
    modules = ("accelerate.data_loader", "transformers.trainer_pt_utils")
    if not any(m in sys.modules for m in modules):
        return []
    found = []
    frame: Any = sys._getframe(1)
    while frame is not None:
        if frame.f_globals.get("__name__") in modules and "self" in frame.f_code.co_varnames[:1]:
            found.append((frame.f_code.co_name, frame.f_locals.get("self")))
        frame = frame.f_back
    return found


def _kinds(owner: Any) -> set[str]:
    return {c.__name__ for c in type(owner).__mro__}


def refuse_second_dealing() -> None:
    """Raises WrongWrapping if Accelerate would distribute the loader's batches to several processes again."""
    for _, owner in _accelerate_frames():
        for kind in _kinds(owner).intersection(_DEALERS):
            if _processes(owner) > 1:
                raise WrongWrapping(
                    f"Accelerate's {kind} would lose or repeat rows on {_processes(owner)} processes; {_HOW}"
                )


def refuse_stacking(loader: Any) -> None:
    """Raises WrongWrapping if torch's DataLoader would join the loader's batches into batches of batches, as it does
    with examples, and makes it raise where a collate function would drop some of them."""
    fetcher = _fetcher_of(loader)
    if fetcher is None or not fetcher.auto_collation:
        return
    collate = fetcher.collate_fn
    while hasattr(collate, "data_collator"):  # Trainer's wrapper, which drops columns
        collate = collate.data_collator
    if str(getattr(collate, "__module__", "")).partition(".")[0] in ("torch", "transformers", "trl"):
        raise WrongWrapping(
            "the loader makes whole batches, which this DataLoader would collate once more, as if they were "
            "examples: use DataLoader(loader, batch_size=None); under Hugging Face's Trainer use "
            "dsload.integrations.TrainerMixin, named before Trainer in the class's bases, or "
            "data_collator=dsload.first with per_device_train_batch_size=1 and per_device_eval_batch_size=1"
        )
    fetcher.collate_fn = functools.partial(_collated, fetcher.collate_fn)


def _collated(collate: Any, batches: Any) -> Any:
    """What a collate function makes of several batches, as long as that is not one of them."""
    made = collate(batches)
    if len(batches) > 1 and isinstance(made, Mapping) and isinstance(batches[0], Mapping):
        for batch in batches:
            if made is batch or (made and all(value is batch.get(name) for name, value in made.items())):
                refuse_dropping("the collate function", len(batches))
    return made


def refuse_dropping(what: str, batches: int) -> None:
    """Raises WrongWrapping: of several batches, all but one would be lost."""
    raise WrongWrapping(
        f"{what} got {batches} of the loader's batches and would drop all but one: each is whole, so "
        "use batch_size=1 (per_device_train_batch_size=1 and per_device_eval_batch_size=1 under Trainer), or "
        "DataLoader(loader, batch_size=None)"
    )


def refuse_endless(query: Any) -> None:
    """Raises ValueError if an evaluation of the loader would never end."""
    if query.epochs == 0:
        raise ValueError(
            "an evaluation of an endless loader (epochs=0) would never end: make the loader to evaluate on without "
            "epochs=0"
        )


def refuse_uneven_evaluation(loader: Any) -> None:
    """Raises WrongWrapping if Trainer evaluates the loader by itself, and would count batches of different numbers of
    rows alike."""
    frame: Any = sys._getframe(1) if "transformers.trainer" in sys.modules else None
    while frame is not None:
        if frame.f_code.co_name == "evaluation_loop" and frame.f_globals.get("__name__") == "transformers.trainer":
            break
        frame = frame.f_back
    evaluated: Any = getattr(frame.f_locals.get("dataloader"), "dataset", None) if frame is not None else None
    if evaluated is not loader:
        return
    query, rows = evaluated._epochs.query, evaluated._epochs.rows
    refuse_endless(query)
    whole = query.tail_or_default == "drop" or rows % query.rows_a_batch == 0 or rows < query.rows_a_batch
    if query.uneven or not whole:
        raise WrongWrapping(
            "Trainer would count the last batch of the evaluation, or another of fewer rows, as a whole one, and "
            "eval_loss would not be the mean over the rows: use dsload.integrations.TrainerMixin, which weighs each "
            f"batch by its rows, or a batch_size that divides the {rows} rows"
        )


def _fetcher_of(loader: Any) -> Any:
    """What fetches items of the loader for a DataLoader that is beginning to iterate it; None if there is no such call
    on the stack."""
    module = "torch.utils.data._utils.fetch"
    frame: Any = sys._getframe(1) if module in sys.modules else None
    while frame is not None:
        if frame.f_globals.get("__name__") == module:
            owner = frame.f_locals.get("self")
            return owner if getattr(owner, "dataset", None) is loader else None
        frame = frame.f_back
    return None


def _processes(owner: Any) -> int:
    state = getattr(owner, "state", None)
    return int(getattr(owner, "num_processes", None) or getattr(state, "num_processes", None) or 1)


def reads_ahead() -> bool:
    """Reports whether the caller is one of Accelerate's data loaders, which hold back one batch. The one that only
    skips holds back none."""
    kinds = [_kinds(owner) for name, owner in _accelerate_frames() if name == "__iter__"]
    return any("DataLoaderAdapter" in k and "SkipDataLoader" not in k for k in kinds)


def batches_dropped() -> int:
    """How many batches the calling data loader of Accelerate will drop at the beginning, because of
    skip_first_batches."""
    for name, owner in _accelerate_frames():
        dropped = getattr(owner, "skip_batches", 0)
        if name == "__iter__" and dropped:
            batch_size = getattr(getattr(owner, "base_dataloader", owner), "batch_size", None)
            return int(dropped) if batch_size in (None, 1) else 0
    return 0


class Iterated:
    """What Accelerate's gradient state asks of the data loader that is iterated: whether its last batch is in use, at
    which accumulate() takes a step."""

    end_of_dataloader = False
    remainder = -1  # unknown: no batch holds rows that are to be dropped


@contextlib.contextmanager
def shown_to_accelerate() -> Iterator[Iterated]:
    """While a loader is iterated: Accelerate knows of it, unless a data loader of its own reads it. prepare() leaves a
    loader as it is."""
    shown, state = Iterated(), sys.modules.get("accelerate.state")
    kind = getattr(state, "GradientState", None)
    if kind is None or not kind._shared_state or _accelerate_frames():
        yield shown
        return
    gradients = kind()
    gradients._add_dataloader(shown)
    try:
        yield shown
    finally:
        gradients._remove_dataloader(shown)


def counted_by_accelerate() -> bool:
    """Reports whether Accelerate itself calls set_epoch, as it does at each iteration, counting from 0 in every
    process."""
    names = [name for name, _ in _accelerate_frames()]
    return "set_epoch" in names and "__iter__" in names[names.index("set_epoch") :]


def worker_info() -> Any:
    """torch's information on this DataLoader worker; None in any other process."""
    module = sys.modules.get("torch.utils.data")
    return module.get_worker_info() if module is not None else None


def process_group() -> Optional[tuple[int, int]]:
    """(rank, world) of torch.distributed if it is initialised."""
    torch = sys.modules.get("torch")
    if torch is None or not torch.distributed.is_available() or not torch.distributed.is_initialized():
        return None
    return int(torch.distributed.get_rank()), int(torch.distributed.get_world_size())


def refuse_other_rank(rank: int, world: int) -> None:
    """Raises WrongWrapping if a loader that found (rank, world) by itself is iterated by another rank of a process
    group."""
    group = process_group()
    if group is not None and group != (rank, world):
        raise WrongWrapping(
            f"the loader was made as rank {rank} of {world}, and this process is rank {group[0]} of {group[1]}: make "
            "it after torch.distributed.init_process_group, or pass rank= and world= (rank=0, world=1 gives every "
            "row to every process)"
        )
