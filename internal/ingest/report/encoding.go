package report

import (
	"fmt"
	"unicode/utf8"

	"github.com/dsload/dsload/internal/fault"
	"github.com/dsload/dsload/internal/ingest/source"
	"github.com/dsload/dsload/internal/units"
)

// IllFormed describes the documents with ill-formed UTF-8. In text in another encoding every accented letter is
// ill-formed, and the bytes show which encoding it is.
type IllFormed struct {
	First string `json:"first"` // the input of the first one
	Row   int64  `json:"row"`
	Valid int64  `json:"valid,omitempty"` // characters above ASCII that are well-formed
	High  int64  `json:"high,omitempty"`  // bytes of none
	Runs  int64  `json:"runs,omitempty"`  // stretches of such bytes
	Usual int64  `json:"usual,omitempty"` // such bytes that would be a letter next to one of ASCII, or a quotation mark
	C1    int64  `json:"c1,omitempty"`    // such bytes that are not characters in Latin-1
	Undef int64  `json:"undef,omitempty"` // nor in Windows-1252
	Iconv string `json:"iconv,omitempty"` // what iconv converts of the first input, "" if it is not such a file
}

// Add takes the bytes of a record in.
func (f *IllFormed) Add(raw []byte) {
	ascii := func(i int) bool { return i >= 0 && i < len(raw) && (raw[i]|0x20 >= 'a' && raw[i]|0x20 <= 'z') }
	inRun := false
	for i := 0; i < len(raw); {
		if raw[i] < utf8.RuneSelf {
			i, inRun = i+1, false
			continue
		}
		if r, n := utf8.DecodeRune(raw[i:]); r != utf8.RuneError || n > 1 {
			f.Valid++
			i, inRun = i+n, false
			continue
		}
		if !inRun {
			f.Runs++
		}
		f.High++
		b := raw[i]
		if b >= 0xc0 && (ascii(i-1) || ascii(i+1)) || 0x91 <= b && b <= 0x97 || b == 0x85 || b == 0xa0 || b == 0xab ||
			b == 0xbb {
			f.Usual++
		}
		if b < 0xa0 {
			f.C1++
			if b == 0x81 || b == 0x8d || b == 0x8f || b == 0x90 || b == 0x9d {
				f.Undef++
			}
		}
		i, inRun = i+1, true
	}
}

// Looks returns what the bytes look like, and what iconv calls that: nothing if none is ill-formed.
func (f *IllFormed) Looks() (name, iconv string) {
	switch {
	case f.High == 0:
		return "", ""
	case 4*f.Valid > f.High || 3*f.Runs < 2*f.High || 2*f.Usual < f.High || f.Undef > 0: // it does not show which it is
		return "in an encoding that it does not show", "ENCODING"
	case f.C1 == 0:
		return "Latin-1 (ISO 8859-1)", "LATIN1"
	}
	return "Windows-1252", "WINDOWS-1252"
}

// Warnings returns the sentence about replaced bytes.
func (f *IllFormed) Warnings(replaced int64) []fault.Text {
	if replaced == 0 {
		return nil
	}
	where := fmt.Sprintf("ill-formed UTF-8 sequences that became U+FFFD: %s, the first in %s, row %s",
		units.Count(replaced), f.First, units.Count(f.Row))
	switch name, iconv := f.Looks(); iconv {
	case "": // no byte is ill-formed: what is read has numbers of characters
		return []fault.Text{fault.Textf("%s; they are halves of surrogate pairs, such as \\ud83d, which are left where "+
			"a text was cut inside a character", where)}
	case "ENCODING":
		return []fault.Text{fault.Textf("%s; if the text is in another encoding, convert it with %s and build from that",
			where, source.Iconv(iconv, f.Iconv))}
	default:
		return []fault.Text{fault.Textf("the text looks like %s, not UTF-8: %s; convert it with %s and build from that",
			name, where, source.Iconv(iconv, f.Iconv))}
	}
}
