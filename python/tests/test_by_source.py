"""The columns dataset and source, and the loss of each source over ranks."""

from __future__ import annotations

import inspect
import json
import pathlib
from typing import Any

import numpy as np
import pytest
from runs import processes_of_their_own

import dsload

pytestmark = pytest.mark.server
COLUMNS = ("input_ids", "attention_mask", "labels", "example", "dataset", "source")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    """Datasets of two sources and of one: texts of ever other lengths."""
    root = tmp_path_factory.mktemp("by_source")
    for name, rows in ("a", 30), ("b", 20), ("c", 10):
        (root / f"{name}.jsonl").write_text(
            "".join(json.dumps({"text": " ".join(["word"] * (1 + i % 7))}) + "\n" for i in range(rows))
        )
    dsload.build([root / "a.jsonl", root / "b.jsonl"], out=root / "two")
    dsload.build(root / "c.jsonl", out=root / "one")
    dsload.build([root / "a.jsonl", root / "b.jsonl"], out=root / "packed", pack="bfd", max_length=16)
    return root


@pytest.mark.parametrize("in_process", [False, True])
def test_columns(folder: pathlib.Path, in_process: bool) -> None:
    options: Any = {"columns": COLUMNS, "output": "numpy", "in_process": in_process, "batch_size": 7}
    with dsload.Loader(folder / "two", seed=3, **options) as loader:
        assert [pathlib.Path(name).name for name in loader.sources] == ["a.jsonl", "b.jsonl"]
        for batch in loader:
            assert (batch["source"] == (batch["example"] >= 30)).all() and not batch["dataset"].any()
    with dsload.Loader({"x": folder / "one", "y": folder / "two"}, mix={"y": 1, "x": 1}, **options) as loader:
        assert [name[:3] for name in loader.sources] == ["y: ", "y: ", "x: "]
        met = set()
        for batch in loader:
            want = np.where(batch["dataset"] == 1, 2, batch["example"] >= 30)
            assert (batch["source"] == want).all()
            met |= set(batch["source"].tolist())
        assert met == {0, 1, 2}


@pytest.mark.parametrize("in_process", [False, True])
def test_rows_without_a_source_are_refused(folder: pathlib.Path, in_process: bool) -> None:
    for name, options in ("packed", {}), ("two", {"pack": "bfd"}):
        with pytest.raises(dsload.ParameterError, match="several sources"):
            dsload.Loader(
                folder / name, columns=("input_ids", "position_ids", "source"), in_process=in_process, **options
            )


def test_means() -> None:
    labels = np.array([[1, 2, -100], [3, -100, -100], [4, 5, 6], [7, 8, 9]])
    batch = {"source": np.array([0, 0, 2, 1]), "labels": labels, "example": np.array([5, 6, 7, -1])}
    assert dsload.by_source(np.array([1.0, 2, 3, 9]), batch) == {0: 1.5, 2: 3.0}
    losses = np.array([[1.0, 2, np.nan], [6, np.inf, 0], [1, 1, 4], [9, 9, 9]])
    assert dsload.by_source(losses, batch, ["a", "b", "c"]) == {"a": 3.0, "c": 2.0}
    assert dsload.by_source(losses[:, 1:], batch) == {0: 2.0, 2: 2.5}  # as models shift them
    for losses, given, why in (
        (np.zeros(4), {"labels": labels}, "no column 'source'"),
        (np.zeros(3), batch, "the batch has 4 rows"),
        (np.zeros((4, 9)), batch, "do not belong"),
        (np.zeros((4, 2)), {"source": batch["source"]}, "need the column 'labels'"),
    ):
        with pytest.raises(ValueError, match=why):
            dsload.by_source(losses, given)
    with pytest.raises(ValueError, match="rows of source 2, counted from 0, and there are 2 names"):
        dsload.by_source(np.zeros(4), batch, ["a", "b"])


def _rank(rank: int, store: str, folder: str, out: Any) -> None:
    import torch

    torch.distributed.init_process_group("gloo", init_method=f"file://{store}", rank=rank, world_size=2)
    with dsload.Loader(folder, batch_size=9, seed=5, columns=COLUMNS) as loader:
        batch = next(iter(loader))
        losses = (batch["example"][:, None] * 0.37 + torch.arange(batch["labels"].shape[1])).float()
        means = dsload.by_source(losses, batch)
        # As lists: the queue sends a tensor as a file that the reader fetches from this process, which may have ended.
        out.put((batch["source"].tolist(), batch["labels"].tolist(), losses.tolist(), means))
    torch.distributed.barrier()
    torch.distributed.destroy_process_group()


@pytest.mark.torch
def test_over_ranks(folder: pathlib.Path, tmp_path: pathlib.Path) -> None:
    context = processes_of_their_own()
    out = context.SimpleQueue()
    ranks = [context.Process(target=_rank, args=(r, str(tmp_path / "store"), str(folder / "two"), out)) for r in (0, 1)]
    for process in ranks:
        process.start()
    got = [out.get() for _ in ranks]
    for process in ranks:
        process.join()
        assert process.exitcode == 0
    sums, numbers = {}, {}  # type: dict[int, float], dict[int, int]
    for sources, labels, losses, _ in got:
        for s, row, loss in zip(sources, labels, losses):
            for label, x in zip(row, loss):
                if label != -100:
                    sums[s], numbers[s] = sums.get(s, 0) + x, numbers.get(s, 0) + 1
    for *_, means in got:
        assert means == pytest.approx({s: sums[s] / numbers[s] for s in sums}) and len(means) == 2


def test_the_loader_shows_its_parameters() -> None:
    """help() and notebooks show those of __init__, although torch's class for output="torch" is chosen by __new__."""
    names = list(inspect.signature(dsload.Loader).parameters)
    assert names[0] == "dataset" and {"batch_size", "bucket", "group", "rank", "world", "columns"} < set(names)
    assert "self" not in names and "args" not in names
