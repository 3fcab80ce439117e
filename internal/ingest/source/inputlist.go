package source

import (
	"sync"

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

// A keeper holds small files that detection has read whole, until they are read. A folder of them is then read once
// instead of twice.
type keeper struct {
	mu    sync.Mutex
	bytes int64
	files map[int][]byte // the keys are the numbers of the inputs
}

// take returns the i-th input if it was kept, and keeps it no longer.
func (k *keeper) take(i int) []byte {
	k.mu.Lock()
	defer k.mu.Unlock()
	data := k.files[i]
	delete(k.files, i)
	return data
}
