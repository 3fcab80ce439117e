package filter

import (
	"encoding/binary"
	"math/bits"
	"slices"

	"github.com/zeebo/xxh3"
)

// Near copies are found by MinHash with banding (Broder 1997; Leskovec, Rajaraman and Ullman,
// "Mining of Massive Datasets", chapter 3).
//
// A text is the set of its shingles, runs of five words, where a word is a run of letters and
// digits in lower case, or one character of a script that is written without spaces. A text of
// fewer words is one shingle; for a text without words its bytes are the shingle. The similarity of
// two texts is the Jaccard index of their sets of shingles.
//
// The sketch of a text has sketchBytes values, by one permutation hashing (Li, Owen and Zhang 2012)
// in four rounds: a round hashes each shingle to one of 32 bins and to a number, and a bin's value
// is the least of its numbers, folded to 8 bits. An empty bin takes the value of the first
// non-empty bin in a fixed order of its own (Shrivastava 2017). Two texts of similarity s agree in
// a value with probability s + (1-s)/256.
//
// Texts whose sketches agree in at least nearMatches values are near: their estimated similarity is
// 0.8 or more, with a standard deviation of 0.035. The sketch is cut into bands of eight values;
// documents that share no band are not compared. Of two documents with similarity s, the
// probability of sharing a band is 1-(1-s^8)^16: 0.95 at 0.8, 0.9999 at 0.9. Each band value leads
// to the first document that had it.

const (
	rounds       = 4
	bins         = 32
	sketchBytes  = rounds * bins
	bandBytes    = 8
	bands        = sketchBytes / bandBytes
	nearMatches  = 103 // bytes of sketchBytes: (103/128 - 1/256) / (1 - 1/256) = 0.804
	shingleWords = 5
)

// A Sketcher makes keys of texts. It belongs to one goroutine.
type Sketcher struct {
	kind  Dedup
	least values
	words [shingleWords - 1 + batchWords]uint64 // hashes of four words, and of those in hand
	batch batch                                 // the words in hand
	held  int                                   // how many they are
	x, y  [batchWords]uint64                    // hashes of the shingles that end with them
	n     int                                   // words so far
	word  uint64                                // hash of the word that is being read
	open  bool
}

// NewSketcher returns a Sketcher for a kind of Dedup.
func NewSketcher(kind Dedup) *Sketcher { return &Sketcher{kind: kind} }

// Append appends the key of a text, or of a prompt and its target, to dst.
func (k *Sketcher) Append(dst, prompt, target []byte) []byte {
	switch k.kind {
	case Exact:
		return appendHash(dst, prompt, target)
	case Near:
		return k.sketch(dst, prompt, target)
	}
	return dst
}

const (
	// The seeds of a shingle's hashes, each of which serves two rounds with half of its bits.
	roundSeed1 = 0x6d69_6e68_6173_6831
	roundSeed2 = 0x6d69_6e68_6173_6832

	binBits   = 5 // 1<<binBits is bins
	valueBits = 32 - binBits
)

// probes[bin] is the order in which an empty bin tries the others. The permutations are fixed.
var probes = func() (p [bins][bins]uint8) {
	state := uint64(bins)
	for i := range p {
		for k := range p[i] {
			state += 0x9e3779b97f4a7c15
			j := int(mix(state) % uint64(k+1))
			p[i][k] = p[i][j]
			p[i][j] = uint8(k)
		}
	}
	return p
}()

// placesOf[bin][i][set] has a bit for each place in probes[bin] of the bins that set has a bit for, of the i-th four.
// So the first of many bins is found without trying each, of which no processor foresees when it ends.
var placesOf = func() (p [bins][bins / 4][16]uint32) {
	for bin := range p {
		for place, other := range probes[bin] {
			for set := range p[bin][other/4] {
				p[bin][other/4][set] |= uint32(set) >> (other % 4) & 1 << place
			}
		}
	}
	return p
}()

// mix is the finalizer of SplitMix64.
func mix(x uint64) uint64 {
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

func (k *Sketcher) sketch(dst, prompt, target []byte) []byte {
	k.least = noShingles
	k.n, k.held, k.open = 0, 0, false
	k.read(prompt)
	k.read(target)
	k.shingles()
	if k.n == 0 {
		k.single(xxh3.HashSeed(target, xxh3.Hash(prompt)))
	} else if k.n < shingleWords {
		h := uint64(k.n)
		for i := range k.n {
			h = mix(h ^ k.words[shingleWords-2-i]) // the latest first
		}
		k.single(h)
	}
	k.fillEmpty()
	dst = append(dst, make([]byte, sketchBytes)...)
	fold(&k.least, (*[sketchBytes]byte)(dst[len(dst)-sketchBytes:]))
	return dst
}

// single takes the only shingle of a text by its hash.
func (k *Sketcher) single(h uint64) { k.shingle(mix(h^roundSeed1), mix(h^roundSeed2)) }

// noShingle is the value of a bin without shingles.
const noShingle = ^uint32(0)

// noShingles are the bins of a text without shingles.
var noShingles = values(slices.Repeat([]uint32{noShingle}, sketchBytes))

// fillEmpty gives each empty bin the value of another one.
func (k *Sketcher) fillEmpty() {
	for round := range rounds {
		empty := uint32(0) // a bit for each bin
		for bin := range bins {
			empty |= k.least[rounds*bin+round] >> 31 << bin // other values have valueBits
		}
		for left := empty; left != 0; left &= left - 1 {
			bin := bits.TrailingZeros32(left) & (bins - 1)
			at, given := &placesOf[bin], ^empty
			places := at[0][given&15] | at[1][given>>4&15] | at[2][given>>8&15] | at[3][given>>12&15] |
				at[4][given>>16&15] | at[5][given>>20&15] | at[6][given>>24&15] | at[7][given>>28]
			other := int(probes[bin][bits.TrailingZeros32(places)&(bins-1)])
			k.least[rounds*bin+round] = k.least[rounds*other+round]
		}
	}
}

// shingleFactor makes a shingle's hash depend on the order of its words.
const shingleFactor = 0x9fb21c651e98df25

// shingle takes the hashes of a shingle: in each round a bin and a number.
func (k *Sketcher) shingle(x, y uint64) {
	k.least.take(0, uint32(x>>32))
	k.least.take(1, uint32(x))
	k.least.take(2, uint32(y>>32))
	k.least.take(3, uint32(y))
}

// values are the least numbers of the bins, that of bin b in round r at rounds*b+r: a band has some of each round.
type values [sketchBytes]uint32

func (v *values) take(round, h uint32) {
	least := &v[rounds*(h>>valueBits)+round]
	*least = min(*least, h&(1<<valueBits-1))
}

// bandEntry returns the table's entry of a band of a sketch, without its number.
func bandEntry(sketch []byte, band int) entry {
	return entry{first: mix(binary.LittleEndian.Uint64(sketch[band*bandBytes:]) + uint64(band)*0x9e3779b97f4a7c15)}
}

// agreeing counts the values in which two sketches agree.
func agreeing(a, b []byte) (n int) {
	for i := range sketchBytes {
		if a[i] == b[i] {
			n++
		}
	}
	return n
}
