"""Records a small tokenizer and a few texts for every published splitting pattern: tokenize/testdata/huggingface/splits.jsonl.

usage: record_cases.py OUT
Among them are the patterns that fuzzing found to mean something else than they seem: {1,3}+ is a repeat of a repeat to Oniguruma, and
the \\s++$ of tiktoken's newest cl100k takes line breaks along.
"""
import json
import random
import sys

from tokenizers import Regex, Tokenizer, decoders as D, models as M, pre_tokenizers as P, trainers as T

import pipelines
import texts

EXTRA = ["00000000 123456 1 22 333", "a\n  ", "\n  ", "  \n \n\t x  ", " \r\n\r\n", "I'LL they've 'story don'T ſ's", "HTTPServer camelCase ÉCOLE éCole", "漢字かなカナ 한글 漢x字", "a\u0301b\u0301 \u0301", "\u00a0x \u3000y\u2028z"]
corpus = "\n".join(texts.LINES)
with open(sys.argv[1], "w") as f:
    for i, (name, pattern) in enumerate(pipelines.SPLITS.items()):
        rng = random.Random(i)
        t = Tokenizer(M.BPE(ignore_merges=name == "cl100k possessive"))
        t.pre_tokenizer = P.Sequence([P.Split(Regex(pattern), "removed" if name == "clip" else "isolated", name == "clip"), P.ByteLevel(add_prefix_space=False, use_regex=False)])
        t.train_from_iterator(texts.LINES, T.BpeTrainer(vocab_size=340, initial_alphabet=P.ByteLevel.alphabet(), show_progress=False))
        t.decoder = D.ByteLevel()
        source = texts.Source(rng, corpus)
        cases = []
        for x in EXTRA + [source.text() for _ in range(8)]:
            ids = t.encode(x, add_special_tokens=False).ids
            cases.append([x, ids, t.encode(x).ids, t.decode(ids, skip_special_tokens=False), t.decode(ids, skip_special_tokens=True)])
        f.write(json.dumps({"seed": i, "tokenizer": json.loads(t.to_str()), "cases": cases}) + "\n")
