package stats

import (
	"bytes"
	"context"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/dsload/dsload/internal/marked"
	"github.com/dsload/dsload/shard"
	"github.com/dsload/dsload/tokenize"
)

const (
	numTop = 20
	// decodeTokens bounds the tokens that are decoded in search of U+FFFD.
	decodeTokens = 1 << 25
	blockRows    = 64  // rows that are read or skipped together
	sampleTokens = 192 // tokens of a sample that are shown
)

// topTokens lists the most frequent ids, the lower id first among equals.
func topTokens(counts []int64, total int64, tok *tokenize.Tokenizer) []TopToken {
	top := []TopToken{}
	for id, n := range counts {
		if n == 0 || len(top) == numTop && n <= top[numTop-1].Count {
			continue
		}
		i, _ := slices.BinarySearchFunc(top, n, func(t TopToken, n int64) int {
			if t.Count >= n {
				return -1
			}
			return 1
		})
		top = slices.Insert(top, i, TopToken{ID: uint32(id), Count: n, Share: float64(n) / float64(total)})
		top = top[:min(len(top), numTop)]
	}
	for i := range top {
		if tok == nil {
			break
		}
		t := &top[i]
		t.Text = string(tok.AppendText(nil, []uint32{t.ID}, tokenize.DecodeOptions{}))
		// Special tokens, and tokens that are part of a character, have the vocabulary's form.
		if name, ok := tok.Token(t.ID); ok && (t.Text == "" || strings.ContainsRune(t.Text, utf8.RuneError)) {
			t.Text = name
		}
	}
	return top
}

// isByteToken reports whether a token stands for one byte, as SentencePiece writes it: <0x0A>.
func isByteToken(name string) bool {
	digits, ok := strings.CutPrefix(name, "<0x")
	digits, closed := strings.CutSuffix(digits, ">")
	_, err := strconv.ParseUint(digits, 16, 8)
	return ok && closed && len(digits) == 2 && err == nil
}

// tokenFigures holds the figures from the counts of ids and the tokenizer.
type tokenFigures struct {
	unknown   *int64
	fallback  int64
	textBytes float64
	kinds     []kind // indexed by id
	suspected int64  // number of suspects
}

// A kind says how a token may be a part of a character that is replaced by U+FFFD.
type kind uint8

const (
	whole    kind = 0
	suspect  kind = 1 // alone it decodes to U+FFFD; a row without suspects has none
	fallback kind = 2 // it stands for one byte: it is replaced too if those beside it are
)

func figuresOf(counts []int64, tok *tokenize.Tokenizer) tokenFigures {
	f := tokenFigures{kinds: make([]kind, len(counts)), unknown: unknownTokens(counts, tok)}
	// Decoders treat the first token of a text differently, such as the space that SentencePiece
	// puts before it, so each token is decoded after another one.
	anchor := uint32(0)
	for id, n := range counts {
		if text := tok.AppendText(nil, []uint32{uint32(id)}, tokenize.DecodeOptions{SkipSpecial: true}); n > 0 &&
			len(text) > 0 && !bytes.ContainsRune(text, utf8.RuneError) {
			anchor = uint32(id)
			break
		}
	}
	alone := len(tok.AppendText(nil, []uint32{anchor}, tokenize.DecodeOptions{SkipSpecial: true}))
	var text []byte
	for id, n := range counts {
		if n == 0 {
			continue
		}
		name, _ := tok.Token(uint32(id))
		if isByteToken(name) {
			f.fallback += n
			f.kinds[id] = fallback
		}
		text = tok.AppendText(text[:0], []uint32{anchor, uint32(id)}, tokenize.DecodeOptions{SkipSpecial: true})
		size := max(0, len(text)-alone)
		if bytes.ContainsRune(text, utf8.RuneError) {
			f.kinds[id] |= suspect
			f.suspected += n
			switch { // how many bytes of text it stands for
			case isByteToken(name):
				size = 1
			case tok.Family() == "bytelevel-bpe" && utf8.ValidString(name) && !strings.ContainsRune(name, utf8.RuneError):
				size = utf8.RuneCountInString(name) // a character for each byte
			default:
				size = len(name) // the bytes themselves, as in ranks
			}
		}
		f.textBytes += float64(size) * float64(n)
	}
	return f
}

// unknownTokens counts the unknown token. It returns nil if the same token has another meaning too,
// so that the two cannot be distinguished.
func unknownTokens(counts []int64, tok *tokenize.Tokenizer) *int64 {
	n := new(int64)
	special := tok.Special()
	switch unk := special.UNK; {
	case tok.Family() == "bytelevel-bpe" || unk < 0: // no text is unknown
	case unk == special.BOS || unk == special.EOS || unk == special.PAD:
		return nil
	case unk < len(counts):
		*n = counts[unk]
	}
	return n
}

// countReplaced decodes the rows that contain suspects and counts U+FFFD in them: those of the
// text, not those from cutting a character. If that takes more than decodeTokens, it decodes evenly
// spread blocks of rows and estimates the number.
func countReplaced(ctx context.Context, split *shard.Split, tok *tokenize.Tokenizer, f tokenFigures,
	limit int64) (int64, bool, error) {
	if f.suspected == 0 {
		return 0, false, nil
	}
	rows := split.NumRows()
	expected := min(float64(split.Info().Tokens), float64(split.Info().Tokens)/float64(rows)*float64(f.suspected))
	stride := int64(expected/float64(limit)) + 1
	var n, seen int64
	d := rowDecoder{split: split, tok: tok, kinds: f.kinds}
	for first := int64(0); first < rows; first += stride * blockRows {
		if err := ctx.Err(); err != nil {
			return 0, false, context.Cause(ctx)
		}
		if stride > 1 {
			d.tail = d.tail[:0]
		}
		last := min(rows, first+blockRows)
		k, err := d.block(first, int(last-first))
		if err != nil {
			return 0, false, err
		}
		n += k
		seen += last - first
	}
	if stride > 1 {
		return int64(float64(n) / float64(seen) * float64(rows)), true, nil
	}
	return n, false, nil
}

// rowDecoder reads rows and decodes those with suspects.
type rowDecoder struct {
	split *shard.Split
	tok   *tokenize.Tokenizer
	kinds []kind
	tail  []uint32 // the last ids before the next part to read, empty if unknown
	rows  []int64
	spans []shard.Span
	data  []byte
	ids   []uint32
	text  []byte
}

// nearIDs is how many ids on each side of a cut can belong to one character.
const nearIDs = 8

// block counts U+FFFD in the n rows from first on. The parts of a character that is cut between two rows do not
// count.
func (d *rowDecoder) block(first int64, n int) (replaced int64, err error) {
	d.rows, d.spans = d.rows[:0], slices.Grow(d.spans[:0], n)[:n]
	for i := range n {
		d.rows = append(d.rows, first+int64(i))
	}
	if err := d.split.Locate(d.spans, d.rows); err != nil {
		return 0, err
	}
	d.data, err = d.split.EachIDs(d.data, d.spans, maxReadBytes, func(_ int, ids []byte) error {
		replaced += d.count(ids)
		return nil
	})
	return replaced, err
}

// count decodes the suspects among ids, with what may belong to the same characters.
func (d *rowDecoder) count(data []byte) (n int64) {
	row := shard.Row{Width: d.split.IDWidth(), InputIDs: data}
	d.ids = row.AppendInputIDs(d.ids[:0])
	var any kind
	for _, id := range d.ids {
		any |= d.kind(id)
	}
	k := len(d.ids)
	if any&suspect != 0 {
		n = d.countRuns()
	}
	if len(d.tail) > 0 && k > 0 && d.kind(d.tail[len(d.tail)-1])&suspect != 0 && d.kind(d.ids[0])&suspect != 0 {
		// Any surplus when the two sides are decoded separately comes from the cut.
		head := d.ids[:min(k, nearIDs)]
		n += d.replacements(slices.Concat(d.tail, head)) - d.replacements(d.tail) - d.replacements(head)
	}
	d.tail = append(d.tail, d.ids[max(0, k-nearIDs):]...)
	d.tail = slices.Delete(d.tail, 0, max(0, len(d.tail)-nearIDs))
	return n
}

// countRuns decodes the runs of ids with suspects. What is around a run is whole characters, of which the id
// before and the one after it are decoded too: a decoder treats the ends of a text in another way.
func (d *rowDecoder) countRuns() (n int64) {
	for i := 0; i < len(d.ids); {
		first, run := i, kind(0)
		for ; i < len(d.ids) && d.kind(d.ids[i]) != whole; i++ {
			run |= d.kind(d.ids[i])
		}
		if run&suspect != 0 {
			n += d.replacements(d.ids[max(0, first-1):min(len(d.ids), i+1)])
		}
		i = max(i, first+1)
	}
	return n
}

func (d *rowDecoder) kind(id uint32) kind {
	if int(id) < len(d.kinds) {
		return d.kinds[id]
	}
	return whole
}

func (d *rowDecoder) replacements(ids []uint32) int64 {
	d.text = d.tok.AppendText(d.text[:0], ids, tokenize.DecodeOptions{})
	return int64(bytes.Count(d.text, []byte("\uFFFD")))
}

// samples decodes n rows spread over the split.
func samples(split *shard.Split, tok *tokenize.Tokenizer, n int64) ([]Sample, error) {
	out := []Sample{}
	rows := split.NumRows()
	for k := range min(n, rows) {
		at := k * rows / min(n, rows)
		var row shard.Row
		if err := split.ReadColumns(at, shard.ColumnDocument|shard.ColumnLossMask, &row); err != nil {
			return nil, err
		}
		ids := row.AppendInputIDs(nil)
		s := Sample{Row: at, Document: row.Document, Part: row.Part, Tokens: len(ids)}
		if len(row.LossMask) == 0 {
			row.LossMask = nil
		}
		s.Pieces = pieces(tok, ids[:min(len(ids), sampleTokens)], row.LossMask)
		out = append(out, s)
	}
	return out, nil
}

// pieces decodes the first tokens of a row. Tokens that form a character together make one piece.
func pieces(tok *tokenize.Tokenizer, ids []uint32, loss []bool) []Piece {
	out := []Piece{}
	for _, p := range marked.Cut(tok, ids, loss, nil, true) {
		if tok == nil {
			p.Text = ""
		}
		out = append(out, Piece{IDs: ids[:p.Tokens], Text: p.Text, Loss: p.Loss})
		ids = ids[p.Tokens:]
	}
	return out
}
