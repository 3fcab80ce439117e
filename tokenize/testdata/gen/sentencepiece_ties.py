"""Unigram SentencePiece models written by hand rather than trained, so that the search is full of paths of equal score.

Scores come from a handful of values, some of them so large that sums reach the size at which sentencepiece begins them anew; pieces
overlap; user-defined symbols are runs of what other pieces consist of, and there are unused and byte pieces.

usage: python sentencepiece_ties.py FOLDER SEED MODELS TEXTS    writes FOLDER/unigram-tiesN.model and FOLDER/unigram-tiesN.jsonl:
[text, ids, ids to decode, decoded]
"""
import json
import random
import struct
import sys

import sentencepiece as spm

NORMAL, UNKNOWN, CONTROL, USER, UNUSED, BYTE = range(1, 7)
LETTERS = ["a", "b", ".", "-", "é", "漢", "👍", "▁"]


def varint(n):
    out = b""
    while n > 127:
        out += bytes([n & 127 | 128])
        n >>= 7
    return out + bytes([n])


def sized(field, data):
    return varint(field << 3 | 2) + varint(len(data)) + data


def number(field, n):
    return varint(field << 3) + varint(n)


def piece(text, score, kind):
    return sized(1, sized(1, text.encode()) + varint(2 << 3 | 5) + struct.pack("<f", score) + number(3, kind))


def make(r):
    """Returns a model and the pieces that texts should be made of."""
    letters = r.sample(LETTERS, r.randint(2, 5)) + ["▁"]
    size = r.choice([1, 1, 1, 0.01, 9000, 30000])
    scores = [-size * r.choice([r.random(), r.randint(0, 8) / 4, r.random() * 12]) for _ in range(r.randint(1, 12))]
    if r.random() < .2:
        scores.append(size * r.random())
    exact = r.random() < .3
    fallback = r.random() < .4
    seen = {"<unk>", "<s>", "</s>"}
    pieces = [("<unk>", 0, UNKNOWN), ("<s>", 0, CONTROL), ("</s>", 0, CONTROL)]

    def add(text, score, kind):
        if text not in seen:
            seen.add(text)
            pieces.append((text, score, kind))

    if fallback:
        for b in range(256):
            add(f"<0x{b:02X}>", 0, BYTE)
    for _ in range(r.choice([0, 0, 1, 3, 8])):
        text = r.choice(letters) * r.randint(1, 9) if r.random() < .6 else "".join(r.choice(letters) for _ in range(r.randint(1, 5)))
        add(text.replace("▁", " ") if r.random() < .2 else text, r.choice([0, 0, -3]), USER)
    per_byte = -size * r.random()
    for c in letters:
        if r.random() < .9:
            add(c, per_byte if exact else r.choice(scores), NORMAL)
    for _ in range(r.randint(3, 40)):
        text = "".join(r.choice(letters) for _ in range(r.randint(1, 6))) if r.random() < .6 else r.choice(letters) * r.randint(2, 12)
        add(text, per_byte * len(text) if exact else r.choice(scores), UNUSED if r.random() < .1 else NORMAL)
    trainer = number(3, 1) + (number(35, 1) if fallback else b"") + (number(24, 1) if r.random() < .15 else b"")
    normalizer = number(3, r.randint(0, 1)) + number(4, r.randint(0, 1))
    proto = b"".join(piece(*p) for p in pieces) + sized(2, trainer) + sized(3, normalizer)
    parts = [p[0] for p in pieces if p[2] in (NORMAL, USER, UNUSED)] + letters + [" ", "  ", "x"]
    return proto, [p.replace("▁", " ") if r.random() < .5 else p for p in parts]


def text(r, parts):
    out = []
    for _ in range(r.randint(0, 12)):
        k = r.random()
        if k < .35:
            out.append(r.choice(parts) * r.choice([1, 2, 3, 5, 8, 13, 40]))
        elif k < .45:
            out.append((r.choice(parts) + r.choice(parts)) * r.randint(1, 20))
        elif k < .5:
            out.append(chr(r.choice([0xE9, 0x4E00, 0x1F600, 0x7A, 0x0A])))
        else:
            out.append(r.choice(parts))
    return "".join(out)


def main():
    folder, seed, models, texts = sys.argv[1], *map(int, sys.argv[2:5])
    r = random.Random(seed)
    for n in range(models):
        proto, parts = make(r)
        sp = spm.SentencePieceProcessor(model_proto=proto)
        with open(f"{folder}/unigram-ties{n}.model", "wb") as f:
            f.write(proto)
        with open(f"{folder}/unigram-ties{n}.jsonl", "w") as f:
            for _ in range(texts):
                x = text(r, parts)
                ids = sp.encode(x)
                f.write(json.dumps([x, ids, ids[:20], sp.decode(ids[:20])]) + "\n")


main()
