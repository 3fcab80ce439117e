package chat

import (
	"strings"
	"testing"
)

// TestEmptyBlock: blocks without words are found, with white space around them.
func TestEmptyBlock(t *testing.T) {
	for text, want := range map[string]string{
		"<think>\n\n</think>\n\nYes.": "<think>\n\n</think>\n\n", "\n<think></think>\nYes.": "\n<think></think>\n",
		"</think>Yes.": "</think>", "\n</think>\n\nYes.": "\n</think>\n\n", "[THINK][/THINK]Yes.": "[THINK][/THINK]",
		"<seed:think></seed:think>Yes.": "<seed:think></seed:think>", "<|think|><|/think|> Yes.": "<|think|><|/think|> ",
		"<|channel>thought\n<channel|>Yes.": "<|channel>thought\n<channel|>", "<think></think>": "<think></think>",
		"</think>\n<tool_call>": "</think>\n", "<|START_THINKING|><|END_THINKING|><|START_RESPONSE|>": "<|START_THINKING|><|END_THINKING|>",
		"<|inner_prefix|><|inner_suffix|>Yes.": "<|inner_prefix|><|inner_suffix|>", "<|START_RESPONSE|>Yes.": "",
		"<|START_RESPONSE|><|START_TEXT|>Yes.": "", "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>": "", "<|start|><|end|>": "",
		"": "", "Yes.": "", " Yes.": "", "<think>\nWhy.\n</think>\n": "", "<tool_call>\n{": "", "<": "", "<>[]": "",
		"<|channel|>final<|message|>Yes.": "", "[TOOL_CALLS][{\"name\": \"": "", "<think>": "", "<think>\n": "", "<a><a>": "",
		"<b>bold</b>": "", "<tool_call>\n<function=f>": "",
	} {
		if n := emptyBlock([]byte(text)); text[:n] != want {
			t.Errorf("%q: %q, want %q", text, text[:n], want)
		}
	}
}

// TestEmptyBlocksAreContext: what a template writes by itself is not trained on, and the same words of a record are.
func TestEmptyBlocksAreContext(t *testing.T) {
	const empty = `<think>\n\n</think>\n\n`
	for name, template := range map[string]string{
		"by itself": `{% for m in messages %}<{{ m.role }}>{% if m.role == 'assistant' %}{{ '` + empty + `' }}{% endif %}` +
			`{{ m.content }}<end>{% endfor %}{% if add_generation_prompt %}<assistant>{% endif %}`,
		"after the prompt's": `{% for m in messages %}<{{ m.role }}>{% if m.role == 'assistant' %}{{ '` + empty + `' }}{% endif %}` +
			`{{ m.content }}<end>{% endfor %}{% if add_generation_prompt %}{{ '<assistant><think>\n' }}{% endif %}`,
		"as it is": `{% for m in messages %}<{{ m.role }}>{{ m.content }}<end>{% endfor %}` +
			`{% if add_generation_prompt %}<assistant>{% endif %}`,
	} {
		r, err := NewRenderer(Options{Template: template})
		if err != nil {
			t.Fatal(err)
		}
		for _, record := range []string{
			`{"messages":[{"role":"user","content":"a"},{"role":"assistant","content":"CONTENT"}]}`,
			`{"messages":[{"role":"user","content":"a"},{"role":"assistant","content":"CONTENT"},{"role":"user","content":"b"},` +
				`{"role":"assistant","content":"CONTENT"}]}`,
		} {
			for content, want := range map[string]string{"c": "c<end>", empty + "c": "<think>\n\n</think>\n\nc<end>", "": "<end>",
				"<b></b>c": "<b></b>c<end>"} {
				if name != "as it is" && content == empty+"c" {
					continue // the record's cannot be told from the template's
				}
				var text Text
				if err := r.NewWorker(nil).Render(&text, []byte(strings.ReplaceAll(record, "CONTENT", content))); err != nil {
					t.Fatal(err)
				}
				for _, s := range text.Spans {
					if said := string(text.Text[s.Start:s.End]); said != want {
						t.Errorf("%s, %q: %q is trained on, want %q", name, content, said, want)
					}
				}
				if len(text.Spans) == 0 {
					t.Errorf("%s, %q: no turn", name, content)
				}
			}
		}
	}
}
