"""CPU, time and peak memory of `dsload export`, a format at a time, on a dataset of very many small documents.

    python bench/export.py --documents 10000000 --out /big/disk [--dsload dsload] [--data DATASET] [FORMAT...]

Without --data it builds a dataset of documents of 15 to 44 words, about 36 GPT-2 tokens, and removes it at the end. MB are 10^6 bytes of what the
format's files hold; a second of CPU is user and system time of the process and its children.
"""

from __future__ import annotations

import argparse
import os
import random
import shutil
import subprocess
import time

FORMATS = ("megatron", "nanogpt", "nanotron", "olmo", "hf", "trl", "litdata", "jsonl", "parquet")


def generate(command: list[str], documents: int) -> None:
    rnd = random.Random(3)
    letters = "etaoinshrdlucmfwygpbvk"
    words = ["".join(rnd.choices(letters, k=rnd.randint(1, 9))) for _ in range(40_000)]
    build = subprocess.Popen(command, stdin=subprocess.PIPE, text=True)
    assert build.stdin is not None
    for _ in range(documents):
        at = int(rnd.random() * (len(words) - 60))
        build.stdin.write(" ".join(words[at : at + 15 + int(rnd.random() * 30)]) + "\n")
    build.stdin.close()
    if build.wait() != 0:
        raise SystemExit("the build failed")


def size_of(folder: str) -> int:
    return sum(os.path.getsize(os.path.join(d, f)) for d, _, files in os.walk(folder) for f in files)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("formats", nargs="*", default=FORMATS)
    parser.add_argument("--dsload", default="dsload")
    parser.add_argument("--documents", type=int, default=10_000_000)
    parser.add_argument("--out", required=True, help="a folder on a disk with room for the dataset and one export")
    parser.add_argument("--data", help="a dataset that is there already")
    args = parser.parse_args()
    data = args.data or os.path.join(args.out, "bench-data")
    if args.data is None:
        command = [args.dsload, "build", "-", "--format", "text", "--eos", "--out", data, "--progress", "none"]
        generate(command, args.documents)
    print("| format | MB | MB a CPU-second | MB/s | peak MiB |\n| --- | --- | --- | --- | --- |")
    for name in args.formats:
        to = os.path.join(args.out, "bench-export")
        begun = time.monotonic()
        process = subprocess.Popen([args.dsload, "export", data, "--to", name, "--out", to], stdout=subprocess.DEVNULL)
        _, status, usage = os.wait4(process.pid, 0)
        wall = time.monotonic() - begun
        if status != 0:
            raise SystemExit(f"the export to {name} failed")
        cpu = usage.ru_utime + usage.ru_stime
        size = size_of(to) / 1e6
        print(f"| `{name}` | {size:,.0f} | {size / cpu:,.0f} | {size / wall:,.0f} | {usage.ru_maxrss / 1024:.1f} |", flush=True)
        shutil.rmtree(to)
    if args.data is None:
        shutil.rmtree(data)


if __name__ == "__main__":
    main()
