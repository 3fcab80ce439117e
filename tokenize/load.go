package tokenize

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"os"
	"path/filepath"
	"slices"
	"sort"
	"strings"

	"github.com/dsload/dsload/tokenize/internal/jsonx"
)

// maxFileBytes bounds tokenizer files: the largest in use have about 35 MB.
const maxFileBytes = 512 << 20

// File gives the tokenizer.json that the tokenizer was read from, to be copied next to what it made, and its name;
// data is nil where there is none or where the file has changed since.
func (t *Tokenizer) File() (name string, data []byte) {
	if t.data != nil {
		return "tokenizer.json", t.data
	}
	if t.path == "" {
		return "", nil
	}
	b, err := readLimited(t.path, maxFileBytes)
	if err != nil || fingerprint("tokenizer.json", b) != t.fingerprint {
		return "", nil
	}
	return "tokenizer.json", b
}

func fingerprint(kind string, data []byte) string {
	h := newFingerprint(kind)
	h.Write(data)
	return h.String()
}

// hasher computes a fingerprint piece by piece.
type hasher struct {
	*bufio.Writer
	sum hash.Hash
}

func newFingerprint(kind string) hasher {
	h := sha256.New()
	w := hasher{bufio.NewWriter(h), h}
	w.WriteString(kind)
	w.WriteByte(0)
	return w
}

func (h hasher) String() string {
	h.Flush() // a hash takes everything
	return hex.EncodeToString(h.sum.Sum(nil))
}

// aside starts f, which only reads, and returns a function that waits for its result: what identifies a file is computed while its
// tables are built.
func aside(f func() string) (wait func() string) {
	result := make(chan string, 1)
	go func() { result <- f() }()
	return func() string { return <-result }
}

// readLimited reads a file of at most limit bytes, whatever its size claims to be.
func readLimited(path string, limit int64) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	size := int64(bytes.MinRead)
	if info, err := f.Stat(); err == nil && info.Mode().IsRegular() {
		size = min(info.Size(), limit) + 1 // one more, to see the end
	}
	data := make([]byte, 0, size)
	for {
		n, err := f.Read(data[len(data):cap(data)])
		data = data[:len(data)+n]
		switch {
		case int64(len(data)) > limit:
			return nil, fmt.Errorf("%s has more than %d bytes", path, limit)
		case err == io.EOF:
			return data, nil
		case err != nil:
			return nil, err
		}
		if len(data) == cap(data) {
			data = slices.Grow(data, bytes.MinRead)
		}
	}
}

// Load reads a tokenizer from a folder with a tokenizer.json (or else one .model or .tiktoken file), or from such a file. What
// a file is, its content decides, not its name. Errors are *FileError.
func Load(path string) (*Tokenizer, error) {
	file, err := tokenizerFile(path)
	if err != nil {
		return nil, &FileError{File: path, Offset: -1, Err: err}
	}
	data, err := readLimited(file, maxFileBytes)
	if err != nil {
		return nil, &FileError{File: file, Offset: -1, Err: err}
	}
	t, err := parse(data)
	if err != nil {
		return nil, inFile(file, err)
	}
	t.name = nameOf(path, file)
	if t.data != nil {
		t.data, t.path = nil, file
	}
	t.readSpecial(filepath.Dir(file))
	return t, nil
}

// nameOf calls a tokenizer.json after its folder, other files after themselves.
func nameOf(path, file string) string {
	if filepath.Base(file) != "tokenizer.json" {
		return filepath.Base(file)
	}
	dir, err := filepath.Abs(filepath.Dir(file))
	if err != nil {
		return path
	}
	return filepath.Base(dir)
}

func tokenizerFile(path string) (string, error) {
	info, err := os.Stat(path)
	if err != nil || !info.IsDir() {
		return path, err
	}
	file := filepath.Join(path, "tokenizer.json")
	if _, err := os.Stat(file); err == nil {
		return file, nil
	}
	var found []string
	for _, pattern := range []string{"*.model", "*.tiktoken"} {
		m, err := filepath.Glob(filepath.Join(path, pattern))
		if err == nil {
			found = append(found, m...)
		}
	}
	sort.Strings(found)
	switch len(found) {
	case 0:
		return "", errors.New("folder holds no tokenizer.json, .model or .tiktoken file")
	case 1:
		return found[0], nil
	}
	return "", fmt.Errorf("folder holds several tokenizers: %s; name one", strings.Join(found, ", "))
}

// parse tells by content what a file is.
func parse(data []byte) (*Tokenizer, error) {
	head := bytes.TrimLeft(data[:min(len(data), 64)], " \t\r\n")
	switch {
	case len(head) > 0 && head[0] == '{':
		return ParseJSON(data)
	case looksLikeTiktoken(data):
		return ParseTiktoken(data, "", nil)
	}
	return ParseSentencePiece(data)
}

// inFile puts a file's name and the place into an error.
func inFile(file string, err error) error {
	out := &FileError{File: file, Offset: -1, Err: err}
	var fe *FileError
	if errors.As(err, &fe) {
		*out = *fe
		out.File = file
		return out
	}
	var je *jsonx.Error
	if errors.As(err, &je) {
		out.Offset, out.Err = int64(je.Offset), formatf("%s", je.Msg)
	}
	return out
}

// ParseJSON reads a Hugging Face tokenizer.json. data is kept for File; the caller must not change it. Errors are *FileError.
func ParseJSON(data []byte) (*Tokenizer, error) {
	t, err := parseHF(data)
	if err != nil {
		return nil, inFile("", err)
	}
	t.data = data
	return t, nil
}
