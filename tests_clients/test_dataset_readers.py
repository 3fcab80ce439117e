"""Libraries that know nothing of dsload read its shards, and read the same ids as Hugging Face's tokenizer gives."""

import glob
import json
import re

import duckdb
import polars
import pyarrow as pa
import pyarrow.dataset
import pyarrow.ipc
import pytest
from datasets import load_dataset
from reference_data import build
from tokenizers import Tokenizer

ANY_LENGTH = "1000000"


def shard_paths(folder, split="train"):
    return sorted(glob.glob(f"{folder}/{split}-*.arrow"))


def read_with_pyarrow(folder, split="train"):
    return pa.concat_tables(pa.ipc.open_file(pa.memory_map(p)).read_all() for p in shard_paths(folder, split))


@pytest.fixture(scope="module")
def wikitext(dsload, shared, tmp_path_factory):
    """WikiText-2's test file in several shards, articles cut to 512 tokens."""
    return build(
        dsload, tmp_path_factory.mktemp("wikitext") / "data", shared / "corpora/wikitext-2/test.txt",
        "--format", "wikitext", "--max-examples", "0", "--shard-bytes", "128KiB",
    )


def articles(path):
    """Articles of WikiText: each begins with a level-one heading between blank lines, unlike lines of formulas."""
    lines = open(path, encoding="utf-8", newline="\n").read().split("\n")
    heading = re.compile(r" = [^=](?:.*[^=])? = $")
    blank = [not line.strip() for line in [*lines, ""]]
    starts = [i for i, line in enumerate(lines) if heading.match(line) and (i == 0 or blank[i - 1]) and blank[i + 1]]
    return ["\n".join(lines[a:b]) + ("\n" if b < len(lines) else "") for a, b in zip(starts, [*starts[1:], len(lines)])]


def test_four_readers_give_the_same_ids(wikitext):
    table = read_with_pyarrow(wikitext)
    ids = table["input_ids"].to_pylist()
    assert len(shard_paths(wikitext)) > 1

    dataset = load_dataset("arrow", data_files=shard_paths(wikitext), split="train", cache_dir=str(wikitext) + "-cache")
    assert dataset["input_ids"][:] == ids

    frame = polars.concat([polars.read_ipc(p) for p in shard_paths(wikitext)])
    assert frame["input_ids"].to_list() == ids
    assert frame["document"].to_list() == table["document"].to_pylist()

    # DuckDB scans Arrow in place; its own reader of IPC files is an extension that does not come with the package.
    shards = pyarrow.dataset.dataset(shard_paths(wikitext), format="ipc")
    connection = duckdb.connect()
    connection.register("shards", shards)
    rows = connection.sql("select input_ids from shards order by document, part").fetchall()
    assert [row[0] for row in rows] == ids


def test_wikitext_ids_are_the_reference_tokenizers(wikitext, shared):
    tokenizer = Tokenizer.from_file(str(shared / "tokenizers/gpt2/tokenizer.json"))
    tokenizer.no_truncation()
    texts = articles(shared / "corpora/wikitext-2/test.txt")
    got = {}
    for document, part, ids in zip(*(read_with_pyarrow(wikitext)[c].to_pylist() for c in ("document", "part", "input_ids"))):
        assert part == 0 or document in got
        got.setdefault(document, []).extend(ids)
    assert list(got.values()) == [tokenizer.encode(t).ids for t in texts]


def test_recipes_keep_every_record_once(dsload, shared, tmp_path):
    import csv

    source = shared / "corpora/recipes/recipenlg-sample.csv"
    rows = list(csv.DictReader(open(source, encoding="utf-8", newline="")))
    tokenizer = Tokenizer.from_file(str(shared / "tokenizers/gpt2/tokenizer.json"))
    plain = read_with_pyarrow(build(dsload, tmp_path / "plain", source, "--format", "recipes", "--max-length", ANY_LENGTH))
    pairs = read_with_pyarrow(
        build(dsload, tmp_path / "pairs", source, "--format", "recipes", "--template", "recipe-seq2seq", "--max-length", ANY_LENGTH)
    )
    assert plain.num_rows == pairs.num_rows == len(rows)
    for row, ids, prompt, target in zip(rows, plain["input_ids"].to_pylist(), pairs["input_ids"].to_pylist(), pairs["labels"].to_pylist()):
        text, prompt, target = (tokenizer.decode(x) for x in (ids, prompt, target))
        assert row["title"].strip() in text and row["title"].strip() in target
        for ingredient in json.loads(row["ingredients"]):
            assert ingredient in text and ingredient in prompt
        for step in json.loads(row["directions"]):
            assert step in text and step in target


def test_manifest_counts_what_the_shards_hold(wikitext):
    manifest = json.load(open(f"{wikitext}/manifest.json"))
    split = manifest["splits"][0]
    table = read_with_pyarrow(wikitext)
    lengths = [len(x) for x in table["input_ids"].to_pylist()]
    assert split["examples"] == table.num_rows and split["tokens"] == sum(lengths)
    assert split["max_length"] == max(lengths) <= 512
