"""What a Loader's arguments name: a dataset, a running server, or text, which is built first."""

from __future__ import annotations

import os
import stat
from collections.abc import Collection, Mapping
from typing import Any, NamedTuple, Optional

from .._read.manifest import is_address
from .._words import named, nearest
from .text import Held, cached, is_text, of_text, unexpected


class Recognised(NamedTuple):
    """Exactly one of dataset, socket and url is set.

    dataset: a folder, or {name: folder}. held: keeps the dataset in the cache, if the arguments name text, whose build
    takes the options pack and max_length.
    """

    dataset: Any
    socket: Any
    url: Any
    held: Optional[Held] = None


def recognise(
    dataset: Any, socket: Any, url: Any, text: Mapping[str, Any], own: Collection[str], *, pack: Any, max_length: Any
) -> Recognised:
    """What a Loader is to read. Text is built into the cache.

    text: a Loader's further arguments: options of a build. own: the names of its own parameters.
    """
    _check_names(dataset)
    for name in text:
        if nearest(name, own, share=1.0):  # batchsize is not an option of a build
            raise TypeError(unexpected(name, own))
    built = {**text, **of_text(dataset, pack=pack, max_length=max_length)}
    if socket is None and url is None and is_text(dataset, built) and not _is_socket(dataset):
        folder = cached(dataset, built, own)
        return Recognised(folder, None, None, Held(folder))
    if text:
        raise TypeError(unexpected(next(iter(text)), own))
    return _dataset_or_server(dataset, socket, url)


def refuse_unused(
    read: Recognised, output: str, pin_memory: Any, *, token: Any, ca_file: Any, memory: Any, in_process: Any
) -> None:
    """Raises ValueError for arguments that would have no effect on what is read."""
    for name, flag in {"pin_memory": pin_memory, "in_process": in_process}.items():
        if not isinstance(flag, bool) and not (flag is None and name == "in_process"):
            raise ValueError(f"{name}: {flag!r} is neither True nor False")
    if pin_memory and output == "numpy":
        raise ValueError("pin_memory: it is for tensors, and output='numpy' makes none; leave one of them out")
    if read.url is None:
        for name, given in {"token": token, "ca_file": ca_file}.items():
            if given is not None:
                raise ValueError(f"{name}: it is for a server's url=, and there is none; leave it out")
    elif ca_file is not None and not os.fspath(read.url).startswith("https://"):
        raise ValueError("ca_file: it is for https, and the url has none; leave it out, or write https://")
    if read.dataset is None:
        if in_process:
            raise ValueError("in_process: a running server's dataset is not read here; name its folder in its place")
        if memory is not None:
            raise ValueError("memory: the cap of a running server is its own --memory; leave it out")
    elif in_process and memory is not None:
        raise ValueError("memory: it is the cap of a server, and in_process=True has none; leave one of them out")


def _check_names(dataset: Any) -> None:
    """Raises TypeError for what can be the name of nothing."""
    several = isinstance(dataset, (list, tuple, Mapping))
    for one in (dataset.values() if isinstance(dataset, Mapping) else dataset) if several else (dataset,):
        if not isinstance(one, (str, os.PathLike)) and (several or one is not None):
            raise TypeError(
                f"dataset: {named(one)} is not the name of a folder, file or server; rows that are in memory are built "
                "first: dsload.build(iter(ROWS), out=FOLDER)"
            )


def _dataset_or_server(dataset: Any, socket: Any, url: Any) -> Recognised:
    """A dataset that is the path of a socket or a URL becomes that."""
    if sum(x is not None and x != "" for x in (dataset, socket, url)) != 1:
        raise ValueError("name exactly one of a dataset folder, socket= and url=")
    if isinstance(dataset, Mapping) and not dataset:
        raise ValueError("name exactly one of a dataset folder, socket= and url=: the mapping names no dataset")
    if isinstance(dataset, str) and dataset.startswith(("http://", "https://")):
        return Recognised(None, None, dataset)
    if isinstance(dataset, str) and "://" in dataset and not is_address(dataset):
        raise ValueError(
            f"no dataset is served from an address of kind {dataset.split('://')[0]}://; if it holds text to build, "
            "pass an option of dsload.build with it, such as tokenizer='gpt2'"
        )
    return Recognised(None, dataset, None) if _is_socket(dataset) else Recognised(dataset, socket, url)


def _is_socket(dataset: Any) -> bool:
    """Reports whether a Loader's argument is the path of a server's socket."""
    try:
        return isinstance(dataset, (str, os.PathLike)) and stat.S_ISSOCK(os.stat(dataset).st_mode)
    except (OSError, ValueError):
        return False  # opening it as a folder reports what is wrong with it
