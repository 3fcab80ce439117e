"""Loader with torch: tensors without copies, DataLoader with any number of workers, distributed ranks."""

from __future__ import annotations

from typing import Any

import effort
import numpy as np
import pytest
import runs

torch = pytest.importorskip("torch")

from torch.utils.data import DataLoader  # noqa: E402

import dsload  # noqa: E402
from dsload import Loader  # noqa: E402

pytestmark = [pytest.mark.torch, pytest.mark.server, pytest.mark.usefixtures("no_servers_left")]


def examples(batches: Any) -> list[int]:
    return [int(e) for b in batches for e in b["example"]]


def test_tensors_are_those_of_numpy_without_a_copy(dataset: str) -> None:
    with Loader(dataset, batch_size=8) as a, Loader(dataset, batch_size=8, output="numpy") as b:
        assert isinstance(a, Loader) and isinstance(a, torch.utils.data.IterableDataset)
        assert not isinstance(b, torch.utils.data.IterableDataset)
        for got, want in zip(a, b):
            for name, tensor in got.items():
                assert isinstance(tensor, torch.Tensor)
                np.testing.assert_array_equal(tensor.numpy(), want[name])
            whole = [got[n] for n in ("input_ids", "attention_mask", "labels")]
            places = [t.data_ptr() for t in whole]
            assert all(0 < abs(x - places[0]) < 4 * whole[0].nbytes + 4096 for x in places[1:]), (
                "columns lie in one message"
            )


# Each spawned process takes seconds to start: of what they add, pickling, one case shows all, and one of a server that
# has torch already.
@pytest.mark.parametrize(
    ("workers", "context", "in_process"),
    [
        (0, "fork", False),
        (0, "fork", True),
        (1, "fork", False),
        (3, "fork", True),
        (1, "spawn", True),
        (2, "forkserver", False),
        *effort.soaked((1, "fork", True), (3, "fork", False)),
    ],
)
def test_workers_yield_what_one_process_yields(dataset: str, workers: int, context: str, in_process: bool) -> None:
    runs.processes_of_their_own()
    cases: list[dict[str, Any]] = [{"batch_size": 36, "epochs": 2}]
    if context == "fork":
        cases += [
            {"batch_size": 26, "rank": 1, "world": 2},
            {"batch_size": 50, "rank": 0, "world": 3, "tail": "keep"},
            {"batch_size": 43, "tail": "drop"},
            {"batch_size": 16, "rank": 2, "world": 3, "tail": "pad"},
            {"batch_size": 16, "rank": 2, "world": 3, "tail": "once"},
            {"max_tokens": 900, "epochs": 2},
            {"max_tokens": 900, "rank": 1, "world": 2},
        ]
    for parameters in cases:
        with Loader(dataset, seed=4, in_process=in_process, **parameters) as loader:
            start = {**loader.state_dict(), "start": 77}
            loader.load_state_dict(start)
            want = list(loader)
            loader.load_state_dict(start)
            feed = DataLoader(
                loader, batch_size=None, num_workers=workers, multiprocessing_context=context if workers else None
            )
            got = list(feed)
            assert len(got) == len(want), parameters
            for g, w in zip(got, want):
                for name in w:
                    assert torch.equal(g[name], w[name]), (parameters, name)
            del feed


def test_state_behind_a_batch_of_workers_resumes_exactly(dataset: str) -> None:
    with Loader(dataset, batch_size=10, seed=4) as loader:
        whole = examples(loader)
        loader.set_epoch(0)
        seen: list[int] = []
        for batch in DataLoader(loader, batch_size=None, num_workers=2):
            seen += examples([batch])
            if len(seen) >= 300:
                state = loader.state_dict(after=batch)
                break
    with Loader(dataset, batch_size=32, seed=4) as again:
        again.load_state_dict(state)
        assert seen + examples(again) == whole


def test_workers_see_the_epoch_that_was_set(dataset: str) -> None:
    with Loader(dataset, batch_size=50) as loader:
        epochs = [examples(loader), examples(loader)]
        for epoch in (0, 1):
            loader.set_epoch(epoch)
            assert examples(DataLoader(loader, batch_size=None, num_workers=2)) == epochs[epoch]


def test_an_error_in_a_worker_reaches_the_trainer(dataset: str) -> None:
    with Loader(dataset, labels="seq2seq") as loader, pytest.raises(dsload.FeedError, match="seq2seq"):
        runs.every(DataLoader(loader, batch_size=None, num_workers=2))


def test_collate_function(dataset: str) -> None:
    with Loader(dataset, batch_size=16) as loader:
        want = examples(loader)
        loader.set_epoch(0)
        assert examples(DataLoader(loader, batch_size=1, collate_fn=dsload.first)) == want


def _rank(rank: int, world: int, dataset: str) -> tuple[int, int, list[int]]:
    torch.distributed.init_process_group("gloo")
    with Loader(dataset, batch_size=8, tail="keep") as loader:
        found = (loader.rank, loader.world, examples(loader))
    torch.distributed.barrier()
    torch.distributed.destroy_process_group()
    return found


def test_ranks_of_torch_distributed(dataset: str) -> None:
    results = runs.on_gloo(2, _rank, dataset)
    assert [r[:2] for r in results] == [(0, 2), (1, 2)]
    with Loader(dataset) as loader:
        assert sorted(results[0][2] + results[1][2]) == list(range(loader.num_examples))


@pytest.mark.cuda
def test_pinned_memory(dataset: str) -> None:
    with Loader(dataset, batch_size=8, pin_memory=True) as loader, Loader(dataset, batch_size=8) as plain:
        for got, want in zip(loader, plain):
            assert all(t.is_pinned() for t in got.values())
            assert all(torch.equal(got[n].to("cuda", non_blocking=True).cpu(), want[n]) for n in want)
