// Package spelling finds the known word that a misspelled one probably means.
package spelling

import "strings"

// maxBytes is the length of the longest word that is compared with others.
const maxBytes = 128

// Nearest returns the word with the fewest changes from typed, at most one in three letters, or "".
// A word that begins with typed, or the other way round, is near too. Case, hyphens and underscores
// do not count.
func Nearest(typed string, words []string) string {
	if len(typed) > maxBytes {
		return ""
	}
	typed = plain(typed)
	best, least := "", len(typed)/3+1
	for _, word := range words {
		if len(word) > maxBytes {
			continue
		}
		w := plain(word)
		d := Distance(typed, w)
		if len(typed) >= 3 && strings.HasPrefix(w, typed) || len(w) >= 3 && strings.HasPrefix(typed, w) {
			d = min(d, 1)
		}
		if d < least {
			best, least = word, d
		}
	}
	return best
}

var separators = strings.NewReplacer("_", "", "-", "")

func plain(word string) string { return separators.Replace(strings.ToLower(word)) }

// Distance returns how many bytes must be inserted, deleted, replaced or swapped with their
// neighbour to turn a into b.
func Distance(a, b string) int {
	rows := make([][]int, len(a)+1)
	for i := range rows {
		rows[i] = make([]int, len(b)+1)
		for j := range rows[i] {
			switch {
			case i == 0:
				rows[i][j] = j
				continue
			case j == 0:
				rows[i][j] = i
				continue
			}
			change := 1
			if a[i-1] == b[j-1] {
				change = 0
			}
			rows[i][j] = min(rows[i-1][j]+1, rows[i][j-1]+1, rows[i-1][j-1]+change)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				rows[i][j] = min(rows[i][j], rows[i-2][j-2]+1)
			}
		}
	}
	return rows[len(a)][len(b)]
}
