"""Writes docs/benchmarks/index.md and its plots from the JSON files next to it, and from nothing else:

    python bench/page.py [docs/benchmarks]
"""

from __future__ import annotations

import json
import pathlib
import re
import sys
import textwrap

import plots

# Of each work: its title, and its figures as name, unit, whether more is better, and a divisor.
FIGURES = {
    "tokenizers": ("Tokenizing", [("cold", "MB per CPU-second, first pass", True, 1), ("warm", "MB per CPU-second, later passes", True, 1), ("peak_bytes", "peak MB", False, 1e6)]),
    "builders": ("Building a dataset", [("cpu_s", "CPU-seconds", False, 1), ("peak_bytes", "peak MB", False, 1e6)]),
    "loaders": ("Loading batches", [("cpu_us", "CPU µs a row", False, 1), ("first_batch_ms", "ms to the first batch", False, 1), ("peak_bytes", "peak MB", False, 1e6)]),
    "resume": ("Resuming", [("first_batch_ms", "ms to the first batch", False, 1)]),
    "near": ("Near-duplicates", [("cpu_s", "CPU-seconds", False, 1), ("peak_bytes", "peak MB", False, 1e6)]),
    "scaling": ("Scaling", [("mb_per_cpu_s", "MB per CPU-second", True, 1), ("peak_bytes", "peak MB", False, 1e6)]),
}
INTRO = """# Benchmarks

dsload and other tools at the same work, in one run: the same text, rounds and warm-up for all,
fresh processes, one thread on one core each. A tool's ids must equal dsload's before its speed
counts. Figures are medians, with the least and the most in brackets. CPU time and memory (PSS) are
those of all processes of a tool. `make bench` measures anew and writes this page and its JSON;
`make bench QUICK=1` takes minutes. [What each part does](../../bench/README.md) is described with
the harness; [figures.md](../figures.md) has other figures, and [long runs](long.md) those of hours.
"""


def number(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def slug(*words: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", " ".join(words).lower()).strip("-")


def cell(figure: dict | None, divisor: float) -> str:
    if figure is None:
        return ""
    median, least, most = (number(figure[k] / divisor) for k in ("median", "least", "most"))
    return f"{median} ({least} to {most})"


def verdict(tools: dict[str, dict], figures: list) -> list[str]:
    """A sentence for each figure: who is ahead, by medians. "ahead" of noise is for the reader, who sees the spread."""
    found = []
    for name, unit, more, _ in figures:
        medians = {tool: f[name]["median"] for tool, f in tools.items() if name in f}
        if "dsload" not in medians or len(medians) < 2:
            continue
        ahead = [tool for tool, value in medians.items() if tool != "dsload" and (value > medians["dsload"]) == more and value != medians["dsload"]]
        if ahead:
            found.append(f"**{', '.join(ahead)}** {'is' if len(ahead) == 1 else 'are'} better than dsload in {unit}.")
        else:
            others = {tool: value for tool, value in medians.items() if tool != "dsload"}
            best = (max if more else min)(others, key=lambda tool: others[tool])
            ratio = medians["dsload"] / others[best] if more else others[best] / medians["dsload"]
            found.append(f"dsload leads in {unit}, {ratio:.1f} times ahead of {best}.")
    return found


def compared(work: dict, title: str, tools: dict[str, dict], figures: list, folder: pathlib.Path) -> list[str]:
    name, unit, more, divisor = figures[0]
    measured = {tool: f for tool, f in tools.items() if name in f}
    file = slug(work["work"], title) + ".svg"
    chart = plots.bars(f"{unit} ({'more' if more else 'less'} is better)", {tool: f[name]["median"] / divisor for tool, f in measured.items()})
    (folder / file).write_text(chart, encoding="utf-8")
    lines = [f"### {title[0].upper() + title[1:]}", "", f"![{title}: {unit}]({file})", ""]
    lines += ["| tool | " + " | ".join(unit for _, unit, _, _ in figures) + " |", "| --- |" + " --- |" * len(figures)]
    for tool, found in measured.items():
        version = found.get("version") or work["peers"].get(tool.partition(".")[0]) or work["peers"].get({"mosaicml": "mosaicml-streaming"}.get(tool, ""))
        label = tool + (f" {version}" if version and not tool.endswith("1.0") else "")
        if tool.endswith(" 1.0"):
            label = tool.removesuffix(" 1.0") + " " + work["peers"]["tokenizers 1.0"]
        lines.append(f"| {label} | " + " | ".join(cell(found.get(n), d) for n, _, _, d in figures) + " |")
    lines += ["", *verdict(measured, figures), ""]
    if work["work"] == "near":
        lines += ["Of them stay: " + ", ".join(f"{f['kept']:,} with {tool}" for tool, f in measured.items()) + "; MinHash estimates, so a few may differ.", ""]
    if absent := [f"{tool} ({f['missing']})" for tool, f in tools.items() if "missing" in f]:
        lines += ["Not measured: " + "; ".join(absent) + ".", ""]
    return lines


def against_best(tables: dict[str, dict[str, dict]], figures: list) -> list[str]:
    """A table over all tables of a work: dsload against the best of the others, above 1 where dsload is ahead."""
    named = [(name, unit, more) for name, unit, more, _ in figures]
    lines = ["Against the best of the others, above 1 where dsload is ahead:", "",
             "| | " + " | ".join(unit for _, unit, _ in named) + " |", "| --- |" + " --- |" * len(named)]  # fmt: skip
    for title, tools in tables.items():
        row = []
        for name, _, more in named:
            medians = {tool: f[name]["median"] for tool, f in tools.items() if name in f}
            ours = medians.pop("dsload", 0)
            if not ours or not medians:
                row.append("")
                continue
            best = (max if more else min)(medians, key=lambda tool: medians[tool])
            row.append(f"{ours / medians[best] if more else medians[best] / ours:.1f} ({best})")
        lines.append(f"| {title} | " + " | ".join(row) + " |")
    return [*lines, ""]


def curve(title: str, points: dict[str, dict], figures: list, folder: pathlib.Path) -> list[str]:
    file = slug("scaling", title) + ".svg"
    (folder / file).write_text(plots.lines([(unit, {x: p[name] / divisor for x, p in points.items()}) for name, unit, _, divisor in figures]), encoding="utf-8")
    lines = [f"### By {title}", "", f"![Builds by {title}]({file})", "", f"| {title} | MB per CPU-second | MB/s | peak MB |", "| --- | --- | --- | --- |"]
    lines += [f"| {x} | {number(p['mb_per_cpu_s'])} | {number(p['mb_per_s'])} | {number(p['peak_bytes'] / 1e6)} |" for x, p in points.items()]
    return [*lines, ""]


def wrapped(line: str) -> str:
    """A line of prose as lines of at most 100 columns; tables and images cannot be wrapped."""
    if line.startswith(("|", "!", "#")):
        return line
    return textwrap.fill(line, 100, break_long_words=False, break_on_hyphens=False)


def write(folder: pathlib.Path) -> None:
    for plot in folder.glob("*.svg"):  # of parts that have another name now
        plot.unlink(missing_ok=True)
    lines: list[str] = []
    for name, (title, figures) in FIGURES.items():
        path = folder / f"{name}.json"
        if not path.exists():
            continue
        work = json.loads(path.read_text(encoding="utf-8"))
        m = work["machine"]
        lines += [f"## {title}", "", work["does"], ""]
        quick = "The quick form, with little text and few rounds: a start and a load weigh more than in the whole one. " if work["quick"] else ""
        lines += [f"{quick}{work['date']}, commit {work['commit']}, {m['processor']}, {m['cores']} cores with a load of {m['load']}, {work['rounds']} round{'s' * (work['rounds'] > 1)}.", ""]
        if name == "tokenizers":
            lines += against_best(work["tables"], figures)
        for part, tools in work["tables"].items():
            lines += curve(part, tools, figures, folder) if name == "scaling" else compared(work, part, tools, figures, folder)
    (folder / "index.md").write_text("\n".join([INTRO, *map(wrapped, lines)]).rstrip() + "\n", encoding="utf-8")


if __name__ == "__main__":
    write(pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).resolve().parents[1] / "docs/benchmarks"))
