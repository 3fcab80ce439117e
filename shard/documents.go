package shard

import (
	"encoding/binary"

	"github.com/dsload/dsload/internal/shardfile"
)

// Documents stores the document number of row first+i in dst[i]. It costs one read for each record
// batch of these rows.
func (r *Split) Documents(dst []int64, first int64) error {
	sc := getScratch()
	defer putScratch(sc)
	for at := 0; at < len(dst); {
		p, err := r.openRow(first + int64(at))
		if err != nil {
			return err
		}
		n := min(len(dst)-at, int(p.rows-p.row))
		err = r.documentsOf(sc, p, dst[at:at+n])
		p.s.mu.RUnlock()
		if err != nil {
			return err
		}
		at += n
	}
	return nil
}

// documentsOf is Documents for rows of one record batch, from p's row on.
func (r *Split) documentsOf(sc *readScratch, p rowRef, dst []int64) error {
	places, err := r.readPlaces(sc, p)
	if err != nil {
		return err
	}
	at := p.body + places[r.d.layout.ColIndex[shardfile.ColDocument]].ValuesAt + 8*p.row
	raw := sc.take(8 * len(dst))
	if err := p.s.read(raw, at); err != nil {
		return err
	}
	for i := range dst {
		dst[i] = int64(binary.LittleEndian.Uint64(raw[8*i:]))
	}
	return nil
}
