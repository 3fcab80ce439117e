// Package builtin holds the vocabularies that work without a file or a network: gpt2, p50k, cl100k
// and o200k, as OpenAI published them.
//
// The rank files are embedded by github.com/pkoukk/tiktoken-go-loader. Only the one asked for is
// decoded, straight into one slice of bytes.
package builtin

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"io"
	"io/fs"
	"maps"

	"github.com/dsload/dsload/tokenize/internal/known"
	"github.com/pkoukk/tiktoken-go-loader/assets"
)

// Vocabulary is a list of tokens whose ids are their ranks, as in a .tiktoken file, together with
// what the file does not hold.
type Vocabulary struct {
	// Tokens holds the bytes of each token; the index is the id and the rank. All slices share one
	// array.
	Tokens [][]byte
	// Special maps added tokens to their ids. No id in Tokens is among them.
	Special map[string]uint32
	// Split names the pattern, as tokenize.PatternNames does.
	Split string
}

// files maps a vocabulary's name to its embedded file, without .tiktoken, and to its entry in
// package known.
var files = map[string]struct{ file, known string }{
	"gpt2": {"r50k_base", "gpt2"}, "p50k": {"p50k_base", "p50k_base"}, "cl100k": {"cl100k_base", "cl100k_base"},
	"o200k": {"o200k_base", "o200k_base"},
}

// Ranks returns the vocabulary called gpt2, p50k, cl100k or o200k; any other name is an error.
func Ranks(name string) (*Vocabulary, error) {
	f, ok := files[name]
	if !ok {
		return nil, fmt.Errorf("no built-in vocabulary %q: there are gpt2, p50k, cl100k and o200k", name)
	}
	file, err := assets.Assets.Open(f.file + ".tiktoken")
	if err != nil {
		return nil, fmt.Errorf("open built-in vocabulary %s: %w", name, err)
	}
	defer file.Close()
	tokens, err := parse(file)
	if err != nil {
		return nil, fmt.Errorf("read built-in vocabulary %s: %w", name, err)
	}
	v := known.ByName(f.known)
	return &Vocabulary{Tokens: tokens, Special: maps.Clone(v.Special(len(tokens))), Split: v.Pattern}, nil
}

// parse reads lines of a base64 token, a space and a rank. The file goes through a small buffer, so
// only the decoded bytes are allocated.
func parse(file fs.File) ([][]byte, error) {
	info, err := file.Stat()
	if err != nil {
		return nil, err
	}
	// Four characters of base64 hold three bytes and each line also carries a rank, so half of the
	// file's size is a good estimate.
	data := make([]byte, 0, info.Size()/2)
	tokens := make([][]byte, 0, info.Size()/16)
	buf := make([]byte, 64<<10)
	n := 0
	for {
		k, readErr := file.Read(buf[n:])
		n += k
		rest := buf[:n]
		for {
			line, after, ok := bytes.Cut(rest, []byte("\n"))
			if !ok {
				break
			}
			word, rank, ok := bytes.Cut(line, []byte(" "))
			if ok && isRank(rank, len(tokens)+1) {
				tokens = append(tokens, nil) // p50k_base has the id of a special token among its ranks
			}
			if !ok || !isRank(rank, len(tokens)) {
				return nil, fmt.Errorf("line %d: want a token and its rank", len(tokens)+1)
			}
			begin := len(data)
			if data, err = base64.StdEncoding.AppendDecode(data, word); err != nil {
				return nil, fmt.Errorf("line %d: %w", len(tokens)+1, err)
			}
			tokens = append(tokens, data[begin:len(data):len(data)])
			rest = after
		}
		n = copy(buf, rest)
		if readErr == io.EOF || k == 0 {
			break
		}
		if readErr != nil {
			return nil, readErr
		}
	}
	if n > 0 || len(tokens) == 0 {
		return nil, fmt.Errorf("the file does not end with a line break")
	}
	return tokens, nil
}

func isRank(s []byte, want int) bool {
	n := 0
	for _, c := range s {
		if c < '0' || c > '9' || n > want {
			return false
		}
		n = n*10 + int(c-'0')
	}
	return len(s) > 0 && n == want
}
