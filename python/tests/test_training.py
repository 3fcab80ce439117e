"""End to end on real text: loss falls, and a run that was killed continues as if it had not been."""

from __future__ import annotations

import importlib.util
import json
import shutil
import statistics
import subprocess
import sys
from pathlib import Path
from typing import Any, Optional

import effort
import pytest
import runs
from conftest import REPOSITORY

import dsload
from dsload._binary import find_binary

pytest.importorskip("torch")
pytest.importorskip("transformers")

pytestmark = [pytest.mark.torch, pytest.mark.trainers, pytest.mark.server, pytest.mark.usefixtures("no_servers_left")]

EXAMPLES = REPOSITORY / "python" / "examples"


@pytest.fixture(scope="module")
def tokenizer(tmp_path_factory: pytest.TempPathFactory, corpora: Path) -> Path:
    """One of few tokens: nearly all of a small model's work is in its vocabulary."""
    file = tmp_path_factory.mktemp("tokenizer") / "tokenizer.json"
    binary = find_binary()
    assert binary is not None
    source = corpora / "wikitext-2" / "valid.txt"
    command = [binary, "tokenizer", "train", source, "--vocab-size", "2000", "--format", "text", "--out", file]
    subprocess.run(command, check=True, capture_output=True)
    return file


@pytest.fixture(scope="module")
def wikitext(tmp_path_factory: pytest.TempPathFactory, corpora: Path, tokenizer: Path) -> str:
    folder = tmp_path_factory.mktemp("data") / "wikitext"
    source = corpora / "wikitext-2" / "valid.txt"
    dsload.build(source, out=folder, format="wikitext", tokenizer=tokenizer, eos=True, max_length=32, max_examples=0)
    return str(folder)


@pytest.fixture(scope="module")
def recipe_targets(tmp_path_factory: pytest.TempPathFactory, corpora: Path, tokenizer: Path) -> str:
    folder = tmp_path_factory.mktemp("data") / "recipes"
    source = corpora / "recipes" / "recipenlg-sample.csv"
    dsload.build(
        source,
        out=folder,
        format="recipes",
        template="recipe-seq2seq",
        tokenizer=tokenizer,
        eos=True,
        max_length=48,
        max_examples=0,
    )
    return str(folder)


def example(name: str) -> Any:
    spec = importlib.util.spec_from_file_location(name, EXAMPLES / f"{name}.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def run_here(name: str, *arguments: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", [name, *map(str, arguments)])
    example(name).main()


def _main(name: str, arguments: list[str]) -> None:
    sys.argv = [name, *arguments]
    example(name).main()


def run_apart(name: str, *arguments: Any) -> Optional[int]:
    return runs.apart(_main, name, [str(a) for a in arguments])


def read(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def falls(losses: list[float]) -> bool:
    tenth = max(len(losses) // 10, 3)
    return statistics.mean(losses[-tenth:]) < statistics.mean(losses[:tenth]) - 0.5


@pytest.mark.parametrize("kind", ["gpt2", "t5"])
def test_killed_and_resumed_equals_uninterrupted(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    """The accelerate example: killed with SIGKILL between two checkpoints, then started again by the same command."""
    data = request.getfixturevalue("wikitext" if kind == "gpt2" else "recipe_targets")
    steps = 300 if effort.SOAK else 40
    options = ["--steps", steps, "--save-steps", 20, "--batch-size", 8]
    run_here("accelerate_loop", data, "--out", tmp_path / "whole", *options, monkeypatch=monkeypatch)
    assert run_apart("accelerate_loop", data, "--out", tmp_path / "cut", *options, "--kill-at", steps // 2 + 3) == -9
    assert run_apart("accelerate_loop", data, "--out", tmp_path / "cut", *options) == 0
    whole, cut = read(tmp_path / "whole" / "steps-0.jsonl"), read(tmp_path / "cut" / "steps-0.jsonl")
    assert [x["step"] for x in whole] == list(range(1, steps + 1))
    last_checkpoint = (steps // 2 + 3) // 20 * 20
    assert [x["step"] for x in cut] == [*range(1, steps // 2 + 4), *range(last_checkpoint + 1, steps + 1)]
    by_step = {x["step"]: x for x in whole}
    for line in cut:
        assert line["examples"] == by_step[line["step"]]["examples"]
        assert line["loss"] == pytest.approx(by_step[line["step"]]["loss"], rel=1e-5)
    assert falls([x["loss"] for x in whole])
    rows = json.loads(Path(data, "manifest.json").read_text())["splits"][0]["examples"]
    seen = [e for x in whole for e in x["examples"]][:rows]
    assert len(set(seen)) == len(seen), "no example comes twice within the first epoch"


def test_hugging_face_trainer_resumes(wikitext: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    options = ["--steps", 24, "--save-steps", 12, "--batch-size", 4]
    whole = tmp_path / "whole"
    run_here(
        "hf_trainer", wikitext, "--out", whole, *options, "--losses", tmp_path / "whole.json", monkeypatch=monkeypatch
    )
    shutil.copytree(whole / "checkpoint-12", tmp_path / "cut" / "checkpoint-12")
    run_here(
        "hf_trainer",
        wikitext,
        "--out",
        tmp_path / "cut",
        *options,
        "--resume",
        "--losses",
        tmp_path / "cut.json",
        monkeypatch=monkeypatch,
    )
    want, got = json.loads((tmp_path / "whole.json").read_text()), json.loads((tmp_path / "cut.json").read_text())
    assert len(want) == 24 and want[-1] < want[0]
    assert got == pytest.approx(want, rel=1e-3)


def test_lightning_resumes(wikitext: str, tmp_path: Path) -> None:
    lightning = pytest.importorskip("pytorch_lightning")
    module = example("lightning_module")

    def fit(steps: int, resume: Any = None, **options: Any) -> Any:
        lightning.seed_everything(3, verbose=False)
        data = module.DsloadModule(wikitext, batch_size=4, seed=2)
        data.setup("fit")
        model = module.Model(data.loader.manifest["tokenizer"]["vocab_size"])
        trainer = lightning.Trainer(max_steps=steps, **runs.LIGHTNING, **options, default_root_dir=tmp_path)
        trainer.fit(model, data, ckpt_path=resume, **({"weights_only": False} if resume else {}))
        return model

    whole = fit(12)
    saved = tmp_path / "six.ckpt"

    class Save(lightning.Callback):  # type: ignore[name-defined, misc]
        def on_train_batch_end(self, trainer: Any, *_: Any) -> None:
            if trainer.global_step == 6:
                trainer.save_checkpoint(saved)

    first = fit(6, callbacks=[Save()])
    assert saved.exists()
    second = fit(12, resume=saved)
    assert first.examples + second.examples == whole.examples
    assert first.losses + second.losses == pytest.approx(whole.losses, rel=1e-4)
