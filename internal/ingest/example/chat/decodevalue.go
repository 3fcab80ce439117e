package chat

import (
	"math"
	"math/big"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/dsload/dsload/internal/fault"
	"github.com/dsload/dsload/internal/ingest/jinja"
	"github.com/dsload/dsload/internal/jsonscan"
)

// token skips white space and returns the byte after it, 0 at the end.
func (d *decoder) token() byte {
	for d.pos < len(d.data) {
		switch b := d.data[d.pos]; b {
		case ' ', '\t', '\r', '\n':
			d.pos++
		default:
			return b
		}
	}
	return 0
}

func (d *decoder) value() any {
	switch b := d.token(); {
	case b == '"':
		return d.string()
	case b == '{':
		return d.object()
	case b == '[':
		return d.list()
	case b == '-' || b >= '0' && b <= '9':
		return d.number()
	}
	return d.word()
}

func (d *decoder) nest() {
	if d.depth++; d.depth > maxNesting {
		d.malformed("nested deeper than %d", maxNesting)
	}
}

func (d *decoder) object() *jinja.Dict {
	d.nest()
	d.spend(objectCost)
	d.pos++
	start, _ := d.build.Mark()
	for first := true; ; first = false {
		b := d.token()
		if b == '}' && (first || d.data[d.pos-1] != ',') {
			break
		}
		if !first {
			if b != ',' {
				d.malformed("no comma after a value")
			}
			d.pos++
			b = d.token()
		}
		if b != '"' {
			d.malformed("no key")
		}
		key := d.key(d.string())
		if d.token() != ':' {
			d.malformed("no colon after a key")
		}
		d.pos++
		d.spend(memberCost)
		if name, _ := key.(string); name == toolFields[0] && d.depth == 1 && d.token() == '[' {
			d.build.Member(key, d.sharedTools())
		} else if name == "role" && d.token() == '"' { // few are different
			d.build.Member(key, d.key(d.string()))
		} else {
			d.build.Member(key, d.value())
		}
	}
	d.pos++
	d.depth--
	return d.build.Dict(start)
}

// sharedTools decodes the list of a record's tools.
func (d *decoder) sharedTools() *jinja.List {
	t := &d.tools
	if t.raw == "" || !strings.HasPrefix(d.data[d.pos:], t.raw) {
		start := d.pos
		list := d.list()
		if d.pos-start <= maxSharedTools {
			*t = sharedTools{raw: strings.Clone(d.data[start:d.pos])}
		}
		return list
	}
	if t.list == nil {
		inner := decoder{reused: d.reused, build: new(jinja.Builder), raw: []byte(t.raw), data: t.raw, room: d.room,
			depth: d.depth}
		t.list = inner.list()
		t.cost, t.lone = d.room-inner.room, inner.lone
	}
	d.spend(int(t.cost))
	d.pos, d.lone = d.pos+len(t.raw), d.lone+t.lone
	return t.list
}

func (d *decoder) list() *jinja.List {
	d.nest()
	d.spend(objectCost)
	d.pos++
	_, start := d.build.Mark()
	if d.token() == ']' {
		d.pos++
		d.depth--
		return &jinja.List{}
	}
	for {
		d.spend(valueCost)
		d.build.Item(d.value())
		b := d.token()
		if b != ',' && b != ']' {
			d.malformed("no comma in a list")
		}
		if d.pos++; b == ']' {
			d.depth--
			return d.build.List(start)
		}
	}
}

// string decodes a string from its opening quote. One without escapes is a part of the data.
func (d *decoder) string() string {
	d.pos++
	start, escaped := d.pos, false
	for d.pos < len(d.data) {
		switch b := d.data[d.pos]; {
		case b == '"':
			raw := d.data[start:d.pos]
			d.pos++
			if !escaped {
				d.spend(stringCost + len(raw))
				return raw
			}
			d.spend(stringCost + len(raw) + len(d.text))
			d.text = append(d.text, raw...)
			return string(d.text)
		case b < ' ':
			d.malformed("a control character in a string")
		case b == '\\':
			if !escaped {
				escaped, d.text = true, d.text[:0]
			}
			d.text = append(d.text, d.data[start:d.pos]...)
			d.text = d.escape(d.text)
			start = d.pos
		default:
			d.pos += jsonscan.Plain(d.raw[d.pos:])
		}
	}
	d.malformed("a string is not closed")
	return ""
}

func (d *decoder) escape(out []byte) []byte {
	if d.pos+1 >= len(d.data) {
		d.malformed("a string is not closed")
	}
	b := d.data[d.pos+1]
	d.pos += 2
	switch b {
	case '"', '\\', '/':
		return append(out, b)
	case 'b':
		return append(out, '\b')
	case 'f':
		return append(out, '\f')
	case 'n':
		return append(out, '\n')
	case 'r':
		return append(out, '\r')
	case 't':
		return append(out, '\t')
	case 'u':
		r := d.hex(d.pos)
		if r < 0 {
			d.malformed("a bad escape")
		}
		d.pos += 4
		if utf16.IsSurrogate(r) {
			low := rune(-1)
			if d.pos+1 < len(d.data) && d.data[d.pos] == '\\' && d.data[d.pos+1] == 'u' {
				low = d.hex(d.pos + 2)
			}
			if r = utf16.DecodeRune(r, low); r == utf8.RuneError {
				d.lone++
			} else {
				d.pos += 6
			}
		}
		return utf8.AppendRune(out, r)
	}
	d.pos -= 2
	d.malformed("a bad escape")
	return nil
}

// hex returns the value of the four hexadecimal digits at an offset, -1 if they are not digits.
func (d *decoder) hex(at int) rune {
	if at+4 > len(d.data) {
		return -1
	}
	v := rune(0)
	for _, b := range []byte(d.data[at : at+4]) {
		switch {
		case '0' <= b && b <= '9':
			v = v<<4 | rune(b-'0')
		case 'a' <= b|0x20 && b|0x20 <= 'f':
			v = v<<4 | rune(b|0x20-'a'+10)
		default:
			return -1
		}
	}
	return v
}

func (d *decoder) word() any {
	rest := d.data[d.pos:]
	took := func(word string, value any) any {
		d.pos += len(word)
		return value
	}
	switch {
	case strings.HasPrefix(rest, "true"):
		return took("true", true)
	case strings.HasPrefix(rest, "false"):
		return took("false", false)
	case strings.HasPrefix(rest, "null"):
		return took("null", nil)
	case strings.HasPrefix(rest, "NaN"):
		return took("NaN", math.NaN())
	case strings.HasPrefix(rest, "Infinity"):
		return took("Infinity", math.Inf(1))
	}
	d.malformed("no value")
	return nil
}

func (d *decoder) number() any {
	rest := d.data[d.pos:]
	if strings.HasPrefix(rest, "-Infinity") {
		d.pos += len("-Infinity")
		return math.Inf(-1)
	}
	n, isFloat := jsonscan.NumberLen(d.raw[d.pos:])
	if n == 0 {
		d.malformed("no value")
	}
	if n > maxNumberBytes {
		panic(fault.Of(ErrTooLarge, "a number of %d digits", n))
	}
	d.spend(stringCost)
	d.pos += n
	text := rest[:n]
	if !isFloat {
		if v, err := strconv.ParseInt(text, 10, 64); err == nil {
			return v
		}
		v, _ := new(big.Int).SetString(text, 10)
		return v
	}
	f, _ := strconv.ParseFloat(text, 64) // infinite if it is too large, as in Python
	return f
}
