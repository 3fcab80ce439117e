"""Rows that an epoch leaves out, and evaluations that leave none out."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

from dsload import Loader

pytestmark = [pytest.mark.server, pytest.mark.usefixtures("no_servers_left")]


def counted(batches: list[dict[str, Any]]) -> list[int]:
    """The examples that count. A filler has no label, and no place in the order."""
    out = []
    for b in batches:
        for example, row, labels in zip(b["example"].tolist(), b["row"].tolist(), b["labels"]):
            if example >= 0:
                out.append(example)
            else:
                assert (example, row) == (-1, -1) and (labels == -100).all()
    return out


@pytest.mark.parametrize("in_process", [False, True])
@pytest.mark.parametrize(
    "shape",
    [
        {"split": "val"},
        {"shuffle": "none"},
        {"split": "val", "balance": "quadratic"},
        {"split": "val", "max_tokens": 700, "batch_size": None},
    ],
    ids=str,
)
def test_an_evaluation_has_every_row_once(
    dataset: str, shape: dict[str, Any], in_process: bool, capfd: pytest.CaptureFixture[str]
) -> None:
    for world in (2, 7):
        ranks = []
        for rank in range(world):
            options: dict[str, Any] = {"batch_size": 16, **shape}
            with Loader(dataset, output="numpy", rank=rank, world=world, in_process=in_process, **options) as loader:
                ranks.append(list(loader))
                rows = loader.num_examples
        assert sorted(e for r in ranks for e in counted(r)) == list(range(rows))
        assert len({len(r) for r in ranks}) == 1, "ranks that take other numbers of steps wait for each other for ever"
        assert all(np.array_equal(a["next"][:1], b["next"][:1]) for r in ranks for a, b in zip(r, ranks[0]))
    assert "left out" not in capfd.readouterr().err


@pytest.mark.parametrize("in_process", [False, True])
@pytest.mark.parametrize(
    "shape",
    [
        {"world": 2},
        {"split": "val", "tail": "drop", "batch_size": 64},
        {"max_tokens": 700, "world": 3},
        {"max_tokens": 2000, "tail": "drop"},
    ],
    ids=str,
)
def test_rows_that_are_left_out_are_counted(
    dataset: str, shape: dict[str, Any], in_process: bool, capfd: pytest.CaptureFixture[str]
) -> None:
    world, seen = shape.get("world", 1), 0
    for rank in range(world):
        with Loader(
            dataset, output="numpy", rank=rank, in_process=in_process, **{"batch_size": 64, "world": world, **shape}
        ) as loader:
            for epoch in range(2):
                seen += sum(len(b["example"]) for b in loader) if epoch == 0 else 0
            rows = loader.num_examples
    said = capfd.readouterr().err
    assert said.count("left out") == 1 and f"note: {rows - seen} of {rows} rows of an epoch are left out" in said


def test_packed_rows_that_are_left_out_are_counted(dataset: str, capfd: pytest.CaptureFixture[str]) -> None:
    options: dict[str, Any] = {"output": "numpy", "pack": "bfd", "max_length": 90, "batch_size": 4}
    with Loader(dataset, **options) as loader:
        rows = sum(len(b["row"]) for b in loader)
    for in_process in (False, True):
        capfd.readouterr()
        with Loader(dataset, rank=0, world=3, in_process=in_process, **options) as loader:
            left = rows - 3 * sum(len(b["row"]) for b in loader)
        said = capfd.readouterr().err
        assert said.count("left out") == 1 and f"the last {left} rows that were packed are left out" in said


@pytest.mark.parametrize("in_process", [False, True])
def test_tokens_that_packing_drops_are_counted(
    dataset: str, in_process: bool, capfd: pytest.CaptureFixture[str]
) -> None:
    def tokens(**options: Any) -> int:
        with Loader(dataset, output="numpy", batch_size=4, in_process=in_process, **options) as loader:
            return sum(int(b["length"].sum()) for b in loader)

    whole = tokens()
    assert "dropped" not in capfd.readouterr().err
    for policy, length in (("bfd", 7), ("bestfit", 7), ("bfd", 20), ("bfd", 5000), ("bfd_split", 7), ("wrapped", 7)):
        dropped = whole - tokens(pack=policy, max_length=length)
        assert (dropped > 0) == (policy in ("bfd", "bestfit") and length < 5000)
        said = capfd.readouterr().err
        assert said.count("dropped") == (dropped > 0)
        assert dropped == 0 or f"at least {dropped} of {whole} tokens of an epoch are dropped" in said
    tokens(pack="bfd", max_length=7, world=2, rank=1)
    assert "dropped" not in capfd.readouterr().err


def test_a_loop_that_ends_each_epoch_early_is_named(dataset: str, capfd: pytest.CaptureFixture[str]) -> None:
    def first(loader: Loader, batches: int) -> list[int]:
        return counted(list(itertools.islice(loader, batches)))

    with Loader(dataset, batch_size=16, output="numpy") as loader:
        whole = counted(list(loader))
        loader.set_epoch(0)
        for batches in 1, 1, 1, 3, len(loader), 3, len(loader):
            first(loader, batches)
        for epoch in range(3):
            loader.set_epoch(epoch)
            first(loader, 3)
        assert capfd.readouterr().err == ""
        loader.set_epoch(0)
        assert first(loader, 3) == first(loader, 3) == first(loader, 3) == whole[:48]
        said = capfd.readouterr().err
        assert "after 3 batches" in said and "loader.load_state_dict(loader.state_dict())" in said
        loader.load_state_dict(loader.state_dict())
        assert first(loader, 3) == whole[48:96]
        first(loader, 3)
        assert capfd.readouterr().err == "", "it is said once"
