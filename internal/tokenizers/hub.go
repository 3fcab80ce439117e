package tokenizers

import (
	"context"
	"errors"
	"io/fs"
	"path"
	"path/filepath"
	"strings"

	"github.com/dsload/dsload/internal/fault"
	"github.com/dsload/dsload/internal/remote"
)

// maxTokenizerBytes bounds a file that is downloaded with a tokenizer.
const maxTokenizerBytes = 512 << 20

// besideTokenizer lists the files that accompany a tokenizer.
var besideTokenizer = map[string]bool{"tokenizer.json": true, "tokenizer_config.json": true,
	"special_tokens_map.json": true, "added_tokens.json": true, "generation_config.json": true, "config.json": true, "chat_template.jinja": true,
	"chat_template.json": true}

// hubTokenizer downloads the tokenizer of an hf:// address into the cache that other tools share,
// and returns its folder or file there.
func hubTokenizer(address string, o Options) (path string, err error) {
	store := remote.NewStore(remote.Options{Done: o.Done, Notice: o.Notice})
	defer store.Close()
	only := ""
	if ext := tokenizerExtension(address); ext != "" { // a file of the repository
		at := strings.LastIndexByte(address, '/')
		address, only = address[:at], address[at+1:]
	}
	dir, err := store.Download(context.Background(), address, func(name string, size int64) bool {
		switch {
		case size > maxTokenizerBytes, strings.Contains(name, "/"):
			return false
		case besideTokenizer[name], name == only:
			return true
		}
		return only == "" && tokenizerExtension(name) != "" && !strings.HasSuffix(name, ".json")
	})
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "", fault.BadOption("tokenizer", address,
			"the repository has no tokenizer.json, .tiktoken or .model file; name another one")
	case errors.Is(err, remote.ErrNoBucket), errors.Is(err, remote.ErrUsage):
		return "", fault.BadOption("tokenizer", address, "%v", err)
	case err != nil:
		return "", fault.Errorf("download {tokenizer} %s: %w", address, err)
	}
	return filepath.Join(dir, only), nil
}

// tokenizerExtension returns the extension of a name if a tokenizer's file may have it, else "".
func tokenizerExtension(name string) string {
	switch ext := path.Ext(name); ext {
	case ".json", ".tiktoken", ".model":
		return ext
	}
	return ""
}
