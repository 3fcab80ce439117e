"""dsload.memory.check_configuration, and `dsload doctor` with a configuration."""

from __future__ import annotations

import json
import math
import os
import pathlib
import random
import subprocess
import sys
from typing import Any

import pytest

import dsload
from dsload._binary import find_binary
from dsload.memory import ModelShape, analyze, check_configuration, estimate
from dsload.memory.checkup import Checkup

GPT2 = {"model_type": "gpt2", "n_layer": 12, "n_embd": 768, "n_head": 12, "vocab_size": 50257, "n_positions": 1024}
LLAMA = {
    "model_type": "llama", "num_hidden_layers": 4, "hidden_size": 512, "num_attention_heads": 8,
    "intermediate_size": 1376, "vocab_size": 32000, "max_position_embeddings": 2048, "hidden_act": "silu",
    "rms_norm_eps": 1e-5, "tie_word_embeddings": False,
}  # fmt: skip


@pytest.fixture(autouse=True)
def empty_cache(monkeypatch: pytest.MonkeyPatch, tmp_path: pathlib.Path) -> None:
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path / "hub"))
    monkeypatch.chdir(tmp_path)
    for name, config in (("gpt2-like", GPT2), ("llama-like", LLAMA)):
        (tmp_path / name).mkdir()
        (tmp_path / name / "config.json").write_text(json.dumps(config))


def wandb(method: str = "grid", **parameters: Any) -> dict[str, Any]:
    return {"program": "train.py", "method": method, "parameters": parameters}


def absurd(c: Checkup) -> list[tuple[str, Any]]:
    return [(f.key, f.value) for f in c.absurd]


def test_a_sweep_has_every_point() -> None:
    c = check_configuration(
        wandb(
            model_name_or_path={"value": "gpt2-like"},
            batch_size={"values": [4, 16, 64]},
            max_length={"values": [128, 512]},
            learning_rate={"values": [1e-5, 1e-4]},
            optim={"value": "adafactor"},
        )
    )
    assert c.combinations == 12 and not c.findings and c.kind == "a sweep (grid)"
    points = {(p.values["batch_size"], p.values["max_length"]): p.bytes for p in c.points}
    assert set(points) == {(b, n) for b in (4, 16, 64) for n in (128, 512)}
    for (batch, length), got in points.items():  # the sizes of the config alone, without transformers
        want = estimate(ModelShape.of(GPT2), batch, length, optimizer="adafactor").total
        assert abs(got - want) <= 0.02 * want, (batch, length)
    lines = str(c).splitlines()
    assert sum("batch_size 16, max_length 512: " in line for line in lines) == 1


HF = {"model_name_or_path": "llama-like", "per_device_train_batch_size": 8, "gradient_accumulation_steps": 4,
      "max_length": 512, "learning_rate": 2e-5, "num_train_epochs": 3, "bf16": True, "max_steps": -1}  # fmt: skip
AXOLOTL = {
    "base_model": "llama-like",
    "datasets": [{"path": "x.jsonl", "max_length": 10**9}],
    "sequence_len": 2048,
    "micro_batch_size": 2,
    "lora_target_modules": ["q_proj", "v_proj"],
    "optimizer": "adamw_torch",
    "bf16": "auto",
    "val_set_size": 0.05,
}
FACTORY = {"model_name_or_path": "llama-like", "finetuning_type": "lora", "lora_rank": 16, "cutoff_len": 2048,
           "quantization_bit": 4, "per_device_train_batch_size": 1, "learning_rate": "1.0e-4"}  # fmt: skip
TORCHTUNE = {
    "tokenizer": {"path": "t.model", "max_seq_len": 10**9},
    "model": {"_component_": "torchtune.models.llama3_2.llama3_2_1b"},
    "batch_size": 2,
    "optimizer": {"_component_": "torch.optim.AdamW", "lr": 2e-5},
    "dtype": "bf16",
}
NANOGPT = {"n_layer": 6, "n_head": 6, "n_embd": 384, "block_size": 256, "batch_size": 64, "dropout": 0.2,
           "vocab_size": 50304, "max_iters": 5000}  # fmt: skip
RUN = {
    "wandb_version": 1,
    "batch_size": {"desc": None, "value": 8},
    "model": {"value": {"name": "gpt2-like", "dropout": 0.1}},
}


@pytest.mark.parametrize("config", [HF, AXOLOTL, FACTORY, TORCHTUNE, NANOGPT, RUN])
def test_what_people_train_with_is_sane(config: dict[str, Any]) -> None:
    c = check_configuration(config)
    assert not c.findings and len(c.points) == 1 and c.combinations == 1, str(c)
    assert 1e8 < c.points[0].bytes < 1e11, str(c)


@pytest.mark.parametrize(
    ("config", "key", "value"),
    [
        ({**HF, "per_device_train_batch_size": 1_000_000}, "per_device_train_batch_size", 1_000_000),
        ({**HF, "per_device_eval_batch_size": "1,000,000"}, "per_device_eval_batch_size", 1_000_000),
        ({**HF, "per_device_train_batch_size": 0}, "per_device_train_batch_size", 0),
        ({**HF, "per_device_train_batch_size": 2.5}, "per_device_train_batch_size", 2.5),
        ({**HF, "per_device_train_batch_size": "eight"}, "per_device_train_batch_size", "eight"),
        ({**HF, "learning_rate": 2e5}, "learning_rate", 200_000),
        ({**HF, "learning_rate": -1e-4}, "learning_rate", -1e-4),
        ({**HF, "num_train_epochs": 10**6}, "num_train_epochs", 10**6),
        ({**HF, "gradient_accumulation_steps": 10**6}, "gradient_accumulation_steps", 10**6),
        ({**HF, "warmup_ratio": 100}, "warmup_ratio", 100),
        ({**HF, "max_length": True}, "max_length", True),
        ({**AXOLOTL, "sequence_len": 1_000_000}, "sequence_len", 1_000_000),
        ({**AXOLOTL, "base_model": "who/knows", "sequence_len": 1_000_000}, "sequence_len", 1_000_000),
        ({**FACTORY, "lora_rank": 4096}, "lora_rank", 4096),
        ({**NANOGPT, "n_head": 7}, "n_head", 7),
        ({**NANOGPT, "vocab_size": 10**7}, "vocab_size", 10**7),
        (wandb(model_name_or_path={"value": "gpt2-like"}, vocab_size={"values": [50257, 10**7]}), "vocab_size", 10**7),
        (wandb("bayes", batch_size={"min": 1, "max": 10**6}), "batch_size", 10**6),
        (wandb("random", lr={"distribution": "log_uniform", "min": -10, "max": 5}), "lr", math.exp(5)),
        (wandb("bayes", batch_size={"min": 64, "max": 8}), "batch_size", "64 to 8"),
        (wandb("grid", batch_size={"values": []}), "batch_size", "no values"),
        ({**HF, "learning_rate": []}, "learning_rate", "no values"),
        ({"trainer": {"train_batch_size": [8, 10**6]}}, "trainer.train_batch_size", 10**6),
        ({"hydra": {"sweeper": {"params": {"batch_size": "8,1000000"}}}}, "hydra.sweeper.params.batch_size", 10**6),
        ({**wandb(), "command": ["python", "--batch_size=1000000"]}, "batch_size", 10**6),
    ],
)
def test_values_that_cannot_be_meant(config: dict[str, Any], key: str, value: Any) -> None:
    c = check_configuration(config)
    assert absurd(c) == [(key, value)], str(c)
    assert f"absurd: {key} " in str(c)


def test_what_an_absurd_value_would_take() -> None:
    for config, floor in (
        ({**HF, "model_name_or_path": "gpt2-like", "per_device_train_batch_size": 10**6}, 10**6 * 512 * 768 * 2),
        (wandb(vocab_size={"value": 10**7}), 10**7 * 768 * 2),  # without a model: GPT-2's
    ):
        text = str(check_configuration(config).absurd[0])
        size = text.split("would take ")[1].split(",")[0]
        assert float(size[:-3]) * 1024 ** ("KMGT".index(size[-3]) + 1) >= floor, text


def test_lengths_and_positions() -> None:
    c = check_configuration({**HF, "max_length": 4096})  # of 2048: the positions may be scaled
    assert [(f.key, f.absurd) for f in c.findings] == [("max_length", False)]
    t5 = {"model_type": "t5", "d_model": 64, "num_layers": 2, "num_heads": 4, "d_ff": 128, "d_kv": 16,
          "n_positions": 512, "relative_attention_num_buckets": 32, "is_encoder_decoder": True,
          "vocab_size": 32128}  # fmt: skip
    pathlib.Path("t5").mkdir()
    pathlib.Path("t5/config.json").write_text(json.dumps(t5))
    assert not check_configuration({**HF, "model_name_or_path": "t5", "max_source_length": 8192}).findings
    c = check_configuration({**HF, "model_max_length": 1000000000000000019884624838656})
    assert not c.findings
    c = check_configuration({**HF, "vocab_size": 1000})
    assert [(f.key, f.absurd) for f in c.findings] == [("vocab_size", False)] and "no embedding" in str(c)


def test_settings_of_need() -> None:
    def need(**more: Any) -> int:
        return check_configuration({**HF, "gradient_accumulation_steps": 1, **more}).points[0].bytes

    plain = need()
    assert need(gradient_checkpointing=True) < plain and need(optim="adamw_bnb_8bit") < plain
    assert need(finetuning_type="lora") < plain and need(use_peft=True, load_in_4bit=True) < need(use_peft=True)
    assert need(adapter="qlora") < need(adapter="lora") < plain
    assert need(gradient_accumulation_steps=4) >= plain and need(bf16=False) != plain
    assert need(finetuning_type="full") == plain == need(use_peft=False)
    c = check_configuration({**HF, "fsdp": ["full_shard", "auto_wrap"]})
    assert any("sharding" in n for n in c.notes) and c.combinations == 1


def test_a_misspelled_setting_is_named() -> None:
    """It was not read, and what was estimated is less than what is needed."""
    model = {"model": "gpt2", "max_length": 128}
    for wrong, right in (
        ("micro_batch_szie", "micro_batch_size"),
        ("batchsize", "batch_size"),
        ("gradient_checkpoint", "gradient_checkpointing"),
    ):
        (note,) = check_configuration({**model, "trainer": {wrong: 8}}).notes
        assert f"trainer.{wrong} is not a known setting" in note and f"if {right} is meant" in note
        assert check_configuration({**model, right: 8}).notes == ()
    others = ("lora_alpha", "save_steps", "eval_steps", "max_grad_norm", "min_lr", "adam_beta1", "model_type")
    assert check_configuration({**model, **dict.fromkeys(others, 1)}).notes == ()


def test_what_varies_is_not_assumed() -> None:
    c = check_configuration(
        wandb(model={"value": "gpt2-like"}, optim={"values": ["sgd", "adamw"]}, bf16={"values": [True, False]})
    )
    assert "optimizer" not in c.assumptions and "float32" not in c.assumptions and len(c.points) == 4
    assert len({p.bytes for p in c.points}) == 3 and "a row, 512 tokens a row" in c.assumptions


def test_what_fits() -> None:
    c = check_configuration(wandb(model={"value": "gpt2-like"}, batch_size={"values": [1, 512]}), memory_bytes=16 << 30)
    assert [p.fits for p in c.points] == [True, False] and str(c).count("does not fit") == 1
    assert "free on the device with the most: 16GiB" in str(c)


def test_models(tmp_path: pathlib.Path) -> None:
    snapshot = tmp_path / "hub/models--some--thing/snapshots/abc"
    snapshot.mkdir(parents=True)
    (snapshot / "config.json").write_text(json.dumps(LLAMA))
    (tmp_path / "bad").mkdir()
    (tmp_path / "bad/config.json").write_text("{")

    def of(name: str) -> Checkup:
        return check_configuration({"model_name_or_path": name, "batch_size": 1, "max_length": 128})

    assert of("some/thing").points == of("llama-like/config.json").points == of("llama-like").points
    assert not of("google/flan-t5-base").notes and "247." in of("google/flan-t5-base").model
    guessed = of("meta-llama/Llama-3.1-8B")
    assert "guessed from the 8B" in guessed.notes[0] and guessed.parts == {} and "wide" not in str(guessed)
    assert abs(guessed.points[0].bytes - 20 * 8e9) < 0.1 * 20 * 8e9 and sum(of("gpt2-like").parts.values()) > 4e8
    for name, said in (("who/knows", "is not on this machine"), ("bad", "cannot be read"), ("a\0b", "is not on this")):
        c = of(name)
        assert not c.points and said in c.notes[0] and not c.findings
    c = check_configuration(wandb(model={"values": ["gpt2-like", "llama-like", "who/knows"]}, batch_size={"value": 1}))
    assert [p.values["model"] for p in c.points] == ["gpt2-like", "llama-like"]


def test_no_configuration_raises() -> None:
    """Whatever a file holds, there is an answer."""
    rnd = random.Random(5)
    names = ["model", "base_model", "batch_size", "max_length", "n_layer", "n_embd", "n_head", "d_kv", "vocab_size",
             "lr", "optim", "bf16", "adapter", "lora_r", "fsdp", "dropout", "parameters", "epochs", "values",
             "num_kv_heads", "num_key_value_heads", "num_experts", "min", "max", "command", "load_in_4bit"]  # fmt: skip
    leaves = [0, 1, -1, 8, 1e30, 1e300, 0.5, True, None, "auto", "", "x", "1e5", "4,8", "gpt2", "7B", float("nan"),
              float("inf"), [], [1, 2], [{}], 10**40, "llama-like", "${x}", -(10**9)]  # fmt: skip

    def make(depth: int) -> Any:
        if depth == 0 or rnd.random() < 0.4:
            return rnd.choice(leaves)
        return {rnd.choice(names): make(depth - 1) for _ in range(rnd.randrange(6))}

    for _ in range(3000):
        config = {rnd.choice(names): make(3) for _ in range(8)}
        c = check_configuration(config)
        json.dumps([str(c), [p.bytes for p in c.points]])
    with pytest.raises(ValueError, match="mapping"):
        check_configuration([])  # type: ignore[arg-type]


@pytest.mark.server
class TestDoctor:
    def doctor(self, *args: str, **env: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [str(find_binary()), "doctor", *args],
            capture_output=True,
            text=True,
            env={**os.environ, "PYTHONPATH": str(pathlib.Path(dsload.__file__).parents[1]), **env},
        )

    def test_says_what_the_package_does(self, tmp_path: pathlib.Path) -> None:
        (tmp_path / "c.json").write_text(json.dumps(HF))
        (tmp_path / "c.yaml").write_text("# axolotl\n" + "".join(f"{k}: {json.dumps(v)}\n" for k, v in AXOLOTL.items()))
        for name, config in (("c.json", HF), ("c.yaml", AXOLOTL)):
            got = self.doctor(name)
            assert got.returncode == 0 and not got.stderr and got.stdout == f"{check_configuration(config)}\n"
            result = json.loads(self.doctor(name, "--json").stdout)
            assert [p["bytes"] for p in result["points"]] == [p.bytes for p in check_configuration(config).points]

    def test_is_no_record(self, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("PYTHONPATH", str(pathlib.Path(dsload.__file__).parents[1]))
        monkeypatch.setenv("DSLOAD_BINARY", str(find_binary()))
        (tmp_path / "c.json").write_text(json.dumps(HF))
        with pytest.raises(ValueError, match="check_configuration"):
            analyze("c.json")

    def test_absurd_values_exit_with_3(self, tmp_path: pathlib.Path) -> None:
        (tmp_path / "c.json").write_text(json.dumps({**HF, "max_length": 10**9}))
        got = self.doctor("c.json")
        assert got.returncode == 3 and "absurd: max_length 1,000,000,000: " in got.stdout
        assert "1 value cannot be meant" in got.stderr and got.stderr.count("\n") == 1

    def test_without_the_package(self, tmp_path: pathlib.Path) -> None:
        (tmp_path / "c.json").write_text(json.dumps(HF))
        python = tmp_path / "bin" / "python3"
        python.parent.mkdir()
        python.write_text("#!/bin/sh\necho \"ModuleNotFoundError: No module named 'dsload'\" >&2\nexit 1\n")
        python.chmod(0o755)
        env = {"PATH": f"{python.parent}:/usr/bin:/bin", "VIRTUAL_ENV": "", "DSLOAD_PYTHON": ""}
        got = self.doctor("c.json", **env)
        assert got.returncode == 2 and "pip install -U dsload" in got.stderr and str(python) in got.stderr
        got = self.doctor("c.json", **{**env, "DSLOAD_PYTHON": sys.executable})  # what the console script names
        assert got.returncode == 0 and got.stdout == f"{check_configuration(HF)}\n"
