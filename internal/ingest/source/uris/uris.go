// Package uris has the names of sources: as arguments, in positions and manifests, and in messages.
package uris

import (
	"fmt"
	"runtime"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/dsload/dsload/internal/lazy"
	"github.com/dsload/dsload/internal/remote"
)

// A file's name is bytes, and checkpoints, manifests and plans hold text: in JSON, a byte that is not UTF-8
// would become U+FFFD, and the name would be another. So URIs of files write such bytes as `\xff`. In a name
// with such a byte, or with what looks like one, a backslash is `\x5c`, so that Path finds the name again.
// All other names are their own URIs.
var escapedByte = lazy.Regexp(`\\x(5c|[89a-f][0-9a-f])`)

// OfFile returns the URI of a file of this machine.
func OfFile(name string) string {
	if runtime.GOOS == "windows" || // names are Unicode there, and backslashes part them
		utf8.ValidString(name) && (!strings.Contains(name, `\x`) || !escapedByte().MatchString(name)) {
		return name
	}
	var b []byte
	for i := 0; i < len(name); {
		r, n := utf8.DecodeRuneInString(name[i:])
		if r == '\\' || r == utf8.RuneError && n == 1 {
			b = fmt.Appendf(b, `\x%02x`, name[i])
		} else {
			b = append(b, name[i:i+n]...)
		}
		i += n
	}
	return string(b)
}

// Path returns the name of the file of this machine that has a URI.
func Path(uri string) string {
	if runtime.GOOS == "windows" || !strings.Contains(uri, `\x`) {
		return uri
	}
	return escapedByte().ReplaceAllStringFunc(uri, func(s string) string {
		v, _ := strconv.ParseUint(s[2:], 16, 8) // two digits always fit
		return string([]byte{byte(v)})
	})
}

// IsAddress reports whether an argument is an address of some kind.
func IsAddress(arg string) bool {
	_, ok := remote.AnyScheme(arg)
	return ok
}

// IsRemote reports whether a URI is that of a remote file.
func IsRemote(uri string) bool {
	_, ok := remote.Scheme(uri)
	return ok
}

// Redact returns an argument as it may be shown and kept: an address without its credentials,
// anything else as it is.
func Redact(arg string) string {
	if !IsAddress(arg) || strings.HasPrefix(arg, "synth://") || strings.HasPrefix(arg, "file://") {
		return arg
	}
	return remote.Redact(arg)
}

// Several names sources for people: the first one, and how many more there are.
func Several(sources []string) string {
	first := Redact(sources[0])
	if len(sources) == 1 {
		return first
	}
	return fmt.Sprintf("%s and %d more", first, len(sources)-1)
}

// WithoutQuery returns an address of the web without what follows its path.
func WithoutQuery(name string) string {
	if strings.HasPrefix(name, "https://") || strings.HasPrefix(name, "http://") {
		if at := strings.IndexAny(name, "?#"); at >= 0 {
			return name[:at]
		}
	}
	return name
}

// Shown returns the URI of an input as it is shown to people.
func Shown(uri string) string {
	if uri == "-" {
		return "standard input"
	}
	return uri
}
