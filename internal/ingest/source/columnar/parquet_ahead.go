package columnar

import (
	"hash/crc32"
	"io"

	"github.com/dsload/dsload/internal/cputime"
)

// Spare is what may be spent on reading ahead: goroutines, and bytes.
type Spare struct {
	Workers int
	Bytes   int64
}

// A packedPage is a page as it is stored, and what becomes of it.
type packedPage struct {
	pageHeader
	at            int64 // where its bytes lie in the file
	codec, plain  int   // the first plain bytes are not compressed
	stored, bytes []byte
	err           error
	done          chan struct{}
}

func (p *packedPage) check() error {
	if p.crc != nil && crc32.ChecksumIEEE(p.stored) != *p.crc {
		return corrupt("the checksum of a page differs")
	}
	return nil
}

// unpack checks and decompresses the page.
func (p *packedPage) unpack(c *codec) error {
	if err := p.check(); err != nil {
		return err
	}
	copy(p.bytes, p.stored[:p.plain])
	if len(p.bytes) == p.plain && len(p.stored) == p.plain {
		return nil
	}
	return c.decompress(p.codec, p.bytes[p.plain:], p.stored[p.plain:])
}

// A lookahead unpacks the pages of a column that come next beside each other. What is wrong with one is left for the
// reader to meet.
type lookahead struct {
	at          io.ReaderAt
	codecs      chan *codec // those that are free
	bytes, most int64       // bytes that all pages may take, and the most that one has taken
	pages       []*packedPage
	used        []*packedPage // their buffers are free
	scout       leafReader    // finds the pages
}

// take returns the next page if it is the wanted one. Others are dropped: the reader has gone elsewhere.
func (a *lookahead) take(want *packedPage) *packedPage {
	for a != nil && len(a.pages) > 0 {
		p := a.pages[0]
		a.pages, a.used = a.pages[1:], append(a.used, p)
		<-p.done
		if p.at == want.at && p.codec == want.codec && p.compressed == want.compressed &&
			p.uncompressed == want.uncompressed && p.err == nil {
			return p
		}
	}
	return nil
}

// run unpacks pages from where l is, or from after those that are there.
func (a *lookahead) run(l *leafReader) {
	if a == nil {
		return
	}
	s := &a.scout
	if len(a.pages) == 0 {
		s.f, s.n, s.group, s.slot, s.ch, s.pos, s.end, s.left = l.f, l.n, l.group, l.slot, l.ch, l.pos, l.end, l.left
	}
	for len(a.pages) < 2*cap(a.codecs)+2 {
		for s.left <= 0 || s.pos >= s.end {
			next := s.group + 1
			for next < l.f.groups.len() && l.f.groups.at(next).skip {
				next++
			}
			if next == l.f.groups.len() {
				return
			}
			s.seek(next, s.slot)
		}
		from := s.pos
		h, err := s.header()
		p := &packedPage{pageHeader: h, at: s.pos, codec: s.ch.codec, done: make(chan struct{}, 1)}
		if h.kind == pageDataV2 {
			p.plain = int(h.defBytes) + int(h.repLen)
		}
		switch known := h.kind == pageData || h.kind == pageDataV2 || h.kind == pageDictionary; {
		case err == nil && (!known || !h.isCompressed || p.codec == codecNone): // nothing to unpack
		case err != nil, !a.hold(p):
			s.pos = from
			return
		default:
			a.pages = append(a.pages, p)
			go func() {
				cputime.Label("")
				c := <-a.codecs
				grown(&p.bytes, int(h.uncompressed))
				if p.err = readAt(a.at, grown(&p.stored, int(h.compressed)), p.at); p.err == nil {
					p.err = p.unpack(c)
				}
				a.codecs <- c
				close(p.done)
			}()
		}
		if s.pos += int64(h.compressed); h.kind != pageDictionary {
			s.left -= int64(max(0, h.values))
		}
	}
}

// hold gives a page buffers of a used one, and reports whether there is room for as many of the largest one's size.
func (a *lookahead) hold(p *packedPage) bool {
	if n := len(a.used) - 1; n >= 0 {
		p.stored, p.bytes = a.used[n].stored, a.used[n].bytes
		a.used = a.used[:n]
	}
	a.most = max(a.most, int64(p.compressed)+int64(p.uncompressed))
	return int64(len(a.pages)+len(a.used)+1)*a.most <= a.bytes
}
