"""Small models made from configs, and batches for them."""

from __future__ import annotations

from typing import Any, Optional

import torch
import transformers

transformers.logging.set_verbosity_error()


def gpt2(vocab: int = 211, layers: int = 2, width: int = 32, heads: int = 2, dropout: float = 0.0, **more: Any) -> Any:
    torch.manual_seed(1)
    config = transformers.GPT2Config(
        vocab_size=vocab, n_layer=layers, n_embd=width, n_head=heads, n_positions=512, bos_token_id=0, eos_token_id=0,
        resid_pdrop=dropout, embd_pdrop=dropout, attn_pdrop=dropout, **more,
    )  # fmt: skip
    return transformers.GPT2LMHeadModel(config)


def t5(vocab: int = 211, layers: int = 2, width: int = 32, heads: int = 2, dropout: float = 0.0, **more: Any) -> Any:
    torch.manual_seed(1)
    more = {"d_ff": 2 * width, **more}
    config = transformers.T5Config(
        vocab_size=vocab, num_layers=layers, d_model=width, d_kv=width // heads, num_heads=heads,
        dropout_rate=dropout, decoder_start_token_id=0, pad_token_id=0, is_encoder_decoder=True,
        tie_word_embeddings=True, **more,
    )  # fmt: skip
    return transformers.T5ForConditionalGeneration(config)


def llama(vocab: int = 211, layers: int = 2, width: int = 32, heads: int = 2, **more: Any) -> Any:
    torch.manual_seed(1)
    config = transformers.LlamaConfig(
        vocab_size=vocab, num_hidden_layers=layers, hidden_size=width, num_attention_heads=heads,
        intermediate_size=3 * width,
        bos_token_id=0, eos_token_id=0, max_position_embeddings=1024, **more,
    )  # fmt: skip
    return transformers.LlamaForCausalLM(config)


def bart(vocab: int = 211, layers: int = 2, width: int = 32, heads: int = 2, **more: Any) -> Any:
    torch.manual_seed(1)
    config = transformers.BartConfig(
        vocab_size=vocab, encoder_layers=layers, decoder_layers=layers, d_model=width, encoder_attention_heads=heads,
        decoder_attention_heads=heads, encoder_ffn_dim=2 * width, decoder_ffn_dim=2 * width, init_std=1.0,
        decoder_start_token_id=2,
        pad_token_id=0, bos_token_id=1, eos_token_id=2, forced_eos_token_id=None, **more,
    )  # fmt: skip
    return transformers.BartForConditionalGeneration(config)


def causal_batch(
    rows: int, length: int, vocab: int = 211, left: bool = False, seed: int = 0, ragged: bool = True
) -> dict[str, torch.Tensor]:
    """Rows of random lengths, padded; every row has its number in `example`."""
    g = torch.Generator().manual_seed(seed)
    lengths = torch.randint(length // 3, length + 1, (rows,), generator=g) if ragged else torch.full((rows,), length)
    lengths[0] = length
    ids = torch.randint(1, vocab, (rows, length), generator=g)
    place = torch.arange(length).expand(rows, length)
    mask = (place >= length - lengths[:, None]) if left else (place < lengths[:, None])
    return {
        "input_ids": torch.where(mask, ids, 0),
        "attention_mask": mask.long(),
        "labels": torch.where(mask, ids, -100),
        "length": lengths.int(),
        "example": torch.arange(rows),
    }


def seq2seq_batch(rows: int, length: int, target: int, vocab: int = 211, seed: int = 0) -> dict[str, torch.Tensor]:
    batch = causal_batch(rows, length, vocab, seed=seed)
    batch["labels"] = causal_batch(rows, target, vocab, seed=seed + 1)["labels"]
    return batch


def gradients(model: Any) -> dict[str, Optional[torch.Tensor]]:
    return {n: None if p.grad is None else p.grad.clone() for n, p in model.named_parameters()}


DECODERS = ("Llama", "Qwen2", "GPT2", "GPTNeoX", "Gemma", "Mistral")


def decoder(kind: str, attention: str = "sdpa", vocab: int = 300, width: int = 16, **more: Any) -> Any:
    """A causal model of one of the DECODERS or another kind with such a config, whose weights are large enough for its
    attention to matter."""
    torch.manual_seed(1)
    common = {"vocab_size": vocab, "initializer_range": 0.3, "bos_token_id": 0, "eos_token_id": 0}
    if kind == "GPT2":
        shape = {
            "n_layer": 2,
            "n_embd": width,
            "n_head": 2,
            "n_positions": 512,
            "resid_pdrop": 0.0,
            "embd_pdrop": 0.0,
            "attn_pdrop": 0.0,
        }
    else:
        shape = {
            "hidden_size": width, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 2 * width,
            "head_dim": width // 2,
            "max_position_embeddings": 512, "num_key_value_heads": 1,
            "sliding_window": 24 if kind == "Mistral" else None,
        }  # fmt: skip
        if kind == "GPTNeoX":
            shape = {k: v for k, v in shape.items() if k not in ("head_dim", "num_key_value_heads", "sliding_window")}
            shape |= {"hidden_dropout": 0.0, "attention_dropout": 0.0}
    config = getattr(transformers, kind + "Config")(**{**common, **shape, **more})
    return transformers.AutoModelForCausalLM.from_config(config, attn_implementation=attention)


def losses(logits: Any, labels: Any) -> tuple[float, int]:
    """(the sum of the losses of a causal model, the number of its targets)."""
    targets = labels[:, 1:]
    total = torch.nn.functional.cross_entropy(
        logits[:, :-1].float().transpose(1, 2), targets, ignore_index=-100, reduction="sum"
    )
    return float(total), int((targets != -100).sum())


def alone(model: Any, batches: list[Any]) -> float:
    """The mean loss of the documents in packed batches, each of them in a batch of its own."""
    found = []
    with torch.no_grad():
        for b in batches:
            for ids, numbers in zip(b["input_ids"], b["segments"]):
                for k in range(1, int(numbers.max()) + 1):
                    document = ids[numbers == k][None]
                    if document.shape[1] > 1:
                        found.append(losses(model(input_ids=document).logits, document))
    return sum(s for s, _ in found) / sum(n for _, n in found)


def together(model: Any, batches: list[Any]) -> float:
    found = []
    for b in batches:
        n = int((b["labels"][:, 1:] != -100).sum())
        found.append((float(model(**b).loss) * n, n))
    return sum(s for s, _ in found) / sum(n for _, n in found)
