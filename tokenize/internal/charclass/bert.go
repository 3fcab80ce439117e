package charclass

import "sync"

// Bert says what Hugging Face's BertNormalizer and BertPreTokenizer do to single characters.
type Bert struct {
	Dropped     Ranges // clean_text removes them
	Spaces      Ranges // clean_text turns them into a space
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

// lowerTable is the lower case of characters to BertNormalizer and to Lowercase.
const lowerTable = " lower"

// BertTables returns the tables, decoded once.
var BertTables = sync.OnceValue(func() *Bert {
	order := map[rune]uint8{}
	eachValue(" bert order", func(x Range, rank uint8) {
		for c := x.First; c <= x.Last; c++ {
			order[c] = rank
		}
	})
	return &Bert{
		Dropped: Set(" bert dropped"), Spaces: Set(" bert spaces"), Chinese: Set(" bert chinese"),
		Punctuation: Set(" punctuation"), Walls: Set(" bert walls"),
		Stripped: stringsOf(" bert stripped"), Lower: stringsOf(lowerTable), Order: order,
	}
})
