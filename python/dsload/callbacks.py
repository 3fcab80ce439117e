"""Reporting a run: a progress bar, Weights & Biases, MLflow, and webhooks that Discord understands.

Each callback is called with a dict of numbers, `callback({"step": 10, "loss": 3.2})`, and closed at the end. Secrets
come only from the environment (WANDB_API_KEY, MLFLOW_TRACKING_TOKEN, DSLOAD_WEBHOOK_URL): no function takes one, and no
message, error or repr shows one. A report that cannot be delivered never stops a run: it is dropped, with one warning.
"""

from __future__ import annotations

import json
import os
import sys
import threading
import time
import urllib.error
import urllib.request
import warnings
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Optional, TypeVar

from ._secrets import without_secrets

T = TypeVar("T")

WEBHOOK_VARIABLE = "DSLOAD_WEBHOOK_URL"
WANDB_VARIABLE = "WANDB_API_KEY"
_MAX_CONTENT = 2000  # Discord's limit for a message


def progress(
    batches: Iterable[T], *, total: Optional[int] = None, description: str = "", every: float = 10.0
) -> Iterator[T]:
    """Yields the batches and shows progress: with tqdm's bar if it is installed, else with a line on stderr every
    `every` seconds.

    total: number of batches; by default len(batches), if known.
    """
    if total is None:
        try:
            total = len(batches)  # type: ignore[arg-type]
        except TypeError:
            total = None
    try:
        from tqdm import tqdm
    except ImportError:
        yield from _lines(batches, total, description, every)
        return
    yield from tqdm(batches, total=total, desc=description or None, unit="batch")


def _lines(batches: Iterable[T], total: Optional[int], description: str, every: float) -> Iterator[T]:
    start = last = time.monotonic()
    done = 0
    for done, batch in enumerate(batches, 1):
        yield batch
        now = time.monotonic()
        if now - last >= every:
            last = now
            _line(description, done, total, now - start)
    _line(description, done, total, time.monotonic() - start)


def _line(description: str, done: int, total: Optional[int], seconds: float) -> None:
    of = f"/{total}" if total is not None else ""
    print(
        f"{description + ': ' if description else ''}{done}{of} batches, {done / max(seconds, 1e-9):.1f}/s",
        file=sys.stderr,
    )


class Webhook:
    """Posts numbers to the URL in DSLOAD_WEBHOOK_URL as {"content": "…"}, the form that Discord and compatible services
    take.

    Posting happens in its own thread, at most once every `every` seconds; of the reports in between, the last is sent.
    `close` sends a waiting report.

    Args:
        name: precedes the numbers. every: minimum seconds between posts. timeout: maximum seconds of a post.

    Raises:
        KeyError: if DSLOAD_WEBHOOK_URL is not set. ValueError: if it is not an https URL (http is accepted for
            localhost).
    """

    def __init__(self, name: str = "dsload", *, every: float = 30.0, timeout: float = 10.0) -> None:
        self._url = _secret_url()
        self._name, self._every, self._timeout = name, every, timeout
        self._waiting: Optional[str] = None
        self._closing = False
        self._warned = False
        self._changed = threading.Condition()
        self._thread = threading.Thread(target=self._run, name="dsload-webhook", daemon=True)
        self._thread.start()

    def __call__(self, numbers: Mapping[str, Any]) -> None:
        text = f"{self._name}: " + ", ".join(f"{k} {_short(v)}" for k, v in numbers.items())
        with self._changed:
            self._waiting = text[:_MAX_CONTENT]
            self._changed.notify()

    def close(self) -> None:
        """Sends a waiting report and ends the thread."""
        with self._changed:
            self._closing = True
            self._changed.notify()
        self._thread.join(2 * self._timeout)

    def _run(self) -> None:
        while True:
            with self._changed:
                while self._waiting is None and not self._closing:
                    self._changed.wait()
                text, self._waiting = self._waiting, None
                if text is None:
                    return
            self._post(text)
            with self._changed:
                if not self._closing:
                    self._changed.wait_for(lambda: self._closing, self._every)

    def _post(self, text: str) -> None:
        body = json.dumps({"content": text, "allowed_mentions": {"parse": []}}).encode()
        request = urllib.request.Request(self._url, body, {"Content-Type": "application/json", "User-Agent": "dsload"})
        try:
            with urllib.request.urlopen(request, timeout=self._timeout):
                pass
        except urllib.error.HTTPError as error:
            self._complain(f"status {error.code}")
            error.close()
        except OSError as error:
            # The error's own text may contain the URL, which is the secret.
            self._complain(type(error).__name__)

    def _complain(self, why: str) -> None:
        if not self._warned:
            self._warned = True
            warnings.warn(
                f"a webhook could not be delivered ({why}); further failures are not reported",
                RuntimeWarning,
                stacklevel=2,
            )

    def __repr__(self) -> str:
        return f"Webhook({self._name!r})"


def _secret_url() -> str:
    url = os.environ.get(WEBHOOK_VARIABLE)
    if not url:
        raise KeyError(f"{WEBHOOK_VARIABLE} is not set: it holds the webhook's https URL")
    local = url.startswith(("http://localhost:", "http://127.0.0.1:", "http://[::1]:"))
    if not url.startswith("https://") and not local:
        raise ValueError(f"{WEBHOOK_VARIABLE} must hold an https URL")
    return url


def _short(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)


class WandB:
    """Logs numbers to Weights & Biases; the key is read by wandb from WANDB_API_KEY (or an earlier `wandb login`).

    Args:
        project, name, config: as wandb.init takes them; secrets in `config` are removed (`without_secrets`).
        offline: keep the run on this machine.

    Raises:
        ImportError: if wandb is not installed.
    """

    def __init__(
        self,
        project: str,
        *,
        name: Optional[str] = None,
        config: Optional[Mapping[str, Any]] = None,
        offline: bool = False,
    ) -> None:
        import wandb

        mode = "offline" if offline else None
        self._run = wandb.init(project=project, name=name, config=without_secrets(config or {}), mode=mode)

    def __call__(self, numbers: Mapping[str, Any]) -> None:
        rest = {k: v for k, v in numbers.items() if k != "step"}
        self._run.log(rest, step=numbers.get("step"))

    def close(self) -> None:
        self._run.finish()


class MLflow:
    """Logs numbers to MLflow; mlflow reads server and credentials from its variables (MLFLOW_TRACKING_URI,
    MLFLOW_TRACKING_TOKEN, …).

    An active run is used, and stays active after `close`.

    Args:
        experiment: its name; None for mlflow's current one. name: of the run. params: secrets in them are removed
            (`without_secrets`).

    Raises:
        ImportError: if mlflow is not installed.
    """

    def __init__(
        self,
        experiment: Optional[str] = None,
        *,
        name: Optional[str] = None,
        params: Optional[Mapping[str, Any]] = None,
    ) -> None:
        import mlflow

        self._mlflow = mlflow
        self._owned = mlflow.active_run() is None
        if self._owned:
            if experiment is not None:
                mlflow.set_experiment(experiment)
            mlflow.start_run(run_name=name)
        self._run_id = mlflow.active_run().info.run_id
        if params:
            mlflow.log_params(without_secrets(params))

    def __call__(self, numbers: Mapping[str, Any]) -> None:
        figures = {k: float(v) for k, v in numbers.items() if k != "step" and isinstance(v, (int, float))}
        # By its id, since a run is active only in the thread that started it.
        self._mlflow.log_metrics(figures, step=numbers.get("step"), run_id=self._run_id)

    def close(self) -> None:
        if self._owned:
            self._mlflow.end_run()

    def __repr__(self) -> str:
        return "MLflow()"


class Several:
    """Calls several callbacks. One that fails is dropped with a warning; the others and the run continue."""

    def __init__(self, *callbacks: Any) -> None:
        self._callbacks = list(callbacks)

    def __call__(self, numbers: Mapping[str, Any]) -> None:
        for callback in list(self._callbacks):
            try:
                callback(numbers)
            except Exception as error:  # a report must not end a training run
                self._callbacks.remove(callback)
                warnings.warn(
                    f"{callback!r} failed with {type(error).__name__} and is dropped", RuntimeWarning, stacklevel=2
                )

    def close(self) -> None:
        for callback in self._callbacks:
            if hasattr(callback, "close"):
                callback.close()
