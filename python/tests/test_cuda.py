"""On an accelerator: `python -m pytest -m cuda`, within four minutes. The memory kit with real errors, estimates beside
real peaks, packed rows under a kernel that keeps documents apart, a resume.

The limits are of torch's allocator, so a device of any size runs out of memory where the tests expect it.
"""

from __future__ import annotations

import contextlib
import gc
import importlib.util
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import peaks
import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")

import models  # noqa: E402
import transformers  # noqa: E402
from transformers import Trainer, TrainerCallback, TrainingArguments  # noqa: E402

from dsload import Loader  # noqa: E402
from dsload.integrations import TrainerMixin  # noqa: E402
from dsload.memory import AdaptiveBatchSizer, analyze, estimate, find_max_batch_size  # noqa: E402

pytestmark = [pytest.mark.cuda, pytest.mark.torch, pytest.mark.trainers]

DEVICE = "cuda"
GIB = 2**30


@contextlib.contextmanager
def limited(size: int) -> Iterator[None]:
    """A device on which so many bytes are free."""
    gc.collect()
    torch.cuda.empty_cache()
    total = torch.cuda.get_device_properties(0).total_memory
    torch.cuda.set_per_process_memory_fraction((torch.cuda.memory_reserved() + size) / total)
    torch.cuda.reset_peak_memory_stats()
    try:
        yield
    finally:
        torch.cuda.set_per_process_memory_fraction(1.0)
        gc.collect()
        torch.cuda.empty_cache()


def small_model() -> Any:
    return models.gpt2(vocab=8000, layers=6, width=512, heads=8).to(DEVICE)


def gradients_of(model: Any, sizer: Any, batch: Any, told: Any = None) -> tuple[dict[str, Any], int]:
    """The gradients of an effective batch, and the rows that were run."""
    rows = 0
    model.zero_grad(set_to_none=True)
    for micro in sizer.batches([batch]):
        with sizer.step():
            sizer.backward(model(**micro.inputs(DEVICE)).loss)
            rows += micro.rows
    return {name: g.cpu() for name, g in models.gradients(model).items() if g is not None}, rows


def test_the_sizer_finds_what_fits_by_real_errors() -> None:
    model, batch = small_model(), models.causal_batch(64, 512, vocab=8000, ragged=False)
    reference = AdaptiveBatchSizer(model, 64, micro_batch_size=2)
    want, rows = gradients_of(model, reference, batch)
    assert rows == 64 and reference.num_splits == 0
    model.zero_grad(set_to_none=True)
    with limited(2 * GIB):
        sizer = AdaptiveBatchSizer(model, 64, micro_batch_size=64)
        got, rows = gradients_of(model, sizer, batch)
        assert rows == 64, "a row is lost, or was run twice"
        assert sizer.num_splits >= 2 and sizer.micro_batch_size < 64
        for name, gradient in got.items():
            assert float((gradient - want[name]).norm() / (want[name].norm() + 1e-12)) < 1e-4, name
        splits = sizer.num_splits
        _, rows = gradients_of(model, sizer, batch)
        assert rows == 64 and sizer.num_splits == splits, "the size that fits is kept"


def test_the_sizers_first_pick_sees_the_limit() -> None:
    model, batch = small_model(), models.causal_batch(64, 512, vocab=8000, ragged=False)
    with limited(2 * GIB):
        sizer = AdaptiveBatchSizer(model, 64, sequence_length=512)
        assert 1 <= sizer.micro_batch_size < 64
        _, rows = gradients_of(model, sizer, batch)
        assert rows == 64 and sizer.num_splits == 0, "the first pick fits"


def test_the_search_ends_at_the_limit() -> None:
    model = small_model()
    optimizer = torch.optim.AdamW(model.parameters())

    def step(rows: int) -> None:
        ids = torch.randint(1, 8000, (rows, 256), device=DEVICE)
        model(input_ids=ids, labels=ids).loss.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)

    with limited(2 * GIB):
        found = find_max_batch_size(step, limit=4096)
        assert 1 < found.maximum < 4096 and not found.limited
        assert all(fits == (rows <= found.maximum) for rows, fits in found.trials)
        assert any(not fits for _, fits in found.trials)
        step(found.safe)


def peak_of_a_step(
    config: dict[str, Any], rows: int, length: int, target: int, dtype: str, attention: str, checkpointing: bool
) -> float:
    """GiB that a step of AdamW holds at most, with the optimizer's state of the step before."""
    gc.collect()
    torch.cuda.empty_cache()
    before = torch.cuda.memory_allocated()
    made = transformers.AutoConfig.for_model(**config, use_cache=False)
    kind = transformers.AutoModelForSeq2SeqLM if made.is_encoder_decoder else transformers.AutoModelForCausalLM
    low = torch.bfloat16 if dtype == "bfloat16" else torch.float32
    with torch.device(DEVICE):
        model = kind.from_config(made, attn_implementation=attention, dtype=low).train()
    if checkpointing:
        model.gradient_checkpointing_enable()
    optimizer = torch.optim.AdamW(model.parameters())
    ids = torch.randint(1, made.vocab_size, (rows, length), device=DEVICE)
    labels = torch.randint(1, made.vocab_size, (rows, target), device=DEVICE) if made.is_encoder_decoder else ids
    for _ in range(2):
        torch.cuda.reset_peak_memory_stats()
        with torch.autocast(DEVICE, dtype=torch.bfloat16, enabled=dtype == "mixed"):
            loss = model(input_ids=ids, labels=labels).loss
        loss.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        del loss
    return float(torch.cuda.max_memory_allocated() - before) / GIB


def compare(config: dict[str, Any], *shape: Any, slack: float = 0.0) -> None:
    rows, length, target, dtype, attention, checkpointing = shape
    options = {"dtype": dtype, "attention": attention, "gradient_checkpointing": checkpointing}
    want = estimate(config, rows, length, target_length=target, **options).total / GIB
    free = torch.cuda.mem_get_info()[0] / GIB
    if free < 1.3 * want:
        pytest.skip(f"needs {1.3 * want:.1f} GiB, and {free:.1f} are free")
    found = peak_of_a_step(config, *shape)
    print(f"{config['model_type']} {dtype} {attention} {checkpointing}: {found:.2f} GiB, estimate {want / found:.3f}")
    assert 0.95 * found - slack <= want <= 1.2 * found + slack


@pytest.mark.parametrize("checkpointing", [False, True])
@pytest.mark.parametrize(("config", "rows", "dtype", "attention"), [row[:4] for row in peaks.MEASURED])
def test_estimates_beside_peaks(
    config: dict[str, Any], rows: int, dtype: str, attention: str, checkpointing: bool
) -> None:
    compare(config, rows, 1024, 1024, dtype, attention, checkpointing)


@pytest.mark.parametrize("row", peaks.COUNTED)
def test_estimates_of_other_families(row: Any) -> None:
    config, *shape, _ = row
    if config["model_type"] == "t5":
        config = {**config, "decoder_start_token_id": 0, "pad_token_id": 0}
    compare(config, *shape, slack=0.06)  # cuBLAS keeps a workspace, which is much beside small models


@pytest.mark.server
def test_packed_rows_under_a_kernel_of_their_own(dataset: str) -> None:
    flash = importlib.util.find_spec("flash_attn") is not None
    attention, dtype = ("flash_attention_2", torch.bfloat16) if flash else ("flex_attention", torch.float32)
    shape = {"pack": "bfd", "max_length": 128, "batch_size": 4, "padding": "max_length", "seed": 1}
    with Loader(dataset, **shape) as loader:
        batches = [batch for _, batch in zip(range(3), loader)]
    for batch in batches:
        batch.update({name: v.to(DEVICE) for name, v in batch.items() if isinstance(v, torch.Tensor)})
    assert any(int(b["segments"].max()) > 2 for b in batches)
    plain = models.decoder("Llama", "eager", vocab=50257, width=64).to(DEVICE, dtype)
    packed = models.decoder("Llama", attention, vocab=50257, width=64).to(DEVICE, dtype)
    with torch.no_grad():
        want = models.alone(plain.eval(), batches)
        assert models.together(packed.eval(), batches) == pytest.approx(want, abs=0.05 if flash else 1e-3)


class Resuming(TrainerMixin, Trainer):  # type: ignore[misc]
    """A Trainer with a loader."""


class Stop(TrainerCallback):  # type: ignore[misc]
    def __init__(self, step: int) -> None:
        self.step = step

    def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        if state.global_step == self.step:
            control.should_save = control.should_training_stop = True


@pytest.mark.server
def test_a_run_in_bfloat16_is_resumed(rows240: str, tmp_path: Path) -> None:
    def train(out: Path, stop: int = 0, resume: bool = False) -> list[float]:
        options = TrainingArguments(
            output_dir=str(out), max_steps=20, logging_steps=1, save_strategy="no", report_to=[], disable_tqdm=True,
            bf16=True, learning_rate=1e-3, per_device_train_batch_size=16, gradient_accumulation_steps=2,
        )  # fmt: skip
        with Loader(rows240, batch_size=16, seed=3) as loader:
            trainer = Resuming(models.llama(vocab=50257), options, train_dataset=loader, callbacks=[Stop(stop)])
            trainer.train(resume_from_checkpoint=resume or None)
            return [h["loss"] for h in trainer.state.log_history if "loss" in h]

    whole = train(tmp_path / "whole")
    assert train(tmp_path / "stopped", stop=11) == pytest.approx(whole[:11], abs=1e-2)
    again = train(tmp_path / "stopped", resume=True)
    assert again[-9:] == pytest.approx(whole[11:], abs=1e-2)


LIMIT = """
import torch
device = torch.device("cuda")
torch.cuda.set_per_process_memory_fraction(2**30 / torch.cuda.get_device_properties(0).total_memory)
"""

SCRIPT = """
from torch import nn
model = nn.Sequential(nn.Embedding(8000, 256), nn.Linear(256, 256), nn.Linear(256, 8000)).to(device)
optimizer = torch.optim.AdamW(model.parameters())
kept = []

def step(rows, length):
    ids = torch.randint(0, 8000, (rows, length), device=device)
    out = model(ids)
    nn.functional.cross_entropy(out.view(-1, 8000), ids.view(-1)).backward()
    optimizer.step()
    optimizer.zero_grad()
    return out
"""

FAILING = {
    "batch_too_large": "for rows in (8, 8, 8, 8, 64):\n    step(rows, 256)",
    "leak": "for _ in range(100):\n    kept.append(step(8, 128))",
    "long_sequences": "for length in (64,) * 8 + (2048,):\n    step(8, length)",
}


@pytest.mark.server
@pytest.mark.parametrize("kind", FAILING)
def test_the_record_of_a_failing_script(kind: str, tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(LIMIT + SCRIPT + FAILING[kind])
    package = str(Path(__file__).resolve().parent.parent)
    path = os.pathsep.join(p for p in (package, os.environ.get("PYTHONPATH", "")) if p)
    command = [sys.executable, "-m", "dsload.memory.record", "train.py"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, env={**os.environ, "PYTHONPATH": path})
    assert done.returncode == 1 and "OutOfMemoryError" in done.stderr, done.stderr[-2000:]
    lines = [json.loads(line) for line in (tmp_path / "memory.jsonl").read_text().splitlines()]
    assert [line["type"] for line in lines].count("oom") == 1
    found = analyze(tmp_path / "memory.jsonl")
    assert found.out_of_memory and kind in [v.kind for v in found.verdicts], str(found)
