package remote

import (
	"cmp"
	"net/url"
	"strings"

	"github.com/dsload/dsload/internal/lazy"
)

// A hubPath is what an address names on the Hub.
type hubPath struct {
	kind     string // "datasets" or "models"
	repo     string // OWNER/NAME
	revision string // the written one; "" for the main branch
	path     string // below the repository, without slashes around it
}

// branch returns the revision, or the name of the main branch.
func (p *hubPath) branch() string { return cmp.Or(p.revision, "main") }

// specialRevision matches the revisions whose names contain unescaped slashes.
var specialRevision = lazy.Regexp(`^refs/(?:convert/\w+|pr/\d+)`)

// parseHub parses hf://[datasets/]OWNER/NAME[@REVISION][/PATH].
func parseHub(address string) (p hubPath, err error) {
	rest := address[strings.Index(address, "://")+3:]
	p.kind = "models"
	for prefix, kind := range map[string]string{"datasets/": "datasets", "models/": "models"} {
		if after, ok := strings.CutPrefix(rest, prefix); ok {
			p.kind, rest = kind, after
		}
	}
	for _, other := range []string{"spaces/", "buckets/"} {
		if strings.HasPrefix(rest, other) {
			return p, &Error{Kind: ErrUsage, Text: other[:len(other)-1] + " of the Hub cannot be read",
				Hint: "name a repository as hf://datasets/OWNER/NAME"}
		}
	}
	owner, rest, _ := strings.Cut(rest, "/")
	name := owner
	if before, revision, ok := strings.Cut(owner, "@"); ok { // a repository without owner
		name, rest = before, revision+"/"+rest
		p.repo, rest = name, "@"+strings.TrimSuffix(rest, "/")
	} else if rest == "" {
		p.repo = owner
	} else {
		end := strings.IndexAny(rest, "/@")
		if end < 0 {
			end = len(rest)
		}
		p.repo, rest = owner+"/"+rest[:end], rest[end:]
	}
	if after, ok := strings.CutPrefix(rest, "@"); ok {
		if p.revision = specialRevision().FindString(after); p.revision == "" {
			p.revision, _, _ = strings.Cut(after, "/")
		}
		rest = after[len(p.revision):]
		if p.revision, err = url.PathUnescape(p.revision); err != nil || p.revision == "" {
			return p, &Error{Kind: ErrUsage, Text: "there is no revision after the @",
				Hint: "write hf://datasets/OWNER/NAME@REVISION"}
		}
	}
	p.path = strings.Trim(rest, "/")
	if !repoName().MatchString(p.repo) || strings.Contains(p.repo, "..") {
		return p, &Error{Kind: ErrUsage, Text: "this is not the address of a repository of the Hub",
			Hint: "write hf://datasets/OWNER/NAME[@REVISION][/PATH], or hf://OWNER/NAME for a model"}
	}
	return p, nil
}

var repoName = lazy.Regexp(`^[\w.-]+(?:/[\w.-]+)?$`)

// repository returns the address of the repository that p is in, with its revision.
func (p *hubPath) repository() string {
	s := "hf://"
	if p.kind == "datasets" {
		s += "datasets/"
	}
	s += p.repo
	switch {
	case p.revision == "":
		return s
	case specialRevision().FindString(p.revision) == p.revision:
		return s + "@" + p.revision
	}
	return s + "@" + strings.NewReplacer("%", "%25", "/", "%2F").Replace(p.revision)
}

var commitName = lazy.Regexp(`^[0-9a-f]{40}$`)

func isCommit(revision string) bool { return commitName().MatchString(revision) }

// HubRepository splits the address of a dataset of the Hub into its repository, with the revision,
// and the path below it.
func HubRepository(address string) (repository, below string, ok bool) {
	if scheme, _ := Scheme(address); scheme != "hf" {
		return "", "", false
	}
	p, err := parseHub(address)
	return p.repository(), p.path, err == nil && p.kind == "datasets"
}

// Repository returns the address of the Hub repository that an address is in, with its revision, or
// "" if the address is not one of the Hub.
func Repository(address string) string {
	if scheme, _ := Scheme(address); scheme != "hf" {
		return ""
	}
	p, err := parseHub(address)
	if err != nil {
		return ""
	}
	return p.repository()
}
