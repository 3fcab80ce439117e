"""What processes of their own begin with: the server that forks them imports this module once, for all of them."""

from __future__ import annotations

import contextlib
import gc
import importlib

for name in (
    "pytest",
    "dsload._loader.loader",
    "dsload.memory",
    "torch.distributed",
    "torch.utils.data",
    "accelerate",
    "transformers.trainer",
    "transformers.models.gpt2.modeling_gpt2",
    "transformers.models.t5.modeling_t5",
    "pytorch_lightning",
):
    with contextlib.suppress(ImportError):
        importlib.import_module(name)

# What is never collected is not copied where a process writes.
gc.collect()
gc.freeze()
