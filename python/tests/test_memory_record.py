"""MemoryRecorder, analyze, MemoryGuard, find_max_batch_size, configure_allocator."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import Any

import pytest

import dsload
from dsload.memory import (
    DeviceMemory,
    DeviceMeter,
    MemoryGuard,
    MemoryRecorder,
    analyze,
    configure_allocator,
    find_max_batch_size,
    is_out_of_memory,
)

MIB, GIB = 1 << 20, 1 << 30


def kinds(analysis: Any) -> list[str]:
    return [v.kind for v in analysis.verdicts]


def write(path: Any, lines: list[dict[str, Any]], **start: Any) -> Any:
    head = {"type": "start", "version": 1, "time": 0, "device": "cuda:0", "device_total": 16 * GIB, "parameters": 10**8,
            "parameter_bytes": 4 * 10**8, **start}  # fmt: skip
    path.write_text("".join(json.dumps(x) + "\n" for x in [head, *lines]))
    return path


def snapshot(step: int, phase: str, **more: Any) -> dict[str, Any]:
    base = {"type": "snapshot", "time": step, "step": step, "phase": phase, "allocated": GIB, "reserved": 2 * GIB,
            "peak": 2 * GIB,
            "free": 13 * GIB, "rss": GIB, "batch": {"rows": 8, "length": 128}}  # fmt: skip
    return {**base, **more}


def calm(steps: int = 12) -> list[dict[str, Any]]:
    return [snapshot(s, p) for s in range(1, steps + 1) for p in ("load", "forward", "backward", "optimizer")]


def oom(phase: str, **more: Any) -> dict[str, Any]:
    return {**snapshot(13, phase), "type": "oom", "message": "CUDA out of memory", "requested": GIB, **more}


@pytest.mark.torch
@pytest.mark.trainers
@pytest.mark.server
def test_recorded_run_that_ends_in_the_batch(tmp_path: Any) -> None:
    import models
    import torch
    from limited_allocator import LimitedAllocator

    path = tmp_path / "memory.jsonl"
    device = LimitedAllocator(24 * MIB)
    model = models.gpt2(vocab=2000)
    optimizer = torch.optim.SGD(model.parameters(), 0.01)
    batches = [models.causal_batch(4, 32)] * 6 + [models.causal_batch(64, 32)]
    with (
        device,
        pytest.raises(torch.OutOfMemoryError),
        MemoryRecorder(path, model=model, meter=device, gradients_every=2) as record,
    ):
        for batch in record.loading(batches):
            with record.phase("forward"):
                loss = model(**{k: batch[k] for k in ("input_ids", "attention_mask", "labels")}).loss
            with record.phase("backward"):
                loss.backward()
            with record.phase("optimizer"):
                optimizer.step()
                optimizer.zero_grad()
    lines = [json.loads(x) for x in path.read_text().splitlines()]
    assert [x["type"] for x in lines[:1] + lines[-2:]] == ["start", "oom", "end"]
    snapshots = [x for x in lines if x["type"] == "snapshot"]
    assert [x["phase"] for x in snapshots[:4]] == ["load", "forward", "backward", "optimizer"]
    forward = next(x for x in snapshots if x["phase"] == "forward")
    assert forward["peak"] >= forward["allocated"] > 0 and forward["rss"] > 0 and forward["batch"] == {
        "rows": 4, "length": 32, "label_length": 32, "tokens": int(batches[0]["attention_mask"].sum()),
    }  # fmt: skip
    norms = [x for x in snapshots if "grad_norm" in x]
    assert len(norms) == 3 and all(
        x["grad_norm"] > 0 and x["nonfinite"] == 0 and x["phase"] == "backward" for x in norms
    )
    report = (tmp_path / "memory.jsonl.oom-1.txt").read_text()
    assert "Out of memory in step 7" in report and '"rows": 64' in report and "1. " in report
    result = analyze(path)
    assert result.out_of_memory and result.where in ("forward", "backward")
    verdict = next(v for v in result.verdicts if v.kind == "batch_too_large")
    suggested = int(verdict.evidence["suggested_rows"])
    assert 1 <= suggested <= 32 and f"batch {suggested} with" in verdict.actions[0]
    # The advice is true: that batch fits where the larger one did not.
    with LimitedAllocator(24 * MIB):
        fits = models.causal_batch(suggested, 32)
        model(**{k: fits[k] for k in ("input_ids", "attention_mask", "labels")}).loss.backward()


@pytest.mark.torch
@pytest.mark.trainers
@pytest.mark.server
def test_recorded_leak_is_named_and_its_cure_is_silent(tmp_path: Any) -> None:
    import models
    from limited_allocator import LimitedAllocator

    def run(path: Any, leak: bool) -> None:
        device = LimitedAllocator(GIB)
        model, kept = models.gpt2(), []
        with device, MemoryRecorder(path, model=model, meter=device) as record:
            for batch in record.loading([models.causal_batch(4, 32)] * 14):
                with record.phase("forward"):
                    out = model(**{k: batch[k] for k in ("input_ids", "attention_mask", "labels")})
                with record.phase("backward"):
                    out.loss.backward()
                    model.zero_grad()
                kept.append(out.logits if leak else float(out.loss))
                del out

    run(tmp_path / "leak.jsonl", True)
    run(tmp_path / "calm.jsonl", False)
    leak = next(v for v in analyze(tmp_path / "leak.jsonl").verdicts if v.kind == "leak")
    assert leak.evidence["growth_per_step"] >= 4 * 32 * 211 * 4
    assert "leak" not in kinds(analyze(tmp_path / "calm.jsonl"))


@pytest.mark.torch
@pytest.mark.server
def test_nonfinite_gradients_are_counted(tmp_path: Any) -> None:
    import torch

    model = torch.nn.Linear(3, 2)
    path = tmp_path / "r.jsonl"
    with MemoryRecorder(path, model=model, gradients_every=1) as record:
        for step in range(6):
            record.begin_step({"input_ids": torch.zeros(2, 3)})
            with record.phase("backward"):
                model.weight.grad = torch.ones(2, 3)
                if step == 4:
                    model.weight.grad[0, :2] = float("nan")
    lines = [json.loads(x) for x in path.read_text().splitlines() if "grad_norm" in x]
    assert [x["nonfinite"] for x in lines] == [0, 0, 0, 0, 2, 0] and lines[4]["grad_norm"] is None
    verdict = next(v for v in analyze(path).verdicts if v.kind == "unstable_gradients")
    assert verdict.evidence["nonfinite_steps"] == 1 and verdict.evidence["first_step"] == 5


# kind expected → lines of a run that shows it (simulated: the numbers a device would have given)
SIMULATED: dict[str, tuple[list[dict[str, Any]], dict[str, Any]]] = {
    "batch_too_large": ([*calm(), oom("backward", allocated=14 * GIB, reserved=15 * GIB, free=GIB, batch={"rows": 64,
        "length": 128})], {}),
    "leak": ([snapshot(s, "optimizer", allocated=GIB + s * 50 * MIB) for s in range(1, 20)], {}),
    "host_leak": ([snapshot(s, "load", rss=GIB + s * 20 * MIB) for s in range(1, 30)], {}),
    "unstable_gradients": ([snapshot(s, "backward", grad_norm=90.0 if s == 7 else 1.0, nonfinite=0) for s in range(1,
        12)], {}),
    "fragmentation": ([*calm(), oom("forward", allocated=9 * GIB, reserved=14 * GIB, requested=2 * GIB, free=GIB)], {}),
    "other_processes": ([{**s, "free": 5 * GIB} for s in calm()], {}),
    "logits": (
        [snapshot(s, "backward", peak=14 * GIB, batch={"rows": 16, "length": 512}) for s in range(1, 5)],
        {"vocab_size": 128_000},
    ),
    "long_sequences": (
        [*(snapshot(s, "forward", batch={"rows": 8, "length": 128}) for s in range(1, 12)), oom("forward",
            batch={"rows": 8, "length": 1024})],
        {},
    ),
    "optimizer_state": ([*calm(1), oom("optimizer")], {}),
    "loader": ([*calm(2), oom("load")], {}),
}  # fmt: skip


@pytest.mark.server
@pytest.mark.parametrize("kind", SIMULATED)
def test_each_cause_is_found_and_comes_with_numbers(kind: str, tmp_path: Any) -> None:
    lines, start = SIMULATED[kind]
    result = analyze(write(tmp_path / "r.jsonl", lines, **start))
    verdict = next((v for v in result.verdicts if v.kind == kind), None)
    assert verdict is not None, kinds(result)
    assert verdict.actions and verdict.message in str(result)
    assert any(c.isdigit() for c in verdict.message + verdict.actions[0]) or kind == "loader"
    if any(x["type"] == "oom" for x in lines):
        assert result.out_of_memory and result.where == lines[-1]["phase"]


@pytest.mark.server
def test_a_calm_run_has_no_findings(tmp_path: Any) -> None:
    result = analyze(write(tmp_path / "r.jsonl", calm()))
    assert result.verdicts == () and "nothing out of the ordinary" in str(result) and result.peak == 2 * GIB


@pytest.mark.server
def test_a_record_cut_off_is_read_and_other_files_are_refused(tmp_path: Any) -> None:
    path = write(tmp_path / "r.jsonl", calm(2))
    whole = analyze(path)
    with open(path, "a") as f:
        f.write('{"type": "snap')
    assert analyze(path) == whole
    for text in ("", "not json\nat all\n", '{"a": 1}\n', "[1]\n", json.dumps(snapshot(1, "load")) + "\n"):
        path.write_text(text)
        with pytest.raises(ValueError):
            analyze(path)


@pytest.mark.server
def test_values_of_a_finding_have_their_types(tmp_path: Any) -> None:
    lines, start = SIMULATED["batch_too_large"]
    result = analyze(write(tmp_path / "large.jsonl", lines, **start))
    verdict = next(v for v in result.verdicts if v.kind == "batch_too_large")
    assert isinstance(verdict.actions, tuple) and type(result.peak) is int and type(result.steps) is int
    assert verdict.evidence and all(type(x) is float for x in verdict.evidence.values())
    nothing = analyze(write(tmp_path / "r.jsonl", [{"type": "snapshot", "step": 1, "phase": "load", "rss": GIB}]))
    assert (nothing.peak, nothing.where, nothing.runs) == (None, "load", 1)


def test_without_the_program_analyze_names_it_and_a_report_is_still_written(
    tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("DSLOAD_BINARY", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr("dsload._binary._PACKAGED", str(tmp_path / "none"))
    with pytest.raises(FileNotFoundError):
        analyze(tmp_path / "nowhere.jsonl")
    with pytest.raises(dsload.DsloadError, match=r"needs the dsload program.*install the platform wheel"):
        analyze(write(tmp_path / "r.jsonl", calm()))
    path = tmp_path / "oom.jsonl"
    with pytest.raises(MemoryError), MemoryRecorder(path, device="cpu") as record:
        record.begin_step()
        with record.phase("forward"):
            raise MemoryError
    report = (tmp_path / "oom.jsonl.oom-1.txt").read_text()
    assert "1. halve the batch size" in report and "none: analyzing a memory record needs the dsload program" in report


@pytest.mark.server
def test_settings_that_are_not_finite_are_recorded_as_null(tmp_path: Any) -> None:
    path = tmp_path / "r.jsonl"
    MemoryRecorder(path, device="cpu", settings={"bounds": [1.0, float("inf")], "scale": float("nan")}).close()
    assert json.loads(path.read_text().splitlines()[0])["settings"] == {"bounds": [1.0, None], "scale": None}
    assert analyze(path).steps == 0


class Falling:
    """A device whose free memory is what a list says."""

    device, is_cuda = "fake", True

    def __init__(self, free: list[int]) -> None:
        self.free, self.released = free, 0

    def read(self) -> DeviceMemory:
        return DeviceMemory(100, self.free[0])

    def release(self) -> int:
        self.released += 1
        return 7


def test_guard_cleans_every_n_and_above_the_threshold() -> None:
    meter = Falling([50])
    told: list[int] = []
    guard = MemoryGuard(every=10, threshold=0.9, meter=meter, on_clean=lambda freed, seconds: told.append(freed))
    assert list(guard.watch(range(25))) == list(range(25))
    assert meter.released == 2 and guard.report.freed_bytes == 14 and told == [7, 7] and guard.report.batches == 25
    meter.free[0] = 5
    guard.after_batch()
    assert meter.released == 3
    assert "3 cleanings in 26 batches" in str(guard.report)
    for wrong in (-1, 2.5):
        with pytest.raises(ValueError, match="every must be a whole number"):
            MemoryGuard(every=wrong)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("true_maximum", "start", "limit"),
    [(1, 1, 4096), (2, 1, 4096), (37, 1, 4096), (64, 1, 4096), (100, 8, 4096), (500, 1, 300)],
)
def test_find_max_batch_size(true_maximum: int, start: int, limit: int) -> None:
    sizes: list[int] = []

    def step(n: int) -> None:
        sizes.append(n)
        if n > true_maximum:
            raise MemoryError

    got = find_max_batch_size(step, start=start, limit=limit, meter=Falling([50]))
    want = min(true_maximum, limit)
    assert got.maximum == want and got.safe == max(1, int(want * 0.75)) and got.limited == (limit < true_maximum)
    assert [n for n, _ in got.trials] == sizes and len(sizes) <= 2 * limit.bit_length()


def test_find_max_batch_size_passes_other_errors_on() -> None:
    def broken(n: int) -> None:
        if n == 4:
            raise KeyError("mine")

    with pytest.raises(KeyError):
        find_max_batch_size(broken, meter=Falling([50]))
    with pytest.raises(MemoryError):
        find_max_batch_size(lambda n: (_ for _ in ()).throw(MemoryError()), meter=Falling([50]))
    with pytest.raises(ValueError):
        find_max_batch_size(broken, start=0)


@pytest.mark.torch
def test_find_max_batch_size_on_a_real_limit() -> None:
    import torch
    from limited_allocator import LimitedAllocator

    device = LimitedAllocator(4 * MIB)
    weight = torch.nn.Linear(256, 256)
    with device:
        got = find_max_batch_size(lambda n: weight(torch.zeros(n, 256)).sum().backward(), meter=device)
        weight.zero_grad()
        weight(torch.zeros(got.maximum, 256)).sum().backward()
        with pytest.raises(torch.OutOfMemoryError):
            weight(torch.zeros(got.maximum + 1, 256)).sum().backward()
    assert got.safe == int(got.maximum * 0.75)


def test_which_errors_are_out_of_memory() -> None:
    assert is_out_of_memory(MemoryError())
    assert is_out_of_memory(
        RuntimeError("[enforce fail] DefaultCPUAllocator: can't allocate memory: you tried to allocate 10 bytes")
    )
    assert is_out_of_memory(RuntimeError("CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling cublasCreate"))
    assert not is_out_of_memory(RuntimeError("shapes do not match"))
    assert not is_out_of_memory(ValueError("out of memory"))
    assert not is_out_of_memory(None)


def test_importing_the_kit_needs_neither_torch_nor_pyarrow() -> None:
    code = "import sys, dsload.memory; print([m for m in ('torch', 'pyarrow', 'numpy') if m in sys.modules])"
    out = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "PYTHONPATH": sys.path[0]},
    )
    assert out.stdout.strip() == "[]"


def test_host_meter_reads_something() -> None:
    memory = DeviceMeter("cpu").read()
    assert 0 < memory.free <= memory.total and memory.allocated is None


def test_allocator_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTORCH_CUDA_ALLOC_CONF", "roundup_power2_divisions:8")
    got = configure_allocator(max_split_size_mb=128, garbage_collection_threshold=0.8)
    want = "roundup_power2_divisions:8,expandable_segments:True,max_split_size_mb:128,garbage_collection_threshold:0.8"
    assert got.value == os.environ["PYTORCH_CUDA_ALLOC_CONF"] == want and got.applied and len(got.explanation) == 3
    for bad in (
        {"max_split_size_mb": 20},
        {"garbage_collection_threshold": 1.0},
        {"expandable_segments": "false"},
    ):
        with pytest.raises(ValueError):
            configure_allocator(**bad)  # type: ignore[arg-type]


@pytest.mark.torch
def test_checkpointed_blocks_give_the_same_gradients_for_less() -> None:
    import copy

    import torch
    from limited_allocator import LimitedAllocator

    from dsload.memory import bf16, enable_gradient_checkpointing

    plain = torch.nn.Sequential(
        *(torch.nn.Sequential(torch.nn.Linear(64, 256), torch.nn.GELU(), torch.nn.Linear(256, 64)) for _ in range(6))
    )
    saved = copy.deepcopy(plain)
    assert enable_gradient_checkpointing(saved, saved) == 6
    x = torch.randn(1024, 64, requires_grad=True)
    peaks = []
    for model in (plain, saved):
        with LimitedAllocator(GIB) as device:
            model(x).square().mean().backward()
        peaks.append(device.peak)
    for a, b in zip(plain.parameters(), saved.parameters()):
        torch.testing.assert_close(a.grad, b.grad)
    assert peaks[1] < 0.6 * peaks[0], peaks
    with pytest.raises(ValueError, match="name its blocks"):
        enable_gradient_checkpointing(plain)
    with bf16("cpu", enabled=True):
        assert plain(x).dtype == torch.bfloat16
