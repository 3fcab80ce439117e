"""Building a dataset on a Ray cluster: one part a task, joined at the end. The result has the same bytes as a build on one machine.

The folder `out` must be on storage that every node sees. Each task is an ordinary `dsload build --partition I/N`, so that a part that was
interrupted goes on where it stopped when the same call is made again.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Sequence
from typing import Any, Union

from ._binary import find_binary
from ._build import build as _build
from .errors import BuildError, DsloadError

PathLike = Union[str, "os.PathLike[str]"]


def build(
    source: Union[PathLike, Sequence[PathLike]],
    *,
    out: PathLike,
    partitions: int,
    cpus_a_task: float = 1,
    **options: Any,
) -> dict[str, Any]:
    """Builds `partitions` parts of the dataset as Ray tasks, and joins them into `out`.

    Args:
        source, options: as dsload.build takes them. out: the dataset's folder; the parts lie beside it, as OUT.part-I, until they are joined.
        partitions: number of parts. cpus_a_task: what each task asks Ray for; it is also its number of workers, at least 1.

    Returns:
        {"parts": [each part's result], "out": folder}.

    Raises:
        ImportError: where ray is not installed. BuildError: the first part's, or the join's, that failed.
    """
    import ray

    if partitions < 1:
        raise ValueError(f"partitions must be at least 1, got {partitions}")
    if not ray.is_initialized():
        ray.init()
    sources = [os.fspath(source)] if isinstance(source, (str, os.PathLike)) else [os.fspath(s) for s in source]
    options.setdefault("workers", max(1, int(cpus_a_task)))
    task = ray.remote(num_cpus=cpus_a_task)(_part)
    parts = [f"{os.fspath(out)}.part-{i}" for i in range(1, partitions + 1)]
    waiting = [task.remote(sources, folder, f"{i}/{partitions}", options) for i, folder in enumerate(parts, 1)]
    results = ray.get(waiting)
    for result in results:
        if "error" in result:
            raise BuildError(result["error"], result["exit_code"])
    _merge(parts, os.fspath(out))
    return {"parts": results, "out": os.fspath(out)}


def _part(sources: list[str], out: str, partition: str, options: dict[str, Any]) -> dict[str, Any]:
    """One task. An error is returned as data: Ray would wrap it beyond recognition."""
    try:
        return _build(sources, out=out, partition=partition, **options)
    except BuildError as error:
        return {"error": str(error), "exit_code": error.exit_code}


def _merge(parts: Sequence[str], out: str) -> None:
    binary = find_binary()
    if binary is None:
        raise DsloadError("there is no dsload program to join the parts with")
    done = subprocess.run([binary, "merge", "--out", out, "--", *parts], capture_output=True, text=True)
    if done.returncode != 0:
        lines = done.stderr.strip().splitlines()
        raise BuildError(lines[-1] if lines else f"dsload merge ended with exit code {done.returncode}", done.returncode)
