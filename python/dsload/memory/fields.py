"""Fields of a model's config by transformers' common names."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

# transformers' common names, and those that some architectures have for them.
_ALIASES = {
    "hidden_size": ("hidden_size", "n_embd", "d_model", "dim", "n_embed"),
    "num_hidden_layers": ("num_hidden_layers", "n_layer", "num_layers", "n_layers", "encoder_layers"),
    "num_attention_heads": ("num_attention_heads", "n_head", "num_heads", "n_heads", "encoder_attention_heads"),
    "intermediate_size": (
        "intermediate_size", "n_inner", "d_ff", "ffn_dim", "encoder_ffn_dim", "ffn_hidden_size", "hidden_dim",
    ),
    "max_position_embeddings": ("max_position_embeddings", "n_positions", "n_ctx"),
    "head_dim": ("head_dim", "d_kv"),
    "num_decoder_layers": ("num_decoder_layers", "decoder_layers"),
    "num_experts": ("num_local_experts", "num_experts", "n_routed_experts"),
}  # fmt: skip


class Fields:
    """A config's fields by transformers' common names."""

    def __init__(self, config: Any) -> None:
        self._config = config

    def get(self, name: str, default: Any = None) -> Any:
        for alias in _ALIASES.get(name, (name,)):
            value = self._config.get(alias) if isinstance(self._config, Mapping) else getattr(self._config, alias, None)
            if value is not None:
                return value
        return default

    def number(self, name: str, default: int = 0) -> int:
        return int(self.get(name, default))


def text_config(config: Any) -> Any:
    """The config of the language model in a model of several parts, else the config itself."""
    if isinstance(config, Mapping):
        return config.get("text_config") or config
    return config.get_text_config() if hasattr(config, "get_text_config") else config
