"""Writes the files of this folder from rows.jsonl, and with --check compares them with those that are here.

    python make.py [--check]

The bytes depend on pyarrow's version (26.0.1 wrote them), the rows do not: --check compares the rows where
the version differs."""

import datetime
import decimal
import io
import json
import pathlib
import sys

import pyarrow as pa
import pyarrow.ipc
import pyarrow.parquet as pq

HERE = pathlib.Path(__file__).parent
WRITER = "26.0.1"
GROUP = 25

parts = [("b", pa.string()), ("c", pa.list_(pa.int16()))]
SCHEMA = pa.schema({
    "id": pa.int64(), "text": pa.string(), "big": pa.int64(), "small": pa.int8(), "u": pa.uint32(),
    "half": pa.float32(), "score": pa.float64(), "ok": pa.bool_(), "when": pa.timestamp("us"), "day": pa.date32(),
    "clock": pa.time64("us"), "dec": pa.decimal128(20, 3), "raw": pa.binary(4), "list": pa.list_(pa.int32()),
    "nest": pa.struct({"a": pa.list_(pa.struct(parts)), "d": pa.struct({"e": pa.large_string()})}),
    "map": pa.map_(pa.string(), pa.int32()), "fixed": pa.list_(pa.int32(), 2), "nothing": pa.null(),
})  # fmt: skip


def table() -> pa.Table:
    """the rows, with what JSON has no type for"""
    convert = {
        "when": datetime.datetime.fromisoformat,
        "day": datetime.date.fromisoformat,
        "clock": datetime.time.fromisoformat,
        "dec": lambda v: decimal.Decimal(str(v)),
        "raw": str.encode,
        "map": lambda v: [(e["key"], e["value"]) for e in v],
    }
    rows = [json.loads(line) for line in (HERE / "rows.jsonl").read_text().splitlines()]
    for row in rows:
        for name, f in convert.items():
            if row[name] is not None:
                row[name] = f(row[name])
    return pa.Table.from_pylist(rows, SCHEMA)


def typed(storage: pa.DataType) -> pa.Table:
    """rows of which parts are stored as JSON, and nulls that one schema gives to all"""
    zone = datetime.timezone(datetime.timedelta(hours=9))
    call = {"name": "f", "args": {"city": None, "n": 2.0}, "any": '{"k": null, "n": 1}'}
    turns = [{"role": "user", "content": "q", "tool_calls": None}]
    turns.append({"role": "assistant", "content": None, "tool_calls": [call]})
    rows = [
        {"text": '"a \\"word\\""', "meta": '{"lang":"en","in":[null,1.0]}', "list": ['{"a":1}', None, "no JSON"],
         "messages": turns, "pairs": [("k", None)], "one": {"x": None}, "day": datetime.date(1969, 12, 30),
         "at": datetime.datetime(2020, 1, 5, 12, tzinfo=zone), "n": 1e16},
        {"text": "[1]", "meta": "null", "list": [], "day": datetime.date(2021, 2, 6), "n": -3.0},
        {"n": 0.5},
    ]  # fmt: skip

    def schema(js: pa.DataType) -> pa.Schema:
        call = pa.struct({"name": pa.string(), "args": pa.struct({"city": pa.string(), "n": pa.float64()}), "any": js})
        turn = pa.struct({"role": pa.string(), "content": pa.string(), "tool_calls": pa.list_(call)})
        types = {"text": js, "meta": js, "list": pa.list_(js), "messages": pa.list_(turn)}
        types |= {"pairs": pa.map_(pa.string(), pa.int64()), "one": pa.struct({"x": pa.int8()}), "day": pa.date64()}
        return pa.schema(types | {"at": pa.timestamp("ms", "Asia/Tokyo"), "n": pa.float64()})

    return pa.Table.from_pylist(rows, schema(storage)).cast(schema(pa.json_(storage)))


def parquet(rows: pa.Table, write_statistics=False, **options) -> bytes:
    out = io.BytesIO()
    options["write_statistics"] = write_statistics
    pq.write_table(rows, out, row_group_size=GROUP, store_schema=False, **options)
    return out.getvalue()


def arrow(rows: pa.Table, stream=False, **options) -> bytes:
    out = io.BytesIO()
    new = pa.ipc.new_stream if stream else pa.ipc.new_file
    with new(out, rows.schema, options=pa.ipc.IpcWriteOptions(**options)) as w:
        w.write_table(rows, max_chunksize=GROUP)
    return out.getvalue()


def cast(rows: pa.Table, **types) -> pa.Table:
    for name, typ in types.items():
        i = rows.schema.get_field_index(name)
        rows = rows.set_column(i, name, rows[name].cast(typ))
    return rows


def encoded(rows: pa.Table, i: int) -> pa.RecordBatch:
    """a batch whose text has a dictionary of its own rows, or also of those before, as a writer adds to it"""
    texts = rows["text"].to_pylist()
    first = 0 if i < 2 else 30
    values = list(dict.fromkeys(t for t in texts[first : [25, 30, 40][i]] if t is not None))
    batch = rows.slice([0, 25, 30][i], [25, 5, 10][i]).combine_chunks().to_batches()[0]
    numbers = [None if t is None else values.index(t) for t in batch["text"].to_pylist()]
    text = pa.DictionaryArray.from_arrays(pa.array(numbers, pa.int16()), pa.array(values, pa.string()))
    columns = [text if n == "text" else batch[n] for n in batch.schema.names]
    columns[batch.schema.get_field_index("u")] = batch["u"].dictionary_encode()
    return pa.RecordBatch.from_arrays(columns, names=batch.schema.names)


def encoded_stream(rows: pa.Table, **options) -> bytes:
    """three batches: a dictionary, one that adds to it, one that replaces it"""
    out = io.BytesIO()
    batches = [encoded(rows, i) for i in range(3)]
    options = pa.ipc.IpcWriteOptions(emit_dictionary_deltas=True, **options)
    with pa.ipc.new_stream(out, batches[0].schema, options=options) as w:
        for b in batches:
            w.write_batch(b)
    return out.getvalue()


def files() -> dict[str, bytes]:
    rows = table()
    plain = {"use_dictionary": False, "compression": "none"}
    encodings = {
        "id": "DELTA_BINARY_PACKED", "text": "DELTA_BYTE_ARRAY", "big": "DELTA_BINARY_PACKED",
        "half": "BYTE_STREAM_SPLIT", "score": "BYTE_STREAM_SPLIT", "nest.d.e": "DELTA_LENGTH_BYTE_ARRAY",
    }  # fmt: skip
    delta = {"compression": "zstd", "use_dictionary": False, "column_encoding": encodings, "write_page_checksum": True}
    shared = rows
    for name in ("text", "u", "day"):
        i = shared.schema.get_field_index(name)
        shared = shared.set_column(i, name, shared[name].dictionary_encode())
    views = cast(rows, text=pa.string_view(), raw=pa.binary_view())
    numbers = pa.array([bytes(range(16)), None], pa.binary(16))
    uuids = pa.table({"id": pa.ExtensionArray.from_storage(pa.uuid(), numbers), "raw": numbers.cast(pa.binary())})
    return {
        "typed/uuid.parquet": parquet(uuids, **plain),
        "typed/uuid.arrow": arrow(uuids),
        "typed/plain.parquet": parquet(typed(pa.string()), **plain),
        "typed/plain.arrow": arrow(typed(pa.string())),
        "typed/large.arrow": arrow(typed(pa.large_string()), stream=True),
        "typed/views.arrow": arrow(typed(pa.string_view()), stream=True, compression="zstd"),
        "plain.parquet": parquet(rows, **plain),
        "dictionary.parquet": parquet(rows, compression="snappy", data_page_version="2.0"),
        "gzip.parquet": parquet(rows, compression="gzip"),
        "brotli.parquet": parquet(rows, compression="brotli"),
        "lz4.parquet": parquet(rows, compression="lz4", data_page_size=100, write_batch_size=4),
        "delta.parquet": parquet(rows, **delta),
        "statistics/pyarrow.parquet": parquet(rows, True, compression="zstd"),
        "file.arrow": arrow(rows),
        "zstd.arrow": arrow(rows, compression="zstd"),
        "lz4.arrow": arrow(rows, stream=True, compression="lz4"),
        "stream.arrow": arrow(rows, stream=True),
        "encoded.arrow": arrow(shared),
        "views.arrow": arrow(views),
        "packed_views.arrow": arrow(views, stream=True, compression="zstd"),
        "deltas.arrow": encoded_stream(rows),
        "packed_deltas.arrow": encoded_stream(rows, compression="lz4"),
    }


def encrypted() -> bytes:
    """a file whose footer can be read, but not its column; its bytes differ each time"""
    import pyarrow.parquet.encryption as pe

    out = io.BytesIO()
    key = pe.create_encryption_properties(b"0" * 16, plaintext_footer=True)
    rows = pa.table({"text": ["a", "b"]})
    with pq.ParquetWriter(out, rows.schema, store_schema=False, encryption_properties=key) as w:
        w.write_table(rows)
    return out.getvalue()


def read(name: str, data: bytes) -> pa.Table:
    if name.endswith(".parquet"):
        return pq.read_table(io.BytesIO(data))
    try:
        return pa.ipc.open_file(data).read_all()
    except pa.ArrowInvalid:
        return pa.ipc.open_stream(data).read_all()


if __name__ == "__main__":
    wrong = []
    if "--check" not in sys.argv:
        (HERE / "typed/encrypted.parquet").write_bytes(encrypted())
    for name, data in files().items():
        if "--check" not in sys.argv:
            (HERE / name).parent.mkdir(exist_ok=True)
            (HERE / name).write_bytes(data)
            continue
        there = (HERE / name).read_bytes()
        same = there == data if pa.__version__ == WRITER else read(name, there).equals(read(name, data))
        if not same:
            wrong.append(name)
    sys.exit(f"other than here: {', '.join(wrong)}" if wrong else 0)
