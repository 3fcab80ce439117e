"""stats(): the figures of a dataset as plain values, and the charts of the report."""

from __future__ import annotations

import json
import pathlib
import re
import shutil
import subprocess
import sys
from typing import Any

import pytest

import dsload
from dsload._binary import find_binary

pytestmark = pytest.mark.server


@pytest.fixture(scope="module")
def figures(dataset: str) -> dsload.Stats:
    return dsload.stats(dataset)


def test_figures_are_those_of_the_manifest(dataset: str, figures: dsload.Stats) -> None:
    splits = json.loads(pathlib.Path(dataset, "manifest.json").read_text())["splits"]
    assert [(r["split"], r["examples"], r["tokens"], r["length_min"], r["length_max"]) for r in figures] == [
        (s["name"], s["examples"], s["tokens"], s["min_length"], s["max_length"]) for s in splits
    ]
    for split in splits:
        rows = {
            name: [r for r in getattr(figures, name) if r["split"] == split["name"]]
            for name in ("lengths", "document_lengths", "padding", "packing", "top_tokens")
        }
        assert sum(r["rows"] for r in rows["lengths"]) == split["examples"]
        assert sum(r["rows"] * r["tokens"] for r in rows["lengths"]) == split["tokens"]
        assert all(0 <= r["waste"] < 1 for r in rows["padding"]) and all(0 < r["fill"] <= 1 for r in rows["packing"])
        assert all(rows.values())
    assert f"train {splits[0]['examples']:,} rows" in repr(figures) and len(figures) == len(splits) == len(figures[:])
    assert json.loads(json.dumps(list(figures))) == list(figures), "plain values"


def test_tables_of_pandas_and_polars(figures: dsload.Stats) -> None:
    for name in ("pandas", "polars"):
        frames = pytest.importorskip(name)
        frame = frames.DataFrame(figures)
        assert frame.shape == (len(figures), len(figures[0])) and list(frame["examples"]) == [
            r["examples"] for r in figures
        ]
        assert frames.DataFrame(figures.padding).shape == (len(figures.padding), 4)


def charts_of_page(page: str) -> list[list[tuple[int, int]]]:
    """(first length, count) of the bars of each chart of a report, which says them in a table, too."""
    found = []
    for chart in page.split("<figure>")[1:]:
        bars = re.findall(r'<th scope="row">([\d,]+)(?: to [\d,]+)?</th><td>([\d,]+)</td>', chart.split("</figure>")[0])
        found.append([(int(a.replace(",", "")), int(n.replace(",", ""))) for a, n in bars])
    return found


def test_charts_are_those_of_the_report(dataset: str, figures: dsload.Stats, tmp_path: pathlib.Path) -> None:
    pytest.importorskip("matplotlib")
    page = tmp_path / "report.html"
    subprocess.run([str(find_binary()), "stats", dataset, "--html", page], check=True, capture_output=True)
    shown = figures.plot()
    axes = shown.axes
    assert len(axes) == 4 * len(figures)
    drawn = [[(round(b.get_x()), round(b.get_height())) for b in a.patches if b.get_height()] for a in axes]
    rows, documents = ([drawn[4 * i + k] for i in range(len(figures))] for k in (0, 1))
    assert rows + documents == charts_of_page(page.read_text())
    for i, row in enumerate(figures):
        assert f"longest {row['length_max']:,}" in " ".join(t.get_text() for t in axes[4 * i].get_legend().get_texts())
        assert len(axes[4 * i + 2].texts) == sum(p["split"] == row["split"] for p in figures.padding)
        assert len(axes[4 * i + 3].texts) == sum(p["split"] == row["split"] for p in figures.packing)
    assert shown._repr_png_().startswith(b"\x89PNG")


def test_without_matplotlib(figures: dsload.Stats, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(ImportError, match="pip install matplotlib"):
        figures.plot()


def test_a_name_with_signs_of_formulas_is_shown_as_it_is(figures: dsload.Stats) -> None:
    pytest.importorskip("matplotlib")
    report: dict[str, Any] = {**figures.report, "dataset": r"$\no formula$", "splits": figures.report["splits"][:1]}
    assert dsload.Stats(report).plot()._repr_png_()


def test_what_is_no_dataset(dataset: str, tmp_path: pathlib.Path) -> None:
    with pytest.raises(FileNotFoundError, match="nothing"):
        dsload.stats(tmp_path / "nothing")
    damaged = tmp_path / "damaged"
    shutil.copytree(dataset, damaged)
    manifest = damaged / "manifest.json"
    manifest.write_text(manifest.read_text().replace('"examples"', '"exemples"', 1))
    with pytest.raises(dsload.Corrupt, match="damaged"):
        dsload.stats(damaged)
