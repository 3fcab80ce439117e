// Package skip says why a file of a folder, a glob or an archive is not read, and counts such files.
package skip

import (
	"fmt"
	"slices"
	"strings"
)

// A Kind is why a file of a folder or glob is skipped. The zero Kind is a file to read.
type Kind int

// The kinds.
const (
	Readable Kind = iota
	Image
	Archive
	Program
	PDF
	Office
	Media
	Unread // a format that is known and not read
	UTF16
	Binary
	Describing
	Hidden
	Special
	Slashed
	Link
	LinkedFolder
	OutputFolder
	BuiltFolder // a dataset of dsload, or an unfinished one
	BuiltFile   // one of a BuiltFolder that is itself the source
	Known       // the dataset that is built has it already
	OtherFolder // its folder's name shows that no record of it is wanted: noted apart
	NotIncluded // left out by a pattern: listed in errors alone
	kinds
)

// names are the singular and plural of each kind.
var names = [kinds][2]string{
	Image:        {"image", "images"},
	Archive:      {"archive", "archives"},
	Program:      {"program", "programs"},
	PDF:          {"PDF", "PDFs"},
	Office:       {"office document or e-book", "office documents or e-books"},
	Media:        {"sound or video file", "sound or video files"},
	Unread:       {"file of a format that is not read", "files of formats that are not read"},
	UTF16:        {"text in UTF-16 or UTF-32", "texts in UTF-16 or UTF-32"},
	Binary:       {"binary file", "binary files"},
	Describing:   {"file that describes the data", "files that describe the data"},
	Hidden:       {"hidden one", "hidden ones"},
	Special:      {"device, socket or pipe", "devices, sockets or pipes"},
	Slashed:      {"object whose name ends with a slash", "objects whose names end with a slash"},
	Link:         {"link", "links"},
	LinkedFolder: {"link to a folder", "links to folders"},
	OutputFolder: {"folder of the dataset that is built", "folders of the dataset that is built"},
	BuiltFolder:  {"folder of a dataset that dsload built", "folders of datasets that dsload built"},
	BuiltFile:    {"file of a dataset that dsload built", "files of a dataset that dsload built"},
	Known:        {"file that the dataset has already", "files that the dataset has already"},
	NotIncluded:  {"left out by pattern", "left out by pattern"},
}

// describing are the names, in lower case, of files that lie next to data and describe it. A star stands for
// anything, at the beginning or the end.
var describing = []string{"readme*", "license*", "licence*", "copying*", "notice*", "changelog*", "citation*",
	"dataset_info.json", "dataset_infos.json", "dataset_dict.json", "state.json", "manifest.json", "run.json",
	"*sums", "*.md5", "*.sha1", "*.sha256", "*.sha512", "*.crc", "*.sig", "*.asc", "*.lock",
	"*.tmp", "*.part", "*.partial", "*.crdownload", "*~"}

// IsDescribing reports whether a file of this name describes data rather than hold it.
func IsDescribing(name string) bool {
	name = strings.ToLower(name)
	return slices.ContainsFunc(describing, func(pattern string) bool {
		if prefix, ok := strings.CutSuffix(pattern, "*"); ok {
			return strings.HasPrefix(name, prefix)
		}
		if suffix, ok := strings.CutPrefix(pattern, "*"); ok {
			return strings.HasSuffix(name, suffix)
		}
		return name == pattern
	})
}

// IsHidden reports whether a file or folder of this name is hidden.
func IsHidden(name string) bool { return name[0] == '.' || name[0] == '_' }

// A Sample counts what a message is about, and has the first of it.
type Sample struct {
	N     int
	First string
}

// Add counts one more.
func (s *Sample) Add(name string) {
	if s.N++; s.N == 1 {
		s.First = name
	}
}

// Counts counts the files of a folder, glob or archive that are not read, by kind.
type Counts struct{ of [kinds]Sample }

// Add counts a file.
func (c *Counts) Add(k Kind, name string) {
	s := &c.of[k]
	s.Add(name)
	if k == BuiltFolder {
		s.First = min(s.First, name) // a folder lists its files in any order; the message does not depend on it
	}
}

// Unneeded returns how many files were not read because nothing in them is needed.
func (c *Counts) Unneeded() int { return c.of[Known].N + c.of[OtherFolder].N }

// ReadIfNamed reports whether one of the files is read where it is itself the source, as most of its kind are.
func (c *Counts) ReadIfNamed() bool {
	return slices.ContainsFunc([]Kind{Archive, UTF16, Describing, Hidden, Special, Link, LinkedFolder},
		func(k Kind) bool { return c.of[k].N > 0 })
}

// Total returns how many files were counted but for those that a pattern leaves out.
func (c *Counts) Total() (total int64) {
	for k := Image; k < NotIncluded; k++ {
		total += int64(c.of[k].N)
	}
	return total
}

// Text lists what was skipped, "" if nothing was. Files that a pattern leaves out are listed only with all set.
func (c *Counts) Text(all bool) string {
	var list []string
	for k := Image; k < kinds; k++ {
		n, first := c.of[k].N, c.of[k].First
		switch {
		case n == 0 || k == OtherFolder || k == NotIncluded && !all:
		case k == NotIncluded:
			list = append(list, fmt.Sprintf("%d %s", n, names[k][0]))
		case n == 1:
			list = append(list, fmt.Sprintf("1 %s (%s)", names[k][0], first))
		default:
			list = append(list, fmt.Sprintf("%d %s (%s, …)", n, names[k][1], first))
		}
	}
	return strings.Join(list, ", ")
}
