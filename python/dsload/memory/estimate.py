"""How much memory a training run, a generation or an evaluation takes, computed from the model's config before anything
is allocated.

The sums, for one rank without sharding:

    training   = parameters + optimizer state + (gradients kept over micro-batches)
                 + max(activations + logits at the start of the backward pass,
                       activations + the head's gradient + the backward pass of one layer,
                       gradients + the second gradient of tied embeddings,
                       gradients + the backward pass of one layer, with checkpointing,
                       gradients + temporaries of the optimizer step)
    generation = parameters + KV cache + logits of one step
    evaluation = parameters + activations of one layer + logits of the whole batch

Activations are counted tensor by tensor as PyTorch's autograd keeps them in transformers' implementations
(activations.py): what layers make, the scores of attention where a kernel writes them, and under autocast its copies of
weights and of layers' inputs. The tests require an estimate to be within 15% of torch's own peak for small GPT-2, T5
and Llama shapes, and between 95% and 120% of peaks that were measured on an accelerator.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any, Optional

from . import _checks, _device
from .activations import Forward
from .shape import ModelShape

_DTYPE_BYTES = {"float32": 4, "float": 4, "bfloat16": 2, "float16": 2, "half": 2, "mixed": 4, "int8": 1}

_ATTENTION = ("sdpa", "eager", "flash_attention_2", "flash_attention_3", "flash_attention_4", "flex_attention")

# Bytes of state that an optimizer keeps per parameter, and of temporaries during its step (in parameter elements).
_OPTIMIZER_BYTES = {"adamw": 8.0, "adam": 8.0, "momentum": 4.0, "sgd": 0.0, "adafactor": 0.1, "adamw8bit": 2.0}

_TERMS = (
    "gradients", "optimizer", "activations", "attention_scores", "autocast_copies", "layer_backward", "logits",
    "kv_cache",
)  # fmt: skip

_MAX_VOCABULARY = 1_000_000
_MAX_EVAL_ROWS = 4096


@dataclass(frozen=True)
class Estimate:
    """Bytes by purpose. `total` is the peak of the phase that takes most; `warnings` are sentences for people.

    activations: all that is kept for the backward pass. Of it attention_scores: matrices of rows × heads × length ×
    length; autocast_copies: of weights and layers' inputs in bfloat16.
    layer_backward: gradients of one layer's widest parts, and with checkpointing what it computes again.
    """

    parameters: int
    gradients: int
    optimizer: int
    activations: int
    attention_scores: int
    autocast_copies: int
    layer_backward: int
    logits: int
    kv_cache: int
    total: int
    num_parameters: int
    batch_size: int
    sequence_length: int
    max_batch_size: Optional[int] = None
    num_active_parameters: int = 0  # those used for any one token; fewer than num_parameters in a mixture of experts
    warnings: tuple[str, ...] = field(default=())

    def __str__(self) -> str:
        parts = {
            "parameters": self.parameters, "gradients": self.gradients, "optimizer": self.optimizer,
            "activations": self.activations, "  scores": self.attention_scores, "  copies": self.autocast_copies,
            "a layer": self.layer_backward, "logits": self.logits, "kv_cache": self.kv_cache,
        }  # fmt: skip
        lines = [f"{name:<12}{_device.format_bytes(size):>12}" for name, size in parts.items() if size]
        lines.append(f"{'peak':<12}{_device.format_bytes(self.total):>12}")
        if self.max_batch_size is not None:
            lines.append(f"largest batch that fits: {self.max_batch_size}")
        return "\n".join([*lines, *(f"warning: {w}" for w in self.warnings)])


def estimate(
    config: Any,
    batch_size: int = 8,
    sequence_length: int = 512,
    *,
    target_length: Optional[int] = None,
    mode: str = "train",
    dtype: str = "float32",
    optimizer: str = "adamw",
    attention: str = "sdpa",
    device: str = "cuda",
    gradient_checkpointing: bool = False,
    accumulation: int = 1,
    max_new_tokens: int = 0,
    num_return_sequences: int = 1,
    keep_logits: bool = False,
    padded: bool = False,
    memory_bytes: Optional[int] = None,
) -> Estimate:
    """The peak memory of a run with these settings, in bytes on the device.

    Args:
        config: a Hugging Face config or model, a dict as in a published config.json, or a ModelShape. transformers
            makes the model of a config without memory, to count it exactly; without it the config's sizes are counted.
        batch_size: rows of one forward pass (the micro-batch).
        sequence_length, target_length: tokens per row, of the source and, for encoder-decoders, of the target (default:
        the same).
        mode: "train", "evaluate" or "generate".
        dtype: of the parameters: "float32", "bfloat16", "float16", or "mixed" (float32 parameters under bfloat16
        autocast).
        optimizer: "adamw", "adam", "momentum", "sgd", "adafactor", "adamw8bit".
        attention: "sdpa" or "eager", as in transformers' `attn_implementation` (those of flash_attention and
        flex_attention count as sdpa).
        device: "cuda" or "cpu", also with a number: dropout masks take a byte per element on the first, a whole element
        on the second.
        gradient_checkpointing: keep each layer's input only, and one layer's activations at a time.
        accumulation: micro-batches per optimizer step; above 1 the gradients outlive the micro-batch.
        max_new_tokens, num_return_sequences: for "generate".
        keep_logits: the program keeps the model's output: in training over the backward pass (`out = model(…);
            out.loss.backward()`), in evaluation until the batch ends (Trainer without `preprocess_logits_for_metrics`).
        padded: rows are padded, and attention gets a mask: with "sdpa", keys and values are repeated for each head, and
            T5 keeps a mask with its positions in every layer.
        memory_bytes: the device's free memory; with it `max_batch_size` is filled in, and an estimate above it gives a
            warning.

    Raises:
        ValueError: for an unknown mode, dtype, optimizer, attention or device, sizes below 1, or a config without
        sizes.
    """
    if mode not in ("train", "evaluate", "generate"):
        raise ValueError(f"mode must be train, evaluate or generate, got {mode!r}")
    if dtype not in _DTYPE_BYTES:
        raise ValueError(f"unknown dtype {dtype!r}; known: {', '.join(_DTYPE_BYTES)}")
    if optimizer not in _OPTIMIZER_BYTES:
        raise ValueError(f"unknown optimizer {optimizer!r}; known: {', '.join(_OPTIMIZER_BYTES)}")
    _checks.word("attention", attention, _ATTENTION)
    _checks.word("device", str(device).partition(":")[0], ("cuda", "cpu"))
    for name, given in {
        "gradient_checkpointing": gradient_checkpointing,
        "keep_logits": keep_logits,
        "padded": padded,
    }.items():
        _checks.flag(name, given)
    batch_size = _checks.whole("batch_size", batch_size)
    sequence_length = _checks.whole("sequence_length", sequence_length)
    target_length = None if target_length is None else _checks.whole("target_length", target_length)
    accumulation = _checks.whole("accumulation", accumulation)
    max_new_tokens = _checks.count("max_new_tokens", max_new_tokens)
    num_return_sequences = _checks.whole("num_return_sequences", num_return_sequences)
    if memory_bytes is not None:
        _checks.size("memory_bytes", memory_bytes)
    shape = config if isinstance(config, ModelShape) else ModelShape.of(config)
    plan = _Plan(
        shape,
        sequence_length,
        target_length or sequence_length,
        mode,
        dtype,
        optimizer,
        attention,
        str(device).partition(":")[0],
        gradient_checkpointing,
        accumulation,
        max_new_tokens,
        num_return_sequences,
        keep_logits,
        padded,
    )
    parts = plan.parts(batch_size)
    largest = plan.largest_batch(memory_bytes) if memory_bytes is not None else None
    return Estimate(
        **parts,
        num_parameters=shape.parameters(),
        batch_size=batch_size,
        sequence_length=sequence_length,
        max_batch_size=largest,
        num_active_parameters=shape.active_parameters(),
        warnings=tuple(_warnings(shape, plan, batch_size, parts, memory_bytes, largest)),
    )


@dataclass(frozen=True)
class _Plan:
    shape: ModelShape
    length: int
    target: int
    mode: str
    dtype: str
    optimizer: str
    attention: str
    device: str
    checkpointing: bool
    accumulation: int
    new_tokens: int
    sequences: int
    keep_logits: bool
    padded: bool = False

    def parts(self, batch: int) -> dict[str, int]:
        size = _DTYPE_BYTES[self.dtype]
        compute = 2 if self.dtype == "mixed" else size
        count = self.shape.parameters()
        parts = dict.fromkeys(_TERMS, 0)
        parts["parameters"] = count * size
        if self.mode == "train":
            self._train(batch, count, size, compute, parts)
        elif self.mode == "evaluate":
            parts["activations"] = int(self._one_layer(batch) * compute)
            kept = 2 if self.keep_logits else 1
            parts["logits"] = self._logit_rows(batch) * (compute * kept + (8 if compute == 2 else 4))
            parts["total"] = parts["parameters"] + parts["activations"] + parts["logits"]
        else:
            rows = batch * self.sequences
            parts["kv_cache"] = self._kv_cache(rows) * compute
            parts["activations"] = int(self._one_layer(batch) * compute)
            parts["logits"] = rows * self.shape.vocab_size * (compute + 8)
            parts["total"] = sum(parts[k] for k in ("parameters", "kv_cache", "activations", "logits"))
        return {k: int(v) for k, v in parts.items()}

    def _train(self, batch: int, count: int, size: int, compute: int, parts: dict[str, int]) -> None:
        shape = self.shape
        forward = Forward(shape, batch, self.length, self.target, self.attention, self.dtype, self.device, self.padded)
        kept, layers = forward.kept(), shape.layers + shape.decoder_layers
        table = shape.vocab_size * shape.hidden
        head = table * size
        # Autocast's copies of the weights: of all that linear layers have, not of an embedding that is only looked up.
        weights = 2 * (count - (0 if shape.tied else table)) if self.dtype == "mixed" else 0
        working = forward.working()
        if self.checkpointing:
            working += (kept.all + weights) / layers
            weights = 2 * table if weights else 0  # those of layers are made again
            activations, scores, copies = forward.layer_inputs() + weights, 0.0, float(weights)
        else:
            activations, scores, copies = kept.all + weights, kept.scores, kept.casts + weights
        gradients = count * size
        embedding = head if shape.tied else 0
        step = count * size if self.device != "cpu" and self.optimizer in ("adam", "adamw") else 0
        held = gradients if self.accumulation > 1 else 0
        state = count * _OPTIMIZER_BYTES[self.optimizer] * (size / 4 if self.optimizer != "adamw8bit" else 1)
        logits = self._logit_rows(batch) * (self._loss_bytes(compute) + (compute if self.keep_logits else 0))
        peak = max(
            activations + logits + held,
            activations + held + (0 if held else head) + working,
            gradients + held + embedding,
            gradients + (working if self.checkpointing else 0),
            gradients + step,
        )
        parts.update(
            gradients=gradients, optimizer=int(state), activations=int(activations), attention_scores=int(scores),
            autocast_copies=int(copies), layer_backward=int(working), logits=int(logits),
        )  # fmt: skip
        parts["total"] = int(count * size + state + peak)

    def _loss_bytes(self, compute: int) -> int:
        """Bytes of a logit at the start of the backward pass: the log-probabilities and the gradients of the two steps
        after them. Causal models and autocast compute the loss in float32, the others of transformers in the model's
        dtype."""
        s = self.shape
        own = 4 if self.dtype == "mixed" or (s.is_causal and not s.is_encoder_decoder) else compute
        return 3 * own + (compute if s.caps_logits else 0)

    def _logit_rows(self, batch: int) -> int:
        return batch * (self.target if self.shape.is_encoder_decoder else self.length) * self.shape.vocab_size

    def _one_layer(self, batch: int) -> float:
        """The memory of one layer: without gradients its tensors are freed as soon as they are used."""
        s = self.shape
        widest = max(2 * s.feed_forward + 2 * s.hidden, 4 * s.inner + s.hidden)
        scores = 2 * s.heads * self.length if self.attention == "eager" or s.relative_bias else 0
        return batch * self.length * (widest + scores)

    def _kv_cache(self, rows: int) -> int:
        s = self.shape
        if s.is_encoder_decoder:
            return 2 * s.decoder_layers * s.kv_inner * rows * (self.new_tokens + self.length)
        return 2 * s.layers * s.kv_inner * rows * (self.length + self.new_tokens)

    def largest_batch(self, memory: int) -> int:
        """The largest batch whose peak stays within `memory`; 0 if not even one row fits."""
        if self.parts(1)["total"] > memory:
            return 0
        low, high = 1, 2
        while self.parts(high)["total"] <= memory and high < 1 << 24:
            low, high = high, high * 2
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if self.parts(middle)["total"] <= memory else (low, middle)
        return low


def _warnings(
    shape: ModelShape, plan: _Plan, batch: int, parts: dict[str, int], memory: Optional[int], largest: Optional[int]
) -> list[str]:
    show, found = _device.format_bytes, list(shape.notes)
    if shape.experts:
        found.append(_experts(shape, plan, parts))
    if shape.vocab_size > _MAX_VOCABULARY:
        table = shape.vocab_size * shape.hidden * _DTYPE_BYTES[plan.dtype]
        found.append(
            f"a vocabulary of {shape.vocab_size:,} is out of the ordinary (32,000 to 262,144 are usual): its "
            f"embedding alone takes {show(table)}, and the logits of this batch {show(parts['logits'])}; was a number "
            "of rows or bytes meant?"
        )
    if plan.mode != "train" and batch > _MAX_EVAL_ROWS:
        found.append(
            f"{batch:,} sequences in one batch take {show(parts['total'])} at once; a batch of 256 takes"
            f" {show(plan.parts(256)['total'])} and gives the same result (evaluate_in_batches)"
        )
    if plan.mode == "train" and parts["logits"] > 2 * parts["activations"] and parts["logits"] > parts["parameters"]:
        found.append(
            f"the logits ({show(parts['logits'])}) outweigh everything else: fewer tokens a batch, or a loss computed "
            "in chunks"
        )
    if plan.length > 1 and shape.positions and plan.length > shape.positions:
        found.append(f"rows of {plan.length} tokens are longer than the model's {shape.positions} positions")
    if memory is not None and parts["total"] > memory:
        fits = f"a batch of {largest} fits" if largest else "not even one row fits"
        found.append(f"{show(parts['total'])} are needed and {show(memory)} are free: {fits}")
    return found


def _experts(shape: ModelShape, plan: _Plan, parts: dict[str, int]) -> str:
    """A sentence about the memory and time of a mixture of experts."""
    total, active, show = shape.parameters(), shape.active_parameters(), _device.format_bytes
    chosen = f"{shape.experts_per_token} of {shape.experts} experts a layer"
    text = (
        f"a mixture of experts: {total / 1e9:.1f} billion parameters, "
        f"of which {active / 1e9:.1f} billion are used for any one token ({chosen});"
    )
    if plan.mode != "train":
        held = show(parts["parameters"])
        return f"{text} time follows the second number, memory the first: {held} are held whatever the batch"
    state = parts["parameters"] + parts["gradients"] + parts["optimizer"]
    return (
        f"{text} time follows the second number, memory the first: {show(state)} of parameters, gradients and "
        "optimizer state, whatever the batch; train adapters on the attention and leave the experts frozen, or "
        "divide the experts over devices"
    )


def suggest_batch_size(
    model: Any,
    *,
    sequence_length: int = 512,
    optimizer: Any = "adamw",
    dtype: Optional[str] = None,
    memory_bytes: Optional[int] = None,
    meter: Any = None,
    safety: float = 0.8,
) -> int:
    """Rows that fit into `safety` of the free device memory: the largest power of two, at least 1.

    model: a torch module, a config, or a number of parameters. What a module has already allocated (its parameters, on
    the device) is not counted again. Without a config the shape is guessed from the number of parameters.
    """
    if isinstance(optimizer, str):
        _checks.word("optimizer", optimizer, _OPTIMIZER_BYTES)
    name = optimizer if isinstance(optimizer, str) else type(optimizer).__name__.lower()
    name = name if name in _OPTIMIZER_BYTES else "adamw"
    count, on_device = None, 0
    if hasattr(model, "parameters") and callable(model.parameters) and not isinstance(model, ModelShape):
        tensors = list(model.parameters())
        count = sum(p.numel() for p in tensors)
        on_device = sum(p.numel() * p.element_size() for p in tensors)
        if dtype is None and tensors:
            dtype = str(tensors[0].dtype).rpartition(".")[2]
    elif isinstance(model, int):
        count = model
    try:
        shape = model if isinstance(model, ModelShape) else ModelShape.of(getattr(model, "module", model))
    except (ValueError, TypeError, AttributeError):
        if count is None:
            raise
        shape = shape_of_size(count)
    if memory_bytes is not None:
        _checks.size("memory_bytes", memory_bytes)
    else:
        memory_bytes = (meter if meter is not None else _device.DeviceMeter()).read().available + on_device
    sequence_length = _checks.whole("sequence_length", sequence_length)
    device = "cpu" if meter is not None and not getattr(meter, "is_cuda", True) else "cuda"
    known = dtype if dtype in _DTYPE_BYTES else "float32"
    plan = _Plan(shape, sequence_length, sequence_length, "train", known, name, "eager", device, False, 2, 0, 1, False)
    largest = plan.largest_batch(int(memory_bytes * safety))
    return 1 << max(largest.bit_length() - 1, 0)


def shape_of_size(count: int) -> ModelShape:
    """A decoder of about `count` parameters with the usual proportions: 64 hidden units a layer, heads of 64, 4 ×
    hidden inside."""
    hidden = min(range(64, 1 << 15, 64), key=lambda h: abs(50257 * h + 12 * h * h * (h // 64) - count))
    return ModelShape(
        vocab_size=50257,
        hidden=hidden,
        layers=max(1, math.ceil(hidden / 64)),
        heads=max(1, hidden // 64),
        kv_heads=max(1, hidden // 64),
        head_dim=64,
        feed_forward=4 * hidden,
    )
