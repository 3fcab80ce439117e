"""Figures of the feed and of memory: what is counted, and that reporting never holds a run up."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from dsload import callbacks, figures
from dsload.figures import FeedFigures, reported


def batches(n: int) -> Iterator[dict[str, Any]]:
    for k in range(n):
        yield {
            "input_ids": np.zeros((4, 10), np.int64),
            "length": np.array([10, 5, 5, 4], np.int32),
            "next": np.full(4, 4 * k + 4),
        }


def test_figures_are_those_of_the_batches() -> None:
    got: list[dict[str, float]] = []
    assert len(list(reported(batches(25), got.append, every=1e9, first_step=100))) == 25
    (figures,) = got
    assert figures["step"] == 125
    assert figures["dsload/row"] == 100
    assert figures["dsload/padding_efficiency"] == pytest.approx(0.6)
    assert figures["dsload/tokens_per_s"] == pytest.approx(6 * figures["dsload/rows_per_s"])
    assert 0 <= figures["dsload/waiting"] <= 1
    assert figures["dsload/rss_bytes"] > 1 << 20
    assert not any(name.endswith("allocated_bytes") for name in figures)


def test_reports_come_while_the_run_goes_on() -> None:
    got: list[dict[str, float]] = []
    for k, _ in enumerate(reported(batches(1000), got.append, every=0)):
        if k > 2:
            while not got:
                time.sleep(0.01)
            break
    assert got[0]["step"] >= 1


def test_waiting_is_the_share_of_time_without_a_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 0.0
    monkeypatch.setattr(figures, "time", SimpleNamespace(monotonic=lambda: now))

    def slow() -> Iterator[dict[str, Any]]:
        nonlocal now
        for batch in batches(3):
            now += 3
            yield batch

    found = FeedFigures()
    for _ in found.watch(slow()):
        now += 1
    assert found.read(3, "")["waiting"] == 0.75
    assert found.read(3, "")["rows_per_s"] == 0


def test_a_callback_that_hangs_or_fails_holds_nothing_up(monkeypatch: pytest.MonkeyPatch) -> None:
    release = threading.Event()
    with monkeypatch.context() as hanging:
        hanging.setattr(figures, "_CLOSE_SECONDS", 0.2)
        try:
            assert len(list(reported(batches(100), lambda _: release.wait(), every=0))) == 100
        finally:
            release.set()

    def broken(_: Any) -> None:
        raise OSError("no network")

    got: list[Any] = []
    with pytest.warns(RuntimeWarning, match="OSError"):
        assert len(list(reported(batches(100), broken, got.append, every=0))) == 100
    assert got


def test_batches_of_any_kind_pass() -> None:
    got: list[dict[str, float]] = []
    assert list(reported([1, "two", {"x": 3}], got.append)) == [1, "two", {"x": 3}]
    assert got[0]["step"] == 3 and "dsload/tokens_per_s" not in got[0]
    assert list(reported([], got.append)) == [] and len(got) == 1


def test_mlflow_gets_numbers_and_no_secrets(monkeypatch: pytest.MonkeyPatch) -> None:
    """Against a recorder of mlflow's calls; the test after this one uses mlflow itself where it is installed."""
    calls: list[Any] = []

    class Run:
        class info:
            run_id = "r1"

    class Module:
        run: Any = None

        @classmethod
        def active_run(cls) -> Any:
            return cls.run

        @classmethod
        def start_run(cls, run_name: Any = None) -> None:
            cls.run = Run
            calls.append(("start", run_name))

        @staticmethod
        def set_experiment(name: str) -> None:
            calls.append(("experiment", name))

        @staticmethod
        def log_params(params: Any) -> None:
            calls.append(("params", params))

        @staticmethod
        def log_metrics(numbers: Any, step: Any = None, run_id: Any = None) -> None:
            calls.append(("metrics", numbers, step, run_id))

        @staticmethod
        def end_run() -> None:
            calls.append(("end",))

    monkeypatch.setitem(sys.modules, "mlflow", Module)  # type: ignore[misc]
    log = callbacks.MLflow("experiment", name="n", params={"lr": 1, "token": "S3cr3t"})
    log({"step": 3, "loss": 2, "note": "text"})
    log.close()
    assert calls == [
        ("experiment", "experiment"),
        ("start", "n"),
        ("params", {"lr": 1}),
        ("metrics", {"loss": 2.0}, 3, "r1"),
        ("end",),
    ]


def test_mlflow_itself(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    mlflow = pytest.importorskip("mlflow", reason="mlflow, which is optional, is not here")
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    mlflow.set_tracking_uri(tmp_path.as_uri())
    log = callbacks.MLflow("feed", params={"batch_size": 4})
    run_id = mlflow.active_run().info.run_id
    list(reported(batches(7), log, every=1e9))
    log.close()
    run = mlflow.get_run(run_id)
    assert run.data.metrics["dsload/row"] == 28 and run.data.params == {"batch_size": "4"}
