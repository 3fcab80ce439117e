package source

import (
	"bytes"
	"encoding/binary"
	"path"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/dsload/dsload/internal/fault"
	"github.com/dsload/dsload/internal/ingest/source/cause"
	"github.com/dsload/dsload/internal/ingest/source/columnar"
	"github.com/dsload/dsload/internal/ingest/source/decompress"
	"github.com/dsload/dsload/internal/ingest/source/frame"
	"github.com/dsload/dsload/internal/ingest/source/skip"
	"github.com/dsload/dsload/internal/shell"
)

type magic struct {
	at          int
	magic       string
	compression decompress.Compression
	kind        skip.Kind
	refusal     string
	text        textual
}

// textual says whether a magic could begin a text.
type textual int

const (
	neverText textual = iota
	mayBeText         // such a file is of the kind only where it is no text besides
	markedUp          // a text with more than words in it, which is read as it is where a format is given
)

// magics begin files of known kinds: a compression that is read, or a kind that is not, with what
// to do instead.
var magics = []magic{
	{0, "\x1f\x8b", decompress.Gzip, 0, "", neverText},
	{0, "\x28\xb5\x2f\xfd", decompress.Zstd, 0, "", neverText},
	{0, "BZh", decompress.Bzip2, 0, "", neverText},
	{0, "\xfd7zXZ\x00", decompress.XZ, 0, "", neverText},
	{0, "\x04\x22\x4d\x18", decompress.LZ4, 0, "", neverText},
	{0, "\x02\x21\x4c\x18", decompress.LZ4, 0, "", neverText},
	{0, "\xff\x06\x00\x00sNaPpY", decompress.Snappy, 0, "", neverText},
	{0, "\xff\x06\x00\x00S2sTwO", decompress.Plain, skip.Archive, "S2 data; decompress it with `s2d`", neverText},
	{0, "PK\x03\x04", decompress.Zipped, 0, "", neverText},
	{0, "PK\x05\x06", decompress.Plain, skip.Archive, "an empty zip archive; name what it should have held", neverText},
	{0, "7z\xbc\xaf\x27\x1c", decompress.Plain, skip.Archive, "a 7z archive; unpack it with `7z x` and name the folder", neverText},
	{0, "Rar!\x1a\x07", decompress.Plain, skip.Archive, "a rar archive; unpack it with `unrar x` and name the folder", neverText},
	{0, "SQLite format 3\x00", decompress.Plain, skip.Unread, "an SQLite database; write its rows as JSON lines first", neverText},
	{0, "\x89HDF\r\n\x1a\n", decompress.Plain, skip.Unread, "an HDF5 file; write its rows as JSON lines first", neverText},
	{0, "\x93NUMPY", decompress.Plain, skip.Unread, "a NumPy array; name the text it was made of", neverText},
	{0, "WARC/1.", decompress.Plain, skip.Unread, "a WARC file, of pages or their texts with headers; write its records as " +
		"JSON lines first, as with Python's warcio", markedUp},
	{0, "<mediawiki ", decompress.Plain, skip.Unread, "a dump of a wiki, all pages in one XML; write them as JSON lines first, " +
		"as with `wikiextractor --json`", markedUp},
	{0, "<doc id=\"", decompress.Plain, skip.Unread, "WikiExtractor's text, with tags around each page; write it anew with " +
		"`wikiextractor --json`", markedUp},
	{0, "Obj\x01", decompress.Plain, skip.Unread, "an Avro file; write its rows as parquet or JSON lines first", neverText},
	{0, "ORC", decompress.Plain, skip.Unread, "an ORC file; write its rows as parquet or JSON lines first", mayBeText},
	{0, "{\\rtf", decompress.Plain, skip.Office, "a document in RTF; turn it into text with `pandoc -t plain`", markedUp},
	{0, "%PDF-", decompress.Plain, skip.PDF, "a PDF; turn it into text with `pdftotext` and name that", neverText},
	{0, "\x89PNG\r\n\x1a\n", decompress.Plain, skip.Image, "an image; pass text files", neverText},
	{0, "\xff\xd8\xff", decompress.Plain, skip.Image, "an image; pass text files", neverText},
	{0, "GIF87a", decompress.Plain, skip.Image, "an image; pass text files", neverText},
	{0, "GIF89a", decompress.Plain, skip.Image, "an image; pass text files", neverText},
	{0, "II*\x00", decompress.Plain, skip.Image, "an image; pass text files", mayBeText},
	{0, "MM\x00*", decompress.Plain, skip.Image, "an image; pass text files", neverText},
	{8, "WEBP", decompress.Plain, skip.Image, "an image; pass text files", mayBeText},
	{0, "\x7fELF", decompress.Plain, skip.Program, "a program; pass text files", neverText},
	{0, "\xcf\xfa\xed\xfe", decompress.Plain, skip.Program, "a program; pass text files", neverText},
	{0, "\xca\xfe\xba\xbe", decompress.Plain, skip.Program, "a program; pass text files", neverText},
	{0, "\x00asm", decompress.Plain, skip.Program, "a program; pass text files", neverText},
	{0, "OggS", decompress.Plain, skip.Media, "sound or video; pass text files", mayBeText},
	{0, "fLaC", decompress.Plain, skip.Media, "sound; pass text files", mayBeText},
	{0, "ID3", decompress.Plain, skip.Media, "sound; pass text files", mayBeText},
	{8, "WAVE", decompress.Plain, skip.Media, "sound; pass text files", mayBeText},
	{4, "ftyp", decompress.Plain, skip.Media, "a video or an image; pass text files", mayBeText},
	{0, "\x1a\x45\xdf\xa3", decompress.Plain, skip.Media, "a video; pass text files", neverText},
	{0, "\xff\xfe\x00\x00", decompress.Plain, skip.UTF16, "text in UTF-32; convert it with `iconv -f UTF-32 -t UTF-8`", neverText},
	{0, "\x00\x00\xfe\xff", decompress.Plain, skip.UTF16, "text in UTF-32; convert it with `iconv -f UTF-32 -t UTF-8`", neverText},
}

// identify looks at the first bytes of an input, for which a format may be given: how it is compressed, or what it is
// that cannot be read.
func identify(name string, head []byte, given Format) (decompress.Compression, skip.Kind, error) {
	for _, m := range magics {
		if len(head) < m.at || !bytes.HasPrefix(head[m.at:], []byte(m.magic)) {
			continue
		}
		switch {
		case m.compression == decompress.Bzip2 && (len(head) < 4 || head[3] < '1' || head[3] > '9'):
			continue // a text that begins with BZh
		case m.compression == decompress.Zipped && (slices.Contains(officeExtensions, strings.ToLower(path.Ext(name))) ||
			bytes.HasPrefix(head[min(len(head), zipNameAt):], []byte("[Content_Types].xml")) ||
			bytes.HasPrefix(head[min(len(head), zipNameAt):], []byte("mimetypeapplication/"))):
			return decompress.Plain, skip.Office, fault.Of(cause.Unsupported, "this is an office document or an e-book; turn it "+
				"into text with `pandoc -t plain`, or a spreadsheet into CSV, and name that")
		case m.refusal == "":
			return m.compression, skip.Readable, nil
		case m.text == mayBeText && len(head) > 64 && checkText(head) == nil, m.text == markedUp && given != Auto:
			continue
		case m.text == markedUp:
			return decompress.Plain, m.kind, fault.Of(cause.Unsupported, "this is %s, or give its {format}, text or document, to "+
				"read it as it is", m.refusal)
		}
		return decompress.Plain, m.kind, fault.Of(cause.Unsupported, "this is %s", m.refusal)
	}
	if len(head) >= 4 && head[0]&0xf0 == 0x50 && string(head[1:4]) == "\x2a\x4d\x18" {
		return decompress.Zstd, skip.Readable, nil // a skippable frame, as pzstd writes first
	}
	if bytes.HasPrefix(head, []byte("version https://git-lfs.github.com/spec/")) {
		return decompress.Plain, skip.Readable, fault.Of(cause.Unsupported,
			"this is a pointer of Git LFS, not the data; fetch it with `git lfs pull`")
	}
	return decompress.Plain, skip.Readable, nil
}

// officeExtensions are those of documents that are zip archives of markup.
var officeExtensions = []string{".docx", ".xlsx", ".pptx", ".odt", ".ods", ".odp", ".epub"}

// zipNameAt is where the name of the first member begins in a zip archive.
const zipNameAt = 30

// checkText refuses what is not text: where more than one byte in 20, and more than one, is a zero
// byte or another control character. One zero byte among text is data that went wrong in one place:
// it passes, as it does through Python and JSON readers, rather than cost the whole file.
func checkText(text []byte) error {
	const ones, highs = 0x0101010101010101, 0x8080808080808080
	controls, at := 0, 0
	for ; at+8 <= len(text); at += 8 {
		word := binary.LittleEndian.Uint64(text[at:])
		if ((word-ones*' ')|(word&^highs+ones))&^word&highs == 0 {
			continue // most have neither a byte below ' ' nor a 0x7f
		}
		for _, b := range text[at : at+8] {
			controls += int(isControl[b])
		}
	}
	for _, b := range text[at:] {
		controls += int(isControl[b])
	}
	if controls > 1 && 20*controls > len(text) {
		return fault.Of(cause.Binary, "not text: %d of the first %d bytes are zero bytes or other control characters",
			controls, len(text))
	}
	return nil
}

// isControl is 1 for the control characters that text does not have.
var isControl = func() (table [256]uint8) {
	for b := range table[:' '] {
		if !frame.IsASCIISpace(byte(b)) && b != 0x1b && b != '\b' {
			table[b] = 1
		}
	}
	table[0x7f] = 1
	return table
}()

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

// namedKinds are the formats and compressions that the extension of a name announces, and how their
// files are called. Framed snappy is missing: files of bare snappy blocks have the same extension.
var namedKinds = map[string]struct {
	format      Format
	compression decompress.Compression
	name        string
}{
	".parquet": {Parquet, decompress.Plain, "a parquet file"}, ".pq": {Parquet, decompress.Plain, "a parquet file"},
	".arrow": {Arrow, decompress.Plain, "an Arrow file"}, ".arrows": {Arrow, decompress.Plain, "an Arrow stream"},
	".feather": {Arrow, decompress.Plain, "an Arrow file"}, ".ipc": {Arrow, decompress.Plain, "an Arrow file"},
	".gz": {"", decompress.Gzip, "gzip data"}, ".gzip": {"", decompress.Gzip, "gzip data"},
	".tgz": {"", decompress.Gzip, "gzip data"},
	".zst": {"", decompress.Zstd, "zstd data"}, ".zstd": {"", decompress.Zstd, "zstd data"},
	".tzst": {"", decompress.Zstd, "zstd data"},
	".bz2":  {"", decompress.Bzip2, "bzip2 data"}, ".bzip2": {"", decompress.Bzip2, "bzip2 data"},
	".tbz": {"", decompress.Bzip2, "bzip2 data"}, ".tbz2": {"", decompress.Bzip2, "bzip2 data"},
	".xz": {"", decompress.XZ, "xz data"}, ".txz": {"", decompress.XZ, "xz data"},
	".lz4": {"", decompress.LZ4, "lz4 data"},
	".zip": {"", decompress.Zipped, "a zip archive"},
}

// cutMagic reports whether a whole file is shorter than what shows that a file is compressed, or has columns, and
// begins like that.
func cutMagic(file []byte) bool {
	isCut := func(magic string) bool { return len(file) < len(magic) && strings.HasPrefix(magic, string(file)) }
	return len(file) > 0 && (isCut(columnar.ParquetMagic+"\x15") || isCut(columnar.ArrowMagic) || isCut("BZh1") ||
		slices.ContainsFunc(magics, func(m magic) bool { return m.compression != decompress.Plain && isCut(m.magic) }))
}

// checkBegin refuses an input whose name announces a format or compression, and whose first bytes
// are neither those of it nor text: it is damaged. The format or compression of the input is then
// what its name announces, so that reading it names the damage.
func (in *Input) checkBegin(o *Options, head []byte) error {
	named, ok := namedKinds[strings.ToLower(path.Ext(in.URI))]
	if cut := cutMagic(head); ok && (cut || len(head) == 0) {
		in.Format, in.Compression = named.format, named.compression
		return fault.Of(cause.Truncated, "named like %s, but it ends after %d bytes; copy the file again", named.name, len(head))
	} else if cut && len(head) > 2 && !utf8.Valid(head) { // a shorter text may be in another encoding
		return fault.Of(cause.Truncated, "this is the beginning of compressed data, %d bytes; copy the file again", len(head))
	}
	ok = ok && !(o.Format.IsColumnar() && named.format == "")
	encrypted, feather := bytes.HasPrefix(head, []byte("PARE")), bytes.HasPrefix(head, []byte("FEA1"))
	if !ok && !encrypted && !feather || checkText(head) == nil || decompress.UTF16Order(head) != nil || isTar(head) {
		return nil
	}
	switch {
	case encrypted:
		return fault.Of(cause.Unsupported, "this is an encrypted parquet file; write it again without encryption")
	case feather:
		return fault.Of(cause.Unsupported, "this is a Feather file of version 1; write it again as version 2")
	}
	in.Format, in.Compression = named.format, named.compression
	return fault.Of(cause.Corrupt, "named like %s, but its first bytes are not; copy the file again",
		named.name)
}
