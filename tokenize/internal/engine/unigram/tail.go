package unigram

import (
	"bytes"
	"unicode"
	"unicode/utf8"

	"github.com/dsload/dsload/tokenize/internal/charclass"
)

// appendFirst encodes the first word of a segment, for SplitMetaspace: no separator precedes it, so
// its U+2581 depends on Prefix and on the word.
func (e *Encoder) appendFirst(dst []uint32, raw, norm []byte) []uint32 {
	m := e.m
	e.word = e.word[:0]
	if m.cfg.CollapseSpaces {
		norm = bytes.TrimRight(norm, " ") // spaces at the end belong to the separator or to appendTail
	}
	if len(norm) == 0 {
		return dst
	}
	removed := false // if Nmt removes the document's first characters, Hugging Face no longer sees a beginning
	if m.cfg.PrefixFirst && m.cfg.Nmt {
		r, _ := utf8.DecodeRune(raw)
		removed = charclass.Nmt(r) < 0
	}
	if m.cfg.Prefix && !removed && norm[0] != ' ' && !bytes.HasPrefix(norm, []byte(metaspace)) {
		e.word = append(e.word, metaspace...)
	}
	if m.cfg.CollapseSpaces {
		e.word = appendOneSpaced(e.word, norm)
	} else {
		e.word = append(e.word, bytes.ReplaceAll(norm, []byte(" "), []byte(metaspace))...)
	}
	dst = e.appendPieces(dst, e.word)
	e.shrink()
	return dst
}

// appendTail appends the U+2581 of a space at the end of normalized text.
func (e *Encoder) appendTail(dst []uint32, segment []byte) []uint32 {
	m := e.m
	if len(segment) == 0 {
		return dst
	}
	for {
		begin, end := m.lastWord(segment, len(segment))
		if end < len(segment) {
			return e.AppendWord(dst, []byte(metaspace))
		}
		word := segment[begin:]
		if m.isPlain(word) && len(word) > 0 {
			return dst
		}
		e.setNorm(word, begin > 0 && m.joins[segment[begin-1]&127])
		if len(e.norm) > 0 {
			if e.norm[len(e.norm)-1] == ' ' {
				dst = e.AppendWord(dst, []byte(metaspace))
			}
			return dst
		}
		if begin == 0 {
			return dst
		}
		segment = segment[:begin]
	}
}

// cutTail drops what Strip removes at the end of a segment. If the last remaining word ends in
// white space after normalization, it is returned as tail, to be encoded without that white space;
// body ends before it.
func (e *Encoder) cutTail(text []byte) (body, tail []byte) {
	m := e.m
	for {
		begin, end := m.lastWord(text, len(text))
		text = text[:end]
		word := text[begin:]
		if len(word) == 0 || m.isPlain(word) && !unicode.IsSpace(rune(word[len(word)-1])) {
			return text, nil
		}
		e.setNorm(word, begin > 0 && m.joins[text[begin-1]&127])
		switch norm := bytes.TrimRightFunc(e.norm, unicode.IsSpace); len(norm) {
		case 0:
			text = text[:begin]
		case len(e.norm):
			return text, nil
		default:
			return text[:begin], word
		}
	}
}
