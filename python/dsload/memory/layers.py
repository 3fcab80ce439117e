"""summary: the layers of a model by the memory of their parameters."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Optional

from ._device import format_bytes

# Bytes that AdamW keeps of a parameter, which `summary` counts beside the parameter and its gradient.
_ADAMW = 8


@dataclass(frozen=True)
class Layer:
    """A part of a model. name: as in named_modules(), "" for parameters of the model's own. parameters: their number.
    bytes: of them and of the buffers. training: with gradients and AdamW's state, where they are trained. shares: the
    part that has the rest of its tensors, which count there."""

    name: str
    kind: str
    parameters: int
    bytes: int
    training: int
    shares: str = ""


@dataclass(frozen=True)
class Summary:
    """layers: in the model's order. parameters, trained: numbers of elements. parameter_bytes, buffer_bytes, bytes: of
    all. training: bytes with gradients and AdamW's state of what is trained. str() is a table, in which layers that
    follow each other and are alike are one line."""

    layers: tuple[Layer, ...]
    parameters: int
    trained: int
    parameter_bytes: int
    buffer_bytes: int
    bytes: int
    training: int

    def __str__(self) -> str:
        rows = [("layer", "kind", "parameters", "memory", "share", "in training")]
        for run in self._runs():
            first, last, n = run[0], run[-1], len(run)
            name = first.name or "(itself)"
            if n > 1:
                name += f" to {last.name.rpartition('.')[2]}, each"
            share = f"{100 * n * first.bytes / max(self.bytes, 1):.1f}%"
            training = format_bytes(first.training) if first.bytes else f"that of {first.shares}"
            rows.append((name, first.kind, f"{first.parameters:,}", format_bytes(first.bytes), share, training))
        rows.append(("all", "", f"{self.parameters:,}", format_bytes(self.bytes), "", format_bytes(self.training)))
        widths = [max(len(r[i]) for r in rows) for i in range(len(rows[0]))]
        lines = []
        for r in rows:
            aligned = (c.ljust(w) if i < 2 else c.rjust(w) for i, (c, w) in enumerate(zip(r, widths)))
            lines.append("  ".join(aligned).rstrip())
        return "\n".join(lines)

    def _runs(self) -> list[list[Layer]]:
        runs: list[list[Layer]] = []
        for layer in self.layers:
            if not layer.bytes and not layer.shares:
                continue
            before = runs[-1][-1] if runs else None
            if before and before.name.rpartition(".")[0] == layer.name.rpartition(".")[0] and _alike(before, layer):
                runs[-1].append(layer)
            else:
                runs.append([layer])
        return runs


def _alike(a: Layer, b: Layer) -> bool:
    numbered = all(x.name.rpartition(".")[2].isdigit() for x in (a, b))
    return numbered and (a.kind, a.parameters, a.bytes, a.training) == (b.kind, b.parameters, b.bytes, b.training)


def summary(model: Any, depth: Optional[int] = None) -> Summary:
    """The layers of a torch module by the memory of their parameters and buffers, each tensor counted once.

    depth: how many names deep the parts are, such as 1 for those that the model itself has. Without it a part that
    holds a list of layers is divided down to these.

        print(dsload.memory.summary(model))

    What a batch adds is not among it: `estimate` computes that, MemoryRecorder measures it.
    """
    import torch

    if not isinstance(model, torch.nn.Module):
        raise TypeError(f"model must be a torch module, got {type(model).__name__}")
    owners: dict[int, str] = {}
    layers = []
    for name, module, tensors in _divided(model, "", depth):
        own, shares = [], ""
        for tensor in tensors:
            owner = owners.setdefault(id(tensor), name)
            if owner == name:
                own.append(tensor)
            shares = shares or (owner if owner != name else "")
        layers.append(_layer(name, module, own, shares))
    parameters = list(model.parameters())
    in_parameters, in_buffers = _bytes(parameters), _bytes(model.buffers())
    return Summary(
        layers=tuple(layers),
        parameters=sum(p.numel() for p in parameters),
        trained=sum(p.numel() for p in parameters if p.requires_grad),
        parameter_bytes=in_parameters,
        buffer_bytes=in_buffers,
        bytes=in_parameters + in_buffers,
        training=sum(layer.training for layer in layers),
    )


def _layer(name: str, module: Any, tensors: list[Any], shares: str) -> Layer:
    import torch

    size, trained = _bytes(tensors), [t for t in tensors if t.requires_grad]
    training = size + _bytes(trained) + _ADAMW * sum(t.numel() for t in trained)
    count = sum(t.numel() for t in tensors if isinstance(t, torch.nn.Parameter))
    return Layer(name, type(module).__name__, count, size, training, shares)


def _bytes(tensors: Iterable[Any]) -> int:
    return sum(t.numel() * t.element_size() for t in tensors)


def _divided(
    module: Any, name: str, depth: Optional[int], listed: bool = False
) -> Iterator[tuple[str, Any, list[Any]]]:
    """(name, module, tensors) of the parts of a module. listed: it is one of a list of layers."""
    import torch

    lists = (torch.nn.ModuleList, torch.nn.ModuleDict, torch.nn.Sequential)
    children = list(module.named_children())
    within = any(isinstance(m, lists) for m in module.modules() if m is not module)
    divide = name == "" or isinstance(module, lists) or within
    if not children or not (divide and not listed if depth is None else depth > 0):
        yield name, module, [*module.parameters(), *module.buffers()]
        return
    if own := [*module.parameters(recurse=False), *module.buffers(recurse=False)]:
        yield name, module, own
    for child, m in children:
        below = None if depth is None else depth - 1
        yield from _divided(m, f"{name}.{child}" if name else child, below, isinstance(module, lists))
