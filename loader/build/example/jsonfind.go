package example

// foundValue is the value that a path leads to: its first byte, 0 if there is none, and its offsets
// in the record. escaped is set for a string with escapes.
type foundValue struct {
	kind       byte
	start, end int
	escaped    bool
}

// inside returns the inside of a string.
func (v foundValue) inside() jsonSpan { return jsonSpan{v.start + 1, v.end - 1, v.escaped} }

// find returns the value that a path leads to in a JSON object, and checks the grammar of the whole
// object.
func (s *jsonScanner) find(data []byte, p *FieldPath) (foundValue, error) {
	s.data, s.pos, s.nesting = data, 0, s.nesting[:0]
	var literal, nested foundValue
	if err := s.openObject(); err != nil {
		return literal, err
	}
	plain := p.isPlain()
	for first := true; ; first = false {
		key, more, err := s.nextMember(first)
		if err != nil {
			return literal, err
		}
		if !more {
			break
		}
		switch {
		case s.isKey(key, p.name):
			literal, err = s.takeValue()
		case !plain && s.isKey(key, p.steps[0].field):
			nested, err = s.follow(p.steps[1:])
		default:
			s.token()
			err = s.skipValue()
		}
		if err != nil {
			return literal, err
		}
	}
	if s.token() != 0 || s.pos < len(s.data) {
		return literal, s.malformed("something after the object")
	}
	if literal.kind != 0 {
		return literal, nil
	}
	return nested, nil
}

// takeValue reads a value and returns where it lies.
func (s *jsonScanner) takeValue() (v foundValue, err error) {
	v.kind, v.start = s.token(), s.pos
	if v.kind == '"' {
		var span jsonSpan
		span, err = s.skipString()
		v.escaped = span.escaped
	} else {
		err = s.skipValue()
	}
	v.end = s.pos
	return v, err
}

// follow reads a value and returns the value inside it that the steps lead to.
func (s *jsonScanner) follow(steps []pathStep) (v foundValue, err error) {
	if len(steps) == 0 {
		return s.takeValue()
	}
	switch b := s.token(); {
	case b == '{' && steps[0].index < 0:
		return s.followField(steps)
	case b == '[' && steps[0].index >= 0:
		return s.followIndex(steps)
	}
	return v, s.skipValue()
}

func (s *jsonScanner) followField(steps []pathStep) (v foundValue, err error) {
	s.pos++
	for first := true; ; first = false {
		key, more, err := s.nextMember(first)
		if err != nil || !more {
			return v, err
		}
		if s.isKey(key, steps[0].field) {
			v, err = s.follow(steps[1:])
		} else {
			s.token()
			err = s.skipValue()
		}
		if err != nil {
			return v, err
		}
	}
}

func (s *jsonScanner) followIndex(steps []pathStep) (v foundValue, err error) {
	s.pos++
	if s.token() == ']' {
		s.pos++
		return v, nil
	}
	for i := 0; ; i++ {
		if i == steps[0].index {
			v, err = s.follow(steps[1:])
		} else {
			s.token()
			err = s.skipValue()
		}
		if err != nil {
			return v, err
		}
		b := s.token()
		if b != ']' && b != ',' {
			return v, s.malformed("no comma in a nested value")
		}
		if s.pos++; b == ']' {
			return v, nil
		}
	}
}
