"""What Trainer and Accelerate count of a loader's batches: the rows of an evaluation, the batches of a step, the tokens
that carry loss."""

from __future__ import annotations

import math
import random
import subprocess
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")

import models  # noqa: E402
import runs  # noqa: E402
from transformers import Trainer, TrainerCallback, TrainingArguments  # noqa: E402

import dsload  # noqa: E402
from dsload import Loader  # noqa: E402
from dsload._binary import find_binary  # noqa: E402
from dsload.integrations import TrainerMixin  # noqa: E402

pytestmark = [pytest.mark.torch, pytest.mark.trainers, pytest.mark.server, pytest.mark.usefixtures("no_servers_left")]

WORDS = ["the", "of", "in", "river", "stone", "never", "green", "seven", "under", "paper"]


class Counting(TrainerMixin, Trainer):  # type: ignore[misc]
    """A Trainer with a loader."""


def build(folder: Path, lines: list[str], **options: Any) -> str:
    (folder / "lines.txt").write_text("\n".join(lines))
    train = [str(find_binary()), "tokenizer", "train", "lines.txt", "--vocab-size", "300", "--format", "text"]
    subprocess.run([*train, "--out", "tokenizer.json"], cwd=folder, check=True, capture_output=True)
    options = {"tokenizer": folder / "tokenizer.json", "eos": True, "max_examples": 0, "progress": False, **options}
    dsload.build(folder / "lines.txt", out=folder / "data", format="text", **options)
    return str(folder / "data")


@pytest.fixture(scope="module")
def rows37(tmp_path_factory: pytest.TempPathFactory) -> str:
    """37 rows of many lengths."""
    rng = random.Random(1)
    lines = [" ".join(rng.choices(WORDS, k=rng.randint(3, 40))) for _ in range(37)]
    return build(tmp_path_factory.mktemp("rows"), lines)


def arguments(out: Any, **options: Any) -> TrainingArguments:
    return TrainingArguments(**{
        "output_dir": str(out), "report_to": [], "use_cpu": True, "disable_tqdm": True, "save_strategy": "no",
        "logging_steps": 1, "learning_rate": 0.0, "lr_scheduler_type": "constant", "dataloader_pin_memory": False,
        "per_device_train_batch_size": 4, "per_device_eval_batch_size": 4, **options,
    })  # fmt: skip


def model(kind: str = "llama") -> Any:
    """A model whose losses differ from row to row."""
    made = getattr(models, kind)(vocab=300)
    with torch.no_grad():
        for parameter in made.parameters():
            parameter.mul_(4)
    return made.eval()


def padded(rows: Any) -> dict[str, Any]:
    """Transformers' own batch of such rows."""
    fields = {"input_ids": 0, "labels": -100, "attention_mask": 0}
    length = max(len(r["input_ids"]) for r in rows)
    full = {"attention_mask": lambda r: [1] * len(r["input_ids"])}
    values = {f: [list(full.get(f, lambda r: r["input_ids"])(r)) for r in rows] for f in fields}
    return {f: torch.tensor([v + [fields[f]] * (length - len(v)) for v in values[f]]) for f in fields}


def rows_of(data: str) -> list[Any]:
    rows = dsload.RandomAccess(data)
    return [{"input_ids": rows[i]["input_ids"].tolist()} for i in range(len(rows))]


def by_rows(made: Any, batches: Any) -> float:
    """The mean over the rows of some batches, each of which has the loss of its batch."""
    total = rows = 0.0
    with torch.no_grad():
        for batch in batches:
            own = batch["example"] >= 0
            inputs = {c: batch[c] for c in ("input_ids", "attention_mask", "labels")}
            if (batch["labels"][:, 1:] != -100).any():
                total += float(made(**inputs).loss) * int(own.sum())
                rows += int(own.sum())
    return total / rows


@pytest.mark.parametrize("kind", ["llama", "gpt2", "t5"])
@pytest.mark.parametrize("rows", [3, 4, 8])
def test_the_loss_of_an_evaluation_is_that_of_transformers_loader(
    rows37: str, tmp_path: Path, kind: str, rows: int
) -> None:
    made, options = model(kind), arguments(tmp_path, per_device_eval_batch_size=rows)
    want = Trainer(made, options, data_collator=padded, eval_dataset=rows_of(rows37)).evaluate()["eval_loss"]
    with Loader(rows37, shuffle="none", batch_size=rows) as loader:
        got = Counting(made, options, eval_dataset=loader).evaluate()
    assert got["eval_loss"] == pytest.approx(want, rel=1e-5)


@pytest.mark.parametrize("shape", [{"max_tokens": 150}, {"batch_size": 4, "bucket": 37}])
def test_batches_of_different_rows_weigh_by_their_rows(rows37: str, tmp_path: Path, shape: dict[str, Any]) -> None:
    made = model()
    with Loader(rows37, shuffle="none", **shape) as loader:
        want = by_rows(made, list(loader))
        got = Counting(made, arguments(tmp_path), eval_dataset=loader).evaluate()["eval_loss"]
    assert got == pytest.approx(want, rel=1e-5)


def _evaluated(rank: int, world: int, data: str, out: str, kind: str, shape: dict[str, Any]) -> tuple[float, Any]:
    made = model(kind)
    with Loader(data, shuffle="none", **shape) as loader:
        own = [{c: b[c].tolist() for c in ("input_ids", "attention_mask", "labels", "example")} for b in loader]
        got = Counting(made, arguments(out), eval_dataset=loader).evaluate()["eval_loss"]
    return got, own


@pytest.mark.parametrize(
    ("kind", "shape"),
    [("llama", {"batch_size": 4}), ("t5", {"batch_size": 4}), ("llama", {"batch_size": 4, "balance": "tokens"})],
)
def test_several_ranks_give_the_mean_over_the_rows(
    rows37: str, tmp_path: Path, kind: str, shape: dict[str, Any]
) -> None:
    """transformers takes the mean over the tokens of a step, of all ranks, for models that divide by their number; and
    the mean of each batch for others."""
    results = runs.on_gloo(2, _evaluated, rows37, str(tmp_path), kind, shape)
    made, total, rows = model(kind), 0.0, 0
    for step in zip(*([{c: torch.tensor(v) for c, v in b.items()} for b in own] for _, own in results)):
        real = sum(int((b["example"] >= 0).sum()) for b in step)
        if kind == "t5":
            total += sum(by_rows(made, [b]) * int((b["example"] >= 0).sum()) for b in step if (b["example"] >= 0).any())
        else:
            targets = [int((b["labels"][:, 1:] != -100).sum()) for b in step]
            sums = [by_rows(made, [b]) * n for b, n in zip(step, targets) if n]
            total += sum(sums) / sum(targets) * real
        rows += real
    assert rows == 37
    assert [got for got, _ in results] == pytest.approx([total / rows] * 2, rel=1e-5)


def test_trainers_own_evaluation_is_refused_where_it_would_count_wrongly(rows37: str, tmp_path: Path) -> None:
    options = arguments(tmp_path, per_device_eval_batch_size=1, remove_unused_columns=False)

    def evaluate(**shape: Any) -> float:
        with Loader(rows37, shuffle="none", **shape) as loader:
            return float(
                Trainer(model(), options, data_collator=dsload.first, eval_dataset=loader).evaluate()["eval_loss"]
            )

    for shape in ({"batch_size": 8}, {"max_tokens": 150}):
        with pytest.raises(dsload.WrongWrapping, match=r"TrainerMixin.*divides the 37 rows"):
            evaluate(**shape)
    with pytest.raises(ValueError, match="endless"):
        evaluate(batch_size=37, epochs=0)
    with Loader(rows37, shuffle="none", batch_size=37) as loader:
        want = by_rows(model(), loader)
    assert evaluate(batch_size=37) == evaluate(batch_size=64) == pytest.approx(want, rel=1e-5)


def test_predictions(rows37: str, tmp_path: Path) -> None:
    made, options = model(), arguments(tmp_path)
    want = Trainer(made, options, data_collator=padded).predict(rows_of(rows37))
    with Loader(rows37, shuffle="none", batch_size=4) as loader:
        trainer = Counting(made, options)
        got = trainer.predict(loader)
        assert sum(len(b["input_ids"]) for b in trainer.get_test_dataloader(loader)) == 37
    assert got.metrics["test_loss"] == pytest.approx(want.metrics["test_loss"], rel=1e-5)
    assert (got.label_ids == want.label_ids).all()
    real = want.label_ids != -100
    assert got.predictions[real] == pytest.approx(want.predictions[real], abs=1e-4)


def test_an_endless_loader_is_not_evaluated(rows37: str, tmp_path: Path) -> None:
    with Loader(rows37, batch_size=4, epochs=0) as loader:
        trainer = Counting(model(), arguments(tmp_path), eval_dataset=loader)
        with pytest.raises(ValueError, match="endless"):
            trainer.evaluate()
        with pytest.raises(ValueError, match="endless"):
            trainer.predict(loader)


@pytest.mark.parametrize("kind", ["t5", "bart"])
def test_label_smoothing_of_an_encoder_decoder(rows37: str, tmp_path: Path, kind: str) -> None:
    made = model(kind)
    options = arguments(tmp_path, label_smoothing_factor=0.1, max_steps=3, train_sampling_strategy="sequential")

    def with_decoder(rows: Any) -> Any:
        batch = padded(rows)
        return {**batch, "decoder_input_ids": made.prepare_decoder_input_ids_from_labels(labels=batch["labels"])}

    def losses(trainer: Any) -> list[float]:
        trainer.train()
        return [h["loss"] for h in trainer.state.log_history if "loss" in h]

    want = losses(Trainer(made, options, train_dataset=rows_of(rows37), data_collator=with_decoder))
    with Loader(rows37, shuffle="none", batch_size=4) as loader:
        assert losses(Counting(made, options, train_dataset=loader)) == pytest.approx(want, rel=1e-4)


def test_trainers_of_trl_are_refused_by_name(rows37: str, tmp_path: Path) -> None:
    class SFTTrainer(Trainer):  # type: ignore[misc]
        __module__ = "trl.trainer.sft_trainer"

    class Both(TrainerMixin, SFTTrainer):  # type: ignore[misc]
        pass

    refused = pytest.raises(dsload.DsloadError, match=r"SFTTrainer takes a datasets.Dataset.*--to trl.*TrainerMixin")
    with Loader(rows37, batch_size=4) as loader, refused:
        Both(model(), arguments(tmp_path), train_dataset=loader)
    Both(model(), arguments(tmp_path), train_dataset=rows_of(rows37))


class Steps(TrainerCallback):  # type: ignore[misc]
    """Notes the batches of each optimizer step, and the gradient that it takes. May stop after a step."""

    def __init__(self, made: Any, stop: int = 0) -> None:
        self.made, self.stop, self.batches, self.steps = made, stop, [], []
        made.register_forward_pre_hook(self.forward, with_kwargs=True)

    def forward(self, _: Any, args: Any, kwargs: Any) -> None:
        if self.made.training:
            self.batches.append({k: v for k, v in kwargs.items() if k not in ("num_items_in_batch", "return_dict")})

    def on_pre_optimizer_step(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        self.steps.append((self.batches, models.gradients(self.made)))
        self.batches = []

    def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        if state.global_step == self.stop:
            control.should_save = control.should_training_stop = True


PACKED: dict[str, Any] = {"pack": "bfd", "max_length": 96, "batch_size": 2, "seed": 3}


def train(
    data: str, out: Path, accumulation: int, steps: int, stop: int = 0, resume: bool = False, **shape: Any
) -> Any:
    made = model()
    noted = Steps(made, stop)
    options = arguments(out, max_steps=steps, gradient_accumulation_steps=accumulation, max_grad_norm=0)
    with Loader(data, **shape) as loader:
        trainer = Counting(made, options, train_dataset=loader, callbacks=[noted])
        trainer.train(resume_from_checkpoint=resume or None)
    losses = [h["loss"] for h in trainer.state.log_history if "loss" in h]
    return made, noted.steps, losses


def trained_on(steps: Any) -> list[list[list[int]]]:
    """The ids of the batches with loss, a list a step."""
    return [[b["input_ids"].flatten().tolist() for b in batches if (b["labels"] != -100).any()] for batches, _ in steps]


@pytest.mark.parametrize("accumulation", [2, 3, 4])
@pytest.mark.parametrize("shape", [PACKED, {"max_tokens": 150, "seed": 3}])
def test_a_step_ends_with_its_epoch(rows37: str, tmp_path: Path, accumulation: int, shape: dict[str, Any]) -> None:
    with Loader(rows37, **shape) as loader:
        epochs = [[b["input_ids"].flatten().tolist() for b in loader] for _ in range(3)]
    want = [epoch[i : i + accumulation] for epoch in epochs for i in range(0, len(epoch), accumulation)]
    made, steps, losses = train(rows37, tmp_path, accumulation, len(want), **shape)
    assert trained_on(steps) == want
    assert any(len(epoch) % accumulation for epoch in epochs[:2]), "no epoch ends within a step"
    for (batches, gradient), logged in zip(steps, losses):
        made.zero_grad()
        made.eval()
        count = sum(int((b["labels"][:, 1:] != -100).sum()) for b in batches)
        total = sum(made(**b, num_items_in_batch=count).loss for b in batches)
        total.backward()
        assert logged == pytest.approx(float(total.detach()), rel=1e-3)
        for name, parameter in made.named_parameters():
            assert torch.allclose(gradient[name], parameter.grad, rtol=1e-3, atol=1e-6), name


def test_a_run_resumed_at_an_epochs_end(rows37: str, tmp_path: Path) -> None:
    _, whole, losses = train(rows37, tmp_path / "whole", 2, 9, **PACKED)
    for stop in (3, 4, 5):
        _, first, _ = train(rows37, tmp_path / str(stop), 2, 9, stop=stop, **PACKED)
        _, rest, again = train(rows37, tmp_path / str(stop), 2, 9, resume=True, **PACKED)
        assert trained_on(first + rest) == trained_on(whole)
        assert again[-(9 - stop) :] == pytest.approx(losses[stop:], rel=1e-3)


def _accumulated(rank: int, world: int, data: str, kind: str) -> tuple[int, list[float]]:
    from accelerate import Accelerator

    accelerator = Accelerator(cpu=True, gradient_accumulation_steps=4)
    made = model()
    optimizer = torch.optim.SGD(made.parameters(), lr=1e-2)
    with Loader(data, batch_size=4, shuffle="none") as loader, Loader(data, batch_size=8, shuffle="none") as other:
        batches: Any = loader if kind == "loader" else torch.utils.data.DataLoader(loader, batch_size=None)
        made, optimizer, batches = accelerator.prepare(made, optimizer, batches)
        steps = 0
        for _ in range(2):
            for i, batch in enumerate(batches):
                with accelerator.accumulate(made):
                    inputs = {c: batch[c] for c in ("input_ids", "attention_mask", "labels")}
                    accelerator.backward(made(**inputs).loss)
                    steps += accelerator.sync_gradients
                    optimizer.step()
                    optimizer.zero_grad()
                if i == 2:
                    next(iter(other))  # an evaluation in the middle
        assert not accelerator.gradient_state.in_dataloader
    return steps, [float(p.detach().double().abs().sum()) for p in made.parameters()]


def test_accelerate_sees_the_end_of_an_epoch(rows37: str) -> None:
    (own,) = runs.on_gloo(1, _accumulated, rows37, "loader")
    (wrapped,) = runs.on_gloo(1, _accumulated, rows37, "DataLoader")
    assert own[0] == wrapped[0] == 6  # ten batches an epoch
    assert own[1] == pytest.approx(wrapped[1])
    two = runs.on_gloo(2, _accumulated, rows37, "loader")
    assert [steps for steps, _ in two] == [4, 4]  # five batches an epoch on each rank
    assert two[0][1] == pytest.approx(two[1][1])


def test_the_loss_of_a_batch_without_a_trained_token_is_0(rows37: str) -> None:
    made = model()
    with Loader(rows37, batch_size=1, shuffle="none", rank=1, world=2) as loader:
        batches = list(loader)
    for kind in "llama", "gpt2", "t5", "bart":
        made = model(kind).train()
        for batch in batches[-2:]:
            made.zero_grad()
            loss = made(**{c: batch[c] for c in ("input_ids", "attention_mask", "labels")}).loss
            loss.backward()
            filler = int(batch["example"][0]) < 0
            assert (float(loss) == 0) == filler and loss.isfinite()
            assert all(p.grad is None or not filler or not p.grad.any() for p in made.parameters())
    labels = batches[-1]["labels"]
    scores = torch.zeros(labels.numel(), 7, requires_grad=True)
    assert torch.nn.CrossEntropyLoss()(scores, labels.flatten()) == 0
    assert torch.nn.functional.nll_loss(scores, labels.flatten()) == 0
    assert torch.nn.functional.cross_entropy(scores, labels.flatten(), reduction="none").shape == labels.flatten().shape
    labels[0, 1] = 3
    assert float(torch.nn.CrossEntropyLoss()(scores, labels.flatten()).detach()) == pytest.approx(math.log(7))


def test_rows_without_a_trained_token_change_no_step_and_no_evaluation(rows37: str, tmp_path: Path) -> None:
    class Without(Loader):
        """A loader of which every third batch has no trained token."""

        def __iter__(self) -> Any:
            for i, batch in enumerate(super().__iter__()):
                yield {**batch, "labels": batch["labels"].fill_(-100)} if i % 3 == 2 else batch

    made = model()
    with Without(rows37, shuffle="none", batch_size=1) as loader:
        want = by_rows(made, list(loader))
        for collate in (1, 2):
            options = arguments(tmp_path, max_steps=6, gradient_accumulation_steps=collate)
            trainer = Counting(made, options, train_dataset=loader, eval_dataset=loader)
            trainer.train()
            losses = [h["loss"] for h in trainer.state.log_history if "loss" in h]
            assert all(loss == loss for loss in losses) and all(p.isfinite().all() for p in made.parameters())
            assert (0.0 in losses) == (collate == 1)
        assert trainer.evaluate()["eval_loss"] == pytest.approx(want, rel=1e-5)
