"""Tensor and pipeline parallel peers: several readers of one (rank, start) get equal batches."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from runs import on_gloo

from dsload import Loader

pytestmark = pytest.mark.server


def peer(rank: int, world: int, socket: str, out: str, balance: str) -> None:
    """Of four processes, two by two share a data-parallel rank."""
    del world
    with Loader(
        socket=socket, rank=rank // 2, world=2, batch_size=8, seed=3, tail="keep", output="numpy", balance=balance
    ) as loader:
        state = None
        with open(f"{out}/{rank}", "wb") as f:
            for i, batch in enumerate(loader):
                for name in sorted(batch):
                    np.save(f, batch[name])
                if i == 2:
                    state = loader.state_dict()
        assert state is not None
        loader.load_state_dict(state)
        np.save(f"{out}/{rank}.npy", next(iter(loader))["example"])


@pytest.mark.parametrize("balance", ["none", "tokens"])
def test_peers_of_a_rank_get_equal_batches(dataset: str, tmp_path: Path, balance: str) -> None:
    pytest.importorskip("torch")
    with Loader(dataset, output="numpy") as loader:
        assert loader._endpoint is not None
        rows = loader.num_examples
        on_gloo(4, peer, loader._endpoint.path, str(tmp_path), balance)
    read = [(tmp_path / str(r)).read_bytes() for r in range(4)]
    assert read[0] == read[1] and read[2] == read[3] and read[0] != read[2]
    after: list[Any] = [np.load(tmp_path / f"{r}.npy").tolist() for r in range(4)]
    assert after[0] == after[1] and after[2] == after[3]
    assert rows > 0


def test_readers_in_one_process_may_be_apart(dataset: str) -> None:
    """A pipeline's last stage reads labels of what its first stage read steps before."""
    with Loader(dataset, output="numpy", rank=1, world=3, tail="keep", columns=["input_ids", "row", "next"]) as first:
        assert first._endpoint is not None
        with Loader(
            socket=first._endpoint.path, output="numpy", rank=1, world=3, tail="keep", columns=["labels", "row", "next"]
        ) as last:
            ahead = iter(first)
            waiting = [next(ahead) for _ in range(3)]
            for batch in last:
                mine = waiting.pop(0)
                assert mine["row"].tolist() == batch["row"].tolist()
                assert np.array_equal(
                    np.where(batch["labels"] < 0, mine["input_ids"], batch["labels"]), mine["input_ids"]
                )
                waiting += [b for b in [next(ahead, None)] if b is not None]
            assert not waiting
