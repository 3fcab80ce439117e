"""AdaptiveBatchSizer: the same gradients whatever had to be split, each row once, alone and among ranks."""

from __future__ import annotations

import random
from typing import Any

import effort
import numpy as np
import pytest
import runs

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")

import models  # noqa: E402
from limited_allocator import LimitedAllocator  # noqa: E402

from dsload.memory import (  # noqa: E402
    AdaptiveBatchSizer,
    CannotSplit,
    DeviceMeter,
    estimate,
    find_max_batch_size,
    preset,
    suggest_batch_size,
)

pytestmark = pytest.mark.torch


def test_a_part_of_the_device(monkeypatch: pytest.MonkeyPatch) -> None:
    """What torch.cuda.set_per_process_memory_fraction leaves is all there is."""
    reserved = 0
    calls = {
        "mem_get_info": lambda *_: (70 << 30, 80 << 30), "get_per_process_memory_fraction": lambda *_: 0.25,
        "memory_reserved": lambda *_: reserved, "memory_allocated": lambda *_: 0, "max_memory_allocated": lambda *_: 0,
    }  # fmt: skip
    for name, call in calls.items():
        monkeypatch.setattr(torch.cuda, name, call)
    meter = DeviceMeter("cuda")
    assert (meter.read().total, meter.read().free) == (20 << 30, 20 << 30)
    reserved = 15 << 30
    assert (meter.read().free, meter.read().available) == (5 << 30, 20 << 30)
    reserved = 21 << 30
    assert meter.read().free == 0


class Still(DeviceMeter):
    """A meter that collects no garbage: that is slow with torch loaded, and tests run out of memory hundreds of
    times."""

    def release(self) -> int:
        return 0


def undivided(model: Any, batch: dict[str, Any]) -> dict[str, Any]:
    model.zero_grad()
    inputs = {k: batch[k] for k in ("input_ids", "attention_mask", "labels") if k in batch}
    model(**inputs).loss.backward()
    grads = models.gradients(model)
    model.zero_grad()
    return grads


def same(got: dict[str, Any], want: dict[str, Any]) -> None:
    for name, grad in want.items():
        assert (grad is None) == (got[name] is None), name
        if grad is not None:
            torch.testing.assert_close(got[name], grad, rtol=2e-4, atol=1e-6, msg=lambda m, name=name: f"{name}: {m}")


def loss_of(model: Any, micro: Any) -> Any:
    return model(**micro.inputs()).loss


@pytest.mark.parametrize(
    ("make", "batch"),
    [
        (models.gpt2, models.causal_batch(24, 40)),
        (models.gpt2, models.causal_batch(24, 40, left=True)),
        (models.t5, models.seq2seq_batch(24, 30, 17)),
    ],
)
@pytest.mark.parametrize("micro", [24, 8, 7, 1])
def test_gradients_equal_those_of_the_undivided_batch(make: Any, batch: dict[str, Any], micro: int) -> None:
    model = make()
    want = undivided(model, batch)
    sizer = AdaptiveBatchSizer(model, 24, micro_batch_size=micro)
    updates = 0
    for part in sizer.batches([batch]):
        with sizer.step():
            sizer.backward(loss_of(model, part))
        updates += sizer.update_due
    assert updates == 1
    same(models.gradients(model), want)


@pytest.mark.parametrize(
    ("make", "batch"),
    [
        (models.gpt2, models.causal_batch(16, 48)),
        (models.t5, models.seq2seq_batch(16, 40, 20)),
    ],
)
@pytest.mark.parametrize("limit_mb", [30, 9, 5])
def test_out_of_memory_splits_the_batch_in_hand(make: Any, batch: dict[str, Any], limit_mb: int) -> None:
    """A real allocator limit, hit wherever it is hit; what comes out are the gradients of a device without limit."""
    model = make(vocab=1500)
    want = undivided(model, batch)
    device = LimitedAllocator(limit_mb << 20)
    sizer = AdaptiveBatchSizer(model, 16, micro_batch_size=16, meter=device)
    seen: list[int] = []
    with device:
        for part in sizer.batches([batch]):
            ok = sizer.run(lambda m: sizer.backward(loss_of(model, m)) or True, part)
            if ok:
                seen += part["example"].tolist()
    assert seen == list(range(16))
    assert (device.failures > 0) == (sizer.num_splits > 0)
    if limit_mb <= 9:
        assert device.failures > 0, "the limit was never hit: the test shows nothing"
        assert sizer.micro_batch_size < 16 and sizer.accumulation > 1
    assert device.peak <= device.limit
    same(models.gradients(model), want)


def test_failure_in_the_middle_of_backward_leaves_no_trace() -> None:
    """Some gradients are already accumulated when the error comes: they must not count twice."""
    model, batch = models.gpt2(), models.causal_batch(12, 20)
    want = undivided(model, batch)
    failures = {"left": 2}
    hooked = next(iter(model.parameters()))  # the embedding: the last to get its gradient

    def fail(grad: Any) -> None:
        if failures["left"]:
            failures["left"] -= 1
            raise torch.OutOfMemoryError("limited device out of memory. Tried to allocate 1.00 MiB")

    hooked.register_hook(fail)
    sizer = AdaptiveBatchSizer(model, 12, micro_batch_size=6)
    for part in sizer.batches([batch]):
        with sizer.step():
            sizer.backward(loss_of(model, part))
    assert failures["left"] == 0 and sizer.num_splits == 2
    same(models.gradients(model), want)


def test_random_failures_lose_and_repeat_nothing() -> None:
    rng = random.Random(effort.seed(5))
    model = torch.nn.Linear(3, 1)
    for trial in range(60):
        rows = rng.randint(1, 70)
        sizes, left = [], rows
        while left:
            sizes.append(min(left, rng.randint(1, 20)))
            left -= sizes[-1]
        data, first = [], 0
        for n in sizes:
            data.append({"x": torch.randn(n, 3), "example": torch.arange(first, first + n)})
            first += n
        effective = rng.randint(1, 24)
        sizer = AdaptiveBatchSizer(
            model,
            effective,
            micro_batch_size=rng.randint(1, 24),
            weighting="rows",
            grow_after=rng.choice([0, 1, 2]),
            meter=Still("cpu"),
        )
        seen: list[int] = []
        weights: list[float] = []
        per_update: list[list[int]] = [[]]
        for part in sizer.batches(data):
            with sizer.step():
                if len(part["x"]) > 1 and rng.random() < 0.3:
                    raise torch.OutOfMemoryError("out")
                sizer.backward(model(part["x"]).mean())
            if sizer._state == "done":
                seen += part["example"].tolist()
                per_update[-1] += part["example"].tolist()
                weights.append(part.weight)
            if sizer.update_due:
                assert sum(weights) == pytest.approx(1.0), trial
                weights = []
                per_update.append([])
                model.zero_grad()
        assert seen == list(range(rows)), trial
        groups = [len(g) for g in per_update[:-1]]
        assert per_update[-1] == []
        assert groups == [effective] * (rows // effective) + ([rows % effective] if rows % effective else []), trial


def test_padding_of_the_halves_is_trimmed() -> None:
    model = models.gpt2()
    batch = models.causal_batch(8, 60)
    short = models.causal_batch(4, 10, seed=3)
    for key in ("input_ids", "attention_mask", "labels"):
        batch[key][4:] = -100 if key == "labels" else 0
        batch[key][4:, :10] = short[key]
    sizer = AdaptiveBatchSizer(model, 8, micro_batch_size=4, pad_to_multiple_of=8)
    lengths = []
    for part in sizer.batches([batch]):
        with sizer.step():
            sizer.backward(loss_of(model, part))
        lengths.append(part["input_ids"].shape[1])
    assert lengths == [60, 16]


def test_grows_again_after_a_quiet_stretch_and_waits_longer_after_a_failure() -> None:
    model = torch.nn.Linear(2, 1)
    events: list[dict[str, Any]] = []
    sizer = AdaptiveBatchSizer(
        model, 16, micro_batch_size=16, weighting="rows", grow_after=3, on_event=events.append, meter=Still("cpu")
    )
    sizes: list[int] = []
    for part in sizer.batches([{"x": torch.randn(16, 2)} for _ in range(60)]):
        with sizer.step():
            if len(part["x"]) > 8:
                raise torch.OutOfMemoryError("out")
            sizer.backward(model(part["x"]).mean())
        sizes.append(len(part["x"]))
    splits = [e for e in events if e["event"] == "split"]
    grows = [e for e in events if e["event"] == "grow"]
    assert {e["to"] for e in splits} == {8} and {e["to"] for e in grows} == {16}
    failed_at = [i for i, n in enumerate(sizes) if n == 16]
    gaps = [b - a for a, b in zip(failed_at, failed_at[1:])]
    assert len(gaps) >= 2 and all(b > a for a, b in zip(gaps, gaps[1:])), gaps


def test_a_row_that_does_not_fit_is_named() -> None:
    model = torch.nn.Linear(2, 1)
    sizer = AdaptiveBatchSizer(model, 4, micro_batch_size=4, weighting="rows")
    with pytest.raises(CannotSplit) as caught:
        for _ in sizer.batches([{"x": torch.randn(4, 2)}]):
            with sizer.step():
                raise torch.OutOfMemoryError("out")
    assert isinstance(caught.value.__cause__, torch.OutOfMemoryError)


def test_other_errors_pass_and_gradients_stay() -> None:
    model = torch.nn.Linear(2, 1)
    model.weight.grad = torch.ones_like(model.weight)
    sizer = AdaptiveBatchSizer(model, 4, micro_batch_size=4, weighting="rows")
    with pytest.raises(KeyError):
        for part in sizer.batches([{"x": torch.randn(4, 2)}]):
            with sizer.step():
                sizer.backward(model(part["x"]).mean())
                raise KeyError("mine")
    assert torch.equal(model.weight.grad, torch.ones_like(model.weight))


def test_misuse_is_told() -> None:
    model = torch.nn.Linear(2, 1)
    sizer = AdaptiveBatchSizer(model, 4, micro_batch_size=4, weighting="rows")
    with pytest.raises(RuntimeError, match="inside"), sizer.step():
        pass
    with pytest.raises(RuntimeError, match="inside"):
        list(sizer.batches([{"x": torch.randn(4, 2)}] * 2))
    for rows in (0, "4", None, 4.0, True):
        with pytest.raises(ValueError, match="effective_batch_size must be a whole number of at least 1, got"):
            AdaptiveBatchSizer(model, rows)  # type: ignore[arg-type]
    assert AdaptiveBatchSizer(model, np.int64(4), micro_batch_size=2).accumulation == 2  # type: ignore[arg-type]
    for name, wrong in {
        "grow_after": (-1, 1.5, None),
        "pad_to_multiple_of": (0, 1.5, "8"),
        "shifted_labels": ("no", 0),
    }.items():
        for value in wrong:
            with pytest.raises(ValueError, match=f"{name} must be"):
                AdaptiveBatchSizer(model, 4, micro_batch_size=4, **{name: value})  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"optimizer must be one of .*; did you mean 'adamw'"):
        suggest_batch_size(model, memory_bytes=10**9, optimizer="AdamW")
    with pytest.raises(ValueError, match="limit must be a whole number"):
        find_max_batch_size(lambda rows: None, limit="8")  # type: ignore[arg-type]
    for ask in (preset, lambda memory_bytes: suggest_batch_size(model, memory_bytes=memory_bytes)):
        with pytest.raises(ValueError, match="memory_bytes must be a number of bytes, such as 16e9, got '16GB'"):
            ask("16GB")
        with pytest.raises(ValueError, match="16 is a number of bytes; 16 GB are 16e9"):
            ask(16)
    with pytest.raises(ValueError, match=r"'gpt2' is a name; pass .* AutoConfig.from_pretrained\('gpt2'\)"):
        estimate("gpt2", batch_size=8, sequence_length=512)
    with pytest.raises(ValueError, match="weighting"):
        AdaptiveBatchSizer(model, 4, weighting="words")


def test_first_size_follows_free_memory() -> None:
    model = models.gpt2(vocab=5000, layers=4, width=128)
    sizes = [
        AdaptiveBatchSizer(model, 4096, sequence_length=128, memory_bytes=m << 20).micro_batch_size
        for m in (64, 512, 4096)
    ]
    assert sizes[0] < sizes[1] < sizes[2]
    fewer = AdaptiveBatchSizer(model, 4096, sequence_length=512, memory_bytes=512 << 20).micro_batch_size
    assert fewer < sizes[1]
    plain = AdaptiveBatchSizer(torch.nn.Linear(4, 4), 64, memory_bytes=1 << 30, meter=DeviceMeter("cpu"))
    assert 1 <= plain.micro_batch_size <= 64


def test_state_round_trip() -> None:
    model = torch.nn.Linear(2, 1)
    a = AdaptiveBatchSizer(model, 32, micro_batch_size=32, weighting="rows")
    a._wait = {16: 400}
    a.micro_batch_size = 8
    b = AdaptiveBatchSizer(model, 32, micro_batch_size=32, weighting="rows")
    b.load_state_dict(a.state_dict())
    assert b.micro_batch_size == 8 and b.accumulation == 4 and b.state_dict() == a.state_dict()


def _rank(rank: int, world: int, rows: list[int], wrap: bool) -> Any:
    import torch.distributed as dist

    dist.init_process_group("gloo")
    model = models.gpt2()
    wrapped = torch.nn.parallel.DistributedDataParallel(model) if wrap else model
    first = sum(rows[:rank])
    full = models.causal_batch(sum(rows), 24)
    mine = {k: v[first : first + rows[rank]] for k, v in full.items()}
    sizer = AdaptiveBatchSizer(wrapped, 4 * world, micro_batch_size=4)
    failing = {"left": 2 if rank == 1 else 0}
    grads, fillers = [], 0
    for part in sizer.batches([mine]):
        with sizer.step():
            if failing["left"] and part.rows > 1:
                failing["left"] -= 1
                raise torch.OutOfMemoryError("this rank alone")
            sizer.backward(loss_of(wrapped, part))
        fillers += part.filler
        if sizer.update_due:
            grads.append({n: g.numpy() for n, g in models.gradients(model).items() if g is not None})
            model.zero_grad()
    dist.barrier()
    dist.destroy_process_group()
    return grads, sizer.num_splits, fillers


@pytest.mark.parametrize(("rows", "wrap"), [([8, 8], True), ([8, 3], False)])
def test_one_rank_fails_alone_and_the_others_do_not_notice(rows: list[int], wrap: bool) -> None:
    results = runs.on_gloo(2, _rank, rows, wrap)
    assert results[1][1] >= 1 and results[0][1] == 0, "splits"
    full = models.causal_batch(sum(rows), 24)
    model = models.gpt2()
    for update in range(2):
        parts = []
        for rank in range(2):
            first = sum(rows[:rank])
            parts += list(range(first + 4 * update, first + min(4 * update + 4, rows[rank])))
        want = undivided(model, {k: v[parts] for k, v in full.items()})
        for rank in range(2):
            same({n: torch.from_numpy(g) for n, g in results[rank][0][update].items()}, want)
    assert results[1][2] == (1 if rows[1] == 3 else 0)
