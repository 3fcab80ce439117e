"""Loader of text in its own order: the first batches come while the text is still being built."""

from __future__ import annotations

import contextlib
import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Optional

import numpy as np
import pytest
import runs

from dsload import Loader
from dsload._binary import find_binary
from dsload.errors import DsloadError

OPTIONS: dict[str, Any] = {
    "tokenizer": "gpt2",
    "max_length": 128,
    "shuffle": "none",
    "batch_size": 16,
    "output": "numpy",
}


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("DSLOAD_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


def write(path: Path, size: int, end: str = "") -> Path:
    """Writes JSON Lines of about size bytes, then end."""
    rnd = random.Random(1)
    words = ["".join(rnd.choices("abcdefghijklmnop", k=rnd.randint(2, 9))) for _ in range(500)]
    lines = [json.dumps({"text": " ".join(rnd.choices(words, k=rnd.randint(5, 150)))}) + "\n" for _ in range(1000)]
    with path.open("w") as f:
        n = 0
        while n < size:
            for i, line in enumerate(lines):
                n += f.write(f'{{"i": {i}, {line[1:]}')
        f.write(end)
    return path


def children(pid: int) -> list[int]:
    """The processes that pid started and that still run."""
    found = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            state, parent = path.read_text().rpartition(")")[2].split()[:2]
        except OSError:
            continue  # it ended
        if int(parent) == pid and state != "Z":
            found.append(int(path.parent.name))
    return found


def builder(loader: Loader) -> Optional[int]:
    """The process that builds for a loader's server."""
    assert loader._server is not None and loader._server._process is not None
    return next(iter(children(loader._server._process.pid)), None)


def state_of(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return "gone"


class Stopped:
    """A loader whose build is stopped, so that it is certain to be unfinished until `go_on` is called."""

    def __init__(self, folder: Path, end: str = "", **options: Any) -> None:
        for size in (8 << 20, 64 << 20, 512 << 20):
            self.source = write(folder / f"corpus-{size}.jsonl", size, end)
            try:
                self.loader = Loader(self.source, **{**OPTIONS, **options})
            except DsloadError:
                assert end, "a build of good text failed"
                continue  # it has failed already
            if self._stop(end):
                return
            self.loader.close()
        raise AssertionError("every build ended before it could be stopped")

    def _stop(self, end: str) -> bool:
        """Stops the build and reports whether it is unfinished."""
        pid = builder(self.loader)
        if pid is None:
            return False
        self.pid = pid
        try:
            os.kill(pid, signal.SIGSTOP)
            while state_of(pid) not in ("T", "t", "Z", "gone"):
                time.sleep(0.001)
            if state_of(pid) in "Tt" and not self.loader._epochs.describe(wait=False):
                return True
        except ProcessLookupError:
            return False
        except DsloadError:
            assert end, "a build of good text failed"
        with contextlib.suppress(ProcessLookupError):
            self.go_on()
        return False

    def go_on(self) -> None:
        os.kill(self.pid, signal.SIGCONT)


@pytest.fixture
def stopped(tmp_path: Path) -> Iterator[Stopped]:
    it = Stopped(tmp_path)
    yield it
    with contextlib.suppress(ProcessLookupError):
        it.go_on()
    it.loader.close()


needs_proc = pytest.mark.skipif(sys.platform != "linux", reason="finds the build by /proc")


def content(batches: Any) -> list[tuple[int, bytes, bytes]]:
    return [(int(b["next"][0]), b["row"].tobytes(), b["input_ids"].tobytes()) for b in batches]


@needs_proc
def test_batches_before_the_end_are_those_after_it(stopped: Stopped) -> None:
    with stopped.loader as loader:
        it = iter(loader)
        first = [next(it) for _ in range(20)]
        assert "being built" in repr(loader)
        assert first[0]["row"].tolist() == list(range(16))
        state = loader.state_dict()
        stopped.go_on()
        got = content(first) + content(it)
        assert len(loader) == len(got), "the length is known now"
        assert sum(len(np.frombuffer(rows, np.int64)) for _, rows, _ in got) == loader.num_examples
    with Loader(stopped.source, **OPTIONS) as loader:  # built before
        assert "being built" not in repr(loader)
        assert content(loader) == got
        loader.load_state_dict(state)
        assert content(loader) == got[20:]


@needs_proc
def test_two_epochs_and_two_ranks(tmp_path: Path) -> None:
    stopped = Stopped(tmp_path, epochs=2, rank=1, world=2)
    with stopped.loader as loader:
        it = iter(loader)
        first = [next(it) for _ in range(4)]
        assert first[0]["row"].tolist() == list(range(16, 32))
        stopped.go_on()
        got = content(first) + content(it)
        assert len(got) == len(loader)
    with Loader(stopped.source, **OPTIONS, epochs=2, rank=1, world=2) as loader:
        assert content(loader) == got


@needs_proc
def test_failed_build_is_an_error(tmp_path: Path) -> None:
    stopped = Stopped(tmp_path, end="{ no JSON\n")
    with stopped.loader as loader:
        it = iter(loader)
        next(it)
        stopped.go_on()
        with pytest.raises(DsloadError, match=r"(?s)corpus-.*JSON"):
            for _ in it:
                pass
        with pytest.raises(DsloadError):
            len(loader)


@needs_proc
def test_killed_server_starts_again(stopped: Stopped) -> None:
    with stopped.loader as loader:
        it = iter(loader)
        first = [next(it) for _ in range(5)]
        assert loader._server is not None and loader._server._process is not None
        loader._server._process.kill()
        stopped.go_on()
        got = content(first) + content(it)
    with Loader(stopped.source, **OPTIONS) as loader:
        assert content(loader) == got


@needs_proc
def test_killed_trainer_leaves_no_build(tmp_path: Path) -> None:
    source = write(tmp_path / "corpus.jsonl", 48 << 20)
    code = (
        "import sys; from dsload import Loader; l = Loader(sys.argv[1], tokenizer='gpt2', shuffle='none', "
        "output='numpy');"
        "next(iter(l)); print(l._server._process.pid, flush=True); sys.stdin.read()"
    )
    trainer = subprocess.Popen([sys.executable, "-c", code, str(source)], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert trainer.stdout is not None
    server = int(trainer.stdout.readline())
    left = [server, *children(server)]
    trainer.kill()
    trainer.communicate()
    deadline = time.monotonic() + runs.HANGS
    while any(state_of(pid) not in ("gone", "Z") for pid in left):
        assert time.monotonic() < deadline, f"{left} still run"
        time.sleep(0.05)


@needs_proc
def test_other_orders_wait_and_say_so(tmp_path: Path) -> None:
    """A shuffled order is one of all rows: a loader waits for them, and the server of another program's text says
    why."""
    binary = find_binary()
    assert binary is not None
    source = write(tmp_path / "corpus.jsonl", 24 << 20)
    socket = tmp_path / "s"
    command = [binary, "serve", str(source), "--tokenizer", "gpt2", "--max-length", "128", "--socket", str(socket)]
    server = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    try:
        assert server.stdout is not None and server.stdout.readline()
        code = (
            "import sys; from dsload import Loader\n"
            "with Loader(socket=sys.argv[1], output='numpy') as l: print(len(l), sum(len(b['row']) for b in l))"
        )
        run = subprocess.run(
            [sys.executable, "-c", code, str(socket)], capture_output=True, text=True, timeout=runs.HANGS
        )
        assert run.returncode == 0, run.stderr
        batches, rows = map(int, run.stdout.split())
        assert batches == -(-rows // 32)
        assert run.stderr == "" or "still being built" in run.stderr
    finally:
        server.terminate()
        server.communicate()
