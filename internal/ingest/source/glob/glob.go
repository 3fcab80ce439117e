// Package glob chooses files by patterns of their names.
package glob

import (
	"path"
	"slices"
	"strings"

	"github.com/dsload/dsload/internal/fault"
	"github.com/dsload/dsload/internal/ingest/source/cause"
)

// A pattern matches the names of files. * and ? stand for characters of one name, [abc] for
// one of these characters, [!abc] for any other, {a,b} for either, and ** between slashes for any
// number of folders, including none. As in a shell, only a dot matches the dot of a hidden name.
type pattern struct {
	elements []string // between the slashes
	anywhere bool     // one element, which may match a name at any depth
	folders  bool     // matches folders only
}

// parsePatterns parses a pattern of a Filter, which is several patterns if it has
// braces. One without a slash matches the name of a file or folder at any depth; one with a slash
// matches the path from the source's folder on.
func parsePatterns(text string) ([]pattern, error) {
	var out []pattern
	for _, s := range expandBraces(text) {
		s = strings.TrimPrefix(s, "./")
		p := pattern{folders: strings.HasSuffix(s, "/")}
		s = strings.TrimSuffix(s, "/")
		p.anywhere = !strings.Contains(s, "/")
		var err error
		if p.elements, err = split(strings.TrimPrefix(s, "/")); err != nil {
			return nil, fault.Of(cause.Usage, "pattern %q: %v", text, err)
		}
		out = append(out, p)
	}
	if len(out) == 0 || strings.Trim(text, "/.") == "" {
		return nil, fault.Of(cause.Usage, "pattern %q matches nothing", text)
	}
	return out, nil
}

// Alternatives returns the elements of a pattern of whole paths, for each choice among its braces. ** at its
// end stands for the files at any depth.
func Alternatives(text string) (all [][]string, err error) {
	for _, choice := range expandBraces(strings.Trim(text, "/")) {
		elements, err := split(choice)
		if err != nil {
			return nil, err
		}
		if elements[len(elements)-1] == "**" {
			elements = append(elements, "*")
		}
		all = append(all, elements)
	}
	return all, nil
}

// split splits a pattern without braces at its slashes and checks each element.
func split(text string) ([]string, error) {
	elements := strings.Split(strings.ReplaceAll(text, "[!", "[^"), "/")
	for _, element := range elements {
		if _, err := path.Match(element, ""); err != nil {
			return nil, err
		}
	}
	return elements, nil
}

// maxAlternatives bounds what braces expand to.
const maxAlternatives = 256

// expandBraces returns a pattern for each choice among {a,b}. Braces without a comma stand for
// themselves.
func expandBraces(text string) []string {
	out := []string{text}
	for i := 0; i < len(out); {
		s := out[i]
		open, shut, commas := braces(s)
		if len(commas) == 0 || len(out)+len(commas) > maxAlternatives {
			i++
			continue
		}
		var choices []string
		from := open + 1
		for _, to := range append(commas, shut) {
			choices = append(choices, s[:open]+s[from:to]+s[shut+1:])
			from = to + 1
		}
		out = slices.Replace(out, i, i+1, choices...)
	}
	return out
}

// braces finds the first pair of braces that holds a comma, innermost first, and its commas.
func braces(s string) (open, shut int, commas []int) {
	open = -1
	for i := range len(s) {
		switch s[i] {
		case '{':
			open, commas = i, nil
		case ',':
			if open >= 0 {
				commas = append(commas, i)
			}
		case '}':
			if open >= 0 && len(commas) > 0 {
				return open, i, commas
			}
			open = -1
		}
	}
	return 0, 0, nil
}

func matchElement(element, name string) bool {
	if strings.HasPrefix(name, ".") && !strings.HasPrefix(element, ".") {
		return false
	}
	ok, _ := path.Match(element, name) // the element was checked
	return ok
}

// MatchElements reports whether a path matches. With within it reports whether the path is a folder
// below which something can match.
func MatchElements(elements, names []string, within bool) bool {
	for i, element := range elements {
		if element == "**" {
			if within && !slices.ContainsFunc(names, func(n string) bool { return n[0] == '.' }) {
				return true
			}
			for skip := range len(names) + 1 {
				if skip > 0 && names[skip-1][0] == '.' {
					return false
				}
				if MatchElements(elements[i+1:], names[skip:], within) {
					return true
				}
			}
			return false
		}
		if len(names) == 0 {
			return within
		}
		if !matchElement(element, names[0]) {
			return false
		}
		names = names[1:]
	}
	return len(names) == 0 && !within
}

func (p *pattern) match(names []string, isFolder bool) bool {
	switch {
	case p.folders && !isFolder:
		return false
	case p.anywhere:
		return matchElement(p.elements[0], names[len(names)-1])
	}
	return MatchElements(p.elements, names, false) || isFolder && p.elements[len(p.elements)-1] == "**" &&
		MatchElements(p.elements[:len(p.elements)-1], names, false)
}

// Restricts reports whether the pattern restricts names: *.md does, * does not.
func Restricts(element string) bool { return strings.Trim(element, "*?") != "" }

// A Filter chooses among the files of folders and globs: those that Include matches, all if it is empty, without
// those that Exclude matches.
type Filter struct{ Include, Exclude []pattern }

// NewFilter parses the patterns of both lists.
func NewFilter(include, exclude []string) (Filter, error) {
	var f Filter
	for _, list := range []struct {
		texts []string
		into  *[]pattern
	}{{include, &f.Include}, {exclude, &f.Exclude}} {
		for _, text := range list.texts {
			p, err := parsePatterns(text)
			if err != nil {
				return f, err
			}
			*list.into = append(*list.into, p...)
		}
	}
	return f, nil
}

// Excluded reports whether a file or folder is left out. It is never called for what lies below an
// excluded folder.
func (f *Filter) Excluded(names []string, isFolder bool) bool {
	return slices.ContainsFunc(f.Exclude, func(p pattern) bool { return p.match(names, isFolder) })
}

// Included reports whether a file is among those wanted: by itself, or as part of a folder that is.
// explicit is set if a pattern restricts names.
func (f *Filter) Included(names []string) (ok, explicit bool) {
	if len(f.Include) == 0 {
		return true, false
	}
	for _, p := range f.Include {
		for n := len(names); n > 0; n-- {
			if p.match(names[:n], n < len(names)) {
				ok = true
				explicit = explicit || n == len(names) && Restricts(p.elements[len(p.elements)-1])
			}
		}
	}
	return ok, explicit
}

// MayInclude reports whether a hidden folder is worth a look: an include pattern names it, or
// something in it.
func (f *Filter) MayInclude(names []string) bool {
	return slices.ContainsFunc(f.Include, func(p pattern) bool {
		return p.match(names, true) || !p.anywhere && MatchElements(p.elements, names, true)
	})
}
