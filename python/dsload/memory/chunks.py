"""Generation and evaluation in bounded memory, for any number of items.

Both process a list of items in chunks, take smaller chunks after an out-of-memory error, return results in the order of
the items, and keep finished ones in a file from which an interrupted run resumes. Results depend on the items, the seed
and the settings, never on the chunk: each sampled sequence has its own random generator.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any, Callable, Optional, Union

from .._query import IGNORED_LABEL
from .._words import named
from . import _batches, _checks, _device


class PartialResults:
    """Finished items in a JSON Lines file: a header that identifies the work, then {"i": index, "r": result} in order.

    A line cut off by a kill is dropped when the file is opened again. Raises ValueError if the file belongs to other
    work.
    """

    def __init__(self, path: Optional[Union[str, os.PathLike[str]]], fingerprint: str, every: int) -> None:
        self.results: list[Any] = []
        self._unsaved: list[Any] = []
        self._every = max(every, 1)
        self._path = os.fspath(path) if path is not None else None
        if self._path is None:
            return
        good = 0
        if os.path.exists(self._path):
            good = self._read(fingerprint)
        with open(self._path, "ab") as f:
            f.truncate(good)
        if good == 0:
            self._append([json.dumps({"dsload": "partial results", "of": fingerprint})])

    def _read(self, fingerprint: str) -> int:
        """Reads the complete items and returns their size in bytes."""
        assert self._path is not None
        good = 0
        with open(self._path, "rb") as f:
            for number, raw in enumerate(f):
                if not raw.endswith(b"\n"):
                    break
                try:
                    line = json.loads(raw)
                except ValueError:
                    break
                if number == 0:
                    if not isinstance(line, dict) or line.get("of") != fingerprint:
                        raise ValueError(
                            f"{self._path} holds results of other inputs or settings, or of a model with other "
                            "weights: remove it, or name another file to save to"
                        )
                elif line.get("i") != len(self.results):
                    break
                else:
                    self.results.append(line["r"])
                good += len(raw)
        return good

    def add(self, results: list[Any]) -> None:
        self.results += results
        self._unsaved += results
        if len(self._unsaved) >= self._every:
            self.save()

    def save(self) -> None:
        if self._path is None or not self._unsaved:
            self._unsaved = []
            return
        first = len(self.results) - len(self._unsaved)
        self._append([json.dumps({"i": first + k, "r": r}) for k, r in enumerate(self._unsaved)])
        self._unsaved = []

    def _append(self, lines: list[str]) -> None:
        assert self._path is not None
        with open(self._path, "ab") as f:
            f.write(("\n".join(lines) + "\n").encode())
            f.flush()
            os.fsync(f.fileno())


def _in_chunks(
    count: int, chunk: int, partial: PartialResults, work: Callable[[int, int], list[Any]], meter: Any
) -> Iterator[tuple[int, int]]:
    """Runs work(start, stop) over the remaining items; yields (finished, chunk size) after each chunk.

    An out-of-memory error halves the chunk permanently: lengths vary, and a second failure costs more than larger
    chunks save.
    """
    while len(partial.results) < count:
        start = len(partial.results)
        stop = min(start + chunk, count)
        failed = None
        try:
            results = work(start, stop)
        except BaseException as error:
            if not _device.is_out_of_memory(error):
                partial.save()
                raise
            if stop - start == 1:
                partial.save()
                raise
            _device.forget_frames(error)
            failed = stop - start
        if failed is not None:
            chunk = max(1, failed // 2)
            meter.release()
            continue
        partial.add(results)
        yield len(partial.results), chunk
    partial.save()


@dataclass(frozen=True)
class Generated:
    """sequences[p][s]: the new token ids of sequence s of prompt p, up to and including the end token. texts: the
    decoded sequences, if a tokenizer was given. chunk: the number of sequences at once at the end of the run."""

    sequences: list[list[list[int]]]
    texts: Optional[list[list[str]]]
    chunk: int


def generate_in_chunks(
    model: Any,
    inputs: Any,
    num_return_sequences: int = 15,
    chunk: int = 3,
    *,
    tokenizer: Any = None,
    prompt_format: Optional[Callable[[Any], str]] = None,
    seed: int = 0,
    do_sample: bool = True,
    temperature: Optional[float] = None,
    top_k: Optional[int] = None,
    top_p: Optional[float] = None,
    max_new_tokens: int = 64,
    save_to: Optional[Union[str, os.PathLike[str]]] = None,
    save_every: int = 16,
    meter: Any = None,
    on_progress: Optional[Callable[[int, int], None]] = None,
    **generate_options: Any,
) -> Generated:
    """`num_return_sequences` sampled sequences for each prompt, never more than `chunk` at once on the device.

    Sequence s of prompt p is drawn with a generator seeded by (seed, p, s), so any chunk gives the results of the
    undivided run (unless the model's own arithmetic depends on the number of rows).

    Args:
        model: a transformers model with `generate`.
        inputs: a dict of input_ids (prompts, length) with attention_mask, padded on either side; or prompts as strings
            with a `tokenizer`.
            The padding is moved to the side that generation needs: left for a decoder, which continues a row's last
            column, right for an encoder-decoder, whose positions begin at the first.
        prompt_format: makes each prompt's text from an item of `inputs`; called once per prompt, whatever the number of
        chunks.
        temperature, top_k, top_p: as in transformers (top_k=0: off). None is the model's generation_config, else 1, 50
        and 1.
        save_to: a file for finished sequences; a run with the same inputs, settings and weights of the model resumes
        from it. save_every: sequences between writes.
        on_progress: called with (finished, all) sequences.
        generate_options: further options of `generate` (eos_token_id, …). Beam search cannot be divided.

    Raises:
        ValueError: for beam search, options that would have no effect here, numbers below 1, a `save_to` of other work,
            a prompt without tokens or with padding between them, or padded input_ids without an attention_mask.
        The allocator's error if a single sequence does not fit.
    """
    num_return_sequences = _checks.whole("num_return_sequences", num_return_sequences)
    chunk = _checks.whole("chunk", chunk)
    if generate_options.get("num_beams", 1) != 1:
        raise ValueError(
            "beam search needs its beams together and cannot be divided: use num_return_sequences within one generate "
            "call"
        )
    if not do_sample and num_return_sequences != 1:
        raise ValueError("without sampling all sequences of a prompt are the same: use num_return_sequences=1")
    max_new_tokens = _checks.whole("max_new_tokens", max_new_tokens)
    _refuse_without_effect(generate_options)
    sampling = _sampling(model, do_sample, temperature, top_k, top_p)
    is_encoder_decoder = bool(getattr(model.config, "is_encoder_decoder", False))
    batch = _pad_on(
        _prompts(inputs, tokenizer, prompt_format, _padding_ids(model, generate_options)), left=not is_encoder_decoder
    )
    num_prompts = _batches.num_rows(batch)
    meter = meter if meter is not None else _device.DeviceMeter(next(iter(model.parameters())).device)
    settings = {
        "seed": seed,
        "n": num_return_sequences,
        "sampling": sampling,
        "new": max_new_tokens,
        "options": sorted((k, str(v)) for k, v in generate_options.items()),
    }
    partial = PartialResults(save_to, _fingerprint(batch, settings, model if save_to else None), save_every)

    def work(start: int, stop: int) -> list[Any]:
        items = [divmod(i, num_return_sequences) for i in range(start, stop)]
        part = _batches.trim({k: v[[p for p, _ in items]] for k, v in batch.items()}, left=True)
        seeds = [_seed(seed, p, s) for p, s in items]
        return _generate(model, part, seeds, sampling, max_new_tokens, generate_options)

    total = num_prompts * num_return_sequences
    size = chunk
    for done, size in _in_chunks(total, chunk, partial, work, meter):  # noqa: B007 (size is used after the loop)
        if on_progress is not None:
            on_progress(done, total)
    flat = partial.results
    sequences = [flat[p * num_return_sequences : (p + 1) * num_return_sequences] for p in range(num_prompts)]
    texts = None
    if tokenizer is not None:
        texts = [[str(tokenizer.decode(ids, skip_special_tokens=True)) for ids in prompt] for prompt in sequences]
    return Generated(sequences, texts, size)


_SAMPLERS = ("min_p", "top_h", "typical_p", "epsilon_cutoff", "eta_cutoff", "penalty_alpha")


def _refuse_without_effect(options: Mapping[str, Any]) -> None:
    """Raises ValueError for options of `generate` that would not reach the drawing of tokens, which is done here."""
    for name in _SAMPLERS:
        if options.get(name) is not None:
            raise ValueError(f"{name}: it has no effect here; use temperature, top_k and top_p, or model.generate")
    if options.get("generation_config") is not None:
        raise ValueError("generation_config: give its settings by their names, or set model.generation_config")
    if options.get("max_length") is not None:
        raise ValueError("max_length counts a prompt, too, whose length differs here; give max_new_tokens")


def _sampling(
    model: Any, do_sample: bool, temperature: Optional[float], top_k: Optional[int], top_p: Optional[float]
) -> Optional[tuple[float, int, float]]:
    """(temperature, top_k, top_p), those of the model where none is given; None without sampling. Raises ValueError
    for values with which nothing can be drawn."""
    given: dict[str, Any] = {"temperature": temperature, "top_k": top_k, "top_p": top_p}
    defaults = {"temperature": 1.0, "top_k": 50, "top_p": 1.0}
    if not do_sample:
        for name, value in given.items():
            if value is not None and value != defaults[name]:
                raise ValueError(f"{name}={value!r} has no effect with do_sample=False; leave one of them out")
        return None
    own = getattr(model, "generation_config", None)
    for name, default in defaults.items():
        value = given[name] if given[name] is not None else getattr(own, name, None)
        given[name] = default if value is None else value
    t, k, p = given["temperature"], given["top_k"], given["top_p"]
    if not isinstance(t, Real) or not 0 < float(t) < float("inf"):
        raise ValueError(f"temperature must be a number above 0, got {t!r}; do_sample=False takes the likeliest token")
    if isinstance(k, bool) or not isinstance(k, Integral) or k < 0:
        raise ValueError(f"top_k must be a whole number from 0 on (0: off), got {k!r}")
    if not isinstance(p, Real) or not 0 < float(p) <= 1:
        raise ValueError(f"top_p must be a number above 0, up to 1, got {p!r}")
    return float(t), int(k), float(p)


def _padding_ids(model: Any, options: Mapping[str, Any]) -> set[Any]:
    """The padding token, if it has no other meaning."""
    settings = getattr(model, "generation_config", None)
    pad = options.get("pad_token_id", getattr(settings, "pad_token_id", None))
    special = [options.get(name, getattr(settings, name, None)) for name in ("eos_token_id", "bos_token_id")]
    used = {t for value in special for t in (value if isinstance(value, (list, tuple)) else [value])}
    return {pad} - used - {None}


def _prompts(
    inputs: Any, tokenizer: Any, prompt_format: Optional[Callable[[Any], str]], padding: set[Any]
) -> dict[str, Any]:
    """input_ids and attention_mask on the host, each prompt formatted exactly once."""
    if isinstance(inputs, str):
        raise ValueError("inputs: text is one prompt, and a list of prompts is needed; pass [text]")
    if isinstance(inputs, Mapping):
        import torch

        if prompt_format is not None:
            raise ValueError("prompt_format has no effect on input_ids; leave it out, or give prompts as strings")
        for name in ("decoder_input_ids", "decoder_attention_mask", "inputs_embeds", "segments"):
            if name in inputs:
                raise ValueError(
                    f"inputs: {name!r} is not taken along: prompts are input_ids with attention_mask, a prompt a row"
                )
        batch = {k: inputs[k] for k in ("input_ids", "attention_mask") if k in inputs}
        if "attention_mask" not in batch:
            ids = batch["input_ids"]
            ends = sum(1 for row in ids[:, [0, -1]].tolist() if padding.intersection(row))
            if ends and ids.shape[1] > 1:
                raise ValueError(
                    f"{ends} of {len(ids)} prompts begin or end with the padding token, and there is no "
                    "attention_mask: pass attention_mask with input_ids"
                )
            batch["attention_mask"] = torch.ones_like(ids)
        return batch
    if tokenizer is None:
        raise ValueError("prompts that are not tensors need a tokenizer")
    texts = [prompt_format(x) if prompt_format is not None else str(x) for x in inputs]
    encoded = tokenizer(texts, padding=True, return_tensors="pt")
    return {"input_ids": encoded["input_ids"], "attention_mask": encoded["attention_mask"]}


def _pad_on(batch: dict[str, Any], *, left: bool) -> dict[str, Any]:
    """The prompts with their padding on one side. On the other side it would be between a prompt and its continuation,
    or before the first position. Its width is that of the chunk's longest prompt, so results would depend on the
    chunk."""
    import torch

    mask = (batch["attention_mask"] != 0).to(torch.int8)
    borders = (mask[:, 1:] != mask[:, :-1]).sum(-1) + mask[:, 0] + mask[:, -1]
    for row, count in enumerate(borders.tolist()):
        if count == 0:
            raise ValueError(
                f"prompt {row} has no tokens: its attention_mask is all 0; drop it, or give it a first token"
            )
        if count > 2:
            raise ValueError(
                f"the padding of prompt {row} lies between its tokens: pad every prompt on one side, left or right"
            )
    order = torch.argsort(mask if left else 1 - mask, dim=-1, stable=True)
    return {k: v.gather(-1, order.to(v.device)) for k, v in batch.items()}


_WEIGHTS = 16  # of a parameter that are looked at


def _code(function: Any) -> str:
    """Identifies what a function does, as far as its own code tells, by a name that is the same in another run."""
    code = getattr(function, "__code__", function)
    if not hasattr(code, "co_code"):
        return repr(code) if isinstance(code, (bool, int, float, str, bytes, type(None))) else ""
    return f"{code.co_name} {code.co_code.hex()} {code.co_names} {[_code(c) for c in code.co_consts]}"


def _seed(seed: int, prompt: int, sequence: int) -> int:
    """63 bits from a seed and an item's position, by SHA-256, so that neighbouring seeds share nothing."""
    digest = hashlib.sha256(f"{seed}/{prompt}/{sequence}".encode()).digest()
    return int.from_bytes(digest[:8], "little") >> 1


def _fingerprint(batch: Mapping[str, Any], settings: Mapping[str, Any], model: Any) -> str:
    """Identifies the inputs, the settings and, unless it is None, the model."""
    digest = hashlib.sha256(json.dumps(settings, sort_keys=True).encode())
    for name, weights in model.named_parameters() if model is not None else ():
        digest.update(f"{name}{tuple(weights.shape)}{weights.dtype}".encode())
        if weights.numel() and not weights.is_meta:
            # A few of each: training changes all of them. Of a sharded model each process looks at its own.
            own = weights.to_local() if hasattr(weights, "to_local") else weights
            some = own.detach().reshape(-1)[:: max(1, own.numel() // _WEIGHTS)]
            digest.update(some.double().cpu().numpy().tobytes())
    for key in sorted(batch):
        value = batch[key]
        array = value.detach().cpu().numpy() if hasattr(value, "detach") else value
        digest.update(f"{key}{array.shape}{array.dtype}".encode())
        digest.update(array.tobytes())
    return digest.hexdigest()


def _generate(
    model: Any,
    part: dict[str, Any],
    seeds: list[int],
    sampling: Optional[tuple[float, int, float]],
    new_tokens: int,
    options: dict[str, Any],
) -> list[list[int]]:
    import torch
    from transformers import LogitsProcessorList

    device = next(iter(model.parameters())).device
    ids = part["input_ids"].to(device)
    processors = LogitsProcessorList()
    if sampling is not None:
        processors.append(_RowSampler(seeds, *sampling))
    was_training = model.training
    model.eval()
    try:
        with torch.no_grad():
            out = model.generate(
                input_ids=ids,
                attention_mask=part["attention_mask"].to(device),
                do_sample=False,
                num_beams=1,
                max_new_tokens=new_tokens,
                logits_processor=processors,
                **options,
            )
    finally:
        model.train(was_training)
    encdec = getattr(model.config, "is_encoder_decoder", False)
    new = out[:, 1:] if encdec else out[:, ids.shape[1] :]
    ends = options.get("eos_token_id", getattr(model.generation_config, "eos_token_id", None))
    stop = set(ends) if isinstance(ends, (list, tuple)) else {ends}
    return [_until_end(row, stop) for row in new.tolist()]


def _until_end(row: list[int], stop: set[Any]) -> list[int]:
    for i, token in enumerate(row):
        if token in stop:
            return row[: i + 1]
    return row


class _RowSampler:
    """Turns greedy search into sampling with one generator per row: argmax(logits / temperature + Gumbel noise) is a
    draw from the softmax.

    The noise comes from the host, so that it is the same on every device. The signature is that of transformers' logits
    processors.
    """

    supports_continuous_batching = False

    def __init__(self, seeds: Sequence[int], temperature: float, top_k: int, top_p: float) -> None:
        import torch

        self._generators = [torch.Generator().manual_seed(s) for s in seeds]
        self._temperature, self._top_k, self._top_p = temperature, top_k, top_p

    def __call__(self, input_ids: Any, scores: Any) -> Any:
        import torch

        scores = scores.float() / self._temperature
        if 0 < self._top_k < scores.shape[-1]:
            floor = torch.topk(scores, self._top_k).values[:, -1:]
            scores = scores.masked_fill(scores < floor, float("-inf"))
        if self._top_p < 1:
            ordered, index = scores.sort(descending=True)
            before = ordered.softmax(-1).cumsum(-1) - ordered.softmax(-1)
            drop = torch.zeros_like(scores, dtype=torch.bool).scatter(1, index, before >= self._top_p)
            scores = scores.masked_fill(drop, float("-inf"))
        uniform = torch.stack(
            [torch.rand(scores.shape[-1], generator=g, dtype=torch.float64) for g in self._generators]
        )
        noise = -torch.log(-torch.log(uniform.clamp_min(1e-300)))
        return scores + noise.to(scores.device, scores.dtype)


@dataclass(frozen=True)
class Evaluation:
    """rows: the result of each row, in order. loss: mean loss per token over all rows (NaN with a custom function).
    tokens: number of counted labels. batch_size: at the end of the run.
    """

    rows: list[Any]
    loss: float
    tokens: int
    batch_size: int


def evaluate_in_batches(
    model: Any,
    data: Mapping[str, Any],
    batch_size: int = 256,
    *,
    function: Optional[Callable[[Any, dict[str, Any]], Any]] = None,
    save_to: Optional[Union[str, os.PathLike[str]]] = None,
    save_every: int = 1024,
    meter: Any = None,
    on_progress: Optional[Callable[[int, int], None]] = None,
) -> Evaluation:
    """Evaluates every row of `data` with at most `batch_size` rows on the device; only per-row results are kept.

    Args:
        model: a torch module, which runs in eval mode and without gradients.
        data: columns (rows, length) on the host: input_ids, attention_mask, labels, … Padding is trimmed batch by
        batch.
        function: (model, batch on the device) → a sequence of one JSON-able result a row. By default the sum of the
            token losses and the number of labels: [loss, tokens].
        save_to, save_every, on_progress: as in generate_in_chunks, counted in rows. The code of `function` is among the
        settings.

    Raises:
        TypeError, ValueError: for data that is not a dict, or has no labels where there is no function; if `function`
        returns another number of results than rows.
        The allocator's error if a single row does not fit.
    """
    batch_size = _checks.whole("batch_size", batch_size)
    if not isinstance(data, Mapping):
        raise TypeError(f"data: {named(data)} is not a dict of tensors; of a Loader, pass each batch")
    if function is None and "labels" not in data:
        raise ValueError(f"data: it has no labels, which the loss of tokens needs, but {', '.join(data)}")
    import torch

    device = next(iter(model.parameters())).device
    meter = meter if meter is not None else _device.DeviceMeter(device)
    count = _batches.num_rows(data)
    name = f"{getattr(function, '__qualname__', '')} {_code(function)}" if function is not None else "token loss"
    tensors = {k: v for k, v in data.items() if hasattr(v, "shape")}
    settings = {"function": name}
    partial = PartialResults(save_to, _fingerprint(tensors, settings, model if save_to else None), save_every)
    run = function if function is not None else _token_losses

    def work(start: int, stop: int) -> list[Any]:
        part = _batches.trim(_batches.rows(data, start, stop))
        moved = {k: (v.to(device) if hasattr(v, "to") else v) for k, v in part.items()}
        with torch.no_grad():
            result = run(model, moved)
        listed = result.tolist() if hasattr(result, "tolist") else list(result)
        if len(listed) != stop - start:
            raise ValueError(f"the evaluation function returned {len(listed)} results for {stop - start} rows")
        return listed

    was_training = model.training
    model.eval()
    size = batch_size
    try:
        for done, size in _in_chunks(count, batch_size, partial, work, meter):  # noqa: B007 (size is used after the loop)
            if on_progress is not None:
                on_progress(done, count)
    finally:
        model.train(was_training)
    loss, tokens = float("nan"), 0
    if function is None:
        tokens = int(sum(r[1] for r in partial.results))
        loss = sum(r[0] for r in partial.results) / tokens if tokens else float("nan")
    return Evaluation(partial.results, loss, tokens, size)


def _token_losses(model: Any, batch: dict[str, Any]) -> list[list[float]]:
    """[sum of token losses, number of labels] per row."""
    import torch

    known = {k: v for k, v in _batches.model_inputs(batch).items() if k != "token_type_ids"}
    labels = known["labels"] if getattr(model.config, "is_encoder_decoder", False) else known.pop("labels")
    logits = model(**known).logits
    if not getattr(model.config, "is_encoder_decoder", False):
        logits, labels = logits[:, :-1], labels[:, 1:]
    losses = torch.nn.functional.cross_entropy(
        logits.float().transpose(1, 2), labels, ignore_index=IGNORED_LABEL, reduction="none"
    )
    counted = (labels != IGNORED_LABEL).sum(1)
    return [[float(a), int(b)] for a, b in zip(losses.sum(1).double(), counted)]
