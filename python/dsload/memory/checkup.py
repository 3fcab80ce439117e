"""check_configuration: a training or sweep configuration before it runs: values that cannot be meant, and what each
point of a sweep needs on a device."""

from __future__ import annotations

import json
import math
import os
import sys
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any, Optional

from . import configuration
from ._device import format_bytes as show
from .configuration import Configuration, Setting
from .estimate import Estimate, estimate, shape_of_size
from .fields import Fields, text_config
from .shape import ModelShape, plain

_MAX_POINTS = 4096  # that are estimated
_MAX_SHOWN = 512
_NO_RANK_HAS = 16 << 40  # bytes beside parameters and their state: a rack of accelerators holds less
_USUAL_LENGTH = 512
_GPT2 = "gpt2"

# (least, above which a value is absurd, what is usual)
_BOUNDS: dict[str, tuple[float, float, str]] = {
    "batch": (1, 16384, "1 to 256 rows on a device are usual"),
    "eval_batch": (1, 65536, "1 to 1,024 rows on a device are usual"),
    "length": (2, 1_000_000, "512 to 131,072 tokens are usual"),
    "target": (1, 1_000_000, "16 to 4,096 tokens are usual"),
    "accumulation": (1, 65536, "1 to 256 batches are usual"),
    "learning_rate": (0, 1, "1e-6 to 1e-2 is usual"),
    "steps": (-1, 1_000_000_000, "up to millions are usual"),
    "workers": (0, 1024, "one a processor is usual"),
    "epochs": (0, 10000, "1 to 100 are usual"),
    "share": (0, 1, "a share from 0 to 1 is meant"),
    "weight_decay": (0, 1, "0 to 0.1 is usual"),
    "rank": (1, 65536, "4 to 256 is usual"),
    "vocab_size": (2, 1_000_000, "published models have 32,000 to 262,144 tokens"),
    "hidden_size": (1, 131072, "256 to 16,384 are usual"),
    "num_hidden_layers": (1, 1024, "2 to 128 are usual"),
    "num_attention_heads": (1, 4096, "2 to 128 are usual"),
    "intermediate_size": (1, 1 << 20, "4 times the width is usual"),
    "max_position_embeddings": (2, 100_000_000, "512 to 131,072 are usual"),
}
_WHOLE = set(_BOUNDS) - {"learning_rate", "epochs", "share", "weight_decay"}
_ANY_RATE = ("prodigy", "dadapt", "adafactor", "sgd", "lomo")  # optimizers for which 1 is a usual learning rate
_OF_NEED = ("model", "batch", "length", "target", "accumulation", "optimizer", "checkpointing", "adapter", "rank")
_ALWAYS_SHOWN = ("batch", "length")


@dataclass(frozen=True)
class Finding:
    """A value of a configuration, by its key, and why it cannot be meant (absurd) or is worth a look."""

    key: str
    value: Any
    message: str
    absurd: bool

    def __str__(self) -> str:
        return f"{'absurd' if self.absurd else 'unusual'}: {self.key} {_shown(self.value)}: {self.message}"


@dataclass(frozen=True)
class Point:
    """What one combination of values takes on one device. bytes: at the peak. fits: whether that is free on the device
    with the most free memory; None where none is known."""

    values: dict[str, Any]
    bytes: int
    fits: Optional[bool] = None


@dataclass(frozen=True)
class Checkup:
    """What was found in a configuration. points: every combination that differs in memory; of a search, the ends of its
    ranges. combinations: of everything in it, None for a random search. parts: of the model, in bytes of its
    parameters."""

    kind: str
    model: str
    findings: tuple[Finding, ...]
    points: tuple[Point, ...]
    combinations: Optional[int]
    parts: dict[str, int]
    assumptions: str
    notes: tuple[str, ...]
    free_bytes: Optional[int] = None

    @property
    def absurd(self) -> tuple[Finding, ...]:
        return tuple(f for f in self.findings if f.absurd)

    def __str__(self) -> str:
        count = f", {self.combinations:,} combinations" if (self.combinations or 1) > 1 else ""
        lines = [f"{self.kind}{count}", *([f"model: {self.model}"] if self.model else [])]
        lines += map(str, self.findings or ["no value in it is out of the ordinary"])
        if self.points:
            lines.append(f"one device needs, {self.assumptions}:")
            lines += map(self._line, self.points[:_MAX_SHOWN])
            if more := self.points[_MAX_SHOWN:]:
                least, most = min(p.bytes for p in more), max(p.bytes for p in more)
                lines.append(f"  and {len(more):,} more, from {show(least)} to {show(most)}")
        if self.points and self.free_bytes is not None:
            lines.append(f"  free on the device with the most: {show(self.free_bytes)}")
        if self.parts:
            lines.append("of the model's parameters, by memory:")
            width = max(map(len, self.parts))
            lines += [f"  {name:<{width}}  {show(size)}" for name, size in self.parts.items()]
            lines.append("  dsload.memory.summary(model) lists the layers of a model itself")
        return "\n".join([*lines, *(f"note: {n}" for n in self.notes)])

    def _line(self, p: Point) -> str:
        values = ", ".join(f"{k} {_shown(v)}" for k, v in p.values.items()) or "all settings"
        return f"  {values}: {show(p.bytes)}{'' if p.fits is not False else ', which does not fit'}"


def check_configuration(config: Mapping[str, Any], *, folder: str = ".", memory_bytes: Optional[int] = None) -> Checkup:
    """Looks for values that cannot be meant in a training or sweep configuration, and estimates what each point needs.

    Args:
        config: as its file's YAML or JSON gives it: of W&B sweeps, Hugging Face's Trainer and TRL, axolotl,
            LLaMA-Factory, torchtune, nanoGPT and others that name settings as these do.
        folder: where relative paths of models begin, besides the working folder.
        memory_bytes: what is free on the device; with it points have `fits`.

    The need is that of `estimate` for a model with the sizes of its config.json, from its folder or from what
    huggingface_hub has downloaded. Nothing is downloaded.
    """
    if not isinstance(config, Mapping):
        raise ValueError(f"config must be a mapping, got {type(config).__name__}")
    return _Check(configuration.read(config), folder, memory_bytes).run()


class _Check:
    def __init__(self, config: Configuration, folder: str, free: Optional[int]) -> None:
        self.config, self.folder, self.free = config, folder, free
        self.settings = config.settings
        self.notes: list[str] = []
        self.shapes: dict[Any, Optional[ModelShape]] = {}
        self.limits: dict[Any, int] = {}  # the positions of models
        self.guessed = False

    def run(self) -> Checkup:
        relevant = {
            slot: s
            for slot, s in self.settings.items()
            if s.meaning in _OF_NEED or s.meaning in _SIZES or s.meaning in ("precision", "bits")
        }
        total = math.prod(len(s.values) for s in relevant.values())
        combinations = list(configuration.points(relevant, _MAX_POINTS))
        if total > len(combinations):
            self.notes.append(
                f"of {total:,} combinations that differ in memory the first {_MAX_POINTS:,} are estimated"
            )
        needs = [(c, self.need(c)) for c in combinations]
        shape = next((s for s in self.shapes.values() if s), None)
        findings = self.findings(relevant)
        points = []
        for c, need in needs:
            if need is not None:
                fits = need <= self.free if self.free is not None else None
                values = {s.key: c[slot] for slot, s in relevant.items() if self._shown(s)}
                points.append(Point(values, need, fits))
        for key, name in self.config.misspelled:
            self.notes.append(f"{key} is not a known setting, and was not read; if {name} is meant, write that")
        if any(s.meaning == "sharding" and any(s.values) for s in self.settings.values()):
            self.notes.append(
                "sharding over devices (FSDP, DeepSpeed) is not counted: it divides parameters, gradients and the "
                "optimizer's state"
            )
        if any(s.is_range for s in self.settings.values()):
            self.notes.append("of ranges the ends are estimated")
        if shape is None and not points and "model" not in self.settings:
            self.notes.append(
                "no model is named (model_name_or_path, base_model, or sizes as n_layer and n_embd), so that its need "
                "is not known"
            )
        return Checkup(
            kind=self.config.kind,
            model=self._model(shape),
            findings=findings,
            points=tuple(points),
            combinations=self.config.combinations,
            parts=_parts(shape) if shape and not self.guessed else {},
            assumptions=self._assumptions(),
            notes=tuple(dict.fromkeys(self.notes)),
            free_bytes=self.free,
        )

    def _shown(self, s: Setting) -> bool:
        return len(s.values) > 1 or s.meaning in _ALWAYS_SHOWN

    def _model(self, shape: Optional[ModelShape]) -> str:
        names = ", ".join(str(v) for v in self.settings["model"].values) if "model" in self.settings else ""
        if shape is None or len(self.shapes) > 1 or self.guessed:
            return names
        facts = f"{shape.parameters() / 1e6:,.1f} million parameters, {shape.layers} layers {shape.hidden:,} wide, "
        return f"{names}{': ' if names else ''}{facts}a vocabulary of {shape.vocab_size:,}"

    # What a combination needs

    def shape(self, c: Mapping[str, Any]) -> Optional[ModelShape]:
        key = _of_model(c)
        if key not in self.shapes:
            self.shapes[key], self.limits[key] = self._make(c.get("model"), dict(key[1:]))
        return self.shapes[key]

    def _make(self, model: Any, sizes: dict[str, Any]) -> tuple[Optional[ModelShape], int]:
        base: Optional[dict[str, Any]] = {}
        if isinstance(model, str) and model not in ("scratch", "resume"):
            base, note = configuration.model_config(model, self.folder)
            if note:
                self.notes.append(note)
        if base and "parameters" in base:
            self.guessed, guessed = True, shape_of_size(int(base["parameters"]))
            return replace(guessed, vocab_size=int(sizes.get("vocab_size", guessed.vocab_size))), 0
        fields = Fields(text_config(base)) if base else None
        named = {name: (fields.get(name) if fields else None) for name in _SIZES}
        merged = {
            **dict(text_config(base) if base else {}),
            **{k: v for k, v in named.items() if v is not None},
            **sizes,
        }
        for alias in ("n_embd", "n_layer", "n_head", "d_model", "num_layers", "n_inner", "d_ff", "num_heads"):
            merged.pop(alias, None)  # their values are there by transformers' common names
        try:
            made = plain(Fields(merged))
        except (ValueError, TypeError, ZeroDivisionError):
            return None, 0
        return made, 0 if made.relative_bias else int(merged.get("max_position_embeddings") or 0)

    def need(self, c: Mapping[str, Any], fallback: Optional[ModelShape] = None) -> Optional[int]:
        """The peak of a combination in bytes; None where the model is not known."""
        shape = self.shape(c) or fallback
        e = self._estimate(shape, c) if shape else None
        if shape is None or e is None:
            return None
        if not _adapts(c):
            return e.total
        bits = _bits(c)
        weights = shape.parameters() * bits // 8 if bits else e.parameters
        rank = max(int(c.get("rank", 16)), 1)
        layers = shape.layers + shape.decoder_layers
        adapters = layers * rank * (6 * shape.hidden + 2 * shape.inner + 3 * shape.feed_forward)
        return weights + 16 * adapters + max(e.activations + e.logits, e.activations + e.layer_backward)

    def _estimate(self, shape: ModelShape, c: Mapping[str, Any]) -> Optional[Estimate]:
        length = c.get("length") or min(_USUAL_LENGTH, shape.positions or _USUAL_LENGTH)
        try:
            return estimate(
                shape,
                c.get("batch", 1),
                length,
                target_length=c.get("target"),
                dtype=_dtype(c),
                optimizer=_optimizer(c.get("optimizer")),
                gradient_checkpointing=_on(c.get("checkpointing")),
                accumulation=2 if c.get("accumulation", 1) > 1 else 1,
            )
        except (ValueError, TypeError, OverflowError, ZeroDivisionError):
            return None  # a size that is no size, which is a finding

    def _assumptions(self) -> str:
        varied = {s.meaning for s in self.settings.values() if len(s.values) > 1}
        c = {slot: s.values[0] for slot, s in self.settings.items() if s.meaning not in varied}
        kinds = {"mixed": "16-bit autocast", "bfloat16": "bfloat16", "float16": "float16"}
        said = [kinds.get(_dtype(c), "float32")] if "precision" not in varied else []
        said += [f"optimizer {_optimizer(c.get('optimizer'))}"] if "optimizer" not in varied else []
        said += ["gradient checkpointing"] if _on(c.get("checkpointing")) else []
        said += (
            [f"adapters alone are trained{f', weights of {_bits(c)} bits' if _bits(c) else ''}"] if _adapts(c) else []
        )
        said += ["a row"] if "batch" not in self.settings else []
        said += [f"{_USUAL_LENGTH} tokens a row"] if "length" not in self.settings else []
        return ", ".join(said)

    # What cannot be meant

    def findings(self, relevant: dict[str, Setting]) -> tuple[Finding, ...]:
        found = [Finding(k, v, "a number must be there", True) for k, v in self.config.unread]
        for s in (*self.settings.values(), *self.config.others):
            if s.is_range and s.values[0] > s.values[-1]:
                ends = f"{_shown(s.values[0])} to {_shown(s.values[-1])}"
                found.append(Finding(s.key, ends, "a range begins with its smaller end", True))
            for v in s.values:
                said = self._judge(s, v, relevant) if s.meaning in _BOUNDS else None
                if said:
                    found.append(Finding(s.key, v, *said))
        return tuple(dict.fromkeys(found))

    def _judge(self, s: Setting, v: Any, relevant: dict[str, Setting]) -> Optional[tuple[str, bool]]:
        """(why a value is out of the ordinary, whether it cannot be meant)"""
        least, most, usual = _BOUNDS[s.meaning]
        if s.meaning == "learning_rate" and self._any_rate():
            return None
        if s.name == "model_max_length" and v > 1e15:  # what transformers writes for no limit
            return None
        whole = s.meaning in _WHOLE
        if whole and v != int(v) and not s.is_range:
            return "a whole number is meant", True
        slot = s.meaning
        here = {slot: v} if slot in _OF_NEED or slot in _SIZES else {}
        c = {**{o: p.values[0] for o, p in relevant.items()}, **here}
        positions = self._positions(c) if slot in ("length", "target") else 0
        if v < least:
            return f"at least {least:g} is meant; {usual}", True
        if slot == "length" and positions and v > positions:
            far = v > 8 * positions
            more = self._takes(c) if far else "; longer rows fail, or need their positions scaled"
            return f"the model has {positions:,} positions{more}", far
        if v > most or (slot == "length" and not positions and v >= most):
            return f"{usual}{self._takes(c) if whole and slot not in ('accumulation', 'rank') else ''}", True
        alone = {**c, "batch": 1, "length": min(_USUAL_LENGTH, positions or _USUAL_LENGTH), "target": 1, **here}
        if slot in ("batch", "length", "target") and self._beside_state(alone) > _NO_RANK_HAS:
            return f"{usual}{self._takes(c)}", True
        if slot == "learning_rate" and v > 0.1:
            return usual, False
        if slot == "rank" and (shape := self.shape(c)) and v > shape.hidden:
            return f"the model is {shape.hidden:,} wide, and {usual}", True
        if slot == "num_attention_heads" and (shape := self.shape(c)) and shape.hidden % v:
            return f"a width of {shape.hidden:,} is not a multiple of it", True
        if slot == "vocab_size" and (known := self._vocabulary()) and v < known:
            return f"the model has {known:,} tokens; ids from {v:,} on have no embedding", False
        return None

    def _any_rate(self) -> bool:
        names = [str(v).lower() for v in self.settings["optimizer"].values] if "optimizer" in self.settings else []
        return any(kind in name for name in names for kind in _ANY_RATE)

    def _positions(self, c: Mapping[str, Any]) -> int:
        self.shape(c)
        return self.limits[_of_model(c)]

    def _vocabulary(self) -> int:
        """The vocabulary of the one model that is named, 0 if it is not known."""
        models = self.settings["model"].values if "model" in self.settings else ()
        shape = self._make(models[0], {})[0] if len(models) == 1 else None
        return shape.vocab_size if shape else 0

    def _fallback(self, c: Mapping[str, Any]) -> ModelShape:
        made = self._make(_GPT2, {k: c[k] for k in ("vocab_size",) if k in c})[0]
        assert made is not None
        return made

    def _takes(self, c: Mapping[str, Any]) -> str:
        """What a combination would take, as the end of a sentence."""
        known = self.shape(c)
        need = self.need(c, self._fallback(c))
        if need is None:
            return ""
        shape = known or self._fallback(c)
        table = shape.vocab_size * shape.hidden * 4
        one = f"; {'this' if known else 'with GPT-2 this'} would take {show(need)}"
        return one + (f", of which the embedding is {show(table)}" if table > need // 20 else "")

    def _beside_state(self, c: Mapping[str, Any]) -> int:
        shape = self.shape(c) or self._fallback(c)
        e = self._estimate(shape, c)
        return e.total - e.parameters - e.gradients - e.optimizer if e else 0


_SIZES = frozenset(configuration._SIZES.values())


def _of_model(c: Mapping[str, Any]) -> tuple[Any, ...]:
    """What makes a model in a combination: its name, and sizes by their names."""
    return (c.get("model"), *((slot, v) for slot, v in c.items() if slot in _SIZES))


def _on(v: Any) -> bool:
    return v.lower() in ("true", "yes", "1", "unsloth") if isinstance(v, str) else bool(v)


def _words(c: Mapping[str, Any], meaning: str) -> list[tuple[str, str]]:
    """(name, value in lower case) of the settings with a meaning of which several count."""
    return [(slot.partition(":")[2], str(v).lower()) for slot, v in c.items() if slot.partition(":")[0] == meaning]


def _dtype(c: Mapping[str, Any]) -> str:
    """The dtype of `estimate`: parameters that are loaded in 16 bits, or those of 32 under autocast."""
    mixed = loaded = ""
    for name, v in _words(c, "precision"):
        half = "float16" if "fp16" in v or v in ("float16", "torch.float16", "half", "16-true") else "bfloat16"
        is_half = any(w in v for w in ("bf16", "bfloat16", "fp16", "float16", "half", "16-mixed", "16-true"))
        if name in ("bf16", "fp16", "mixed_precision") or "mixed" in v:
            mixed = "mixed" if is_half or _on(v) else mixed
        elif is_half:
            loaded = half
    return (
        loaded or (mixed and ("bfloat16" if _adapts(c) else mixed)) or "float32"
    )  # a frozen model is loaded in 16 bits


def _bits(c: Mapping[str, Any]) -> int:
    for name, v in _words(c, "bits"):
        for bits in (4, 8):
            if v == str(bits) or (str(bits) in name and _on(v)):
                return bits
    return 4 if str(c.get("adapter", "")).lower() == "qlora" else 0


def _adapts(c: Mapping[str, Any]) -> bool:
    """Reports whether adapters are trained and the model is frozen."""
    v = c.get("adapter")
    return "lora" in v.lower() or _on(v) if isinstance(v, str) else bool(v) or (v is None and "rank" in c)


def _optimizer(name: Any) -> str:
    """The optimizer of `estimate` that keeps as much."""
    text = str(name or "adamw").lower()
    kinds = {"8bit": "adamw8bit", "adafactor": "adafactor", "sgd": "sgd", "lion": "momentum", "muon": "momentum"}
    return next((kind for word, kind in kinds.items() if word in text), "adamw")


def _parts(shape: ModelShape) -> dict[str, int]:
    """Bytes of the parameters of a plain model in float32, by its parts."""
    tables = shape.vocab_size * shape.hidden
    rest = shape.parameters() - tables * (1 if shape.tied else 2) - shape.positions * shape.hidden
    layers = shape.layers + shape.decoder_layers
    parts = {"embeddings": 4 * tables, "positions": 4 * shape.positions * shape.hidden,
             f"{layers} layers": 4 * rest, "a layer": 4 * rest // max(layers, 1),
             "head": 0 if shape.tied else 4 * tables}  # fmt: skip
    return {name: size for name, size in parts.items() if size}


def _shown(v: Any) -> str:
    return f"{v:,}" if isinstance(v, int) and not isinstance(v, bool) else f"{v:g}" if isinstance(v, float) else str(v)


def main() -> None:
    """`dsload doctor` asks: {"config", "folder", "free"} from stdin, answered by {"text", "result", "absurd"}."""
    asked = json.load(sys.stdin)
    c = check_configuration(asked["config"], folder=asked.get("folder") or os.getcwd(), memory_bytes=asked.get("free"))
    json.dump({"text": str(c), "result": asdict(c), "absurd": len(c.absurd)}, sys.stdout)


if __name__ == "__main__":
    main()
