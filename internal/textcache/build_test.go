package textcache

import (
	"strings"
	"testing"

	"github.com/dsload/dsload/internal/ingest/source/uris"
)

// What is said about sources, and the folder of the cache that is named after one, shows nothing of
// an address that may grant access.
func TestAddressesInMessages(t *testing.T) {
	for _, sources := range [][]string{{"https://joe:V4LUE@host/a.txt?id=V4LUE"},
		{"s3://V4LUE:V4LUE@bucket/a.txt", "b.txt"},
		{"ftp://host/a.txt?V4LUE"}} {
		for _, text := range []string{uris.Several(sources), cacheName(sources)} {
			if strings.Contains(text, "V4LUE") || !strings.Contains(text, "a.txt") {
				t.Errorf("%v: %s", sources, text)
			}
		}
	}
}
