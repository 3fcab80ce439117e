"""Operations on a batch: counting rows, splitting, trimming padding.

A batch is a dict. Values whose first dimension equals the number of rows are per-row columns (torch tensors, numpy
arrays, lists); all other values are passed on unchanged.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Optional

from .._for_models import BORDERS, FOR_MODELS, computed
from .._query import IGNORED_LABEL

# What models of transformers take of a batch.
MODEL_INPUTS = (
    "input_ids",
    "attention_mask",
    "labels",
    "position_ids",
    "token_type_ids",
    "decoder_input_ids",
    "decoder_attention_mask",
)


def model_inputs(batch: Mapping[str, Any]) -> dict[str, Any]:
    """The columns that a model of transformers takes. Of packed rows, which have positions and no mask, these include
    the borders of documents for flash attention."""
    packed = not {"segments", "position_ids"}.isdisjoint(batch) and "attention_mask" not in batch
    names = (*MODEL_INPUTS, *(FOR_MODELS if packed else ()))
    out = {name: batch[name] for name in names if name in batch}
    return {**out, "use_cache": False} if packed else out


def padding_mask(batch: Mapping[str, Any]) -> Any:
    """0 on padding: the attention mask, or of packed rows the numbers of their documents."""
    return batch.get("attention_mask", batch.get("segments"))


def _with_borders(batch: dict[str, Any]) -> dict[str, Any]:
    """The batch, whose rows or length have changed, with the borders that the column segments gives."""
    segments = batch.get("segments")
    stale = [name for name in ("cu_seqlens", "cu_seq_lens_q") if name in batch]
    if stale and segments is None:  # models derive the borders from position_ids, too
        return {name: value for name, value in batch.items() if name not in BORDERS}
    if stale and segments is not None and len(segments):
        like = batch[stale[0]]
        numbers = segments.cpu().numpy() if hasattr(segments, "cpu") else segments
        found = computed(numbers, like.new_tensor if hasattr(like, "new_tensor") else lambda array: array)
        batch.update((name, value) for name, value in found.items() if name in batch)
    return batch


def num_rows(batch: Mapping[str, Any]) -> int:
    """The number of rows of a batch: of `input_ids` if it has them, else of its first column."""
    first = batch.get("input_ids")
    if first is None:
        first = next((v for v in batch.values() if hasattr(v, "shape") and len(v.shape) > 0), None)
    if first is None:
        first = next((v for v in batch.values() if isinstance(v, (list, tuple))), None)
    if first is None:
        raise ValueError(f"cannot tell the number of rows of a batch with keys {sorted(batch)}")
    return len(first)


def rows(batch: Mapping[str, Any], start: int, stop: int) -> dict[str, Any]:
    """Rows [start, stop) of a batch. Tensors are views, not copies."""
    n = num_rows(batch)
    out: dict[str, Any] = {}
    for key, value in batch.items():
        per_row = (hasattr(value, "shape") and len(value.shape) > 0 and value.shape[0] == n) or (
            isinstance(value, (list, tuple)) and len(value) == n
        )
        out[key] = value[start:stop] if per_row else value
    return _with_borders(out)


def _used_columns(used: Any) -> Optional[tuple[int, int]]:
    """The first and one past the last column in which any row of the boolean (rows, length) matrix is set."""
    columns = used.any(0)
    where = columns.nonzero()
    if isinstance(where, tuple):  # numpy
        where = where[0]
    if len(where) == 0:
        return None
    return int(where.min()), int(where.max()) + 1


def _bounds(used: Any, length: int, multiple: int) -> Optional[tuple[int, int]]:
    """Which columns to keep: the padded side is trimmed, to a multiple of `multiple`."""
    found = _used_columns(used)
    if found is None:
        return None
    first, last = found
    if last < length and first > 0:
        return None  # padded on both sides: keep all
    if first > 0:
        keep = min(-(-(length - first) // multiple) * multiple, length)
        return length - keep, length
    keep = min(-(-last // multiple) * multiple, length)
    return 0, keep


def _cut(batch: dict[str, Any], keys: list[str], bounds: tuple[int, int], length: int) -> None:
    for key in keys:
        value = batch[key]
        if hasattr(value, "shape") and len(value.shape) == 2 and value.shape[1] == length:
            cut = value[:, bounds[0] : bounds[1]]
            # Models reshape with view(), which a column slice does not allow.
            batch[key] = cut.contiguous() if hasattr(cut, "contiguous") else cut.copy()


def trim(batch: Mapping[str, Any], multiple: int = 1, left: bool = False) -> dict[str, Any]:
    """The batch without columns that are padding in every row.

    The source side (input_ids, attention_mask, position_ids, token_type_ids and labels of the same length) is trimmed
    by `attention_mask`, or by the `segments` of packed rows; labels of another length, with decoder_input_ids and
    decoder_attention_mask, by the labels that are not −100. Without a mask nothing is cut. Padding on the left is cut
    only with `left=True`, for generation: in training it is not neutral, since a causal model is also scored on
    predicting a row's first token from the padding before it.
    """
    out = dict(batch)
    mask: Any
    ids: Any
    labels: Any
    mask, ids, labels = padding_mask(out), out.get("input_ids"), out.get("labels")
    is_decoder_side = False
    if ids is not None and labels is not None and getattr(labels, "ndim", 0) == 2 and getattr(ids, "ndim", 0) == 2:
        is_decoder_side = "decoder_input_ids" in out or labels.shape[1] != ids.shape[1] or _labels_differ(mask, labels)
    if mask is not None and getattr(mask, "ndim", 0) == 2:
        length = int(mask.shape[1])
        bounds = _bounds(mask != 0, length, multiple)
        if bounds is not None and (bounds[0] == 0 or left):
            keys = ["input_ids", "attention_mask", "position_ids", "token_type_ids", "segments", "loss_mask"]
            if not is_decoder_side:
                keys.append("labels")
            _cut(out, [k for k in keys if k in out], bounds, length)
    if is_decoder_side:
        length = int(labels.shape[1])
        bounds = _bounds(labels != IGNORED_LABEL, length, multiple)
        if bounds is not None:
            keys = ["labels", "decoder_input_ids", "decoder_attention_mask"]
            _cut(out, [k for k in keys if k in out], bounds, length)
    return _with_borders(out)


def _labels_differ(mask: Any, labels: Any) -> bool:
    """Labels that are set where the source is padding belong to a decoder with its own length."""
    if mask is None or getattr(mask, "shape", None) != labels.shape:
        return False
    return bool(((labels != IGNORED_LABEL) & (mask == 0)).any())


def shape_of(batch: Any) -> dict[str, Any]:
    """The shape of a batch for a record: rows, length, and the share that is not padding."""
    if not isinstance(batch, Mapping):
        return {"rows": len(batch)} if hasattr(batch, "__len__") else {}
    shape: dict[str, Any] = {"rows": num_rows(batch)}
    ids, mask, labels = batch.get("input_ids"), padding_mask(batch), batch.get("labels")
    if getattr(ids, "ndim", 0) == 2:
        shape["length"] = int(ids.shape[1])  # type: ignore[union-attr]
    if getattr(labels, "ndim", 0) == 2:
        shape["label_length"] = int(labels.shape[1])  # type: ignore[union-attr]
    if mask is not None and getattr(mask, "ndim", 0) == 2 and str(getattr(mask, "device", "cpu")) == "cpu":
        shape["tokens"] = int((mask != 0).sum())
    return shape
