"""Packed batches in real models: the loss is that of the documents alone, or the trainer refuses."""

from __future__ import annotations

import random
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")

import models  # noqa: E402
from transformers import Trainer, TrainingArguments  # noqa: E402

import dsload  # noqa: E402
from dsload import Loader  # noqa: E402
from dsload._binary import find_binary  # noqa: E402
from dsload.integrations import TrainerMixin  # noqa: E402
from dsload.memory import AdaptiveBatchSizer, evaluate_in_batches  # noqa: E402

pytestmark = [pytest.mark.torch, pytest.mark.trainers, pytest.mark.server, pytest.mark.usefixtures("no_servers_left")]

PACKED: dict[str, Any] = {"pack": "bfd", "max_length": 96, "batch_size": 3, "seed": 1}
WORDS = ["the", "of", "in", "river", "stone", "never", "green", "seven", "under", "paper"]


def build(folder: Path, **options: Any) -> str:
    rng = random.Random(1)
    lines = [" ".join(rng.choices(WORDS, k=rng.randint(1, 40))) for _ in range(24)]
    (folder / "lines.txt").write_text("\n".join(lines))
    # Nearly all of a small model's work is in its vocabulary. This one gives the rows that GPT-2's would.
    command = [
        str(find_binary()),
        "tokenizer",
        "train",
        "lines.txt",
        "--vocab-size",
        "300",
        "--format",
        "text",
        "--out",
        "tokenizer.json",
    ]
    subprocess.run(command, cwd=folder, check=True, capture_output=True)
    options = {"tokenizer": folder / "tokenizer.json", "eos": True, "max_examples": 0, "progress": False, **options}
    dsload.build(folder / "lines.txt", out=folder / "data", format="text", **options)
    return str(folder / "data")


@pytest.fixture(scope="module")
def documents(tmp_path_factory: pytest.TempPathFactory) -> str:
    return build(tmp_path_factory.mktemp("documents"), max_length=512)


@pytest.mark.parametrize("attention", ["eager", "sdpa"])
@pytest.mark.parametrize("kind", models.DECODERS)
def test_a_batch_gives_the_loss_of_its_documents(documents: str, kind: str, attention: str) -> None:
    model = models.decoder(kind, attention)
    with Loader(documents, **PACKED) as loader:
        batches = list(loader)
    assert any(int(b["segments"].max()) > 2 for b in batches) and any((b["segments"] == 0).any() for b in batches)
    assert model.config.use_cache, "the default, which would hide the borders"
    with torch.no_grad():
        assert models.together(model.train(), batches) == pytest.approx(models.alone(model, batches), abs=1e-5)


@pytest.mark.parametrize(
    ("built", "read"),
    [
        ({"pack": "bfd_split", "max_length": 40}, {}),
        ({"pack": "wrapped", "max_length": 64}, {"padding_side": "left", "pad_to_multiple_of": 48}),
        ({"pack": "bfd", "max_length": 64}, {"pack": "wrapped", "max_length": 100}),
        ({"max_length": 16}, {"pack": "bfd", "max_length": 64}),
        ({"max_length": 512}, {"pack": "bfd_split", "max_length": 33, "in_process": True}),
        ({"max_length": 512}, {"pack": "wrapped", "max_length": 50, "batch_size": 1}),
    ],
    ids=str,
)
def test_every_way_of_packing(tmp_path: Path, built: Any, read: Any) -> None:
    model = models.decoder("Llama").eval()
    with Loader(build(tmp_path, **built), **{"batch_size": 4, "shuffle": "none", **read}) as loader:
        batches = list(loader)
    with torch.no_grad():
        assert models.together(model, batches) == pytest.approx(models.alone(model, batches), abs=1e-5)
    for b in batches:
        assert (b["labels"][b["position_ids"] == 0] == -100).all()
        inside = (b["position_ids"] > 0) & (b["segments"] > 0)
        assert torch.equal(b["labels"][inside], b["input_ids"][inside])


class Packed(TrainerMixin, Trainer):  # type: ignore[misc]
    pass


def trainer_of(folder: Path, model: Any, loader: Loader, cls: Any = Packed, **options: Any) -> Any:
    arguments = TrainingArguments(**{
        "output_dir": str(folder), "max_steps": 4, "learning_rate": 0.0, "report_to": [], "use_cpu": True,
        "disable_tqdm": True,
        "save_strategy": "no", "per_device_train_batch_size": 3, "dataloader_pin_memory": False, **options,
    })  # fmt: skip
    return cls(model, arguments, train_dataset=loader, eval_dataset=loader)


@pytest.mark.parametrize(
    ("kind", "options"), [("GPT2", {}), ("Llama", {"gradient_checkpointing": True}), ("Qwen2", {"use_cache": True})]
)
def test_trainer(documents: str, tmp_path: Path, kind: str, options: Any) -> None:
    model = models.decoder(kind)
    seen: list[tuple[float, int]] = []

    def note(module: Any, args: Any, kwargs: Any, out: Any) -> None:
        assert kwargs["position_ids"] is not None and {"cu_seq_lens_q", "max_length_k"} <= set(kwargs)
        seen.append(models.losses(out.logits.detach(), kwargs["labels"]))

    with Loader(documents, **PACKED) as loader:
        batches = list(loader)
        want = models.alone(model.eval(), batches)
        model.register_forward_hook(note, with_kwargs=True)
        trainer = trainer_of(tmp_path, model, loader, max_steps=len(batches), **options)
        for run in (trainer.train, trainer.evaluate):
            seen.clear()
            run()
            assert sum(s for s, _ in seen) / sum(n for _, n in seen) == pytest.approx(want, abs=1e-5)


@pytest.mark.parametrize("kind", ["OPT", "Mamba", "Lfm2"])
def test_trainer_refuses_a_model_that_does_not_keep_documents_apart(documents: str, tmp_path: Path, kind: str) -> None:
    import transformers

    small = {
        "OPT": {"hidden_size": 8, "word_embed_proj_dim": 8, "ffn_dim": 8, "num_hidden_layers": 1,
                "num_attention_heads": 1},
        "Mamba": {"hidden_size": 8, "state_size": 2, "num_hidden_layers": 1},
        "Lfm2": {
            "hidden_size": 8, "intermediate_size": 8, "num_hidden_layers": 2, "num_attention_heads": 1,
            "num_key_value_heads": 1,
            "layer_types": ["conv", "full_attention"],
        },
    }[kind]  # fmt: skip
    config = getattr(transformers, kind + "Config")(vocab_size=300, **small)
    model = transformers.AutoModelForCausalLM.from_config(config)

    class Own(Packed):
        keeps_documents_apart = True

    with Loader(documents, **PACKED) as loader:
        for run in ("train", "evaluate"):
            with pytest.raises(dsload.DsloadError, match=r"(attend to|affect) each other"):
                getattr(trainer_of(tmp_path, model, loader), run)()
        if kind == "OPT":
            assert trainer_of(tmp_path, model, loader, Own, max_steps=1).train().global_step == 1


def test_flash_attention_gets_the_borders(documents: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """With a kernel in place of flash attention's, which is for GPUs: transformers flattens the batch and passes it the
    borders."""
    from transformers import masking_utils
    from transformers.modeling_utils import ALL_ATTENTION_FUNCTIONS

    def varlen(q: Any, k: Any, v: Any, cu_seqlens_q: Any, cu_seqlens_k: Any, max_seqlen_q: int, **_: Any) -> Any:
        ends = cu_seqlens_q.tolist()
        assert ends == cu_seqlens_k.tolist() and ends[-1] == len(q) and max(np.diff(ends)) == max_seqlen_q
        each = []
        for a, b in zip(ends, ends[1:]):
            heads = [x[a:b].transpose(0, 1)[None] for x in (q, k, v)]
            each.append(torch.nn.functional.scaled_dot_product_attention(*heads, is_causal=True)[0].transpose(0, 1))
        return torch.cat(each)

    def attention(module: Any, q: Any, k: Any, v: Any, attention_mask: Any, **kwargs: Any) -> Any:
        assert attention_mask is None
        q, k, v = (x.transpose(1, 2) for x in (q, k, v))
        flat = [x.reshape(-1, *x.shape[2:]) for x in (q, k, v)]
        names = {"cu_seqlens_q": "cu_seq_lens_q", "cu_seqlens_k": "cu_seq_lens_k", "max_seqlen_q": "max_length_q"}
        return varlen(*flat, **{name: kwargs[taken] for name, taken in names.items()}).view(q.shape), None

    monkeypatch.setitem(ALL_ATTENTION_FUNCTIONS._global_mapping, "borders", attention)
    monkeypatch.setitem(
        masking_utils.ALL_MASK_ATTENTION_FUNCTIONS._global_mapping, "borders", masking_utils.flash_attention_mask
    )
    model = models.decoder("Llama", num_key_value_heads=2).eval()
    with Loader(documents, **PACKED) as loader:
        batches = list(loader)
    want = models.alone(model, batches)
    model.config._attn_implementation = "borders"
    with torch.no_grad():
        assert models.together(model, batches) == pytest.approx(want, abs=1e-5)


def test_the_mask_is_made_on_demand_and_says_what_it_is(documents: str) -> None:
    with Loader(documents, **PACKED) as loader, Loader(documents, output="numpy", in_process=True, **PACKED) as arrays:
        for b, a in zip(loader, arrays):
            assert "attention_mask" not in b and b.get("attention_mask") is None and not b["use_cache"]
            with pytest.warns(UserWarning, match="attend to each other"):
                mask = b["attention_mask"]
            with pytest.warns(UserWarning, match="position_ids"):
                assert np.array_equal(mask, a["attention_mask"])
            assert mask.sum(1).tolist() == b["length"].tolist() and mask.dtype == b["input_ids"].dtype
            with pytest.raises(KeyError):
                b["mask"]
    with Loader(documents, batch_size=3) as plain:
        assert "attention_mask" in next(iter(plain)) and "use_cache" not in next(iter(plain))


def test_columns_that_would_join_documents_are_refused(documents: str) -> None:
    for names in (("input_ids", "attention_mask", "labels"), ("input_ids", "labels")):
        with pytest.raises(ValueError, match=r"columns: .*position_ids"):
            Loader(documents, columns=names, **PACKED)
        with Loader(documents, columns=names, borders="keep", **PACKED) as loader:
            assert sorted(next(iter(loader))) == sorted(names)
    model = models.decoder("Qwen2").eval()
    with (
        Loader(documents, columns=("input_ids", "labels", "position_ids"), **PACKED) as loader,
        Loader(documents, **PACKED) as whole,
    ):
        batches = list(loader)
        assert "segments" not in batches[0]
        with torch.no_grad():
            assert models.together(model, batches) == pytest.approx(models.alone(model, list(whole)), abs=1e-5)


def test_batches_that_memory_cuts(documents: str) -> None:
    """Halves of a packed batch have borders of their own, and models get what keeps documents apart."""
    model = models.decoder("Llama")
    with Loader(documents, **{**PACKED, "batch_size": 4, "max_length": 128, "padding": "max_length"}) as loader:
        batches = list(loader)
    want = models.alone(model, batches)
    sizer = AdaptiveBatchSizer(model, effective_batch_size=4, micro_batch_size=1)
    weights = [int((b["labels"][:, 1:] != -100).sum()) for b in batches]
    got, at = 0.0, -1
    for micro in sizer.batches(batches):
        inputs = micro.inputs("cpu")
        assert inputs["cu_seq_lens_q"].tolist()[-1] == inputs["input_ids"].numel() and "attention_mask" not in inputs
        with sizer.step():
            loss = model(**inputs).loss
            sizer.backward(loss)
        at += micro.rows
        got += loss.item() * micro.weight * weights[at // 4]
    assert got / sum(weights) == pytest.approx(want, abs=1e-4)
    names = ("input_ids", "labels", "position_ids", "segments")
    for some in names, names[:3]:
        data = {name: torch.cat([b[name] for b in batches]) for name in some}
        assert evaluate_in_batches(model, data, batch_size=3).loss == pytest.approx(want, abs=1e-4)


def test_batches_without_segments_that_memory_cuts(documents: str) -> None:
    """The columns that a model takes are enough to keep documents apart."""
    model = models.decoder("Llama")
    with Loader(documents, **PACKED, columns=("input_ids", "position_ids", "labels")) as loader:
        batches = list(loader)
    sizer = AdaptiveBatchSizer(model, effective_batch_size=3, micro_batch_size=1)
    micros = sizer.batches(batches)
    for batch in batches:
        got = 0.0
        for _ in range(len(batch["input_ids"])):
            micro = next(micros)
            with sizer.step():
                got += model(**micro.inputs()).loss.item() * micro.weight
        assert got == pytest.approx(model(**batch).loss.item(), abs=1e-4)
