package source

import (
	"bytes"
	"encoding/json"
	"io"
	"path/filepath"
	"slices"
	"strings"
)

// detect finds compression and format of an input by its first bytes and its name. hasText is false where it is empty for certain.
func (in *Input) detect(o *Options) (hasText bool, err error) {
	if in.synth != nil {
		if o.Format != Auto && o.Format != in.Format {
			return false, problemf(ErrUsage, "%s has the format %s, not %s", in.URI, in.Format, o.Format)
		}
		return true, nil
	}
	head, err := in.head()
	if err != nil {
		return false, &InputError{URI: in.URI, Offset: -1, Err: err}
	}
	if in.Compression, err = detectCompression(head); err != nil {
		return false, &InputError{URI: in.URI, Offset: -1, Err: err}
	}
	if in.Compression == Zstd {
		if window := zstdWindow(head); window > o.WindowBytes {
			if in.window = window; window > maxWindowBytes {
				return false, &InputError{URI: in.URI, Offset: -1, Err: problemf(ErrUnsupported, "its zstd window is %s, and zstd itself makes none above %s", mebibytes(window), mebibytes(maxWindowBytes))}
			}
		}
	}
	text, whole := head, len(head) < sniffBytes
	if in.Compression != Plain {
		text = sniffText(in.Compression, head, in.windowOf(o))
		whole = false
	}
	if in.Size >= 0 {
		in.textBytes = estimate(in.Compression, in.Size)
	}
	if err := checkText(text); err != nil {
		return false, &InputError{URI: in.URI, Offset: -1, Err: err, Hint: "name files of text, or their compression"}
	}
	text = bytes.TrimPrefix(text, []byte("\ufeff"))
	in.Format = o.Format
	if in.Format == Auto {
		if in.Format, err = detectFormat(in.URI, text, whole); err != nil {
			return false, &InputError{URI: in.URI, Offset: -1, Err: err}
		}
	}
	return len(text) > 0 || !whole, nil
}

func estimate(c Compression, size int64) int64 { return size * compressedRatio[c] }

// sniffText decompresses what it can of the first bytes. An error is of no interest here: reading meets it again.
func sniffText(c Compression, head []byte, window int64) []byte {
	src := &countingReader{src: bytes.NewReader(head)}
	z, stop, err := decompress(c, src, window)
	if err != nil {
		return nil
	}
	defer stop()
	text := make([]byte, sniffBytes)
	n, _ := io.ReadFull(z, text)
	return text[:n]
}

// checkText refuses what is not text: a zero byte, or more than one control character in 20 bytes.
func checkText(text []byte) error {
	controls := 0
	for i, b := range text {
		switch {
		case b == 0:
			return problemf(ErrBinary, "not text: a zero byte at %d", i)
		case b < ' ' && !asciiSpace(b) && b != 0x1b && b != '\b' || b == 0x7f:
			controls++
		}
	}
	if 20*controls > len(text) {
		return problemf(ErrBinary, "not text: %d of the first %d bytes are control characters", controls, len(text))
	}
	return nil
}

// detectFormat chooses among the formats that are recognised without being asked for. whole tells that text is all there is.
func detectFormat(name string, text []byte, whole bool) (Format, error) {
	switch extension(name) {
	case ".jsonl", ".ndjson", ".jl", ".ldjson":
		return JSONL, nil
	case ".csv", ".tsv":
		if isRecipes(text) {
			return Recipes, nil
		}
		return CSV, nil
	case ".json":
		if t := bytes.TrimSpace(text); len(t) > 0 && t[0] == '[' || len(t) > 0 && t[0] == '{' && !isJSONLines(t, whole) {
			return "", problemf(ErrUnsupported, "a JSON document, not JSON lines; make lines of it with `jq -c '.[]'`, or read it as --format document")
		}
		return JSONL, nil
	case ".tokens":
		return WikiText, nil
	}
	switch {
	case isRecipes(text):
		return Recipes, nil
	case isJSONLines(text, whole):
		return JSONL, nil
	case isWikiText(text):
		return WikiText, nil
	}
	return Text, nil
}

// extension is the name's extension in lower case, without that of a compression.
func extension(name string) string {
	name = strings.ToLower(name)
	ext := filepath.Ext(name)
	switch ext {
	case ".gz", ".gzip", ".zst", ".zstd", ".bz2":
		return filepath.Ext(strings.TrimSuffix(name, ext))
	}
	return ext
}

// isJSONLines tells whether the first line is a JSON object, or begins one that is longer than what was looked at.
func isJSONLines(text []byte, whole bool) bool {
	text = bytes.TrimLeft(text, " \t\r\n")
	if len(text) == 0 || text[0] != '{' {
		return false
	}
	line, _, found := bytes.Cut(text, []byte("\n"))
	if !found && !whole {
		return bytes.HasPrefix(bytes.TrimLeft(line[1:], " \t"), []byte{0x22})
	}
	return json.Valid(line)
}

// isWikiText tells whether the first line that is not blank is a heading with a blank line behind it.
func isWikiText(text []byte) bool {
	for len(text) > 0 {
		line, rest, found := bytes.Cut(text, []byte("\n"))
		if !isBlank(line) {
			next, _, _ := bytes.Cut(rest, []byte("\n"))
			return found && len(line) <= maxHeadingBytes && isCandidate(line) && len(rest) > 0 && isBlank(next)
		}
		text = rest
	}
	return false
}

// recipeColumns are the columns of RecipeNLG that a recipe is made of.
var recipeColumns = []string{"title", "ingredients", "directions"}

func isRecipes(text []byte) bool {
	header, _, found := bytes.Cut(text, []byte("\n"))
	if !found || len(header) > maxHeadingBytes {
		return false
	}
	var columns []string
	for c := range strings.SplitSeq(strings.TrimSpace(string(header)), string(rune(sniffComma(header)))) {
		columns = append(columns, strings.Trim(c, `"`))
	}
	return len(columns) >= len(recipeColumns) && !slices.ContainsFunc(recipeColumns, func(c string) bool { return !slices.Contains(columns, c) })
}
