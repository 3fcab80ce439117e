"""The charts of `dsload stats --html` in matplotlib: bins, marks, shades and words are those of stats/chart.go and
html.go."""

from __future__ import annotations

import io
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_MOST_BINS = 40
_BAR, _MARK, _SOFT = "#0072b2", "#b85c00", "#565d64"
_SHADES = ("#f1f6fa", "#d9e9f4", "#b8d7ea", "#8fc1e0", "#1d6ea6", "#004a78")
_SHADE_FROM = (0.02, 0.05, 0.1, 0.2, 0.35)  # the shares of waste from which the next shade is used
_DASHES: tuple[Any, ...] = (":", "--", "-.", (0, (1, 4)), (0, (8, 3, 1, 3)))
_NAMES = (("mean", "mean"), ("p50", "median"), ("p95", "95%"), ("max", "longest"))


def figure(report: dict[str, Any]) -> Figure:
    """A row of four charts for each split of a report."""
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise ImportError("plot() needs matplotlib: pip install matplotlib") from error
    splits = report["splits"]
    # Not pyplot's, which keeps its figures, and shows them in a notebook a second time.
    shown: Figure = type("Figure", (Figure,), {"_repr_png_": _png})(figsize=(17, 4 * len(splits)), layout="constrained")
    shown.suptitle(report["dataset"], parse_math=False)
    axes = shown.subplots(len(splits), 4, squeeze=False)
    for split, (rows, documents, padding, packing) in zip(splits, axes):
        _histogram(rows, "rows", split["lengths"], _marks(split["length"], _cut(report)))
        rows.set_title(f"{split['name']}: lengths of rows")
        _histogram(documents, "documents", split["document_lengths"], _marks(split["document_length"], 0))
        documents.set_title(f"{split['name']}: tokens a document")
        _padding(padding, split["padding"])
        padding.set_title(f"{split['name']}: share of padding")
        _packing(packing, split["packing"], split["tokens"])
        packing.set_title(f"{split['name']}: fill of packed rows")
    return shown


def _png(shown: Figure) -> bytes:
    """What a notebook shows."""
    data = io.BytesIO()
    shown.savefig(data, format="png")
    return data.getvalue()


def _cut(report: dict[str, Any]) -> int:
    """The setting at which the build cut rows, 0 if there is none."""
    settings = report.get("settings")
    value = settings.get("max-length") if isinstance(settings, dict) else None
    return value if isinstance(value, int) else 0


def _marks(summary: dict[str, Any], cut: int) -> dict[int, str]:
    """The lengths to point out, ascending, with their names."""
    named = [(math.floor(summary[key] + 0.5), name) for key, name in _NAMES]
    if cut > 0 and cut >= summary["max"]:
        named.append((cut, "--max-length"))
    marks: dict[int, str] = {}
    for at, name in named:
        marks[at] = f"{marks[at]}, {name}" if at in marks else name
    return dict(sorted(marks.items()))


def _nice_step(x: float) -> int:
    """The least of 1, 2, 5, 10, 20, … that is at least x."""
    step = 1
    while True:
        for k in (1, 2, 5):
            if k * step >= x:
                return k * step
        step *= 10


def _histogram(axes: Axes, unit: str, pairs: Sequence[Sequence[int]], marks: dict[int, str]) -> None:
    """Bars of equal width. The axis of counts is logarithmic if the largest is 100 times the median one."""
    if not pairs:
        axes.set_axis_off()
        return
    longest = max(pairs[-1][0], *marks)
    width = _nice_step((longest + 1) / _MOST_BINS)
    counts = [0] * (longest // width + 1)
    for tokens, count in pairs:
        counts[tokens // width] += count
    axes.bar([i * width for i in range(len(counts))], counts, width * 0.95, align="edge", color=_BAR)
    some = sorted(n for n in counts if n)
    if some[-1] >= 100 * some[len(some) // 2]:
        axes.set_yscale("log")
        axes.set_ylim(bottom=0.5)
    for dashes, (at, name) in zip(_DASHES, marks.items()):
        axes.axvline(at, color=_MARK, linestyle=dashes, linewidth=1.4, label=f"{name} {at:,}")
    axes.set_xlim(0, len(counts) * width)
    axes.set_xlabel("tokens")
    axes.set_ylabel(unit)
    axes.legend(fontsize="small", frameon=False, loc="upper center", bbox_to_anchor=(0.5, -0.18), ncols=3)


def _padding(axes: Axes, padding: list[dict[str, Any]]) -> None:
    sizes, buckets = (sorted({p[key] for p in padding}) for key in ("batch_size", "bucket"))
    waste = {(p["batch_size"], p["bucket"]): p["waste"] for p in padding}
    least = {size: min((b for s, b in waste if s == size), key=lambda b: waste[size, b]) for size in sizes}
    cells = [[(waste[s, b], _percent(waste[s, b]), b == least[s]) for b in buckets] for s in sizes]
    _heat(axes, [f"{s:,}" for s in sizes], [f"{b:,}" if b else "none" for b in buckets], cells)
    axes.set_xlabel("bucket, rows")
    axes.set_ylabel("batch size")


def _packing(axes: Axes, packing: list[dict[str, Any]], tokens: int) -> None:
    lengths = sorted({p["length"] for p in packing})
    policies = list(dict.fromkeys(p["policy"] for p in packing))
    found = {(p["length"], p["policy"]): p for p in packing}
    cells: list[list[tuple[float, str, bool]]] = []
    for length in lengths:
        cells.append([])
        for policy in policies:
            p = found[length, policy]
            text = _percent(p["fill"]) + (f"\ndrops {_percent(p['dropped'] / tokens)}" if p["dropped"] else "")
            cells[-1].append((1 - p["fill"], text, False))
    _heat(axes, [f"{n:,}" for n in lengths], policies, cells)
    axes.set_xlabel("policy")
    axes.set_ylabel("tokens a row")


def _heat(axes: Axes, rows: list[str], columns: list[str], cells: list[list[tuple[float, str, bool]]]) -> None:
    """A table of (waste, text, whether it is outlined): the more a cell wastes, the darker."""
    from matplotlib.patches import Rectangle

    for y, row in enumerate(cells):
        for x, (waste, text, outlined) in enumerate(row):
            level = sum(waste >= share for share in _SHADE_FROM)
            axes.add_patch(Rectangle((x, y), 1, 1, facecolor=_SHADES[level], edgecolor="white", linewidth=2))
            if outlined:
                frame = Rectangle((x + 0.06, y + 0.06), 0.88, 0.88, fill=False, edgecolor=_MARK, linewidth=2)
                axes.add_patch(frame)
            colour = "white" if level >= 4 else "#1c1f23"
            axes.text(x + 0.5, y + 0.5, text, ha="center", va="center", color=colour, fontsize="small")
    axes.set_xticks([x + 0.5 for x in range(len(columns))], columns)
    axes.set_yticks([y + 0.5 for y in range(len(rows))], rows)
    axes.set_xlim(0, max(1, len(columns)))
    axes.set_ylim(max(1, len(rows)), 0)
    axes.tick_params(length=0, colors=_SOFT)
    for spine in axes.spines.values():
        spine.set_visible(False)


def _percent(share: float) -> str:
    if 0 < share < 0.0005:
        return "<0.1%"
    return f"{100 * share:.1f}%" if share < 0.0995 else f"{100 * share:.0f}%"
