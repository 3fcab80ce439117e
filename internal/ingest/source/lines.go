package source

import (
	"fmt"
	"strings"
	"time"
)

// inputSpan is the range of inputs that an argument led to.
type inputSpan struct {
	uri      string
	first, n int
	many     bool // a folder or a glob
}

// makeLines groups the inputs: each for itself in a small set, by folder and glob in a large one,
// where files that were named one by one share entries too if they are too many.
func (s *Set) makeLines(spans []inputSpan) error {
	var groups []inputSpan
	total, named := s.list.len(), 0
	for _, l := range spans {
		if !l.many {
			named++
		}
	}
	for _, l := range spans {
		last := len(groups) - 1
		switch {
		case l.n == 0: // all its files are known
		case total <= maxListed:
			for i := range l.n {
				groups = append(groups, inputSpan{first: l.first + i, n: 1})
			}
		case l.many:
			groups = append(groups, l)
		case named > maxListed && last >= 0 && !groups[last].many && groups[last].first+groups[last].n == l.first:
			groups[last].n += l.n
		default:
			groups = append(groups, inputSpan{first: l.first, n: l.n})
		}
	}
	for _, g := range groups {
		p, err := s.makeLine(g)
		if err != nil {
			return err
		}
		s.lines = append(s.lines, p)
		s.known = append(s.known, p.Stat)
	}
	return nil
}

func (s *Set) makeLine(g inputSpan) (sourceLine, error) {
	first, err := s.list.at(g.first)
	if err != nil {
		return sourceLine{}, err
	}
	p := sourceLine{first: g.first, n: g.n, Stat: Stat{URI: first.URI, Size: first.Size, ModTime: first.ModTime,
		ETag: first.ETag, Revision: first.Revision, Format: first.Format}}
	if s.opts.Format == Auto || s.opts.Format == Tar {
		if g.n > 1 || g.many || first.archive != "" {
			p.Detection = DetectionRules
		}
	}
	if g.n == 1 && !g.many {
		return p, nil
	}
	p.URI, p.Size, p.ModTime, p.ETag, p.Format, p.Files = g.uri, 0, time.Time{}, "", "", int64(g.n)
	var in Input
	for i := range g.n {
		if in, err = s.list.at(g.first + i); err != nil {
			return p, err
		}
		p.Names = p.Names.Chain([]byte(in.URI))
		p.Seen = chainStat(p.Seen, &in)
		if in.Revision != p.Revision {
			p.Revision = "" // they lie in several repositories
		}
		if in.ModTime.After(p.ModTime) {
			p.ModTime = in.ModTime
		}
		if in.Size < 0 || p.Size < 0 {
			p.Size = -1
		} else {
			p.Size += in.Size
		}
	}
	if p.URI == "" {
		p.URI = fmt.Sprintf("%s … %s", first.URI, in.URI)
	}
	return p, nil
}

// LinesRead returns how much of each line of Known was read up to a position. The checksum of an
// input is the XXH3-128 of what was read, as xxhsum prints it; that of a list of files is the
// SHA-256 of the lines that "xxhsum -H2" prints for them: the sum of a file's text, two spaces, its
// name.
func (s *Set) LinesRead(p Position) []LineRead {
	out := make([]LineRead, len(s.lines))
	reading := s.lineOf(p.Input)
	for i := range s.lines {
		line := &s.lines[i]
		out[i] = LineRead{Stat: line.Stat, Inputs: line.first + line.n}
		switch {
		case i < len(p.Done):
			done := &p.Done[i]
			out[i].Read = done.Bytes
			if line.Files > 0 {
				out[i].Checksum = "sha256:" + done.List
			} else {
				out[i].Checksum = done.Sum.Tagged()
			}
		case i == reading:
			if out[i].Read = p.Offset; line.Files == 0 {
				out[i].Checksum = p.Sum.Tagged()
			} else if p.List != nil {
				out[i].Read += p.List.Bytes
			}
		}
		if out[i].Read == 0 || strings.HasPrefix(line.URI, "synth://") {
			out[i].Checksum = ""
		}
	}
	return out
}

// A LineRead is what a reader has made of a line of Known up to a position.
type LineRead struct {
	Stat
	Inputs int   // how many the set has up to and with its last
	Read   int64 // bytes after decompression
	// "xxh3-128:hex" of an input's text, "sha256:hex" of a list; "" for generated text and for a
	// list that was not read to its end
	Checksum string
}

// single returns a set of one of the inputs of s, with all that reading it takes. It needs no Close.
func (s *Set) single(in *Input) (*Set, error) {
	one := &Set{opts: s.opts, formats: map[Format]int{}, store: s.store, needs: s.needs,
		list: inputList{few: []Input{*in}}, total: in.Size}
	one.opts.spare = Spare{} // several such sets may be read at once
	return one, one.makeLines([]inputSpan{{uri: in.URI, n: 1}})
}

// FirstRecords returns a reader of the i-th input alone, from its beginning. The input of its records is
// number 0.
func (s *Set) FirstRecords(i int) (*Reader, error) {
	in, err := s.list.at(i)
	if err != nil {
		return nil, err
	}
	one, err := s.single(&in)
	if err != nil {
		return nil, err
	}
	return one.Reader(Position{})
}

// Holds estimates what the i-th input holds: bytes of text, -1 if it has no known end, and the rows of a file of
// columns, which are counted without reading them, -1 for other inputs and where damage hides them.
func (s *Set) Holds(i int) (textBytes, rows int64, err error) {
	in, err := s.list.at(i)
	if err != nil || !in.Format.IsColumnar() {
		return in.textBytes, -1, err
	}
	c, err := s.countTable(&in, newCutting(&in, nil))
	if err != nil {
		return in.textBytes, -1, nil // the build finds out
	}
	return in.textBytes, c.Documents, nil
}
