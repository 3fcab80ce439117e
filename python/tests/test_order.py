"""The Python order against the file that pins the server's."""

from __future__ import annotations

import json

import numpy as np
import numpy.typing as npt
import pytest
from conftest import REPOSITORY

from dsload._order import order as orders

GOLDEN = REPOSITORY / "testdata" / "order.json"


def made_up_lengths(sources: npt.NDArray[np.int64], rows: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    mixed = orders._mix64_array(rows.astype(np.uint64) << np.uint64(8) | sources.astype(np.uint64))
    return (np.uint64(1) + mixed % np.uint64(97)).astype(np.int64)


CASES = json.loads(GOLDEN.read_text()) if GOLDEN.exists() else []


def test_there_are_golden_orders() -> None:
    assert len(CASES) >= 10, f"{GOLDEN} is missing or empty"


@pytest.mark.parametrize("case", CASES, ids=lambda c: f"{c['shuffle']}-{sum(c['rows'])}-{c['bucket']}-{len(c['rows'])}")
def test_golden_order(case: dict) -> None:  # type: ignore[type-arg]
    assert case["lengths"] == "1 + mix64(row<<8 | source) % 97"
    order = orders.Order(
        case["rows"], weights=case["weights"], shuffle=case["shuffle"], seed=case["seed"], bucket=case["bucket"],
        group=case["group"], lengths=made_up_lengths,
    )  # fmt: skip
    sources, rows = order.at(case["start"], len(case["row"]))
    assert sources.tolist() == case["source"] and rows.tolist() == case["row"]
    for i in (0, 7, 31):
        s, r = order.at(case["start"] + i, 5)
        assert r.tolist() == case["row"][i : i + 5] and s.tolist() == case["source"][i : i + 5], "from anywhere"


@pytest.mark.parametrize("shuffle", ["full", "block", "none"])
@pytest.mark.parametrize("rows", [1, 2, 3, 255, 256, 257, 1000, 5000])
def test_an_epoch_is_every_row_once(shuffle: str, rows: int) -> None:
    order = orders.Order([rows], shuffle=shuffle, seed=9)
    for epoch in range(3):
        assert sorted(order.at(epoch * rows, rows)[1].tolist()) == list(range(rows))
