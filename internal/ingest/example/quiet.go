package example

import (
	"bytes"
	"slices"
	"strconv"
	"strings"
	"unicode"
)

// quietWords are the last words of the names of fields that say where a record is from, which one it is, or how
// it was measured: none of them is what a record says.
var quietWords = []string{"id", "ids", "idx", "index", "uid", "uuid", "guid", "key", "pk", "rank", "row", "rownum",
	"url", "urls", "uri", "uris", "link", "links", "href", "domain", "host", "hostname", "ip", "doi", "isbn", "arxiv",
	"hash", "md5", "sha", "sha1", "sha256", "sha512", "checksum", "digest", "etag", "minhash", "simhash", "fingerprint",
	"time", "timestamp", "ts", "date", "datetime", "created", "updated", "modified", "crawled", "retrieved", "added",
	"published", "at", "year", "lang", "langs", "language", "languages", "locale", "encoding", "charset", "mime",
	"score", "scores", "prob", "probability", "confidence", "perplexity", "ppl", "entropy", "logprob", "logprobs",
	"count", "counts", "length", "len", "size", "bytes", "chars", "words", "tokens", "lines", "width", "height",
	"source", "sources", "src", "origin", "provenance", "dataset", "datasets", "subset", "split", "shard", "config",
	"dump", "segment", "snapshot", "crawl", "file", "filename", "filepath", "path", "folder", "dir", "offset",
	"license", "licence", "licenses", "copyright", "version", "revision", "commit",
	"meta", "metadata", "stats", "statistics"}

// quietStarts are the first words of names of the same kinds, as in num_turns, score_chosen and __index_level_0__.
var quietStarts = []string{"num", "n", "index", "meta", "metadata", "score", "scores"}

// quietAlone are such names of one word. The response_format and the output_schema of a record are asked of the answer.
var quietAlone = []string{"format", "schema"}

// IsQuiet reports whether a field of this name never says anything itself, as one without a name.
func IsQuiet(name string) bool {
	words := wordsOf(name)
	n := len(words)
	return n == 0 || n == 1 && slices.Contains(quietAlone, words[0]) || slices.Contains(quietWords, words[n-1]) ||
		n > 1 && slices.Contains(quietStarts, words[0])
}

// wordsOf returns the words of a name such as doc_id, doc-id or docId, in lower case.
func wordsOf(name string) (words []string) {
	start, last := 0, 'a'
	for i, r := range name {
		if unicode.IsUpper(r) && unicode.IsLower(last) {
			words, start = append(words, name[start:i]), i
		}
		last = r
	}
	words = append(words, name[start:])
	return strings.FieldsFunc(strings.ToLower(strings.Join(words, "_")), func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsDigit(r)
	})
}

// readsAsText reports whether a string has words with white space between them, or letters of a script that
// writes none.
func readsAsText(s []byte) bool {
	words := 0
	for word := range bytes.FieldsSeq(s) {
		if bytes.ContainsFunc(word, unicode.IsLetter) {
			words++
		}
	}
	return words > 1 || bytes.ContainsFunc(s, func(r rune) bool {
		return unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Thai, unicode.Lao, unicode.Khmer,
			unicode.Myanmar, unicode.Tibetan)
	})
}

// minCodeBytes is the length from which a word with digits in it is a hash or another code.
const minCodeBytes = 16

// isCode reports whether a string is a number, an address, or a hash.
func isCode(s []byte) bool {
	s = bytes.TrimSpace(s)
	_, err := strconv.ParseFloat(string(s), 64)
	return err == nil || !readsAsText(s) && !bytes.ContainsFunc(s, unicode.IsSpace) &&
		(bytes.Contains(s, []byte("://")) || len(s) >= minCodeBytes && bytes.ContainsFunc(s, unicode.IsDigit))
}
