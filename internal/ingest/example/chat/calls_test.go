package chat

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/dsload/dsload/internal/refdata"
)

// writesCall returns a template that writes the arguments of calls, and what tools answer, as given.
func writesCall(arguments, result string) string {
	return `{% for m in messages %}{% if m.role == 'tool' %}[` + result + `]{% elif m.tool_calls %}` +
		`{% for c in m.tool_calls %}<{{ c.function.name }}:` + arguments + `>{% endfor %}</s>` +
		`{% else %}<{{ m.role }}>{{ m.content }}{{ '</s>' if m.role == 'assistant' }}{% endif %}{% endfor %}`
}

const (
	asJSON  = `{{ c.function.arguments|tojson }}`
	asIs    = `{{ c.function.arguments }}`
	asPairs = `{% for k, v in c.function.arguments|items %}{{ k }}={{ v }};{% endfor %}`
	either  = `{{ c.function.arguments if c.function.arguments is string else c.function.arguments|tojson }}`
	onlyStr = `{% if c.function.arguments is not string %}{{ raise_exception('no string') }}{% endif %}{{ c.function.arguments }}`
	content = `{{ m.content }}`
	joined  = `{{ 'R' + m.content }}`
)

func callRecord(arguments string) string {
	return `{"messages": [{"role": "user", "content": "Q"}, {"role": "assistant", "content": "", "tool_calls": [{"type": "function", ` +
		`"function": {"name": "f", "arguments": ` + arguments + `}}]}, {"role": "assistant", "content": "Z"}]}`
}

// Arguments in a string are decoded where the template encodes a string once more or fails on it, and nowhere else.
func TestArguments(t *testing.T) {
	const text, object = `"{\"a\":1}"`, `{"a": 1}`
	for _, c := range []struct{ template, arguments, want string }{
		{asJSON, text, `{"a": 1}`}, {asPairs, text, "a=1;"}, {either, text, `{"a":1}`}, {asIs, text, `{"a":1}`},
		{onlyStr, text, `{"a":1}`}, {onlyStr, object, `{"a": 1}`}, {asIs, object, `{'a': 1}`}, {asJSON, object, `{"a": 1}`},
		{asJSON, `""`, "{}"}, {asJSON, `"{\"a\": \"{\\\"b\\\": 1}\"}"`, `{"a": "{\"b\": 1}"}`},
		{asJSON, `"[1]"`, "!call 1 are a string that holds no JSON object, [1],"},
		{asPairs, `"a=1"`, `!message 2 of "messages": the arguments of its call 1`},
	} {
		text, _, failed := rendered(t, Options{Template: writesCall(c.template, content)}, callRecord(c.arguments))
		if want, fails := strings.CutPrefix(c.want, "!"); fails {
			if !strings.Contains(failed, want) {
				t.Errorf("%s of %s: got %q %s, want the error %s", c.template, c.arguments, text, failed, want)
			}
		} else if text != "<user>Q<f:"+want+"></s><assistant>Z</s>" {
			t.Errorf("%s of %s: got %q %s, want %s", c.template, c.arguments, text, failed, want)
		}
	}
}

// A call that is not an object is an error of its message.
func TestCallsThatAreNoObjects(t *testing.T) {
	for call, want := range map[string]string{`"f"`: "a string", `null`: "null", `1`: "a number", `[{"name": "f"}]`: "a list"} {
		_, _, failed := rendered(t, Options{Template: writesCall(asIs, content)}, `{"messages": [{"role": "user", "content": "Q"}, `+
			`{"role": "assistant", "content": "Z", "tool_calls": [{"function": {"name": "f"}}, `+call+`]}]}`)
		if want := `message 2 of "messages": its call 2 is ` + want + ", not an object"; !strings.Contains(failed, want) {
			t.Errorf("%s: got %q, want %q", call, failed, want)
		}
	}
}

// Arguments are an object, as it is or in a string; a template that takes objects writes nothing of others.
func TestArgumentsThatAreNoObjects(t *testing.T) {
	for arguments, want := range map[string]string{`[7]`: "a list", `7`: "a number", `false`: "a truth value", `[]`: "", `null`: ""} {
		_, _, failed := rendered(t, Options{Template: writesCall(asIs, content)}, `{"messages": [{"role": "user", "content": "Q"}, `+
			`{"role": "assistant", "content": "Z", "tool_calls": [{"function": {"name": "f", "arguments": `+arguments+`}}]}]}`)
		if want != "" {
			want = "the arguments of its call 1 are " + want + ", not an object"
		}
		if !strings.Contains(failed, want) || want == "" && failed != "" {
			t.Errorf("%s: got %q, want %q", arguments, failed, want)
		}
	}
}

// Messages whose content is calls become calls of tools; those in a row are one message.
func TestMessagesOfCalls(t *testing.T) {
	const head, end = `{"conversations": [{"from": "human", "value": "Q"}, `, `, {"from": "gpt", "value": "Z"}]}`
	for given, want := range map[string]string{
		`{"from": "function_call", "value": "{\"name\": \"f\", \"arguments\": {\"a\": 1}}"}`:                                                         `<f:{"a": 1}></s>`,
		`{"from": "function-call", "value": "{\"name\": \"f\", \"arguments\": \"{\\\"a\\\": 1}\"}"}`:                                                 `<f:{"a": 1}></s>`,
		`{"from": "function_call", "value": "[{\"name\": \"f\", \"arguments\": {}}, {\"name\": \"g\", \"arguments\": {}}]"}`:                         `<f:{}><g:{}></s>`,
		`{"role": "tool_call", "content": {"name": "f", "arguments": {}}}, {"role": "tool_call", "content": "{\"name\": \"g\", \"arguments\": {}}"}`: `<f:{}><g:{}></s>`,
		`{"from": "gpt", "value": "", "tool_calls": "[{\"function\": {\"name\": \"f\", \"arguments\": {\"a\": 1}}}]"}`:                               `<f:{"a": 1}></s>`,
		`"{\"from\": \"function_call\", \"value\": {\"name\": \"f\", \"arguments\": {}}}"`:                                                           `<f:{}></s>`,
		`{"from": "gpt", "value": "", "tool_calls": "f()"}`:                                                                                          `!message 2 of "conversations": its "tool_calls" is a string that is not JSON`,
		`{"from": "function_call", "value": "{'name': 'f'}"}`:                                                                                        "!it is what Python's str() writes",
		`{"from": "function_call", "value": "f()"}`:                                                                                                  `!message 2 of "conversations": it is a call, and its content is not JSON`,
		`{"from": "function_call", "value": "{\"x\": 1}"}`:                                                                                           "!is not an object with name and arguments",
	} {
		for _, template := range []string{asJSON, onlyStr} {
			text, trained, failed := rendered(t, Options{Template: writesCall(template, content)}, head+given+end)
			if want, fails := strings.CutPrefix(want, "!"); fails {
				if !strings.Contains(failed, want) {
					t.Errorf("%s: got %q %s, want the error %s", given, text, failed, want)
				}
			} else if text != "<user>Q"+want+"<assistant>Z</s>" || !strings.Contains(trained, "f:") {
				t.Errorf("%s: got %q %s, want %s", given, text, failed, want)
			}
		}
	}
	const thoughts = head + `{"from": "function_call", "value": "<think>Hm.</think>\n{\"name\": \"f\"}"}` + end
	if text, _, failed := rendered(t, Options{Template: show, TrainOn: TrainAll}, thoughts); !strings.HasPrefix(text,
		`user=Q;assistant=<think>Hm.</think>+[{"type": "function", "function": {"name": "f"}}];`) {
		t.Errorf("got %q %s", text, failed)
	}
}

// What a tool answers is JSON where it is no text, as the template writes it or in a string.
func TestResults(t *testing.T) {
	mapping := `{% if m.content is mapping %}{{ m.content|tojson(indent=1) }}{% else %}{{ m.content }}{% endif %}`
	for _, c := range []struct{ template, result, want string }{
		{content, `{"a": true}`, `{"a": true}`}, {joined, `{"a": true}`, `R{"a": true}`}, {mapping, `{"a": 1}`, "{\n \"a\": 1\n}"},
		{content, "21.5", "21.5"}, {joined, "21.5", "R21.5"}, {joined, "20", "R20"}, {joined, "[1, 2]", "R[1, 2]"}, {joined, "[]", "R[]"},
		{joined, "false", "Rfalse"}, {content, "true", "true"}, {joined, `[{"a": null}]`, `R[{"a": null}]`}, {joined, `"5"`, "R5"},
	} {
		for _, role := range []string{"tool", "observation"} {
			record := `{"messages": [{"role": "user", "content": "Q"}, {"role": "` + role + `", "content": ` + c.result + `}]}`
			text, _, failed := rendered(t, Options{Template: writesCall(asJSON, c.template)}, record)
			if text != "<user>Q["+c.want+"]" {
				t.Errorf("%s of %s: got %q %s, want %s", c.template, c.result, text, failed, c.want)
			}
		}
	}
}

// Tools are found wherever public data have them.
func TestPlacesOfTools(t *testing.T) {
	const written = `[{"type": "function", "function": {"name": "f"}}]`
	const turns = `{"role": "user", "content": "Q"}, {"role": "assistant", "content": "Z"}]`
	const system = `{"messages": [{"role": "system", "content": "S", `
	for record, want := range map[string]string{
		`{"messages": [` + turns + `, "tools": ` + written + `}`:                                               "",
		`{"messages": [` + turns + `, "tools": ["{\"type\": \"function\", \"function\": {\"name\": \"f\"}}"]}`: "",
		`{"messages": [` + turns + `, "functions": "[{\"name\": \"f\"}]"}`:                                     "",
		`{"messages": [` + turns + `, "tools": [], "available_tools": ` + written + `}`:                        "",
		`{"messages": [` + turns + `, "chat_template_kwargs": {"tools": ` + written + `}}`:                     "",
		`{"messages": [` + turns + `, "tools": ` + written + `, "chat_template_kwargs": {"tools": []}}`:        "",
		`{"messages": [` + turns + `, "tools": ` + written + `, "chat_template_kwargs": {"tools": null}}`:      "",
		`{"messages": [` + turns + `, "metadata": {"tools": ` + written + `}}`:                                 "",
		`{"messages": [` + turns + `, "metadata": {"tools": 3}, "available_tools": ["f"]}`:                     "none",
		system + `"tools": ` + written + `}, ` + turns + `}`:                                                   "S",
		system + `"functions": "[{\"name\": \"f\"}]"}, ` + turns + `}`:                                         "S",
		strings.Replace(system, "system", "developer", 1) + `"tools": ` + written + `}, ` + turns + `}`:        "S",
	} {
		want := map[string]string{"": "user=Q;assistant=Z;" + written, "none": "user=Q;assistant=Z;",
			"S": "ystem=S;user=Q;assistant=Z;" + written}[want]
		text, _, failed := rendered(t, Options{Template: show, TrainOn: TrainAll}, record)
		if text = strings.Replace(text, "developer", "system", 1); !strings.HasSuffix(text, want) {
			t.Errorf("%s\n got %q %s\nwant %q", record, text, failed, want)
		}
	}
	twice := `{"messages": [` + turns + `, "tools": ` + written + `, "chat_template_kwargs": {"tools": ` + written + `}}`
	if text, _, failed := rendered(t, Options{Template: show}, twice); !strings.Contains(failed, "tools of its own") {
		t.Errorf("tools that are given twice: got %q %s", text, failed)
	}
	const own = `{% for m in messages %}{{ m.role }}={{ m.content }}{{ '@' ~ m.tools[0].function.name if m.tools }};{% endfor %}{{ tools }}`
	if text, _, failed := rendered(t, Options{Template: own}, system+`"tools": `+written+`}, `+turns+`}`); text !=
		"system=S@f;user=Q;assistant=Z;None" {
		t.Errorf("got %q %s", text, failed)
	}
}

// No public template encodes arguments twice, or fails on a string where it writes the object.
func TestArgumentsOfPublicTemplates(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(refdata.Path(t, "templates"), "*.jinja"))
	if err != nil {
		t.Fatal(err)
	}
	record := func(arguments string) []byte {
		return []byte(`{"messages": [{"role": "user", "content": "Q"}, {"role": "assistant", "content": "", "tool_calls": [{"id": ` +
			`"abcdef123", "type": "function", "function": {"name": "f", "arguments": ` + arguments + `}}]}, {"role": "tool", ` +
			`"tool_call_id": "abcdef123", "name": "f", "content": "R"}, {"role": "assistant", "content": "Z"}], "tools": ` +
			`[{"type": "function", "function": {"name": "f", "description": "D", "parameters": {"type": "object", "properties": {}}}}]}`)
	}
	for _, path := range files {
		source, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		w := newTestRenderer(t, Options{Template: string(source), TrainOn: TrainAll, Date: time.Unix(0, 0)}).NewWorker(nil)
		var object, text Text
		asObject, asText := w.Render(&object, record(`{"town": "Bern"}`)), w.Render(&text, record(`"{\"town\": \"Bern\"}"`))
		if asObject == nil && asText != nil || strings.Contains(string(text.Text), `\"town`) &&
			!strings.Contains(string(object.Text), `\"town`) {
			t.Errorf("%s: %v %.2000s", filepath.Base(path), asText, text.Text)
		}
	}
}

// With public templates, records that say the same give the same text and loss, whatever names they have for it.
func TestNamesOfPublicTemplates(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(refdata.Path(t, "templates"), "*.jinja"))
	if err != nil {
		t.Fatal(err)
	}
	const usual = `{"messages": [{"role": "system", "content": "S"}, {"role": "user", "content": "Q"}, {"role": "assistant", "content": "Z"}]}`
	const tools = `, "tools": [{"type": "function", "function": {"name": "f", "description": "D", "parameters": {"type": "object", ` +
		`"properties": {"town": {"type": "string", "description": "T"}}, "required": []}}}]}`
	const asked, answered = `{"messages": [{"role": "user", "content": "Q"}, `, `, "name": "f", "content": "R"}, {"role": "assistant", "content": "Z"}]` + tools
	const calls = asked + `{"role": "assistant", "content": "", "tool_calls": [{"type": "function", "function": {"name": "f", ` +
		`"arguments": {"town": "Bern"}}}]}, {"role": "tool"` + answered
	same := map[string]string{strings.NewReplacer("user", "human", "assistant", "GPT", "system", "System").Replace(usual): usual,
		`{"system": "S", "messages": [` + usual[strings.Index(usual, `{"role": "user"`):]: usual,
		strings.Replace(calls, `"tool"`, `"observation"`, 1):                              calls, strings.Replace(calls, `"tool"`, `"function_response"`, 1): calls,
		asked + `{"role": "function_call", "content": "{\"name\": \"f\", \"arguments\": {\"town\": \"Bern\"}}"}, {"role": "tool"` + answered: calls}
	for _, path := range files {
		source, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		w := newTestRenderer(t, Options{Template: string(source), Date: time.Unix(0, 0)}).NewWorker(nil)
		for record, other := range same {
			var got, want Text
			err, otherErr := w.Render(&got, []byte(record)), w.Render(&want, []byte(other))
			isCall := strings.Contains(record, "function_call") // the template may take strings alone
			if (err == nil) != (otherErr == nil) && !isCall || err == nil && otherErr == nil && !isCall &&
				(string(got.Text) != string(want.Text) || !slices.Equal(got.Spans, want.Spans)) ||
				isCall && err == nil && !strings.Contains(string(got.Text), "Bern") && strings.Contains(string(want.Text), "Bern") {
				t.Errorf("%s: %s\n got %q %v\nwant %q %v", filepath.Base(path), record, got.Text, err, want.Text, otherErr)
			}
		}
	}
}
