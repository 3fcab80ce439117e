package jinja

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// maxRange is the length of the longest range, as in the sandbox.
const maxRange = 100_000

// globalFunctions are the functions that every template has, by name. Only a template with a date has
// strftime_now.
var globalFunctions = functions(map[string]func(*execution, *arguments) any{
	"range": rangeFunction, "namespace": namespaceFunction, "joiner": joinerFunction,
	"cycler": func(e *execution, a *arguments) any {
		if len(a.positional) == 0 {
			e.fail("at least one item has to be provided")
		}
		return &cycler{items: a.positional}
	},
	"dict": func(e *execution, a *arguments) any {
		d := &Dict{}
		e.pairs(d, "dict", a)
		return d
	},
	"raise_exception": func(e *execution, a *arguments) any {
		panic(&RunError{0, &RaisedError{e.str(e.required("raise_exception", a, 0))}})
	},
	"strftime_now": func(e *execution, a *arguments) any { return e.strftime(e.textArgument("strftime_now", a, 0)) },
})

func functions(list map[string]func(*execution, *arguments) any) map[string]any {
	g := make(map[string]any, len(list))
	for name, f := range list {
		g[name] = &function{name: name, call: f}
	}
	return g
}

// pairs adds the arguments of dict() or namespace() to a dict.
func (e *execution) pairs(d *Dict, function string, a *arguments) {
	if len(a.positional) > 1 {
		e.fail("%s expected at most 1 argument, got %d", function, len(a.positional))
	}
	if len(a.positional) == 1 {
		if from, ok := a.positional[0].(*Dict); ok {
			from.readAll()
			for i := range from.entries {
				e.put(d, from.entries[i].key, from.entries[i].value)
			}
		} else {
			for _, item := range e.iterate(a.positional[0]) {
				pair := e.iterate(item)
				if len(pair) != 2 {
					e.fail("dictionary update sequence element has length %d; 2 is required", len(pair))
				}
				e.put(d, pair[0], pair[1])
			}
		}
	}
	d.entries = slices.Grow(d.entries, a.named.Len())
	for i := range a.named.entries {
		e.put(d, a.named.entries[i].key, a.named.entries[i].value)
	}
}

func namespaceFunction(e *execution, a *arguments) any {
	n := &namespace{}
	e.pairs(&n.Dict, "namespace", a)
	for i := range n.entries {
		if name, ok := n.entries[i].key.(string); ok && strings.HasPrefix(name, "_") {
			e.fail("names in a namespace cannot begin with an underscore, as %q does", name)
		}
	}
	return n
}

func joinerFunction(e *execution, a *arguments) any {
	separator, used := a.get(0, "sep", ", "), false
	return &function{name: "joiner", call: func(*execution, *arguments) any {
		if !used {
			used = true
			return ""
		}
		return separator
	}}
}

// strftime formats the time as Python's strftime does in the C locale.
func (e *execution) strftime(format string) string {
	t, p := e.now, printer{e: e}
	for i := 0; i < len(format); i++ {
		if format[i] != '%' || i+1 == len(format) {
			p.write(format[i : i+1])
			continue
		}
		i++
		pad := byte(0)
		if c := format[i]; (c == '-' || c == '_' || c == '0' || c == '^') && i+1 < len(format) {
			pad = c
			i++
		}
		s, ok := timeField(t, format[i])
		if !ok {
			s = "%" + string(format[i])
		}
		switch pad {
		case '-':
			if trimmed := strings.TrimLeft(s, "0 "); ok && isDigit(s[len(s)-1]) {
				if s = trimmed; s == "" {
					s = "0"
				}
			}
		case '_':
			for n := 0; n < len(s)-1 && s[n] == '0'; n++ {
				s = s[:n] + " " + s[n+1:]
			}
		case '^':
			s = strings.ToUpper(s)
		}
		p.write(s)
	}
	return string(p.out)
}

func timeField(t time.Time, field byte) (string, bool) {
	layouts := map[byte]string{'a': "Mon", 'A': "Monday", 'b': "Jan", 'h': "Jan", 'B': "January", 'd': "02", 'm': "01",
		'y': "06", 'Y': "2006", 'H': "15", 'I': "03", 'M': "04", 'S': "05", 'p': "PM", 'j': "002", 'D': "01/02/06",
		'x': "01/02/06", 'F': "2006-01-02", 'T': "15:04:05", 'X': "15:04:05", 'R': "15:04", 'r': "03:04:05 PM",
		'e': "_2", 'f': "000000", 'c': "Mon Jan _2 15:04:05 2006"}
	if field == 'f' {
		return fmt.Sprintf("%06d", t.Nanosecond()/1000), true
	}
	if layout, ok := layouts[field]; ok {
		return t.Format(layout), true
	}
	isoYear, isoWeek := t.ISOWeek()
	weekday := int(t.Weekday())
	switch field {
	case 'C':
		return fmt.Sprintf("%02d", t.Year()/100), true
	case 'k':
		return fmt.Sprintf("%2d", t.Hour()), true
	case 'l':
		return fmt.Sprintf("%2d", (t.Hour()+11)%12+1), true
	case 'U':
		return fmt.Sprintf("%02d", (t.YearDay()+6-weekday)/7), true
	case 'W':
		return fmt.Sprintf("%02d", (t.YearDay()+6-(weekday+6)%7)/7), true
	case 'V':
		return fmt.Sprintf("%02d", isoWeek), true
	case 'G':
		return strconv.Itoa(isoYear), true
	case 'g':
		return fmt.Sprintf("%02d", isoYear%100), true
	case 'u':
		return strconv.Itoa((weekday+6)%7 + 1), true
	case 'w':
		return strconv.Itoa(weekday), true
	case 's':
		return strconv.FormatInt(t.Unix(), 10), true
	case 'n':
		return "\n", true
	case 't':
		return "\t", true
	case '%':
		return "%", true
	case 'z', 'Z':
		return "", true // the date has no time zone
	}
	return "", false
}

func rangeFunction(e *execution, a *arguments) any {
	bounds := [3]int64{0, 0, 1}
	for i, v := range a.positional {
		n, ok := toInt(v)
		if !ok || i > 2 {
			e.fail("range wants up to 3 whole numbers")
		}
		bounds[i] = n
	}
	switch len(a.positional) {
	case 0:
		e.fail("range expected at least 1 argument, got 0")
	case 1:
		bounds[0], bounds[1] = 0, bounds[0]
	}
	start, stop, step := bounds[0], bounds[1], bounds[2]
	if step == 0 {
		e.fail("range() arg 3 must not be zero")
	}
	out := &List{kind: ofRange, numbers: &bounds}
	for i := start; step > 0 && i < stop || step < 0 && i > stop; i += step {
		if len(out.Items) == maxRange {
			e.fail("Range too big. The sandbox blocks ranges larger than MAX_RANGE (%d).", maxRange)
		}
		e.charge(valueBytes)
		out.Items = append(out.Items, i)
		if i > 0 && step > 0 && i > (1<<62) || i < 0 && step < 0 && i < -(1<<62) {
			break
		}
	}
	return out
}
