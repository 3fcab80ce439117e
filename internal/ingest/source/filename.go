package source

import (
	"fmt"
	"runtime"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/dsload/dsload/internal/lazy"
)

// A file's name is bytes, and checkpoints, manifests and plans hold text: in JSON, a byte that is not UTF-8
// would become U+FFFD, and the name would be another. So URIs of files write such bytes as `\xff`. In a name
// with such a byte, or with what looks like one, a backslash is `\x5c`, so that PathOf finds the name again.
// All other names are their own URIs.
var escapedByte = lazy.Regexp(`\\x(5c|[89a-f][0-9a-f])`)

// fileURI returns the URI of a file of this machine.
func fileURI(name string) string {
	if runtime.GOOS == "windows" || // its names are Unicode, and backslashes part them
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

// PathOf returns the name of the file of this machine that has a URI.
func PathOf(uri string) string {
	if runtime.GOOS == "windows" || !strings.Contains(uri, `\x`) {
		return uri
	}
	return escapedByte().ReplaceAllStringFunc(uri, func(s string) string {
		v, _ := strconv.ParseUint(s[2:], 16, 8) // two digits always fit
		return string([]byte{byte(v)})
	})
}
