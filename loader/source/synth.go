package source

import (
	"io"
	"math/bits"
	"net/url"
	"strconv"
	"strings"
)

// Addresses of generated text: synth://wikitext and synth://recipes, with ?seed=N (default 1), and docs=N or bytes=S where it should end. Text is endless
// otherwise. Document n depends on the seed and on n alone, so that a position costs nothing; the bytes are the same on every platform, for only
// integers are used. All seeds share one vocabulary: they are corpora of one language.

// synthSpec is a parsed address.
type synthSpec struct {
	format Format
	seed   uint64
	docs   int64 // 0: no limit
	bytes  int64 // ends behind the document that reaches it; 0: no limit
}

// meanDocBytes is the average document of each kind, for estimates only.
var meanDocBytes = map[Format]int64{WikiText: 12600, Recipes: 830}

func parseSynth(address string) (*synthSpec, error) {
	u, err := url.Parse(address)
	if err != nil {
		return nil, problemf(ErrUsage, "source %s: %v", address, err)
	}
	s := &synthSpec{seed: 1}
	switch u.Host {
	case "wikitext":
		s.format = WikiText
	case "recipes":
		s.format = Recipes
	default:
		return nil, problemf(ErrUsage, "source %s: there is synth://wikitext and synth://recipes", address)
	}
	if u.Path != "" && u.Path != "/" || u.User != nil || u.Fragment != "" {
		return nil, problemf(ErrUsage, "source %s: nothing but ?seed=N&docs=N&bytes=S may follow synth://%s", address, u.Host)
	}
	values, err := url.ParseQuery(u.RawQuery)
	if err != nil {
		return nil, problemf(ErrUsage, "source %s: %v", address, err)
	}
	for key, v := range values {
		ok := len(v) == 1
		switch {
		case !ok:
		case key == "seed":
			s.seed, err = strconv.ParseUint(v[0], 10, 64)
			ok = err == nil
		case key == "docs":
			s.docs, ok = parseSize(v[0])
		case key == "bytes":
			s.bytes, ok = parseSize(v[0])
		default:
			return nil, problemf(ErrUsage, "source %s: unknown parameter %q; there are seed, docs and bytes", address, key)
		}
		if !ok {
			return nil, problemf(ErrUsage, "source %s: %s=%s is not one number above 0", address, key, strings.Join(v, ","))
		}
	}
	return s, nil
}

// parseSize reads a positive number with an optional unit: 1000, 1e6, 64MiB, 2GB.
func parseSize(s string) (int64, bool) {
	unit := int64(1)
	for suffix, factor := range map[string]int64{"KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30, "TiB": 1 << 40, "kB": 1e3, "KB": 1e3, "MB": 1e6, "GB": 1e9, "TB": 1e12} {
		if rest, ok := strings.CutSuffix(s, suffix); ok {
			s, unit = rest, factor
			break
		}
	}
	mantissa, exponent, scientific := strings.Cut(s, "e")
	n, err := strconv.ParseInt(mantissa, 10, 64)
	if scientific {
		e, expErr := strconv.ParseUint(exponent, 10, 8)
		if expErr != nil || e > 18 || unit > 1 {
			return 0, false
		}
		for range e {
			unit *= 10
		}
	}
	if err != nil || n <= 0 || unit <= 0 {
		return 0, false
	}
	high, low := bits.Mul64(uint64(n), uint64(unit))
	return int64(low), high == 0 && int64(low) > 0
}

// size is the limit in bytes, -1 where it is not given.
func (s *synthSpec) size() int64 {
	if s.bytes == 0 {
		return -1
	}
	return s.bytes
}

func (s *synthSpec) textBytes() int64 {
	switch {
	case s.docs == 0 && s.bytes == 0:
		return -1
	case s.docs == 0:
		return s.bytes
	}
	mean := meanDocBytes[s.format]
	if s.bytes > 0 && s.docs > s.bytes/mean {
		return s.bytes
	}
	return min(s.docs, 1<<40) * mean
}

// A generator frames generated text: a document a record.
type generator struct {
	framing
	spec   synthSpec
	tables *synthTables
	offset int64 // bytes generated before
}

func newGenerator(spec synthSpec, row, offset int64) *generator {
	g := &generator{spec: spec, tables: tables(), offset: offset}
	g.row = row
	return g
}

func (g *generator) state() uint32  { return 0 }
func (g *generator) restore(uint32) {}

func (g *generator) next(dst []byte, rec *Record) ([]byte, error) {
	if g.spec.docs > 0 && g.row >= g.spec.docs || g.spec.bytes > 0 && g.offset >= g.spec.bytes {
		return dst, io.EOF
	}
	rec.Offset, rec.First, rec.Last = g.offset, true, true
	w := textWriter{tables: g.tables, rng: documentRandom(g.spec.seed, g.row), dst: dst}
	if g.spec.format == Recipes {
		rec.Columns, rec.Comma = synthRecipeColumns, ','
		w.recipe(g.row)
	} else {
		w.article()
	}
	g.offset += int64(len(w.dst) - len(dst))
	return w.dst, nil
}

// A random is a sequence of 64-bit numbers: a Weyl sequence whose every term is mixed by one wide multiplication (the scheme of wyrand, with constants of our
// own choosing), good enough for statistics and two nanoseconds a number.
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

// documentRandom is the sequence of one document.
func documentRandom(seed uint64, ordinal int64) random {
	mix := func(x uint64) uint64 { // splitmix64's finisher
		x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
		x = (x ^ x>>27) * 0x94d049bb133111eb
		return x ^ x>>31
	}
	return random(mix(mix(seed+weyl) + uint64(ordinal)*weyl))
}
