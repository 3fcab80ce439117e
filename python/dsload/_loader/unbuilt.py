"""What a loader does with a server of text that is still being built: read it in order, or wait for the end of the
build and say so."""

from __future__ import annotations

import sys
import time
from typing import Any

from .._building.bar import is_shown
from .._query import Query

_POLL_SECONDS = 0.2
_SAY_AFTER = 2  # polls: a build that is about to end needs no message


def can_stream(query: Query) -> bool:
    """Reports whether the batches of a query depend on nothing but the rows before them."""
    return (
        query.shuffle == "none" and not query.bucket and query.balance == "none" and not query.packed and not query.mix
    )


class Waiting:
    """A wait for the end of a build. It says on stderr what it waits for; on a terminal and in notebooks it also shows
    the rows so far."""

    def __init__(self, source: str) -> None:
        self._source = source
        self._polls = 0
        self._drawn = False
        self._rows = 0

    def note(self, building: dict[str, Any]) -> None:
        """Takes what the server says of the build."""
        self._source = str(building.get("source", self._source))
        rows = building.get("rows")
        self._rows = sum(n for n in rows.values() if isinstance(n, int)) if isinstance(rows, dict) else 0

    def wait(self) -> None:
        self._polls += 1
        if self._polls == _SAY_AFTER:
            print(
                f"waiting for {self._source}, which is still being built: only its first epoch with shuffle='none' can "
                "be read before that",
                file=sys.stderr,
                flush=True,
            )
        if self._polls > _SAY_AFTER and is_shown():
            sys.stderr.write(f"\r{self._rows:,} rows so far")
            sys.stderr.flush()
            self._drawn = True
        time.sleep(_POLL_SECONDS)

    def close(self) -> None:
        """Ends the line."""
        if self._drawn:
            sys.stderr.write("\n")
