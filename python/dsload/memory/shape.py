"""The shape of a model for the sums of `estimate`, read from its config."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Optional, Union

from .encoders import ENCODERS, T5, Bart, Encoder, ModernBert, vision_tower
from .families import DECODERS, Count, Decoder, Fields, linear

Family = Union[Decoder, Encoder, ModernBert, T5, Bart]
FAMILIES: dict[str, Family] = {**DECODERS, **ENCODERS}

# Endings of the class names in a config's `architectures` that mean the head with which a family is counted.
_LANGUAGE_HEADS = ("ForCausalLM", "LMHeadModel", "ForConditionalGeneration", "ForMaskedLM", "MTModel")


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
    counted: Optional[int] = None  # parameters by the architecture; None means the plain sum in `parameters`
    active: Optional[int] = None  # of them, those used for any one token
    experts: int = 0  # in a layer
    experts_per_token: int = 0
    notes: tuple[str, ...] = ()  # assumptions, as sentences

    @staticmethod
    def of(config: Any) -> ModelShape:
        """From a Hugging Face config object, a model that has one, or a dict with the same names.

        A model's parameters are counted directly, a config's by its architecture (`families`).

        Raises:
            ValueError: if the config names no hidden size or number of layers, or an unknown architecture.
        """
        if isinstance(config, str):
            raise ValueError(
                f"{config!r} is a name; pass a config or a model, such as AutoConfig.from_pretrained({config!r})"
            )
        model, config = (config, config.config) if hasattr(config, "config") else (None, config)
        counted = _held(model)
        config, tower = _text_model(config)
        name = family_name(config)
        family = FAMILIES.get(name)
        c = Fields(config, family.defaults if family is not None else {})
        if not c.hidden or not c.layers:
            raise ValueError(
                "the config names neither hidden_size (n_embd, d_model) nor num_hidden_layers (n_layer, num_layers)"
            )
        if family is None:
            if counted is None:
                raise ValueError(_unknown(config, name))
            shape = _plain(c)
            note = (
                f"the architecture {name or type(model).__name__!r} is not known: "
                "its activations are counted as a plain decoder's"
            )
            return replace(shape, family=name, counted=counted, active=counted, notes=(note,))
        count = family.count(c)
        total, note = _with_head(config, family, c, count)
        if tower is not None:
            total += vision_tower(tower, c.hidden)
        total = counted if counted is not None else total
        shape = replace(
            _plain(c),
            kv_heads=max(1, count.kv_inner // max(1, count.q_inner // c.heads)),
            head_dim=max(1, count.q_inner // c.heads),
            kv_width=count.kv_inner,
            feed_forward=count.feed_forward,
            positions=count.positions,
            is_causal=family.kind != "masked",
            family=name,
            counted=total,
            active=total - count.idle,
            experts=count.experts,
            experts_per_token=count.experts_per_token,
            notes=(note,) if note and counted is None else (),
            rms_norm=isinstance(family, T5) or getattr(family, "norm", "") == "rms",
            relative_bias=isinstance(family, T5),
            tied=c.tied,
        )
        if isinstance(family, Decoder):
            norms = family.norms if isinstance(family.norms, int) else family.norms(c)
            gated = family.gated or count.experts > 0
            shape = replace(shape, is_gated=gated, norms=norms, qk_norm=c.flag(family.qk_norm))
        elif isinstance(family, T5):
            projection = str(c.get("feed_forward_proj"))
            activation = "gelu_new" if "gelu" in projection else (projection.replace("gated-", "") or "relu")
            shape = replace(
                shape,
                is_gated=projection.startswith("gated"),
                activation=activation,
                is_encoder_decoder=True,
                decoder_layers=c.number("num_decoder_layers", c.layers),
            )
        elif isinstance(family, Bart):
            shape = replace(shape, is_encoder_decoder=True, decoder_layers=c.number("decoder_layers"))
        return replace(shape, is_gated=True) if isinstance(family, ModernBert) else shape

    @property
    def inner(self) -> int:
        return self.heads * self.head_dim

    @property
    def kv_inner(self) -> int:
        return self.kv_width or self.kv_heads * self.head_dim

    def parameters(self) -> int:
        """Number of parameters: by the architecture if the shape was made from a config, else those of a plain
        transformer of this shape."""
        if self.counted is not None:
            return self.counted
        h, bias = self.hidden, int(self.bias)
        norm = h * (1 + bias)
        attention = h * self.inner * 2 + h * self.kv_inner * 2 + bias * (self.inner + 2 * self.kv_inner + h)
        feed = h * self.feed_forward * (3 if self.is_gated else 2) + bias * (self.feed_forward + h)
        total = self.vocab_size * h * (1 if self.tied else 2) + self.positions * h + norm
        total += self.layers * (attention + feed + 2 * norm)
        if self.is_encoder_decoder:
            total += self.decoder_layers * (2 * attention + feed + 3 * norm) + norm
        if self.relative_bias:
            total += 2 * 32 * self.heads
        return total


def _get(config: Any, name: str) -> Any:
    return config.get(name) if isinstance(config, Mapping) else getattr(config, name, None)


def _held(model: Any) -> Optional[int]:
    """The parameters of a module; tied ones count once."""
    if model is None or not callable(getattr(model, "parameters", None)):
        return None
    return sum(int(p.numel()) for p in model.parameters())


def family_name(config: Any) -> str:
    """The architecture: `model_type`, else the beginning of the class name in `architectures`; "" if neither is
    known."""
    if kind := _get(config, "model_type"):
        return str(kind)
    for architecture in _get(config, "architectures") or ():
        plain = {name.replace("_", "").replace("-", ""): name for name in FAMILIES}
        for stem in sorted(plain, key=len, reverse=True):
            if str(architecture).lower().startswith(stem) and str(architecture)[len(stem) : len(stem) + 1] in (
                "F",
                "L",
                "M",
                "W",
            ):
                return plain[stem]
        return str(architecture)
    return ""


def _text_model(config: Any) -> tuple[Any, Any]:
    """The config of the language model, and that of the vision tower, which only Gemma 3 may have."""
    if _get(config, "model_type") != "gemma3":
        return config, None
    text = _get(config, "text_config") or {}
    if isinstance(text, Mapping):
        text = {"hidden_size": 2304, "num_hidden_layers": 26, **text, "model_type": "gemma3_text"}
    return text, _get(config, "vision_config") or {}


def _unknown(config: Any, name: str) -> str:
    if not name:
        return (
            "the config does not say its architecture: add model_type, as in a published config.json, or pass the "
            "model itself"
        )
    if _get(config, "text_config") is not None:
        return (
            f"cannot count the parameters of {name!r}, a model of several parts: "
            "pass its text_config, or the model itself"
        )
    return (
        f"cannot count the parameters of the architecture {name!r}: pass the model itself, which may be made on "
        "torch's meta device (with torch.device('meta'): AutoModelForCausalLM.from_config(config)); known are "
        f"{', '.join(sorted(FAMILIES))}"
    )


def _with_head(config: Any, family: Family, c: Fields, count: Count) -> tuple[int, str]:
    """All parameters of the class that the config names, and a note if that class is unknown."""
    architectures = _get(config, "architectures") or ()
    name = str(architectures[0]) if architectures else ""
    if not name or name.endswith(_LANGUAGE_HEADS):
        return count.trunk + count.head, ""
    labels = len(c.get("id2label") or ()) or c.number("num_labels", 2)
    encoder = isinstance(family, Encoder)
    if name.endswith("ForSequenceClassification") and (encoder or isinstance(family, Decoder)):
        return count.trunk + (linear(c.hidden, c.hidden, True) if encoder else 0) + linear(
            c.hidden, labels, encoder
        ), ""
    if name.endswith("ForTokenClassification") and (encoder or isinstance(family, Decoder)):
        return count.trunk + linear(c.hidden, labels, True), ""
    if name.endswith("Model"):
        return count.trunk + (family.pool(c) if isinstance(family, (Encoder, ModernBert)) else 0), ""
    return count.trunk + count.head, f"the head of {name} is not known: counted with the one that predicts tokens"


def _plain(c: Fields) -> ModelShape:
    """The shape without what only the family knows."""
    kind = str(c.get("model_type") or "")

    def first(*names: str, default: Any = None) -> Any:
        return next((v for v in map(c.get, names) if v is not None), default)

    drop = first("resid_pdrop", "dropout_rate", "hidden_dropout_prob", "dropout", default=0.0)
    default = "gelu_new" if kind == "gpt2" else "gelu"
    return ModelShape(
        vocab_size=c.vocabulary or 50257,
        hidden=c.hidden,
        layers=c.layers,
        heads=c.heads,
        kv_heads=c.kv_heads,
        head_dim=c.head_dim,
        feed_forward=c.width,
        tied=c.tied,
        caps_scores=c.get("attn_logit_softcapping") is not None,
        caps_logits=c.get("final_logit_softcapping") is not None,
        dropout=float(drop or 0.0),
        activation=str(
            first("activation_function", "hidden_activation", "hidden_act", "dense_act_fn", default=default)
        ),
        attention_dropout=float(
            first(
                "attn_pdrop", "attention_dropout", "attention_probs_dropout_prob", default=drop if "t5" in kind else 0.0
            )
            or 0.0
        ),
    )
