package chat

import (
	"strings"
	"testing"
)

// The headers of turns are not trained on, wherever a template writes them: between messages of the assistant, after
// one without words, after the last message, and with what a call says written again in its result.
func TestHeadersAreNotTrained(t *testing.T) {
	const (
		// the last turn ends otherwise, so that one without words is not found as the text before others
		ending = `{% for m in messages %}{{ '<|' ~ m.role ~ '|>' ~ m.content ~ '<|end|>' }}{% endfor %}{{ '<|assistant|>' if add_generation_prompt else '<|stop|>' }}`
		// no prompt is written after the assistant
		row = `{% for m in messages %}{{ '[' ~ m.role ~ ']\n' ~ m.content ~ '</s>\n' }}{% endfor %}{% if add_generation_prompt and messages[-1].role == 'user' %}{{ '[assistant]\n' }}{% endif %}`
		// the next turn is begun unasked, with the first token of each header
		unasked = `{% for m in messages %}{{ '<turn><' ~ m.role ~ '>' ~ m.content ~ '<end>' }}{% endfor %}{{ '<turn><assistant>' }}`
		// a result begins with the names of all calls of its id
		named = `{% for m in messages %}{{ '<m>' ~ m.role }}{% for r in messages if m.tool_call_id and r.tool_calls and r.tool_calls[0].id == m.tool_call_id %}{{ '<of>' ~ r.tool_calls[0].function.name }}{% endfor %}{{ '<says>' ~ m.content }}{% if m.tool_calls %}{{ '<call>' ~ m.tool_calls[0].function.name ~ '(' ~ m.tool_calls[0].function.arguments.n ~ ')' }}{% endif %}{{ '<end>' }}{% endfor %}{% if add_generation_prompt %}{{ '<m>assistant<says>' }}{% endif %}`
	)
	const between = `{"messages": [{"role": "user", "content": "One?"}, {"role": "assistant", "content": "First."}, {"role": "user", "content": "Two?"}, {"role": "assistant", "content": "SECOND"}, {"role": "assistant", "content": "Third."}, {"role": "user", "content": "Four?"}, {"role": "assistant", "content": "Fifth."}]}`
	said, blank := strings.Replace(between, "SECOND", "Second.", 1), strings.Replace(between, "SECOND", "", 1)
	const shared = `{"messages": [{"role": "user", "content": "One?"}, {"role": "assistant", "content": "", "tool_calls": [{"id": "0", "function": {"name": "search", "arguments": {"n": 1}}}]}, {"role": "tool", "tool_call_id": "0", "content": "11"}, {"role": "assistant", "content": "", "tool_calls": [{"id": "0", "function": {"name": "open", "arguments": {"n": 7}}}]}, {"role": "tool", "tool_call_id": "0", "content": "22"}, {"role": "assistant", "content": "Done."}]}`
	for name, c := range map[string]struct{ template, record, want string }{
		"blank":         {ending, blank, "First.<|end|>|<|end|>|Third.<|end|>|Fifth.<|end|><|stop|>"},
		"in a row":      {row, said, "First.</s>\n|Second.</s>\n|Third.</s>\n|Fifth.</s>\n"},
		"blank in row":  {row, blank, "First.</s>\n|</s>\n|Third.</s>\n|Fifth.</s>\n"},
		"unasked":       {unasked, said, "First.<end>|Second.<end>|Third.<end>|Fifth.<end>"},
		"unasked blank": {unasked, blank, "First.<end>|<end>|Third.<end>|Fifth.<end>"},
		"unasked once":  {unasked, `{"prompt": "One?", "completion": "First."}`, "First.<end>"},
		"shared id":     {named, shared, "<call>search(1)<end>|<call>open(7)<end>|Done.<end>"},
		"first":         {row, strings.Replace(said, `{"role": "user", "content": "One?"}, `, "", 1), "First.</s>\n|Second.</s>\n|Third.</s>\n|Fifth.</s>\n"},
	} {
		var got Text
		if err := newTestRenderer(t, Options{Template: c.template}).NewWorker(nil).Render(&got, []byte(c.record)); err != nil {
			t.Fatal(name, err)
		}
		if s := spansOf(&got); s != c.want || got.Unfound > 0 {
			t.Errorf("%s: of %q\n got %q, %d not found\nwant %q", name, got.Text, s, got.Unfound, c.want)
		}
	}
}
