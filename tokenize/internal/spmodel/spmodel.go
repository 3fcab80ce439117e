// Package spmodel reads SentencePiece .model files, which are protobuf messages (ModelProto of
// sentencepiece_model.proto), and normalizes text as they say.
//
// Files are not trusted: every length is checked against the remaining bytes before memory is
// allocated. Unknown fields are skipped, as protobuf does.
package spmodel

import (
	"bytes"
	"encoding/binary"
	"math"
	"strconv"
	"unicode/utf8"

	"github.com/dsload/dsload/tokenize/internal/spec"
)

func malformed(format string, args ...any) error {
	return spec.Formatf("not a SentencePiece model: "+format, args...)
}

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
	UnkSurface   string
	UnkID        int

	Normalizer      Normalizer // without Map
	Charsmap        []byte
	EscapeSpaces    bool
	HasDenormalizer bool
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
			return malformed("bad field tag")
		}
		b = b[n:]
		x := field{num: tag >> 3}
		switch tag & 7 {
		case 0:
			x.n, n = binary.Uvarint(b)
			if n <= 0 {
				return malformed("bad number")
			}
			b = b[n:]
		case 1, 5:
			size := 4
			if tag&7 == 1 {
				size = 8
			}
			if len(b) < size {
				return malformed("the file ends within a number")
			}
			if size == 4 {
				x.n = uint64(binary.LittleEndian.Uint32(b))
			}
			b = b[size:]
		case 2:
			l, n := binary.Uvarint(b)
			if n <= 0 || l > uint64(len(b)-n) {
				return malformed("the file ends within a field")
			}
			x.data = b[n : n+int(l)]
			b = b[n+int(l):]
		default:
			return malformed("bad field type")
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

// parse reads a model. The result refers to data.
func parse(data []byte) (*Model, error) {
	m := &Model{
		Type: Unigram, UnkID: -1, UnkSurface: " \u2047 ", Normalizer: Normalizer{DummySpace: true, ExtraSpaces: true},
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
				return malformed("piece %d has type %d", len(m.Pieces), f.n)
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
			return malformed("model type %d", f.n)
		}
		m.Type = Type(f.n)
	case 24:
		m.Normalizer.SpaceSuffix = f.n != 0
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
		m.Normalizer.DummySpace = f.n != 0
	case 4:
		m.Normalizer.ExtraSpaces = f.n != 0
	case 5:
		m.EscapeSpaces = f.n != 0
	}
	return nil
}

// check makes the checks that SentencePiece makes when it loads a model.
func (m *Model) check() error {
	if len(m.Pieces) == 0 {
		return malformed("no pieces")
	}
	seen := make(map[string]int, len(m.Pieces))
	byteIDs := 0
	for id, p := range m.Pieces {
		if len(p.Text) == 0 || !utf8.Valid(p.Text) {
			return malformed("piece %d is empty or not UTF-8", id)
		}
		if first, ok := seen[string(p.Text)]; ok {
			return malformed("pieces %d and %d are both %q", first, id, p.Text)
		}
		seen[string(p.Text)] = id
		if f := float64(p.Score); math.IsNaN(f) || math.IsInf(f, 0) {
			return malformed("piece %d has score %v", id, f)
		}
		switch p.Kind {
		case spec.Unknown:
			if m.UnkID >= 0 {
				return malformed("pieces %d and %d are both unknown", m.UnkID, id)
			}
			m.UnkID = id
		case spec.Byte:
			if _, ok := ByteOf(p.Text); !ok {
				return malformed("byte piece %d is %q", id, p.Text)
			}
			byteIDs++
		}
	}
	if m.UnkID < 0 {
		return malformed("no unknown piece")
	}
	if m.ByteFallback && byteIDs != 256 {
		return malformed("byte fallback with %d byte pieces", byteIDs)
	}
	return nil
}

// ByteOf reads a piece such as <0x0A>.
func ByteOf(text []byte) (b byte, ok bool) {
	if len(text) != 6 || string(text[:3]) != "<0x" || text[5] != '>' || bytes.ContainsAny(text[3:5], "abcdef") {
		return 0, false
	}
	n, err := strconv.ParseUint(string(text[3:5]), 16, 8)
	return byte(n), err == nil
}
