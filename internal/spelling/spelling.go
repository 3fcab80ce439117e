// Package spelling finds the known word that a misspelled one probably means.
package spelling

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

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
	best, least := "", 2*(len(typed)/3+1)
	for _, word := range words {
		if len(word) > maxBytes {
			continue
		}
		w := plain(word)
		d := 2 * Distance(typed, w)
		if len(typed) >= 3 && strings.HasPrefix(w, typed) || len(w) >= 3 && strings.HasPrefix(typed, w) {
			d = min(d, 3) // a letter that is wrong is nearer
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

// OneOf returns which words an option takes, and which of them, or of its aliases, was probably meant.
func OneOf[T ~string](typed string, words []T, aliases ...string) string {
	known := make([]string, len(words))
	for i, w := range words {
		known[i] = string(w)
	}
	text := "must be one of " + strings.Join(known, ", ")
	if near := Nearest(typed, append(known, aliases...)); near != "" {
		text += "; did you mean " + near + "?"
	}
	return text
}

// maxNeighbours bounds how many names of a folder are compared with a missing one.
const maxNeighbours = 10_000

// NearestFile returns a neighbour of a missing file or folder with nearly its name, "" if there is none.
func NearestFile(name string) string {
	dir, err := os.Open(filepath.Dir(name))
	if err != nil {
		return ""
	}
	defer dir.Close()
	entries, err := dir.Readdirnames(maxNeighbours)
	if err != nil {
		return ""
	}
	slices.Sort(entries)
	base := filepath.Base(name) // a link that leads nowhere has one, too
	near := Nearest(base, slices.DeleteFunc(entries, func(entry string) bool { return entry == base }))
	if near == "" {
		return ""
	}
	return filepath.Join(filepath.Dir(name), near)
}

// MissingFile returns a message for a file or folder that does not exist, with the name that was probably meant.
func MissingFile(name string) string {
	text := "no such file or directory"
	if near := NearestFile(name); near != "" {
		text += fmt.Sprintf("; did you mean %s?", near)
	}
	return text
}

// First lists words, of which it names the first n and counts the others.
func First(words []string, n int) string {
	if more := len(words) - n; more > 0 {
		return fmt.Sprintf("%s and %d more", strings.Join(words[:n], ", "), more)
	}
	return strings.Join(words, ", ")
}
