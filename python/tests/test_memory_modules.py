"""Parameters of configs: equal to those of transformers' own modules, whatever the architecture."""

from __future__ import annotations

import sys
from typing import Any

import peaks
import pytest

from dsload.memory import ModelShape, estimate, modules

SEQ2SEQ, MASKED, CAUSAL = "AutoModelForSeq2SeqLM", "AutoModelForMaskedLM", "AutoModelForCausalLM"
KINDS: list[tuple[str, str, dict[str, Any]]] = [
    (CAUSAL, "llama", {"num_key_value_heads": 4, "head_dim": 96, "attention_bias": True, "tie_word_embeddings": True}),
    (CAUSAL, "mixtral", {"num_local_experts": 5, "num_key_value_heads": 2}),
    (CAUSAL, "qwen2_moe", {"decoder_sparse_step": 2, "mlp_only_layers": [3]}),
    (CAUSAL, "phi", {"qk_layernorm": True, "num_key_value_heads": 8}),
    (CAUSAL, "deepseek_v2", {"q_lora_rank": None, "first_k_dense_replace": 1, "n_shared_experts": 3}),
    (CAUSAL, "gpt2", {"tie_word_embeddings": False}),
    (CAUSAL, "opt", {"word_embed_proj_dim": 512, "do_layer_norm_before": False}),
    (CAUSAL, "falcon", {"new_decoder_architecture": True, "num_kv_heads": 8, "num_attention_heads": 64,
                        "hidden_size": 4096}),
    (CAUSAL, "exaone4", {}),
    (CAUSAL, "helium", {"num_hidden_layers": 3}),
    (CAUSAL, "apertus", {}),
    (CAUSAL, "persimmon", {}),
    (CAUSAL, "mamba", {"num_hidden_layers": 2}),
    (SEQ2SEQ, "t5", {"feed_forward_proj": "gated-gelu", "num_decoder_layers": 3, "d_kv": 48}),
    (SEQ2SEQ, "bart", {"encoder_layers": 3, "encoder_ffn_dim": 100}),
    (MASKED, "bert", {"tie_word_embeddings": False}),
    (MASKED, "electra", {"embedding_size": 256}),
    (MASKED, "albert", {}),
    (MASKED, "modernbert", {"attention_bias": True, "mlp_bias": True}),
]  # fmt: skip


@pytest.mark.torch
@pytest.mark.trainers
@pytest.mark.parametrize(("auto", "name", "change"), KINDS, ids=[k[1] for k in KINDS])
def test_counts_are_those_of_the_modules(auto: str, name: str, change: dict[str, Any]) -> None:
    import torch
    import transformers

    config = transformers.AutoConfig.for_model(name, **change)
    with torch.device("meta"):
        model = getattr(transformers, auto).from_config(config)
    want = sum(p.numel() for p in model.parameters())
    assert ModelShape.of(config).parameters() == want
    # As a published config.json has it: only what differs from the defaults, and the sizes.
    sizes = {"hidden_size": config.hidden_size, "num_hidden_layers": config.num_hidden_layers, "model_type": name}
    assert ModelShape.of({**config.to_diff_dict(), **sizes}).parameters() == want
    assert ModelShape.of(model).parameters() == want


@pytest.mark.torch
@pytest.mark.trainers
@pytest.mark.parametrize("head", ["AutoModel", "AutoModelForSequenceClassification", "AutoModelForTokenClassification"])
@pytest.mark.parametrize("name", ["bert", "gpt2", "llama"])
def test_other_heads(name: str, head: str) -> None:
    import torch
    import transformers

    config = transformers.AutoConfig.for_model(name, num_labels=5)
    with torch.device("meta"):
        model = getattr(transformers, head).from_config(config)
    config.architectures = [type(model).__name__]
    assert ModelShape.of(config).parameters() == sum(p.numel() for p in model.parameters())


# What the modules show of a layer: its norms, the widths of keys and of the feed-forward block, which may be gated.
LAYERS: list[tuple[str, dict[str, Any], tuple[int, int, int, bool]]] = [
    ("gpt2", {}, (2, 768, 3072, False)),
    ("phi3", {"num_key_value_heads": 8}, (2, 768, 8192, True)),
    ("gemma2", {}, (4, 1024, 9216, True)),
    ("falcon", {}, (1, 64, 18176, False)),
    ("mixtral", {}, (2, 1024, 2 * 14336, True)),
    ("qwen2_moe", {}, (2, 2048, 4 * 1408 + 5632, True)),
    ("t5", {"feed_forward_proj": "gated-gelu"}, (2, 512, 2048, True)),
    ("bert", {}, (2, 768, 3072, False)),
]


@pytest.mark.torch
@pytest.mark.trainers
@pytest.mark.parametrize(("name", "change", "want"), LAYERS, ids=[x[0] for x in LAYERS])
def test_modules_show_the_shape_of_a_layer(name: str, change: dict[str, Any], want: tuple[int, int, int, bool]) -> None:
    import transformers

    got = ModelShape.of(transformers.AutoConfig.for_model(name, **change))
    assert (got.norms, got.kv_inner, got.feed_forward, got.is_gated) == want
    assert got.rms_norm == (name not in ("gpt2", "falcon", "bert")) and got.relative_bias == (name == "t5")
    assert got.is_encoder_decoder == (name == "t5") and (got.is_causal or name in ("t5", "bert"))


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
                    "vision_config": {"hidden_size": 1152, "vision_use_head": False,
                                      "image_size": 896, "intermediate_size": 4304,
                                      "num_attention_heads": 16,
                                      "num_hidden_layers": 27, "patch_size": 14}}, 4_300_079_472, None),
    ("phi-2", {"model_type": "phi", "hidden_size": 2560, "intermediate_size": 10240, "num_hidden_layers": 32,
               "num_attention_heads": 32,
               "vocab_size": 51200}, 2_779_683_840, None),
    ("t5-small", {"model_type": "t5", "d_model": 512, "d_ff": 2048, "d_kv": 64, "num_heads": 8, "num_layers": 6,
                  "vocab_size": 32128}, 60_506_624, None),
    ("bert-base-uncased", {"model_type": "bert", "architectures": ["BertForMaskedLM"], "hidden_size": 768,
                           "num_hidden_layers": 12},
     109_514_298, None),
    ("DeepSeek-V3", {"model_type": "deepseek_v3", "hidden_size": 7168, "num_hidden_layers": 61}, 671_026_404_352,
        37.5e9),
]  # fmt: skip


@pytest.mark.torch
@pytest.mark.trainers
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


@pytest.mark.torch
@pytest.mark.trainers
def test_what_transformers_does_not_know_is_counted_as_a_plain_model() -> None:
    sizes = {"hidden_size": 512, "num_hidden_layers": 4, "num_attention_heads": 8, "vocab_size": 1000}
    plain = ModelShape(1000, 512, 4, 8, 8, 64, 2048, activation="gelu_new").parameters()
    for more, why in (
        ({"model_type": "nothing"}, "does not know the architecture 'nothing'"),
        ({"architectures": ["NothingForCausalLM"]}, "does not know the architecture 'NothingForCausalLM'"),
        ({}, "does not say its architecture"),
    ):
        got = estimate({**sizes, **more}, 1, 64)
        assert got.num_parameters == plain and any(why in w and "pass the model itself" in w for w in got.warnings)
    named = {"architectures": ["Qwen2MoeForCausalLM"], "num_hidden_layers": 4}
    assert ModelShape.of(named) == ModelShape.of({**named, "model_type": "qwen2_moe"})


def test_without_transformers_the_sizes_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    modules._of_json.cache_clear()  # another test may have asked for the same model
    monkeypatch.setitem(sys.modules, "transformers", None)
    for config, want in ((peaks.GPT2, 124_439_808), (peaks.LLAMA, 200_828_928), (peaks.QWEN2, 494_032_768)):
        got = estimate(config, 8, 1024)
        assert got.num_parameters == pytest.approx(want, rel=1e-3)
        assert any("transformers is not installed" in w for w in got.warnings)
    mixture = next(p[1] for p in PUBLISHED if p[0] == "Mixtral-8x7B")
    got = estimate({**mixture, "hidden_act": "silu", "tie_word_embeddings": False}, 1, 64)
    assert got.num_parameters == pytest.approx(46_702_792_704, rel=0.01)
    assert got.num_active_parameters == pytest.approx(12.9e9, rel=0.01)


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
    auto = {"bert": MASKED, "bart": SEQ2SEQ}.get(name, CAUSAL)
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
