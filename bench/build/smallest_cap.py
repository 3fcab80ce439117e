"""Builds with settings drawn at random, each at the smallest cap that --explain-memory names for it, and compares the peak resident set with the cap.

    python bench/build/smallest_cap.py DSLOAD [TOKENIZER...] [--builds 40] [--seed 1]

Tokenizers are files or folders; gpt2, which is built in, is always among them. Needs the program zstd. Prints a line for each build, with "OVER" first
if the cap did not hold; exits with 1 if there was one.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import re
import subprocess
import sys
import tempfile

MIB = 1 << 20

# Blocks of text, repeated until a file is large enough.
BLOCKS = {
    "longline": lambda rnd: b"word and another " * 4096,
    "letters": lambda rnd: bytes(rnd.choices(b"abcdefghijklmnopqrstuvwxyz", k=65536)),
    "short": lambda rnd: b"a\n" * 32768,
    "emoji": lambda rnd: "\U0001f469\u200d\U0001f469\u200d\U0001f467".encode() * 3000,
    "han": lambda rnd: "".join(chr(rnd.randrange(0x4E00, 0x9FFF)) for _ in range(20000)).encode() + b"\n",
    "json": lambda rnd: b"".join(json.dumps({"text": f"w{rnd.randrange(10**6)} " * rnd.randrange(1, 2000)}).encode() + b"\n" for _ in range(20)),
}


class Files:
    """Makes each source once."""

    def __init__(self, folder: str, rnd: random.Random) -> None:
        self.folder, self.rnd = folder, rnd

    def plain(self, kind: str, size: int) -> str:
        path = os.path.join(self.folder, f"{kind}-{size}.{'jsonl' if kind == 'json' else 'txt'}")
        if not os.path.exists(path):
            with open(path, "wb") as f:
                while f.tell() < size:
                    f.write(BLOCKS[kind](self.rnd))
        return path

    def zstd(self, path: str, log: int) -> str:
        out = f"{path}.{log}.zst"
        if not os.path.exists(out):
            with open(path, "rb") as f, open(out, "wb") as to:  # through a pipe: zstd shrinks the window of what it knows to be small
                subprocess.run(["zstd", "-q", "-1", f"--long={log}"], stdin=f, stdout=to, check=True)
        return out

    def gzip(self, path: str) -> str:
        out = path + ".gz"
        if not os.path.exists(out):
            with open(out, "wb") as to:
                subprocess.run(["gzip", "-1", "-c", path], stdout=to, check=True)
        return out


def draw(rnd: random.Random, files: Files, tokenizers: list[str]) -> list[str]:
    """The sources and flags of a build."""
    kind = rnd.choice(["synth", "recipes", *BLOCKS, "zstd", "zstd", "gzip"])
    large = rnd.choice(["longline", "short", "han"])
    match kind:
        case "synth":
            args = [f"synth://wikitext?seed={rnd.randrange(99)}", "--max-bytes", "60MB"]
        case "recipes":
            args = ["synth://recipes?seed=1", "--max-bytes", "30MB"] + rnd.choice([[], ["--template", "recipe"], ["--template", "recipe-seq2seq"]])
        case "zstd":
            args = [files.zstd(files.plain(large, 40 * MIB), rnd.choice([20, 23, 25, 27]))]
        case "gzip":
            args = [files.gzip(files.plain(large, 40 * MIB))]
        case "json":
            args = [files.plain(kind, 40 * MIB)]
        case _:
            args = [files.plain(kind, 20 * MIB), "--format", rnd.choice(["text", "document"])]
    args += ["--max-examples", "0", "--tokenizer", rnd.choice(["gpt2", *tokenizers]), "--workers", str(rnd.choice([1, 2, 2, 3, 5, 8]))]
    args += ["--max-length", str(rnd.choice([16, 512, 4096, 100_000, 1 << 20])), "--overflow", rnd.choice(["chunk", "chunk", "truncate"])]
    args += ["--shard-bytes", rnd.choice(["64MiB", "1MiB", "1GiB", "300KiB"]), "--checkpoint-every", rnd.choice(["1", "1000"])]
    if rnd.random() < 0.4:
        args += ["--max-val-examples", str(rnd.choice([10, 1000, 100_000]))]
    return args


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("dsload")
    parser.add_argument("tokenizers", nargs="*")
    parser.add_argument("--builds", type=int, default=40)
    parser.add_argument("--seed", type=int, default=1)
    o = parser.parse_args()
    rnd = random.Random(o.seed)
    worst, over = 0.0, 0
    with tempfile.TemporaryDirectory() as folder:
        files = Files(folder, rnd)
        for _ in range(o.builds):
            build = [o.dsload, "build", "--out", os.path.join(folder, "out"), *draw(rnd, files, o.tokenizers)]
            plan = subprocess.run([*build, "--explain-memory", "--memory", "64GiB"], capture_output=True, text=True, check=True).stdout
            found = re.search(r"smallest that works for these settings is ([\d.]+)(MiB|GiB)", plan)
            assert found, plan
            cap = int((float(found[1]) + 0.1) * (MIB if found[2] == "MiB" else 1024 * MIB) * rnd.choice([1, 1, 1.05, 1.5]))
            run = subprocess.run([*build, "--memory", str(cap), "--overwrite", "--json", "--progress", "none"], capture_output=True, text=True)
            if run.returncode:
                sys.exit(f"{' '.join(build)}: exit {run.returncode}: {run.stderr}")
            peak = json.loads(run.stdout)["peak_rss_bytes"]
            worst, over = max(worst, peak / cap), over + (peak > cap)
            print(f"{'OVER' if peak > cap else 'ok'} {peak / MIB:.1f} of {cap / MIB:.1f} MiB:", *build[4:], flush=True)
    print(f"{o.builds} builds, {over} over the cap, at most {worst:.2f} of it (seed {o.seed})")
    return over > 0


if __name__ == "__main__":
    sys.exit(main())
