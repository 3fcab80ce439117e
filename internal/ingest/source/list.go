package source

import (
	"encoding/binary"
	"fmt"
	"sort"
	"time"

	"github.com/dsload/dsload/internal/fault"
	"github.com/dsload/dsload/internal/ingest/source/cause"
	"github.com/dsload/dsload/internal/ingest/source/checksum"
	"github.com/dsload/dsload/internal/ingest/source/decompress"
	"github.com/dsload/dsload/internal/ingest/source/scratch"
	"github.com/dsload/dsload/internal/remote"
)

// maxListed is how many inputs a Set holds in memory and names one by one, in positions and in the
// manifest. The inputs of a larger set lie in a scratch file, and the files of a folder or glob
// share one entry.
const maxListed = 1000

// An inputList is the inputs of a set: the first maxListed in memory, the others in a table. Those
// that cannot be written down, pipes and generators, stay in memory; the system bounds the number
// of pipes, the command line that of generators.
type inputList struct {
	dir  string // for the table's files
	few  []Input
	rest *scratch.Table
	kept map[int]Input
	row  []byte
	// store is that of the remote inputs.
	store *remote.Store
}

func (l *inputList) len() int { return len(l.few) + l.rest.Len() }

func (l *inputList) add(in Input) error {
	if len(l.few) < maxListed {
		l.few = append(l.few, in)
		return nil
	}
	if l.rest == nil {
		var err error
		if l.rest, err = scratch.NewTable(l.dir); err != nil {
			return err
		}
	}
	if in.once != nil || in.Synth != nil || in.Store != nil && !remote.Listable(in.URI) {
		if l.kept == nil {
			l.kept = map[int]Input{}
		}
		l.kept[l.len()] = in
	}
	l.row = in.appendRow(l.row[:0])
	return l.rest.Add(l.row)
}

func (l *inputList) at(i int) (in Input, err error) {
	if i < len(l.few) {
		return l.few[i], nil
	}
	if in, ok := l.kept[i]; ok {
		return in, nil
	}
	err = l.rest.Row(i-len(l.few), func(row []byte) error { return in.parseRow(row) })
	if in.Path == "" {
		in.Store = l.store
	}
	return in, err
}

// appendRow writes down a file, local or remote.
func (in *Input) appendRow(row []byte) []byte {
	row = binary.AppendVarint(row, in.textBytes)
	row = binary.AppendVarint(row, in.window)
	for _, word := range []string{string(in.Format), string(in.Compression), string(in.archive), in.Records} {
		row = binary.AppendUvarint(row, uint64(len(word)))
		row = append(row, word...)
	}
	return in.AppendRow(row)
}

// parseRow reads what appendRow wrote.
func (in *Input) parseRow(row []byte) error {
	for _, v := range []*int64{&in.textBytes, &in.window} {
		n := 0
		*v, n = binary.Varint(row)
		row = row[max(n, 0):]
	}
	var words [4]string
	for i := range words {
		size, n := binary.Uvarint(row)
		if n <= 0 || size > uint64(len(row)-n) {
			return scratch.ListError(fault.Of(cause.Corrupt, "a row of it ends early"))
		}
		words[i], row = string(row[n:][:size]), row[n:][size:]
	}
	in.Format, in.Compression, in.archive = Format(words[0]), decompress.Compression(words[1]), Format(words[2])
	in.Records = words[3]
	return in.ParseRow(row)
}

// A sourceLine is a line of the list of sources: one input, or all the files of a folder or glob.
type sourceLine struct {
	Stat
	first, n int // its inputs
}

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

// lineOf returns the index of the line that holds an input; of the input after the last one, the
// number of lines.
func (s *Set) lineOf(input int) int {
	return sort.Search(len(s.lines), func(i int) bool { return s.lines[i].first+s.lines[i].n > input })
}

// chainStat adds what identifies a file without reading it.
func chainStat(s checksum.Sum, in *Input) checksum.Sum {
	row := binary.AppendVarint(make([]byte, 0, 256), in.Size)
	row = binary.AppendVarint(row, in.ModTime.Unix())
	row = binary.AppendVarint(row, int64(in.ModTime.Nanosecond()))
	if row = append(row, in.URI...); in.ETag != "" {
		row = append(append(row, 0), in.ETag...)
	}
	return s.Chain(row)
}

// bytes returns what the list of inputs holds.
func (l *inputList) bytes() int64 {
	n := int64(0)
	for i := range l.few {
		n += inputBytes + int64(2*len(l.few[i].URI))
	}
	if l.rest != nil {
		n += scratch.TableBytes + inputBytes*int64(len(l.kept))
	}
	return n
}

// inputBytes is what one input in memory holds besides its name: itself, its line, what is known of
// it.
const inputBytes = 512
