"""Clients that know nothing of dsload read the same batches as the slow reference makes."""

import json
import os
import pathlib
import subprocess

import duckdb
import polars
import pyarrow as pa
import pyarrow.ipc
import pytest
from plain import lists, stream
from reference_data import need

QUERIES = [
    "seed=5&batch_size=16",
    "seed=5&batch_size=33&bucket=512&group=64&pad_to_multiple_of=8&start=1000",
    "seed=1&shuffle=block&max_tokens=4096&padding_side=left&rank=1&world=3",
    "shuffle=none&batch_size=100&dtype=int32&epochs=2&tail=pad&rank=2&world=7",
]
NODE = pathlib.Path(__file__).parent / "node"


@pytest.mark.parametrize("query", QUERIES)
def test_pyarrow_over_http_client(serve, dataset, reference, query):
    batches = list(stream(serve(dataset).socket, query))
    for batch in batches:
        batch.validate(full=True)
    assert lists(batches) == reference(dataset, query)


def test_targets(serve, pairs, reference):
    query = "labels=seq2seq&batch_size=9&seed=2"
    got = lists(stream(serve(pairs).socket, query))
    assert got == reference(pairs, query)
    assert any(len(b["labels"][0]) != len(b["input_ids"][0]) for b in got)


def test_values_reshape_without_a_copy(serve, dataset):
    for batch in stream(serve(dataset).socket, "batch_size=32"):
        column = batch.column("input_ids")
        values = column.values.to_numpy(zero_copy_only=True)
        assert values.size == batch.num_rows * max(batch.column("length").to_pylist())
        assert values.__array_interface__["data"][0] == column.values.buffers()[1].address


@pytest.mark.parametrize("query", QUERIES[:2])
def test_curl_into_a_file(serve, dataset, reference, folder, query):
    need("curl")
    out = folder / "batches.arrows"
    subprocess.run(["curl", "-sS", "--fail", "--unix-socket", serve(dataset).socket, "http://dsload/v1/batches?" + query, "-o", out], check=True)
    want = reference(dataset, query)
    with pa.ipc.open_stream(out) as reader:
        assert lists(reader) == want
    flat = {name: [v for batch in want for v in batch[name]] for name in want[0]}
    assert polars.read_ipc_stream(out).to_dict(as_series=False) == flat


def test_duckdb(serve, dataset, reference):
    query = QUERIES[0]
    feed = pa.RecordBatchReader.from_batches(next(stream(path := serve(dataset).socket, query)).schema, stream(path, query))
    rows = duckdb.sql('select example, "row", "next", "length", input_ids, list_sum(attention_mask) s from feed order by "row"').fetchall()
    want = [
        (b["example"][i], b["row"][i], b["next"][i], b["length"][i], b["input_ids"][i], b["length"][i])
        for b in reference(dataset, query) for i in range(len(b["row"]))
    ]
    assert rows == want


@pytest.mark.parametrize("query", QUERIES)
def test_node(serve, dataset, reference, node_modules, query):
    done = subprocess.run(["node", str(NODE / "client.cjs"), serve(dataset).socket, query], capture_output=True, text=True, check=True,
                          env={**os.environ, "NODE_PATH": str(node_modules)})
    assert [json.loads(line) for line in done.stdout.splitlines()] == reference(dataset, query)
