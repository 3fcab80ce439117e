package loader

import (
	"fmt"
	"os"
	"strings"

	"github.com/dsload/dsload/tokenize"
	"github.com/dsload/dsload/tokenize/builtin"
)

// OpenTokenizer loads a tokenizer by its built-in name (no network, no files), or from a folder or file: tokenizer.json, .tiktoken ranks or a
// SentencePiece .model. A path wins over a built-in name only where it contains a separator, so that a folder named gpt2 changes nothing by accident.
func OpenTokenizer(name string) (*tokenize.Tokenizer, error) {
	if !strings.ContainsAny(name, `/\`) && builtin.Has(name) {
		return builtin.Open(name)
	}
	if strings.Contains(name, "://") {
		return nil, &OptionError{"tokenizer", name, "only built-in names, folders and files can be read; download it and give its folder"}
	}
	if _, err := os.Stat(name); err != nil {
		return nil, &OptionError{"tokenizer", name, fmt.Sprintf("is no built-in tokenizer (%s) and cannot be read: %v", strings.Join(builtin.Names(), ", "), err)}
	}
	return tokenize.Load(name)
}
