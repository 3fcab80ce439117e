"""Files that pyarrow and datasets write give the rows that the same documents give as JSON lines."""

from __future__ import annotations

import json
import os
import pathlib
import random
import subprocess
from decimal import Context, Decimal
from typing import Any

import pytest

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")
pytestmark = pytest.mark.server

RANDOM = random.Random(5)
WORDS = ["alpha", "β", "日本", '"quoted"', "line\nbreak", "x" * 40, "the", "of"]
DOCUMENTS = [f"{i} " + " ".join(RANDOM.choices(WORDS, k=RANDOM.randint(1, 60))) for i in range(600)]


def build(source: Any, out: pathlib.Path, *flags: str) -> tuple[int, bytes, str]:
    """The exit code of a build, its shard and what it wrote to stderr."""
    command = [os.environ.get("DSLOAD", "dsload"), "build", str(source), "--out", str(out), "--overwrite"]
    run = subprocess.run(
        [*command, "--progress", "none", "--memory", "96MiB", *flags], capture_output=True, text=True, check=False
    )
    shard = out / "train-00000.arrow"
    return run.returncode, shard.read_bytes() if run.returncode == 0 else b"", run.stderr


@pytest.fixture(scope="module")
def want(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    folder = tmp_path_factory.mktemp("reference")
    lines = "".join(json.dumps({"text": d}) + "\n" for d in DOCUMENTS)
    (folder / "docs.jsonl").write_text(lines, encoding="utf-8")
    code, shard, err = build(folder / "docs.jsonl", folder / "out")
    assert code == 0, err
    return shard


def table(**more: Any) -> Any:
    n = len(DOCUMENTS)
    columns = {"id": list(range(n)), "score": [i / 7 for i in range(n)], "text": DOCUMENTS}
    return pa.table(columns | {"list": [[i, None] for i in range(n)]} | more)


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"use_dictionary": False, "data_page_version": "2.0", "compression": "zstd"},
        {"use_dictionary": False, "column_encoding": {"text": "DELTA_BYTE_ARRAY", "id": "DELTA_BINARY_PACKED"}},
        {"use_dictionary": False, "column_encoding": {"text": "DELTA_LENGTH_BYTE_ARRAY"}, "compression": "gzip"},
        {"row_group_size": 7, "compression": "lz4"},
        {"data_page_size": 300, "write_batch_size": 8, "compression": "brotli"},
        {"dictionary_pagesize_limit": 2000, "compression": "none", "write_page_checksum": True},
    ],
    ids=["defaults", "v2", "prefixes", "lengths", "groups", "pages", "overflow"],
)
def test_parquet(tmp_path: pathlib.Path, want: bytes, options: dict[str, Any]) -> None:
    pq.write_table(table(), tmp_path / "docs.parquet", **options)
    assert build(tmp_path / "docs.parquet", tmp_path / "out")[1] == want


def test_nested_column(tmp_path: pathlib.Path, want: bytes) -> None:
    nested = pa.array([{"b": [d, "other"], "c": i} for i, d in enumerate(DOCUMENTS)])
    pq.write_table(table(a=nested), tmp_path / "docs.parquet")
    assert build(tmp_path / "docs.parquet", tmp_path / "out", "--text-field", "a.b[0]")[1] == want


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("codec", [None, "lz4", "zstd"])
def test_arrow(tmp_path: pathlib.Path, want: bytes, codec: str | None, stream: bool) -> None:
    t = table()
    make = pa.ipc.new_stream if stream else pa.ipc.new_file
    with (
        pa.OSFile(str(tmp_path / "docs"), "wb") as f,
        make(f, t.schema, options=pa.ipc.IpcWriteOptions(compression=codec)) as w,
    ):
        w.write_table(t, max_chunksize=100)
    assert build(tmp_path / "docs", tmp_path / "out")[1] == want


def test_saved_dataset(tmp_path: pathlib.Path, want: bytes) -> None:
    datasets = pytest.importorskip("datasets")
    datasets.disable_progress_bars()
    saved = datasets.Dataset.from_dict({"text": DOCUMENTS})
    saved.save_to_disk(tmp_path / "saved", num_shards=3)
    assert build(tmp_path / "saved", tmp_path / "out")[1] == want
    datasets.DatasetDict({"train": saved, "test": saved.select(range(3))}).save_to_disk(tmp_path / "dict")
    assert build(tmp_path / "dict", tmp_path / "out", "--format", "dataset")[1] == want
    (tmp_path / "saved" / "data-00001-of-00003.arrow").unlink()
    code, _, err = build(tmp_path / "saved", tmp_path / "torn")
    assert code == 3 and "data-00001-of-00003.arrow" in err


def test_decimals(tmp_path: pathlib.Path) -> None:
    """They are written with all of their digits, as in Python: a float has neither the last 0 nor 30 digits."""
    price, long = pa.decimal128(10, 2), pa.decimal256(50, 9)
    prices = [Decimal("1.10"), Decimal("-0.05"), Decimal("12345.67"), Decimal("100.00")]
    longs = [Decimal("99999999999999999999999999999999.5"), Decimal("-1"), Decimal("0.000123400"), Decimal("7.25")]
    longs = [n.quantize(Decimal("1e-9"), context=Context(prec=50)) for n in longs]
    rows = pa.table(
        {
            "p": pa.array(prices, price),
            "n": pa.array(longs, long),
            "l": pa.array([[p] for p in prices], pa.list_(price)),
        }
    )
    pq.write_table(rows, tmp_path / "rows.parquet")
    with pa.ipc.new_file(tmp_path / "rows.arrow", rows.schema) as file:
        file.write_table(rows)
    texts = [f"{p} {n} {p} {float(p) * 2} {float(p):.1f} {int(p)}" for p, n in zip(prices, longs)]
    (tmp_path / "texts.jsonl").write_text("".join(json.dumps({"text": t}) + "\n" for t in texts))
    template = "{{ p }} {{ n }} {{ l[0] }} {{ p|float * 2 }} {{ '%.1f' % p }} {{ p|int }}"
    code, want, err = build(tmp_path / "texts.jsonl", tmp_path / "want")
    assert code == 0, err
    for name in ("rows.parquet", "rows.arrow"):
        code, shard, err = build(tmp_path / name, tmp_path / "out", "--template", template)
        assert code == 0 and shard == want, err
    hundreds = pa.table({"n": pa.array([Decimal("1200"), Decimal("0"), Decimal("-100")], pa.decimal128(5, -2))})
    with pa.ipc.new_file(tmp_path / "hundreds.arrow", hundreds.schema) as file:
        file.write_table(hundreds)
    (tmp_path / "texts.jsonl").write_text('{"text":"1200"}\n{"text":"0"}\n{"text":"-100"}\n')
    _, want, _ = build(tmp_path / "texts.jsonl", tmp_path / "want")
    code, shard, err = build(tmp_path / "hundreds.arrow", tmp_path / "out", "--template", "{{ n }}")
    assert code == 0 and shard == want, err


def test_null_texts(tmp_path: pathlib.Path) -> None:
    t = pa.table({"text": [None if i % 50 == 3 else d for i, d in enumerate(DOCUMENTS)]})
    pq.write_table(t, tmp_path / "docs.parquet")
    code, _, err = build(tmp_path / "docs.parquet", tmp_path / "out")
    assert code == 3 and "row 4" in err and "null" in err
    assert build(tmp_path / "docs.parquet", tmp_path / "out", "--on-bad-record", "skip")[0] == 0


def test_page_above_the_cap(tmp_path: pathlib.Path) -> None:
    """A page that does not fit is refused; the error names the smallest cap, which works."""
    big = pa.table({"text": ["word " * 60_000] * 200})
    pq.write_table(big, tmp_path / "big.parquet", use_dictionary=False, data_page_size=1 << 30, compression="none")
    code, _, err = build(tmp_path / "big.parquet", tmp_path / "out", "--memory", "64MiB")
    assert code == 4 and "big.parquet" in err and "row group 1" in err, err
    smallest = err.split("they need ")[1].split("MiB")[0]
    code, _, err = build(tmp_path / "big.parquet", tmp_path / "out", "--memory", smallest + "MiB")
    assert code == 0, err
