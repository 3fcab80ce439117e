package bench

import (
	"encoding/binary"
	"errors"

	"github.com/dsload/dsload/internal/cputime"
)

// A stackReader reads the stacks of a profile and their goroutines, and nothing else of it. The format is profile.proto of
// github.com/google/pprof.
type stackReader struct {
	samples [][]byte
	words   []string
	names   map[uint64]uint64   // functions by their ids: indexes of words
	lines   map[uint64][]uint64 // locations by their ids: functions, the innermost first
}

// readProfile calls sample for each stack of an uncompressed profile, innermost function first, with the number of
// its samples and the name that cputime.Label gave its goroutine.
func readProfile(data []byte, sample func(n int64, stack []string, goroutine string)) error {
	p := stackReader{names: map[uint64]uint64{}, lines: map[uint64][]uint64{}}
	err := eachField(data, func(field int, _ uint64, message []byte) error {
		switch field {
		case 2:
			p.samples = append(p.samples, message)
		case 4:
			return p.location(message)
		case 5:
			var id, name uint64
			err := eachField(message, func(field int, v uint64, _ []byte) error {
				switch field {
				case 1:
					id = v
				case 2:
					name = v
				}
				return nil
			})
			p.names[id] = name
			return err
		case 6:
			p.words = append(p.words, string(message))
		}
		return nil
	})
	if err != nil {
		return err
	}
	for _, s := range p.samples {
		n, stack, goroutine, err := p.stack(s)
		if err != nil {
			return err
		}
		sample(n, stack, goroutine)
	}
	return nil
}

// location takes an id, and a line for each function that was inlined there.
func (p *stackReader) location(message []byte) error {
	var id uint64
	var functions []uint64
	err := eachField(message, func(field int, v uint64, line []byte) error {
		if field == 1 {
			id = v
		}
		if field != 4 {
			return nil
		}
		return eachField(line, func(field int, v uint64, _ []byte) error {
			if field == 1 {
				functions = append(functions, v)
			}
			return nil
		})
	})
	p.lines[id] = functions
	return err
}

// stack returns the first value of a sample, the number of times that its stack was met, the stack, and the name of
// its goroutine.
func (p *stackReader) stack(sample []byte) (n int64, stack []string, goroutine string, err error) {
	var places, values []uint64
	err = eachField(sample, func(field int, v uint64, packed []byte) error {
		to := &places
		switch field {
		case 1:
		case 2:
			to = &values
		case 3:
			name, err := p.label(packed)
			goroutine += name
			return err
		default:
			return nil
		}
		if packed == nil {
			*to = append(*to, v)
		}
		for len(packed) > 0 {
			v, n := binary.Uvarint(packed)
			if n <= 0 {
				return errProfile
			}
			*to, packed = append(*to, v), packed[n:]
		}
		return nil
	})
	if err != nil || len(values) == 0 {
		return 0, nil, "", errors.Join(err, errProfile)
	}
	for _, place := range places {
		for _, function := range p.lines[place] {
			if name := p.names[function]; name < uint64(len(p.words)) {
				stack = append(stack, p.words[name])
			}
		}
	}
	return int64(values[0]), stack, goroutine, nil
}

// label returns the value of a label if it is a goroutine's name.
func (p *stackReader) label(message []byte) (name string, err error) {
	var words [3]string // index is the field: 1 the key, 2 the value
	err = eachField(message, func(field int, v uint64, _ []byte) error {
		if field < len(words) && v < uint64(len(p.words)) {
			words[field] = p.words[v]
		}
		return nil
	})
	if words[1] != cputime.Alone {
		return "", err
	}
	return words[2], err
}

var errProfile = errors.New("malformed profile")

// eachField calls f for each field of a message of protocol buffers, with its number or its bytes.
func eachField(message []byte, f func(field int, v uint64, data []byte) error) error {
	for len(message) > 0 {
		key, n := binary.Uvarint(message)
		if n <= 0 {
			return errProfile
		}
		message = message[n:]
		v, n := binary.Uvarint(message)
		if n <= 0 {
			return errProfile
		}
		message = message[n:]
		var data []byte
		switch key & 7 {
		case 0:
		case 2:
			if v > uint64(len(message)) {
				return errProfile
			}
			data, message = message[:v:v], message[v:]
		default: // numbers of fixed size, of which a profile has none
			return errProfile
		}
		if err := f(int(key>>3), v, data); err != nil {
			return err
		}
	}
	return nil
}
