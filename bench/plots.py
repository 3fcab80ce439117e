"""Two kinds of plots as SVG, which can be read on a light and on a dark page."""

from __future__ import annotations

from html import escape

STYLE = """<style>
text { font: 13px system-ui, sans-serif; fill: #333 } .title { font-weight: 600 } .ours { fill: #00897b } .peer { fill: #90a4ae }
.line { fill: none; stroke: #00897b; stroke-width: 2 } .axis { stroke: #90a4ae }
@media (prefers-color-scheme: dark) { text { fill: #ddd } .ours { fill: #4db6ac } .peer { fill: #607d8b } .line { stroke: #4db6ac } .axis { stroke: #607d8b } }
</style>"""


def svg(width: int, height: int, parts: list[str]) -> str:
    return f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}">\n' + "\n".join([STYLE, *parts]) + "\n</svg>\n"


def number(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def bars(title: str, values: dict[str, float]) -> str:
    """A bar for each tool; dsload's has its own colour."""
    parts, most = [f'<text class="title" x="8" y="20">{escape(title)}</text>'], max(values.values(), default=1) or 1
    for k, (name, value) in enumerate(values.items()):
        y, length = 34 + 26 * k, 380 * value / most
        kind = "ours" if name == "dsload" else "peer"
        parts.append(f'<text x="212" y="{y + 14}" text-anchor="end">{escape(name)}</text><rect class="{kind}" x="220" y="{y}" width="{max(1, length):.1f}" height="18" rx="2"/>'
                     f'<text x="{226 + length:.1f}" y="{y + 14}">{number(value)}</text>')  # fmt: skip
    return svg(680, 44 + 26 * len(values), parts)


def lines(panels: list[tuple[str, dict[str, float]]]) -> str:
    """Curves beside each other, each over the same evenly spaced points and from zero."""
    parts = []
    for k, (title, values) in enumerate(panels):
        left, most = 20 + 350 * k, max(values.values(), default=1) or 1
        step = 300 / max(1, len(values) - 1)
        points = [(left + 15 + step * i, 150 - 100 * value / most) for i, value in enumerate(values.values())]
        parts.append(f'<text class="title" x="{left}" y="20">{escape(title)}</text><path class="axis" d="M{left} 150h330"/>')
        parts.append(f'<polyline class="line" points="{" ".join(f"{x:.1f},{y:.1f}" for x, y in points)}"/>')
        for (x, y), (name, value) in zip(points, values.items()):
            parts.append(f'<circle class="ours" cx="{x:.1f}" cy="{y:.1f}" r="3"/><text x="{x:.1f}" y="{y - 8:.1f}" text-anchor="middle">{number(value)}</text>'
                         f'<text x="{x:.1f}" y="168" text-anchor="middle">{escape(name.removeprefix("trained, "))}</text>')  # fmt: skip
    return svg(20 + 350 * len(panels), 180, parts)
