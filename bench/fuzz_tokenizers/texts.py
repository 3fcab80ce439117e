"""Random and hostile text: words of many scripts, pieces of a corpus, vocabulary pieces, odd characters, runs."""

LINES = """A fox, quick & brown, jumped over 13 lazy dogs; wasn't that nice?
I'd say they've been there since 1987, but we'll see what she's got. HE'LL GO, WON'T HE?
for (int i = 0; i < n; ++i) { total += xs[i] * 2.5e-3; }  // sum
    if self.cache is None:\n\t\treturn {"key": [1, 2, 3], 'other': "x\\n"}
Größe, Straße, ÄÖÜ äöü; cœur, naïveté, Ångström, Łódź, Reykjavík, Þór, Dvořák
Съешь же ещё этих мягких французских булок, да выпей чаю. ЁЖИК
Ξεσκεπάζω την ψυχοφθόρα βδελυγμία. ΤΕΛΟΣ ΣΑΣ
今日は良い天気ですね。カタカナ、ひらがな、漢字１２３。 ﾊﾝｶｸ ｶﾞｷﾞ
我们在北京的大学里学习了三年，价格是￥１２．５０。
다람쥐 헌 쳇바퀴에 타고파. 한글은 소리글자이다.
नमस्ते दुनिया, आप कैसे हैं? क्षत्रिय ज्ञान
สวัสดีชาวโลก น้ำใจงาม เป็นอย่างไรบ้าง
مرحبا بالعالم، كيف حالك؟ ٠١٢٣٤٥ السَّلَامُ عَلَيْكُمْ
שלום עולם, מה שלומך היום? שָׁלוֹם
🙂🙃 👩🏾‍🚀 👨‍👩‍👦 🏳️‍🌈 🇯🇵🇧🇷🇺 ✌🏿 ☎️ 1️⃣ 💯
ﬀ ﬃ ǆ Ǆ ǅ ½ ¾ ² ⑳ Ⅻ ㎏ ㋿ ｱ ﷺ Å K ſs ẞ İ ı ŉ
e\u0301\u0323 A\u030a o\u0308\u0304 \u0915\u093c \u1112\u1161\u11ab \u05e9\u05c1 \u0e33
===== ----- ***** ..... !!!!! ????? ((((( ))))) ##### $$$ %%% &&& @@@
https://www.example.com/path/to/page?id=42&lang=en#top mail@example.com 192.168.0.1 2024-02-29T12:34:56Z""".split("\n")

ODD = [chr(c) for c in [0, 1, 8, 9, 0xB, 0xC, 0xD, 0x1C, 0x1F, 0x7F, 0x80, 0x85, 0x9F, 0xA0, 0xAD, 0xB2, 0xBD, 0x130, 0x131, 0x17F, 0x1C5, 0x2B0, 0x300, 0x301, 0x308, 0x340, 0x344,
       0x345, 0x34F, 0x483, 0x5BF, 0x600, 0x6DD, 0x70F, 0x93C, 0x9BE, 0xE33, 0xE47, 0x1100, 0x1160, 0x11A8, 0x115F, 0x1680, 0x180E, 0x1E9E, 0x1FFE, 0x2000, 0x2003, 0x200A, 0x200B, 0x200C,
       0x200D, 0x200E, 0x200F, 0x2010, 0x2028, 0x2029, 0x202F, 0x205F, 0x2060, 0x2126, 0x212A, 0x2160, 0x20DD, 0x2581, 0x3000, 0x3099, 0x309A, 0x3164, 0xA66F, 0xAC00, 0xD7A3, 0xE000, 0xF900,
       0xFB01, 0xFDFA, 0xFE0F, 0xFEFF, 0xFF21, 0xFF76, 0xFF9E, 0xFFA0, 0xFFFC, 0xFFFD, 0xFFFE, 0xFFFF, 0x10400, 0x1D15E, 0x1D400, 0x1E943, 0x1F1E6, 0x1F3FB, 0x1F600, 0x20000, 0x2F800, 0xE0001,
       0xE0100, 0x10FFFF]] + ["\r\n", "\n\n", "\n \n", "  ", "\t\t", " \u2581", "\u2581\u2581", "'s", "'LL", "\u2019s", "<", ">", "[", "##", "</w>", "<0x41>"]
RUNS = "aAeé漢0 \n\t.-_=▁'\u0301\u200d한🙂\u00a0,<"


class Source:
    """Text for one tokenizer; words are its vocabulary, tokens its added tokens."""

    def __init__(self, rng, corpus, words=(), tokens=()):
        self.rng, self.corpus, self.words, self.tokens = rng, corpus, words, tokens

    def corpus_piece(self, most=300):
        r = self.rng
        n = r.randint(1, most)
        i = r.randrange(max(len(self.corpus) - n, 1))
        return self.corpus[i:i + n]

    def part(self):
        r = self.rng
        k = r.random()
        if k < 0.25:
            return r.choice(r.choice(LINES).split(" "))
        if k < 0.38:
            line = r.choice(LINES)
            i = r.randrange(len(line))
            return line[i:i + r.randint(1, 12)]
        if k < 0.5:
            return self.corpus_piece(20)
        if k < 0.62:
            return r.choice(ODD)
        if k < 0.7:
            return r.choice(RUNS) * r.choice([1, 2, 3, 5, 8, 17, r.randint(1, 70)])
        if k < 0.8 and self.tokens:
            t = r.choice(self.tokens)
            return t if r.random() < 0.75 else t[:r.randint(1, len(t))] if t else ""
        if k < 0.88 and self.words:
            return r.choice(self.words)
        if k < 0.93:
            return chr(r.choice([r.randrange(0x20, 0x7F), r.randrange(0x80, 0x800), r.randrange(0x800, 0xD800), r.randrange(0xE000, 0x10000), r.randrange(0x10000, 0x20000)]))
        return " "

    def text(self):
        r = self.rng
        k = r.random()
        if k < 0.25:
            return self.corpus_piece()
        if k < 0.32:
            return r.choice(LINES)
        s = []
        for _ in range(r.choice([0, 1, 2, 3, 5, 8, 13])):
            s.append(self.part())
            if r.random() < 0.35:
                s.append(" ")
        s = "".join(s)
        if r.random() < 0.05:
            s *= r.randint(2, 9)
        if r.random() < 0.05:
            s = s.upper() if r.random() < 0.5 else s.swapcase()
        return s


def training(rng, corpus, n):
    """Lines to train on."""
    for _ in range(n):
        yield rng.choice(LINES)
        i = rng.randrange(max(len(corpus) - 400, 1))
        yield corpus[i:i + 400]
