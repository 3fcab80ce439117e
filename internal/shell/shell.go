// Package shell writes words as a shell takes them, for commands that messages advise to run.
package shell

import (
	"strings"
	"unicode"
)

// Quote returns s as one word of a shell: as it is, or in single quotes if it is empty or has a
// character that may mean something to a shell.
func Quote(s string) string {
	special := func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsDigit(r) && !strings.ContainsRune("/._-+=:@%", r)
	}
	if s != "" && strings.IndexFunc(s, special) < 0 {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}

// Path is Quote for a path among a command's arguments: one that begins with a dash is no flag.
func Path(s string) string { return Quote(Argument(s)) }

// Argument returns a path as an argument that is no flag, not quoted.
func Argument(path string) string {
	if strings.HasPrefix(path, "-") && path != "-" {
		path = "./" + path
	}
	return path
}
