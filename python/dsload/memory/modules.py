"""What a model is made of, asked from its modules. Where only a config is there, transformers makes them on torch's
meta device, on which tensors have shapes and no memory."""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from .fields import Fields, text_config

_AUTO_CLASSES = (
    "AutoModelForSeq2SeqLM",  # first, since BART and others have a causal class too
    "AutoModelForMaskedLM",
    "AutoModelForCausalLM",
    "AutoModelForImageTextToText",
    "AutoModel",
)
_QK_NORM = re.compile(r"(^|\.)(q|k|query|key)_?(layer_?)?norm$", re.I)


class NotKnown(Exception):
    """transformers cannot make the model; the text says why."""


def of_config(config: Any) -> tuple[Any, dict[str, Any]]:
    """The whole config as transformers fills it in, and the facts of its model: of the class that the config names,
    else of the one with a language model's head.

    Raises:
        NotKnown: if transformers is not installed, or does not know the architecture.
    """
    try:
        if isinstance(config, Mapping):
            return _of_json(json.dumps(config, sort_keys=True, default=str))
        return config, facts(_made(config), Fields(text_config(config)))
    except ImportError as e:
        raise NotKnown("transformers is not installed") from e


@functools.lru_cache(maxsize=64)
def _of_json(text: str) -> tuple[Any, dict[str, Any]]:
    import transformers

    fields = json.loads(text)
    kind, names = fields.get("model_type"), list(fields.get("architectures") or ())
    if kind in transformers.CONFIG_MAPPING:
        of_kind = transformers.CONFIG_MAPPING[kind]
    elif named := _class(names):
        of_kind = named.config_class
    elif kind or names:
        raise NotKnown(f"transformers does not know the architecture {kind or names[0]!r}")
    else:
        raise NotKnown("the config does not say its architecture (model_type, as in a published config.json)")
    try:
        config = of_kind.from_dict(fields)
    except Exception as e:
        raise NotKnown(f"transformers cannot read the config: {_line(e)}") from e
    return config, facts(_made(config), Fields(text_config(config)))


def _class(names: Any) -> Any:
    """The class of transformers that a config's `architectures` names, or None."""
    import transformers

    return getattr(transformers, str(names[0]), None) if names else None


def _made(config: Any) -> Any:
    import torch
    import transformers

    autos = [getattr(transformers, name) for name in _AUTO_CLASSES if hasattr(transformers, name)]
    makers = [auto.from_config for auto in autos]
    if named := _class(getattr(config, "architectures", None)):
        makers.insert(0, named)
    reasons = []
    for make in makers:
        try:
            with torch.device("meta"):
                return make(config)
        except Exception as e:  # the code is transformers' own or a stranger's
            reasons.append(_line(e))
    raise NotKnown(f"transformers cannot make a {getattr(config, 'model_type', '')!r} model: {reasons[0]}")


def _line(e: Exception) -> str:
    return " ".join(str(e).split())[:100]


def facts(model: Any, config: Fields) -> dict[str, Any]:
    """Fields of ModelShape that the modules of a language model show. What they do not show, as in an architecture
    without attention, is left out."""
    import torch

    hidden = config.number("hidden_size")
    found: dict[str, Any] = {"counted": _elements(model), "tied": _tied(model, config)}
    embeddings = [m.num_embeddings for m in model.modules() if isinstance(m, torch.nn.Embedding)]
    positions = config.number("max_position_embeddings")
    found["positions"] = positions if any(0 <= n - positions <= 2 for n in embeddings) else 0  # OPT has two more
    found["relative_bias"] = any(name.endswith("relative_attention_bias") for name, _ in model.named_modules())
    layers = _layers(model, config)
    if not layers:
        return {**found, "active": found["counted"]}
    norms = list(_norms(layers[0], hidden))
    found["norms"] = len(norms)
    found["rms_norm"] = any(not isinstance(n, torch.nn.LayerNorm) and getattr(n, "bias", None) is None for n in norms)
    found["qk_norm"] = any(_QK_NORM.search(name) for name, _ in layers[0].named_modules())
    causal = [m.is_causal for m in layers[0].modules() if hasattr(m, "is_causal")]
    if causal:
        found["is_causal"] = any(causal)
    return {**found, **_attention(layers[0], config), **_feed_forward(layers, config, found["counted"])}


def _elements(module: Any) -> int:
    return sum(int(p.numel()) for p in module.parameters())  # tied ones count once


def _tied(model: Any, config: Fields) -> bool:
    try:
        head, table = model.get_output_embeddings(), model.get_input_embeddings()
        return head is None or head.weight is table.weight
    except (AttributeError, NotImplementedError):
        return bool(config.get("tie_word_embeddings", True))


def _layers(model: Any, config: Fields) -> list[Any]:
    """The layers of the language model, or of its encoder."""
    import torch

    for stack in model.modules():
        fits = isinstance(stack, torch.nn.ModuleList) and len(stack) == config.number("num_hidden_layers")
        if fits and any(fan_in == config.number("hidden_size") for _, fan_in, _ in _linears(stack[0])):
            return list(stack)
    return []


def _linears(module: Any) -> Iterator[tuple[str, int, int]]:
    """(name, width of the input, width of the output) of the linear layers."""
    import torch

    for name, m in module.named_modules():
        if isinstance(m, torch.nn.Linear):
            yield name, m.in_features, m.out_features
        elif type(m).__name__ == "Conv1D" and m.weight.ndim == 2:  # transformers' own, as in GPT-2
            yield name, *m.weight.shape


def _attends(name: str) -> bool:
    return "att" in name.lower()


def _norms(layer: Any, hidden: int) -> Iterator[Any]:
    for name, m in layer.named_modules():
        weight = getattr(m, "weight", None)
        size = weight.shape[-1] if weight is not None else (getattr(m, "normalized_shape", None) or (0,))[-1]
        if "Norm" in type(m).__name__ and size == hidden and not _QK_NORM.search(name):
            yield m


def _attention(layer: Any, config: Fields) -> dict[str, Any]:
    """The widths of queries and of keys, from the projections, which may be one layer or several."""
    hidden, heads = config.number("hidden_size"), config.number("num_attention_heads", 1)
    linears = [(fan_in, fan_out) for name, fan_in, fan_out in _linears(layer) if _attends(name)]
    outputs = [fan_in for fan_in, fan_out in linears if fan_out == hidden]
    if not outputs:
        return {}
    inner = outputs[-1]
    read = sum(fan_out for fan_in, fan_out in linears if fan_in == hidden)
    kv = (read - inner - (hidden if inner == hidden else 0)) // 2  # the output's projection then reads as much
    if not 0 < kv <= inner:
        kv = inner  # keys and values are made of something narrower, for every head
    head = max(1, inner // heads)
    return {"head_dim": head, "kv_heads": max(1, kv // head), "kv_width": kv}


def _feed_forward(layers: list[Any], config: Fields, total: int) -> dict[str, Any]:
    """The width that a token passes through, on average over the layers, and what it does not pass through."""
    hidden, up, down, sparse, experts = config.number("hidden_size"), 0, 0, 0, 0
    for layer in layers:
        for name, m in layer.named_modules():
            if name.rpartition(".")[2] == "experts":
                sparse += _elements(m)
                experts = len(m) if hasattr(m, "__len__") else next(p.shape[0] for p in m.parameters())
        for name, fan_in, fan_out in _linears(layer):
            if _attends(name) or ".experts." in f".{name}." or fan_out in (1, experts):
                continue
            up += fan_out if fan_in == hidden else 0
            down += fan_in if fan_out == hidden else 0
    gated = 2 * up > 3 * down or down == 0
    chosen = min(config.number("num_experts_per_tok", 1), experts)
    passed = sparse * chosen // experts if experts else 0
    width = (down + passed // (hidden * (3 if gated else 2))) // len(layers)
    found = {"active": total - sparse + passed, "experts": experts, "experts_per_token": chosen}
    return {**found, "is_gated": gated, "feed_forward": width} if width else found
