"""HTTP/1.1 to a dsload server, over a unix socket, TCP or TLS, for two purposes: small JSON answers, and streams of Arrow messages.

The server sends every encapsulated Arrow message as one HTTP chunk, so that a message is read with one call into the memory that the batch
will keep: from a unix socket by one system call that waits for all of it, outside of Python. A body that ends without its last, empty chunk was cut.
"""

from __future__ import annotations

import io
import json
import socket
import ssl
import struct
from dataclasses import dataclass
from typing import Any, BinaryIO, Optional
from urllib.parse import urlsplit

import numpy as np
import numpy.typing as npt

from .errors import DsloadError, FeedError

_LOOPBACK = ("localhost", "127.0.0.1", "::1")
_MAX_LINE = 64 << 10
_MAX_JSON = 256 << 20
_BUFFER = 256 << 10


class StreamCut(ConnectionError):
    """The body ended before its end, or is not what the protocol says."""


@dataclass(frozen=True)
class Endpoint:
    """Where a server listens. `path` is a unix socket; else host and port. Can be pickled; the token never shows in repr."""

    path: str = ""
    host: str = ""
    port: int = 0
    tls: bool = False
    ca_file: Optional[str] = None
    token: Optional[str] = None
    timeout: float = 300.0

    @staticmethod
    def of_url(url: str, *, token: Optional[str], ca_file: Optional[str], timeout: float) -> Endpoint:
        """From http://… or https://…. Raises ValueError for other schemes, and where a token would travel in the clear."""
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError(f"url must be http://HOST:PORT or https://HOST:PORT, got {url!r}")
        if parts.path not in ("", "/") or parts.query:
            raise ValueError(f"url names a server, without path or query: {url!r}")
        if token and parts.scheme == "http" and parts.hostname not in _LOOPBACK:
            raise ValueError("a token is sent over https only; the server serves TLS with --tls-cert and --tls-key")
        port = parts.port or (443 if parts.scheme == "https" else 80)
        return Endpoint(host=parts.hostname, port=port, tls=parts.scheme == "https", ca_file=ca_file, token=token, timeout=timeout)

    def __repr__(self) -> str:
        return self.path or f"{'https' if self.tls else 'http'}://{self.host}:{self.port}"

    def connect(self) -> socket.socket:
        if self.path:
            sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            try:
                sock.settimeout(self.timeout)
                sock.connect(self.path)
                _wait_in_kernel(sock, self.timeout)
            except BaseException:
                sock.close()
                raise
            return sock
        sock = socket.create_connection((self.host, self.port), timeout=min(self.timeout, 30.0))
        sock.settimeout(self.timeout)
        if not self.tls:
            return sock
        try:
            return ssl.create_default_context(cafile=self.ca_file).wrap_socket(sock, server_hostname=self.host)
        except BaseException:
            sock.close()
            raise

    def request(self, path: str) -> _Response:
        """Sends GET path. Raises OSError where the server cannot be reached, FeedError where it answers with an error."""
        sock = self.connect()
        try:
            host = "dsload" if self.path else f"{self.host}:{self.port}"
            head = f"GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n"
            if self.token:
                head += f"Authorization: Bearer {self.token}\r\n"
            sock.sendall((head + "\r\n").encode("ascii"))
            response = _Response(sock)
        except BaseException:
            sock.close()
            raise
        if response.status != 200:
            with response:
                raise response.error(path)
        return response

    def get_json(self, path: str) -> Any:
        with self.request(path) as response:
            return json.loads(response.read_all())


def _wait_in_kernel(sock: socket.socket, timeout: float) -> None:
    """Leaves the timeout of a connected socket to the system. Python's own makes two system calls of every read, and lets none wait for more than has
    arrived."""
    seconds = min(max(timeout, 1e-3), 1e9)
    limit = struct.pack("@ll", int(seconds), int(seconds % 1 * 1e6))  # struct timeval
    sock.settimeout(None)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, limit)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, limit)


class _Receiver(io.RawIOBase):
    """The receiving side of a socket."""

    def __init__(self, sock: socket.socket) -> None:
        self._receive = sock.recv_into
        self._whole = 0 if isinstance(sock, ssl.SSLSocket) else getattr(socket, "MSG_WAITALL", 0)

    def readable(self) -> bool:
        return True

    def readinto(self, view: Any) -> int:
        try:
            return self._receive(view)
        except BlockingIOError as error:
            raise TimeoutError("nothing was received for as long as the timeout allows") from error

    def readall_into(self, view: memoryview) -> int:
        """Fills the view, or stops early where a signal came or the connection ended."""
        try:
            return self._receive(view, len(view), self._whole)
        except BlockingIOError as error:
            raise TimeoutError("nothing was received for as long as the timeout allows") from error


class _Response:
    """The head of an answer, read; its body, to be read."""

    def __init__(self, sock: socket.socket) -> None:
        self._sock = sock
        self._receiver = _Receiver(sock)
        self._file: BinaryIO = io.BufferedReader(self._receiver, _BUFFER)
        parts = self._line().split(None, 2)
        if len(parts) < 2 or not parts[0].startswith(b"HTTP/1.") or not parts[1].isdigit():
            raise StreamCut("what answers is not an HTTP server")
        self.status = int(parts[1])
        self.headers: dict[str, str] = {}
        while True:
            line = self._line()
            if not line:
                break
            name, _, value = line.partition(b":")
            self.headers[name.decode("latin-1").strip().lower()] = value.decode("latin-1").strip()
            if len(self.headers) > 100:
                raise StreamCut("an answer with more than 100 header lines")
        self.chunked = self.headers.get("transfer-encoding", "").lower() == "chunked"

    def _line(self) -> bytes:
        line = self._file.readline(_MAX_LINE)
        if not line.endswith(b"\n"):
            raise StreamCut("the connection ended within a line")
        return line.rstrip(b"\r\n")

    def _chunk_size(self) -> int:
        line = self._line()
        try:
            size = int(line.split(b";")[0], 16)
        except ValueError:
            size = -1
        if size < 0:
            raise StreamCut(f"not a chunk's size: {line[:40]!r}")
        return size

    def read_message(self, allocate: Any) -> Optional[npt.NDArray[np.uint8]]:
        """The next chunk, read into the array of bytes that allocate(size) gives; None after the last one."""
        size = self._chunk_size()
        if size == 0:
            return None
        data: npt.NDArray[np.uint8] = allocate(size)
        self._read_into(data.data)
        if self._file.read(2) != b"\r\n":
            raise StreamCut("the connection ended after a chunk")
        return data

    def _read_into(self, view: memoryview) -> None:
        if len(view) <= _BUFFER:  # several messages arrive at once, and the copy of a small one costs nothing
            done = self._file.readinto(view)  # type: ignore[attr-defined]
        else:
            done = n = self._file.readinto1(view)  # type: ignore[attr-defined]  # what the buffer has of it
            while n and done < len(view):
                n = self._receiver.readall_into(view[done:])
                done += n
        if done < len(view):
            raise StreamCut(f"the connection ended {len(view) - done} bytes before the end of a batch")

    def read_all(self) -> bytes:
        """The whole body, which must be small."""
        parts = []
        total = 0
        if self.chunked:
            while True:
                message = self.read_message(lambda n: np.empty(min(n, _MAX_JSON), np.uint8))
                if message is None:
                    break
                parts.append(message.tobytes())
                total += len(parts[-1])
                if total > _MAX_JSON:
                    raise DsloadError(f"an answer larger than {_MAX_JSON} bytes")
            return b"".join(parts)
        length = self.headers.get("content-length")
        if length is None:
            return self._file.read(_MAX_JSON)
        if not length.isdigit() or int(length) > _MAX_JSON:
            raise DsloadError(f"an answer of {length} bytes")
        data = self._file.read(int(length))
        if len(data) != int(length):
            raise StreamCut("the connection ended within an answer")
        return data

    def error(self, path: str) -> FeedError:
        try:
            body = json.loads(self.read_all())
            return FeedError(str(body["error"]), self.status, str(body.get("hint", "")))
        except (ValueError, KeyError, TypeError, OSError):
            return FeedError(f"GET {path.split('?')[0]} was answered with status {self.status}", self.status)

    def __enter__(self) -> _Response:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def close(self) -> None:
        self._file.close()
        self._sock.close()
