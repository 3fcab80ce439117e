"""How long a feed takes from its start as a process to its first batch, anywhere in the order of a large dataset.

    python bench/long/resume.py DATASET --dsload ./dsload [--rounds 20]

Each round starts a server for each mode in turn, and asks for the batches from a random row on. Prints one JSON object: for each mode the milliseconds of wall
time until the first batch has arrived, and of the server's CPU, as the median, the least and the most.
"""

from __future__ import annotations

import argparse
import http.client
import json
import os
import pathlib
import random
import socket
import statistics
import subprocess
import tempfile
import time

import pyarrow.ipc

MODES = {
    "shuffled": "",
    "in sequence": "shuffle=none",
    "bucket=4096": "bucket=4096",
    "packed, 2,048 tokens": "pack=bfd&max_length=2048",
}


def connect(path: str) -> http.client.HTTPConnection:
    """A connection to a server that is just starting."""
    connection = http.client.HTTPConnection("dsload")
    while True:
        connection.sock = socket.socket(socket.AF_UNIX)
        try:
            connection.sock.connect(path)
            return connection
        except (FileNotFoundError, ConnectionRefusedError):
            connection.sock.close()
            time.sleep(0.0002)


def first_batch(dsload: str, dataset: str, query: str) -> tuple[float, float, int]:
    """Milliseconds until the first batch, milliseconds of the server's CPU, and the batch's first row."""
    with tempfile.TemporaryDirectory() as scratch:
        path = os.path.join(scratch, "feed.sock")
        began = time.perf_counter()
        server = subprocess.Popen([dsload, "serve", dataset, "--socket", path], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            connection = connect(path)
            connection.request("GET", "/v1/batches?" + query)
            response = connection.getresponse()
            if response.status != 200:
                raise SystemExit(f"{query}: {response.read().decode()}")
            batch = pyarrow.ipc.open_stream(response).read_next_batch()
            wall = time.perf_counter() - began
            cpu = time.clock_gettime((~server.pid << 3) | 2)  # the clock of another process's CPU time
            response.close()
            connection.close()
        finally:
            server.terminate()
            server.wait()
    return 1e3 * wall, 1e3 * cpu, batch["row"][0].as_py()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("dataset")
    parser.add_argument("--dsload", default="dsload")
    parser.add_argument("--rounds", type=int, default=20)
    a = parser.parse_args()
    splits = json.loads(pathlib.Path(a.dataset, "manifest.json").read_text())["splits"]
    rows, tokens = next((s["examples"], s["tokens"]) for s in splits if s["name"] == "train")
    chance = random.Random(1)
    times: dict[str, list[tuple[float, float]]] = {mode: [] for mode in MODES}
    for i in range(-1, a.rounds):  # the first round warms up
        for mode, query in MODES.items():
            start = chance.randrange(tokens // 2048 if "pack" in query else rows)
            wall, cpu, row = first_batch(a.dsload, a.dataset, f"seed={i + 1}&start={start}&{query}")
            if row != start and not (row > start and "pack" in query):  # packed rows are numbered by window, with gaps
                raise SystemExit(f"{mode}: row {row} came where {start} was asked for")
            if i >= 0:
                times[mode].append((wall, cpu))
    print(json.dumps({"rows": rows, "rounds": a.rounds, "milliseconds": {
        mode: {name: {"median": round(statistics.median(v), 1), "least": round(min(v), 1), "most": round(max(v), 1)}
               for name, v in zip(("wall", "cpu"), zip(*runs, strict=True), strict=True)} for mode, runs in times.items()}}, indent=1))


if __name__ == "__main__":
    main()
