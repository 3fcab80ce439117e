package source

import (
	"encoding/binary"

	"github.com/dsload/dsload/internal/ingest/source/checksum"
	"github.com/zeebo/xxh3"
)

// A recordsSum is a checksum over records, of which the one at a place can be asked for until a second record is added
// after that. The last record waits outside the hasher, whose state is larger than most records: so it need not be
// copied at each of them.
type recordsSum struct {
	hasher xxh3.Hasher
	some   bool // there is a record

	last     []byte // not in the hasher yet if waits
	null     bool
	waits    bool
	kept     [1 << 10]byte
	placed   placing
	was      xxh3.Hasher // the hasher at the place, if it was placedBefore
	wasEmpty bool
}

// A placing is what the records at a place are.
type placing int

const (
	placedBefore placing = iota // fewer than those of the hasher
	placedHere                  // those of the hasher
	placedLast                  // these, and the one that waits
)

// add adds a record. Where its bytes are lent, they are valid until take.
func (s *recordsSum) add(data []byte, null, lent bool) {
	s.take()
	s.last, s.null, s.waits, s.some = data, null, true, true
	switch {
	case lent:
	case len(data) <= len(s.kept):
		s.last = s.kept[:copy(s.kept[:], data)]
	default:
		s.take()
	}
}

// take takes the record that waits into the hasher.
func (s *recordsSum) take() {
	if !s.waits {
		return
	}
	s.leave()
	var head [9]byte
	binary.LittleEndian.PutUint64(head[:], uint64(len(s.last)))
	if s.null {
		head[8] = 1
	}
	s.hasher.Write(head[:]) // never fails
	s.hasher.Write(s.last)
	s.last, s.waits = nil, false
	if s.placed == placedLast {
		s.placed = placedHere
	}
}

// leave keeps the checksum of the place before the hasher changes.
func (s *recordsSum) leave() {
	if s.placed == placedHere {
		s.was, s.placed = s.hasher, placedBefore
	}
}

// reset begins anew. The place stays.
func (s *recordsSum) reset() {
	s.take()
	s.leave()
	s.hasher.Reset()
	s.some = false
}

// place notes what was added so far.
func (s *recordsSum) place() {
	if s.placed, s.wasEmpty = placedHere, !s.some; s.waits {
		s.placed = placedLast
	}
}

// after returns the checksum over the records after those that base is over.
func (s *recordsSum) after(base checksum.Sum) checksum.Sum {
	if !s.some {
		return base
	}
	s.take()
	return base.Then(checksum.Of(&s.hasher))
}

// placedAfter is after of the records at the place.
func (s *recordsSum) placedAfter(base checksum.Sum) checksum.Sum {
	if s.wasEmpty {
		return base
	}
	if s.placed == placedLast {
		s.take()
	}
	if s.placed == placedHere {
		return base.Then(checksum.Of(&s.hasher))
	}
	return base.Then(checksum.Of(&s.was))
}
