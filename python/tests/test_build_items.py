"""build: Python iterables as sources, what the docstring lists, the bar, and what is passed on."""

from __future__ import annotations

import glob
import io
import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import runs

import dsload
from dsload._binary import find_binary
from dsload._building import bar, build, items

pytestmark = pytest.mark.server


def ids(folder: Path) -> list[list[int]]:
    return [
        row
        for f in sorted(folder.glob("train-*.arrow"))
        for row in pa.ipc.open_file(str(f)).read_all()["input_ids"].to_pylist()
    ]


def texts(n: int) -> list[str]:
    return [f'number {i}: "quoted", \\ back, é, 雪, 🙂' for i in range(n)]


@pytest.fixture
def want(tmp_path: Path) -> list[list[int]]:
    """The ids of a build of the same texts from a file."""
    (tmp_path / "file.txt").write_text("".join(t + "\n" for t in texts(700)))
    dsload.build(tmp_path / "file.txt", out=tmp_path / "file", format="text", max_examples=0)
    return ids(tmp_path / "file")


class Rows:
    """Iterable, and nothing else, as data sets of other libraries are."""

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return ({"body": t, "n": np.int64(i), "tags": [None, True]} for i, t in enumerate(texts(700)))


@pytest.mark.parametrize("kind", ["texts", "dicts", "iterable", "list of dicts"])
def test_ids_are_those_of_a_file(kind: str, want: list[list[int]], tmp_path: Path) -> None:
    source: Any
    field = None if kind == "texts" else "body"
    source = {
        "texts": (t for t in texts(700)),
        "dicts": iter(Rows()),
        "iterable": Rows(),
        "list of dicts": list(Rows()),
    }[kind]
    result = dsload.build(source, out=tmp_path / "out", text_field=field, max_examples=0)
    assert result["splits"][0]["examples"] == 700
    assert ids(tmp_path / "out") == want


def test_paths_remain_paths(want: list[list[int]], tmp_path: Path) -> None:
    for i, source in enumerate(([str(tmp_path / "file.txt")], tmp_path.glob("file.txt"), (tmp_path / "file.txt",))):
        dsload.build(source, out=tmp_path / f"out{i}", format="text", max_examples=0)
        assert ids(tmp_path / f"out{i}") == want


BAD: list[tuple[Any, type[Exception], str]] = [
    (None, TypeError, "item 5 .*None"),
    (b"bytes", TypeError, "item 5 .*bytes"),
    (7, TypeError, "item 5 .*int"),
    ({"text": "x"}, TypeError, "item 5 .*dict"),
    ("a\ud800b", ValueError, r"item 5 .*surrogate, U\+D800"),
]


@pytest.mark.parametrize(("item", "kind", "message"), BAD, ids=lambda v: type(v).__name__)
def test_an_item_that_is_none_is_named(item: Any, kind: type[Exception], message: str, tmp_path: Path) -> None:
    with pytest.raises(kind, match=message):
        dsload.build(iter([*texts(5), item]), out=tmp_path / "out")
    assert not (tmp_path / "out" / "manifest.json").exists()


@pytest.mark.parametrize("value", [{1}, b"x", object(), "\udfff"], ids=lambda v: type(v).__name__)
def test_a_value_that_is_not_json_is_named(value: Any, tmp_path: Path) -> None:
    with pytest.raises((TypeError, ValueError), match="item 1 of the source"):
        dsload.build(iter([{"text": "fine"}, {"text": "fine", "more": [value]}]), out=tmp_path / "out")
    assert not (tmp_path / "out" / "manifest.json").exists()


def test_a_nan_does_harm_only_where_it_is_used(tmp_path: Path) -> None:
    """As in a file: tables are full of them."""
    rows = [{"text": f"row {i}", "score": float("nan"), "n": np.float32("inf")} for i in range(5)]
    assert dsload.build(iter(rows), out=tmp_path / "out")["splits"][0]["examples"] == 5
    with pytest.raises(dsload.BuildError, match=r"row 6 .*NaN, not a string"):
        dsload.build(iter([*rows, {"text": float("nan")}]), out=tmp_path / "bad")


def test_a_table_and_its_rows_give_the_same_text(tmp_path: Path) -> None:
    table = pa.table({"a": pa.array([0.1, 1e20, 2.5], pa.float32()), "b": [0.1, 1e22, -3.0]})
    pq.write_table(table, tmp_path / "t.parquet")
    with pa.ipc.new_file(tmp_path / "t.arrow", table.schema) as file:
        file.write_table(table)
    sources = [tmp_path / "t.parquet", tmp_path / "t.arrow", iter(table.to_pylist())]
    for number, source in enumerate(sources):
        dsload.build(source, out=tmp_path / f"data{number}", template="{{ a }} {{ b }}", progress=False)
    assert ids(tmp_path / "data0") == ids(tmp_path / "data1") == ids(tmp_path / "data2")


def test_dicts_of_conversations_are_chats(tmp_path: Path) -> None:
    (tmp_path / "chat.jinja").write_text("{% for m in messages %}{{ m.role }}: {{ m.content }}\n{% endfor %}")
    turns = [{"role": "user", "content": "why"}, {"role": "assistant", "content": "so"}]
    got = [
        dsload.build(iter(chats), out=tmp_path / f"data{i}", chat_template=tmp_path / "chat.jinja", progress=False)
        for i, chats in enumerate([[{"messages": turns}], [{"id": 1, "conversations": turns}]])
    ]
    assert [(r["formats"], r["shapes"]) for r in got] == [({"chat": 1}, {"messages": 1})] * 2
    with pytest.raises(dsload.BuildError, match='no field "text"'):
        dsload.build(iter([{"messages": turns}]), out=tmp_path / "jsonl", format="jsonl")
    both = dsload.build(iter([{"messages": turns, "text": "t"}]), out=tmp_path / "text", progress=False)
    assert both["formats"] == {"jsonl": 1}


def test_notices_and_notes_are_shown(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """What the command says of formats, and of what was cut or left out, is not lost with a bar or a callback, and is
    not taken for progress."""
    (tmp_path / "in.txt").write_text("".join(t + "\n" for t in texts(50)))
    seen: list[dict[str, Any]] = []
    dsload.build(
        tmp_path / "in.txt",
        out=tmp_path / "out",
        max_length=3,
        overflow="truncate",
        max_examples=20,
        on_progress=seen.append,
        progress=True,
    )
    said = capfd.readouterr().err
    assert "reading" in said and "in.txt as text" in said
    assert "note: documents cut to max_length: 20" in said
    assert "stopped: max_examples 20 reached" in said
    assert "? examples" not in said
    assert seen and all("examples" in p for p in seen)


def test_losses_are_told(tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DSLOAD_CACHE", str(tmp_path / "cache"))
    source = tmp_path / "in.jsonl"
    source.write_text('{"text": "one two three four five"}\n{"txt": "two"}\n{"text": "a"}\n')
    options: Any = {"on_bad_record": "skip", "max_length": 4, "overflow": "drop"}
    for use in (
        lambda: dsload.build(source, out=tmp_path / "out", **options),
        lambda: dsload.Loader(source, **options),
    ):
        use()
        said = capfd.readouterr().err
        assert "note: bad records skipped, which rejects.jsonl lists by file and reason: 1\n" in said
        assert "note: documents longer than max_length dropped: 1\n" in said


def test_items_are_called_items(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """They reach the command through its standard input, which is no business of the caller's."""
    dsload.build(iter(["one", "two"]), out=tmp_path / "out")
    said = capfd.readouterr().err
    assert "reading the items as jsonl\n" in said
    assert "; eos adds <|endoftext|>" in said  # not --eos
    with pytest.raises(dsload.BuildError, match=r"^read row 2 at byte \d+: no field \"text\""):
        dsload.build(iter([{"text": "one"}, {"txt": "two"}]), out=tmp_path / "bad")


class Mine(Exception):
    pass


@pytest.mark.parametrize("after", [0, 3, 20_000])
def test_what_the_iterator_raises_passes_through_and_leaves_no_dataset(after: int, tmp_path: Path) -> None:
    def source(fails: bool) -> Iterator[str]:
        for i in range(after):
            yield f"a document, the {i}-th"
        if fails:
            raise Mine("from the iterator")
        yield "the last"

    out = tmp_path / "out"
    with pytest.raises(Mine, match="from the iterator"):
        dsload.build(source(True), out=out, max_examples=0)
    assert not (out / "manifest.json").exists()
    result = dsload.build(source(False), out=out, max_examples=0)
    assert result["splits"][0]["examples"] == after + 1


def test_a_process_that_is_killed_while_it_feeds_leaves_no_dataset(tmp_path: Path) -> None:
    """The command sees the end of its input then, and must not take it for the end of the source."""
    code = """
import os, sys, dsload
def source():
    for i in range(50_000):
        yield f"a document, the {i}-th"
    os.kill(os.getpid(), 9)
dsload.build(source(), out=sys.argv[1], max_examples=0)
"""
    out = tmp_path / "out"
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    # The command holds stderr open until it has ended too.
    done = subprocess.run(
        [sys.executable, "-c", code, str(out)], env=environment, stderr=subprocess.PIPE, timeout=runs.HANGS
    )
    assert done.returncode == -9
    for _ in range(3000):
        if not holders(out):
            break
    assert not (out / "manifest.json").exists()


def holders(folder: Path) -> list[str]:
    return subprocess.run(
        ["pgrep", "-f", f"build --json --out {folder}"], capture_output=True, text=True
    ).stdout.split()


@pytest.mark.parametrize(
    "call",
    [
        "build(source, out=out, max_examples=0, progress=False)",
        "Loader(source, tokenizer='gpt2', shuffle=True, output='numpy')",
    ],
)
def test_a_build_ends_when_its_caller_is_killed(call: str, tmp_path: Path) -> None:
    """A build without a reader would keep running, with its folder locked, and take the machine's time."""
    source = f"synth://wikitext?bytes=100GB&seed={os.getpid()}"
    code = f"import sys, dsload; source, out = sys.argv[1:]; dsload.{call}"
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "XDG_CACHE_HOME": str(tmp_path / "cache")}
    command = [sys.executable, "-c", code, source, str(tmp_path / "out")]
    caller = subprocess.Popen(command, env=environment, stderr=subprocess.DEVNULL)
    try:
        wait_until(lambda: children(source, caller.pid))
    finally:
        caller.kill()
        caller.wait()
    wait_until(lambda: not children(source))


def children(source: str, parent: int = 0) -> list[str]:
    of = ["-P", str(parent)] if parent else []
    return subprocess.run(
        ["pgrep", *of, "-f", f"dsload.* -- {re.escape(source)}"], capture_output=True, text=True
    ).stdout.split()


def wait_until(holds: Callable[[], Any]) -> None:
    deadline = time.monotonic() + runs.HANGS
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_a_source_is_read_no_further_than_a_limit_asks(tmp_path: Path) -> None:
    taken = 0

    def source() -> Iterator[str]:
        nonlocal taken
        while True:
            taken += 1
            yield f"a document of some words, the {taken}-th"

    result = dsload.build(source(), out=tmp_path / "out", max_examples=100)
    assert result["splits"][0]["examples"] == 100 and taken < 2_000_000


def test_lines_of_json_are_no_texts(tmp_path: Path) -> None:
    """An open file of JSON Lines gave a dataset of their source, with quotes and braces."""
    path = tmp_path / "a.jsonl"
    path.write_text('{"text": "a few words"}\n{"text": "and more"}\n')
    with path.open() as file:
        for source in (file, iter(path.read_text().splitlines())):
            with pytest.raises(ValueError, match="the first of them is a JSON object: pass the name of its file"):
                dsload.build(source, out=tmp_path / "out")
    lines = path.read_text().splitlines()
    tokens = dsload.build(path, out=tmp_path / "file")["splits"][0]["tokens"]
    assert dsload.build(map(json.loads, lines), out=tmp_path / "records")["splits"][0]["tokens"] == tokens
    texts = ({"text": line} for line in lines)
    assert dsload.build(texts, out=tmp_path / "texts")["splits"][0]["tokens"] > tokens
    assert dsload.build(iter(["{ not JSON"]), out=tmp_path / "braces")["splits"][0]["examples"] == 1


def test_open_files_are_no_texts(tmp_path: Path) -> None:
    """Their lines have ends, which were tokenized, and a CSV's header and commas are no text."""
    path = tmp_path / "a.csv"
    path.write_text("text,id\na few words,1\n")
    with path.open() as file:
        for source in (file, io.StringIO("a few words\nand more\n")):
            with pytest.raises(ValueError, match="pass the name of its file, or texts, as in"):
                dsload.build(source, out=tmp_path / "out")
    with path.open() as file:
        texts = (line.rstrip("\n") for line in file)
        assert dsload.build(texts, out=tmp_path / "lines")["splits"][0]["examples"] == 2


def test_names_of_files_are_no_texts(text_lines: Path, tmp_path: Path) -> None:
    """glob.iglob and sets gave a dataset of the names."""
    for source in (glob.iglob(str(text_lines)), {str(text_lines)}, np.array([str(text_lines)])):
        with pytest.raises(ValueError, match=r"is the name of a file: pass a list of names"):
            dsload.build(source, out=tmp_path / "out")
    assert not (tmp_path / "out").exists()
    dsload.build(iter([{"text": str(text_lines)}]), out=tmp_path / "out")


def test_sources_that_are_none(tmp_path: Path) -> None:
    for source in (b"x", {"text": "x"}, 5):
        with pytest.raises(TypeError, match="source"):
            dsload.build(source, out=tmp_path / "out")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="empty"):
        dsload.build([], out=tmp_path / "out")
    with pytest.raises(ValueError, match="format"):
        dsload.build(iter(["x"]), out=tmp_path / "out", format="csv")
    with pytest.raises(ValueError, match="text_field"):
        dsload.build(iter(["x"]), out=tmp_path / "out", text_field="a.b")
    with pytest.raises(dsload.BuildError) as caught:
        dsload.build(iter([]), out=tmp_path / "out")
    assert caught.value.exit_code == 3, "no generated text in place of an empty source"
    with pytest.raises(dsload.BuildError) as caught:
        dsload.build(iter(["x"]), out=tmp_path / "out", no_such_flag=3)
    assert caught.value.exit_code == 2 and "no_such_flag" in str(caught.value)
    assert not (tmp_path / "out" / "manifest.json").exists()


def test_memory_does_not_grow_with_the_source() -> None:
    taken = 0

    def source() -> Iterator[str]:
        nonlocal taken
        for _ in range(1000):
            taken += 1
            yield "x" * 1000

    for sent, piece in enumerate(items.encoded(source(), None)):
        assert taken <= sent + 1 and len(piece) < 200_000


def test_the_options_are_every_flag() -> None:
    binary = find_binary()
    assert binary is not None
    text = subprocess.run([binary, "build", "--help"], capture_output=True, text=True, check=True).stdout
    flags = {f.replace("-", "_") for f in re.findall(r"^ +(?:-\w, )?--([a-z-]+)", text, re.M)}
    assert len(flags) >= 20
    options = dsload.BuildOptions
    documented = set(re.findall(r"^ {8}([a-z_]+): ", (build.build.__doc__ or "") + (options.__doc__ or ""), re.M))
    assert options.__optional_keys__ <= documented
    assert flags - {"help", "json", "explain_memory", "preview"} <= documented


PROGRESS = {"examples": 12345, "tokens": 6789012, "fraction": 0.5, "mb_per_s": 31.2, "rss_bytes": 64 << 20}


@pytest.mark.parametrize("columns", [1, 10, 20, 40, 60, 79, 80, 200])
def test_the_bar_fits(columns: int) -> None:
    line = bar.line(PROGRESS, columns)
    assert 0 < len(line) <= columns
    assert ("12,345 examples" in line) == (columns >= 21)
    assert ("[============ " in line) == (columns >= 90)
    assert bar.line({}, columns), "a progress object of a later version"


def test_a_bar_is_shown_on_a_terminal(monkeypatch: pytest.MonkeyPatch, text_lines: Path, tmp_path: Path) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    for i, (progress, shown) in enumerate(((None, True), (False, False))):
        stderr = Terminal()
        monkeypatch.setattr(sys, "stderr", stderr)
        dsload.build(text_lines, out=tmp_path / f"d{i}", format="text", max_examples=0, progress=progress)
        assert ("\r" in stderr.getvalue() and "1,000 examples" in stderr.getvalue()) == shown
    stderr = io.StringIO()  # type: ignore[assignment]
    monkeypatch.setattr(sys, "stderr", stderr)
    seen: list[dict[str, Any]] = []
    dsload.build(text_lines, out=tmp_path / "d2", format="text", max_examples=0, on_progress=seen.append)
    assert "\r" not in stderr.getvalue() and seen[-1]["examples"] == 1000
