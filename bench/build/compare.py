"""Builds the same corpus with dsload and with Hugging Face datasets.map, each as a whole process, and prints what each took.

    .venv/bin/python bench/build/compare.py CORPUS.txt TOKENIZER_FOLDER [--rounds 3]

A document is a line. Figures are CPU-seconds (user and system) and the peak of the resident set summed over the process tree, of the round with the least
CPU; rounds alternate between the tools, so that a noisy machine disturbs them alike. Needs datasets and tokenizers (`make test` installs them into .venv).
"""

from __future__ import annotations

import argparse
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import threading
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]

HF = """
import json, sys
from datasets import Features, Sequence, Value, disable_progress_bars, load_dataset
from tokenizers import Tokenizer
source, tokenizer, out, cache = sys.argv[1:]
disable_progress_bars()
tok = Tokenizer.from_file(tokenizer + "/tokenizer.json")
tok.no_truncation()
ds = load_dataset("text", data_files=source, split="train", cache_dir=cache).filter(lambda b: [bool(t.strip()) for t in b["text"]], batched=True)
ds = ds.map(lambda b: {"input_ids": [e.ids for e in tok.encode_batch(b["text"], add_special_tokens=False)]}, batched=True,
            remove_columns=ds.column_names, features=Features({"input_ids": Sequence(Value("int32"))}))
ds.save_to_disk(out)
print(json.dumps({"examples": len(ds)}))
"""


def tree(pid: int) -> list[int]:
    """pid and its descendants."""
    found, queue = [], [pid]
    while queue:
        pid = queue.pop()
        found.append(pid)
        try:
            for task in pathlib.Path(f"/proc/{pid}/task").iterdir():
                queue += [int(p) for p in (task / "children").read_text().split()]
        except OSError:
            pass
    return found


def resident(pid: int) -> int:
    try:
        return int(pathlib.Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:
        return 0


def measure(command: list[str]) -> dict[str, float]:
    before = os.times()
    start = time.time()
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env={**os.environ, "RAYON_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1"})
    peak, done = 0, threading.Event()

    def sample() -> None:
        nonlocal peak
        while not done.wait(0.02):
            peak = max(peak, sum(map(resident, tree(process.pid))))

    sampler = threading.Thread(target=sample)
    sampler.start()
    out = process.communicate()[0]
    done.set()
    sampler.join()
    if process.returncode:
        raise SystemExit(f"{command[0]} failed with exit code {process.returncode}")
    after = os.times()
    cpu = after.children_user + after.children_system - before.children_user - before.children_system
    return {"cpu_s": cpu, "wall_s": time.time() - start, "peak_rss_mb": peak / 1e6, "examples": examples(json.loads(out.splitlines()[-1]))}


def examples(summary: dict) -> int:
    """The number of rows that a tool says it wrote."""
    return summary["examples"] if "examples" in summary else sum(split["examples"] for split in summary["splits"])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("corpus")
    parser.add_argument("tokenizer", help="folder with tokenizer.json")
    parser.add_argument("--rounds", type=int, default=3)
    args = parser.parse_args()
    megabytes = os.path.getsize(args.corpus) / 1e6
    subprocess.run(["make", "-s", "build"], cwd=ROOT, check=True)
    best: dict[str, dict[str, float]] = {}
    for _ in range(args.rounds):
        with tempfile.TemporaryDirectory() as tmp:
            commands = {
                "dsload": [str(ROOT / "bin/dsload"), "build", args.corpus, "--format", "text", "--tokenizer", args.tokenizer, "--max-examples", "0",
                           "--max-length", "1000000", "--workers", "1", "--out", f"{tmp}/dsload", "--progress", "none", "--json"],
                "datasets.map": [sys.executable, "-c", HF, args.corpus, args.tokenizer, f"{tmp}/hf", f"{tmp}/cache"],
            }
            for name, command in commands.items():
                figures = measure(command)
                if name not in best or figures["cpu_s"] < best[name]["cpu_s"]:
                    best[name] = figures
                shutil.rmtree(f"{tmp}/cache", ignore_errors=True)
    for name, figures in best.items():
        print(json.dumps({"tool": name, "mb_per_cpu_s": round(megabytes / figures["cpu_s"], 2), **{k: round(v, 2) for k, v in figures.items()}}))


if __name__ == "__main__":
    main()
