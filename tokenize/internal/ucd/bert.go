package ucd

import (
	"encoding/base64"
	"encoding/binary"
	"slices"
	"sync"
)

// Range is the characters from First to Last.
type Range struct{ First, Last rune }

// Ranges is a set of characters: ranges in ascending order that do not touch.
type Ranges []Range

// Has reports whether r is in the set.
func (s Ranges) Has(r rune) bool {
	i, ok := slices.BinarySearchFunc(s, r, func(x Range, r rune) int {
		switch {
		case x.Last < r:
			return -1
		case x.First > r:
			return 1
		}
		return 0
	})
	return ok && i < len(s)
}

// Bert says what Hugging Face's BertNormalizer and BertPreTokenizer do to single characters.
type Bert struct {
	Dropped     Ranges // clean_text removes them
	Spaces      Ranges // clean_text turns them into a space (the space itself is not listed)
	Chinese     Ranges // handle_chinese_chars puts spaces around them
	Punctuation Ranges // the pre-tokenizer makes each a word

	// Stripped maps a character to what strip_accents leaves of it: its canonical decomposition
	// without marks. Hangul syllables, which decompose by arithmetic, are not listed. Lower maps a
	// character to its lower case.
	Stripped, Lower map[rune]string

	// Order maps characters that strip_accents keeps to their rank in canonical order, if they have
	// one. Walls are characters that it removes but that nothing is reordered across, as if they
	// were letters.
	Order map[rune]uint8
	Walls Ranges
}

// BertTables returns the tables, decoded once.
var BertTables = sync.OnceValue(func() *Bert {
	return &Bert{
		Dropped: readRanges(bertDropped), Spaces: readRanges(bertSpaces), Chinese: readRanges(bertChinese),
		Punctuation: readRanges(bertPunctuation), Walls: readRanges(bertWalls),
		Stripped: readMap(bertStripped), Lower: readMap(bertLower), Order: readValues(bertOrder),
	}
})

// reader decodes the generated tables. They are part of the program, so bad input is a bug.
type reader struct{ b []byte }

func newReader(table string) *reader {
	b, err := base64.StdEncoding.DecodeString(table)
	if err != nil {
		panic("ucd: bad table: " + err.Error())
	}
	return &reader{b}
}

func (r *reader) uvarint() rune {
	x, n := binary.Uvarint(r.b)
	r.b = r.b[n:]
	return rune(x)
}

func readRanges(table string) Ranges {
	var s Ranges
	at := rune(0)
	for r := newReader(table); len(r.b) > 0; {
		first := at + r.uvarint()
		at = first + r.uvarint()
		s = append(s, Range{first, at})
	}
	return s
}

func readMap(table string) map[rune]string {
	r := newReader(table)
	m := make(map[rune]string, len(r.b)/3) // an entry takes three bytes or a few more
	c := rune(0)
	for len(r.b) > 0 {
		c += r.uvarint()
		if x := r.uvarint(); x&1 == 0 {
			d := x >> 1
			m[c] = string(c + (d>>1 ^ -(d & 1)))
		} else {
			m[c] = string(r.b[:x>>1])
			r.b = r.b[x>>1:]
		}
	}
	return m
}

func readValues(table string) map[rune]uint8 {
	r := newReader(table)
	m := make(map[rune]uint8, len(r.b)/2) // an entry takes two bytes, rarely more
	c := rune(0)
	for len(r.b) > 0 {
		c += r.uvarint()
		m[c] = r.b[0]
		r.b = r.b[1:]
	}
	return m
}
