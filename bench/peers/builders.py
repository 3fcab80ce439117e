"""Builds a dataset of token ids from JSON lines with one tool, or reads back what it built:

    python builders.py TOOL build CORPUS.jsonl TOKENIZER.json OUT
    python builders.py TOOL digest CORPUS.jsonl TOKENIZER.json OUT

digest prints how many documents and tokens OUT has, and a hash of all ids with their borders, which is the same for all tools that did the same work.
dsload is built by its own program, and only read here.
"""

import glob
import hashlib
import json
import os
import sys

import numpy as np

BATCH = 1000


def texts(corpus):
    with open(corpus, encoding="utf-8") as f:
        for line in f:
            yield json.loads(line)["text"]


def batches(corpus, size=BATCH):
    found = []
    for text in texts(corpus):
        found.append(text)
        if len(found) == size:
            yield found
            found = []
    if found:
        yield found


def encoder(tokenizer):
    from tokenizers import Tokenizer

    t = Tokenizer.from_file(tokenizer)
    return lambda found: [np.asarray(e.ids, dtype=np.int32) for e in t.encode_batch(found, add_special_tokens=False)]


class dsload:
    def read(out):
        import pyarrow as pa

        for path in sorted(glob.glob(f"{out}/train-*.arrow")):
            column = pa.ipc.open_file(pa.memory_map(path)).read_all()["input_ids"]
            for chunk in column.chunks:
                yield from rows(chunk)


class datasets:
    def build(corpus, tokenizer, out):
        import datasets
        from tokenizers import Tokenizer

        datasets.disable_progress_bars()
        t = Tokenizer.from_file(tokenizer)
        made = datasets.load_dataset("json", data_files=corpus, split="train", cache_dir=out + ".cache")
        made = made.map(lambda b: {"input_ids": [e.ids for e in t.encode_batch(b["text"], add_special_tokens=False)]}, batched=True,
                        remove_columns=made.column_names, features=datasets.Features({"input_ids": datasets.Sequence(datasets.Value("int32"))}))  # fmt: skip
        made.save_to_disk(out)

    def read(out):
        from datasets import load_from_disk

        for chunk in load_from_disk(out).data.column("input_ids").chunks:
            yield from rows(chunk)


class datatrove:
    def build(corpus, tokenizer, out):
        from datatrove.executor import LocalPipelineExecutor
        from datatrove.pipeline.readers import JsonlReader
        from datatrove.pipeline.tokens import DocumentTokenizer

        reader = JsonlReader(os.path.dirname(corpus), glob_pattern=os.path.basename(corpus), doc_progress=False)
        writer = DocumentTokenizer(output_folder=out + "/tokens", local_working_dir=out + "/work", tokenizer_name_or_path=tokenizer, eos_token=None, shuffle_documents=False)
        LocalPipelineExecutor(pipeline=[reader, writer], tasks=1, workers=1, logging_dir=out + "/logs").run()

    def read(out):
        for path in sorted(glob.glob(out + "/tokens/*.ds")):
            width = np.uint16 if os.path.getsize(path) // 2 == np.fromfile(path + ".index", "<u8")[-1] else np.uint32
            yield from np.split(np.fromfile(path, width), np.fromfile(path + ".index", "<u8")[:-1].astype(np.int64))


class mosaicml:
    def build(corpus, tokenizer, out):
        from streaming import MDSWriter

        encode = encoder(tokenizer)
        with MDSWriter(out=out, columns={"input_ids": "ndarray:int32"}, size_limit=1 << 26) as writer:
            for batch in batches(corpus):
                for ids in encode(batch):
                    writer.write({"input_ids": ids})

    def read(out):
        from streaming import StreamingDataset

        for row in StreamingDataset(local=out, shuffle=False, batch_size=1):
            yield row["input_ids"]


ranges_encode = None


def of_range(task):
    """What litdata's worker yields for a range of bytes that begins and ends with lines."""
    global ranges_encode
    corpus, tokenizer, first, end = task
    ranges_encode = ranges_encode or encoder(tokenizer)
    with open(corpus, "rb") as f:
        f.seek(first)
        found = [json.loads(line)["text"] for line in f.read(end - first).splitlines()]
    for k in range(0, len(found), BATCH):
        for ids in ranges_encode(found[k : k + BATCH]):
            yield {"input_ids": ids}


class litdata:
    def build(corpus, tokenizer, out):
        import litdata

        tasks, at, size = [], 0, os.path.getsize(corpus)
        with open(corpus, "rb") as f:
            while at < size:
                f.seek(min(size, at + (1 << 20)))
                f.readline()
                tasks.append((corpus, tokenizer, at, f.tell()))
                at = f.tell()
        litdata.optimize(fn=of_range, inputs=tasks, output_dir=out, num_workers=1, chunk_bytes="64MB")

    def read(out):
        import litdata

        dataset = litdata.StreamingDataset(out, shuffle=False, drop_last=False)
        for k in range(len(dataset)):
            yield dataset[k]["input_ids"]


class gigatoken:
    """It has no format: the ids go into a flat file, with the lengths in another, as Megatron's preprocessing does it."""

    def build(corpus, tokenizer, out):
        import awkward
        import gigatoken

        t = gigatoken.Tokenizer(tokenizer)
        os.makedirs(out)
        with open(out + "/ids.bin", "wb") as ids, open(out + "/lengths.bin", "wb") as lengths:
            for batch in batches(corpus, 20_000):
                encoded = t.encode_batch(batch)
                ids.write(np.asarray(awkward.flatten(encoded)).astype("<i4").tobytes())
                lengths.write(np.asarray(awkward.num(encoded)).astype("<i8").tobytes())

    def read(out):
        yield from np.split(np.fromfile(out + "/ids.bin", "<i4"), np.cumsum(np.fromfile(out + "/lengths.bin", "<i8"))[:-1])


def rows(chunk):
    values, offsets = chunk.flatten().to_numpy(), chunk.offsets.to_numpy()
    yield from np.split(values, offsets[1:-1] - offsets[0])


def digest(documents):
    found, tokens, ids = 0, 0, hashlib.sha256()
    for row in documents:
        found, tokens = found + 1, tokens + len(row)
        ids.update(np.int64(len(row)).tobytes() + np.asarray(row).astype("<u4").tobytes())
    return {"documents": found, "tokens": tokens, "sha256": ids.hexdigest()}


def main():
    name, what, corpus, tokenizer, out = sys.argv[1:]
    if what == "build":
        globals()[name].build(corpus, tokenizer, out)
        print(json.dumps({}))
    else:
        print(json.dumps(digest(globals()[name].read(out))))


if __name__ == "__main__":
    main()
