"""What the tests share: where the binary and the reference data are, and what is skipped where something is missing."""

from __future__ import annotations

import importlib.util
import os
import pathlib
import sys

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


def _has(*modules: str) -> bool:
    return all(importlib.util.find_spec(m) is not None for m in modules)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    needs = {
        "torch": (_has("torch"), "PyTorch is not installed (python/tests/install_torch.py)"),
        "trainers": (_has("torch", "transformers"), "transformers is not installed (python/tests/install_torch.py)"),
        "gpu": (_has("torch") and _cuda(), "no CUDA device"),
    }
    for item in items:
        for mark, (ok, why) in needs.items():
            if not ok and item.get_closest_marker(mark):
                item.add_marker(pytest.mark.skip(reason=why))


def _cuda() -> bool:
    import torch

    return bool(torch.cuda.is_available())


@pytest.fixture(autouse=True)
def seeded() -> None:
    if "torch" in sys.modules:
        sys.modules["torch"].manual_seed(0)
