"""Trains a model of transformers on a dataset, in one file: run it as it is, or copy it and change it.

    python -m dsload.examples.train --pretrained-model MODEL --data DATASET --auto-batch-size --epochs 3 --out run

The same command again resumes from the last checkpoint, wherever the run was killed. Under torchrun each process trains
a share of each step. MODEL may be a decoder (GPT-2, Llama, Qwen …) or an encoder-decoder (T5, BART …), whose dataset
has prompts and targets.

    run/checkpoint.pt   the last checkpoint: model, optimizer, and where the data is, a few integers
    run/memory.jsonl    what memory did in each phase of a step; `dsload doctor run/memory.jsonl` explains it
    run/model           the trained model and its tokenizer, for from_pretrained

A step is --batch-size rows over all processes, whatever fits: they run as micro-batches, and one that does not fit is
halved, padding trimmed, with the same gradients as a whole. Reports go to the webhook in DSLOAD_WEBHOOK_URL, and to
Weights & Biases where WANDB_API_KEY is set and wandb installed.

Exit codes: 0 trained, 1 failed, 2 wrong usage, 5 interrupted by SIGTERM or SIGINT after a checkpoint.
"""

from __future__ import annotations

import argparse
import contextlib
import math
import os
import signal
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Optional

import dsload
from dsload import callbacks, memory

COMPILED_STEPS = 1000  # compiling takes about a minute, which fewer steps do not earn back
INTERRUPTED = 5


def arguments(argv: Optional[Sequence[str]]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m dsload.examples.train",
        description=(__doc__ or "").partition("\n\n")[0],
        epilog=(__doc__ or "").partition("\n\n")[2],
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    add, switch = parser.add_argument, argparse.BooleanOptionalAction
    add("--pretrained-model", required=True, metavar="MODEL", help="folder or Hub name of a transformers model")
    add("--data", required=True, metavar="DATASET", help="a dataset's folder or bucket, or the socket or URL of a feed")
    add("--out", default="run", metavar="DIR", help="folder of checkpoints and results, shared by all nodes (run)")
    add("--epochs", type=int, default=1, metavar="N", help="passes over the data (1)")
    add("--max-steps", type=int, default=0, metavar="N", help="stop after so many steps (0: at the end of the epochs)")
    add("--batch-size", type=int, default=128, metavar="ROWS", help="rows of a step, over all processes (128)")
    add("--auto-batch-size", action="store_true", help="choose the micro-batch by the model and the free memory")
    add("--micro-batch-size", type=int, metavar="ROWS", help="rows run at once at first (by the device's size)")
    add("--bucket", type=int, default=1024, metavar="ROWS", help="sort windows of so many rows by length (1024)")
    add("--learning-rate", type=float, metavar="RATE", help="its peak (5e-5; 3e-4 for encoder-decoders)")
    add("--warmup", type=float, default=0.03, metavar="SHARE", help="share of the steps until the peak (0.03)")
    add("--weight-decay", type=float, default=0.0, metavar="W", help="AdamW's (0)")
    add("--max-grad-norm", type=float, default=1.0, metavar="NORM", help="clip gradients to it (1; 0: never)")
    add("--bf16", action=switch, help="autocast to bfloat16 (default: where a GPU has it)")
    add("--gradient-checkpointing", action="store_true", help="recompute activations: less memory, a third more time")
    add("--compile", action=switch, help=f"torch.compile (default: on a GPU, for {COMPILED_STEPS} steps and more)")
    add("--eval-every", type=int, default=0, metavar="STEPS", help="evaluate split val so often (0: after each epoch)")
    add("--save-every", type=int, default=500, metavar="STEPS", help="write a checkpoint so often (500)")
    add("--log-every", type=int, default=10, metavar="STEPS", help="print and report the loss so often (10)")
    add(
        "--record-every", type=int, default=10, metavar="N", help="record every n-th micro-batch's memory (10; 0: none)"
    )
    add("--restart", action="store_true", help="begin anew: do not resume from a checkpoint in --out")
    add("--seed", type=int, default=0, help="of the order of rows and of dropout (0)")
    add("--project", default="dsload", help="of Weights & Biases (dsload)")
    add("--cpu", action="store_true", help="do not use a GPU")
    options = parser.parse_args(argv)
    for name in ("epochs", "batch_size", "save_every", "log_every"):
        if getattr(options, name) < 1:
            parser.error(f"--{name.replace('_', '-')} must be at least 1, got {getattr(options, name)}")
    for name in ("max_steps", "micro_batch_size", "bucket", "max_grad_norm", "eval_every", "record_every"):
        if (getattr(options, name) or 0) < 0:
            parser.error(f"--{name.replace('_', '-')} must not be below 0, got {getattr(options, name)}")
    if options.auto_batch_size and options.micro_batch_size is not None:
        parser.error("--auto-batch-size chooses the micro-batch, and --micro-batch-size names it: give one of them")
    if options.batch_size % int(os.environ.get("WORLD_SIZE", "1")):
        parser.error(f"--batch-size {options.batch_size} is not a multiple of the {os.environ['WORLD_SIZE']} processes")
    if not 0 <= options.warmup < 1:
        parser.error(f"--warmup is a share of the steps, at least 0 and below 1, got {options.warmup}")
    return options


class Ranks:
    """The processes of a run: torchrun starts several, and `python -m` one."""

    def __init__(self, cpu: bool) -> None:
        import torch

        self.world, self.rank = int(os.environ.get("WORLD_SIZE", "1")), int(os.environ.get("RANK", "0"))
        cuda = torch.cuda.is_available() and not cpu
        self.device = torch.device("cuda", int(os.environ.get("LOCAL_RANK", "0"))) if cuda else torch.device("cpu")
        if cuda:
            memory.configure_allocator()
            torch.cuda.set_device(self.device)
            torch.set_float32_matmul_precision("high")
        if self.world > 1:
            torch.distributed.init_process_group("nccl" if cuda else "gloo")

    @property
    def first(self) -> bool:
        return self.rank == 0

    def sum(self, *values: float) -> list[float]:
        """Each value, summed over the processes."""
        if self.world == 1:
            return list(values)
        import torch

        tensor = torch.tensor(values, dtype=torch.float64, device=self.device)
        torch.distributed.all_reduce(tensor)
        return [float(v) for v in tensor]

    def say(self, text: str) -> None:
        if self.first and text:
            print(text, flush=True)

    def leave(self) -> None:
        if self.world > 1:
            import torch

            torch.distributed.destroy_process_group()


class Reports:
    """What is told of the run: printed, and sent where the environment says. A report that fails never ends the run."""

    def __init__(self, options: argparse.Namespace, ranks: Ranks) -> None:
        self._ranks = ranks
        found: list[Any] = []
        name = os.path.basename(os.path.abspath(options.out))
        if ranks.first and os.environ.get(callbacks.WEBHOOK_VARIABLE):
            found.append(callbacks.Webhook(name))
        if ranks.first and os.environ.get(callbacks.WANDB_VARIABLE):
            try:
                found.append(callbacks.WandB(options.project, name=name, config=vars(options)))
            except Exception as error:
                ranks.say(f"note: nothing goes to Weights & Biases ({type(error).__name__}); is wandb installed?")
        self._send = callbacks.Several(*found)

    def __call__(self, text: str, **numbers: Any) -> None:
        self._ranks.say(text)
        self._send(numbers)

    def close(self) -> None:
        self._send.close()


class Stop:
    """Whether a signal has asked the run to end. A second Ctrl-C ends it at once; a second SIGTERM does not, since
    torchrun and a scheduler may each send one."""

    def __init__(self) -> None:
        self.asked = False
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._ask)

    def _ask(self, number: int, _frame: Any) -> None:
        self.asked = True
        if number == signal.SIGINT:
            signal.signal(number, signal.default_int_handler)


def load_model(name: str) -> Any:
    """The model in float32: autocast lowers the precision of the arithmetic, not that of the weights."""
    from transformers import AutoConfig, AutoModelForCausalLM, AutoModelForSeq2SeqLM

    seq2seq = AutoConfig.from_pretrained(name).is_encoder_decoder
    return (AutoModelForSeq2SeqLM if seq2seq else AutoModelForCausalLM).from_pretrained(name).float()


def manifests(loader: dsload.Loader) -> list[dict[str, Any]]:
    """The dataset's manifest, or those of a mix."""
    return [loader.manifest] if "splits" in loader.manifest else list(loader.manifest.values())


def longest_row(loader: dsload.Loader) -> int:
    return max(int(s["max_length"]) for m in manifests(loader) for s in m["splits"] if s["name"] == "train")


def refuse_mismatch(model: Any, loader: dsload.Loader, name: str) -> None:
    """Ends the run if the dataset was not made for this model."""
    first = manifests(loader)[0]  # the datasets of a mix have one tokenizer, and the same columns
    targets, tokenizer, longest = first["schema"]["labels"], first["tokenizer"], longest_row(loader)
    embedded = model.get_input_embeddings().num_embeddings
    positions = getattr(model.config, "max_position_embeddings", None) or longest
    kind = type(model).__name__
    if model.config.is_encoder_decoder and not targets:
        raise SystemExit(f"train: {kind} needs targets, and the dataset has none: build it with --prompt and --target")
    if targets and not model.config.is_encoder_decoder:
        raise SystemExit(f"train: the dataset's targets are apart, and {kind} reads one row: build with --causal-pairs")
    if tokenizer["vocab_size"] > embedded:
        raise SystemExit(
            f"train: the dataset's tokenizer, {tokenizer['name']}, has {tokenizer['vocab_size']} ids, and {kind} "
            f"embeddings for {embedded}: build the dataset with --tokenizer {name}"
        )
    if longest > positions and not model.config.is_encoder_decoder:
        raise SystemExit(
            f"train: rows have up to {longest} tokens, and {kind} {positions} positions: build the dataset with "
            f"--max-length {positions}"
        )


def own_tokenizer(model: str, loader: dsload.Loader, ranks: Ranks) -> Any:
    """The model's tokenizer, or None. The ids must be its own, which sizes can show to be wrong, not to be right."""
    from transformers import AutoTokenizer

    try:
        tokenizer = AutoTokenizer.from_pretrained(model)
    except (OSError, ValueError, ImportError) as error:
        ranks.say(f"note: no tokenizer is saved, since {model} has none that loads: {error}".splitlines()[0])
        return None
    theirs = manifests(loader)[0]["tokenizer"]
    if len(tokenizer) != theirs["vocab_size"]:
        ranks.say(
            f"note: the dataset's tokenizer ({theirs['name']}) has {theirs['vocab_size']} ids and the model's "
            f"{len(tokenizer)}; if they are not the same one, build the dataset with --tokenizer {model}"
        )
    return tokenizer


def rate_at(step: int, total: int, options: argparse.Namespace) -> float:
    """The learning rate of a step from 0: it rises to its peak, and falls to 0 at the end, along straight lines."""
    rising = math.ceil(options.warmup * total)
    if step < rising:
        return float(options.learning_rate * (step + 1) / rising)
    return float(options.learning_rate * (total - step) / (total - rising))


def evaluate(model: Any, loader: dsload.Loader, rows: int, ranks: Ranks, bf16: bool) -> tuple[float, int]:
    """(mean loss of the tokens, their number) over the split, each row once. A chunk that does not fit is halved."""
    loss, tokens = 0.0, 0
    for batch in loader:
        with memory.bf16(ranks.device, bf16):
            result = memory.evaluate_in_batches(model, batch, rows)
        rows = result.batch_size
        if result.tokens:  # a rank's last batch may be a filler
            loss, tokens = loss + result.loss * result.tokens, tokens + result.tokens
    loss, counted = ranks.sum(loss, tokens)
    return (loss / counted if counted else math.nan), int(counted)


def write(path: str, state: Mapping[str, Any]) -> None:
    """Writes a checkpoint so that a kill leaves the last one or this one."""
    import torch

    with open(path + ".tmp", "wb") as file:
        torch.save(state, file)
        file.flush()
        os.fsync(file.fileno())
    os.replace(path + ".tmp", path)


def checkpoint_of(path: str, options: argparse.Namespace, ranks: Ranks) -> Optional[dict[str, Any]]:
    """The last checkpoint, or None."""
    import torch

    found = os.path.exists(path) and not options.restart
    seen = ranks.sum(float(found))[0]
    if seen not in (0, ranks.world):
        raise SystemExit(
            f"train: {int(seen)} of {ranks.world} processes see {path}: --out must be a folder that all nodes share"
        )
    if not found:
        return None
    state: dict[str, Any] = torch.load(path, map_location="cpu", weights_only=True)
    if state["batch_size"] != options.batch_size:
        raise SystemExit(
            f"train: {path} was written with --batch-size {state['batch_size']}: resume with it, or begin anew with "
            "--restart or another --out"
        )
    return state


class NoRecord:
    """A MemoryRecorder that records nothing."""

    loading = staticmethod(iter)

    @contextlib.contextmanager
    def phase(self, name: str) -> Iterator[None]:
        yield

    def __enter__(self) -> NoRecord:
        return self

    def __exit__(self, *exc: object) -> None:
        pass


def recorder(model: Any, options: argparse.Namespace, ranks: Ranks) -> Any:
    if options.record_every < 1:
        return NoRecord()
    name = "memory.jsonl" if ranks.first else f"memory.rank{ranks.rank}.jsonl"
    return memory.MemoryRecorder(
        os.path.join(options.out, name), model=model, every=options.record_every, settings=vars(options)
    )


def choose(options: argparse.Namespace, model: Any, ranks: Ranks, steps: int) -> None:
    """Fills in what was not given, by the device and the model."""
    import torch

    cuda = ranks.device.type == "cuda"
    if options.learning_rate is None:
        options.learning_rate = 3e-4 if model.config.is_encoder_decoder else 5e-5
    if options.bf16 is None:
        options.bf16 = cuda and memory.supports_bf16(ranks.device)
    if options.compile is None:
        options.compile = cuda and steps >= COMPILED_STEPS and torch.cuda.get_device_capability(ranks.device) >= (7, 0)
    if options.micro_batch_size is None and not options.auto_batch_size:
        options.micro_batch_size = memory.preset().batch_size


class Training:
    """A run: the model, its data, and how far it is."""

    def __init__(
        self, options: argparse.Namespace, ranks: Ranks, reports: Reports, opened: contextlib.ExitStack
    ) -> None:
        import torch

        self.options, self.ranks, self.reports = options, ranks, reports
        self.model = load_model(options.pretrained_model).to(ranks.device)
        share = options.batch_size // ranks.world
        order = {"bucket": options.bucket, "group": min(256, options.batch_size)} if options.bucket else {}
        self.loader = opened.enter_context(
            dsload.Loader(
                options.data,
                batch_size=share,
                seed=options.seed,
                tail="once",  # as many steps, of the same rows, on any number of processes
                pin_memory=ranks.device.type == "cuda",
                **order,
            )
        )
        if self.loader.world != ranks.world:
            raise SystemExit(f"train: {self.loader.world} processes were started apart: start them with torchrun")
        refuse_mismatch(self.model, self.loader, options.pretrained_model)
        self.tokenizer = own_tokenizer(options.pretrained_model, self.loader, ranks)
        self.held_out: Optional[dsload.Loader] = None
        if all("val" in [s["name"] for s in m["splits"]] for m in manifests(self.loader)):
            val = dsload.Loader(options.data, split="val", shuffle="none", batch_size=share)
            self.held_out = opened.enter_context(val)
        else:
            ranks.say("note: the dataset has no split val, so nothing is evaluated: build with --max-val-examples N")
        self.step, self.total = 0, options.epochs * len(self.loader)
        if options.max_steps > 0:
            self.total = min(self.total, options.max_steps)
        choose(options, self.model, ranks, self.total)
        if options.gradient_checkpointing:
            memory.enable_gradient_checkpointing(self.model)
        self.forward = self.model
        if options.compile:
            torch._dynamo.config.suppress_errors = True  # what cannot be compiled here runs as it is
            self.forward = torch.compile(self.model, dynamic=True)  # lengths differ from batch to batch
        self.optimizer = torch.optim.AdamW(self.model.parameters(), weight_decay=options.weight_decay)
        self.sizer = memory.AdaptiveBatchSizer(
            self.model,
            options.batch_size,
            micro_batch_size=options.micro_batch_size,
            sequence_length=longest_row(self.loader),
            on_event=lambda e: ranks.say(f"micro-batch: {e['to']} rows ({e['event']}), {e['accumulation']} a step"),
        )
        self.checkpoint = os.path.join(options.out, "checkpoint.pt")
        self._resume()
        self.record = opened.enter_context(recorder(self.model, options, ranks))
        self._loss: Any = 0.0  # of this step, this process's share; it stays on the device until it is printed
        self._tokens, self._begun = 0, time.monotonic()

    def _resume(self) -> None:
        state = checkpoint_of(self.checkpoint, self.options, self.ranks)
        if state is not None:
            self.model.load_state_dict(state["model"])
            self.optimizer.load_state_dict(state["optimizer"])
            self.sizer.load_state_dict(state["sizer"])
            try:
                self.loader.load_state_dict(state["loader"])
            except ValueError as error:
                raise SystemExit(f"train: resume from {self.checkpoint}: {error}; or begin anew: --restart") from error
            self.step = state["step"]
        count = sum(p.numel() for p in self.model.parameters())
        self.reports(
            f"{'resumed at' if state else 'training from'} step {self.step} of {self.total}: "
            f"{type(self.model).__name__}, {count:,} parameters on {self.ranks.world} x {self.ranks.device.type}, "
            f"{self.options.batch_size} rows a step, {self.sizer.micro_batch_size} at once"
            f"{', bf16' * self.options.bf16}{', compiled' * self.options.compile}",
            step=self.step, status="resumed" if state else "started",
        )  # fmt: skip

    def run(self) -> bool:
        """Trains to the end. Returns False if a signal interrupted it; there is a checkpoint then."""
        stop, stopped = Stop(), False
        if self.step >= self.total:
            self.ranks.say("nothing is left to train: raise --epochs to go on")
        self.model.train()
        while self.step < self.total and not stopped:
            self._draw_anew()
            for micro in self.record.loading(self.sizer.batches(self.loader)):
                loss = self.sizer.run(self._forward_and_backward, micro)
                if loss is not None and not micro.filler:
                    self._loss, self._tokens = self._loss + loss, self._tokens + int(micro["length"].sum())
                    after = {"next": micro["next"]}
                if not self.sizer.update_due:
                    continue
                self._update()
                stopped = self.ranks.sum(float(stop.asked))[0] > 0  # all processes end after the same step
                if self._ends_here(stopped, after):
                    break
            if not self.options.eval_every and not stopped:
                self._evaluate()
        if self.options.eval_every and not stopped:
            self._evaluate()
        return not stopped

    def _draw_anew(self) -> None:
        """Dropout's numbers follow from the step, so that a resumed run draws those of a run that was not stopped."""
        import torch

        torch.manual_seed((self.options.seed * 1_000_003 + self.step) * 4096 + self.ranks.rank)

    def _forward_and_backward(self, micro: memory.MicroBatch) -> Any:
        with self.record.phase("forward"), memory.bf16(self.ranks.device, self.options.bf16):
            loss = self.forward(**micro.inputs(self.ranks.device)).loss
        with self.record.phase("backward"):
            self.sizer.backward(loss)
        return loss.detach() * micro.weight

    def _update(self) -> None:
        import torch

        with self.record.phase("optimizer"):
            for group in self.optimizer.param_groups:
                group["lr"] = rate_at(self.step, self.total, self.options)
            if self.options.max_grad_norm > 0:
                torch.nn.utils.clip_grad_norm_(self.model.parameters(), self.options.max_grad_norm)
            self.optimizer.step()
            self.optimizer.zero_grad()
        self.step += 1

    def _ends_here(self, stopped: bool, after: Mapping[str, Any]) -> bool:
        """Prints, saves and evaluates where that is due after a step. Returns whether it was the last one."""
        options, last = self.options, stopped or self.step == self.total
        if last or self.step % options.log_every == 0:
            self._log()
        self._loss = 0.0
        if last or self.step % options.save_every == 0:
            self._save(after)
        if options.eval_every and not last and self.step % options.eval_every == 0:
            self._evaluate()
        self._draw_anew()
        return last

    def _log(self) -> None:
        loss, tokens = self.ranks.sum(float(self._loss), self._tokens)
        speed, rate = tokens / (time.monotonic() - self._begun), rate_at(self.step - 1, self.total, self.options)
        epoch = self.step / len(self.loader)
        self.reports(
            f"step {self.step}/{self.total}, epoch {epoch:.2f}, loss {loss:.4f}, learning rate {rate:.3g}, "
            f"{speed:,.0f} tokens/s",
            step=self.step, loss=loss, epoch=epoch, learning_rate=rate, tokens_per_s=speed,
        )  # fmt: skip
        self._tokens, self._begun = 0, time.monotonic()

    def _save(self, after: Mapping[str, Any]) -> None:
        if self.ranks.first:
            parts = {"model": self.model, "optimizer": self.optimizer, "sizer": self.sizer}
            place = {"loader": self.loader.state_dict(after=after), "step": self.step}
            state = {name: part.state_dict() for name, part in parts.items()}
            write(self.checkpoint, {**state, **place, "batch_size": self.options.batch_size})

    def _evaluate(self) -> None:
        if self.held_out is None:
            return
        begun = time.monotonic()
        rows = 2 * self.sizer.micro_batch_size  # without gradients twice as many fit at least
        loss, tokens = evaluate(self.model, self.held_out, rows, self.ranks, self.options.bf16)
        self.reports(
            f"evaluation: loss {loss:.4f}, perplexity {math.exp(min(loss, 700.0)):.4g}, {tokens:,} tokens, "
            f"after step {self.step}",
            step=self.step, eval_loss=loss,
        )  # fmt: skip
        self._begun += time.monotonic() - begun

    def finish(self) -> None:
        folder = os.path.join(self.options.out, "model")
        if self.ranks.first:
            self.model.save_pretrained(folder)
            if self.tokenizer is not None:
                self.tokenizer.save_pretrained(folder)
        self.reports(f"trained {self.step} steps; the model is in {folder}", step=self.step, status="finished")


def main(argv: Optional[Sequence[str]] = None) -> int:
    options = arguments(argv)
    try:
        import torch  # noqa: F401
        import transformers
    except ImportError as error:
        raise SystemExit(f"train: {error}: pip install torch transformers") from error
    transformers.utils.logging.set_verbosity_error()
    transformers.utils.logging.disable_progress_bar()
    os.makedirs(options.out, exist_ok=True)
    ranks = Ranks(options.cpu)
    reports = Reports(options, ranks)
    try:
        with contextlib.ExitStack() as opened:
            training = Training(options, ranks, reports, opened)
            finished = training.run()
            if finished:
                training.finish()
            else:
                text = f"interrupted after step {training.step}: the same command resumes there"
                reports(text, step=training.step, status="interrupted")
    except BaseException as error:
        why = str(error) if isinstance(error, SystemExit) else type(error).__name__
        reports("", status=f"failed: {why}")
        if isinstance(error, (dsload.DsloadError, memory.CannotSplit, OSError)):
            raise SystemExit(f"train: {error}") from error
        raise
    finally:
        reports.close()
        ranks.leave()
    return 0 if finished else INTERRUPTED


if __name__ == "__main__":
    sys.exit(main())
