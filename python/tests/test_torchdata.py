"""Workers that keep a state of their own, as torchdata's StatefulDataLoader makes them: a resume yields what is left,
in the same order."""

from __future__ import annotations

import itertools
from typing import Any

import effort
import pytest
import runs

torch = pytest.importorskip("torch")

from torch.utils.data import DataLoader, IterableDataset, get_worker_info  # noqa: E402

from dsload import Loader  # noqa: E402

pytestmark = [pytest.mark.torch, pytest.mark.server, pytest.mark.usefixtures("no_servers_left")]

SHAPES: list[dict[str, Any]] = [
    {"batch_size": 50},
    {"batch_size": 70},
    {"batch_size": 70, "tail": "drop"},
    {"batch_size": 70, "tail": "pad"},
    {"batch_size": 35, "rank": 1, "world": 2, "tail": "keep"},
    {"max_tokens": 2000},
    {"batch_size": 150, "epochs": 2},
    {"batch_size": 9, "pack": "bfd", "max_length": 200},
    {"batch_size": 7, "pack": "wrapped", "max_length": 150, "rank": 1, "world": 2},
]


def examples(batches: Any) -> list[list[int]]:
    return [b["example"].tolist() for b in batches]


class Stated(IterableDataset):  # type: ignore[misc]
    """What torchdata does in each worker: loads its state, iterates, and takes a state after each batch."""

    def __init__(self, loader: Loader, states: Any = None) -> None:
        self.loader, self.states = loader, states

    def __iter__(self) -> Any:
        if self.states is not None:
            self.loader.load_state_dict(self.states[get_worker_info().id])
        batches = iter(self.loader)
        yield get_worker_info().id, None, self.loader.state_dict()
        for batch in batches:
            yield get_worker_info().id, batch["example"].tolist(), self.loader.state_dict()


def read(loader: Loader, workers: int, states: Any = None, stop: Any = None) -> tuple[list[list[int]], dict[int, Any]]:
    """The batches, and the state of each worker after the `stop`-th."""
    got, last = [], {}
    feed = DataLoader(Stated(loader, states), batch_size=None, num_workers=workers, collate_fn=lambda x: x)
    with runs.ended(feed) as batches:
        for worker, batch, state in batches:
            if batch is not None and len(got) == stop:
                break
            last[worker] = state
            if batch is not None:
                got.append(batch)
    return got, last


# A worker costs a fork each: numbers of workers other than two, and a stop before the first batch, are tried with two
# shapes.
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_each_worker_goes_on_where_it_was(dataset: str, shape: Any) -> None:
    with Loader(dataset, seed=4, **shape) as loader:
        want, second = examples(loader), examples(loader)
    tried: tuple[tuple[int, tuple[int, ...]], ...] = ((2, (4, len(want) - 1)),)
    if effort.SOAK or shape in (SHAPES[0], SHAPES[5]):
        tried = ((1, (3,)), (2, (0, 4, len(want) - 1)), (3, (5,)))
    for workers, stops in tried:
        for stop in stops:
            with Loader(dataset, seed=4, **shape) as loader:
                got, states = read(loader, workers, stop=stop)
                assert got == want[:stop] and len(states) == workers
            with Loader(dataset, seed=4, **shape) as loader:
                # DataLoader begins with worker 0 again: its turn is put first, as torchdata does it.
                turn = stop % workers
                states = {w: states[(w + turn) % workers] for w in range(workers)}
                rest, _ = read(loader, workers, states)
                assert rest == want[stop:], (workers, stop)
                assert examples(loader) == second, "what comes after is the next epoch"


def test_a_workers_state_is_refused_elsewhere(dataset: str) -> None:
    with Loader(dataset, batch_size=50) as loader:
        _, states = read(loader, 2, stop=3)
        with pytest.raises(ValueError, match="StatefulDataLoader"):
            loader.load_state_dict(states[0])
        with pytest.raises(ValueError, match=r"workers=2.*state_dict\(after=batch\)"):
            read(loader, 1, states)
    for other in (
        {"batch_size": 25},
        {"batch_size": 50, "rank": 0, "world": 2},
        {"batch_size": 50, "tail": "drop"},
        {"max_tokens": 4000},
    ):
        with Loader(dataset, **other) as loader, pytest.raises(ValueError, match="taken with"):
            read(loader, 2, states)


@pytest.mark.parametrize(
    ("workers", "shape"),
    [
        *((w, s) for w in (0, 2) for s in (SHAPES[1], SHAPES[2], SHAPES[5])),
        (1, SHAPES[5]),
        (3, SHAPES[2]),
        *effort.soaked((1, SHAPES[1]), (1, SHAPES[2]), (3, SHAPES[1]), (3, SHAPES[5])),
    ],
    ids=str,
)
def test_stateful_dataloader(dataset: str, workers: int, shape: Any) -> None:
    stateful = pytest.importorskip("torchdata.stateful_dataloader").StatefulDataLoader
    every: dict[str, Any] = {"batch_size": None, "num_workers": workers}
    with Loader(dataset, seed=4, **shape) as loader:
        want = [examples(loader) for _ in range(3)]
    stops = (1, 4, len(want[0]))
    states = {}
    with Loader(dataset, seed=4, **shape) as loader:
        feed = stateful(loader, **every)
        first = []
        for batch in feed:
            first += examples([batch])
            if len(first) in stops:
                states[len(first)] = feed.state_dict()
        assert first == want[0]
        states["end"] = feed.state_dict()
    for i, stop in enumerate((*stops, "end")):
        persistent = workers > 0 and (i + workers) % 2 == 0  # each stop with and without, over the numbers of workers
        with Loader(dataset, seed=4, **shape) as loader:
            feed = stateful(loader, **every, persistent_workers=persistent)
            feed.load_state_dict(states[stop])
            passes = [examples(feed) for _ in range(2)]
            if stop == "end":
                assert passes == want[1:3]
            else:
                # Where it stopped with the last batch, what is left is empty, or (nothing was known to be over) the
                # next epoch.
                assert passes == [want[0][stop:], want[1]] or (stop == len(want[0]) and passes == want[1:3]), (
                    stop,
                    persistent,
                )
            del feed


def test_a_state_between_snapshots(dataset: str) -> None:
    stateful = pytest.importorskip("torchdata.stateful_dataloader").StatefulDataLoader
    with Loader(dataset, seed=4, batch_size=50) as loader:
        want = examples(loader)
        loader.set_epoch(0)
        feed = stateful(loader, batch_size=None, num_workers=2, snapshot_every_n_steps=4)
        assert examples(itertools.islice(feed, 7)) == want[:7]
        state = feed.state_dict()
    with Loader(dataset, seed=4, batch_size=50) as loader:
        feed = stateful(loader, batch_size=None, num_workers=2, snapshot_every_n_steps=4)
        feed.load_state_dict(state)
        assert examples(feed) == want[7:]
