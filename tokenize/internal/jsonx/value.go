package jsonx

import (
	"fmt"
	"slices"
)

// Value is a small part of a document as a tree. A large document should be walked with a Scanner.
type Value struct {
	Kind    byte // '{', '[', '"', '0' (number), 't', 'f', 'n'
	Text    string
	Elems   []Value
	Members []Member
	Offset  int
}

// Member is a key of an object with its value.
type Member struct {
	Key   string
	Value Value
}

// Value reads a value as a tree of at most maxNodes values.
func (s *Scanner) Value(maxNodes int) (Value, error) {
	left := maxNodes
	return s.value(&left)
}

func (s *Scanner) value(left *int) (v Value, err error) {
	if *left--; *left < 0 {
		return v, s.Errorf("too many values")
	}
	v.Kind = s.Peek()
	v.Offset = s.pos
	switch v.Kind {
	case '{':
		err = s.Object(func(key []byte) error {
			k := string(key)
			e, err := s.value(left)
			for i := range v.Members {
				if v.Members[i].Key == k { // the last of equal keys counts
					v.Members[i].Value = e
					return err
				}
			}
			v.Members = append(v.Members, Member{k, e})
			return err
		})
	case '[':
		err = s.Array(func() error {
			e, err := s.value(left)
			v.Elems = append(v.Elems, e)
			return err
		})
	case '"':
		var b []byte
		b, err = s.String()
		v.Text = string(b)
	case 't', 'f', 'n':
		err = s.Skip()
	default:
		var b []byte
		b, err = s.number()
		v.Kind, v.Text = '0', string(b)
	}
	return v, err
}

// Get returns the member called key, or a null value.
func (v Value) Get(key string) Value {
	for _, m := range v.Members {
		if m.Key == key {
			return m.Value
		}
	}
	return Value{Kind: 'n', Offset: v.Offset}
}

// Has reports whether an object has a member called key.
func (v Value) Has(key string) bool {
	return slices.ContainsFunc(v.Members, func(m Member) bool { return m.Key == key })
}

// IsNull reports whether the value is null or absent.
func (v Value) IsNull() bool { return v.Kind == 'n' }

// Errorf returns an error at the value.
func (v Value) Errorf(format string, args ...any) error {
	return &Error{Offset: v.Offset, Msg: fmt.Sprintf(format, args...)}
}
