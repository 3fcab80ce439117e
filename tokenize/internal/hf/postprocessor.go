package hf

import (
	"strconv"

	"github.com/dsload/dsload/tokenize/internal/jsonx"
	"github.com/dsload/dsload/tokenize/internal/spec"
)

// postProcessors reads a post-processor. Pair templates have no effect.
func postProcessors(v jsonx.Value, names *[]string, r *reading) spec.Around {
	a := spec.Around{CLS: -1, SEP: -1}
	if v.IsNull() {
		return a
	}
	c := open(v, "post_processor", r)
	if r.err != nil {
		return a
	}
	if c.kind != "Sequence" {
		*names = append(*names, c.kind)
	}
	switch c.kind {
	case "Sequence":
		c.fields("processors")
		for _, e := range c.list("processors") {
			b := postProcessors(e, names, r)
			a.Prefix = append(b.Prefix, a.Prefix...)
			a.Suffix = append(a.Suffix, b.Suffix...)
			if b.Trims {
				a.Trims, a.TrimsPrefixSpace = true, b.TrimsPrefixSpace
			}
			if b.CLS >= 0 {
				a.CLS, a.SEP = b.CLS, b.SEP
			}
		}
	case "ByteLevel":
		c.fields("add_prefix_space", "trim_offsets", "use_regex")
		a.Trims, a.TrimsPrefixSpace = c.optional("trim_offsets", true), c.optional("add_prefix_space", true)
	case "BertProcessing", "RobertaProcessing":
		c.fields("sep", "cls", "trim_offsets", "add_prefix_space")
		cls, sep := c.tokenPair("cls"), c.tokenPair("sep")
		a = spec.Around{Prefix: []uint32{cls}, Suffix: []uint32{sep}, CLS: int(cls), SEP: int(sep)}
		if c.kind == "RobertaProcessing" {
			a.Trims, a.TrimsPrefixSpace = c.optional("trim_offsets", true), c.optional("add_prefix_space", true)
		}
	case "TemplateProcessing":
		c.fields("single", "pair", "special_tokens")
		a.Prefix, a.Suffix = c.template()
	default:
		c.unsupported("post_processor")
	}
	return a
}

// tokenPair reads ["[SEP]", 102].
func (c component) tokenPair(name string) uint32 {
	l := c.list(name)
	if len(l) != 2 || l[0].Kind != '"' || l[1].Kind != '0' {
		c.fail("%s: field %q must be a token and its id", c.kind, name)
		return 0
	}
	return c.id(l[1])
}

func (c component) id(v jsonx.Value) uint32 {
	n, err := strconv.ParseUint(v.Text, 10, 32)
	if err != nil || n > spec.MaxID {
		c.fail("%s: %q is not a token id", c.kind, v.Text)
	}
	return uint32(n)
}

// template reads the template for a single sequence.
func (c component) template() (prefix, suffix []uint32) {
	special := c.get("special_tokens", '{', "an object")
	list := func(name string) (n int) {
		prefix, suffix = nil, nil
		for _, p := range c.list(name) {
			if p.Kind != '{' || len(p.Members) != 1 {
				c.fail("TemplateProcessing: %s: bad piece", name)
				return
			}
			inner := p.Members[0].Value
			id := inner.Get("id")
			switch p.Members[0].Key {
			case "Sequence":
				n++
				if name == "single" && id.Text != "A" {
					c.fail("TemplateProcessing: single refers to sequence %q", id.Text)
				}
			case "SpecialToken":
				t := special.Get(id.Text)
				ids := t.Get("ids")
				if ids.Kind != '[' {
					c.fail("TemplateProcessing: special token %q is not defined", id.Text)
				}
				for _, x := range ids.Elems {
					if n == 0 {
						prefix = append(prefix, c.id(x))
					} else {
						suffix = append(suffix, c.id(x))
					}
				}
			default:
				c.fail("TemplateProcessing: unknown piece %q", p.Members[0].Key)
			}
		}
		return n
	}
	list("pair")
	if n := list("single"); n != 1 {
		c.fail("TemplateProcessing: single must use its sequence once, not %d times", n)
	}
	return prefix, suffix
}
