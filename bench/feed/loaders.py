"""CPU and memory of one epoch: dsload and torch's DataLoader over a Hugging Face dataset, on the same rows.

    python bench/feed/loaders.py dsload  DATASET [--workers N]
    python bench/feed/loaders.py datasets DATASET [--workers N]        # needs the package datasets

Prints one JSON object: CPU microseconds a sample, of the trainer with its workers and of the server; and the proportional memory (PSS) of all
processes together in the middle of the epoch. CPU spent before the first batch (imports, starting) is left out.
"""

from __future__ import annotations

import argparse
import glob
import json
import os
import resource
import sys
import tempfile
from typing import Any

import numpy as np
import torch
from torch.utils.data import DataLoader

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))

from measure import cpu_of, proportional, tree  # noqa: E402


def dsload_batches(folder: str, workers: int, batch_size: int) -> tuple[Any, Any, int]:
    import dsload

    loader = dsload.Loader(folder, batch_size=batch_size, seed=1)
    feed = DataLoader(loader, batch_size=None, num_workers=workers) if workers else loader
    return loader, feed, loader.num_examples


def datasets_batches(folder: str, workers: int, batch_size: int) -> tuple[Any, Any, int]:
    import pyarrow as pa
    from datasets import Dataset, load_from_disk

    saved = os.path.join(tempfile.gettempdir(), "dsload-bench-" + os.path.basename(folder))
    if not os.path.exists(saved):
        tables = [pa.ipc.open_file(p).read_all().select(["input_ids"]) for p in sorted(glob.glob(folder + "/train-*.arrow"))]
        Dataset(pa.concat_tables(tables)).save_to_disk(saved)
        # Without the tables of the conversion in memory.
        os.execv(sys.executable, [sys.executable, *sys.argv])
    rows = load_from_disk(saved).with_format("numpy")

    def collate(batch: list[dict[str, Any]]) -> dict[str, torch.Tensor]:
        ids = [r["input_ids"] for r in batch]
        shape = (len(ids), max(map(len, ids)))
        out = {"input_ids": np.zeros(shape, np.int64), "attention_mask": np.zeros(shape, np.int64), "labels": np.full(shape, -100)}
        for i, x in enumerate(ids):
            out["input_ids"][i, : len(x)] = out["labels"][i, : len(x)] = x
            out["attention_mask"][i, : len(x)] = 1
        return {k: torch.from_numpy(v) for k, v in out.items()}

    return None, DataLoader(rows, batch_size=batch_size, shuffle=True, num_workers=workers, collate_fn=collate), len(rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("loader", choices=["dsload", "datasets"])
    parser.add_argument("dataset")
    parser.add_argument("--workers", type=int, default=0)
    parser.add_argument("--batch-size", type=int, default=32)
    arguments = parser.parse_args()
    make = dsload_batches if arguments.loader == "dsload" else datasets_batches
    loader, feed, rows = make(arguments.dataset, arguments.workers, arguments.batch_size)
    server = loader._server.process_id if loader is not None and loader._server is not None else None
    batches = iter(feed)
    seen = len(next(batches)["input_ids"])
    own, of_server = resource.getrusage(resource.RUSAGE_SELF), cpu_of(server) if server else 0.0
    memory = 0
    for k, batch in enumerate(batches):
        seen += len(batch["input_ids"])
        if k == rows // arguments.batch_size // 2:
            memory = sum(map(proportional, tree(os.getpid())))
    spent = cpu_of(server) - of_server if server else 0.0
    del batches
    assert seen == rows, f"{seen} of {rows} rows"
    now, children = resource.getrusage(resource.RUSAGE_SELF), resource.getrusage(resource.RUSAGE_CHILDREN)
    trainer = now.ru_utime + now.ru_stime - own.ru_utime - own.ru_stime
    if arguments.workers:  # they have ended, and their CPU counts whole
        trainer += children.ru_utime + children.ru_stime
    result = {
        "loader": arguments.loader, "workers": arguments.workers, "rows": rows, "batch_size": arguments.batch_size,
        "trainer_us_a_sample": round(trainer / rows * 1e6, 2), "server_us_a_sample": round(spent / rows * 1e6, 2), "pss_bytes": memory,
    }
    if loader is not None:
        loader.close()
    print(json.dumps(result))


if __name__ == "__main__":
    main()
