package tokenize

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/dsload/dsload/tokenize/internal/jsonx"
	"github.com/dsload/dsload/tokenize/internal/spec"
)

// maxConfigBytes bounds each file beside a tokenizer's own.
const maxConfigBytes = 16 << 20

const configName = "tokenizer_config.json"

// beside is what the files beside a tokenizer's own say.
type beside struct {
	outside  spec.Outside
	named    map[string]string // the tokens of wellKnown by their keys, "" where a file says that there is none
	switches map[string]bool   // the settings that are true or false
	warnings []string

	extraNamed []jsonx.Value // extra_special_tokens with names
}

// readBeside reads the files next to a tokenizer as transformers does: tokenizer_config.json and, where it has no
// added_tokens_decoder, special_tokens_map.json, which takes precedence, and added_tokens.json. A file that cannot be
// read gives only a warning.
func readBeside(file func(name string) ([]byte, error)) *beside {
	b := &beside{named: map[string]string{}, switches: map[string]bool{}}
	read := func(name string) jsonx.Value {
		data, err := file(name)
		if errors.Is(err, fs.ErrNotExist) {
			return jsonx.Value{Kind: 'n'}
		}
		v := jsonx.Value{Kind: 'n'}
		if err == nil {
			v, err = b.parse(data)
		}
		if err != nil {
			b.warnings = append(b.warnings, name+" ignored: "+err.Error())
		}
		return v
	}
	config := read(configName)
	b.settleExtra(&config)
	if config.Has(tokensByID) {
		b.take(config)
		return b
	}
	older := read("special_tokens_map.json")
	for i, m := range older.Members {
		if m.Key == extraTokens && m.Value.Kind == '[' {
			older.Members[i].Value.Elems = slices.Concat(config.Get(extraTokens).Elems, m.Value.Elems)
		}
	}
	config.Members = lastOfKey(append(config.Members, older.Members...))
	b.settleNames(&config)
	b.take(config)
	b.takeOlder(read("added_tokens.json"))
	return b
}

// The keys of the tokens with ids, of those without a role, and the older one of these.
const tokensByID, extraTokens, additionalTokens = "added_tokens_decoder", "extra_special_tokens", "additional_special_tokens"

// settleExtra takes a configuration's additional_special_tokens for its extra_special_tokens, if it has none of those.
func (b *beside) settleExtra(config *jsonx.Value) {
	if e := config.Get(extraTokens); config.Has(additionalTokens) && len(e.Elems)+len(e.Members) == 0 {
		v := config.Get(additionalTokens)
		set(config, extraTokens, &v)
		set(config, additionalTokens, nil)
	}
	b.settleNames(config)
}

// settleNames takes extra_special_tokens that have names out of a configuration.
func (b *beside) settleNames(config *jsonx.Value) {
	if e := config.Get(extraTokens); e.Kind == '{' {
		for _, m := range e.Members {
			b.extraNamed = append(b.extraNamed, m.Value)
		}
		set(config, extraTokens, nil)
	}
}

// set replaces a member of an object, or removes it where v is nil.
func set(object *jsonx.Value, key string, v *jsonx.Value) {
	object.Members = slices.DeleteFunc(object.Members, func(m jsonx.Member) bool { return m.Key == key })
	if v != nil {
		object.Members = append(object.Members, jsonx.Member{Key: key, Value: *v})
	}
}

// maxConfigValues bounds the values of a member of a configuration.
const maxConfigValues = 1 << 18

// parse reads a file of settings. Tokens with ids, of which there may be many, go to outside at once, and chat templates
// are left out.
func (b *beside) parse(data []byte) (jsonx.Value, error) {
	v := jsonx.Value{Kind: '{'}
	s, err := jsonx.NewScanner(data)
	if err != nil {
		return v, err
	}
	err = s.Object(func(key []byte) (err error) {
		m := jsonx.Member{Key: string(key)}
		switch {
		case m.Key == "chat_template":
			return s.Skip()
		case m.Key == tokensByID && s.Peek() == '{':
			err = b.parseByID(s)
		default:
			m.Value, err = s.Value(maxConfigValues)
		}
		v.Members = append(v.Members, m)
		return err
	})
	if err == nil {
		err = s.End()
	}
	if err != nil {
		b.outside.Tokens = nil
		return jsonx.Value{Kind: 'n'}, err
	}
	v.Members = lastOfKey(v.Members)
	return v, nil
}

// parseByID reads tokens with ids, in order of these.
func (b *beside) parseByID(s *jsonx.Scanner) error {
	o := &b.outside
	o.Tokens = nil
	err := s.Object(func(key []byte) error {
		id, noID := strconv.ParseUint(string(key), 10, 31)
		v, err := s.Value(maxConfigValues)
		if t, ok := tokenOf(v, false); ok && err == nil && noID == nil {
			t.ID, t.Overrides = int64(id), true
			o.Tokens = append(o.Tokens, t)
		}
		return err
	})
	slices.SortStableFunc(o.Tokens, func(a, b spec.AddedToken) int { return cmp.Compare(a.ID, b.ID) })
	return err
}

// lastOfKey returns the members without those whose keys come again.
func lastOfKey(members []jsonx.Member) []jsonx.Member {
	last := make(map[string]int, len(members))
	for i, m := range members {
		last[m.Key] = i
	}
	i := -1
	return slices.DeleteFunc(members, func(m jsonx.Member) bool {
		i++
		return last[m.Key] != i
	})
}

// take takes the tokens of a configuration after those with ids: those that have a name, then the others.
func (b *beside) take(config jsonx.Value) {
	o := &b.outside
	for _, m := range config.Members {
		switch m.Key {
		case "tokenizer_class":
			o.Class = m.Value.Text
		case "legacy":
			o.Legacy = m.Value.Kind == 't'
		}
		if m.Value.Kind == 't' || m.Value.Kind == 'f' {
			b.switches[m.Key] = m.Value.Kind == 't'
		}
	}
	extra := config.Get(extraTokens)
	if !config.Has(extraTokens) {
		extra = config.Get(additionalTokens)
	}
	at, texts := make(map[string]int, len(o.Tokens)), map[string]bool{}
	for i, t := range o.Tokens {
		at[t.Content] = i
	}
	for _, v := range slices.Concat(b.names(config), extra.Elems) {
		t, ok := tokenOf(v, true)
		switch i, twice := at[t.Content]; {
		case ok && !twice:
			at[t.Content] = len(o.Tokens)
			o.Tokens = append(o.Tokens, t)
		case ok && o.Tokens[i].ID < 0 && !(v.Kind == '"' && texts[t.Content]): // the last form that is new counts
			o.Tokens[i] = t
		}
		texts[t.Content] = texts[t.Content] || v.Kind == '"'
	}
}

// names returns the tokens that have a name, in the order in which transformers adds them, and notes those of wellKnown.
func (b *beside) names(config jsonx.Value) (tokens []jsonx.Value) {
	standard := map[string]bool{}
	for _, key := range []string{"bos_token", "eos_token", "unk_token", "sep_token", "pad_token", "cls_token", "mask_token"} {
		standard[key] = true
		if !config.Has(key) {
			continue
		}
		v := config.Get(key)
		t, _ := tokenOf(v, true)
		if t.Content != "" || v.IsNull() {
			b.named[key] = t.Content
		}
		tokens = append(tokens, v)
	}
	for _, m := range config.Members {
		if strings.HasSuffix(m.Key, "_token") && !standard[m.Key] {
			tokens = append(tokens, m.Value)
		}
	}
	return append(tokens, b.extraNamed...)
}

// takeOlder takes the tokens of an added_tokens.json, which maps them to their ids, before those of take.
func (b *beside) takeOlder(ids jsonx.Value) {
	special := map[string]bool{}
	for _, t := range b.outside.Tokens {
		special[t.Content] = true
	}
	var list []spec.AddedToken
	listed := map[string]bool{}
	for _, m := range ids.Members {
		if id, err := strconv.ParseUint(m.Value.Text, 10, 31); err == nil && m.Value.Kind == '0' && m.Key != "" {
			listed[m.Key] = true
			list = append(list, spec.AddedToken{Content: m.Key, ID: int64(id), Special: special[m.Key],
				Normalized: !special[m.Key], Overrides: true, Yields: true})
		}
	}
	slices.Reverse(list) // the last one with an id counts
	slices.SortStableFunc(list, func(a, b spec.AddedToken) int { return cmp.Compare(a.ID, b.ID) })
	list = slices.CompactFunc(list, func(a, b spec.AddedToken) bool { return a.ID == b.ID })
	for _, t := range b.outside.Tokens {
		if !listed[t.Content] {
			list = append(list, t)
		}
	}
	b.outside.Tokens = list
}

// tokenOf returns the token in v, a text or an object with its content. special says what a text is.
func tokenOf(v jsonx.Value, special bool) (t spec.AddedToken, ok bool) {
	t = spec.AddedToken{Content: v.Text, ID: -1, Special: special}
	switch v.Kind {
	case '{':
		t.Content, t.Special = v.Get("content").Text, special || v.Get("special").Kind == 't'
		t.SingleWord, t.LStrip, t.RStrip = v.Get("single_word").Kind == 't', v.Get("lstrip").Kind == 't', v.Get("rstrip").Kind == 't'
		t.Normalized = v.Get("normalized").Kind == 't' || !v.Has("normalized") && !t.Special
	case '"':
	default:
		t.Content = ""
	}
	return t, t.Content != "" && len(t.Content) <= math.MaxUint16
}

// maxUnlisted is how many tokens unlisted names.
const maxUnlisted = 4

// unlisted is the warning about tokens to which no file gives an id.
func unlisted(tokens []string) string {
	n := len(tokens)
	if n > maxUnlisted {
		tokens = append(slices.Clone(tokens[:maxUnlisted]), "…")
	}
	return fmt.Sprintf("tokens that files beside the tokenizer name, and give no id: %d; they get the next free ones, as in "+
		"transformers, and a model needs an embedding for each: %s", n, strings.Join(tokens, ", "))
}
