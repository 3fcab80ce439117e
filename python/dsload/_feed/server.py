"""A loader's own server, which starts with the loader and ends with its process.

The server's standard input is a pipe whose other end only this process holds. However this process ends, even by kill
-9, the kernel closes that end, and the server reads the end of its input and exits (`--exit-with-stdin`). Processes
forked from this one close their copy at once.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import subprocess
import tempfile
import threading
import time
import weakref
from collections.abc import Sequence
from typing import IO, Any, Optional, Union

from .._words import in_python
from ..errors import ServerFailed
from .transport import Endpoint

_START_SECONDS = 60.0
# The size of sun_path, with its terminating zero.
_MAX_SOCKET_PATH = 107

_owned: weakref.WeakSet[Server] = weakref.WeakSet()


class Server:
    """`dsload serve` on a private unix socket (mode 0600). Raises ServerFailed if it does not come up, OSError if no
    process can be started."""

    def __init__(
        self,
        binary: str,
        datasets: Sequence[str],
        *,
        memory: Union[str, int, None] = None,
        timeout: float = 300.0,
    ) -> None:
        self._command = [
            binary,
            "serve",
            *(["--memory", str(memory)] if memory is not None else []),
            "--exit-with-stdin",
            "--log-level",
            "warn",
        ]
        self._datasets = list(datasets)
        self._lock = threading.Lock()
        self._pid = os.getpid()
        self._process: Optional[subprocess.Popen[bytes]] = None
        self._folder = ""  # in which relative names of datasets mean the same in every start
        with contextlib.suppress(OSError):
            self._folder = os.getcwd()
        self._log: IO[bytes] = tempfile.TemporaryFile(prefix="dsload-log-")  # noqa: SIM115 (lives as long as the server)
        self.endpoint = Endpoint(path=_socket_path(), timeout=timeout)
        _owned.add(self)
        try:
            self._start()
        except BaseException:
            self.close()
            raise

    def _start(self) -> None:
        command = [*self._command, "--socket", self.endpoint.path, "--", *self._datasets]
        if self._process is not None and self._process.stdin is not None:
            self._process.stdin.close()
        self._log_start = self._log.seek(0, os.SEEK_END)
        folder = self._folder if os.path.isdir(self._folder) else None
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=self._log, stderr=self._log, cwd=folder)
        deadline = time.monotonic() + _START_SECONDS
        wait = 0.002
        while True:
            with contextlib.suppress(OSError):
                self.endpoint.connect().close()
                return
            code = self._process.poll()
            if code is not None:
                raise ServerFailed(
                    f"dsload serve {' '.join(self._datasets)} ended with exit code {code}: "
                    f"{in_python(self.log_tail())}",
                    code,
                )
            if time.monotonic() > deadline:
                raise ServerFailed(
                    f"dsload serve {' '.join(self._datasets)} did not listen within {_START_SECONDS:.0f} s: "
                    f"{self.log_tail()}"
                )
            time.sleep(wait)
            wait = min(wait * 1.5, 0.1)

    @property
    def is_mine(self) -> bool:
        """False in a process forked from the one that started the server."""
        return os.getpid() == self._pid

    @property
    def process_id(self) -> Optional[int]:
        return self._process.pid if self._process is not None else None

    def revive(self) -> None:
        """Starts the server again if it has ended; only in the process that owns it."""
        if not self.is_mine:
            return
        with self._lock:
            if self._process is not None and self._process.poll() is not None:
                self._start()

    def log_tail(self) -> str:
        """The last lines that the server wrote since it was started last."""
        self._log.seek(max(self._log.seek(0, os.SEEK_END) - 2000, self._log_start))
        text = self._log.read().decode(errors="replace").strip()
        return "\n".join(text.splitlines()[-8:])

    def close(self) -> None:
        """Ends the server and waits for it. Does nothing in forked processes, and nothing the second time."""
        process, self._process = self._process, None
        if process is None or not self.is_mine:
            return
        if process.stdin is not None:
            process.stdin.close()
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        # A killed server leaves its socket and the lock next to it.
        for path in (self.endpoint.path, self.endpoint.path + ".lock"):
            with contextlib.suppress(OSError):
                os.unlink(path)
        self._log.close()

    def __del__(self) -> None:
        # When the interpreter exits, modules such as contextlib are gone.
        try:  # noqa: SIM105
            self.close()
        except Exception:
            pass

    def _forget(self) -> None:
        """In a forked process: closes its copy of the pipe, so that it does not keep the server alive."""
        process = self._process
        if process is not None and process.stdin is not None:
            with contextlib.suppress(OSError):
                process.stdin.close()
            # Otherwise Popen warns of a child of another process.
            process.returncode = 0


def _socket_path() -> str:
    name = f"dsload-{secrets.token_hex(8)}.sock"
    for folder in (os.environ.get("XDG_RUNTIME_DIR"), tempfile.gettempdir(), "/tmp"):
        if (
            folder
            and os.path.isdir(folder)
            and os.access(folder, os.W_OK)
            and len(os.fsencode(os.path.join(folder, name))) < _MAX_SOCKET_PATH
        ):
            return os.path.join(folder, name)
    raise ServerFailed("no folder for a socket: the temporary folder's name is too long, and /tmp cannot be written")


def _after_fork(*_: Any) -> None:
    for server in list(_owned):
        server._forget()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
