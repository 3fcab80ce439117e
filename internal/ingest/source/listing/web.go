package listing

import (
	"bytes"
	"context"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/dsload/dsload/internal/ingest/source/skip"
	"github.com/dsload/dsload/internal/remote"
)

// answers collects what a user should know about the answers of web servers. There may be thousands
// of addresses, so each kind is reported once, with the first of them.
type answers struct{ moved, pages, unframed, copied skip.Sample }

// address adds the file at an address that cannot be listed.
func (l *Lister) address(ctx context.Context, arg string) error {
	if l.head == nil {
		l.head = make([]byte, l.HeadBytes)
	}
	store := l.Store()
	object, n, err := store.Stat(ctx, arg, l.head)
	if err != nil {
		return Cause(object.URI, -1, err)
	}
	a := &l.answers
	if to := object.Answer.MovedTo; to != "" {
		a.moved.Add(object.URI + " was redirected to " + to)
	}
	name, _, _ := strings.Cut(object.URI, "?")
	isPage := slices.Contains([]string{".html", ".htm", ".xhtml"}, strings.ToLower(path.Ext(name)))
	if !isPage && (object.Answer.Page || beginsPage(l.head[:n])) {
		a.pages.Add(object.URI)
	}
	if object.Answer.Unframed {
		a.unframed.Add(object.URI)
	}
	if remote.Insecure(arg) {
		l.Note("%s was read without TLS: whoever is between could have read or changed it", object.URI)
	}
	f := remoteFile(object, store)
	f.Head = l.head[:n]
	is, err := l.Add(f)
	if is.Copied {
		a.copied.Add(f.URI)
	}
	return err
}

// NoteAnswers adds notes about the answers of web servers.
func (l *Lister) NoteAnswers() {
	a := &l.answers
	say := func(of skip.Sample, format string) {
		if of.N > 1 {
			of.First += fmt.Sprintf(" and %d more", of.N-1)
		}
		if of.N > 0 {
			l.Note(format, of.First)
		}
	}
	say(a.pages, "%s: the server answered with a web page (HTML), which may be one to sign in, or an error; "+
		"check what the address gives")
	say(a.unframed, "%s: the server does not say the length, so an answer that ends early cannot be distinguished from "+
		"a complete one; compare the size of the file")
	say(a.copied, "%s: the server gives neither an ETag nor a time, or no length, so a file of this format is "+
		"copied to a temporary file before it is read")
	if n := a.moved.N; n > 1 {
		l.Note("%d addresses were redirected, the first of them: %s", n, a.moved.First)
	} else if n == 1 {
		l.Note("%s", a.moved.First)
	}
}

// beginsPage reports whether a file begins as a page for browsers does.
func beginsPage(head []byte) bool {
	head = bytes.TrimSpace(bytes.TrimPrefix(head, []byte("\ufeff")))
	head = bytes.ToLower(head[:min(len(head), 14)])
	return bytes.HasPrefix(head, []byte("<!doctype html")) || bytes.HasPrefix(head, []byte("<html"))
}
