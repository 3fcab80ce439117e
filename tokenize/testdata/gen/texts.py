"""Text for tests: a few sentences of our own in several scripts, and hostile mixtures of them."""
import random

SENTENCES = """The quick brown fox jumps over the lazy dog, doesn't it?
She sells sea-shells by the sea shore; he'll buy 1,234.56 of them (for $9.99)!
In 2023 the committee re-elected its chairman, who'd been away since 1999.
def train(model, data): return [model(x) for x in data if x != None]
Übergröße naïve café résumé façade coöperate São Paulo Ærøskøbing
Москва — столица России. Привет, мир! Ёлка и ёж.
Η Αθήνα είναι η πρωτεύουσα. ΟΔΥΣΣΕΥΣ ΣΊΣΥΦΟΣ
東京は日本の首都です。カタカナとひらがな、漢字。
北京是中国的首都，有两千万人口。
한국어 텍스트는 띄어쓰기가 있습니다.
हिन्दी में देवनागरी लिपि का प्रयोग होता है।
ภาษาไทยไม่มีการเว้นวรรคระหว่างคำ
العربية لغة سامية. مرحبا بالعالم
עברית נכתבת מימין לשמאל
İstanbul ılık ŞİŞLİ DŽungla ǅ ﬁﬂ ①②③ ½ ² Ⅳ ㌔ ﾊﾟ
e\u0301 o\u0308 n\u0303 a\u030a\u0323 q\u0307\u0323 \u1100\u1161\u11a8
👍🏽 👨‍👩‍👧‍👦 🇩🇪🇫🇷 ☃ ❤️ 🤷‍♂️
a  b   c    d\t\te \u00a0 f\u3000g\u2028h\u200bi\u200dj
x_y-z.w/v\\u@t#s$r%q^p&o*n(m)l+k=j{i}h|g:f;e"d'c<b>a,?!~`
don't WON'T I'LL you're they've he'd 'S 'tis rock'n'roll o'clock
https://example.org/a?b=c&d=e#f user@example.org C:\\Users\\x\\y.txt
AAAAAAAAAAAAAAAA bbbbbbbbbbbb ababababab ------ ====== ...... ,,,,
11 222 3333 44444 1234567890123 ٣٤٥ ४५६ ५ 1e10 0x1F""".split("\n")

ODD = ["\x00", "\x01", "\x0b", "\x0c", "\x1f", "\x7f", "\x85", "\xad", "\u00a0", "\u0301", "\u0345", "\u200b", "\u200d", "\u2028",
       "\u2060", "\u2581", "\u3000", "\ufe0f", "\ufeff", "\ufffd", "\U0001f3fd", "\U000e0041", "\u1160", "\u0e33", "\u0903",
       "▁▁", " ▁ ", "\r\n", "\n\n", "\t", "  ", "   ", " ", "'", "ſ", "ß", "ẞ", "Σ", "K", "Å", "Ω", "\ud7a3", "\uac00\u11a8", "\U0001f1e6"]


def sentences(rng, n):
    for _ in range(n):
        yield " ".join(rng.sample(SENTENCES, rng.randint(1, 3)))


def hostile(rng, tokens=()):
    """A random text of words, odd characters, runs and tokens."""
    parts = []
    for _ in range(rng.randint(0, 8)):
        k = rng.random()
        if k < 0.35:
            parts.append(rng.choice(rng.choice(SENTENCES).split(" ")))
        elif k < 0.5:
            s = rng.choice(SENTENCES)
            i = rng.randrange(len(s))
            parts.append(s[i:i + rng.randint(1, 9)])
        elif k < 0.62:
            parts.append(rng.choice(ODD))
        elif k < 0.7:
            parts.append(rng.choice("aA1 .-▁é漢\n") * rng.randint(2, 12))
        elif k < 0.78 and tokens:
            t = rng.choice(tokens)
            parts.append(t if rng.random() < 0.8 else t[:rng.randint(1, len(t))])
        elif k < 0.84:
            parts.append(chr(rng.choice([rng.randrange(0x20, 0x7f), rng.randrange(0xa0, 0x800), rng.randrange(0x800, 0xd800),
                                         rng.randrange(0xe000, 0x20000)])))
        else:
            parts.append(" ")
        if rng.random() < 0.3:
            parts.append(" ")
    return "".join(parts)
