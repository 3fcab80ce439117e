package stats

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/dsload/dsload/internal/visible"
	"github.com/dsload/dsload/shard"
)

const hostile = "<img src=x onerror=alert(1)></script></title><!-- \u202Egnp.exe\x1b[31m {{.}} &amp;"

// hostileReport is the report of a dataset all of whose names and texts are hostile.
func hostileReport(t *testing.T) *Report {
	t.Helper()
	r := run(t, datasetOf(t, shard.Schema{VocabSize: 1000}, rowsOf([]int{1, 5, 9, 300, 40, 41, 512})), Options{})
	r.Dataset = "/data/" + hostile
	r.Tokenizer.Name = hostile
	name, err := json.Marshal(hostile)
	if err != nil {
		t.Fatal(err)
	}
	r.Settings = json.RawMessage(fmt.Sprintf(`{%s:%s,"max-length":512}`, name, name))
	x := 3.25
	r.Sources = []Source{{URI: hostile, Bytes: 7, BytesPerToken: &x}}
	r.Notes = append(r.Notes, hostile)
	s := &r.Splits[0]
	s.TopTokens[0].Text = hostile
	s.Samples[0].Pieces[0].Text = hostile
	return r
}

// element is an element of a page as a browser has it, near enough: the page is written so that an
// XML parser can read it.
type element struct {
	name  string
	attrs map[string]string
	text  string // of it and what is in it
}

func parsePage(t *testing.T, page []byte) []*element {
	t.Helper()
	dec := xml.NewDecoder(bytes.NewReader(page))
	dec.Strict, dec.AutoClose, dec.Entity = false, xml.HTMLAutoClose, xml.HTMLEntity
	var all, open []*element
	for {
		token, err := dec.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatalf("the page cannot be parsed: %v", err)
		}
		switch x := token.(type) {
		case xml.StartElement:
			e := &element{name: x.Name.Local, attrs: map[string]string{}}
			for _, a := range x.Attr {
				e.attrs[strings.ToLower(a.Name.Local)] = a.Value
			}
			all, open = append(all, e), append(open, e)
		case xml.EndElement:
			if len(open) == 0 || open[len(open)-1].name != x.Name.Local {
				t.Fatalf("</%s> ends nothing", x.Name.Local)
			}
			open = open[:len(open)-1]
		case xml.CharData:
			for _, e := range open {
				e.text += string(x)
			}
		case xml.Comment:
			t.Errorf("a comment: %s", x)
		}
	}
	if len(open) > 0 {
		t.Fatalf("<%s> has no end", open[len(open)-1].name)
	}
	return all
}

func find(all []*element, name string) (out []*element) {
	for _, e := range all {
		if e.name == name {
			out = append(out, e)
		}
	}
	return out
}

func written(t *testing.T, reports ...*Report) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := WriteHTML(&b, reports); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestReportRunsAndAsksForNothing(t *testing.T) {
	page := written(t, hostileReport(t))
	all := parsePage(t, page)
	known := strings.Fields("html head meta title style body main header section h1 h2 h3 p div bdi pre span dl dt dd details summary " +
		"table thead tbody tr th td small figure svg line text rect script nav ul li a button")
	for _, e := range all {
		if !slices.Contains(known, e.name) {
			t.Errorf("element %s", e.name)
		}
		for name := range e.attrs {
			if e.name == "a" && name == "href" && strings.HasPrefix(e.attrs[name], "#") {
				continue // a part of the page
			}
			if strings.HasPrefix(name, "on") ||
				slices.Contains([]string{"src", "href", "srcset", "style", "action", "data"}, name) {
				t.Errorf("<%s %s>", e.name, name)
			}
		}
	}
	styles, scripts := find(all, "style"), find(all, "script")
	if len(styles) != 1 || len(scripts) != 2 || scripts[0].attrs["type"] != "application/json" {
		t.Fatalf("%d styles, %d scripts", len(styles), len(scripts))
	}
	copies, err := os.ReadFile("../internal/markup/copy.js") // the only one that runs
	if err != nil || scripts[1].text != string(copies) {
		t.Errorf("%v: the page runs %s", err, scripts[1].text)
	}
	_, rest, _ := strings.Cut(string(page), "<style>")
	style, _, _ := strings.Cut(rest, "</style>")
	sum, run := sha256.Sum256([]byte(style)), sha256.Sum256(copies)
	want := "default-src 'none'; style-src 'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) +
		"'; script-src 'sha256-" + base64.StdEncoding.EncodeToString(run[:]) + "'; base-uri 'none'; form-action 'none'"
	if meta := find(all, "meta")[1]; meta.attrs["http-equiv"] != "Content-Security-Policy" ||
		meta.attrs["content"] != want {
		t.Errorf("policy %v, want %s", meta.attrs, want)
	}
	if strings.Contains(style, "url(") || strings.Contains(style, "@import") {
		t.Error("the style asks for files")
	}
}

func TestNamesAndTextsOfOthersStayText(t *testing.T) {
	r := hostileReport(t)
	page := written(t, r)
	all := parsePage(t, page)
	for _, c := range string(page) {
		if c < ' ' && c != '\n' || c == 0x202e {
			t.Fatalf("the page holds U+%04X as it is", c)
		}
	}
	shown := visible.Text(hostile)
	body := find(all, "body")[0].text
	for _, want := range []string{shown, visible.Text(short(hostile))} {
		if n := strings.Count(body, want); n < 2 {
			t.Errorf("%q is shown %d times", want, n)
		}
	}
	if name := visible.Text(namesOf([]*Report{r})[0]); strings.Count(body, name) < 4 {
		t.Errorf("the dataset's name %q is not shown", name)
	}
	var back Report
	if err := json.Unmarshal([]byte(find(all, "script")[0].text), &back); err != nil {
		t.Fatalf("the data are no JSON: %v", err)
	}
	if back.Dataset != r.Dataset || back.Splits[0].Samples[0].Pieces[0].Text != hostile ||
		len(back.Splits[0].Padding) != len(r.Splits[0].Padding) {
		t.Errorf("the data differ: %q", back.Dataset)
	}
	script := find(all, "script")[0].text
	prose := strings.ReplaceAll(strings.ReplaceAll(body, script, ""), find(all, "script")[1].text, "")
	if bad := regexp.MustCompile(`%!|\b(NaN|Inf|null|undefined)\b|0x[0-9a-f]{6}|map\[`).FindString(prose); bad != "" {
		t.Errorf("the page says %s", bad)
	}
}

func TestReportCanBeReadByEveryone(t *testing.T) {
	a, b := hostileReport(t), hostileReport(t)
	b.Dataset = "/data/other"
	for _, reports := range [][]*Report{{a}, {a, b}} {
		all := parsePage(t, written(t, reports...))
		if n := len(find(all, "h1")); n != 1 {
			t.Errorf("%d h1", n)
		}
		level := 1
		for _, e := range all {
			switch {
			case regexp.MustCompile(`^h[1-6]$`).MatchString(e.name):
				n := int(e.name[1] - '0')
				if n > level+1 {
					t.Errorf("h%d %q follows h%d", n, e.text, level)
				}
				level = n
			case e.name == "th" && e.attrs["scope"] == "":
				t.Errorf("th %q without scope", e.text)
			case e.name == "svg" && (e.attrs["role"] != "img" || !strings.Contains(e.attrs["aria-label"], "mean")):
				t.Errorf("svg %v", e.attrs)
			case strings.HasPrefix(e.attrs["class"], "scroll") || e.name == "pre":
				if e.attrs["tabindex"] != "0" || e.attrs["aria-label"] == "" || e.attrs["role"] != "region" {
					t.Errorf("%s %v cannot be reached by keyboard", e.name, e.attrs)
				}
			}
		}
		if n, want := len(find(all, "svg")), 2*len(reports); n != want {
			t.Errorf("%d charts, want %d", n, want)
		}
		text := find(all, "body")[0].text
		for _, r := range reports {
			if !strings.Contains(text, r.headline()) || !strings.Contains(text, r.query()) {
				t.Errorf("%s: neither answer nor setting", r.Dataset)
			}
		}
	}
}

// TestLabelsOfChartsHaveRoom: wherever the marks lie, no text in a chart can lie on another. The names
// of the marks are in the key, which is text of the page.
func TestLabelsOfChartsHaveRoom(t *testing.T) {
	lengths := [][][2]int64{{{1, 1}}, {{27, 9}, {35, 8}, {36, 1}, {507, 1}}, {{512, 1e9}},
		{{1, 1e7}, {2, 3}, {1 << 20, 1}},
		{{99999, 100000}, {100000, 100000}}}
	for _, pairs := range lengths {
		c := histogram("documents", pairs, []mark{{"mean", 35}, {"median", 27}, {"longest", 507},
			{"--max-length", 512}}, 0)
		const wide, high = 8.5, 14.0 // of a character at the larger size of text
		type box struct{ left, right, top, bottom float64 }
		boxes := []box{{384 - wide*float64(len("tokens")), 384, 242 - high*0.8, 242 + high*0.2},
			{2, 2 + wide*float64(len("documents, logarithmic")), 12 - high*0.8, 12 + high*0.2}}
		for _, tick := range c.YTicks {
			y := number(t, tick.At) + 4
			boxes = append(boxes, box{40 - wide*float64(len(tick.Text)), 40, y - high*0.8, y + high*0.2})
		}
		for _, tick := range c.XTicks {
			x, half := number(t, tick.At), wide*float64(len(tick.Text))/2
			boxes = append(boxes, box{x - half, x + half, 225 - high*0.8, 225 + high*0.2})
		}
		for i, a := range boxes {
			for _, b := range boxes[:i] {
				if a.left < b.right && b.left < a.right && a.top < b.bottom && b.top < a.bottom {
					t.Errorf("%v: texts overlap: %v and %v", pairs, a, b)
				}
			}
		}
	}
}

func TestChartsShowEveryRow(t *testing.T) {
	pairs := [][2]int64{{1, 5}, {2, 3}, {40, 1}, {41, 900}, {512, 2}}
	for _, reach := range []int64{0, 2000} {
		c := histogram("rows", pairs, []mark{{"mean", 40.2}, {"median", 41}, {"95%", 41}, {"longest", 512}}, reach)
		var total int64
		for i, b := range c.Bars {
			total += b.Count
			x, y := number(t, b.X), number(t, b.Y)
			right, bottom := x+number(t, b.W), y+number(t, b.H)
			if x < plotLeft-0.1 || right > plotRight+0.1 || y < plotTop-0.1 || math.Abs(bottom-plotBottom) > 0.11 ||
				y >= bottom {
				t.Errorf("bar %+v lies outside", b)
			}
			if i > 0 && b.From <= c.Bars[i-1].To {
				t.Errorf("bar %+v overlaps %+v", b, c.Bars[i-1])
			}
		}
		if total != 911 || c.Log != (reach == 0) || len(c.XTicks) < 4 || len(c.YTicks) < 3 {
			t.Errorf("%d rows, log %v, %d and %d ticks", total, c.Log, len(c.XTicks), len(c.YTicks))
		}
		if len(c.Marks) != 3 || !strings.Contains(c.Label, "median, 95% 41") {
			t.Errorf("marks %+v: %s", c.Marks, c.Label)
		}
		for i, m := range c.Marks {
			if m.Dashes != i || i > 0 && number(t, m.X) < number(t, c.Marks[i-1].X) {
				t.Errorf("mark %d of the key is %+v, not the next from the left", i, m)
			}
		}
	}
	if one := histogram("rows", [][2]int64{{1, 1}}, []mark{{"mean", 1}}, 0); one.Log || len(one.Bars) != 1 {
		t.Errorf("a single row: %+v", one)
	}
}

func number(t *testing.T, s string) float64 {
	t.Helper()
	x, err := strconv.ParseFloat(s, 64)
	if err != nil {
		t.Fatal(err)
	}
	return x
}

// TestColoursCanBeTold computes contrasts as WCAG 2 does: 4.5 for text, 3 for what is drawn.
func TestColoursCanBeTold(t *testing.T) {
	blocks := regexp.MustCompile(`:root\{color-scheme[^}]*\}|:root\{--ground[^}]*\}`).FindAllString(pageStyle, -1)
	if len(blocks) != 2 {
		t.Fatalf("%d schemes", len(blocks))
	}
	pairs := []struct {
		ink, ground string
		least       float64
	}{{"ink", "ground", 4.5}, {"ink", "card", 4.5}, {"soft", "ground", 4.5}, {"soft", "card", 4.5},
		{"ink", "odd", 4.5}, {"ink", "even", 4.5},
		{"t0", "h0", 4.5}, {"t0", "h1", 4.5}, {"t0", "h2", 4.5}, {"t0", "h3", 4.5}, {"t4", "h4", 4.5},
		{"t4", "h5", 4.5}, {"bar", "card", 3}, {"mark", "card", 3}}
	for _, block := range blocks {
		colours := map[string]string{}
		for _, m := range regexp.MustCompile(`--(\w+):(#[0-9a-f]+)`).FindAllStringSubmatch(block, -1) {
			colours[m[1]] = m[2]
		}
		for _, p := range pairs {
			a, b := luminance(t, colours[p.ink]), luminance(t, colours[p.ground])
			if ratio := (max(a, b) + 0.05) / (min(a, b) + 0.05); ratio < p.least {
				t.Errorf("%s %s on %s %s: contrast %.2f", p.ink, colours[p.ink], p.ground, colours[p.ground], ratio)
			}
		}
	}
}

func luminance(t *testing.T, colour string) float64 {
	t.Helper()
	digits := strings.TrimPrefix(colour, "#")
	if len(digits) == 3 {
		digits = string([]byte{digits[0], digits[0], digits[1], digits[1], digits[2], digits[2]})
	}
	n, err := strconv.ParseUint(digits, 16, 32)
	if err != nil || len(digits) != 6 {
		t.Fatalf("colour %q", colour)
	}
	sum := 0.0
	for i, weight := range []float64{0.0722, 0.7152, 0.2126} {
		x := float64(n>>(8*i)&255) / 255
		if x <= 0.04045 {
			x /= 12.92
		} else {
			x = math.Pow((x+0.055)/1.055, 2.4)
		}
		sum += weight * x
	}
	return sum
}

func TestWordsForFigures(t *testing.T) {
	for x, want := range map[float64]string{0: "0.0%", 0.0001: "<0.1%", 0.041: "4.1%", 0.413: "41%",
		0.0999: "10%", 1: "100%"} {
		if got := percent(x); got != want {
			t.Errorf("percent(%v) = %q, want %q", x, got, want)
		}
	}
	for n, want := range map[int64]string{0: "0", 999: "999", 1000: "1 k", 14_200_000: "14.2 M", 104_857_600: "105 M",
		5e9: "5 G"} {
		if got := compact(n); got != want {
			t.Errorf("compact(%d) = %q, want %q", n, got, want)
		}
	}
	for _, c := range []struct {
		n, total int64
		want     string
	}{{0, 10, "0"}, {5, 10, "5 (50.0%)"}, {1, 1_000_000, "1 (0.00010%)"}, {1234, 12340, "1,234 (10.0%)"}} {
		if got := rate(c.n, c.total); got != c.want {
			t.Errorf("rate(%d, %d) = %q, want %q", c.n, c.total, got, c.want)
		}
	}
	two := []*Report{{Dataset: "/a/data"}, {Dataset: "/b/data"}}
	if names := namesOf(two); names[0] != "/a/data" || names[1] != "/b/data" {
		t.Errorf("names %q", names)
	}
	if names := namesOf(two[:1]); names[0] != "data" {
		t.Errorf("names %q", names)
	}
}
