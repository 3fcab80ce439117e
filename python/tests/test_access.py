"""RandomAccess: every example by number, as pyarrow alone reads it, under the rules of lists."""

from __future__ import annotations

import json
import multiprocessing
import os
import pathlib
import pickle
import shutil
import subprocess
import sys
import threading
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import runs

import dsload
from dsload import RandomAccess

TESTDATA = pathlib.Path(__file__).resolve().parent.parent.parent / "testdata" / "datasets"
FOLDERS = ["all", "plain"]
LISTS = ("input_ids", "labels", "loss_mask", "segments")


def truth(folder: pathlib.Path, split: str = "train") -> list[dict[str, Any]]:
    paths = sorted(folder.glob(f"{split}-*.arrow"))
    return list(pa.concat_tables(pa.ipc.open_file(p.read_bytes()).read_all() for p in paths).to_pylist())


def plain(example: Any) -> dict[str, Any]:
    return {name: values.tolist() for name, values in example.items()}


@pytest.mark.parametrize("name", FOLDERS)
@pytest.mark.parametrize("split", ["train", "val"])
def test_every_example(name: str, split: str) -> None:
    want = truth(TESTDATA / name, split)
    access = RandomAccess(TESTDATA / name, split)
    assert len(access) == len(want) > 1
    assert [plain(e) for e in access] == want == [plain(access[i]) for i in range(len(access))]
    assert set(access.column_names) == set(want[0])
    for example in (access[0], RandomAccess(TESTDATA / name, split, dtype="int32")[0]):
        assert all(isinstance(values, np.ndarray) for values in example.values())
        assert all(example[n].ndim == (n in LISTS) for n in example)
    assert access[0]["input_ids"].dtype == np.int64
    assert RandomAccess(TESTDATA / name, split, dtype="int32")[0]["input_ids"].dtype == np.int32


def test_numbers_are_a_lists() -> None:
    folder = TESTDATA / "all"
    want, access = truth(folder), RandomAccess(folder)
    n = len(want)
    for index in (-1, -n, np.int64(3), np.uint8(2), True, np.array(4)):
        assert plain(access[index]) == want[int(index)]
    for cut in (slice(1, 4), slice(None, None, -7), slice(-3, None), slice(5, 2), slice(n - 1, n + 9)):
        assert [plain(e) for e in access[cut]] == want[cut]
    assert [plain(e) for e in access.__getitems__([5, -1, np.int32(0)])] == [want[5], want[-1], want[0]]
    for index in (n, -n - 1, 1 << 70):
        with pytest.raises(IndexError, match=str(n)):
            access[index]
        with pytest.raises(IndexError):
            access.__getitems__([0, index])
    for wrong in ("1", 1.0, None, [1], np.array([1, 2])):
        with pytest.raises(TypeError):
            access[wrong]  # type: ignore[call-overload]


def test_arrays_are_the_callers() -> None:
    access = RandomAccess(TESTDATA / "all")
    before = plain(access[3])
    for values in access[3].values():
        values[...] = 1
    assert plain(access[3]) == before


def test_what_cannot_be_opened(tmp_path: pathlib.Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"no dataset is there; dsload\.build\(SOURCE, out=FOLDER\) writes one"):
        RandomAccess(tmp_path)
    (tmp_path / "corpus").mkdir()
    with pytest.raises(FileNotFoundError, match=r"corpis: no such file or directory; did you mean .*corpus\?$"):
        RandomAccess(tmp_path / "corpis")
    with pytest.raises(FileNotFoundError, match=r"elsewhere: no such file or directory$"):
        dsload.Loader(str(tmp_path / "elsewhere"))
    with pytest.raises(dsload.FeedError, match="'test'"):
        RandomAccess(TESTDATA / "all", "test")
    with pytest.raises(ValueError, match="dtype"):
        RandomAccess(TESTDATA / "all", dtype="uint16")


@pytest.mark.parametrize("name", ["all", "plain"])
def test_a_damaged_byte_is_an_error_on_its_first_touch(tmp_path: pathlib.Path, name: str) -> None:
    folder = tmp_path / "d"
    shutil.copytree(TESTDATA / name, folder)
    shard = sorted(folder.glob("train-*.arrow"))[0]
    data = bytearray(shard.read_bytes())
    data[len(data) // 2] ^= 1
    shard.write_bytes(data)
    with pytest.raises(dsload.Corrupt, match=r"train-00000\.arrow.*dsload verify"):
        list(RandomAccess(folder))


def test_pickled(tmp_path: pathlib.Path) -> None:
    folder = tmp_path / "d"
    shutil.copytree(TESTDATA / "all", folder)
    access = RandomAccess(folder, "val", dtype="int32")
    access[0]
    stored = pickle.dumps(access)
    assert len(stored) < 500, "the place of the data, not the data"
    again = pickle.loads(stored)
    assert [plain(e) for e in again] == [plain(e) for e in access] and again[0]["input_ids"].dtype == np.int32
    shutil.rmtree(folder)
    shutil.copytree(TESTDATA / "plain", folder)
    with pytest.raises(dsload.DatasetChanged, match="replaced"):
        pickle.loads(stored)


def test_its_repr_is_that_of_the_data(tmp_path: pathlib.Path) -> None:
    """Grain compares it with the one in a checkpoint."""
    shutil.copytree(TESTDATA / "all", tmp_path / "moved")
    here, moved = RandomAccess(TESTDATA / "all"), RandomAccess(tmp_path / "moved")
    moved[1]
    assert repr(here) == repr(moved) != repr(RandomAccess(TESTDATA / "all", "val"))
    assert repr(here) != repr(RandomAccess(TESTDATA / "plain"))


def test_threads_and_forks_read_at_once(dataset: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dsload._read.inprocess._MAX_OPEN_SHARDS", 1)
    monkeypatch.setattr("dsload._read.inprocess._MAX_BATCHES", 1)
    want = [plain(e) for e in RandomAccess(dataset)]
    access = RandomAccess(dataset)
    wrong: list[Any] = []

    def read(seed: int) -> None:
        try:
            for i in np.random.default_rng(seed).permutation(len(want))[:300].tolist():
                if plain(access[i]) != want[i]:
                    wrong.append(i)
        except Exception as error:
            wrong.append(error)

    threads = [threading.Thread(target=read, args=(seed,)) for seed in range(6)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert wrong == []
    with access._lock:  # as another thread of the parent may
        child = multiprocessing.get_context("fork").Process(target=_reads, args=(access, want[7]))
        child.start()
    child.join(runs.HANGS)
    assert child.exitcode == 0


def _reads(access: RandomAccess, want: Any) -> None:
    os._exit(plain(access[7]) != want)


test_threads_and_forks_read_at_once = pytest.mark.server(test_threads_and_forks_read_at_once)


@pytest.mark.server
@pytest.mark.torch
@pytest.mark.parametrize("method", ["fork", "forkserver"])
def test_a_dataloader_with_workers(dataset: str, method: str) -> None:
    torch = pytest.importorskip("torch")
    access = RandomAccess(dataset)
    runs.processes_of_their_own()  # whose server has torch already
    feed = torch.utils.data.DataLoader(
        access, batch_size=50, shuffle=True, num_workers=2, multiprocessing_context=method, collate_fn=_numbers
    )
    seen = [pair for batch in feed for pair in batch]
    assert sorted(seen) == sorted((int(e["document"]), int(e["part"])) for e in access) and len(set(seen)) == 900


def _numbers(examples: Any) -> list[tuple[int, int]]:
    return [(int(e["document"]), int(e["part"])) for e in examples]


def test_importing_it_brings_nothing_else() -> None:
    """Optional packages stay optional."""
    code = (
        "import sys, json, dsload, dsload.integrations; dsload.RandomAccess; dsload.integrations.TrainerMixin;"
        "print(json.dumps([m for m in ('torch', 'transformers', 'accelerate', 'lightning', 'pytorch_lightning') if m "
        "in sys.modules]))"
    )
    out = subprocess.run(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, check=True, cwd=pathlib.Path(__file__).parent.parent
    )
    assert json.loads(out.stdout) == []


@pytest.mark.parametrize("pack", [None, "bfd"])
def test_labels_of_a_mask_are_the_loaders(tmp_path: pathlib.Path, pack: Any) -> None:
    template = tmp_path / "chat.jinja"
    template.write_text("{% for m in messages %}{{ m.role + ': ' + m.content + '\n' }}{% endfor %}")
    chats = [[("user", f"question {i}"), ("assistant", f"answer {i} " * (1 + i % 3))] for i in range(9)]
    records = [{"messages": [{"role": role, "content": content} for role, content in chat]} for chat in chats]
    folder = tmp_path / "data"
    more: dict[str, Any] = {"pack": pack, "max_length": 48} if pack else {}
    dsload.build(records, out=folder, format="chat", chat_template=str(template), progress="none", **more)
    access = RandomAccess(folder)
    assert access.column_names[:2] == ("input_ids", "labels")
    with dsload.Loader(folder, batch_size=1, shuffle="none") as loader:
        for example, batch in zip(access, loader):
            labels = np.asarray(batch["labels"][0])[: len(example["input_ids"])]
            assert example["labels"].tolist() == labels.tolist()
            assert -100 in labels and (labels != -100).any()
