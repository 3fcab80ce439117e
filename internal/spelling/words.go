package spelling

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

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
