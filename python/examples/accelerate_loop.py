"""A training loop with Accelerate, fed by dsload, that survives running out of memory and can be killed at any step.

    pip install "torch>=2.1" "transformers>=4.40" accelerate    # beside dsload, which is not on PyPI
    accelerate launch accelerate_loop.py DATASET --out run --steps 200
    accelerate launch accelerate_loop.py DATASET --out run --steps 200    # the same again resumes from the last
    checkpoint

DATASET with prompts and targets (recipe-seq2seq) trains a small T5, any other a small GPT-2; both made from configs.
"""

from __future__ import annotations

import argparse
import json
import os

import torch
from accelerate import Accelerator
from transformers import GPT2Config, GPT2LMHeadModel, T5Config, T5ForConditionalGeneration

import dsload
from dsload.memory import AdaptiveBatchSizer, MemoryGuard


def make_model(manifest: dict) -> torch.nn.Module:
    vocab = manifest["tokenizer"]["vocab_size"]
    if manifest["schema"]["labels"]:
        return T5ForConditionalGeneration(
            T5Config(
                vocab_size=vocab,
                d_model=64,
                d_ff=128,
                d_kv=32,
                num_layers=2,
                num_heads=2,
                decoder_start_token_id=0,
                pad_token_id=0,
                is_encoder_decoder=True,
            )
        )
    return GPT2LMHeadModel(
        GPT2Config(vocab_size=vocab, n_layer=2, n_embd=64, n_head=2, n_positions=512, bos_token_id=0, eos_token_id=0)
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("dataset")
    parser.add_argument("--out", default="run")
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--save-steps", type=int, default=25)
    parser.add_argument("--batch-size", type=int, default=16, help="rows of an optimizer step over all ranks")
    parser.add_argument("--kill-at", type=int, help="for trials: die without a word after this step")
    arguments = parser.parse_args()

    accelerator = Accelerator(cpu=not torch.cuda.is_available())
    torch.manual_seed(0)
    os.makedirs(arguments.out, exist_ok=True)
    checkpoint = os.path.join(arguments.out, "checkpoint.pt")
    log = open(os.path.join(arguments.out, f"steps-{accelerator.process_index}.jsonl"), "a", buffering=1)  # noqa: SIM115

    seq2seq = json.load(open(os.path.join(arguments.dataset, "manifest.json")))["schema"]["labels"]  # noqa: SIM115
    share = arguments.batch_size // accelerator.num_processes
    with dsload.Loader(
        arguments.dataset, batch_size=share, seed=1, bucket=512, labels="seq2seq" if seq2seq else "causal"
    ) as loader:
        # The sizer sums gradients over the ranks itself, so the model is not wrapped.
        model = make_model(loader.manifest).to(accelerator.device)
        optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
        sizer = AdaptiveBatchSizer(model, arguments.batch_size, micro_batch_size=share)
        guard = MemoryGuard(every=50)
        step = 0
        if os.path.exists(checkpoint):
            saved = torch.load(checkpoint, weights_only=False)
            model.load_state_dict(saved["model"])
            optimizer.load_state_dict(saved["optimizer"])
            loader.load_state_dict(saved["loader"])
            sizer.load_state_dict(saved["sizer"])
            torch.set_rng_state(saved["random"])
            step = saved["step"]

        def forward_and_backward(micro) -> float:
            loss = model(**micro.inputs(accelerator.device)).loss
            sizer.backward(loss)
            return float(loss.detach()) * micro.weight

        while step < arguments.steps:
            loss, examples = 0.0, []
            for micro in sizer.batches(loader):
                part = sizer.run(forward_and_backward, micro)
                if part is not None and not micro.filler:
                    loss += part
                    examples += micro["example"].tolist()
                    behind = loader.state_dict(after={"next": micro["next"]})
                if not sizer.update_due:
                    continue
                optimizer.step()
                optimizer.zero_grad()
                guard.after_batch()
                step += 1
                log.write(json.dumps({"step": step, "loss": loss, "examples": examples}) + "\n")
                loss, examples = 0.0, []
                if accelerator.is_main_process and step % arguments.save_steps == 0:
                    state = {
                        "model": model.state_dict(),
                        "optimizer": optimizer.state_dict(),
                        "loader": behind,
                        "sizer": sizer.state_dict(),
                        "random": torch.get_rng_state(),
                        "step": step,
                    }
                    torch.save(state, checkpoint + ".tmp")
                    os.replace(checkpoint + ".tmp", checkpoint)
                if step == arguments.kill_at:
                    os.kill(os.getpid(), 9)
                if step >= arguments.steps:
                    break
    accelerator.print(f"step {step}; {guard.report}")


if __name__ == "__main__":
    main()
