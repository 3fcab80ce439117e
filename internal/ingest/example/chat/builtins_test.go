package chat

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/dsload/dsload/internal/ingest/jinja"
	"github.com/dsload/dsload/internal/refdata"
)

// builtinText returns the text of a record by a template, "" with the reason where it is refused, and what is trained on.
func builtinText(t *testing.T, template, record string) (text string, trained []string, err error) {
	t.Helper()
	special := &jinja.Dict{}
	special.Set("bos_token", "<s>")
	special.Set("eos_token", "</s>")
	var out Text
	err = newTestRenderer(t, Options{Template: template, Special: special}).NewWorker(nil).Render(&out, []byte(record))
	if err != nil {
		return "", nil, err
	}
	for _, s := range out.Spans {
		trained = append(trained, string(out.Text[s.Start:s.End]))
	}
	return string(out.Text), trained, nil
}

func builtinTemplate(t *testing.T, name string) string {
	t.Helper()
	text, tools, err := (&templates{}).choose(name)
	if err != nil || text != tools {
		t.Fatal(name, err)
	}
	return text
}

func TestBuiltins(t *testing.T) {
	const record = `{"messages": [{"role": "system", "content": "S"}, {"role": "user", "content": "U1"},
		{"role": "assistant", "content": "A1"}, {"role": "user", "content": "U2"}, {"role": "assistant", "content": "A2"}]}`
	for name, want := range map[string]struct {
		text, trained string
	}{
		"chatml": {"<|im_start|>system\nS<|im_end|>\n<|im_start|>user\nU1<|im_end|>\n<|im_start|>assistant\nA1<|im_end|>\n" +
			"<|im_start|>user\nU2<|im_end|>\n<|im_start|>assistant\nA2<|im_end|>\n", "A1<|im_end|>|A2<|im_end|>"},
		"llama3": {"<s><|start_header_id|>system<|end_header_id|>\n\nS<|eot_id|><|start_header_id|>user<|end_header_id|>\n\n" +
			"U1<|eot_id|><|start_header_id|>assistant<|end_header_id|>\n\nA1<|eot_id|><|start_header_id|>user" +
			"<|end_header_id|>\n\nU2<|eot_id|><|start_header_id|>assistant<|end_header_id|>\n\nA2<|eot_id|>",
			"A1<|eot_id|>|A2<|eot_id|>"},
		"qwen": {"<|im_start|>system\nS<|im_end|>\n<|im_start|>user\nU1<|im_end|>\n<|im_start|>assistant\nA1<|im_end|>\n" +
			"<|im_start|>user\nU2<|im_end|>\n<|im_start|>assistant\nA2<|im_end|>\n", "A1<|im_end|>|A2<|im_end|>"},
		"gemma": {"<s><start_of_turn>user\nS\n\nU1<end_of_turn>\n<start_of_turn>model\nA1<end_of_turn>\n<start_of_turn>user\n" +
			"U2<end_of_turn>\n<start_of_turn>model\nA2<end_of_turn>\n", "A1<end_of_turn>|A2<end_of_turn>"},
		"mistral": {"<s>[INST] S\n\nU1 [/INST]A1</s>[INST] U2 [/INST]A2</s>", "A1</s>|A2</s>"},
		"phi": {"<|system|>\nS<|end|>\n<|user|>\nU1<|end|>\n<|assistant|>\nA1<|end|>\n<|user|>\nU2<|end|>\n<|assistant|>\n" +
			"A2<|end|>\n</s>", "A1<|end|>|A2<|end|></s>"},
		"deepseek": {"<s>S<｜User｜>U1<｜Assistant｜>A1<｜end▁of▁sentence｜><｜User｜>U2<｜Assistant｜>A2<｜end▁of▁sentence｜>",
			"A1<｜end▁of▁sentence｜>|A2<｜end▁of▁sentence｜>"},
	} {
		text, trained, err := builtinText(t, builtinTemplate(t, name), record)
		if got := strings.ReplaceAll(strings.Join(trained, "|"), "\n", ""); err != nil || text != want.text ||
			got != want.trained {
			t.Errorf("%s: %v\n got %q, of it %q\nwant %q, of it %q", name, err, text, trained, want.text, want.trained)
		}
	}
}

// A built-in template writes what those of its models do, and refuses what it would leave out.
func TestBuiltinsAsModels(t *testing.T) {
	dir := refdata.Path(t, "templates")
	records := []string{
		`[{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Hello.\nSo."}]`,
		`[{"role": "user", "content": "é?"}, {"role": "assistant", "content": "1"}, {"role": "user", "content": "2"},
			{"role": "assistant", "content": "3"}]`,
		`[{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Hi"},
			{"role": "assistant", "content": "Hello"}]`,
	}
	const calls = `[{"role": "user", "content": "Oslo?"}, {"role": "assistant", "content": "", "tool_calls": [{"type": "function",
		"function": {"name": "look_up", "arguments": {"city": "Oslo"}}}, {"type": "function", "function": {"name": "wait",
		"arguments": {}}}]}, {"role": "tool", "content": "7"}, {"role": "tool", "content": "8"},
		{"role": "assistant", "content": "Cold."}]`
	for name, model := range map[string]string{"chatml": "unsloth_chatml_template", "llama3": "unsloth_llama3_template",
		"qwen": "unsloth_qwen3_instruct_template", "gemma": "axolotl_gemma3",
		"mistral": "js_mistralai_Mixtral-8x7B-Instruct-v0.1", "phi": "microsoft-Phi-3.5-mini-instruct",
		"deepseek": "trl_deepseek_r1_distill"} {
		public, err := os.ReadFile(filepath.Join(dir, model+".jinja"))
		if err != nil {
			t.Fatal(err)
		}
		own, compared := builtinTemplate(t, name), 0
		for _, record := range append(records, calls) {
			record = `{"messages": ` + record + `}`
			got, trained, err := builtinText(t, own, record)
			if record == `{"messages": `+calls+`}` && name != "qwen" {
				if err == nil || !strings.Contains(err.Error(), "no calls of tools") {
					t.Errorf("%s: calls are not refused: %v", name, err)
				}
				continue
			}
			want, likewise, publicErr := builtinText(t, string(public), record)
			if publicErr != nil {
				continue // Mixtral's has no system message
			}
			compared++
			if err != nil || got != want || !slices.Equal(trained, likewise) {
				t.Errorf("%s: %v\n got %q, of it %q\nwant %q, of it %q", name, err, got, trained, want, likewise)
			}
		}
		if compared < 2 {
			t.Errorf("%s: %d conversations were compared", name, compared)
		}
	}
}

// What the assistant says in the conversations of testdata is trained on, and nothing else.
func TestTurnsOfBuiltins(t *testing.T) {
	var records map[string]json.RawMessage
	readTestJSON(t, "testdata/conversations.json", &records)
	for _, name := range Builtins {
		if turns := turnsOf(t, name, builtinTemplate(t, name), records); len(turns) < 4 {
			t.Errorf("%s takes %d of %d conversations", name, len(turns), len(records))
		}
	}
}

func TestBuiltinsRefuse(t *testing.T) {
	for _, name := range Builtins {
		for _, role := range []string{"critic", "tool"} {
			record := `{"messages": [{"role": "user", "content": "a"}, {"role": "` + role +
				`", "content": "b"}, {"role": "assistant", "content": "c"}]}`
			if _, _, err := builtinText(t, builtinTemplate(t, name), record); err == nil && name != "chatml" &&
				(name != "qwen" || role != "tool") {
				t.Errorf("%s takes the role %s", name, role)
			}
		}
	}
	for _, name := range []string{"gemma", "mistral"} { // nothing of a system message is trained on
		if _, _, err := builtinText(t, builtinTemplate(t, name), `{"messages": [{"role": "system", "content": "a"},
			{"role": "assistant", "content": "b"}]}`); err == nil {
			t.Errorf("%s writes a system message into the assistant's turn", name)
		}
	}
}

func TestChooseBuiltin(t *testing.T) {
	t.Chdir(t.TempDir())
	if err := os.WriteFile("chatml", []byte("a file"), 0o600); err != nil {
		t.Fatal(err)
	}
	own := &templates{Named: map[string]string{"chatml": "the tokenizer's"}}
	for _, c := range []struct {
		t           *templates
		given, want string
	}{{own, "chatml", "the tokenizer's"}, {&templates{}, "./chatml", "a file"}, {&templates{}, "chatml", builtinTemplate(t, "chatml")}} {
		if got, _, err := c.t.choose(c.given); err != nil || got != c.want {
			t.Errorf("%s: %q, %v", c.given, got, err)
		}
	}
	for given, want := range map[string]string{"chatlm": "did you mean chatml?", "Llama-3": "did you mean llama3?",
		"zzz": "give a file"} {
		if _, _, err := own.choose(given); err == nil || !strings.Contains(err.Error(), want) ||
			!strings.Contains(err.Error(), strings.Join(Builtins, ", ")) {
			t.Errorf("%s: %v", given, err)
		}
	}
	files, err := builtins.ReadDir("templates")
	if err != nil || len(files) != len(Builtins) {
		t.Error(len(files), err)
	}
}
