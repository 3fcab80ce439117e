// Package synth generates text for sources of the kind synth://wikitext and synth://recipes, with
// ?seed=N (default 1), and docs=N or bytes=S where it should end; otherwise it has no end. Document
// n depends on the seed and on n alone, so any position can be reached at no cost. The bytes are
// the same on every platform, because only integers are used. All seeds share one vocabulary: they
// are corpora of one language.
package synth

import (
	"errors"
	"fmt"
	"maps"
	"math/bits"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/dsload/dsload/internal/units"
)

// A Kind is what generated documents look like.
type Kind int

const (
	// Article is an article of WikiText: headings and paragraphs, with the blank lines after it.
	Article Kind = iota
	// Recipe is a CSV record of RecipeNLG, without its line end.
	Recipe
)

// kinds are the kinds by the host of their address.
var kinds = map[string]Kind{"wikitext": Article, "recipes": Recipe}

// A Spec is a parsed address.
type Spec struct {
	Kind  Kind
	Seed  uint64
	Docs  int64 // 0: no limit
	Bytes int64 // the text ends after the document that reaches it; 0: no limit
}

// Parse reads an address.
func Parse(address string) (*Spec, error) {
	u, err := url.Parse(address)
	if err != nil {
		return nil, err
	}
	s := &Spec{Seed: 1}
	var known bool
	if s.Kind, known = kinds[u.Host]; !known {
		return nil, errors.New("there is synth://wikitext and synth://recipes")
	}
	if u.Path != "" && u.Path != "/" || u.User != nil || u.Fragment != "" {
		return nil, fmt.Errorf("nothing but ?seed=N&docs=N&bytes=S may follow synth://%s", u.Host)
	}
	values, err := url.ParseQuery(u.RawQuery)
	if err != nil {
		return nil, err
	}
	for _, key := range slices.Sorted(maps.Keys(values)) {
		v := values[key]
		ok := len(v) == 1
		switch {
		case !ok:
		case key == "seed":
			s.Seed, err = strconv.ParseUint(v[0], 10, 64)
			ok = err == nil
		case key == "docs":
			s.Docs, ok = positive(v[0])
		case key == "bytes":
			s.Bytes, ok = positive(v[0])
		default:
			return nil, fmt.Errorf("unknown parameter %q; there are seed, docs and bytes", key)
		}
		if !ok {
			return nil, fmt.Errorf("%s=%s is not one number above 0", key, strings.Join(v, ","))
		}
	}
	return s, nil
}

// positive parses a number above 0, such as 1000, 1e6, 64MiB or 2GB.
func positive(s string) (int64, bool) {
	n, err := units.ParseSize(s)
	return n, err == nil && n > 0
}

// Size returns the limit in bytes, -1 if it is not given.
func (s *Spec) Size() int64 {
	if s.Bytes == 0 {
		return -1
	}
	return s.Bytes
}

// TextBytes estimates the size of the text, -1 if it has no end.
func (s *Spec) TextBytes() int64 {
	switch {
	case s.Docs == 0 && s.Bytes == 0:
		return -1
	case s.Docs == 0:
		return s.Bytes
	}
	mean := int64(12600) // bytes of an article
	if s.Kind == Recipe {
		mean = 830
	}
	if s.Bytes > 0 && s.Docs > s.Bytes/mean {
		return s.Bytes
	}
	return min(s.Docs, 1<<40) * mean
}

// Ended reports whether the text ends before document n, which would begin at byte offset.
func (s *Spec) Ended(n, offset int64) bool {
	return s.Docs > 0 && n >= s.Docs || s.Bytes > 0 && offset >= s.Bytes
}

// Append appends document n to dst.
func (s *Spec) Append(dst []byte, n int64) []byte {
	mix := func(x uint64) uint64 { // splitmix64's finisher
		x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
		x = (x ^ x>>27) * 0x94d049bb133111eb
		return x ^ x>>31
	}
	w := textWriter{tables: tables(), rng: random(mix(mix(s.Seed+weyl) + uint64(n)*weyl)), dst: dst}
	if s.Kind == Recipe {
		w.recipe(n)
	} else {
		w.article()
	}
	return w.dst
}

// A random is a sequence of 64-bit numbers: a Weyl sequence whose every term is mixed by one wide
// multiplication (the scheme of wyrand, with constants of our own choosing), good enough for
// statistics and two nanoseconds a number.
type random uint64

const (
	weyl  = 0x9e3779b97f4a7c15 // 2^64 over the golden ratio, odd
	mixer = 0xd1342543de82ef95 // odd, without structure
)

func (r *random) next() uint64 {
	*r += weyl
	high, low := bits.Mul64(uint64(*r), uint64(*r)^mixer)
	return high ^ low
}

// below returns a number below n, evenly but for n / 2^32.
func (r *random) below(n int) int { return int(r.next() >> 32 * uint64(n) >> 32) }

// of draws from a table of 64 quantiles.
func (r *random) of(quantiles *[64]uint8) int { return int(quantiles[r.next()>>58]) }
