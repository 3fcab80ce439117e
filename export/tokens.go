package export

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"slices"

	"github.com/dsload/dsload/shard"
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
	mask    *file // a byte a token, where a format takes one; else nil
	lengths *file // uint32 a document
	length  int64 // the open document's
	name    int64 // the open document's
	docs    int64
	tokens  int64
	wide    []byte
	flags   []byte
}

// tokenSuffixes maps formats to the suffix of their token file.
var tokenSuffixes = map[string]string{Megatron: megatronTokens, NanoGPT: megatronTokens, Nanotron: nanotronTokens,
	OLMo: olmoTokens}

// maskSuffixes maps formats to the suffix of their mask: a byte a token, 1 for one that carries loss.
var maskSuffixes = map[string]string{Nanotron: nanotronMask, OLMo: olmoMask}

func newTokenFile(base string, formats []string, m *shard.Manifest, width int) (*tokenFile, error) {
	t := &tokenFile{base: base, formats: formats, tokenizer: m.Tokenizer.Name, from: width, to: tokenBytes(m.Schema.VocabSize)}
	var err error
	if t.out, err = create(base + ".tokens"); err != nil {
		return nil, err
	}
	if t.lengths, err = create(base + ".lengths"); err != nil {
		t.out.discard()
		return nil, err
	}
	if m.Schema.LossMask && slices.ContainsFunc(formats, func(f string) bool { return maskSuffixes[f] != "" }) {
		if t.mask, err = create(base + ".mask"); err != nil {
			t.discard()
			return nil, err
		}
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

func (t *tokenFile) begin(document int64) { t.name, t.length = document, 0 }

func (t *tokenFile) ids(raw []byte, extras *rowExtras) error {
	t.length += int64(len(raw) / t.from)
	if t.mask != nil {
		t.flags = t.flags[:0]
		for _, on := range extras.mask {
			t.flags = append(t.flags, 0)
			if on {
				t.flags[len(t.flags)-1] = 1
			}
		}
		t.mask.Write(t.flags)
	}
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
	t.lengths.number(uint64(t.length), 4)
	return nil
}

func (t *tokenFile) finish() error {
	if err := t.commit(t.out, tokenSuffixes); err != nil {
		return err
	}
	if t.mask != nil {
		if err := t.commit(t.mask, maskSuffixes); err != nil {
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

// commit gives a file the names that the formats have for it.
func (t *tokenFile) commit(f *file, suffixes map[string]string) error {
	var names []string
	for _, format := range t.formats {
		if name := t.base + suffixes[format]; suffixes[format] != "" && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	if err := f.commitAs(names[0]); err != nil {
		return err
	}
	for _, name := range names[1:] {
		if err := link(names[0], name); err != nil {
			return err
		}
	}
	return nil
}

func (t *tokenFile) discard() {
	t.out.discard()
	if t.mask != nil {
		t.mask.discard()
	}
	t.lengths.discard()
}

// eachLength calls f with the length of every document in order.
func (t *tokenFile) eachLength(f func(n int64)) error {
	if _, err := t.lengths.f.Seek(0, io.SeekStart); err != nil {
		return err
	}
	r := bufio.NewReaderSize(t.lengths.f, fileBufferBytes)
	var b [4]byte
	for range t.docs {
		if _, err := io.ReadFull(r, b[:]); err != nil {
			return fmt.Errorf("read back %s: %w", t.lengths.f.Name(), err)
		}
		f(int64(binary.LittleEndian.Uint32(b[:])))
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
