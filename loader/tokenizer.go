package loader

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/dsload/dsload/shard"
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

// DatasetTokenizer loads the tokenizer that made a dataset: the copy in its folder, or the built-in one of that name. It must have the manifest's
// fingerprint.
func DatasetTokenizer(dir string, m *shard.Manifest) (*tokenize.Tokenizer, error) {
	path := filepath.Join(dir, shard.TokenizerName)
	t, err := tokenize.Load(path)
	if errors.Is(err, fs.ErrNotExist) {
		if !builtin.Has(m.Tokenizer.Name) {
			return nil, fmt.Errorf("load the tokenizer of %s: the folder has no %s, and %q is not built in", dir, shard.TokenizerName, m.Tokenizer.Name)
		}
		path = m.Tokenizer.Name
		t, err = builtin.Open(m.Tokenizer.Name)
	}
	if err != nil {
		return nil, err
	}
	if t.Fingerprint() != m.Tokenizer.Fingerprint {
		return nil, fmt.Errorf("load the tokenizer of %s: %s has fingerprint %.12s, the dataset was made with %.12s", dir, path, t.Fingerprint(), m.Tokenizer.Fingerprint)
	}
	return t, nil
}

// BuiltinTokenizers lists the names that need no file.
func BuiltinTokenizers() []string { return builtin.Names() }
