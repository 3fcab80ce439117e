// Package lazy makes what most runs of a program do not need when it is first asked for.
package lazy

import (
	"regexp"
	"sync"
)

// Regexp returns a function that compiles a regular expression once and panics if it is not valid. Those
// of a program took a tenth of its start.
func Regexp(expression string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(expression) })
}
