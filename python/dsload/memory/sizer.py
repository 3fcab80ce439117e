"""AdaptiveBatchSizer: keeps the effective batch and adapts the micro-batch to the memory.

Data flow of one effective batch on one rank:

    loader ──► rows of the effective batch, on the host ──► micro-batches ──► sizer.step() ──► gradients, summed over
    ranks

Invariants:

  I1  Every row of the loader passes through exactly one successful step. A micro-batch that runs out of memory is cut
      into halves, padding trimmed, which replace it; nothing that succeeded is run again.
  I2  The gradients after the last step of an effective batch are those of the undivided batch over all ranks, up to the
      order of floating point additions: each micro-batch's mean loss is weighted by its share of the counted tokens (or
      rows).
  I3  A failed step leaves no trace in the gradients: while a step runs, the gradients so far are set aside, and what a
      failed backward pass has already added is dropped.
  I4  Ranks synchronise twice per effective batch, whatever each of them had to split: once to agree on the number of
      tokens, once to sum the gradients. A rank that has run out of rows before another runs filler rows of weight zero.
"""

from __future__ import annotations

import contextlib
import math
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Callable, Optional, Union

from .._query import IGNORED_LABEL
from . import _batches, _checks, _device
from .estimate import suggest_batch_size


class MicroBatch(dict):  # type: ignore[type-arg]
    """A dict of the micro-batch's columns, with what the sizer knows about it.

    weight: its share of the effective batch over all ranks; differentiate its mean loss times `weight`.
    rows: its number of rows. filler: True if it only keeps this rank in step with the others (weight 0).
    """

    weight: float = 0.0
    rows: int = 0
    filler: bool = False

    def inputs(self, device: Any = None) -> dict[str, Any]:
        """The columns a Hugging Face model takes (ids, masks, labels, position_ids), moved to `device` if given."""
        out = _batches.model_inputs(self)
        if device is None:
            return out
        return {k: v.to(device, non_blocking=True) if hasattr(v, "to") else v for k, v in out.items()}


class CannotSplit(RuntimeError):
    """A single row does not fit the device: no batch size helps. The allocator's error is the cause (`__cause__`)."""


class AdaptiveBatchSizer:
    """Feeds micro-batches that fit, and splits one that does not.

    Example::

        sizer = AdaptiveBatchSizer(model, effective_batch_size=128)
        for micro in sizer.batches(loader):
            with sizer.step():
                loss = model(**micro.inputs(device)).loss
                sizer.backward(loss)
            if sizer.update_due:
                optimizer.step()
                optimizer.zero_grad()

    Names bound in the loop's body (`outputs`, `logits`) stay alive while the halves run: keep large values inside a
    function.

    Args:
        model: the torch module whose gradients are accumulated. DistributedDataParallel is run under `no_sync`, since
            the sizer sums gradients itself (I4). Sharded gradients (FSDP, ZeRO 2 and 3) cannot be set aside and are
            refused.
        effective_batch_size: rows of one optimizer step over all ranks; a multiple of the world size.
        micro_batch_size: rows to start with; None picks from free device memory, the model and `sequence_length`.
        optimizer: "adamw", "adam", "sgd", "momentum", "adafactor", "adamw8bit" or an optimizer object: for the first
        pick only.
        sequence_length: tokens per row, for the first pick only.
        weighting: what a loss averages over: "tokens" (labels that are not −100), "rows", or a function from a
        micro-batch to its count.
        shifted_labels: whether the model drops the first label of each row, as causal models do; None asks
        `model.config`.
        memory_bytes: free memory to plan with, instead of the device's figure.
        pad_to_multiple_of: trimmed lengths are rounded up to a multiple of it.
        grow_after: effective batches without an out-of-memory error after which the micro-batch is doubled again (0:
            never). Each failure at a size doubles the wait before that size is tried again.
        process_group: the torch.distributed group of the ranks; None means the default group if one is initialised.
        meter: reads the free memory; by default a DeviceMeter of the model's device.
        on_event: called with a dict for each split and growth ({"event": "split", "rows": 32, "to": 16, …}).

    Raises:
        ValueError: for an effective batch that the world size does not divide, or a sharded model.
    """

    def __init__(
        self,
        model: Any,
        effective_batch_size: int = 128,
        *,
        micro_batch_size: Optional[int] = None,
        optimizer: Any = "adamw",
        sequence_length: int = 512,
        weighting: Union[str, Callable[[Mapping[str, Any]], float]] = "tokens",
        shifted_labels: Optional[bool] = None,
        memory_bytes: Optional[int] = None,
        pad_to_multiple_of: int = 1,
        grow_after: int = 200,
        process_group: Any = None,
        meter: Any = None,
        on_event: Optional[Callable[[dict[str, Any]], None]] = None,
    ) -> None:
        effective_batch_size = _checks.whole("effective_batch_size", effective_batch_size)
        if weighting not in ("tokens", "rows") and not callable(weighting):
            raise ValueError(f"weighting must be 'tokens', 'rows' or a function, got {weighting!r}")
        if shifted_labels is not None:
            _checks.flag("shifted_labels", shifted_labels)
        if type(model).__name__ in ("FullyShardedDataParallel", "DeepSpeedEngine"):
            raise ValueError(
                f"{type(model).__name__} shards its gradients; AdaptiveBatchSizer needs them whole on each rank"
            )
        self.model = model
        self.meter = meter if meter is not None else _device.DeviceMeter(_device_of(model))
        self._group = process_group
        self._rank, self._world = _rank_and_world(process_group)
        if effective_batch_size % self._world:
            raise ValueError(
                f"effective_batch_size {effective_batch_size} is not a multiple of the {self._world} ranks"
            )
        self.effective_batch_size = effective_batch_size
        self._rows_a_rank = effective_batch_size // self._world
        if micro_batch_size is None:
            micro_batch_size = suggest_batch_size(
                model, sequence_length=sequence_length, optimizer=optimizer, memory_bytes=memory_bytes, meter=self.meter
            )
        micro_batch_size = _checks.whole("micro_batch_size", micro_batch_size)
        self.micro_batch_size = max(1, min(micro_batch_size, self._rows_a_rank))
        self._count = weighting if callable(weighting) else None
        self._by_rows = weighting == "rows"
        self._shifted = _is_shifted(model) if shifted_labels is None else shifted_labels
        self._multiple = _checks.whole("pad_to_multiple_of", pad_to_multiple_of)
        self._grow_after = _checks.count("grow_after", grow_after)
        self._on_event = on_event
        self._quiet = 0
        self._wait: dict[int, int] = {}  # size that failed -> effective batches to wait before it is tried again
        self._micro: Optional[MicroBatch] = None
        self._pending: list[tuple[Any, Any]] = []
        self._state = "idle"  # idle, offered, running, done, failed
        self._error: Optional[BaseException] = None
        self.update_due = False
        self.num_splits = 0

    @property
    def accumulation(self) -> int:
        """Micro-batches per effective batch at the current size: 128 rows are 8 of 16 or 4 of 32."""
        return math.ceil(self._rows_a_rank / self.micro_batch_size)

    def batches(self, loader: Iterable[Mapping[str, Any]]) -> Iterator[MicroBatch]:
        """Micro-batches of one pass over `loader`, each to be run inside `with sizer.step():`.

        A batch of the loader larger than the micro-batch is cut into even parts, so let the loader yield batches as
        large as a rank's share of the effective batch. The last effective batch of a pass holds the rest.

        Raises:
            CannotSplit: if a single row does not fit.
            RuntimeError: if a micro-batch was not run inside `step()`.
        """
        for group in self._effective_batches(loader):
            shares = self._weigh(group)
            if shares is None:
                return
            queue = deque(shares)
            calm = True
            while queue:
                micro = queue.popleft()
                self._micro, self._state, self._last = micro, "offered", not queue
                self.update_due = False
                yield micro
                if self._state == "failed":
                    calm = False
                    queue.extendleft(reversed(self._split(micro)))
                    queue = deque(part for m in queue for part in self._even_parts(m))
                elif self._state != "done":
                    raise RuntimeError("a micro-batch must run inside `with sizer.step():`, one after the other")
            self._micro = None
            self._after_group(calm)

    @contextlib.contextmanager
    def step(self) -> Iterator[MicroBatch]:
        """Runs one micro-batch. An out-of-memory error inside ends here: memory is freed, and `batches` offers the
        halves next."""
        if self._state != "offered" or self._micro is None:
            raise RuntimeError("step() belongs inside `for micro in sizer.batches(loader):`, once for each micro-batch")
        self._state = "running"
        self._set_gradients_aside()
        quiet = self.model.no_sync() if hasattr(self.model, "no_sync") else contextlib.nullcontext()
        try:
            with quiet:
                yield self._micro
        except BaseException as error:
            self._restore_gradients()
            if not _device.is_out_of_memory(error):
                self._state = "idle"
                raise
            _device.forget_frames(error)
            # Kept without its traceback, whose frames would keep this batch's activations alive.
            self._error = error.with_traceback(None)
            self._error.__context__ = None
            self._state = "failed"
        else:
            self._merge_gradients()
            self._state = "done"
            if self._last:
                self._sum_over_ranks()
                self.update_due = True
        if self._state == "failed":
            self.meter.release()

    def backward(self, loss: Any) -> None:
        """Differentiates `loss`, the micro-batch's mean loss, weighted by its share of the effective batch."""
        if self._micro is None or self._state != "running":
            raise RuntimeError("backward() belongs inside `with sizer.step():`")
        (loss * self._micro.weight).backward()

    def run(self, function: Callable[[MicroBatch], Any], micro: MicroBatch) -> Any:
        """`function(micro)` inside a step; its local variables are freed before the halves run. Returns None if it ran
        out of memory."""
        result = None
        with self.step():
            result = function(micro)
        return result

    def state_dict(self) -> dict[str, Any]:
        """The size found so far, so that a resumed run does not search for it again by failures."""
        return {"micro_batch_size": self.micro_batch_size, "quiet": self._quiet, "wait": dict(self._wait)}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        self.micro_batch_size = max(1, min(int(state["micro_batch_size"]), self._rows_a_rank))
        self._quiet = int(state.get("quiet", 0))
        self._wait = {int(k): int(v) for k, v in dict(state.get("wait", {})).items()}

    def _effective_batches(self, loader: Iterable[Mapping[str, Any]]) -> Iterator[list[dict[str, Any]]]:
        """Parts of the loader's batches that add up to this rank's share; then empty lists, while the rank waits for
        others (I4)."""
        held: list[dict[str, Any]] = []
        filled = 0
        last: Optional[dict[str, Any]] = None
        for batch in loader:
            n, start = _batches.num_rows(batch), 0
            while start < n:
                take = min(n - start, self._rows_a_rank - filled)
                held.append(_batches.rows(batch, start, start + take))
                filled += take
                start += take
                if filled == self._rows_a_rank:
                    last = held[-1]
                    yield held
                    held, filled = [], 0
        if held:
            last = held[-1]
            yield held
        while self._world > 1:
            # batches() ends the loop once no rank has rows left.
            if last is None:
                raise RuntimeError(
                    f"rank {self._rank} got no rows at all, so it cannot keep in step with the other ranks"
                )
            self._filler = last
            yield []

    def _weigh(self, group: list[dict[str, Any]]) -> Optional[list[MicroBatch]]:
        """The group's micro-batches with their weights; None if no rank has rows left."""
        parts = [MicroBatch(p) for p in group]
        counts = [self._counted(p) for p in parts]
        total, any_rows = self._sum_of_counts(sum(counts), len(parts))
        if not any_rows:
            return None
        if not parts:
            filler = MicroBatch(_batches.trim(_batches.rows(self._filler, 0, 1), self._multiple))
            filler.rows, filler.weight, filler.filler = 1, 0.0, True
            return [filler]
        out = []
        for part, count in zip(parts, counts):
            part.rows, part.weight = _batches.num_rows(part), (count / total if total else 0.0)
            out.extend(self._even_parts(part))
        return out

    def _counted(self, part: Mapping[str, Any]) -> float:
        if self._count is not None:
            return float(self._count(part))
        labels = part.get("labels")
        if self._by_rows or labels is None:
            return float(_batches.num_rows(part))
        if self._shifted and getattr(labels, "ndim", 0) == 2:
            labels = labels[:, 1:]
        return float((labels != IGNORED_LABEL).sum())

    def _cut(self, part: MicroBatch, pieces: int) -> list[MicroBatch]:
        """The part cut into `pieces` runs of rows, as even as possible, and trimmed; each gets its share of the
        weight."""
        n = part.rows
        edges = [n * i // pieces for i in range(pieces + 1)]
        out = [MicroBatch(_batches.trim(_batches.rows(part, a, b), self._multiple)) for a, b in zip(edges, edges[1:])]
        counts = [self._counted(p) for p in out]
        total = sum(counts)
        for piece, count, a, b in zip(out, counts, edges, edges[1:]):
            piece.rows, piece.filler = b - a, part.filler
            piece.weight = part.weight * (count / total) if total else 0.0
        return out

    def _even_parts(self, part: MicroBatch) -> list[MicroBatch]:
        pieces = math.ceil(part.rows / self.micro_batch_size)
        return self._cut(part, pieces) if pieces > 1 else [part]

    def _split(self, micro: MicroBatch) -> list[MicroBatch]:
        error, self._error = self._error, None
        failed = micro.rows
        if failed == 1:
            raise CannotSplit(
                f"a single row does not fit the device (shape {_batches.shape_of(micro)}): shorten rows, use gradient "
                "checkpointing or bf16, or a smaller model"
            ) from error
        halves = self._cut(micro, 2)
        self.micro_batch_size = min(self.micro_batch_size, max(1, failed // 2))
        self._wait[failed] = 2 * self._wait.get(failed, self._grow_after)
        self._quiet = 0
        self.num_splits += 1
        self._tell(event="split", rows=failed, to=self.micro_batch_size, accumulation=self.accumulation)
        return halves

    def _after_group(self, calm: bool) -> None:
        self._quiet = self._quiet + 1 if calm else 0
        larger = min(self.micro_batch_size * 2, self._rows_a_rank)
        if not self._grow_after or larger == self.micro_batch_size:
            return
        failed_at = [w for size, w in self._wait.items() if size <= larger]
        if self._quiet >= max([self._grow_after, *failed_at]):
            self.micro_batch_size, self._quiet = larger, 0
            self._tell(event="grow", to=larger, accumulation=self.accumulation)

    def _tell(self, **event: Any) -> None:
        if self._on_event is not None:
            self._on_event(event)

    def _set_gradients_aside(self) -> None:
        self._pending = [(p, p.grad) for p in self.model.parameters() if p.grad is not None]
        for p, _ in self._pending:
            p.grad = None

    def _restore_gradients(self) -> None:
        for p in self.model.parameters():
            p.grad = None
        for p, grad in self._pending:
            p.grad = grad
        self._pending = []

    def _merge_gradients(self) -> None:
        for p, grad in self._pending:
            if p.grad is not None:
                grad.add_(p.grad)
            p.grad = grad
        self._pending = []

    def _sum_of_counts(self, count: float, parts: int) -> tuple[float, bool]:
        if self._world == 1:
            return count, parts > 0
        torch = _device.torch_if_loaded()
        both = torch.tensor(
            [count, float(parts > 0)], dtype=torch.float64, device=_collective_device(self.model, self._group)
        )
        torch.distributed.all_reduce(both, group=self._group)
        return float(both[0]), bool(both[1] > 0)

    def _sum_over_ranks(self) -> None:
        if self._world == 1:
            return
        torch = _device.torch_if_loaded()
        for p in self.model.parameters():
            if not p.requires_grad:
                continue
            # A parameter unused on one rank may have been used on another: every rank takes part in every sum.
            if p.grad is None:
                p.grad = torch.zeros_like(p)
            torch.distributed.all_reduce(p.grad, group=self._group)


def _device_of(model: Any) -> Any:
    first = next(iter(model.parameters()), None)
    return None if first is None else first.device


def _collective_device(model: Any, group: Any) -> Any:
    torch = _device.torch_if_loaded()
    return "cpu" if torch.distributed.get_backend(group) == "gloo" else _device_of(model)


def _rank_and_world(group: Any) -> tuple[int, int]:
    torch = _device.torch_if_loaded()
    if torch is None or not torch.distributed.is_available() or not torch.distributed.is_initialized():
        return 0, 1
    return int(torch.distributed.get_rank(group)), int(torch.distributed.get_world_size(group))


def _is_shifted(model: Any) -> bool:
    config = getattr(getattr(model, "module", model), "config", None)
    return not getattr(config, "is_encoder_decoder", False)
