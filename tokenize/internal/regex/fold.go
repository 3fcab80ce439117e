package regex

import "slices"

// Under (?i) some characters equal strings: "ss" in a pattern matches U+00DF, and U+00DF matches
// "SS". joinFolds finds the strings in runs of literals, finishFold adds the strings that equal a
// single literal, and foldedText returns a node that matches a string and its folds.

// maxFolds limits the alternatives that a pattern may get: overlapping strings multiply them.
const maxFolds = 1000

// joinFolds rewrites runs of foldable literals so that they also match the characters that equal
// part of the run.
func (p *parser) joinFolds(items []*node) []*node {
	var out []*node
	for i := 0; i < len(items); {
		if !items[i].foldable {
			out = append(out, items[i])
			i++
			continue
		}
		j := i
		for j < len(items) && items[j].foldable {
			j++
		}
		out = append(out, p.foldRun(items[i:j])...)
		i = j
	}
	return out
}

// foldRun is joinFolds for one run. At each position the run continues with its own character or
// with one that equals the next few.
func (p *parser) foldRun(run []*node) []*node {
	var out []*node
	for i := 0; i < len(run); i++ {
		p.grow(run[i])
		width := 0
		var chars runeSet
		for _, e := range expansions() {
			if n := len(e.text); i+n <= len(run) && equalFolded(run[i:i+n], e.text) {
				if n < width {
					continue
				}
				if n > width {
					width, chars = n, nil
				}
				chars = append(chars, runeRange{e.char, e.char})
			}
		}
		if width == 0 {
			out = append(out, finishFold(run[i]))
			continue
		}
		if p.folds++; p.folds > maxFolds {
			p.fail("too many strings that equal characters under (?i)")
		}
		// The rest of the run is in both branches, since a character may equal a string that begins
		// inside this one.
		own := catOf(append([]*node{finishFold(run[i])}, p.foldRun(run[i+1:])...))
		other := catOf(append([]*node{{kind: nodeSet, set: chars.normalize()}}, p.foldRun(run[i+width:])...))
		return append(out, altOf([]*node{own, other}))
	}
	return out
}

func equalFolded(run []*node, text []rune) bool {
	for i, c := range text {
		if !slices.Contains(foldClass(c), run[i].literal) {
			return false
		}
	}
	return true
}

// finishFold adds the strings that a literal equals as alternatives.
func finishFold(n *node) *node {
	if !n.foldable {
		return n
	}
	alternatives := []*node{{kind: nodeSet, set: n.set}}
	for _, e := range expansions() {
		if e.char == n.literal {
			alternatives = append(alternatives, foldedText(e.text))
		}
	}
	return altOf(alternatives)
}

func foldedText(text []rune) *node {
	subs := make([]*node, len(text))
	for i, c := range text {
		subs[i] = &node{kind: nodeSet, set: foldedChar(c)}
	}
	return catOf(subs)
}

func foldedChar(c rune) runeSet {
	var set runeSet
	for _, d := range foldClass(c) {
		set = append(set, runeRange{d, d})
	}
	return set.normalize()
}
