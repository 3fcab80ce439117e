"""CPU a sample of the feed into torch tensors, server and client together, compared with other loaders on the same examples.

    python bench/feed/compare.py --dsload bin/dsload [--peers ../shared/peers] [--rows 200000] [--length 20] [--batch 32]

Needs torch; the peers need datasets and litdata as well. Rows are made-up lines cut to --length tokens; the peers get the very same
rows, read from the shards. Each figure is the best of --rounds, CPU of the whole process tree, less that of a run that only imports. Prints a line of
JSON for each loader.
"""

import argparse
import json
import os
import pathlib
import random
import resource
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).parent
ROOT = HERE.parents[1]

WORDS = "the of and in to was on as for with by that at from his it an were are which this had be one first also new two time year".split()

MAKE_HF = """
import sys, glob, pyarrow as pa, pyarrow.ipc
from datasets import Dataset
t = pa.concat_tables(pa.ipc.open_file(pa.memory_map(p)).read_all().select(["input_ids"]) for p in sorted(glob.glob(sys.argv[1] + "/train-*.arrow")))
Dataset(pa.table({"input_ids": t["input_ids"].cast(pa.list_(pa.int32()))})).save_to_disk(sys.argv[2])
"""
MAKE_LITDATA = """
import sys, glob, pyarrow as pa, pyarrow.ipc, numpy as np
from litdata.streaming.writer import BinaryWriter
w = BinaryWriter(sys.argv[2], chunk_bytes=64 << 20)
i = 0
for p in sorted(glob.glob(sys.argv[1] + "/train-*.arrow")):
    for row in pa.ipc.open_file(pa.memory_map(p)).read_all()["input_ids"].to_pylist():
        w.add_item(i, {"input_ids": np.asarray(row, dtype=np.int32)}); i += 1
w.done(); w.merge()
"""


def cpu(command, **kw):
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    out = subprocess.run(command, check=True, capture_output=True, text=True, **kw).stdout
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return out, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def report(name, per_sample, **more):
    print(json.dumps({"loader": name, "us_per_sample": round(per_sample * 1e6, 2), **more}), flush=True)


def feed(args, data, work):
    for kind, metered in (("drain", False), ("loader", False), ("loader", True), ("plain", False), ("plain", True)):
        best = None
        for i in range(args.rounds):
            path = f"{work}/s"
            server = subprocess.Popen([args.dsload, "serve", data, "--socket", path, "--json"], stdout=subprocess.PIPE, text=True)
            server.stdout.readline()
            out, _ = cpu([sys.executable, str(HERE / "client.py"), kind, path, str(server.pid), str(args.batch)] + ["metered"] * metered,
                         env={**os.environ, "PYTHONPATH": str(ROOT / "python")})
            server.terminate()
            server.wait()
            r = json.loads(out)
            r["samples"] = r["samples"] or args.rows
            r["each"] = (r["client_cpu_s"] + r["server_cpu_s"]) / r["samples"]
            best = min(best or r, r, key=lambda r: r["each"])
        report("dsload " + kind + " metered" * metered, best["each"], server_us=round(best["server_cpu_s"] / best["samples"] * 1e6, 2),
               client_us=round(best["client_cpu_s"] / best["samples"] * 1e6, 2), gb_per_s=round(best["bytes"] / best["wall_s"] / 1e9, 2), samples=best["samples"])


def peer(args, name, make, imports, command, work, data):
    folder = f"{work}/{name}"
    subprocess.run([sys.executable, "-c", make, data, folder], check=True, capture_output=True)
    best = None
    for _ in range(args.rounds):
        _, start = cpu([sys.executable, "-c", imports])
        out, used = cpu([sys.executable, *command(folder)], cwd=work, env={**os.environ, "BATCH": str(args.batch), "OMP_NUM_THREADS": "1"})
        r = json.loads([line for line in out.splitlines() if line.startswith("RESULT ")][-1][7:])
        r["each"] = (used - start) / r["samples"]
        best = min(best or r, r, key=lambda r: r["each"])
    report(name, best["each"], samples=best["samples"])


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--dsload", default=str(ROOT / "bin/dsload"))
    p.add_argument("--peers", help="folder with serve_hf.py and serve_litdata.py")
    p.add_argument("--rows", type=int, default=200_000)
    p.add_argument("--length", type=int, default=20)
    p.add_argument("--batch", type=int, default=32)
    p.add_argument("--rounds", type=int, default=3)
    args = p.parse_args()
    with tempfile.TemporaryDirectory(prefix="feed") as work:
        data = work + "/data"
        rng = random.Random(1)
        with open(work + "/lines.txt", "w") as f:
            for _ in range(args.rows):
                f.write(" ".join(rng.choice(WORDS) for _ in range(args.length)) + "\n")
        subprocess.run([args.dsload, "build", work + "/lines.txt", "--format", "text", "--overflow", "truncate", "--max-length", str(args.length), "--max-examples", str(args.rows), "--out", data,
                        "--progress", "none"], check=True)
        split = json.load(open(data + "/manifest.json"))["splits"][0]
        print(json.dumps({"rows": split["examples"], "tokens": split["tokens"], "batch": args.batch, "time": time.strftime("%F %T")}), flush=True)
        feed(args, data, work)
        if args.peers:
            peers = pathlib.Path(args.peers).resolve()
            peer(args, "datasets", MAKE_HF, "import torch, datasets", lambda d: [str(peers / "serve_hf.py"), d, "0", "numpy", "shuffle"], work, data)
            peer(args, "litdata", MAKE_LITDATA, "import torch, litdata", lambda d: [str(peers / "serve_litdata.py"), d, "0", "shuffle"], work, data)


if __name__ == "__main__":
    main()
