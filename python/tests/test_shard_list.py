"""A dataset whose shards are listed in a file, as that of very many shards: read in this process and through a server,
whole and damaged."""

from __future__ import annotations

import json
import pathlib
import shutil
from typing import Any, Callable

import numpy as np
import pytest

import dsload
from dsload._read.blake3 import hexdigest

FOLDER = pathlib.Path(__file__).resolve().parent.parent.parent / "testdata" / "datasets" / "listed"

pytestmark = pytest.mark.skipif(not FOLDER.is_dir(), reason="the fixtures are not next to the package")


def batches(**options: Any) -> list[dict[str, Any]]:
    with dsload.Loader(FOLDER, batch_size=7, seed=3, output="numpy", **options) as loader:
        return [dict(b) for b in loader]


@pytest.mark.server
@pytest.mark.parametrize("split", ["train", "val"])
def test_in_process_as_served(split: str) -> None:
    served, read = batches(split=split, epochs=1), batches(split=split, epochs=1, in_process=True)
    assert len(served) == len(read) > 1
    for a, b in zip(served, read):
        assert sorted(a) == sorted(b)
        for name, value in a.items():
            assert np.array_equal(value, b[name]), name


def test_rows_by_number() -> None:
    rows = dsload.RandomAccess(FOLDER)
    documents = [int(rows[i]["document"]) for i in range(len(rows))]
    assert documents == sorted(documents) and len(documents) > 50


@pytest.mark.server
def test_state_goes_from_one_to_the_other() -> None:
    with dsload.Loader(FOLDER, batch_size=7, epochs=1, output="numpy") as loader:
        first = next(iter(loader))["example"].tolist()
        state = loader.state_dict()
    with dsload.Loader(FOLDER, batch_size=7, epochs=1, output="numpy", in_process=True) as loader:
        loader.load_state_dict(state)
        rest = [int(e) for batch in loader for e in batch["example"]]
    assert len(rest) > 7 and not set(first) & set(rest)


def forge(folder: pathlib.Path, change: Callable[[bytearray, dict[str, Any]], None]) -> None:
    """Changes the list and its manifest, and makes their checksums right again."""
    path = folder / "manifest.json"
    manifest = json.loads(path.read_bytes())
    data = bytearray((folder / "shards-train.bin").read_bytes())
    change(data, manifest)
    (folder / "shards-train.bin").write_bytes(data)
    for file in manifest["files"]:
        if file["name"] == "shards-train.bin":
            file["blake3"] = hexdigest(memoryview(bytes(data)))
    del manifest["blake3"]
    body = json.dumps(manifest).encode()[:-1] + b",\n"
    path.write_bytes(body + b'  "blake3": "' + hexdigest(memoryview(body)).encode() + b'"\n}\n')


def put(at: int, value: int) -> Callable[[bytearray, dict[str, Any]], None]:
    return lambda data, _: data.__setitem__(at, value)


@pytest.mark.parametrize(
    "change",
    [
        put(0, 0),
        put(8, 3),
        put(16 + 64, 0),
        put(16 + 72, 0),
        put(16 + 80, 0),
        put(16 + 88, 9),
        put(16 + 96 + 92, 0),
        lambda _, m: m.update(version=2),
        lambda _, m: m.update(merged=None),
        lambda _, m: m.update(files=[]),
        lambda _, m: m["splits"][0].update(shard_list={"file": "shards-val.bin", "shards": 14, "bytes": 10**6}),
        lambda _, m: m["splits"][0]["shard_list"].update(shards=15),
        lambda _, m: m["splits"][0]["shard_list"].update(bytes=1),
    ],
)
def test_forged(tmp_path: pathlib.Path, change: Callable[[bytearray, dict[str, Any]], None]) -> None:
    folder = tmp_path / "d"
    shutil.copytree(FOLDER, folder)
    forge(folder, lambda *_: None)
    assert len(dsload.RandomAccess(folder)) > 50
    forge(folder, change)
    with pytest.raises(dsload.Corrupt):
        dsload.RandomAccess(folder)


def test_damaged(tmp_path: pathlib.Path) -> None:
    folder = tmp_path / "d"
    shutil.copytree(FOLDER, folder)
    path = folder / "shards-train.bin"
    good = path.read_bytes()
    for bad in (
        good[:-1],
        good + b"x",
        bytes([good[0] ^ 1]) + good[1:],
        good[:200] + bytes([good[200] ^ 1]) + good[201:],
    ):
        path.write_bytes(bad)
        with pytest.raises(dsload.Corrupt, match=r"shards-train\.bin"):
            dsload.RandomAccess(folder)
    path.unlink()
    with pytest.raises(dsload.Corrupt, match=r"shards-train\.bin"):
        dsload.RandomAccess(folder)
