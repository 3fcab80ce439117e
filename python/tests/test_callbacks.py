"""Progress and webhooks: what they send, and that secrets stay where they are."""

from __future__ import annotations

import http.server
import json
import sys
import threading
import warnings
from collections.abc import Iterator
from typing import Any

import pytest
import runs

from dsload import callbacks

SECRET = "f3d9c1-hook-secret"


@pytest.fixture
def hook(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """A webhook of our own: `posts` holds what arrived, `status` is what it answers."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            server.posts.append((self.path, json.loads(self.rfile.read(int(self.headers["Content-Length"])))))
            server.arrived.set()
            self.send_response(server.status)
            self.end_headers()

        def log_message(self, *args: Any) -> None:
            pass

    server: Any = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.posts, server.status, server.arrived = [], 204, threading.Event()
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    monkeypatch.setenv(callbacks.WEBHOOK_VARIABLE, f"http://127.0.0.1:{server.server_port}/{SECRET}")
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


def test_webhook_posts_the_last_of_what_waits(hook: Any) -> None:
    webhook = callbacks.Webhook("run 7", every=1000)
    webhook({"step": 1, "loss": 3.25})
    assert hook.arrived.wait(runs.HANGS)
    for step in range(2, 50):
        webhook({"step": step, "loss": 1.0 / 3})
    webhook.close()
    assert [body["content"] for _, body in hook.posts] == ["run 7: step 1, loss 3.25", "run 7: step 49, loss 0.3333"]
    assert all(path == "/" + SECRET and body["allowed_mentions"] == {"parse": []} for path, body in hook.posts)
    webhook.close()
    assert len(hook.posts) == 2


def test_a_webhook_that_fails_warns_once_without_its_secret(hook: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    hook.status = 500
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        webhook = callbacks.Webhook(every=0)
        for step in range(3):
            hook.arrived.clear()
            webhook({"step": step})
            assert hook.arrived.wait(runs.HANGS)
        webhook.close()
        monkeypatch.setenv(callbacks.WEBHOOK_VARIABLE, f"http://127.0.0.1:1/{SECRET}")
        dead = callbacks.Webhook(every=0, timeout=2)
        dead({"step": 1})
        dead.close()
    texts = [str(w.message) for w in caught if "webhook" in str(w.message)]
    assert len(texts) == 2 and "500" in texts[0]
    assert all(SECRET not in t for t in [*texts, repr(webhook), repr(dead)])


def test_webhook_needs_its_secret_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(callbacks.WEBHOOK_VARIABLE, raising=False)
    with pytest.raises(KeyError, match="is not set"):
        callbacks.Webhook()
    monkeypatch.setenv(callbacks.WEBHOOK_VARIABLE, f"http://example.org/{SECRET}")
    with pytest.raises(ValueError, match="https") as caught:
        callbacks.Webhook()
    assert SECRET not in str(caught.value)


def test_secrets_are_left_out_of_configs() -> None:
    config = {
        "lr": 0.1, "hf_token": "x", "tokenizer": "gpt2", "max_tokens": 5, "pad_token_id": 0, "api_key": "x",
        "inner": {"password": "x", "batch": 3},
        "Webhook_URL": "x", "wandb_secret": "x",
    }  # fmt: skip
    assert callbacks.without_secrets(config) == {
        "lr": 0.1,
        "tokenizer": "gpt2",
        "max_tokens": 5,
        "pad_token_id": 0,
        "inner": {"batch": 3},
    }


@pytest.mark.parametrize(("value", "want"), [
    ([{"api_key": SECRET, "name": "a"}], [{"name": "a"}]),
    ({"runs": ({"inner": [{"hf_token": SECRET}]},)}, {"runs": ({"inner": [{}]},)}),
    ([["password", SECRET], ("rows", 4)], [["password", "***"], ("rows", 4)]),
    (["train.py", "--token", SECRET, "--lr", "0.1", f"--api-key={SECRET}"], ["train.py", "--token", "***", "--lr",
        "0.1", "--api-key=***"]),
    (f"https://me:{SECRET}@example.org/data?rows=3", "https://***@example.org/data?rows=3"),
    (f"git+https://{SECRET}@github.com/a/b", "git+https://***@github.com/a/b"),
    (f"see s3://b/k?X-Amz-Signature={SECRET}&part=1 first", "see s3://b/k?X-Amz-Signature=***&part=1 first"),
    (f"https://x.org/cb#access_token={SECRET}", "https://x.org/cb#access_token=***"),
    ([f"https://discord.com/api/webhooks/12/{SECRET}"], ["https://discord.com/api/webhooks/***"]),
    (f"https://hooks.slack.com/services/T0/{SECRET}", "https://hooks.slack.com/services/***"),
    ("Authorization: Bearer abcdef", "Authorization: Bearer ***"),
    (["hf_" + "a" * 30], ["***"]),
    ({"num_key_value_heads": 8, "max_tokens": 5, "eos_token": "</s>", "additional_special_tokens": ["<a>"],
      "tokenizer": "gpt2", "keys": 3},
     {"num_key_value_heads": 8, "max_tokens": 5, "eos_token": "</s>", "additional_special_tokens": ["<a>"],
      "tokenizer": "gpt2", "keys": 3}),
    ({"tokenizer_api_key": SECRET, "apiKey": SECRET, "dbPassword": 1234, "hf_tokens": [SECRET], "pass_word": SECRET},
        {}),
    ("https://example.org/a?b=c@d#e", "https://example.org/a?b=c@d#e"),
])  # fmt: skip
def test_secrets_in_lists_and_urls(value: Any, want: Any) -> None:
    assert callbacks.without_secrets({"x": value}) == {"x": want}


def test_secrets_of_settings_are_not_recorded(tmp_path: Any) -> None:
    from dsload.memory import MemoryRecorder

    class Meter:
        def read(self) -> Any:
            from dsload.memory import DeviceMemory

            return DeviceMemory(1, 1)

    with MemoryRecorder(tmp_path / "r.jsonl", meter=Meter(), settings={"rows": 3, "args": ["--hf-token", SECRET]}):
        pass
    text = (tmp_path / "r.jsonl").read_text()
    assert SECRET not in text and '"rows":3' in text


def test_wandb_gets_numbers_and_no_secrets(monkeypatch: pytest.MonkeyPatch) -> None:
    """Against a recorder of wandb's three calls: the service itself cannot be reached from a test."""
    calls: list[Any] = []

    class Run:
        def log(self, numbers: Any, step: Any = None) -> None:
            calls.append(("log", numbers, step))

        def finish(self) -> None:
            calls.append(("finish",))

    class Module:
        @staticmethod
        def init(**options: Any) -> Run:
            calls.append(("init", options))
            return Run()

    monkeypatch.setitem(sys.modules, "wandb", Module)  # type: ignore[misc]
    log = callbacks.WandB("project", name="n", config={"lr": 1, "token": SECRET}, offline=True)
    log({"step": 3, "loss": 2.0})
    log.close()
    assert calls == [
        ("init", {"project": "project", "name": "n", "config": {"lr": 1}, "mode": "offline"}),
        ("log", {"loss": 2.0}, 3),
        ("finish",),
    ]


def test_a_callback_that_fails_does_not_stop_the_others() -> None:
    got: list[Any] = []

    def broken(numbers: Any) -> None:
        raise OSError("no network")

    several = callbacks.Several(broken, got.append)
    with pytest.warns(RuntimeWarning, match="OSError"):
        several({"step": 1})
    several({"step": 2})
    several.close()
    assert got == [{"step": 1}, {"step": 2}]


def test_progress_yields_everything(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    assert list(callbacks.progress(range(5), description="d")) == list(range(5))
    monkeypatch.setitem(sys.modules, "tqdm", None)
    capsys.readouterr()
    assert list(callbacks.progress(iter(range(3)), description="epoch 1")) == [0, 1, 2]
    assert "epoch 1: 3 batches" in capsys.readouterr().err
    assert list(callbacks.progress([1, 2], every=0)) == [1, 2]
    assert "2/2 batches" in capsys.readouterr().err
