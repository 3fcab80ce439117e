"""What a forward pass in training keeps for the backward pass, in bytes.

Counted tensor by tensor as autograd keeps them in transformers' implementations; the comments say what a layer saves.
A dtype has three widths: of the residual stream and the norms, of what linear layers and attention make, and of a
dropout mask. Under autocast the first is float32, the second bfloat16, and every linear layer keeps a bfloat16 copy of
its own of a float32 input, and of its weights.
"""

from __future__ import annotations

from dataclasses import dataclass

from .shape import ModelShape


@dataclass(frozen=True)
class Kept:
    """Bytes that all layers keep. layers: what they keep besides scores: matrices of attention, rows × heads × length ×
    length. casts: autocast's copies of activations. A part of one layer is that of an average one."""

    layers: float
    scores: float
    casts: float

    @property
    def all(self) -> float:
        return self.layers + self.scores + self.casts


@dataclass(frozen=True)
class Forward:
    """A forward pass of a model under these settings."""

    shape: ModelShape
    batch: int
    length: int
    target: int
    attention: str
    dtype: str
    device: str
    padded: bool

    @property
    def mixed(self) -> bool:
        return self.dtype == "mixed"

    @property
    def made(self) -> int:
        """Bytes of an element that a linear layer or attention makes."""
        return {"float32": 4, "float": 4, "int8": 1}.get(self.dtype, 2)

    @property
    def stream(self) -> int:
        """Bytes of an element of the residual stream."""
        return 4 if self.mixed else self.made

    @property
    def mask(self) -> int:
        """Bytes of an element of a dropout mask."""
        return 1 if self.device != "cpu" else self.made

    @property
    def source_tokens(self) -> int:
        return self.batch * self.length

    @property
    def target_tokens(self) -> int:
        return self.batch * self.target if self.shape.is_encoder_decoder else 0

    def kept(self) -> Kept:
        s = self.shape
        layers = scores = casts = 0.0
        source, target = self.source_tokens, self.target_tokens
        norm, norm_casts = self._norm(3)  # read by the projections of queries, keys and values
        second, second_casts = self._norm(2 if s.is_gated else 1)
        feed, feed_casts = self._feed_forward()
        more = max(s.norms - 2, 0) * self._norm(1)[0]  # of what attention and the block write
        block = norm + self._attention(s.inner, s.kv_inner) + second + feed + more
        block_casts = norm_casts + second_casts + feed_casts
        layers += s.layers * source * block
        casts += s.layers * source * block_casts
        scores += s.layers * self._scores(self.length, self.length)
        if target:
            cross, cross_casts = self._norm(1)
            cross += self._attention(s.inner, 0)
            layers += s.decoder_layers * (target * (block + cross) + source * 2 * s.kv_inner * self.made)
            # The keys and values of each layer are made of copies of the encoder's output.
            casts += s.decoder_layers * (target * (block_casts + cross_casts) + source * 2 * self._cast(s.hidden))
            scores += s.decoder_layers * (
                self._scores(self.target, self.target) + self._scores(self.target, self.length)
            )
        ends = self._norm(1)[0] + 2 * self._dropout(s.hidden)  # the embeddings and the last norm
        return Kept(layers + (source + target) * ends, scores, casts)

    def layer_inputs(self) -> float:
        """What is kept with gradient checkpointing: the input of each layer."""
        s = self.shape
        tokens = self.source_tokens * s.layers + self.target_tokens * s.decoder_layers
        # T5's positions, which the layers share, are those of one row.
        positions = sum(self._count(n, m) for n, m in self._lengths()) / self.batch * self.made
        kept = tokens * s.hidden * self.stream + (positions if s.relative_bias else 0)
        return kept + (self.source_tokens + self.target_tokens) * self._norm(1)[0]

    def working(self) -> float:
        """Gradients of one layer's widest parts, while the backward pass is in it."""
        s = self.shape
        width = 4 if self.mixed and self._written_out() else self.made
        wide = max(self.source_tokens, self.target_tokens) * s.feed_forward * width * (3 if s.is_gated else 2)
        if not self._writes_scores():
            return wide
        # Dropped scores are freed once their gradient is there, in place of a second gradient.
        copies = 1 if s.attention_dropout > 0 else 2
        each = copies * (self.made if self._softmax_as_it_comes() else 4)
        return max(wide, each * max(self._count(n, m) for n, m in self._lengths()))

    def _lengths(self) -> list[tuple[int, int]]:
        """(queries, keys) of each kind of attention."""
        more = [(self.target, self.target), (self.target, self.length)] if self.shape.is_encoder_decoder else []
        return [(self.length, self.length), *more]

    def _cast(self, elements: float) -> float:
        return 2 * elements if self.mixed else 0.0

    def _dropout(self, elements: float) -> float:
        return self.mask * elements if self.shape.dropout > 0 else 0.0

    def _norm(self, readers: int) -> tuple[float, float]:
        """(bytes, autocast's copies) of a norm and its output, which `readers` linear layers read."""
        h = self.shape.hidden
        if not self.shape.rms_norm:
            kept = self.stream * h  # its input
        elif self.stream == 4:
            kept = 2 * 4 * h  # its input and the normalised value
        else:
            kept = (4 + 2) * h  # its input in float32, and the normalised value
            kept += 2 * h if self.shape.relative_bias else 0  # T5's multiplies the input itself
        return (kept, readers * self._cast(h)) if self.mixed else (kept + self.made * h, 0.0)

    def _attention(self, inner: int, kv: int) -> float:
        """Queries and the output, keys and values, and the output's dropout, of a token."""
        repeated = 2 * (inner - kv) if kv and self._repeats() else 0
        # A norm of queries and keys keeps their float32 form, and the normalised one.
        normed = (inner + kv) * (4 + self.made) if self.shape.qk_norm else 0
        return self.made * (2 * inner + 2 * kv + repeated) + normed + self._dropout(self.shape.hidden)

    def _repeats(self) -> bool:
        """Reports whether keys and values are repeated for every head: unless a fused kernel takes fewer of them."""
        return self.attention == "eager" or self.padded or self.made == 4

    def _feed_forward(self) -> tuple[float, float]:
        """(bytes, autocast's copies) of a feed-forward block, of a token, and its dropout."""
        s = self.shape
        kept, casts, result = 2.0 * self.made, 0.0, self.made  # a fused kernel's input and result
        if self._written_out():  # in Python: x, tanh, 1 + tanh, x / 2, the result
            kept = 5.0 * self.made
            if self.mixed:  # all but x / 2 in float32: pow() is one of autocast's float32 functions
                kept, casts, result = 4 + 4 + 4 + 2.0, 2.0, 4
        elif s.activation == "relu":
            kept = float(self.made)  # the result serves the backward pass of relu too
        if s.is_gated:
            kept += 2.0 * self.made  # the other branch and the product
            if casts:  # the result is kept in float32, and the product's copy is counted as casts
                kept += result - self.made
        if s.relative_bias and s.dropout > 0:  # only T5 drops inside the block
            kept += self.mask + (0.0 if s.is_gated or casts else self.made)
        return kept * s.feed_forward + self._dropout(s.hidden), casts * s.feed_forward

    def _written_out(self) -> bool:
        return self.shape.activation in ("gelu_new", "gelu_fast")

    def _count(self, queries: int, keys: int) -> float:
        return float(self.batch * self.shape.heads * queries * keys)

    def _scores(self, queries: int, keys: int) -> float:
        return self._score_bytes() * self._count(queries, keys)

    def _writes_scores(self) -> bool:
        """Reports whether no fused kernel computes attention: without one for float32 with fewer key heads, and on the
        CPU for dropout."""
        s = self.shape
        fused = self.made < 4 or s.kv_inner == s.inner if self.device != "cpu" else not s.attention_dropout
        return self.attention == "eager" or not fused

    def _softmax_as_it_comes(self) -> bool:
        """Reports whether softmax is computed in the dtype of the scores: older models do. The others, and autocast,
        do so in float32."""
        s = self.shape
        return not self.mixed and (s.is_encoder_decoder or not s.is_causal or s.family == "gpt2")

    def _score_bytes(self) -> float:
        """Bytes that a layer keeps of each score."""
        s, dropped = self.shape, self.shape.attention_dropout > 0
        if not self._writes_scores():
            # T5's mask with its positions, which every layer makes: one for all rows without padding.
            return self.made / (1 if self.padded else self.batch) if s.relative_bias else 0
        capped = self.made if s.caps_scores else 0
        if self.attention == "eager" and self.made == 2 and not self._softmax_as_it_comes():
            return capped + 4 + 2 + (self.mask if dropped else 0)  # softmax in float32, and its copy that is multiplied
        return capped + self.made + (self.mask + self.made if dropped else 0)
