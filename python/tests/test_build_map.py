"""build(map=f): a function through which all records go."""

from __future__ import annotations

import functools
import json
import os
from pathlib import Path
from typing import Any

import pytest

import dsload
from dsload._building import mapping

pytestmark = pytest.mark.server


def upper(record: dict[str, Any]) -> dict[str, Any]:
    return {**record, "text": record["text"].upper()}


@pytest.fixture
def source(tmp_path: Path) -> Path:
    path = tmp_path / "source.jsonl"
    path.write_text("".join(json.dumps({"text": f"number {i} é\n", "id": i}) + "\n" for i in range(3000)))
    return path


def shard(folder: Path) -> bytes:
    return (folder / "train-00000.arrow").read_bytes()


def test_rows_are_those_of_a_file_that_was_mapped(source: Path, tmp_path: Path) -> None:
    mapped = tmp_path / "mapped.jsonl"
    mapped.write_text("".join(json.dumps(upper(json.loads(r))) + "\n" for r in source.open()))
    dsload.build(mapped, out=tmp_path / "want")
    result = dsload.build(source, out=tmp_path / "got", val=mapped, map=upper, progress=False)
    assert result["mapped"] == 6000  # the sources of val too
    assert shard(tmp_path / "got") == shard(tmp_path / "want")
    assert dsload.build(source, out=tmp_path / "got", val=mapped, map=upper)["already_built"]
    with pytest.raises(dsload.BuildError, match="map"):
        dsload.build(source, out=tmp_path / "got", val=mapped, map=functools.partial(upper))


@pytest.mark.parametrize("kind", [LookupError, BrokenPipeError])  # the second is also what a write may raise
def test_exception_ends_the_build_which_resumes(kind: type[Exception], source: Path, tmp_path: Path) -> None:
    broken = tmp_path / "broken"
    broken.touch()

    def map(record: dict[str, Any]) -> dict[str, Any]:
        if record["id"] == 2000 and broken.exists():
            raise kind("at 2000")
        return upper(record)

    with pytest.raises(kind, match="at 2000"):
        dsload.build(source, out=tmp_path / "got", map=map)
    broken.unlink()
    assert dsload.build(source, out=tmp_path / "got", map=map)["resumed"]
    dsload.build(source, out=tmp_path / "want", map=upper)
    assert shard(tmp_path / "got") == shard(tmp_path / "want")


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        ([], r"map returned a list for record 0 of this run; it must return a dict for each, or None"),
        ("text", "map returned .* for record 0"),
        ({"text": object()}, "what map returned for record 0 of this run is not JSON"),
        ({"text": "\ud800"}, "lone surrogate"),
    ],
)
def test_answer_that_is_no_record_is_refused(answer: Any, why: str, source: Path, tmp_path: Path) -> None:
    with pytest.raises((TypeError, ValueError), match=why):
        dsload.build(source, out=tmp_path / "out", map=lambda record: answer)


def test_command_is_passed_on(source: Path, tmp_path: Path) -> None:
    dsload.build(source, out=tmp_path / "got", map="sed 's/number/NUMBER/'")
    assert shard(tmp_path / "got")


def test_build_that_does_not_begin_leaves_nothing(
    source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    with pytest.raises(dsload.BuildError):
        dsload.build(source, out=tmp_path / "out", map=upper, max_length=-1)
    assert os.listdir(tmp_path) == ["source.jsonl"]


def test_digest_is_of_what_a_function_does() -> None:
    def scaled(factor: int) -> Any:
        return lambda record: {"text": "x" * factor}

    digests = {mapping._digest(f) for f in (upper, scaled(1), scaled(2), functools.partial(upper), json.loads)}
    assert len(digests) == 5
    assert mapping._digest(scaled(2)) == mapping._digest(scaled(2))
