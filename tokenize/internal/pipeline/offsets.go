package pipeline

import (
	"bytes"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/dsload/dsload/tokenize/internal/added"
	"github.com/dsload/dsload/tokenize/internal/engine/bytebpe"
	"github.com/dsload/dsload/tokenize/internal/engine/plain"
	"github.com/dsload/dsload/tokenize/internal/normalize"
	"github.com/dsload/dsload/tokenize/internal/pretokenize"
	"github.com/dsload/dsload/tokenize/internal/spec"
)

// Offsets encodes text and returns where each token comes from, as Hugging Face does: it tracks
// every byte through the components. It is immutable.
type Offsets struct {
	spec  *spec.Spec
	plain *Pipeline
	ranks *bytebpe.Model // instead of a plain model
	raw   bool           // ill-formed UTF-8 stays as it is
}

// NewOffsets returns the Offsets of the tokenizer with pipeline p. It refuses SentencePiece models,
// for which there is no reference, with an error that wraps spec.ErrUnsupported.
func NewOffsets(s *spec.Spec, p *Pipeline) (*Offsets, error) {
	o := &Offsets{spec: s, plain: &Pipeline{}, raw: p.RawBytes}
	var err error
	if o.plain.Added, err = added.New(s.Raw); err != nil {
		return nil, err
	}
	if o.plain.AddedNormalized, err = added.New(s.Normalized); err != nil {
		return nil, err
	}
	switch m := s.Model.(type) {
	case *spec.SentencePiece:
		return nil, spec.Unsupportedf("offsets of a SentencePiece .model")
	case *spec.Ranks:
		o.ranks, err = bytebpe.New(bytebpe.Config{Vocab: m.Vocab, Ranked: true, Pairs: m.Pairs, Split: bytebpe.None})
		if split, ok := s.PreTokenizer[0].(pretokenize.Split); ok && err == nil && split.Pattern.Expression == nil {
			if split.Pattern, err = spec.Compile(split.Pattern.Text); err == nil {
				with := *s
				with.PreTokenizer = []pretokenize.Component{split}
				o.spec = &with
			}
		}
	default:
		err = o.plain.choosePlain(s)
	}
	return o, err
}

// offsetEncoder encodes one text.
type offsetEncoder struct {
	*Offsets
	ids     []uint32
	origins []normalize.Origin
	model   plain.Scratch
	pre     pretokenize.Scratch
	texts   []string // each token's, in the vocabulary's spelling; for added tokens, the matched text
	err     error
}

// Append appends the ids of text and where each comes from.
func (o *Offsets) Append(ids []uint32, origins []normalize.Origin, text []byte) ([]uint32, []normalize.Origin, error) {
	e := &offsetEncoder{Offsets: o, ids: ids, origins: origins}
	e.model.KeepExtents = true
	from := len(origins)
	whole := normalize.Original(text, o.raw)
	done := 0
	for _, m := range o.plain.Added.Append(nil, whole.Text) {
		e.segment(whole.Slice(done, max(done, m.Start)))
		e.add(m.ID, whole.Origin(m.Start, m.End), whole.Text[m.Start:m.End])
		done = m.End
	}
	e.segment(whole.Slice(done, len(whole.Text)))
	if e.err != nil {
		return ids, origins, e.err
	}
	e.trim(from, text)
	return e.ids, e.origins, nil
}

func (e *offsetEncoder) add(id uint32, from normalize.Origin, text []byte) {
	e.ids, e.origins, e.texts = append(e.ids, id), append(e.origins, from), append(e.texts, string(text))
}

// segment encodes the text between added tokens.
func (e *offsetEncoder) segment(a normalize.Aligned) {
	for _, c := range e.spec.Normalizer {
		var ok bool
		if a, ok = normalize.Align(c, a); !ok && e.err == nil {
			e.err = spec.Unsupportedf("offsets with the normalizer %T", c)
		}
	}
	done := 0
	for _, m := range e.plain.AddedNormalized.Append(nil, a.Text) {
		e.pieces(a.Slice(done, max(done, m.Start)))
		e.add(m.ID, a.Origin(m.Start, m.End), a.Text[m.Start:m.End])
		done = m.End
	}
	e.pieces(a.Slice(done, len(a.Text)))
}

// pieces cuts normalized text and encodes the pieces.
func (e *offsetEncoder) pieces(a normalize.Aligned) {
	if len(a.Text) == 0 {
		return
	}
	list := []normalize.Aligned{a}
	for _, c := range e.spec.PreTokenizer {
		var next []normalize.Aligned
		for _, p := range list {
			next = append(next, e.cut(c, p)...)
		}
		list = next
	}
	for _, p := range list {
		e.piece(p)
	}
}

// cut applies a pre-tokenizer to a piece.
func (e *offsetEncoder) cut(c pretokenize.Component, a normalize.Aligned) []normalize.Aligned {
	zero := 0
	for zero < len(a.Origins) && a.Origins[zero].Start == 0 {
		zero++
	}
	cut := e.pre.Apply(pretokenize.Unroll([]pretokenize.Component{c}), a.Text, zero)
	switch c := c.(type) {
	case pretokenize.ByteLevel:
		a.Origins = byteLevelOrigins(a, cut.Text)
	case pretokenize.Metaspace:
		a.Origins = metaspaceOrigins(a, []byte(string(c.Replacement)), cut.Text)
	}
	var out []normalize.Aligned
	for _, s := range cut.Spans {
		out = append(out, normalize.Aligned{Text: bytes.Clone(cut.Text[s.Start:s.End]),
			Origins: a.Origins[s.Start:s.End]})
	}
	return out
}

// byteLevelOrigins returns the origins of text in the byte-level alphabet. A space that was put
// before it comes from its first character.
func byteLevelOrigins(a normalize.Aligned, written []byte) []normalize.Origin {
	spaces := utf8.RuneCount(written) - len(a.Text)
	var out []normalize.Origin
	at := -spaces
	for _, r := range string(written) {
		for range utf8.RuneLen(r) {
			out = append(out, a.Origins[max(at, 0)])
		}
		at++
	}
	return out
}

// metaspaceOrigins returns the origins of text with spaces as mark. A mark that was put before it
// comes from its first character.
func metaspaceOrigins(a normalize.Aligned, mark, written []byte) []normalize.Origin {
	var body []normalize.Origin
	for i, b := range a.Text {
		n := 1
		if b == ' ' {
			n = len(mark)
		}
		for range n {
			body = append(body, a.Origins[i])
		}
	}
	out := make([]normalize.Origin, max(0, len(written)-len(body)), len(written))
	for i := range out {
		out[i] = a.Origins[0]
	}
	return append(out, body...)
}

// piece encodes one piece.
func (e *offsetEncoder) piece(p normalize.Aligned) {
	if e.ranks != nil {
		at := 0
		for _, id := range e.ranks.NewEncoder(1).Append(nil, p.Text, true, true) {
			token, _ := e.spec.Model.Table().Token(id)
			e.add(id, p.Origin(at, at+len(token)), token)
			at += len(token)
		}
		return
	}
	e.model.Extents = e.model.Extents[:0]
	for i, id := range e.plain.Model.Append(nil, p.Text, &e.model) {
		x := e.model.Extents[i]
		token, _ := e.spec.Model.Table().Token(id)
		if x.End <= len(p.Text) {
			e.add(id, p.Origin(x.Start, x.End), token)
			continue
		}
		// Bytes of a continuing_subword_prefix or end_of_word_suffix count as if they were in the
		// piece. Past its end, the original's offsets are unrelated to the text; here they are the
		// end.
		end := p.Origins[len(p.Origins)-1].End
		e.add(id, normalize.Origin{Start: end, End: end}, token)
	}
}

// trim removes white space at the ends of tokens, if the post-processor says so: as many characters of text
// as the token has spaces.
func (e *offsetEncoder) trim(from int, text []byte) {
	if !e.spec.Around.Trims {
		return
	}
	for i := range e.texts {
		o := &e.origins[from+i]
		lead, trail := spaces(e.texts[i])
		if lead == 1 && (i == 0 || o.Start == 0) && e.spec.Around.TrimsPrefixSpace {
			lead = 0 // a single one may have been inserted; more are in the text
		}
		for ; lead > 0 && o.Start < o.End; lead-- {
			_, n := utf8.DecodeRune(text[o.Start:])
			o.Start = min(o.Start+n, o.End)
		}
		end := o.End
		for ; trail > 0 && end > 0; trail-- {
			_, n := utf8.DecodeLastRune(text[:end])
			end -= n
		}
		if trail == 0 {
			o.End = max(end, o.Start)
		}
	}
}

// spaces counts the spaces at the ends of a token of the byte-level alphabet.
func spaces(token string) (lead, trail int) {
	isSpace := func(r rune) bool { return r == '\u0120' || unicode.IsSpace(r) }
	lead = utf8.RuneCountInString(token) - utf8.RuneCountInString(strings.TrimLeftFunc(token, isSpace))
	trail = utf8.RuneCountInString(token) - utf8.RuneCountInString(strings.TrimRightFunc(token, isSpace))
	return lead, trail
}
