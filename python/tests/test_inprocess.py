"""Reading shards without a server: every row right, or an error. The datasets and forgeries are those of the shard
package's tests."""

from __future__ import annotations

import functools
import json
import os
import pathlib
import re
import shutil
import socket
from typing import Any

import effort
import numpy as np
import pyarrow as pa
import pytest

from dsload._query import Query
from dsload._read.blake3 import hexdigest
from dsload._read.inprocess import InProcess
from dsload.errors import Corrupt, DsloadError

TESTDATA = pathlib.Path(__file__).resolve().parent.parent.parent / "testdata" / "datasets"
FORGED = json.loads((TESTDATA / "forged.json").read_text())
FOLDERS = ["all", "plain", "listed"]  # the shards of listed are in files of their own


def truth(folder: pathlib.Path, split: str) -> dict[str, list[Any]]:
    """The columns of a split, as pyarrow alone reads them."""
    paths = sorted(folder.glob(f"{split}-*.arrow"))
    return pa.concat_tables(pa.ipc.open_file(p.read_bytes()).read_all() for p in paths).to_pydict()


def read(folder: pathlib.Path, want: dict[str, dict[str, list[Any]]], **query: Any) -> int:
    """Reads both splits and returns how many rows came; a row that is not right fails the test."""
    count = 0
    reader = InProcess([("d", str(folder))])
    for split in [s["name"] for s in reader.manifests["d"]["splits"]]:
        for batch in reader.batches(Query(split=split, batch_size=16, **query)):
            for i, example in enumerate(batch["example"].tolist()):
                n = batch["length"][i]
                ids = want[split]["input_ids"][example]
                assert batch["input_ids"][i, :n].tolist() == ids
                if query.get("labels") == "causal" and "loss_mask" in want[split]:
                    begins = np.cumsum([0, *want[split]["segments"][example]]) if query.get("borders") != "keep" else []
                    masked = set(begins) | {k for k, on in enumerate(want[split]["loss_mask"][example]) if not on}
                    expected = [-100 if k in masked else t for k, t in enumerate(ids)]
                    assert batch["labels"][i, :n].tolist() == expected
                if query.get("labels") == "seq2seq":
                    labels = [t for t in batch["labels"][i].tolist() if t != -100]
                    assert labels == want[split]["labels"][example]
                count += 1
    return count


@functools.cache
def both(folder: pathlib.Path) -> dict[str, dict[str, list[Any]]]:
    """The columns of both splits of a dataset of testdata."""
    return {split: truth(folder, split) for split in ("train", "val")}


@pytest.mark.parametrize("name", FOLDERS)
@pytest.mark.parametrize(
    "query",
    [
        {},
        {"shuffle": "none"},
        {"labels": "none"},
        {"labels": "causal"},
        {"bucket": 64, "dtype": "int32"},
        {"labels": "causal", "borders": "keep"},
    ],
)
def test_every_folder_is_read(name: str, query: dict[str, Any]) -> None:
    assert read(TESTDATA / name, both(TESTDATA / name), **query) == 120


@pytest.mark.parametrize(("name", "want"), [("all", "seq2seq"), ("plain", "causal")])
def test_labels_auto(name: str, want: str) -> None:
    folder = TESTDATA / name
    if want == "seq2seq":
        read(folder, both(folder), labels="seq2seq")
    reader = InProcess([("d", str(folder))])
    for a, b in zip(reader.batches(Query(labels="auto")), reader.batches(Query(labels=want))):
        assert sorted(a) == sorted(b)
        for column in a:
            assert np.array_equal(a[column], b[column]), column


def apply(case: dict[str, Any], folder: pathlib.Path) -> None:
    """Makes the change of a case of forged.json."""
    path = folder / case.get("file", "manifest.json")
    data = path.read_bytes()
    do, at = case.get("do", "replace"), case.get("at", 0)
    at += len(data) if at < 0 else 0
    if do == "replace":
        # Go writes the dot that matches a line's end as (?s:…); Python too.
        changed = re.sub(case["find"].encode(), lambda _: case["with"].encode(), data, count=1)
        assert re.search(case["find"].encode(), data)
        if not case.get("keep"):
            changed = changed[:-81] + b'  "blake3": "' + hexdigest(changed[:-81]).encode() + b'"\n}\n'
        path.write_bytes(changed)
    elif do == "text":
        path.write_text(case["text"])
    elif do == "truncate":
        os.truncate(path, at)
    elif do == "append":
        path.write_bytes(data + case["text"].encode())
    elif do == "flip":
        path.write_bytes(data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :])
    elif do == "copy":
        path.write_bytes((folder / case["from"]).read_bytes())
    elif do == "link":
        os.rename(path, f"{path}.real")
        os.symlink(path.name + ".real", path)
    else:
        os.remove(path)
        if do == "pipe":
            os.mkfifo(path)
        elif do == "folder":
            os.mkdir(path)
        else:
            assert do == "remove"


@pytest.mark.parametrize("case", FORGED, ids=[c["name"] for c in FORGED])
def test_forged_datasets(case: dict[str, Any], tmp_path: pathlib.Path) -> None:
    folder = tmp_path / "d"
    shutil.copytree(TESTDATA / case["base"], folder)
    want = both(TESTDATA / case["base"])
    apply(case, folder)
    if case.get("fine"):
        assert read(folder, want) == 120
        return
    with pytest.raises((DsloadError, FileNotFoundError)) as caught:
        read(folder, want)
        if "labels" in want["train"]:
            read(folder, want, labels="seq2seq")
    assert str(folder) in str(caught.value)


def test_flipped_bits_are_never_read(tmp_path: pathlib.Path) -> None:
    rnd = np.random.default_rng(effort.seed(3))
    for i in range(int(os.environ.get("DSLOAD_FLIPS", "4000" if effort.SOAK else "40"))):
        name = ("all", "plain")[i % 2]
        folder = tmp_path / "d"
        if not folder.exists():
            shutil.copytree(TESTDATA / name, folder)
        want = both(TESTDATA / name)
        shards = sorted(folder.glob("*.arrow"))
        path = shards[int(rnd.integers(len(shards)))]
        data = bytearray(path.read_bytes())
        at = int(rnd.integers(len(data)))
        data[at] ^= 1 << int(rnd.integers(8))
        path.write_bytes(data)
        with pytest.raises(Corrupt):
            read(folder, want, shuffle=("full", "none")[i % 3 == 0])
        shutil.rmtree(folder)


def test_a_replaced_dataset_is_not_read(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dsload._read.inprocess._MAX_OPEN_SHARDS", 1)
    folder = tmp_path / "d"
    shutil.copytree(TESTDATA / "all", folder)
    want = truth(folder, "train")["input_ids"]
    reader = InProcess([("d", str(folder))])
    rows = 0
    with pytest.raises(Corrupt, match="replaced"):
        for step, batch in enumerate(reader.batches(Query(batch_size=4, shuffle="none"))):
            for i, example in enumerate(batch["example"].tolist()):
                assert batch["input_ids"][i, : batch["length"][i]].tolist() == want[example]
                rows += 1
            if step == 2:
                shutil.rmtree(folder)
                shutil.copytree(TESTDATA / "plain", folder)
    assert rows >= 12


@pytest.mark.parametrize("version", [-1, 0, 2, 3, 1000])
def test_other_versions_are_refused(version: int, tmp_path: pathlib.Path) -> None:
    folder = tmp_path / "d"
    shutil.copytree(TESTDATA / "plain", folder)
    apply({"find": '"version": 1', "with": f'"version": {version}'}, folder)
    with pytest.raises(Corrupt, match=f"unknown format version {version}: .*build the dataset again"):
        InProcess([("d", str(folder))])


def test_a_long_list_with_few_shards_open(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dsload._read.inprocess._MAX_OPEN_SHARDS", 2)
    monkeypatch.setattr("dsload._read.inprocess._MAX_CLOSED_SHARDS", 3)
    assert read(TESTDATA / "listed", both(TESTDATA / "listed"), labels="seq2seq") == 120


def test_a_damaged_list_of_shards(tmp_path: pathlib.Path) -> None:
    good = (TESTDATA / "listed" / "shards-train.bin").read_bytes()
    folder = tmp_path / "d"
    shutil.copytree(TESTDATA / "listed", folder)
    want = both(TESTDATA / "listed")
    damaged = [bytes(b ^ (1 << at % 8) if i == at else b for i, b in enumerate(good)) for at in range(0, len(good), 37)]
    for data in [*damaged, good[:-1], good + b"\0", b""]:
        (folder / "shards-train.bin").write_bytes(data)
        with pytest.raises(Corrupt, match=r"shards-train\.bin"):
            read(folder, want)
    os.remove(folder / "shards-train.bin")
    with pytest.raises(Corrupt, match=r"shards-train\.bin"):
        read(folder, want)


@pytest.mark.parametrize(
    ("at", "value"),
    [
        (0, b"X"),
        (8, b"\x63"),
        (16 + 64, b"\0" * 8),
        (16 + 72, b"\0" * 8),
        (16 + 80, b"\xff" * 8),
        (16 + 88, b"\x09"),
        (-4, b"\0\0\0\0"),
    ],
    ids=["magic", "count", "rows", "tokens", "bytes", "part", "order"],
)
def test_a_forged_list_of_shards(tmp_path: pathlib.Path, at: int, value: bytes) -> None:
    """The checksums are right, and the entries are not."""
    folder = tmp_path / "d"
    shutil.copytree(TESTDATA / "listed", folder)
    want = both(TESTDATA / "listed")
    data = bytearray((folder / "shards-train.bin").read_bytes())
    at %= len(data)
    old = hexdigest(bytes(data)).encode()
    data[at : at + len(value)] = value
    (folder / "shards-train.bin").write_bytes(data)
    manifest = (folder / "manifest.json").read_bytes()[:-81]
    assert old in manifest
    manifest = manifest.replace(old, hexdigest(bytes(data)).encode())
    seal = b'  "blake3": "' + hexdigest(manifest).encode() + b'"\n}\n'
    (folder / "manifest.json").write_bytes(manifest + seal)
    with pytest.raises(Corrupt, match=r"shards-train\.bin"):
        read(folder, want)


def test_a_socket_is_no_shard(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "d"
    shutil.copytree(TESTDATA / "plain", folder)
    monkeypatch.chdir(folder)  # a socket's address is short
    os.remove("train-00000.arrow")
    with socket.socket(socket.AF_UNIX) as s:
        s.bind("train-00000.arrow")
        with pytest.raises(Corrupt, match="not a regular file"):
            read(pathlib.Path("."), both(TESTDATA / "plain"))
