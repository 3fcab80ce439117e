package tokenize

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/dsload/dsload/tokenize/internal/hf"
	"github.com/dsload/dsload/tokenize/internal/spec"
	"github.com/dsload/dsload/tokenize/internal/spmodel"
	"github.com/dsload/dsload/tokenize/internal/tiktoken"
)

const (
	// tokenizerFiles is the advice of errors about files of other kinds.
	tokenizerFiles = "a tokenizer is a tokenizer.json, .tiktoken ranks or a SentencePiece .model"
	// maxFileBytes bounds tokenizer files: the largest in use are about 35 MB.
	maxFileBytes = 512 << 20

	jsonName = "tokenizer.json"
)

// Options configures how a tokenizer is read. The zero value reads any file that describes itself.
type Options struct {
	// Pattern is the split of a .tiktoken file, as in Ranks; other files hold theirs. If empty, it
	// is found by the number of ranks.
	Pattern string
	// Special maps special tokens of a .tiktoken file to their ids. If nil, a known vocabulary's
	// are taken.
	Special map[string]uint32
	// MaxMemory bounds the bytes that loading takes at once, the file included. A file that needs
	// more is refused with an error that wraps ErrMemory; a file that is larger by itself is not
	// even read. 0 means no limit.
	MaxMemory int64
	// Name is the tokenizer's name. If empty, it is that of its folder or file.
	Name string
	// Config is the content of a tokenizer_config.json to use. If nil, the files next to the tokenizer's
	// are.
	Config []byte
}

// Load reads a tokenizer from a folder with a tokenizer.json (or else one .model or .tiktoken
// file), or from such a file. The file's content decides its format, not its name. Errors are
// *FileError.
func Load(path string) (*Tokenizer, error) { return LoadWith(path, Options{}) }

// LoadWith is Load with options.
func LoadWith(path string, o Options) (*Tokenizer, error) {
	dir, name := path, "."
	info, err := os.Stat(path)
	if err != nil {
		return nil, &FileError{File: path, Offset: -1, Err: err}
	}
	if !info.IsDir() {
		dir, name = filepath.Split(filepath.Clean(path))
		dir = cmp.Or(dir, ".")
	}
	t, err := loadFS(os.DirFS(dir), name, dir, o)
	if err != nil {
		return nil, err
	}
	if o.Name != "" {
		t.name = o.Name
	}
	if t.name == "" { // a tokenizer.json is named after its folder
		t.name = filepath.Base(path)
		if whole, err := filepath.Abs(dir); err == nil {
			t.name = filepath.Base(whole)
		}
	}
	return t, nil
}

// LoadFS is Load from a file system, such as an embed.FS.
func LoadFS(fsys fs.FS, name string) (*Tokenizer, error) {
	t, err := loadFS(fsys, name, "", Options{})
	if err == nil && t.name == "" {
		t.name = path.Base(strings.TrimSuffix(name, jsonName))
	}
	return t, err
}

// loadFS reads name in fsys; errors show it below dir. It does not name the tokenizer of a
// tokenizer.json.
func loadFS(fsys fs.FS, name, dir string, o Options) (*Tokenizer, error) {
	file, err := findFile(fsys, name)
	if err != nil {
		return nil, inFile(filepath.Join(dir, name), err)
	}
	mem := spec.NewMeter(o.MaxMemory)
	// what was named itself may be a pipe, such as a shell's <(command)
	data, isPipe, err := readLimited(fsys, file, min(maxFileBytes, mem.Left()), file == name)
	if err != nil {
		return nil, inFile(filepath.Join(dir, file), err)
	}
	config := o.configFile
	if o.Config == nil {
		config = func(name string) ([]byte, error) {
			return readRegular(fsys, path.Join(path.Dir(file), name), maxConfigBytes)
		}
	}
	t, err := parse(data, o, readBeside(config), mem)
	if err != nil {
		return nil, inFile(filepath.Join(dir, file), err)
	}
	if t.name = path.Base(file); t.name == jsonName {
		t.name = ""
	}
	if t.source.fsys, t.source.name = fsys, file; isPipe { // a pipe has no second reading
		t.source.data = data
	}
	if t.fileName != jsonName { // its fingerprint is not the file's hash
		t.source.sum = sha256.Sum256(data)
	}
	return t, nil
}

// firstOf returns the first of the names that the folder has, "" if it has none.
func firstOf(fsys fs.FS, folder string, names ...string) string {
	for _, name := range names {
		if _, err := fs.Stat(fsys, path.Join(folder, name)); err == nil {
			return name
		}
	}
	return ""
}

// findFile returns the tokenizer file that name stands for: name itself, or the file in that
// folder.
func findFile(fsys fs.FS, name string) (string, error) {
	info, err := fs.Stat(fsys, name)
	if err != nil || !info.IsDir() {
		return name, err
	}
	file := path.Join(name, jsonName)
	if _, err := fs.Stat(fsys, file); err == nil {
		return file, nil
	}
	var found []string
	for _, pattern := range []string{"*.model", "*.tiktoken"} {
		m, err := fs.Glob(fsys, path.Join(name, pattern))
		if err == nil {
			found = append(found, m...)
		}
	}
	slices.Sort(found)
	switch len(found) {
	case 0:
		if firstOf(fsys, name, "tekken.json") != "" {
			return "", spec.NoTekken()
		}
		if rwkv, err := fs.Glob(fsys, path.Join(name, "rwkv_vocab*.txt")); err == nil && len(rwkv) > 0 {
			return "", spec.NoRWKV()
		}
		if slow := firstOf(fsys, name, "vocab.txt", "vocab.json", "merges.txt"); slow != "" {
			return "", fmt.Errorf("%w: it has %s, which is part of a tokenizer that transformers has to put together, and no "+
				"tokenizer.json; write that with AutoTokenizer.from_pretrained(FOLDER).save_pretrained(FOLDER) in Python",
				ErrAmbiguous, slow)
		}
		return "", fmt.Errorf("%w: it has no tokenizer.json, .model or .tiktoken file; "+
			"name the file or folder that a tokenizer was saved to, or a built-in tokenizer", ErrAmbiguous)
	case 1:
		return found[0], nil
	}
	for i := range found {
		found[i] = path.Base(found[i])
	}
	return "", fmt.Errorf("%w: it has %s; name one", ErrAmbiguous, strings.Join(found, ", "))
}

// readRegular is readLimited of a regular file.
func readRegular(fsys fs.FS, name string, limit int64) ([]byte, error) {
	data, _, err := readLimited(fsys, name, limit, false)
	return data, err
}

// readLimited reads a file of at most limit bytes, whatever size it claims. A file that claims more
// is not read at all, nor one that is not regular: opening a pipe waits for somebody to write into
// it. isPipe is set for a pipe, where those are allowed.
func readLimited(fsys fs.FS, name string, limit int64, pipes bool) (data []byte, isPipe bool, err error) {
	info, err := fs.Stat(fsys, name)
	if err != nil {
		return nil, false, err
	}
	isPipe = info.Mode()&fs.ModeNamedPipe != 0
	switch {
	case isPipe && !pipes:
		return nil, true, fmt.Errorf("%w: there is a named pipe in its place; remove it", ErrFormat)
	case !isPipe && !info.Mode().IsRegular():
		return nil, false, fmt.Errorf("%w: not a regular file", ErrFormat)
	case info.Size() > limit:
		return nil, isPipe, spec.LimitError("the file", info.Size(), limit)
	}
	f, err := fsys.Open(name)
	if err != nil {
		return nil, isPipe, err
	}
	defer f.Close()
	var b bytes.Buffer
	if !isPipe {
		b.Grow(int(info.Size()) + bytes.MinRead)
	}
	if _, err = b.ReadFrom(io.LimitReader(f, limit+1)); err == nil && int64(b.Len()) > limit {
		err = spec.LimitError("the file", limit+1, limit)
	}
	return b.Bytes(), isPipe, err
}

// Parse reads a tokenizer.json, .tiktoken ranks or a SentencePiece .model in memory; its content
// decides which. data is kept for Details.File; the caller must not change it. Errors are
// *FileError.
func Parse(data []byte, o Options) (*Tokenizer, error) {
	t, err := parse(data, o, readBeside(o.configFile), spec.NewMeter(o.MaxMemory))
	if err != nil {
		return nil, inFile("", err)
	}
	t.source.data = data
	return t, nil
}

// configFile returns Config as the only file.
func (o Options) configFile(name string) ([]byte, error) {
	if name != configName || o.Config == nil {
		return nil, fs.ErrNotExist
	}
	return o.Config, nil
}

// parse is Parse without a byte offset in errors.
func parse(data []byte, o Options, b *beside, mem *spec.Meter) (*Tokenizer, error) {
	s, err := readSpec(data, o, &b.outside, mem)
	if err != nil {
		return nil, err
	}
	t, err := newTokenizer(s, mem)
	if err != nil {
		return nil, err
	}
	t.source.options = o
	t.nameSpecial(b.named)
	t.warnings = slices.Concat(t.warnings, b.warnings, unfollowed(s, b.switches))
	return t, nil
}

// isRWKV reports whether a file begins as RWKV's vocabularies do: an id, a Python string or bytes, and their length.
func isRWKV(data []byte) bool {
	line, _, _ := bytes.Cut(data[:min(len(data), 4096)], []byte("\n"))
	words := bytes.Fields(line)
	if len(words) < 3 {
		return false
	}
	_, noID := strconv.ParseUint(string(words[0]), 10, 32)
	_, noLength := strconv.ParseUint(string(words[len(words)-1]), 10, 32)
	quote := bytes.TrimPrefix(words[1], []byte("b"))
	return noID == nil && noLength == nil && len(quote) > 0 && (quote[0] == '\'' || quote[0] == '"')
}

// readSpec recognizes a file's format and reads it, with what the files beside it say.
func readSpec(data []byte, o Options, outside *spec.Outside, mem *spec.Meter) (*spec.Spec, error) {
	if err := mem.Take(int64(len(data)), "the file"); err != nil {
		return nil, err
	}
	head := bytes.TrimLeft(data[:min(len(data), 64)], " \t\r\n")
	switch {
	case len(data) == 0:
		return nil, spec.Formatf("it is empty; %s", tokenizerFiles)
	case len(head) > 0 && head[0] == '{':
		sum := spec.Concurrently(func() string { return spec.Fingerprint(jsonName, data) })
		s, err := hf.Read(data, outside, mem)
		if fingerprint := sum(); err == nil {
			s.Fingerprint = fingerprint
		}
		if err == nil && s.Patch != nil {
			s.Fingerprint = spec.Fingerprint(jsonName, s.Patch.Apply(data))
		}
		return s, err
	case isRWKV(data):
		return nil, spec.NoRWKV()
	case tiktoken.Recognize(data):
		s, err := tiktoken.Read(data, tiktoken.Ranks{Pattern: o.Pattern, Special: o.Special}, mem)
		if err == nil {
			err = s.Complete(outside, mem)
		}
		return s, err
	}
	s, err := spmodel.Read(data, mem)
	if errors.Is(err, ErrFormat) {
		err = fmt.Errorf("%w; %s", err, tokenizerFiles)
	}
	if err == nil {
		err = spmodel.Complete(s, outside, mem)
	}
	return s, err
}
