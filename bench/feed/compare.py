"""CPU a sample of the feed into torch tensors, server and client together, with dsload.Loader and with clients that do less.

    python bench/feed/compare.py --dsload bin/dsload [--rows 200000] [--length 20] [--batch 32]

Rows are made-up lines cut to --length tokens. Each figure is the best of --rounds. Prints a line of JSON for each client. `make bench` compares the
Loader with other loaders.
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


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--dsload", default=str(ROOT / "bin/dsload"))
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


if __name__ == "__main__":
    main()
