"""Compares vocabularies that `dsload tokenizer train` learns with those of Hugging Face's trainers on the same text.

usage: train_quality.py DSLOAD TRAINING_TEXT HELD_OUT_TEXT [VOCAB_SIZE]
For each family: the package loads dsload's file and encodes every line of the held-out text to the same ids as dsload; tokens a byte of
both vocabularies; how much of the vocabularies is shared; time and CPU of both trainers.
"""
import json
import os
import resource
import subprocess
import sys
import tempfile
import time

os.environ["TOKENIZERS_PARALLELISM"] = "false"
from tokenizers import Regex, Tokenizer, models, normalizers, pre_tokenizers, trainers

dsload, training, held_out = sys.argv[1:4]
size = int(sys.argv[4]) if len(sys.argv) > 4 else 8000
lines = open(held_out, encoding="utf-8").read().split("\n")
text_bytes = sum(len(l.encode()) for l in lines)


def reference(family):
    if family == "bytelevel-bpe":
        t = Tokenizer(models.BPE())
        t.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
        return t, trainers.BpeTrainer(vocab_size=size, min_frequency=2, special_tokens=["<|endoftext|>"], initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), show_progress=False)
    if family == "wordpiece":
        t = Tokenizer(models.WordPiece(unk_token="[UNK]"))
        t.normalizer = normalizers.BertNormalizer(lowercase=False)
        t.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
        return t, trainers.WordPieceTrainer(vocab_size=size, min_frequency=2, special_tokens=["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"], limit_alphabet=1000, show_progress=False)
    t = Tokenizer(models.Unigram())
    t.normalizer = normalizers.Sequence([normalizers.Nmt(), normalizers.NFKC(), normalizers.Replace(Regex(" {2,}"), " ")])
    t.pre_tokenizer = pre_tokenizers.Metaspace()
    return t, trainers.UnigramTrainer(vocab_size=size, special_tokens=["<pad>", "</s>", "<unk>"], unk_token="<unk>", show_progress=False)


for family in ["bytelevel-bpe", "wordpiece", "unigram"]:
    with tempfile.TemporaryDirectory() as d:
        before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.time()
        subprocess.run([dsload, "tokenizer", "train", training, "--format", "text", "--family", family, "--vocab-size", str(size), "--out", d + "/t.json"], check=True, stdout=subprocess.DEVNULL)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        ours_time, ours_cpu = time.time() - start, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        ours = Tokenizer.from_file(d + "/t.json")
        r = subprocess.run([dsload, "tokenizer", "encode", "--json", "--no-special", "--tokenizer", d + "/t.json"], input="".join(json.dumps({"text": l}) + "\n" for l in lines), capture_output=True, text=True, check=True)
        ids = [json.loads(l)["ids"] for l in r.stdout.split("\n") if l]
    loaded = [e.ids for e in ours.encode_batch(lines, add_special_tokens=False)]
    differ = sum(a != b for a, b in zip(ids, loaded)) + abs(len(ids) - len(loaded))
    theirs, trainer = reference(family)
    start, cpu = time.time(), time.process_time()
    theirs.train_from_iterator((l for l in open(training, encoding="utf-8").read().split("\n")), trainer)
    theirs_time, theirs_cpu = time.time() - start, time.process_time() - cpu
    n, m = sum(map(len, ids)), sum(len(e.ids) for e in theirs.encode_batch(lines, add_special_tokens=False))
    a, b = set(ours.get_vocab()), set(theirs.get_vocab())
    print(f"{family}: {differ} of {len(lines)} lines differ between dsload and tokenizers; tokens a byte {n / text_bytes:.4f} ({len(a)} tokens), theirs {m / text_bytes:.4f} ({len(b)}), ratio {n / m:.4f}; "
          f"{len(a & b) / len(a):.1%} of the vocabulary shared; {ours_time:.1f} s ({ours_cpu:.1f} CPU), theirs {theirs_time:.1f} s ({theirs_cpu:.1f} CPU)", flush=True)
