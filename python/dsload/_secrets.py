"""Removes secrets from logged values: entries by name, and secrets in URLs and strings."""

from __future__ import annotations

import argparse
import dataclasses
import re
from collections.abc import Mapping
from typing import Any

HIDDEN = "***"

# Names whose values are always secrets, and names whose numbers are not (max_tokens, num_key_value_heads).
_STRONG = re.compile(r"secret|passw(or)?d|passphrase|pwd|webhook|credential|cookie|bearer|authorization|signature")
_WEAK = re.compile(r"(token|key|auth|sig)s?$")
# Names of a tokenizer's own tokens, such as eos_token and additional_special_tokens.
_VOCABULARY = {
    "pad",
    "eos",
    "bos",
    "unk",
    "sep",
    "cls",
    "mask",
    "special",
    "added",
    "stop",
    "image",
    "start",
    "end",
    "begin",
}

_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.\-]*://[^\s\"'<>]+")
_USER = re.compile(r"^([A-Za-z][A-Za-z0-9+.\-]*://)[^/?#]*@")
_HOOK = re.compile(
    r"(discord(?:app)?\.com/api/(?:v\d+/)?webhooks/|hooks\.slack\.com/(?:services|workflows|triggers)/|api\.telegram\.org/bot)[^\s?#]+"
)
_PARAMETER = re.compile(r"([?&;#])([^=&;#\s]+)=([^&;#\s]*)")
_KNOWN = re.compile(
    r"\b(?:hf_[A-Za-z0-9]{16,}|sk-[A-Za-z0-9_\-]{16,}|gh[pousr]_[A-Za-z0-9]{16,}|github_pat_\w{16,}|glpat-[\w\-]{16,}|xox[abeprs]-[\w\-]{10,}"
    r"|(?:AKIA|ASIA)[0-9A-Z]{16}|AIza[\w\-]{30,}|eyJ[\w\-]{10,}\.[\w\-]+\.[\w\-]+)"
    r"|(?<=Bearer )\S+|(?<=Basic )[A-Za-z0-9+/=]{8,}"
)


def is_secret(name: str, value: Any = "") -> bool:
    """Reports whether an entry of this name holds a secret. A number under a name such as max_tokens does not."""
    words = [w for w in re.split(r"[^A-Za-z0-9]+", re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower()) if w]
    if any(_STRONG.search(w) for w in words) or _STRONG.search("".join(words)):
        return True
    if value is None or isinstance(value, (bool, int, float)):
        return False
    weak = [w for w in words if _WEAK.search(w)]
    return bool(weak) and not (all(w in ("token", "tokens") for w in weak) and _VOCABULARY.intersection(words))


def without_secrets(config: Mapping[str, Any]) -> dict[str, Any]:
    """The config without entries whose names mention tokens, keys, secrets, passwords or webhooks, at any depth, also
    in lists.

    Secrets in URLs (user and password, parameters such as token=, the path of a webhook), the value after --token in a
    command line, and keys of well-known form in strings are replaced with ***.
    """
    return {str(name): _clean(value) for name, value in config.items() if not is_secret(str(name), value)}


def _clean(value: Any) -> Any:
    if isinstance(value, str):
        return _clean_text(value)
    if isinstance(value, bytes):
        return _clean_text(value.decode("utf-8", "replace")).encode()
    if isinstance(value, Mapping):
        return without_secrets(value)
    if isinstance(value, argparse.Namespace):
        return without_secrets(vars(value))
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return without_secrets({f.name: getattr(value, f.name) for f in dataclasses.fields(value)})
    if isinstance(value, (list, tuple)):
        items = _clean_items(list(value))
        return items if isinstance(value, list) else tuple(items)
    if isinstance(value, (set, frozenset)):
        return type(value)(_clean(v) for v in value)
    return value


def _clean_items(items: list[Any]) -> list[Any]:
    """A list's items. A pair ("api_key", "…") and the arguments "--token", "…" and "--token=…" lose their second
    half."""
    if len(items) == 2 and isinstance(items[0], str) and _is_name(items[0]) and is_secret(items[0], items[1]):
        return [items[0], HIDDEN]
    out: list[Any] = []
    after = False
    for item in items:
        text = item if isinstance(item, str) else ""
        name, equals, _ = text.partition("=")
        if after and not text.startswith("-"):
            out.append(HIDDEN)
            after = False
            continue
        flagged = text.startswith("-") and _is_name(name.lstrip("-")) and is_secret(name, "")
        after = flagged and not equals
        out.append(f"{name}={HIDDEN}" if flagged and equals else _clean(item))
    return out


def _is_name(text: str) -> bool:
    return re.fullmatch(r"[A-Za-z][\w.\-]*", text) is not None


def _clean_text(text: str) -> str:
    return _KNOWN.sub(HIDDEN, _URL.sub(lambda m: _clean_url(m.group()), text))


def _clean_url(url: str) -> str:
    url = _USER.sub(rf"\g<1>{HIDDEN}@", url)
    url = _HOOK.sub(rf"\g<1>{HIDDEN}", url)
    return _PARAMETER.sub(lambda m: f"{m[1]}{m[2]}={HIDDEN}" if is_secret(m[2]) else m.group(), url)
