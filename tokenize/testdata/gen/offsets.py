"""Writes offsets.jsonl: for the pipelines of huggingface/*.jsonl, and for the tokenizers of a folder, the ids and the byte offsets of texts, as
Hugging Face's library gives them in characters.

    python offsets.py [FOLDER WITH TOKENIZERS...] > ../offsets.jsonl
"""

import glob
import json
import os
import sys

from tokenizers import Tokenizer

HERE = os.path.dirname(os.path.abspath(__file__))
TEXTS = [
    "", "a", " a", "Hello, world!", "  two  spaces ", "don't stop\n\nnow", "café naïve Ünïcödé", "cafe\u0301 e\u0301\u0327x", "ＡＢＣ ﬁne ①②", "漢字とかな 한국어",
    "tabs\tand\u00a0odd\u3000spaces", "x ½ y ﷺ z", "👨‍👩‍👧 emoji", "İstanbul ẞ ǅ", "a\u200bb\u00adc", "12345 3.14", "▁already ▁there", "<s> <pad> [MASK] <|endoftext|> end",
    "a\u2009 <mask>b", "a\u3000<mask>\u2009\u00a0b", "\u00a0\u2009<mask>",
    "\u1100\u1161\u11a8 \uac01", "ümlaut\u0308\u0301 stacked",
]


def spans(text, encoding):
    starts = [0]
    for c in text:
        starts.append(starts[-1] + len(c.encode()))
    if any(b > len(text) for _, b in encoding.offsets):
        return None  # an accident of the library: no place of the text
    return [[starts[a], starts[b]] for a, b in encoding.offsets]


def rows(tokenizer, texts):
    out = []
    for text in texts:
        e = tokenizer.encode(text, add_special_tokens=False)
        out.append([text, e.ids, spans(text, e)])
    return out


def write(**row):
    print(json.dumps(row, ensure_ascii=False, separators=(",", ":")))


for folder in sys.argv[1:]:
    t = Tokenizer.from_file(folder + "/tokenizer.json")
    t.no_truncation()
    write(name=os.path.basename(folder), cases=rows(t, TEXTS))
for path in sorted(glob.glob(HERE + "/../huggingface/*.jsonl")):
    for line in open(path, encoding="utf-8"):
        row = json.loads(line)
        t = Tokenizer.from_str(json.dumps(row["tokenizer"]))
        texts = [c[0] for c in row["cases"]]
        write(file=os.path.basename(path), seed=row["seed"], cases=rows(t, texts[:12]))
