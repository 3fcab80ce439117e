package train

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/dsload/dsload/tokenize/internal/known"
	"github.com/dsload/dsload/tokenize/internal/normalize"
	"github.com/dsload/dsload/tokenize/internal/pretokenize"
	"github.com/dsload/dsload/tokenize/internal/regex"
	"github.com/dsload/dsload/tokenize/wellformed"
)

// splits maps the names that Options.Split accepts to patterns.
var splits = map[string]string{"gpt2": known.GPT2, "cl100k": known.Llama3, "qwen2": known.Qwen2, "o200k": known.O200K}

// Splits returns the names that Options.Split accepts.
func Splits() []string { return slices.Sorted(maps.Keys(splits)) }

// Trainer takes documents and learns a vocabulary at the end. It belongs to one goroutine.
type Trainer struct {
	opts  Options
	norm  normalize.Sequence
	pre   pretokenize.Sequence
	words *wordTable

	normScratch normalize.Scratch
	preScratch  pretokenize.Scratch
	valid       []byte
	done        bool
	short       string
	unknown     []charCount // characters without a token
}

// New returns a Trainer. Errors name the invalid option.
func New(o Options) (*Trainer, error) {
	o = o.withDefaults()
	if err := o.validate(); err != nil {
		return nil, fmt.Errorf("train: %w", err)
	}
	t := &Trainer{opts: o}
	spaces, err := regex.Compile(spacesPattern)
	if err != nil {
		return nil, fmt.Errorf("train: %w", err)
	}
	switch o.Family {
	case ByteLevelBPE:
		if o.Lowercase {
			t.norm = normalize.Lowercase{}.Steps()
		}
		split, err := regex.Compile(splits[o.Split])
		if err != nil {
			return nil, fmt.Errorf("train: %w", err)
		}
		t.pre = pretokenize.Sequence{pretokenize.Split{Pattern: normalize.Expression(split), Behavior: pretokenize.Isolated}}
		t.words = newWordTable(o.MaxMemory, 100, 14, maxWordBytes)
	case WordPiece:
		t.norm = normalize.Bert{CleanText: true, HandleChineseChars: true, StripAccents: o.Lowercase,
			Lowercase: o.Lowercase}.Steps()
		t.pre = pretokenize.Bert{}.Steps()
		t.words = newWordTable(o.MaxMemory, 100, 14, 4*maxWordPieceChars)
	case Unigram:
		components := []normalize.Component{
			normalize.Nmt{}, normalize.NFKC,
			normalize.Replace{Pattern: normalize.Expression(spaces), Content: " "},
		}
		if o.Lowercase {
			components = append(components, normalize.Lowercase{})
		}
		t.norm = normalize.Unroll(components)
		t.pre = pretokenize.Sequence{pretokenize.Metaspace{Replacement: '▁', Prepend: pretokenize.PrependAlways, Split: true}}
		t.words = newWordTable(o.MaxMemory, 100, 60, maxWordBytes)
	}
	return t, nil
}

const (
	// maxWordBytes is the length of the longest word that counts. Longer ones are hardly words, and
	// would take quadratic time.
	maxWordBytes = 2048
	// maxWordPieceChars is the written model's max_input_chars_per_word.
	maxWordPieceChars = 100
	spacesPattern     = " {2,}"
)

var errFinished = errors.New("train: the trainer is finished")

// Add counts the words of one document. The text is not kept. Ill-formed UTF-8 counts as U+FFFD.
func (t *Trainer) Add(text []byte) error {
	if t.done {
		return errFinished
	}
	t.valid, _ = wellformed.Append(t.valid[:0], text)
	text = t.norm.Apply(&t.normScratch, t.valid, &normalize.Edges{First: true, Last: true})
	pieces := t.preScratch.Apply(t.pre, text, 0)
	for _, s := range pieces.Spans {
		t.words.add(pieces.Text[s.Start:s.End])
	}
	return nil
}

// Stats counts what training saw.
type Stats struct {
	Words   int64 // occurrences counted
	Unique  int   // different words in the table
	Dropped int64 // occurrences of words that were dropped because the table was full or that were too long
}

// Stats returns the counts so far.
func (t *Trainer) Stats() Stats {
	return Stats{Words: t.words.total, Unique: len(t.words.words), Dropped: t.words.dropped}
}

// Unknown returns, after Finish, how many different characters of the text got no token, so that they become the
// unknown one, and how often they occur. Byte-level BPE has none.
func (t *Trainer) Unknown() (chars int, occurrences int64) {
	for _, c := range t.unknown {
		occurrences += c.count
	}
	return len(t.unknown), occurrences
}

// Short returns, after Finish, why the vocabulary has fewer tokens than Options.VocabSize. It
// returns "" if it has as many.
func (t *Trainer) Short() string { return t.short }

// noteMerges records why merging ended: next is the count of the most frequent pair that remains.
func (t *Trainer) noteMerges(tokens int, next int64) {
	switch {
	case tokens >= t.opts.VocabSize:
	case next > 0:
		t.short = fmt.Sprintf("no pair of tokens is left that occurs %d times or more (the most frequent one has "+
			"%d); give it more text or a lower minimum frequency", t.opts.MinFrequency, next)
	default:
		t.short = "every word is one token already and no pair is left to merge; give it more text"
	}
}

// Finish learns the vocabulary and returns the tokenizer.json. The Trainer takes no more text.
func (t *Trainer) Finish() ([]byte, error) {
	if t.done {
		return nil, errFinished
	}
	t.done = true
	if len(t.words.words) == 0 {
		return nil, errors.New("train: no text to learn from")
	}
	words := t.words.words // in byte order, so that training does not depend on the order of documents
	slices.SortFunc(words, func(a, b word) int { return cmp.Compare(a.text, b.text) })
	t.words = &wordTable{total: t.words.total, dropped: t.words.dropped}
	switch t.opts.Family {
	case WordPiece:
		return t.finishWordPiece(words)
	case Unigram:
		return t.finishUnigram(words)
	}
	return t.finishByteLevel(words)
}
