"""The parameters of a transformer, counted from its config by the architecture that its `model_type` names.

A family is described as transformers builds it: which norms a layer has, which projections have a bias, how many
experts a layer has. The config fills in the rest; fields that it lacks have the family's default, because a published
config.json names only what differs from it. The tests compare each family with the real modules on torch's meta device,
number for number.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Callable, Union

_ALIASES = {
    "hidden_size": ("hidden_size", "n_embd", "d_model", "dim", "n_embed"),
    "num_hidden_layers": ("num_hidden_layers", "n_layer", "num_layers", "n_layers", "encoder_layers"),
    "num_attention_heads": ("num_attention_heads", "n_head", "num_heads", "n_heads", "encoder_attention_heads"),
    "intermediate_size": (
        "intermediate_size",
        "n_inner",
        "d_ff",
        "ffn_dim",
        "encoder_ffn_dim",
        "ffn_hidden_size",
        "hidden_dim",
    ),
    "max_position_embeddings": ("max_position_embeddings", "n_positions", "n_ctx"),
    "num_experts": ("num_local_experts", "num_experts", "n_routed_experts"),
}


class Fields:
    """A config's fields by transformers' common names. A field that the config leaves out has the family's default."""

    def __init__(self, config: Any, defaults: Mapping[str, Any]) -> None:
        self._config, self._defaults = config, defaults

    def get(self, name: str, default: Any = None) -> Any:
        for alias in _ALIASES.get(name, (name,)):
            if isinstance(self._config, Mapping):
                if alias in self._config:
                    return self._config[alias]
            elif hasattr(self._config, alias):
                return getattr(self._config, alias)
        return self._defaults.get(name, default)

    def number(self, name: str, default: int = 0) -> int:
        value = self.get(name)
        return default if value is None else int(value)

    def flag(self, spec: Union[bool, str]) -> bool:
        """A flag that the family fixes, or that the field of this name holds."""
        return spec if isinstance(spec, bool) else bool(self.get(spec, False))

    @property
    def hidden(self) -> int:
        return self.number("hidden_size")

    @property
    def layers(self) -> int:
        return self.number("num_hidden_layers")

    @property
    def vocabulary(self) -> int:
        return self.number("vocab_size")

    @property
    def heads(self) -> int:
        return self.number("num_attention_heads", 1)

    @property
    def head_dim(self) -> int:
        return self.number("head_dim", self.hidden // self.heads)

    @property
    def kv_heads(self) -> int:
        return self.number("num_key_value_heads", self.heads)

    @property
    def width(self) -> int:
        return self.number("intermediate_size", 4 * self.hidden)

    @property
    def tied(self) -> bool:
        return bool(self.get("tie_word_embeddings", True))


@dataclass(frozen=True)
class Count:
    """What a model holds. trunk and head: parameters without and of the head. idle: those of experts that do not see a
    given token.
    feed_forward: what a token passes through in a layer, on average over the layers. experts: in a layer (0: none)."""

    trunk: int
    head: int
    idle: int = 0
    feed_forward: int = 0
    experts: int = 0
    experts_per_token: int = 0
    q_inner: int = 0
    kv_inner: int = 0
    positions: int = 0


def linear(fan_in: int, fan_out: int, bias: bool = False) -> int:
    return fan_in * fan_out + (fan_out if bias else 0)


def mlp(hidden: int, width: int, gated: bool, bias: bool = False) -> int:
    return linear(hidden, width, bias) * (2 if gated else 1) + linear(width, hidden, bias)


@dataclass(frozen=True)
class Decoder:
    """A causal language model whose layers are equal, except for those with experts."""

    defaults: Mapping[str, Any] = field(default_factory=dict)
    norm: str = "rms"  # rms, layer (weight and bias), weight (a LayerNorm without bias), none
    norms: Union[int, Callable[[Fields], int]] = 2  # a layer
    qkv_bias: Union[bool, str] = False
    out_bias: Union[bool, str] = False
    qk_norm: Union[bool, str] = False
    qk_norm_size: Callable[[Fields], int] = lambda c: 2 * c.head_dim
    gated: bool = True
    mlp_bias: Union[bool, str] = False
    positions: int = -1  # learned positions besides those that the config names; -1: none are learned
    head_bias: Union[bool, str] = False
    # parameters, width of the queries, of keys or values
    attention: Union[Callable[[Fields], tuple[int, int, int]], None] = None
    extra: Callable[[Fields], int] = lambda c: 0  # besides the layers
    layer_extra: Callable[[Fields], int] = lambda c: 0
    embedding: Callable[[Fields], int] = lambda c: c.hidden  # width of a token's embedding
    experts: Union[Experts, None] = None
    kind: str = "causal"

    def norm_size(self, hidden: int) -> int:
        return {"rms": hidden, "layer": 2 * hidden, "weight": hidden, "none": 0}[self.norm]

    def attend(self, c: Fields) -> tuple[int, int, int]:
        if self.attention is not None:
            return self.attention(c)
        inner, kv = c.heads * c.head_dim, c.kv_heads * c.head_dim
        bias = c.flag(self.qkv_bias)
        size = (
            linear(c.hidden, inner, bias)
            + 2 * linear(c.hidden, kv, bias)
            + linear(inner, c.hidden, c.flag(self.out_bias))
        )
        return size + (self.qk_norm_size(c) if c.flag(self.qk_norm) else 0), inner, kv

    def count(self, c: Fields) -> Count:
        attention, inner, kv = self.attend(c)
        norms = self.norms if isinstance(self.norms, int) else self.norms(c)
        each = attention + norms * self.norm_size(c.hidden) + self.layer_extra(c)
        sparse = self.experts.layers(c) if self.experts is not None else 0
        trunk = c.vocabulary * self.embedding(c) + self.norm_size(c.hidden) + self.extra(c)
        trunk += c.layers * each + (c.layers - sparse) * mlp(c.hidden, c.width, self.gated, c.flag(self.mlp_bias))
        idle, token_width, experts, chosen = 0, (c.layers - sparse) * c.width, 0, 0
        if self.experts is not None and sparse:
            e = self.experts.count(c)
            experts, chosen = e.experts, e.experts_per_token
            trunk, idle, token_width = trunk + sparse * e.trunk, sparse * e.idle, token_width + sparse * e.feed_forward
        positions = c.number("max_position_embeddings") if self.positions >= 0 else 0
        trunk += (positions + self.positions) * c.hidden if self.positions >= 0 else 0
        head = (0 if c.tied else c.vocabulary * self.embedding(c)) + (c.vocabulary if c.flag(self.head_bias) else 0)
        return Count(trunk, head, idle, token_width // max(c.layers, 1), experts, chosen, inner, kv, positions)


@dataclass(frozen=True)
class Experts:
    """The experts of a layer, instead of its feed-forward block."""

    width: str = "intermediate_size"
    router_bias: bool = False
    bias: bool = False
    shared: Callable[[Fields], int] = lambda c: 0  # width of the expert that sees every token
    shared_gate: bool = False
    layers: Callable[[Fields], int] = lambda c: c.layers

    def count(self, c: Fields) -> Count:
        width, experts = c.number(self.width), c.number("num_experts")
        chosen = min(c.number("num_experts_per_tok", 1), experts)
        one = mlp(c.hidden, width, True, self.bias)
        shared = self.shared(c)
        size = experts * one + linear(c.hidden, experts, self.router_bias)
        size += (mlp(c.hidden, shared, True) if shared else 0) + (c.hidden if self.shared_gate else 0)
        return Count(size, 0, (experts - chosen) * one, chosen * width + shared, experts, chosen)


def _every_nth(c: Fields) -> int:
    step, dense = c.number("decoder_sparse_step", 1), set(c.get("mlp_only_layers") or ())
    if not c.number("num_experts"):
        return 0
    return sum(1 for i in range(c.layers) if i not in dense and (i + 1) % step == 0)


def _after_the_first(c: Fields) -> int:
    return max(c.layers - c.number("first_k_dense_replace"), 0)


def _latent_attention(c: Fields) -> tuple[int, int, int]:
    """DeepSeek's: keys and values are projected down to one vector a token, and up again for each head."""
    heads, hidden, bias = c.heads, c.hidden, c.flag("attention_bias")
    nope, rope, value, rank = (
        c.number(n) for n in ("qk_nope_head_dim", "qk_rope_head_dim", "v_head_dim", "kv_lora_rank")
    )
    inner, query_rank = heads * (nope + rope), c.get("q_lora_rank")
    size = (
        linear(hidden, inner)
        if query_rank is None
        else linear(hidden, query_rank, bias) + query_rank + linear(query_rank, inner)
    )
    size += (
        linear(hidden, rank + rope, bias)
        + rank
        + linear(rank, heads * (nope + value))
        + linear(heads * value, hidden, bias)
    )
    return size, inner, heads * (nope + rope + value) // 2


def _falcon_attention(c: Fields) -> tuple[int, int, int]:
    bias = c.flag("bias")
    if c.flag("new_decoder_architecture"):
        kv = c.number("num_kv_heads", c.heads) * c.head_dim
    else:
        kv = c.head_dim if c.flag("multi_query") else c.hidden
    return linear(c.hidden, c.hidden + 2 * kv, bias) + linear(c.hidden, c.hidden, bias), c.hidden, kv


def _falcon_norms(c: Fields) -> int:
    if c.flag("new_decoder_architecture"):
        return 2 if c.number("num_ln_in_parallel_attn", 2) == 2 else 1
    return 1 if c.flag("parallel_attn") else 2


def _one_key_head(c: Fields) -> tuple[int, int, int]:
    kv = c.head_dim if c.flag("multi_query") else c.hidden
    return linear(c.hidden, c.hidden + 2 * kv, True) + linear(c.hidden, c.hidden, True), c.hidden, kv


def _opt_extra(c: Fields) -> int:
    narrow = c.number("word_embed_proj_dim", c.hidden)
    final = c.flag("do_layer_norm_before") and not c.flag("_remove_final_layer_norm")
    size = 2 * c.hidden if c.flag("layer_norm_elementwise_affine") else 0
    # The layers' norms and the last one are counted with weight and bias; take away those that are not there.
    missing = (0 if final else 2 * c.hidden) + (0 if size else (2 * c.layers + int(final)) * 2 * c.hidden)
    return (2 * narrow * c.hidden if narrow != c.hidden else 0) - missing


def _whole_qk(c: Fields) -> int:
    return c.heads * c.head_dim + c.kv_heads * c.head_dim


_LLAMA = {"vocab_size": 32000, "num_attention_heads": 32, "intermediate_size": 11008, "tie_word_embeddings": False}
_MISTRAL = {**_LLAMA, "intermediate_size": 14336, "num_key_value_heads": 8}
_QWEN = {
    "vocab_size": 151936,
    "num_attention_heads": 32,
    "num_key_value_heads": 32,
    "intermediate_size": 22016,
    "tie_word_embeddings": False,
}
_GEMMA = {
    "vocab_size": 256000,
    "num_attention_heads": 16,
    "num_key_value_heads": 16,
    "head_dim": 256,
    "intermediate_size": 24576,
}
_GEMMA2 = {
    "vocab_size": 256000,
    "num_attention_heads": 8,
    "num_key_value_heads": 4,
    "head_dim": 256,
    "intermediate_size": 9216,
}
_OLMO = {**_LLAMA, "vocab_size": 50304}
_GPTJ = {"vocab_size": 50400, "num_attention_heads": 16, "tie_word_embeddings": False}
_COHERE = {"vocab_size": 256000, "num_attention_heads": 64, "intermediate_size": 22528}
_PHI = {"vocab_size": 32064, "num_attention_heads": 32, "intermediate_size": 8192, "tie_word_embeddings": False}
_GLM = {
    "vocab_size": 151552, "num_attention_heads": 32, "num_key_value_heads": 2, "head_dim": 128,
    "intermediate_size": 13696,
    "tie_word_embeddings": False, "attention_bias": True,
}  # fmt: skip
_GPT2 = {"vocab_size": 50257, "num_attention_heads": 12, "max_position_embeddings": 1024}
_DEEPSEEK = {"q_lora_rank": 1536, "kv_lora_rank": 512, "qk_rope_head_dim": 64, "qk_nope_head_dim": 128,
             "v_head_dim": 128,
             "tie_word_embeddings": False}  # fmt: skip

DECODERS: dict[str, Decoder] = {
    "llama": Decoder(_LLAMA, qkv_bias="attention_bias", out_bias="attention_bias", mlp_bias="mlp_bias"),
    "mistral": Decoder(_MISTRAL),
    "ministral": Decoder(_MISTRAL),
    "mixtral": Decoder({**_MISTRAL, "num_experts": 8, "num_experts_per_tok": 2}, experts=Experts()),
    "qwen2": Decoder(_QWEN, qkv_bias=True),
    "qwen2_moe": Decoder(
        {**_QWEN, "num_attention_heads": 16, "num_key_value_heads": 16, "intermediate_size": 5632, "num_experts": 60,
         "num_experts_per_tok": 4, "moe_intermediate_size": 1408, "shared_expert_intermediate_size": 5632,
         "qkv_bias": True},
        qkv_bias="qkv_bias",
        experts=Experts("moe_intermediate_size", shared=lambda c: c.number("shared_expert_intermediate_size"),
            shared_gate=True, layers=_every_nth),
    ),
    "qwen3": Decoder({**_QWEN, "head_dim": 128}, qkv_bias="attention_bias", out_bias="attention_bias", qk_norm=True),
    "qwen3_moe": Decoder(
        {**_QWEN, "num_key_value_heads": 4, "intermediate_size": 6144, "num_experts": 128, "num_experts_per_tok": 8,
         "moe_intermediate_size": 768},
        qkv_bias="attention_bias", out_bias="attention_bias", qk_norm=True, experts=Experts("moe_intermediate_size",
            layers=_every_nth),
    ),
    "gemma": Decoder(_GEMMA, qkv_bias="attention_bias", out_bias="attention_bias"),
    "gemma2": Decoder(_GEMMA2, norms=4, qkv_bias="attention_bias", out_bias="attention_bias"),
    "gemma3_text": Decoder({**_GEMMA2, "vocab_size": 262208}, norms=4, qkv_bias="attention_bias",
        out_bias="attention_bias", qk_norm=True),
    "phi": Decoder(
        {**_PHI, "vocab_size": 51200}, norm="layer", norms=1, qkv_bias=True, out_bias=True, gated=False, mlp_bias=True,
        head_bias=True,
        qk_norm="qk_layernorm", qk_norm_size=lambda c: 4 * c.head_dim,
    ),
    "phi3": Decoder(_PHI),
    "phimoe": Decoder(
        {**_PHI, "num_key_value_heads": 8, "intermediate_size": 6400, "num_experts": 16, "num_experts_per_tok": 2},
        norm="layer",
        qkv_bias="attention_bias", out_bias="attention_bias", head_bias="lm_head_bias", experts=Experts(),
    ),
    "olmo": Decoder(_OLMO, norm="none", qkv_bias="attention_bias", out_bias="attention_bias"),
    "olmo2": Decoder(_OLMO, qkv_bias="attention_bias", out_bias="attention_bias", qk_norm=True, qk_norm_size=_whole_qk),
    "olmo3": Decoder(_OLMO, qkv_bias="attention_bias", out_bias="attention_bias", qk_norm=True, qk_norm_size=_whole_qk),
    "olmoe": Decoder(
        {**_OLMO, "num_attention_heads": 16, "intermediate_size": 2048, "num_experts": 64, "num_experts_per_tok": 8},
        qkv_bias="attention_bias", out_bias="attention_bias", qk_norm=True, qk_norm_size=_whole_qk, experts=Experts(),
    ),
    "granite": Decoder(_LLAMA, qkv_bias="attention_bias", out_bias="attention_bias", mlp_bias="mlp_bias"),
    "granitemoe": Decoder(
        {**_LLAMA, "num_experts": 8, "num_experts_per_tok": 2}, qkv_bias="attention_bias", out_bias="attention_bias",
        experts=Experts()
    ),
    "smollm3": Decoder(
        {**_LLAMA, "vocab_size": 128256, "num_attention_heads": 16, "num_key_value_heads": 4,
         "tie_word_embeddings": True},
        qkv_bias="attention_bias", out_bias="attention_bias", mlp_bias="mlp_bias",
    ),
    "stablelm": Decoder(
        {**_OLMO, "intermediate_size": 6912, "num_key_value_heads": 32}, norm="layer", qkv_bias="use_qkv_bias",
        norms=lambda c: 1 if c.flag("use_parallel_residual") else 2, qk_norm="qk_layernorm", qk_norm_size=_whole_qk,
    ),
    "starcoder2": Decoder(
        {"vocab_size": 49152, "num_attention_heads": 24, "num_key_value_heads": 2, "intermediate_size": 12288,
         "use_bias": True},
        norm="layer", qkv_bias="use_bias", out_bias="use_bias", mlp_bias="use_bias", gated=False,
    ),
    "cohere": Decoder(
        _COHERE, norm="weight", norms=1, qkv_bias="attention_bias", out_bias="attention_bias", qk_norm="use_qk_norm",
        qk_norm_size=_whole_qk
    ),
    "cohere2": Decoder(_COHERE, norm="weight", norms=1, qkv_bias="attention_bias", out_bias="attention_bias"),
    "glm": Decoder(_GLM, qkv_bias="attention_bias"),
    "glm4": Decoder(_GLM, norms=4, qkv_bias="attention_bias"),
    "gpt_oss": Decoder(
        {"vocab_size": 201088, "num_attention_heads": 64, "num_key_value_heads": 8, "head_dim": 64,
         "intermediate_size": 2880,
         "attention_bias": True, "num_experts": 128, "num_experts_per_tok": 4, "tie_word_embeddings": False},
        qkv_bias="attention_bias", out_bias="attention_bias", layer_extra=lambda c: c.heads,
        experts=Experts(router_bias=True, bias=True),
    ),
    "deepseek_v2": Decoder(
        {**_DEEPSEEK, "vocab_size": 102400, "num_attention_heads": 32, "intermediate_size": 11008, "num_experts": 64,
         "n_shared_experts": 2,
         "moe_intermediate_size": 1407}, attention=_latent_attention, mlp_bias="mlp_bias",
        experts=Experts("moe_intermediate_size",
            shared=lambda c: c.number("n_shared_experts") * c.number("moe_intermediate_size"), layers=_after_the_first),
    ),
    "deepseek_v3": Decoder(
        {**_DEEPSEEK, "vocab_size": 129280, "num_attention_heads": 128, "intermediate_size": 18432, "num_experts": 256,
         "n_shared_experts": 1,
         "moe_intermediate_size": 2048, "num_experts_per_tok": 8, "first_k_dense_replace": 3},
         attention=_latent_attention,
        experts=Experts("moe_intermediate_size",
            shared=lambda c: c.number("n_shared_experts") * c.number("moe_intermediate_size"), layers=_after_the_first),
    ),
    "gpt2": Decoder(_GPT2, norm="layer", qkv_bias=True, out_bias=True, gated=False, mlp_bias=True, positions=0),
    "gpt_neo": Decoder(
        {"vocab_size": 50257, "num_attention_heads": 16, "max_position_embeddings": 2048}, norm="layer", out_bias=True,
        gated=False,
        mlp_bias=True, positions=0,
    ),
    "gptj": Decoder(_GPTJ, norm="layer", norms=1, gated=False, mlp_bias=True, head_bias=True),
    "codegen": Decoder(_GPTJ, norm="layer", norms=1, gated=False, mlp_bias=True, head_bias=True),
    "gpt_neox": Decoder(
        {"vocab_size": 50432, "num_attention_heads": 64, "intermediate_size": 24576, "attention_bias": True,
         "tie_word_embeddings": False},
        norm="layer", qkv_bias="attention_bias", out_bias="attention_bias", gated=False, mlp_bias=True,
    ),
    "gpt_bigcode": Decoder({**_GPT2, "multi_query": True}, norm="layer", attention=_one_key_head, gated=False,
        mlp_bias=True, positions=0),
    "opt": Decoder(
        {"vocab_size": 50272, "num_attention_heads": 12, "intermediate_size": 3072, "max_position_embeddings": 2048,
         "enable_bias": True,
         "layer_norm_elementwise_affine": True, "do_layer_norm_before": True, "word_embed_proj_dim": None},
        norm="layer", qkv_bias="enable_bias", out_bias="enable_bias", gated=False, mlp_bias="enable_bias", positions=2,
        extra=_opt_extra,
        embedding=lambda c: c.number("word_embed_proj_dim", c.hidden),
    ),
    "bloom": Decoder(
        {"vocab_size": 250880, "num_attention_heads": 8}, norm="layer", qkv_bias=True, out_bias=True, gated=False,
        mlp_bias=True,
        extra=lambda c: 2 * c.hidden,
    ),
    "falcon": Decoder(
        {"vocab_size": 65024, "num_attention_heads": 71, "parallel_attn": True, "multi_query": True}, norm="layer",
        norms=_falcon_norms,
        attention=_falcon_attention, gated=False, mlp_bias="bias",
    ),
    "mpt": Decoder(
        {"vocab_size": 50368, "num_attention_heads": 16}, norm="weight", gated=False,
    ),
}  # fmt: skip
