"""LoaderCallback: Lightning's checkpoints hold the loader's place, wherever they are taken."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")
lightning = pytest.importorskip("pytorch_lightning")

import runs  # noqa: E402
from torch.utils.data import DataLoader  # noqa: E402

from dsload import Loader  # noqa: E402
from dsload.integrations import LoaderCallback  # noqa: E402

pytestmark = [pytest.mark.torch, pytest.mark.trainers, pytest.mark.server, pytest.mark.usefixtures("no_servers_left")]


class Model(lightning.LightningModule):  # type: ignore[name-defined, misc]
    def __init__(self, notes: Any, die_at: int = -1) -> None:
        super().__init__()
        self.weight = torch.nn.Parameter(torch.zeros(()))
        self.notes, self.die_at = notes, die_at
        self.validated = 0

    def training_step(self, batch: Any, index: int) -> Any:
        if self.trainer.global_step == self.die_at:
            runs.die()
        self.notes.add(batch)
        return self.weight * 0

    def validation_step(self, batch: Any, index: int) -> None:
        self.validated += 1

    def configure_optimizers(self) -> Any:
        return torch.optim.SGD(self.parameters(), lr=0.1)


def fit(
    loader: Loader,
    out: Path,
    notes: Any,
    stop: int = 0,
    workers: int = -1,
    resume: bool = False,
    world: int = 1,
    kill: bool = False,
    val: Any = None,
    **options: Any,
) -> Model:
    callbacks: list[Any] = [LoaderCallback(loader)]
    if stop:
        callbacks.append(
            lightning.callbacks.ModelCheckpoint(
                dirpath=out, filename="at", every_n_train_steps=stop, enable_version_counter=False
            )
        )
    trainer = lightning.Trainer(
        max_epochs=options.pop("max_epochs", 2),
        max_steps=stop if stop and not kill else -1,
        accelerator="cpu",
        devices=world,
        strategy="ddp" if world > 1 else "auto",
        logger=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        enable_checkpointing=bool(stop),
        use_distributed_sampler=False,
        num_sanity_val_steps=0,
        callbacks=callbacks,
        **options,
    )
    feed = loader if workers < 0 else DataLoader(loader, batch_size=None, num_workers=workers)
    model = Model(notes, stop + 2 if kill else -1)
    if resume:
        trainer.fit(model, feed, val, ckpt_path=str(out / "at.ckpt"), weights_only=False)
    else:
        trainer.fit(model, feed, val)
    return model


@pytest.mark.parametrize("workers", [-1, 0, 2])
@pytest.mark.parametrize(("shape", "stops"), [({"batch_size": 16}, (4, 15, 22)), ({"max_tokens": 300}, (3, 20))])
def test_stopped_anywhere_and_resumed(rows240: str, tmp_path: Path, workers: int, shape: Any, stops: Any) -> None:
    with Loader(rows240, seed=3, **shape) as loader:
        fit(loader, tmp_path, runs.Notes(tmp_path / "whole-0"), workers=workers)
    whole = runs.Notes.read(tmp_path, "whole", 1)
    assert len(runs.passes(whole, 240)) == 2
    for stop in stops:
        with Loader(rows240, seed=3, **shape) as loader:
            fit(loader, tmp_path, runs.Notes(tmp_path / f"first{stop}-0"), stop, workers=workers)
        with Loader(rows240, seed=3, **shape) as loader:
            fit(loader, tmp_path, runs.Notes(tmp_path / f"rest{stop}-0"), workers=workers, resume=True)
        assert runs.Notes.read(tmp_path, f"first{stop}", 1) == whole[:stop]
        assert runs.Notes.read(tmp_path, f"rest{stop}", 1) == whole[stop:]


@pytest.mark.parametrize("workers", [-1, 2])
def test_epochs_of_a_few_batches_continue(rows240: str, tmp_path: Path, workers: int) -> None:
    """limit_train_batches ends an epoch early: the next takes as many of the batches that follow, in the next order
    where the loader's epoch ends within."""
    for name, more in ("whole", {"max_epochs": 3}), ("parts", {"max_epochs": 6, "limit_train_batches": 6}):
        with Loader(rows240, batch_size=16, seed=3) as loader:
            assert len(loader) == 15
            fit(loader, tmp_path, runs.Notes(tmp_path / f"{name}-0"), workers=workers, **more)
    whole, parts = (runs.Notes.read(tmp_path, name, 1) for name in ("whole", "parts"))
    assert len(whole) == 45 and parts == whole[:36]
    with Loader(rows240, batch_size=16, seed=3) as loader:
        fit(loader, tmp_path, runs.Notes(tmp_path / "few-0"), workers=-1, overfit_batches=2)
    assert runs.Notes.read(tmp_path, "few", 1) == whole[:2] * 2


@pytest.mark.parametrize("workers", [-1, 2])
@pytest.mark.parametrize(("limit", "stop"), [(6, 14), (12, 12), (12, 13)])
def test_epochs_of_a_few_batches_are_resumed(rows240: str, tmp_path: Path, workers: int, limit: int, stop: int) -> None:
    """Where the loader's epoch ends within the one of Lightning that is resumed, or that follows, it has its batches
    and is validated all the same."""
    more = {"max_epochs": 3, "limit_train_batches": limit}
    validated = {}
    for name, stops, resume in ("whole", 0, False), ("first", stop, False), ("rest", 0, True):
        with Loader(rows240, batch_size=16, seed=3) as loader, Loader(rows240, batch_size=48, shuffle="none") as val:
            notes = runs.Notes(tmp_path / f"{name}-0")
            model = fit(loader, tmp_path, notes, stops, workers, resume, val=val, **more)
            validated[name] = model.validated
    whole, first, rest = (runs.Notes.read(tmp_path, name, 1) for name in ("whole", "first", "rest"))
    assert len(whole) == 3 * limit and first == whole[:stop] and rest == whole[stop:]
    assert validated["whole"] == validated["first"] + validated["rest"] != 0


def _run(rank: int, world: int, data: str, out: str, name: str, batch: int, stop: int, resume: bool) -> None:
    with Loader(data, seed=3, batch_size=batch) as loader:
        fit(
            loader,
            Path(out),
            runs.Notes(Path(out) / f"{name}-{rank}"),
            stop,
            resume=resume,
            world=world,
            kill=bool(stop),
        )


def test_two_processes_killed_and_resumed(rows240: str, tmp_path: Path) -> None:
    runs.on_gloo(2, _run, rows240, str(tmp_path), "two", 4, 13, False, killed=True)
    before = runs.Notes.read(tmp_path, "two", 2, until=13)
    for world, batch in ((2, 4), (1, 8)):
        runs.on_gloo(world, _run, rows240, str(tmp_path), f"rest{world}", batch, 0, True)
        assert len(runs.passes(before + runs.Notes.read(tmp_path, f"rest{world}", world), 240)) == 2


def test_what_is_refused(rows240: str) -> None:
    with Loader(rows240, batch_size=16) as loader, Loader(rows240, batch_size=16, seed=1) as other:
        with pytest.raises(TypeError, match="the loader itself"):
            LoaderCallback(DataLoader(loader, batch_size=None))
        with pytest.raises(ValueError, match="seed"):
            LoaderCallback(other).load_state_dict(LoaderCallback(loader).state_dict())
        assert LoaderCallback(loader).state_key != LoaderCallback(other, name="second").state_key
