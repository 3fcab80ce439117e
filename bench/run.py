"""Measures dsload and its peers on the same work, in one run, and writes docs/benchmarks:

    python bench/run.py [--quick] [--only tokenizers,builders,loaders,resume,near,scaling] [--rounds N]     # make bench, make bench QUICK=1

Every tool gets fresh processes in turn, round after round, pinned to one core with one thread, so that a noisy machine disturbs all alike. A first round
warms the machine's caches and is not counted; in it the ids of every tool are compared with dsload's, and a tool that gives others has no speed. Figures
are medians with the least and the most; what is compared is CPU time of the whole process tree. Text is generated (bench/text.py), or the corpora and
tokenizers of $DSLOAD_SHARED where they are. The peers are installed into bin/bench-venv; one that cannot be is reported as missing, with the reason.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import pathlib
import platform
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable

import environment
import measure
import page
import scaling
import text

ROOT = environment.ROOT
PEERS = ROOT / "bench/peers"
OUT = ROOT / "docs/benchmarks"
# Work that a tool is measured at: CPU-seconds, or what a process says, of one run.
Tool = Callable[[int], dict]


class Bench:
    def __init__(self, quick: bool, rounds: int, folder: pathlib.Path) -> None:
        self.quick, self.rounds, self.folder = quick, rounds, folder
        self.dsload = str(ROOT / "bin/dsload")
        self.shared = pathlib.Path(os.environ.get("DSLOAD_SHARED") or ROOT.parent / "shared")
        self.python, self.missing = environment.prepare("main")
        self.next, missing = environment.prepare("next")
        self.missing |= {f"{package} 1.0": why for package, why in missing.items()}
        # Loaders import dsload from this checkout, and start this program.
        self.env = {"PYTHONPATH": str(ROOT / "python"), "DSLOAD_BINARY": self.dsload, "TMPDIR": str(folder)}

    def peer(self, script: str, *arguments: object, python: str = "") -> dict:
        return measure.run([python or self.python, str(PEERS / script), *map(str, arguments)], folder=str(self.folder), env=self.env)

    def need(self, tool: str) -> None:
        """Fails with the reason where a peer could not be installed."""
        if why := self.missing.get({"mosaicml": "mosaicml-streaming"}.get(tool, tool)):
            raise measure.Failed("cannot be installed: " + why)

    def program(self, *arguments: object) -> dict:
        return measure.run([self.dsload, *map(str, arguments)], folder=str(self.folder), env=self.env)

    def rounds_of(self, tools: dict[str, Tool], figures: list[str], checked: str = "") -> dict[str, dict]:
        """Runs the tools in turn. Each gives figures; those of round 0 are not counted, and its value of checked must be that of the first tool."""
        found: dict[str, dict] = {name: {"runs": []} for name in tools}
        for k in range(self.rounds + 1):
            for name, tool in tools.items():
                if "missing" in found[name]:
                    continue
                try:
                    result = tool(k)
                except measure.Failed as failed:
                    found[name]["missing"] = str(failed)
                    continue
                print(f"round {k}: {name}: " + ", ".join(f"{f} {result[f]:.4g}" for f in figures if f in result), file=sys.stderr)
                if k == 0:
                    found[name] |= {key: value for key, value in result.items() if key not in figures and not isinstance(value, float)}
                    first = next(iter(found.values()))
                    if checked and result.get(checked) != first.get(checked):
                        found[name]["missing"] = "gives other ids than dsload"
                else:
                    found[name]["runs"].append({f: result[f] for f in figures if f in result})
        for tool in found.values():
            for f in figures:
                if values := [r[f] for r in tool["runs"] if f in r]:
                    tool[f] = {"median": statistics.median(values), "least": min(values), "most": max(values)}
            del tool["runs"]
        return found

    # --- the work ---

    def tokenizers(self) -> dict:
        """Text into ids, MB of UTF-8 per CPU-second on one thread."""
        passes = self.folder / "passes"
        subprocess.run(["go", "build", "-trimpath", "-o", passes, "./bench/tokenize/passes"], cwd=ROOT, check=True)
        if failed := environment.said("go", "build", "-C", "bench/sugarme", "-trimpath", "-o", str(self.folder / "sugarme"), "."):
            self.missing["sugarme"] = failed
        corpora = {"generated": self.corpus("text.txt", 1 if self.quick else 8)}
        if (self.shared / "corpora").is_dir() and not self.quick:
            corpora |= {f"{path.parent.name} {path.stem}": path for path in sorted((self.shared / "corpora").glob("*/*.txt")) if path.stat().st_size > 1e6}
        tables = {}
        for kind, path in self.tokenizer_files().items():
            for corpus, source in corpora.items():
                tools: dict[str, Tool] = {"dsload": lambda _: measure.run([str(passes), str(path), str(source), "3"])}
                for library in ("tokenizers", "tokenizers 1.0", "tiktoken", "gigatoken", "tokie", "nanotoken", "sentencepiece", "sugarme"):
                    tools[library] = self.library(library, path, source)
                figures = self.rounds_of({name: rated(tool, source.stat().st_size) for name, tool in tools.items()}, ["cold", "warm", "peak_bytes"], "sha256")
                tables[f"{kind}, {corpus}"] = figures
        return tables

    def library(self, library: str, path: pathlib.Path, source: pathlib.Path) -> Tool:
        name, later = library.split(" ")[0], " " in library
        model = self.shared / "tokenizers/llama2.model"
        def tool(_: int) -> dict:
            self.need(library)
            if name == "sentencepiece" and path.stem != "phi-3":
                raise measure.Failed("reads .model files alone")
            if name == "sugarme":
                return measure.run([str(self.folder / "sugarme"), str(path), str(source), "3"], limit_s=60)
            return self.peer("tokenizers_.py", name, model if name == "sentencepiece" else path, source, 3, python=self.next if later else "")

        return tool

    def tokenizer_files(self) -> dict[str, pathlib.Path]:
        """Files of tokenizers that all tools read: the reference ones without truncation, or made ones."""
        found = {}
        for name in ("gpt2", "cl100k-hf", "bert-uncased", "phi-3"):
            source = self.shared / "tokenizers" / name / "tokenizer.json"
            if source.exists() and not (self.quick and name == "cl100k-hf"):
                content = json.loads(source.read_text(encoding="utf-8"))
                content["truncation"] = content["padding"] = None
                found[name] = self.folder / f"{name}.json"
                found[name].write_text(json.dumps(content), encoding="utf-8")
        if not found:
            subprocess.run([self.dsload, "tokenizer", "train", self.corpus("train.txt", 4), "--vocab-size", "8000", "--out", self.folder / "bpe"], check=True)
            found = {"trained byte-level BPE": self.folder / "bpe/tokenizer.json", "made WordPiece": self.folder / "wordpiece.json"}
            found["made WordPiece"].write_text(json.dumps(text.tokenizer("wordpiece")), encoding="utf-8")
        return found

    def corpus(self, name: str, megabytes: float, mean: int = 2000) -> pathlib.Path:
        path = self.folder / name
        if not path.exists():
            text.write_lines(path, int(megabytes * 1e6), mean=mean)
        return path

    def builders(self) -> dict:
        """JSON lines into a dataset of ids, as whole processes with their start: CPU-seconds and peak memory."""
        source, tokenizer = self.folder / "text.jsonl", next(iter(self.tokenizer_files().values()))
        if not source.exists():
            text.write_jsonl(source, text.documents(2_000_000 if self.quick else 20_000_000))
        def dsload(out: str) -> dict:
            return self.program("build", source, "--tokenizer", tokenizer, "--max-length", 10**6, "--workers", 1, "--progress", "none", "--out", out)

        def tool(name: str) -> Tool:
            def once(k: int) -> dict:
                out, python = str(self.folder / "out"), self.next if "," in name else self.python
                peer = name.partition(".")[0]
                self.need(peer)
                result = dsload(out) if name == "dsload" else self.peer("builders.py", peer, "build", source, tokenizer, out, python=python)
                check = self.peer("builders.py", peer, "digest", source, tokenizer, out) if k == 0 else {}
                for left in (out, out + ".cache"):
                    shutil.rmtree(left, ignore_errors=True)
                return {"cpu_s": result["cpu_s"], "peak_bytes": result["peak_bytes"], **{key: check[key] for key in ("sha256", "documents", "tokens") if key in check}}

            return once

        names = ["dsload", "datasets.map", "datasets.map, tokenizers 1.0", "datatrove", "mosaicml", "litdata", "gigatoken"]
        return {f"{source.stat().st_size / 1e6:.0f} MB of JSON lines": self.rounds_of({name: tool(name) for name in names}, ["cpu_s", "peak_bytes"], "sha256")}

    LOADERS = ["dsload", "datasets", "litdata", "mosaicml", "grain", "memmap"]

    def rows(self) -> pathlib.Path:
        """A dataset of rows of up to 64 tokens."""
        data = self.folder / "rows"
        if not data.exists():
            self.program("build", self.corpus("rows.txt", 3 if self.quick else 30), "--max-length", 64, "--out", data, "--progress", "none")
        return data

    def written(self, name: str) -> pathlib.Path:
        folder = self.folder / f"rows.{name}"
        self.need(name)
        if not folder.exists():
            self.peer("loaders.py", name, "write", self.rows(), folder)
        return folder

    def loaders(self) -> dict:
        """One shuffled epoch into padded torch tensors: CPU microseconds a row after the first batch, of all processes, and imports and opening up to that."""
        def tool(name: str) -> Tool:
            def once(k: int) -> dict:
                check = self.peer("loaders.py", name, "check", self.rows(), self.written(name)) if k == 0 else {}
                result = self.peer("loaders.py", name, "epoch", self.rows(), self.folder / f"rows.{name}")
                return {"cpu_us": 1e6 * (result["cpu_s"] - result["before_cpu_s"]) / result["rows"], "first_batch_ms": result["first_batch_ms"],
                        "peak_bytes": result["peak_bytes"], "rows": result["rows"], "tokens": result["tokens"], **({"sha256": check["rows_hash"]} if check else {})}  # fmt: skip

            return once

        return {"rows of up to 64 tokens, batches of 32": self.rounds_of({name: tool(name) for name in self.LOADERS}, ["cpu_us", "first_batch_ms", "peak_bytes"], "sha256")}

    def resume(self) -> dict:
        """A new process from its state in the middle of an epoch to its first batch, and whether the rest is what an uninterrupted epoch has."""
        def tool(name: str) -> Tool:
            def once(k: int) -> dict:
                folder = self.written(name)
                if k == 0:
                    self.peer("loaders.py", name, "full", self.rows(), folder)
                    self.state = getattr(self, "state", {}) | {name: self.peer("loaders.py", name, "half", self.rows(), folder)["state_bytes"]}
                result = self.peer("loaders.py", name, "rest", self.rows(), folder)
                if not result["exact"]:
                    raise measure.Failed("what follows a resume is not what an uninterrupted epoch has")
                return {"first_batch_ms": result["first_batch_ms"], "exact": True, "state_bytes": self.state[name]}

            return once

        return {"the middle of an epoch": self.rounds_of({name: tool(name) for name in self.LOADERS}, ["first_batch_ms"])}

    def near(self) -> dict:
        """Near-duplicates: each fifth document again with one word in a hundred changed. dsload also tokenizes and writes what stays."""
        source = self.folder / "near.txt"
        if not source.exists():
            write_near(source, 500_000 if self.quick else 10_000_000)
        lines = len(source.read_text(encoding="utf-8").splitlines())
        def ours(_: int) -> dict:
            out = self.folder / "near"
            command = [self.dsload, "build", str(source), "--dedup", "near", "--max-length", "1000000", "--workers", "1", "--progress", "none", "--json", "--out", str(out)]
            result = measure.run(command, folder=str(self.folder))
            shutil.rmtree(out)
            return {"cpu_s": result["cpu_s"], "peak_bytes": result["peak_bytes"], "kept": result["splits"][0]["examples"], "documents": lines}

        def theirs(_: int) -> dict:
            self.need("datasketch")
            result = self.peer("near.py", source)
            return {"cpu_s": result["cpu_s"], "peak_bytes": result["peak_bytes"], "kept": result["kept"], "documents": lines}

        return {f"{lines} documents": self.rounds_of({"dsload": ours, "datasketch": theirs}, ["cpu_s", "peak_bytes"])}

    def scaling(self) -> dict:
        return scaling.curves(self)


def rated(tool: Tool, size: int) -> Tool:
    """A tool that says the seconds of its passes: the first is cold, the best later one warm."""
    def once(k: int) -> dict:
        result = tool(k)
        seconds = result.pop("seconds")
        return {**result, "cold": size / 1e6 / seconds[0], "warm": size / 1e6 / min(seconds[1:])}

    return once


def write_near(path: pathlib.Path, size: int) -> None:
    with open(path, "w", encoding="utf-8") as f:
        for k, document in enumerate(text.documents(size, seed=9)):
            f.write(document + "\n")
            if k % 5 == 4:
                f.write(" ".join("changed" if i % 100 == 7 else word for i, word in enumerate(document.split(" "))) + "\n")


def machine() -> dict:
    info = pathlib.Path("/proc/cpuinfo").read_text() if pathlib.Path("/proc/cpuinfo").exists() else ""
    model = next((line.split(":")[1].strip() for line in info.splitlines() if line.startswith("model name")), platform.processor())
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return {"processor": model, "cores": os.cpu_count(), "memory_bytes": memory, "system": f"{platform.system()} {platform.machine()}", "python": platform.python_version(),
            "load": round(os.getloadavg()[0], 1)}  # fmt: skip


WORK = ["tokenizers", "builders", "loaders", "resume", "near", "scaling"]


def git(*args: str) -> str:
    return subprocess.run(["git", *args], cwd=ROOT, check=True, capture_output=True, text=True).stdout.strip()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="minutes: less text, two rounds")
    parser.add_argument("--only", default=",".join(WORK), help="which work, separated by commas")
    parser.add_argument("--rounds", type=int, help="counted rounds (5, or 2 with --quick)")
    parser.add_argument("--largest", type=int, default=1_000_000_000, help="bytes of the largest build of the scaling curve (1e9)")
    args = parser.parse_args()
    chosen = args.only.split(",")
    if unknown := [name for name in chosen if name not in WORK]:
        parser.error(f"no such work: {', '.join(unknown)}; there is {', '.join(WORK)}")
    subprocess.run(["make", "-s", "build"], cwd=ROOT, check=True)
    commit = git("describe", "--always")
    if git("status", "--porcelain", "--untracked-files=no", "--", ".", ":!docs/benchmarks"):  # what a run writes is not what it measures
        commit += "-dirty"
    OUT.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="bench-") as folder:
        bench = Bench(args.quick, args.rounds or (2 if args.quick else 5), pathlib.Path(folder))
        bench.largest = min(args.largest, 30_000_000) if args.quick else args.largest
        for name in chosen:
            made = {"work": name, "does": getattr(Bench, name).__doc__ or scaling.__doc__.splitlines()[0], "date": datetime.date.today().isoformat(), "commit": commit,
                    "quick": args.quick, "rounds": bench.rounds, "machine": machine(), "peers": environment.pins(), "tables": getattr(bench, name)()}  # fmt: skip
            (OUT / f"{name}.json").write_text(json.dumps(made, indent=1) + "\n", encoding="utf-8")
            page.write(OUT)
    print(OUT / "index.md")


if __name__ == "__main__":
    main()
