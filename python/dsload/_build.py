"""build: `dsload build` as a function."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Sequence
from typing import Any, Callable, Optional, Union

from ._binary import find_binary
from .errors import BuildError, DsloadError

PathLike = Union[str, "os.PathLike[str]"]


def build(
    source: Union[PathLike, Sequence[PathLike]] = (),
    *,
    out: PathLike = "./dsload-data",
    on_progress: Optional[Callable[[dict[str, Any]], None]] = None,
    **options: Any,
) -> dict[str, Any]:
    """Streams sources through a tokenizer into the dataset folder `out`; the same call again resumes an unfinished build.

    Args:
        source: a path, glob, folder or URI, or several; none is generated text.
        options: the flags of `dsload build` with underscores: tokenizer, format, text_field, template, max_examples, max_val_examples, val,
            max_bytes, max_tokens, max_length, overflow, pack, shard_bytes, memory, workers, checkpoint_every, on_bad_record, partition, overwrite.
            True stands for a flag without a value, a list for a flag given several times; None is left out.
        on_progress: called with each progress object that the command reports.

    Returns:
        The command's result: examples and tokens of the splits, why it stopped, and so on.

    Raises:
        BuildError: with the command's own message and exit code.
        DsloadError: where there is no dsload program for this platform.
    """
    sources = [source] if isinstance(source, (str, os.PathLike)) else list(source)
    command = [_binary(), "build", "--json", "--out", os.fspath(out), "--progress", "json" if on_progress else "none"]
    for name, value in options.items():
        command += _flag(name, value)
    command += ["--", *(os.fspath(s) for s in sources)]
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        messages = _follow(process, on_progress)
        stdout = process.stdout.read() if process.stdout is not None else ""
        code = process.wait()
    except BaseException:
        # Ctrl-C: the command ends in an orderly way and can be resumed.
        process.terminate()
        process.wait()
        raise
    finally:
        for stream in (process.stdout, process.stderr):
            if stream is not None:
                stream.close()
    if code != 0:
        raise BuildError(messages[-1] if messages else f"dsload build ended with exit code {code}", code)
    result: dict[str, Any] = json.loads(stdout)
    return result


def _binary() -> str:
    binary = find_binary()
    if binary is None:
        raise DsloadError("there is no dsload program: install the platform wheel, put dsload on PATH, or name it in DSLOAD_BINARY")
    return binary


def _flag(name: str, value: Any) -> list[str]:
    flag = "--" + name.replace("_", "-")
    if value is None or value is False:
        return []
    if value is True:
        return [flag]
    if isinstance(value, (list, tuple)):
        return [part for v in value for part in (flag, str(v))]
    return [flag, os.fspath(value) if isinstance(value, os.PathLike) else str(value)]


def _follow(process: subprocess.Popen[str], on_progress: Optional[Callable[[dict[str, Any]], None]]) -> list[str]:
    """Reads stderr to its end: progress objects go to the callback, the last lines of the rest are kept for an error's message."""
    kept: list[str] = []
    assert process.stderr is not None
    for line in process.stderr:
        text = line.strip()
        if on_progress is not None and text.startswith("{"):
            try:
                on_progress(json.loads(text))
                continue
            except ValueError:
                pass
        if text:
            kept = [*kept[-20:], text]
    return kept
