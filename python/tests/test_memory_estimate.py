"""estimate and presets: against torch's own allocator, and against what people get wrong."""

from __future__ import annotations

import json
from typing import Any, Optional

import peaks
import pytest

from dsload.memory import PRESETS, DeviceMemory, ModelShape, estimate, preset, suggest_batch_size

GPT2 = {"model_type": "gpt2", "n_embd": 768, "n_layer": 12, "n_head": 12, "vocab_size": 50257, "n_positions": 1024}


def measured_peak(run: Any, tmp_path: Any) -> int:
    """The most that torch's CPU allocator held at once during `run`, above what it held before."""
    import torch

    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU], profile_memory=True) as profile:
        run()
    profile.export_chrome_trace(str(tmp_path / "trace.json"))
    events = json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
    held = peak = 0
    for event in sorted((e for e in events if e.get("name") == "[memory]"), key=lambda e: e["ts"]):
        held += event["args"]["Bytes"]
        peak = max(peak, held)
    assert peak > 0, "the profile holds no memory events"
    return peak


SHAPES = [
    ("gpt2", {"vocab": 1000, "layers": 4, "width": 128, "heads": 4}, 4, 64, None),
    ("gpt2", {"vocab": 20000, "layers": 2, "width": 64}, 2, 128, None),
    ("gpt2", {"vocab": 5000, "layers": 6, "width": 256, "heads": 8}, 2, 96, None),
    ("t5", {"vocab": 512, "layers": 4, "width": 128, "heads": 4}, 4, 64, 32),
    ("t5", {"vocab": 8000, "layers": 3, "width": 64, "heads": 4, "feed_forward_proj": "gated-gelu"}, 3, 96, 40),
    ("llama", {"vocab": 8000, "layers": 4, "width": 128, "heads": 4, "num_key_value_heads": 2}, 2, 128, None),
]


@pytest.mark.torch
@pytest.mark.trainers
@pytest.mark.parametrize("attention", ["eager", "sdpa"])
@pytest.mark.parametrize(
    ("make", "shape", "rows", "length", "target", "dropout"),
    [(*s, d) for s in SHAPES for d in (0.0, 0.1) if not (d and s[0] == "llama")],
)
def test_training_peak_within_15_percent(
    make: str,
    shape: dict[str, Any],
    rows: int,
    length: int,
    target: Optional[int],
    dropout: float,
    attention: str,
    tmp_path: Any,
) -> None:
    import models
    import torch

    more = dict(shape, attn_implementation=attention)
    if make != "llama":
        more["dropout"] = dropout
    model = getattr(models, make)(**more).train()
    vocab = shape["vocab"]
    ids = torch.randint(1, vocab, (rows, length))
    labels = ids if target is None else torch.randint(1, vocab, (rows, target))
    optimizer = torch.optim.AdamW(model.parameters())

    def step() -> None:
        loss = model(input_ids=ids, attention_mask=torch.ones_like(ids), labels=labels).loss
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()

    step()  # the optimizer's state is there from now on
    got = estimate(model.config, rows, length, target_length=target, attention=attention, device="cpu")
    assert got.num_parameters == sum(p.numel() for p in model.parameters())
    state = sum(v.nbytes for s in optimizer.state.values() for v in s.values() if v.ndim)
    assert got.optimizer == state
    peak = measured_peak(step, tmp_path)
    above_rest = got.total - got.parameters - got.optimizer
    assert abs(above_rest - peak) <= 0.15 * peak, f"estimated {above_rest:,}, torch held {peak:,}"


@pytest.mark.torch
@pytest.mark.trainers
@pytest.mark.parametrize(("make", "target"), [("gpt2", None), ("t5", 16)])
def test_evaluation_and_cache_are_near_what_torch_holds(make: str, target: Optional[int], tmp_path: Any) -> None:
    import models
    import torch

    model = getattr(models, make)(vocab=4000, layers=3, width=64).eval()
    ids = torch.randint(1, 4000, (16, 64))
    labels = ids if target is None else torch.randint(1, 4000, (16, target))

    def run() -> None:
        with torch.no_grad():
            model(input_ids=ids, labels=labels, use_cache=False)

    got = estimate(model.config, 16, 64, target_length=target, mode="evaluate", device="cpu", attention="eager")
    peak = measured_peak(run, tmp_path)
    assert 0.7 * peak <= got.activations + got.logits <= 1.5 * peak
    with torch.no_grad():
        options = {"decoder_input_ids": ids[:, :16]} if target else {}
        cache = model(input_ids=ids, use_cache=True, **options).past_key_values
    layers = [cache] if target is None else [cache.self_attention_cache, cache.cross_attention_cache]
    held = sum(t.nbytes for c in layers for layer in c.layers for t in (layer.keys, layer.values))
    generated = estimate(model.config, 16, 64, mode="generate", max_new_tokens=16 if target else 0)
    assert generated.kv_cache == held


GIB = 2**30


@pytest.mark.torch
@pytest.mark.trainers
@pytest.mark.parametrize(("config", "rows", "dtype", "attention", "plain", "checkpointed"), peaks.MEASURED)
def test_peaks_that_were_measured(
    config: dict[str, Any], rows: int, dtype: str, attention: str, plain: float, checkpointed: float
) -> None:
    for checkpointing, peak in ((False, plain), (True, checkpointed)):
        got = estimate(config, rows, 1024, dtype=dtype, attention=attention, gradient_checkpointing=checkpointing)
        assert 0.95 * peak <= got.total / GIB <= 1.2 * peak, checkpointing


@pytest.mark.torch
@pytest.mark.trainers
@pytest.mark.parametrize(
    ("config", "rows", "length", "target", "dtype", "attention", "checkpointing", "peak"), peaks.COUNTED
)
def test_peaks_of_other_architectures(
    config: dict[str, Any],
    rows: int,
    length: int,
    target: int,
    dtype: str,
    attention: str,
    checkpointing: bool,
    peak: float,
) -> None:
    got = estimate(
        config,
        rows,
        length,
        target_length=target,
        dtype=dtype,
        attention=attention,
        gradient_checkpointing=checkpointing,
    )
    assert 0.95 * peak <= got.total / GIB <= 1.2 * peak


def test_the_terms_add_up() -> None:
    def of(dtype: str, attention: str, **more: Any) -> Any:
        return estimate(peaks.LLAMA, 8, 1024, dtype=dtype, attention=attention, **more)

    fused, written, low = of("mixed", "sdpa"), of("mixed", "eager"), of("bfloat16", "sdpa")
    scores = 8 * 16 * 1024 * 1024 * 12
    assert (fused.attention_scores, written.attention_scores) == (0, 6 * scores)
    assert of("float32", "sdpa").attention_scores == 4 * scores, "no fused kernel has fewer key heads in float32"
    assert low.autocast_copies == 0 < 2 * (fused.num_parameters - 32000 * 1024) < fused.autocast_copies
    held = written.parameters + written.optimizer + written.activations + written.logits
    assert written.total == held and written.activations > written.attention_scores + written.autocast_copies
    padded = of("bfloat16", "sdpa", padded=True)
    assert padded.activations - low.activations == 2 * 2 * (1024 - 256) * 8 * 1024 * 12, "repeated keys and values"
    assert "scores" in str(written) and "copies" in str(written) and "copies" not in str(low)


def test_gpt2_has_the_parameters_it_is_known_for() -> None:
    assert ModelShape.of(GPT2).parameters() == 124_439_808


def test_absurd_settings_are_named_with_what_would_fit() -> None:
    wide = estimate(dict(GPT2, vocab_size=10_000_000), 8, 512)
    assert any("vocabulary of 10,000,000" in w for w in wide.warnings)
    evaluation = estimate(GPT2, 40_000, 128, mode="evaluate")
    assert any("40,000 sequences" in w and "256" in w for w in evaluation.warnings)
    assert estimate(ModelShape.of(GPT2), 8, 512).warnings == ModelShape.of(GPT2).notes
    tight = estimate(GPT2, 64, 512, memory_bytes=16 * 10**9)
    assert tight.max_batch_size is not None and 0 < tight.max_batch_size < 64
    assert any(f"a batch of {tight.max_batch_size} fits" in w for w in tight.warnings)
    assert (
        estimate(GPT2, tight.max_batch_size, 512).total
        <= 16 * 10**9
        < estimate(GPT2, tight.max_batch_size + 1, 512).total
    )
    nothing = estimate(GPT2, 1, 512, memory_bytes=10**9)
    assert nothing.max_batch_size == 0 and any("not even one row" in w for w in nothing.warnings)
    assert any("positions" in w for w in estimate(GPT2, 1, 2048).warnings)


def test_what_saves_memory_lowers_the_estimate() -> None:
    base = estimate(GPT2, 16, 512).total
    assert estimate(GPT2, 16, 512, gradient_checkpointing=True).total < base
    assert estimate(GPT2, 16, 512, dtype="bfloat16").total < base
    assert estimate(GPT2, 16, 512, optimizer="adafactor").total < base
    assert estimate(GPT2, 16, 512, attention="eager").total > base
    assert estimate(GPT2, 16, 512, accumulation=2).total > base
    assert "parameters" in str(estimate(GPT2)) and "peak" in str(estimate(GPT2))


@pytest.mark.parametrize(
    "bad",
    [
        {"mode": "dream"},
        {"dtype": "int3"},
        {"optimizer": "luck"},
        {"batch_size": 0},
        {"sequence_length": 0},
        {"attention": "Eager"},
        {"device": "gpu"},
        {"gradient_checkpointing": "false"},
        {"keep_logits": "no"},
        {"padded": 1},
        {"target_length": 0},
        {"accumulation": 1.5},
        {"max_new_tokens": -1},
        {"num_return_sequences": 0},
        {"memory_bytes": -1},
    ],
    ids=str,
)
def test_bad_settings_are_refused(bad: dict[str, Any]) -> None:
    with pytest.raises(ValueError):
        estimate(GPT2, **bad)
    with pytest.raises(ValueError, match="hidden_size"):
        estimate({"vocab_size": 5})
    assert estimate(GPT2, device="cuda:1").total == estimate(GPT2).total


class Device:
    def __init__(self, total: int) -> None:
        self.total = total

    def read(self) -> DeviceMemory:
        return DeviceMemory(self.total, self.total)


@pytest.mark.parametrize(
    ("gigabytes", "name", "batch", "examples", "validation"),
    [
        (80, "medium", 16, 100_000, 0),
        (35, "medium", 16, 100_000, 0),
        (34.9, "small", 6, 50_000, 0),
        (14, "small", 6, 50_000, 0),
        (13.9, "tiny", 4, 30_000, 3_000),
        (0.5, "tiny", 4, 30_000, 3_000),
    ],
)
def test_presets(gigabytes: float, name: str, batch: int, examples: int, validation: int) -> None:
    got = preset(int(gigabytes * 1e9))
    assert (got.name, got.batch_size, got.max_examples, got.max_val_examples) == (name, batch, examples, validation)
    assert preset(meter=Device(int(gigabytes * 1e9))) == got
    assert got.explanation and got.accumulation * got.batch_size >= got.effective_batch_size
    assert preset(int(gigabytes * 1e9), batch_size=3).batch_size == 3
    with pytest.raises(TypeError):
        preset(int(gigabytes * 1e9), batchsize=3)


def test_the_presets_fit_their_devices() -> None:
    medium = dict(GPT2, n_embd=1024, n_layer=24, n_head=16)
    tiny = dict(GPT2, n_embd=384, n_layer=6, n_head=6)
    for shape, p in zip((medium, GPT2, tiny), PRESETS):
        room = p.min_memory_bytes or 6 * 10**9
        assert estimate(shape, p.batch_size, 512, accumulation=2).total < room, p.name


def test_suggested_size_fits_by_the_estimate() -> None:
    for room in (4, 8, 16, 40):
        rows = suggest_batch_size(ModelShape.of(GPT2), sequence_length=256, memory_bytes=room * 10**9)
        assert rows & (rows - 1) == 0
        if rows > 1:
            assert estimate(GPT2, rows, 256, attention="eager", accumulation=2).total <= 0.8 * room * 10**9
    assert suggest_batch_size(124_000_000, memory_bytes=16 * 10**9) >= 1
