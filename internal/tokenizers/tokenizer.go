package tokenizers

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/dsload/dsload/internal/fault"
	"github.com/dsload/dsload/internal/shardfile"
	"github.com/dsload/dsload/internal/spelling"
	"github.com/dsload/dsload/shard"
	"github.com/dsload/dsload/tokenize"
	"github.com/dsload/dsload/tokenize/builtin"
)

// Options configures the opening of a tokenizer. The zero value sets no bounds.
type Options struct {
	// Pattern is the split of a .tiktoken file, as tokenize.Options has it. If empty, the file's own.
	Pattern string
	// Memory is the cap in bytes of the process that loads the tokenizer, 0 for none.
	Memory int64
	// Done, if not nil, ends a download when it is closed.
	Done <-chan struct{}
	// Notice, if not nil, is called with messages about a download for the user.
	Notice func(string)
}

const (
	// loadingBytes is the memory of the process while it loads a tokenizer, without the
	// tokenizer's.
	loadingBytes = 20 << 20
	// minLoading is what loading may take under the smallest caps. Those are refused later, when
	// all needs are summed.
	minLoading = 12 << 20
)

// Open loads a tokenizer by its built-in name (no network, no files), or from a folder or
// file: tokenizer.json, .tiktoken ranks or a SentencePiece .model; or from a repository of the
// Hugging Face Hub, by hf://OWNER/NAME[@REVISION]. A path takes precedence over a built-in name
// only if it contains a separator, so that a folder named gpt2 changes nothing by accident.
func Open(name string, o Options) (*tokenize.Tokenizer, error) {
	if isBuiltin(name) {
		if o.Pattern != "" {
			return nil, fault.BadOption("tokenizer-pattern", o.Pattern,
				"the built-in tokenizer %s has its own pattern; leave the option out", name)
		}
		t, err := builtin.OpenWithin(name, o.maxLoading())
		return t, adviseLoading(err)
	}
	path, err := locate(name, o)
	if err != nil {
		return nil, err
	}
	called, _ := strings.CutPrefix(name, "hf://")
	if called == name {
		called = "" // after its folder or file
	}
	t, err := tokenize.LoadWith(path, tokenize.Options{Pattern: o.Pattern, MaxMemory: o.maxLoading(), Name: called})
	if errors.Is(err, tokenize.ErrPattern) {
		return nil, fault.BadOption("tokenizer-pattern", o.Pattern, "%v", err)
	}
	if err != nil {
		return nil, adviseLoading(err)
	}
	if o.Pattern != "" && t.Details().Describe().Components.Model != "ranks" {
		return nil, fault.BadOption("tokenizer-pattern", o.Pattern,
			"%s is not a .tiktoken file and has its own pattern; leave the option out", name)
	}
	return t, nil
}

// locate returns the folder or file of a tokenizer that is not built in.
func locate(name string, o Options) (path string, err error) {
	if strings.HasPrefix(name, "hf://") {
		return hubTokenizer(name, o)
	}
	if _, err := os.Stat(name); err != nil {
		return "", fault.BadOption("tokenizer", name, "%v", missingTokenizer(name, err))
	}
	return name, nil
}

// isBuiltin reports whether a name is that of a built-in tokenizer. A path is only if it has no separator.
func isBuiltin(name string) bool { return !strings.ContainsAny(name, `/\`) && builtin.Has(name) }

// maxLoading returns the memory that loading may take under the cap, 0 for any.
func (o Options) maxLoading() int64 {
	if o.Memory <= 0 {
		return 0
	}
	return max(o.Memory-loadingBytes, minLoading)
}

// adviseLoading adds to an error what to do about a tokenizer that is too large.
func adviseLoading(err error) error {
	switch {
	case errors.Is(err, tokenize.ErrMemory):
		return fault.Errorf("%w; raise {memory}, or choose a smaller {tokenizer}", err)
	case errors.Is(err, tokenize.ErrTooLarge):
		return fault.Errorf("%w; shorten it, or choose another {tokenizer}", err)
	}
	return err
}

// otherNames maps common names to the built-in tokenizers.
var otherNames = map[string]string{
	"openaigpt2": "gpt2", "openaicommunitygpt2": "gpt2", "gpt2medium": "gpt2", "gpt2large": "gpt2",
	"gpt2xl": "gpt2", "r50k": "gpt2", "gpt3": "gpt2",
	"davinci": "gpt2", "textdavinci003": "p50k", "codex": "p50k", "gpt4": "cl100k", "gpt35": "cl100k",
	"gpt35turbo": "cl100k", "chatgpt": "cl100k",
	"textembeddingada002": "cl100k", "gpt4o": "o200k", "gpt4omini": "o200k", "o1": "o200k", "o3": "o200k",
	"tiktoken": "cl100k",
}

// plainName returns a name in the form for comparisons: only lower-case letters and digits.
func plainName(name string) string {
	return strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' {
			return r
		}
		return -1
	}, strings.ToLower(strings.TrimSuffix(name, "_base")))
}

// nearestTokenizer returns the built-in tokenizer that a name probably means, "" if none is near.
func nearestTokenizer(name string) string {
	plain := plainName(name)
	if near, ok := otherNames[plain]; ok {
		return near
	}
	best, least := "", 2 // at most one letter more, fewer or different
	for _, known := range builtin.Names() {
		if d := spelling.Distance(plain, known); d < least {
			best, least = known, d
		}
	}
	return best
}

// missingTokenizer returns the error for a name that is neither built in nor a file, with what to do
// instead.
func missingTokenizer(name string, cause error) fault.Text {
	names := strings.Join(builtin.Names(), ", ")
	if repository, ok := hubName(name); ok {
		if near := nearestTokenizer(repository); near != "" {
			return fault.Textf("is not a built-in tokenizer (%s); did you mean %s?", names, near)
		}
		return fault.Textf("is not a built-in tokenizer (%s) and not a file here; "+
			"for that of a model on the Hugging Face Hub give {tokenizer} hf://%s", names,
			repository)
	}
	if strings.Contains(name, "://") {
		return fault.Textf("only built-in names (%s), folders, files and hf://OWNER/NAME can be read; "+
			"download it and give its folder", names)
	}
	if path, ok := errors.AsType[*fs.PathError](cause); ok {
		cause = path.Err
	}
	reason := fault.Textf("cannot be read: %v; give a built-in name (%s), a folder, or a tokenizer.json, "+
		".tiktoken or .model file", cause, names)
	if near := spelling.NearestFile(name); near != "" {
		reason = fault.Textf("%v; did you mean %s?", reason, near)
	}
	return reason
}

// hubName reports whether a name looks like one of a repository on the Hugging Face hub, and
// returns it.
func hubName(name string) (repository string, ok bool) {
	if strings.Contains(name, "://") || name == "" {
		return "", false
	}
	switch repository = name; filepath.Ext(repository) {
	case ".json", ".model", ".tiktoken":
		return "", false
	}
	for part := range strings.SplitSeq(repository, "/") {
		if part == "" || strings.Trim(part,
			"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.") != "" || part[0] == '.' {
			return "", false
		}
	}
	return repository, strings.Count(repository, "/") <= 1
}

// OfDataset loads the tokenizer that made a dataset: the copy in its folder, or the built-in
// one of that name. Its fingerprint must be the manifest's.
func OfDataset(fsys shardfile.ReadFS, dir string, m *shard.Manifest) (*tokenize.Tokenizer, error) {
	path := m.Tokenizer.Name
	var settings struct {
		Pattern string `json:"tokenizer-pattern"` // what cuts text for the build's ranks
	}
	_ = json.Unmarshal(m.Settings, &settings) // those of another program have none
	var t *tokenize.Tokenizer
	var err error
	if name := tokenizerCopy(fsys, dir, m); name != "" {
		path = shardfile.Join(dir, name)
		o := tokenize.Options{Pattern: settings.Pattern}
		if o.Config, err = configCopy(fsys, dir, name, m); err != nil {
			return nil, err
		}
		t, err = loadCopy(fsys, path, o)
	} else if builtin.Has(m.Tokenizer.Name) {
		t, err = builtin.Open(m.Tokenizer.Name)
	} else {
		return nil, fmt.Errorf("load the tokenizer of %s: the folder has no %s, and %q is not built in", dir,
			strings.Join(shardfile.TokenizerNames(), " or "), m.Tokenizer.Name)
	}
	if err != nil {
		return nil, err
	}
	if t.Fingerprint() != m.Tokenizer.Fingerprint {
		return nil, fmt.Errorf("load the tokenizer of %s: %s has fingerprint %.12s, the dataset was made with %.12s",
			dir, path, t.Fingerprint(), m.Tokenizer.Fingerprint)
	}
	return t, nil
}

// loadCopy loads a tokenizer from a file on this machine, or from an address through fsys.
func loadCopy(fsys shardfile.ReadFS, path string, o tokenize.Options) (*tokenize.Tokenizer, error) {
	if !strings.Contains(path, "://") {
		f, err := fsys.OpenFile(path, os.O_RDONLY) // refuses a pipe at once
		if err != nil {
			return nil, err
		}
		defer f.Close()
		return tokenize.LoadWith(path, o)
	}
	data, err := shardfile.ReadFile(fsys, path, maxTokenizerBytes)
	if err != nil {
		return nil, err
	}
	t, err := tokenize.Parse(data, o)
	if err != nil {
		return nil, fmt.Errorf("load %s: %w", path, err)
	}
	return t, nil
}

// configCopy returns the configuration of the copy name: what the build wrote next to it, or what was put there by hand
// next to a copy that was. It is empty where there is none.
func configCopy(fsys shardfile.ReadFS, dir, name string, m *shard.Manifest) ([]byte, error) {
	lists := func(name string) bool {
		return slices.ContainsFunc(m.Files, func(f shard.FileInfo) bool { return f.Name == name })
	}
	path := shardfile.Join(dir, shardfile.TokenizerConfigName)
	if _, err := fsys.Stat(path); err == nil && (lists(shardfile.TokenizerConfigName) || !lists(name)) {
		return shardfile.ReadFile(fsys, path, maxTokenizerBytes)
	}
	return []byte("{}"), nil
}

// tokenizerCopy returns the name of the tokenizer's copy in a dataset's folder, "" if there is
// none.
func tokenizerCopy(fsys shardfile.ReadFS, dir string, m *shard.Manifest) string {
	names := shardfile.TokenizerNames()
	for _, f := range m.Files {
		if slices.Contains(names, f.Name) {
			return f.Name
		}
	}
	// A copy that was put there by hand works too, if its fingerprint agrees.
	for _, name := range names {
		if _, err := fsys.Stat(shardfile.Join(dir, name)); err == nil {
			return name
		}
	}
	return ""
}
