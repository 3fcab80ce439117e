"""CPU a packed sample: dsload's packed serving, readers of the same tokens that do less, and TRL's packer. One run, one machine.

    python bench/packed_serving.py TEXT [--length 1024] [--dsload ./dsload] [--rows 4000]

TEXT has a document a line. Compared are: dsload (server and client together, shuffled, packed by bfd and wrapped, int64 tensors with position ids,
segments and borders; and the reader without a server), nanoGPT's way (random windows of a uint16 memmap), Megatron's indexed dataset where
megatron.core can be imported (its documents are read one after another and joined, its own packer needs C++ at run time), and TRL's pack_dataset
where it can be imported (packing once, then reading its rows). Microseconds of CPU a row of --length tokens; torch's import is left out.
"""

from __future__ import annotations

import argparse
import os
import pathlib
import subprocess
import sys
import tempfile
import time
from typing import Any, Callable

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "python"))

import numpy as np  # noqa: E402
from measure import cpu_of  # noqa: E402

BATCH = 8


def measured(read: Callable[[], int], server: Any = None) -> tuple[float, int]:
    """(microseconds of CPU per row, rows)"""
    before = time.process_time() + (cpu_of(server.pid) if server else 0)
    rows = read()
    return 1e6 * (time.process_time() + (cpu_of(server.pid) if server else 0) - before) / rows, rows


def show(name: str, result: tuple[float, int], note: str = "") -> None:
    print(f"{name:44} {result[0]:10.1f} us/row {result[1]:8} rows  {note}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("text")
    parser.add_argument("--length", type=int, default=1024)
    parser.add_argument("--rows", type=int, default=4000)
    parser.add_argument("--dsload", default=str(HERE.parent / "dsload"))
    args = parser.parse_args()
    length, rows = args.length, args.rows
    os.environ["DSLOAD_BINARY"] = args.dsload
    import dsload

    with tempfile.TemporaryDirectory() as tmp:
        data, socket = f"{tmp}/data", f"{tmp}/s"
        subprocess.run(
            [
                *(args.dsload, "build", args.text, "--format", "text", "--max-examples", "0", "--max-length", "100000"),
                *("--eos", "--out", data, "--progress", "none"),
            ],
            check=True,
            stdout=subprocess.DEVNULL,
        )
        examples = dsload.RandomAccess(data, dtype="int32")
        documents = [examples[i]["input_ids"] for i in range(len(examples))]
        tokens = np.concatenate(documents).astype(np.uint16)
        print(f"{args.text}: {len(documents)} documents, {len(tokens)} tokens; rows of {length}, batches of {BATCH}")
        serving(args.dsload, data, socket, length, rows)
        memmap(tokens, f"{tmp}/train.bin", length, rows)
        megatron(documents, f"{tmp}/mega", length, rows)
        trl(documents, length, rows)


def serving(binary: str, data: str, socket: str, length: int, rows: int) -> None:
    import dsload

    def read(loader: Any) -> Callable[[], int]:
        def go() -> int:
            n = 0
            while n < rows:
                for batch in loader:
                    n += len(batch["length"])
                    if n >= rows:
                        break
            return n

        return go

    server = subprocess.Popen([binary, "serve", data, "--socket", socket], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    try:
        assert server.stdout is not None
        server.stdout.readline()
        for policy in ("bfd", "wrapped"):
            for seed in (0, 1):  # the first warms up
                with dsload.Loader(socket=socket, pack=policy, max_length=length, batch_size=BATCH, seed=seed) as loader:
                    result = measured(read(loader), server)
            show(f"dsload serve pack={policy}", result, "server and client")
    finally:
        server.terminate()
        server.wait()
    with dsload.Loader(data, pack="bfd", max_length=length, batch_size=BATCH, in_process=True) as loader:
        rows = min(rows, 1000)
        show("dsload in_process pack=bfd", measured(read(loader)))


def memmap(tokens: Any, path: str, length: int, rows: int) -> None:
    import torch

    tokens.tofile(path)

    def read() -> int:
        for _ in range(rows // BATCH):
            data = np.memmap(path, dtype=np.uint16, mode="r")
            places = torch.randint(len(data) - length, (BATCH,))
            torch.stack([torch.from_numpy(data[i : i + length].astype(np.int64)) for i in places])
            torch.stack([torch.from_numpy(data[i + 1 : i + 1 + length].astype(np.int64)) for i in places])
        return rows // BATCH * BATCH

    show("nanoGPT memmap, random windows", measured(read), "no document borders, not resumable")


def megatron(documents: list[Any], path: str, length: int, rows: int) -> None:
    try:
        from megatron.core.datasets.indexed_dataset import IndexedDataset, IndexedDatasetBuilder
    except Exception as error:
        print(f"megatron.core cannot be imported: {error}")
        return
    import torch

    builder = IndexedDatasetBuilder(path + ".bin", dtype=np.uint16)
    for document in documents:
        builder.add_document(document, [len(document)])
    builder.finalize(path + ".idx")
    dataset = IndexedDataset(path)

    def read() -> int:
        order, n, have, row = np.random.default_rng(0).permutation(len(dataset)), 0, 0, []
        while n < rows:
            for i in order:
                row.append(np.asarray(dataset[int(i)]))
                have += len(row[-1])
                while have >= length:
                    joined = np.concatenate(row)
                    torch.from_numpy(joined[:length].astype(np.int64))
                    row, have, n = [joined[length:]], have - length, n + 1
                    if n == rows:
                        return n
        return n

    show("Megatron IndexedDataset, joined in order", measured(read), "no mask, labels or borders")


def trl(documents: list[Any], length: int, rows: int) -> None:
    try:
        import datasets
        from trl.data_utils import pack_dataset
    except Exception as error:
        print(f"trl cannot be imported: {error}")
        return
    datasets.disable_progress_bars()
    source = datasets.Dataset.from_dict({"input_ids": [d.tolist() for d in documents]})
    before = time.process_time()
    packed = pack_dataset(source, length, "bfd")
    show("TRL pack_dataset bfd, once", (1e6 * (time.process_time() - before) / len(packed), len(packed)), "before the first batch")
    packed = packed.with_format("torch")

    def read() -> int:
        order, n = np.random.default_rng(0), 0
        while n < rows:
            for i in order.permutation(len(packed)).tolist():
                packed[i]["input_ids"]
                n += 1
                if n == rows:
                    break
        return n

    show("TRL, its packed rows read one by one", measured(read), "not padded or batched yet")


if __name__ == "__main__":
    main()
