"""Words of messages: names that were probably meant, and the command's options by their names in Python."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable
from typing import Optional

# To be typed in a shell, where flags are right.
_COMMAND = re.compile(r"'dsload [^']*'|`dsload [^`]*`|\bdsload [a-z]+ [^;]*")
_HELP = re.compile(r"[;,.]? ?[Ss]ee '?dsload (?:build|serve) (?:-h|--help)'?")
_FLAG = re.compile(r"(?<![\w-])--([a-z][a-z0-9-]*[a-z0-9])")
# A word after a flag is its value where a clause ends with it, but for words that end clauses themselves.
_VALUE = re.compile(
    r"=(\S+?)(?=[,;)]|[:.]?(?:\s|$))"
    r"| ('[^']*'|(?!(?:out|too|again|alone|instead|here|there|dropped)\b)[^\s,;]+?)(?=[,;)]|:?$|: )"
)


def nearest(word: object, known: Iterable[object], share: float = 0.7) -> Optional[str]:
    """The known word that is most like a word, if `share` of their letters agree. Underlines do not count."""
    if not isinstance(word, str):
        return None
    words = {_letters(k): k for k in known if isinstance(k, str)}
    near = difflib.get_close_matches(_letters(word), words, 1, share)
    return words[near[0]] if near else None


def _letters(word: str) -> str:
    return word.replace("_", "").replace("-", "").lower()


def did_you_mean(word: object, known: Iterable[object]) -> str:
    """ "; did you mean 'x'?" for the nearest of the known words; nothing if none is near."""
    near = nearest(word, known)
    return f"; did you mean {near!r}?" if near is not None else ""


def named(value: object) -> str:
    """What a value is, by its type: an int, a dict, None."""
    name = type(value).__name__
    return "None" if value is None else f"{'an' if name[0] in 'aeiouAEIOU' else 'a'} {name}"


def in_python(message: str) -> str:
    """A message of the command with its options as Python names them: max_length='x' for --max-length x. Commands to
    type stay as they are."""
    message = message.removeprefix("dsload: ")
    message = re.sub(r"^(build|serve): ", "", message).replace("unknown flag: ", "unknown option: ")
    message = _HELP.sub("; see help(dsload.build)", message).replace("?; see", "? See")
    out, at = [], 0
    for command in _COMMAND.finditer(message):
        out += [_keywords(message[at : command.start()]), command[0]]
        at = command.end()
    return "".join([*out, _keywords(message[at:])])


def _keywords(text: str) -> str:
    out, at = [], 0
    for flag in _FLAG.finditer(text):
        out += [text[at : flag.start()], flag[1].replace("-", "_")]
        value = _VALUE.match(text, flag.end())
        at = value.end() if value else flag.end()
        if value:
            given = value[1] or value[2]
            out.append("=" + (given if given[0] in "'\"" else repr(given)))
    return "".join([*out, text[at:]])
