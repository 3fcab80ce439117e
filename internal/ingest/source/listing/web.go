package listing

import (
	"context"
	"fmt"

	"github.com/dsload/dsload/internal/ingest/source/cause"
	"github.com/dsload/dsload/internal/remote"
)

// address adds the file at an address that cannot be listed.
func (l *Lister) address(ctx context.Context, arg string) error {
	if l.head == nil {
		l.head = make([]byte, l.HeadBytes)
	}
	store := l.Store()
	object, n, err := store.Stat(ctx, arg, l.head)
	if err != nil {
		return cause.OfRemote(object.URI, -1, err)
	}
	l.answers.add(&object, l.head[:n])
	if remote.Insecure(arg) {
		l.Note("%s was read without TLS: whoever is between could have read or changed it", object.URI)
	}
	f := remoteFile(object, store)
	f.Head = l.head[:n]
	is, err := l.Add(f)
	if is.Copied {
		l.answers.copied.add(f.URI)
	}
	return err
}

// NoteAnswers adds notes about the answers of web servers.
func (l *Lister) NoteAnswers() {
	a := &l.answers
	say := func(of answered, format string) {
		if of.n > 1 {
			of.first += fmt.Sprintf(" and %d more", of.n-1)
		}
		if of.n > 0 {
			l.Note(format, of.first)
		}
	}
	say(a.pages, "%s: the server answered with a web page (HTML), which may be one to sign in, or an error; "+
		"check what the address gives")
	say(a.unframed, "%s: the server does not say the length, so an answer that ends early cannot be distinguished from "+
		"a complete one; compare the size of the file")
	say(a.copied, "%s: the server gives neither an ETag nor a time, or no length, so a file of this format is "+
		"copied to a temporary file before it is read")
	if n := a.moved.n; n > 1 {
		l.Note("%d addresses were redirected, the first of them: %s", n, a.moved.first)
	} else if n == 1 {
		l.Note("%s", a.moved.first)
	}
}
