package tokenize

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// permutations calls f with every order of list.
func permutations(list []string, f func([]string)) {
	if len(list) == 0 {
		f(nil)
		return
	}
	for i := range list {
		rest := slices.Concat(list[:i:i], list[i+1:])
		permutations(rest, func(p []string) { f(append([]string{list[i]}, p...)) })
	}
}

// TestModelMemberOrder reads one model with its members in every order, and with members that occur
// twice, of which the last counts.
func TestModelMemberOrder(t *testing.T) {
	members := []string{
		`"type":"BPE"`, `"continuing_subword_prefix":"#"`, `"vocab":{"a":0,"#b":1,"ab":2,"#c":3,"abc":4}`,
		`"merges":["a #b",["ab","#c"]]`,
	}
	extra := []string{
		"", `"vocab":{"#c":0,"x":1},`, `"vocab":{"abc":0,"#c":1,"ab":2,"#b":3,"a":4},`, `"vocab":[["a",0.5]],`,
		`"vocab":7,`, `"merges":["#c a"],`, `"merges":[["x"]],`, `"continuing_subword_prefix":"##",`, `"type":"X",`,
	}
	permutations(members, func(p []string) {
		for _, e := range extra {
			file := `{"model":{` + e + strings.Join(p, ",") + `}}`
			tok, err := Parse([]byte(file), Options{})
			if err != nil {
				t.Fatalf("%s: %v", file, err)
			}
			if ids := tok.NewEncoder(EncoderOptions{CacheBytes: -1}).AppendTokens(nil,
				[]byte("abc")); fmt.Sprint(ids) != "[4]" {
				t.Fatalf("%s: ids %d", file, ids)
			}
		}
	})
}

// TestModelErrors checks that what is wrong with a model is named, in whatever order its members
// stand.
func TestModelErrors(t *testing.T) {
	for _, c := range []struct {
		members []string
		want    string
	}{
		{[]string{`"type":"Foo"`, `"vocab":{"a":"b"}`, `"merges":[1]`}, `model "Foo"`},
		{[]string{`"type":"BPE"`, `"vocab":{"a":0,"b":2,"c":2}`, `"merges":[]`}, `id 2 belongs to both "b" and "c"`},
		{[]string{`"type":"BPE"`, `"vocab":{"a":0,"b":1,"a":2}`, `"merges":[]`}, `token "a" has ids 0 and 2`},
		{[]string{`"type":"BPE"`, `"vocab":{"a":0,"b":1,"b":1}`, `"merges":[]`}, `id 1 belongs to both "b" and "b"`},
		{[]string{`"type":"BPE"`, `"vocab":{"a":0,"b":16777215}`, `"merges":[]`},
			`id 16777215 in a vocabulary of 2 tokens`},
		{[]string{`"type":"BPE"`, `"vocab":{"a":0}`, `"merges":["a c"]`}, `merge of "c"`},
		{[]string{`"type":"BPE"`, `"vocab":{"a":0}`, `"merges":["a a"]`}, `merge of "aa"`},
		{[]string{`"type":"BPE"`, `"vocab":{"a":0}`, `"merges":[["a"]]`}, `a merge has two parts`},
		{[]string{`"type":"BPE"`, `"vocab":{"a":0}`, `"merges":["a a a"]`}, `a merge has two parts, not "a a a"`},
		{[]string{`"type":"BPE"`, `"vocab":[["a",1]]`, `"merges":[]`}, `expected '{'`},
		{[]string{`"type":"BPE"`, `"vocab":{"a":0}`}, `BPE model without merges`},
		{[]string{`"type":"BPE"`, `"vocab":null`, `"merges":[]`}, `BPE model without a vocabulary`},
		{[]string{`"type":"BPE"`, `"vocab":{"a":0}`, `"merges":[]`, `"dropout":0.5`}, `dropout 0.5`},
		{[]string{`"type":"Unigram"`, `"vocab":{"a":0}`}, `expected '['`},
		{[]string{`"type":"Unigram"`, `"vocab":[["a",0]]`, `"unk_id":1`}, `unk_id 1 in a vocabulary of 1 tokens`},
		{[]string{`"type":"Unigram"`, `"vocab":[["a"]]`, `"unk_id":0`}, `tokens without scores`},
		{[]string{`"type":"Unigram"`, `"vocab":[["a",0,0]]`, `"unk_id":0`}, `expected a token and its score`},
		{[]string{`"type":"WordLevel"`, `"vocab":{"a":0}`}, `WordLevel without unk_token`},
	} {
		permutations(c.members, func(p []string) {
			file := `{"model":{` + strings.Join(p, ",") + `}}`
			if _, err := Parse([]byte(file), Options{}); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%s: %v, want %s", file, err, c.want)
			}
		})
	}
}
