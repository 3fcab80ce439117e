"""Filters, copies and additions from Python, by the names of the flags."""

from __future__ import annotations

import pathlib

import pytest

import dsload

pytestmark = pytest.mark.server


def records(first: int, last: int) -> list[dict[str, object]]:
    return [
        {"text": f"document number {i % 40} of the corpus", "lang": "en" if i % 2 else "de", "meta": {"n": i}}
        for i in range(first, last)
    ]


def test_conditions(tmp_path: pathlib.Path) -> None:
    s = dsload.build(
        iter(records(0, 100)),
        out=tmp_path / "a",
        where=["lang=en", "meta.n=1", "meta.n=3", "meta.n=24"],
        match="number",
        no_match=["xyz", " 3 "],
        progress=False,
    )
    assert s["dropped_by"] == {"where": 98, "no-match": 1}
    assert s["documents"] == 100 and s["splits"][0]["examples"] == 1
    with pytest.raises(dsload.BuildError, match="no record has the field"):
        dsload.build(iter(records(0, 9)), out=tmp_path / "b", where="language=en", progress=False)


def test_additions_are_compared_with_what_is_there(tmp_path: pathlib.Path) -> None:
    out = tmp_path / "data"
    dsload.build(iter(records(0, 30)), out=out, dedup="exact", progress=False)
    for last, added in ((60, 10), (90, 0)):
        if added:
            s = dsload.build(iter(records(30, last)), out=out, dedup="exact", append=True, progress=False)
            assert s["added_examples"] == added and s["splits"][0]["examples"] == 40
        else:
            with pytest.raises(dsload.BuildError, match="no document is left"):
                dsload.build(iter(records(60, last)), out=out, dedup="exact", append=True, progress=False)
    with dsload.Loader(out, batch_size=8, epochs=1, output="numpy") as loader:
        assert loader.num_examples == 40
        assert sum(len(batch["length"]) for batch in loader) == 40
