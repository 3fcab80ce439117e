"""Tokenizes the same documents with dsload and with gigatoken, one thread each, every round in a fresh process, and prints the best round of either.

    .venv/bin/python -m pip install gigatoken awkward
    .venv/bin/python bench/tokenize/compare.py TOKENIZER_FOLDER CORPUS.txt... [--rounds 5]

Figures are MB of UTF-8 per CPU-second over a whole corpus, once, with caches as a start leaves them ("cold"). A document is a run of whole lines of at
least 2 KiB. Loading the tokenizer is not counted, for either.
"""

from __future__ import annotations

import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]

PEER = """
import json, os, sys, time
import gigatoken
tokenizer, corpus = sys.argv[1:]
documents, lines, size = [], [], 0
for line in open(corpus, encoding="utf-8", newline="\\n"):
    lines.append(line)
    size += len(line.encode())
    if size >= 2048:
        documents.append("".join(lines))
        lines, size = [], 0
if lines:
    documents.append("".join(lines))
t = gigatoken.Tokenizer(tokenizer)
t.encode_batch(["hello world"])
start = time.process_time()
t.encode_batch(documents)
print(os.path.getsize(corpus) / 1e6 / (time.process_time() - start))
"""


def dsload(tokenizer: str, corpus: str) -> float:
    command = [str(ROOT / "bin/dsload"), "bench", "tokenize", "--json", "--tokenizer", tokenizer, "--workers", "1", corpus]
    out = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return float(json.loads(out.splitlines()[-1])["mb_per_cpu_s"])


def gigatoken(tokenizer: str, corpus: str) -> float:
    out = subprocess.run([sys.executable, "-c", PEER, tokenizer, corpus], check=True, capture_output=True, text=True, env={**os.environ, "RAYON_NUM_THREADS": "1"})
    return float(out.stdout.split()[-1])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("tokenizer", help="folder with tokenizer.json")
    parser.add_argument("corpus", nargs="+")
    parser.add_argument("--rounds", type=int, default=5)
    args = parser.parse_args()
    subprocess.run(["make", "-s", "build"], cwd=ROOT, check=True)
    with tempfile.TemporaryDirectory() as tmp:
        # A truncation block would make the peer stop early; dsload ignores it.
        content = json.loads(pathlib.Path(args.tokenizer, "tokenizer.json").read_text(encoding="utf-8"))
        content["truncation"] = content["padding"] = None
        plain = pathlib.Path(tmp, "tokenizer.json")
        plain.write_text(json.dumps(content), encoding="utf-8")
        for corpus in args.corpus:
            ours = theirs = 0.0
            for _ in range(args.rounds):
                theirs = max(theirs, gigatoken(str(plain), corpus))
                ours = max(ours, dsload(args.tokenizer, corpus))
            print(json.dumps({"corpus": os.path.basename(corpus), "dsload": round(ours, 1), "gigatoken": round(theirs, 1), "ratio": round(ours / theirs, 2)}))


if __name__ == "__main__":
    main()
