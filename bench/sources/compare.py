"""Reads the same documents from files of every format and compression: dsload's reader, and pyarrow's or Python's
own, and what whole builds take of memory.

    python bench/sources/compare.py DSLOAD [--size 64MB] [--only parquet,gz] [--rounds 3] [--build 64MiB] [--no-peers]

Files are made in a folder of their own, one at a time, and removed after it. MB are those of the documents' text as
dsload counts it; the best of all rounds counts, and dsload and its peer take turns. --build adds a build under that cap
(parquet takes 96MiB where less is given) and prints its peak resident set; it exits with 1 where a build passes its cap.
Needs go, numpy and pyarrow."""

from __future__ import annotations

import argparse
import bz2
import csv
import gzip
import io
import json
import lzma
import os
import pathlib
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from collections.abc import Callable, Iterator
from typing import Any, BinaryIO

import numpy as np
import pyarrow as pa
import pyarrow.ipc
import pyarrow.parquet as pq

BATCH = 2000  # documents
# A larger file of these formats is a piece of this size several times: joined, they are such a file again.
PIECE = 250_000_000
JOINED = {"text", "jsonl", "gz", "zst", "lz4", "bz2", "xz"}


def words(seed: int = 7) -> np.ndarray:
    """A vocabulary like that of prose: short words are frequent."""
    rnd = np.random.default_rng(seed)
    lengths = np.clip(rnd.poisson(5, 40_000), 1, 14)
    letters = rnd.choice(list("etaoinshrdlucmfwypvbgk"), lengths.sum(), p=zipf(22))
    return np.array(["".join(w) for w in np.split(letters, np.cumsum(lengths)[:-1])])


def zipf(n: int) -> np.ndarray:
    p = 1 / np.arange(1, n + 1)
    return p / p.sum()


def documents(size: int) -> Iterator[list[str]]:
    """Batches of different documents of about 1 KB, size bytes in all."""
    rnd, vocabulary, made = np.random.default_rng(1), words(), 0
    weights = np.cumsum(zipf(len(vocabulary)))
    pool = [" ".join(vocabulary[np.searchsorted(weights, rnd.random(int(n)))]) for n in rnd.integers(20, 300, 20_000)]
    while made < size:
        first, second = rnd.integers(0, len(pool), (2, BATCH))
        batch = [f"{made + i:x} {pool[a]} {pool[b]}" for i, (a, b) in enumerate(zip(first, second, strict=True))]
        made += sum(map(len, batch))
        yield batch


def json_lines(batches: Iterator[list[str]]) -> Iterator[bytes]:
    for batch in batches:
        yield "".join(json.dumps({"id": i, "text": d}) + "\n" for i, d in enumerate(batch)).encode()


def tables(batches: Iterator[list[str]]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        columns = [pa.array(range(len(batch))), pa.array(batch), pa.array([float(len(d)) for d in batch])]
        yield pa.record_batch(columns, ["id", "text", "score"])


# ---- how a file is made


def lines(out: BinaryIO, size: int) -> None:
    for batch in documents(size):
        out.write(("\n".join(batch) + "\n").encode())


def jsonl(out: BinaryIO, size: int) -> None:
    for data in json_lines(documents(size)):
        out.write(data)


def array(out: BinaryIO, size: int) -> None:
    out.write(b"[")
    for i, data in enumerate(json_lines(documents(size))):
        out.write((b"" if i == 0 else b",\n") + data.strip().replace(b"\n", b",\n"))
    out.write(b"]")


def sheet(out: BinaryIO, size: int) -> None:
    text = io.TextIOWrapper(out, "utf-8", newline="", write_through=True)
    writer = csv.writer(text)
    writer.writerow(["id", "text"])
    for batch in documents(size):
        writer.writerows(enumerate(batch))
    text.detach()


def parquet(codec: str) -> Callable[[BinaryIO, int], None]:
    def write(out: BinaryIO, size: int) -> None:
        writer, rows = None, []
        for b in tables(documents(size)):
            writer = writer or pq.ParquetWriter(out, b.schema, compression=codec)
            rows.append(b)
            if len(rows) == 25:  # row groups of 50,000, about 50 MB
                writer.write_table(pa.Table.from_batches(rows))
                rows = []
        if rows:
            writer.write_table(pa.Table.from_batches(rows))
        writer.close()

    return write


def arrow(codec: str | None) -> Callable[[BinaryIO, int], None]:
    def write(out: BinaryIO, size: int) -> None:
        writer = None
        for b in tables(documents(size)):
            options = pa.ipc.IpcWriteOptions(compression=codec)
            writer = writer or pa.ipc.new_file(out, b.schema, options=options)
            writer.write_batch(b)
        writer.close()

    return write


def tarred(out: BinaryIO, size: int) -> None:
    with tarfile.open(fileobj=out, mode="w") as t:
        for n, batch in enumerate(documents(size)):
            for i, d in enumerate(batch):
                info, data = tarfile.TarInfo(f"{n:05}/{i:04}.txt"), d.encode()
                info.size = len(data)
                t.addfile(info, io.BytesIO(data))


def zipped(out: BinaryIO, size: int) -> None:
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as z:
        for n, batch in enumerate(documents(size)):
            for i, d in enumerate(batch):
                z.writestr(f"{n:05}/{i:04}.txt", d)


def through(codec: str) -> Callable[[BinaryIO, int], None]:
    def write(out: BinaryIO, size: int) -> None:
        if codec == "gzip":
            packed: Any = gzip.GzipFile(fileobj=out, mode="wb", compresslevel=3)
        elif codec == "xz":
            packed = lzma.LZMAFile(out, "wb", preset=3)  # noqa: SIM115
        elif codec == "bz2":
            packed = bz2.BZ2File(out, "wb")
        else:
            packed = pa.CompressedOutputStream(pa.PythonFile(out, "w"), codec)
        jsonl(packed, size)
        packed.close()

    return write


# ---- how a peer reads it


def count_lines(f: Any) -> None:
    for _ in f:
        pass


def count_file(path: str, opener: Callable[..., Any] = open) -> None:
    with opener(path, "rb") as f:
        count_lines(f)


def count_stream(path: str, codec: str) -> None:
    with pa.input_stream(path, compression=codec, buffer_size=1 << 20) as f:
        count_lines(io.BufferedReader(f, 1 << 20))


def count_csv(path: str) -> None:
    with open(path, newline="", encoding="utf-8") as f:
        count_lines(csv.reader(f))


def count_parquet(path: str) -> None:
    f = pq.ParquetFile(path, buffer_size=1 << 20, pre_buffer=False)
    for b in f.iter_batches(columns=["text"], use_threads=False):
        count_lines(b.column(0).to_pylist())


def count_arrow(path: str) -> None:
    with pa.OSFile(path) as source:
        reader = pa.ipc.open_file(source, options=pa.ipc.IpcReadOptions(included_fields=[1], use_threads=False))
        for i in range(reader.num_record_batches):
            count_lines(reader.get_batch(i).column(0).to_pylist())


def count_tar(path: str) -> None:
    with tarfile.open(path, "r|") as t:
        for m in t:
            f = t.extractfile(m)
            if f:
                f.read()


def count_zip(path: str) -> None:
    with zipfile.ZipFile(path) as z:
        for name in z.namelist():
            z.read(name)


def count_array(path: str) -> None:
    with open(path, "rb") as f:
        json.load(f)


FORMATS: dict[str, tuple[str, Callable[[BinaryIO, int], None], str, Callable[[str], None]]] = {
    "text": ("docs.txt", lines, "lines of a file", count_file),
    "jsonl": ("docs.jsonl", jsonl, "lines of a file", count_file),
    "csv": ("docs.csv", sheet, "csv", count_csv),
    "json": ("docs.json", array, "json.load", count_array),
    "parquet-snappy": ("docs.snappy.parquet", parquet("snappy"), "pyarrow", count_parquet),
    "parquet-zstd": ("docs.zstd.parquet", parquet("zstd"), "pyarrow", count_parquet),
    "arrow": ("docs.arrow", arrow(None), "pyarrow", count_arrow),
    "arrow-lz4": ("docs.lz4.arrow", arrow("lz4"), "pyarrow", count_arrow),
    "gz": ("docs.jsonl.gz", through("gzip"), "gzip", lambda p: count_file(p, gzip.open)),
    "zst": ("docs.jsonl.zst", through("zstd"), "pyarrow", lambda p: count_stream(p, "zstd")),
    "lz4": ("docs.jsonl.lz4", through("lz4"), "pyarrow", lambda p: count_stream(p, "lz4")),
    "bz2": ("docs.jsonl.bz2", through("bz2"), "bz2", lambda p: count_file(p, bz2.open)),
    "xz": ("docs.jsonl.xz", through("xz"), "lzma", lambda p: count_file(p, lzma.open)),
    "tar": ("docs.tar", tarred, "tarfile", count_tar),
    "zip": ("docs.zip", zipped, "zipfile", count_zip),
}


def bytes_of(text: str) -> int:
    for unit, n in (("KiB", 1 << 10), ("MiB", 1 << 20), ("GiB", 1 << 30), ("KB", 10**3), ("MB", 10**6), ("GB", 10**9)):
        if text.endswith(unit):
            return int(float(text[: -len(unit)]) * n)
    return int(float(text))


def peer_cpu(read: Callable[[str], None], path: str) -> float:
    """CPU-seconds of a reader in a process of its own, without imports."""
    pid = os.fork()
    if pid == 0:
        pa.set_cpu_count(1)
        pa.set_io_thread_count(1)
        read(path)
        os._exit(0)
    _, status, usage = os.wait4(pid, 0)
    if status != 0:
        sys.exit(f"the peer's reader of {path} failed")
    return usage.ru_utime + usage.ru_stime


def build(dsload: str, path: str, cap: str, folder: str) -> tuple[float, float, bool]:
    """MB of text per second, peak MiB, and whether the cap held."""
    out = os.path.join(folder, "data")
    command = [dsload, "build", path, "--out", out, "--memory", cap, "--max-examples", "0", "--progress", "none", "--json"]
    done = subprocess.run(command, capture_output=True, text=True)
    if not done.stdout:
        sys.exit(done.stderr)
    summary = json.loads(done.stdout)
    subprocess.run(["rm", "-rf", out], check=True)
    peak = summary["peak_rss_bytes"]
    return summary["mb_per_s"], peak / (1 << 20), peak <= bytes_of(cap)


def row(name: str, a: argparse.Namespace, reader: str, folder: str) -> tuple[list[str], bool]:
    file, make, peer, count = FORMATS[name]
    path = os.path.join(folder, file)
    size, copies = bytes_of(a.size), 1
    if name in JOINED and size > PIECE:
        copies = -(-size // PIECE)
        size //= copies
    with open(path, "wb", buffering=1 << 20) as out:
        make(out, size)
    if copies > 1:
        os.rename(path, path + ".piece")
        subprocess.run(f"cat {' '.join([path + '.piece'] * copies)} > {path}", shell=True, check=True)
        os.unlink(path + ".piece")
    ours, theirs, text = [], [], 0
    for _ in range(a.rounds):
        r = json.loads(subprocess.run([reader, path], check=True, capture_output=True).stdout)
        text = r["bytes"]
        ours.append(r["cpu_seconds"])
        if not a.no_peers:
            theirs.append(peer_cpu(count, path))
    mb = text / 1e6
    cells = [name, f"{os.path.getsize(path) / 1e6:.0f}", f"{mb:.0f}", f"{mb / min(ours):.0f}"]
    cells += [peer, f"{mb / min(theirs):.0f}"] if theirs else ["", ""]
    held = True
    if a.build:
        cap = max(a.build, "96MiB", key=bytes_of) if "parquet" in name else a.build
        speed, peak, held = build(a.dsload, path, cap, folder)
        cells += [f"{speed:.0f}", f"{peak:.1f} of {cap}" + ("" if held else " OVER")]
    os.unlink(path)
    return cells, held


def main() -> None:
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("dsload")
    p.add_argument("--size", default="64MB")
    p.add_argument("--only", default=",".join(FORMATS))
    p.add_argument("--rounds", type=int, default=3)
    p.add_argument("--build", help="the cap of a build")
    p.add_argument("--no-peers", action="store_true")
    a = p.parse_args()
    head = ["format", "file, MB", "text, MB", "dsload, MB/CPU-s", "peer", "peer, MB/CPU-s"]
    head += ["build, MB/s", "peak, MiB"] if a.build else []
    here = pathlib.Path(__file__).resolve().parent
    ok = True
    with tempfile.TemporaryDirectory() as folder:
        reader = os.path.join(folder, "read")
        subprocess.run(["go", "build", "-o", reader, "./read"], cwd=here, check=True)
        print("| " + " | ".join(head) + " |\n|" + " --- |" * len(head))
        for name in a.only.split(","):
            cells, held = row(name, a, reader, folder)
            ok = ok and held
            print("| " + " | ".join(cells) + " |", flush=True)
    sys.exit(0 if ok else 1)


if __name__ == "__main__":
    main()
