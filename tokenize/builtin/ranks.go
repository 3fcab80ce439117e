// Package builtin holds the vocabularies that work without a file or a network: gpt2, p50k, cl100k
// and o200k, as OpenAI published them.
//
// They are embedded in the form of prepared.go, from which their tables are built without searching
// for merges. A test writes these files from the .tiktoken files in
// github.com/pkoukk/tiktoken-go-loader, and compares them:
//
//	go test github.com/dsload/dsload/tokenize/builtin -run TestPrepared -update
package builtin

import (
	_ "embed"
	"fmt"
	"maps"
	"strings"

	"github.com/dsload/dsload/tokenize/internal/known"
)

// Vocabulary is a list of tokens whose ids are their ranks, as in a .tiktoken file, together with
// what the file does not hold.
type Vocabulary struct {
	// Tokens holds the bytes of each token; the index is the id and the rank. All slices share one
	// array.
	Tokens [][]byte
	// Special maps added tokens to their ids. No id in Tokens is among them.
	Special map[string]uint32
	// Split names the pattern, as tokenize.Ranks does.
	Split string
}

var (
	//go:embed gpt2.ranks
	gpt2 []byte
	//go:embed cl100k.ranks
	cl100k []byte
	//go:embed o200k.ranks
	o200k []byte
)

// vocabularies maps a vocabulary's name to its prepared tables, if it has them, and to its entry in
// package known.
var vocabularies = map[string]struct {
	prepared []byte
	known    string
}{"gpt2": {gpt2, "gpt2"}, "p50k": {nil, "p50k_base"}, "cl100k": {cl100k, "cl100k_base"}, "o200k": {o200k, "o200k_base"}}

// Ranks returns the vocabulary called gpt2, p50k, cl100k or o200k; any other name is an error.
func Ranks(name string) (*Vocabulary, error) {
	v, ok := vocabularies[name]
	if !ok {
		return nil, fmt.Errorf("no built-in vocabulary %q: there are gpt2, p50k, cl100k and o200k", name)
	}
	prepared := v.prepared
	if name == "p50k" {
		prepared = gpt2
	}
	model, _, err := prepare(prepared, nil)
	if err != nil {
		return nil, fmt.Errorf("read built-in vocabulary %s: %w", name, err)
	}
	tokens := model.Vocab.Tokens()
	if name == "p50k" { // gpt2's tokens, the id of its end of text, and runs of 2 to 25 spaces
		tokens = append(tokens, nil)
		for n := 2; n <= 25; n++ {
			tokens = append(tokens, []byte(strings.Repeat(" ", n)))
		}
	}
	k := known.ByName(v.known)
	return &Vocabulary{Tokens: tokens, Special: maps.Clone(k.Special(len(tokens))), Split: k.Pattern}, nil
}
