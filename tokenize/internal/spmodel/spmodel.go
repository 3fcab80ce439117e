// Package spmodel reads SentencePiece .model files, which are protobuf messages (ModelProto of
// sentencepiece_model.proto), and normalizes text as they say.
//
// Files are not trusted: every length is checked against the remaining bytes before memory is
// allocated. Unknown fields are skipped, as protobuf does.
package spmodel

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"unicode/utf8"

	"github.com/dsload/dsload/tokenize/internal/spec"
)

// ErrFormat reports that a file is not a SentencePiece model.
var ErrFormat = errors.New("not a SentencePiece model")

// Type is the kind of model.
type Type uint8

const (
	Unigram Type = iota + 1
	BPE
	Word
	Char
)

// Piece is an entry of the vocabulary.
type Piece struct {
	Text  []byte
	Score float32
	Kind  spec.PieceKind
}

// Model is the content of a file.
type Model struct {
	Pieces       []Piece
	Type         Type
	ByteFallback bool
	SpaceSuffix  bool // treat_whitespace_as_suffix
	UnkSurface   string
	UnkID        int

	Charsmap          []byte
	AddDummyPrefix    bool
	RemoveExtraSpaces bool
	EscapeSpaces      bool
	HasDenormalizer   bool
}

// field is one field of a message: its bytes if it has a length, else its number.
type field struct {
	num  uint64
	data []byte
	n    uint64
}

// fields calls f for each field of a message.
func fields(b []byte, f func(field) error) error {
	for len(b) > 0 {
		tag, n := binary.Uvarint(b)
		if n <= 0 || tag>>3 == 0 {
			return fmt.Errorf("%w: bad field tag", ErrFormat)
		}
		b = b[n:]
		x := field{num: tag >> 3}
		switch tag & 7 {
		case 0:
			x.n, n = binary.Uvarint(b)
			if n <= 0 {
				return fmt.Errorf("%w: bad number", ErrFormat)
			}
			b = b[n:]
		case 1, 5:
			size := 4
			if tag&7 == 1 {
				size = 8
			}
			if len(b) < size {
				return fmt.Errorf("%w: the file ends within a number", ErrFormat)
			}
			if size == 4 {
				x.n = uint64(binary.LittleEndian.Uint32(b))
			}
			b = b[size:]
		case 2:
			l, n := binary.Uvarint(b)
			if n <= 0 || l > uint64(len(b)-n) {
				return fmt.Errorf("%w: the file ends within a field", ErrFormat)
			}
			x.data = b[n : n+int(l)]
			b = b[n+int(l):]
		default:
			return fmt.Errorf("%w: bad field type", ErrFormat)
		}
		if err := f(x); err != nil {
			return err
		}
	}
	return nil
}

// countPieces returns how many pieces a model has, without keeping any.
func countPieces(data []byte) (n int, err error) {
	err = fields(data, func(f field) error {
		if f.num == 1 && f.data != nil {
			n++
		}
		return nil
	})
	return n, err
}

// Parse reads a model. The result refers to data.
func Parse(data []byte) (*Model, error) {
	m := &Model{
		Type: Unigram, UnkID: -1, UnkSurface: " \u2047 ", AddDummyPrefix: true, RemoveExtraSpaces: true,
		EscapeSpaces: true,
	}
	err := fields(data, func(f field) error {
		switch {
		case f.num == 1 && f.data != nil:
			return m.piece(f.data)
		case f.num == 2 && f.data != nil:
			return fields(f.data, m.trainerField)
		case f.num == 3 && f.data != nil:
			return fields(f.data, m.normalizerField)
		case f.num == 5 && f.data != nil:
			return fields(f.data, func(g field) error {
				if g.num == 2 {
					m.HasDenormalizer = m.HasDenormalizer || len(g.data) > 0
				}
				return nil
			})
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return m, m.check()
}

func (m *Model) piece(b []byte) error {
	p := Piece{Kind: spec.Normal}
	err := fields(b, func(f field) error {
		switch f.num {
		case 1:
			p.Text = f.data
		case 2:
			p.Score = math.Float32frombits(uint32(f.n))
		case 3:
			if f.n < uint64(spec.Normal) || f.n > uint64(spec.Byte) {
				return fmt.Errorf("%w: piece %d has type %d", ErrFormat, len(m.Pieces), f.n)
			}
			p.Kind = spec.PieceKind(f.n)
		}
		return nil
	})
	m.Pieces = append(m.Pieces, p)
	return err
}

func (m *Model) trainerField(f field) error {
	switch f.num {
	case 3:
		if f.n < uint64(Unigram) || f.n > uint64(Char) {
			return fmt.Errorf("%w: model type %d", ErrFormat, f.n)
		}
		m.Type = Type(f.n)
	case 24:
		m.SpaceSuffix = f.n != 0
	case 35:
		m.ByteFallback = f.n != 0
	case 44:
		m.UnkSurface = string(f.data)
	}
	return nil
}

func (m *Model) normalizerField(f field) error {
	switch f.num {
	case 2:
		m.Charsmap = f.data
	case 3:
		m.AddDummyPrefix = f.n != 0
	case 4:
		m.RemoveExtraSpaces = f.n != 0
	case 5:
		m.EscapeSpaces = f.n != 0
	}
	return nil
}

// check makes the checks that SentencePiece makes when it loads a model.
func (m *Model) check() error {
	if len(m.Pieces) == 0 {
		return fmt.Errorf("%w: no pieces", ErrFormat)
	}
	seen := make(map[string]int, len(m.Pieces))
	bytes := 0
	for id, p := range m.Pieces {
		if len(p.Text) == 0 || !utf8.Valid(p.Text) {
			return fmt.Errorf("%w: piece %d is empty or not UTF-8", ErrFormat, id)
		}
		if first, ok := seen[string(p.Text)]; ok {
			return fmt.Errorf("%w: pieces %d and %d are both %q", ErrFormat, first, id, p.Text)
		}
		seen[string(p.Text)] = id
		if f := float64(p.Score); math.IsNaN(f) || math.IsInf(f, 0) {
			return fmt.Errorf("%w: piece %d has score %v", ErrFormat, id, f)
		}
		switch p.Kind {
		case spec.Unknown:
			if m.UnkID >= 0 {
				return fmt.Errorf("%w: pieces %d and %d are both unknown", ErrFormat, m.UnkID, id)
			}
			m.UnkID = id
		case spec.Byte:
			if _, ok := ByteOf(p.Text); !ok {
				return fmt.Errorf("%w: byte piece %d is %q", ErrFormat, id, p.Text)
			}
			bytes++
		}
	}
	if m.UnkID < 0 {
		return fmt.Errorf("%w: no unknown piece", ErrFormat)
	}
	if m.ByteFallback && bytes != 256 {
		return fmt.Errorf("%w: byte fallback with %d byte pieces", ErrFormat, bytes)
	}
	return nil
}

// ByteOf reads a piece such as <0x0A>.
func ByteOf(text []byte) (b byte, ok bool) {
	if len(text) != 6 || string(text[:3]) != "<0x" || text[5] != '>' {
		return 0, false
	}
	for _, c := range text[3:5] {
		switch {
		case '0' <= c && c <= '9':
			b = b<<4 | (c - '0')
		case 'A' <= c && c <= 'F':
			b = b<<4 | (c - 'A' + 10)
		default:
			return 0, false
		}
	}
	return b, true
}
