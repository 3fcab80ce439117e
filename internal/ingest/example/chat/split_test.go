package chat

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/dsload/dsload/internal/effort"
	"github.com/dsload/dsload/internal/refdata"
)

// TestSplitTurns: the row of a turn is the text of the messages up to it, with loss on that turn alone, with each
// public template.
func TestSplitTurns(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(refdata.Path(t, "templates"), "*.jinja"))
	if err != nil || len(files) == 0 {
		t.Fatal("no templates", err)
	}
	var records map[string]json.RawMessage
	readTestJSON(t, "testdata/conversations.json", &records)
	rows := 0
	for i, path := range files {
		source, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		o := Options{Template: string(source), Date: time.Date(2026, 11, 27, 0, 0, 0, 0, time.UTC)}
		modes := []TrainOn{TrainAssistant, TrainLast}
		if testing.Short() {
			modes = modes[i%2 : i%2+1]
		}
		for _, on := range modes {
			o.TrainOn, o.SplitTurns = on, true
			split, err := NewRenderer(o)
			if err != nil {
				t.Fatal(err)
			}
			o.TrainOn, o.SplitTurns = TrainLast, false
			last, err := NewRenderer(o)
			if err != nil {
				t.Fatal(err)
			}
			w := split.NewWorker(nil) // reused
			for j, name := range slices.Sorted(maps.Keys(records)) {
				if testing.Short() && (i/2+j)%2 > 0 { // each template with half of the conversations
					continue
				}
				record := records[name]
				var parts map[string]any
				if err := json.Unmarshal(record, &parts); err != nil {
					t.Fatal(err)
				}
				messages, ok := parts["messages"].([]any)
				if !ok {
					continue
				}
				var got, want []string
				text := Text{Turn: func(row *Text) error {
					got = append(got, ofRow(row))
					return nil
				}}
				if err := w.Render(&text, record); err != nil {
					continue
				}
				for i, m := range messages {
					if m.(map[string]any)["role"] != "assistant" {
						continue
					}
					parts["messages"] = messages[:i+1]
					data, err := json.Marshal(parts)
					if err != nil {
						t.Fatal(err)
					}
					var row Text
					if err := last.NewWorker(nil).Render(&row, data); err != nil {
						t.Errorf("%s, %s, up to message %d: %v", filepath.Base(path), name, i+1, err)
					} else if len(row.Spans) > 0 {
						want = append(want, ofRow(&row))
					}
				}
				if on == TrainLast && len(want) > 0 {
					want = want[len(want)-1:]
				}
				// The order of keys in tools is another one in what was decoded and encoded again, and a block may hold
				// nothing of a turn.
				calls := strings.Contains(string(record), "tool")
				if rows += len(got); !calls && fmt.Sprint(got) != fmt.Sprint(want) ||
					len(got) != len(want) && !(calls && split.HasGeneration()) {
					t.Errorf("%s, %s: rows\n%q, want\n%q", filepath.Base(path), name, got, want)
				}
				if len(text.Spans) > 0 {
					t.Errorf("%s, %s: the whole has spans", filepath.Base(path), name)
				}
			}
		}
	}
	if rows < effort.Of(500, 1000, 1000) {
		t.Errorf("%d rows", rows)
	}
}

// ofRow returns a text and its spans; of generation blocks the last, the only one that the last turn's mask is made of.
func ofRow(row *Text) string {
	spans := row.Spans
	if row.Exact {
		spans = spans[len(spans)-1:]
	}
	return fmt.Sprint(string(row.Text), spans, row.Exact)
}

// TestSplitMarks: turns that are not trained on make no row, and stay in those of others.
func TestSplitMarks(t *testing.T) {
	r, err := NewRenderer(Options{SplitTurns: true,
		Template: "{% for m in messages %}{{ m.role }}:{{ m.content }};{% endfor %}{% if add_generation_prompt %}assistant:{% endif %}"})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	text := Text{Turn: func(row *Text) error {
		for _, s := range row.Spans {
			got = append(got, string(row.Text[:s.Start])+"["+string(row.Text[s.Start:s.End])+"]")
		}
		return nil
	}}
	record := `{"messages":[{"role":"user","content":"a"},{"role":"assistant","content":"b","weight":0},{"role":"user","content":"c"},` +
		`{"role":"assistant","content":"d"},{"role":"assistant","content":"e"},{"role":"user","content":"f"}]}`
	if err := r.NewWorker(nil).Render(&text, []byte(record)); err != nil {
		t.Fatal(err)
	}
	want := "[user:a;assistant:b;user:c;assistant:[d;] user:a;assistant:b;user:c;assistant:d;assistant:[e;]]"
	if fmt.Sprint(got) != want {
		t.Errorf("%v, want %v", got, want)
	}
}

// TestSplitThoughts: reasoning that only the whole conversation lacks is not said to be left out, and what a row of
// its own lacks is.
func TestSplitThoughts(t *testing.T) {
	const record = `{"messages":[{"role":"user","content":"a"},{"role":"assistant","content":"b","thinking":"WHYB"},` +
		`{"role":"user","content":"c"},{"role":"assistant","content":"d","thinking":"WHYD"}]}`
	for condition, want := range map[string]int{"loop.last": 0, "true": 0, "false": 2, "loop.first": 2} {
		r, err := NewRenderer(Options{SplitTurns: true, Template: "{% for m in messages %}{{ m.role }}:{% if m.thinking and " +
			condition + " %}({{ m.thinking }}){% endif %}{{ m.content }};{% endfor %}{% if add_generation_prompt %}assistant:{% endif %}"})
		if err != nil {
			t.Fatal(err)
		}
		rows := 0
		text := Text{Turn: func(*Text) error { rows++; return nil }}
		if err := r.NewWorker(nil).Render(&text, []byte(record)); err != nil || text.ThoughtsLeftOut != want || rows != 2 {
			t.Errorf("%s: %d left out in %d rows, %v; want %d", condition, text.ThoughtsLeftOut, rows, err, want)
		}
	}
}
