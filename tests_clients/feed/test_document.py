"""Runs the clients of docs/feed.md as they are, except for the socket."""

import os
import pathlib
import re
import subprocess
import sys

import polars
import pytest
from reference_data import need

DOCUMENT = pathlib.Path(__file__).resolve().parents[2] / "docs/feed.md"
QUERY = "batch_size=32&seed=1"


def snippet(language, socket):
    blocks = re.findall(rf"^```{language}\n(.*?)^```", DOCUMENT.read_text(encoding="utf-8"), re.M | re.S)
    blocks = [b for b in blocks if QUERY in b]
    assert len(blocks) == 1, f"docs/feed.md has {len(blocks)} clients in {language}"
    assert "/tmp/data.sock" in blocks[0]
    return blocks[0].replace("/tmp/data.sock", socket)


@pytest.fixture()
def steps(reference, dataset):
    """(rows, length, next) of each batch that the clients ask for."""
    return [(len(b["row"]), len(b["input_ids"][0]), b["next"][0]) for b in reference(dataset, QUERY)]


def run(folder, *command, **more):
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, **more)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_curl(serve, dataset, folder, steps):
    need("curl")
    run(folder, "bash", "-ec", snippet("sh", serve(dataset).socket))
    assert polars.read_ipc_stream(folder / "batches.arrows")["next"].to_list() == [step[2] for step in steps for _ in range(step[0])]


def test_python(serve, dataset, folder, steps):
    out = run(folder, sys.executable, "-c", snippet("python", serve(dataset).socket))
    assert out.splitlines() == [f"({rows}, {length}) {following}" for rows, length, following in steps]


def test_node(serve, dataset, folder, steps, node_modules):
    out = run(folder, "node", "-e", snippet("javascript", serve(dataset).socket), env={**os.environ, "NODE_PATH": str(node_modules)})
    assert out.splitlines() == [f"{rows} {following}n" for rows, _, following in steps]
