"""The state of a Loader's iteration: a few integers that JSON can hold, the same on every rank."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Optional

from .._query import Query

_VERSION = 1
_MAX_ROW = 1 << 60  # as on the server
_ORDER = ("split", "shuffle", "seed", "bucket", "group", "pack", "max_length", "mix")


def _order(query: Query) -> dict[str, Any]:
    return {name: getattr(query, name) for name in _ORDER}


def state_at(start: int, rows: int, fingerprint: str, query: Query, served: list[str]) -> dict[str, Any]:
    """The state of an iteration whose next step begins at the row `start`. served: the names of the datasets, where
    their order decides that of the rows."""
    state = {"version": _VERSION, "start": start, "rows": rows, "dataset": fingerprint, "order": _order(query)}
    return {**state, "served": served} if served else state


def start_of(state: Mapping[str, Any], rows: int, fingerprint: str, query: Query, served: list[str]) -> int:
    """The row at which a state continues. Raises ValueError, naming what differs, if it belongs to another dataset or
    order. served: as for state_at."""
    order = state.get("order")
    if isinstance(order, Mapping) and order.get("split") != query.split:
        raise _other("split", order, query)
    if state.get("dataset") != fingerprint or state.get("rows") != rows:
        taken = ", ".join(str(state.get(name))[:8] for name in ("dataset", "rows"))
        raise ValueError(
            f"the state was taken on another dataset ({taken} rows), not on this one ({fingerprint[:8]}, {rows} rows): "
            "open that one, or begin without the state"
        )
    start = _start(state, query)
    before = state.get("served")
    if isinstance(before, list) and before != served and sorted(map(str, before)) == sorted(served):
        raise ValueError(
            f"the state was taken with the datasets in the order {', '.join(map(str, before))}, this loader has "
            f"{', '.join(served)}: where no mix names each of them, their order decides that of the rows; name them in "
            "the order of the state"
        )
    return start


def end_of(state: Mapping[str, Any], start: int, rows: int) -> Optional[int]:
    """The row where the iteration of a state ends; None if the state does not say so."""
    end = state.get("end")
    if end is not None and (
        isinstance(end, bool) or not isinstance(end, int) or not start < end <= _MAX_ROW or end % rows
    ):
        raise ValueError(f"not a state of this loader: its iteration ends at {str(end)[:40]}")
    return end


def check(state: Any) -> None:
    """Raises ValueError for what is not a state at all."""
    if not isinstance(state, Mapping):
        raise ValueError(f"not a state of this loader: it is of type {type(state).__name__}")
    if "version" not in state:
        keys = ", ".join(repr(key)[:40] for key in list(state)[:4]) or "none"
        raise ValueError(
            f"not a state of this loader: no version among its keys ({keys}); load what state_dict() returned"
        )
    if state.get("version") != _VERSION:
        raise ValueError(f"not a state of this loader: version {state.get('version')!r}")


def _start(state: Mapping[str, Any], query: Query) -> int:
    order, start = state.get("order"), state.get("start")
    if not isinstance(order, Mapping):
        raise ValueError("not a state of this loader: its order is missing")
    if isinstance(start, bool) or not isinstance(start, int) or not 0 <= start <= _MAX_ROW:
        raise ValueError(f"not a state of this loader: it starts at {str(start)[:40]}")
    for name in _ORDER:
        if order.get(name) != getattr(query, name):
            raise _other(name, order, query)
    return start


def _other(name: str, order: Mapping[str, Any], query: Query) -> ValueError:
    return ValueError(f"the state was taken with {name}={order.get(name)!r}, this loader has {getattr(query, name)!r}")
