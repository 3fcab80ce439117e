package setup

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/dsload/dsload/internal/fault"
	"github.com/dsload/dsload/internal/ingest/example"
	"github.com/dsload/dsload/internal/ingest/option"
	"github.com/dsload/dsload/internal/pack"
	"github.com/dsload/dsload/shard"
	"github.com/dsload/dsload/tokenize"
)

// Ends are the ids of Options.EOS and Options.BOS; nil if none is asked for.
type Ends struct{ eos, bos *uint32 }

func findEnds(o *option.Options, t *tokenize.Tokenizer) (e Ends, err error) {
	special := t.Special()
	own := special.BOS
	_, said := t.Details().Named("bos_token")
	if name, _ := t.Token(uint32(max(0, special.EOS))); own < 0 && !said && special.EOS >= 0 && name == "<|endoftext|>" {
		own = special.EOS // GPT-2 and its relatives have one token for both
	}
	if e.bos, err = findToken(t, "bos", string(o.BOS), own); err != nil {
		return e, err
	}
	eos := o.EOS
	if named, _ := t.Details().Named("eos_token"); eos == "" && o.Pack != pack.None && (special.EOS >= 0 || named != "") {
		eos = option.OwnToken // it separates packed documents
	}
	e.eos, err = findToken(t, "eos", string(eos), special.EOS)
	return e, err
}

// findToken finds a token by id or name; own is the id of the tokenizer's own, -1 if it has
// none.
func findToken(t *tokenize.Tokenizer, name fault.Option, value string, own int) (*uint32, error) {
	reason := ""
	switch n, err := strconv.ParseUint(value, 10, 32); {
	case value == "", value == option.NoToken:
		return nil, nil
	case value == option.OwnToken && own >= 0:
		return new(uint32(own)), nil
	case value == option.OwnToken:
		value, reason = "", fmt.Sprintf("%s has no token of that role", t.Name())
		if named, _ := t.Details().Named(string(name) + "_token"); named != "" {
			reason = fmt.Sprintf("the files beside %s name %s for it, which its vocabulary lacks", t.Name(), named)
		}
	case err == nil:
		id := uint32(n)
		text, known := t.Token(id)
		if known && t.Details().IsReserved(id) {
			return &id, nil
		}
		reason = fmt.Sprintf("%s has no token of that id; its ids go to %d", t.Name(), t.VocabSize()-1)
		if known {
			reason = fmt.Sprintf("that is the id of %q, an ordinary token of %s, which texts have too", text, t.Name())
		}
	default:
		id, known := t.ID(value)
		if known && t.Details().IsReserved(id) {
			return &id, nil
		}
		reason = fmt.Sprintf("%s has no such token", t.Name())
		if known {
			reason = fmt.Sprintf("it is an ordinary token of %s (%d), which texts have too", t.Name(), id)
		}
	}
	if text, _ := t.Token(uint32(max(0, own))); own >= 0 {
		return nil, fault.BadOption(name, value, "%s; %v without a value adds %s (%d); give another special token by its "+
			"name or id%s", reason, name, text, own, candidates(t))
	}
	return nil, fault.BadOption(name, value, "%s; give a special token by its name or id%s", reason, candidates(t))
}

// candidates lists the special tokens of a tokenizer.
func candidates(t *tokenize.Tokenizer) string {
	var ids []int64
	for _, id := range roles(t.Special()) {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	var names []string
	for _, id := range slices.Compact(ids) {
		if name, ok := t.Token(uint32(id)); ok {
			names = append(names, fmt.Sprintf("%s (%d)", name, id))
		}
	}
	if len(names) == 0 {
		return ""
	}
	return ", such as " + strings.Join(names, ", ")
}

// CutterOptions returns the tokens that go around documents and around examples.
func (p *Prepared) CutterOptions() example.CutterOptions {
	o, t := p.Options, p.Tokenizer
	c := example.CutterOptions{MaxLength: o.MaxLength, Overflow: o.Overflow, LoneEnds: o.Pack != pack.None,
		CountCuts: o.Pack == pack.None || o.Pack == pack.BFDSplit} // where chunks become rows, or whole parts of them
	if o.Pack != pack.None {
		c.Overflow = example.Chunk // packing takes the first chunk alone where it truncates
	}
	if id := p.Ends.bos; id != nil && !slices.Contains(t.Prefix(), *id) {
		c.Prefix = []uint32{*id}
	}
	if id := p.Ends.eos; id != nil && !slices.Contains(t.Suffix(), *id) {
		c.Suffix = []uint32{*id}
	}
	if p.Chat != nil { // the template writes what goes around a conversation
		return p.finalTokens(c)
	}
	if o.SpecialTokens == option.SpecialOfChunk {
		c.RowPrefix, c.RowSuffix = t.Prefix(), t.Suffix()
	} else {
		c.Prefix, c.Suffix = slices.Concat(t.Prefix(), c.Prefix), slices.Concat(c.Suffix, t.Suffix())
	}
	return p.finalTokens(c)
}

// finalTokens sets which tokens end a text.
func (p *Prepared) finalTokens(c example.CutterOptions) example.CutterOptions {
	c.Final = func(id uint32) bool {
		return p.Ends.eos != nil && id == *p.Ends.eos || int(id) == p.Tokenizer.Special().EOS
	}
	return c
}

// DocumentEnd names the token that ends each document, "" where none does or a template writes it.
func (p *Prepared) DocumentEnd() string {
	id := p.Ends.eos
	if suffix := p.Tokenizer.Suffix(); id == nil && len(suffix) > 0 && p.Chat == nil {
		id = &suffix[len(suffix)-1]
	}
	if id == nil {
		return ""
	}
	name, _ := p.Tokenizer.Token(*id)
	return fmt.Sprintf("%s (%d)", name, *id)
}

// EndNotes returns a sentence if nothing marks where a document ends.
func (p *Prepared) EndNotes() []fault.Text {
	if p.Ends.eos != nil || len(p.Tokenizer.Suffix()) > 0 || p.Chat != nil {
		return nil
	}
	adds := fault.Textf("{eos}=TOKEN adds one")
	if name, ok := p.Tokenizer.Token(uint32(max(0, p.Tokenizer.Special().EOS))); ok && p.Tokenizer.Special().EOS >= 0 {
		adds = fault.Textf("{eos} adds %s", name)
	}
	return []fault.Text{fault.Textf("no token marks where a document ends: %s adds none; %v", p.Tokenizer.Name(), adds)}
}

// roles names the special ids that a tokenizer has.
func roles(s tokenize.Special) map[string]int64 {
	out := map[string]int64{}
	for role, id := range map[string]int{"bos": s.BOS, "eos": s.EOS, "pad": s.PAD, "unk": s.UNK, "cls": s.CLS,
		"sep": s.SEP, "mask": s.MASK} {
		if id >= 0 {
			out[role] = int64(id)
		}
	}
	return out
}

func (p *Prepared) TokenizerInfo() shard.TokenizerInfo {
	return shard.TokenizerInfo{Name: p.Tokenizer.Name(), Fingerprint: p.Tokenizer.Fingerprint(),
		VocabSize: p.Tokenizer.VocabSize(), Special: roles(p.Tokenizer.Special())}
}
