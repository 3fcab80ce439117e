"""dsload.memory.summary: the layers of a model by memory."""

from __future__ import annotations

import pytest

from dsload.memory import summary

torch = pytest.importorskip("torch")
nn = torch.nn


class Tied(nn.Module):
    """An embedding, layers, and a head that shares the embedding."""

    def __init__(self) -> None:
        super().__init__()
        self.table = nn.Embedding(100, 8)
        self.blocks = nn.ModuleList(nn.Sequential(nn.Linear(8, 8), nn.ReLU(), nn.BatchNorm1d(8)) for _ in range(4))
        self.scale = nn.Parameter(torch.ones(3))
        self.head = nn.Linear(8, 100, bias=False)
        self.head.weight = self.table.weight


def test_each_tensor_counts_once() -> None:
    model = Tied()
    s = summary(model)
    assert [layer.name for layer in s.layers] == ["", "table", *(f"blocks.{i}" for i in range(4)), "head"]
    assert s.parameters == sum(p.numel() for p in model.parameters()) == s.trained
    assert s.parameter_bytes == 4 * s.parameters and s.buffer_bytes == sum(
        b.numel() * b.element_size() for b in model.buffers()
    )
    assert s.bytes == s.parameter_bytes + s.buffer_bytes == sum(layer.bytes for layer in s.layers)
    assert s.training == s.bytes + 4 * s.parameters + 8 * s.parameters == sum(layer.training for layer in s.layers)
    head = s.layers[-1]
    assert (head.bytes, head.shares) == (0, "table")
    lines = str(s).splitlines()
    assert len(lines) == 6 and "blocks.0 to 3, each" in lines[3] and "that of table" in lines[4]
    assert lines[3].split()[5] == f"{s.layers[2].parameters:,}" and lines[-1].split()[1] == f"{s.parameters:,}"


def test_frozen_and_small_dtypes() -> None:
    model = Tied().to(torch.bfloat16)
    for p in model.blocks.parameters():
        p.requires_grad = False
    s = summary(model)
    assert s.trained == 803 and s.parameter_bytes == 2 * s.parameters
    assert s.training == s.bytes + (2 + 8) * 803
    model.blocks[2].requires_grad_(True)
    assert "blocks.0 to 1, each" in str(summary(model)) and "blocks.3 " in str(summary(model))


def test_depth() -> None:
    model = nn.Sequential(Tied(), nn.Linear(2, 2))
    names = {depth: [layer.name for layer in summary(model, depth=depth).layers] for depth in (0, 1, 2, 9)}
    assert names[0] == [""] and names[1] == ["0", "1"] and "0.table" in names[2]
    assert "0.blocks.0.2" in names[9] and "0.blocks.0" not in names[9]
    for depth in names:
        assert sum(layer.bytes for layer in summary(model, depth=depth).layers) == summary(model).bytes
    assert summary(nn.ReLU()).bytes == 0 and str(summary(nn.Linear(2, 3))).count("(itself)") == 1
    with pytest.raises(TypeError, match="torch module"):
        summary({})


@pytest.mark.parametrize("meta", [False, True])
def test_models_of_transformers(meta: bool) -> None:
    tf = pytest.importorskip("transformers")
    with torch.device("meta" if meta else "cpu"):
        models = [
            tf.GPT2LMHeadModel(
                tf.GPT2Config(vocab_size=500, n_layer=3, n_embd=16, n_head=2, bos_token_id=0, eos_token_id=0)
            ),
            tf.T5ForConditionalGeneration(
                tf.T5Config(vocab_size=500, d_model=16, d_kv=8, d_ff=32, num_layers=2, num_heads=2)
            ),
        ]
    for model, some in zip(models, (["transformer.wte", "transformer.h.2"], ["encoder.block.1", "decoder.block.0"])):
        s = summary(model)
        assert set(some) <= {layer.name for layer in s.layers}
        assert s.parameter_bytes == sum(p.numel() * p.element_size() for p in model.parameters())
        assert sum(layer.bytes for layer in s.layers) == s.bytes
