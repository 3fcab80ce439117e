package source

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"path/filepath"
	"slices"
	"strings"
)

// detect finds compression and format of an input by its first bytes and its name. hasText is false
// where it is empty for certain. Where what is not readable, err says what the file is instead.
// look is a buffer for detection.
func (in *Input) detect(o *Options, look []byte) (hasText bool, what kind, err error) {
	if in.synth != nil {
		if o.Format != Auto && o.Format != in.Format {
			return false, readable, problemf(ErrUsage, "%s has the format %s, not %s", in.URI, in.Format, o.Format)
		}
		return true, readable, nil
	}
	refuse := func(what kind, err error) (bool, kind, error) {
		e := &InputError{URI: in.URI, Offset: -1, Err: err}
		if errors.Is(err, ErrBinary) {
			e.Hint = "name files of text, or their compression"
		}
		return false, what, e
	}
	head, err := in.sniff(look)
	if err != nil {
		return refuse(readable, err)
	}
	if in.Compression, what, err = identify(in.URI, head); err != nil {
		return refuse(what, err)
	}
	text, whole := head, len(head) < sniffBytes
	if in.Compression != Plain {
		if window := zstdWindow(head); in.Compression == Zstd && window > o.WindowBytes {
			if in.window = window; window > maxWindowBytes {
				return refuse(readable, problemf(ErrUnsupported,
					"its zstd window is %s, and zstd itself makes none above %s", mebibytes(window),
					mebibytes(maxWindowBytes)))
			}
		}
		if text, whole, err = in.sniffText(o, look); err != nil {
			return refuse(readable, err)
		}
		inside, what, err := identify(in.URI, text)
		if err == nil && inside != Plain {
			what, err = archive, problemf(ErrUnsupported, "this is %s data within %s data; decompress it once",
				inside, in.Compression)
		}
		if err != nil {
			return refuse(what, err)
		}
	}
	if in.Size >= 0 {
		in.textBytes = estimate(in.Compression, in.Size)
	}
	if err := checkText(text); err != nil {
		return refuse(binaryFile, err)
	}
	text = bytes.TrimPrefix(text, []byte("\ufeff"))
	in.Format = o.Format
	if in.Format == Auto {
		if in.Format, err = detectFormat(in.URI, text, whole, o.Fields); err != nil {
			return refuse(readable, err)
		}
	}
	return len(text) > 0 || !whole, readable, nil
}

func estimate(c Compression, size int64) int64 { return size * compressedRatio[c] }

// detectFormat chooses among the formats that are recognised without being asked for. whole reports
// that text is all there is; fields are those that are wanted of a record.
func detectFormat(name string, text []byte, whole bool, fields []string) (Format, error) {
	switch extension(name) {
	case ".jsonl", ".ndjson", ".jl", ".ldjson":
		return JSONL, nil
	case ".csv", ".tsv":
		if isRecipes(text) {
			return Recipes, nil
		}
		return CSV, nil
	case ".json":
		if t := bytes.TrimSpace(text); len(t) > 0 && t[0] == '[' || len(t) > 0 && t[0] == '{' &&
			!isJSONLines(t, whole) {
			return "", jsonDocument(text)
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
	case isJSONDocument(text, whole):
		return "", jsonDocument(text)
	case isWikiText(text):
		return WikiText, nil
	case isCSV(text, whole, fields):
		return CSV, nil
	}
	return Text, nil
}

// jsonDocument refuses a JSON value over several lines, with the command that makes lines of it: of a
// list of objects, of a list of texts, of objects.
func jsonDocument(text []byte) error {
	text = bytes.TrimLeft(text, " \t\r\n")
	program := "."
	if inside, isList := bytes.CutPrefix(text, []byte{'['}); isList {
		program = "'.[]'"
		if bytes.HasPrefix(bytes.TrimLeft(inside, " \t\r\n"), []byte{'"'}) {
			program = "'.[] | {text: .}'"
		}
	}
	return problemf(ErrUnsupported, "a JSON document, not JSON lines; make lines of it with `jq -c %s`, or read it as `format` document",
		program)
}

// extension is the name's extension in lower case, without that of a compression.
func extension(name string) string {
	name = strings.ToLower(name)
	ext := filepath.Ext(name)
	switch ext {
	case ".gz", ".gzip", ".zst", ".zstd", ".bz2", ".bzip2":
		return filepath.Ext(strings.TrimSuffix(name, ext))
	}
	return ext
}

// triedLines is how many lines are looked at for a JSON object where the first one begins like one
// and is none: one bad record must not make text of all.
const triedLines = 20

// isJSONLines reports whether the first line is a JSON object, or begins one that is longer than
// what was looked at, or is a broken one among good ones.
func isJSONLines(text []byte, whole bool) bool {
	text = bytes.TrimLeft(text, " \t\r\n")
	if len(text) == 0 || text[0] != '{' {
		return false
	}
	for i := 0; i < triedLines && len(text) > 0; i++ {
		line, rest, found := bytes.Cut(text, []byte("\n"))
		if !found && !whole {
			return i == 0 && bytes.HasPrefix(bytes.TrimLeft(line[1:], " \t"), []byte{'"'})
		}
		if isObject(line) && (i == 0 || bytes.IndexByte(line, '"') >= 0) {
			return true
		}
		text = rest
	}
	return false
}

// isObject reports whether a line is a JSON object, by the rules that records are read by.
func isObject(line []byte) bool {
	s := jsonScanner{w: &window{buf: line, w: len(line), err: io.EOF}}
	s.begin()
	if !s.expect('{') {
		return false
	}
	if s.token() == '}' {
		s.w.consume(1)
	} else if !s.members("\xff", false) { // no key of valid text
		return false
	}
	return s.token() == 0 && s.w.r == s.w.w
}

// isJSONDocument reports whether this is one JSON value over several lines: a list of objects, or
// an object.
func isJSONDocument(text []byte, whole bool) bool {
	begins := func(b byte) bool {
		text = bytes.TrimLeft(text, " \t\r\n")
		if len(text) == 0 || text[0] != b {
			return false
		}
		text = text[1:]
		return true
	}
	all := text
	if begins('[') {
		return begins('{') && begins('"')
	}
	if !begins('{') {
		return false
	}
	broken := bytes.IndexByte(text[:len(text)-len(bytes.TrimLeft(text, " \t\r\n"))], '\n') >= 0
	return begins('"') && (broken || whole && json.Valid(all))
}

// triedRecords is how many records must have as many fields as the header.
const triedRecords = 20

// isCSV reports whether the first line is a header that names the wanted fields, and the records
// after it have as many fields.
func isCSV(text []byte, whole bool, wanted []string) bool {
	header, rest, found := bytes.Cut(text, []byte("\n"))
	if !found || len(wanted) == 0 || len(header) > maxHeadingBytes {
		return false
	}
	comma := sniffComma(header)
	columns := strings.Split(strings.TrimSpace(string(header)), string(rune(comma)))
	for i := range columns {
		columns[i] = strings.Trim(columns[i], `"`)
	}
	sorted := slices.Sorted(slices.Values(columns))
	unknown := func(field string) bool { return !slices.Contains(columns, field) }
	if len(columns) < 2 || slices.ContainsFunc(wanted, unknown) || sorted[0] == "" ||
		len(slices.Compact(sorted)) < len(columns) {
		return false
	}
	records, fields, quoted := 0, 1, false
	for i, b := range rest {
		switch {
		case b == '"':
			quoted = !quoted
		case quoted:
		case b == comma:
			fields++
		case b == '\n' && fields == 1 && (i == 0 || rest[i-1] == '\n' || rest[i-1] == '\r'): // a blank line
		case b == '\n':
			if fields != len(columns) {
				return false
			}
			if records++; records == triedRecords {
				return true
			}
			fields = 1
		}
	}
	unended := len(rest) > 0 && rest[len(rest)-1] != '\n'
	if whole && unended {
		return !quoted && fields == len(columns)
	}
	return records > 0
}

// isWikiText reports whether the first line that is not blank is a heading with a blank line after
// it.
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
	return len(columns) >= len(recipeColumns) && !slices.ContainsFunc(recipeColumns,
		func(c string) bool { return !slices.Contains(columns, c) })
}
