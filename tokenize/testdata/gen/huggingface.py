"""Differential fuzzing against Hugging Face tokenizers: random pipelines of all components over small trained vocabularies.

usage: python huggingface.py OUT SEED PIPELINES TEXTS
writes OUT: one JSON line a pipeline: {"tokenizer": …, "cases": [[text, ids, ids with special tokens, decoded, decoded
without special tokens], …]}; the test TestHuggingFace reads the files in testdata/huggingface and in $DSLOAD_HF_CASES.
"""
import json
import random
import sys

from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers

import texts

SMALL_MAP = None


def charsmap():
    """A small precompiled character map, made by sentencepiece."""
    global SMALL_MAP
    if SMALL_MAP is None:
        import base64, io, os, tempfile
        import sentencepiece as spm
        from sentencepiece import sentencepiece_model_pb2 as pb
        with tempfile.TemporaryDirectory() as d:
            with open(d + "/r.tsv", "w") as f:
                for a, b in [("é", "e"), ("e\u0301", "e"), ("ﬁ", "fi"), ("½", "1/2"), ("\u3000", " "), ("\u00a0", " "), ("\u200b", ""),
                             ("ハ\u309a", "パ"), ("ﾊﾟ", "パ"), ("①", "1"), ("㌔", "キロ"), ("\t", " "), ("\n", " "), ("Ü", "U\u0308"), ("\u2028", " ")]:
                    f.write(" ".join("%X" % ord(c) for c in a) + "\t" + " ".join("%X" % ord(c) for c in b) + "\n")
            out = io.BytesIO()
            spm.SentencePieceTrainer.train(sentence_iterator=iter(texts.SENTENCES), model_writer=out, vocab_size=300, model_type="bpe",
                                           normalization_rule_tsv=d + "/r.tsv", character_coverage=1.0, minloglevel=9)
        m = pb.ModelProto()
        m.ParseFromString(out.getvalue())
        SMALL_MAP = m.normalizer_spec.precompiled_charsmap
    return SMALL_MAP


def normalizer(r):
    N = normalizers
    simple = [N.NFC, N.NFD, N.NFKC, N.NFKD, N.Lowercase, N.StripAccents, N.Nmt]

    def one():
        k = r.randrange(13)
        if k < 5:
            return r.choice(simple)()
        if k == 5:
            return N.BertNormalizer(clean_text=r.random() < .7, handle_chinese_chars=r.random() < .7,
                                    strip_accents=r.choice([None, True, False]), lowercase=r.random() < .6)
        if k == 6:
            return N.Strip(left=r.random() < .5, right=r.random() < .5)
        if k == 7:
            return N.Replace(*r.choice([(" ", "▁"), ("  ", " "), ("a", ""), ("ab", "c"), ("'", "’"), (".", "..."), ("e", "é")]))
        if k == 8:
            return N.Replace(*r.choice([(Regex(r"\s+"), " "), (Regex(" {2,}"), "▁"), (Regex(r"\d"), "0"), (Regex(r"(?i)the\b"), "X"), (Regex(r"[^\w\s]+"), "."), (Regex(r"\p{Lu}(?=\p{Ll})"), "^")]))
        if k == 9:
            return N.Prepend(r.choice(["▁", " ", "ab"]))
        if k == 10:
            return N.Precompiled(charsmap())
        if k == 11 and r.random() < .4:
            return N.ByteLevel()
        return r.choice(simple)()

    k = r.random()
    if k < .25:
        return None
    if k < .6:
        return one()
    return N.Sequence([one() for _ in range(r.randint(1, 4))])


BEHAVIORS = ["removed", "isolated", "merged_with_previous", "merged_with_next", "contiguous"]


def pre_tokenizer(r):
    P = pre_tokenizers

    def one():
        k = r.randrange(13)
        if k == 0:
            return P.BertPreTokenizer()
        if k == 1:
            return P.ByteLevel(add_prefix_space=r.random() < .4, use_regex=r.random() < .7)
        if k == 2:
            return P.Whitespace()
        if k == 3:
            return P.WhitespaceSplit()
        if k in (4, 5):
            return P.Metaspace(replacement=r.choice("▁▁▁_"), prepend_scheme=r.choice(["always", "first", "never"]), split=r.random() < .7)
        if k == 6:
            return P.Split(r.choice([" ", "a", "--", ".", "\n", "▁"]), r.choice(BEHAVIORS), r.random() < .3)
        if k == 7:
            return P.Split(Regex(r.choice([r"\s+", r"\d{1,3}", r"\p{L}+|\p{N}", r"\w+(?=\s)", r"[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+", "x*", r"\b", r"(?i:'s|'t)|."])),
                           r.choice(BEHAVIORS), r.random() < .3)
        if k == 8:
            return P.Punctuation(r.choice(BEHAVIORS))
        if k == 9:
            return P.Digits(individual_digits=r.random() < .5)
        if k == 10:
            return P.CharDelimiterSplit(r.choice(" -a▁"))
        if k == 11:
            return P.UnicodeScripts()
        return P.FixedLength(r.randint(1, 7))

    k = r.random()
    if k < .1:
        return None
    if k < .6:
        return one()
    return P.Sequence([one() for _ in range(r.randint(1, 3))])


def decoder(r):
    D = decoders

    def one():
        k = r.randrange(10)
        return [lambda: D.ByteLevel(), lambda: D.WordPiece(prefix=r.choice(["##", ""]), cleanup=r.random() < .5),
                lambda: D.Metaspace(replacement="▁", prepend_scheme=r.choice(["always", "first", "never"])),
                lambda: D.BPEDecoder(suffix="</w>"), lambda: D.CTC(pad_token="a", word_delimiter_token="e", cleanup=r.random() < .5),
                lambda: D.Replace("▁", " "), lambda: D.Replace(Regex("[ae]+"), "-"), lambda: D.Fuse(), lambda: D.ByteFallback(),
                lambda: D.Strip(r.choice(" a▁"), r.randint(0, 2), 0)][k]()

    k = r.random()
    if k < .15:
        return None
    if k < .5:
        return one()
    return D.Sequence([one() for _ in range(r.randint(1, 4))])


def model(r):
    k = r.random()
    special = ["<unk>", "[CLS]", "[SEP]"]
    alphabet = []
    n = r.choice([150, 300, 600])
    if k < .5:
        kw = {}
        if r.random() < .3:
            kw["continuing_subword_prefix"] = "##"
        if r.random() < .3:
            kw["end_of_word_suffix"] = "</w>"
        if r.random() < .3:
            special += ["<0x%02X>" % b for b in range(256 if r.random() < .7 else 200)]
            kw["byte_fallback"] = True
        m = models.BPE(unk_token="<unk>" if r.random() < .7 else None, fuse_unk=r.random() < .5, ignore_merges=r.random() < .3, **kw)
        kw.pop("byte_fallback", None)
        return m, trainers.BpeTrainer(vocab_size=n + len(special), special_tokens=special, limit_alphabet=r.choice([40, 1000]), show_progress=False,
                                      initial_alphabet=pre_tokenizers.ByteLevel.alphabet() if r.random() < .3 else alphabet, **kw)
    if k < .65:
        return models.WordPiece(unk_token="<unk>", max_input_chars_per_word=r.choice([100, 6])), \
            trainers.WordPieceTrainer(vocab_size=n, special_tokens=special, limit_alphabet=r.choice([40, 1000]), show_progress=False)
    if k < .75:
        return models.WordLevel(unk_token="<unk>"), trainers.WordLevelTrainer(vocab_size=n, special_tokens=special, show_progress=False)
    if r.random() < .4:
        special += ["<0x%02X>" % b for b in range(256)]
    return models.Unigram(), trainers.UnigramTrainer(vocab_size=n + len(special), special_tokens=special, unk_token="<unk>", show_progress=False)


def post_processor(r, t):
    k = r.random()
    ids = [("[CLS]", t.token_to_id("[CLS]")), ("[SEP]", t.token_to_id("[SEP]"))]
    if k < .4 or ids[0][1] is None:
        return None
    if k < .7:
        return processors.TemplateProcessing(single=r.choice(["[CLS] $A [SEP]", "$A [SEP]", "[CLS] [CLS] $A", "$A"]), pair="$A $B:1", special_tokens=ids)
    if k < .8:
        return processors.BertProcessing(ids[1], ids[0])
    if k < .9:
        return processors.RobertaProcessing(ids[1], ids[0])
    return processors.Sequence([processors.ByteLevel(), processors.TemplateProcessing(single="[CLS] $A", pair="$A $B:1", special_tokens=ids)])


CL100K = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
O200K = (r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|"
         r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|"
         r"\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+")
CLIP = r"<\|startoftext\|>|<\|endoftext\|>|'s|'t|'re|'ve|'m|'ll|'d|[\p{L}]+|[\p{N}]|[^\s\p{L}\p{N}]+"


def family(r):
    """A pipeline in the shape of a well-known family: (model, trainer, normalizer, pre-tokenizer)."""
    N, P = normalizers, pre_tokenizers
    special = ["<unk>", "[CLS]", "[SEP]"]
    n = r.choice([150, 400])
    k = r.randrange(8)
    if k <= 1:  # GPT-2, RoBERTa, Llama 3, Qwen, o200k, Falcon
        pre = r.choice([lambda: P.ByteLevel(add_prefix_space=r.random() < .4)] * 2 + [
            lambda: P.Sequence([P.Split(Regex(r.choice([CL100K, CL100K.replace("{1,3}", ""), O200K])), "isolated"), P.ByteLevel(add_prefix_space=False, use_regex=False)])] * 3 + [
            lambda: P.Sequence([P.Punctuation("contiguous"), P.ByteLevel(add_prefix_space=False), P.Digits(), P.Split(Regex("[0-9][0-9][0-9]"), "isolated")])])()
        norm = r.choice([None, None, N.NFC(), N.Sequence([N.NFKC(), N.Lowercase()])])
        return models.BPE(ignore_merges=r.random() < .4), trainers.BpeTrainer(vocab_size=n + 256, special_tokens=special, show_progress=False, initial_alphabet=P.ByteLevel.alphabet()), norm, pre
    if k == 2:  # CLIP
        return models.BPE(unk_token="<unk>", end_of_word_suffix="</w>"), \
            trainers.BpeTrainer(vocab_size=n + 512, special_tokens=special, show_progress=False, initial_alphabet=P.ByteLevel.alphabet(), end_of_word_suffix="</w>"), \
            N.Sequence([N.NFC(), N.Replace(Regex(r"\s+"), " "), N.Lowercase()]), \
            P.Sequence([P.Split(Regex(CLIP), "removed", invert=True), P.ByteLevel(add_prefix_space=False)])
    if k <= 4:  # Llama 2, Mistral, Gemma
        fallback = r.random() < .6
        if fallback:
            special += ["<0x%02X>" % b for b in range(256)]
        norm, pre = r.choice([
            lambda: (N.Sequence([N.Prepend("▁"), N.Replace(" ", "▁")]), None), lambda: (N.Replace(" ", "▁"), P.Split(" ", "merged_with_previous")),
            lambda: (N.Replace(" ", "▁"), None), lambda: (N.Sequence([N.NFKC(), N.Prepend("▁"), N.Replace(" ", "▁")]), None),
            lambda: (r.choice([None, N.NFC()]), P.Metaspace(prepend_scheme=r.choice(["always", "first", "never"]), split=r.random() < .5))])()
        return models.BPE(unk_token="<unk>", fuse_unk=r.random() < .7, byte_fallback=fallback), \
            trainers.BpeTrainer(vocab_size=n + len(special), special_tokens=special, limit_alphabet=r.choice([60, 1000]), show_progress=False, max_token_length=16), norm, pre
    if k <= 6:  # T5, XLM-R, mBART, NLLB, ALBERT
        norm = r.choice([
            lambda: None, lambda: N.Precompiled(charsmap()), lambda: N.Sequence([N.Precompiled(charsmap()), N.Replace(Regex(" {2,}"), r.choice([" ", "▁"]))]),
            lambda: N.Sequence([N.Precompiled(charsmap()), N.Strip(left=False, right=True), N.Replace(Regex(" {2,}"), "▁")]),
            lambda: N.Sequence([N.Nmt(), N.NFKC(), N.Replace(Regex(" {2,}"), " ")]), lambda: N.Sequence([N.Nmt(), N.Precompiled(charsmap())]),
            lambda: N.Sequence([N.Replace("``", '"'), N.NFKD(), N.StripAccents(), N.Lowercase(), N.Precompiled(charsmap()), N.Replace(Regex(" {2,}"), " ")])])()
        pre = r.choice([lambda: P.Metaspace(prepend_scheme=r.choice(["always", "first", "never"]), split=r.random() < .85),
                        lambda: P.Sequence([P.WhitespaceSplit(), P.Metaspace(prepend_scheme=r.choice(["always", "always", "first", "never"]))])])()
        if r.random() < .3:
            special += ["<0x%02X>" % b for b in range(256)]
        return models.Unigram(), trainers.UnigramTrainer(vocab_size=n + len(special), special_tokens=special, unk_token="<unk>", show_progress=False), norm, pre
    norm = N.BertNormalizer(clean_text=r.random() < .8, handle_chinese_chars=r.random() < .8, strip_accents=r.choice([None, True, False]), lowercase=r.random() < .7)
    return models.WordPiece(unk_token="<unk>", max_input_chars_per_word=r.choice([100, 100, 5])), \
        trainers.WordPieceTrainer(vocab_size=n, special_tokens=special, limit_alphabet=r.choice([60, 1000]), show_progress=False), norm, P.BertPreTokenizer()


ADDED = ["<s>", "</s>", "<mask>", "[DAY]", "the", "New York", "  ", "\n\n", "a", "▁x", "É", "<|im_start|>", "<|im", "don't", "東京", "ab", "-", "é"]


def build(r):
    t = Tokenizer(models.WordLevel())
    if r.random() < .5:
        t.model, trainer, n, p = family(r)
    else:
        t.model, trainer = model(r)
        n = normalizer(r)
        p = pre_tokenizer(r)
    if n is not None:
        t.normalizer = n
    if p is not None:
        t.pre_tokenizer = p
    t.train_from_iterator(list(texts.sentences(r, 60)), trainer)
    d = decoder(r)
    if d is not None:
        t.decoder = d
    added = r.sample(ADDED, r.choice([0, 0, 1, 3, 6]))
    for a in added:
        tok = AddedToken(a, single_word=r.random() < .25, lstrip=r.random() < .25, rstrip=r.random() < .25, normalized=r.random() < .5)
        (t.add_special_tokens if r.random() < .4 else t.add_tokens)([tok])
    # Empty once normalized, or equal to another: the library then splits everywhere, or takes any of them by hash order.
    forms = [n.normalize_str(a) for a in added] if n is not None else added
    if "" in forms or len(set(forms)) < len(forms):
        raise ValueError("ambiguous added tokens")
    pp = post_processor(r, t)
    if pp is not None:
        t.post_processor = pp
    data = json.loads(t.to_str())
    if data["model"]["type"] == "Unigram" and len(data["model"]["vocab"]) > 300:
        data["model"]["byte_fallback"] = True
    if r.random() < .2 and data["model"]["type"] != "Unigram":
        del data["model"]["type"]
    if r.random() < .3 and data["model"].get("merges") is not None and all(" " not in x for m in data["model"]["merges"] for x in m):
        data["model"]["merges"] = [" ".join(m) for m in data["model"]["merges"]]
    s = json.dumps(data, ensure_ascii=False)
    return Tokenizer.from_str(s), s, added


def main():
    out, seed, pipelines, count = sys.argv[1], *map(int, sys.argv[2:5])
    made = 0
    with open(out, "w") as f:
        while made < pipelines:
            r = random.Random(seed)
            seed += 1
            try:
                t, s, added = build(r)
            except BaseException as e:  # the library panics on some combinations; those are not ours to reproduce
                continue
            cases = []
            for _ in range(count):
                x = texts.hostile(r, added) if r.random() < .85 else r.choice(texts.SENTENCES)
                try:
                    ids = t.encode(x, add_special_tokens=False).ids
                    row = [x, ids, t.encode(x).ids]
                except BaseException:
                    continue
                for skip in (False, True):
                    try:
                        row.append(t.decode(ids, skip_special_tokens=skip))
                    except BaseException:
                        row.append(None)
                cases.append(row)
            f.write(json.dumps({"seed": seed - 1, "tokenizer": json.loads(s), "cases": cases}, ensure_ascii=True) + "\n")
            made += 1


main()
