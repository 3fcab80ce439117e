"""HTTP/1.1 to a dsload server, over a unix socket, TCP or TLS, for two purposes: small JSON answers, and streams of
Arrow messages.

The server sends every encapsulated Arrow message as one HTTP chunk, so a message is read with one call into the batch's
memory: from a unix socket by one system call that waits for all of it, outside Python. A body that ends without its
last, empty chunk was cut.

The server is not trusted: lines, header lines and answers have limits; memory for a message grows with the bytes that
have arrived, not with the size that its chunk claims; and an answer's head and each message must arrive within the
timeout, however slowly their bytes come.
"""

from __future__ import annotations

import contextlib
import io
import json
import re
import socket
import ssl
import struct
import time
from dataclasses import dataclass
from typing import Any, BinaryIO, Optional
from urllib.parse import urlsplit

import numpy as np
import numpy.typing as npt

from ..errors import FeedError, ParameterError

_LOOPBACK = ("localhost", "127.0.0.1", "::1")
_MAX_LINE = 64 << 10
_MAX_HEADER_LINES = 100
_MAX_JSON = 256 << 20
_MAX_ERROR = 1 << 20
_BUFFER = 256 << 10
_PIECE = 16 << 20  # the most that is allocated for a chunk's claimed size
_CHUNK = re.compile(rb"\s*([0-9a-fA-F]{1,16})\s*(?:;.*)?")


class StreamCut(ConnectionError):
    """The body was cut, or violates the protocol."""


class Secret:
    """A token that no repr shows."""

    __slots__ = ("value",)

    def __init__(self, value: str) -> None:
        self.value = value

    def __repr__(self) -> str:
        return "Secret(...)"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Secret) and other.value == self.value

    def __hash__(self) -> int:
        return hash(self.value)


def checked_token(token: Optional[str]) -> Optional[Secret]:
    """The token as a Secret. Raises ValueError, which does not show it, if it cannot appear in a header line."""
    if token is None or token == "":
        return None
    for at, c in enumerate(token):
        if not "!" <= c <= "~":
            what = "a line end" if c in "\r\n" else "a character that a header cannot hold"
            raise ValueError(
                f"token: character {at + 1} of {len(token)} is {what}; a token is printable ASCII without spaces"
            )
    return Secret(token)


@dataclass(frozen=True)
class Endpoint:
    """Where a server listens. `path` is a unix socket; else host and port. Can be pickled; the token never shows in
    repr."""

    path: str = ""
    host: str = ""
    port: int = 0
    tls: bool = False
    ca_file: Optional[str] = None
    token: Optional[Secret] = None
    timeout: float = 300.0

    @staticmethod
    def of_url(url: str, *, token: Optional[str], ca_file: Optional[str], timeout: float) -> Endpoint:
        """From http://… or https://…. Raises ValueError for other schemes, and if a token would be sent in the
        clear."""
        parts = urlsplit(url)
        if "@" in parts.netloc:
            raise ValueError("url: it has a user name or password, which dsload does not use; pass token= instead")
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError(f"url must be http://HOST:PORT or https://HOST:PORT, got {url!r}")
        if parts.path not in ("", "/") or parts.query or parts.fragment:
            raise ValueError(
                f"url names a server, without path or query: {url!r}; the parameters of batches are the Loader's, "
                "such as split= and, for one of several datasets, mix={NAME: 1}"
            )
        if not re.fullmatch(r"[!-~]+", parts.hostname):
            raise ValueError(f"url: {parts.hostname!r} is not a host name")
        if token and parts.scheme == "http" and parts.hostname not in _LOOPBACK:
            raise ValueError("a token is sent over https only; the server serves TLS with --tls-cert and --tls-key")
        port = parts.port or (443 if parts.scheme == "https" else 80)
        tls = parts.scheme == "https"
        return Endpoint(
            host=parts.hostname, port=port, tls=tls, ca_file=ca_file, token=checked_token(token), timeout=timeout
        )

    @property
    def _authority(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    def __repr__(self) -> str:
        return self.path or f"{'https' if self.tls else 'http'}://{self._authority}"

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

    def open(self, path: str) -> Response:
        """Sends GET path and reads the head of the answer, whatever its status. Raises OSError if the server cannot be
        reached."""
        sock = self.connect()
        try:
            head = f"GET {path} HTTP/1.1\r\nHost: {'dsload' if self.path else self._authority}\r\nConnection: close\r\n"
            if self.token is not None:
                head += f"Authorization: Bearer {self.token.value}\r\n"
            sock.sendall((head + "\r\n").encode("ascii"))
            return Response(sock, path, self.timeout)
        except BaseException:
            sock.close()
            raise

    def request(self, path: str) -> Response:
        """Like open. Raises FeedError if the server answers with an error."""
        response = self.open(path)
        if response.status != 200:
            with response:
                raise response.error()
        return response


def _wait_in_kernel(sock: socket.socket, timeout: float) -> None:
    """Leaves the timeout of a connected socket to the system. With Python's own, every read takes two system calls, and
    none waits for all of its bytes."""
    seconds = min(max(timeout, 1e-3), 1e9)
    limit = struct.pack("@ll", int(seconds), int(seconds % 1 * 1e6))  # struct timeval
    sock.settimeout(None)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, limit)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, limit)


class _Receiver(io.RawIOBase):
    """The receiving side of a socket. deadline: when the current read must be complete, by time.monotonic()."""

    def __init__(self, sock: socket.socket, timeout: float) -> None:
        self._receive = sock.recv_into
        self._whole = 0 if isinstance(sock, ssl.SSLSocket) else getattr(socket, "MSG_WAITALL", 0)
        self._timeout = timeout
        self.expect()

    def expect(self) -> None:
        """Restarts the timeout."""
        self._deadline = time.monotonic() + self._timeout

    def readable(self) -> bool:
        return True

    def readinto(self, view: Any) -> int:
        return self._into(view, 0)

    def readall_into(self, view: memoryview) -> int:
        """Fills the view, or stops early at a signal or the end of the connection."""
        return self._into(view, self._whole)

    def _into(self, view: Any, flags: int) -> int:
        if time.monotonic() > self._deadline:
            raise TimeoutError("the answer is too slow: it was not complete within the timeout")
        try:
            return self._receive(view, len(view), flags)
        except BlockingIOError as error:
            raise TimeoutError("nothing was received within the timeout") from error


class Response:
    """An answer: its head has been read, its body has not."""

    def __init__(self, sock: socket.socket, path: str, timeout: float) -> None:
        self._sock, self._path = sock, path
        self._receiver = _Receiver(sock, timeout)
        self._file: BinaryIO = io.BufferedReader(self._receiver, _BUFFER)
        parts = self._line().split(None, 2)
        if len(parts) < 2 or not parts[0].startswith(b"HTTP/1.") or not re.fullmatch(rb"[1-5][0-9][0-9]", parts[1]):
            raise StreamCut("the server is not an HTTP server")
        self.status = int(parts[1])
        self.headers: dict[str, str] = {}
        for _ in range(_MAX_HEADER_LINES):
            line = self._line()
            if not line:
                break
            name, _, value = line.partition(b":")
            self.headers[name.decode("latin-1").strip().lower()] = value.decode("latin-1").strip()
        else:
            raise StreamCut(f"an answer with more than {_MAX_HEADER_LINES} header lines")
        self.chunked = self.headers.get("transfer-encoding", "").lower() == "chunked"

    def _line(self) -> bytes:
        line = self._file.readline(_MAX_LINE)
        if not line.endswith(b"\n"):
            raise StreamCut("the connection ended within a line, or the line is too long")
        return line.rstrip(b"\r\n")

    def _chunk_size(self) -> int:
        self._receiver.expect()
        line = self._line()
        size = _CHUNK.fullmatch(line)
        if size is None:
            raise StreamCut(f"not a chunk's size: {line[:40]!r}")
        return int(size[1], 16)

    def read_message(self, allocate: Any) -> Optional[npt.NDArray[np.uint8]]:
        """The next chunk, read into the array of bytes that allocate(size) gives; None after the last one."""
        size = self._chunk_size()
        if size == 0:
            return None
        data: npt.NDArray[np.uint8] = (
            self._read_large(size, allocate) if size > _PIECE else self._read_small(size, allocate)
        )
        if self._file.read(2) != b"\r\n":
            raise StreamCut("the connection ended after a chunk")
        return data

    def _read_small(self, size: int, allocate: Any) -> Any:
        data = allocate(size)
        self._read_into(data.data)
        return data

    def _read_large(self, size: int, allocate: Any) -> Any:
        """Reads in parts, each as large as all earlier ones together, so that memory grows with received bytes and not
        with a claimed size."""
        held = np.empty(_PIECE, np.uint8)
        done = 0
        try:
            while True:
                self._read_into(held.data[done : min(len(held), size)])
                done = min(len(held), size)
                if done == size:
                    break
                # The last one is allocated by the caller's function.
                larger = allocate(size) if 2 * len(held) >= size else np.empty(2 * len(held), np.uint8)
                larger[:done] = held
                held = larger
        except MemoryError as error:
            raise StreamCut(
                f"a message of {size} bytes does not fit into memory ({done} have arrived); ask for smaller batches"
            ) from error
        return held

    def _read_into(self, view: memoryview) -> None:
        if len(view) <= _BUFFER:  # several messages arrive at once, and copying a small one is cheap
            done = self._file.readinto(view)  # type: ignore[attr-defined]
        else:
            done = n = self._file.readinto1(view)  # type: ignore[attr-defined]  # the part in the buffer
            while n and done < len(view):
                n = self._receiver.readall_into(view[done:])
                done += n
        if done < len(view):
            raise StreamCut(f"the connection ended {len(view) - done} bytes before the end of a batch")

    def read_all(self, limit: int = _MAX_JSON) -> bytes:
        """The whole body, of no more than `limit` bytes."""
        body = bytearray()
        self._receiver.expect()
        if self.chunked:
            while size := self._chunk_size():
                self._append(body, size, limit)
                if self._file.read(2) != b"\r\n":
                    raise StreamCut("the connection ended after a chunk")
            return bytes(body)
        length = self.headers.get("content-length")
        if length is None:
            while piece := self._file.read(_BUFFER):
                body += piece
                if len(body) > limit:
                    raise StreamCut(f"an answer of more than {limit} bytes")
            return bytes(body)
        if not re.fullmatch(r"[0-9]{1,18}", length):
            raise StreamCut(f"an answer of {length[:40]!r} bytes")
        self._append(body, int(length), limit)
        return bytes(body)

    def _append(self, body: bytearray, size: int, limit: int) -> None:
        if len(body) + size > limit:
            raise StreamCut(f"an answer of more than {limit} bytes")
        while size:
            piece = self._file.read(min(size, _BUFFER))
            if not piece:
                raise StreamCut("the connection ended within an answer")
            body += piece
            size -= len(piece)

    def read_json(self) -> Any:
        """The body as JSON. Raises StreamCut if it is not JSON."""
        try:
            return json.loads(self.read_all())
        except (ValueError, RecursionError, MemoryError) as error:
            raise StreamCut(f"the answer to GET {self._path.split('?')[0]} is not JSON: {str(error)[:100]}") from error

    def error(self) -> FeedError:
        """The server's error, for an answer with an error status."""
        try:
            body = json.loads(self.read_all(_MAX_ERROR))
            kind = ParameterError if self.status == 400 else FeedError
            return kind(str(body["error"]), self.status, str(body.get("hint", "")))
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError, OSError):
            return FeedError(f"GET {self._path.split('?')[0]} was answered with status {self.status}", self.status)

    def __enter__(self) -> Response:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def interrupt(self) -> None:
        """Ends a read that waits in another thread."""
        with contextlib.suppress(OSError):  # it may have ended already
            self._sock.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        self._file.close()
        self._sock.close()
