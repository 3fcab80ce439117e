"""Stops runs of a feed after some steps, resumes them, and compares the SHA-256 of all batches with those of runs that did not stop.

    python bench/bitwise_resume.py [--quick] [--dsload ./bin/dsload] [--page docs/benchmarks/bitwise.md]

A run goes past the end of an epoch on 1, 2 and 4 ranks, for each kind of order: shuffled, in buckets, with a token budget, packed, mixed. It is stopped after
several steps; the state goes through JSON, and new loaders take it. Every byte of every batch counts, padding and positions too. Then a run is stopped
twice and goes on with other numbers of ranks: its batches differ, so the SHA-256 is that of its rows, in the order of their numbers. Exits with 1 where a
hash differs. --quick stops fewer times, on less text, and writes no page.
"""

import argparse
import hashlib
import json
import os
import pathlib
import random
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "python"))

import numpy  # noqa: E402

import dsload  # noqa: E402

RANKS = (1, 2, 4)
WORDS = "river stone lamp harbour winter letter garden engine table silver window forest".split()
ORDERS = {
    "shuffled": dict(batch_size=4),
    "shuffled in blocks": dict(batch_size=4, shuffle="block"),
    "length buckets": dict(batch_size=4, bucket=64, group=8),
    "token budget": dict(max_tokens=512, bucket=64),
    "balanced by length": dict(batch_size=4, balance="tokens"),
    "packed, cut anywhere": dict(batch_size=2, pack="wrapped", max_length=128),
    "packed, best fit": dict(batch_size=2, pack="bfd_split", max_length=128),
    "mix of two": dict(batch_size=4, mix="a=3,b=1"),
    "mix that changes": dict(batch_size=4, mix="a=3,b=1;at=96:a=1,b=3"),
    "mix, packed": dict(batch_size=2, mix="a=3,b=1", pack="bfd", max_length=256),
}


def corpus(path, documents, seed):
    draw = random.Random(seed)
    path.write_text("".join(" ".join(draw.choices(WORDS, k=draw.randint(2, 90))) + f" {i}\n" for i in range(documents)))


def loaders(data, order, world):
    source = data if "mix" in order else data["a"]
    shared = dict(seed=3, tail="once", epochs=0, output="numpy", memory="64MiB")
    return [dsload.Loader(source, rank=rank, world=world, **shared, **order) for rank in range(world)]


def steps(ranks, count):
    """The batches of the next steps: a list a step, in the order of ranks."""
    streams = [iter(loader) for loader in ranks]
    for _ in range(count):
        yield [next(stream) for stream in streams]


class Digest:
    """SHA-256 of batches, and of rows in the order of their numbers."""

    def __init__(self):
        self.batches, self.rows = hashlib.sha256(), {}

    def add(self, step):
        for batch in step:
            for name in sorted(batch):
                value = numpy.asarray(batch[name])
                self.batches.update(f"{name} {value.dtype} {value.shape}".encode() + value.tobytes())
            for i, row in enumerate(batch["row"].tolist()):
                if row >= 0:  # not a filler
                    ids = batch["input_ids"][i][: int(batch["length"][i])]
                    assert row not in self.rows, f"row {row} came twice"
                    self.rows[row] = hashlib.sha256(ids.tobytes()).digest()

    def of_rows(self, most):
        return hashlib.sha256(b"".join(self.rows[row] for row in sorted(self.rows) if row < most)).hexdigest()


def run(data, order, parts):
    """The digest of parts of a run, (ranks, steps) each, resumed from the state of the part before."""
    digest, state = Digest(), None
    for world, count in parts:
        ranks = loaders(data, order, world)
        try:
            for loader in ranks:
                if state is not None:
                    loader.load_state_dict(state)
            for step in steps(ranks, count):
                digest.add(step)
            states = [loader.state_dict(after=batch) for loader, batch in zip(ranks, step)]
            assert all(s == states[0] for s in states), "ranks have different states"
            state = json.loads(json.dumps(states[0]))
        finally:
            for loader in ranks:
                loader.close()
    return digest


def rows_of(digest):
    """How many rows from the first on came without a gap, by their numbers in the order."""
    return max(digest.rows) + 1


def table(data, quick):
    """Lines of the table, and whether every hash was the same."""
    lines, same = [], True
    for name, order in ORDERS.items():
        cells = []
        for world in RANKS:
            count = (24 if quick else 120) // world
            stops = [count // 3] if quick else sorted({1, count // 5, count // 3, count // 2, count - 1})
            whole = run(data, order, [(world, count)]).batches.hexdigest()
            equal = [run(data, order, [(world, k), (world, count - k)]).batches.hexdigest() == whole for k in stops]
            same &= all(equal)
            cells.append(f"`{whole[:12]}` {'equal' if all(equal) else 'DIFFERS'} ({len(stops)})")
        count = 8 if quick else 40
        plain, others = run(data, order, [(1, 3 * count)]), run(data, order, [(1, count), (2, count // 2), (4, count // 4)])
        most = min(rows_of(plain), rows_of(others))
        equal = plain.of_rows(most) == others.of_rows(most)
        same &= equal
        cells.append(f"`{plain.of_rows(most)[:12]}` {'equal' if equal else 'DIFFERS'}")
        lines.append(f"| {name} | " + " | ".join(cells) + " |")
        print(lines[-1], flush=True)
    return lines, same


PAGE = """# Bitwise resume

Every kind of order, on 1, 2 and 4 ranks, stopped and resumed. Each cell has the first digits of the
SHA-256 of all batches of a run that was not stopped, every column and every byte of padding. "equal
(5)" means that five runs, which stopped after 1 step, a fifth, a third, a half and all but one of
the steps and went on from the saved state with a new server, had the same SHA-256. In the
last column the run changed from 1 rank to 2 and to 4: batches differ then, and the hash is that of
the rows, in order.

<!-- not run: measures -->
```sh
python bench/bitwise_resume.py --page docs/benchmarks/bitwise.md
```

| order | 1 rank | 2 ranks | 4 ranks | 1, then 2, then 4 ranks |
| --- | --- | --- | --- | --- |
{lines}

Versions: dsload {version}, Python {python}. The state is what `Loader.state_dict()` returns, a few
integers, the same on every rank, which went through JSON. What other loaders do at these points is
in [the comparison](../comparison.md).
"""


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--dsload", default=str(ROOT / "bin/dsload"))
    parser.add_argument("--page", type=pathlib.Path)
    options = parser.parse_args()
    os.environ.setdefault("DSLOAD_BINARY", options.dsload)
    with tempfile.TemporaryDirectory() as folder:
        data = {}
        for name, seed in (("a", 1), ("b", 2)):
            text = pathlib.Path(folder, f"{name}.txt")
            corpus(text, 200 if options.quick else 400, seed)
            data[name] = f"{folder}/{name}"
            subprocess.run([os.environ["DSLOAD_BINARY"], "build", text, "--eos", "--max-length", "256", "--progress", "none", "--out", data[name]],
                           check=True, capture_output=True)
        lines, same = table(data, options.quick)
    if options.page and not options.quick:
        options.page.write_text(PAGE.format(lines="\n".join(lines), version=dsload.__version__, python=sys.version.split()[0]), encoding="utf-8")
    sys.exit(0 if same else 1)


if __name__ == "__main__":
    main()
