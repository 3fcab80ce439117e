"""Where epochs end and the next ones begin: for trainers that count batches, for DataLoader's workers, and after a
resume."""

from __future__ import annotations

import itertools
import json
import os
import subprocess
import sys
from typing import Any, Optional

import effort
import pytest
import runs

import dsload
from dsload import Loader
from dsload._torch.shared_start import SharedStart

pytestmark = [pytest.mark.server, pytest.mark.usefixtures("no_servers_left")]


def examples(batches: Any) -> list[int]:
    return [int(e) for b in batches for e in b["example"]]


def counted(loader: Loader, steps: int) -> list[int]:
    """As a trainer does that never asks past the last batch."""
    return examples(itertools.islice(loader, steps))


SHAPES: list[dict[str, Any]] = [
    {"batch_size": 16},
    {"batch_size": 18},
    {"batch_size": 1000},
    {"batch_size": 16, "tail": "drop"},
    {"batch_size": 16, "rank": 1, "world": 2},
    {"batch_size": 7, "rank": 2, "world": 3, "tail": "keep"},
    {"batch_size": 100, "rank": 2, "world": 5, "tail": "keep"},
    {"batch_size": 13, "rank": 0, "world": 2, "tail": "pad"},
    {"max_tokens": 700},
    {"max_tokens": 700, "tail": "drop"},
    {"max_tokens": 700, "rank": 1, "world": 3},
    {"max_tokens": 700, "rank": 2, "world": 3, "tail": "keep"},
    {"max_tokens": 700, "rank": 1, "world": 2, "tail": "pad"},
    {"batch_size": 13, "rank": 2, "world": 3, "tail": "once"},
    {"max_tokens": 700, "rank": 2, "world": 3, "tail": "once"},
    {"batch_size": 16, "epochs": 2},
    {"batch_size": 16, "tail": "drop", "epochs": 2},
]


@pytest.mark.parametrize("in_process", [False, True])
@pytest.mark.parametrize("shape", SHAPES, ids=lambda p: ",".join(f"{k}={v}" for k, v in p.items()))
def test_an_epoch_ends_with_its_last_batch(dataset: str, shape: dict[str, Any], in_process: bool) -> None:
    with Loader(dataset, seed=6, output="numpy", in_process=in_process, **shape) as loader:
        passes = [list(loader) for _ in range(3)]
        want = [examples(p) for p in passes]
        assert want[0] != want[1] != want[2]
        if not loader._query.max_tokens:
            assert len(loader) == len(passes[0])
        loader.set_epoch(0)
        assert [counted(loader, len(p)) for p in passes] == want
        assert loader.epoch == 3 * loader._query.epochs
        loader.set_epoch(0)
        counted(loader, len(passes[0]))
        state = loader.state_dict()
        assert counted(loader, len(passes[1])) == want[1]
    if shape.get("tail") == "keep" and shape.get("world", 1) > 1:
        return  # a state of the last step but one holds the rows that other ranks have in the last
    assert state["start"] == loader.num_examples * loader._query.epochs
    with Loader(dataset, seed=6, output="numpy", in_process=in_process, **shape) as again:
        again.load_state_dict(state)
        assert [counted(again, len(p)) for p in passes[1:]] == want[1:]


@pytest.mark.parametrize("shape", [{"batch_size": 16}, {"max_tokens": 700}], ids=str)
def test_a_state_in_what_drop_leaves_out_goes_on_with_the_next_epoch(dataset: str, shape: dict[str, Any]) -> None:
    with Loader(dataset, seed=6, output="numpy", tail="drop", **shape) as loader:
        examples(loader)
        second = examples(loader)
        loader.load_state_dict({**loader.state_dict(), "start": loader.num_examples - 1})
        assert examples(loader) == second
        assert loader.epoch == 2


def test_an_iteration_that_is_given_up_begins_its_own_epoch_again(dataset: str) -> None:
    with Loader(dataset, batch_size=16, output="numpy") as loader:
        epochs = [examples(loader) for _ in range(4)]
        loader.load_state_dict({**loader.state_dict(), "start": 3 * loader.num_examples + 40})
        assert examples(itertools.islice(loader, 2)) == epochs[3][40:72]
        assert examples(loader) == epochs[3]
        old, new = iter(loader), None
        next(old)
        loader.set_epoch(2)
        new = counted(loader, len(loader))
        assert new == epochs[2]
        list(old)
        assert loader.epoch == 3, "an iteration that was replaced moves nothing"


def test_a_state_is_of_the_iteration_that_goes_on(dataset: str) -> None:
    """A loop inside another over the same loader, as for an evaluation, takes nothing from the outer one."""
    with Loader(dataset, batch_size=100, output="numpy") as loader:
        epochs = [examples(loader) for _ in range(3)]
        loader.set_epoch(0)
        outer = iter(loader)
        begin = examples(itertools.islice(outer, 3))
        assert examples(loader) == epochs[0]
        assert examples(itertools.islice(loader, 2)) == epochs[1][:200]
        begin += examples(itertools.islice(outer, 2))
        state = loader.state_dict()
        assert begin + examples(outer) == epochs[0]
        assert examples(loader) == epochs[1]
        assert next(outer, None) is None and loader.epoch == 2
        loader.load_state_dict(state)
        assert begin + examples(loader) == epochs[0]


def test_closed(dataset: str) -> None:
    for in_process in (False, True):
        for begun in (False, True):
            loader = Loader(dataset, batch_size=4, output="numpy", in_process=in_process)
            batches = iter(loader)
            if begun:
                next(batches)
            loader.close()
            loader.close()
            with pytest.raises(dsload.LoaderClosed, match="closed"):
                next(batches)
            with pytest.raises(dsload.LoaderClosed, match="closed"):
                iter(loader)
            assert "closed" in repr(loader) and loader.num_examples == 900
    with Loader(dataset, output="numpy") as own:
        guest = Loader(socket=own._endpoint.path, output="numpy")
        batches = iter(guest)
        next(batches)
        guest.close()
        with pytest.raises(dsload.LoaderClosed):
            next(batches)
        assert next(iter(own))["row"][0] == 0


@pytest.mark.parametrize("each", [[{"output": "numpy"}], [{}, {"in_process": True}]], ids=str)
def test_the_interpreter_exits_in_the_middle_of_an_epoch_without_a_word(dataset: str, each: Any) -> None:
    code = f"import dsload\nloaders = [dsload.Loader({dataset!r}, batch_size=2, **options) for options in {each!r}]\n"
    code += "feeds = [iter(loader) for loader in loaders]\nfor feed in feeds: next(feed)"
    path = os.pathsep.join(sys.path)
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env={**os.environ, "PYTHONPATH": path}
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_what_is_asked_for_at_the_door(dataset: str, recipes: str) -> None:
    for in_process in (False, True):
        with pytest.raises(ValueError, match=r"'labls'.* input_ids, attention_mask, labels, .*next"):
            Loader(dataset, columns=("input_ids", "labls"), in_process=in_process)
        with pytest.raises(ValueError, match="'labels'"):
            Loader(dataset, columns=("input_ids", "labels"), labels="none", in_process=in_process)
        with Loader(dataset, columns="input_ids", output="numpy", in_process=in_process) as loader:
            assert list(next(iter(loader))) == ["input_ids"]
    orders = []
    for shuffle in (True, "full", False, "none"):
        with Loader(dataset, shuffle=shuffle, seed=2, output="numpy") as loader:
            orders.append(examples(loader))
            assert f"shuffle={'full' if shuffle in (True, 'full') else 'none'}" in repr(loader)
    assert orders[0] == orders[1] != orders[2] == orders[3] == list(range(900))
    with Loader(dataset, output="numpy") as own:
        path = own._endpoint.path
        assert dataset in repr(own) and "900 rows" in repr(own) and "epoch 0, row 0" in repr(own)
        with Loader(path, output="numpy") as guest:
            assert examples(guest) == examples(own) and path in repr(guest)
    with pytest.raises(dsload.FeedError, match=r"127\.0\.0\.1:1 "):
        Loader("http://127.0.0.1:1", reconnect_seconds=0)


def test_targets_are_labels_without_a_word(recipes: str) -> None:
    for in_process in (False, True):
        with (
            Loader(recipes, output="numpy", in_process=in_process) as a,
            Loader(recipes, output="numpy", labels="seq2seq") as b,
        ):
            assert [x["labels"].tolist() for x in a] == [x["labels"].tolist() for x in b]


class TestWorkers:
    """Without set_epoch no epoch repeats another, with any number of workers."""

    @pytest.mark.torch
    @pytest.mark.parametrize(
        ("workers", "method", "persistent"),
        [
            (0, None, False),
            (1, "fork", False),
            (2, "fork", True),
            (1, "forkserver", True),
            *effort.soaked((1, "fork", True), (2, "fork", False), (2, "forkserver", False)),
        ],
    )
    def test_each_iteration_is_the_next_epoch(self, dataset: str, workers: int, method: Any, persistent: bool) -> None:
        torch = pytest.importorskip("torch")
        runs.processes_of_their_own()  # whose server has torch already
        with Loader(dataset, batch_size=50, seed=4, rank=0, world=1) as loader:
            want = [examples(loader) for _ in range(6)]
            loader.set_epoch(0)
            feed = torch.utils.data.DataLoader(
                loader,
                batch_size=None,
                num_workers=workers,
                multiprocessing_context=method,
                persistent_workers=persistent,
            )
            assert examples(itertools.islice(feed, len(feed))) == want[0], "as trainers do that count"
            assert examples(feed) == want[1]
            loader.set_epoch(4)
            assert examples(feed) == want[4]
            assert loader.epoch == 5
            loader.load_state_dict({**loader._epochs.state(0), "start": 2 * 900 + 100})
            assert examples(feed) == want[2][100:]
            assert examples(feed) == want[3]
            del feed

    @pytest.mark.torch
    def test_seeds_that_repeat_do_not_repeat_epochs(self, dataset: str) -> None:
        torch = pytest.importorskip("torch")
        with Loader(dataset, batch_size=50, seed=4) as loader:
            want = [examples(loader) for _ in range(3)]
            loader.set_epoch(0)
            feed = torch.utils.data.DataLoader(loader, batch_size=None, num_workers=2)
            for epoch in want:
                torch.manual_seed(42)
                assert examples(feed) == epoch

    @pytest.mark.torch
    def test_a_state_needs_a_batch_where_workers_read_ahead(self, dataset: str) -> None:
        torch = pytest.importorskip("torch")
        with Loader(dataset, batch_size=50, seed=4) as loader:
            feed = iter(torch.utils.data.DataLoader(loader, batch_size=None, num_workers=1))
            batch = next(feed)
            with pytest.raises(ValueError, match="after=batch"):
                loader.state_dict()
            assert loader.state_dict(after=batch)["start"] == 50
            with pytest.raises(ValueError, match="'next'"):
                loader.state_dict(after={})
            del feed
            loader.set_epoch(3)
            assert loader.state_dict()["start"] == 2700


@pytest.mark.torch
@pytest.mark.parametrize(
    "shape", [{"batch_size": 64}, {"batch_size": 64, "tail": "drop"}, {"max_tokens": 3000}], ids=str
)
@pytest.mark.parametrize("workers", [None, 0, 2])
def test_an_iteration_of_several_epochs_ends_where_it_would_have(
    dataset: str, shape: Any, workers: Optional[int]
) -> None:
    torch = pytest.importorskip("torch")

    def batches(loader: Loader) -> Any:
        return loader if workers is None else torch.utils.data.DataLoader(loader, batch_size=None, num_workers=workers)

    with Loader(dataset, seed=5, epochs=2, **shape) as loader:
        whole = list(loader)
        want, then, n = examples(whole), examples(loader), len(whole)
        assert loader.epoch == 4 and want != then
    for stop in (0, 1, n // 2, n // 2 + 1, n - 1, n) if workers is None else (n // 2, n - 1):
        with Loader(dataset, seed=5, epochs=2, **shape) as loader:
            taken = list(itertools.islice(batches(loader), stop))
            state = json.loads(json.dumps(loader.state_dict(after=taken[-1] if taken else None)))
        with Loader(dataset, seed=5, epochs=2, **shape) as loader:
            loader.load_state_dict(state)
            loader.set_epoch(loader.epoch)  # as trainers do
            assert loader.state_dict() == state
            got = examples(taken) + examples(batches(loader))
            assert got == (want if stop < n else want + then), f"stopped after {stop} of {n}"
            assert loader.epoch == (2 if stop < n else 4)


def test_what_is_no_state_is_refused(dataset: str) -> None:
    with Loader(dataset, epochs=2) as loader:
        state = loader.state_dict()
        for bad in (
            None,
            5,
            "x",
            [],
            {},
            {**state, "start": 1.5},
            {**state, "start": 10**30},
            {**state, "end": 7},
            {**state, "end": "x"},
        ):
            with pytest.raises(ValueError, match="not a state of this loader"):
                loader.load_state_dict(bad)  # type: ignore[arg-type]
        for epoch in (1.5, "1", None, -1):
            with pytest.raises(ValueError, match="epoch must"):
                loader.set_epoch(epoch)  # type: ignore[arg-type]


def test_places_of_processes_that_share_an_ancestor_are_their_own() -> None:
    import multiprocessing

    place = SharedStart()
    place.set(70)
    for method in ("fork", "spawn"):
        context = multiprocessing.get_context(method)
        out = context.Queue()
        processes = [context.Process(target=_move, args=(place, out)) for _ in range(2)]
        for p in processes:
            p.start()
        assert [out.get(timeout=runs.HANGS) for _ in processes] == [(70, 75), (70, 75)]
        for p in processes:
            p.join()
    assert place.start == 70


def _move(place: SharedStart, out: Any) -> None:
    first = place.start
    place.set(first + 5)
    out.put((first, place.start))
