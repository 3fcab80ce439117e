package export

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"io"
	"math"
)

// maxShortVocab is the vocabulary size from which ids take four bytes. Two bytes could hold more,
// but this is Megatron's rule, and the formats share one file.
const maxShortVocab = 65500

// tokenFile is the sink for formats that are a flat file of ids and an index. It spools the lengths
// of documents to a file.
type tokenFile struct {
	base      string // OUT/SPLIT
	formats   []string
	tokenizer string
	from, to  int // bytes of an id on disk and in the file

	out     *file
	lengths *file // uint32 a document
	length  int64 // of the open document
	name    int64 // of the open document
	docs    int64
	tokens  int64
	wide    []byte
}

// tokenSuffixes maps formats to the suffix of their token file.
var tokenSuffixes = map[string]string{Megatron: megatronTokens, NanoGPT: megatronTokens, Nanotron: nanotronTokens,
	OLMo: olmoTokens}

func newTokenFile(base string, formats []string, tokenizer string, vocab, width int) (*tokenFile, error) {
	t := &tokenFile{base: base, formats: formats, tokenizer: tokenizer, from: width, to: tokenBytes(vocab)}
	var err error
	if t.out, err = create(base + ".tokens"); err != nil {
		return nil, err
	}
	if t.lengths, err = create(base + ".lengths"); err != nil {
		t.out.discard()
		return nil, err
	}
	return t, nil
}

// tokenBytes returns the size of an id in the token file.
func tokenBytes(vocab int) int {
	if vocab < maxShortVocab {
		return 2
	}
	return 4
}

func (t *tokenFile) begin(document int64) error {
	t.name, t.length = document, 0
	return nil
}

func (t *tokenFile) ids(raw []byte, _ *rowExtras) error {
	t.length += int64(len(raw) / t.from)
	if t.from != t.to {
		t.wide = appendWide(t.wide[:0], raw, t.from)
		raw = t.wide
	}
	_, err := t.out.Write(raw)
	return err
}

func (t *tokenFile) end() error {
	if t.length > math.MaxInt32 {
		return fmt.Errorf("export document %d: %d tokens, an index counts at most %d: %w", t.name, t.length,
			math.MaxInt32, ErrTooLong)
	}
	t.docs++
	t.tokens += t.length
	var b [4]byte
	binary.LittleEndian.PutUint32(b[:], uint32(t.length))
	_, err := t.lengths.Write(b[:])
	return err
}

func (t *tokenFile) finish() error {
	first := t.base + tokenSuffixes[t.formats[0]]
	if err := t.out.commitAs(first); err != nil {
		return err
	}
	linked := map[string]bool{first: true}
	for _, f := range t.formats[1:] {
		name := t.base + tokenSuffixes[f]
		if linked[name] {
			continue
		}
		linked[name] = true
		if err := link(first, name); err != nil {
			return err
		}
	}
	if err := t.lengths.Flush(); err != nil {
		return err
	}
	for _, f := range t.formats {
		var err error
		switch f {
		case Megatron:
			err = t.writeMegatron()
		case Nanotron:
			err = t.writeNanotron()
		case OLMo:
			err = t.writeOLMo()
		}
		if err != nil {
			return err
		}
	}
	t.lengths.discard()
	return nil
}

func (t *tokenFile) discard() {
	t.out.discard()
	t.lengths.discard()
}

// eachLength calls f with the length of every document in order.
func (t *tokenFile) eachLength(f func(n int64) error) error {
	if _, err := t.lengths.f.Seek(0, io.SeekStart); err != nil {
		return err
	}
	r := bufio.NewReaderSize(t.lengths.f, fileBufferBytes)
	var b [4]byte
	for range t.docs {
		if _, err := io.ReadFull(r, b[:]); err != nil {
			return fmt.Errorf("read back %s: %w", t.lengths.f.Name(), err)
		}
		if err := f(int64(binary.LittleEndian.Uint32(b[:]))); err != nil {
			return err
		}
	}
	return nil
}

// writeInto creates name, calls write to fill it, and commits it.
func writeInto(name string, write func(w *file) error) error {
	f, err := create(name)
	if err != nil {
		return err
	}
	defer f.discard()
	if err := write(f); err != nil {
		return err
	}
	return f.commit()
}
