"""Differential fuzzing of dsload's tokenizers against the Python packages; see README.md."""
import argparse
import json
import os
import random
import subprocess
import sys
import time

os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
import pipelines
import texts
from tokenizers import Tokenizer


def lines(dsload, args, inputs, key):
    r = subprocess.run([dsload, "tokenizer", *args], input="".join(json.dumps(x) + "\n" for x in inputs), capture_output=True, text=True)
    if r.returncode:
        return None, r.stderr.strip()
    return [json.loads(l)[key] for l in r.stdout.split("\n") if l], ""


def attempt(f, *a, **k):
    """The package's own panics and errors come back as None."""
    try:
        return f(*a, **k)
    except BaseException as e:
        if isinstance(e, (KeyboardInterrupt, SystemExit)):
            raise
        return None


class Run:
    def __init__(self, args):
        self.args = args
        self.state = {"next_seed": args.seed, "pipelines": 0, "documents": 0, "bytes": 0, "ids": 0, "differences": 0, "package_failures": 0, "not_built": 0, "kinds": {}, "refused": {}}
        os.makedirs(args.state, exist_ok=True)
        self.path = os.path.join(args.state, "state.json")
        if os.path.exists(self.path):
            self.state.update(json.load(open(self.path)))
        self.corpus = "".join(open(f, encoding="utf-8", errors="replace").read() for f in args.corpus) or "\n".join(texts.LINES)

    def differ(self, seed, kind, file, what, text, want, got):
        self.state["differences"] += 1
        with open(os.path.join(self.args.state, "differences.jsonl"), "a") as f:
            f.write(json.dumps({"seed": seed, "kind": kind, "file": file, "what": what, "text": text, "want": want, "got": got}) + "\n")

    def compare(self, seed, kind, path, inputs, encode, decode):
        """encode(text, special) and decode(ids, skip) are the package's."""
        good = []
        for x in inputs:
            plain, special = attempt(encode, x, False), attempt(encode, x, True)
            if plain is None or special is None:
                self.state["package_failures"] += 1
            else:
                good.append((x, plain, special))
        before = self.state["differences"]
        for what, flags, column in [("ids", ["--no-special"], 1), ("ids with special tokens", [], 2)]:
            got, err = lines(self.args.dsload, ["encode", "--json", "--tokenizer", path, *flags], [{"text": g[0]} for g in good], "ids")
            if got is None:
                reason = err.split(": ")[-1][:80]
                self.state["refused"][reason] = self.state["refused"].get(reason, 0) + 1
                self.note_refusal(seed, kind, err)
                return False
            if len(got) != len(good):
                self.differ(seed, kind, path, "number of lines", "", len(good), len(got))
                return True
            for g, ids in zip(good, got):
                if ids != g[column]:
                    self.differ(seed, kind, path, what, g[0], g[column], ids)
        for what, flags, skip in [("decoded", [], False), ("decoded without special tokens", ["--no-special"], True)]:
            rows = [(g, attempt(decode, g[2], skip)) for g in good]
            rows = [r for r in rows if r[1] is not None]
            got, err = lines(self.args.dsload, ["decode", "--json", "--tokenizer", path, *flags], [{"ids": g[2]} for g, _ in rows], "text")
            if got is None:
                self.differ(seed, kind, path, what, "", "", err)
                continue
            for (g, want), text in zip(rows, got):
                if text != want:
                    self.differ(seed, kind, path, what, g[2], want, text)
        s = self.state
        s["documents"] += len(good)
        s["bytes"] += sum(len(g[0].encode()) for g in good)
        s["ids"] += sum(len(g[1]) for g in good)
        s["kinds"][kind] = s["kinds"].get(kind, 0) + 1
        s["pipelines"] += 1
        return s["differences"] > before

    def note_refusal(self, seed, kind, err):
        with open(os.path.join(self.args.state, "refused.jsonl"), "a") as f:
            f.write(json.dumps({"seed": seed, "kind": kind, "error": err}) + "\n")

    def seed(self, seed):
        rng = random.Random(seed)
        n = self.args.texts
        if self.args.kind:
            if self.args.kind == "sentencepiece":
                return self.sentencepiece(seed, rng, n)
            pipelines.KINDS[:] = [getattr(pipelines, self.args.kind)]
        elif self.args.tokenizer and rng.random() < 0.25:
            return self.ready(seed, rng, n)
        elif rng.random() < 0.12:
            return self.sentencepiece(seed, rng, n)
        try:
            kind, t, text, added = pipelines.build(rng, self.corpus)
        except BaseException as e:  # the package itself cannot make this combination
            if isinstance(e, (KeyboardInterrupt, SystemExit)):
                raise
            self.state["not_built"] += 1
            return
        path = os.path.join(self.args.state, f"{seed}.json")
        open(path, "w", encoding="utf-8").write(text)
        words = [w for w in t.get_vocab() if rng.random() < 0.2]
        source = texts.Source(rng, self.corpus, words, added or ["<s>"])
        inputs = [source.text() for _ in range(n)]
        if not self.compare(seed, kind, path, inputs, lambda x, s: t.encode(x, add_special_tokens=s).ids, lambda i, s: t.decode(i, skip_special_tokens=s)) and not self.args.only:
            os.remove(path)

    def ready(self, seed, rng, n):
        path = rng.choice(self.args.tokenizer)
        t = Tokenizer.from_file(path)
        t.no_truncation()
        t.no_padding()
        words = [w for w in t.get_vocab() if rng.random() < 0.01]
        added = [a.content for a in t.get_added_tokens_decoder().values()]
        source = texts.Source(rng, self.corpus, words, added or ["<s>"])
        self.compare(seed, "file " + os.path.basename(os.path.dirname(os.path.abspath(path))), path, [source.text() for _ in range(n)],
                     lambda x, s: t.encode(x, add_special_tokens=s).ids, lambda i, s: t.decode(i, skip_special_tokens=s))

    def sentencepiece(self, seed, rng, n):
        try:
            sp, data, symbols = pipelines.sentencepiece_model(rng, self.corpus)
        except Exception:
            self.state["not_built"] += 1
            return
        path = os.path.join(self.args.state, f"{seed}.model")
        open(path, "wb").write(data)
        words = [sp.id_to_piece(i) for i in range(sp.get_piece_size()) if rng.random() < 0.2]
        source = texts.Source(rng, self.corpus, words, symbols or ["<s>"])
        # sentencepiece's command line and its Python default put no special tokens around a text; dsload does as its model's users do.
        before = self.state["differences"]
        self.compare_sentencepiece(seed, path, sp, [source.text() for _ in range(n)])
        if self.state["differences"] == before and not self.args.only:
            os.remove(path)

    def compare_sentencepiece(self, seed, path, sp, inputs):
        kind = "sentencepiece model"
        want = [sp.encode(x) for x in inputs]
        got, err = lines(self.args.dsload, ["encode", "--json", "--no-special", "--tokenizer", path], [{"text": x} for x in inputs], "ids")
        if got is None:
            reason = err.split(": ")[-1][:80]
            self.state["refused"][reason] = self.state["refused"].get(reason, 0) + 1
            self.note_refusal(seed, kind, err)
            return
        for x, w, g in zip(inputs, want, got):
            if w != g:
                self.differ(seed, kind, path, "ids", x, w, g)
        back, err = lines(self.args.dsload, ["decode", "--json", "--tokenizer", path], [{"ids": w} for w in want], "text")
        for w, g in zip(want, back or []):
            if sp.decode(w) != g:
                self.differ(seed, kind, path, "decoded", w, sp.decode(w), g)
        s = self.state
        s["documents"] += len(inputs)
        s["bytes"] += sum(len(x.encode()) for x in inputs)
        s["ids"] += sum(map(len, want))
        s["kinds"][kind] = s["kinds"].get(kind, 0) + 1
        s["pipelines"] += 1

    def save(self):
        with open(self.path + ".tmp", "w") as f:
            json.dump(self.state, f, indent=1)
        os.replace(self.path + ".tmp", self.path)

    def run(self):
        if self.args.only is not None:
            self.seed(self.args.only)
            print(json.dumps(self.state))
            return
        shown = 0.0
        while self.state["documents"] < self.args.documents:
            self.seed(self.state["next_seed"])
            self.state["next_seed"] += 1
            self.save()
            if time.monotonic() - shown > 20:
                shown = time.monotonic()
                print({k: self.state[k] for k in ("next_seed", "documents", "differences", "not_built", "package_failures")}, sum(self.state["refused"].values()), "refused", flush=True)
        print(json.dumps(self.state))


if __name__ == "__main__":
    p = argparse.ArgumentParser(description=__doc__)
    p.add_argument("--dsload", default="dsload")
    p.add_argument("--state", default="fuzz-state")
    p.add_argument("--seed", type=int, default=1, help="the first seed, where there is no state yet")
    p.add_argument("--only", type=int, help="make this seed alone")
    p.add_argument("--kind", help="one kind only: byte_level, sentencepiece_style, unigram, wordpiece, random_pipeline or sentencepiece")
    p.add_argument("--documents", type=int, default=1_000_000)
    p.add_argument("--texts", type=int, default=400, help="texts a tokenizer")
    p.add_argument("--corpus", nargs="*", default=[])
    p.add_argument("--tokenizer", nargs="*", default=[], help="ready tokenizer.json files to fuzz too")
    Run(p.parse_args()).run()
    sys.stdout.flush()
