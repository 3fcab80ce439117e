"""Text as a dataset: `dsload build --cached` builds it once into the user's cache, where later loaders find it."""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Collection, Mapping, Sequence
from typing import Any, Optional, Union

from .._binary import required_binary
from .._building.bar import Bar, is_shown
from .._building.build import _Run, notes
from .._building.flags import flags
from .._options import LoaderOptions
from .._words import in_python, nearest
from ..errors import BuildError

PathLike = Union[str, "os.PathLike[str]"]

_MANIFEST = "manifest.json"
# Parameters of torch's DataLoader, and what a Loader has in their place.
_NO_WORKERS = "a Loader needs no workers: the server reads ahead"
_OWN_BATCHES = "a Loader yields whole batches: see shuffle, bucket and max_tokens"
_OF_DATALOADER = {
    "drop_last": "tail='drop' leaves out the last rows of an uneven epoch, tail='keep' has them",
    "collate_fn": "a Loader yields padded batches: change them in the loop",
    "num_workers": _NO_WORKERS,
    "prefetch_factor": _NO_WORKERS,
    "persistent_workers": _NO_WORKERS,
    "worker_init_fn": _NO_WORKERS,
    "sampler": _OWN_BATCHES,
    "batch_sampler": _OWN_BATCHES,
    "generator": "a Loader's order depends on seed",
}
_NOT_HERE = ("json", "help", "explain_memory", "cached", "out", "overwrite", "progress")


def is_text(dataset: Any, options: Mapping[str, Any]) -> bool:
    """Reports whether a Loader's argument is text to build rather than a dataset: a list of sources, an existing file,
    or anything with build options."""
    if isinstance(dataset, Mapping) or dataset is None:
        return False
    if isinstance(dataset, (list, tuple)) or options:
        return True
    path: str = os.fspath(dataset)
    if os.path.isfile(path):
        return not os.path.exists(os.path.join(os.path.dirname(path), _MANIFEST))  # otherwise it belongs to a dataset
    return path.startswith("synth://")


def unexpected(name: str, own: Collection[str]) -> str:
    """The message for an argument that is not one of Loader's own."""
    if name in LoaderOptions.__annotations__:
        return f"Loader() of a dataset takes no {name!r}, which is an option of its build"
    near = nearest(name, own)
    hint = _OF_DATALOADER.get(name) or (f"did you mean {near!r}?" if near else "")
    return f"Loader() got an unexpected keyword argument {name!r}{f' ({hint})' if hint else ''}"


def _refusal(message: str, own: Collection[str]) -> str:
    """The command's message about the options of a Loader of text, some of which may have been meant for the Loader."""
    message = in_python(message)
    unknown = re.match(r"unknown option: (\w+)", message)
    if unknown and unknown[1] in _OF_DATALOADER:
        return f"unknown option: {unknown[1]}; {_OF_DATALOADER[unknown[1]]}"
    near = nearest(unknown[1], own) if unknown and "did you mean" not in message else None
    return f"{message}; did you mean {near!r}, which is the Loader's?" if near else message


def of_text(dataset: Any, **options: Any) -> dict[str, Any]:
    """The given options that belong to a build for text and to the feed for a dataset; none for a dataset or a
    server."""
    if dataset is None or isinstance(dataset, Mapping):
        return {}
    if isinstance(dataset, (str, os.PathLike)):
        path: str = os.fspath(dataset)
        folder = os.path.isdir(path) and not os.path.exists(os.path.join(path, _MANIFEST))
        if not folder and not is_text(path, {}):
            return {}
    return {name: value for name, value in options.items() if value is not None}


def _sources(
    sources: Union[PathLike, Sequence[PathLike]], options: Mapping[str, Any], own: Collection[str]
) -> list[str]:
    """The sources as arguments, checked."""
    for name in options:
        if name in _NOT_HERE:
            raise TypeError(f"Loader() of text has no option {name!r}")
    paths = [sources] if isinstance(sources, (str, os.PathLike)) else list(sources)
    if not paths:
        raise ValueError("the list of sources is empty")
    for path in paths:
        if not os.path.exists(os.path.join(os.fspath(path), _MANIFEST)):
            continue
        if len(paths) > 1:
            raise TypeError(
                f"{os.fspath(path)} is a dataset, not text to build; several datasets are a mapping, "
                "as in Loader({'a': FOLDER, 'b': FOLDER})"
            )
        if not options:
            raise TypeError(f"a list names text to build, and {os.fspath(path)} is a dataset: pass its name by itself")
        raise TypeError(f"{unexpected(next(iter(options)), own)}: {os.fspath(path)} is a dataset, not text to build")
    return [os.fspath(p) for p in paths]


def cached(sources: Union[PathLike, Sequence[PathLike]], options: Mapping[str, Any], own: Collection[str]) -> str:
    """The folder of the dataset that `options` make of the sources. Builds it if it is not in the cache. Raises
    BuildError. own: the names of Loader's own parameters."""
    paths = _sources(sources, options, own)
    binary = required_binary("building text")
    bar = Bar() if is_shown() else None
    command = [binary, "build", "--cached", "--exit-with-stdin", "--json", "--progress", "json"]
    for name, value in options.items():
        command += flags(name, value)
    command += ["--", *paths]

    def report(line: dict[str, Any]) -> None:
        if bar is not None:
            bar(line)

    try:
        code, stdout, messages = _Run(
            command, report, lambda text: print(in_python(text), file=sys.stderr, flush=True), ends_with_stdin=True
        ).to_end(None)
    finally:
        if bar is not None:
            bar.close()
    if code != 0:
        raise BuildError(_refusal(messages[-1], own) if messages else f"dsload build ended with exit code {code}", code)
    result: dict[str, Any] = json.loads(stdout)
    for note in notes(result):
        print(f"note: {in_python(note)}", file=sys.stderr)
    return str(result["out"])


class Held:
    """Keeps a folder of the cache from being evicted, until it is closed or the process ends."""

    def __init__(self, folder: str) -> None:
        self._fd: Optional[int] = None
        try:
            import fcntl

            self._fd = os.open(folder + ".lock", os.O_RDWR)
            fcntl.flock(self._fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except (ImportError, OSError):
            self.close()

    def close(self) -> None:
        if self._fd is not None:
            os.close(self._fd)
            self._fd = None
