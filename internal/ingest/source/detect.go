package source

import (
	"bytes"
	"encoding/json"
	"errors"
	"path/filepath"
	"slices"
	"strings"

	"github.com/dsload/dsload/internal/fault"
	"github.com/dsload/dsload/internal/ingest/source/cause"
	"github.com/dsload/dsload/internal/ingest/source/decompress"
	"github.com/dsload/dsload/internal/ingest/source/frame"
	"github.com/dsload/dsload/internal/ingest/source/listing"
	"github.com/dsload/dsload/internal/ingest/source/skip"
	"github.com/dsload/dsload/internal/jsonscan"
	"github.com/dsload/dsload/internal/units"
)

// detect finds compression and format of an input by its first bytes and its name. hasText is false
// if the input is certainly empty. If what is not readable, err says what the file is instead. look
// is a buffer for detection.
func (in *Input) detect(o *Options, look []byte) (hasText bool, what skip.Kind, err error) {
	hasText, what, err = in.look(o, look)
	if err == nil || what != skip.Readable || !o.skips(err) {
		return hasText, what, markDamaged(err, what == skip.Readable)
	}
	in.setDamaged()
	return true, skip.Readable, nil
}

// look is detect, with damage as an error.
func (in *Input) look(o *Options, look []byte) (hasText bool, what skip.Kind, err error) {
	if in.Synth != nil {
		if o.Format != Auto && o.Format != in.Format {
			return false, skip.Readable, fault.Of(cause.Usage, "%s has the format %s, not %s", in.URI, in.Format, o.Format)
		}
		return true, skip.Readable, nil
	}
	refuse := func(what skip.Kind, err error) (bool, skip.Kind, error) {
		if in.Store != nil {
			if failed := listing.Cause(in.URI, -1, err); failed != err {
				return false, skip.Readable, failed
			}
		}
		e := cause.Unread(in.URI, err)
		if errors.Is(err, cause.Binary) {
			e.Hint = "pass text files, compressed or not"
		}
		return false, what, e
	}
	head, err := in.sniff(look)
	if err != nil {
		return refuse(skip.Readable, err)
	}
	if in.Compression, what, err = identify(in.URI, head, o.Format); err != nil {
		return refuse(what, err)
	}
	text, whole := head, len(head) < sniffBytes
	if in.Format = tableFormat(head); in.Format != "" && in.Compression == decompress.Plain {
		if o.Format != Auto && o.Format != Chat && o.Format != in.Format {
			return refuse(skip.Unread, fault.Of(cause.Usage, "this is a file of the format %s, not %s; leave {format} out",
				in.Format, o.Format))
		}
		return in.detectTable(o, refuse)
	}
	if in.Compression == decompress.Plain {
		if err := in.checkBegin(o, head); err != nil {
			return refuse(skip.Readable, err)
		}
	}
	if o.Format.IsColumnar() {
		return refuse(skip.Unread, fault.Of(cause.Unsupported,
			"this is not a file of the format %s: wrong first bytes", o.Format))
	}
	switch {
	case in.Compression == decompress.Zipped:
		return in.detectZip(o, look, refuse)
	case in.Compression == decompress.Plain && decompress.UTF16Order(head) != nil:
		in.Compression = decompress.UTF16
		half := head[:min(len(head), sniffBytes/2)] // becomes at most 3/2 as long
		text, _ = decompress.AppendUTF8(look[sniffBytes:sniffBytes], half[2:], decompress.UTF16Order(head), false)
		whole = whole && len(half) == len(head)
	case in.Compression != decompress.Plain:
		if text, whole, what, err = in.decompressed(o, head, look); err != nil {
			return refuse(what, err)
		}
	}
	return in.detectText(o, text, whole, refuse)
}

// decompressed returns the beginning of the text in a compressed input, of which head is the
// beginning. If err is not nil, what says what the input is.
func (in *Input) decompressed(o *Options, head, look []byte) (text []byte, whole bool, what skip.Kind, err error) {
	if err := in.setWindow(o, head); err != nil {
		return nil, false, skip.Readable, err
	}
	if text, whole, err = in.sniffText(o, look); err != nil {
		return nil, false, skip.Readable, err
	}
	inside, what, err := identify(in.URI, text, o.Format)
	if err == nil && inside != decompress.Plain {
		what, err = skip.Archive, fault.Of(cause.Unsupported, "this is %s data within %s data; decompress it once",
			inside, in.Compression)
	}
	if table := tableFormat(text); err == nil && table != "" { // columns are read at many places
		what, err = skip.Unread, fault.Of(cause.Unsupported, "this is %s data within %s data; decompress it", table,
			in.Compression)
	}
	return text, whole, what, err
}

// refusal makes the answer of detect for what cannot be read.
type refusal func(what skip.Kind, err error) (bool, skip.Kind, error)

// detectText finds the format of the text that an input begins with.
func (in *Input) detectText(o *Options, text []byte, whole bool, refuse refusal) (hasText bool, what skip.Kind, err error) {
	if in.Size >= 0 {
		in.textBytes = estimate(in.Compression, in.Size)
	}
	if isTar(text) {
		if in.archive, in.Format = Tar, o.Format; o.Format == Auto {
			in.Format = Tar
		}
		return true, skip.Readable, nil
	}
	switch filepath.Ext(in.URI) {
	case ".tar", ".tgz", ".tbz", ".tbz2", ".txz", ".tzst":
		if len(text) > 0 && o.Format == Auto {
			return refuse(skip.Readable, fault.Of(cause.Corrupt,
				"this is a tar archive by its name, and does not begin with a header; "+
					"copy the file again, or give its own {format}"))
		}
	}
	if o.Format == Tar {
		return refuse(skip.Archive, fault.Of(cause.Unsupported,
			"this is not a tar archive: it does not begin with a header; give its own {format}"))
	}
	if err := checkText(text); err != nil {
		encoding := unmarkedUTF16(text)
		if encoding == "" {
			return refuse(skip.Binary, err)
		}
		file := ""
		if in.IsPlainFile() {
			file = in.URI
		}
		return refuse(skip.UTF16, fault.Of(cause.Unsupported,
			"this looks like text in %s without a byte order mark; convert it with %s and name that", encoding,
			Iconv(encoding, file)))
	}
	text = bytes.TrimPrefix(text, []byte("\ufeff"))
	if in.Format = o.Format; in.Format == Chat {
		in.Format = chatFormat(in.URI, text, whole)
	} else if in.Format == Auto {
		in.Format = detectFormat(in.URI, text, whole, o.headerFields())
		if l := in.Format.layout(); o.Columns != nil && (in.Format == Text || l.columns != nil) {
			in.Format = CSV
		} else if o.FindChat && in.Format == JSONL && isChat(text, o.TextField) {
			in.Format = Chat
		} else if o.FindChat && in.Format == JSON && isJSONChat(text, o.TextField) {
			in.Format = JSONChat
		}
	}
	if in.Format, in.Records, in.Lists, err = o.withRecords(in.Format, text, whole); err != nil {
		return refuse(skip.Readable, err)
	}
	if o.Conditions != nil && in.Format.Kind() == Rows {
		in.columns = frame.Header(&o.Framing, text, whole)
	}
	if in.Format == Text && bytes.IndexByte(text, '\n') < 0 {
		in.oneLine = bytes.IndexByte(bytes.TrimRight(text, "\r"), '\r') >= 0
	}
	return len(text) > 0 || !whole, skip.Readable, nil
}

// setWindow notes the window that the first frame asks for, if that is more than usual.
func (in *Input) setWindow(o *Options, head []byte) error {
	var window int64
	switch in.Compression {
	case decompress.Zstd:
		window = decompress.ZstdWindow(head)
	case decompress.XZ:
		window = decompress.XZDictionary(head)
	case decompress.LZ4:
		in.window = decompress.LZ4Block(head)
		return nil
	}
	if window <= o.WindowBytes {
		return nil
	}
	if in.window = window; window > maxWindowBytes {
		return fault.Of(cause.Unsupported, "its %s window is %s, and %s itself makes none above %s", in.Compression,
			units.Size(window), in.Compression, units.Size(maxWindowBytes))
	}
	return nil
}

func estimate(c decompress.Compression, size int64) int64 { return size * compressedRatio[c] }

// detectFormat chooses among the formats that are recognised without being asked for. whole reports
// that text is all there is; fields are those that are wanted of a record.
func detectFormat(name string, text []byte, whole bool, fields []string) Format {
	switch ext := extension(name); ext {
	case ".jl": // JSON lines, or Julia
		if t := bytes.TrimSpace(text); len(t) > 0 && t[0] != '{' {
			return Document
		}
		return JSONL
	case ".json":
		if t := bytes.TrimSpace(text); len(t) > 0 && !isJSONLines(t, whole) {
			return JSON
		}
		return JSONL
	default:
		if f := byExtension(ext, text); f != "" {
			return f
		}
	}
	if isWholeFile(name, text) {
		return Document
	}
	if f := byHeader(text); f != "" {
		return f
	}
	switch {
	case isJSONLines(text, whole):
		return JSONL
	case isJSONDocument(text, whole):
		return JSON
	case frame.IsWikiText(text):
		return WikiText
	case isCSV(text, whole, fields):
		return CSV
	}
	return Text
}

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
		var s jsonscan.Scanner // by the rules that records are read by
		s.Reset(line)
		if s.Members(func([]byte) error { return s.Skip() }) == nil && s.End() == nil && (i == 0 || bytes.IndexByte(line, '"') >= 0) {
			return true
		}
		text = rest
	}
	return false
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

// headerFields returns the fields by which a header of CSV is recognised; one of several is written a|b.
func (o *Options) headerFields() []string {
	if o.AnyOf == nil {
		return o.Fields
	}
	others := slices.DeleteFunc(slices.Clone(o.Fields), func(f string) bool { return slices.Contains(o.AnyOf, f) })
	return append(others, strings.Join(o.AnyOf, "|"))
}

// triedRecords is how many records must have as many fields as the header.
const triedRecords = 20

// isCSV reports whether the first line is a header that names the wanted fields, and the records
// after it have as many fields.
func isCSV(text []byte, whole bool, wanted []string) bool {
	header, rest, found := bytes.Cut(text, []byte("\n"))
	if !found || len(wanted) == 0 || len(header) > frame.MaxHeadingBytes {
		return false
	}
	comma := frame.SniffComma(header)
	columns := strings.Split(strings.TrimSpace(string(header)), string(rune(comma)))
	for i := range columns {
		columns[i] = strings.TrimSpace(strings.Trim(columns[i], `"`))
	}
	sorted := slices.Sorted(slices.Values(columns))
	has := func(field string) bool { return slices.Contains(columns, field) }
	unknown := func(field string) bool {
		return !has(field) && !slices.ContainsFunc(strings.Split(field, "|"), has)
	}
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

// chatFormat returns how conversations are written: Chat for JSON lines, JSON for an array or
// objects over several lines, or CSV. whole reports that text is all there is.
func chatFormat(name string, text []byte, whole bool) Format {
	switch format := detectFormat(name, text, whole, nil); {
	case format == JSON:
		return JSON
	case format.Kind() == Rows:
		return CSV
	}
	return Chat
}

// setDamaged gives a damaged input, whose format cannot be found, the format with which reading
// will fail.
func (in *Input) setDamaged() {
	switch {
	case in.Format.IsColumnar():
	case in.Compression == decompress.Zipped:
		in.archive, in.Format = Zip, Zip
	default:
		in.archive, in.Format = Tar, Tar
	}
	in.textBytes = max(0, in.Size)
}
