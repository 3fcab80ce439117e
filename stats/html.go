package stats

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/dsload/dsload/internal/markup"
	"github.com/dsload/dsload/internal/units"
	"github.com/dsload/dsload/internal/visible"
)

// The page is a frame with its style. Its only script copies: charts are SVG, and data are text nodes.

//go:embed page.html
var pageSource string

//go:embed page.css
var pageStyle string

type setting struct{ Name, Value string }

// subject is a split, with its dataset's name if two are compared.
type subject struct {
	*Split
	Title     string
	Rows      *chart
	Documents *chart
	Heat      *heatTable
	Packed    *heatTable
}

// WriteHTML writes one report, or two to compare, as a page that loads nothing and runs nothing but its buttons.
func WriteHTML(w io.Writer, reports []*Report) error {
	data, err := scriptJSON(reports)
	if err != nil {
		return err
	}
	names := namesOf(reports)
	var shorts []string
	var origins markup.HTML
	for i, r := range reports {
		settings, err := settingsOf(r.Settings)
		if err != nil {
			return fmt.Errorf("settings of %s: %w", r.Dataset, err)
		}
		origins += origin(r, heading(names, i), settings)
		shorts = append(shorts, short(names[i]))
	}
	slots := map[string]markup.HTML{"header": header(reports, names), "origin": origins, "data": data, "wide": ""}
	if len(reports) > 1 {
		slots["wide"] = ` class="wide"`
	}
	slots["setting"] = markup.Each(reports, func(i int, r *Report) markup.HTML {
		return copied(r, heading(names, i), shorts[i])
	})
	fillSplits(slots, subjectsOf(reports, names))
	_, err = w.Write(markup.Page(strings.Join(shorts, " and "), pageStyle, markup.Fill(pageSource, slots)))
	return err
}

// scriptJSON returns reports as JSON for a script element: nothing in it ends the element or
// changes the direction of text.
func scriptJSON(reports []*Report) (markup.HTML, error) {
	var value any = reports
	if len(reports) == 1 {
		value = reports[0]
	}
	data, err := json.Marshal(value) // escapes <, > and &
	if err != nil {
		return "", err
	}
	var b strings.Builder
	for _, r := range string(data) {
		if visible.Acts(r) {
			fmt.Fprintf(&b, `\u%04x`, r)
			continue
		}
		b.WriteRune(r)
	}
	return markup.HTML(b.String()), nil
}

// subjectsOf lists the splits, those with the same name side by side. If datasets are compared,
// their charts have the same axes.
func subjectsOf(reports []*Report, names []string) []subject {
	var order []string
	var rows, documents int64
	for _, r := range reports {
		for _, s := range r.Splits {
			if !slices.Contains(order, s.Name) {
				order = append(order, s.Name)
			}
			if len(reports) > 1 {
				rows, documents = max(rows, s.Length.Max), max(documents, s.DocLength.Max)
			}
		}
	}
	var out []subject
	for _, name := range order {
		for i, r := range reports {
			for j := range r.Splits {
				if r.Splits[j].Name != name {
					continue
				}
				s := newSubject(&r.Splits[j], maxLength(r.Settings), rows, documents)
				s.Title = name
				if len(reports) > 1 {
					s.Title = names[i] + " · " + name
				}
				out = append(out, s)
			}
		}
	}
	return out
}

func newSubject(s *Split, cut, rows, documents int64) subject {
	x := subject{Split: s}
	marks := s.Length.marks()
	if cut > 0 && cut >= s.Length.Max {
		marks = append(marks, mark{"--max-length", float64(cut)})
	}
	x.Rows = histogram("rows", s.Lengths, marks, rows)
	x.Documents = histogram("documents", s.DocCounts, s.DocLength.marks(), documents)
	x.Heat = paddingHeat(s, units.Count[int], func(bucket int) string {
		if bucket == 0 {
			return "none"
		}
		return units.Count(bucket)
	})
	x.Packed = packingHeat(s, units.Count[int])
	return x
}

// settingsOf lists the settings of a build by name, as JSON writes their values.
func settingsOf(raw json.RawMessage) ([]setting, error) {
	if len(raw) == 0 {
		return nil, nil
	}
	var out []setting
	dec := json.NewDecoder(bytes.NewReader(raw))
	if _, err := dec.Token(); err != nil { // the brace
		return nil, err
	}
	for dec.More() {
		name, err := dec.Token()
		if err != nil {
			return nil, err
		}
		var value json.RawMessage
		if err := dec.Decode(&value); err != nil {
			return nil, err
		}
		text := string(value)
		var s string
		if json.Unmarshal(value, &s) == nil {
			text = s
		}
		out = append(out, setting{fmt.Sprint(name), text})
	}
	return out, nil
}

// maxLength returns the setting at which the build cut rows, 0 if there is none.
func maxLength(raw json.RawMessage) int64 {
	var s struct {
		MaxLength int64 `json:"max-length"`
	}
	if json.Unmarshal(raw, &s) != nil {
		return 0 // settings of another program
	}
	return s.MaxLength
}

// short shortens a long name in the middle.
func short(name string) string {
	const most = 72
	if utf8.RuneCountInString(name) <= most {
		return name
	}
	r := []rune(name)
	return string(r[:most/2]) + "…" + string(r[len(r)-most/2+1:])
}

// heatTable is a table of shares. The more a cell wastes, the darker it is.
type heatTable struct {
	Head []string
	Rows []heatRow
}

type heatRow struct {
	Name  string
	Cells []heatCell
}

type heatCell struct {
	Text  string
	Note  string
	Level int
	Best  bool
}

// heatLevel returns the shade for a share, 0 to 5.
func heatLevel(waste float64) int {
	level := 0
	for _, from := range []float64{0.02, 0.05, 0.1, 0.2, 0.35} {
		if waste >= from {
			level++
		}
	}
	return level
}

// paddingHeat is the table of padding by batch size and bucket, which are named by functions.
func paddingHeat(s *Split, batch, bucket func(int) string) *heatTable {
	t := &heatTable{}
	for _, size := range batchSizes {
		row, best, least := heatRow{Name: batch(size)}, -1, 0.0
		for _, p := range s.Padding {
			if p.BatchSize != size {
				continue
			}
			if len(t.Rows) == 0 {
				t.Head = append(t.Head, bucket(p.Bucket))
			}
			if best < 0 || p.Waste < least {
				best, least = len(row.Cells), p.Waste
			}
			row.Cells = append(row.Cells, heatCell{Text: percent(p.Waste), Level: heatLevel(p.Waste)})
		}
		if best >= 0 {
			row.Cells[best].Best = true
		}
		t.Rows = append(t.Rows, row)
	}
	return t
}

// packingHeat is the table of packing by length, which is named by a function, and policy.
func packingHeat(s *Split, length func(int) string) *heatTable {
	t := &heatTable{}
	for _, p := range s.Packing {
		name := length(p.Length)
		if len(t.Rows) == 0 || t.Rows[len(t.Rows)-1].Name != name {
			t.Rows = append(t.Rows, heatRow{Name: name})
		}
		if len(t.Rows) == 1 {
			t.Head = append(t.Head, p.Policy)
		}
		cell := heatCell{Text: percent(p.Fill), Level: heatLevel(1 - p.Fill)}
		if p.Dropped > 0 {
			cell.Note = "drops " + percent(float64(p.Dropped)/float64(s.Tokens))
		}
		row := &t.Rows[len(t.Rows)-1]
		row.Cells = append(row.Cells, cell)
	}
	return t
}
