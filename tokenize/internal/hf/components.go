package hf

import (
	"encoding/base64"
	"errors"

	"github.com/dsload/dsload/tokenize/internal/charsmap"
	"github.com/dsload/dsload/tokenize/internal/decode"
	"github.com/dsload/dsload/tokenize/internal/jsonx"
	"github.com/dsload/dsload/tokenize/internal/known"
	"github.com/dsload/dsload/tokenize/internal/normalize"
	"github.com/dsload/dsload/tokenize/internal/pretokenize"
	"github.com/dsload/dsload/tokenize/internal/spec"
)

// unroll reads a component with read. Of a Sequence it reads the components in the list called key. names
// collects their types.
func unroll[T any](v jsonx.Value, what, key string, names *[]string, r *reading, read func(component) (T, bool)) []T {
	if v.IsNull() {
		return nil
	}
	c := open(v, what, r)
	if r.err != nil {
		return nil
	}
	if c.kind == "Sequence" {
		c.fields(key)
		var all []T
		for _, e := range c.list(key) {
			all = append(all, unroll(e, what, key, names, r, read)...)
		}
		return all
	}
	*names = append(*names, c.kind)
	one, ok := read(c)
	if !ok {
		c.unsupported(what)
	}
	return []T{one}
}

func (c component) normalizer() (n normalize.Component, ok bool) {
	switch c.kind {
	case "BertNormalizer":
		c.fields("clean_text", "handle_chinese_chars", "strip_accents", "lowercase")
		lower := c.boolean("lowercase")
		return normalize.Bert{CleanText: c.boolean("clean_text"), HandleChineseChars: c.boolean("handle_chinese_chars"),
			StripAccents: c.optional("strip_accents", lower), Lowercase: lower}, true
	case "Strip":
		c.fields("strip_left", "strip_right")
		return normalize.Strip{Left: c.boolean("strip_left"), Right: c.boolean("strip_right")}, true
	case "Replace":
		c.fields("pattern", "content")
		return normalize.Replace{Pattern: c.pattern(), Content: c.str("content")}, true
	case "Prepend":
		c.fields("prepend")
		return normalize.Prepend{Text: c.str("prepend")}, true
	case "Precompiled":
		c.fields("precompiled_charsmap")
		return normalize.Precompiled{Map: c.charsmap()}, true
	}
	c.fields()
	n, ok = plainNormalizers[c.kind]
	return n, ok
}

// plainNormalizers are those without fields.
var plainNormalizers = map[string]normalize.Component{
	"NFC": normalize.NFC, "NFD": normalize.NFD, "NFKC": normalize.NFKC, "NFKD": normalize.NFKD, "Lowercase": normalize.Lowercase{},
	"StripAccents": normalize.StripAccents{}, "Nmt": normalize.Nmt{}, "ByteLevel": normalize.ByteLevel{},
}

func (c component) charsmap() *charsmap.Map {
	blob, err := base64.StdEncoding.DecodeString(c.get("precompiled_charsmap", '"', "a string").Text)
	if err != nil {
		c.fail("Precompiled: %v", err)
		return nil
	}
	m, err := charsmap.Parse(blob)
	if errors.Is(err, charsmap.ErrTooLarge) {
		c.refuse(spec.TooLargef("Precompiled: %v", err))
	} else if err != nil {
		c.fail("Precompiled: %v", err)
	}
	return m
}

var behaviors = map[string]pretokenize.Behavior{
	"Removed": pretokenize.Removed, "Isolated": pretokenize.Isolated,
	"MergedWithPrevious": pretokenize.MergedWithPrevious,
	"MergedWithNext":     pretokenize.MergedWithNext, "Contiguous": pretokenize.Contiguous,
}

func (c component) behavior() pretokenize.Behavior {
	b, ok := behaviors[c.str("behavior")]
	if !ok {
		c.fail("%s: unknown behavior %q", c.kind, c.str("behavior"))
	}
	return b
}

// prependScheme reads Metaspace's fields, old and new.
func (c component) prependScheme() pretokenize.Prepend {
	scheme := pretokenize.PrependAlways
	if !c.Get("prepend_scheme").IsNull() {
		switch s := c.str("prepend_scheme"); s {
		case "always":
		case "first":
			scheme = pretokenize.PrependFirst
		case "never":
			scheme = pretokenize.PrependNever
		default:
			c.fail("Metaspace: unknown prepend_scheme %q", s)
		}
	}
	if !c.optional("add_prefix_space", true) {
		if c.Has("prepend_scheme") && scheme != pretokenize.PrependNever {
			c.fail("Metaspace: add_prefix_space does not match prepend_scheme")
		}
		scheme = pretokenize.PrependNever
	}
	return scheme
}

func (c component) preTokenizer() (p pretokenize.Component, ok bool) {
	switch c.kind {
	case "ByteLevel":
		c.fields("add_prefix_space", "trim_offsets", "use_regex")
		b := pretokenize.ByteLevel{PrefixSpace: c.boolean("add_prefix_space"), Split: c.optional("use_regex", true)}
		if b.Split {
			b.Pattern = c.expression(known.GPT2)
		}
		return b, true
	case "Metaspace":
		c.fields("replacement", "add_prefix_space", "prepend_scheme", "split", "str_rep")
		return pretokenize.Metaspace{Replacement: c.char("replacement"), Prepend: c.prependScheme(),
			Split: c.optional("split", true)}, true
	case "Split":
		c.fields("pattern", "behavior", "invert")
		return pretokenize.Split{Pattern: c.pattern(), Behavior: c.behavior(), Invert: c.boolean("invert")}, true
	case "Punctuation":
		c.fields("behavior")
		b := pretokenize.Isolated
		if c.Has("behavior") {
			b = c.behavior()
		}
		return pretokenize.Punctuation{Behavior: b}, true
	case "Digits":
		c.fields("individual_digits")
		return pretokenize.Digits{Individual: c.boolean("individual_digits")}, true
	case "CharDelimiterSplit":
		c.fields("delimiter")
		return pretokenize.CharDelimiter{Char: c.char("delimiter")}, true
	case "FixedLength":
		c.fields("length")
		n := 5
		if c.Has("length") {
			n = c.integer("length")
		}
		if n == 0 {
			c.fail("FixedLength: length must not be 0")
		}
		return pretokenize.FixedLength{Length: n}, true
	}
	c.fields()
	p, ok = plainPreTokenizers[c.kind]
	return p, ok
}

// plainPreTokenizers are those without fields.
var plainPreTokenizers = map[string]pretokenize.Component{
	"BertPreTokenizer": pretokenize.Bert{}, "Whitespace": pretokenize.Whitespace{},
	"WhitespaceSplit": pretokenize.WhitespaceSplit{}, "UnicodeScripts": pretokenize.UnicodeScripts{},
}

func (c component) decoder() (d decode.Step, ok bool) {
	switch c.kind {
	case "ByteLevel":
		c.fields("add_prefix_space", "trim_offsets", "use_regex")
		return decode.ByteLevel, true
	case "WordPiece":
		c.fields("prefix", "cleanup")
		return decode.WordPiece(c.str("prefix"), c.boolean("cleanup")), true
	case "Metaspace":
		c.fields("replacement", "add_prefix_space", "prepend_scheme", "split", "str_rep")
		return decode.Metaspace(c.char("replacement"), c.prependScheme() == pretokenize.PrependNever), true
	case "BPEDecoder":
		c.fields("suffix")
		return decode.BPE(c.str("suffix")), true
	case "CTC":
		c.fields("pad_token", "word_delimiter_token", "cleanup")
		return decode.CTC(c.str("pad_token"), c.str("word_delimiter_token"), c.boolean("cleanup")), true
	case "Replace":
		c.fields("pattern", "content")
		return decode.Replace(c.pattern(), c.str("content")), true
	case "Strip":
		c.fields("content", "start", "stop")
		return decode.Strip(c.char("content"), c.integer("start"), c.integer("stop")), true
	case "Fuse":
		c.fields()
		return decode.Fuse, true
	case "ByteFallback":
		c.fields()
		return decode.ByteFallback, true
	}
	return nil, false
}
