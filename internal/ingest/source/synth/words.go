package synth

import (
	"strings"
	"sync"
	"unicode/utf8"
)

const (
	wordBits  = 15
	numWords  = 1 << wordBits
	slotBytes = 16 // a space, a word of at most 14 bytes, and in the last byte the length of both

	// TableBytes is what the tables take, and what making them takes: weights, two stacks, the set
	// of words.
	TableBytes = numWords*(slotBytes+4) + numWords*(8+2+2+4) + 64<<10
)

// wordTables are the vocabulary and the odds of its words: word r of the ranking is drawn in
// proportion to 1/(r + 2.7), Zipf's law as Mandelbrot bent it.
type wordTables struct {
	slots [numWords][slotBytes]byte
	// alias is Walker's method: cell i is drawn evenly; if 17 more bits are below the upper part,
	// the word is i, else the lower part.
	alias [numWords]uint32
}

// tables builds the tables once a process.
var tables = sync.OnceValue(func() *wordTables {
	t := new(wordTables)
	t.fillWords()
	t.fillAlias()
	return t
})

// word draws a word from 32 bits.
func (t *wordTables) word(r uint32) *[slotBytes]byte {
	i := r & (numWords - 1)
	cell := t.alias[i]
	if r>>wordBits >= cell>>wordBits {
		i = cell & (numWords - 1)
	}
	return &t.slots[i]
}

func (t *wordTables) fillWords() {
	rng := random(0x5eed)
	rank := 0
	var seen [2 * numWords]uint16 // open addressing: rank + 1 of a word
	add := func(w []byte) {
		if len(w) > slotBytes-2 || rank == numWords {
			return
		}
		at := uint32(2166136261)
		for _, c := range w {
			at = (at ^ uint32(c)) * 16777619 // FNV-1a
		}
		for at >>= 32 - wordBits - 1; seen[at] > 0; at = (at + 1) % uint32(len(seen)) {
			if other := &t.slots[seen[at]-1]; string(other[1:other[slotBytes-1]]) == string(w) {
				return
			}
		}
		slot := &t.slots[rank]
		slot[0] = ' '
		slot[slotBytes-1] = byte(1 + copy(slot[1:slotBytes-1], w))
		rank++
		seen[at] = uint16(rank)
	}
	var w []byte
	for word := range strings.FieldsSeq(commonWords) {
		w = append(w[:0], word...)
		add(w)
	}
	for rank < numWords {
		w = inventWord(w[:0], &rng, rank)
		add(w)
	}
}

// fillAlias is Vose's way to build the cells, in integers.
func (t *wordTables) fillAlias() {
	weights := make([]uint64, numWords)
	var total uint64
	for r := range weights {
		weights[r] = 1 << 40 / uint64(10*r+27)
		total += weights[r]
	}
	small, large := make([]uint16, 0, numWords), make([]uint16, 0, numWords)
	for r := range weights {
		weights[r] *= numWords // a cell holds total
		if weights[r] < total {
			small = append(small, uint16(r))
		} else {
			large = append(large, uint16(r))
		}
	}
	const full = 1<<17 - 1
	for len(small) > 0 && len(large) > 0 {
		s, l := small[len(small)-1], large[len(large)-1]
		small = small[:len(small)-1]
		t.alias[s] = uint32(weights[s]/(total>>17)&^(1<<17))<<wordBits | uint32(l)
		if weights[l] -= total - weights[s]; weights[l] < total {
			large = large[:len(large)-1]
			small = append(small, l)
		}
	}
	for _, r := range append(small, large...) {
		t.alias[r] = full<<wordBits | uint32(r)
	}
}

// inventWord appends a word for a rank to dst: rarer ones are longer, some are names, a few are
// written in other scripts.
func inventWord(dst []byte, rng *random, rank int) []byte {
	if rank%41 == 0 {
		script := &scripts[rng.below(len(scripts))]
		for range script.least + rng.below(3) {
			dst = utf8.AppendRune(dst, script.letters[rng.below(len(script.letters))])
		}
		return dst
	}
	syllables := 1 + rng.below(2)
	if rank > 2000 {
		syllables += rng.below(2)
	}
	for range syllables {
		dst = append(dst, pick(rng, onsets)...)
		dst = append(dst, pick(rng, nuclei)...)
		if rng.below(5) < 2 {
			dst = append(dst, pick(rng, codas)...)
		}
	}
	if rng.below(3) == 0 {
		dst = append(dst, pick(rng, endings)...)
	}
	if rng.below(6) == 0 {
		dst[0] -= 'a' - 'A'
	}
	return dst
}

func pick(rng *random, from []string) string { return from[rng.below(len(from))] }

// scripts are some letters of other scripts, common ones repeated, and the shortest word of each.
var scripts = []struct {
	letters []rune
	least   int
}{
	{[]rune("ооаеиинтсрвлкмдпуязбгчйх"), 3},
	{[]rune("ααεοιιτνσηρπκμλυδγθ"), 3},
	{[]rune("的一是不人在有我他大中国上个时来用们生到作地"), 1},
	{[]rune("のにはをたがでとしれさあいうかきくけこ日本"), 2},
	{[]rune("اليمنوتربدعهسفقكح"), 3},
	{[]rune("éèàêôîçüöäßñåøæœ"), 2},
}

var (
	// Letters that languages like are repeated.
	onsets = strings.Fields("b c d f g h l m n p r s t v w b c d f h l m n p r s t c d l m n r s t br ch cl cr fr gr " +
		"pl pr sh st th tr qu j k z")
	nuclei = strings.Fields("a e i o u a e i o a e i o e a i o ea ee ai ou")
	codas  = strings.Fields("n r s t l n r s t l n r d m c nd nt rt st ss ll ck th ng")
	// endings make inflections that tokenizers know.
	endings = strings.Fields("s ed ing er ly es tion al ment ness ic ous able y")
)

// commonWords lead the ranking.
const commonWords = `the of and in to a was is for as on with by he that at from his it an were are which this had be has first one their its new after but who not
they have her she or been two also other when time during all into than there would more only over may later most city made between up some about season game
years such can out used known many film where American while three under world team began year these most part then being state both no through including
music first early him them war before work well since against until called because album four became second several song around series each will series
could three home end large school north group national high south following number based area family within so people town if released same small use
any life early including won system best day day five down house released river played found long left line east play took west old held company back history
book public late local major along name main another set power man much because great what often times place million near death record last own side original
general even right top head general British son church story without next published battle moved include final led single game form form among written six
country age own died support show water own episode named club very ship term like received own few further land force television father population order
government league career short road military produced third track little own built good version common work court species less again different island once point
making run army player making center station included present opened white black described popular act party young came members production design women children
men every developed using control video character given role award body total young study open lost study story student just start level period free modern
language science research field works word art case light close class love full result kind human similar position upon building lead seen field according
making great king queen president center support per northern southern western eastern average current political social important site theory central half
despite example usually often type strong money region gave across continued finished thus attack returned added food air field police sound special
success style voice value view ground hand force possible official rock blood fire tree stone summer winter spring month week night`
