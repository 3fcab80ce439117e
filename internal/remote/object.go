package remote

import (
	"time"

	"github.com/dsload/dsload/internal/units"
)

// An Object is one version of a remote file.
type Object struct {
	URI      string    // without credentials
	Size     int64     // bytes; -1 if the server does not say
	ETag     string    // the server's; "" for none
	Modified time.Time // zero for none
	Revision string    // its repository's: a commit; "" for none
	Hash     string    // its bytes', "sha256:hex" or "git-sha1:hex"; "" if that is not known

	Answer Answer // a web server's, to Stat
}

// An Answer is what the way in which a web server answers says about a file.
type Answer struct {
	MovedTo string // the address that its own one is redirected to, without credentials; "" for none
	Page    bool   // a page for browsers, such as one to sign in
	// Unframed is set if nothing would show that the answer ended early: it has no length and ends
	// with its connection.
	Unframed bool
}

// Identified reports whether the object can be distinguished from its other versions.
func (o *Object) Identified() bool { return o.ETag != "" || !o.Modified.IsZero() || o.Revision != "" }

// compare returns a *ChangedError if two descriptions cannot be of the same version.
func (o *Object) compare(now *Object) error {
	switch {
	case o.ETag != "" && now.ETag != "" && !SameETag(o.ETag, now.ETag):
		return &ChangedError{"ETag", oneLine(o.ETag), oneLine(now.ETag)}
	case o.Size >= 0 && now.Size >= 0 && o.Size != now.Size:
		return &ChangedError{"size", units.Bytes(o.Size), units.Bytes(now.Size)}
	case (o.ETag == "" || now.ETag == "") && !o.Modified.IsZero() && !now.Modified.IsZero() &&
		!o.Modified.Equal(now.Modified):
		return &ChangedError{"modification time", o.Modified.Format(time.RFC3339), now.Modified.Format(time.RFC3339)}
	}
	return nil
}

// SameVersion reports whether two descriptions have the same validator, and so are of the same
// version. A modification time does only if there was no ETag.
func (o *Object) SameVersion(now *Object) bool {
	switch {
	case o.ETag != "":
		return now.ETag != "" && SameETag(o.ETag, now.ETag)
	case !o.Modified.IsZero():
		return o.Modified.Equal(now.Modified)
	}
	return o.Revision != "" && o.Revision == now.Revision
}

// unproven is the error of an answer that may be of another version.
func (o *Object) unproven() error {
	switch {
	case o.ETag != "":
		return &ChangedError{"ETag", oneLine(o.ETag), "missing"}
	case !o.Modified.IsZero():
		return &ChangedError{"modification time", o.Modified.Format(time.RFC3339), "missing"}
	}
	return &Error{Kind: ErrMismatch,
		Text: "its server gives neither an ETag nor a time, so what is read of it in parts may be of several versions",
		Hint: "download the file, and name the copy"}
}

// SameETag reports whether two ETags are equal except for the weakness mark, which a server adds
// when it changes an answer in transit.
func SameETag(a, b string) bool { return strongETag(a) == strongETag(b) }

func strongETag(tag string) string {
	if len(tag) > 2 && tag[:2] == "W/" {
		return tag[2:]
	}
	return tag
}
