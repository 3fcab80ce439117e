"""build: `dsload build` as a function."""

from __future__ import annotations

import contextlib
import json
import os
import queue
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Callable, Optional, Union

from .._binary import required_binary
from .._query import Query
from .._words import in_python
from ..errors import BuildError
from .bar import Bar, is_shown
from .flags import flags
from .items import encoded, hold_text, sources_or_items
from .mapping import Mapped

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from .._options import BuildOptions

PathLike = Union[str, "os.PathLike[str]"]
Source = Union[PathLike, Sequence[PathLike], Iterable[str], Iterable[Mapping[str, Any]], None]

_ITEM_FORMATS = (None, "auto", "jsonl", "chat")
_END_SECONDS = 30.0
# How messages name items, which the command reads from its standard input.
_OF_ITEMS = (
    ("standard input", "the items"),
    ("read -:", "read the items:"),
    (" -, row", " row"),
    (" as jsonl, gzip", " as jsonl"),
    (" as chat, gzip", " as chat"),
)


def build(
    source: Source = None,
    *,
    out: PathLike = "./dsload-data",
    on_progress: Optional[Callable[[dict[str, Any]], None]] = None,
    progress: Optional[bool] = None,
    map: Union[Callable[[dict[str, Any]], Optional[Mapping[str, Any]]], str, None] = None,
    **options: Unpack[BuildOptions],
) -> dict[str, Any]:
    """Streams sources through a tokenizer into the dataset folder `out`; the same call again resumes an unfinished
    build.

    Example::

        dsload.build("corpus/*.jsonl.gz", out="data", text_field="content")
        dsload.build(["a.txt", "b.txt"], out="data", max_length=1024)
        dsload.build((row["body"] for row in rows), out="data")         # texts, a document each

    Args:
        source: a path, glob, folder or URI; a list of them; or any other iterable of strings, each a document, or of
            dicts, from which `text_field` (or `template`) makes a document, or that hold conversations. An iterator is
            read once, one item at a time. None means generated text.
        out: the dataset folder.
        on_progress: called with each progress object that the command reports.
        progress: show a bar on stderr; None shows it on a terminal and in notebooks.
        map: a function through which all records go, in order: it gets each as a dict and returns a dict, of which
            `text_field` (or `template`) makes a document. It is called in a thread of this process and must depend on
            the record alone, since a build that resumes begins anew with the record after its last checkpoint. Or a
            shell command that answers each line of JSON with one. Not on Windows.
        options: the flags of `dsload build` with underscores, which help(dsload.BuildOptions) lists. True means a flag
            without a value, a list means a repeated flag; None and False are ignored, but for eos and bos, of which
            False means off. With `plan` and `partition`, part of a plan is built; dsload.ray.build does it for all of
            them.

    Returns:
        The command's result: examples and tokens of each split, why the build stopped, and so on.

    Raises:
        BuildError: with the command's own message and exit code; 2 for an unknown option.
        TypeError, ValueError: for an unusable source, and for an item that is neither text nor JSON, with its number
        from 0.
        DsloadError: if there is no dsload program for this platform.

    Exceptions of an iterator, or of `map`, pass through. The build then stops without a dataset, and the same
    call resumes it.
    """
    for name in ("json", "help", "explain_memory"):
        if name in options:
            raise TypeError(f"build() has no option {name!r}: the command's result is returned as a dict")
    if str(out).startswith("~"):
        raise ValueError(f"out: Python does not expand the ~ of {str(out)!r}; pass os.path.expanduser({str(out)!r})")
    paths, items = sources_or_items(source)
    if items is not None:
        if options.get("format") not in _ITEM_FORMATS:
            raise ValueError(
                f"format: {options['format']!r} is for files; an iterable of strings or dicts is read as jsonl, or as "
                "chat"
            )
        if options.get("format") in (None, "auto"):
            text, items = hold_text(items)
            made = options.get("text_field") or options.get("template") or map
            options["format"] = "jsonl" if text or made else "auto"  # which finds conversations
        paths = ["-"]
    chosen = [flag for name, value in options.items() for flag in flags(name, value)]
    mapped = Mapped(map) if callable(map) else None
    bar = Bar() if (is_shown() if progress is None else progress) else None
    # Without a reader of its progress, the command does not outlive this process if that is killed.
    command = [required_binary("build"), "build", "--json", "--out", os.fspath(out), "--progress", "json"]
    command += [*chosen, *flags("map", mapped.command if mapped is not None else map), "--", *(paths or ())]

    def said(message: str) -> str:
        message = in_python(message)
        for command, here in _OF_ITEMS if items is not None else ():
            message = message.replace(command, here)
        return message

    def report(line: dict[str, Any]) -> None:
        if bar is not None:
            bar(line)
        if on_progress is not None:
            on_progress(line)

    try:
        pieces = encoded(items, options.get("text_field")) if items is not None else None
        code, stdout, messages = _Run(command, report, env=None if mapped is None else mapped.environment).to_end(
            pieces
        )
    finally:
        if bar is not None:
            bar.close()
        if mapped is not None:
            mapped.close()
    if mapped is not None and mapped.error is not None:
        raise mapped.error
    if code != 0:
        message = said(messages[-1]) if messages else f"dsload build ended with exit code {code}"
        raise BuildError(message + _hint(message, paths if items is None else None), code)
    for line in messages:  # what the build says about dropped and replaced text
        print(said(line), file=sys.stderr)
    result: dict[str, Any] = json.loads(stdout)
    for note in notes(result):
        print(f"note: {said(note)}", file=sys.stderr)
    if result.get("cut_by"):
        print(f"stopped: {said(result['stopped'])}", file=sys.stderr)
    return result


def notes(result: Mapping[str, Any]) -> list[str]:
    """The notes of a command's result, and the losses that the command itself has in other lines of its summary."""
    losses = (
        ("rejected", "bad records skipped, which rejects.jsonl lists by file and reason"),
        ("dropped", "documents longer than max_length dropped"),
    )
    lost = [f"{what}: {result[name]:,}" for name, what in losses if result.get(name)]
    return [*lost, *(result.get("notes") or ())]


def _hint(message: str, paths: Optional[Sequence[str]]) -> str:
    """What to do where an option is the Loader's, or strings that were to be texts were taken for names of files."""
    unknown = re.match(r"unknown option: (\w+)", message)
    if unknown and unknown[1] in Query.__dataclass_fields__:
        return f"; {unknown[1]} is an option of dsload.Loader, which reads what is built"
    if any(" " in p and "://" not in p and not os.path.exists(p) for p in paths or ()):
        return "; strings name files: to build texts themselves, pass an iterator of them, as in build(iter(texts))"
    return ""


class _Run:
    """One run of the command. A thread reads its stderr; callbacks and the iterator run in the caller's thread."""

    def __init__(
        self,
        command: list[str],
        report: Callable[[dict[str, Any]], None],
        say: Optional[Callable[[str], None]] = None,
        env: Optional[Mapping[str, str]] = None,
        ends_with_stdin: bool = False,
    ) -> None:
        """ends_with_stdin: the command ends when its standard input does, so not after this process."""
        self._command, self._report, self._say, self._env = command, report, say, env
        self._ends_with_stdin = ends_with_stdin
        self._lines: queue.SimpleQueue[Optional[str]] = queue.SimpleQueue()
        self._messages: list[str] = []
        self._stdout = ""
        self._ended = False  # stderr has been read to its end

    def to_end(self, pieces: Optional[Iterator[bytes]]) -> tuple[int, str, list[str]]:
        """(exit code, stdout, the last lines of stderr). pieces: the command's standard input."""
        stdin = subprocess.PIPE if pieces is not None or self._ends_with_stdin else subprocess.DEVNULL
        process = subprocess.Popen(
            self._command, stdin=stdin, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=self._env
        )
        threads = [
            threading.Thread(target=f, args=(process,), daemon=True) for f in (self._read_stderr, self._read_stdout)
        ]
        for thread in threads:
            thread.start()
        try:
            if pieces is not None:
                self._feed(process, pieces)
            self._follow(wait=True)
            code = process.wait()
        except BaseException:
            # Ctrl-C or an exception of the iterator. Keep standard input open until the command has ended, so that it
            # does not mistake its end for the end of the source.
            _stop(process)
            raise
        finally:
            _close(process.stdin)
            for thread in threads:
                thread.join()
            _close(process.stdout)
            _close(process.stderr)
        return code, self._stdout, self._messages

    def _feed(self, process: subprocess.Popen[bytes], pieces: Iterator[bytes]) -> None:
        assert process.stdin is not None
        try:
            for piece in pieces:
                if piece:
                    process.stdin.write(piece)
                self._follow(wait=False)
                if self._ended:
                    return
            process.stdin.close()
        except BrokenPipeError:
            pass  # the command has read enough, or has ended with an error that its exit code shows

    def _read_stderr(self, process: subprocess.Popen[bytes]) -> None:
        assert process.stderr is not None
        for line in process.stderr:
            self._lines.put(line.decode(errors="replace").strip())
        self._lines.put(None)

    def _read_stdout(self, process: subprocess.Popen[bytes]) -> None:
        assert process.stdout is not None
        self._stdout = process.stdout.read().decode(errors="replace")

    def _follow(self, wait: bool) -> None:
        """Reports progress that has arrived, and keeps the last of the other lines. wait: until the end of stderr."""
        while not self._ended and (wait or not self._lines.empty()):
            text = self._lines.get()
            if text is None:
                self._ended = True
                return
            if text.startswith("{"):
                try:
                    progress = json.loads(text)
                except ValueError:
                    progress = None
                if isinstance(progress, dict) and "notice" not in progress:
                    self._report(progress)
                    continue
                if isinstance(progress, dict):
                    text = str(progress["notice"])
            if text and self._say is not None and not text.startswith("dsload: "):
                self._say(text)
            elif text:
                self._messages = [*self._messages[-200:], text]


def _stop(process: subprocess.Popen[bytes]) -> None:
    """Ends the command in an orderly way, so that it can be resumed, or by force if it does not end."""
    process.send_signal(signal.SIGTERM)
    try:
        process.wait(_END_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def _close(stream: Any) -> None:
    if stream is not None:
        with contextlib.suppress(BrokenPipeError):  # the command has ended and does not need the rest of the buffer
            stream.close()
