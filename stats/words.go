package stats

import (
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/dsload/dsload/internal/units"
)

// manyCopies is the share of duplicate rows that the headline names.
const manyCopies = 0.1

// headline returns a sentence that says what the dataset is and what to do about its padding.
func (r *Report) headline() string {
	var rows, tokens, copies int64
	for _, s := range r.Splits {
		rows, tokens, copies = rows+s.Examples, tokens+s.Tokens, copies+s.Duplicates
	}
	text := fmt.Sprintf("%s, %s", units.Plural(rows, "row"), compact(tokens)+" tokens")
	if len(r.Splits) == 0 {
		return text
	}
	if share := float64(copies) / float64(rows); share >= manyCopies {
		text += fmt.Sprintf("; %s of the rows are copies of others, which --dedup exact leaves out of a build", percent(share))
	}
	best := r.Splits[0].Best
	if best.Bucket == 0 {
		return text + fmt.Sprintf("; batch %d wastes %s, and a bucket saves next to nothing", best.BatchSize,
			percent(best.Waste))
	}
	return text + fmt.Sprintf("; batch %d with bucket %d wastes %s instead of %s", best.BatchSize, best.Bucket,
		percent(best.Waste), percent(best.Without))
}

// loader returns the advised setting as a line of Python, whose escapes for printable text are Go's.
func (r *Report) loader() string {
	return fmt.Sprintf("dsload.Loader(%s, %s)", strconv.QuoteToASCII(r.Dataset), strings.ReplaceAll(r.parameters(), "&", ", "))
}

// query returns the advised setting as a query of the feed.
func (r *Report) query() string { return "/v1/batches?" + r.parameters() }

func (r *Report) parameters() string {
	if len(r.Splits) == 0 {
		return fmt.Sprintf("batch_size=%d", advisedBatch)
	}
	split, best := r.Splits[0].Name, r.Splits[0].Best
	text := fmt.Sprintf("batch_size=%d", best.BatchSize)
	if best.Bucket > 0 {
		// Groups of one batch, so that batches of like rows do not follow one another.
		text += fmt.Sprintf("&bucket=%d&group=%d", best.Bucket, best.BatchSize)
	}
	if split != "train" {
		return "split=" + split + "&" + text
	}
	return text
}

// namesOf returns a short name for each report: the last element of its folder, or the whole folder
// if two would be equal.
func namesOf(reports []*Report) []string {
	names := make([]string, len(reports))
	seen := map[string]int{}
	for i, r := range reports {
		names[i] = filepath.Base(r.Dataset)
		if abs, err := filepath.Abs(r.Dataset); err == nil {
			names[i] = filepath.Base(abs)
		}
		seen[names[i]]++
	}
	for i, r := range reports {
		if seen[names[i]] > 1 {
			names[i] = r.Dataset
		}
	}
	return names
}

// percent formats a share, with one decimal below 10%.
func percent(x float64) string {
	switch {
	case x > 0 && x < 0.0005:
		return "<0.1%"
	case x < 0.0995:
		return fmt.Sprintf("%.1f%%", 100*x)
	}
	return fmt.Sprintf("%.0f%%", 100*x)
}

// rate formats n of total: the count and, unless it is 0, a share that is never rounded to 0.
func rate(n, total int64) string {
	if n == 0 || total == 0 {
		return units.Count(n)
	}
	x := 100 * float64(n) / float64(total)
	digits := 1
	for y := x; y < 1 && digits < 6; y *= 10 {
		digits++
	}
	return fmt.Sprintf("%s (%.*f%%)", units.Count(n), digits, x)
}

// compact formats a number in about three digits: 14.2 M.
func compact(n int64) string {
	for _, u := range []struct {
		size float64
		name string
	}{{1e12, " T"}, {1e9, " G"}, {1e6, " M"}, {1e3, " k"}} {
		if x := float64(n) / u.size; x >= 1 {
			if x < 100 {
				return strings.TrimSuffix(fmt.Sprintf("%.1f", x), ".0") + u.name
			}
			return fmt.Sprintf("%.0f%s", x, u.name)
		}
	}
	return strconv.FormatInt(n, 10)
}

// A figure is a row of a table that compares splits: what is counted, and its value for each.
type figure struct {
	Name   string
	Values []string
}

// unknown stands where a figure cannot be known.
const unknown = "–"

// comparison lists the figures of splits, side by side.
func comparison(splits []*Split) []figure {
	optional := func(n *int64, total int64, approximate bool) string {
		switch {
		case n == nil:
			return unknown
		case approximate:
			return "about " + rate(*n, total)
		}
		return rate(*n, total)
	}
	type line struct {
		name string
		of   func(s *Split) string
	}
	lengths := func(what string, of func(s *Split) Summary) []line {
		return []line{
			{what + ", mean", func(s *Split) string { return fmt.Sprintf("%.1f", of(s).Mean) }},
			{what + ", median", func(s *Split) string { return units.Count(of(s).P50) }},
			{what + ", 95th percentile", func(s *Split) string { return units.Count(of(s).P95) }},
			{what + ", longest", func(s *Split) string { return units.Count(of(s).Max) }},
		}
	}
	rows := slices.Concat([]line{
		{"rows", func(s *Split) string { return units.Count(s.Examples) }},
		{"tokens", func(s *Split) string { return units.Count(s.Tokens) }},
		{"tokens with loss", func(s *Split) string {
			if s.LossTokens == nil {
				return unknown
			}
			return fmt.Sprintf("%s (%s)", units.Count(*s.LossTokens), percent(*s.LossShare))
		}},
		{"documents", func(s *Split) string { return units.Count(s.Documents) }},
	}, lengths("tokens a row", func(s *Split) Summary { return s.Length }), []line{
		{"rows of the longest length", func(s *Split) string { return rate(s.Lengths[len(s.Lengths)-1][1], s.Examples) }},
	},
		lengths("tokens a document", func(s *Split) Summary { return s.DocLength }), []line{
			{"bytes of text a token", func(s *Split) string {
				if s.BytesPerToken == nil {
					return unknown
				}
				return fmt.Sprintf("%.3f", *s.BytesPerToken)
			}},
			{"unknown tokens", func(s *Split) string { return optional(s.Unknown, s.Tokens, false) }},
			{"byte-fallback tokens", func(s *Split) string { return optional(s.ByteFallback, s.Tokens, false) }},
			{"characters replaced (U+FFFD)", func(s *Split) string { return optional(s.Replaced, s.Tokens, s.ApproximateReplaced) }},
			{"duplicate rows", func(s *Split) string { return optional(&s.Duplicates, s.Examples, s.ApproximateDuplicates) }},
		})
	var out []figure
	for _, row := range rows {
		f := figure{Name: row.name}
		for _, s := range splits {
			f.Values = append(f.Values, row.of(s))
		}
		out = append(out, f)
	}
	return out
}
