package chat

import (
	"errors"
	"strconv"
	"strings"
	"testing"

	"github.com/dsload/dsload/internal/ingest/example/values"
	"github.com/dsload/dsload/internal/ingest/jinja"
)

// show writes messages as role=content, one after the other.
const show = `{% for m in messages %}{{ m.role }}={{ m.content }}{{ '+' ~ m.tool_calls|tojson if m.tool_calls }};{% endfor %}{% if tools %}{{ tools|tojson }}{% endif %}`

func newTestRenderer(t *testing.T, o Options) *Renderer {
	t.Helper()
	if o.Special == nil {
		o.Special = &jinja.Dict{}
		o.Special.Set("bos_token", "<s>")
		o.Special.Set("eos_token", "</s>")
	}
	r, err := NewRenderer(o)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestShapes(t *testing.T) {
	const hi = "user=Hi;assistant=Yo;"
	for record, want := range map[string]string{
		`{"messages": [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Yo"}]}`:                                                                  "messages " + hi,
		`{"messages": null, "prompt": "Hi", "completion": "Yo"}`:                                                                                                     "prompt-completion " + hi,
		`{"conversations": [{"from": "human", "value": "Hi"}, {"from": "gpt", "value": "Yo"}]}`:                                                                      "ShareGPT " + hi,
		`{"system": "S", "conversations": [{"from": "human", "value": "Hi"}, {"from": "gpt", "value": "Yo"}]}`:                                                       "ShareGPT system=S;" + hi,
		`{"system": "S", "conversations": [{"from": "system", "value": "Q"}, {"from": "user", "value": "Hi"}]}`:                                                      "ShareGPT system=Q;user=Hi;",
		`{"conversations": [{"from": "human", "value": "Hi"}, {"from": "function_call", "value": "{\"name\": \"f\"}"}, {"from": "tool", "value": "1"}]}`:             `ShareGPT user=Hi;assistant=+[{"type": "function", "function": {"name": "f"}}];tool=1;`,
		`{"conversations": [{"role": "user", "value": "Hi"}, {"role": "gpt", "value": "Yo"}]}`:                                                                       "ShareGPT " + hi,
		`{"messages": " [{\"role\": \"user\", \"content\": \"Hi\"}, {\"role\": \"assistant\", \"content\": \"Yo\"}]", "tools": " "}`:                                 "messages " + hi,
		`{"conversation": [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Yo"}]}`:                                                              "messages " + hi,
		`{"prompt": "Hi", "chosen": "[{\"role\": \"user\", \"content\": \"Hi\"}, {\"content\": \"Yo\", \"role\": \"assistant\"}]"}`:                                  "preference " + hi,
		`{"prompt": " [ {\"content\": \"Hi\", \"role\": \"user\"} ]", "completion": "[{\"from\": \"gpt\", \"value\": \"Yo\"}]"}`:                                     "prompt-completion " + hi,
		`{"prompt": "Hi", "completion": "[{\"content\": \"Yo\"}]"}`:                                                                                                  `prompt-completion user=Hi;assistant=[{"content": "Yo"}];`,
		`{"prompt": "Hi", "completion": "[{\"role\": \"user\"}, 1]"}`:                                                                                                `prompt-completion user=Hi;assistant=[{"role": "user"}, 1];`,
		`{"prompt": "Hi", "completion": "[{\"role\": x]"}`:                                                                                                           `prompt-completion user=Hi;assistant=[{"role": x];`,
		`{"messages": [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Yo"}], "prompt": "[{'role': 'user', 'content': 'Hi'}]"}`:                 "messages " + hi,
		`{"dialog": [{"role": "user", "content": "Hi"}]}`:                                                                                                            "messages user=Hi;",
		`{"instruction": "Hi", "input": "", "output": "Yo"}`:                                                                                                         "Alpaca " + hi,
		`{"instruction": "Hi", "input": "there", "output": "Yo"}`:                                                                                                    "Alpaca user=Hi\n\nthere;assistant=Yo;",
		`{"instruction": "Hi", "context": "there", "response": "Yo", "system": "S"}`:                                                                                 "Alpaca system=S;user=Hi\n\nthere;assistant=Yo;",
		`{"instruction": "Hi", "output": "Yo", "history": [["a", "b"]]}`:                                                                                             "Alpaca user=a;assistant=b;" + hi,
		`{"system": "S", "messages": [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Yo"}]}`:                                                   "messages system=S;" + hi,
		`{"system": "S", "messages": [{"role": "system", "content": "Q"}, {"role": "assistant", "content": "Yo"}]}`:                                                  "messages system=Q;assistant=Yo;",
		`{"prompt": "Hi", "response": "Yo", "history": [["a", "b"], ["c", "d"]]}`:                                                                                    "prompt-completion user=a;assistant=b;user=c;assistant=d;" + hi,
		`{"query": "Hi", "response": "Yo", "history": "of a patient"}`:                                                                                               "question-answer " + hi,
		`{"query": "Hi", "response": "Yo", "history": "[[\"a\", \"b\"]]"}`:                                                                                           "question-answer user=a;assistant=b;" + hi,
		`{"prompt": "Hi", "completion": "Yo", "history": [{"role": "user", "content": "a"}, {"human": "b", "assistant": "c"}]}`:                                      "prompt-completion user=a;user=b;assistant=c;" + hi,
		`{"prompt": "Hi", "chosen": "Yo", "history": [["a", "b"]]}`:                                                                                                  "preference user=a;assistant=b;" + hi,
		`{"context": "there", "question": "Hi", "answer": "Yo"}`:                                                                                                     "question-answer user=there\n\nHi;assistant=Yo;",
		`{"context": ["x", "y"], "question": "Hi", "answer": "Yo"}`:                                                                                                  "question-answer user=x\n\ny\n\nHi;assistant=Yo;",
		`{"context": "there", "question": "there: Hi", "answer": "Yo"}`:                                                                                              "question-answer user=there: Hi;assistant=Yo;",
		`{"instruction": "Say x", "input": "x", "output": "Yo"}`:                                                                                                     "Alpaca user=Say x\n\nx;assistant=Yo;",
		`{"instruction": "Hi", "input": "x", "context": "y", "output": "Yo"}`:                                                                                        "Alpaca user=Hi\n\nx\n\ny;assistant=Yo;",
		`{"conversations": [{"from": "human", "value": "Hi"}], "chosen": {"from": "gpt", "value": "Yo"}, "rejected": {"from": "gpt", "value": "No"}}`:                "ShareGPT " + hi,
		`{"messages": [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Yo"}], "chosen": [{"role": "assistant", "content": "No"}]}`:              "messages " + hi,
		`{"input": {"messages": [{"role": "user", "content": "Hi"}]}, "preferred_output": [{"role": "assistant", "content": "Yo"}], "non_preferred_output": []}`:     "preference " + hi,
		`{"conversation": [{"system": "S", "human": "Hi", "assistant": "Yo"}]}`:                                                                                      "ShareGPT system=S;" + hi,
		`{"contents": [{"role": "user", "parts": [{"text": "Hi"}]}, {"role": "model", "parts": [{"text": "Yo"}]}], "systemInstruction": {"parts": [{"text": "S"}]}}`: "messages system=S;user=Hi;assistant=Yo;",
		`{"messages": [{"role": "assistant", "content": null, "reasoning": "Hm."}]}`:                                                                                 "messages assistant=;",
		`{"prompt": "Hi", "completion": "Yo"}`:                                                                                                                       "prompt-completion " + hi,
		`{"prompt": [{"role": "user", "content": "Hi"}], "completion": [{"role": "assistant", "content": "Yo"}]}`:                                                    "prompt-completion " + hi,
		`{"prompt": [], "completion": "Yo"}`:                                                                                                                         "prompt-completion assistant=Yo;",
		`{"prompt": "Hi", "chosen": "Yo", "rejected": "No"}`:                                                                                                         "preference " + hi,
		`{"chosen": [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Yo"}], "rejected": []}`:                                                    "preference " + hi,
		`{"prompt": [{"role": "user", "content": "Hi"}], "chosen": [{"role": "assistant", "content": "Yo"}]}`:                                                        "preference " + hi,
		`{"prompt": [{"role": "user", "content": "Hi"}], "chosen": [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Yo"}]}`:                     "preference " + hi,
		`{"prompt": "Hi", "chosen": [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Yo"}]}`:                                                    "preference " + hi,
		`{"prompt": "Hi", "chosen": [{"role": "assistant", "content": "Yo"}]}`:                                                                                       "preference " + hi,
		`{"system": "S", "question": "Hi", "chosen": "Yo"}`:                                                                                                          "preference system=S;" + hi,
		`{"chosen": "\n\nHuman: Hi\n\nAssistant: Yo\n\nHuman: a\n\nAssistant: b"}`:                                                                                   "preference user=Hi;assistant=Yo;user=a;assistant=b;",
		`{"question": "Hi", "answer": "Yo"}`:                                                                                                                         "question-answer " + hi,
		`{"query": "Hi", "response": "Yo"}`:                                                                                                                          "question-answer " + hi,
		`{"system_prompt": "S", "question": "Hi", "response": "Yo"}`:                                                                                                 "question-answer system=S;" + hi,
		`{"messages": [{"role": "user", "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]}]}`:                                                "messages user=a\nb;",
		`{"messages": [{"role": "assistant", "content": null, "tool_calls": [{"type": "function", "function": {"name": "f", "arguments": {"b": 1, "a": 2.0}}}]}]}`:   `messages assistant=+[{"type": "function", "function": {"name": "f", "arguments": {"b": 1, "a": 2.0}}}];`,
		`{"messages": [{"role": "assistant", "content": "", "function_call": {"name": "f"}}, {"role": "function", "content": "1"}], "functions": [{"name": "f"}]}`:   `messages assistant=+[{"type": "function", "function": {"name": "f"}}];tool=1;[{"type": "function", "function": {"name": "f"}}]`,
		`{"messages": [{"role": "user", "content": "Hi"}], "tools": "[{\"a\": 1}]"}`:                                                                                 `messages user=Hi;[{"a": 1}]`,
		`{"conversation": [{"system": "", "human": ["a", {"type": "text", "text": "b"}], "assistant": "Yo"}]}`:                                                       "ShareGPT user=a\nb;assistant=Yo;",
		`{"messages": [{"role": "assistant", "content": "Yo", "function_call": "", "tool_calls": ""}, {"role": "assistant", "content": "a", "function_call": {}}]}`:  "messages assistant=Yo;assistant=a;",
		`{"messages": [{"role": "assistant", "content": "", "function_call": {"name": "f"}, "tool_calls": []}]}`:                                                     `messages assistant=+[{"type": "function", "function": {"name": "f"}}];`,
		`{"messages": [{"role": "user", "content": "<image>"}], "image": ""}`:                                                                                        `messages user=<image>;`,
		`{"messages": [{"role": "user", "content": "Hi"}], "images": ["a.jpg"]}`:                                                                                     `messages user=Hi;`,
		`{"messages": [{"role": "user", "content": "Hi"}], "tools": []}`:                                                                                             `messages user=Hi;`,
		`{"messages": [{"role": "assistant", "content": "Yo", "thinking": [{"a": 1.5}], "reasoning": [{"a": 1.5}]}]}`:                                                `messages assistant=Yo;`,
	} {
		var got Text
		if err := newTestRenderer(t, Options{Template: show, TrainOn: TrainAll}).NewWorker(nil).Render(&got,
			[]byte(record)); err != nil {
			t.Errorf("%s\n%v", record, err)
		} else if text := string(got.Shape) + " " + string(got.Text); text != want {
			t.Errorf("%s\n got %s\nwant %s", record, text, want)
		}
	}
}

// Messages that say the same thing in two ways.
const (
	twoCalls    = `{"role": "assistant", "content": "", "function_call": {"name": "f"}, "tool_calls": [{"function": {"name": "g"}}]}`
	twoThoughts = `{"role": "assistant", "content": "x", "reasoning": "a", "reasoning_content": "b"}`
)

func TestRecordsWithoutConversation(t *testing.T) {
	for record, want := range map[string]string{
		`{"foo": 1, "bar": 2}`:  "no conversation in the record, whose fields are foo, bar",
		`{}`:                    "whose fields are none",
		`{"messages": null}`:    `"messages" is null, not a list of messages`,
		`{"messages": "hi"}`:    `"messages" is a string, not a list`,
		`{"messages": []}`:      "the conversation is empty",
		`{"messages": "[1] 2"}`: `"messages" is a string but not a JSON list: malformed JSON at byte 4: something after the list`,
		`{"prompt": "Hi", "chosen": "[{'content': 'Yo', 'role': 'assistant'}]"}`: `"chosen" is a string but not a JSON list: it is what Python's str() writes`,
		`{"messages": "[{'role': 'user'}]"}`:                                     "it is what Python's str() writes; write it with json.dumps",
		`{"tools": "[` + strings.Repeat("{},", 100000) + `{}]"}`:                 "its values take more than",
		`{"messages": [1]}`:                                                            `message 1 of "messages" is a number, not an object`,
		`{"messages": [{"a": "x"}]}`:                                                   "it has no role; its fields are a",
		`{"messages": [{"role": "user"}]}`:                                             `it, of role "user", has no content`,
		`{"messages": [{"role": "user", "content": 5}]}`:                               "its content is a number, not a string",
		`{"messages": [{"role": "user", "content": [5]}]}`:                             "part 1 of its content is a number",
		`{"messages": [{"role": "user", "content": [{"type": "image_url"}]}]}`:         "part 1 of its content is an image",
		`{"conversations": [{"from": "alien", "value": "x"}]}`:                         `its role "alien" is not known`,
		`{"preferred_output": [{"role": "assistant", "content": "x"}]}`:                `"preferred_output" stands without a list of messages in "input"`,
		`{"input": "Hi", "preferred_output": [{"role": "assistant", "content": "x"}]}`: `"preferred_output" stands without a list of messages in "input"`,
		`{"prompt": 5, "completion": "x"}`:                                             `"prompt" is a number, neither a string nor a list`,
		`{"chosen": "just a text"}`:                                                    `"chosen" is a text without a prompt next to it`,
		`{"chosen": 5}`:                                                                `"chosen" is a number`,
		`{"messages": [{"role": "user", "content": "x"}], "tools": 5}`:                 `"tools" is a number, not a list`,
		`{"messages": [{"role": "user", "content": "x"}], "tools": "{"}`:               `"tools" is a string but not a JSON list`,
		`{"conversation": [{"human": 5, "assistant": "x"}]}`:                           `message 1 of "conversation": its content is a number, not a string`,
		`{"conversation": [{"human": "x", "assistant": {"text": "y"}}]}`:               `message 1 of "conversation": its content is an object, not a string`,
		`{"conversations": [{"from": "human", "value": "<image>\nx"}, {"from": "gpt", "value": "y"}], "image": "a.jpg"}`: `message 1 has <image> in it, which stands for what is in "image"`,
		`{"messages": [` + twoCalls + `]}`:                   `message 1 of "messages": it has calls in "tool_calls" and in "function_call"`,
		`{"messages": [` + twoThoughts + `]}`:                `message 1 of "messages": its "reasoning_content" and its "reasoning" differ`,
		`{"messages": [`:                                     "malformed JSON at byte",
		`{"prompt": null, "completion": null}`:               "whose fields are prompt, completion, without a value in prompt, completion;",
		`[{"role": "user", "content": "x"}]`:                 `no object but a list; a conversation is an object, as in {"messages"`,
		`[1, 2]`:                                             "malformed JSON at byte 0: no object",
		`{"messages": [{"role": "user", "content": "x"}]} x`: "something after the object",
		`{"messages": [{"role": "user", "content": "x"},]}`:  "malformed JSON",
		`{"a": 01}`:   "malformed JSON",
		`{"a": "\x"}`: "a bad escape",
		`{"a": ` + strings.Repeat("[", 600) + strings.Repeat("]", 600) + `}`: "nested deeper than 500",
		`{"a": ` + strings.Repeat("9", 2000) + `}`:                           "a number of 2000 digits",
		`{"a": [` + strings.Repeat("{},", 100000) + `{}]}`:                   "its values take more than",
	} {
		var got Text
		err := newTestRenderer(t, Options{Template: show}).NewWorker(nil).Render(&got, []byte(record))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.200s\n got %v\nwant %s", record, err, want)
		}
		if err != nil && !errors.Is(err, ErrShape) && !errors.Is(err, values.ErrMalformed) && !errors.Is(err, ErrTooLarge) {
			t.Errorf("%.200s: %v has no kind", record, err)
		}
	}
}

// A row of CSV is a record whose fields are strings, and an empty field has no value.
func TestRows(t *testing.T) {
	columns := []string{"instruction", "input", "output", "chat"}
	for want, row := range map[string][]string{
		"Alpaca user=Hi\n\nthere;assistant=Yo;": {"Hi", "there", "Yo", ""},
		"Alpaca user=Hi;assistant=Yo;":          {"Hi", "", "Yo", ""},
		"messages user=é;":                      {"", "", "", `[{"role": "user", "content": "\u00e9"}]`},
	} {
		var got Text
		at := func(i int) []byte { return []byte(row[i]) }
		w := newTestRenderer(t, Options{Template: show, TrainOn: TrainAll}).NewWorker(nil)
		if err := w.RenderRow(&got, columns, at, 50); err != nil {
			t.Errorf("%q: %v", row, err)
		} else if text := string(got.Shape) + " " + string(got.Text); text != want {
			t.Errorf("%q: got %s, want %s", row, text, want)
		}
		row[0], row[2], row[3] = "Hi", "", ""
		if err := w.RenderRow(&got, columns, at, 50); !errors.Is(err, ErrShape) {
			t.Errorf("no output: %v", err)
		}
	}
	w := newTestRenderer(t, Options{Template: show}).NewWorker(nil)
	many := make([]string, 1<<14)
	for i := range many {
		many[i] = strconv.Itoa(i)
	}
	err := w.RenderRow(&Text{}, many, func(int) []byte { return nil }, len(many))
	if !errors.Is(err, ErrTooLarge) {
		t.Errorf("a row of %d empty fields: %v", len(many), err)
	}
}
