package synth

import (
	"encoding/binary"
	"slices"
)

// Quantiles of log-normal distributions, which the lengths of the parts of text follow: 64 equally
// likely values each.
var (
	sentenceWords = [64]uint8{6, 7, 8, 9, 9, 10, 10, 10, 11, 11, 12, 12, 12, 13, 13, 13, 14, 14, 14, 15, 15, 15, 16,
		16, 16, 17, 17, 17, 18, 18, 18, 19,
		19, 20, 20, 20, 21, 21, 22, 22, 23, 23, 23, 24, 25, 25, 26, 26, 27, 28, 28, 29, 30, 31, 32, 33, 34, 36, 38,
		40, 42, 46, 51, 60} // median 19, sigma 0.5
	paragraphSentences = [64]uint8{1, 1, 1, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 4,
		4, 4, 4, 4, 4,
		// median 4, sigma 0.6
		4, 4, 4, 4, 4, 5, 5, 5, 5, 5, 5, 5, 5, 6, 6, 6, 6, 6, 6, 7, 7, 7, 7, 8, 8, 9, 9, 10, 10, 12, 13, 14}
	articleParagraphs = [64]uint8{2, 2, 3, 3, 4, 4, 4, 5, 5, 5, 6, 6, 6, 7, 7, 7, 7, 8, 8, 8, 9, 9, 9, 10, 10, 10,
		11, 11, 12, 12, 12, 13,
		13, 14, 14, 15, 15, 16, 16, 17, 17, 18, 19, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 30, 32, 33, 36, 38, 42,
		45, 51, 58, 70, 70} // median 13, sigma 0.85
)

const (
	// maxSentenceBytes bounds a sentence: 60 words with all that can stand between them.
	maxSentenceBytes = 60*(slotBytes+24) + 64
	// maxArticleBytes ends an article at the next paragraph.
	maxArticleBytes = 40 << 10
)

// A textWriter appends a document to dst.
type textWriter struct {
	tables *wordTables
	rng    random
	dst    []byte
}

func (w *textWriter) str(s string) { w.dst = append(w.dst, s...) }

// article writes an article as WikiText has them, from its heading to the blank lines after it.
func (w *textWriter) article() {
	start := len(w.dst)
	w.heading(1)
	left := w.rng.of(&articleParagraphs)
	section := min(left, 1+w.rng.below(3)) // paragraphs before the first section
	for {
		for range section {
			for range w.rng.of(&paragraphSentences) {
				w.sentence()
			}
			w.str(" \n")
			if len(w.dst)-start > maxArticleBytes {
				left = 0
				break
			}
		}
		w.str(" \n")
		left -= section
		if left <= 0 {
			break
		}
		level := 2
		if w.rng.below(3) == 0 {
			level = 3
		}
		w.heading(level)
		section = min(left, 1+w.rng.below(5))
	}
	w.str(" \n")
}

func (w *textWriter) heading(level int) {
	for range level {
		w.str(" =")
	}
	for range 1 + w.rng.below(4) {
		w.name()
	}
	for range level {
		w.str(" =")
	}
	w.str(" \n \n")
}

// name writes a word with a capital letter.
func (w *textWriter) name() {
	at := len(w.dst)
	slot := w.tables.word(uint32(w.rng.next() >> 32))
	w.dst = append(w.dst, slot[:slot[slotBytes-1]]...)
	if c := w.dst[at+1]; 'a' <= c && c <= 'z' {
		w.dst[at+1] = c - 'a' + 'A'
	}
}

// sentence is the hot loop: a random number a word, of which 32 bits choose the word and 10 what
// stands before it, if it is not the first.
func (w *textWriter) sentence() {
	w.dst = slices.Grow(w.dst, maxSentenceBytes)
	buf, n := w.dst[:cap(w.dst)], len(w.dst)
	start := n + 1
	for range w.rng.of(&sentenceWords) {
		r := w.rng.next()
		if event := uint(r>>32) & 1023; event < numEvents && n >= start {
			w.dst = buf[:n]
			w.event(event, r>>42)
			n = len(w.dst)
		}
		slot := w.tables.word(uint32(r))
		binary.LittleEndian.PutUint64(buf[n:], binary.LittleEndian.Uint64(slot[:]))
		binary.LittleEndian.PutUint64(buf[n+8:], binary.LittleEndian.Uint64(slot[8:]))
		n += int(slot[slotBytes-1])
	}
	if c := buf[start]; 'a' <= c && c <= 'z' {
		buf[start] = c - 'a' + 'A'
	}
	w.dst = append(buf[:n], " ."...)
}

// The events before a word, as how many of 1024 words have one.
const (
	commas    = 70
	numbers   = commas + 14
	yearly    = numbers + 10
	hyphens   = yearly + 8
	names     = hyphens + 24
	quotes    = names + 8
	brackets  = quotes + 6
	decimals  = brackets + 4
	dates     = decimals + 4
	numEvents = dates
)

// event writes what precedes a word: at most 24 bytes and a slot. r has 22 random bits.
func (w *textWriter) event(event uint, r uint64) {
	switch {
	case event < commas:
		w.str(" ,")
	case event < numbers:
		w.str(" ")
		w.number(r % 1000)
	case event < yearly:
		w.str(" in ")
		w.number(1700 + r%320)
	case event < hyphens:
		w.str(" @-@")
	case event < names:
		w.name()
	case event < quotes:
		w.str(` "`)
		w.name()
		w.str(` "`)
	case event < brackets:
		w.str(" (")
		w.name()
		w.str(" )")
	case event < decimals:
		w.str(" ")
		w.number(r % 100)
		w.str(" @.@ ")
		w.number(r >> 7 % 10)
	default:
		w.str(" on ")
		w.number(1 + r%28)
		w.str(" ")
		w.str(months[r>>6%12])
		w.str(" ")
		w.number(1800 + r>>10%220)
	}
}

var months = [12]string{"January", "February", "March", "April", "May", "June", "July", "August", "September",
	"October", "November", "December"}

func (w *textWriter) number(n uint64) {
	var digits [20]byte
	i := len(digits)
	for {
		i--
		digits[i] = '0' + byte(n%10)
		if n /= 10; n == 0 {
			break
		}
	}
	w.dst = append(w.dst, digits[i:]...)
}
