package source

import (
	"strings"
	"sync"
)

const (
	wordBits  = 15
	numWords  = 1 << wordBits
	slotBytes = 16 // a space, a word of at most 14 bytes, and in the last byte the length of both

	// synthBytes is what the tables take, and the vocabulary while they are made.
	synthBytes = numWords*(slotBytes+4) + numWords*16 + 1<<18
)

// synthTables are the vocabulary and the odds of its words: word r of the ranking is drawn in proportion to 1/(r + 2.7), Zipf's law as Mandelbrot bent it.
type synthTables struct {
	slots [numWords][slotBytes]byte
	// alias is Walker's method: cell i is drawn evenly; if 17 more bits are below the upper part, the word is i, else the lower part.
	alias [numWords]uint32
}

// tables builds the tables once a process.
var tables = sync.OnceValue(func() *synthTables {
	t := new(synthTables)
	t.fillWords()
	t.fillAlias()
	return t
})

// word draws a word from 32 bits.
func (t *synthTables) word(r uint32) *[slotBytes]byte {
	i := r & (numWords - 1)
	cell := t.alias[i]
	if r>>wordBits >= cell>>wordBits {
		i = cell & (numWords - 1)
	}
	return &t.slots[i]
}

func (t *synthTables) fillWords() {
	rng := random(0x5eed)
	seen := make(map[string]bool, numWords)
	rank := 0
	add := func(w string) {
		if len(w) > slotBytes-2 || seen[w] || rank == numWords {
			return
		}
		seen[w] = true
		slot := &t.slots[rank]
		slot[0] = ' '
		slot[slotBytes-1] = byte(1 + copy(slot[1:slotBytes-1], w))
		rank++
	}
	for w := range strings.FieldsSeq(commonWords) {
		add(w)
	}
	for rank < numWords {
		add(inventWord(&rng, rank))
	}
}

// fillAlias is Vose's way to build the cells, in integers.
func (t *synthTables) fillAlias() {
	weights := make([]uint64, numWords)
	var total uint64
	for r := range weights {
		weights[r] = 1 << 40 / uint64(10*r+27)
		total += weights[r]
	}
	var small, large []int
	for r := range weights {
		weights[r] *= numWords // a cell holds total
		if weights[r] < total {
			small = append(small, r)
		} else {
			large = append(large, r)
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

// inventWord makes a word for a rank: rarer ones are longer, some are names, a few are written in other scripts.
func inventWord(rng *random, rank int) string {
	if rank%41 == 0 {
		return inventForeign(rng)
	}
	syllables := 1 + rng.below(2)
	if rank > 2000 {
		syllables += rng.below(2)
	}
	var b strings.Builder
	for range syllables {
		b.WriteString(pick(rng, onsets))
		b.WriteString(pick(rng, nuclei))
		if rng.below(5) < 2 {
			b.WriteString(pick(rng, codas))
		}
	}
	w := b.String()
	if rng.below(3) == 0 {
		w += pick(rng, endings)
	}
	if rng.below(6) == 0 {
		w = strings.ToUpper(w[:1]) + w[1:]
	}
	return w
}

func inventForeign(rng *random) string {
	script := scripts[rng.below(len(scripts))]
	letters := []rune(script.letters)
	var b strings.Builder
	for range script.least + rng.below(3) {
		b.WriteRune(letters[rng.below(len(letters))])
	}
	return b.String()
}

func pick(rng *random, from []string) string { return from[rng.below(len(from))] }

// scripts are some letters of other scripts, common ones repeated, and the shortest word of each.
var scripts = []struct {
	letters string
	least   int
}{
	{"ооаеиинтсрвлкмдпуязбгчйх", 3},
	{"ααεοιιτνσηρπκμλυδγθ", 3},
	{"的一是不人在有我他大中国上个时来用们生到作地", 1},
	{"のにはをたがでとしれさあいうかきくけこ日本", 2},
	{"اليمنوتربدعهسفقكح", 3},
	{"éèàêôîçüöäßñåøæœ", 2},
}

var (
	// Letters that languages like are repeated.
	onsets = strings.Fields("b c d f g h l m n p r s t v w b c d f h l m n p r s t c d l m n r s t br ch cl cr fr gr pl pr sh st th tr qu j k z")
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
