package stats

import (
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/dsload/dsload/internal/units"
)

// WriteText writes reports as text for people, the answer first, with the splits of all of them side by side.
// Names of files and tokens are in it as they are, control characters too.
func WriteText(w io.Writer, reports []*Report) error {
	var b strings.Builder
	var splits []*Split
	var titles []string
	names := namesOf(reports)
	for i, r := range reports {
		fmt.Fprintf(&b, "%s: %s\n", oneLine(names[i]), r.headline())
		for j := range r.Splits {
			splits = append(splits, &r.Splits[j])
			title := r.Splits[j].Name
			if len(reports) > 1 {
				title = oneLine(names[i]) + " " + title
			}
			titles = append(titles, title)
		}
	}
	for _, r := range reports {
		fmt.Fprintf(&b, "  %s\n  curl --unix-socket SOCKET 'http://dsload%s'\n", oneLine(r.loader()), r.query())
	}
	table := [][]string{append([]string{""}, titles...)}
	for _, f := range comparison(splits) {
		table = append(table, append([]string{f.Name}, f.Values...))
	}
	b.WriteString("\n" + aligned(table))
	each := func(what string, table func(*Split) string) {
		for i, s := range splits {
			if text := table(s); text != "" {
				fmt.Fprintf(&b, "\n%s: %s\n%s", titles[i], what, text)
			}
		}
	}
	each("what each source gave", func(s *Split) string { return SourceText(s.Sources, maxSources) })
	each("padding in batches, when windows of the shuffled order are sorted by length", func(s *Split) string {
		return aligned(paddingHeat(s, named("batch"), func(n int) string {
			if n == 0 {
				return "no bucket"
			}
			return named("bucket")(n)
		}).text())
	})
	each("how full rows are when packed", func(s *Split) string { return aligned(packingHeat(s, named("length")).text()) })
	each("most frequent tokens", topText)
	for i, s := range splits {
		for _, x := range s.Samples[:min(1, len(s.Samples))] {
			fmt.Fprintf(&b, "\n%s: row %d, %s\n%s\n", titles[i], x.Row, units.Plural(x.Tokens, "token"),
				"  "+strings.ReplaceAll(strings.TrimRight(sampleText(x), "\n"), "\n", "\n  "))
		}
	}
	b.WriteByte('\n')
	for i, r := range reports {
		for _, note := range r.Notes {
			if len(reports) > 1 {
				note = names[i] + ": " + note
			}
			fmt.Fprintf(&b, "note: %s\n", oneLine(note))
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// oneLine makes a space of each run of white space.
func oneLine(text string) string { return strings.Join(strings.Fields(text), " ") }

// named returns what writes a number with a word before it.
func named(what string) func(n int) string {
	return func(n int) string { return fmt.Sprintf("%s %d", what, n) }
}

// text returns the table without shades.
func (t *heatTable) text() [][]string {
	table := [][]string{append([]string{""}, t.Head...)}
	for _, r := range t.Rows {
		row := []string{r.Name}
		for _, c := range r.Cells {
			if c.Note != "" {
				c.Text += ", " + c.Note
			}
			row = append(row, c.Text)
		}
		table = append(table, row)
	}
	return table
}

func topText(s *Split) string {
	var table [][]string
	for _, t := range s.TopTokens[:min(10, len(s.TopTokens))] {
		name := fmt.Sprintf("%q", t.Text)
		if t.Text == "" {
			name = ""
		}
		table = append(table, []string{fmt.Sprintf("%d %s", t.ID, name), rate(t.Count, s.Tokens)})
	}
	return aligned(table)
}

// sampleText shows where tokens begin and end.
func sampleText(x Sample) string {
	const most = 60
	var parts []string
	for _, p := range x.Pieces[:min(most, len(x.Pieces))] {
		text := strings.NewReplacer("\n", "⏎", "\t", "⇥").Replace(p.Text)
		if text == "" {
			text = fmt.Sprint(p.IDs[0])
		}
		parts = append(parts, text)
	}
	text := strings.Join(parts, "│")
	if x.Tokens > most {
		text += " […]"
	}
	return text
}

// aligned formats a table: the first column is left-aligned, the others are right-aligned.
func aligned(table [][]string) string {
	var widths []int
	for _, row := range table {
		for i, cell := range row {
			if i == len(widths) {
				widths = append(widths, 0)
			}
			widths[i] = max(widths[i], utf8.RuneCountInString(cell))
		}
	}
	var b strings.Builder
	for _, row := range table {
		var line strings.Builder
		for i, cell := range row {
			space := strings.Repeat(" ", widths[i]-utf8.RuneCountInString(cell))
			if i == 0 {
				line.WriteString("  " + cell + space)
			} else {
				line.WriteString("  " + space + cell)
			}
		}
		b.WriteString(strings.TrimRight(line.String(), " ") + "\n")
	}
	return b.String()
}
