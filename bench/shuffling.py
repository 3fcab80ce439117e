"""Trains a small GPT on the same rows in different orders, and shows what each order does to the loss.

    python bench/shuffling.py [--steps 600] [--dsload ./bin/dsload] [--out docs/benchmarks]

The rows are of three kinds, one after another, as corpora are that were joined: articles, recipes, and Python's source code. Model, initial weights,
rows and steps are the same; the order differs: as stored, a buffer of rows as streaming loaders shuffle, blocks, buckets with short and long batches in
waves, buckets with groups of a step, and all rows. Writes shuffling.json and the picture shuffling.svg, and prints the table of docs/shuffling.md.
"""

import argparse
import ast
import json
import os
import pathlib
import random
import subprocess
import sys
import sysconfig
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "python"))

import torch  # noqa: E402
from torch import nn  # noqa: E402

import dsload  # noqa: E402

LENGTH, WIDTH, VOCABULARY, ROWS, BATCH = 96, 64, 2048, 3200, 16
KINDS = ("articles", "recipes", "source code")
ORDERS = {
    "as stored": dict(shuffle="none"),
    "a buffer of 256 rows": dict(shuffle="none"),
    "blocks of 256 rows": dict(shuffle="block"),
    "all rows, buckets, group=256": dict(bucket=4096, group=256),
    "all rows, buckets, group=16": dict(bucket=4096, group=BATCH),
    "all rows": {},
}


class GPT(nn.Module):
    def __init__(self):
        super().__init__()
        self.token, self.place = nn.Embedding(VOCABULARY, WIDTH), nn.Embedding(LENGTH, WIDTH)
        self.blocks = nn.TransformerEncoder(nn.TransformerEncoderLayer(WIDTH, 4, 4 * WIDTH, 0.0, batch_first=True, norm_first=True), 2)
        self.head = nn.Linear(WIDTH, VOCABULARY)

    def forward(self, ids):
        mask = nn.Transformer.generate_square_subsequent_mask(ids.shape[1])
        return self.head(self.blocks(self.token(ids) + self.place(torch.arange(ids.shape[1])), mask=mask, is_causal=True))


def loss_of(model, batch):
    logits, labels = model(batch["input_ids"])[:, :-1], batch["labels"][:, 1:]
    return nn.functional.cross_entropy(logits.flatten(0, 1), labels.flatten())


def functions(path):
    """The functions of some of Python's modules, as JSON lines."""
    library = pathlib.Path(sysconfig.get_path("stdlib"))
    with open(path, "w", encoding="utf-8") as out:
        for package in ("asyncio", "email", "http", "json", "logging", "unittest", "xml", "multiprocessing", "concurrent", "importlib"):
            for file in sorted((library / package).rglob("*.py")):
                text = file.read_text(encoding="utf-8")
                lines = text.splitlines(keepends=True)
                for node in ast.walk(ast.parse(text)):
                    if isinstance(node, ast.FunctionDef):
                        out.write(json.dumps({"text": "".join(lines[node.lineno - 1 : node.end_lineno])}) + "\n")


def make(folder, program):
    """A dataset of the three kinds, and one of each kind to validate on."""
    functions(folder / "code.jsonl")
    sources = {"articles": "synth://wikitext?seed=1", "recipes": "synth://recipes?seed=1", "source code": str(folder / "code.jsonl")}
    run = lambda *words: subprocess.run([program, *map(str, words)], cwd=folder, check=True, capture_output=True)  # noqa: E731
    for i, source in enumerate(sources.values()):
        run("build", source, "--max-examples", 20000, "--out", folder / f"text{i}", "--max-bytes", "3MB")
        run("export", folder / f"text{i}", "--to", "jsonl", "--out", folder / f"export{i}")
    texts = [folder / f"export{i}" / "train.jsonl" for i in range(3)]
    run("tokenizer", "train", *texts, "--vocab-size", VOCABULARY, "--special", "<|end|>", "--out", folder / "tokenizer")
    for i, path in enumerate(texts):
        run("build", path, "--tokenizer", folder / "tokenizer", "--eos=<|end|>", "--max-length", LENGTH, "--max-examples", ROWS,
            "--max-val-examples", 64, "--out", folder / f"kind{i}")
    # One dataset of three, in sequence: the mix is the training rows of each, in the order of their kinds.
    joined = folder / "joined.jsonl"
    with open(joined, "w", encoding="utf-8") as out:
        for i in range(3):
            run("export", folder / f"kind{i}", "--to", "jsonl", "--out", folder / f"rows{i}")
            for line in (folder / f"rows{i}" / "train.jsonl").read_text(encoding="utf-8").splitlines():
                out.write(json.dumps({"text": json.loads(line)["text"].replace("<|end|>", "")}) + "\n")
    run("build", joined, "--tokenizer", folder / "tokenizer", "--eos=<|end|>", "--max-length", LENGTH, "--out", folder / "joined")
    return folder / "joined", [folder / f"kind{i}" for i in range(3)]


def buffered(loader, size, seed):
    """Batches of rows drawn from a buffer, which the next row of the stream refills: how streaming loaders shuffle."""
    draw, buffer, out = random.Random(seed), [], []
    for batch in loader:
        for ids, length in zip(batch["input_ids"], batch["length"]):
            row = ids[:length]
            if len(buffer) < size:
                buffer.append(row)
                continue
            at = draw.randrange(size)
            out.append(buffer[at])
            buffer[at] = row
            if len(out) == BATCH:
                yield padded(out)
                out = []


def padded(rows):
    length = max(len(r) for r in rows)
    ids, labels = torch.zeros(len(rows), length, dtype=torch.int64), torch.full((len(rows), length), -100)
    for i, row in enumerate(rows):
        ids[i, : len(row)] = labels[i, : len(row)] = row
    return {"input_ids": ids, "labels": labels}


def held_out(model, kinds):
    """The loss on rows of each kind that are not trained on."""
    losses = []
    with torch.no_grad():
        for kind in kinds:
            total = count = 0
            for batch in kind:
                labels = int((batch["labels"][:, 1:] != -100).sum())
                total, count = total + float(loss_of(model, batch)) * labels, count + labels
            losses.append(total / count)
    return losses


def train(name, order, data, kinds, steps):
    torch.manual_seed(1)
    model = GPT()
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
    losses, curve = [], []
    with dsload.Loader(data, batch_size=BATCH, seed=1, epochs=0, **order) as loader:
        batches = buffered(loader, 256, seed=1) if "buffer" in name else iter(loader)
        for step in range(1, steps + 1):
            loss = loss_of(model, next(batches))
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()
            losses.append(float(loss.detach()))
            if step % (steps // 40) == 0:
                curve.append([step, *held_out(model, kinds)])
    return {"training": losses, "held_out": curve}


def drawn(results, path):
    import matplotlib

    matplotlib.use("svg")
    matplotlib.rcParams["svg.hashsalt"] = "dsload"
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(2, 3, figsize=(10, 5.2), sharex=True, sharey=True)
    for axis, (name, result) in zip(axes.flat, results.items()):
        axis.plot(range(1, len(result["training"]) + 1), result["training"], color="#c8c8c8", linewidth=0.6, label="batches")
        for kind, colour in zip(range(3), ("#0b7a75", "#d1495b", "#edae49")):
            axis.plot([c[0] for c in result["held_out"]], [c[1 + kind] for c in result["held_out"]], color=colour, linewidth=1.3, label=KINDS[kind])
        axis.set_title(name, fontsize=9)
        axis.set_ylim(0, 8)
    axes[0, 0].legend(fontsize=7, loc="upper right")
    for axis in axes[1]:
        axis.set_xlabel("step", fontsize=8)
    for axis in axes[:, 0]:
        axis.set_ylabel("loss", fontsize=8)
    figure.tight_layout()
    figure.savefig(path, metadata={"Date": None, "Creator": None})


def table(results):
    lines = ["| order | held-out loss at the end | articles | recipes | source code | worst of the last quarter | loss from batch to batch |",
             "| --- | --- | --- | --- | --- | --- | --- |"]
    for name, result in results.items():
        last, quarter = result["held_out"][-1][1:], result["held_out"][-10:]
        jumps = [abs(b - a) for a, b in zip(result["training"], result["training"][1:])]
        worst = max(sum(c[1:]) / 3 for c in quarter)
        lines.append(f"| {name} | {sum(last) / 3:.2f} | " + " | ".join(f"{v:.2f}" for v in last) + f" | {worst:.2f} | ± {sum(jumps) / len(jumps):.2f} |")
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=600)
    parser.add_argument("--dsload", default=str(ROOT / "bin/dsload"))
    parser.add_argument("--out", type=pathlib.Path)
    options = parser.parse_args()
    os.environ.setdefault("DSLOAD_BINARY", options.dsload)
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as folder:
        data, kinds = make(pathlib.Path(folder), os.environ["DSLOAD_BINARY"])
        rows = []
        for kind in kinds:
            with dsload.Loader(kind, split="val", shuffle="none", batch_size=32) as loader:
                rows.append([{k: b[k].clone() for k in ("input_ids", "labels")} for b in loader])
        results = {}
        for name, order in ORDERS.items():
            results[name] = train(name, order, data, rows, options.steps)
            print(name, results[name]["held_out"][-1], file=sys.stderr, flush=True)
    print(table(results))
    if options.out:
        rounded = {n: {"training": [round(v, 3) for v in r["training"]], "held_out": [[round(v, 3) for v in c] for c in r["held_out"]]} for n, r in results.items()}
        (options.out / "shuffling.json").write_text(json.dumps(rounded) + "\n")
        drawn(results, options.out / "shuffling.svg")


if __name__ == "__main__":
    main()
