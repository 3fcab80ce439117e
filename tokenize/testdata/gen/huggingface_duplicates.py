"""Unigram vocabularies that list some pieces more than once, as Hugging Face tokenizers encodes and decodes with them.

usage: python huggingface_duplicates.py OUT SEED VOCABULARIES TEXTS
writes OUT: lines as huggingface.py does, with "vocab": {"size": …, "ids": {token: id}, "tokens": [token of each id]} besides.
"""
import json
import random
import sys

from tokenizers import AddedToken, Tokenizer, decoders, models, normalizers, pre_tokenizers

import texts

LETTERS = "abcde ▁é東"


def vocabulary(r):
    """Pieces and scores with pieces that come again, at other scores: the first better, the last better, the worst of all not the last."""
    pieces = ["<unk>"] + (["<0x%02X>" % b for b in range(256)] if r.random() < .3 else [])
    if r.random() < .1:
        pieces.append("")
    pieces += sorted({"".join(r.choice(LETTERS).replace(" ", "▁") for _ in range(r.randint(1, 4))) for _ in range(r.randint(5, 60))})
    if r.random() < .3:
        pieces += sorted({w for s in r.sample(texts.SENTENCES, 5) for w in s.replace(" ", " ▁").split(" ")})
    again = r.choices(pieces, k=r.randint(1, 20))
    if r.random() < .4:
        again.append("<unk>")
    body = pieces[1:] + again
    if r.random() < .7:
        r.shuffle(body)
    vocab = [(p, -r.randrange(80) / 4) for p in pieces[:1] + body]
    unk = r.choice([i for i, (p, _) in enumerate(vocab) if p == "<unk>"])
    if r.random() < .1:
        unk = r.randrange(len(vocab))
    return vocab, unk


def build(r):
    vocab, unk = vocabulary(r)
    t = Tokenizer(models.Unigram([("<unk>", 0.0)], unk_id=0))
    P, N = pre_tokenizers, normalizers
    schemes = ["always", "first", "never"]
    pre = r.choice([lambda: P.Metaspace(prepend_scheme=r.choice(schemes)), lambda: P.Sequence([P.WhitespaceSplit(), P.Metaspace(prepend_scheme="always")]),
                    lambda: P.Metaspace(prepend_scheme=r.choice(schemes), split=False), P.Whitespace, lambda: None])()
    if pre is not None:
        t.pre_tokenizer = pre
    norm = r.choice([None, None, N.NFKC(), N.Nmt()])
    if norm is not None:
        t.normalizer = norm
    dec = r.choice([None, decoders.Metaspace(), decoders.Sequence([decoders.ByteFallback(), decoders.Metaspace()])])
    if dec is not None:
        t.decoder = dec
    data = json.loads(t.to_str())
    data["model"].update(vocab=vocab, unk_id=unk, byte_fallback=r.random() < .5)
    t = Tokenizer.from_str(json.dumps(data))
    added = []
    if r.random() < .4:  # an added token that the model has more than once gets its last id
        added = [r.choice([p for p, _ in vocab if p])]
        (t.add_special_tokens if r.random() < .5 else t.add_tokens)([AddedToken(added[0], normalized=norm is None and r.random() < .5)])
    return Tokenizer.from_str(t.to_str()), [p for p, _ in vocab], added


def text(r, pieces, added):
    k = r.random()
    if k < .4:
        return "".join(r.choice(pieces + [" ", "?"]).replace("▁", " ") for _ in range(r.randint(1, 12)))
    if k < .8:
        return "".join(r.choice(LETTERS + "?") for _ in range(r.randint(0, 30)))
    return texts.hostile(r, added + ["<unk>"])


def main():
    out, seed, count, number = sys.argv[1], *map(int, sys.argv[2:5])
    with open(out, "w") as f:
        for s in range(seed, seed + count):
            r = random.Random(s)
            t, pieces, added = build(r)
            cases = []
            for _ in range(number):
                x = text(r, pieces, added)
                ids = t.encode(x, add_special_tokens=False).ids
                cases.append([x, ids, t.encode(x).ids, t.decode(ids, skip_special_tokens=False), t.decode(ids)])
            size = t.get_vocab_size()
            vocab = {"size": size, "ids": {p: t.token_to_id(p) for p in pieces}, "tokens": [t.id_to_token(i) for i in range(size)]}
            f.write(json.dumps({"seed": s, "tokenizer": json.loads(t.to_str()), "vocab": vocab, "cases": cases}) + "\n")


main()
