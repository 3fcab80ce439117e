"""A feed that many trainers come to and leave for a long time: does its memory stay flat, and does every client get each row once?

    python bench/long/feed.py DATASET --dsload ./dsload [--clients 64] [--minutes 60]

Each client reads a shuffled, endless order of its own with pauses as long as a training step, leaves after a random time, with its last batch's state, and
resumes from there. It checks that each batch begins where the one before it said. Prints one JSON object: batches and visits, resident memory, open files and
threads of the server in ten equal parts of the time, and its CPU seconds.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from typing import Any

BENCH = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..")
sys.path[:0] = [BENCH, os.path.join(BENCH, "..", "python")]
import dsload  # noqa: E402
from measure import cpu_of  # noqa: E402

PARTS = 10


class Client(threading.Thread):
    """One trainer. batches: how many it got. visits: how often it connected. wrong: what it got that does not follow from the batch before."""

    def __init__(self, number: int, socket: str, end: float) -> None:
        super().__init__()
        self.number, self.socket, self.end = number, socket, end
        self.random = random.Random(number)
        self.batches = self.visits = 0
        self.wrong: list[str] = []

    def run(self) -> None:
        state: dict[str, Any] | None = None
        try:
            while time.time() < self.end:
                state = self.visit(state, min(self.end, time.time() + self.random.uniform(20, 120)))
        except Exception as e:  # a thread's error would go unseen
            self.wrong.append(repr(e))

    def visit(self, state: dict[str, Any] | None, until: float) -> dict[str, Any] | None:
        """Reads until a time, from a state on, and returns the state after the last batch."""
        self.visits += 1
        following = None
        with dsload.Loader(socket=self.socket, batch_size=32, seed=self.number, output="numpy", epochs=0) as loader:
            if state is not None:
                loader.load_state_dict(state)
                following = state["next"]
            for batch in loader:
                self.batches += 1
                if following is not None and int(batch["row"][0]) != following:
                    self.wrong.append(f"row {int(batch['row'][0])} came where {following} was due")
                following = int(batch["next"][0])
                if time.time() >= until:
                    return {**loader.state_dict(after=batch), "next": following}
                time.sleep(self.random.uniform(0.5, 2))
        return None


def figures(pid: int) -> tuple[int, int, int]:
    """Resident bytes, open files and threads of a process."""
    with open(f"/proc/{pid}/status") as f:
        status = dict(line.split(":", 1) for line in f)
    return int(status["VmRSS"].split()[0]) * 1024, len(os.listdir(f"/proc/{pid}/fd")), int(status["Threads"])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("dataset")
    parser.add_argument("--dsload", default="dsload")
    parser.add_argument("--clients", type=int, default=64)
    parser.add_argument("--minutes", type=float, default=60)
    a = parser.parse_args()
    seconds = a.minutes * 60
    with tempfile.TemporaryDirectory() as scratch:
        socket = os.path.join(scratch, "feed.sock")
        server = subprocess.Popen([a.dsload, "serve", a.dataset, "--socket", socket], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        while not os.path.exists(socket):
            time.sleep(0.01)
        start = time.time()
        clients = [Client(i, socket, start + seconds) for i in range(a.clients)]
        for client in clients:
            client.start()
        seen: list[list[tuple[int, int, int]]] = [[] for _ in range(PARTS)]
        while (now := time.time() - start) < seconds:
            seen[int(now * PARTS / seconds)].append(figures(server.pid))
            time.sleep(seconds / PARTS / 60)
        for client in clients:
            client.join()
        cpu = cpu_of(server.pid)
        server.terminate()
        code = server.wait()
    wrong = [w for c in clients for w in c.wrong]
    print(json.dumps({
        "clients": a.clients, "minutes": a.minutes, "batches": sum(c.batches for c in clients), "visits": sum(c.visits for c in clients),
        "wrong": wrong[:10], "wrong_batches": len(wrong), "server_cpu_s": round(cpu, 1), "server_exit": code,
        **{name: [round(statistics.median(f[k] for f in part)) for part in seen if part] for k, name in enumerate(("rss_bytes", "files", "threads"))},
    }, indent=1))
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
