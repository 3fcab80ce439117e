package regex

import (
	_ "embed"
	"encoding/binary"
	"sort"
	"strings"
	"sync"
)

// gen/properties.py describes the format of propertyData.
//
//go:embed properties.bin
var propertyData []byte

// Sets in properties.bin that \p{} cannot name; they make \X.
const (
	setJoinsLeft  = " joins left"    // no boundary between a letter and one of these
	setJoinsRight = " joins right"   // no boundary between one of these and a letter
	setExtend     = " between emoji" // may come between an emoji and the joiner that joins it to the next
)

type propertyName struct {
	name string
	set  int
}

// properties is the decoded directory of properties.bin. Sets are decoded on demand.
type properties struct {
	sets        [][]byte // encoded ranges
	names       []propertyName
	foldClasses [][]rune        // characters equal under (?i)
	folds       map[rune][]rune // the class of each of them
	expansions  []expansion
}

// expansion is a character that equals a string under (?i), as U+00DF equals ss.
type expansion struct {
	char rune
	text []rune
}

var loadProperties = sync.OnceValue(func() *properties {
	data := propertyData
	next := func() int {
		n, size := binary.Uvarint(data)
		data = data[size:]
		return int(n)
	}
	p := &properties{sets: make([][]byte, next()), folds: make(map[rune][]rune)}
	for i := range p.sets {
		start := data
		for range 2 * next() {
			next()
		}
		p.sets[i] = start[:len(start)-len(data)]
	}
	p.names = make([]propertyName, next())
	for i := range p.names {
		n := next()
		p.names[i].name, data = string(data[:n]), data[n:]
		p.names[i].set = next()
	}
	for range next() {
		class := make([]rune, next())
		for i := range class {
			class[i] = rune(next())
		}
		p.foldClasses = append(p.foldClasses, class)
		for _, c := range class {
			p.folds[c] = class
		}
	}
	p.expansions = make([]expansion, next())
	for i := range p.expansions {
		e := expansion{char: rune(next())}
		e.text = make([]rune, next())
		for j := range e.text {
			e.text[j] = rune(next())
		}
		p.expansions[i] = e
	}
	return p
})

// property returns the characters of a property by its name in properties.bin.
func property(name string) (runeSet, bool) {
	p := loadProperties()
	i := sort.Search(len(p.names), func(i int) bool { return p.names[i].name >= name })
	if i == len(p.names) || p.names[i].name != name {
		return nil, false
	}
	data := p.sets[p.names[i].set]
	next := func() rune {
		n, size := binary.Uvarint(data)
		data = data[size:]
		return rune(n)
	}
	set := make(runeSet, 0, next())
	end := rune(0)
	for len(data) > 0 {
		lo := end + next()
		hi := lo + next()
		set = append(set, runeRange{lo, hi})
		end = hi
	}
	return set, true
}

// userProperty looks up the name in \p{...}, ignoring case, spaces, '-' and '_'.
func userProperty(name string) (runeSet, bool) {
	name = strings.Map(func(r rune) rune {
		switch {
		case r == ' ' || r == '-' || r == '_':
			return -1
		case r >= 'A' && r <= 'Z':
			return r + 'a' - 'A'
		}
		return r
	}, name)
	return property(name)
}

// mustProperty is property for names that the package itself uses.
func mustProperty(name string) runeSet {
	s, ok := property(name)
	if !ok {
		panic("regex: properties.bin lacks " + name)
	}
	return s
}

// foldClass returns the characters that equal c under (?i), including c.
func foldClass(c rune) []rune {
	if f := loadProperties().folds[c]; f != nil {
		return f
	}
	return []rune{c}
}
