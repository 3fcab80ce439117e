package chat

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/dsload/dsload/internal/ingest/jinja"
	"github.com/dsload/dsload/internal/refdata"
)

// renderAs renders a record with a template and what is to become of reasoning; ok is false where the template does
// not take it.
func renderAs(t *testing.T, template string, what Reasoning, record string) (text, said string, ok bool) {
	t.Helper()
	r, err := NewRenderer(Options{Template: template, Reasoning: what, Special: &jinja.Dict{},
		Date: time.Date(2026, 11, 27, 0, 0, 0, 0, time.UTC)})
	if err != nil {
		t.Fatal(err)
	}
	var out Text
	if err := r.NewWorker(nil).Render(&out, []byte(record)); err != nil {
		return err.Error(), "", false
	}
	for _, s := range out.Spans {
		said += string(out.Text[s.Start:s.End]) + "\x00"
	}
	return string(out.Text), said, true
}

// TestReasoningOfPublicTemplates: masked reasoning changes no text and is not trained on, and answers and calls are;
// dropped reasoning gives the text of the record without it.
func TestReasoningOfPublicTemplates(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(refdata.Path(t, "templates"), "*.jinja"))
	if err != nil || len(files) == 0 {
		t.Fatal("no templates", err)
	}
	const q1, q2 = `{"role":"user","content":"One?"}`, `{"role":"user","content":"Two?"}`
	const call = `"tool_calls":[{"id":"abcdef123","type":"function","function":{"name":"look","arguments":{"city":"Lyon"}}}]`
	const result = `{"role":"tool","tool_call_id":"abcdef123","name":"look","content":"RESULT"}`
	thought := func(field, why, content string) string {
		return `{"role":"assistant","` + field + `":"` + why + `","content":"` + content + `"}`
	}
	said := func(content string) string { return `{"role":"assistant","content":"` + content + `"}` }
	inside := func(why, content string) string { return said(`<think>\n` + why + `\n</think>\n\n` + content) }
	list := func(m ...string) string { return `{"messages":[` + strings.Join(m, ",") + `]}` }
	for name, c := range map[string]struct{ with, without string }{
		"field": {list(q1, thought("reasoning_content", "WHYA", "ZA"), q2, thought("reasoning_content", "WHYB", "ZB")),
			list(q1, said("ZA"), q2, said("ZB"))},
		"one turn":           {list(q1, thought("reasoning", "WHYA", "ZA")), list(q1, said("ZA"))},
		"content":            {list(q1, inside("WHYA", "ZA"), q2, inside("WHYB", "ZB")), list(q1, said("ZA"), q2, said("ZB"))},
		"one turn's content": {list(q1, inside("WHYA", "ZA")), list(q1, said("ZA"))},
		"call": {list(q1, `{"role":"assistant","content":"","reasoning_content":"WHYA",`+call+`}`, result, thought("thinking", "WHYB", "ZB")),
			list(q1, `{"role":"assistant","content":"",`+call+`}`, result, said("ZB"))},
	} {
		for i, path := range files {
			if testing.Short() && (i+len(name))%6 > 0 { // each case with other templates
				continue
			}
			template, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			at := name + ", " + filepath.Base(path)
			keep, all, ok := renderAs(t, string(template), KeepReasoning, c.with)
			if !ok {
				continue
			}
			masked, some, ok := renderAs(t, string(template), MaskReasoning, c.with)
			if !ok || masked != keep {
				t.Errorf("%s, mask: %q for %q", at, masked, keep)
			}
			for _, word := range []string{"ZA", "ZB", "Lyon"} {
				if strings.Contains(all, word) && !strings.Contains(some, word) {
					t.Errorf("%s, mask: %s is not trained on: %q of %q", at, word, some, all)
				}
			}
			blocks := strings.Contains(string(template), "generation") // that may hold empty ones
			if strings.Contains(some, "WHY") || !blocks && strings.Contains(some, "<think>") {
				t.Errorf("%s, mask: %q is trained on", at, some)
			}
			if !strings.Contains(all, "WHY") && !strings.Contains(all, "</think>") && some != all {
				t.Errorf("%s, mask: %q of %q, without reasoning", at, some, all)
			}
			dropped, words, ok := renderAs(t, string(template), DropReasoning, c.with)
			if want, wantWords, takes := renderAs(t, string(template), KeepReasoning, c.without); takes &&
				(!ok || dropped != want || words != wantWords) {
				t.Errorf("%s, drop: %q for %q", at, dropped, want)
			}
		}
	}
}

// TestDropReasoning: only reasoning of the assistant is left out, wherever it is, and a message that holds nothing
// else is a bad one.
func TestDropReasoning(t *testing.T) {
	const template = `{% for m in messages %}{{ m.role }}:{% if m.thinking %}({{ m.thinking }}){% endif %}` +
		`{% if m.content is string %}{{ m.content }}{% else %}{% for p in m.content %}{{ p.text }}|{% endfor %}{% endif %};{% endfor %}`
	for messages, want := range map[string]string{
		`{"role":"user","content":"<think>a</think>b"},{"role":"assistant","content":"<think>c</think>\n\n d"}`:          "user:<think>a</think>b;assistant:d;",
		`{"role":"assistant","thinking":"a","reasoning":"b","content":"c"}`:                                              "assistant:c;",
		`{"role":"assistant","content":[{"type":"thinking","thinking":"a"},{"type":"text","text":"<think>b</think>c"}]}`: "assistant:c|;",
		`{"role":"assistant","content":[{"type":"text","text":"<think>b</think>"},{"type":"text","text":"c"}]}`:          "assistant:c|;",
		`{"role":"assistant","content":"a"}`:                        "assistant:a;",
		`{"role":"assistant","content":"","reasoning_content":"a"}`: "message 1 of \"messages\": it says nothing besides its reasoning, which `reasoning` drop leaves out",
		`{"role":"assistant","content":"<think>a</think> "}`:        "message 1 of \"messages\": it says nothing besides its reasoning, which `reasoning` drop leaves out",
	} {
		if text, _, _ := renderAs(t, template, DropReasoning, `{"messages":[`+messages+`]}`); text != want {
			t.Errorf("%s: %q, want %q", messages, text, want)
		}
	}
}

// TestReasoningByAnyName: the template finds a model's reasoning by each name, whichever has it.
func TestReasoningByAnyName(t *testing.T) {
	const template = `{% for m in messages %}({{ m.thinking }})({{ m.reasoning_content }}){{ m.content }}{% endfor %}`
	for _, fields := range []string{`"thinking":"a"`, `"reasoning_content":"a"`, `"reasoning":"a"`, `"reasoning_content":"","reasoning":"a"`,
		`"thinking":"","reasoning_content":null,"reasoning":"a"`, `"thinking":"a","reasoning":"a","reasoning_content":""`} {
		if text, _, _ := renderAs(t, template, KeepReasoning, `{"messages":[{"role":"assistant","content":"c",`+fields+`}]}`); text != "(a)(a)c" {
			t.Errorf("%s: %q", fields, text)
		}
	}
}

func TestThoughtEnds(t *testing.T) {
	for source, want := range map[string][]string{"": {"</think>"}, "{% if '</seed:think>' in c %}</think>": {"</seed:think>", "</think>"},
		"[THINK]a[/THINK]": {"</think>", "[/THINK]"}, "</tool_call>": {"</think>"},
		"{{ '<|START_THINKING|>' }}{{ '<|END_THINKING|>' }}": {"</think>", "<|END_THINKING|>"}} {
		if got := thoughtEnds(source); !slices.Equal(got, want) {
			t.Errorf("%q: %q", source, got)
		}
	}
}
