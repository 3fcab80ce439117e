package scratch

import (
	"encoding/binary"
	"io"
)

// A Queue holds names in any order: a few in memory, the others in a scratch file.
type Queue struct {
	Dir    string // where the scratch file goes
	few    []string
	bytes  int
	file   *File
	unread int64 // where the names begin in the file that were not taken yet
}

const queueBytes = 256 << 10

// Push adds a name.
func (q *Queue) Push(name string) error {
	if q.bytes+len(name) < queueBytes && len(q.few) < sortNames {
		q.few, q.bytes = append(q.few, name), q.bytes+len(name)
		return nil
	}
	if q.file == nil {
		var err error
		if q.file, err = New(q.Dir); err != nil {
			return err
		}
	}
	return q.file.append(append(binary.AppendUvarint(nil, uint64(len(name))), name...))
}

// Pop takes a name out; ok is false if none is left.
func (q *Queue) Pop() (name string, ok bool, err error) {
	if len(q.few) == 0 && q.file != nil && q.unread < q.file.size {
		r := runReader{from: q.file.section(q.unread, q.file.size-q.unread, mergeBytes)}
		for len(q.few) < sortNames && q.bytes < queueBytes {
			err := r.next()
			if err == io.EOF {
				break
			}
			if err != nil {
				return "", false, err
			}
			q.few, q.bytes = append(q.few, string(r.name)), q.bytes+len(r.name)
			q.unread += int64(len(binary.AppendUvarint(nil, uint64(len(r.name)))) + len(r.name))
		}
	}
	if len(q.few) == 0 {
		return "", false, nil
	}
	last := len(q.few) - 1
	name = q.few[last]
	q.few, q.bytes = q.few[:last], q.bytes-len(name)
	return name, true, nil
}

// Close releases the scratch file.
func (q *Queue) Close() error { return q.file.Close() }
