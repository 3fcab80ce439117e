package chat

import (
	"encoding/json"
	"maps"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/dsload/dsload/internal/effort"
	"github.com/dsload/dsload/tokenize"
	"github.com/dsload/dsload/tokenize/builtin"
)

// A worker that rendered other records, some of which it refused, gives what a new one gives.
func TestWorkerIsReused(t *testing.T) {
	records := []json.RawMessage{json.RawMessage(twoTurns), json.RawMessage(`{"messages": [{"role": 1}]}`),
		json.RawMessage(`{"messages": [{"role": "user", "content": "a"}], "x": {"y": [1, {"z"`),
		json.RawMessage(`{"chat_template_kwargs": {"tools": 1, "bos_token": "[b]", "add_generation_prompt": true},` +
			` "messages": [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b\n"}]}`)}
	for _, file := range []string{"testdata/conversations.json", "testdata/more.json"} {
		var more map[string]json.RawMessage
		readTestJSON(t, file, &more)
		for _, name := range slices.Sorted(maps.Keys(more)) {
			records = append(records, more[name])
		}
	}
	rng := rand.New(rand.NewPCG(3, 4))
	for _, source := range []string{chatmlTemplate, headerTemplate, bracketTemplate, thinkTemplate, aheadTemplate,
		movingTemplate, afterTemplate, `{{ bos_token }}{{ tools|tojson }}{{ documents }}` + lastTemplate} {
		r := newTestRenderer(t, Options{Template: source, Date: time.Date(2026, 3, 4, 0, 0, 0, 0, time.UTC)})
		worker, failed := r.NewWorker(nil), 0
		var got Text
		renders := effort.Of(3, 10, 10) * len(records)
		for range renders {
			record := records[rng.IntN(len(records))]
			var want Text
			err, wantErr := worker.Render(&got, record), r.NewWorker(nil).Render(&want, record)
			if err != nil || wantErr != nil {
				failed++
				if err == nil || wantErr == nil || err.Error() != wantErr.Error() {
					t.Fatalf("%s: %v, want %v", record, err, wantErr)
				}
				continue
			}
			if got.Spans = slices.Clip(got.Spans); string(got.Text) != string(want.Text) || got.Shape != want.Shape ||
				!slices.Equal(got.Spans, want.Spans) || got.Unfound != want.Unfound {
				t.Fatalf("%s:\n got %s\nwant %s", record, spansOf(&got), spansOf(&want))
			}
		}
		if failed == 0 || failed > renders*9/10 {
			t.Errorf("%d records were refused", failed)
		}
	}
}

// The offsets of a verbatim text are those that walking along it gives.
func TestWidthsAsWalked(t *testing.T) {
	tok, err := builtin.Open("gpt2")
	if err != nil {
		t.Fatal(err)
	}
	r := newTestRenderer(t, Options{Template: chatmlTemplate})
	e := r.NewEncoder(r.NewPieces(tok), tok.NewEncoder(tokenize.EncoderOptions{}))
	words := []string{"hello", " world", " 漢字", "<|endoftext|>", "é", " ", "\n\n", "\x00", "1234", "\U0001f600", "ａ",
		"'s"}
	rng := rand.New(rand.NewPCG(1, 2))
	for range 300 {
		var text Text
		for range rng.IntN(200) {
			text.Text = append(text.Text, words[rng.IntN(len(words))]...)
		}
		ids := e.enc.AppendTokens(nil, text.Text)
		if !e.enc.Verbatim() || !e.add(ids, len(text.Text)) {
			t.Fatalf("%q is not verbatim", text.Text)
		}
		added := slices.Clone(e.offsets)
		if !e.walk(ids, &text) || !reflect.DeepEqual(added, slices.Clone(e.offsets)) {
			t.Fatalf("%q: offsets %v, walked %v", text.Text, added, e.offsets)
		}
	}
}
