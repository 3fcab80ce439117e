"""Batches that a wrapper drops at the beginning are not read: Accelerate's skip_first_batches; and several readers of
one rank."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")

import runs  # noqa: E402
from torch.utils.data import DataLoader  # noqa: E402

import dsload  # noqa: E402
from dsload import Loader  # noqa: E402

pytestmark = [pytest.mark.torch, pytest.mark.server, pytest.mark.usefixtures("no_servers_left")]


def examples(batches: Any) -> list[list[int]]:
    return [b["example"].tolist() for b in batches]


@pytest.mark.trainers
@pytest.mark.parametrize(
    "shape", [{}, {"batch_size": 70, "tail": "keep"}, {"batch_size": 70, "tail": "drop"}, {"max_tokens": 2000}], ids=str
)
@pytest.mark.parametrize("form", ["bare", "prepared", "collated", "workers"])
def test_skip_first_batches(dataset: str, began: list[int], shape: Any, form: str) -> None:
    accelerate = pytest.importorskip("accelerate")
    accelerator = accelerate.Accelerator(cpu=True)
    shape = {"batch_size": 50, "seed": 2, **shape}
    options = {
        "collated": {"batch_size": 1, "collate_fn": dsload.first},
        "workers": {"batch_size": None, "num_workers": 2},
    }
    with Loader(dataset, **shape) as loader:
        want, second = examples(loader), examples(loader)
        # Each iteration by workers costs two forks.
        for skipped in (3, len(want)) if form == "workers" else (1, 3, len(want) - 1, len(want), len(want) + 5):
            loader.set_epoch(0)
            began.clear()
            feed: Any = DataLoader(loader, **options.get(form, {"batch_size": None}))
            if form == "prepared":
                feed = accelerator.prepare(feed)
            assert examples(accelerate.skip_first_batches(feed, skipped)) == want[skipped:], skipped
            if form != "workers" and not loader._query.max_tokens and skipped < len(want):
                assert began == [skipped * loader._query.rows_a_batch], "batches that are dropped were read"
            assert examples(loader) == second, "the next iteration is the next epoch"


@pytest.mark.trainers
def test_skipping_without_a_data_loader(dataset: str) -> None:
    accelerate = pytest.importorskip("accelerate")
    with Loader(dataset, batch_size=50) as loader:
        with pytest.raises(AttributeError, match=r"DataLoader\(loader, batch_size=None\), or .*load_state_dict"):
            accelerate.skip_first_batches(loader, 2)
        assert not hasattr(loader, "dataset")


@pytest.mark.trainers
def test_a_state_after_skipping(dataset: str) -> None:
    accelerate = pytest.importorskip("accelerate")
    with Loader(dataset, batch_size=50) as loader:
        want = examples(loader)
        loader.set_epoch(0)
        for batch in accelerate.skip_first_batches(DataLoader(loader, batch_size=None), 4):
            assert loader.state_dict() == loader.state_dict(after=batch)
            break
        state = loader.state_dict()
        assert state["start"] == 250
        loader.load_state_dict(state)
        assert examples(loader) == want[5:]


def _peer(rank: int, world: int, socket: str, out: str) -> None:
    """Process `rank` of 4: two data-parallel groups of two tensor-parallel peers."""
    torch.distributed.init_process_group("gloo", rank=rank, world_size=world)
    mesh = torch.distributed.init_device_mesh("cpu", (2, 2), mesh_dim_names=("dp", "tp"))
    with Loader(
        socket=socket, batch_size=30, seed=5, rank=mesh.get_local_rank("dp"), world=mesh["dp"].size()
    ) as loader:
        notes = runs.Notes(Path(out) / f"first-{rank}")
        for step, batch in enumerate(loader):
            same = [torch.zeros_like(batch["input_ids"]) for _ in range(2)]
            torch.distributed.all_gather(same, batch["input_ids"], group=mesh["tp"].get_group())
            assert torch.equal(same[0], same[1])
            notes.add(batch)
            if step == 4:
                state = loader.state_dict()
                break
    # Resumed without data parallelism: all four read the same.
    with Loader(socket=socket, batch_size=60, seed=5, rank=0, world=1) as loader:
        loader.load_state_dict(state)
        for batch in loader:
            runs.Notes(Path(out) / f"rest-{rank}").add(batch)
    torch.distributed.barrier()
    torch.distributed.destroy_process_group()


def test_peers_of_one_rank_read_the_same(dataset: str, tmp_path: Path) -> None:
    with Loader(dataset, output="numpy") as own:
        runs.on_gloo(4, _peer, own._endpoint.path, str(tmp_path))
    notes = [[(tmp_path / f"{name}-{r}").read_text() for r in range(4)] for name in ("first", "rest")]
    first, rest = notes
    assert first[0] == first[1] != first[2] == first[3] and len(set(rest)) == 1
    seen = [e for text in (first[0], first[2], rest[0]) for line in text.splitlines() for e in json.loads(line)]
    assert sorted(seen) == list(range(900))
