"""Three servers, as on three nodes, each for its own ranks: a run continues with another number of nodes, and every row
comes once."""

from __future__ import annotations

import contextlib
import pathlib
import shutil
import subprocess
from collections.abc import Iterator
from typing import Any

import pytest

pytestmark = pytest.mark.server

ROWS = 607


@pytest.fixture(scope="module")
def nodes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[pathlib.Path]]:
    """Sockets of three servers: two read the dataset from the storage that they share, one from a copy of its own."""
    import dsload
    from dsload._binary import find_binary

    base = tmp_path_factory.mktemp("nodes")
    with open(base / "c.txt", "w") as f:
        f.writelines(f"line {i} " + "and more words " * (i % 19) + "\n" for i in range(ROWS))
    dsload.build(base / "c.txt", out=base / "data", max_length=64)
    shutil.copytree(base / "data", base / "copy")
    with contextlib.ExitStack() as stack:
        sockets = []
        for number, data in enumerate((base / "data", base / "data", base / "copy")):
            socket = base / f"s{number}"
            command = [str(find_binary()), "serve", str(data), "--socket", str(socket), "--exit-with-stdin"]
            server = stack.enter_context(
                subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
            )
            stack.callback(server.kill)
            assert server.stdout is not None
            assert str(socket) in server.stdout.readline()
            sockets.append(socket)
        yield sockets


def run(sockets: list[pathlib.Path], world: int, steps: int, state: Any, batch_size: int = 8) -> tuple[list[int], Any]:
    """The examples that `world` ranks get in some steps, and the state after them; each rank asks the server of its
    node."""
    import dsload

    per_node = -(-world // len(sockets))
    seen: list[int] = []
    states = []
    for rank in range(world):
        with dsload.Loader(
            socket=sockets[rank // per_node],
            batch_size=batch_size,
            rank=rank,
            world=world,
            seed=5,
            tail="keep",
            output="numpy",
        ) as loader:
            if state is not None:
                loader.load_state_dict(state)
            after = None
            for step, batch in enumerate(loader):
                seen += batch["example"].tolist()
                if step + 1 == steps:
                    after = loader.state_dict()
                    break
            states.append(after)
    assert all(s == states[0] for s in states)  # the same on every rank, so one of them is enough to save
    return seen, states[0]


@pytest.mark.parametrize("worlds", [(3, 2), (6, 3), (2, 6), (3, 1, 4)])
def test_another_world_on_other_nodes(nodes: list[pathlib.Path], worlds: tuple[int, ...]) -> None:
    seen: list[int] = []
    state = None
    for i, world in enumerate(worlds):
        last = i + 1 == len(worlds)
        # Nodes come and go: as many servers as there are ranks for, beginning with another one each time.
        turned = nodes[i:] + nodes[:i]
        part, state = run(turned[: min(world, 3)], world, 10**9 if last else 5, state)
        seen += part
    assert sorted(seen) == list(range(ROWS))


def test_servers_give_the_same_batches(nodes: list[pathlib.Path]) -> None:
    orders = [run([socket], 1, 10**9, None)[0] for socket in nodes]
    assert orders[0] == orders[1] == orders[2]
    assert sorted(orders[0]) == list(range(ROWS))
