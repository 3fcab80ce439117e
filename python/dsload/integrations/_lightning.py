"""LoaderCallback: keeps a Loader's state in Lightning's checkpoints."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Mapping
from typing import Any, Optional

from .._loader.loader import Loader

_PACKAGES = ("lightning.pytorch", "pytorch_lightning")


def _base() -> Any:
    """The Callback class of the Lightning in use, else of the installed one. Raises ImportError if there is none."""
    for name in _PACKAGES:
        if name in sys.modules:
            return sys.modules[name].Callback
    for name in _PACKAGES:
        try:
            return importlib.import_module(name).Callback
        except ImportError:
            continue
    raise ImportError("dsload.integrations.LoaderCallback needs Lightning: pip install pytorch-lightning")


def callback_class() -> Any:
    base: Any = _base()

    class LoaderCallback(base):  # type: ignore[misc]
        """Saves a dsload.Loader's position in every checkpoint, and continues there after `trainer.fit(…,
        ckpt_path=…)`.

        Example::

            loader = dsload.Loader("data", batch_size=8)
            trainer = Trainer(callbacks=[LoaderCallback(loader)])
            trainer.fit(model, loader)                                # or DataLoader(loader, batch_size=None)

        The state is the one after the last batch that was trained on, even if Lightning or DataLoader workers read
        ahead. For that the batches need the column `next`. A resume in the middle of an epoch reads none of the earlier
        batches, and works with another number of processes. Each of several loaders needs its own callback with its own
        `name`.

        Where limit_train_batches ends Lightning's epochs early, each continues after the last; with overfit_batches
        they repeat the same batches.
        """

        def __init__(self, loader: Loader, name: str = "train") -> None:
            if not isinstance(loader, Loader):
                raise TypeError(
                    f"LoaderCallback: a {type(loader).__name__} is not a dsload.Loader; pass the loader itself, not a "
                    "wrapper"
                )
            super().__init__()
            self.loader, self.name = loader, name
            self._next: Optional[Any] = None  # of the last batch

        @property
        def state_key(self) -> str:
            return f"dsload.LoaderCallback[{self.name}]"

        def on_train_start(self, trainer: Any, pl_module: Any) -> None:
            self._next = None

        def on_train_batch_end(self, trainer: Any, pl_module: Any, outputs: Any, batch: Any, batch_idx: int) -> None:
            # Not read here, since that would wait for the device.
            self._next = batch.get("next") if isinstance(batch, Mapping) else None
            # Before a checkpoint is taken after the last batch.
            ends = batch_idx + 1 >= trainer.num_training_batches
            if ends and self._next is not None and not trainer.overfit_batches:
                self.loader._iterations.go_on(self.state_dict())

        def state_dict(self) -> dict[str, Any]:
            return self.loader.state_dict(after=None if self._next is None else {"next": self._next})

        def on_save_checkpoint(self, trainer: Any, pl_module: Any, checkpoint: dict[str, Any]) -> None:
            """Corrects the state that Lightning itself saves of a loader that it iterates, which is a batch ahead if
            the length is unknown."""
            mine = self.state_dict()
            saved = checkpoint.get("loops", {}).get("fit_loop", {}).get("state_dict", {}).get("combined_loader")
            for i, state in enumerate(saved if isinstance(saved, list) else ()):
                if isinstance(state, dict) and all(state.get(k) == mine[k] for k in ("version", "dataset", "order")):
                    saved[i] = mine

        def load_state_dict(self, state_dict: dict[str, Any]) -> None:
            self._next = None
            self.loader.load_state_dict(state_dict)

    LoaderCallback.__qualname__ = "LoaderCallback"
    return LoaderCallback
