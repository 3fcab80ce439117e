"""Encodes all documents of a file several times with one library, in one process, and prints what each pass took:

    python tokenizers_.py LIBRARY TOKENIZER CORPUS PASSES

TOKENIZER is a tokenizer.json, or a .model for sentencepiece. A document is a run of whole lines of at least 2 KiB, as in bench/tokenize/passes.
"""

import gc
import hashlib
import importlib.metadata
import json
import sys
import time

import numpy as np

GPT2 = r"'(?:[sdmt]|ll|ve|re)| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"


def documents(corpus):
    found, lines, size = [], [], 0
    for line in open(corpus, encoding="utf-8", newline="\n"):
        lines.append(line)
        size += len(line.encode())
        if size >= 2048:
            found.append("".join(lines))
            lines, size = [], 0
    return found + (["".join(lines)] if lines else [])


def each(rows):
    return np.concatenate([np.asarray(row, dtype=np.uint32) for row in rows])


def tokenizers(path):
    from tokenizers import Tokenizer

    t = Tokenizer.from_file(path)
    return lambda texts: t.encode_batch(texts, add_special_tokens=False), lambda out: each(e.ids for e in out)


def gigatoken(path):
    import awkward
    import gigatoken

    return gigatoken.Tokenizer(path).encode_batch, lambda out: np.asarray(awkward.flatten(out))


def tokie(path):
    import tokie

    t = tokie.Tokenizer.from_json(path)
    return lambda texts: t.encode_batch(texts, add_special_tokens=False), lambda out: each(e.ids for e in out)


def nanotoken(path):
    import nanotoken

    t = nanotoken.Tokenizer(path)
    return lambda texts: t.encode_batch(texts, add_special_tokens=False), each


def sentencepiece(path):
    import sentencepiece

    t = sentencepiece.SentencePieceProcessor(model_file=path)
    return lambda texts: t.encode(texts, num_threads=1), each


def tiktoken(path):
    """Its ranks are the ids of a byte-level vocabulary."""
    import tiktoken

    content = json.load(open(path, encoding="utf-8"))
    plain = [*range(33, 127), *range(161, 173), *range(174, 256)]
    rest = [b for b in range(256) if b not in plain]
    byte_of = {chr(b): b for b in plain} | {chr(256 + k): b for k, b in enumerate(rest)}
    before = content["pre_tokenizer"]
    if content["model"].get("type") != "BPE" or "ByteLevel" not in json.dumps(before):
        raise SystemExit("has byte-level BPE alone")
    added = {token["content"] for token in content["added_tokens"]}
    ranks = {bytes(byte_of[c] for c in piece): rank for piece, rank in content["model"]["vocab"].items() if piece not in added}
    splits = [part["pattern"]["Regex"] for part in before.get("pretokenizers", [before]) if part["type"] == "Split"]
    t = tiktoken.Encoding("of a file", pat_str=splits[0] if splits else GPT2, mergeable_ranks=ranks, special_tokens={})
    return lambda texts: t.encode_ordinary_batch(texts, num_threads=1), each


def main():
    library, tokenizer, corpus, passes = sys.argv[1:]
    texts = documents(corpus)
    encode, flat = globals()[library](tokenizer)
    encode(["hello world"])
    seconds, out = [], None
    for _ in range(int(passes)):
        out = None
        gc.collect()
        start = time.process_time()
        out = encode(texts)
        seconds.append(time.process_time() - start)
    ids = flat(out).astype("<u4")
    print(json.dumps({"seconds": seconds, "tokens": len(ids), "documents": len(texts), "sha256": hashlib.sha256(ids.tobytes()).hexdigest(),
                      "version": importlib.metadata.version(library)}))  # fmt: skip


if __name__ == "__main__":
    main()
