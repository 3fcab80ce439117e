package chat

import (
	"strings"
	"testing"
)

// strict writes the four usual roles, and refuses or leaves out the others.
const strict = `{% for m in messages %}{% if m.role in ['system', 'user', 'tool'] %}<{{ m.role }}>{{ m.content }}` +
	`{% elif m.role == 'assistant' %}<assistant>{{ m.content }}</s>{% endif %}{% endfor %}` +
	`{% if add_generation_prompt %}<assistant>{% endif %}`

// rendered renders a record, and returns the text and what of it is trained on, or the error.
func rendered(t *testing.T, o Options, record string) (text, trained, failed string) {
	t.Helper()
	var got Text
	if err := newTestRenderer(t, o).NewWorker(nil).Render(&got, []byte(record)); err != nil {
		return "", "", err.Error()
	}
	for _, s := range got.Spans {
		trained += string(got.Text[s.Start:s.End])
	}
	return string(got.Text), trained, ""
}

func roleRecord(roles ...string) string {
	var messages []string
	for i, role := range roles {
		messages = append(messages, `{"role": "`+role+`", "content": "`+string(rune('A'+i))+`"}`)
	}
	return `{"messages": [` + strings.Join(messages, ", ") + `]}`
}

func TestRoles(t *testing.T) {
	custom := strings.Replace(strict, "{% elif", "{% elif m.role in ['developer', 'human', 'observation'] %}"+
		"[{{ m.role }}]{{ m.content }}{% elif", 1)
	for _, c := range []struct {
		template string
		roles    []string
		want     string
	}{
		{strict, []string{"human", "gpt"}, "<user>A<assistant>B</s>"},
		{strict, []string{"User ", "ASSISTANT"}, "<user>A<assistant>B</s>"},
		{strict, []string{"developer", "user", "model"}, "<system>A<user>B<assistant>C</s>"},
		{strict, []string{"Developer", "user", "model"}, "<system>A<user>B<assistant>C</s>"},
		{strict, []string{"user", "bot", "function-response", "Chatbot"}, "<user>A<assistant>B</s><tool>C<assistant>D</s>"},
		{custom, []string{"developer", "human", "gpt"}, "[developer]A[human]B<assistant>C</s>"},
		{custom, []string{"user", "gpt", "observation", "gpt"}, "<user>A<assistant>B</s>[observation]C<assistant>D</s>"},
		{chatmlTemplate, []string{"developer", "human", "narrator", "gpt"}, "<|im_start|>developer\nA<|im_end|>\n" +
			"<|im_start|>user\nB<|im_end|>\n<|im_start|>narrator\nC<|im_end|>\n<|im_start|>assistant\nD<|im_end|>\n"},
	} {
		text, trained, failed := rendered(t, Options{Template: c.template}, roleRecord(c.roles...))
		if text != c.want {
			t.Errorf("%v\n got %q %s\nwant %q", c.roles, text, failed, c.want)
		}
		if last := string(rune('A' + len(c.roles) - 1)); !strings.Contains(trained, last) {
			t.Errorf("%v: %q is trained on, without %s", c.roles, trained, last)
		}
	}
}

// A role that a template writes as any other stays where the tokenizer has a token for it.
func TestRoleOfAToken(t *testing.T) {
	const source = `{% for m in messages %}<|{{ m.role }}|>{{ m.content }}{% endfor %}`
	for token, want := range map[string]string{"<|observation|>": "<|user|>A<|assistant|>B<|observation|>C<|assistant|>D",
		"<|other|>": "<|user|>A<|assistant|>B<|tool|>C<|assistant|>D"} {
		o := Options{Template: source, IsToken: func(s string) bool { return s == token }}
		if text, _, failed := rendered(t, o, roleRecord("human", "gpt", "observation", "gpt")); text != want {
			t.Errorf("%s: got %q %s, want %q", token, text, failed, want)
		}
	}
}

func TestMappedRoles(t *testing.T) {
	roles, err := ParseRoles([]string{"Customer=user", " clerk = gpt", "system=user"})
	if err != nil {
		t.Fatal(err)
	}
	text, trained, failed := rendered(t, Options{Template: strict, Roles: roles}, roleRecord("system", "customer", "CLERK"))
	if text != "<user>A<user>B<assistant>C</s>" || trained != "C</s>" {
		t.Errorf("got %q, %q is trained on; %s", text, trained, failed)
	}
	shareGPT := `{"conversations": [{"from": "customer", "value": "A"}, {"from": "clerk", "value": "B"}]}`
	if text, _, failed := rendered(t, Options{Template: strict, Roles: roles}, shareGPT); text != "<user>A<assistant>B</s>" {
		t.Errorf("got %q %s", text, failed)
	}
	if _, _, failed := rendered(t, Options{Template: strict}, shareGPT); !strings.Contains(failed,
		"message 1 of \"conversations\": its role \"customer\" is not known") {
		t.Error(failed)
	}
	for pairs, want := range map[string]string{"customer": "not a pair", "=user": "not a pair", "a=asistant": "did you mean assistant",
		"a=user,A=tool": "named twice"} {
		if _, err := ParseRoles(strings.Split(pairs, ",")); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", pairs, err, want)
		}
	}
}

func TestUnknownRoles(t *testing.T) {
	var got Text
	w := newTestRenderer(t, Options{Template: chatmlTemplate}).NewWorker(nil)
	if err := w.Render(&got, []byte(roleRecord("asker", "teller", "user"))); err != nil {
		t.Fatal(err)
	}
	if s := strings.Join(got.UnknownRoles, " "); s != "asker teller" {
		t.Errorf("got %q", s)
	}
	for record, want := range map[string]string{
		`{"messages": [{"role": 1, "content": "A"}]}`:         `message 1 of "messages": its role is the number 1, not a string`,
		`{"messages": [{"from": ["gpt"], "value": "A"}]}`:     "its role is a list",
		`{"messages": [{"role": null, "content": "A"}]}`:      "it has no role",
		`{"messages": [{"role": "user", "content": {}}]}`:     "its content is an object",
		`{"messages": [{"role": "assistant", "x": "A"}]}`:     "it, of role \"assistant\", has no content",
		`{"conversations": [{"from": "poet", "value": "A"}]}`: "`roles` poet=user",
	} {
		if _, _, failed := rendered(t, Options{Template: chatmlTemplate}, record); !strings.Contains(failed, want) {
			t.Errorf("%s\n got %s\nwant %s", record, failed, want)
		}
	}
}
