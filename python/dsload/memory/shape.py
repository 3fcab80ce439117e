"""The shape of a model for the sums of `estimate`, read from its config."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Optional

from . import modules
from .fields import Fields, text_config


@dataclass(frozen=True)
class ModelShape:
    """The shape of a transformer for the sums. `ModelShape.of(config)` makes it from Hugging Face's names.

    feed_forward: the width that a token passes through in a layer: with experts, those that it is routed to and the
    shared ones, averaged over the layers.
    """

    vocab_size: int
    hidden: int
    layers: int
    heads: int
    kv_heads: int
    head_dim: int
    feed_forward: int
    decoder_layers: int = 0
    positions: int = 0
    is_encoder_decoder: bool = False
    is_gated: bool = False
    is_causal: bool = True
    tied: bool = True
    rms_norm: bool = False
    activation: str = "gelu"
    bias: bool = True
    dropout: float = 0.0
    attention_dropout: float = 0.0
    relative_bias: bool = False
    norms: int = 2  # of a layer
    qk_norm: bool = False  # of queries and keys
    caps_scores: bool = False  # by tanh, as Gemma 2 does
    caps_logits: bool = False
    kv_width: int = 0  # of a token's keys or values in a layer; 0: kv_heads x head_dim
    family: str = ""
    counted: Optional[int] = None  # parameters of the modules; None means the plain sum in `parameters`
    active: Optional[int] = None  # of them, those used for any one token
    experts: int = 0  # in a layer
    experts_per_token: int = 0
    notes: tuple[str, ...] = ()  # assumptions, as sentences

    @staticmethod
    def of(config: Any) -> ModelShape:
        """From a Hugging Face config object, a model that has one, or a dict with the same names.

        A model is asked what it is made of, and so is one that transformers makes of the config without memory
        (`modules`). Without transformers, and for an architecture that it does not know, the shape is that of a plain
        transformer with the config's sizes, and `notes` says so.

        Raises:
            ValueError: if the config names no hidden size or number of layers.
        """
        if isinstance(config, str):
            raise ValueError(
                f"{config!r} is a name; pass a config or a model, such as AutoConfig.from_pretrained({config!r})"
            )
        model, config = (config, config.config) if hasattr(config, "config") else (None, config)
        if callable(getattr(model, "modules", None)):
            c = Fields(text_config(config))
            return replace(plain(c), **modules.facts(model, c))
        facts: dict[str, Any] = {}
        try:
            config, facts = modules.of_config(config)
        except modules.NotKnown as e:
            facts["notes"] = (
                f"{e}: counted as a plain transformer with the sizes of its config; pass the model itself to be exact",
            )
        return replace(plain(Fields(text_config(config))), **facts)

    @property
    def inner(self) -> int:
        return self.heads * self.head_dim

    @property
    def kv_inner(self) -> int:
        return self.kv_width or self.kv_heads * self.head_dim

    def parameters(self) -> int:
        """Number of parameters: the model's own where it is known, else those of a plain transformer of this shape."""
        return self._plain_parameters(all_experts=True) if self.counted is None else self.counted

    def active_parameters(self) -> int:
        """Of the parameters, those used for any one token: fewer in a mixture of experts."""
        if self.active is not None:
            return self.active
        return self._plain_parameters(all_experts=False) if self.counted is None else self.counted

    def _plain_parameters(self, all_experts: bool) -> int:
        h, bias = self.hidden, int(self.bias)
        norm = h * (1 + bias)
        attention = h * self.inner * 2 + h * self.kv_inner * 2 + bias * (self.inner + 2 * self.kv_inner + h)
        feed = h * self.feed_forward * (3 if self.is_gated else 2) + bias * (self.feed_forward + h)
        if self.experts and all_experts:
            feed = feed * self.experts // self.experts_per_token
        total = self.vocab_size * h * (1 if self.tied else 2) + self.positions * h + norm
        total += self.layers * (attention + feed + 2 * norm)
        if self.is_encoder_decoder:
            total += self.decoder_layers * (2 * attention + feed + 3 * norm) + norm
        if self.relative_bias:
            total += 2 * 32 * self.heads
        return total


def plain(c: Fields) -> ModelShape:
    """The shape that the config's fields say."""
    hidden, heads = c.number("hidden_size"), c.number("num_attention_heads", 1)
    if not hidden or not c.number("num_hidden_layers"):
        raise ValueError(
            "the config names neither hidden_size (n_embd, d_model) nor num_hidden_layers (n_layer, num_layers)"
        )

    def first(*names: str) -> Any:
        return next((v for v in map(c.get, names) if v is not None), None)

    dropout = first("resid_pdrop", "dropout_rate", "hidden_dropout_prob", "dropout") or 0.0
    of_attention = first("attn_pdrop", "attention_dropout", "attention_probs_dropout_prob", "dropout_rate") or 0.0
    named = first("activation_function", "hidden_activation", "hidden_act", "dense_act_fn")
    activation = str(named or "gelu_new")  # GPT-2's, which keeps most
    # Since Llama, decoders have gated blocks, RMS norms and rotary positions, and no biases.
    recent = activation in ("silu", "swish") or c.get("rms_norm_eps") is not None
    gated = recent or str(c.get("feed_forward_proj")).startswith("gated")
    relative = c.get("relative_attention_num_buckets") is not None  # T5's, without a limit
    experts = c.number("num_experts")
    chosen = min(c.number("num_experts_per_tok", 1), experts)
    width = c.number("intermediate_size", 4 * hidden)
    pairs = bool(c.get("is_encoder_decoder"))
    return ModelShape(
        vocab_size=c.number("vocab_size", 50257),
        hidden=hidden,
        layers=c.number("num_hidden_layers"),
        decoder_layers=c.number("num_decoder_layers", c.number("num_hidden_layers")) if pairs else 0,
        heads=heads,
        kv_heads=c.number("num_key_value_heads", heads),
        head_dim=c.number("head_dim", hidden // heads),
        feed_forward=chosen * c.number("moe_intermediate_size", width) if experts else width,
        positions=0 if recent or relative else c.number("max_position_embeddings"),
        is_encoder_decoder=pairs,
        is_gated=gated,
        rms_norm=recent or relative,
        bias=not (recent or relative),
        tied=bool(c.get("tie_word_embeddings", True)),
        activation=activation,
        dropout=float(dropout),
        attention_dropout=float(of_attention),
        caps_scores=c.get("attn_logit_softcapping") is not None,
        caps_logits=c.get("final_logit_softcapping") is not None,
        relative_bias=relative,
        family=str(c.get("model_type", "")),
        experts=experts,
        experts_per_token=chosen,
    )
