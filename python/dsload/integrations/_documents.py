"""Packed rows under Hugging Face's Trainer: what a model is given of them, and whether it keeps their documents apart.

transformers derives the borders of documents from position_ids, in one function that most of its models call while they
make their attention mask. A model that does not call it, or has layers that carry a state along the row, would train on
text that it never sees later.
"""

from __future__ import annotations

import contextlib
import inspect
from collections.abc import Iterator, Mapping
from typing import Any, Optional

from .._for_models import FOR_MODELS, PackedBatch
from ..errors import DsloadError

_CARRIED = ("linear_attention", "mamba", "conv", "recurrent", "hybrid")  # layers that pass a state from token to token
_TABLES = ("wpe", "position_embeddings", "embed_positions")  # transformers' names of embeddings of positions
_INSTEAD = (
    "train on rows that are not packed, or, if the model does it in a way of its own, "
    "set keeps_documents_apart = True in the trainer's class"
)


def base_of(model: Any) -> Any:
    """The model itself, without the adapters of peft around it."""
    return model.get_base_model() if hasattr(model, "get_base_model") else model


def taken(model: Any) -> tuple[str, ...]:
    """Columns of packed rows that the model's forward takes by its **kwargs."""
    parameters = inspect.signature(base_of(model).forward).parameters.values()
    return FOR_MODELS if any(p.kind is p.VAR_KEYWORD for p in parameters) else ()


def check(model: Any, batch: Mapping[str, Any]) -> None:
    """Raises DsloadError for ids and positions without an embedding: of an accelerator, an assertion in a kernel.

    Only of transformers' models: a forward of your own may change them before it looks them up.
    """
    base, ids = base_of(model), batch["input_ids"]
    if ids.numel() and type(base).forward.__module__.startswith("transformers"):
        _check_ids(base, ids)
        _check_positions(base, batch)


def _check_ids(base: Any, ids: Any) -> None:
    try:
        words = getattr(base.get_input_embeddings(), "num_embeddings", None)
    except (AttributeError, NotImplementedError):  # transformers' own raises it where it does not find them
        return
    most = int(ids.max())
    if words is not None and most >= words:
        raise DsloadError(
            f"{type(base).__name__}: it has embeddings for {words} ids, and the batch has the id {most}: the "
            "dataset was built with the tokenizer of another model; build it with this one's (--tokenizer FOLDER), or "
            "call model.resize_token_embeddings if only new tokens are missing"
        )


def _check_positions(base: Any, batch: Mapping[str, Any]) -> None:
    """Models that compute positions take rows of any length; of the others, their tables are known by name."""
    most, width = getattr(base.config, "max_position_embeddings", None), int(batch["input_ids"].shape[-1])
    if not isinstance(most, int) or width <= most:
        return
    longest = int(batch["position_ids"].max()) + 1 if "position_ids" in batch else width
    tables = (m for name, m in base.named_modules() if name.rpartition(".")[2] in _TABLES)
    if longest > most and any(hasattr(table, "num_embeddings") for table in tables):
        raise DsloadError(
            f"{type(base).__name__}: it has embeddings for {most} positions, and a row has {longest} tokens: build the "
            f"dataset with max_length={most} or less"
        )


class Watch:
    """Makes sure, at the first packed batch, that the trainer's model keeps documents apart."""

    def __init__(self, trainer: Any) -> None:
        self._trainer = trainer
        self._done = False

    @contextlib.contextmanager
    def step(self, inputs: Any) -> Iterator[None]:
        """Around a step. Raises DsloadError after it if documents attended to each other."""
        if self._done or self._trainer.keeps_documents_apart or not isinstance(inputs, PackedBatch):
            yield
            return
        model = base_of(self._trainer.model)
        if not _is_of_transformers(model):
            yield
            return
        name = type(model).__name__
        why = _leak(model, self._trainer.args.n_gpu)
        if why is not None:
            raise DsloadError(f"{name}: {why}, so documents packed into one row affect each other; {_INSTEAD}")
        with _counted() as calls:
            yield
        if not calls and not self._trainer.args.torch_compile:
            raise DsloadError(
                f"{name}: this version of transformers does not derive its attention mask from position_ids, so "
                f"documents packed into one row attend to each other; {_INSTEAD}"
            )
        self._done = True


def _is_of_transformers(model: Any) -> bool:
    """Reports whether the model makes its attention mask by transformers' functions."""
    from transformers import PreTrainedModel

    if not isinstance(model, PreTrainedModel):
        return False
    known = getattr(_masks(), "ALL_MASK_ATTENTION_FUNCTIONS", None)
    return known is None or getattr(model.config, "_attn_implementation", None) in (None, *known.keys())


def _leak(model: Any, devices: int) -> Optional[str]:
    """Why documents would affect each other, as far as the model's description says."""
    config = model.config
    layers = {str(t) for name in ("layer_types", "layers_block_type") for t in getattr(config, name, None) or ()}
    carried = sorted(t for t in layers if t.startswith(_CARRIED))
    if carried:
        return f"its layers of type {carried[0]} carry a state along the row"
    if "flash" in str(getattr(config, "_attn_implementation", "")):
        if not taken(model):
            return "its forward takes no **kwargs, by which flash attention gets the borders"
        if devices > 1:
            return (
                f"torch's DataParallel on {devices} devices cuts the borders that flash attention gets; "
                "start one process a device (torchrun)"
            )
    return None


def _masks() -> Any:
    """transformers' module of attention masks; None in a version without it."""
    try:
        from transformers import masking_utils
    except ImportError:
        return None
    return masking_utils


@contextlib.contextmanager
def _counted() -> Iterator[list[None]]:
    """Counts how often borders are derived from position_ids meanwhile."""
    masks, calls = _masks(), list[None]()
    found = getattr(masks, "find_packed_sequence_indices", None)
    if found is None:
        yield calls
        return

    def find(*args: Any, **kwargs: Any) -> Any:
        calls.append(None)
        return found(*args, **kwargs)

    masks.find_packed_sequence_indices = find
    try:
        yield calls
    finally:
        masks.find_packed_sequence_indices = found
