"""manifest.json, read and checked by the rules of shard/FORMAT.md, as on the server.

Every fault raises Corrupt with the file and the reason. testdata/datasets/forged.json lists forged datasets; the tests
of both readers use it.
"""

from __future__ import annotations

import difflib
import itertools
import json
import os
import re
import stat
from typing import Any, NoReturn

from ..errors import Corrupt
from .blake3 import hexdigest

FORMAT_VERSION = 1
MAX_ROW_TOKENS = 1 << 28
_MAX_BYTES = 64 << 20
MAX_SHARDS = 100_000
MAX_SHARD_BYTES = 2 * (64 << 30)
_LIST_HEAD, _LIST_ENTRY = 16, 96  # bytes of a file that lists shards
_SEAL = re.compile(rb'  "blake3": "([0-9a-f]{64})"\n}\n\Z')
_SEAL_BYTES = 81
_HASH = re.compile(r"[0-9a-f]{64}\Z")
_NAME = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9._-]{0,254}\Z")
_OWN = re.compile(
    r"(?:(?:manifest|run|plan|part-p\d{5})\.json|part-p\d{5}\.(?:checkpoint|lock|plan)|build\.lock|build\.checkpoint)\Z|.*\.(?:tmp|arrow)\Z"
)
_PART = re.compile(r"(train|val)-p(\d{5})-(\d{5})(?:-cut)?\.arrow\Z", re.ASCII)
_SPLITS = ("train", "val")
_OPEN = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)


def is_address(folder: str) -> bool:
    """Reports whether a dataset's folder is in a bucket, which only the dsload program reads."""
    return folder.startswith(("s3://", "gs://", "az://"))


def open_regular(path: str) -> int:
    """A descriptor of a regular file. Anything else, such as a pipe, raises Corrupt at once."""
    try:
        fd = os.open(path, _OPEN)
    except FileNotFoundError:
        raise
    except OSError as error:
        if os.path.exists(path) and not os.path.isfile(path):
            raise Corrupt(f"{path}: not a regular file") from error
        raise
    if not stat.S_ISREG(os.fstat(fd).st_mode):
        os.close(fd)
        raise Corrupt(f"{path}: not a regular file")
    return fd


def open_manifest(folder: str) -> int:
    """A file descriptor of a folder's manifest.json. Raises FileNotFoundError or NotADirectoryError with what to do."""
    path = os.path.join(folder, "manifest.json")
    try:
        return open_regular(path)
    except NotADirectoryError as error:
        parent = os.path.dirname(folder) or "."
        if os.path.exists(os.path.join(parent, "manifest.json")):
            raise NotADirectoryError(f"{folder}: a file of the dataset {parent}; load that folder") from error
        raise NotADirectoryError(
            f"{folder}: a file, not a dataset folder; build one of it with dsload.build({folder!r}, out=…), and load "
            "that folder"
        ) from error
    except FileNotFoundError as error:
        if not os.path.lexists(folder):
            raise FileNotFoundError(_missing(folder)) from error
        if any(os.path.exists(os.path.join(folder, name)) for name in ("dataset_info.json", "dataset_dict.json")):
            raise FileNotFoundError(
                f"{folder}: a folder of datasets' save_to_disk, whose text is not tokenized yet; build a dataset of it "
                f"with dsload.build({folder!r}, out=…), and load that folder"
            ) from error
        raise FileNotFoundError(
            f"{path}: no dataset is there; dsload.build(SOURCE, out=FOLDER) writes one, and the same call resumes "
            "one that is unfinished"
        ) from error


def read_manifest(folder: str) -> dict[str, Any]:
    """manifest.json of a dataset folder. Raises FileNotFoundError with what to do, and Corrupt if no build could have
    written it."""
    path, fd = os.path.join(folder, "manifest.json"), open_manifest(folder)
    with open(fd, "rb") as f:
        data = f.read(_MAX_BYTES + 1)
    if len(data) > _MAX_BYTES:
        raise Corrupt(f"{path}: larger than {_MAX_BYTES} bytes")
    return parse_manifest(path, data)


def _missing(name: str) -> str:
    """A message for a file or folder that does not exist, with the name that was probably meant."""
    if name.startswith("~"):
        return f"{name}: no such file or directory; Python does not expand ~: pass os.path.expanduser({name!r})"
    if re.fullmatch(r"[\w.-]+:\d+", name):
        return f"{name}: no such file or directory; the address of a server begins with http:// or https://"
    folder, base = os.path.split(name.rstrip("/"))
    try:
        names = sorted(itertools.islice((e.name for e in os.scandir(folder or ".")), 10_000))
    except OSError:
        names = []
    near = difflib.get_close_matches(base, names, n=1, cutoff=0.75)
    return f"{name}: no such file or directory" + (f"; did you mean {os.path.join(folder, near[0])}?" if near else "")


def read_seal(folder: str) -> str:
    """The seal of the folder's manifest, or "" if there is none."""
    try:
        with open(open_regular(os.path.join(folder, "manifest.json")), "rb") as f:
            f.seek(max(0, os.fstat(f.fileno()).st_size - _SEAL_BYTES))
            found = _SEAL.search(f.read(_SEAL_BYTES))
    except (OSError, Corrupt):
        return ""
    return found[1].decode() if found else ""


def parse_manifest(path: str, data: bytes) -> dict[str, Any]:
    """Parses and checks a manifest. path is for messages."""
    why = ""
    try:
        manifest = json.loads(data)
    except (ValueError, RecursionError) as error:
        manifest, why = None, str(error)
    if (
        isinstance(manifest, dict)
        and manifest.get("format") == "dsload"
        and _is_int(manifest.get("version"))
        and manifest["version"] != FORMAT_VERSION
    ):
        raise Corrupt(
            f"{path}: unknown format version {manifest['version']}: this package reads version {FORMAT_VERSION}; "
            "build the dataset again, or read it with the dsload that wrote it"
        )
    seal = _SEAL.search(data[-_SEAL_BYTES:])
    if seal is None or hexdigest(memoryview(data)[:-_SEAL_BYTES]) != seal[1].decode():
        raise Corrupt(f"{path}: its own checksum differs; build the dataset again")
    if not isinstance(manifest, dict):
        raise Corrupt(f"{path}: not a manifest{': ' + why if why else ''}")
    _Rules(path).manifest(manifest)
    return manifest


def _is_int(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


class _Rules:
    """Checks a manifest. Every number is checked before it is used."""

    def __init__(self, path: str) -> None:
        self._path = path

    def _bad(self, what: str) -> NoReturn:
        raise Corrupt(f"{self._path}: corrupt: {what}")

    def _int(self, of: dict[str, Any], name: str, low: int, high: int, where: str) -> int:
        value = of.get(name)
        if not _is_int(value) or not low <= value <= high:  # type: ignore[operator]
            self._bad(f"{where}: {name} is {_short(value)}, not a whole number from {low} to {high}")
        return int(value)  # type: ignore[arg-type]

    def _object(self, value: object, where: str) -> dict[str, Any]:
        if not isinstance(value, dict):
            self._bad(f"{where} is {_short(value)}")
        return value

    def _list(self, value: object, where: str) -> list[Any]:
        if not isinstance(value, list):
            self._bad(f"{where} is {_short(value)}")
        return value

    def manifest(self, m: dict[str, Any]) -> None:
        if m.get("format") != "dsload":
            self._bad(f"format {_short(m.get('format'))}")
        self._int(m, "version", FORMAT_VERSION, FORMAT_VERSION, "manifest")
        schema = self._object(m.get("schema"), "schema")
        vocabulary = self._int(schema, "vocab_size", 1, 1 << 31, "schema")
        for column in ("labels", "loss_mask", "segments"):
            if not isinstance(schema.get(column), bool):
                self._bad(f"schema: {column} is {_short(schema.get(column))}")
        tokenizer = self._object(m.get("tokenizer"), "tokenizer")
        if not isinstance(tokenizer.get("fingerprint"), str):
            self._bad(f"tokenizer: fingerprint is {_short(tokenizer.get('fingerprint'))}")
        special = self._object(tokenizer.get("special") or {}, "special tokens")
        for role in special:
            self._int(special, role, 0, vocabulary - 1, "special tokens")
        merged = 0
        if m.get("merged") is not None:
            merged = self._int(self._object(m["merged"], "merged"), "partitions", 1, MAX_SHARDS, "merged")
        last = -1
        for split in self._list(m.get("splits"), "splits"):
            number = _SPLITS.index(split["name"]) if isinstance(split, dict) and split.get("name") in _SPLITS else -1
            if number <= last:
                self._bad(f"split {_short(split)} unknown or out of order")
            last = number
            self._split(split, merged)
        seen = set()
        for file in self._list(m.get("files") or [], "files"):
            name = self._object(file, "file").get("name")
            if (
                not isinstance(name, str)
                or not _NAME.match(name)
                or _OWN.match(name)
                or name in seen
                or not _is_hash(file.get("blake3"))
            ):
                self._bad(f"file {_short(name)}")
            self._int(file, "bytes", 0, (1 << 63) - 1, f"file {name}")
            seen.add(name)
        for split in m["splits"]:
            if split.get("shard_list") is not None:
                self._shard_list(split, m)

    def _part_name(self, name: object, split: str, merged: int, last: tuple[int, int]) -> tuple[str, tuple[int, int]]:
        """The name of a shard of a merged dataset and its position; "" if it cannot follow the last one."""
        found = _PART.match(name) if isinstance(name, str) else None
        if found is None or found[1] != split or int(found[2]) >= merged or (int(found[2]), int(found[3])) <= last:
            return "", last
        return found[0], (int(found[2]), int(found[3]))

    def _split(self, s: dict[str, Any], merged: int) -> None:
        where = f"split {s['name']}"
        if s.get("shard_list") is None:
            self._shards(s, merged, where)
        low = self._int(s, "min_length", 1, MAX_ROW_TOKENS, where)
        self._int(s, "max_length", low, MAX_ROW_TOKENS, where)
        self._int(s, "max_labels", 0, MAX_ROW_TOKENS, where)
        self._int(s, "label_tokens", 0, (1 << 63) - 1, where)
        self._int(s, "examples", 1, (1 << 63) - 1, where)
        self._int(s, "tokens", 1, (1 << 63) - 1, where)
        self._lengths(s, where)

    def _shard_list(self, s: dict[str, Any], m: dict[str, Any]) -> None:
        """A split whose shards are listed in a file, which the manifest names."""
        where = f"split {s['name']}: list"
        listed = self._object(s["shard_list"], where)
        shards = self._int(listed, "shards", 1, (1 << 31) - 1, where)
        self._int(listed, "bytes", shards, (1 << 63) - 1, where)
        sizes = [f["bytes"] for f in m.get("files") or [] if f["name"] == listed.get("file")]
        if m.get("merged") is None or s.get("shards"):
            self._bad(f"{where} where there may be none")
        if listed.get("file") != f"shards-{s['name']}.bin" or sizes != [_LIST_HEAD + _LIST_ENTRY * shards]:
            self._bad(f"{where} of {shards} shards in {_short(listed.get('file'))}, which is not among the files")

    def _shards(self, s: dict[str, Any], merged: int, where: str) -> None:
        shards = self._list(s.get("shards"), f"{where}: shards")
        if not 1 <= len(shards) <= (MAX_SHARDS if not merged else 1 << 31):
            self._bad(f"{where}: {len(shards)} shards")
        rows = tokens = 0
        last = (-1, -1)
        for i, shard in enumerate(shards):
            name = f"{s['name']}-{i:05d}.arrow"
            if merged:
                name, last = self._part_name(
                    self._object(shard, f"{where}: shard {i}").get("name"), s["name"], merged, last
                )
            if self._object(shard, f"{where}: shard {i}").get("name") != name:
                self._bad(f"{where}: shard {i} is named {_short(shard.get('name'))}")
            size = self._int(shard, "bytes", 1, MAX_SHARD_BYTES, name)
            n = self._int(shard, "rows", 1, size, name)
            rows, tokens = rows + n, tokens + self._int(shard, "tokens", n, size, name)
            if not _is_hash(shard.get("blake3")) or not _is_hash(shard.get("footer")):
                self._bad(f"{name}: checksums {_short(shard.get('blake3'))}, {_short(shard.get('footer'))}")
        self._int(s, "examples", rows, rows, where)
        self._int(s, "tokens", tokens, tokens, where)

    def _lengths(self, s: dict[str, Any], where: str) -> None:
        rows = tokens = 0
        last = -1
        for bucket in self._list(s.get("lengths"), f"{where}: lengths"):
            if not isinstance(bucket, list) or len(bucket) != 3 or not all(map(_is_int, bucket)):
                self._bad(f"{where}: histogram bucket {_short(bucket)}")
            first, n, total = bucket
            low, high = bucket_bounds(first)
            if first != low or low <= last or low > s["max_length"] or high < s["min_length"]:
                self._bad(f"{where}: histogram bucket {first}")
            last = low
            if n < 1 or not low * n <= total <= high * n:
                self._bad(f"{where}: histogram bucket {first}: {n} rows, {total} tokens")
            rows, tokens = rows + n, tokens + total
        if rows != s["examples"] or tokens != s["tokens"]:
            self._bad(
                f"{where}: histogram has {rows} rows and {tokens} tokens, the split {s['examples']} and {s['tokens']}"
            )


def bucket_bounds(length: int) -> tuple[int, int]:
    """The smallest and the largest length of the histogram bucket that holds a length."""
    length = min(max(length, 0), MAX_ROW_TOKENS)
    if length < 128 or length == MAX_ROW_TOKENS:
        return length, length
    shift = length.bit_length() - 7  # 64 buckets from each power of two to the next
    low = length >> shift << shift
    return low, low + (1 << shift) - 1


def _is_hash(value: object) -> bool:
    return isinstance(value, str) and _HASH.match(value) is not None


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:60] + "…"
