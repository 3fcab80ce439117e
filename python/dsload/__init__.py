"""dsload: datasets for training language models, tokenized, shuffled, padded and served by a program with a hard cap on
memory.

    import dsload
    dsload.build("corpus.txt", out="data")
    with dsload.Loader("data", batch_size=32) as loader:
        for batch in loader: ...

Names are imported on first use, so that `import dsload` and the console script cost nothing.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from . import integrations as integrations
    from . import memory as memory
    from ._building.build import build as build
    from ._loader.loader import Loader as Loader
    from ._options import BuildOptions as BuildOptions
    from ._read.access import RandomAccess as RandomAccess
    from ._show import show as show
    from ._stats.stats import Stats as Stats
    from ._stats.stats import stats as stats
    from ._torch.by_source import by_source as by_source
    from ._torch.collate import first as first
    from .errors import (
        BuildError,
        Corrupt,
        DatasetChanged,
        DsloadError,
        FeedError,
        LoaderClosed,
        ParameterError,
        ServerFailed,
        StreamEnded,
        WrongWrapping,
    )

__version__ = "0.1.0"

_WHERE = {
    "build": "_building.build",
    "Loader": "_loader.loader",
    "by_source": "_torch.by_source",
    "first": "_torch.collate",
    "RandomAccess": "_read.access",
    "show": "_show",
    "Stats": "_stats.stats",
    "stats": "_stats.stats",
    "BuildOptions": "_options",
    "BuildError": "errors",
    "Corrupt": "errors",
    "DatasetChanged": "errors",
    "DsloadError": "errors",
    "FeedError": "errors",
    "LoaderClosed": "errors",
    "ParameterError": "errors",
    "ServerFailed": "errors",
    "StreamEnded": "errors",
    "WrongWrapping": "errors",
}

__all__ = [
    "BuildError",
    "BuildOptions",
    "Corrupt",
    "DatasetChanged",
    "DsloadError",
    "FeedError",
    "Loader",
    "LoaderClosed",
    "ParameterError",
    "RandomAccess",
    "ServerFailed",
    "Stats",
    "StreamEnded",
    "WrongWrapping",
    "build",
    "by_source",
    "first",
    "integrations",
    "memory",
    "show",
    "stats",
]


def __getattr__(name: str) -> Any:
    if name in _WHERE:
        value = getattr(importlib.import_module(f"{__name__}.{_WHERE[name]}"), name)
    elif name in ("memory", "callbacks", "figures", "integrations"):
        value = importlib.import_module(f"{__name__}.{name}")
    else:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = value
    return value
