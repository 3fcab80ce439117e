"""How builds scale: with the size of the text, workers, the length of documents, the vocabulary, and the cap on memory.

Only dsload is measured here: what is asked is whether a figure stays flat, not how it compares.
"""

from __future__ import annotations

import os
import pathlib
import shutil
import typing

import measure

if typing.TYPE_CHECKING:
    from run import Bench


def build(bench: Bench, source: object, *options: object, workers: int = 1) -> dict:
    """Text per CPU-second and per second, and peak memory, of the build with the least CPU."""
    out, best = bench.folder / "scaled", None
    for _ in range(bench.rounds):
        command = [bench.dsload, "build", str(source), "--workers", str(workers), "--max-examples", "0", "--progress", "none", "--json", "--out", str(out), *map(str, options)]
        result = measure.run(command, cpus=max(1, min(workers, os.cpu_count() or 1)), env=bench.env)
        shutil.rmtree(out)
        if best is None or result["cpu_s"] < best["cpu_s"]:
            best = result
    megabytes = best["text_bytes"] / 1e6
    return {"mb_per_cpu_s": megabytes / best["cpu_s"], "mb_per_s": megabytes / best["wall_s"], "peak_bytes": best["peak_rss_bytes"], "tokens": best["splits"][0]["tokens"]}


def curves(bench: Bench) -> dict:
    found: dict[str, dict] = {}
    endless, middle = "synth://wikitext?seed=7", 2_000_000 if bench.quick else 100_000_000

    def point(curve: str, x: object, *options: object, source: object = endless, workers: int = 1) -> None:
        found.setdefault(curve, {})[str(x)] = build(bench, source, *options, workers=workers)

    for size in sorted({bench.largest, *(10**k for k in range(6, 11) if 10**k < bench.largest)}):
        point("size of the text, MB", size // 10**6, "--max-bytes", size)
    for workers in (1, 2, 4, 8):
        if workers <= 2 * (os.cpu_count() or 1):
            point("workers", workers, "--max-bytes", middle, workers=workers)
    for mean in (30, 300, 3000, 30_000, 300_000):
        source = bench.corpus(f"mean{mean}.txt", middle / 1e6 / 2, mean=mean)
        point("length of documents, characters", mean, "--format", "text", source=source)
    for name in ("gpt2", "cl100k", "o200k"):
        point("vocabulary", name, "--max-bytes", middle, "--tokenizer", name)
    for vocabulary in (1000, 8000):
        folder = pathlib.Path(bench.folder, f"bpe{vocabulary}")
        measure.run([bench.dsload, "tokenizer", "train", str(bench.corpus("train.txt", 1 if bench.quick else 8)), "--vocab-size", str(vocabulary), "--out", str(folder)])
        point("vocabulary", f"trained, {vocabulary}", "--max-bytes", middle, "--tokenizer", folder)
    for cap in ("48MiB", "64MiB", "128MiB", "256MiB", "1GiB"):
        point("cap on memory", cap, "--max-bytes", middle, "--memory", cap)
    return found
