"""TrainerMixin: Hugging Face's Trainer fed by a Loader, stopped anywhere and resumed, by one process and by several."""

from __future__ import annotations

import json
import shutil
import warnings
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")

import runs  # noqa: E402
import transformers  # noqa: E402
from transformers import Trainer, TrainerCallback, TrainingArguments  # noqa: E402

import dsload  # noqa: E402
from dsload import Loader  # noqa: E402
from dsload.integrations import TrainerMixin  # noqa: E402

pytestmark = [pytest.mark.torch, pytest.mark.trainers, pytest.mark.server, pytest.mark.usefixtures("no_servers_left")]


class Noting(TrainerMixin, Trainer):  # type: ignore[misc]
    """Notes the rows that are trained on, before the columns that the model does not take are left out."""

    notes: Any = None

    def training_step(self, model: Any, inputs: Any, *rest: Any) -> Any:
        if self.notes is not None:
            self.notes.add(inputs)
        return super().training_step(model, inputs, *rest)


class Small(torch.nn.Module):  # type: ignore[misc]
    """A model whose forward takes two columns and no others; its loss depends on the rows and on all steps before."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = torch.nn.Parameter(torch.linspace(-1, 1, 101))

    def forward(self, input_ids: Any, labels: Any) -> Any:
        kept = (labels >= 0).float()
        return {"loss": ((self.weight[input_ids % 101] - (labels % 7) / 7) ** 2 * kept).sum() / kept.sum()}


class Stop(TrainerCallback):  # type: ignore[misc]
    """Saves after a step; ends there, or is killed at the beginning of the step after the next."""

    def __init__(self, step: int, kill: bool = False) -> None:
        self.step, self.kill = step, kill

    def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        if state.global_step == self.step:
            control.should_save = True
            control.should_training_stop = not self.kill
        if self.kill and state.global_step == self.step + 2:
            runs.die()


def train(
    loader: Loader,
    out: Path,
    notes: Any = None,
    stop: Any = None,
    resume: Any = None,
    evaluated: bool = False,
    **options: Any,
) -> tuple[Trainer, list[float]]:
    model = Small()
    arguments = TrainingArguments(**{
        "output_dir": str(out), "num_train_epochs": 2, "per_device_train_batch_size": 8, "save_strategy": "no",
        "logging_steps": 1,
        "learning_rate": 1e-3, "report_to": [], "disable_tqdm": True, "use_cpu": True,
        "dataloader_pin_memory": False, "seed": 1, **options,
    })  # fmt: skip
    trainer = Noting(
        model,
        arguments,
        train_dataset=loader,
        eval_dataset=loader if evaluated else None,
        callbacks=[stop] if stop is not None else [],
    )
    trainer.notes = notes
    trainer.train(resume_from_checkpoint=resume)
    return trainer, [h["loss"] for h in trainer.state.log_history if "loss" in h]


@pytest.mark.parametrize(("shape", "stops", "options"), [
    ({"batch_size": 16}, (4, 15, 22), {}),
    ({"batch_size": 50}, (2, 5, 9), {}),
    ({"batch_size": 16}, (3, 5, 9), {"gradient_accumulation_steps": 3}),
    ({"max_tokens": 300}, (3, 20), {"max_steps": 24, "num_train_epochs": 1}),
])  # fmt: skip
def test_stopped_anywhere_and_resumed(
    rows240: str, tmp_path: Path, began: list[int], shape: Any, stops: Any, options: Any
) -> None:
    with Loader(rows240, seed=3, **shape) as loader:
        trainer, losses = train(loader, tmp_path, runs.Notes(tmp_path / "whole-0"), **options)
        assert trainer.num_examples(trainer.get_train_dataloader()) == 240
    whole = runs.Notes.read(tmp_path, "whole", 1)
    assert len(losses) == trainer.state.max_steps
    if "max_tokens" not in shape:
        assert len(runs.passes(whole, 240)) == 2
    for stop in stops:
        with Loader(rows240, seed=3, **shape) as loader:
            train(loader, tmp_path / f"at{stop}", runs.Notes(tmp_path / f"first{stop}-0"), Stop(stop), **options)
        first = runs.Notes.read(tmp_path, f"first{stop}", 1)
        assert first == whole[: len(first)] and len(first) < len(whole)
        began.clear()
        with Loader(rows240, seed=3, **shape) as loader:
            trainer, again = train(
                loader, tmp_path / f"at{stop}", runs.Notes(tmp_path / f"rest{stop}-0"), resume=True, **options
            )
        assert runs.Notes.read(tmp_path, f"rest{stop}", 1) == whole[len(first) :]
        assert again[-(len(losses) - stop) :] == pytest.approx(losses[stop:], abs=1e-4)
        assert trainer.state.global_step == trainer.state.max_steps == len(losses)
        assert began[0] == sum(map(len, first)), "batches before the checkpoint were read again"


def test_an_evaluation_of_the_loader_that_is_trained_on(rows240: str, tmp_path: Path) -> None:
    """It takes no rows from the training, nor from a checkpoint that is saved right after it."""
    options = {"eval_strategy": "steps", "eval_steps": 2, "eval_on_start": True}
    for name, more, stop in ("whole", {}, None), ("first", options, Stop(20)), ("rest", options, None):
        with Loader(rows240, seed=3, batch_size=16) as loader:
            notes, resume = runs.Notes(tmp_path / f"{name}-0"), True if name == "rest" else None
            trainer, _ = train(loader, tmp_path / "out", notes, stop, resume, evaluated=bool(more), **more)
            assert len([h for h in trainer.state.log_history if "eval_loss" in h]) >= len(more)
    whole, first, rest = (runs.Notes.read(tmp_path, name, 1) for name in ("whole", "first", "rest"))
    assert len(first) == 20 and first + rest == whole


def _run(rank: int, world: int, data: str, out: str, name: str, batch: int, stop: Any, resume: bool) -> None:
    with Loader(data, seed=3, batch_size=batch) as loader:
        trainer, _ = train(loader, Path(out), runs.Notes(Path(out).parent / f"{name}-{rank}"), stop, resume or None)
        feed = trainer.get_train_dataloader()
        assert (feed.rank, feed.world) == (rank, world) and type(feed).__module__.startswith("dsload")
        assert trainer.state.global_step == trainer.state.max_steps


@pytest.mark.parametrize(("stop", "shapes"), [(13, ((2, 4), (1, 8), (1, 4), (1, 16))), (30, ((1, 16),))])
def test_two_processes_killed_and_resumed_with_another_number(
    rows240: str, tmp_path: Path, stop: int, shapes: Any
) -> None:
    runs.on_gloo(2, _run, rows240, str(tmp_path / "out"), "two", 4, Stop(stop, kill=True), False, killed=True)
    before = runs.Notes.read(tmp_path, "two", 2, until=stop)
    assert len(before) == stop
    for world, batch in shapes:
        out, name = tmp_path / f"{world}x{batch}" / "out", "rest"
        shutil.copytree(tmp_path / "out", out)
        runs.on_gloo(world, _run, rows240, str(out), name, batch, None, True)
        assert len(runs.passes(before + runs.Notes.read(out.parent, name, world), 240)) == 2


def test_one_process_resumed_by_two(rows240: str, tmp_path: Path) -> None:
    with Loader(rows240, seed=3, batch_size=8) as loader:
        train(loader, tmp_path / "out", runs.Notes(tmp_path / "one-0"), Stop(10))
    runs.on_gloo(2, _run, rows240, str(tmp_path / "out"), "rest", 8, None, True)
    assert len(runs.passes(runs.Notes.read(tmp_path, "one", 1) + runs.Notes.read(tmp_path, "rest", 2), 240)) == 2


def test_steps_that_were_asked_for_are_kept_when_the_batch_grows(rows240: str, tmp_path: Path) -> None:
    with Loader(rows240, batch_size=4) as loader:
        train(loader, tmp_path, stop=Stop(20), max_steps=40)
    with Loader(rows240, batch_size=80) as loader:
        trainer, _ = train(loader, tmp_path, resume=True, max_steps=40)
        assert trainer.state.global_step == 40
        assert loader.state_dict()["start"] == 7 * 240  # 2 steps end the first epoch, 18 are 6 more


def test_columns_that_forward_does_not_take_are_left_out(rows240: str, tmp_path: Path) -> None:
    arguments = TrainingArguments(
        output_dir=str(tmp_path), num_train_epochs=1, save_strategy="no", report_to=[], use_cpu=True, disable_tqdm=True
    )
    with Loader(rows240, batch_size=48) as loader, Loader(rows240, batch_size=48) as held_out:
        trainer = Noting(Small(), arguments, train_dataset=loader, eval_dataset=held_out)
        assert trainer.train().global_step == 5
        assert "eval_loss" in trainer.evaluate()


def test_a_dataset_of_another_models_tokenizer_is_refused(rows240: str, tmp_path: Path) -> None:
    def words(number: int) -> Any:
        return transformers.GPT2LMHeadModel(
            transformers.GPT2Config(vocab_size=number, n_layer=1, n_embd=8, n_head=1, n_positions=512)
        )

    class Folded(transformers.GPT2LMHeadModel):
        def forward(self, input_ids: Any, attention_mask: Any, labels: Any) -> Any:
            known = self.config.vocab_size
            labels = torch.where(labels < 0, labels, labels % known)
            return super().forward(input_ids=input_ids % known, attention_mask=attention_mask, labels=labels)

    class Hidden(Small):
        def get_input_embeddings(self) -> Any:
            raise NotImplementedError

    arguments = TrainingArguments(
        output_dir=str(tmp_path), max_steps=5, save_strategy="no", report_to=[], use_cpu=True, disable_tqdm=True
    )
    with Loader(rows240, batch_size=48, shuffle="none") as loader:
        largest = max(int(batch["input_ids"].max()) for batch in loader)
    with Loader(rows240, batch_size=48) as loader:
        with pytest.raises(dsload.DsloadError, match=f"embeddings for {largest} ids.*tokenizer of another model"):
            Noting(words(largest), arguments, train_dataset=loader).train()
        with pytest.raises(dsload.DsloadError, match="--tokenizer FOLDER"):
            Noting(words(largest), arguments, eval_dataset=loader).evaluate()
    with Loader(rows240, batch_size=48) as loader:
        for model in words(largest + 1), Folded(words(101).config), Hidden():
            assert Noting(model, arguments, train_dataset=loader).train().global_step == 5


def test_rows_longer_than_the_models_positions(rows240: str, tmp_path: Path) -> None:
    """An error of its own for a table of positions, and none for positions that are computed."""
    from transformers import GPT2Config, GPT2LMHeadModel, LlamaConfig, LlamaForCausalLM

    arguments = TrainingArguments(
        output_dir=str(tmp_path), max_steps=1, save_strategy="no", report_to=[], use_cpu=True, disable_tqdm=True
    )
    size: dict[str, Any] = {"vocab_size": 50257, "bos_token_id": 0, "eos_token_id": 0}
    learned = GPT2LMHeadModel(GPT2Config(n_positions=8, n_embd=8, n_layer=1, n_head=1, **size))
    computed = LlamaForCausalLM(
        LlamaConfig(
            max_position_embeddings=8,
            hidden_size=8,
            intermediate_size=8,
            num_hidden_layers=1,
            num_attention_heads=1,
            **size,
        )
    )
    with Loader(rows240, batch_size=8, shuffle="none") as loader:
        with pytest.raises(dsload.DsloadError, match=r"embeddings for 8 positions, and a row has \d+ tokens"):
            Noting(learned, arguments, train_dataset=loader).train()
        assert Noting(computed, arguments, train_dataset=loader).train().global_step == 1
    longest = max(len(row["input_ids"]) for row in dsload.RandomAccess(rows240))
    learned = GPT2LMHeadModel(GPT2Config(n_positions=longest, n_embd=8, n_layer=1, n_head=1, **size))
    with Loader(rows240, batch_size=2, pack="bfd", max_length=4 * longest) as loader:
        assert Noting(learned, arguments, train_dataset=loader).train().global_step == 1, "its documents are not longer"


def test_a_masked_language_model_is_warned_of(rows240: str, tmp_path: Path) -> None:
    class SmallForMaskedLM(Small):
        pass

    arguments = TrainingArguments(
        output_dir=str(tmp_path), max_steps=1, save_strategy="no", report_to=[], use_cpu=True, disable_tqdm=True
    )
    with Loader(rows240, batch_size=8) as loader:
        with pytest.warns(UserWarning, match="no token of the loader's batches is masked"):
            Noting(SmallForMaskedLM(), arguments, train_dataset=loader).train()
        with warnings.catch_warnings():
            warnings.simplefilter("error", UserWarning)
            Noting(Small(), arguments, train_dataset=loader).train()


def test_what_is_refused(rows240: str, tmp_path: Path) -> None:
    with Loader(rows240, batch_size=16) as loader:
        train(loader, tmp_path, stop=Stop(3))
    saved = tmp_path / "checkpoint-3" / "dsload.json"
    state = json.loads(saved.read_text())
    for text, why in (
        (None, "ignore_data_skip"),
        ("{", "not a state"),
        ("[]", "not a state"),
        (json.dumps({**state, "loader": {}}), "not a state"),
    ):
        saved.unlink(missing_ok=True)
        if text is not None:
            saved.write_text(text)
        with Loader(rows240, batch_size=16) as loader, pytest.raises((dsload.DsloadError, ValueError), match=why):
            train(loader, tmp_path, resume=True)
    with Loader(rows240, batch_size=16) as loader:
        loader.load_state_dict(state["loader"])
        train(loader, tmp_path, runs.Notes(tmp_path / "kept-0"), resume=True, ignore_data_skip=True, max_steps=4)
        with Loader(rows240, batch_size=16) as whole:
            assert runs.Notes.read(tmp_path, "kept", 1) == [[b["example"].tolist() for b in whole][3]]
        with pytest.raises(ValueError, match="find_max_batch_size"):
            train(loader, tmp_path, auto_find_batch_size=True)
    with pytest.raises(ValueError, match="checkpoint"), Loader(rows240) as loader:
        train(loader, tmp_path / "nothing", resume=True)


def test_other_datasets_are_trainers_own(tmp_path: Path) -> None:
    arguments = TrainingArguments(
        output_dir=str(tmp_path), max_steps=2, save_strategy="no", report_to=[], use_cpu=True, disable_tqdm=True
    )
    rows = [{"input_ids": torch.arange(4), "labels": torch.arange(4)} for _ in range(8)]
    trainer = Noting(Small(), arguments, train_dataset=rows, eval_dataset=rows)
    assert trainer.train().global_step == 2 and "eval_loss" in trainer.evaluate()


def samples_a_step(metrics: Any, what: str) -> float:
    return float(metrics[f"{what}_samples_per_second"]) / float(metrics[f"{what}_steps_per_second"])


def test_trainer_counts_with_the_loaders_batches(rows240: str, tmp_path: Path) -> None:
    for batch, options in (
        (2, {}),
        (24, {"gradient_accumulation_steps": 2}),
        (48, {"max_steps": -1, "num_train_epochs": 1}),
    ):
        arguments = TrainingArguments(**{
            "output_dir": str(tmp_path), "max_steps": 4, "save_strategy": "no", "report_to": [], "use_cpu": True,
            "disable_tqdm": True, **options,
        })  # fmt: skip
        with Loader(rows240, batch_size=batch) as loader:
            trainer = Noting(Small(), arguments, train_dataset=loader, eval_dataset=loader)
            step = batch * arguments.gradient_accumulation_steps
            assert samples_a_step(trainer.train().metrics, "train") == pytest.approx(step, rel=0.02)
            assert trainer.get_total_train_batch_size(arguments) == step
            assert samples_a_step(trainer.evaluate(), "eval") == pytest.approx(batch, rel=0.02)
    arguments = TrainingArguments(
        output_dir=str(tmp_path),
        max_steps=3,
        per_device_train_batch_size=4,
        save_strategy="no",
        report_to=[],
        use_cpu=True,
        disable_tqdm=True,
    )
    with Loader(rows240, max_tokens=300) as loader, Loader(rows240, batch_size=6) as even:
        trainer = Noting(Small(), arguments, train_dataset=loader)
        trainer.notes = runs.Notes(tmp_path / "uneven-0")
        found = samples_a_step(trainer.train().metrics, "train")
        assert found == pytest.approx(sum(map(len, runs.Notes.read(tmp_path, "uneven", 1))) / 3, rel=0.02)
        with pytest.warns(UserWarning, match="per_device_train_batch_size=4 has no effect"):
            Noting(Small(), arguments, train_dataset=even).train()
        with pytest.warns(UserWarning, match="data_collator has no effect"):
            Noting(Small(), arguments, train_dataset=even, data_collator=lambda rows: rows).train()


@pytest.mark.parametrize(
    ("given", "loader", "ignored"),
    [
        ({"train_sampling_strategy": "group_by_length"}, {}, True),
        ({"train_sampling_strategy": "sequential"}, {}, True),
        ({"train_sampling_strategy": "sequential"}, {"shuffle": False}, False),
        ({"data_seed": 5}, {}, True),
        ({"data_seed": 5}, {"seed": 5}, False),
        ({"dataloader_drop_last": True}, {}, True),
        ({"dataloader_drop_last": True}, {"tail": "drop"}, False),
        ({}, {}, False),
    ],
)
def test_arguments_about_the_order(
    rows240: str, tmp_path: Path, given: dict[str, Any], loader: dict[str, Any], ignored: bool
) -> None:
    """Those that the loader does not follow are not ignored silently."""
    arguments = TrainingArguments(
        output_dir=str(tmp_path),
        max_steps=1,
        save_strategy="no",
        report_to=[],
        use_cpu=True,
        disable_tqdm=True,
        **given,
    )
    with Loader(rows240, batch_size=8, **loader) as rows, warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        Noting(Small(), arguments, train_dataset=rows).train()
    assert [str(w.message).split("=")[0] for w in said if "the loader decides" in str(w.message)] == (
        list(given) if ignored else []
    )


class Evaluating(Noting):
    """Notes the rows that are evaluated, and checks that fillers change nothing."""

    def prediction_step(self, model: Any, inputs: Any, *rest: Any, **more: Any) -> Any:
        if self.notes is not None:
            self.notes.add(inputs)
        return super().prediction_step(model, inputs, *rest, **more)


def _evaluate(rank: int, world: int, data: str, out: str, shapes: list[dict[str, Any]]) -> None:
    predicted: list[Any] = []

    def metrics(got: Any) -> dict[str, float]:
        predicted.append(got)
        return {}

    arguments = TrainingArguments(
        output_dir=out, report_to=[], use_cpu=True, disable_tqdm=True, learning_rate=1e-3, max_steps=12,
        save_strategy="no",
        remove_unused_columns=True, per_device_eval_batch_size=8, logging_steps=1,
    )  # fmt: skip
    for i, shape in enumerate(shapes):
        with Loader(data, shuffle="none", padding="max_length", **shape) as loader:
            trainer = Evaluating(
                Predicting(), arguments, train_dataset=loader, eval_dataset=loader, compute_metrics=metrics
            )
            trainer.notes = runs.Notes(Path(out) / f"seen{i}-{rank}")
            got = trainer.evaluate()
            labels = sorted(tuple(row) for row in predicted.pop().label_ids.tolist())
            trainer.notes = None
            trainer.train()
            losses = [h["loss"] for h in trainer.state.log_history if "loss" in h]
            (Path(out) / f"got{i}-{rank}").write_text(
                json.dumps({"loss": got["eval_loss"], "labels": labels, "losses": losses})
            )


class Predicting(Small):
    """Predicts, too."""

    def forward(self, input_ids: Any, labels: Any) -> Any:
        return {**super().forward(input_ids, labels), "logits": self.weight[input_ids % 101]}


def test_an_evaluation_of_several_ranks_counts_every_row_once(tmp_path: Path) -> None:
    (tmp_path / "lines.txt").write_text(
        "".join(f"a line of words, {'and more ' * (i % 5)}the {i}-th\n" for i in range(241))
    )
    data = str(tmp_path / "rows")
    dsload.build(tmp_path / "lines.txt", out=data, format="text", max_examples=0, max_length=40)
    with Loader(data, shuffle="none", padding="max_length", batch_size=241) as loader:
        (whole,) = list(loader)
    model = Small()
    shapes: list[dict[str, Any]] = [{"batch_size": 8}, {"max_tokens": 900}, {"batch_size": 8, "balance": "quadratic"}]
    runs.on_gloo(3, _evaluate, data, str(tmp_path), shapes)
    for i, shape in enumerate(shapes):
        per_rank = [
            [json.loads(line) for line in (tmp_path / f"seen{i}-{r}").read_text().splitlines()] for r in range(3)
        ]
        assert len({len(steps) for steps in per_rank}) == 1, shape
        batches = [[e for e in step if e >= 0] for steps in per_rank for step in steps]
        assert sorted(e for batch in batches for e in batch) == list(range(241)), shape
        want = sum(len(b) * model(whole["input_ids"][b], whole["labels"][b])["loss"].item() for b in batches if b) / 241
        for rank in range(3):
            got = json.loads((tmp_path / f"got{i}-{rank}").read_text())
            assert got["loss"] == pytest.approx(want, rel=1e-5), f"{shape}: the mean over the rows"
            assert got["labels"] == sorted(whole["labels"].tolist()), shape
            assert got["losses"] and all(loss == loss and loss < 1e3 for loss in got["losses"]), (
                f"{shape}: a batch of a filler alone spoils no step"
            )


def test_ranks_that_would_wait_for_each_other_are_refused(rows240: str, tmp_path: Path) -> None:
    arguments = TrainingArguments(output_dir=str(tmp_path), report_to=[], use_cpu=True, max_steps=1)
    for shape in ({"batch_size": 7}, {"max_tokens": 300}, {"batch_size": 240}):
        with Loader(rows240, rank=0, world=2, tail="keep", **shape) as loader:
            with pytest.raises(ValueError, match='tail="once"'):
                Noting(Small(), arguments, train_dataset=loader).get_train_dataloader()
            with pytest.raises(ValueError, match='tail="once"'):
                Noting(Small(), arguments, eval_dataset=loader).get_eval_dataloader()
    with Loader(rows240, rank=0, world=2, tail="keep", batch_size=12) as loader:
        assert len(Noting(Small(), arguments, train_dataset=loader).get_train_dataloader()) == 10
