package chat

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/dsload/dsload/internal/ingest/jinja"
	"github.com/dsload/dsload/internal/refdata"
)

// What a message says is in the text, or the record is bad, and the error names the message, its role and a
// role that the template writes. Reasoning, tools, and words beside calls are counted instead.
func TestLeftOut(t *testing.T) {
	const known = `{% for m in messages if m.role in ['user', 'assistant'] %}{{ '<' ~ m.role ~ '>' ~ m.content|trim }}{% endfor %}`
	const narrated = `{"messages": [{"role": "user", "content": "One?"}, {"role": "narrator", "content": "Rain."}, {"role": "assistant", "content": "First."}]}`
	const called = `{"tools": [{"type": "function", "function": {"name": "look"}}], "messages": [{"role": "user", "content": "One?"}, {"role": "assistant", "content": "Hm.", "tool_calls": [{"function": {"name": "look", "arguments": {"city": "Lyon"}}}]}, {"role": "tool", "content": "11"}, {"role": "assistant", "content": "First."}]}`
	// the calls are written, and neither what is said beside them nor the tools
	const calls = `{% for m in messages %}{{ '<' ~ m.role ~ '>' }}{% if m.tool_calls %}{{ m.tool_calls[0].function.name }}{% else %}{{ m.content }}{% endif %}{% endfor %}`
	const thoughts = `{"messages": [{"role": "user", "content": "One?"}, {"role": "assistant", "reasoning_content": "Because.", "content": "First."}, {"role": "user", "content": "Two?"}, {"role": "assistant", "content": "<think>\nhm\n</think>\n\nSecond."}]}`
	for name, c := range map[string]struct {
		template, record, err string
		want                  Losses
	}{
		"unknown role": {template: known, record: narrated,
			err: "message 2 of \"messages\", of the role narrator: the chat template writes nothing of what it says, and a model would be trained without it; `roles` narrator=user writes it, as the roles assistant do"},
		"by chance": {template: known, record: strings.Replace(narrated, "Rain.", "First", 1), err: `message 2 of "messages",`},
		"in the template": {template: strings.ReplaceAll(known, "|trim", "|upper|lower"),
			record: strings.Replace(narrated, "Rain.", "user", 1), err: `message 2 of "messages",`},
		"two": {template: known, record: strings.Replace(narrated, `"assistant"`, `"narrator"`, 1), err: "nor of 1 more"},
		"dropped turn": {template: strings.Replace(known, "['user', 'assistant']", "['user']", 1), record: twoTurns,
			err: "message 2 of \"messages\", of the role assistant: the chat template writes nothing of what it says, nor of 1 more, and a model would be trained without it; give another `chat-template`"},
		"blank":   {template: known, record: strings.Replace(narrated, "Rain.", ` \n`, 1)},
		"changed": {template: `{% for m in messages %}{{ m.content|upper|replace('.', '!') }}{% endfor %}`, record: narrated},
		"blank edges": {template: `{% macro said(m) %}{{ m.content|trim }}{% endmacro %}{% for m in messages %}{{ said(m) }}{% endfor %}`,
			record: strings.Replace(narrated, "Rain.", "\u00a0Rain.\u00a0", 1)},
		"in JSON":          {template: `{{ messages|tojson }}`, record: strings.Replace(narrated, "Rain.", `\"é\"\n`, 1)},
		"measured":         {template: `{% for m in messages if m.content|length < 7 %}{{ m.content }}{% endfor %}`, record: narrated},
		"no tools":         {template: known, record: called, want: Losses{ToolsLeftOut: true}},
		"beside calls":     {template: calls, record: called, want: Losses{ToolsLeftOut: true, BesideCalls: 1}},
		"a result":         {template: strings.Replace(calls, "messages %", "messages if m.role != 'tool' %", 1), record: called, err: "message 3 of \"messages\", of the role tool"},
		"reasoning":        {template: thinkTemplate, record: thoughts, want: Losses{ThoughtsLeftOut: 1}},
		"reasoning of all": {template: known, record: thoughts, want: Losses{ThoughtsLeftOut: 1}},
		"reasoning alone":  {template: strings.Replace(thinkTemplate, "and not loop.last", "", 1), record: thoughts, want: Losses{ThoughtsLeftOut: 2}},
	} {
		for _, on := range TrainOns {
			var got Text
			err := newTestRenderer(t, Options{Template: c.template, TrainOn: on}).NewWorker(nil).Render(&got,
				[]byte(c.record))
			switch {
			case c.err != "":
				if !errors.Is(err, ErrTemplate) || !strings.Contains(err.Error(), c.err) {
					t.Errorf("%s, %s: got %v, want %s", name, on, err, c.err)
				}
			case err != nil:
				t.Errorf("%s, %s: %v", name, on, err)
			case got.Losses != c.want:
				t.Errorf("%s, %s: got %+v\nof %q", name, on, got, got.Text)
			}
		}
	}
}

// A list of parts gives the text that a string gives, with each public template that takes strings; and a string
// that of a list, with those that take only lists.
func TestPartsAsStrings(t *testing.T) {
	const record = `{"messages": [{"role": "user", "content": "One?"}, {"role": "assistant", "content": "First."}]}`
	said := func(with string) string {
		return strings.NewReplacer(`"One?"`, with, `"First."`, strings.Replace(with, "One?", "First.", 1)).Replace(record)
	}
	files, _ := filepath.Glob(filepath.Join(refdata.Path(t, "templates"), "*.jinja"))
	for _, file := range files {
		source, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		special := &jinja.Dict{}
		special.Set("bos_token", "<s>")
		special.Set("eos_token", "</s>")
		w := newTestRenderer(t, Options{Template: string(source), Special: special,
			Date: time.Date(2026, 3, 4, 0, 0, 0, 0, time.UTC)}).NewWorker(nil)
		var want Text
		wantErr := w.Render(&want, []byte(record))
		if wantErr == nil && (!strings.Contains(string(want.Text), "One?") || spansOf(&want) != "" && !strings.Contains(spansOf(&want), "First.")) {
			t.Errorf("%s: %q", filepath.Base(file), want.Text)
		}
		for _, parts := range []string{`[{"type": "text", "text": "One?"}]`, `[{"type": "input_text", "text": "One?"}]`,
			`["One?"]`, `[{"text": "One?"}]`} {
			var got Text
			err := w.Render(&got, []byte(said(parts)))
			if (err == nil) != (wantErr == nil) || err == nil && (string(got.Text) != string(want.Text) || spansOf(&got) != spansOf(&want)) {
				t.Errorf("%s, %s:\n got %q, %v\nwant %q, %v", filepath.Base(file), parts, got.Text, err, want.Text, wantErr)
			}
		}
	}
}

// Which contents a template takes depends on the role.
func TestContentsByRole(t *testing.T) {
	const template = `{% for m in messages %}{{ '<' ~ m.role ~ '>' }}{% if m.role == 'system' %}{{ m.content[0].text }}{% elif m.role == 'user' and m.content is not string %}{% for p in m.content %}{{ p.text ~ '|' }}{% endfor %}{% else %}{{ m.content }}{% endif %}{% endfor %}`
	for record, want := range map[string]string{
		`[{"role": "user", "content": ["a", {"type": "text", "text": "b"}]}, {"role": "assistant", "content": ["c", "d"]}]`:      "<user>a|b|<assistant>c\nd",
		`[{"role": "system", "content": ["a", "b"]}, {"role": "user", "content": "c"}, {"role": "assistant", "content": ["d"]}]`: "<system>a\nb<user>c<assistant>d",
		`[{"role": "system", "content": "a"}, {"role": "user", "content": "c"}, {"role": "assistant", "content": []}]`:           "<system>a<user>c<assistant>",
		`[{"role": "user", "content": [{"type": "image"}]}]`:                                                                     "!part 1 of its content is an image",
		`[{"role": "user", "content": ["a", {"type": "input_audio", "input_audio": {}}]}]`:                                       "!part 2 of its content is audio",
		`[{"role": "user", "content": [{"video": "a.mp4", "text": ""}]}]`:                                                        "!part 1 of its content is a video",
		`[{"role": "user", "content": "a"}, {"role": "assistant", "content": [{"type": "refusal", "refusal": "No."}]}]`:          "!part 1 of its content is not text, with the fields type, refusal",
		`[{"role": "user", "content": ["a", {"type": "file", "name": "b"}]}, {"role": "assistant", "content": "c"}]`:             `!message 1 of "messages", of the role user: the chat template writes nothing of a part of what it says`,
	} {
		var got Text
		err := newTestRenderer(t, Options{Template: template}).NewWorker(nil).Render(&got,
			json.RawMessage(`{"messages": `+record+`}`))
		if why, bad := strings.CutPrefix(want, "!"); bad != (err != nil) || bad && !strings.Contains(err.Error(), why) ||
			!bad && string(got.Text) != want {
			t.Errorf("%s:\n got %q, %v\nwant %q", record, got.Text, err, want)
		}
	}
}

// The calls of a tool have its name, too: that the template writes its definition is seen by what it writes of others,
// and by its description.
func TestDefinitionsOfPublicTemplates(t *testing.T) {
	const does = "Looks up the weather of a town."
	record := `{"tools": [{"type": "function", "function": {"name": "look", "description": "` + does + `", "parameters": {"type": "object", "properties": {"city": {"type": "string", "description": "A town"}}, "required": ["city"]}}}],
		"messages": [{"role": "user", "content": "One?"}, {"role": "assistant", "content": "", "tool_calls": [{"id": "abcdef123", "type": "function", "function": {"name": "look", "arguments": {"city": "Lyon"}}}]}, {"role": "tool", "tool_call_id": "abcdef123", "name": "look", "content": "11"}, {"role": "assistant", "content": "First."}]}`
	inSystem := strings.Replace(record, `"messages": [`, `"messages": [{"role": "system", "content": "`+does+`"}, `, 1)
	files, _ := filepath.Glob(filepath.Join(refdata.Path(t, "templates"), "*.jinja"))
	found := map[bool]int{}
	for _, file := range files {
		source, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		w := newTestRenderer(t, Options{Template: string(source), Date: time.Date(2026, 3, 4, 0, 0, 0, 0, time.UTC)}).NewWorker(nil)
		var got Text
		if err := w.Render(&got, []byte(record)); err != nil || !strings.Contains(string(got.Text), "Lyon") {
			continue
		}
		written := strings.Contains(string(got.Text), does)
		if found[written]++; got.ToolsLeftOut == written {
			t.Errorf("%s: %v of %q", filepath.Base(file), got.ToolsLeftOut, got.Text)
		}
		if err := w.Render(&got, []byte(inSystem)); err == nil && got.ToolsLeftOut {
			t.Errorf("%s, with the definition in the system message: %q", filepath.Base(file), got.Text)
		}
	}
	t.Logf("templates that write calls and the definitions of tools: %d; calls alone: %d", found[true], found[false])
	if found[true] == 0 || found[false] == 0 {
		t.Error("the templates do not differ")
	}
}
