package chat

import (
	"encoding/json"
	"flag"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/dsload/dsload/internal/effort"
	"github.com/dsload/dsload/internal/ingest/jinja"
	"github.com/dsload/dsload/internal/refdata"
)

var update = flag.Bool("update", false, "write testdata/turns.json anew")

// Of the conversations in testdata, what the assistant says and what others say.
var (
	saidWords = []string{"First.", "Second.", "Third.", "Fifth.", "Enough.", "Lyon", "Rome", "Oslo", "Turin", "Genoa",
		"Milan", "look_up", "Hm, so.", "Ah, well.", "Now then.", "So be it."}
	otherWords = []string{"One?", "Two?", "Three?", "Be brief.", "11 degrees", "22 degrees", "33 degrees", "Earlier."}
)

// With each public template, the spans of each conversation that it takes hold everything in the text
// that the assistant says and nothing else. Those of testdata/conversations.json are kept in
// testdata/turns.json.
func TestTurnsOfPublicTemplates(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(refdata.Path(t, "templates"), "*.jinja"))
	if err != nil || len(files) == 0 {
		t.Fatal("no templates", err)
	}
	var records, more map[string]json.RawMessage
	readTestJSON(t, "testdata/conversations.json", &records)
	readTestJSON(t, "testdata/more.json", &more)
	const golden = "testdata/turns.json"
	var want map[string]map[string][]string
	if !*update {
		readTestJSON(t, golden, &want)
	}
	got := map[string]map[string][]string{}
	for i, path := range files {
		source, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		name := strings.TrimSuffix(filepath.Base(path), ".jinja")
		if i%effort.Of(4, 1, 1) == 0 {
			turnsOf(t, name, string(source), more)
		}
		got[name] = turnsOf(t, name, string(source), records)
		if g := got[name]; !*update && want[name] != nil {
			for conversation := range maps.Keys(records) {
				if a, b := g[conversation], want[name][conversation]; !slices.Equal(a, b) {
					t.Errorf("%s, %s:\n got %q\nwant %q", name, conversation, a, b)
				}
			}
		}
	}
	if *update {
		var b strings.Builder
		e := json.NewEncoder(&b)
		e.SetEscapeHTML(false)
		before := "{"
		for _, name := range slices.Sorted(maps.Keys(got)) { // a line each
			b.WriteString(before + `"` + name + `": `)
			if err := e.Encode(got[name]); err != nil {
				t.Fatal(err)
			}
			before = ","
		}
		if err := os.WriteFile(golden, []byte(b.String()+"}\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

func readTestJSON(t *testing.T, path string, into any) {
	t.Helper()
	data, err := os.ReadFile(path)
	if err == nil {
		err = json.Unmarshal(data, into)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// turnsOf returns what is trained on of the records that a template takes.
func turnsOf(t *testing.T, name, source string, records map[string]json.RawMessage) map[string][]string {
	special := &jinja.Dict{}
	special.Set("bos_token", "<s>")
	special.Set("eos_token", "</s>")
	r := newTestRenderer(t, Options{Template: source, Special: special,
		Date: time.Date(2026, 3, 4, 0, 0, 0, 0, time.UTC)})
	turns := map[string][]string{}
	for conversation, record := range records {
		var text Text
		if err := r.NewWorker(nil).Render(&text, record); err != nil {
			continue // many take no tools
		}
		turns[conversation] = []string{}
		trained, said := "", string(text.Text)
		for _, s := range text.Spans {
			span := string(text.Text[s.Start:s.End])
			turns[conversation], trained = append(turns[conversation], span), trained+"\n"+span
		}
		if r.HasGeneration() {
			continue // the template decides
		}
		for _, word := range saidWords {
			if strings.Contains(said, word) != strings.Contains(trained, word) {
				t.Errorf("%s, %s: %q is not trained on", name, conversation, word)
			}
		}
		for _, word := range otherWords {
			if strings.Contains(trained, word) {
				t.Errorf("%s, %s: %q is trained on", name, conversation, word)
			}
		}
	}
	return turns
}
