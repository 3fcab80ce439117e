"""One loader of tokenized rows into torch tensors, on the rows that dsload built:

    python loaders.py TOOL write DATASET FOLDER         # the same rows in the tool's own format
    python loaders.py TOOL epoch DATASET FOLDER         # one shuffled epoch: what the CPU and memory are measured of
    python loaders.py TOOL check DATASET FOLDER         # the same, with a hash of all rows that does not depend on their order
    python loaders.py TOOL full|half|rest DATASET FOLDER    # resuming: hashes of all batches; a state in the middle; what comes after it

Batches are 32 rows, padded to the longest: input_ids and attention_mask, int64.
"""

import hashlib
import json
import os
import pickle
import resource
import sys
import time
import zlib

import numpy as np
import torch

sys.path.insert(1, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))

from measure import cpu_of, tree  # noqa: E402

BATCH = 32
torch.set_num_threads(1)


def rows_of(dataset):
    from builders import dsload

    return dsload.read(dataset)


def collate(rows):
    width = max(map(len, rows))
    ids, mask = np.zeros((len(rows), width), np.int64), np.zeros((len(rows), width), np.int64)
    for k, row in enumerate(rows):
        ids[k, : len(row)] = row
        mask[k, : len(row)] = 1
    return {"input_ids": torch.from_numpy(ids), "attention_mask": torch.from_numpy(mask)}


def of_dicts(rows):
    return collate([np.asarray(row["input_ids"]) for row in rows])


class dsload:
    def write(dataset, folder):
        pass

    def open(dataset, folder, state=None):
        import dsload

        loader = dsload.Loader(dataset, batch_size=BATCH, seed=7, columns=("input_ids", "attention_mask"))
        if state:
            loader.load_state_dict(state)
        return loader, lambda _: loader.state_dict(), loader.close


class datasets:
    def write(dataset, folder):
        from datasets import Dataset

        Dataset.from_dict({"input_ids": [row.astype(np.int32) for row in rows_of(dataset)]}).save_to_disk(folder)

    def open(dataset, folder, state=None):
        from datasets import load_from_disk
        from torchdata.stateful_dataloader import StatefulDataLoader

        order = torch.Generator()
        order.manual_seed(7)
        loader = StatefulDataLoader(load_from_disk(folder).with_format("numpy"), batch_size=BATCH, shuffle=True, generator=order, collate_fn=of_dicts)
        if state:
            loader.load_state_dict(state)
        return loader, lambda _: loader.state_dict(), None


class litdata:
    def write(dataset, folder):
        from litdata.streaming.writer import BinaryWriter

        writer = BinaryWriter(folder, chunk_bytes=64 << 20)
        for k, row in enumerate(rows_of(dataset)):
            writer.add_item(k, {"input_ids": row.astype(np.int32)})
        writer.done()
        writer.merge()

    def open(dataset, folder, state=None):
        import litdata

        rows = litdata.StreamingDataset(folder, shuffle=True, drop_last=False, seed=7)
        loader = litdata.StreamingDataLoader(rows, batch_size=BATCH, num_workers=0, collate_fn=of_dicts)
        if state:
            loader.load_state_dict(state)
        return loader, lambda _: loader.state_dict(), None


class mosaicml:
    def write(dataset, folder):
        from streaming import MDSWriter

        with MDSWriter(out=folder, columns={"input_ids": "ndarray:int32"}) as writer:
            for row in rows_of(dataset):
                writer.write({"input_ids": row.astype(np.int32)})

    def open(dataset, folder, state=None):
        from streaming import StreamingDataLoader, StreamingDataset

        loader = StreamingDataLoader(StreamingDataset(local=folder, shuffle=True, batch_size=BATCH, shuffle_seed=7), batch_size=BATCH, collate_fn=of_dicts)
        if state:
            loader.load_state_dict(state)
        return loader, lambda _: loader.state_dict(), None


class grain:
    def write(dataset, folder):
        from array_record.python.array_record_module import ArrayRecordWriter

        os.makedirs(folder)
        writer = ArrayRecordWriter(folder + "/rows", "group_size:1")
        for row in rows_of(dataset):
            writer.write(row.astype(np.int32).tobytes())
        writer.close()

    def open(dataset, folder, state=None):
        import grain

        rows = grain.MapDataset.source(grain.sources.ArrayRecordDataSource(folder + "/rows")).shuffle(seed=7).map(lambda x: np.frombuffer(x, np.int32))
        batches = iter(rows.batch(BATCH, batch_fn=collate).to_iter_dataset(grain.ReadOptions(num_threads=1, prefetch_buffer_size=64)))
        if state:
            batches.set_state(state)
        return batches, lambda _: batches.get_state(), None


class memmap:
    """A flat file of tokens and where rows begin, as nanoGPT's train.py reads one; resuming is counting."""

    def write(dataset, folder):
        os.makedirs(folder)
        rows = list(rows_of(dataset))
        np.concatenate(rows).astype(np.uint32).tofile(folder + "/ids.bin")
        np.cumsum([0, *map(len, rows)]).tofile(folder + "/offsets.bin")

    def open(dataset, folder, state=None):
        ids, offsets = np.memmap(folder + "/ids.bin", np.uint32, "r"), np.fromfile(folder + "/offsets.bin", np.int64)
        order, place = np.random.default_rng(7).permutation(len(offsets) - 1), [state or 0]

        def batches():
            while place[0] < len(order):
                chosen = order[place[0] : place[0] + BATCH]
                place[0] += len(chosen)
                yield collate([ids[offsets[k] : offsets[k + 1]] for k in chosen])

        return batches(), lambda _: place[0], None


def hash_of(batch):
    return hashlib.blake2b(batch["input_ids"].numpy().tobytes(), digest_size=8).hexdigest()


def spent():
    """CPU-seconds of this process and its children so far."""
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime + sum(map(cpu_of, tree(os.getpid())[1:]))


def epoch(tool, dataset, folder, check):
    start, first = time.perf_counter(), None
    loader, _, close = globals()[tool].open(dataset, folder)
    rows = tokens = crc = 0
    for batch in loader:
        if first is None:
            first, before = time.perf_counter() - start, spent()
        rows, tokens = rows + len(batch["input_ids"]), tokens + int(batch["attention_mask"].sum())
        if check:
            for ids, mask in zip(batch["input_ids"].numpy(), batch["attention_mask"].numpy()):
                crc = (crc + zlib.crc32(ids[: mask.sum()].astype("<i4").tobytes())) % (1 << 64)
    end = spent()  # without what the exit of the interpreter takes
    if close:
        close()
    return {"rows": rows, "tokens": tokens, "before_cpu_s": before, "cpu_s": end, "first_batch_ms": first * 1e3, **({"rows_hash": crc} if check else {})}


def resume(tool, part, dataset, folder):
    place = folder + ".resume"
    if part == "full":
        loader, _, close = globals()[tool].open(dataset, folder)
        pickle.dump([hash_of(batch) for batch in loader], open(place + ".full", "wb"))
        result = {}
    elif part == "half":
        half = len(pickle.load(open(place + ".full", "rb"))) // 2
        loader, state_of, close = globals()[tool].open(dataset, folder)
        for k, batch in enumerate(loader, 1):
            if k == half:
                break
        pickle.dump(state_of(batch), open(place + ".state", "wb"))
        result = {"state_bytes": os.path.getsize(place + ".state")}
    else:
        full, state = pickle.load(open(place + ".full", "rb")), pickle.load(open(place + ".state", "rb"))
        start = time.perf_counter()
        loader, _, close = globals()[tool].open(dataset, folder, state)
        got, first = [], None
        for batch in loader:
            first = first or time.perf_counter() - start
            got.append(hash_of(batch))
        result = {"first_batch_ms": (first or 0) * 1e3, "exact": got == full[len(full) // 2 :], "batches": len(got)}
    if close:
        close()
    return result


def main():
    tool, part, dataset, folder = sys.argv[1:]
    if part == "write":
        globals()[tool].write(dataset, folder)
        result = {}
    elif part in ("epoch", "check"):
        result = epoch(tool, dataset, folder, part == "check")
    else:
        result = resume(tool, part, dataset, folder)
    print(json.dumps(result), flush=True)
    if part == "half":
        os._exit(0)  # some loaders wait for threads that were interrupted


if __name__ == "__main__":
    main()
