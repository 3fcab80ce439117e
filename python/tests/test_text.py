"""Loader of text: built once into the cache, by one of several processes, and again where it changed."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
import runs

import dsload
from dsload import Loader
from dsload._binary import find_binary


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("DSLOAD_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("DSLOAD_CACHE_LIMIT", raising=False)
    return tmp_path / "cache"


def write(path: Path, n: int, word: str = "line") -> Path:
    path.write_text("".join(json.dumps({"text": f"{word} number {i} of a small corpus"}) + "\n" for i in range(n)))
    return path


def rows(loader: Loader) -> list[Any]:
    return sorted(row[:n].tolist() for batch in loader for row, n in zip(batch["input_ids"], batch["length"]))


def built(cache: Path) -> dict[str, int]:
    return {str(p.parent): p.stat().st_mtime_ns for p in cache.glob("*/manifest.json")}


def test_text_is_built_once(tmp_path: Path, cache: Path, capfd: pytest.CaptureFixture[str]) -> None:
    source = write(tmp_path / "corpus.jsonl", 50)
    dsload.build(str(source), out=tmp_path / "data", tokenizer="gpt2", max_length=16)
    with Loader(tmp_path / "data", output="numpy") as loader:
        want = rows(loader)
    with Loader(source, tokenizer="gpt2", max_length=16, output="numpy") as loader:
        assert rows(loader) == want
    first = built(cache)
    assert len(first) == 1
    with Loader(str(source), tokenizer="gpt2", max_length=16, output="numpy", batch_size=7, in_process=True) as loader:
        assert rows(loader) == want
    assert built(cache) == first, "built again"
    with Loader([source], tokenizer="gpt2", max_length=4, output="numpy") as loader:
        assert len(rows(loader)) > len(want), "other settings are another dataset"
    assert len(built(cache)) == 2
    capfd.readouterr()
    write(source, 60)
    with Loader(source, tokenizer="gpt2", max_length=16, output="numpy") as loader:
        assert len(rows(loader)) == 60
    assert "changed since it was cached" in capfd.readouterr().err


def test_globs_folders_and_relative_paths(tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "corpus").mkdir()
    for i in range(3):
        write(tmp_path / "corpus" / f"{i}.jsonl", 4, f"file {i}")
    monkeypatch.chdir(tmp_path)
    with Loader("corpus/*.jsonl", tokenizer="gpt2", output="numpy") as loader:
        assert loader.num_examples == 12
    with Loader(tmp_path / "corpus" / "*.jsonl", tokenizer="gpt2", output="numpy") as loader:
        assert loader.num_examples == 12
    assert len(built(cache)) == 1, "a path is the same wherever it is named from"
    write(tmp_path / "corpus" / "3.jsonl", 4)
    with Loader("corpus/*.jsonl", tokenizer="gpt2", output="numpy") as loader:
        assert loader.num_examples == 16
    with Loader("corpus", tokenizer="gpt2", output="numpy") as loader:
        assert loader.num_examples == 16


def test_mistakes(tmp_path: Path, dataset: str) -> None:
    with pytest.raises(TypeError, match=r"'bach_size'.*is a dataset"):
        Loader(dataset, bach_size=3)
    with pytest.raises(TypeError, match="'out'"):
        Loader(write(tmp_path / "a.jsonl", 2), out="elsewhere")
    with pytest.raises(dsload.BuildError, match=r"bach_size.*'batch_size'"):
        Loader(tmp_path / "a.jsonl", bach_size=3)
    with pytest.raises(dsload.BuildError, match="nosuch"):
        Loader(tmp_path / "nosuch.jsonl", tokenizer="gpt2")
    with pytest.raises(TypeError, match="tokenizer"):
        Loader(socket=tmp_path / "s", tokenizer="gpt2")
    with pytest.raises(ValueError, match="empty"):
        Loader([])


READER = (
    "import sys, json, dsload\n"
    "with dsload.Loader(sys.argv[1], tokenizer='gpt2', output='numpy', batch_size=500) as l: "
    "print(sum(len(b['length']) for b in l))"
)


def reader(source: Path) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", READER, str(source)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


def test_several_at_once_build_once(tmp_path: Path, cache: Path) -> None:
    source = write(tmp_path / "corpus.jsonl", 20000)
    readers = [reader(source) for _ in range(3)]
    said = []
    for r in readers:
        out, err = r.communicate(timeout=runs.HANGS)
        assert r.returncode == 0, err
        assert int(out) == 20000
        said.append(err)
    assert len(built(cache)) == 1
    assert sum("waiting for process" in err for err in said) <= 2


def stopped_builder(source: Path, cache: Path) -> subprocess.Popen[bytes]:
    """A build that has a checkpoint and is stopped, so that it cannot be done before others wait."""
    binary = find_binary()
    assert binary is not None
    command = [binary, "build", "--cached", "--progress", "none", "--workers", "1", "--tokenizer", "gpt2", str(source)]
    builder = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    while not list(cache.glob("*/build.checkpoint")) and builder.poll() is None:
        time.sleep(0.001)
    builder.send_signal(signal.SIGSTOP)
    if builder.returncode is None:
        os.waitid(os.P_PID, builder.pid, os.WSTOPPED | os.WEXITED | os.WNOWAIT)
    return builder


def test_a_killed_builder_is_succeeded(tmp_path: Path, cache: Path) -> None:
    """The builder is killed while others wait: one of them continues."""
    for size in (200_000, 800_000, 3_200_000):
        source = write(tmp_path / f"corpus-{size}.jsonl", size)
        builder = stopped_builder(source, cache)
        if not built(cache):
            break
        builder.kill()
        builder.wait()
        shutil.rmtree(cache)
    else:
        raise AssertionError("every build was over before it could be stopped")
    waiting = [reader(source) for _ in range(2)]
    for r in waiting:
        assert r.stderr is not None
        assert f"waiting for process {builder.pid}" in r.stderr.readline()
    builder.kill()
    builder.wait()
    for r in waiting:
        out, err = r.communicate(timeout=runs.HANGS)
        assert r.returncode == 0, err
        assert int(out) == size
    assert len(built(cache)) == 1


def state_of(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return "gone"


def children(pid: int) -> list[int]:
    """The processes that pid started and that still run."""
    found = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            state, parent = path.read_text().rpartition(")")[2].split()[:2]
        except OSError:
            continue  # it ended
        if int(parent) == pid and state != "Z":
            found.append(int(path.parent.name))
    return found


@pytest.mark.skipif(sys.platform != "linux", reason="finds the build by /proc")
def test_a_killed_trainer_leaves_no_build(tmp_path: Path, cache: Path) -> None:
    """The build waits for another one, so that it has nothing to say that nobody would read."""
    source = write(tmp_path / "corpus.jsonl", 800_000)
    builder = stopped_builder(source, cache)
    assert not built(cache), "the build was over before it could be stopped"
    trainer = reader(source)
    try:
        assert trainer.stderr is not None and "waiting for process" in trainer.stderr.readline()
        left = children(trainer.pid)
        assert left
        trainer.kill()
        trainer.communicate()
        deadline = time.monotonic() + runs.HANGS
        while any(state_of(pid) not in ("gone", "Z") for pid in left):
            assert time.monotonic() < deadline, f"{left} still run"
            time.sleep(0.05)
    finally:
        trainer.kill()
        builder.kill()
        builder.wait()


def test_text_that_cannot_be_built(tmp_path: Path, cache: Path) -> None:
    """No batch comes of it, in any order, and the error is the build's."""
    source = write(tmp_path / "corpus.jsonl", 2000)
    with source.open("a") as f:
        f.write("{ no JSON\n")
    with pytest.raises(dsload.BuildError, match=r"corpus\.jsonl.*row 2001.*JSON") as error:
        Loader(source, tokenizer="gpt2", shuffle="none")
    assert error.value.exit_code == 3
    assert not built(cache)


def test_the_oldest_that_is_not_in_use_is_evicted(
    tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    held = Loader(write(tmp_path / "held.jsonl", 400), tokenizer="gpt2", output="numpy")
    for name in ("old", "older"):
        Loader(write(tmp_path / f"{name}.jsonl", 400), tokenizer="gpt2").close()
    folders = {Path(p).name.split(".")[0]: Path(p) for p in built(cache)}
    size = sum(f.stat().st_size for f in folders["old"].iterdir())
    for age, name in enumerate(("old", "older", "held"), 1):
        used = time.time() - 1000 * age
        os.utime(f"{folders[name]}.lock", (used, used))
    capfd.readouterr()
    monkeypatch.setenv("DSLOAD_CACHE_LIMIT", str(int(3.5 * size)))
    Loader(write(tmp_path / "new.jsonl", 400), tokenizer="gpt2").close()
    left = {Path(p).name.split(".")[0] for p in built(cache)}
    assert left == {"held", "old", "new"}
    assert f"evicted {folders['older']}" in capfd.readouterr().err
    assert len(rows(held)) == 400
    held.close()


def test_what_a_build_says_names_pythons_options(
    tmp_path: Path, cache: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    source = tmp_path / "a.txt"
    source.write_text("one\ntwo\n")
    with Loader(source, text_field="body", format="text") as loader:
        assert loader.num_examples == 2
    said = capfd.readouterr().err
    assert "text_field" in said and "--" not in said
