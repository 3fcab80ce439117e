package tokenize

import (
	"bytes"
	"slices"
	"unicode/utf8"

	"github.com/dsload/dsload/tokenize/internal/spec"
	"github.com/dsload/dsload/tokenize/internal/spmodel"
	"github.com/dsload/dsload/tokenize/wellformed"
)

// DecodeOptions configures AppendText.
type DecodeOptions struct {
	// SkipSpecial leaves special tokens out.
	SkipSpecial bool
}

// Decode returns the text of ids, special tokens included. Ids without a token are left out. Bytes
// that do not form UTF-8 become U+FFFD.
func (t *Tokenizer) Decode(ids []uint32) string {
	buf, ok := t.texts.Get().(*[]byte)
	if !ok {
		buf = new([]byte)
	}
	text := t.AppendText((*buf)[:0], ids, DecodeOptions{})
	s := string(text)
	if cap(text) <= keptScratch {
		*buf = text
		t.texts.Put(buf)
	}
	return s
}

// AppendText appends the text of ids to dst, as Decode does. What lies in dst's capacity after the
// result may change too.
func (t *Tokenizer) AppendText(dst []byte, ids []uint32, o DecodeOptions) []byte {
	switch d := t.decoder.(type) {
	case spec.JoinBytes:
		return t.tokens.appendBytes(dst, ids, o)
	case spec.JoinPieces:
		return t.tokens.appendPieces(dst, ids, o, d)
	case spec.Steps:
		return t.tokens.appendSteps(dst, ids, o, d)
	}
	return dst
}

// appendSteps decodes as Hugging Face does: tokens are looked up, special ones left out, and the
// steps applied to the list.
func (v *tokenSet) appendSteps(dst []byte, ids []uint32, o DecodeOptions, d spec.Steps) []byte {
	tokens := make([][]byte, 0, len(ids))
	for _, id := range ids {
		var t []byte
		if s, ok := v.addedR[id]; ok {
			if decoded, ok := v.decoded[id]; ok {
				s = decoded
			}
			t = []byte(s)
		} else if t, ok = v.Token(id); !ok {
			continue
		}
		if o.SkipSpecial && v.special[string(t)] {
			continue
		}
		tokens = append(tokens, t)
	}
	return d.Sequence.Append(dst, tokens, d.Any)
}

// appendBytes joins the bytes of tokens.
func (v *tokenSet) appendBytes(dst []byte, ids []uint32, o DecodeOptions) []byte {
	from := len(dst)
	for len(ids) > 0 {
		n := slices.IndexFunc(ids, func(id uint32) bool { return id >= v.firstAdded })
		if n < 0 {
			n = len(ids)
		}
		if dst = v.AppendTokens(dst, ids[:n]); n == len(ids) {
			break
		}
		if s, ok := v.addedR[ids[n]]; !ok {
			dst = v.AppendTokens(dst, ids[n:n+1])
		} else if !o.SkipSpecial {
			dst = append(dst, s...)
		}
		ids = ids[n+1:]
	}
	if !utf8.Valid(dst[from:]) {
		dst, _ = wellformed.Append(dst[:from], bytes.Clone(dst[from:]))
	}
	return dst
}

// appendPieces decodes as SentencePiece does: it joins the pieces, turns U+2581 into a space and
// drops the space that was added before the text.
func (v *tokenSet) appendPieces(dst []byte, ids []uint32, o DecodeOptions, d spec.JoinPieces) []byte {
	from := len(dst)
	var run []byte // byte pieces in a row
	flush := func() {
		for i := 0; i < len(run); {
			r, n := utf8.DecodeRune(run[i:])
			dst = utf8.AppendRune(dst, r)
			i += n
		}
		run = run[:0]
	}
	atStart, seenSpace := true, false
	for _, id := range ids {
		if content, ok := v.addedR[id]; ok {
			if flush(); !o.SkipSpecial || !v.special[content] {
				dst = append(dst, content...)
			}
			continue
		}
		if int64(id) >= int64(len(d.Kinds)) {
			continue
		}
		text, _ := v.Token(id)
		if d.Kinds[id] == spec.Byte {
			b, _ := spmodel.ByteOf(text)
			run = append(run, b)
			continue
		}
		flush()
		if seenSpace || len(dst) > from {
			atStart = false
		}
		seenSpace = false
		switch d.Kinds[id] {
		case spec.Control:
			continue
		case spec.Unknown:
			dst = append(dst, d.Unknown...)
			continue
		}
		if atStart && d.StripsSpace {
			rest, ok := bytes.CutPrefix(text, []byte(spec.Metaspace))
			text = rest
			seenSpace = ok && !d.StripsAll
		}
		dst = append(dst, bytes.ReplaceAll(text, []byte(spec.Metaspace), []byte(" "))...)
	}
	flush()
	return dst
}
