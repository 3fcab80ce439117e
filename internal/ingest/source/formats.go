package source

import (
	"bytes"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/dsload/dsload/internal/fault"
	"github.com/dsload/dsload/internal/ingest/source/cause"
	"github.com/dsload/dsload/internal/ingest/source/columnar"
	"github.com/dsload/dsload/internal/ingest/source/frame"
	"github.com/dsload/dsload/internal/ingest/source/uris"
)

// Format is how the records of an input are framed.
type Format string

// The formats. Auto chooses by the content and name of each input.
const (
	Auto     Format = "auto"
	Text     Format = "text"     // a document a line; lines of white space only are skipped
	Document Format = "document" // a document a file
	WikiText Format = "wikitext" // an article a document
	JSONL    Format = "jsonl"    // a JSON object a line
	JSON     Format = "json"     // an array of JSON objects, or objects one after another
	Chat     Format = "chat"     // a JSON object a line that holds a conversation
	CSV      Format = "csv"      // RFC 4180; comma, semicolon, tab, bar or another delimiter
	Parquet  Format = "parquet"  // a row of a parquet file
	Arrow    Format = "arrow"    // a row of an Arrow IPC file or stream
	Dataset  Format = "dataset"  // a row of a folder that datasets' save_to_disk wrote
	Tar      Format = "tar"      // the files of a tar archive, each by its own format
	Recipes  Format = "recipes"  // CSV with RecipeNLG's columns

	// Zip is the format of a zip archive of several files, each by its own format. It is found, not
	// asked for.
	Zip Format = "zip"
	// JSONChat is the format json of conversations, likewise found.
	JSONChat Format = "chat in json"
)

// Kind is what the records of a format are.
type Kind uint8

// The kinds.
const (
	Objects Kind = iota // JSON objects
	Texts               // text without fields
	Rows                // rows of CSV
	Various             // what the files in it are
)

// A layout is what is known of a format.
type layout struct {
	name    Format
	records Kind
	// frames is nil for files of columns, archives and folders.
	frames func(*frame.Window, *frame.Options) (frame.Framer, error)
	// opens a file of columns.
	opens func(io.ReaderAt, int64, columnar.Options) (columnar.File, error)
	// buffer returns the maximum number of bytes that its framer looks at. Default Options.MaxRecordBytes.
	buffer func(*frame.Options) int

	lines  bool // each line that is not blank is a record
	cuts   bool // a partition may begin after any record
	header bool // framing begins by reading the beginning of the input

	// What Auto recognises it by: the extensions of names, and columns that a header of CSV has.
	extensions, columns []string
	template            string // built in, makes the text of records where nothing else is to
}

// formats is the table of all formats, in the order of help.
var formats = []layout{
	{name: Auto, records: Various},
	{name: Text, records: Texts, frames: frame.NewText, buffer: ofPieces, lines: true, cuts: true},
	{name: Document, records: Texts, frames: frame.NewDocument, buffer: ofPieces},
	{name: WikiText, records: Texts, frames: frame.NewWikiText, buffer: ofArticles, cuts: true,
		extensions: []string{".tokens"}},
	{name: JSONL, frames: frame.NewJSONL, buffer: (*frame.Options).LineBytes, lines: true, cuts: true,
		extensions: []string{".jsonl", ".ndjson", ".ldjson"}},
	{name: JSON, frames: frame.NewJSON},
	{name: Chat, frames: frame.NewChat, lines: true, cuts: true},
	{name: CSV, records: Rows, frames: frame.NewCSV, cuts: true, header: true, extensions: []string{".csv", ".tsv"}},
	{name: Parquet, opens: columnar.OpenParquet, cuts: true},
	{name: Arrow, opens: columnar.OpenArrow, cuts: true},
	{name: Dataset},
	{name: Tar, records: Various, buffer: ofArchives},
	{name: Recipes, records: Rows, frames: frame.NewCSV, cuts: true, header: true,
		columns: []string{"title", "ingredients", "directions"}, template: "recipe"},
	{name: Zip, records: Various, buffer: ofArchives},
	{name: JSONChat, frames: frame.NewJSON},
}

func ofPieces(o *frame.Options) int   { return o.MaxPieceBytes }
func ofArticles(o *frame.Options) int { return o.MaxPieceBytes + 2*frame.MaxHeadingBytes }

// ofArchives is for members of any format, and headers with long names.
func ofArchives(o *frame.Options) int {
	return max(o.MaxRecordBytes, ofArticles(o), sniffBytes, maxTarText+tarBlock)
}

// layout returns what is known of a format, nothing for an unknown one.
func (f Format) layout() *layout {
	if l := byName()[f]; l != nil {
		return l
	}
	return &layout{}
}

var byName = sync.OnceValue(func() map[Format]*layout {
	m := make(map[Format]*layout, len(formats))
	for i := range formats {
		m[formats[i].name] = &formats[i]
	}
	return m
})

// Kind returns what the records of a format are.
func (f Format) Kind() Kind { return f.layout().records }

// HoldsChat reports whether the records of a format are conversations.
func (f Format) HoldsChat() bool { return f == Chat || f == JSONChat }

// Template returns the built-in template that makes the text of records of a format where neither a
// template nor a field is given, "" for most formats.
func (f Format) Template() string { return f.layout().template }

// IsColumnar reports whether inputs of a format are files of columns.
func (f Format) IsColumnar() bool { return f.layout().opens != nil }

// Formats returns all values that Options.Format takes.
func Formats() []Format {
	var names []Format
	for i := range formats {
		if name := formats[i].name; name != Zip && name != JSONChat {
			names = append(names, formats[i].name)
		}
	}
	return names
}

// ParseFormat returns the format of that name; "" is Auto.
func ParseFormat(name string) (Format, error) {
	f := Format(name)
	if name == "" {
		return Auto, nil
	}
	if slices.Contains(Formats(), f) {
		return f, nil
	}
	names := strings.Trim(fmt.Sprint(Formats()), "[]")
	return "", fault.Of(cause.Usage, "unknown format %q; one of %s", name, strings.ReplaceAll(names, " ", ", "))
}

// windowBytes returns the most that the window grows to for a format.
func (f Format) windowBytes(o *frame.Options) int {
	l := f.layout()
	switch {
	case l.opens != nil:
		return 0
	case l.buffer != nil:
		return l.buffer(o) + windowSlack
	}
	return o.MaxRecordBytes + windowSlack
}

// windowSlack is room after a record of the largest size for its line end.
const windowSlack = 64

// byExtension returns the format that a name has by its extension, "" for none.
func byExtension(extension string, text []byte) Format {
	for i := range formats {
		if l := &formats[i]; slices.Contains(l.extensions, extension) {
			if found := byHeader(text); l.records == Rows && found != "" {
				return found
			}
			return l.name
		}
	}
	return ""
}

// byHeader returns the format whose columns the first line names as CSV does, "" for none.
func byHeader(text []byte) Format {
	header, _, found := bytes.Cut(text, []byte("\n"))
	if !found || len(header) > frame.MaxHeadingBytes {
		return ""
	}
	var columns []string
	for c := range strings.SplitSeq(strings.TrimSpace(string(header)), string(rune(frame.SniffComma(header)))) {
		columns = append(columns, strings.Trim(c, `"`))
	}
	for i := range formats {
		l := &formats[i]
		lacks := func(c string) bool { return !slices.Contains(columns, c) }
		if l.columns != nil && !slices.ContainsFunc(l.columns, lacks) {
			return l.name
		}
	}
	return ""
}

// sniffBytes is how much text of an input detection looks at, after decompression.
const sniffBytes = 64 << 10

// DetectionRules is the number of the rules by which detectFormat chooses. It rises where they give
// files of some kind another format.
const DetectionRules = 1

// extension returns the name's extension in lower case, without that of a compression.
func extension(name string) string {
	name = strings.ToLower(uris.WithoutQuery(name))
	ext := filepath.Ext(name)
	switch ext {
	case ".gz", ".gzip", ".zst", ".zstd", ".bz2", ".bzip2", ".xz", ".lz4", ".sz", ".snappy", ".zip":
		return filepath.Ext(strings.TrimSuffix(name, ext))
	}
	return ext
}
