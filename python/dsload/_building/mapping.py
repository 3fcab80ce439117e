"""A function as the map of `dsload build`: records reach it, and its answers go back, through two named pipes.

The command that the build runs for it is the same text in every run, so that a later one resumes an earlier one. It
names the function, and a digest of its code, so that a build with another function is another build.
"""

from __future__ import annotations

import functools
import hashlib
import json
import os
import shlex
import shutil
import tempfile
import threading
import traceback
from collections.abc import Mapping
from types import CodeType
from typing import Any, Callable, Optional

from .._words import named
from .items import line

_FOLDER = "DSLOAD_MAP"
# The shell gives commands in the background no standard input, so the pipe of the records is put at 3. What ends the
# answers is good only if the function's side said so.
_BRIDGE = (
    f'd="${{{_FOLDER}:?this map is a Python function: call dsload.build with it}}"; exec 3<&0; '
    'cat <&3 >"$d/records" & cat "$d/answers"; rm "$d/done" 2>/dev/null || { cat "$d/error" >&2; exit 1; }'
)
_JOIN_SECONDS = 5.0


class Mapped:
    """Serves a function to the builds that run while it is open. A thread calls the function."""

    def __init__(self, function: Callable[[dict[str, Any]], Optional[Mapping[str, Any]]]) -> None:
        self.command = f": {shlex.quote(_name(function))} {_digest(function)}; {_BRIDGE}"
        self.error: Optional[BaseException] = None  # that the function raised
        self._function = function
        self._folder = tempfile.mkdtemp(prefix="dsload-map-")
        self._closed = False
        for name in ("records", "answers"):
            os.mkfifo(self._path(name), 0o600)
        self.environment = {**os.environ, _FOLDER: self._folder}
        self._thread = threading.Thread(target=self._serve, name="dsload map", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Ends the thread, which may still be in its last call of the function, and removes the pipes."""
        self._closed = True
        ends = [os.open(self._path(name), os.O_RDWR | os.O_NONBLOCK) for name in ("records", "answers")]
        for end in ends:  # the thread may wait for the other side of a pipe
            self._thread.join(0.05)
            os.close(end)
        self._thread.join(_JOIN_SECONDS)
        shutil.rmtree(self._folder, ignore_errors=True)

    def _path(self, name: str) -> str:
        return os.path.join(self._folder, name)

    def _serve(self) -> None:
        """Answers one command after the other: a build with sources for `val` runs two."""
        while self.error is None and not self._closed:
            try:
                self._answer()
            except BrokenPipeError:
                pass  # the build ended
            except OSError:
                if not self._closed:
                    raise

    def _answer(self) -> None:
        with open(self._path("records"), "rb") as records, open(self._path("answers"), "wb") as answers:
            for number, record in enumerate(records):
                try:
                    answer = self._call(number, record)
                except BaseException as error:
                    self.error = error
                    with open(self._path("error"), "w", encoding="utf-8", errors="replace") as file:
                        file.write("".join(traceback.format_exception_only(type(error), error)))
                    return
                answers.write(answer)
                answers.flush()
            with open(self._path("done"), "w", encoding="utf-8"):
                pass

    def _call(self, number: int, record: bytes) -> bytes:
        answer = self._function(json.loads(record))
        if answer is None:
            return b"null\n"
        if not isinstance(answer, Mapping):
            raise TypeError(
                f"map returned {named(answer)} for record {number} of this run; it must return a dict for each, "
                "or None to leave the record out"
            )
        return line(f"what map returned for record {number} of this run", answer)


def _name(function: Any) -> str:
    function = getattr(function, "func", function)  # of a functools.partial
    if not hasattr(function, "__qualname__"):
        function = type(function)
    return f"{function.__module__}.{function.__qualname__}"


def _digest(function: Any) -> str:
    return hashlib.sha256(repr(_parts(function)).encode()).hexdigest()[:12]


def _parts(value: Any) -> Any:
    """What a function does, as far as it shows in its code and the plain values that it holds."""
    if isinstance(value, functools.partial):
        return ["partial", _parts(value.func), _parts(value.args), _parts(value.keywords)]
    if isinstance(value, CodeType):
        return [value.co_code, value.co_names, [_parts(c) for c in value.co_consts]]
    if isinstance(value, (str, bytes, int, float, complex, type(None), type(...))):
        return value
    if isinstance(value, (tuple, list)):
        return [_parts(v) for v in value]
    if isinstance(value, (set, frozenset)):
        return sorted(repr(_parts(v)) for v in value)
    if isinstance(value, dict):
        return sorted((repr(k), repr(_parts(v))) for k, v in value.items())
    value = getattr(value, "__func__", value)  # of a method
    code = getattr(value, "__code__", None)
    if code is None:
        called = vars(type(value)).get("__call__")  # of an object; a function in C shows its name alone
        return ["object", _name(value), _parts(called) if hasattr(called, "__code__") else None]
    cells = [cell.cell_contents for cell in value.__closure__ or () if _is_filled(cell)]
    held = [v for v in cells if v is not value]  # a function that calls itself holds itself
    return [_parts(code), _parts(value.__defaults__), _parts(value.__kwdefaults__), _parts(held)]


def _is_filled(cell: Any) -> bool:
    try:
        cell.cell_contents  # noqa: B018
    except ValueError:
        return False
    return True
