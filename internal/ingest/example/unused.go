package example

import (
	"encoding/binary"
	"slices"
	"strings"

	"github.com/dsload/dsload/internal/counts"
	"github.com/dsload/dsload/internal/ingest/example/values"
	"github.com/dsload/dsload/internal/jsonscan"
)

// An Unused notes which fields of records nothing uses, each by a number. It belongs to one goroutine.
//
// It costs little: records mostly have the fields of the record before, in the same order, so that a name is found
// by one comparison, and the numbers of the record before are taken again.
type Unused struct {
	used       []string // the names that something uses
	known      [2]map[string]metField
	names      []string // index: the number
	met        []metField
	at         int      // the record's fields are those of met before it
	changed    bool     // they differ from those of the record before
	numbers    []uint16 // those of the record before
	ofMessages []uint16 // those of the record
	noted      []uint32 // index: the number; value: the last record that has it
	record     uint32
}

// A metField is a field of a record.
type metField struct {
	name     string
	head     uint64 // the first headBytes of name, and which bits of these there are
	mask     uint64
	number   int32 // -1 for a field that is used, or that says nothing
	hasValue bool
}

// headBytes is how much of a name is compared as one number.
const headBytes = 8

const (
	// maxUnused bounds the fields of a record that are looked at, and maxKnown the names that are kept from one
	// job to the next.
	maxUnused = 1 << 10
	maxKnown  = 1 << 12
	// maxNameBytes bounds a name that is noted.
	maxNameBytes = 100
)

// NewUnused returns one for records of which something uses the fields of these names.
func NewUnused(used []string) *Unused {
	u := &Unused{used: used}
	u.forget()
	return u
}

func (u *Unused) forget() {
	*u = Unused{used: u.used, known: [2]map[string]metField{{}, {}}, changed: true}
}

// Begin begins a record.
func (u *Unused) Begin() {
	if u != nil {
		u.at, u.ofMessages = 0, u.ofMessages[:0]
	}
}

// Field notes a field of the record.
func (u *Unused) Field(name string, hasValue bool) {
	if u == nil || u.at == maxUnused {
		return
	}
	if u.at == len(u.met) || u.met[u.at].name != name {
		f, ok := u.known[0][name]
		if !ok {
			f = u.add(0, name)
		}
		u.met, u.changed = append(u.met[:u.at], f), true
	}
	if f := &u.met[u.at]; f.hasValue != hasValue {
		f.hasValue, u.changed = hasValue, true
	}
	u.at++
}

// skip notes a field of the record and reads its value, which is not wanted.
func (u *Unused) skip(s *jsonscan.Scanner, key jsonscan.Span) error {
	if u != nil && !u.repeats(s, key) {
		u.Field(values.View(s.Key(key)), s.HasValue())
	}
	return s.Skip()
}

// repeats is Field for a field that is like that of the record before. It reports whether it is.
func (u *Unused) repeats(s *jsonscan.Scanner, key jsonscan.Span) bool {
	if u.at >= len(u.met) || key.Escaped {
		return false
	}
	f, raw := &u.met[u.at], s.Raw(key)
	if len(raw) != len(f.name) || cap(raw) < headBytes ||
		binary.LittleEndian.Uint64(raw[:headBytes])&f.mask != f.head ||
		len(raw) > headBytes && string(raw[headBytes:]) != f.name[headBytes:] ||
		f.number >= 0 && f.hasValue != s.HasValue() {
		return false
	}
	u.at++
	return true
}

// OfMessage notes a field of a message of the record.
func (u *Unused) OfMessage(name string) {
	f, ok := u.known[1][name]
	if !ok {
		f = u.add(1, name)
	}
	if f.number >= 0 && len(u.ofMessages) < maxUnused {
		u.ofMessages = append(u.ofMessages, uint16(f.number))
	}
}

// add gives a name a number.
func (u *Unused) add(kind int, name string) metField {
	name = strings.Clone(name) // it may be a part of the record
	f, shown := metField{name: name, number: -1, mask: 1<<(8*min(len(name), headBytes)) - 1}, name
	var head [headBytes]byte
	copy(head[:], name)
	f.head = binary.LittleEndian.Uint64(head[:])
	if len(shown) > maxNameBytes {
		shown = shown[:maxNameBytes] + "…"
	}
	shown = strings.ToValidUTF8(shown, "\ufffd")
	if kind == 1 {
		shown = counts.OfMessages + shown
	}
	if !IsQuiet(name) && (kind == 1 || !slices.Contains(u.used, name)) && len(u.names) < 1<<16 {
		f.number = int32(len(u.names))
		u.names, u.noted = append(u.names, shown), append(u.noted, 0)
	}
	u.known[kind][f.name] = f
	return f
}

// Numbers returns the numbers of the fields of the record that has just been read, valid until the next one. again
// reports that they are those of the record before.
func (u *Unused) Numbers() (numbers []uint16, again bool) {
	if again = !u.changed && u.at == len(u.met) && len(u.ofMessages) == 0; again {
		return u.numbers, true
	}
	u.record++
	u.met, u.numbers = u.met[:u.at], u.numbers[:0]
	for _, f := range u.met {
		if f.hasValue && f.number >= 0 && u.noted[f.number] != u.record {
			u.noted[f.number] = u.record
			u.numbers = append(u.numbers, uint16(f.number))
		}
	}
	u.numbers = append(u.numbers, u.ofMessages...)
	u.changed = len(u.ofMessages) > 0
	return u.numbers, false
}

// Names returns the names by number, of all numbers so far. They stay as they are.
func (u *Unused) Names() []string {
	if u == nil {
		return nil
	}
	return u.names
}

// Trim forgets the names where they are many. What was numbered before has the names that Names returned then.
func (u *Unused) Trim() {
	if u != nil && len(u.known[0])+len(u.known[1]) > maxKnown {
		u.forget()
	}
}
