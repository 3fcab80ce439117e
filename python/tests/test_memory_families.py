"""Parameters counted from configs: equal to those of transformers' own modules on torch's meta device, family by
family."""

from __future__ import annotations

from typing import Any

import pytest

from dsload.memory import ModelShape, estimate
from dsload.memory.shape import FAMILIES

# Sizes away from the defaults, which show the difference between each family's options.
VARIANTS: dict[str, list[dict[str, Any]]] = {
    "llama": [
        {
            "num_key_value_heads": 4,
            "head_dim": 96,
            "attention_bias": True,
            "mlp_bias": True,
            "tie_word_embeddings": True,
        }
    ],
    "mistral": [{"head_dim": 160}],
    "mixtral": [{"num_local_experts": 5, "num_key_value_heads": 2}],
    "qwen2": [{"num_key_value_heads": 2, "tie_word_embeddings": True}],
    "qwen2_moe": [
        {"decoder_sparse_step": 2, "mlp_only_layers": [3]},
        {"num_experts": 7, "shared_expert_intermediate_size": 96},
    ],
    "qwen3": [{"attention_bias": True, "head_dim": 64}],
    "qwen3_moe": [{"num_experts": 6, "mlp_only_layers": [0, 1], "head_dim": 128}],
    "gemma": [{"num_key_value_heads": 1, "head_dim": 512}],
    "gemma2": [{"attention_bias": True}],
    "gemma3_text": [{"num_key_value_heads": 1}],
    "phi": [{"qk_layernorm": True, "num_key_value_heads": 8}],
    "phimoe": [{"attention_bias": True, "lm_head_bias": True, "num_local_experts": 3}],
    "stablelm": [
        {"use_qkv_bias": True, "qk_layernorm": True, "num_key_value_heads": 8},
        {"use_parallel_residual": True},
    ],
    "starcoder2": [{"use_bias": False}],
    "cohere": [{"use_qk_norm": True, "num_key_value_heads": 8}],
    "gpt_oss": [{"num_local_experts": 4}],
    "deepseek_v2": [
        {"q_lora_rank": None, "first_k_dense_replace": 1, "n_shared_experts": 3, "num_experts_per_tok": 6},
        {"attention_bias": True},
    ],
    "deepseek_v3": [{"n_routed_experts": 8, "first_k_dense_replace": 1, "num_hidden_layers": 4}],
    "gpt2": [{"n_inner": 1000}, {"tie_word_embeddings": False}],
    "gpt_bigcode": [{"multi_query": False}],
    "opt": [
        {"word_embed_proj_dim": 512, "do_layer_norm_before": False},
        {"enable_bias": False},
        {"layer_norm_elementwise_affine": False},
    ],
    "falcon": [
        {"multi_query": False, "parallel_attn": False, "bias": True},
        {"new_decoder_architecture": True, "num_kv_heads": 8, "num_attention_heads": 64, "hidden_size": 4096},
        {
            "new_decoder_architecture": True,
            "num_kv_heads": 8,
            "num_attention_heads": 64,
            "hidden_size": 4096,
            "num_ln_in_parallel_attn": 1,
        },
    ],
    "t5": [{"feed_forward_proj": "gated-gelu", "num_decoder_layers": 3, "d_kv": 48}],
    "bart": [{"encoder_layers": 3, "encoder_ffn_dim": 100, "tie_word_embeddings": False}],
    "marian": [{"decoder_layers": 2, "decoder_ffn_dim": 200}],
    "bert": [{"tie_word_embeddings": False}],
    "electra": [{"embedding_size": 256}, {"tie_word_embeddings": False}],
    "modernbert": [{"attention_bias": True, "mlp_bias": True, "norm_bias": True, "classifier_bias": True}],
}
# transformers' own config of this family cannot be made without arguments.
NEEDED: dict[str, dict[str, Any]] = {"ministral": {"head_dim": 128}}
CASES = [(name, change) for name in FAMILIES for change in [{}, *VARIANTS.get(name, [])]]


def made(name: str, change: dict[str, Any]) -> tuple[Any, Any]:
    """A config, and the module that transformers makes of it without memory."""
    import torch
    import transformers

    config = transformers.AutoConfig.for_model(name, **NEEDED.get(name, {}), **change)
    kind = FAMILIES[name].kind
    auto = {"causal": "AutoModelForCausalLM", "seq2seq": "AutoModelForSeq2SeqLM", "masked": "AutoModelForMaskedLM"}[
        kind
    ]
    with torch.device("meta"):
        return config, getattr(transformers, auto).from_config(config)


@pytest.mark.torch
@pytest.mark.trainers
@pytest.mark.parametrize(("name", "change"), CASES, ids=[f"{n}-{i}" for i, (n, _) in enumerate(CASES)])
def test_counts_are_those_of_the_modules(name: str, change: dict[str, Any]) -> None:
    config, model = made(name, change)
    want = sum(p.numel() for p in model.parameters())
    assert ModelShape.of(config).parameters() == want
    # As a published config.json has it: only what differs from the defaults, and the sizes.
    sizes = {"hidden_size": config.hidden_size, "num_hidden_layers": config.num_hidden_layers, "model_type": name}
    assert ModelShape.of({**config.to_diff_dict(), **sizes}).parameters() == want
    assert ModelShape.of(model).parameters() == want


@pytest.mark.torch
@pytest.mark.trainers
@pytest.mark.parametrize("head", ["AutoModel", "AutoModelForSequenceClassification", "AutoModelForTokenClassification"])
@pytest.mark.parametrize("name", ["bert", "roberta", "distilbert", "electra", "albert", "gpt2", "llama", "qwen2"])
def test_other_heads(name: str, head: str) -> None:
    import torch
    import transformers

    config = transformers.AutoConfig.for_model(name, num_labels=5)
    with torch.device("meta"):
        model = getattr(transformers, head).from_config(config)
    config.architectures = [type(model).__name__]
    assert ModelShape.of(config).parameters() == sum(p.numel() for p in model.parameters())


LLAMA = {"model_type": "llama", "hidden_size": 4096, "num_hidden_layers": 32, "num_attention_heads": 32}
PUBLISHED = [
    ("Llama-2-7b", {**LLAMA, "vocab_size": 32000, "intermediate_size": 11008}, 6_738_415_616, None),
    ("Llama-3.1-8B", {**LLAMA, "vocab_size": 128256, "intermediate_size": 14336, "num_key_value_heads": 8},
        8_030_261_248, None),
    ("Mixtral-8x7B", {"model_type": "mixtral", "hidden_size": 4096, "num_hidden_layers": 32, "num_attention_heads": 32,
                      "vocab_size": 32000,
                      "intermediate_size": 14336, "num_key_value_heads": 8, "num_local_experts": 8,
                      "num_experts_per_tok": 2},
     46_702_792_704, 12.9e9),
    ("Qwen1.5-MoE-A2.7B", {"model_type": "qwen2_moe", "architectures": ["Qwen2MoeForCausalLM"],
                           "decoder_sparse_step": 1, "hidden_size": 2048,
                           "intermediate_size": 5632, "moe_intermediate_size": 1408, "num_attention_heads": 16,
                           "num_experts": 60,
                           "num_experts_per_tok": 4, "num_hidden_layers": 24, "num_key_value_heads": 16,
                           "shared_expert_intermediate_size": 5632, "tie_word_embeddings": False, "vocab_size": 151936},
     14_315_784_192, 2.7e9),
    ("Qwen3-30B-A3B", {"model_type": "qwen3_moe", "hidden_size": 2048, "num_hidden_layers": 48,
                       "num_attention_heads": 32, "head_dim": 128,
                       "num_key_value_heads": 4, "moe_intermediate_size": 768, "num_experts": 128,
                       "num_experts_per_tok": 8,
                       "vocab_size": 151936, "tie_word_embeddings": False}, 30_532_122_624, 3.3e9),
    ("gemma-2b", {"model_type": "gemma", "hidden_size": 2048, "intermediate_size": 16384, "num_hidden_layers": 18,
                  "num_attention_heads": 8,
                  "num_key_value_heads": 1, "head_dim": 256, "vocab_size": 256000}, 2_506_172_416, None),
    ("gemma-3-4b", {"model_type": "gemma3", "text_config": {"hidden_size": 2560, "intermediate_size": 10240,
                                                            "num_hidden_layers": 34},
                    "vision_config": {"hidden_size": 1152, "image_size": 896, "intermediate_size": 4304,
                                      "num_attention_heads": 16,
                                      "num_hidden_layers": 27, "patch_size": 14}}, 4_300_079_472, None),
    ("phi-2", {"model_type": "phi", "hidden_size": 2560, "intermediate_size": 10240, "num_hidden_layers": 32,
               "num_attention_heads": 32,
               "vocab_size": 51200}, 2_779_683_840, None),
    ("flan-t5-small", {"model_type": "t5", "d_model": 512, "d_ff": 1024, "d_kv": 64, "num_heads": 6, "num_layers": 8,
                       "num_decoder_layers": 8,
                       "feed_forward_proj": "gated-gelu", "tie_word_embeddings": False, "vocab_size": 32128},
                       76_961_152, None),
    ("bert-base-uncased", {"model_type": "bert", "architectures": ["BertForMaskedLM"], "hidden_size": 768,
                           "num_hidden_layers": 12},
     109_514_298, None),
    ("DeepSeek-V3", {"model_type": "deepseek_v3", "hidden_size": 7168, "num_hidden_layers": 61}, 671_026_404_352,
        37.5e9),
]  # fmt: skip


@pytest.mark.parametrize(("config", "total", "active"), [p[1:] for p in PUBLISHED], ids=[p[0] for p in PUBLISHED])
def test_published_models(config: dict[str, Any], total: int, active: Any) -> None:
    got = estimate(config, 1, 128)
    assert got.num_parameters == pytest.approx(total, rel=1e-3)
    if active is None:
        assert got.num_active_parameters == got.num_parameters and not any("experts" in w for w in got.warnings)
    else:
        assert got.num_active_parameters == pytest.approx(active, rel=0.02)
        advice = next(w for w in got.warnings if "mixture of experts" in w)
        assert f"{got.num_active_parameters / 1e9:.1f} billion are used" in advice and "adapters" in advice


def test_what_is_not_known_is_refused_by_name() -> None:
    sizes = {"hidden_size": 512, "num_hidden_layers": 4}
    with pytest.raises(ValueError, match=r"'mamba2'.*pass the model itself"):
        estimate({**sizes, "model_type": "mamba2"})
    with pytest.raises(ValueError, match="several parts: pass its text_config"):
        estimate({**sizes, "model_type": "llava", "text_config": {}})
    with pytest.raises(ValueError, match="add model_type"):
        estimate(sizes)
    named = ModelShape.of({**sizes, "architectures": ["Qwen2MoeForCausalLM"]})
    assert named.family == "qwen2_moe"
    odd = estimate({**sizes, "model_type": "gpt2", "architectures": ["GPT2DoubleHeadsModel2"]})
    assert any("GPT2DoubleHeadsModel2 is not known" in w for w in odd.warnings)


@pytest.mark.torch
@pytest.mark.trainers
@pytest.mark.parametrize(("name", "change"), [
    ("gemma", {"head_dim": 32, "num_key_value_heads": 1, "intermediate_size": 512}),
    ("qwen2", {"intermediate_size": 384, "num_key_value_heads": 2}),
    ("mixtral", {"intermediate_size": 256, "num_key_value_heads": 2, "num_local_experts": 4}),
    ("qwen2_moe", {"moe_intermediate_size": 96, "shared_expert_intermediate_size": 128, "num_experts": 8,
                   "num_key_value_heads": 4}),
    ("opt", {"ffn_dim": 512, "word_embed_proj_dim": 128, "dropout": 0.0}),
    ("gpt_neox", {"intermediate_size": 512}),
    ("bert", {"intermediate_size": 512, "hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}),
    ("bart", {"encoder_ffn_dim": 512, "decoder_ffn_dim": 512, "encoder_layers": 3, "decoder_layers": 3,
              "decoder_attention_heads": 4, "dropout": 0.0}),
], ids=lambda v: v if isinstance(v, str) else "")  # fmt: skip
def test_training_peak_within_30_percent(name: str, change: dict[str, Any], tmp_path: Any) -> None:
    import torch
    import transformers
    from test_memory_estimate import measured_peak

    config = transformers.AutoConfig.for_model(
        name, vocab_size=4000, hidden_size=128, num_hidden_layers=3, num_attention_heads=4, pad_token_id=0, **change
    )
    auto = {"causal": "AutoModelForCausalLM", "seq2seq": "AutoModelForSeq2SeqLM", "masked": "AutoModelForMaskedLM"}[
        FAMILIES[name].kind
    ]
    model = getattr(transformers, auto).from_config(config, attn_implementation="eager").train()
    ids = torch.randint(1, 4000, (3, 128))
    optimizer = torch.optim.AdamW(model.parameters())

    def step() -> None:
        model(input_ids=ids, attention_mask=torch.ones_like(ids), labels=ids).loss.backward()
        optimizer.step()
        optimizer.zero_grad()

    step()  # the optimizer's state is there from now on
    got = estimate(model, 3, 128, attention="eager", device="cpu")
    above_rest, peak = got.total - got.parameters - got.optimizer, measured_peak(step, tmp_path)
    assert abs(above_rest - peak) <= 0.3 * peak, f"estimated {above_rest:,}, torch held {peak:,}"


@pytest.mark.torch
@pytest.mark.trainers
def test_a_model_of_an_unknown_family_is_counted_as_it_is() -> None:
    import torch
    import transformers

    config = transformers.MambaConfig(vocab_size=300, hidden_size=64, num_hidden_layers=2)
    with torch.device("meta"):
        model = transformers.MambaForCausalLM(config)
    got = estimate(model, 1, 16)
    assert got.num_parameters == sum(p.numel() for p in model.parameters())
    assert any("'mamba' is not known" in w for w in got.warnings)
