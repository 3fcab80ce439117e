"""Rows packed while they are read: the server and the reader without one give the same batches, nothing is lost, and a
resume is exact."""

from __future__ import annotations

import collections
import itertools
import json
import pathlib
import random
from typing import Any

import numpy as np
import pytest

import dsload
from dsload import Loader
from dsload._order.packing import POLICIES, cut_segments, pack, varlen

GOLDEN = pathlib.Path(__file__).resolve().parent.parent.parent / "testdata" / "pack.json"
PACKED = POLICIES[1:]


def rows_of(batches: Any) -> list[tuple[int, list[tuple[int, ...]], list[int]]]:
    """(number, ids by document, labels) of each row of padded batches."""
    out = []
    for b in batches:
        for i, n in enumerate(np.asarray(b["length"]).tolist()):
            real = np.flatnonzero(np.asarray(b["segments"][i]))
            assert len(real) == n
            ids, places, numbers, labels = (
                np.asarray(b[c][i])[real] for c in ("input_ids", "position_ids", "segments", "labels")
            )
            starts = np.flatnonzero(places == 0)
            assert numbers.tolist() == np.repeat(np.arange(1, len(starts) + 1), np.diff(starts, append=n)).tolist()
            documents = [tuple(d.tolist()) for d in np.split(ids, starts[1:])]
            out.append((int(b["row"][i]), documents, labels.tolist()))
    return out


@pytest.mark.parametrize(
    "case", json.loads(GOLDEN.read_text()), ids=lambda c: f"{c['policy']}-{c['length']}-{len(c['lengths'])}"
)
def test_packs_as_the_server_does(case: Any) -> None:
    rows = [[list(piece) for piece in row] for row in pack(case["policy"], case["length"], case["lengths"])]
    assert rows == case["rows"]


def test_packs_as_trl_does() -> None:
    trl = pytest.importorskip("trl.data_utils")
    datasets = pytest.importorskip("datasets")
    datasets.disable_progress_bars()
    rng = random.Random(3)
    cases = [
        ([[1, 2, 3, 4, 5], [6, 7], [8, 9, 10], [11]], 4),
        ([[1, 2, 3], [4, 5, 6, 7], [8]], 3),
        *(([[i] * rng.choice((1, 3, 9, 40)) for i in range(1, 200)], length) for length in (5, 16, 41)),
    ]
    for documents, length in cases:
        for policy in PACKED:
            want = trl.pack_dataset(datasets.Dataset.from_dict({"input_ids": documents}), length, policy)
            rows = pack(policy, length, [len(d) for d in documents])
            assert [[i for item, at, n in row for i in documents[item][at : at + n]] for row in rows] == want[
                "input_ids"
            ], policy
            if policy != "wrapped":
                assert [[n for _, _, n in row] for row in rows] == want["seq_lengths"]


@pytest.mark.server
@pytest.mark.parametrize("policy", PACKED)
@pytest.mark.parametrize(
    "query",
    [
        {"max_length": 64, "batch_size": 3},
        {"max_length": 1000, "shuffle": "none", "batch_size": 5},
        {"max_length": 20, "shuffle": "block", "dtype": "int32", "padding_side": "left", "borders": "keep"},
        {"max_length": 100, "max_tokens": 700, "padding": "max_length", "pad_to_multiple_of": 8},
        {"max_length": 90, "rank": 1, "world": 3, "tail": "pad", "batch_size": 4},
        {"max_length": 90, "rank": 2, "world": 3, "tail": "once", "batch_size": 4},
        {"max_length": 90, "rank": 2, "world": 3, "tail": "once", "max_tokens": 400},
        {"max_length": 90, "rank": 2, "world": 3, "tail": "drop", "batch_size": 4, "epochs": 2},
        {"split": "val"},
    ],
    ids=str,
)
def test_without_a_server(dataset: str, policy: str, query: dict[str, Any]) -> None:
    batches = []
    for in_process in (False, True):
        with Loader(dataset, pack=policy, seed=7, output="numpy", in_process=in_process, **query) as loader:
            batches.append(list(loader))
    assert len(batches[0]) == len(batches[1]) > 0
    for served, here in zip(*batches):
        assert sorted(served) == sorted(here)
        for name, values in served.items():
            assert np.array_equal(values, here[name]), name
            assert np.asarray(values).dtype == np.asarray(here[name]).dtype, name


@pytest.mark.server
def test_packs_what_is_packed(
    tmp_path: pathlib.Path, text_lines: pathlib.Path, dataset: str, other_dataset: str
) -> None:
    """A dataset that the build packed, and a mix of two; by the server and without it."""
    folder = tmp_path / "packed"
    dsload.build(text_lines, out=folder, format="text", max_examples=0, pack="bfd_split", max_length=40)
    for source, policy in itertools.product((str(folder), {"a": dataset, "b": other_dataset}), PACKED):
        got = []
        for in_process in (False, True):
            with Loader(source, pack=policy, max_length=77, output="numpy", in_process=in_process) as loader:
                got.append(list(loader))
        assert rows_of(got[0]) == rows_of(got[1])
        assert [b["next"].tolist() for b in got[0]] == [b["next"].tolist() for b in got[1]]
        assert all(
            a.get("dataset", np.zeros(0)).tolist() == b.get("dataset", np.zeros(0)).tolist() for a, b in zip(*got)
        )


@pytest.mark.server
def test_several_windows(tmp_path: pathlib.Path) -> None:
    source, folder = tmp_path / "short.txt", tmp_path / "short"
    source.write_text("".join("a b c d e f"[: 1 + 2 * (i * 7 % 6)] + f" {i}\n" for i in range(9000)))
    dsload.build(source, out=folder, format="text", max_examples=0)
    for policy in PACKED:
        got = []
        for in_process in (False, True):
            with Loader(
                folder, pack=policy, max_length=50, batch_size=40, output="numpy", in_process=in_process
            ) as loader:
                got.append([(b["row"].tolist(), b["next"].tolist(), b["input_ids"].tolist()) for b in loader])
                state = loader.state_dict()
                middle = got[0][len(got[0]) // 2]
                loader.load_state_dict({**state, "start": middle[1][0]})
                assert [b["row"].tolist() for b in loader] == [rows for rows, _, _ in got[0][len(got[0]) // 2 + 1 :]]
        assert got[0] == got[1]


@pytest.mark.server
@pytest.mark.parametrize("policy", PACKED)
def test_nothing_is_lost_or_repeated(dataset: str, policy: str) -> None:
    with Loader(dataset, output="numpy") as loader:
        plain = collections.Counter(
            t for b in loader for row, n in zip(b["input_ids"], b["length"]) for t in row[:n].tolist()
        )
        whole = {tuple(row[:n].tolist()) for b in loader for row, n in zip(b["input_ids"], b["length"])}
    with Loader(dataset, pack=policy, max_length=300, batch_size=4, seed=1, output="numpy") as loader:
        assert loader.num_examples == 900
        with pytest.raises(TypeError, match="pack"):
            len(loader)
        epochs = [rows_of(loader), rows_of(loader)]
    for rows in epochs:
        assert collections.Counter(t for _, documents, _ in rows for d in documents for t in d) == plain
        if policy != "wrapped":
            assert {d for _, documents, _ in rows for d in documents} == whole
    assert epochs[0] != epochs[1]


@pytest.mark.server
def test_resumes_anywhere(dataset: str) -> None:
    order: dict[str, Any] = {"pack": "bfd", "max_length": 128, "seed": 2, "output": "numpy"}
    with Loader(dataset, batch_size=5, **order) as loader:
        first = list(loader)
        rows = rows_of(first)
        state: Any = None
        loader.set_epoch(0)
        for k, _ in enumerate(loader):
            if k == 6:
                state = json.loads(json.dumps(loader.state_dict()))
                break
        done = sum(len(b["length"]) for b in first[:7])
    for in_process in (False, True):
        for world in (1, 2, 3):
            got = []
            for rank in range(world):
                with Loader(
                    dataset, batch_size=2, rank=rank, world=world, tail="keep", in_process=in_process, **order
                ) as loader:
                    loader.load_state_dict(state)
                    got += rows_of(loader)
                    assert loader.epoch == 1
            assert sorted(got) == rows[done:]
    with (
        Loader(dataset, batch_size=5, **{**order, "max_length": 64}) as loader,
        pytest.raises(ValueError, match="max_length"),
    ):
        loader.load_state_dict(state)
    with Loader(dataset, seed=2) as loader, pytest.raises(ValueError, match="pack"):
        loader.load_state_dict(state)
    with Loader(dataset) as loader:  # a state from before rows could be packed
        old = loader.state_dict()
        del old["order"]["pack"], old["order"]["max_length"]
        loader.load_state_dict(old)


@pytest.mark.server
def test_borders_for_attention(dataset: str) -> None:
    with Loader(dataset, pack="bfd", max_length=200, batch_size=3, output="numpy") as loader:
        for b in loader:
            rows, length = b["input_ids"].shape
            want = []
            for i in range(rows):
                at = i * length
                for _, run in itertools.groupby(b["segments"][i].tolist()):
                    want.append(at)
                    at += len(list(run))
            assert b["cu_seqlens"].dtype == np.int32
            assert b["cu_seqlens"].tolist() == [*want, rows * length]
            assert b["max_seqlen"] == max(np.diff([*want, rows * length]))
    names = ("input_ids", "cu_seqlens", "max_seqlen")
    for in_process in (False, True):
        with Loader(
            dataset, pack="bfd", max_length=200, columns=names, in_process=in_process, output="numpy"
        ) as loader:
            assert all(sorted(b) == sorted(names) for b in loader)
        with Loader(dataset, output="numpy", in_process=in_process) as loader:
            assert "cu_seqlens" not in next(iter(loader))
        with pytest.raises(ValueError, match="max_seqlen"):
            Loader(dataset, columns=("max_seqlen",), in_process=in_process)


def test_varlen() -> None:
    borders, longest = varlen(np.array([[1, 1, 2, 0], [1, 2, 2, 2], [0, 1, 1, 1]]))
    assert borders.tolist() == [0, 2, 3, 4, 5, 8, 9, 12]
    assert longest == 3


def test_cut_segments() -> None:
    lengths = np.array([3, 1, 4])
    for start in range(8):
        for n in range(1, 9 - start):
            whole = np.repeat(np.arange(3), lengths)[start : start + n].tolist()
            assert cut_segments(lengths, start, n).tolist() == [len(list(g)) for _, g in itertools.groupby(whole)]


@pytest.mark.server
def test_impossible(dataset: str) -> None:
    for query, match in [
        ({"pack": "nosuch"}, "pack"),
        ({"pack": "bfd", "max_length": 0}, "max_length"),
        ({"max_length": 5}, "max_length"),
        ({"pack": "none", "max_length": 5}, "max_length"),
        ({"pack": "bfd", "bucket": 5}, "bucket"),
        ({"borders": "none"}, "borders"),
    ]:
        for in_process in (False, True):
            with pytest.raises((ValueError, dsload.FeedError), match=match):
                Loader(dataset, in_process=in_process, **query)


@pytest.mark.server
def test_what_a_server_packs_by_default(dataset: str, tmp_path: pathlib.Path) -> None:
    import subprocess

    from dsload._binary import find_binary

    path = str(tmp_path / "s")
    binary = find_binary()
    assert binary is not None
    server = subprocess.Popen(
        [binary, "serve", dataset, "--socket", path, "--pack", "bfd", "--max-length", "64"],
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert server.stdout is not None
        assert "serving" in server.stdout.readline()
        with (
            Loader(dataset, pack="bfd", max_length=64, seed=3, output="numpy") as own,
            Loader(socket=path, seed=3, output="numpy") as loader,
        ):
            assert rows_of(loader) == rows_of(own)
            assert loader.state_dict()["order"] == own.state_dict()["order"]
        with Loader(socket=path, pack="none", output="numpy") as loader:
            assert len(list(loader)) == len(loader)
        with Loader(socket=path, max_length=32, output="numpy") as loader:
            assert max(b["length"].max() for b in loader) == 32
    finally:
        server.terminate()
        server.wait(30)
        server.stdout.close()


@pytest.mark.torch
@pytest.mark.server
def test_workers(dataset: str) -> None:
    torch = pytest.importorskip("torch")
    with Loader(dataset, pack="wrapped", max_length=100, batch_size=7) as loader:
        alone = list(loader)
        loader.set_epoch(0)
        shared = list(torch.utils.data.DataLoader(loader, batch_size=None, num_workers=2))
    assert len(alone) == len(shared) > 5
    for a, b in zip(alone, shared):
        assert a["cu_seqlens"].dtype == torch.int32
        assert a["max_seqlen"] == b["max_seqlen"]
        assert all(torch.equal(v, b[name]) if isinstance(v, torch.Tensor) else v == b[name] for name, v in a.items())
