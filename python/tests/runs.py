"""Training runs on gloo processes, for the tests: each process notes the rows of every step, and may be killed in the middle."""

from __future__ import annotations

import importlib.util
import json
import multiprocessing
import os
import signal
import socket
from itertools import chain
from pathlib import Path
from typing import Any, Callable, Optional


def processes_of_their_own() -> Any:
    """The context of processes that begin without the state of this one. They share one import of the frameworks, which takes longer than most runs."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([name for name in ("torch", "accelerate", "transformers", "dsload") if importlib.util.find_spec(name)])
    return context


def on_gloo(world: int, run: Callable[..., None], *args: Any, killed: bool = False) -> None:
    """Runs run(rank, world, *args) in `world` processes with the variables of a launcher, for one in this process. killed: they must end by SIGKILL."""
    if world == 1 and not killed:
        run(0, 1, *args)
        return
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        port = s.getsockname()[1]
    context = processes_of_their_own()
    processes = [context.Process(target=_child, args=(r, world, port, run, args)) for r in range(world)]
    try:
        for p in processes:
            p.start()
        for p in processes:
            p.join(300)
        codes = [p.exitcode for p in processes]
        # Once one process is gone, the other may fail for that before its own end.
        assert -signal.SIGKILL in codes if killed else codes == [0] * world, codes
    finally:
        for p in processes:
            p.kill()


def _child(rank: int, world: int, port: int, run: Callable[..., None], args: Any) -> None:
    os.environ.update(
        RANK=str(rank), LOCAL_RANK=str(rank), NODE_RANK="0", WORLD_SIZE=str(world), LOCAL_WORLD_SIZE=str(world),
        MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port), GLOO_SOCKET_IFNAME="lo", ACCELERATE_USE_CPU="true",
    )  # fmt: skip
    run(rank, world, *args)


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
        ranks = [[json.loads(line) for line in (folder / f"{name}-{r}").read_text().splitlines()][first:until] for r in range(world)]
        return [list(chain(*step)) for step in zip(*ranks)]


def passes(steps: list[list[int]], rows: int) -> list[list[int]]:
    """The rows in order, a list an epoch. Fails where an epoch does not have each row once, or two have the same order."""
    flat = [e for step in steps for e in step]
    found = [flat[i : i + rows] for i in range(0, len(flat), rows)]
    assert all(sorted(p) == list(range(rows)) for p in found), [(len(p), len(set(p))) for p in found]
    assert len({tuple(p) for p in found}) == len(found)
    return found
