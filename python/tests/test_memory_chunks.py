"""generate_in_chunks and evaluate_in_batches: any chunk, any interruption, any shortage gives the undivided run's
results."""

from __future__ import annotations

import dataclasses
import json
from typing import Any

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")

import models  # noqa: E402
from limited_allocator import LimitedAllocator  # noqa: E402

from dsload.memory import evaluate_in_batches, generate_in_chunks  # noqa: E402

pytestmark = [pytest.mark.torch, pytest.mark.trainers]


def prompts(left: bool = True) -> dict[str, Any]:
    batch = models.causal_batch(3, 12, left=left)
    return {k: batch[k] for k in ("input_ids", "attention_mask")}


def generate(model: Any, **more: Any) -> Any:
    options = {"max_new_tokens": 8, "seed": 5, "pad_token_id": 0, **more}
    return generate_in_chunks(model, options.pop("inputs", prompts()), options.pop("n", 5), **options)


@pytest.mark.parametrize("make", [models.gpt2, models.t5])
def test_any_chunk_gives_the_undivided_run(make: Any) -> None:
    model = make()
    whole = generate(model, chunk=100)
    assert [len(p) for p in whole.sequences] == [5, 5, 5]
    assert len({tuple(s) for p in whole.sequences for s in p}) > 10, "sampling gives different sequences"
    for chunk in (1, 2, 3, 7):
        assert generate(model, chunk=chunk).sequences == whole.sequences
    assert generate(model, chunk=100, seed=6).sequences != whole.sequences
    assert generate(model, chunk=2, n=7).sequences[0][:5] == whole.sequences[0], (
        "more sequences begin with the same ones"
    )


@pytest.mark.parametrize("make", [models.gpt2, models.t5, models.bart, models.llama])
def test_the_side_of_the_padding_changes_nothing(make: Any) -> None:
    model = make()
    left, right = prompts(), moved(prompts())
    assert right["attention_mask"][:, 0].all() and not right["attention_mask"].all()
    for sampling in ({}, {"do_sample": False, "n": 1}):
        whole = generate(model, inputs=left, chunk=100, **sampling)
        for chunk in (1, 2, 100):
            assert generate(model, inputs=right, chunk=chunk, **sampling).sequences == whole.sequences
        # A prompt alone, without any padding, is continued in the same way.
        for row in range(3):
            alone = {k: v[row : row + 1, right["attention_mask"][row] != 0] for k, v in right.items()}
            if sampling:
                assert generate(model, inputs=alone, **sampling).sequences[0] == whole.sequences[row]


def moved(batch: dict[str, Any]) -> dict[str, Any]:
    """Prompts padded on the left, padded on the right."""
    pads = (batch["attention_mask"] == 0).sum(-1).tolist()
    return {k: torch.stack([row.roll(-n) for row, n in zip(v, pads)]) for k, v in batch.items()}


def test_prompts_that_cannot_be_continued_are_refused() -> None:
    model = models.gpt2()
    holes = prompts()
    holes["attention_mask"][1] = torch.tensor([0, 1, 1, 0, 1, 1, 1, 1, 1, 1, 1, 1])
    with pytest.raises(ValueError, match="prompt 1 lies between its tokens"):
        generate(model, inputs=holes)
    empty = prompts()
    empty["attention_mask"][2] = 0
    with pytest.raises(ValueError, match="prompt 2 has no tokens"):
        generate(model, inputs=empty)
    unmasked = {"input_ids": moved(prompts())["input_ids"]}
    with pytest.raises(ValueError, match="pass attention_mask"):
        generate(model, inputs=unmasked, eos_token_id=7, bos_token_id=7)
    assert generate(model, inputs={"input_ids": torch.ones((1, 4), dtype=torch.long)}, n=1).sequences


def test_sampling_draws_from_the_softmax() -> None:
    """20,000 draws of one token against the probabilities: top-k and temperature included."""
    from dsload.memory.chunks import _RowSampler

    scores = torch.tensor([[2.0, 1.0, 0.0, -1.0, 3.0]])
    want = torch.softmax(scores[0, [0, 1, 4]] / 0.7, 0)
    sampler = _RowSampler(list(range(20_000)), 0.7, 3, 1.0)
    picked = sampler(None, scores.expand(20_000, 5)).argmax(-1)
    got = torch.bincount(picked, minlength=5)[[0, 1, 4]] / 20_000
    assert torch.bincount(picked, minlength=5)[[2, 3]].sum() == 0
    torch.testing.assert_close(got, want, atol=0.015, rtol=0)
    nucleus = _RowSampler(list(range(2000)), 1.0, 0, 0.6)
    assert set(nucleus(None, scores.expand(2000, 5)).argmax(-1).tolist()) == {4}


def test_smaller_chunk_after_out_of_memory() -> None:
    model = models.gpt2(vocab=3000)
    whole = generate(model, chunk=15)
    with LimitedAllocator(1 << 40) as free:
        generate(model, chunk=4)
    device = LimitedAllocator(free.peak)
    with device:
        got = generate(model, chunk=15, meter=device)
    assert device.failures > 0 and got.chunk < 15
    assert got.sequences == whole.sequences


def test_progress_is_saved_and_resumed(tmp_path: Any) -> None:
    model, path = models.gpt2(), tmp_path / "partial.jsonl"
    whole = generate(model, chunk=3)
    calls = {"left": 3}
    real = model.generate

    def dies(**options: Any) -> Any:
        if calls["left"] == 0:
            raise KeyboardInterrupt
        calls["left"] -= 1
        return real(**options)

    model.generate = dies
    with pytest.raises(KeyboardInterrupt):
        generate(model, chunk=2, save_to=path, save_every=4)
    with open(path, "ab") as f:
        f.write(b'{"i": 6, "r": [1, 2')  # a kill in the middle of a write
    done = len(path.read_text().splitlines()) - 2
    assert done == 6
    made: list[int] = []

    def counts(**options: Any) -> Any:
        made.append(len(options["input_ids"]))
        return real(**options)

    model.generate = counts
    assert generate(model, chunk=4, save_to=path).sequences == whole.sequences
    assert sum(made) == 15 - 6
    assert generate(model, chunk=4, save_to=path).sequences == whole.sequences and sum(made) == 9
    with pytest.raises(ValueError, match="other inputs"):
        generate(model, seed=99, save_to=path)
    assert json.loads(path.read_text().splitlines()[-1])["i"] == 14


def test_results_of_other_weights_are_not_taken_for_a_models_own(tmp_path: Any) -> None:
    """As in a loop that evaluates after every epoch, with a file that an earlier one left."""
    model, data = models.gpt2(), models.causal_batch(6, 12)
    generated, evaluated = tmp_path / "generated.jsonl", tmp_path / "evaluated.jsonl"
    generate(model, save_to=generated)
    before = evaluate_in_batches(model, data, 4, save_to=evaluated)
    assert evaluate_in_batches(model, data, 2, save_to=evaluated) == dataclasses.replace(before, batch_size=2)
    other = models.gpt2()
    other.load_state_dict(model.state_dict())
    assert generate(other, save_to=generated).sequences == generate(model).sequences
    with torch.no_grad():
        for weights in model.parameters():
            weights *= 1.001
    for run in (
        lambda: generate(model, save_to=generated),
        lambda: evaluate_in_batches(model, data, save_to=evaluated),
    ):
        with pytest.raises(ValueError, match="a model with other weights: remove it, or name another file"):
            run()


def test_results_of_another_function_are_not_taken_for_its_own(tmp_path: Any) -> None:
    model, data, path = models.gpt2(), models.causal_batch(6, 12), tmp_path / "evaluated.jsonl"
    first = [lambda model, batch: [1] * len(batch["input_ids"]) for _ in range(2)]
    assert evaluate_in_batches(model, data, function=first[0], save_to=path).rows == [1] * 6
    assert evaluate_in_batches(model, data, function=first[1], save_to=path).rows == [1] * 6
    with pytest.raises(ValueError, match="other inputs or settings"):
        evaluate_in_batches(model, data, function=lambda model, batch: [2] * len(batch["input_ids"]), save_to=path)


def test_sampling_is_the_models_own_unless_it_is_given() -> None:
    """As generate of transformers draws."""
    model = models.gpt2()
    named = generate(model, temperature=0.01, top_k=3, top_p=0.5).sequences
    assert named != generate(model).sequences == generate(model, temperature=1, top_k=50, top_p=1.0).sequences
    model.generation_config.temperature = 0.01
    model.generation_config.top_k, model.generation_config.top_p = 3, 0.5
    assert generate(model).sequences == named


class Tokenizer:
    def __call__(self, texts: list[str], **_: Any) -> dict[str, Any]:
        width = max(map(len, texts))
        ids = torch.tensor([[0] * (width - len(t)) + [ord(c) for c in t] for t in texts])
        return {"input_ids": ids, "attention_mask": (ids != 0).long()}

    def decode(self, ids: list[int], skip_special_tokens: bool = False) -> str:
        return " ".join(map(str, ids))


def test_prompts_are_formatted_once() -> None:
    formatted: list[str] = []

    def template(text: str) -> str:
        formatted.append(text)
        return f"<{text}>"

    model = models.gpt2()
    got = generate_in_chunks(
        model, ["salt", "flour"], 4, 1, tokenizer=Tokenizer(), prompt_format=template, max_new_tokens=3, pad_token_id=0
    )
    assert formatted == ["salt", "flour"]
    assert got.texts is not None and [len(t) for t in got.texts] == [4, 4]
    with pytest.raises(ValueError, match="tokenizer"):
        generate_in_chunks(model, ["salt"])


@pytest.mark.parametrize(
    "bad",
    [
        {"n": 0},
        {"chunk": 0},
        {"num_beams": 4},
        {"do_sample": False},
        {"do_sample": False, "n": 1, "temperature": 0.5},
        {"temperature": 0},
        {"temperature": "1"},
        {"top_k": -1},
        {"top_k": 1.5},
        {"top_p": 0},
        {"top_p": 1.5},
        {"max_new_tokens": 0},
        {"min_p": 0.1},
        {"max_length": 20},
        {"generation_config": object()},
        {"inputs": "salt", "tokenizer": object()},
        {"prompt_format": str},
        {"inputs": {**prompts(), "decoder_input_ids": prompts()["input_ids"]}},
        {"inputs": {**prompts(), "segments": prompts()["attention_mask"]}},
    ],
    ids=lambda bad: ",".join(bad),
)
def test_what_cannot_be_divided_is_refused(bad: dict[str, Any]) -> None:
    with pytest.raises(ValueError):
        generate(models.gpt2(), **bad)
    assert len(generate(models.gpt2(), n=1, do_sample=False).sequences) == 3


@pytest.mark.parametrize(
    ("make", "data"), [(models.gpt2, models.causal_batch(50, 40)), (models.t5, models.seq2seq_batch(50, 40, 18))]
)
def test_evaluation_equals_the_undivided_one(make: Any, data: dict[str, Any], tmp_path: Any) -> None:
    model = make(vocab=1500)
    with torch.no_grad():
        undivided = model.eval()(**{k: data[k] for k in ("input_ids", "attention_mask", "labels")}).loss
    model.train()
    for size in (256, 7, 1):
        got = evaluate_in_batches(model, data, size)
        assert got.loss == pytest.approx(float(undivided), rel=1e-5) and len(got.rows) == 50
    assert model.training, "the model's mode is put back"
    device = LimitedAllocator(4 << 20)
    with device:
        limited = evaluate_in_batches(model, data, 50, meter=device, save_to=tmp_path / "e.jsonl")
    assert device.failures > 0 and limited.batch_size < 50
    assert limited.loss == pytest.approx(float(undivided), rel=1e-5)
    assert evaluate_in_batches(model, data, 3, save_to=tmp_path / "e.jsonl").rows == limited.rows


def test_own_evaluation_function() -> None:
    model, data = models.gpt2(), models.causal_batch(20, 30)
    got = evaluate_in_batches(model, data, 6, function=lambda m, b: b["example"])
    assert got.rows == list(range(20))
    with pytest.raises(ValueError, match="results for"):
        evaluate_in_batches(model, data, 6, function=lambda m, b: [1])


def test_an_evaluation_of_what_has_no_labels() -> None:
    ids = torch.ones(2, 3, dtype=torch.int64)
    with pytest.raises(TypeError, match="data: a list is not a dict of tensors"):
        evaluate_in_batches(torch.nn.Linear(1, 1), [ids])  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"data: it has no labels, .* but input_ids, attention_mask"):
        evaluate_in_batches(torch.nn.Linear(1, 1), {"input_ids": ids, "attention_mask": ids})
