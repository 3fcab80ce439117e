package ingest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dsload/dsload/internal/dataset"
	"github.com/dsload/dsload/internal/fault"
	"github.com/dsload/dsload/internal/ingest/example/chat"
	"github.com/dsload/dsload/internal/ingest/option"
	"github.com/dsload/dsload/internal/ingest/report"
	"github.com/dsload/dsload/internal/ingest/source"
	"github.com/dsload/dsload/internal/shardfile/shardtest"
	"github.com/dsload/dsload/shard"
)

const testChatTemplate = `{% for m in messages %}{{ m.role ~ ': ' ~ m.content }}{{ eos_token if m.role == 'assistant' else '\n' }}{% endfor %}{% if add_generation_prompt %}assistant: {% endif %}`

// writeChats writes n conversations, one in ten without a turn of the assistant, and a template.
func writeChats(t testing.TB, n int) (chats, template string) {
	t.Helper()
	rnd := rand.New(rand.NewPCG(1, 2))
	words := func(n int) string {
		var b strings.Builder
		for range n {
			fmt.Fprintf(&b, "%s%d ", []string{"word", "größe", "語"}[rnd.IntN(3)], rnd.IntN(500))
		}
		return b.String()
	}
	var b strings.Builder
	for i := range n {
		b.WriteString(`{"messages": [`)
		for turn := range 1 + rnd.IntN(5) {
			if turn > 0 {
				b.WriteString(", ")
			}
			fmt.Fprintf(&b, `{"role": "user", "content": %q}`, words(1+rnd.IntN(20)))
			if i%10 > 0 {
				fmt.Fprintf(&b, `, {"role": "assistant", "content": %q}`, words(1+rnd.IntN(60)))
			}
		}
		b.WriteString("]}\n")
	}
	dir := t.TempDir()
	chats, template = filepath.Join(dir, "chats.jsonl"), filepath.Join(dir, "chat.jinja")
	for path, text := range map[string]string{chats: b.String(), template: testChatTemplate} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return chats, template
}

// Control tokens that the tokenizer lacks are named: the model would see their characters.
func TestUnknownControlTokens(t *testing.T) {
	chats, template := writeChats(t, 20)
	for body, want := range map[string]string{
		testChatTemplate: "",
		`{% for m in messages %}{{ '<|im_start|>' + m.role + ' ' + m.content + '<|im_end|>' }}{% endfor %}`: "control tokens that " +
			"gpt2 does not have and splits like text: <|im_start|>, <|im_end|>; give",
		`{% for m in messages %}{{ m.content }}<|endoftext|><|eot|>{% if x == '<|' %}|>{% endif %}{% endfor %}`: "text: <|eot|>; ",
	} {
		put(t, template, []byte(body))
		o := chatOptions(chats, template)
		o.LoadedTokenizer, o.FS = gpt2(), shardtest.New()
		s := mustBuild(t, o)
		got := fault.Join(s.Warnings, "\n").String()
		if want == "" && strings.Contains(got, "control tokens") || !strings.Contains(got, want) {
			t.Errorf("%s: %q, want %q", body, got, want)
		}
	}
}

func chatOptions(chats, template string) option.Options {
	return option.Options{Out: "data",
		Resources: option.Resources{LoadedTokenizer: small(), FS: shardtest.New()},
		Settings: option.Settings{Sources: []string{chats}, ChatTemplate: template, Format: source.Chat, MaxLength: 100,
			MaxValExamples: 20}}
}

// Workers, memory and checkpoints change no byte of a dataset of conversations, and an interrupted
// build continues.
func TestChatsDependOnOutputOptionsOnly(t *testing.T) {
	chats, template := writeChats(t, 400)
	o := chatOptions(chats, template)
	o.Workers = 1
	s := mustBuild(t, o)
	want := files(o.FS.(*shardtest.FS))
	if s.Documents != 400 {
		t.Errorf("%d documents", s.Documents)
	}
	m, err := shard.ReadManifest(o.FS, "data")
	if err != nil {
		t.Fatal(err)
	}
	if m.Counters["untrained"] != 40 || m.Counters["shape_messages"] != 400 || !m.Schema.LossMask {
		t.Errorf("counters %v, schema %+v", m.Counters, m.Schema)
	}
	if !strings.Contains(fault.Join(report.Losses(m), "\n").String(),
		"conversations left out because no token of them is trained on: 40") {
		t.Errorf("losses %q", report.Losses(m))
	}
	for _, change := range []func(*option.Options){
		func(o *option.Options) { o.Workers, o.Memory = 3, 96<<20 },
		func(o *option.Options) { o.Workers, o.CheckpointEvery, o.CheckpointInterval = 2, 7, 1 },
	} {
		o := chatOptions(chats, template)
		change(&o)
		mustBuild(t, o)
		wantSame(t, "other workers, memory or checkpoints", want, files(o.FS.(*shardtest.FS)))
	}
	o = chatOptions(chats, template)
	o.CheckpointEvery, o.CheckpointInterval = 5, 1
	o.Workers, o.Memory = 3, 96<<20 // so that jobs are short
	fsys, interrupts := o.FS.(*shardtest.FS), 0
	for {
		ctx, cancel := context.WithCancel(context.Background())
		o.FS = &cancelling{FS: fsys, after: int64(5 + interrupts%20), cancel: cancel}
		_, err := Run(ctx, o)
		cancel()
		if err == nil {
			break
		}
		if interrupts++; !errors.Is(err, ErrInterrupted) || interrupts > 1000 {
			t.Fatal(err)
		}
	}
	if interrupts == 0 {
		t.Error("nothing was interrupted")
	}
	wantSame(t, "interrupted", want, files(fsys))
}

func TestChatOptions(t *testing.T) {
	chats, template := writeChats(t, 3)
	text := filepath.Join(t.TempDir(), "t.jsonl")
	if err := os.WriteFile(text, []byte(`{"text": "x"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		change func(*option.Options)
		option string
	}{
		"a template for records": {func(o *option.Options) { o.Template = "recipe" }, "template"},
		"a text field":           {func(o *option.Options) { o.TextField = "x" }, "text-field"},
		"pairs":                  {func(o *option.Options) { o.CausalPairs = true }, "causal-pairs"},
		"chunks with tokens": {func(o *option.Options) { o.SpecialTokens = option.SpecialOfChunk },
			"special-tokens"},
		"no chat template": {func(o *option.Options) { o.ChatTemplate = "" }, "tokenizer"},
		"no such template": {func(o *option.Options) { o.ChatTemplate = "none.jinja" }, "chat-template"},
		"no such turns":    {func(o *option.Options) { o.TrainOn = "first" }, "train-on"},
		"no such day":      {func(o *option.Options) { o.Date = "2026-02-30" }, "date"},
		"no conversations": {func(o *option.Options) { o.Format, o.Sources = "", []string{text} },
			"chat-template"},
		"some conversations": {func(o *option.Options) { o.Format, o.Sources = "", []string{text, chats} },
			"format"},
	} {
		t.Run(name, func(t *testing.T) {
			o := chatOptions(chats, template)
			c.change(&o)
			var option *fault.Error
			if _, err := Run(context.Background(), o); !errors.As(err, &option) || string(option.Option) != c.option {
				t.Errorf("got %v", err)
			}
		})
	}
	// Another template is another build.
	o := chatOptions(chats, template)
	mustBuild(t, o)
	o.TrainOn = chat.TrainLast
	var settings *dataset.SettingsError
	if _, err := Run(context.Background(), o); !errors.As(err, &settings) {
		t.Errorf("got %v", err)
	}
}

// A conversation with a message that the chat template does not write is a bad record, which the error names.
func TestMessagesThatAreNotWritten(t *testing.T) {
	chats, template := writeChats(t, 40)
	text := strings.Replace(testChatTemplate, "m.content }}", "(m.content if loop.index0 != 1 or not messages[2:]) }}",
		1)
	if err := os.WriteFile(template, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(chats)
	if err != nil {
		t.Fatal(err)
	}
	want := int64(0)
	for line := range strings.SplitSeq(strings.TrimSpace(string(data)), "\n") {
		if strings.Count(line, `"role"`) > 2 {
			want++
		}
	}
	o := chatOptions(chats, template)
	if _, err := Run(context.Background(), o); err == nil || !strings.Contains(err.Error(), `message 2 of "messages", of the role`) {
		t.Errorf("got %v", err)
	}
	o.OnBadRecord = option.SkipBadRecord
	if s := mustBuild(t, o); want == 0 || s.Rejected != want {
		t.Errorf("%d bad records, not %d", s.Rejected, want)
	}
}
