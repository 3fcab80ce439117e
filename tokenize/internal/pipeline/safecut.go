package pipeline

import "github.com/dsload/dsload/tokenize/internal/added"

// SafeCut implements Tokenizer.SafeCut.
func (p *Pipeline) SafeCut(text []byte) int {
	if p.Segments == nil || len(p.Normalizer) > 0 || len(p.PreTokenizer) > 0 {
		if !p.CutAtSpaces {
			return 0
		}
		return p.cutAtSpace(text)
	}
	// The engine knows where a segment may be cut. The segment begins after the last added token
	// before the cut.
	matches := p.allMatches(text)
	limit := len(text)
	for range maxTries {
		for len(matches) > 0 && matches[len(matches)-1].End > limit {
			limit = min(limit, matches[len(matches)-1].Start)
			matches = matches[:len(matches)-1]
		}
		start := 0
		if len(matches) > 0 {
			start = matches[len(matches)-1].End
		}
		n := 0
		if start < limit {
			n = p.Segments.SafeCut(text[start:limit])
		}
		if n <= 0 {
			if len(matches) == 0 {
				return 0
			}
			limit = matches[len(matches)-1].Start
			continue
		}
		if n += start; n < len(text) || limit == len(text) {
			if p.Added.Cuttable(text, n) && p.AddedNormalized.Cuttable(text, n) {
				return n
			}
		}
		limit = n - 1
	}
	return 0
}

// allMatches finds the added tokens of text, provided that no normalizer runs between the two
// searches.
func (p *Pipeline) allMatches(text []byte) []added.Match {
	matches := p.Added.Append(nil, text)
	if p.AddedNormalized == nil {
		return matches
	}
	var all []added.Match
	inner := func(from, to int) {
		if from >= to {
			return
		}
		for _, m := range p.AddedNormalized.Append(nil, text[from:to]) {
			all = append(all, added.Match{Start: from + m.Start, End: from + m.End, ID: m.ID})
		}
	}
	done := 0
	for _, m := range matches {
		inner(done, m.Start)
		all = append(all, m)
		done = m.End
	}
	inner(done, len(text))
	return all
}

// maxTries bounds the search for a cut that the added tokens allow.
const maxTries = 64

// cutAtSpace returns the position of the last space between an ASCII letter or digit and an ASCII
// letter.
func (p *Pipeline) cutAtSpace(text []byte) int {
	tries := 0
	for n := len(text) - 2; n > 0; n-- {
		if text[n] == ' ' && isLetter(text[n+1]) && (isLetter(text[n-1]) || text[n-1]-'0' < 10) {
			if p.Added.Cuttable(text, n) && p.AddedNormalized.Cuttable(text, n) {
				return n
			}
			if tries++; tries == maxTries {
				return 0
			}
		}
	}
	return 0
}

func isLetter(c byte) bool { return c|0x20 >= 'a' && c|0x20 <= 'z' }
