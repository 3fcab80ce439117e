"""A server as the source of batches. It is reached again if it went away, and never confused with another.

Every response of the server identifies its dataset by the manifest's seal (Dsload-Seal). The first seal is pinned. A
response with another seal, or with none, comes from another server or from a folder that was rebuilt: it ends the
loader with DatasetChanged.
"""

from __future__ import annotations

import os
import ssl
import threading
import time
from collections.abc import Collection, Iterator
from dataclasses import replace
from typing import Any, Callable, Optional, TypeVar, Union

from .._query import Query
from ..errors import DatasetChanged, FeedError, LoaderClosed, ServerFailed, StreamEnded
from .decode import Decoder
from .narrow import NarrowDecoder
from .server import Server
from .tensors import NumpyOutput
from .transport import Endpoint, Response, StreamCut

T = TypeVar("T")
Batch = dict[str, Any]

_ARROW = "application/vnd.apache.arrow.stream"
SEAL_HEADER = "dsload-seal"
DEFAULTS_HEADER = "dsload-defaults"
WIRES_HEADER = "dsload-wires"


class Feed:
    """A server's responses. server: this process's own server, if any, which is restarted if it ended, and which
    `close` ends."""

    def __init__(self, endpoint: Endpoint, server: Optional[Server] = None, *, reconnect_seconds: float = 60.0) -> None:
        self.endpoint, self.server = endpoint, server
        self.seal: Optional[str] = None
        self.defaults = ""  # the server's parameters for requests without pack, as a query
        self._narrow = False  # the server can send batches with wire=narrow
        self._reconnect_seconds = reconnect_seconds
        self._closed = False
        self._is_copy = False  # of a feed with a server of its own
        # Called when a stream breaks, since a worker's loader is closed by its trainer.
        self.closed_elsewhere: Optional[Callable[[], bool]] = None
        self._pid, self._responses = os.getpid(), set[Response]()
        self._lock = threading.Lock()

    def __getstate__(self) -> dict[str, Any]:
        # A copy in another process reads from the server and does not own it.
        copied = {"server": None, "_is_copy": self._is_copy or self.server is not None}
        return {**self.__dict__, **copied, "_pid": 0, "_responses": set(), "_lock": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._lock = threading.Lock()

    def _open(self, path: str) -> Response:
        """Raises OSError if the server cannot be reached, DatasetChanged, and FeedError for what it refuses."""
        response = self.endpoint.open(path)
        try:
            self._pin(response.headers.get(SEAL_HEADER))
            if response.status != 200:
                raise response.error()
        except BaseException:
            response.close()
            raise
        return response

    def _pin(self, seal: Optional[str]) -> None:
        if self.seal is None:
            self.seal = seal
        elif seal != self.seal:
            serves = f"the dataset with the seal {seal[:64]!r}" if seal is not None else "something without a seal"
            raise DatasetChanged(
                f"the server at {self.endpoint} now serves {serves}, and this loader began with {self.seal!r}:"
                " serve the first dataset again, or open a new Loader for the other one"
            )

    def manifests(self) -> Any:
        """The server's description of its datasets: a manifest, or {"datasets": {name: manifest}}."""

        def ask() -> Any:
            with self._open("/v1/dataset") as response:
                self.defaults = response.headers.get(DEFAULTS_HEADER, "")
                self._narrow = "narrow" in response.headers.get(WIRES_HEADER, "")
                return response.read_json()

        answer = self._retrying(ask)
        sealed = answer.get("blake3") if isinstance(answer, dict) else None
        if self.seal is not None and sealed is not None and sealed != self.seal:
            raise FeedError(
                f"the server at {self.endpoint} has the seal {self.seal!r} but sends a manifest with another one"
            )
        return answer

    def columns(self, query: Query) -> list[str]:
        """Names of the columns of a query's batches."""

        def ask() -> list[str]:
            with self._open(self._path(query)) as response:
                return self._decoder(response, query, None, NumpyOutput).names

        return self._retrying(ask)

    def stream(self, query: Query, keep: Optional[Collection[str]], output: Any, end: Optional[int]) -> Iterator[Batch]:
        """The query's batches up to the row `end`, across cuts and restarts of the server. Raises an error if they end
        earlier."""
        start = query.start
        deadline: Optional[float] = None
        wait = 0.05
        while True:
            self._check_open()
            try:
                for arrays in self._read(replace(query, start=start), keep, output):
                    start = _advance(arrays, start, end)
                    deadline, wait = None, 0.05
                    yield arrays
                    self._check_open()
                return
            except (OSError, FeedError) as error:
                self._closed = self._closed or (self.closed_elsewhere is not None and self.closed_elsewhere())
                self._check_open()
                if isinstance(error, FeedError) and error.status != 503:
                    raise
                now = time.monotonic()
                deadline = deadline if deadline is not None else now + self._reconnect_seconds
                if now >= deadline:
                    hint = "once it is back, a loader that loads the state_dict() of this one continues there"
                    if self._is_copy:
                        hint = (
                            "the server is that of the loader of which this one is a copy, and ends with it: make a "
                            "Loader here, which can load the state_dict() of this one"
                        )
                    raise StreamEnded(
                        f"the stream of {self.endpoint} ended at row {start}, before its end, and could not be "
                        f"continued within {self._reconnect_seconds:g} s: {error}; {hint}"
                    ) from error
            time.sleep(wait)
            wait = min(wait * 2, 2.0)
            self._revive()

    def _read(self, query: Query, keep: Optional[Collection[str]], output: Any) -> Iterator[Batch]:
        """The batches of one request. Raises StreamCut or another OSError if they end early."""
        with self._open(self._path(query)) as response:
            with self._lock:
                if self._pid != os.getpid():  # forked: the other responses belong to the parent
                    self._pid, self._responses = os.getpid(), set[Response]()
                self._responses.add(response)
            try:
                yield from self._batches(response, query, keep, output)
            finally:
                with self._lock:
                    self._responses.discard(response)

    def _path(self, query: Query) -> str:
        # Started again with another --pack, a server would number the rows in another way.
        path = replace(query, pack=query.pack or "none").path()
        return f"{path}{'&' if '?' in path else '?'}wire=narrow" if self._narrow else path

    def _decoder(
        self, response: Response, query: Query, keep: Optional[Collection[str]], output: Any
    ) -> Union[Decoder, NarrowDecoder]:
        if not response.chunked or response.headers.get("content-type") != _ARROW:
            raise StreamCut("the server is not a dsload server")
        schema = response.read_message(NumpyOutput.allocate)
        if schema is None:
            raise StreamCut("a stream without a schema")
        decoder = NarrowDecoder(schema, query, keep, output.allocate) if self._narrow else Decoder(schema, keep)
        missing = {"row", "next"}.difference(decoder.numbers) | set(keep or ()).difference(decoder.names)
        if missing:
            raise StreamCut(f"the stream has no column {', '.join(sorted(missing))}; it has {', '.join(decoder.names)}")
        return decoder

    def _batches(
        self, response: Response, query: Query, keep: Optional[Collection[str]], output: Any
    ) -> Iterator[Batch]:
        decode = self._decoder(response, query, keep, output).decode
        # The decoder allocates what it widens.
        read, allocate = response.read_message, NumpyOutput.allocate if self._narrow else output.allocate
        ended = False
        while (message := read(allocate)) is not None:
            arrays = decode(message)
            if not arrays:
                ended = True
            elif ended:
                raise StreamCut("a batch after the end of the stream")
            else:
                yield arrays
        if not ended:
            raise StreamCut("the stream ended without its end marker")

    def _retrying(self, ask: Callable[[], T]) -> T:
        """The result of ask(), which is retried for reconnect_seconds while the server cannot be reached."""
        deadline, wait = time.monotonic() + self._reconnect_seconds, 0.05
        while True:
            try:
                return ask()
            except OSError as error:
                if time.monotonic() >= deadline or isinstance(error, (FileNotFoundError, ssl.SSLCertVerificationError)):
                    raise FeedError(
                        f"the server at {self.endpoint} cannot be reached: {error}", 0, "start it with dsload serve"
                    ) from error
            time.sleep(wait)
            wait = min(wait * 2, 2.0)
            self._revive()

    def _revive(self) -> None:
        """Restarts the loader's own server if it ended. If it cannot start, raises StreamEnded."""
        if self.server is not None:
            try:
                self.server.revive()
            except ServerFailed as error:
                raise StreamEnded(f"the server ended and could not be started again: {error}") from error

    def _check_open(self) -> None:
        if self._closed:
            raise LoaderClosed("the loader is closed; make a new one to continue")

    def close(self) -> None:
        """Ends open streams and the loader's own server. Calling it again does nothing."""
        self._closed = True
        with self._lock:
            responses = list(self._responses) if self._pid == os.getpid() else []
        for response in responses:
            response.interrupt()
        server, self.server = self.server, None
        if server is not None:
            server.close()


def _advance(arrays: Batch, start: int, end: Optional[int]) -> int:
    """The row at which the next step begins. Raises StreamCut for a batch outside start to end."""
    following = int(arrays["next"][0])
    if not start < following or (end is not None and following > end):
        raise StreamCut(
            f"a batch that is followed by row {following}, but {start} to {end if end is not None else 'any'} was "
            "requested"
        )
    return following
