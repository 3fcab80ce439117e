package source

import (
	"path"
	"strings"

	"github.com/dsload/dsload/internal/shell"
)

// Iconv returns the command that converts a file to UTF-8, in backquotes; uri is "" for text that is no
// file of its own.
func Iconv(encoding, uri string) string {
	command := "`iconv -f " + encoding + " -t UTF-8"
	if uri == "" {
		return command + "`"
	}
	ext := path.Ext(uri)
	return command + " " + shell.Quote(uri) + " > " + shell.Quote(strings.TrimSuffix(uri, ext)+".utf8"+ext) + "`"
}

// unmarkedUTF16 returns the encoding of text in UTF-16 without a byte order mark, "" for other text: most
// of its characters are ASCII, so that nearly every other byte is zero, and no other is a control character.
func unmarkedUTF16(text []byte) string {
	var zeros [2]int
	controls := 0
	for i, b := range text {
		if b == 0 {
			zeros[i&1]++
		} else {
			controls += int(isControl[b])
		}
	}
	switch even, odd := zeros[0], zeros[1]; {
	case 5*(even+odd) < 2*len(text) || len(text) < 4 || 50*controls > len(text):
		return ""
	case odd > 20*even:
		return "UTF-16LE"
	case even > 20*odd:
		return "UTF-16BE"
	}
	return ""
}
