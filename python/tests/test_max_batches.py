"""Loader.max_batches: never less than the batches that come, and equal where that can be known."""

from __future__ import annotations

import collections
import random
from typing import Any

import effort
import pytest

import dsload
from dsload import Loader
from dsload._order.packed_count import Bucket, most_rows
from dsload._order.packing import PackOptions, pack

PACKED = ("wrapped", "bfd", "bfd_split")


def histogram(lengths: list[int]) -> list[Bucket]:
    """As the manifest counts lengths (shard/FORMAT.md)."""
    buckets: dict[int, list[int]] = collections.defaultdict(lambda: [0, 0])
    for n in lengths:
        width = 1 if n < 128 else 1 << (n.bit_length() - 7)
        buckets[n // width * width][0] += 1
        buckets[n // width * width][1] += n
    return [(least, rows, tokens) for least, (rows, tokens) in sorted(buckets.items())]


def some_lengths(rng: random.Random, length: int) -> list[int]:
    mean = rng.choice([length / 9, length / 2, 2 * length])
    kinds = (
        lambda: int(rng.expovariate(1 / mean)) + 1,
        lambda: rng.choice([1, length // 3 + 1, length // 2 + 1, length, 3 * length]),
        lambda: rng.randint(1, length),
    )
    draw = rng.choice(kinds)
    return [draw() for _ in range(rng.randint(1, 300))]


@pytest.mark.parametrize("policy", PACKED)
def test_rows_of_random_lengths(policy: str, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = random.Random(effort.seed(1))
    for _ in range(150):
        length = rng.choice([5, 41, 100, 700])
        lengths = some_lengths(rng, length)
        options = PackOptions(policy, length, sum(lengths), max(lengths))
        whole = len(pack(policy, length, lengths))
        most = most_rows(options, len(lengths), histogram(lengths))
        if policy == "wrapped" or max(lengths) < 128:
            assert most == whole
        assert whole <= most <= 1.7 * whole + 2
        for window in (16, 64):  # in any order
            if rng.random() < 0.3:
                lengths.sort()
            with monkeypatch.context() as patched:
                patched.setattr(PackOptions, "window", lambda self, rows, window=window: window)
                most = most_rows(options, len(lengths), histogram(lengths))
            parts = [lengths[at : at + window] for at in range(0, len(lengths), window)]
            assert sum(len(pack(policy, length, part)) for part in parts) <= most


@pytest.mark.server
@pytest.mark.parametrize("policy", PACKED)
def test_batches_of_packed_rows(dataset: str, policy: str) -> None:
    even: list[dict[str, Any]] = [
        {"max_length": 64, "batch_size": 2, "epochs": 2},
        {"max_length": 100, "batch_size": 7, "tail": "drop"},
        {"max_length": 90, "rank": 0, "world": 3, "tail": "keep", "batch_size": 4},
        {"max_length": 90, "rank": 2, "world": 3, "tail": "once", "batch_size": 4},
        {"max_length": 90, "rank": 1, "world": 3, "tail": "pad", "batch_size": 4},
    ]
    for shape in even:
        with Loader(dataset, pack=policy, output="numpy", seed=3, **shape) as loader:
            assert loader.max_batches == sum(1 for _ in loader), shape
            with pytest.raises(TypeError, match=f"at most {loader.max_batches} here"):
                len(loader)


@pytest.mark.server
@pytest.mark.parametrize(
    "shape",
    [
        {},
        {"batch_size": 20},
        {"padding": "max_length"},
        {"pad_to_multiple_of": 32},
        {"tail": "drop", "world": 2, "rank": 1},
        {"tail": "pad", "world": 3, "rank": 2},
        {"tail": "once", "world": 3, "rank": 0},
        {"balance": "tokens", "world": 2},
        {"bucket": 300},
        {"pack": "bfd", "max_length": 90, "epochs": 2},
        {"pack": "wrapped", "max_length": 200},
    ],
    ids=str,
)
def test_batches_under_a_budget(dataset: str, shape: dict[str, Any]) -> None:
    with Loader(dataset, output="numpy", max_tokens=2000, **{"rank": 0, "world": 1, **shape}) as loader:
        for _ in range(2):
            most, found = loader.max_batches, sum(1 for _ in loader)
            assert most is not None and found <= most <= 6 * found


@pytest.mark.server
def test_where_there_is_no_bound(dataset: str, other_dataset: str) -> None:
    with Loader(dataset, output="numpy", batch_size=16) as loader:
        assert loader.max_batches == len(loader)
    with Loader(dataset, output="numpy", pack="bfd", epochs=0) as loader:
        assert loader.max_batches is None
        with pytest.raises(TypeError, match="endless"):
            len(loader)
    both = {"a": dataset, "b": other_dataset}
    with Loader(both, output="numpy", pack="bfd") as loader:
        assert loader.max_batches is None
    with Loader(both, output="numpy", max_tokens=2000) as loader:
        assert loader.max_batches is not None and loader.max_batches >= sum(1 for _ in loader)


def test_lengths_that_contradict_the_rows() -> None:
    from dsload._feed.served import lengths_of

    split = {"name": "train", "examples": 3, "tokens": 12}
    assert lengths_of({**split, "lengths": [[2, 1, 2], [5, 2, 10]]}, "x") == [(2, 1, 2), (5, 2, 10)]
    for bad in (None, 5, [5], [[1, 2]], [[2, 1, 2]], [[2, 1, 2], [5, 2, 11]], [[2, 1, True], [5, 2, 11]]):
        with pytest.raises(dsload.Corrupt, match="lengths of split train"):
            lengths_of({**split, "lengths": bad}, "x")
