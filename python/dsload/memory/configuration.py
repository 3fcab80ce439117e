"""What a training or sweep configuration says, whoever's it is: each setting by what it means, with its alternatives.

Known by their fields are sweeps of Weights & Biases (`parameters`, with value, values, min and max, or a distribution),
the config.yaml of their runs (desc and value), settings of Hugging Face's Trainer and of TRL, axolotl, LLaMA-Factory,
torchtune, nanoGPT and DeepSpeed, and anything else that names a setting as they do, at any depth. A list where they
have one number, and Hydra's "4,8,16", are alternatives.
"""

from __future__ import annotations

import itertools
import json
import math
import os
import pathlib
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Optional, Union

from .._words import nearest
from .fields import _ALIASES

# Names of settings by what they mean. Where a configuration has several of a meaning, the first one counts.
_NAMES = {
    "model": (
        "model_name_or_path", "base_model", "pretrained_model_name_or_path", "pretrained_model", "model_name",
        "model_id", "model_path", "model", "init_from",
    ),
    "batch": (
        "per_device_train_batch_size", "micro_batch_size", "train_micro_batch_size_per_gpu", "per_gpu_train_batch_size",
        "per_device_batch_size", "device_batch_size", "batch_size", "train_batch_size",
    ),
    "eval_batch": ("per_device_eval_batch_size", "eval_batch_size", "val_batch_size"),
    "length": (
        "sequence_len", "max_length", "max_seq_length", "max_seq_len", "seq_length", "sequence_length", "seq_len",
        "block_size", "context_length", "cutoff_len", "max_source_length", "max_input_length", "encoder_seq_length",
        "model_max_length",
    ),
    "target": ("max_target_length", "max_output_length"),
    "accumulation": (
        "gradient_accumulation_steps", "accumulate_grad_batches", "accumulation_steps", "gradient_accumulation",
        "grad_accum_steps",
    ),
    "learning_rate": ("learning_rate", "lr", "max_lr", "peak_lr", "base_lr"),
    "steps": ("max_steps", "max_iters", "num_training_steps", "total_steps", "warmup_steps"),
    "workers": ("dataloader_num_workers", "num_workers", "preprocessing_num_workers", "dataset_num_proc"),
    "epochs": ("num_train_epochs", "num_epochs", "epochs", "max_epochs", "n_epochs"),
    "share": (
        "warmup_ratio", "dropout", "attention_dropout", "hidden_dropout", "lora_dropout", "label_smoothing_factor",
    ),
    "weight_decay": ("weight_decay",),
    "rank": ("lora_r", "lora_rank", "peft_lora_r"),
    "optimizer": ("optim", "optimizer", "optimizer_name"),
    "precision": ("bf16", "fp16", "mixed_precision", "precision", "torch_dtype", "dtype", "compute_dtype"),
    "checkpointing": (
        "gradient_checkpointing", "activation_checkpointing", "enable_activation_checkpointing", "use_checkpoint",
    ),
    "adapter": ("adapter", "use_peft", "use_lora", "finetuning_type", "peft_type", "peft"),
    "bits": ("load_in_4bit", "load_in_8bit", "quantization_bit"),
    "sharding": ("fsdp", "deepspeed", "fsdp_config", "tensor_parallel_size", "tensor_model_parallel_size"),
}  # fmt: skip
# Sizes of a model, where the configuration makes one: transformers' names, without those that mean other things too.
_SIZES = {
    alias: name
    for name, aliases in {**_ALIASES, "vocab_size": ("vocab_size", "n_vocab", "padded_vocab_size")}.items()
    for alias in aliases
    if alias not in ("dim", "hidden_dim")
}
_MEANING = {name: meaning for meaning, names in _NAMES.items() for name in names}
_NUMBERS = (
    "batch", "eval_batch", "length", "target", "accumulation", "learning_rate", "steps", "workers", "epochs", "share",
    "weight_decay", "rank", *dict.fromkeys(_SIZES.values()),
)  # fmt: skip
_APART = ("precision", "bits", "share", "sharding", "steps", "workers")  # settings with one of these meanings all count
_NEAR = 0.88  # of the letters of a setting's name agree with one that is misspelled
_LARGEST = 1e30  # that transformers writes for a tokenizer without a limit
_UNSET = ("auto", "none", "null", "~", "")

# Sizes of models that many configurations name and few machines have the config.json of.
_GPT2 = {"model_type": "gpt2", "vocab_size": 50257, "n_positions": 1024, "resid_pdrop": 0.1, "attn_pdrop": 0.1}
_T5 = {
    "model_type": "t5", "vocab_size": 32128, "d_kv": 64, "is_encoder_decoder": True, "dropout_rate": 0.1,
    "relative_attention_num_buckets": 32,
}  # fmt: skip
_FLAN = {**_T5, "feed_forward_proj": "gated-gelu", "tie_word_embeddings": False}
_PUBLISHED: dict[str, dict[str, Any]] = {
    **{
        name: {**_GPT2, "n_layer": layers, "n_embd": hidden, "n_head": heads}
        for name, layers, hidden, heads in (
            ("distilgpt2", 6, 768, 12), ("gpt2", 12, 768, 12), ("gpt2-medium", 24, 1024, 16),
            ("gpt2-large", 36, 1280, 20), ("gpt2-xl", 48, 1600, 25),
        )
    },
    **{
        name: {**kind, "d_model": hidden, "num_layers": layers, "num_heads": heads, "d_ff": width}
        for name, kind, hidden, layers, heads, width in (
            ("t5-small", _T5, 512, 6, 8, 2048), ("t5-base", _T5, 768, 12, 12, 3072),
            ("t5-large", _T5, 1024, 24, 16, 4096), ("flan-t5-small", _FLAN, 512, 8, 6, 1024),
            ("flan-t5-base", _FLAN, 768, 12, 12, 2048), ("flan-t5-large", _FLAN, 1024, 24, 16, 2816),
        )
    },
}  # fmt: skip


@dataclass(frozen=True)
class Setting:
    """A setting that is known. key: where it stands, as in "trainer.batch_size". values: its alternatives, of which
    those of a range are the ends."""

    key: str
    name: str
    meaning: str
    values: tuple[Any, ...]
    is_range: bool = False


@dataclass(frozen=True)
class Configuration:
    """settings: of each meaning the one that counts. others: further ones of these meanings. unread: values that are no
    numbers where one must be. combinations: of a grid; None for a search. misspelled: keys that are no setting, with
    the name that they are nearly."""

    kind: str
    settings: dict[str, Setting]
    others: tuple[Setting, ...]
    unread: tuple[tuple[str, Any], ...]
    combinations: Optional[int]
    misspelled: tuple[tuple[str, str], ...]


def read(config: Mapping[str, Any]) -> Configuration:
    """Reads a configuration as its file's YAML or JSON gives it."""
    sweep = config.get("parameters")
    kind, method = "a training configuration", ""
    if isinstance(sweep, Mapping) and all(isinstance(v, Mapping) for v in sweep.values()):
        method = str(config.get("method", "grid"))
        kind = f"a sweep ({method})"
        entries = [*_sweep(sweep), *_arguments(config.get("command"))]
    else:
        entries = list(_flat(config))
    found: dict[str, list[Setting]] = {}
    unread: list[tuple[str, Any]] = []
    misspelled: list[tuple[str, str]] = []
    combinations = 1
    for key, given, is_range in entries:
        name = key.rpartition(".")[2].lower().replace("-", "_").lstrip("_")
        meaning, values = _meaning(key, name), tuple(given)
        near = nearest(name, _MEANING, _NEAR) if name not in _MEANING and name not in _SIZES else None
        if near is not None and not meaning:
            misspelled.append((key, near))
        if meaning in _NUMBERS:
            values, bad = _numbers(values)
            unread += [(key, v) for v in (bad if given else ["no values"])]
        values = tuple(v for v in values if not (v is None or (isinstance(v, str) and v.lower() in _UNSET)))
        values = values or ((True,) if name == "bf16" and "auto" in given else ())  # where the device has it
        if method or meaning in _NUMBERS:
            combinations *= max(1, len(values) if meaning in _NUMBERS else len(given))
        if meaning and values:
            slot = f"{meaning}:{name}" if meaning in _APART else meaning
            found.setdefault(slot, []).append(Setting(key, name, meaning, values, is_range))
    for of_meaning in found.values():
        of_meaning.sort(key=_rank)
    meanings = (*_NAMES, *_SIZES.values())  # in whose order settings are told, whatever that of the file is
    slots = sorted(found, key=lambda slot: (meanings.index(slot.partition(":")[0]), slot))
    settings = {slot: found[slot][0] for slot in slots}
    others = tuple(s for slot in slots for s in found[slot][1:])
    if not method and any(len(s.values) > 1 for s in settings.values()):
        kind = "a grid"
    searched = method not in ("", "grid") or any(s.is_range for s in settings.values())
    return Configuration(kind, settings, others, tuple(unread), None if searched else combinations, tuple(misspelled))


def _meaning(key: str, name: str) -> str:
    parent = key.rpartition(".")[0].lower()
    if any(word in parent for word in ("tokenizer", "dataset", "generat")):
        return ""
    if parent.endswith("model") and name in ("name", "path", "component_"):
        return "model"
    if (name == "name" and parent.endswith("optimizer")) or (name == "type" and parent.endswith("optimizer")):
        return "optimizer"
    return _SIZES.get(name) or _MEANING.get(name, "")


def _rank(s: Setting) -> int:
    names = _NAMES.get(s.meaning, ())
    return names.index(s.name) if s.name in names else len(names)


def _flat(value: Any, key: str = "") -> Iterator[tuple[str, list[Any], bool]]:
    """(key, alternatives, whether they are the ends of a range) of all values below a mapping."""
    for name, v in value.items():
        path = f"{key}.{name}" if key else str(name)
        if isinstance(v, Mapping) and "value" in v and set(v) <= {"value", "desc"}:  # a run's config.yaml
            v = v["value"]
        if isinstance(v, Mapping):
            yield from _flat(v, path)
        elif isinstance(v, (list, tuple)):
            if all(isinstance(u, (int, float, str)) for u in v):
                yield path, list(v), False
        else:
            yield path, [v], False


def _sweep(parameters: Mapping[str, Any], key: str = "") -> Iterator[tuple[str, list[Any], bool]]:
    """As _flat, of the parameters of a W&B sweep."""
    for name, p in parameters.items():
        path = f"{key}.{name}" if key else str(name)
        if not isinstance(p, Mapping):
            yield path, [p], False
        elif isinstance(p.get("parameters"), Mapping):
            yield from _sweep(p["parameters"], path)
        elif isinstance(p.get("values"), (list, tuple)):
            yield path, list(p["values"]), False
        elif isinstance(p.get("value"), Mapping):
            yield from _flat(p["value"], path)
        elif "value" in p:
            yield path, [p["value"]], False
        elif "min" in p and "max" in p:
            ends = [p["min"], p["max"]]
            kind = str(p.get("distribution", ""))
            if "log_uniform" in kind and not kind.endswith("values") and all(isinstance(e, (int, float)) for e in ends):
                ends = [math.exp(min(e, 700)) for e in ends]  # whose ends are exponents
            yield path, ends, True
        elif isinstance(p.get("mu"), (int, float)) and isinstance(p.get("sigma"), (int, float)):
            ends = [p["mu"] - 2 * p["sigma"], p["mu"] + 2 * p["sigma"]]
            yield path, [math.exp(min(e, 700)) for e in ends] if "log" in str(p.get("distribution")) else ends, True


def _arguments(command: Any) -> Iterator[tuple[str, list[Any], bool]]:
    """Settings that the command of a sweep gives, as in --batch_size=8."""
    for word in command if isinstance(command, (list, tuple)) else ():
        if given := re.fullmatch(r"--([\w.-]+)=(.+)", str(word)):
            yield given[1], [given[2]], False


def _numbers(values: tuple[Any, ...]) -> tuple[tuple[Any, ...], list[Any]]:
    """(numbers, what is none)"""
    found, bad = [], []
    for v in values:
        grouped = isinstance(v, str) and re.fullmatch(r"\d{1,3}(,\d{3})+", v)  # 1,000,000 is no list
        parts = v.split(",") if isinstance(v, str) and not grouped else [v]
        for part in parts:
            number = _number(part)
            if number is not None:
                found.append(number)
            elif part is not None and not (isinstance(part, str) and (part.lower() in _UNSET or "$" in part)):
                bad.append(v)
    return tuple(found), bad


def _number(v: Any) -> Union[int, float, None]:
    if isinstance(v, str):
        try:
            v = float(v.strip().replace("_", "").replace(",", ""))
        except ValueError:
            return None
    if isinstance(v, bool) or not isinstance(v, (int, float)) or not abs(v) <= _LARGEST:
        return None
    return int(v) if v == int(v) else v


def points(settings: Mapping[str, Setting], most: int) -> Iterator[dict[str, Any]]:
    """The combinations of the settings' alternatives, at most so many."""
    names = list(settings)
    product = itertools.product(*(settings[n].values for n in names))
    return (dict(zip(names, values)) for values in itertools.islice(product, most))


def model_config(name: str, folder: str) -> tuple[Optional[dict[str, Any]], str]:
    """The config.json of a model named by a folder, a file, or a repository that huggingface_hub has downloaded, else
    what is known of it or guessed; and a note about that, or why there is none."""
    for base in dict.fromkeys((os.getcwd(), folder)):
        path = pathlib.Path(base, name)
        for file in (path / "config.json", path):
            if file.suffix == ".json" and os.path.isfile(file):
                return _config(file)
    if found := _downloaded(name):
        return _config(found)
    last = name.rstrip("/").rpartition("/")[2].lower()
    if last in _PUBLISHED:
        return _PUBLISHED[last], ""
    if sizes := re.findall(r"(?<![a-z0-9.])(?:(\d+)x)?(\d+(?:\.\d+)?)([bm])(?![a-z0-9])", last.replace("_", "-")):
        times, number, unit = sizes[0]
        count = int(times or 1) * float(number) * (1e9 if unit == "b" else 1e6)
        said = f"{times + 'x' if times else ''}{number}{unit.upper()}"
        return {
            "parameters": count
        }, f"{name} is not on this machine: its sizes are guessed from the {said} in its name"
    return None, f"the model {name} is not on this machine: give the folder of its config.json, or download it"


def _config(file: pathlib.Path) -> tuple[Optional[dict[str, Any]], str]:
    try:
        found = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError) as e:
        return None, f"{file} cannot be read: {e}"
    return (found, "") if isinstance(found, dict) else (None, f"{file} is not a model's config.json")


def _downloaded(name: str) -> Optional[pathlib.Path]:
    """The config.json of a repository in the cache of huggingface_hub."""
    if not re.fullmatch(r"[\w.-]+(/[\w.-]+)?", name):
        return None
    home = os.environ.get("HF_HOME") or os.path.join(
        os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"), "huggingface"
    )
    hub = os.environ.get("HF_HUB_CACHE") or os.path.join(home, "hub")
    files = sorted(pathlib.Path(hub, "models--" + name.replace("/", "--"), "snapshots").glob("*/config.json"))
    return max(files, key=lambda f: f.stat().st_mtime, default=None)
