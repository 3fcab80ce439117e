"""Measures dsload.ray.build on this machine against the same build without Ray: wall time, and CPU time of all processes.

    DSLOAD_BINARY=... PYTHONPATH=python python bench/scale/ray_overhead.py --mb 240 --workers 2 --partitions 8 --rounds 3

Three ways take turns: `whole` is one build with that many workers; `parts` is plan, the partitions, that many at a time, and merge; `ray` is
the same commands as Ray tasks on a cluster of one node that begins and ends with the run. CPU time is that of every process that a run
started, as the kernel counts it, read 20 times a second: of a process that ends between two readings, the last of its time is missed.
Ray runs its workers at niceness 15, so that other programs on the machine slow them down; here they run at 0, as the builds without Ray do.
"""

from __future__ import annotations

import argparse
import concurrent.futures
import ctypes
import json
import os
import pathlib
import random
import shutil
import subprocess
import sys
import tempfile
import time

TICKS = os.sysconf("SC_CLK_TCK")
OPTIONS = {"max_length": 1024}
FLAGS = ["--max-length", "1024"]


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--mb", type=int, default=240)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--partitions", type=int, default=8)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--dir", default=None)
    parser.add_argument("--run", choices=("whole", "parts", "ray"), help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.run:
        return {"whole": whole, "parts": parts, "ray": on_ray}[args.run](args)
    ctypes.CDLL(None).prctl(36, 1)  # PR_SET_CHILD_SUBREAPER: what a run leaves is still counted
    with tempfile.TemporaryDirectory(dir=args.dir) as folder:
        write_corpus(pathlib.Path(folder) / "c.txt", args.mb * 1_000_000)
        digests = set()
        for number in range(args.rounds):
            for way in ("whole", "parts", "ray"):
                marks, cpu, wall = measured([sys.executable, __file__, "--run", way, "--dir", folder, "--workers", str(args.workers), "--partitions", str(args.partitions)])
                out = pathlib.Path(folder) / "out"
                split = json.loads((out / "manifest.json").read_text())["splits"][0]
                digests.add((split["examples"], split["tokens"]))
                shutil.rmtree(out)
                steps = ", ".join(f"{name} {seconds:.1f} s ({cpus:.1f} CPU-s)" for name, seconds, cpus in marks)
                print(f"round {number + 1}: {way}: {wall:.1f} s, {cpu:.1f} CPU-s: {steps}", flush=True)
        assert len(digests) == 1, digests


def write_corpus(path: pathlib.Path, size: int) -> None:
    rnd = random.Random(1)
    words = ["".join(rnd.choices("etaoinshrdlucmfwyp", k=rnd.randint(1, 11))) for _ in range(30_000)]
    with open(path, "w") as f:
        while f.tell() < size:
            f.write("".join(" ".join(rnd.choices(words, k=rnd.randint(5, 120))) + ".\n" for _ in range(1000)))


def measured(command: list[str]) -> tuple[list[tuple[str, float, float]], float, float]:
    """Runs a command to the end of all of its processes, and returns (step, seconds, CPU seconds) of each step that it names."""
    spent: dict[tuple[int, str], float] = {}
    readings = [(time.time(), 0.0)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    while process.poll() is None or descendants():
        read_cpu(spent)
        readings.append((time.time(), sum(spent.values())))
        reap(process.pid)
        time.sleep(0.05)
    said = process.stdout.read() if process.stdout else ""
    if process.returncode != 0:
        raise SystemExit(f"{' '.join(command)} ended with {process.returncode}: {said}")
    begin = readings[0][0]
    marks, last = [], begin
    for line in said.splitlines():
        at, name = line.split(" ", 1)
        marks.append((name, float(at) - last, at_time(readings, float(at)) - at_time(readings, last)))
        last = float(at)
    marks.append(("end", readings[-1][0] - last, readings[-1][1] - at_time(readings, last)))
    return marks, readings[-1][1], readings[-1][0] - begin


def at_time(readings: list[tuple[float, float]], when: float) -> float:
    return max((cpu for at, cpu in readings if at <= when), default=0.0)


def processes() -> dict[int, list[str]]:
    """The fields of /proc/PID/stat from the state on."""
    found = {}
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                found[int(name)] = pathlib.Path(f"/proc/{name}/stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue
    return found


def descendants() -> dict[int, list[str]]:
    found = processes()
    mine: set[int] = {os.getpid()}
    while True:
        more = {pid for pid, stat in found.items() if int(stat[1]) in mine} - mine
        if not more:
            break
        mine |= more
    return {pid: found[pid] for pid in mine - {os.getpid()}}


def read_cpu(spent: dict[tuple[int, str], float]) -> None:
    for pid, stat in descendants().items():
        spent[pid, stat[19]] = (int(stat[11]) + int(stat[12])) / TICKS


def reap(child: int) -> None:
    """Waits for what has ended of the processes that the child left."""
    for pid, stat in descendants().items():
        if pid != child and stat[0] == "Z" and int(stat[1]) == os.getpid():
            os.waitpid(pid, 0)


def mark(name: str) -> None:
    print(time.time(), name, flush=True)


def dsload(*args: object) -> None:
    subprocess.run([os.environ["DSLOAD_BINARY"], *map(str, args)], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def whole(args: argparse.Namespace) -> None:
    folder = pathlib.Path(args.dir)
    mark("start")
    dsload("build", folder / "c.txt", "--out", folder / "out", "--workers", args.workers, "--memory", "256MiB", *FLAGS)
    mark("build")


def parts(args: argparse.Namespace) -> None:
    folder, n = pathlib.Path(args.dir), args.partitions
    mark("start")
    dsload("plan", "--partitions", n, "--out", folder / "plan.json", "--memory", "256MiB", *FLAGS, folder / "c.txt")
    mark("plan")
    with concurrent.futures.ThreadPoolExecutor(args.workers) as pool:
        list(pool.map(lambda i: dsload("build", "--plan", folder / "plan.json", "--partition", f"{i}/{n}", "--out", folder / "out", "--workers", 1, "--memory", "256MiB"), range(n)))
    mark("partitions")
    dsload("merge", folder / "out")
    mark("merge")


def on_ray(args: argparse.Namespace) -> None:
    folder = pathlib.Path(args.dir)
    os.environ["RAY_worker_niceness"] = "0"
    import ray

    import dsload.ray

    mark("import")
    ray.init(num_cpus=args.workers, include_dashboard=False, log_to_driver=False, object_store_memory=80_000_000)
    mark("ray.init")
    built = dsload.ray.build(folder / "c.txt", folder / "out", partitions=args.partitions, workers=1, progress=False, **OPTIONS)
    mark(f"build with {built['retried']} started again, {built['twins']} twice:")
    ray.shutdown()
    mark("ray.shutdown")


if __name__ == "__main__":
    main()
