"""Fine-tune a model made from a config with Hugging Face's Trainer, fed by dsload.

    pip install "torch>=2.1" "transformers>=4.40" accelerate    # beside dsload, which is not on PyPI
    python hf_trainer.py DATASET --out run --steps 200            # a dataset folder of `dsload build`
    python hf_trainer.py DATASET --out run --steps 200 --resume   # continues from the last checkpoint

The loader makes whole batches, one for each rank, so that Trainer has nothing left to batch, shuffle or skip.
TrainerMixin saves the loader's state in each checkpoint and loads it on resume, which takes no time wherever the run
stopped.
"""

from __future__ import annotations

import argparse
import json

import torch
from transformers import GPT2Config, GPT2LMHeadModel, Trainer, TrainingArguments
from transformers.trainer_utils import get_last_checkpoint

import dsload
from dsload.integrations import TrainerMixin


class LoaderTrainer(TrainerMixin, Trainer):
    """Trainer whose batches come from a dsload.Loader as `train_dataset`. Its checkpoints hold the loader's state."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("dataset")
    parser.add_argument("--out", default="run")
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--save-steps", type=int, default=50)
    parser.add_argument("--batch-size", type=int, default=8)
    parser.add_argument("--resume", action="store_true")
    parser.add_argument("--losses", help="write the loss of every step to this file")
    arguments = parser.parse_args()

    torch.manual_seed(0)
    with dsload.Loader(arguments.dataset, batch_size=arguments.batch_size, seed=1, bucket=1024) as loader:
        vocab = loader.manifest["tokenizer"]["vocab_size"]
        config = GPT2Config(
            vocab_size=vocab, n_layer=2, n_embd=64, n_head=2, n_positions=512, bos_token_id=0, eos_token_id=0
        )
        options = TrainingArguments(
            output_dir=arguments.out,
            max_steps=arguments.steps,
            save_steps=arguments.save_steps,
            logging_steps=1,
            learning_rate=1e-3,
            per_device_train_batch_size=arguments.batch_size,
            report_to=[],
            disable_tqdm=True,
            use_cpu=not torch.cuda.is_available(),
        )
        trainer = LoaderTrainer(GPT2LMHeadModel(config), options, train_dataset=loader)
        checkpoint = get_last_checkpoint(arguments.out) if arguments.resume else None
        trainer.train(resume_from_checkpoint=checkpoint)
    losses = [entry["loss"] for entry in trainer.state.log_history if "loss" in entry]
    if arguments.losses:
        with open(arguments.losses, "w") as f:
            json.dump(losses, f)
    print(f"loss {losses[0]:.3f} -> {losses[-1]:.3f} in {len(losses)} steps")


if __name__ == "__main__":
    main()
