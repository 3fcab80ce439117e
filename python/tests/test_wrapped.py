"""Accelerate, Trainer and Lightning around a loader: every row once an epoch, each epoch in its own order, or an error
that says how."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path
from typing import Any

import pytest
import runs

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")

from torch.utils.data import DataLoader  # noqa: E402

import dsload  # noqa: E402
from dsload import Loader  # noqa: E402

pytestmark = [pytest.mark.torch, pytest.mark.trainers, pytest.mark.server, pytest.mark.usefixtures("no_servers_left")]


@pytest.fixture(scope="module")
def rows300(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("data")
    (folder / "lines.txt").write_text("".join(f"a line of words, the {i}-th\n" for i in range(300)))
    dsload.build(folder / "lines.txt", out=folder / "rows", format="text", max_examples=0)
    return str(folder / "rows")


def examples(batches: Any) -> list[int]:
    return [int(e) for b in batches for e in b["example"]]


def orders(loader: Loader, epochs: int) -> list[list[int]]:
    found = [examples(loader) for _ in range(epochs)]
    loader.set_epoch(0)
    assert (
        all(sorted(f) == list(range(loader.num_examples)) for f in found) and len({tuple(f) for f in found}) == epochs
    )
    return found


WRAPPINGS = ["dispatch", "shard", "dispatch workers", "shard spawned workers", "bare", "bare workers", "made early"]


def _rank(rank: int, world: int, data: str) -> dict[str, tuple[list[int], str]]:
    """Rank `rank` of 2: iterates in each way, and says how many rows it got, or why none."""
    launched = {name: os.environ.pop(name) for name in ("RANK", "WORLD_SIZE")}
    early = Loader(data, batch_size=4, tail="keep")  # no variable names a rank yet
    os.environ.update(launched)
    from accelerate import Accelerator
    from accelerate.data_loader import prepare_data_loader

    accelerator = Accelerator(cpu=True)
    said = {}
    with early, Loader(data, batch_size=4, padding="max_length", tail="keep") as loader:
        for wrapping in WRAPPINGS:
            options: dict[str, Any] = {"num_workers": 1} if "workers" in wrapping else {}
            if "spawned" in wrapping:
                options["multiprocessing_context"] = "spawn"
            if "shard" in wrapping:
                options |= {"batch_size": 1, "collate_fn": dsload.first}
            source = early if wrapping == "made early" else loader
            feed: Any = DataLoader(source, **{"batch_size": None, **options})
            if wrapping.startswith("dispatch"):
                feed = accelerator.prepare(feed)
            elif wrapping.startswith("shard"):
                feed = prepare_data_loader(feed, put_on_device=False, dispatch_batches=False)
            try:
                said[wrapping] = (sorted(examples(runs.every(feed))), "")
            except dsload.WrongWrapping as error:
                said[wrapping] = ([], str(error))
            del feed
    torch.distributed.barrier()
    torch.distributed.destroy_process_group()
    return said


def test_two_processes_of_accelerate(rows300: str) -> None:
    said = runs.on_gloo(2, _rank, rows300)
    for wrapping in WRAPPINGS:
        (rows0, why0), (rows1, why1) = said[0][wrapping], said[1][wrapping]
        if wrapping.startswith("bare"):
            assert sorted(rows0 + rows1) == list(range(300)), wrapping
        elif wrapping == "made early":
            assert "rank 0 of 1, and this process is rank 0 of 2" in why0 and "init_process_group" in why1
        else:
            for why in (why0, why1):
                assert "DataLoader(loader, batch_size=None), without accelerator.prepare" in why, wrapping


def test_one_process_of_accelerate(rows300: str) -> None:
    from accelerate import Accelerator

    accelerator = Accelerator(cpu=True)
    with Loader(rows300, batch_size=32, seed=3) as loader:
        want = orders(loader, 5)
        feed = accelerator.prepare(DataLoader(loader, batch_size=None))
        assert [examples(feed) for _ in range(3)] == want[:3]
        loader.set_epoch(0)
        feed = accelerator.prepare(DataLoader(loader, batch_size=None))
        seen = []
        for batch in feed:
            seen += examples([batch])
            if len(seen) == 96:
                with pytest.raises(ValueError, match="after=batch"):
                    loader.state_dict()
                state = loader.state_dict(after=batch)
                break
        # It counts epochs from 0 again; the loader continues from its state.
        state["start"] += 3 * 300
        loader.load_state_dict(state)
        feed = accelerator.prepare(DataLoader(loader, batch_size=None))
        assert [examples(feed), examples(feed)] == [want[3][96:], want[4]]


@contextlib.contextmanager
def _recorded(loader: Loader) -> Any:
    """What is taken from the loader, by the iterations that were begun."""
    taken: list[list[int]] = []
    begin = type(loader).__iter__

    def iterate(self: Any) -> Any:
        taken.append([])
        for batch in begin(self):
            taken[-1] += examples([batch])
            yield batch

    kind = type("Recorded", (type(loader),), {"__iter__": iterate})
    loader.__class__ = kind
    yield taken


@pytest.mark.parametrize("prepared", [False, True])
def test_three_epochs_of_trainer(rows300: str, tmp_path: Path, prepared: bool) -> None:
    import json

    import models
    from transformers import Trainer, TrainerCallback, TrainingArguments

    class OwnTrainer(Trainer):  # type: ignore[misc]
        def get_train_dataloader(self) -> Any:
            return super().get_train_dataloader() if prepared else DataLoader(self.train_dataset, batch_size=None)

    class Save(TrainerCallback):  # type: ignore[misc]
        def __init__(self, loader: Loader) -> None:
            self.loader = loader

        def on_save(self, args: Any, state: Any, control: Any, **_: Any) -> None:
            if not prepared:
                Path(args.output_dir, f"checkpoint-{state.global_step}", "loader.json").write_text(
                    json.dumps(self.loader.state_dict())
                )

    def train(loader: Loader, resume: Any = None) -> list[list[int]]:
        options = TrainingArguments(
            output_dir=str(tmp_path / "run"),
            num_train_epochs=3,
            per_device_train_batch_size=1,
            save_strategy="steps",
            save_steps=5,
            report_to=[],
            disable_tqdm=True,
            use_cpu=True,
            ignore_data_skip=not prepared,
            remove_unused_columns=False,
        )
        with _recorded(loader) as taken:
            model = models.gpt2(vocab=101, layers=1, width=8)
            forward = model.forward

            def small(
                input_ids: Any, attention_mask: Any, labels: Any, **_: Any
            ) -> Any:  # the order is tested, not the model
                return forward(
                    input_ids=input_ids % 101,
                    attention_mask=attention_mask,
                    labels=labels.where(labels < 0, labels % 101),
                )

            model.forward = small
            trainer = OwnTrainer(
                model, options, train_dataset=loader, data_collator=dsload.first, callbacks=[Save(loader)]
            )
            trainer.train(resume_from_checkpoint=resume)
        return [t for t in taken if t]

    with Loader(rows300, batch_size=64, seed=3) as loader:
        want = orders(loader, 3)
        assert len(loader) == 5
        assert train(loader) == want
    if prepared:
        return
    # At the end of the first epoch, and (as saved then) of the second.
    for step, rest in ((5, want[1:]), (10, want[2:])):
        checkpoint = tmp_path / "run" / f"checkpoint-{step}"
        with Loader(rows300, batch_size=64, seed=3) as loader:
            loader.load_state_dict(json.loads((checkpoint / "loader.json").read_text()))
            assert train(loader, str(checkpoint)) == rest


def test_three_epochs_of_lightning(rows300: str, tmp_path: Path) -> None:
    lightning = pytest.importorskip("pytorch_lightning")

    class Model(lightning.LightningModule):  # type: ignore[name-defined, misc]
        def __init__(self) -> None:
            super().__init__()
            self.weight = torch.nn.Parameter(torch.zeros(()))
            self.epochs: list[list[int]] = []

        def on_train_epoch_start(self) -> None:
            self.epochs.append([])

        def training_step(self, batch: Any, index: int) -> Any:
            self.epochs[-1] += batch["example"].tolist()
            return self.weight * 0

        def configure_optimizers(self) -> Any:
            return torch.optim.SGD(self.parameters(), lr=0.1)

    class Data(lightning.LightningDataModule):  # type: ignore[name-defined, misc]
        def __init__(self, loader: Loader, workers: int) -> None:
            super().__init__()
            self.loader, self.workers = loader, workers

        def train_dataloader(self) -> Any:
            return DataLoader(self.loader, batch_size=None, num_workers=self.workers)

        def state_dict(self) -> Any:
            return self.loader.state_dict()

        def load_state_dict(self, state: Any) -> None:
            self.loader.load_state_dict(state)

    def fit(epochs: int, workers: int = 0, resume: Any = None, save: Any = None) -> list[list[int]]:
        with Loader(rows300, batch_size=64, seed=3) as loader:
            model = Model()
            trainer = lightning.Trainer(max_epochs=epochs, **runs.LIGHTNING, default_root_dir=tmp_path)
            trainer.fit(model, Data(loader, workers), ckpt_path=resume, **({"weights_only": False} if resume else {}))
            if save is not None:
                trainer.save_checkpoint(save)
        return [e for e in model.epochs if e]

    with Loader(rows300, batch_size=64, seed=3) as loader:
        want = orders(loader, 3)
    assert fit(3) == want
    assert fit(3, workers=2) == want
    assert fit(1, save=tmp_path / "one.ckpt") == want[:1]
    assert fit(3, resume=tmp_path / "one.ckpt") == want[1:]


def test_a_data_loader_that_collates_once_more(rows300: str, tmp_path: Path) -> None:
    """On one process too: batches of batches are refused, by torch's own collation and by Trainer's."""
    import models
    from transformers import Trainer, TrainingArguments

    for options in (
        {},
        {"num_workers": 1},
        {"batch_size": 4, "drop_last": True},
        {"batch_size": 2, "collate_fn": dsload.first},
        {"batch_size": 4, "collate_fn": lambda batches: batches[0]},
        {"batch_size": 3, "num_workers": 1, "collate_fn": lambda batches: {"input_ids": batches[-1]["input_ids"]}},
    ):
        with Loader(rows300, batch_size=8) as loader, pytest.raises(dsload.WrongWrapping, match="batch_size=None"):
            runs.every(DataLoader(loader, **options))
    with (
        Loader(rows300, batch_size=8, output="numpy") as loader,
        pytest.raises(dsload.WrongWrapping, match="batch_size=None"),
    ):
        next(iter(DataLoader(loader)))  # type: ignore[arg-type]
    with Loader(rows300, batch_size=8) as loader:
        joined = next(
            iter(DataLoader(loader, batch_size=2, collate_fn=lambda batches: [b["example"] for b in batches]))
        )
        assert [len(e) for e in joined] == [8, 8]
        for options in {"batch_size": None}, {"batch_size": 1}:
            feed = DataLoader(loader, collate_fn=dsload.first, **options)
            assert next(iter(feed))["input_ids"].shape[0] == 8
        arguments = TrainingArguments(
            output_dir=str(tmp_path), max_steps=1, report_to=[], use_cpu=True, disable_tqdm=True, save_strategy="no"
        )
        trainer = Trainer(
            models.gpt2(vocab=50257, layers=1, width=8), arguments, train_dataset=loader, eval_dataset=loader
        )
        first = Trainer(trainer.model, arguments, train_dataset=loader, data_collator=lambda batches: batches[0])
        with pytest.raises(dsload.WrongWrapping, match="drop all but one"):
            first.train()
        for run in (trainer.train, trainer.evaluate):
            with pytest.raises(dsload.WrongWrapping, match="TrainerMixin, named before Trainer"):
                run()
