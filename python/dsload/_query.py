"""The feed's parameters as one value."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from numbers import Integral
from typing import Any, ClassVar, Optional
from urllib.parse import parse_qsl, urlencode

from ._words import did_you_mean

IGNORED_LABEL = -100  # of a token that carries no loss

_ALIASES = {"concat": "wrapped", "bestfit": "bfd"}


def with_defaults(query: Query, text: str) -> Query:
    """The query with the parameters of a server's header Dsload-Defaults."""
    given = dict(parse_qsl(text))
    length = given.get("max_length", "")
    if not given.get("pack"):
        return query
    return dataclasses.replace(
        query, pack=given["pack"], max_length=query.max_length or (int(length) if length.isdecimal() else None)
    )


@dataclass(frozen=True)
class Query:
    """The feed's parameters, by the same names and with the same defaults (docs/feed.md). `tail` None is the server's
    default."""

    split: str = "train"
    batch_size: Optional[int] = None
    max_tokens: int = 0
    pad_to_multiple_of: int = 1
    padding: str = "longest"
    padding_side: str = "right"
    shuffle: str = "full"
    seed: int = 0
    epochs: int = 1
    bucket: int = 0
    group: int = 256
    rank: int = 0
    world: int = 1
    tail: Optional[str] = None
    start: int = 0
    dtype: str = "int64"
    labels: str = "auto"
    balance: str = "none"
    pack: Optional[str] = None
    max_length: Optional[int] = None
    borders: str = "mask"
    mix: str = ""
    sources: str = "no"

    _CHOICES: ClassVar[dict[str, tuple[Optional[str], ...]]] = {
        "padding": ("longest", "max_length"),
        "padding_side": ("right", "left"),
        "shuffle": ("full", "block", "none"),
        "tail": (None, "drop", "pad", "keep", "once"),
        "dtype": ("int64", "int32"),
        "labels": ("auto", "causal", "seq2seq", "none"),
        "balance": ("none", "tokens", "quadratic"),
        "pack": (None, "none", "wrapped", "bfd", "bfd_split"),
        "borders": ("mask", "keep"),
    }
    _LEAST: ClassVar[dict[str, int]] = {
        "batch_size": 1,
        "max_tokens": 0,
        "max_length": 1,
        "pad_to_multiple_of": 1,
        "epochs": 0,
        "bucket": 0,
        "group": 1,
        "rank": 0,
        "world": 1,
        "start": 0,
    }
    _MOST: ClassVar[dict[str, int]] = {
        "batch_size": 1 << 16,
        "max_tokens": 1 << 28,
        "max_length": 1 << 20,
        "pad_to_multiple_of": 1 << 16,
        "bucket": 1 << 20,
        "group": 1 << 20,
        "world": 1 << 20,
    }

    def __post_init__(self) -> None:
        for name in (*self._LEAST, "seed"):
            value: Any = getattr(self, name)
            # Accept numpy's integers as Python's.
            if not isinstance(value, int) and isinstance(value, Integral):
                object.__setattr__(self, name, int(value))
        object.__setattr__(self, "pack", _ALIASES.get(self.pack or "", self.pack))

    def validate(self) -> Query:
        """Raises ValueError with the parameter's name."""
        for name, allowed in self._CHOICES.items():
            value = getattr(self, name)
            if value not in allowed:
                raise ValueError(
                    f"{name}: {value!r} is not one of "
                    f"{', '.join(str(a) for a in allowed if a)}{did_you_mean(value, allowed)}"
                )
        for name, least in self._LEAST.items():
            value = getattr(self, name)
            if value is None and name in ("batch_size", "max_length"):
                continue
            if isinstance(value, bool) or not isinstance(value, int) or value < least:
                raise ValueError(f"{name}: {value!r} is not a whole number from {least} on")
        for name, most in self._MOST.items():
            value = getattr(self, name)
            if value is not None and value > most:
                raise ValueError(f"{name}: {value} is more than {most}, the feed's limit")
        if isinstance(self.seed, bool) or not isinstance(self.seed, int):
            raise ValueError(f"seed: {self.seed!r} is not a whole number")
        if not -(1 << 63) <= self.seed < 1 << 64:
            raise ValueError(f"seed: {self.seed} does not fit 64 bits")
        if self.rank >= self.world:
            raise ValueError(f"rank: {self.rank} is not below world={self.world}")
        if self.pack == "none" and self.max_length is not None:
            raise ValueError(
                "max_length: rows are not packed, and this is the length of packed rows; name a policy by pack, too"
            )
        if self.packed and self.bucket:
            raise ValueError("bucket: it sorts rows by length, and packed rows have one length; omit it or pack")
        if self.packed and self.balance != "none":
            raise ValueError("balance: packed rows have one length, so they cost the same already; omit it or pack")
        return self

    @property
    def packed(self) -> bool:
        """Reports whether rows are packed while they are served."""
        return self.pack not in (None, "none")

    @property
    def uneven(self) -> bool:
        """Reports whether the number of batches is unknown: with max_tokens, and with packing, which decides how many
        rows there are."""
        return bool(self.max_tokens) or self.packed

    @property
    def rows_a_batch(self) -> int:
        """batch_size with its default filled in."""
        if self.batch_size is not None:
            return min(self.batch_size, self.max_tokens) if self.max_tokens else self.batch_size
        return min(1 << 16, self.max_tokens) if self.max_tokens else 32

    @property
    def tail_or_default(self) -> str:
        if self.tail is not None:
            return self.tail
        if self.world == 1:
            return "keep"
        return "drop" if self.split == "train" and self.shuffle != "none" else "once"

    def path(self) -> str:
        """/v1/batches with every parameter that differs from its default."""
        given = {}
        for f in dataclasses.fields(self):
            value = getattr(self, f.name)
            if value != f.default:
                given[f.name] = value
        if "group" in given:
            given["bucket"] = self.bucket  # without which a server takes no group
        if "seed" in given:
            given["seed"] = self.seed & ((1 << 64) - 1)
        return "/v1/batches" + ("?" + urlencode(given) if given else "")

    def batches_from(self, start: int, rows: int) -> int:
        """How many batches this rank gets from `start` to the end of its epoch of `rows` rows. The query must not be
        uneven."""
        step = self.rows_a_batch * self.world
        full, rest = divmod((start // rows + 1) * rows - start, step)
        tail = self.tail_or_default
        if tail == "drop":
            return full
        if tail in ("pad", "once"):
            return full + (rest > 0)
        before = self.rank if self.balance != "none" else self.rows_a_batch * self.rank
        return full + (rest > before)

    def left_out(self, start: int, rows: int) -> int:
        """How many rows tail="drop" leaves out at the end of the epoch of `rows` rows in which `start` lies. The query
        must not be uneven."""
        return (rows - start % rows) % (self.rows_a_batch * self.world) if self.tail_or_default == "drop" else 0

    def is_last(self, position: int, rows: int) -> bool:
        """Reports whether no batch of this rank follows `position`, the end of a step in an epoch of `rows` rows. The
        query must not be uneven."""
        return position % rows == 0 or self.batches_from(position, rows) == 0
