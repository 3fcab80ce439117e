package source

import (
	"io"

	"github.com/dsload/dsload/internal/fault"
	"github.com/dsload/dsload/internal/ingest/source/cause"
	"github.com/dsload/dsload/internal/ingest/source/decompress"
	"github.com/dsload/dsload/internal/ingest/source/skip"
	"github.com/dsload/dsload/internal/ingest/source/zipfile"
)

// detectZip finds the format of a zip archive: that of its only file, or Zip, where each file has
// its own.
func (in *Input) detectZip(o *Options, look []byte, refuse refusal) (hasText bool, what skip.Kind, err error) {
	raw, err := openRaw(in, o)
	if err != nil {
		return refuse(skip.Archive, err)
	}
	if in.once == nil {
		defer raw.Close()
	} else {
		in.once.taken.Store(false)
	}
	at, size, err := raw.random()
	if err != nil {
		return refuse(skip.Archive, err)
	}
	dir, err := zipfile.OpenDirectory(at, size)
	if err != nil {
		return refuse(skip.Readable, err)
	}
	n, name, skipped, err := firstMember(dir, o.membersOf(in.URI))
	if err != nil {
		return refuse(skip.Readable, err)
	}
	switch n {
	case 0:
		what := "the zip archive holds no file to read"
		if left := skipped.Text(true); left != "" {
			what += ": skipped " + left
		}
		return refuse(skip.Archive, fault.Of(cause.NothingToRead, "%s", what))
	case 2:
		in.archive, in.Format = Zip, o.Format
		if o.Format == Auto {
			in.Format = Zip
		}
		in.textBytes = estimate(in.Compression, in.Size)
		return true, skip.Readable, nil
	}
	text, whole, err := in.sniffText(o, look)
	if err != nil {
		return refuse(skip.Readable, err)
	}
	if inside, what, err := identify(name, text, o.Format); err != nil {
		return refuse(what, err)
	} else if inside != decompress.Plain {
		return refuse(skip.Archive, fault.Of(cause.Unsupported,
			"this is %s data within a zip archive; unpack it with `unzip`", inside))
	}
	uri := in.URI
	in.URI = name
	hasText, what, err = in.detectText(o, text, whole, refuse)
	in.URI = uri
	return hasText, what, err
}

// firstMember returns the name of the first file of a zip archive that is read, and whether there
// is none, one, or more: n is 0, 1 or 2.
func firstMember(dir *zipfile.Directory, members memberFilter) (n int, name string, skipped skip.Counts, err error) {
	for n < 2 {
		e, err := dir.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			return n, name, skipped, err
		}
		if e.Folder {
			continue
		}
		if why := members.member(&member{name: e.Name}); why != skip.Readable {
			skipped.Add(why, e.Name)
		} else if n++; n == 1 {
			name = e.Name
		}
	}
	return n, name, skipped, nil
}
