// Package csvscan has the grammar of CSV, as RFC 4180 has it: a field in quotes may hold separators,
// line ends and doubled quotes. A quote inside an unquoted field is an ordinary character, as
// spreadsheets and Python write it; anything but a separator or a line end after a closing quote is
// an error.
//
// Bounds finds where records end, which is enough to deliver them. Decoding their fields, by
// AppendField, can then be the work of others.
package csvscan

import (
	"bytes"
	"encoding/binary"
	"math/bits"
	"slices"
)

// A Bounds finds the end of a record, piece by piece. Comma separates its fields; 0 stands for any
// separator, where the header is to tell which.
type Bounds struct {
	Comma byte
	Ended bool // the end was found
	Bad   bool // something follows a closing quote; to continue anyway, set it to false
	state state
}

type state uint8

const (
	fieldStart state = iota
	unquoted
	quoted
	afterQuote // after a quote in a quoted field: doubled, or the field's end
)

// Skip returns how much of data belongs to the record, with its line end, or stands before what is
// bad.
func (s *Bounds) Skip(data []byte) (n int) {
	state := s.state
	defer func() { s.state = state }()
	for p := 0; p < len(data); p++ {
		switch b := data[p]; state {
		case quoted:
			if p += closing(data[p:]); p < len(data) {
				state = afterQuote
			}
		case afterQuote:
			switch {
			case b == '"':
				state = quoted
			case isComma(b, s.Comma):
				state = fieldStart
			case b == '\n' || b == '\r':
				state = unquoted
				p--
			default:
				s.Bad, state = true, unquoted
				return p
			}
		case fieldStart, unquoted:
			switch {
			case b == '\n':
				s.Ended = true
				return p + 1
			case isComma(b, s.Comma):
				state = fieldStart
			case b == '"' && state == fieldStart:
				state = quoted
			default:
				for state = unquoted; p+1 < len(data) && data[p+1] != '\n' && !isComma(data[p+1], s.Comma); {
					p++
				}
			}
		}
	}
	return len(data)
}

// closing returns where data, which is inside quotes, has its first quote that is not doubled, or is the last byte.
// Without one it returns the length of data.
func closing(data []byte) int {
	for p := 0; ; p += 2 {
		i := near(data[p:])
		if i < 0 {
			i = bytes.IndexByte(data[p:], '"')
		}
		if i < 0 {
			return len(data)
		}
		if p += i; p+1 >= len(data) || data[p+1] != '"' {
			return p
		}
	}
}

func isComma(b, comma byte) bool {
	return b == comma || comma == 0 && (b == ',' || b == ';' || b == '\t' || b == '|')
}

// Open reports whether a quoted field was not closed yet.
func (s *Bounds) Open() bool { return s.state == quoted }

// AppendField appends the first field of a record, decoded. rest is what follows it: nothing, or a
// separator and the next field. It is not ok if a quote is not closed.
func AppendField(dst, record []byte, comma byte) (text, rest []byte, ok bool) {
	if len(record) == 0 || record[0] != '"' {
		n := bytes.IndexByte(record, comma)
		if n < 0 {
			n = len(record)
		}
		return append(dst, record[:n]...), record[n:], true
	}
	dst = slices.Grow(dst, len(record))
	for rest = record[1:]; ; {
		n := near(rest)
		if n >= 0 { // a copy of so few bytes takes longer than one of a whole word
			*(*[8]byte)(dst[len(dst) : len(dst)+8]) = [8]byte(rest)
			dst = dst[:len(dst)+n]
		} else if n = bytes.IndexByte(rest, '"'); n >= 0 {
			dst = append(dst, rest[:n]...)
		} else {
			return dst, rest, false
		}
		if n+1 == len(rest) || rest[n+1] != '"' {
			return dst, rest[n+1:], true
		}
		dst, rest = append(dst, '"'), rest[n+2:]
	}
}

// near returns where the first quote of data is if it is among the first eight bytes, else -1. In fields that are lists
// it often is.
func near(data []byte) int {
	const each = 0x0101010101010101
	if len(data) < 8 {
		return -1
	}
	x := binary.LittleEndian.Uint64(data) ^ '"'*each // a zero byte for each quote
	zero := (x - each) &^ x & (0x80 * each)
	if zero == 0 {
		return -1
	}
	return bits.TrailingZeros64(zero) / 8
}
