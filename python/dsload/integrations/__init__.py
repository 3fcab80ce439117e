"""Trainers of other libraries, fed by a Loader. Importing this imports none of them.

TrainerMixin: Hugging Face's Trainer. LoaderCallback: Lightning.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ._trainer import TrainerMixin as TrainerMixin

    LoaderCallback: Any  # Lightning's Callback is known only when Lightning is imported

__all__ = ["LoaderCallback", "TrainerMixin"]


def __getattr__(name: str) -> Any:
    value: Any
    if name == "TrainerMixin":
        from . import _trainer

        value = _trainer.TrainerMixin
    elif name == "LoaderCallback":
        from . import _lightning

        value = _lightning.callback_class()
    else:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = value
    return value
