"""Small SentencePiece models of every kind that is supported, with what the sentencepiece package makes of random texts.

usage: python sentencepiece_models.py FOLDER SEED TEXTS    writes FOLDER/NAME.model and FOLDER/NAME.jsonl: [text, ids, decoded]
"""
import io
import json
import random
import sys
import tempfile

import sentencepiece as spm

import texts

RULES = [("é", "e"), ("e\u0301", "e"), ("ﬁ", "fi"), ("½", "1/2"), ("\u3000", " "), ("\u00a0", " "), ("\u200b", ""), ("ハ\u309a", "パ"),
         ("①", "1"), ("\t", " "), ("\n", " "), ("\u2028", " "), ("...", "…"), ("x", " x"), ("q", "  ")]

MODELS = {
    "bpe": dict(model_type="bpe", normalization_rule_name="identity", remove_extra_whitespaces=False),
    "bpe-default": dict(model_type="bpe", normalization_rule_name="identity"),
    "bpe-rules": dict(model_type="bpe", rules=True, byte_fallback=True, split_digits=True),
    "bpe-user": dict(model_type="bpe", rules=True, remove_extra_whitespaces=False, user_defined_symbols=["<sep>", "ab", "▁the", "  "], control_symbols=["<ctl>"]),
    "bpe-suffix": dict(model_type="bpe", normalization_rule_name="identity", treat_whitespace_as_suffix=True),
    "bpe-nodummy": dict(model_type="bpe", normalization_rule_name="identity", add_dummy_prefix=False, byte_fallback=True),
    "bpe-across": dict(model_type="bpe", normalization_rule_name="identity", split_by_whitespace=False, remove_extra_whitespaces=False),
    "unigram": dict(model_type="unigram", normalization_rule_name="identity"),
    "unigram-rules": dict(model_type="unigram", rules=True, byte_fallback=True),
    "unigram-user": dict(model_type="unigram", rules=True, remove_extra_whitespaces=False, user_defined_symbols=["<sep>", "ab", "▁the", "  "], control_symbols=["<ctl>"]),
    "unigram-suffix": dict(model_type="unigram", normalization_rule_name="identity", treat_whitespace_as_suffix=True),
    "unigram-nodummy": dict(model_type="unigram", rules=True, add_dummy_prefix=False),
}

# Texts in which the order and precision of sums decide between paths of equal score.
TIES = ["ab3333\\Ёлка", " ▁the漢漢漢漢漢漢漢漢漢  3333since ", "�  the------- abม นวรรคร", "\" the-------- ß",
        "AA b ▁the..........  ▁ ---------ภาษาไทยไม่มีการเว้นวรรคระหว่างคำ "]


def main():
    folder, seed, count = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    with tempfile.TemporaryDirectory() as d:
        with open(d + "/rules.tsv", "w") as f:
            for a, b in RULES:
                f.write(" ".join("%X" % ord(c) for c in a) + "\t" + " ".join("%X" % ord(c) for c in b) + "\n")
        for name, options in MODELS.items():
            options = dict(options)
            if options.pop("rules", False):
                options["normalization_rule_tsv"] = d + "/rules.tsv"
            r = random.Random(seed)
            out = io.BytesIO()
            size = 420 + (256 if options.get("byte_fallback") else 0)
            spm.SentencePieceTrainer.train(sentence_iterator=iter(list(texts.sentences(r, 200))), model_writer=out, vocab_size=size,
                                           hard_vocab_limit=False, character_coverage=0.98, minloglevel=9, **options)
            with open(f"{folder}/{name}.model", "wb") as f:
                f.write(out.getvalue())
            sp = spm.SentencePieceProcessor(model_proto=out.getvalue())
            with open(f"{folder}/{name}.jsonl", "w") as f:
                for _ in range(count):
                    x = texts.hostile(r, ["<sep>", "<ctl>", "ab", "▁the", "<unk>", "</s>", "<0x41>"])
                    ids = sp.encode(x)
                    some = ids if r.random() < .7 else [r.randrange(len(sp)) for _ in range(r.randint(0, 9))]
                    f.write(json.dumps([x, ids, some, sp.decode(some)]) + "\n")
                for x in TIES:
                    ids = sp.encode(x)
                    f.write(json.dumps([x, ids, ids, sp.decode(ids)]) + "\n")


main()
