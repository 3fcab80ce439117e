package regex

// clusterSets holds the sets of characters that \X needs.
type clusterSets struct {
	control, joinsLeft, joinsRight, extend, pictographic *charSet
}

func newClusterSets(c *compiler) *clusterSets {
	left := property(setJoinsLeft)
	return &clusterSets{
		control: c.set(intersect(union(union(property("control"), property("lineseparator")),
			union(property("paragraphseparator"), property("format"))),
			union(left, property(setJoinsRight)).negate())),
		joinsLeft:    c.set(left),
		joinsRight:   c.set(property(setJoinsRight)),
		extend:       c.set(intersect(left, property(setExtend))),
		pictographic: c.set(property("extendedpictographic")),
	}
}

const zeroWidthJoiner = 0x200D

// end returns the end of the extended grapheme cluster that begins at pos < len(text).
func (g *clusterSets) end(text []byte, pos int) int {
	prev, n := decode(text, pos)
	pos += n
	emoji := g.pictographic.has(prev)  // so far, the cluster is a pictograph with extensions
	flags := isRegionalIndicator(prev) // an odd number of regional indicators precedes
	var joined bool                    // the last character was the joiner after a pictograph
	for ; pos < len(text); pos += n {
		var c rune
		c, n = decode(text, pos)
		switch {
		case prev == '\r' && c == '\n':
		case g.isControl(prev) || g.isControl(c):
			return pos
		case g.joinsLeft.has(c), g.joinsRight.has(prev):
		case hangulJoins(prev, c):
		case joined && g.pictographic.has(c):
		case flags && isRegionalIndicator(c) && isRegionalIndicator(prev):
		default:
			return pos
		}
		joined = emoji && c == zeroWidthJoiner
		emoji = emoji && g.extend.has(c) && !joined || g.pictographic.has(c)
		flags = isRegionalIndicator(c) && !(flags && isRegionalIndicator(prev))
		prev = c
	}
	return pos
}

func (g *clusterSets) isControl(c rune) bool { return c < ' ' || g.control.has(c) }

func isRegionalIndicator(c rune) bool { return c >= 0x1F1E6 && c <= 0x1F1FF }

// hangulJoins reports whether two characters belong to one Hangul syllable.
func hangulJoins(a, b rune) bool {
	leading := func(c rune) bool { return c >= 0x1100 && c <= 0x115F || c >= 0xA960 && c <= 0xA97C }
	vowel := func(c rune) bool { return c >= 0x1160 && c <= 0x11A7 || c >= 0xD7B0 && c <= 0xD7C6 }
	trailing := func(c rune) bool { return c >= 0x11A8 && c <= 0x11FF || c >= 0xD7CB && c <= 0xD7FB }
	syllable := func(c rune) bool { return c >= 0xAC00 && c <= 0xD7A3 }
	open := func(c rune) bool { return syllable(c) && (c-0xAC00)%28 == 0 }
	switch {
	case leading(a):
		return leading(b) || vowel(b) || syllable(b)
	case vowel(a) || open(a):
		return vowel(b) || trailing(b)
	case trailing(a) || syllable(a):
		return trailing(b)
	}
	return false
}
