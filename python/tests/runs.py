"""Training runs on gloo processes, for the tests: each process notes the rows of every step, and may be killed in the
middle."""

from __future__ import annotations

import contextlib
import json
import multiprocessing
import multiprocessing.forkserver
import os
import signal
import socket
import subprocess
import time
from collections.abc import Iterable, Iterator
from itertools import chain
from pathlib import Path
from typing import Any, Callable, Optional

HERE = Path(__file__).resolve().parent

# Past this many seconds a process hangs. On a busy machine a second's work may take minutes.
HANGS = 600

# A trainer of Lightning that writes and prints nothing.
LIGHTNING: dict[str, Any] = {
    "accelerator": "cpu", "logger": False, "enable_checkpointing": False, "enable_progress_bar": False,
    "enable_model_summary": False,
}  # fmt: skip


def processes_of_their_own() -> Any:
    """The context of processes that begin without the state of this one. They share one import of the frameworks
    (preloaded.py), which takes longer than most runs."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["preloaded"])
    before = os.environ.get("PYTHONPATH")
    # The server does not get sys.path.
    os.environ["PYTHONPATH"] = os.pathsep.join(str(p) for p in (HERE.parent, HERE, before) if p)
    try:
        multiprocessing.forkserver.ensure_running()
    finally:
        os.environ.pop("PYTHONPATH")
        if before is not None:
            os.environ["PYTHONPATH"] = before
    return context


def apart(run: Callable[..., None], *args: Any) -> Optional[int]:
    """Runs run(*args) in a process of its own, and returns how it ended."""
    process = processes_of_their_own().Process(target=run, args=args)
    try:
        process.start()
        process.join(HANGS)
    finally:
        process.kill()
    return process.exitcode


@contextlib.contextmanager
def server(command: Callable[[int], list[str]]) -> Iterator[int]:
    """Runs a program with a port as its argument, and yields the port once it answers. If another program has taken
    the port meanwhile, tries the next."""
    for _ in range(20):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        with subprocess.Popen(command(port), stdout=subprocess.DEVNULL) as process:
            try:
                while process.poll() is None:
                    with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port)):
                        break
                    time.sleep(0.02)
                if process.poll() is None:
                    yield port
                    return
            finally:
                process.kill()
    raise AssertionError(f"{command(0)} ends at once")


def on_gloo(world: int, run: Callable[..., Any], *args: Any, killed: bool = False) -> list[Any]:
    """Runs run(rank, world, *args) in `world` processes with the variables of a launcher, for one in this process.
    Returns what each returned, by rank. killed: they must end by SIGKILL."""
    if world == 1 and not killed:
        return [run(0, 1, *args)]
    from torch.distributed import TCPStore

    # Where the processes meet is kept here, as torchrun keeps it: a port that they only know by number could be taken
    # meanwhile.
    store = TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False)
    context = processes_of_their_own()
    pipes = [context.Pipe(duplex=False) for _ in range(world)]
    processes = [
        context.Process(target=_child, args=(r, world, store.port, pipes[r][1], run, args)) for r in range(world)
    ]
    try:
        for p, (_, theirs) in zip(processes, pipes):
            p.start()
            theirs.close()  # from now on, reading ends with the process
        results = [_received(mine) for mine, _ in pipes]
        for p in processes:
            p.join(HANGS)
        codes = [p.exitcode for p in processes]
        # Once one process is gone, the other may fail for that before its own end.
        assert -signal.SIGKILL in codes if killed else codes == [0] * world, codes
        return results
    finally:
        for p in processes:
            p.kill()


@contextlib.contextmanager
def ended(feed: Iterable[Any]) -> Iterator[Any]:
    """An iteration of a DataLoader whose workers are ended with it. After an error, those of an iteration that is
    collected as garbage are waited for, five seconds each."""
    batches = iter(feed)
    try:
        yield batches
    finally:
        getattr(batches, "_shutdown_workers", lambda: None)()


def every(feed: Iterable[Any]) -> list[Any]:
    with ended(feed) as batches:
        return list(batches)


def _received(pipe: Any) -> Any:
    """What a process sent, or None where it ended without."""
    assert pipe.poll(HANGS), "a process hangs"
    with contextlib.suppress(EOFError):
        return pipe.recv()


def _child(rank: int, world: int, port: int, pipe: Any, run: Callable[..., Any], args: Any) -> None:
    os.environ.update(
        RANK=str(rank),
        LOCAL_RANK=str(rank),
        NODE_RANK="0",
        WORLD_SIZE=str(world),
        LOCAL_WORLD_SIZE=str(world),
        MASTER_ADDR="127.0.0.1",
        MASTER_PORT=str(port),
        GLOO_SOCKET_IFNAME="lo",
        ACCELERATE_USE_CPU="true",
        TORCHELASTIC_USE_AGENT_STORE="True",
        TORCHELASTIC_RESTART_COUNT="0",
    )
    pipe.send(run(rank, world, *args))


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


class Notes:
    """The rows of every step, in a file a rank, safe from a kill."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def add(self, batch: Any) -> None:
        with open(self.path, "a") as f:
            f.write(json.dumps(batch["example"].flatten().tolist()) + "\n")

    @staticmethod
    def read(folder: Path, name: str, world: int, first: int = 0, until: Optional[int] = None) -> list[list[int]]:
        """What all ranks noted from step `first` to `until`: a list a step, ranks in order."""
        ranks = [
            [json.loads(line) for line in (folder / f"{name}-{r}").read_text().splitlines()][first:until]
            for r in range(world)
        ]
        return [list(chain(*step)) for step in zip(*ranks)]


def passes(steps: list[list[int]], rows: int) -> list[list[int]]:
    """The rows in order, a list an epoch. Fails where an epoch does not have each row once, or two have the same
    order."""
    flat = [e for step in steps for e in step]
    found = [flat[i : i + rows] for i in range(0, len(flat), rows)]
    assert all(sorted(p) == list(range(rows)) for p in found), [(len(p), len(set(p))) for p in found]
    assert len({tuple(p) for p in found}) == len(found)
    return found
