"""Writes beside.jsonl: folders with a small tokenizer.json and files that name more tokens beside it, and the ids, special tokens and sizes that
AutoTokenizer of transformers 5.23 gives.

    python beside.py > ../beside.jsonl
"""

import json
import os
import random
import tempfile

import transformers
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers

TEXTS = [
    "hi<|end|> there <|start|>x", "  a <|end|>  <|end|>\n<mask> b<|start|> ", "x FOO<X>bar <X> foo  </s> <s> <pad> [PAD]",
    "in a wordFOOword FOO. there", "<image><video> <|end|><|end|>",
]
WORDS = ["<|end|>", "<|start|>", "<image>", "<video>", "FOO", "<X>", "[PAD]", "<mask>", "</s>", "<s>", "<pad>", "there", "wordFOO"]
ROLES = ["bos", "eos", "pad", "unk", "cls", "sep", "mask"]


def base(added):
    t = Tokenizer(models.BPE(vocab={c: i for i, c in enumerate([*sorted(pre_tokenizers.ByteLevel.alphabet()), "there", "<s>"])}, merges=[]))
    t.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    t.decoder = decoders.ByteLevel()
    t.add_tokens([AddedToken(c, **flags) for c, flags in added])
    return json.loads(t.to_str())


BASES = [
    base([("</s>", {"special": True, "normalized": False}), ("<mask>", {"special": True, "normalized": False, "lstrip": True})]),
    base([("<pad>", {"special": True, "normalized": True}), ("</s>", {"special": True, "rstrip": True}), ("FOO", {"single_word": True})]),
    {**base([]), "added_tokens": []},
]
r = random.Random(7)


def token(content):
    flags = {k: r.random() < p for k, p in (("special", 0.6), ("lstrip", 0.3), ("rstrip", 0.3), ("normalized", 0.3), ("single_word", 0.2))}
    return {"content": content, **flags}


def folder():
    config, files = {"tokenizer_class": r.choice(["PreTrainedTokenizerFast", "TokenizersBackend"])}, {}
    for key in ("bos_token", "eos_token", "pad_token", "mask_token", "image_token"):
        if r.random() < 0.35:
            config[key] = r.choice([*WORDS, None])
    if r.random() < 0.4:
        ids = r.sample([0, 5, 256, 257, 258, 259, 260, 261, 262, 300], r.randint(0, 4))
        config["added_tokens_decoder"] = {str(i): token(w) for i, w in zip(ids, r.sample(WORDS, len(ids)))}
    if r.random() < 0.4:
        files["added_tokens.json"] = {w: r.choice([3, 256, 258, 259, 260, 261, 262, 300]) for w in r.sample(WORDS, r.randint(0, 3))}
    named = {}
    for key in r.sample(["eos_token", "pad_token", "unk_token", "mask_token"], r.choice([0, 0, 1, 3])):
        named[key] = r.choice([r.choice(WORDS), {**token(r.choice(WORDS)), "special": True}])
    for to, key in ((config, "additional_special_tokens"), (config, "extra_special_tokens"), (named, "additional_special_tokens")):
        if r.random() < 0.2:
            to[key] = r.sample(WORDS, r.randint(0, 3))
    if r.random() < 0.15:
        config["extra_special_tokens"] = {"a_token": r.choice(WORDS)}
    if named:
        files["special_tokens_map.json"] = named
    if r.random() < 0.9:
        files["tokenizer_config.json"] = config
    return files


for b in BASES:
    print(json.dumps({"tokenizer": b}, ensure_ascii=False, separators=(",", ":")))
for _ in range(120):
    number, files = r.randrange(len(BASES)), folder()
    with tempfile.TemporaryDirectory() as d:
        for name, content in {"tokenizer.json": BASES[number], **files}.items():
            with open(os.path.join(d, name), "w") as f:
                json.dump(content, f)
        t = transformers.AutoTokenizer.from_pretrained(d)
    row = {"base": number, "files": files, "ids": [t(x, add_special_tokens=False).input_ids for x in TEXTS],
           "special": {k: getattr(t, k + "_token_id") for k in ROLES}, "size": len(t)}
    print(json.dumps(row, ensure_ascii=False, separators=(",", ":")))
