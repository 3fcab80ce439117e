"""Words of messages: the name that was probably meant, and the command's options by their names in Python."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable

_SAFE = re.compile(r"'[^']*\bdsload [^']*'|`[^`]*`|\bdsload (?!build\b: )[a-z]+ [^;]*")  # commands of a shell keep their flags
_HELP = re.compile(r"[;,.]? ?[Ss]ee '?dsload build (?:-h|--help)'?")
_FLAG = re.compile(r"(?<![\w-])--([a-z][a-z0-9]*(?:-[a-z0-9]+)*)(=(?:'[^']*'|\"[^\"]*\"|[^\s,;)]+))?")


def did_you_mean(word: object, known: Iterable[object]) -> str:
    """"; did you mean 'x'?" for the nearest of the known words; nothing if none is near."""
    if not isinstance(word, str):
        return ""
    words = {k.replace("_", "").lower(): k for k in known if isinstance(k, str)}
    near = difflib.get_close_matches(word.replace("_", "").replace("-", "").lower(), words, 1, 0.7)
    return f"; did you mean {words[near[0]]!r}?" if near else ""


def in_python(message: str) -> str:
    """A message of the command about its options, as Python names them: max_length for --max-length. Commands in it stay as they are."""
    message = _HELP.sub("; see help(dsload.build)", message)
    out, at = [], 0
    for command in _SAFE.finditer(message):
        out += [_FLAG.sub(_keyword, message[at : command.start()]), command[0]]
        at = command.end()
    return "".join([*out, _FLAG.sub(_keyword, message[at:])])


def _keyword(flag: re.Match[str]) -> str:
    value = flag[2]
    if value is None:
        return flag[1].replace("-", "_")
    value = value[1:]
    return f"{flag[1].replace('-', '_')}={value if value[0] in chr(34) + chr(39) else repr(value)}"
