package source

import (
	"bytes"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/dsload/dsload/internal/fault"
	"github.com/dsload/dsload/internal/ingest/source/cause"
	"github.com/dsload/dsload/internal/ingest/source/decompress"
	"github.com/dsload/dsload/internal/ingest/source/frame"
)

// A kind is why a file of a folder or glob is skipped. The zero kind is a file to read.
type kind int

const (
	readable kind = iota
	image
	archive
	program
	pdf
	office
	media
	dataset
	utf16Text
	binaryFile
	describing
	hidden
	special
	slashed // of a bucket
	link    // of an archive
	linkedFolder
	outputFolder
	builtFolder // a dataset of dsload, or an unfinished one
	builtFile   // of such a folder that is itself the source
	knownFile   // Options.Has knows it
	otherFolder // Options.Conditions leave out what is in its folder: noted apart
	notIncluded // by Options.Include or Exclude: counted for errors alone
	kinds
)

// kindNames are the singular and plural of each kind.
var kindNames = [kinds][2]string{
	image: {"image", "images"}, archive: {"archive", "archives"}, program: {"program", "programs"},
	pdf:       {"PDF", "PDFs"},
	office:    {"office document or e-book", "office documents or e-books"},
	media:     {"sound or video file", "sound or video files"},
	dataset:   {"file of a format that is not read", "files of formats that are not read"},
	utf16Text: {"text in UTF-16 or UTF-32", "texts in UTF-16 or UTF-32"}, binaryFile: {"binary file", "binary files"},
	describing: {"file that describes the data", "files that describe the data"}, hidden: {"hidden one", "hidden ones"},
	special:      {"device, socket or pipe", "devices, sockets or pipes"},
	slashed:      {"object whose name ends with a slash", "objects whose names end with a slash"},
	link:         {"link", "links"},
	linkedFolder: {"link to a folder", "links to folders"},
	outputFolder: {"folder of the dataset that is built", "folders of the dataset that is built"},
	builtFolder:  {"folder of a dataset that dsload built", "folders of datasets that dsload built"},
	builtFile:    {"file of a dataset that dsload built", "files of a dataset that dsload built"},
	knownFile:    {"file that the dataset has already", "files that the dataset has already"},
	notIncluded:  {"left out by pattern", "left out by pattern"},
}

// magics begin files of known kinds: a compression that is read, or a kind that is not, with what
// to do instead.
var magics = []struct {
	at          int
	magic       string
	compression decompress.Compression
	kind        kind
	refusal     string
}{
	{0, "\x1f\x8b\x08", decompress.Gzip, 0, ""},
	{0, "\x28\xb5\x2f\xfd", decompress.Zstd, 0, ""},
	{0, "BZh", decompress.Bzip2, 0, ""},
	{0, "\xfd7zXZ\x00", decompress.XZ, 0, ""},
	{0, "\x04\x22\x4d\x18", decompress.LZ4, 0, ""},
	{0, "\x02\x21\x4c\x18", decompress.LZ4, 0, ""},
	{0, "\xff\x06\x00\x00sNaPpY", decompress.Snappy, 0, ""},
	{0, "\xff\x06\x00\x00S2sTwO", decompress.Plain, archive, "S2 data; decompress it with `s2d`"},
	{0, "PK\x03\x04", decompress.Zipped, 0, ""},
	{0, "PK\x05\x06", decompress.Plain, archive, "an empty zip archive; name what it should have held"},
	{0, "7z\xbc\xaf\x27\x1c", decompress.Plain, archive, "a 7z archive; unpack it with `7z x` and name the folder"},
	{0, "Rar!\x1a\x07", decompress.Plain, archive, "a rar archive; unpack it with `unrar x` and name the folder"},
	{0, "SQLite format 3\x00", decompress.Plain, dataset, "an SQLite database; write its rows as JSON lines first"},
	{0, "\x89HDF\r\n\x1a\n", decompress.Plain, dataset, "an HDF5 file; write its rows as JSON lines first"},
	{0, "\x93NUMPY", decompress.Plain, dataset, "a NumPy array; name the text it was made of"},
	{0, "%PDF-", decompress.Plain, pdf, "a PDF; turn it into text with `pdftotext` and name that"},
	{0, "\x89PNG\r\n\x1a\n", decompress.Plain, image, "an image; pass text files"},
	{0, "\xff\xd8\xff", decompress.Plain, image, "an image; pass text files"},
	{0, "GIF87a", decompress.Plain, image, "an image; pass text files"},
	{0, "GIF89a", decompress.Plain, image, "an image; pass text files"},
	{0, "II*\x00", decompress.Plain, image, "an image; pass text files"},
	{0, "MM\x00*", decompress.Plain, image, "an image; pass text files"},
	{8, "WEBP", decompress.Plain, image, "an image; pass text files"},
	{0, "\x7fELF", decompress.Plain, program, "a program; pass text files"},
	{0, "\xcf\xfa\xed\xfe", decompress.Plain, program, "a program; pass text files"},
	{0, "\xca\xfe\xba\xbe", decompress.Plain, program, "a program; pass text files"},
	{0, "\x00asm", decompress.Plain, program, "a program; pass text files"},
	{0, "OggS", decompress.Plain, media, "sound or video; pass text files"},
	{0, "fLaC", decompress.Plain, media, "sound; pass text files"},
	{0, "ID3", decompress.Plain, media, "sound; pass text files"},
	{8, "WAVE", decompress.Plain, media, "sound; pass text files"},
	{4, "ftyp", decompress.Plain, media, "a video or an image; pass text files"},
	{0, "\x1a\x45\xdf\xa3", decompress.Plain, media, "a video; pass text files"},
	{0, "\xff\xfe\x00\x00", decompress.Plain, utf16Text, "text in UTF-32; convert it with `iconv -f UTF-32 -t UTF-8`"},
	{0, "\x00\x00\xfe\xff", decompress.Plain, utf16Text, "text in UTF-32; convert it with `iconv -f UTF-32 -t UTF-8`"},
}

// shortMagics are those that could begin a text. Such a file is of the kind only where it is no
// text besides.
var shortMagics = map[string]bool{"WEBP": true, "WAVE": true, "ftyp": true, "ID3": true, "OggS": true, "fLaC": true,
	"II*\x00": true}

// identify looks at the first bytes of an input: how it is compressed, or what it is that cannot be
// read.
func identify(name string, head []byte) (decompress.Compression, kind, error) {
	for _, m := range magics {
		if len(head) < m.at || !bytes.HasPrefix(head[m.at:], []byte(m.magic)) {
			continue
		}
		switch {
		case m.compression == decompress.Bzip2 && (len(head) < 4 || head[3] < '1' || head[3] > '9'):
			continue // a text that begins with BZh
		case m.compression == decompress.Zipped && isOffice(name, head):
			return decompress.Plain, office, fault.Of(cause.Unsupported, "this is an office document or an e-book; turn it "+
				"into text with `pandoc -t plain`, or a spreadsheet into CSV, and name that")
		case m.refusal == "":
			return m.compression, readable, nil
		case shortMagics[m.magic] && len(head) > 64 && checkText(head) == nil:
			continue
		}
		return decompress.Plain, m.kind, fault.Of(cause.Unsupported, "this is %s", m.refusal)
	}
	if isSkippable(head) {
		return decompress.Zstd, readable, nil
	}
	if bytes.HasPrefix(head, []byte("version https://git-lfs.github.com/spec/")) {
		return decompress.Plain, readable, fault.Of(cause.Unsupported,
			"this is a pointer of Git LFS, not the data; fetch it with `git lfs pull`")
	}
	return decompress.Plain, readable, nil
}

// officeExtensions are those of documents that are zip archives of markup.
var officeExtensions = []string{".docx", ".xlsx", ".pptx", ".odt", ".ods", ".odp", ".epub"}

// isOffice reports whether a zip archive is such a document, by its name or its first member.
func isOffice(name string, head []byte) bool {
	const nameAt = 30 // of the first member, in its header
	first := head[min(len(head), nameAt):]
	return slices.Contains(officeExtensions, strings.ToLower(path.Ext(name))) ||
		bytes.HasPrefix(first, []byte("[Content_Types].xml")) ||
		bytes.HasPrefix(first, []byte("mimetypeapplication/"))
}

// isSkippable reports whether a skippable zstd frame begins here, as pzstd writes first.
func isSkippable(head []byte) bool {
	return len(head) >= 4 && head[0]&0xf0 == 0x50 && string(head[1:4]) == "\x2a\x4d\x18"
}

// checkText refuses what is not text: where more than one byte in 20, and more than one, is a zero
// byte or another control character. One zero byte among text is data that went wrong in one place:
// it passes, as it does through Python and JSON readers, rather than cost the whole file.
func checkText(text []byte) error {
	controls := 0
	for _, b := range text {
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

// describingNames are the names, in lower case, of files that lie next to data and describe it. A star
// stands for anything, at the beginning or the end.
var describingNames = []string{"readme*", "license*", "licence*", "copying*", "notice*", "changelog*", "citation*",
	"dataset_info.json", "dataset_infos.json",
	"dataset_dict.json", "state.json", "manifest.json", "run.json", "*sums", "*.md5", "*.sha1", "*.sha256",
	"*.sha512", "*.crc", "*.sig", "*.asc", "*.lock",
	"*.tmp", "*.part", "*.partial", "*.crdownload", "*~"}

func isDescribing(name string) bool {
	name = strings.ToLower(name)
	return slices.ContainsFunc(describingNames, func(pattern string) bool {
		if prefix, ok := strings.CutSuffix(pattern, "*"); ok {
			return strings.HasPrefix(name, prefix)
		}
		if suffix, ok := strings.CutPrefix(pattern, "*"); ok {
			return strings.HasSuffix(name, suffix)
		}
		return name == pattern
	})
}

func isHidden(name string) bool { return name[0] == '.' || name[0] == '_' }

// suffix returns the list after a colon, "" if nothing was skipped.
func (p *skippedFiles) suffix() string {
	if text := p.text(true); text != "" {
		return ": skipped " + text
	}
	return ""
}

// skippedFiles counts the files of a folder or glob that are not read, by kind.
type skippedFiles struct {
	counts [kinds]int
	first  [kinds]string
}

func (p *skippedFiles) add(k kind, name string) {
	// A folder lists its files in any order; the message does not depend on it.
	if p.counts[k]++; p.counts[k] == 1 || k == builtFolder && name < p.first[k] {
		p.first[k] = name
	}
}

// text lists what was skipped, "" if nothing was. Files that the caller's own patterns
// leave out are listed only with all set.
func (p *skippedFiles) text(all bool) string {
	var list []string
	for k := image; k < kinds; k++ {
		n := p.counts[k]
		switch {
		case n == 0 || k == otherFolder || k == notIncluded && !all:
		case k == notIncluded:
			list = append(list, fmt.Sprintf("%d %s", n, kindNames[k][0]))
		case n == 1:
			list = append(list, fmt.Sprintf("1 %s (%s)", kindNames[k][0], p.first[k]))
		default:
			list = append(list, fmt.Sprintf("%d %s (%s, …)", n, kindNames[k][1], p.first[k]))
		}
	}
	return strings.Join(list, ", ")
}
