"""A build's progress on a single redrawn line, on a terminal and in notebooks."""

from __future__ import annotations

import shutil
import sys
from typing import Any

_BAR = 24


def is_shown() -> bool:
    """Reports whether stderr is a terminal or shown by a notebook."""
    stderr = sys.stderr
    return bool(stderr is not None and stderr.isatty()) or _in_notebook()


def _in_notebook() -> bool:
    module = sys.modules.get("IPython")
    shell = module.get_ipython() if module is not None else None
    return type(shell).__name__ == "ZMQInteractiveShell"


class Bar:
    """Draws the progress objects that `dsload build --progress json` writes."""

    def __init__(self) -> None:
        self._drawn = 0

    def __call__(self, progress: dict[str, Any]) -> None:
        columns = max(shutil.get_terminal_size().columns, 20)
        text = line(progress, columns - 1)
        sys.stderr.write("\r" + text.ljust(min(self._drawn, columns - 1)))
        sys.stderr.flush()
        self._drawn = len(text)

    def close(self) -> None:
        """Ends the line."""
        if self._drawn:
            sys.stderr.write("\n")
            sys.stderr.flush()
            self._drawn = 0


def line(progress: dict[str, Any], columns: int) -> str:
    """A progress object as a line of at most this many columns: its parts from the left, and the bar if it fits."""
    parts = []
    fraction = progress.get("fraction")
    known = isinstance(fraction, (int, float)) and fraction > 0
    if known:
        parts.append(f"{min(float(fraction), 1.0):4.0%}")  # type: ignore[arg-type]
    parts.append(f"{_number(progress.get('examples'))} examples")
    parts.append(f"{_number(progress.get('tokens'))} tokens")
    if isinstance(progress.get("mb_per_s"), (int, float)):
        parts.append(f"{progress['mb_per_s']:.1f} MB/s")
    if isinstance(progress.get("rss_bytes"), int):
        parts.append(f"{progress['rss_bytes'] / (1 << 20):.0f}MiB")
    while len(parts) > 1 and len("  ".join(parts)) > columns:
        parts.pop()
    text = "  ".join(parts)
    if known and len(text) + _BAR + 3 <= columns:
        full = int(min(float(fraction), 1.0) * _BAR)  # type: ignore[arg-type]
        text = "[" + "=" * full + " " * (_BAR - full) + "] " + text
    return text[:columns]


def _number(value: Any) -> str:
    return f"{value:,}" if isinstance(value, int) else "?"
