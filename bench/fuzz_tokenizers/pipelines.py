"""Tokenizers to fuzz: published shapes and random assemblies, trained by the real package on a small corpus."""
import io
import json

from tokenizers import AddedToken, Regex, Tokenizer, decoders as D, models as M, normalizers as N, pre_tokenizers as P, processors as X, trainers as T

import texts

CL100K = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
O200K = r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+"
SPLITS = {
    "gpt2": r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+",
    "cl100k": CL100K,
    "cl100k possessive": r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}+| ?[^\s\p{L}\p{N}]++[\r\n]*+|\s++$|\s*[\r\n]|\s+(?!\S)|\s",
    "qwen2": CL100K.replace("{1,3}", ""),
    "o200k": O200K,
    "tekken": O200K.replace("(?i:'s|'t|'re|'ve|'m|'ll|'d)?", "").replace("{1,3}", ""),
    "kimi": r"[\p{Han}]+|" + O200K.replace(r"\p{M}]", r"\p{M}&&[^\p{Han}]]").replace(r"[\r\n/]", r"[\r\n]"),
    "deepseek v3": r"""[!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+""",
    "bloom": r" ?[^(\s|[.,!?…。，、।۔،])]+",
    "clip": r"'s|'t|'re|'ve|'m|'ll|'d|[\p{L}]+|[\p{N}]|[^\s\p{L}\p{N}]+",
    "marks": r"[^\r\n\p{L}\p{M}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|\s+(?!\S)|\s+",
}
OTHER_REGEX = [r"\s+", r"\p{N}{1,3}", r"\p{N}", r"\w+|[^\w\s]+", r"[\r\n]", r"\s?\p{L}+", r"\s?\p{P}+", "[一-龥぀-ゟ゠-ヿ]+", r"[0-9][0-9][0-9]", r"\n+", r"(?<=[a-z])(?=[A-Z])", r"\d{1,3}(?=(?:\d{3})*\b)", r"(?i)the\b|ss", r"x*", r"\b", r"^\s+|\s+$", r"\X", r"[^\P{L}a-f]+", r"(?=(\d{3})+(?!\d))"]
BEHAVIORS = ["removed", "isolated", "merged_with_previous", "merged_with_next", "contiguous"]
SPECIAL = ["<unk>", "<s>", "</s>", "<pad>", "<mask>", "[CLS]", "[SEP]", "<|endoftext|>", "<|im_start|>", "<|im_end|>", "[INST]"]
PLAIN = ["the", "New York", "  ", "\n\n", "\t", "a", "▁x", "É", "don't", "北京", "ing", "-", "é", "<|im", "==", "İ", "ﬁ", " the", "the ", "e\u0301", "ÅNG", "1", "▁▁"]
BYTES = ["<0x%02X>" % b for b in range(256)]


def train(t, trainer, rng, corpus):
    t.train_from_iterator(list(texts.training(rng, corpus, rng.choice([30, 80]))), trainer)


def size(rng):
    return rng.choice([80, 300, 800, 2000])


def byte_level(rng, corpus):
    """GPT-2 and its descendants."""
    t = Tokenizer(M.BPE(ignore_merges=rng.random() < 0.4))
    name = rng.choice(list(SPLITS))
    if name == "gpt2" and rng.random() < 0.6:
        t.pre_tokenizer = P.ByteLevel(add_prefix_space=rng.random() < 0.4, trim_offsets=rng.random() < 0.5)
    else:
        steps = [P.Split(Regex(SPLITS[name]), rng.choice(["isolated", "isolated", "removed"]) if name != "clip" else "removed", name == "clip"), P.ByteLevel(add_prefix_space=rng.random() < 0.15, use_regex=False)]
        if rng.random() < 0.25:
            steps.insert(0, rng.choice([P.Split(Regex(rng.choice(OTHER_REGEX)), rng.choice(BEHAVIORS), rng.random() < 0.2), P.Digits(rng.random() < 0.5), P.Punctuation(rng.choice(BEHAVIORS)), P.Split(" ", rng.choice(BEHAVIORS))]))
        t.pre_tokenizer = P.Sequence(steps)
    t.normalizer = rng.choice([None, None, None, N.NFC(), N.NFKC(), N.Sequence([N.NFC(), N.Replace(Regex(r"\s+"), " "), N.Lowercase()]), N.Prepend(" ")])
    kw = {"end_of_word_suffix": "</w>"} if name == "clip" else {}
    if kw:
        t.model = M.BPE(unk_token="<|endoftext|>", **kw)
    train(t, T.BpeTrainer(vocab_size=256 + size(rng), initial_alphabet=P.ByteLevel.alphabet() if rng.random() < 0.85 else [], special_tokens=["<|endoftext|>"] if kw else [], show_progress=False, **kw), rng, corpus)
    t.decoder = D.ByteLevel() if not kw else D.Sequence([D.ByteLevel(), D.BPEDecoder(suffix="</w>")]) if rng.random() < 0.5 else D.ByteLevel()
    return t


def sentencepiece_style(rng, corpus):
    """Llama, Mistral, Gemma: BPE over the text with U+2581 for spaces."""
    special = ["<unk>", "<s>", "</s>"]
    fallback = rng.random() < 0.8
    if fallback:
        special += BYTES
    t = Tokenizer(M.BPE(unk_token="<unk>", fuse_unk=rng.random() < 0.8, byte_fallback=fallback))
    legacy = rng.random()
    if legacy < 0.45:
        t.normalizer = N.Sequence([N.Prepend("▁"), N.Replace(" ", "▁")])
    elif legacy < 0.6:
        t.normalizer = N.Replace(" ", "▁")
    else:
        t.pre_tokenizer = P.Metaspace(prepend_scheme=rng.choice(["always", "first", "never"]), split=rng.random() < 0.5)
    if rng.random() < 0.2 and legacy < 0.6:
        t.pre_tokenizer = P.Split(rng.choice(["▁", " "]), rng.choice(BEHAVIORS))
    train(t, T.BpeTrainer(vocab_size=len(special) + size(rng), special_tokens=special, limit_alphabet=rng.choice([60, 1000]), show_progress=False), rng, corpus)
    t.decoder = D.Sequence([D.Replace("▁", " "), D.ByteFallback(), D.Fuse()] + ([D.Strip(" ", 1, 0)] if rng.random() < 0.7 else []))
    return t


CHARSMAPS = {}


def charsmap(rule):
    if rule not in CHARSMAPS:
        import sentencepiece as spm
        from sentencepiece import sentencepiece_model_pb2 as pb
        out = io.BytesIO()
        spm.SentencePieceTrainer.train(sentence_iterator=iter(texts.LINES), model_writer=out, vocab_size=1000, hard_vocab_limit=False, model_type="unigram", normalization_rule_name=rule, character_coverage=0.98, minloglevel=9)
        m = pb.ModelProto()
        m.ParseFromString(out.getvalue())
        CHARSMAPS[rule] = m.normalizer_spec.precompiled_charsmap
    return CHARSMAPS[rule]


def unigram(rng, corpus):
    """T5, mBART, XLNet, ALBERT."""
    t = Tokenizer(M.Unigram())
    n = [N.Precompiled(charsmap(rng.choice(["nmt_nfkc", "nmt_nfkc_cf", "nfkc"])))] if rng.random() < 0.7 else [N.Nmt(), N.NFKC()]
    if rng.random() < 0.4:
        n.append(N.Replace(Regex(" {2,}"), rng.choice([" ", "▁"])))
    if rng.random() < 0.2:
        n.insert(0, rng.choice([N.Lowercase(), N.StripAccents(), N.Strip(True, True), N.Replace("''", '"')]))
    t.normalizer = n[0] if len(n) == 1 else N.Sequence(n)
    meta = P.Metaspace(prepend_scheme=rng.choice(["always", "always", "first", "never"]), split=rng.random() < 0.8)
    t.pre_tokenizer = rng.choice([meta, P.Sequence([P.WhitespaceSplit(), meta]), P.Sequence([P.Whitespace(), meta])])
    special = ["<unk>", "</s>", "<pad>"] + (BYTES if rng.random() < 0.25 else [])
    train(t, T.UnigramTrainer(vocab_size=len(special) + rng.choice([400, 600, 1000]), special_tokens=special, unk_token="<unk>", show_progress=False), rng, corpus)
    if len(special) > 10:
        data = json.loads(t.to_str())
        data["model"]["byte_fallback"] = True
        t = Tokenizer.from_str(json.dumps(data))
    t.decoder = D.Metaspace(prepend_scheme=rng.choice(["always", "first", "never"]))
    return t


def wordpiece(rng, corpus):
    """BERT and its descendants."""
    prefix = rng.choice(["##", "##", "##", "", "▁"])
    t = Tokenizer(M.WordPiece(unk_token="[UNK]", max_input_chars_per_word=rng.choice([100, 100, 12]), continuing_subword_prefix=prefix))
    t.normalizer = N.BertNormalizer(clean_text=rng.random() < 0.8, handle_chinese_chars=rng.random() < 0.8, strip_accents=rng.choice([None, None, True, False]), lowercase=rng.random() < 0.6)
    t.pre_tokenizer = rng.choice([P.BertPreTokenizer(), P.BertPreTokenizer(), P.Whitespace(), P.Sequence([P.WhitespaceSplit(), P.Punctuation()])])
    train(t, T.WordPieceTrainer(vocab_size=rng.choice([200, 600, 1500]), special_tokens=["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"], continuing_subword_prefix=prefix, show_progress=False), rng, corpus)
    t.decoder = D.WordPiece(prefix=prefix or "##", cleanup=rng.random() < 0.5)
    return t


def any_normalizer(rng):
    return rng.choice([
        lambda: N.NFC(), lambda: N.NFD(), lambda: N.NFKC(), lambda: N.NFKD(), lambda: N.Lowercase(), lambda: N.StripAccents(), lambda: N.Nmt(), lambda: N.ByteLevel(),
        lambda: N.Strip(rng.random() < 0.7, rng.random() < 0.7), lambda: N.Precompiled(charsmap(rng.choice(["nmt_nfkc", "nfkc_cf"]))),
        lambda: N.BertNormalizer(rng.random() < 0.5, rng.random() < 0.5, rng.choice([None, True, False]), rng.random() < 0.5),
        lambda: N.Prepend(rng.choice(["▁", " ", "x", "é"])), lambda: N.Replace(rng.choice([" ", "a", "é", "..", "▁", "漢"]), rng.choice(["", "▁", " ", "zz", "é"])),
        lambda: N.Replace(Regex(rng.choice(OTHER_REGEX)), rng.choice(["", " ", "▁", "-", "é"]))])()


def any_pre_tokenizer(rng):
    return rng.choice([
        lambda: P.BertPreTokenizer(), lambda: P.ByteLevel(rng.random() < 0.5, use_regex=rng.random() < 0.6), lambda: P.Whitespace(), lambda: P.WhitespaceSplit(), lambda: P.UnicodeScripts(),
        lambda: P.Metaspace(replacement=rng.choice("▁_"), prepend_scheme=rng.choice(["always", "first", "never"]), split=rng.random() < 0.6),
        lambda: P.Split(rng.choice([" ", "e", "th", ".", "\n", "漢", "▁"]), rng.choice(BEHAVIORS), rng.random() < 0.3),
        lambda: P.Split(Regex(rng.choice(OTHER_REGEX + list(SPLITS.values()))), rng.choice(BEHAVIORS), rng.random() < 0.3),
        lambda: P.Punctuation(rng.choice(BEHAVIORS)), lambda: P.Digits(rng.random() < 0.5), lambda: P.CharDelimiterSplit(rng.choice(" -e▁")), lambda: P.FixedLength(rng.randint(1, 9))])()


def any_decoder(rng):
    return rng.choice([
        lambda: D.ByteLevel(), lambda: D.WordPiece(rng.choice(["##", "▁"]), rng.random() < 0.5), lambda: D.Metaspace(prepend_scheme=rng.choice(["always", "first", "never"])), lambda: D.BPEDecoder("</w>"),
        lambda: D.CTC(rng.choice(["<pad>", "e"]), rng.choice(["|", "a"]), rng.random() < 0.5), lambda: D.Replace(rng.choice(["▁", "e", "##"]), rng.choice([" ", "", "é"])), lambda: D.Replace(Regex("[aeé]+|▁"), " "),
        lambda: D.Fuse(), lambda: D.ByteFallback(), lambda: D.Strip(rng.choice(" e▁"), rng.randint(0, 2), rng.randint(0, 2))])()


def sequence(rng, one, whole, none=0.15):
    k = rng.random()
    if k < none:
        return None
    if k < 0.55:
        return one(rng)
    return whole([one(rng) for _ in range(rng.randint(1, 4))])


def random_pipeline(rng, corpus):
    """Any component with any other."""
    special = ["<unk>", "[CLS]", "[SEP]"]
    kind = rng.choice(["bpe", "bpe", "bpe", "wordpiece", "wordlevel", "unigram"])
    t = Tokenizer(M.BPE())
    if kind == "bpe":
        kw = {}
        if rng.random() < 0.3:
            kw["continuing_subword_prefix"] = rng.choice(["##", "@"])
        if rng.random() < 0.3:
            kw["end_of_word_suffix"] = rng.choice(["</w>", "_"])
        fallback = rng.random() < 0.3
        if fallback:
            special += BYTES[:256 if rng.random() < 0.7 else rng.randint(1, 255)]
        t.model = M.BPE(unk_token="<unk>" if rng.random() < 0.7 else None, fuse_unk=rng.random() < 0.5, byte_fallback=fallback, ignore_merges=rng.random() < 0.3, **kw)
        trainer = T.BpeTrainer(vocab_size=len(special) + size(rng), special_tokens=special, limit_alphabet=rng.choice([40, 1000]), initial_alphabet=P.ByteLevel.alphabet() if rng.random() < 0.3 else [], show_progress=False, **kw)
    elif kind == "wordpiece":
        t.model = M.WordPiece(unk_token="<unk>", max_input_chars_per_word=rng.choice([100, 5]))
        trainer = T.WordPieceTrainer(vocab_size=size(rng), special_tokens=special, limit_alphabet=rng.choice([40, 1000]), show_progress=False)
    elif kind == "wordlevel":
        t.model = M.WordLevel(unk_token="<unk>")
        trainer = T.WordLevelTrainer(vocab_size=size(rng), special_tokens=special, show_progress=False)
    else:
        t.model = M.Unigram()
        trainer = T.UnigramTrainer(vocab_size=rng.choice([400, 700]), special_tokens=special, unk_token="<unk>", show_progress=False)
    n, p, d = sequence(rng, any_normalizer, N.Sequence, 0.25), sequence(rng, any_pre_tokenizer, P.Sequence), sequence(rng, any_decoder, D.Sequence)
    if n is not None:
        t.normalizer = n
    if p is not None:
        t.pre_tokenizer = p
    train(t, trainer, rng, corpus)
    if d is not None:
        t.decoder = d
    return t


def add_tokens(rng, t):
    added = []
    for pool, add in [(SPECIAL, t.add_special_tokens), (PLAIN, t.add_tokens)]:
        for a in rng.sample(pool, rng.choice([0, 0, 1, 2, 5])):
            flags = {k: rng.random() < 0.2 for k in ("single_word", "lstrip", "rstrip")}
            add([AddedToken(a, normalized=rng.random() < (0.1 if pool is SPECIAL else 0.5), **flags)])
            added.append(a)
    # Where normalizing makes one empty or two equal, the package splits everywhere or picks by the order of a hash table.
    forms = [t.normalizer.normalize_str(a) if t.normalizer is not None else a for a in added]
    if "" in forms or len(set(forms)) < len(forms):
        raise ValueError("ambiguous added tokens")
    return added


def add_post_processor(rng, t):
    tokens = [(a, t.token_to_id(a)) for a in ["<s>", "</s>", "[CLS]", "[SEP]", "<|endoftext|>"] if t.token_to_id(a) is not None]
    k = rng.random()
    if len(tokens) < 2 or k < 0.3:
        t.post_processor = X.ByteLevel(trim_offsets=rng.random() < 0.5) if rng.random() < 0.3 else None
        return
    a, b = rng.sample(tokens, 2)
    if k < 0.45:
        t.post_processor = X.BertProcessing(b, a)
    elif k < 0.6:
        t.post_processor = X.RobertaProcessing(b, a, trim_offsets=rng.random() < 0.5, add_prefix_space=rng.random() < 0.5)
    else:
        template = X.TemplateProcessing(single=rng.choice(["{a} $A {b}", "{a} $A", "$A {b}", "{a}:1 {b} $A:0 {b}", "$0"]).format(a=a[0], b=b[0]), pair="$A $B:1", special_tokens=tokens)
        t.post_processor = template if rng.random() < 0.6 else X.Sequence([X.ByteLevel(), template])


KINDS = [byte_level, byte_level, byte_level, sentencepiece_style, sentencepiece_style, unigram, wordpiece, random_pipeline, random_pipeline]


def build(rng, corpus):
    """One tokenizer as (kind, tokenizer, its file's text, added tokens); raises where the package cannot make it."""
    kind = rng.choice(KINDS)
    t = kind(rng, corpus)
    added = add_tokens(rng, t)
    add_post_processor(rng, t)
    data = json.loads(t.to_str())
    if rng.random() < 0.15 and data["model"]["type"] != "Unigram":
        del data["model"]["type"]
    merges = data["model"].get("merges")
    if merges and rng.random() < 0.3 and all(" " not in x for m in merges for x in m):
        data["model"]["merges"] = [" ".join(m) for m in merges]
    text = json.dumps(data, ensure_ascii=rng.random() < 0.5)
    return kind.__name__, Tokenizer.from_str(text), text, added


def sentencepiece_model(rng, corpus):
    """A SentencePiece model as (processor, bytes)."""
    import sentencepiece as spm
    out = io.BytesIO()
    kind = rng.choice(["bpe", "unigram"])
    symbols = rng.sample(["<x>", "NewYork", "==", "▁▁", "é", "\t", "\n", "12"], rng.choice([0, 0, 2, 4]))
    lines = [l.replace("\n", " ") for l in texts.training(rng, corpus, 60)]
    spm.SentencePieceTrainer.train(
        sentence_iterator=iter(lines), model_writer=out, model_type=kind, vocab_size=rng.choice([500, 700]) + (256 if kind == "bpe" else 0), hard_vocab_limit=False,
        byte_fallback=rng.random() < 0.6, normalization_rule_name=rng.choice(["nmt_nfkc", "nfkc", "identity", "nmt_nfkc_cf"]), add_dummy_prefix=rng.random() < 0.7,
        remove_extra_whitespaces=rng.random() < 0.5, user_defined_symbols=symbols, control_symbols=["<ctl>"], split_digits=rng.random() < 0.5, split_by_unicode_script=rng.random() < 0.8,
        allow_whitespace_only_pieces=rng.random() < 0.4, treat_whitespace_as_suffix=rng.random() < 0.1, character_coverage=rng.choice([0.98, 0.9995]), minloglevel=9)
    return spm.SentencePieceProcessor(model_proto=out.getvalue()), out.getvalue(), symbols
