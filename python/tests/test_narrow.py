"""wire=narrow: what the client completes equals what the server sends without it."""

from __future__ import annotations

import pathlib
from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import dsload
from dsload._feed.feed import Feed
from dsload._feed.narrow import NarrowDecoder
from dsload._feed.tensors import NumpyOutput, TorchOutput
from dsload._feed.transport import StreamCut
from dsload._query import Query

TESTDATA = pathlib.Path(__file__).resolve().parent.parent.parent / "testdata" / "datasets"
SERVED = ["all", "plain", "lines"]  # targets, loss masks and packed rows; ids of two bytes; the same of several shards


@pytest.fixture(scope="module")
def feeds(dataset: str) -> Iterator[dict[str, Feed]]:
    folders = {"lines": dataset, **{name: str(TESTDATA / name) for name in ("all", "plain")}}
    loaders = {name: dsload.Loader(folder, output="numpy") for name, folder in folders.items()}
    yield {name: loader._feed for name, loader in loaders.items() if loader._feed is not None}
    for loader in loaders.values():
        loader.close()


def batches(feed: Feed, query: Query, narrow: bool, keep: Any = None, output: Any = NumpyOutput) -> list[Any]:
    feed._narrow = narrow
    try:
        return list(feed.stream(query, keep, output, None))
    finally:
        feed._narrow = True


def assert_equal(narrow: list[Any], full: list[Any]) -> None:
    assert len(narrow) == len(full) > 0
    for a, b in zip(narrow, full):
        assert list(a) == list(b)
        for name in b:
            assert a[name].dtype == b[name].dtype and a[name].flags.writeable
            np.testing.assert_array_equal(a[name], b[name], name)


QUERIES: list[dict[str, Any]] = [
    {},
    {"dtype": "int32", "batch_size": 7},
    {"padding_side": "left", "bucket": 64, "group": 8},
    {"padding": "max_length", "pad_to_multiple_of": 24},
    {"pad_to_multiple_of": 16, "shuffle": "none"},
    {"labels": "none"},
    {"labels": "causal", "padding_side": "left"},
    {"labels": "causal", "borders": "keep"},
    {"max_tokens": 4096},
    {"world": 7, "rank": 6, "tail": "once", "batch_size": 16},
    {"world": 3, "rank": 2, "tail": "pad", "labels": "causal"},
    {"world": 4, "rank": 1, "balance": "tokens", "tail": "once", "batch_size": 3},
    {"pack": "bfd", "max_length": 700, "labels": "causal"},
    {"pack": "wrapped", "max_length": 600, "labels": "causal", "borders": "keep", "world": 2, "tail": "once"},
    {"pack": "bfd_split", "max_length": 900, "labels": "none", "padding_side": "left", "dtype": "int32"},
    {"start": 37, "epochs": 2, "seed": 5},
]


@pytest.mark.server
@pytest.mark.parametrize("name", SERVED)
@pytest.mark.parametrize("given", QUERIES, ids=str)
def test_batches_are_the_same(feeds: dict[str, Feed], name: str, given: dict[str, Any]) -> None:
    query = Query(**{"seed": 3, **given}).validate()
    assert_equal(batches(feeds[name], query, True), batches(feeds[name], query, False))


@pytest.mark.server
@pytest.mark.parametrize("few", [0, 1 << 30])  # all short rows are padded one by one, none is
@pytest.mark.parametrize("side", ["left", "right"])
def test_short_rows_are_padded_the_same_way(
    feeds: dict[str, Feed], monkeypatch: pytest.MonkeyPatch, few: int, side: str
) -> None:
    monkeypatch.setattr("dsload._feed.narrow._FEW", few)
    query = Query(padding_side=side, labels="causal", world=7, rank=6, tail="once", pad_to_multiple_of=8)
    assert_equal(batches(feeds["plain"], query, True), batches(feeds["plain"], query, False))


@pytest.mark.server
@pytest.mark.parametrize(
    "keep", [{"row", "next"}, {"row", "next", "labels"}, {"row", "next", "attention_mask", "length"}]
)
def test_only_columns_that_were_asked_for(feeds: dict[str, Feed], keep: set[str]) -> None:
    got = batches(feeds["lines"], Query(), True, keep)
    assert set(got[0]) == keep
    assert_equal(got, batches(feeds["lines"], Query(), False, keep))


@pytest.mark.server
def test_it_is_asked_for_where_the_server_can(feeds: dict[str, Feed], monkeypatch: pytest.MonkeyPatch) -> None:
    feed = feeds["lines"]
    assert feed._path(Query()) == "/v1/batches?pack=none&wire=narrow"
    assert feed._path(Query(seed=1)).endswith("seed=1&pack=none&wire=narrow")
    monkeypatch.setattr("dsload._feed.feed.WIRES_HEADER", "dsload-others")  # as from a server without the parameter
    feed.manifests()
    assert feed._path(Query()) == "/v1/batches?pack=none"
    monkeypatch.undo()
    feed.manifests()


@pytest.mark.server
@pytest.mark.torch
def test_tensors_may_be_changed(feeds: dict[str, Feed]) -> None:
    output = TorchOutput(False)
    first, second = batches(feeds["lines"], Query(batch_size=4), True, None, output)[:2]
    tensors = output.convert(dict(first))
    before = {name: array.copy() for name, array in second.items()}
    for t in tensors.values():
        t.fill_(9)
    assert all((second[name] == before[name]).all() for name in before)
    assert (tensors["input_ids"] == 9).all() and tensors["input_ids"].data_ptr() != tensors["labels"].data_ptr()


def test_a_stream_without_lengths_is_refused() -> None:
    schema = pa.schema([pa.field("input_ids", pa.list_(pa.uint16())), pa.field("next", pa.int64())])
    with pytest.raises(StreamCut, match="without rows"):
        NarrowDecoder(np.frombuffer(schema.serialize().to_pybytes(), np.uint8), Query(), None, NumpyOutput.allocate)


def test_columns_of_other_lengths_are_a_cut() -> None:
    names = ["input_ids", "segments", "length", "row"]
    columns = [
        pa.array([[1, 2, 3]], pa.list_(pa.uint16())),
        pa.array([[1, 1]], pa.list_(pa.int32())),
        pa.array([3], pa.int32()),
        pa.array([0], pa.int64()),
    ]
    batch = pa.record_batch(columns, names)
    decoder = NarrowDecoder(
        np.frombuffer(batch.schema.serialize().to_pybytes(), np.uint8), Query(), None, NumpyOutput.allocate
    )
    with pytest.raises(StreamCut, match="do not fit"):
        decoder.decode(np.frombuffer(batch.serialize().to_pybytes(), np.uint8))
