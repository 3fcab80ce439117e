package listing

import (
	"bytes"
	"path"
	"strings"

	"github.com/dsload/dsload/internal/remote"
)

// answers collects what a user should know about the answers of web servers. There may be thousands
// of addresses, so each kind is reported once, with the first of them.
type answers struct{ moved, pages, unframed, copied answered }

// answered is the addresses that one thing is said about.
type answered struct {
	n     int
	first string
}

func (a *answered) add(text string) {
	if a.n++; a.n == 1 {
		a.first = text
	}
}

// add takes in the first answer for an address, and the first bytes of the file.
func (a *answers) add(o *remote.Object, head []byte) {
	if to := o.Answer.MovedTo; to != "" {
		a.moved.add(o.URI + " was redirected to " + to)
	}
	if !isPageName(o.URI) && (o.Answer.Page || isPage(head)) {
		a.pages.add(o.URI)
	}
	if o.Answer.Unframed {
		a.unframed.add(o.URI)
	}
}

// isPageName reports whether an address is that of a page by its name.
func isPageName(uri string) bool {
	uri, _, _ = strings.Cut(uri, "?")
	switch strings.ToLower(path.Ext(uri)) {
	case ".html", ".htm", ".xhtml":
		return true
	}
	return false
}

// isPage reports whether a file begins as a page for browsers does.
func isPage(head []byte) bool {
	head = bytes.TrimSpace(bytes.TrimPrefix(head, []byte("\ufeff")))
	head = bytes.ToLower(head[:min(len(head), 14)])
	return bytes.HasPrefix(head, []byte("<!doctype html")) || bytes.HasPrefix(head, []byte("<html"))
}
