package train

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/dsload/dsload/tokenize/internal/charclass"
)

// FromRanks returns the tokenizer.json of a byte-level BPE whose ids are its ranks, as tiktoken's are: the index in
// tokens, of which an unused one is nil. special maps other tokens to their ids. Ids that none has are taken by tokens
// that no text has. split is the pattern, as Options.Split names it.
func FromRanks(tokens [][]byte, special map[string]uint32, split string) ([]byte, error) {
	if _, ok := splits[split]; !ok {
		return nil, fmt.Errorf("no split %q", split)
	}
	ranks := make(map[string]int, len(tokens))
	for id, token := range tokens {
		ranks[string(token)] = id
	}
	delete(ranks, "") // of those that are not used
	added, merges := make(object, 0, len(special)), make([]string, 0, len(tokens))
	names := make([]string, len(tokens), len(tokens)+len(special))
	for id, token := range tokens {
		names[id] = inByteChars(token)
		if at := lastMerge(token, ranks, id); at > 0 {
			merges = append(merges, inByteChars(token[:at])+" "+inByteChars(token[at:]))
		}
	}
	for name, id := range special {
		names = append(names, make([]string, max(0, int(id)+1-len(names)))...)
		names[id], added = name, append(added, member{name, int(id)})
	}
	for id, name := range names { // the next token that is added gets the number of tokens as its id
		names[id] = cmp.Or(name, fmt.Sprintf("<|unused_%d|>", id))
	}
	slices.SortFunc(added, func(a, b member) int { return cmp.Compare(special[a.name], special[b.name]) })
	return writeByteLevel(added, nil, split, true, byID(names), merges)
}

// inByteChars returns a token in the characters of byte-level vocabularies.
func inByteChars(token []byte) string {
	var chars []byte
	for _, b := range token {
		chars = append(chars, charclass.ByteChar(b)...)
	}
	return string(chars)
}

// lastMerge returns where the two tokens meet whose merge makes a token of that rank, 0 if none does.
func lastMerge(token []byte, ranks map[string]int, rank int) int {
	ends := make([]int, len(token)+1) // where the parts of the token begin, and its end
	for i := range ends {
		ends[i] = i
	}
	if len(token) < 2 {
		return 0
	}
	for len(ends) > 3 {
		best, at := rank, 0
		for i := range len(ends) - 2 {
			if r, ok := ranks[string(token[ends[i]:ends[i+2]])]; ok && r < best {
				best, at = r, i+1
			}
		}
		if at == 0 {
			return 0 // it is found as a whole word alone
		}
		ends = slices.Delete(ends, at, at+1)
	}
	return ends[1]
}
