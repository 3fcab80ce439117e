"""A Lightning DataModule fed by dsload.

    pip install "torch>=2.1" pytorch-lightning transformers    # beside dsload, which is not on PyPI
    python lightning_module.py DATASET --steps 100

Lightning saves a DataModule's state in its checkpoints, so `trainer.fit(..., ckpt_path=…)` continues at the right row.
"""

from __future__ import annotations

import argparse
from typing import Any

import pytorch_lightning as lightning
import torch
from transformers import GPT2Config, GPT2LMHeadModel

import dsload


class DsloadModule(lightning.LightningDataModule):
    """Batches of a dataset folder; options are dsload.Loader's."""

    def __init__(self, dataset: str, **options: Any) -> None:
        super().__init__()
        self.dataset, self.options = dataset, options
        self.loader: Any = None
        self._resume: Any = None

    def setup(self, stage: str) -> None:
        if self.loader is None:
            self.loader = dsload.Loader(self.dataset, **self.options)
            if self._resume is not None:
                self.loader.load_state_dict(self._resume)

    def train_dataloader(self) -> torch.utils.data.DataLoader:
        return torch.utils.data.DataLoader(self.loader, batch_size=None)

    def teardown(self, stage: str) -> None:
        if self.loader is not None:
            self.loader.close()
            self.loader = None

    def state_dict(self) -> dict[str, Any]:
        return self.loader.state_dict() if self.loader is not None else {}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self._resume = state
        if self.loader is not None:
            self.loader.load_state_dict(state)


class Model(lightning.LightningModule):
    def __init__(self, vocab: int) -> None:
        super().__init__()
        self.model = GPT2LMHeadModel(
            GPT2Config(
                vocab_size=vocab,
                n_layer=2,
                n_embd=64,
                n_head=2,
                n_positions=512,
                bos_token_id=0,
                eos_token_id=0,
                resid_pdrop=0.0,
                embd_pdrop=0.0,
                attn_pdrop=0.0,
            )
        )
        self.losses: list[float] = []
        self.examples: list[int] = []

    def training_step(self, batch: dict[str, torch.Tensor], index: int) -> torch.Tensor:
        names = (
            "input_ids",
            "attention_mask",
            "position_ids",
            "labels",
            "use_cache",
        )  # packed rows have the third and the last, and no second
        loss = self.model(**{name: batch[name] for name in names if name in batch}).loss
        self.losses.append(float(loss.detach()))
        self.examples += batch["example"].tolist()
        return loss

    def configure_optimizers(self) -> torch.optim.Optimizer:
        return torch.optim.AdamW(self.parameters(), lr=1e-3)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("dataset")
    parser.add_argument("--steps", type=int, default=100)
    arguments = parser.parse_args()
    data = DsloadModule(arguments.dataset, batch_size=8, bucket=512)
    data.setup("fit")
    model = Model(data.loader.manifest["tokenizer"]["vocab_size"])
    trainer = lightning.Trainer(
        max_steps=arguments.steps,
        accelerator="auto",
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
    )
    trainer.fit(model, data)
    print(f"loss {model.losses[0]:.3f} -> {model.losses[-1]:.3f} in {len(model.losses)} steps")


if __name__ == "__main__":
    main()
