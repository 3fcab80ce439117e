"""Writes recorded cases: what the Oniguruma inside the Hugging Face `tokenizers` package matches.

Usage: python gen/cases.py OUT SEED N   (N random patterns besides the published ones)

A case holds a pattern, texts and, for each text, the pieces that Split leaves when matches are isolated, and those left when they are
removed: together they tell every match, empty ones included. "error" stands where the engine refuses the pattern.
"""
import json, random, sys
from tokenizers import Regex, pre_tokenizers as P

PUBLISHED = {
    "gpt2": r"""'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+""",
    "cl100k": r"""(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+""",
    "cl100k-possessive": r"""'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}+| ?[^\s\p{L}\p{N}]++[\r\n]*+|\s++$|\s*[\r\n]|\s+(?!\S)|\s""",
    "qwen2": r"""(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+""",
    "o200k": r"""[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+""",
    "tekken": r"""[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+""",
    "deepseek-1": "[\r\n]",
    "deepseek-2": r"\s?\p{L}+",
    "deepseek-3": r"\s?\p{P}+",
    "deepseek-4": "[一-龥ࠀ-一가-퟿]+",
    "deepseek-5": r"\p{N}{1,3}",
    "deepseek-v3": "[一-龥぀-ゟ゠-ヿ]+",
    "deepseek-v3-words": r"""[!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+""",
    "falcon": r"[0-9][0-9][0-9]",
    "bloom": r" ?[^(\s|[.,!?…。，、।۔،])]+",
    "clip": r"""'s|'t|'re|'ve|'m|'ll|'d|[\p{L}]+|[\p{N}]|[^\s\p{L}\p{N}]+""",
    "clip-space": r"\s+",
    "kimi": r"""[\p{Han}]+|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]*[\p{Ll}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]+[\p{Ll}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+""",
    "digits-from-right": r"(?=(\d{3})+(?!\d))",
    "digits-grouped": r"\d{1,3}(?=(?:\d{3})*\b)",
    "gemma-newlines": r"\n+|[^\n]+",
    "words": r"\w+|[^\w\s]+",
    "jina": r"\s+|\p{Punct}",
    "camel": r"(?<=[a-z])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])",
    "indic": r"""[^\r\n\p{L}\p{M}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|\s+(?!\S)|\s+""",
    "spaces": r" {2,}",
    "byte-tokens": r"<0x[0-9A-F]{2}>",
    "clusters": r"\X",
    "line-ends": r"\R",
}
EDGES = [r"^a", r"a$", r"a\z", r"a\Z", r"^", r"$", r"\b", r"\B", r"(?m).", r"(?x) a b # c", r"a{,2}", r"a{2,}", r"a{2}+", r"a++a", r"a{1,2}+a", r"(?:a{2})?", r"a{2}?", r"a{x", r"[[:alpha:]]", r"[[:^alpha:]]", r"[a-z&&[^b]]", r"[a-z&&^b]", r"[^a&&b]", r"\p{^L}", r"\P{^L}", r"\x{41}", r"\u0041", r"\x41", r"\101", r"[\b]", r"\N", r"\O", r"(?<n>a)b", r"(?i)k", r"(?i)[k]", r"(?-i:a)", r"(?i-m:a)", r"a|*", r"*", r"a**", r"(?:)", r"[]a]", r"[a", r"(a", r"a)", r"[a-\d]", r"[z-a]", r"{", r"}", r"]", r"(?W:\w)", r"(?P:\w)", r"(?D:\d)", r"(?S:\s)", r"\p{IsL}", r"\pL", r"\p{Letter}", r"\p{LC}", r"\p{Any}", r"\p{Assigned}", r"\p{ lu }", r"\h", r"\H", r"\q", r"[a-c-e]", r"[a--]", r"[--a]", r"(?i)ss", r"(?i)ß", r"(?i)[ß]", r"(?i)[^s]", r"(?i)\p{Lu}", r"(?i)[\p{Lu}]", r"(?i)[^\p{Lu}]", r"(?i)sss", r"(?i)ﬃ", r"(?i)ffi", r"(?i)st+", r"(?i)s(?:s)", r"(?i)[^ß]", r"a(?i)b|c", r"(?:a(?i)b|c)d", r"(?<=a|bc)d", r"(?<!a|bc)d", r"(?<=a+)b", r"(?<=^|\s)\w", r"(?<![\w.])\d+", r"(a?)*b", r"(a*)+", r"(?:a|b?)*c", r"(?>a+)ab", r"(?:a??)*b", r"(a|ab)(c|bcd)(d*)", r"\xE3\x81\x82", r"[あ-ん]+", r"\p{Hiragana}+|\p{Katakana}+", r"[\p{P}\p{S}&&[^_]]+", r"(?:(?=a)a|b)+", r"(?!)", r"x*", r"(?<=\n)", r"\A\s*|\s*\z", r"(?i)'S|é", r"\p{Emoji}", r"\p{Extended_Pictographic}", r"\p{Cn}", r"\p{In_Basic_Latin}+", r"[^\x00-\x7F]+", r"[[a-c][x-z]]+", r"[^[^a-c]]", r"[a-z&&[aeiou]&&[^e]]+", r"\cA", r"\C-a", r"(?#c)a", r"\07", r"\08", r"[&&a]", r"[a&&]", r"[-a]", r"[a-]", r"[\w-]+", r"[+\-.]", r"[[:punct:]]+", r"\p{Punct}+", r"[[:word:]]+", r"(?i:é|ñ)", r"\$|\^", r"\/", r"a{0}b", r"(?:ab){2,3}?", r"(?:ab){2,3}", r"(?:ab)*+a", r"(?:a|ab)++b", r"[\s&&[^\n]]+", r"(?:\r?\n)+", r"\u200d|\ufe0f", r"(?i)ſ", r"(?i)ǆ", r"(?i)σ", r"(?i)İ", r"(?i)i̇"]
TEXTS = ["", "a", "ab abc aab b", "Hello, World! It's 2024; I'VE 12345 things… don't you'LL 'story", "  leading   spaces\n\n\nand\tlines \r\n\r\n end  ", "SSsßẞſ ﬁﬃ ﬀi ẞs straße STRASSE", "日本語テキスト、한국어 텍스트 ไทย русский العربية עברית", "é e\u0301 ñ n\u0303 👩‍👩‍👧‍👦 🇩🇪🇫🇷🇬 ☺️ ❤️‍🔥", "camelCaseHTTPServer snake_case kebab-case x1y2z3 1,234,567.89", "\x00\x01\x0b\x0c\x1c\x85\u00a0\u2028\u2029\u200b\u3000 z", "abcd bcd ad acd ABC xyz XYZ", "aaaa aaab ababab abababab baa", "1 12 123 1234 12345 123456 1234567 ٣٤٥ Ⅷ ½ ²", "!!! ?? ... --- ___ $$ ++ <0xAF> #@^`~|=", "ǅ ǆ Ǆ Σσς İiı K k Å å", "あいう アイウ 漢字 \U00020000 \U0002F800 ㍿", "\n", " ", "a\nb\n", "[x] {y} (z) \\ / & ]", "i̇ İ ŉ ʼn ΐ ΐ"]
ATOMS = ["a", "b", "c", "A", "B", " ", "1", "s", "S", "ß", "é", "'", r"\n", ".", r"\s", r"\S", r"\w", r"\W", r"\d", r"\D", r"\p{L}", r"\p{Lu}", r"\p{Ll}", r"\p{N}", r"\p{P}", r"\p{S}", r"\p{M}", r"\P{L}", r"\p{Han}", r"[ab]", r"[^ab]", r"[a-c]", r"[^\s\p{L}\p{N}]", r"[\r\n]", r"[\p{L}&&[^a-f]]", r"[^\W\d]", r"[[:alnum:]_]", r"\h", "日", r"[一-龥]", "ab", "ss", "bc"]
ASSERTS = ["^", "$", r"\b", r"\B", r"\A", r"\z", r"\Z"]

def pattern(rng, depth=0):
    def item():
        r = rng.random()
        if r < 0.55 or depth > 3:
            a = rng.choice(ATOMS)
            if len(a) == 2 and a[0] != "\\" and a.isalpha():
                return a
        elif r < 0.62:
            return rng.choice(ASSERTS)
        elif r < 0.70:
            return "(?" + rng.choice(["=", "!"]) + pattern(rng, depth + 1) + ")"
        elif r < 0.75:
            return "(?<" + rng.choice(["=", "!"]) + "|".join("".join(rng.choice(ATOMS) for _ in range(rng.randint(1, 2))) for _ in range(rng.randint(1, 2))) + ")"
        else:
            a = rng.choice(["(?:", "(", "(?>", "(?i:", "(?m:"]) + pattern(rng, depth + 1) + ")"
        r = rng.random()
        if r < 0.45:
            a += rng.choice(["*", "+", "?", "{1,3}", "{2}", "{2,}", "{,2}"]) + rng.choice(["", "", "", "?", "+"])
        return a
    return "|".join("".join(item() for _ in range(rng.randint(1, 4))) for _ in range(rng.choice([1, 1, 2, 3])))

def text(rng):
    if rng.random() < 0.3:
        return rng.choice(TEXTS)
    alphabet = rng.choice(["ab", "abc ", "aAbBsSß ", "a1 \n", "ab'sc 12\r\n.", "日a é本b "])
    return "".join(rng.choice(alphabet) for _ in range(rng.randint(0, 14)))

def record(pat, texts):
    try:
        r = Regex(pat)
    except Exception as e:
        return {"pattern": pat, "error": str(e)}
    out = {"pattern": pat, "texts": []}
    for t in texts:
        try:
            out["texts"].append({"text": t, **{how: [x for x, _ in P.Split(r, how).pre_tokenize_str(t)] for how in ("isolated", "removed")}})
        except BaseException as e:  # Oniguruma's retry limit panics: no result to compare with
            assert "retry-limit" in str(e), e
    return out

if __name__ == "__main__":
    path, seed, n = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    rng = random.Random(seed)
    with open(path, "w") as f:
        if seed == 0:
            for p in PUBLISHED.values():
                f.write(json.dumps(record(p, TEXTS), ensure_ascii=False) + "\n")
            for p in EDGES:
                f.write(json.dumps(record(p, TEXTS), ensure_ascii=False) + "\n")
        for _ in range(n):
            f.write(json.dumps(record(pattern(rng), [text(rng) for _ in range(6)]), ensure_ascii=False) + "\n")
