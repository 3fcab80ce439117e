package regex

import (
	"strings"
	"sync"

	"github.com/dsload/dsload/tokenize/internal/charclass"
)

// Sets that \p{} cannot name; they make \X.
const (
	setJoinsLeft  = " joins left"    // no boundary between a letter and one of these
	setJoinsRight = " joins right"   // no boundary between one of these and a letter
	setExtend     = " between emoji" // may come between an emoji and the joiner that joins it to the next
)

// expansion is a character that equals a string under (?i), as U+00DF equals ss.
type expansion struct {
	char rune
	text []rune
}

var expansions = sync.OnceValue(func() (list []expansion) {
	for _, e := range charclass.Lists(" expansions") {
		list = append(list, expansion{e[0], e[1:]})
	}
	return list
})

// foldClasses lists the characters that are equal under (?i).
var foldClasses = sync.OnceValue(func() [][]rune { return charclass.Lists(" folds") })

var folds = sync.OnceValue(func() map[rune][]rune {
	m := make(map[rune][]rune)
	for _, class := range foldClasses() {
		for _, c := range class {
			m[c] = class
		}
	}
	return m
})

// foldClass returns the characters that equal c under (?i), including c.
func foldClass(c rune) []rune {
	if f := folds()[c]; f != nil {
		return f
	}
	return []rune{c}
}

// property returns the characters of a property that the package itself uses.
func property(name string) runeSet { return setOf(charclass.Set(name)) }

func setOf(s charclass.Ranges) runeSet {
	set := make(runeSet, len(s))
	for i, r := range s {
		set[i] = runeRange{r.First, r.Last}
	}
	return set
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
	s, ok := charclass.Property(name)
	return setOf(s), ok
}
