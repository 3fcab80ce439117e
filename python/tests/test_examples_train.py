"""The trainer of dsload.examples, from its command line to the saved model, with small models of both kinds."""

from __future__ import annotations

import contextlib
import http.server
import json
import os
import re
import signal
import threading
from pathlib import Path
from typing import Any

import effort
import pytest
import runs

import dsload
from dsload import callbacks, memory
from dsload.examples import train

pytest.importorskip("torch")
pytest.importorskip("transformers")

pytestmark = [pytest.mark.torch, pytest.mark.trainers, pytest.mark.server, pytest.mark.usefixtures("no_servers_left")]

EPOCHS = 40 if effort.SOAK else 4
SECRET = "c41-hook-secret"


@pytest.fixture(scope="module")
def text(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("text") / "text.jsonl"
    colours = ["red", "green", "blue", "grey"]
    with open(path, "w") as file:
        for i in range(181):  # 161 to train on: the last of an epoch makes a step alone
            body = f"the {colours[i % 4]} fox {i} runs over the hill " + "and on " * (i % 7)
            file.write(
                json.dumps({"text": body, "q": f"the {colours[i % 4]} fox {i}?", "a": "runs over the hill"}) + "\n"
            )
    return path


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory, text: Path) -> dict[str, str]:
    """A folder with a small model and its tokenizer, for each kind."""
    import models
    import tokenizers
    import transformers

    folder = tmp_path_factory.mktemp("models")
    for kind in ("gpt2", "t5"):
        words = tokenizers.Tokenizer(tokenizers.models.BPE())
        words.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
        words.decoder = tokenizers.decoders.ByteLevel()
        learn = tokenizers.trainers.BpeTrainer(vocab_size=300, special_tokens=["<pad>", "</s>"], show_progress=False)
        words.train_from_iterator(text.read_text().splitlines(), learn)
        model = getattr(models, kind)(vocab=words.get_vocab_size(), layers=1, width=16)
        model.save_pretrained(folder / kind)
        tokenizer = transformers.PreTrainedTokenizerFast(tokenizer_object=words, eos_token="</s>", pad_token="<pad>")
        tokenizer.save_pretrained(folder / kind)
    return {kind: str(folder / kind) for kind in ("gpt2", "t5")}


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory, text: Path, models: dict[str, str]) -> dict[str, str]:
    folder, options = tmp_path_factory.mktemp("data"), {"max_examples": 0, "max_val_examples": 20, "eos": True}
    dsload.build(text, out=folder / "gpt2", tokenizer=models["gpt2"], max_length=32, **options)
    asked = {"prompt": "{{ q }}", "target": "{{ a }} {{ q }}"}
    dsload.build(text, out=folder / "t5", tokenizer=models["t5"], **asked, **options)
    return {kind: str(folder / kind) for kind in ("gpt2", "t5")}


def arguments(model: str, dataset: str, out: Path, **more: Any) -> list[str]:
    flags = {"pretrained_model": model, "data": dataset, "out": out, "epochs": EPOCHS, "batch_size": 32}
    flags.update(learning_rate=0.01, log_every=1, save_every=3, record_every=1, **more)
    return ["--auto-batch-size", *(f"--{name.replace('_', '-')}={value}" for name, value in flags.items())]


def _main(
    argv: list[str], log: str, ends_at: int = 0, how: int = 0, limit: int = 0, rank: int = 0, world: int = 1
) -> None:
    """Trains in a process of its own, which prints into a file and ends with the trainer's exit code. ends_at, how: a
    signal that it gets when that step is printed. limit: bytes of the device."""
    log_step = train.Training._log

    def signalled(self: Any) -> None:
        log_step(self)
        if self.step == ends_at and rank == 0:
            os.kill(os.getpid(), how)

    train.Training._log = signalled  # type: ignore[method-assign]
    device: Any = contextlib.nullcontext()
    if limit:
        from limited_allocator import LimitedAllocator

        device = LimitedAllocator(limit)
    with open(f"{log}.{rank}" if rank else log, "a", buffering=1) as out, contextlib.redirect_stdout(out), device:
        code = train.main(argv)
    if world == 1:
        os._exit(code)


def _ranked(rank: int, world: int, argv: list[str], log: str) -> None:
    _main(argv, log, ends_at=13, how=signal.SIGTERM, rank=rank, world=world)


def run(argv: list[str], folder: Path, **more: Any) -> tuple[Any, str]:
    """(exit code, what was printed)"""
    folder.mkdir(exist_ok=True)
    log = folder / "log.txt"
    before = log.stat().st_size if log.exists() else 0
    code = runs.apart(_main_with, argv, str(log), more)
    return code, log.read_text()[before:]


def _main_with(argv: list[str], log: str, more: dict[str, Any]) -> None:
    _main(argv, log, **more)


def losses(text: str) -> list[float]:
    return [float(v) for v in re.findall(r"^step .*, loss ([\d.]+),", text, re.M)]


def weights(out: Path) -> dict[str, Any]:
    import torch
    from safetensors.torch import load_file

    found = load_file(out / "model" / "model.safetensors")
    assert all(bool(torch.isfinite(v).all()) for v in found.values())
    return found


def difference(a: dict[str, Any], b: dict[str, Any]) -> float:
    assert a.keys() == b.keys()
    return max(float((a[k] - b[k]).abs().max()) for k in a)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory, models: dict[str, str], data: dict[str, str]) -> dict[str, Any]:
    """A run of each kind that nothing disturbed: (its folder, what it printed)."""
    folder, out = tmp_path_factory.mktemp("whole"), {}
    for kind in ("gpt2", "t5"):
        code, said = run(arguments(models[kind], data[kind], folder / kind), folder / kind)
        assert code == 0, said
        out[kind] = folder / kind, said
    return out


@pytest.mark.parametrize("kind", ["gpt2", "t5"])
def test_trains_evaluates_and_saves(
    kind: str, whole: dict[str, Any], models: dict[str, str], data: dict[str, str]
) -> None:
    from transformers import AutoConfig, AutoTokenizer

    out, said = whole[kind]
    fell = losses(said)
    steps = -(-dsload.RandomAccess(data[kind]).__len__() // 32) * EPOCHS
    assert len(fell) == steps and fell[-1] < fell[0] - 0.5
    evaluated = [float(v) for v in re.findall(r"^evaluation: loss ([\d.]+), perplexity", said, re.M)]
    assert len(evaluated) == EPOCHS and evaluated[-1] < evaluated[0]
    assert difference(weights(out), _saved(models[kind])) > 0
    assert AutoConfig.from_pretrained(str(out / "model")).is_encoder_decoder == (kind == "t5")
    assert AutoTokenizer.from_pretrained(str(out / "model"))("fox").input_ids
    record = memory.analyze(out / "memory.jsonl")
    assert not [v for v in record.verdicts if v.kind == "batch_too_large"]


def _saved(folder: str) -> dict[str, Any]:
    from safetensors.torch import load_file

    return load_file(Path(folder) / "model.safetensors")


@pytest.mark.parametrize(("kind", "how"), [("gpt2", signal.SIGKILL), ("t5", signal.SIGKILL), ("gpt2", signal.SIGTERM)])
def test_resumes_as_if_it_had_not_ended(
    kind: str, how: int, tmp_path: Path, whole: dict[str, Any], models: dict[str, str], data: dict[str, str]
) -> None:
    """In the middle of an epoch, and not at a step that is saved."""
    argv = arguments(models[kind], data[kind], tmp_path)
    code, said = run(argv, tmp_path, ends_at=8, how=how)
    assert code == (train.INTERRUPTED if how == signal.SIGTERM else -how) and len(losses(said)) in (8, 9), said
    code, said = run(argv, tmp_path)
    assert code == 0 and "resumed at step" in said, said
    before = losses(whole[kind][1])
    assert losses(said) == pytest.approx(before[len(before) - len(losses(said)) :], abs=2e-4)
    assert difference(weights(tmp_path), weights(whole[kind][0])) < 1e-5
    code, said = run(argv, tmp_path)
    assert code == 0 and "raise --epochs" in said and not losses(said)


def test_out_of_memory_changes_nothing_but_the_micro_batch(
    tmp_path: Path, whole: dict[str, Any], models: dict[str, str], data: dict[str, str]
) -> None:
    code, said = run(arguments(models["gpt2"], data["gpt2"], tmp_path), tmp_path, limit=1_200_000)
    assert code == 0 and "rows (split)" in said, said
    assert difference(weights(tmp_path), weights(whole["gpt2"][0])) < 1e-3
    assert losses(said) == pytest.approx(losses(whole["gpt2"][1]), abs=1e-3)
    assert list(tmp_path.glob("memory.jsonl.oom-*.txt")), "the errors are explained"


def test_two_processes_then_one(
    tmp_path: Path, whole: dict[str, Any], models: dict[str, str], data: dict[str, str]
) -> None:
    """A step is the same rows over any number of processes, which end after the same one where a signal reaches one."""
    argv = arguments(models["gpt2"], data["gpt2"], tmp_path)
    runs.on_gloo(2, _ranked, argv, str(tmp_path / "log"))
    one, two = losses(whole["gpt2"][1]), losses((tmp_path / "log").read_text())
    assert len(two) == 14 and two == pytest.approx(one[:14], abs=1e-3)
    assert not losses((tmp_path / "log.1").read_text()), "one process speaks"
    code, said = run(argv, tmp_path)
    assert code == 0 and "resumed at step 14 " in said, said
    assert losses(said) == pytest.approx(one[14:], abs=1e-3)
    assert difference(weights(tmp_path), weights(whole["gpt2"][0])) < 1e-3


def test_what_does_not_fit_is_refused(tmp_path: Path, models: dict[str, str], data: dict[str, str], text: Path) -> None:
    dsload.build(text, out=tmp_path / "gpt2s", max_length=32, max_examples=20)  # with the built-in vocabulary of gpt2
    dsload.build(text, out=tmp_path / "long", tokenizer=models["gpt2"], pack="wrapped", eos=True, max_length=600)
    for model, dataset, cure in (
        ("t5", data["gpt2"], "--prompt and --target"),
        ("gpt2", data["t5"], "--causal-pairs"),
        ("gpt2", tmp_path / "gpt2s", f"--tokenizer {models['gpt2']}"),
        ("gpt2", tmp_path / "long", "--max-length 512"),
    ):
        with pytest.raises(SystemExit, match=cure):
            train.main(arguments(models[model], str(dataset), tmp_path / "out"))
    for model, dataset in ((models["gpt2"], str(tmp_path / "none")), (str(tmp_path / "none"), data["gpt2"])):
        with pytest.raises(SystemExit, match=str(tmp_path / "none")):
            train.main(arguments(model, dataset, tmp_path / "out"))
    for wrong in (
        ["--batch-size=0"],
        ["--warmup=3"],
        ["--epochs=0"],
        ["--max-steps=-1"],
        ["--eval-every=-1"],
        ["--max-grad-norm=-1"],
        ["--auto-batch-size", "--micro-batch-size=4"],
    ):
        with pytest.raises(SystemExit) as usage:
            train.main([*arguments(models["gpt2"], data["gpt2"], tmp_path / "out"), *wrong])
        assert usage.value.code == 2, wrong


def test_resume_refuses_other_steps_and_other_data(
    tmp_path: Path, whole: dict[str, Any], models: dict[str, str], data: dict[str, str], text: Path
) -> None:
    out = whole["gpt2"][0]
    with pytest.raises(SystemExit, match=r"--batch-size 32.*--restart"):
        train.main([*arguments(models["gpt2"], data["gpt2"], out), "--batch-size=16"])
    dsload.build(text, out=tmp_path / "other", tokenizer=models["gpt2"], max_length=16, max_examples=0)
    with pytest.raises(SystemExit, match="--restart"):
        train.main(arguments(models["gpt2"], str(tmp_path / "other"), out))


def test_webhook_hears_and_its_secret_stays(
    tmp_path: Path, models: dict[str, str], data: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    heard = []

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            heard.append((self.path, json.loads(self.rfile.read(int(self.headers["Content-Length"])))["content"]))
            self.send_response(204)
            self.end_headers()

        def log_message(self, *args: Any) -> None:
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        monkeypatch.setenv(callbacks.WEBHOOK_VARIABLE, f"http://127.0.0.1:{server.server_port}/{SECRET}")
        with contextlib.redirect_stdout(open(tmp_path / "log", "w")):
            assert _here([*arguments(models["gpt2"], data["gpt2"], tmp_path / "run"), "--max-steps=2"]) == 0
        with pytest.raises(SystemExit):
            train.main(arguments(models["t5"], data["gpt2"], tmp_path / "run"))
        server.shutdown()
        thread.join()
    assert all(path == "/" + SECRET for path, _ in heard)
    said = [content for _, content in heard]
    assert any("status finished" in s for s in said) and any("status failed" in s and "--target" in s for s in said), (
        said
    )
    for file in tmp_path.rglob("*"):
        assert not file.is_file() or SECRET.encode() not in file.read_bytes(), file


def _here(argv: list[str]) -> int:
    """Trains in this process, whose handlers of signals stay as they are."""
    kept = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        return train.main(argv)
    finally:
        for number, handler in kept.items():
            signal.signal(number, handler)
