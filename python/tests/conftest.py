"""What the tests share: where the binary and the reference data are, and what is skipped where something is missing."""

from __future__ import annotations

import contextlib
import gc
import importlib.util
import os
import pathlib
import sys
from collections.abc import Iterator
from typing import Any

import pytest

HERE = pathlib.Path(__file__).resolve().parent
REPOSITORY = HERE.parent.parent
sys.path[:0] = [str(HERE.parent), str(HERE)]

# Another thread pool would only make small models slower, and results depend on the number of threads.
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
os.environ.setdefault("HF_HUB_OFFLINE", "1")
if "DSLOAD" in os.environ:
    os.environ.setdefault("DSLOAD_BINARY", os.environ["DSLOAD"])


SHARED = pathlib.Path(os.environ.get("DSLOAD_SHARED", REPOSITORY.parent / "shared"))


def _has(*modules: str) -> bool:
    return all(importlib.util.find_spec(m) is not None for m in modules)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    needs = {
        "torch": (_has("torch"), "PyTorch is not installed (python/tests/install_torch.py)"),
        "trainers": (_has("torch", "transformers"), "transformers is not installed (python/tests/install_torch.py)"),
        "server": (_binary() is not None, "no dsload binary: set DSLOAD, or put it on PATH"),
        "cuda": (_has("torch") and _cuda(), "no CUDA device"),
    }
    for item in items:
        for mark, (ok, why) in needs.items():
            if not ok and item.get_closest_marker(mark):
                item.add_marker(pytest.mark.skip(reason=why))


def pytest_collection_finish() -> None:
    """What the tests' imports brought stays: leaving it out makes each collection of garbage, and each worker that is
    forked, much cheaper."""
    gc.collect()
    gc.freeze()


def _cuda() -> bool:
    import torch

    return bool(torch.cuda.is_available())


@pytest.fixture(autouse=True)
def seeded() -> None:
    if "torch" in sys.modules:
        sys.modules["torch"].manual_seed(0)


def _binary() -> Any:
    from dsload._binary import find_binary

    return find_binary()


def _build(folder: pathlib.Path, source: pathlib.Path, **options: Any) -> str:
    import dsload

    dsload.build(source, out=folder, **options)
    return str(folder)


@pytest.fixture(scope="session")
def corpora() -> pathlib.Path:
    if not (SHARED / "corpora").is_dir():
        pytest.skip("the reference corpora are not there (DSLOAD_SHARED)")
    return SHARED / "corpora"


@pytest.fixture(scope="session")
def text_lines(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    """1,000 lines of 1 to 60 words, made here."""
    import random

    rng = random.Random(4)
    words = [
        "the",
        "of",
        "flour",
        "salt",
        "river",
        "stone",
        "bright",
        "seven",
        "under",
        "never",
        "machine",
        "apple",
        "quick",
        "idea",
        "paper",
    ]
    path = tmp_path_factory.mktemp("text") / "lines.txt"
    path.write_text("".join(" ".join(rng.choices(words, k=rng.randint(1, 60))) + f" {i}\n" for i in range(1000)))
    return path


@pytest.fixture(scope="session")
def dataset(tmp_path_factory: pytest.TempPathFactory, text_lines: pathlib.Path) -> str:
    """Those lines as a dataset of several shards, with a split val."""
    folder = tmp_path_factory.mktemp("data") / "lines"
    return _build(folder, text_lines, format="text", max_examples=0, max_val_examples=100, shard_bytes="64KiB")


@pytest.fixture(scope="session")
def other_dataset(tmp_path_factory: pytest.TempPathFactory, text_lines: pathlib.Path) -> str:
    source = tmp_path_factory.mktemp("text") / "other.txt"
    source.write_text("".join(line[::-1].strip() + "\n" for line in text_lines.read_text().splitlines()[:300]))
    return _build(tmp_path_factory.mktemp("data") / "other", source, format="text", max_examples=0)


@pytest.fixture(scope="session")
def recipes(tmp_path_factory: pytest.TempPathFactory, corpora: pathlib.Path) -> str:
    """Prompts and targets."""
    folder = tmp_path_factory.mktemp("data") / "recipes"
    return _build(
        folder,
        corpora / "recipes" / "recipenlg-sample.csv",
        format="recipes",
        template="recipe-seq2seq",
        max_examples=400,
    )


@pytest.fixture(scope="session")
def rows240(tmp_path_factory: pytest.TempPathFactory) -> str:
    """240 rows of five lengths."""
    folder = tmp_path_factory.mktemp("data")
    (folder / "lines.txt").write_text(
        "".join(f"a line of words, {'and more ' * (i % 5)}the {i}-th\n" for i in range(240))
    )
    return _build(folder / "rows", folder / "lines.txt", format="text", max_examples=0)


@pytest.fixture
def began(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The rows from which loaders of this process began to read."""
    from dsload._loader.epochs import Epochs

    rows: list[int] = []
    stream = Epochs.stream

    def streamed(self: Any, query: Any, output: Any) -> Any:
        rows.append(query.start)
        return stream(self, query, output)

    monkeypatch.setattr(Epochs, "stream", streamed)
    return rows


@pytest.fixture
def no_servers_left() -> Iterator[None]:
    """Fails where a server of this process outlives the test."""
    yield
    left = []
    for stat in pathlib.Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):  # a process that ended meanwhile
            parent = stat.read_text().rpartition(")")[2].split()[1]
            arguments = (stat.parent / "cmdline").read_bytes().split(b"\0")
            if parent == str(os.getpid()) and b"serve" in arguments:
                left.append(arguments)
    assert left == [], "servers left running"
