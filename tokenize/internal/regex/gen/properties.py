"""Writes properties.bin: the character properties and case folds of the Oniguruma build inside the Hugging Face `tokenizers` package.

Usage: python gen/properties.py   (from tokenize/internal/regex, with `pip install tokenizers` in the environment)

Go's unicode package follows another Unicode version, so the engine itself is asked. The names that \\p{} knows are found by offering
every lower-case string of the package's library to the compiler; the members of a property are the characters that a Replace with
its pattern deletes from a string of all scalar values.

Layout, all numbers unsigned varints:
  sets: count, then each set as count of ranges and, for each range, the distance of its first element from the end of the last range and its length
  names: count, then each name as length, bytes, index of its set (sorted by name)
  folds: count, then each class of characters equal under (?i) as count and members
  expansions: count, then each as character, count and the characters that it equals under (?i)
"""
import re, unicodedata, pathlib, tokenizers
from tokenizers import Regex, normalizers as N, pre_tokenizers as P

CPS = [c for c in range(0x110000) if not 0xD800 <= c < 0xE000]
ALL = "".join(map(chr, CPS))

def varint(n):
    out = bytearray()
    while n >= 128:
        out.append(n & 127 | 128)
        n >>= 7
    out.append(n)
    return bytes(out)

def members(pattern):
    """The code points that pattern matches, as ranges [first, last]. Surrogates count with their neighbours: no text has them."""
    rest = P.Split(Regex("(?:" + pattern + ")+"), "removed").pre_tokenize_str(ALL)
    out, last = [], 0
    for _, (a, b) in rest + [("", (len(ALL), len(ALL)))]:
        if a > last:
            out.append([CPS[last], CPS[a - 1]])
        last = b
    return tuple(map(tuple, out))

library = next(pathlib.Path(tokenizers.__file__).parent.glob("tokenizers*.so")).read_bytes()
candidates = {m.decode() for m in re.findall(rb"(?<=\0)[a-z0-9=.]{2,60}(?=\0)", library)} | set("clmnpsz") | {"any", "assigned", "ascii"}
names = {}
for name in sorted(candidates):
    try:
        Regex("\\p{" + name + "}")
    except Exception:
        continue
    names[name] = None
for name in ["lu", "han", "hiragana", "katakana", "hangul", "latin", "punct", "xdigit", "inbasiclatin", "extendedpictographic", "alphabetic", "latn"]:
    assert name in names, name

sets = {}
for name in names:
    m = members("\\p{" + name + "}")
    names[name] = sets.setdefault(m, len(sets))

# Grapheme clusters have no property names of their own; pairs of characters tell. A space keeps these names out of reach of \p{}.
def joined(before, after, at):
    """The code points c for which \X does not end at offset `at` of before + c + after."""
    line = len(before) + len(after) + 2
    ends = set()
    for _, (a, b) in P.Split(Regex("\\X"), "isolated").pre_tokenize_str("".join("\n" + before + chr(c) + after for c in CPS)):
        ends.add(b)
    out = []
    for i, c in enumerate(CPS):
        if i * line + 1 + at not in ends:
            if out and CPS[i - 1] == out[-1][1]:
                out[-1][1] = c
            else:
                out.append([c, c])
    return tuple(map(tuple, out))

for name, m in [(" joins left", joined("a", "", 1)), (" joins right", joined("", "a", 1)), (" between emoji", joined("\u263a", "\u200d\u263a", 3))]:
    print(name, sum(b - a + 1 for a, b in m))
    names[name] = sets.setdefault(m, len(sets))

# (?i): which single characters equal which, asked pair by pair among those that have any case relation.
cased = sorted({c for c in CPS for f in (chr(c).lower(), chr(c).upper(), chr(c).casefold(), chr(c).title()) if f != chr(c)} |
               {ord(x) for c in CPS for f in (chr(c).lower(), chr(c).upper(), chr(c).casefold(), chr(c).title()) if f != chr(c) for x in f})
line = "".join(chr(c) + "\n" for c in cased)
fold = {}
for c in cased:
    hit = set(cased)
    for _, (a, b) in P.Split(Regex("(?i)\\x{%x}" % c), "removed").pre_tokenize_str(line):
        for i in range(a, b):
            if i % 2 == 0:
                hit.discard(cased[i // 2])
    assert c in hit, hex(c)
    if len(hit) > 1:
        fold[c] = tuple(sorted(hit))
for c, f in fold.items():
    assert all(fold[d] == f for d in f), hex(c)
classes = sorted(set(fold.values()))

expansions = []
for c in cased:
    f = chr(c).casefold()
    if len(f) == 1:
        continue
    if P.Split(Regex("(?i)\\A\\x{%x}\\z" % c), "removed").pre_tokenize_str(f) == [] and P.Split(Regex("(?i)\\A" + f + "\\z"), "removed").pre_tokenize_str(chr(c)) == []:
        expansions.append((c, [ord(x) for x in f]))
    else:
        print("no expansion", hex(c))

out = bytearray(varint(len(sets)))
for m in sets:
    out += varint(len(m))
    end = 0
    for a, b in m:
        out += varint(a - end) + varint(b - a)
        end = b
out += varint(len(names))
for name in sorted(names):
    out += varint(len(name)) + name.encode() + varint(names[name])
out += varint(len(classes))
for f in classes:
    out += varint(len(f)) + b"".join(map(varint, f))
out += varint(len(expansions))
for c, f in expansions:
    out += varint(c) + varint(len(f)) + b"".join(map(varint, f))
pathlib.Path("properties.bin").write_bytes(out)
print(len(names), "names", len(sets), "sets", len(classes), "folds", len(expansions), "expansions", len(out), "bytes; tokenizers", tokenizers.__version__)
