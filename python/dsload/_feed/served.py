"""Checked access to a manifest that a server sent, since anything may answer at a socket."""

from __future__ import annotations

from typing import Any, Optional

from .._read.manifest import MAX_ROW_TOKENS
from ..errors import Corrupt

_MAX_ROWS = 1 << 56


def _wrong(source: str, what: str) -> Corrupt:
    return Corrupt(
        f"{source}: {what}; the server is not a dsload server, or its dataset is damaged (`dsload verify` names the "
        "damage)"
    )


def splits_of(manifest: Any, source: str) -> list[dict[str, Any]]:
    splits = manifest.get("splits") if isinstance(manifest, dict) else None
    if not isinstance(splits, list) or not all(isinstance(s, dict) and isinstance(s.get("name"), str) for s in splits):
        raise _wrong(source, "the manifest has no list of splits")
    return splits


def split_of(manifest: Any, name: str, source: str) -> Optional[dict[str, Any]]:
    """The split of that name; None if there is none."""
    return next((s for s in splits_of(manifest, source) if s["name"] == name), None)


def rows_of(split: dict[str, Any], source: str) -> int:
    rows = split.get("examples")
    if isinstance(rows, bool) or not isinstance(rows, int) or not 0 <= rows < _MAX_ROWS:
        raise _wrong(source, f"split {split['name']} has {str(rows)[:40]} examples")
    return rows


def longest_of(manifest: dict[str, Any], name: str, source: str, *, rows: bool = False) -> int:
    """The longest row of a split, or with rows=False the build's --max-length if that is more."""
    split = split_of(manifest, name, source)
    if split is None:
        return 1  # counting rows reports it
    longest = split.get("max_length")
    if isinstance(longest, bool) or not isinstance(longest, int) or not 1 <= longest <= MAX_ROW_TOKENS:
        raise _wrong(source, f"the longest row of split {name} has {str(longest)[:40]} tokens")
    settings = manifest.get("settings")
    value = settings.get("max-length") if isinstance(settings, dict) else None
    if not rows and isinstance(value, int) and not isinstance(value, bool) and 0 < value <= MAX_ROW_TOKENS:
        longest = max(longest, value)
    return longest


def lengths_of(split: dict[str, Any], source: str) -> list[tuple[int, int, int]]:
    """The histogram of a split's lengths: (least length, rows, tokens) of each bucket, ascending."""
    buckets = split.get("lengths")
    if (
        not isinstance(buckets, list)
        or not all(
            isinstance(b, list) and len(b) == 3 and all(type(n) is int and 0 < n < _MAX_ROWS for n in b)
            for b in buckets
        )
        or sum(b[1] for b in buckets) != split.get("examples")
        or sum(b[2] for b in buckets) != split.get("tokens")
    ):
        raise _wrong(source, f"the lengths of split {split['name']} do not add up to its rows and tokens")
    return [(b[0], b[1], b[2]) for b in buckets]


def shard_checksums(manifest: dict[str, Any], split: dict[str, Any], source: str) -> list[str]:
    """The checksums of a split's shards, or that of the file that lists them."""
    listed = split.get("shard_list")
    if listed is not None:
        files = manifest.get("files")
        name = listed.get("file") if isinstance(listed, dict) else None
        found = [f for f in files if isinstance(f, dict) and f.get("name") == name] if isinstance(files, list) else []
        checksum = found[0].get("blake3") if len(found) == 1 else None
        if not isinstance(checksum, str):
            raise _wrong(source, f"the list of the shards of split {split['name']} has no checksum")
        return [checksum]
    shards = split.get("shards")
    if not isinstance(shards, list) or not all(
        isinstance(s, dict) and isinstance(s.get("blake3"), str) for s in shards
    ):
        raise _wrong(source, f"the shards of split {split['name']} have no checksums")
    return [s["blake3"] for s in shards]
