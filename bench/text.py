"""Text for measurements, generated: the same arguments give the same bytes, on any machine and with any version of dsload.

Words follow Zipf's law: common English ones, then those with endings and joined, then made-up ones. Sentences have capitals, punctuation and numbers, and
one in forty is of other scripts. So words recur, and new ones keep coming, as in text that people wrote.
"""

from __future__ import annotations

import itertools
import json
import pathlib
import random
from collections.abc import Iterator

COMMON = """the of and to in a is that for it was on are as with his they be at one have this from or had by not but some what there we can out other were all your
when up use how said an each she which do their time if will way about many then them would write like so these her long make thing see him two has look more
day could go come did my sound no most number who over know water than call first people may down side been now find any new work part take get place made
live where after back little only round man year came show every good me give our under name very through just form great think say help low line before turn
cause same mean differ move right boy old too does tell sentence set three want air well also play small end put home read hand port large spell add even land
here must big high such follow act why ask men change went light kind off need house picture try us again animal point mother world near build self earth
father head stand own page should country found answer school grow study still learn plant cover food sun four thought let keep eye never last door between
city tree cross since hard start might story saw far sea draw left late run while press close night real life few stop open seem together next white children
begin got walk example ease paper often always music those both mark book letter until mile river car feet care second group carry took rain eat room friend
began idea fish mountain north once base hear horse cut sure watch color face wood main""".split()
ENDINGS = ["", "s", "ing", "ed", "er", "ly", "ness", "ment", "able", "less", "ful", "ward"]
SYLLABLES = "ta re no mi sol ka ver den lu pro ant ing er es tion con qu st al be ou ri la ne to un de ma li ver ha ble ment or ic".split()
OTHER = ["größer", "naïveté", "œuvre", "съешь", "ещё", "булок", "今日は", "良い天気", "北京的大学", "한글은", "नमस्ते", "สวัสดี", "مرحبا", "שלום", "🙂", "👩🏾‍🚀", "½", "№"]
END = [". ", ". ", ". ", "? ", "! ", "; ", " — "]


def vocabulary(words: int = 40_000, seed: int = 1) -> list[str]:
    """Words, the most frequent first."""
    rng = random.Random(seed)
    known = [word + ending for ending in ENDINGS for word in COMMON]
    joined = [rng.choice(COMMON) + rng.choice(COMMON) for _ in range(words // 4)]
    made = ["".join(rng.choices(SYLLABLES, k=rng.randint(2, 5))) for _ in range(words)]
    return list(dict.fromkeys(known + joined + made))[:words]


def sentences(seed: int) -> Iterator[str]:
    rng, words = random.Random(seed), vocabulary()
    weights = list(itertools.accumulate(1 / (rank + 3) for rank in range(len(words))))
    while True:
        picked = rng.choices(words, cum_weights=weights, k=4000)
        at = 0
        while at < len(picked):
            length = rng.randint(4, 24)
            sentence = picked[at : at + length]
            at += length
            odd = rng.random()
            if odd < 0.025:
                sentence = rng.choices(OTHER, k=len(sentence))
            elif odd < 0.25:
                sentence.insert(rng.randrange(len(sentence)), str(rng.randint(0, 2030)))
            if odd > 0.6 and len(sentence) > 8:
                sentence[len(sentence) // 2] += ","
            text = " ".join(sentence)
            yield text[0].upper() + text[1:] + rng.choice(END)


def documents(size: int, seed: int = 1, mean: int = 2000) -> Iterator[str]:
    """Documents without line breaks, together at least size bytes of UTF-8, of mean characters on average: from a tenth to many times of it."""
    rng, source, made = random.Random(seed + 1), sentences(seed), 0
    while made < size:
        want, parts, length = min(mean * 20.0, max(mean / 10, rng.expovariate(1 / mean))), [], 0
        while length < want:
            parts.append(next(source))
            length += len(parts[-1])
        document = "".join(parts).rstrip()[: int(want * 1.5)]
        made += len(document.encode()) + 1
        yield document


def write_lines(path: pathlib.Path, size: int, seed: int = 1, mean: int = 2000) -> None:
    """A document a line."""
    with open(path, "w", encoding="utf-8", newline="\n") as f:
        f.writelines(document + "\n" for document in documents(size, seed, mean))


def write_jsonl(path: pathlib.Path, texts: Iterator[str]) -> None:
    with open(path, "w", encoding="utf-8", newline="\n") as f:
        f.writelines(json.dumps({"id": k, "text": text}, ensure_ascii=False) + "\n" for k, text in enumerate(texts))


def tokenizer(kind: str) -> dict:
    """A tokenizer.json with 8,000 pieces, wordpiece or unigram, whose special tokens come first."""
    letters = sorted({c for word in [*COMMON, *SYLLABLES] for c in word})
    if kind == "wordpiece":
        pieces = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", *letters, *("##" + c for c in letters), *("##" + s for s in SYLLABLES if len(s) > 1), *vocabulary(8000)]
        vocab = {piece: k for k, piece in enumerate(dict.fromkeys(pieces))}
        model = {"type": "WordPiece", "unk_token": "[UNK]", "continuing_subword_prefix": "##", "max_input_chars_per_word": 100, "vocab": vocab}
        before = {"normalizer": {"type": "BertNormalizer", "clean_text": True, "handle_chinese_chars": True, "strip_accents": None, "lowercase": True},
                  "pre_tokenizer": {"type": "BertPreTokenizer"}, "decoder": {"type": "WordPiece", "prefix": "##", "cleanup": True}}  # fmt: skip
        special = {"[PAD]": 0, "[UNK]": 1, "[CLS]": 2, "[SEP]": 3}
    else:
        pieces = dict.fromkeys(["▁", *letters, *SYLLABLES, *("▁" + word for word in vocabulary(8000))])
        model = {"type": "Unigram", "unk_id": 2, "vocab": [["<pad>", 0.0], ["</s>", 0.0], ["<unk>", 0.0], *([p, -5 - rank / 1000] for rank, p in enumerate(pieces))]}
        space = {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "always", "split": True}
        before = {"normalizer": {"type": "NFKC"}, "pre_tokenizer": space, "decoder": space}
        special = {"<pad>": 0, "</s>": 1, "<unk>": 2}
    added = [{"id": k, "content": token, "single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": True} for token, k in special.items()]
    return {"version": "1.0", "truncation": None, "padding": None, "added_tokens": added, "post_processor": None, "model": model, **before}
