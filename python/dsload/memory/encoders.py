"""The parameters of encoders and encoder-decoders, and of models with a vision tower: the rest of `families`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Union

from .families import Count, Fields, linear, mlp


@dataclass(frozen=True)
class Encoder:
    """A masked language model like BERT. The head is a transform of the hidden size and the tied output with its
    bias."""

    defaults: Mapping[str, Any] = field(default_factory=dict)
    pooler: bool = True  # the bare model and classifiers have one
    separate_embedding: bool = False  # embedding_size may differ from the hidden size
    shared_layers: bool = False  # one layer's parameters serve every layer
    kind: str = "masked"

    def count(self, c: Fields) -> Count:
        h = c.hidden
        e = c.number("embedding_size", h) if self.separate_embedding else h
        positions = c.number("max_position_embeddings")
        trunk = (c.vocabulary + positions + c.number("type_vocab_size")) * e + 2 * e
        trunk += linear(e, h, True) if self.shared_layers or e != h else 0
        layer = 4 * linear(h, h, True) + mlp(h, c.width, False, True) + 4 * h
        trunk += layer * (1 if self.shared_layers else c.layers)
        head = linear(h, e, True) + 2 * e + c.vocabulary
        if not c.tied:
            head += c.vocabulary * e + (
                c.vocabulary if self.pooler else 0
            )  # those with a pooler then have the output's bias twice
        return Count(trunk, head, 0, c.width, 0, 0, h, h, positions)

    def pool(self, c: Fields) -> int:
        return linear(c.hidden, c.hidden, True) if self.pooler else 0


@dataclass(frozen=True)
class ModernBert:
    """ModernBERT: rotary positions, gated blocks, norms without bias; the first layer has no norm before its
    attention."""

    defaults: Mapping[str, Any] = field(default_factory=dict)
    kind: str = "masked"

    def count(self, c: Fields) -> Count:
        h, attention, block = c.hidden, c.flag("attention_bias"), c.flag("mlp_bias")
        norm = h * (2 if c.flag("norm_bias") else 1)
        layer = (
            linear(h, 3 * h, attention)
            + linear(h, h, attention)
            + linear(h, 2 * c.width, block)
            + linear(c.width, h, block)
        )
        trunk = c.vocabulary * h + norm + c.layers * (layer + 2 * norm) - norm + norm
        head = linear(h, h, c.flag("classifier_bias")) + norm + (c.vocabulary if c.flag("decoder_bias") else 0)
        return Count(trunk, head + (0 if c.tied else c.vocabulary * h), 0, c.width, 0, 0, h, h)

    def pool(self, c: Fields) -> int:
        return 0


@dataclass(frozen=True)
class T5:
    """T5's encoder-decoder: relative positions, RMS norms, no biases. every: each layer has its own relative positions
    (umT5)."""

    defaults: Mapping[str, Any] = field(default_factory=dict)
    every: bool = False
    kind: str = "seq2seq"

    def count(self, c: Fields) -> Count:
        h, inner, layers = c.hidden, c.heads * c.number("d_kv"), c.layers
        decoder = c.number("num_decoder_layers", layers)
        attention = 4 * h * inner + h
        feed = mlp(h, c.width, str(c.get("feed_forward_proj")).startswith("gated")) + h
        relative = c.number("relative_attention_num_buckets", 32) * c.heads
        trunk = c.vocabulary * h + layers * (attention + feed) + decoder * (2 * attention + feed) + 2 * h
        trunk += relative * (layers + decoder if self.every else 2)
        return Count(trunk, 0 if c.tied else c.vocabulary * h, 0, c.width, 0, 0, inner, inner)


@dataclass(frozen=True)
class Bart:
    """BART's encoder-decoder and its relatives. offset: learned positions in addition to the config's; None: sinusoids
    in a buffer."""

    defaults: Mapping[str, Any] = field(default_factory=dict)
    offset: Union[int, None] = 0
    embedding_norm: bool = True
    final_norm: bool = False
    kind: str = "seq2seq"

    def count(self, c: Fields) -> Count:
        h, encoder, decoder = c.hidden, c.number("encoder_layers"), c.number("decoder_layers")
        attention, norm = 4 * linear(h, h, True), 2 * h
        first = attention + mlp(h, c.number("encoder_ffn_dim"), False, True) + 2 * norm
        second = 2 * attention + mlp(h, c.number("decoder_ffn_dim"), False, True) + 3 * norm
        trunk = (
            c.vocabulary * h
            + encoder * first
            + decoder * second
            + 2 * norm * (int(self.embedding_norm) + int(self.final_norm))
        )
        positions = c.number("max_position_embeddings")
        if self.offset is not None:
            trunk += 2 * (positions + self.offset) * h
        # Untied means that the encoder, the decoder and the head each have their own matrix besides the shared one.
        return Count(
            trunk, 0 if c.tied else 3 * c.vocabulary * h, 0, c.number("encoder_ffn_dim"), 0, 0, h, h, positions
        )


_BERT = {
    "vocab_size": 30522,
    "num_attention_heads": 12,
    "intermediate_size": 3072,
    "max_position_embeddings": 512,
    "type_vocab_size": 2,
}
_T5 = {
    "vocab_size": 32128,
    "num_attention_heads": 8,
    "intermediate_size": 2048,
    "d_kv": 64,
    "feed_forward_proj": "relu",
}
_MT5 = {
    **_T5,
    "vocab_size": 250112,
    "num_attention_heads": 6,
    "intermediate_size": 1024,
    "feed_forward_proj": "gated-gelu",
}
_BART = {"vocab_size": 50265, "num_attention_heads": 16, "max_position_embeddings": 1024, "encoder_layers": 12,
         "decoder_layers": 12,
         "encoder_ffn_dim": 4096, "decoder_ffn_dim": 4096}  # fmt: skip

ENCODERS: dict[str, Union[Encoder, ModernBert, T5, Bart]] = {
    "bert": Encoder(_BERT),
    "roberta": Encoder({**_BERT, "vocab_size": 50265}),
    "xlm-roberta": Encoder(_BERT),
    "camembert": Encoder(_BERT),
    "distilbert": Encoder({**_BERT, "type_vocab_size": 0}, pooler=False),
    "electra": Encoder(
        {**_BERT, "num_attention_heads": 4, "intermediate_size": 1024, "embedding_size": 128}, pooler=False,
        separate_embedding=True
    ),
    "albert": Encoder(
        {**_BERT, "vocab_size": 30000, "num_attention_heads": 64, "intermediate_size": 16384, "embedding_size": 128},
        separate_embedding=True, shared_layers=True,
    ),
    "modernbert": ModernBert(
        {"vocab_size": 50368, "num_attention_heads": 12, "intermediate_size": 1152, "decoder_bias": True,
         "max_position_embeddings": 8192}
    ),
    "t5": T5(_T5),
    "mt5": T5(_MT5),
    "umt5": T5(_MT5, every=True),
    "bart": Bart(_BART, offset=2),
    "mbart": Bart(_BART, offset=2, final_norm=True),
    "pegasus": Bart(_BART, embedding_norm=False, final_norm=True),
    "marian": Bart({**_BART, "vocab_size": 58101}, embedding_norm=False),
    "m2m_100": Bart({**_BART, "vocab_size": 128112}, offset=None, embedding_norm=False, final_norm=True),
}  # fmt: skip


def vision_tower(config: Any, text_hidden: int) -> int:
    """The parameters of Gemma 3's vision tower: a SigLIP encoder of patches, and the projection into the text model."""
    c = Fields(config, {"hidden_size": 768, "num_hidden_layers": 12, "num_attention_heads": 12,
                        "intermediate_size": 3072,
                        "image_size": 224, "patch_size": 16, "num_channels": 3})  # fmt: skip
    h, patch = c.hidden, c.number("patch_size")
    size = linear(c.number("num_channels") * patch * patch, h, True) + (c.number("image_size") // patch) ** 2 * h
    size += c.layers * (4 * linear(h, h, True) + mlp(h, c.width, False, True) + 4 * h) + 2 * h
    return size + h * text_hidden + h
