package frame

import (
	"bytes"
	"io"
	"slices"
	"strings"

	"github.com/dsload/dsload/internal/fault"
	"github.com/dsload/dsload/internal/ingest/source/cause"
	"github.com/dsload/dsload/internal/jsonscan"
)

// A belowFramer frames JSON whose records lie below a path of keys: the elements of an array that is the
// value of the last key. Arrays on the way are gone through. What is not on the path is skipped and
// never held; what is a record is as in the format json.
//
// All that a position needs is 25 bits: a place, and for each level, the value that the path's first keys
// lead to, whether an array of it is open and whether the next key was found in its object.
type belowFramer struct {
	jsonValues
	path   []string
	level  int    // how many keys lead to the value that is read
	arrays uint32 // a bit for each level: an array is open
	found  uint32 // a bit for each level: the open object has the next key
	keys   []string
}

// The places inside objects. Those of jsonValues come first; its betweenValues is between values at the top.
const (
	objectBegun      jsonPlace = jsonEnded + 1 + iota // a key, or the object's end
	afterMember                                       // a comma, or the object's end
	afterMemberComma                                  // a key
	memberValue                                       // the value of a key of the path
)

const (
	// MaxRecordKeys is the maximum number of keys in Options.Records.
	MaxRecordKeys = 8
	// TopRecords is the value of Options.Records for records that are not below a key.
	TopRecords = "."
	// maxKey is the longest key that is compared.
	maxKey = 64 << 10
)

// ParseRecords returns the keys of Options.Records, which dots separate.
func ParseRecords(path string) ([]string, error) {
	if path == "" || path == TopRecords {
		return nil, nil
	}
	keys := strings.Split(path, ".")
	switch {
	case slices.Contains(keys, ""):
		return nil, fault.Of(cause.Usage, "a key in it is empty; write keys with dots between them, as in data or a.b")
	case strings.ContainsAny(path, "[]"):
		return nil, fault.Of(cause.Usage, "arrays on the way need no brackets; write keys alone, as in data or a.b")
	case len(keys) > MaxRecordKeys:
		return nil, fault.Of(cause.Usage, "%d keys are more than %d", len(keys), MaxRecordKeys)
	}
	return keys, nil
}

func (f *belowFramer) State() uint32 {
	return uint32(f.place) | uint32(f.level)<<4 | f.arrays<<8 | f.found<<17
}

func (f *belowFramer) Restore(s uint32) {
	f.place, f.level = jsonPlace(s&0xf), min(int(s>>4&0xf), len(f.path))
	f.arrays, f.found = s>>8&0x1ff, s>>17
}

func (f *belowFramer) Next(dst []byte, rec *Record) ([]byte, error) {
	for {
		b, err := f.token()
		if err != nil {
			return dst, err
		}
		rec.Offset, rec.First, rec.Last = f.w.Offset(), true, true
		switch {
		case b == 0 && (f.place == betweenValues || f.place == jsonEnded):
			return dst, io.EOF
		case b == 0:
			f.place = jsonEnded
			rec.Err = fault.Of(cause.Truncated, "the file ends within its JSON; copy the file again")
			return dst, nil
		}
		switch f.place {
		case jsonEnded:
			return dst, io.EOF
		case betweenValues, afterComma, memberValue, arrayBegun:
			if b == ']' && f.place == arrayBegun {
				f.closeArray()
				continue
			}
			if f.level == len(f.path) && f.inArray() {
				f.place = afterComma
				return f.value(dst, rec, b)
			}
			err = f.begin(b, rec)
		case afterElement:
			switch b {
			case ']':
				f.closeArray()
			case ',':
				f.w.Consume(1)
				f.place = afterComma
			default:
				err = noComma(b)
			}
		default:
			err = f.member(b, rec)
		}
		if err != nil || rec.Err != nil {
			return dst, err
		}
	}
}

func (f *belowFramer) bit() uint32 { return 1 << f.level }

func (f *belowFramer) inArray() bool { return f.arrays&f.bit() != 0 }

// begin enters the value on the way to the records that begins with b, or passes over it.
func (f *belowFramer) begin(b byte, rec *Record) error {
	switch {
	case b == '[' && !f.inArray():
		f.arrays |= f.bit()
		f.place = arrayBegun
		f.w.Consume(1)
		return nil
	case b == '{' && f.level < len(f.path):
		f.found &^= f.bit()
		f.place, f.keys = objectBegun, nil
		f.w.Consume(1)
		return nil
	}
	if b != 'n' {
		rec.Err = f.unfit(b)
	}
	if err := f.skipRest(new(jsonscan.Bounds), b); err != nil {
		return err
	}
	f.leave()
	return nil
}

// unfit returns the error for a value on the way that the records cannot be in.
func (f *belowFramer) unfit(b byte) error {
	where := "the value"
	if f.level > 0 {
		where = quotedPath(f.path[:f.level])
	}
	switch {
	case f.level < len(f.path) && b == '[':
		return fault.Of(cause.Records, "%s is an array of arrays, and {records} %s needs objects with the key %q", where,
			f.o.Records, f.path[f.level])
	case f.level < len(f.path):
		return fault.Of(cause.Records, "%s is not an object, and {records} %s needs the key %q in it", where, f.o.Records,
			f.path[f.level])
	case b == '{':
		return fault.Of(cause.Records, "%s is an object, and records are the elements of an array; "+
			"name an array in it, as in {records} %s.KEY", where, f.o.Records)
	}
	return fault.Of(cause.Records, "%s is not an array of records; give {records} another key", where)
}

func quotedPath(path []string) string { return `"` + strings.Join(path, ".") + `"` }

// leave ends a value of the level.
func (f *belowFramer) leave() {
	switch {
	case f.inArray():
		f.place = afterElement
	case f.level == 0:
		f.place = betweenValues
	default:
		f.level--
		f.place = afterMember
	}
}

func (f *belowFramer) closeArray() {
	f.w.Consume(1)
	f.arrays &^= f.bit()
	f.leave()
}

// member continues in an object.
func (f *belowFramer) member(b byte, rec *Record) error {
	switch {
	case b == '}' && f.place != afterMemberComma:
		f.w.Consume(1)
		if f.found&f.bit() == 0 {
			rec.Err = f.missing()
		}
		f.leave()
		return nil
	case b == ',' && f.place == afterMember:
		f.w.Consume(1)
		f.place = afterMemberComma
		return nil
	case b == '"' && f.place != afterMember:
		return f.key()
	}
	return fault.Of(cause.Malformed, "malformed JSON: %s in an object, where %s belongs", named(b),
		map[jsonPlace]string{objectBegun: "a key or '}'", afterMember: "a comma or '}'",
			afterMemberComma: "a key"}[f.place])
}

// missing is the error of an object that lacks the next key.
func (f *belowFramer) missing() error {
	has := "nothing"
	if len(f.keys) > 0 {
		has = strings.Join(f.keys, ", ")
	}
	in := "the object"
	if f.level > 0 {
		in = "an object of " + quotedPath(f.path[:f.level])
	}
	return fault.Of(cause.Records, "{records} %s: %s has no key %q; it has %s", f.o.Records, in, f.path[f.level], has)
}

// key reads a key and the colon after it, and the value where it is not on the path.
func (f *belowFramer) key() error {
	key, err := f.readKey()
	if err != nil {
		return err
	}
	b, err := f.token()
	if err == nil && b != ':' && b != 0 {
		err = fault.Of(cause.Malformed, "malformed JSON: %s where ':' belongs", named(b))
	}
	if err != nil || b == 0 {
		return err
	}
	f.w.Consume(1)
	if b, err = f.token(); err != nil || b == 0 {
		return err
	}
	if len(f.keys) < MaxKeysNamed {
		f.keys = append(f.keys, key[:min(len(key), 100)])
	}
	if key == f.path[f.level] {
		if f.found&f.bit() != 0 {
			return fault.Of(cause.Malformed, "the key %q comes twice in one object", key)
		}
		f.found |= f.bit()
		f.level++
		f.place = memberValue
		return nil
	}
	if err := f.refuseOthers(key, b); err != nil {
		return err
	}
	f.place = afterMember
	return f.skipRest(new(jsonscan.Bounds), b)
}

// refuseOthers returns an error for a key which shows that the path, if it was found and not given, may be wrong.
func (f *belowFramer) refuseOthers(key string, b byte) error {
	switch {
	case !f.o.Found || f.level > 0:
	case slices.Contains(f.o.Fields, key):
		return fault.Of(cause.Unsupported, "the object has the field %q besides records below %q; "+
			"give {records} %s for those, or {records} %s for the object itself", key, f.o.Records, f.o.Records,
			TopRecords)
	case b == '[' && f.beginsObjects():
		return fault.Of(cause.Unsupported, "there are objects below %q and below %q; name one with {records}", f.o.Records,
			key)
	}
	return nil
}

// beginsObjects reports whether the array that the window begins with has an object first.
func (f *belowFramer) beginsObjects() bool {
	for n := 2; ; n = 2 * n {
		more := f.w.Need(n)
		data := f.w.Unread()
		if rest := bytes.TrimLeft(data[1:], " \t\r\n"); len(rest) > 0 || !more || n > maxKey {
			return len(rest) > 0 && rest[0] == '{'
		}
	}
}

// readKey reads a key of an object, its first maxKey bytes.
func (f *belowFramer) readKey() (string, error) {
	var scan jsonscan.Bounds
	var raw []byte
	for !scan.Ended {
		data := f.w.Unread()
		n := scan.Skip(data)
		raw = append(raw, data[:min(n, max(0, maxKey-len(raw)))]...)
		f.w.Consume(n)
		if !scan.Ended && !f.w.fill() {
			return "", f.w.Failed() // nil at the end, which the caller sees again
		}
	}
	text, _, _ := jsonscan.Decode(nil, raw[1:], len(raw))
	return string(text), nil
}

// NewJSON returns the framer of JSON over any number of lines.
func NewJSON(w *Window, o *Options) (Framer, error) {
	values := jsonValues{framing: framing{w: w, o: o}}
	if o.Records == "" || o.Records == TopRecords {
		return &valueFramer{values}, nil
	}
	path, err := ParseRecords(o.Records)
	return &belowFramer{jsonValues: values, path: path}, err
}
