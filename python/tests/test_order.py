"""The Python order, and how it is dealt, against the files that the server's tests write."""

from __future__ import annotations

import itertools
import json
from typing import Any

import numpy as np
import pytest
from conftest import REPOSITORY

from dsload._order import order as orders
from dsload._order.order import I64, Order, StepOptions, steps
from dsload._order.packing import Packed, PackOptions, packed_steps

TESTDATA = REPOSITORY / "testdata"


def made_up_lengths(sources: I64, rows: I64) -> I64:
    mixed = orders._mix64_array(rows.astype(np.uint64) << np.uint64(8) | sources.astype(np.uint64))
    return (np.uint64(1) + mixed % np.uint64(97)).astype(np.int64)


CASES: list[dict[str, Any]] = json.loads((TESTDATA / "order.json").read_text())
STEPS: list[dict[str, Any]] = json.loads((TESTDATA / "steps.json").read_text())


def order_of(case: dict[str, Any]) -> Order:
    assert case["lengths"] == "1 + mix64(row<<8 | source) % 97"
    changes = [(c["At"], c["Weights"]) for c in case["changes"] or ()]
    names = ("shuffle", "seed", "bucket", "group")
    return Order(
        case["rows"], weights=case["weights"], changes=changes, lengths=made_up_lengths, **{n: case[n] for n in names}
    )


@pytest.mark.parametrize("case", CASES, ids=lambda c: f"{c['shuffle']}-{sum(c['rows'])}-{c['bucket']}-{c['start']}")
def test_golden_order(case: dict[str, Any]) -> None:
    order = order_of(case)
    sources, rows = order.at(case["start"], len(case["row"]))
    assert sources.tolist() == case["source"] and rows.tolist() == case["row"]
    for i in (0, 7, 31):
        s, r = order.at(case["start"] + i, 5)
        assert r.tolist() == case["row"][i : i + 5] and s.tolist() == case["source"][i : i + 5], "from anywhere"


def dealt(case: dict[str, Any], rank: int) -> dict[str, Any]:
    """What a rank gets, as internal/serve/sampler/golden_test.go writes it down."""
    names = (
        "batch_size",
        "max_tokens",
        "pad_to_multiple_of",
        "fixed_length",
        "world",
        "tail",
        "balance",
        "epochs",
        "start",
    )
    options = StepOptions(rank=rank, **{n: case[n] for n in names})
    order, got = order_of(case["order"]), {"steps": 0, "error": "", "sum": 0}
    stream: Any
    if case["policy"]:
        pack = PackOptions(case["policy"], case["length"], case["tokens"], 97)
        stream = packed_steps(Packed(order, pack, made_up_lengths), options)
    else:
        stream = steps(order, options, made_up_lengths)
    try:
        for step in stream:
            got["steps"] += 1
            numbers = [step.next, len(step.positions)]
            for i, position in enumerate(step.positions.tolist()):
                pieces = (
                    [len(step.pieces[i]), *itertools.chain(*step.pieces[i])]
                    if case["policy"]
                    else (step.sources[i], step.rows[i])
                )
                numbers += [position, *pieces]
            for n in numbers:
                got["sum"] = orders._fold(got["sum"], int(n) & orders._MASK)
    except orders.EmptyEpoch:
        got["error"] = "empty"
    except orders.TooLong:
        got["error"] = "too long"
    return got


def test_golden_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every tail, balance, packing and kind of budget is dealt to each rank as by the server."""
    monkeypatch.setattr(orders, "_RUN", 64)  # the epochs are short
    for n, case in enumerate(STEPS):
        assert [dealt(case, rank) for rank in range(case["world"])] == case["ranks"], f"case {n}: {case}"
    for name, values in (("tail", 4), ("balance", 3), ("policy", 4)):
        assert len({case[name] for case in STEPS}) == values


@pytest.mark.parametrize("shuffle", ["full", "block", "none"])
@pytest.mark.parametrize("rows", [1, 2, 3, 255, 256, 257, 1000, 5000])
def test_an_epoch_is_every_row_once(shuffle: str, rows: int) -> None:
    order = Order([rows], shuffle=shuffle, seed=9)
    for epoch in range(3):
        assert sorted(order.at(epoch * rows, rows)[1].tolist()) == list(range(rows))
