"""Counts the instructions of fixed workloads, and compares them and the peak memory with numbers.json: a change that moves instructions by more than 3%, or
peak memory by more than 10%, says so by changing the file. Of builds it also counts those of what is alone at its work (the reader, the flusher, the writer and
the hasher: `alone` of dsload bench build --profile), by functions that nothing else calls and without what these call of the runtime; 5% are the limit.

    python bench/gate/gate.py DSLOAD            # make gate
    python bench/gate/gate.py DSLOAD --update   # make gate-update: counts all anew and writes the file

valgrind counts, so the machine's speed and load do not matter. It offers programs the same processor everywhere, with AVX2 and without AVX-512, so that the
same kernels run. Garbage is not collected while instructions are counted, since when it is depends on time; peak memory is that of runs without valgrind.
Each figure is the least of several runs. Instructions then differ by less than 1% from run to run, of a feed by up to 4%: how much a client reads at once
depends on time. Peak memory differs by up to 7%, since when garbage is collected does too.
"""

from __future__ import annotations

import argparse
import concurrent.futures
import csv
import gzip
import http.client
import json
import os
import pathlib
import platform
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Callable

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

import text  # noqa: E402

NUMBERS = HERE / "numbers.json"
TOLERANCE = {"instructions": 0.03, "alone_instructions": 0.05, "peak_bytes": 0.10}
SERVE = "serve an epoch"
SERVE_TOLERANCE = 0.06  # of its instructions
RUNS = {"instructions": 2, "alone_instructions": 2, "peak_bytes": 5}  # when numbers are made; a check stops at the first run that is within the tolerance
MORE = 3  # times as many runs before a check fails
VALGRIND = ["valgrind", "--tool=cachegrind", "--cache-sim=no", "--log-fd=2"]
# Functions of the goroutines of a build that are alone at what they do. Workers call those of WORKERS, too.
ALONE = re.compile(
    r"/internal/(dataset|shardfile|origins|pack)\.|/internal/ingest\.\(\*(flusher|originFiles)\)|/internal/ingest/(read|rows|source)\b"
    r"|/zeebo/blake3"
)
WORKERS = re.compile(r"/internal/dataset\.(AppendIDs|LossOf|narrow|putUint|grow)")
BUILD = "--workers 1 --progress none --max-examples 0 --out {out}".split()

# Starts a program from a small process: the kernel counts the memory of the process that starts one as the program's. Passes its exit code on, and prints
# its peak of resident memory in KiB.
LAUNCH = """
import os, signal, sys
signal.signal(signal.SIGTERM, lambda *_: None)
_, status, usage = os.wait4(os.posix_spawn(sys.argv[1], sys.argv[1:], os.environ), 0)
print("peak KiB", usage.ru_maxrss, file=sys.stderr)
sys.exit(os.waitstatus_to_exitcode(status))
"""

# Each workload's arguments. {out} is a folder of its own, {name} an input.
WORKLOADS: dict[str, list[str]] = {
    "encode with gpt2": "tokenizer digest {text}".split(),
    "encode with cl100k": "tokenizer digest {text} --tokenizer cl100k".split(),
    "encode with a WordPiece file": "tokenizer digest {text} --tokenizer {wordpiece}".split(),
    "encode with a Unigram file": "tokenizer digest {text} --tokenizer {unigram}".split(),
    "train a tokenizer": "tokenizer train {text} --vocab-size 1000 --out {out}".split(),
    "build text": ["build", "{text}", *BUILD],
    "build gzipped JSON, filtered": ["build", "{gzip}", "--where", "id>=10", "--no-match", "xyz{2}", "--min-chars", "200", *BUILD],
    "build CSV, held out": ["build", "{csv}", "--max-val-examples", "50", "--template", "{row}", *BUILD],
    "build without near-duplicates": ["build", "{text}", "--dedup", "near", *BUILD],
    "build packed rows": ["build", "{text}", "--pack", "bfd", "--max-length", "1024", *BUILD],
    "build chats": ["build", "{chats}", "--format", "chat", "--chat-template", "{template}", *BUILD],
    "verify": "verify {data}".split(),
    "stats": "stats {data}".split(),
    "export": "export {data} --to megatron,jsonl --out {out}".split(),
    SERVE: "serve {data} --socket {out}".split(),
}
TEMPLATE = "{% for m in messages %}<|{{ m.role }}|>\n{{ m.content | trim }}\n{% endfor %}"


def prepare(dsload: str, folder: pathlib.Path) -> dict[str, str]:
    """Writes the inputs, and gives the path of each."""
    size = 2_000_000
    paths = {name: str(folder / file) for name, file in
             {"text": "text.txt", "gzip": "text.jsonl.gz", "chats": "chats.jsonl", "template": "template.jinja", "data": "data", "csv": "rows.csv", "row": "row.jinja",
              "wordpiece": "wordpiece.json", "unigram": "unigram.json"}.items()}  # fmt: skip
    text.write_lines(folder / "text.txt", size)
    text.write_jsonl(folder / "text.jsonl", text.documents(size, seed=2))
    (folder / "text.jsonl.gz").write_bytes(gzip.compress((folder / "text.jsonl").read_bytes(), mtime=0))
    (folder / "template.jinja").write_text(TEMPLATE)
    with open(folder / "chats.jsonl", "w", encoding="utf-8") as f:
        turns = text.documents(size, seed=3, mean=300)
        for question, answer in zip(turns, turns):
            f.write(json.dumps({"messages": [{"role": "user", "content": question}, {"role": "assistant", "content": answer}]}) + "\n")
    for kind in ("wordpiece", "unigram"):
        pathlib.Path(paths[kind]).write_text(json.dumps(text.tokenizer(kind)), encoding="utf-8")
    with open(folder / "rows.csv", "w", encoding="utf-8", newline="") as f:
        csv.writer(f).writerows([["title", "body"], *([d[:40], d] for d in text.documents(size, seed=4, mean=500))])
    (folder / "row.jinja").write_text("{{ title | upper }}\n{{ body }}")
    subprocess.run([dsload, "build", paths["text"], "--out", paths["data"], "--progress", "none"], check=True, stdout=subprocess.DEVNULL)
    return paths


def drain(path: str, server: subprocess.Popen) -> None:
    """Reads an epoch from a server that is starting, and ends it."""
    connection = http.client.HTTPConnection("dsload", timeout=300)
    connection.sock = socket.socket(socket.AF_UNIX)
    assert server.stdout is not None
    server.stdout.readline()
    connection.sock.connect(path)
    connection.request("GET", "/v1/batches?batch_size=64&seed=1")
    response = connection.getresponse()
    if response.status != 200:
        raise SystemExit(f"gate: the feed answers {response.status}: {response.read()[:500]!r}")
    while response.read(1 << 20):
        pass
    connection.close()
    os.killpg(server.pid, signal.SIGTERM)


def of_alone(counts: str) -> int:
    """The instructions of what is alone, of a file of cachegrind's."""
    total, alone = 0, False
    with open(counts, encoding="utf-8") as f:
        for line in f:
            if line.startswith("fn="):
                alone = bool(ALONE.search(line)) and not WORKERS.search(line)
            elif alone and line[0].isdigit():
                total += int(line.split()[1])
    if total == 0:
        raise SystemExit("gate: no function of what is alone was counted: its names are in a program that is built without -s; make gate does so")
    return total


def run(dsload: str, arguments: list[str], paths: dict[str, str], figure: str) -> int:
    """One of RUNS, of one run."""
    counted = figure != "peak_bytes"
    with tempfile.TemporaryDirectory(prefix="gate-") as folder:
        out = f"{folder}/out"
        command = [a if "{2}" in a else a.format(out=out, **paths) for a in arguments]
        env = {"PATH": os.environ["PATH"], "HOME": folder, "TMPDIR": folder, "LANG": "C.UTF-8", "GOMAXPROCS": "1"} | ({"GOGC": "off"} if counted else {})
        launch = [*VALGRIND, f"--cachegrind-out-file={folder}/counts"] if counted else [sys.executable, "-I", "-S", "-c", LAUNCH]
        with open(f"{folder}/messages", "w+") as messages:
            process = subprocess.Popen([*launch, dsload, *command], stdout=subprocess.PIPE, stderr=messages, text=True, env=env, start_new_session=True)
            if arguments[0] == "serve":
                drain(out, process)
            process.communicate()
            messages.seek(0)
            said = messages.read()
        if figure == "alone_instructions" and not process.returncode:
            return of_alone(f"{folder}/counts")
    if process.returncode:
        raise SystemExit(f"gate: dsload {' '.join(command)} ended with {process.returncode}:\n{said[-2000:]}")
    found = re.search(r"I\s+refs:\s+([\d,]+)" if counted else r"peak KiB (\d+)", said)
    if not found:
        raise SystemExit(f"gate: nothing was counted:\n{said[-2000:]}")
    return int(found[1].replace(",", "")) * (1 if counted else 1024)


def figures_of(name: str) -> set[str]:
    """What is counted of a workload."""
    return set(RUNS) if WORKLOADS[name][0] == "build" else set(RUNS) - {"alone_instructions"}


def tolerance(name: str, figure: str) -> float:
    return SERVE_TOLERANCE if (name, figure) == (SERVE, "instructions") else TOLERANCE[figure]


def least(once: Callable[[], int], runs: int, known: int | None, near: float) -> int:
    """The least of several runs. Of one that has a number, the first that is near it."""
    figures: list[int] = []
    for _ in range(runs if known is None else runs * MORE):
        figures.append(once())
        if known is not None and abs(min(figures) / known - 1) <= near:
            break
    return min(figures)


def processor() -> str:
    """What of this processor decides which code programs choose, also under valgrind."""
    info = pathlib.Path("/proc/cpuinfo").read_text()
    vendor, flags = (re.search(rf"^{key}\s*: (.*)", info, re.M) for key in ("vendor_id", "flags"))
    return " ".join([vendor[1], *sorted({"adx", "avx2", "bmi2", "erms", "fsrm", "sha_ni"} & set(flags[1].split()))]) if vendor and flags else "unknown"


def reason_to_skip() -> str:
    if sys.platform != "linux" or platform.machine() != "x86_64":
        return "its numbers are those of linux/amd64"
    if not shutil.which("valgrind"):
        return "valgrind is not installed"
    if not {"avx2", "bmi2"} <= set(processor().split()):
        return "this processor has no AVX2, so that other kernels run"
    return ""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("dsload")
    parser.add_argument("--update", action="store_true", help="write the numbers of this program into numbers.json")
    args = parser.parse_args()
    if reason := reason_to_skip():
        print(f"gate: skipped: {reason}")
        return
    dsload = str(pathlib.Path(args.dsload).resolve())
    found = re.search(r"\bgo(\d+\.\d+)", subprocess.run([dsload, "version"], check=True, capture_output=True, text=True).stdout)
    go = found[0] if found else "unknown"
    made_with = {"go": go, "processor": processor()}
    known = json.loads(NUMBERS.read_text()) if NUMBERS.exists() else {**made_with, "workloads": {}}
    for what, now in made_with.items():
        if not args.update and known.get(what) != now:
            print(f"gate: skipped: its numbers are of {what} {known.get(what)}, and here it is {now}; make gate-update counts anew")
            return
    with tempfile.TemporaryDirectory(prefix="gate-inputs-") as folder:
        paths = prepare(dsload, pathlib.Path(folder))
        figures: dict[str, dict[str, int]] = {}
        with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
            def measure(name: str, figure: str) -> int:
                before = None if args.update else known["workloads"].get(name, {}).get(figure)
                return least(lambda: run(dsload, WORKLOADS[name], paths, figure), RUNS[figure], before, tolerance(name, figure))

            running = {(name, figure): pool.submit(measure, name, figure) for figure in RUNS for name in WORKLOADS if figure in figures_of(name)}
            try:
                for (name, figure), future in running.items():
                    figures.setdefault(name, {})[figure] = future.result()
            finally:
                pool.shutdown(cancel_futures=True)
    if args.update:
        NUMBERS.write_text(json.dumps({**made_with, "workloads": figures}, indent=1) + "\n")
    moved = compare(known["workloads"], figures)
    for line in moved:
        print("gate:", line)
    if moved and not args.update:
        raise SystemExit("gate: where that is what the change is for, write the new numbers with make gate-update, and commit bench/gate/numbers.json")
    print(f"gate: {len(figures)} workloads, {len(moved)} figures moved")


def compare(known: dict, figures: dict) -> list[str]:
    """A line for each figure that moved, is new or is gone."""
    lines = [f"{name}: is no longer measured" for name in known if name not in figures]
    for name, now in figures.items():
        for figure, value in now.items():
            before = known.get(name, {}).get(figure)
            if before is None:
                lines.append(f"{name}: {figure} {value:,}, not in numbers.json")
            elif abs(value / before - 1) > tolerance(name, figure):
                lines.append(f"{name}: {figure} {before:,} -> {value:,} ({value / before - 1:+.1%})")
    return lines


if __name__ == "__main__":
    main()
