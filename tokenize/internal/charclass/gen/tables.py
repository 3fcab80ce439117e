"""Writes tables.bin: what Hugging Face's tokenizers does to each character, and the properties and case folds of the Oniguruma build
inside it.

Usage: python gen/tables.py   (from tokenize/internal/charclass, with tokenizers 0.23.3 in the environment)

The library itself is asked about every code point, since its parts follow several versions of Unicode, none of them Go's: the Rust
standard library, the regex crate, unicode_categories, Oniguruma, ...

Layout, all numbers unsigned varints:
  the length of what follows in bytes, and for each name its length, its bytes, and the offset and length of its table; those
  that are looked up most come first
  the tables
A space begins the names that \\p{} must not reach. A table is one of
  a set: for each range, the distance of its first element from the last of the range before it and its length less one
  values: as a set, and after each range a value
  strings: for each character its distance from the one before it and what it becomes: for one character the difference (zigzag) times
    two, else the length in bytes times two plus one, and the bytes
  lists: for each list its length and its characters
"""
import pathlib
import re
import struct
import unicodedata

import tokenizers
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


def ranges(cps):
    """A sorted list of code points as (first, last). Surrogates count with their neighbours: no text has them."""
    out = []
    for c in sorted(cps):
        if out and (out[-1][1] + 1 == c or out[-1][1] == 0xD7FF and c == 0xE000):
            out[-1][1] = c
        else:
            out.append([c, c])
    return tuple(map(tuple, out))


def pack_set(rs):
    out, at = b"", 0
    for a, b in rs:
        out += varint(a - at) + varint(b - a)
        at = b
    return out


def pack_values(values):
    """values maps code points to numbers."""
    out, at, runs = b"", 0, []
    for c in sorted(values):
        if runs and runs[-1][1] == c - 1 and values[c] == values[c - 1]:
            runs[-1][1] = c
        else:
            runs.append([c, c])
    for a, b in runs:
        out += varint(a - at) + varint(b - a) + varint(values[a])
        at = b
    return out


def pack_strings(strings):
    out, at = b"", 0
    for c in sorted(strings):
        s, out = strings[c], out + varint(c - at)
        at = c
        if len(s) == 1:
            d = ord(s) - c
            out += varint((d << 1 ^ d >> 63) << 1)
        else:
            out += varint(len(s.encode()) << 1 | 1) + s.encode()
    return out


def pack_lists(lists):
    return b"".join(varint(len(l)) + b"".join(map(varint, l)) for l in lists)


def pieces(p, s):
    return [x for x, _ in p.pre_tokenize_str(s)]


def matches(pattern, text, width):
    """The indices of the parts of text, width characters each, that the pattern matches whole."""
    hit = bytearray(b"\1" * len(text))
    for _, (a, b) in P.Split(Regex(pattern), "removed").pre_tokenize_str(text):
        hit[a:b] = bytes(b - a)
    return [i for i in range(len(text) // width) if hit[i * width]]


def property(pattern):
    """The characters that the pattern matches, as (first, last). Surrogates count with their neighbours: no text has them."""
    rest = P.Split(Regex("(?:" + pattern + ")+"), "removed").pre_tokenize_str(ALL)
    out, last = [], 0
    for _, (a, b) in rest + [("", (len(ALL), len(ALL)))]:
        if a > last:
            out.append((CPS[last], CPS[a - 1]))
        last = b
    return tuple(out)


def oniguruma():
    """The sets that \\p{} names. The names are found by offering every lower-case string of the library to its compiler."""
    library = next(pathlib.Path(tokenizers.__file__).parent.glob("tokenizers*.so")).read_bytes()
    candidates = {m.decode() for m in re.findall(rb"(?<=\0)[a-z0-9=.]{2,60}(?=\0)", library)} | set("clmnpsz") | {"any", "assigned", "ascii"}
    tables = {}
    for name in sorted(candidates):
        try:
            Regex("\\p{" + name + "}")
        except Exception:
            continue
        tables[name] = pack_set(property("\\p{" + name + "}"))
    for name in ["lu", "han", "hiragana", "katakana", "hangul", "latin", "punct", "xdigit", "inbasiclatin", "extendedpictographic", "alphabetic", "latn"]:
        assert name in tables, name
    return tables


def clusters():
    """The sets that make \\X, which have no names of their own; pairs of characters tell."""
    def joined(before, after, at):
        """The code points c for which \\X does not end at offset `at` of before + c + after."""
        line = len(before) + len(after) + 2
        ends = {b for _, (_, b) in P.Split(Regex("\\X"), "isolated").pre_tokenize_str("".join("\n" + before + chr(c) + after for c in CPS))}
        return pack_set(ranges(c for i, c in enumerate(CPS) if i * line + 1 + at not in ends))
    return {" joins left": joined("a", "", 1), " joins right": joined("", "a", 1), " between emoji": joined("\u263a", "\u200d\u263a", 3)}


def folds():
    """Which characters equal which under (?i), asked pair by pair among those that have any case relation, and which equal strings."""
    forms = lambda c: (chr(c).lower(), chr(c).upper(), chr(c).casefold(), chr(c).title())
    cased = {c for c in CPS if any(f != chr(c) for f in forms(c))}
    cased = sorted(cased | {ord(x) for c in cased for f in forms(c) if f != chr(c) for x in f})
    line = "".join(chr(c) + "\n" for c in cased)
    fold = {}
    for c in cased:
        hit = [cased[i] for i in matches("(?i)\\x{%x}" % c, line, 2)]
        assert c in hit, hex(c)
        if len(hit) > 1:
            fold[c] = tuple(hit)
    for c, f in fold.items():
        assert all(fold[d] == f for d in f), hex(c)
    expansions = []
    for c in cased:
        f = chr(c).casefold()
        if len(f) == 1:
            continue
        if pieces(P.Split(Regex("(?i)\\A\\x{%x}\\z" % c), "removed"), f) == [] and pieces(P.Split(Regex("(?i)\\A" + f + "\\z"), "removed"), chr(c)) == []:
            expansions.append([c] + [ord(x) for x in f])
        else:
            print("no expansion", hex(c))
    return {" folds": pack_lists(sorted(set(fold.values()))), " expansions": pack_lists(expansions)}


def check_patterns():
    """The known patterns are made of these classes; the letters of contractions have one more case."""
    sets = {k: {c for a, b in property(p) for c in range(a, b + 1)} for k, p in
            [("L", r"\p{L}"), ("N", r"\p{N}"), ("S", r"\s"), ("M", r"\p{M}"), ("U", r"[\p{Lu}\p{Lt}]"), ("W", r"\p{Ll}")]}
    L, NUM, S, M, U, W = (sets[k] for k in "LNSMUW")
    every = set(CPS)
    for pattern, want in [(r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]", L - W | M), (r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]", L - U | M), (r"[^\s\p{L}\p{N}]", every - S - L - NUM)]:
        assert set(CPS[i] for i in matches(pattern + "+", ALL, 1)) == want, pattern
    # ByteLevel's own GPT-2 pattern: "a" joins letters, "1" numbers, "!" the rest, and white space joins nothing before it.
    for probe, want in [("a", L), ("1", NUM), ("!", every - S - L - NUM)]:
        text = "".join("\n\n" + probe + chr(c) for c in CPS)
        ends = {b for _, (_, b) in P.ByteLevel(add_prefix_space=False).pre_tokenize_str(text)}
        assert {c for i, c in enumerate(CPS) if 4 * i + 3 not in ends} == want, probe
    extra = set()
    for letters in ["s", "t", "m", "d", "re", "ve", "ll"]:
        for pos in range(len(letters)):
            text = "".join("'" + letters[:pos] + chr(c) + letters[pos + 1:] + "\n" for c in CPS)
            for i in matches("(?i:'" + letters + ")\\n", text, len(letters) + 2):
                if chr(CPS[i]).lower() != letters[pos]:
                    extra.add((letters, pos, hex(CPS[i])))
    assert extra == {("s", 0, "0x17f")}, extra


def rust():
    """The sets of the pre-tokenizers and normalizers that do not use Oniguruma."""
    spaces = [c for c in CPS if len(pieces(P.WhitespaceSplit(), "a" + chr(c) + "b")) == 2]
    assert ranges(spaces) == property(r"\s")  # char::is_whitespace, and unicode.IsSpace
    three = lambda p: [c for c in CPS if len(pieces(p, "a" + chr(c) + "b")) == 3]
    punctuation = three(P.Punctuation())
    assert punctuation == three(P.BertPreTokenizer())
    number = {c: len(pieces(P.Whitespace(), "a" + chr(c) + "b")) for c in CPS}
    assert [c for c in CPS if number[c] == 2] == spaces  # \s of the regex crate
    strip = N.StripAccents()
    return {" numeric": three(P.Digits(individual_digits=True)), " punctuation": punctuation, " word": [c for c in CPS if number[c] == 1],
            " accents": [c for c in CPS if strip.normalize_str("a" + chr(c)) == "a"]}


def bert():
    off = dict(clean_text=False, handle_chinese_chars=False, strip_accents=False, lowercase=False)
    clean, cjk, strip, lower = (N.BertNormalizer(**{**off, k: True}) for k in off)
    nfd, lowercase = N.NFD(), N.Lowercase()
    dropped, spaces, chinese, stripped, lowered = [], [], [], {}, {}
    for c in CPS:
        s = chr(c)
        r = clean.normalize_str(s)
        if r == "":
            dropped.append(c)
        elif r == " ":
            spaces.append(c)
        else:
            assert r == s, hex(c)
        r = cjk.normalize_str(s)
        if r != s:
            assert r == " " + s + " ", hex(c)
            chinese.append(c)
        r = strip.normalize_str(s)
        if r != s and not 0xAC00 <= c <= 0xD7A3:
            stripped[c] = r
        r = lower.normalize_str(s)
        assert r == lowercase.normalize_str(s), hex(c)
        if r != s:
            lowered[c] = r
    # Hangul decomposes by arithmetic: check that it does.
    for c in range(0xAC00, 0xD7A4):
        i = c - 0xAC00
        want = chr(0x1100 + i // 588) + chr(0x1161 + i % 588 // 28) + (chr(0x11A7 + i % 28) if i % 28 else "")
        assert strip.normalize_str(chr(c)) == want, hex(c)
    # Characters are put into canonical order before accents go; that shows only among those that stay. References: one old
    # mark for each combining class. A class is 1 + the index of the reference that a character sorts equal with.
    refs = {}
    for c in range(0x300, 0x20000):
        k = unicodedata.combining(chr(c))
        if k and k not in refs and len(nfd.normalize_str(chr(c))) == 1:
            refs[k] = chr(c)
    refs = [refs[k] for k in sorted(refs)]
    swaps = lambda x, y: nfd.normalize_str(x + y) == y + x and x != y
    order, moved = {}, set()
    for c in CPS:
        s = chr(c)
        if len(nfd.normalize_str(s)) != 1 or not (swaps(s, refs[0]) or swaps(refs[-1], s)):
            continue
        moved.add(c)
        if c in stripped:  # it goes away
            continue
        order[c] = 1 + next(k for k, r in enumerate(refs) if not swaps(s, r) and not swaps(r, s))
    # Characters that go away but that nothing is ever moved across: something in their decomposition stays in place.
    walls = [c for c in stripped if stripped[c] == "" and any(ord(x) not in moved for x in nfd.normalize_str(chr(c)))]
    sets = {" bert dropped": dropped, " bert spaces": spaces, " bert chinese": chinese, " bert walls": walls,
            " bert marks": [c for c in stripped if stripped[c] == ""]}
    return sets, {" bert stripped": pack_strings(stripped), " bert order": pack_values(order), " lower": pack_strings(lowered)}


def charsmap(m):
    """A precompiled character map with these entries: a double array, written the simple way."""
    values, text = {}, bytearray()
    for k, v in m.items():
        values[k.encode()] = len(text)
        text += v.encode() + b"\0"
    units, nodes = {0: 0}, [(0, b"")]
    free = 256
    while nodes:
        at, prefix = nodes.pop()
        kids = sorted({k[len(prefix)] for k in values if k.startswith(prefix) and len(k) > len(prefix)})
        leaf = prefix in values
        base = free ^ at & 0xFF  # a block of 256 units for each node; offsets are multiples of 256
        free += 256
        units[at] |= (base ^ at) >> 8 << 10 | 1 << 9 | leaf << 8
        if leaf:
            units[base] = values[prefix] | 1 << 31
        for c in kids:
            units[base ^ c] = c
            nodes.append((base ^ c, prefix + bytes([c])))
    size = max(units) + 256
    blob = b"".join(struct.pack("<I", units.get(i, 0)) for i in range(size))
    return N.Precompiled(struct.pack("<I", len(blob)) + blob + bytes(text))


def graphemes():
    """Precompiled works on grapheme clusters of less than six bytes. What tells them apart is whether a character extends the one
    before it, whether nothing joins it (Control), and whether it joins whatever follows (Prepend)."""
    a = charsmap({"a": "X"})
    y = charsmap({"\u0340": "Y"})
    return {" extends": [c for c in CPS if c != 0x61 and a.normalize_str("a" + chr(c)) == "X"],
            " controls": [c for c in CPS if y.normalize_str(chr(c) + "\u0340\u0301") == chr(c) + "Y"],
            " prepends": [c for c in CPS if a.normalize_str(chr(c) + "a\u0301").endswith("X\u0301")]}


def scripts():
    """Classes of characters of like script: what matters is only which characters are alike. Characters in none are neutral."""
    us = P.UnicodeScripts()
    joined = lambda a, b: len(pieces(us, chr(a) + chr(b))) == 1
    reps, classes, last = [], {}, -2
    for c in CPS:
        if joined(0x61, c) and joined(0x6F22, c):
            continue
        if last == c - 1 and joined(last, c):
            classes[c] = classes[last]
        else:
            k = next((k for k, r in enumerate(reps) if joined(r, c)), len(reps))
            if k == len(reps):
                reps.append(c)
            classes[c] = k + 1
        last = c
    return {" scripts": pack_values(classes)}


if __name__ == "__main__":
    check_patterns()
    sets, tables = bert()
    sets |= rust() | graphemes()
    tables |= oniguruma() | clusters() | folds() | scripts() | {k: pack_set(ranges(v)) for k, v in sets.items()}
    names, data = b"", b""
    at = {}
    for name in sorted(tables, key=lambda n: (n[0] != " ", len(n), n)):
        table = tables[name]
        if table not in at:
            at[table] = len(data)
            data += table
        names += varint(len(name)) + name.encode() + varint(at[table]) + varint(len(table))
    out = varint(len(names)) + names + data
    pathlib.Path("tables.bin").write_bytes(out)
    print(len(tables), "names", len(at), "tables", len(out), "bytes; tokenizers", tokenizers.__version__)
