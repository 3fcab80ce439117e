package chat

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/dsload/dsload/internal/ingest/jinja"
	"github.com/dsload/dsload/tokenize"
	"github.com/dsload/dsload/tokenize/builtin"
)

// The templates are written for these tests, in the manner of public ones.
const (
	chatmlTemplate = `{%- for m in messages %}
{{- '<|im_start|>' ~ m.role ~ '\n' ~ m.content ~ '<|im_end|>\n' }}
{%- endfor %}
{%- if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}`
	// headers, as Llama 3 has them
	headerTemplate = `{{- bos_token }}
{%- for m in messages %}
    {{- '<|start_header_id|>' + m['role'] + '<|end_header_id|>\n\n' + m['content'] | trim + '<|eot_id|>' }}
{%- endfor %}
{%- if add_generation_prompt %}{{- '<|start_header_id|>assistant<|end_header_id|>\n\n' }}{%- endif %}`
	// instructions in brackets, as Llama 2 and Mistral have them, without a generation prompt
	bracketTemplate = `{%- for m in messages %}
    {%- if (m.role == 'user') != (loop.index0 % 2 == 0) %}{{ raise_exception('turns must alternate') }}{% endif %}
    {%- if m.role == 'user' %}{{ bos_token ~ '[INST] ' ~ m.content ~ ' [/INST]' }}
    {%- else %}{{ ' ' ~ m.content ~ ' ' ~ eos_token }}{% endif %}
{%- endfor %}`
	// the assistant is called model, as in Gemma
	modelTemplate = `{% for m in messages %}{% set role = 'model' if m.role == 'assistant' else m.role %}{{ '<start_of_turn>' ~ role ~ '\n' ~ m.content|trim ~ '<end_of_turn>\n' }}{% endfor %}{% if add_generation_prompt %}{{ '<start_of_turn>model\n' }}{% endif %}`
	// thoughts are written in the last turn alone
	thinkTemplate = `{%- for m in messages %}
    {%- set c = m.content %}
    {%- if m.role == 'assistant' and not loop.last %}{% set c = c.split('</think>')[-1].lstrip('\n') %}{% endif %}
    {{- '<|im_start|>' ~ m.role ~ '\n' ~ c ~ '<|im_end|>\n' }}
{%- endfor %}
{%- if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}`
	// the last turn ends otherwise
	returnTemplate = `{%- for m in messages %}
    {{- '<|start|>' ~ m.role ~ '<|message|>' ~ m.content ~ ('<|return|>' if loop.last and m.role == 'assistant' else '<|end|>') }}
{%- endfor %}
{%- if add_generation_prompt %}{{ '<|start|>assistant' }}{% endif %}`
	// a system message goes before the last question, so that what comes before a turn depends on it
	lateTemplate = `{%- for m in messages if m.role != 'system' %}
    {%- if m.role == 'user' %}{{ '[INST] ' ~ (messages[0].content ~ '\n\n' if loop.last and messages[0].role == 'system') ~ m.content ~ '[/INST]' }}
    {%- else %}{{ m.content ~ eos_token }}{% endif %}
{%- endfor %}`
	// the results of tools are written in the turn that called them
	aheadTemplate = `{%- for m in messages %}
    {%- if m.role == 'assistant' %}
        {%- if messages[loop.index0 - 1].role != 'tool' %}{{ '<|turn>model\n' }}{% endif %}
        {%- if m.tool_calls %}
            {{- '<|call>' ~ m.tool_calls|tojson ~ '<call|>' ~ ('<turn|>' if loop.last) }}
            {%- set ns = namespace(on=true) %}
            {%- for r in messages[loop.index0 + 1:] %}
                {%- if r.role != 'tool' %}{% set ns.on = false %}{% endif %}
                {%- if ns.on %}{{ '<|result>' ~ r.content|tojson ~ '<result|>' }}{% endif %}
            {%- endfor %}
        {%- else %}{{ m.content ~ '<turn|>\n' }}{% endif %}
    {%- elif m.role != 'tool' %}{{ '<|turn>' ~ m.role ~ '\n' ~ m.content ~ '<turn|>\n' }}{% endif %}
{%- endfor %}
{%- if add_generation_prompt and messages[-1].role != 'tool' %}{{ '<|turn>model\n' }}{% endif %}`
	// the tools go before the last question, and the calls are JSON
	movingTemplate = `{%- set last = messages | selectattr('role', 'equalto', 'user') | list | last %}
{%- for m in messages %}
    {%- if m.role == 'user' %}
        {%- if tools and m == last %}{{ '[AVAILABLE_TOOLS]' ~ tools|tojson ~ '[/AVAILABLE_TOOLS]' }}{% endif %}
        {{- '[INST]' ~ m.content ~ '[/INST]' }}
    {%- elif m.tool_calls %}{{ '[TOOL_CALLS]' }}{% for c in m.tool_calls %}
        {%- if c.id|length != 9 %}{{ raise_exception('ids have 9 characters') }}{% endif %}{{ c.function|tojson }}{% endfor %}{{ eos_token }}
    {%- elif m.role == 'tool' %}{{ '[TOOL_RESULTS]' ~ m.content ~ '[/TOOL_RESULTS]' }}
    {%- else %}{{ m.content ~ eos_token }}{% endif %}
{%- endfor %}`
	// the text of the last turn alone ends with a token for the end of the text
	lastTemplate = `{%- for m in messages %}{{ '<|' ~ m.role ~ '|>\n' ~ (m.content if loop.last or m.role == 'user' else m.content.split('</think>')[-1]|trim) ~ '<|end|>\n' }}{% endfor %}
{%- if add_generation_prompt %}{{ '<|assistant|>\n' }}{% else %}{{ '<|endoftext|>' }}{% endif %}`
	// what was said follows the results of the calls, which the message itself may hold
	afterTemplate = `{%- for m in messages %}
    {%- if m.role == 'assistant' %}
        {%- if loop.first or messages[loop.index0 - 1].role != 'tool' %}{{ '<|turn>model\n' }}{% endif %}
        {%- for c in m.tool_calls or [] %}{{ '<|call>' ~ c.function.name ~ '{' ~ c.function.arguments.city ~ '}<call|>' }}{% endfor %}
        {%- set ns = namespace(on=m.tool_calls) %}
        {%- for r in m.tool_responses or messages[loop.index0 + 1:] %}
            {%- if r.role and r.role != 'tool' %}{% set ns.on = false %}{% endif %}
            {%- if ns.on %}{{ '<|result>' ~ r.content ~ '<result|>' }}{% endif %}
        {%- endfor %}
        {{- m.content ~ '<turn|>\n' }}
    {%- elif m.role != 'tool' %}{{ '<|turn>' ~ m.role ~ '\n' ~ m.content ~ '<turn|>\n' }}{% endif %}
{%- endfor %}
{%- if add_generation_prompt and messages[-1].role != 'tool' %}{{ '<|turn>model\n' }}{% endif %}`
	// the generation prompt is written always, and the last turn without its calls
	askingTemplate = `{%- for m in messages %}{{ '<|head|>' ~ m.role ~ '<|text|>' ~ (m.content or '') ~ (m.tool_calls|tojson if m.tool_calls and not loop.last) ~ '<|end|>' }}{% endfor %}{{ '<|head|>assistant<|text|>' }}`
	// the contents decide what is written, so that some anchors change the text
	curiousTemplate = `{%- for m in messages %}
    {%- set c = m.content if loop.last or m.role == 'user' else m.content[9:] %}
    {{- '<|im_start|>' ~ m.role ~ ('!' if c == 'Two?' or m.role == 'user' and c.startswith('One')) ~ '\n' ~ c ~ '<|im_end|>\n' }}
{%- endfor %}
{%- if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}`
	markedTemplate = `{%- for m in messages %}
    {%- if m.role == 'assistant' %}{{ 'A: ' }}{% generation %}{{ m.content ~ eos_token }}{% endgeneration %}
    {%- else %}{{ 'U: ' ~ m.content ~ '\n' }}{% endif %}
{%- endfor %}`
)

const twoTurns = `{"messages": [{"role": "user", "content": "One?"}, {"role": "assistant", "content": "First."}, {"role": "user", "content": "Two?"}, {"role": "assistant", "content": "<think>\nhm\n</think>\n\nSecond."}]}`

func spansOf(text *Text) string {
	var parts []string
	for _, s := range text.Spans {
		parts = append(parts, string(text.Text[s.Start:s.End]))
	}
	return strings.Join(parts, "|")
}

func TestTurns(t *testing.T) {
	const system = `{"messages": [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "One?"}, {"role": "assistant", "content": "First."}, {"role": "user", "content": "Two?"}]}`
	const thoughts = `{"messages": [{"role": "user", "content": "One?"}, {"role": "assistant", "content": "<think>\nhm\n</think>\n\nFirst."}, {"role": "user", "content": "Two?"}, {"role": "assistant", "content": "<think>\nhm\n</think>\n\nSecond."}]}`
	const called = `{"messages": [{"role": "user", "content": "One?"}, {"role": "assistant", "content": "", "tool_calls": [{"function": {"name": "f"}}]}, {"role": "tool", "content": "1"}, {"role": "assistant", "content": "First."}]}`
	const calls = `{"tools": [{"type": "function"}], "messages": [{"role": "user", "content": "One?"}, {"role": "assistant", "content": "Look.", "tool_calls": [{"id": "abcdef123", "function": {"name": "f", "arguments": {"city": "<b>", "n": 1}}}]}, {"role": "tool", "content": "<b> 1"}, {"role": "assistant", "content": "First."}, {"role": "user", "content": "Two?"}, {"role": "assistant", "content": "Second."}]}`
	own := strings.Replace(strings.Replace(calls,
		`{"role": "tool", "content": "<b> 1"}, {"role": "assistant", "content": "First."}, `, "", 1),
		`"content": "Look."`, `"content": "Look.", "tool_responses": [{"content": "<b> 1"}]`, 1)
	tools := strings.Replace(chatmlTemplate, "~ '<|im_end|>\\n'",
		"~ (m.tool_calls|tojson if m.tool_calls else '') ~ '<|im_end|>\\n'", 1)
	for name, c := range map[string]struct{ template, record, want string }{
		"chatml":  {chatmlTemplate, twoTurns, "First.<|im_end|>\n|<think>\nhm\n</think>\n\nSecond.<|im_end|>\n"},
		"header":  {headerTemplate, twoTurns, "First.<|eot_id|>|<think>\nhm\n</think>\n\nSecond.<|eot_id|>"},
		"bracket": {bracketTemplate, twoTurns, " First. </s>| <think>\nhm\n</think>\n\nSecond. </s>"},
		"model": {modelTemplate, twoTurns,
			"First.<end_of_turn>\n|<think>\nhm\n</think>\n\nSecond.<end_of_turn>\n"},
		"think": {thinkTemplate, thoughts, "First.<|im_end|>\n|<think>\nhm\n</think>\n\nSecond.<|im_end|>\n"},
		"return": {returnTemplate, twoTurns,
			"<|message|>First.<|end|>|<|message|><think>\nhm\n</think>\n\nSecond.<|return|>"},
		"late system":   {lateTemplate, system, "First.</s>"},
		"marked":        {markedTemplate, twoTurns, "First.</s>|<think>\nhm\n</think>\n\nSecond.</s>"},
		"tool calls":    {tools, called, `[{"function": {"name": "f"}}]<|im_end|>` + "\n|First.<|im_end|>\n"},
		"results ahead": {aheadTemplate, called, `<|call>[{"function": {"name": "f"}}]<call|>|First.<turn|>` + "\n"},
		"two results ahead": {aheadTemplate, strings.Replace(called, `{"role": "tool", "content": "1"}`,
			`{"role": "tool", "content": "<b>\"é"}, {"role": "tool", "content": "<b>2"}`, 1),
			`<|call>[{"function": {"name": "f"}}]<call|>|First.<turn|>` + "\n"},
		"tools move": {movingTemplate, calls,
			`[TOOL_CALLS]{"name": "f", "arguments": {"city": "<b>", "n": 1}}</s>|First.</s>|Second.</s>`},
		"last": {lastTemplate, thoughts,
			"First.<|end|>\n|<think>\nhm\n</think>\n\nSecond.<|end|>\n<|endoftext|>"},
		"after results": {afterTemplate, calls,
			"<|call>f{<b>}<call|>|Look.<turn|>\n|First.<turn|>\n|Second.<turn|>\n"},
		"asking": {askingTemplate, calls,
			`Look.[{"id": "abcdef123", "function": {"name": "f", "arguments": {"city": "<b>", "n": 1}}}]` +
				"<|end|>|First.<|end|>|Second.<|end|>"},
		"asking once": {askingTemplate, `{"prompt": "One?", "completion": "First."}`, "First.<|end|>"},
		"own results": {afterTemplate, own, "<|call>f{<b>}<call|>|Look.<turn|>\n|Second.<turn|>\n"},
		"curious": {curiousTemplate, strings.ReplaceAll(thoughts, "hm", "\U00017005"),
			"\n</think>\n\nFirst.<|im_end|>\n|<think>\n𗀅\n</think>\n\nSecond.<|im_end|>\n"},
		"no turn": {chatmlTemplate, `{"messages": [{"role": "user", "content": "One?"}]}`, ""},
		"not shown": {`{% for m in messages if m.role == 'user' %}{{ m.content }}{% endfor %}`,
			strings.NewReplacer("First.", "", `<think>\nhm\n</think>\n\nSecond.`, " ").Replace(twoTurns), ""},
		"weight 0": {chatmlTemplate, strings.Replace(twoTurns, `"First."`, `"First.", "weight": 0`, 1),
			"<think>\nhm\n</think>\n\nSecond.<|im_end|>\n"},
	} {
		t.Run(name, func(t *testing.T) {
			var got Text
			if err := newTestRenderer(t, Options{Template: c.template}).NewWorker(nil).Render(&got,
				[]byte(c.record)); err != nil {
				t.Fatal(err)
			}
			if s := spansOf(&got); s != c.want {
				t.Errorf("of %q\n got %q\nwant %q", got.Text, s, c.want)
			}
			if unfound := map[string]int{"not shown": 2}[name]; got.Unfound != unfound || unfound > 0 &&
				got.FirstUnfound != 2 {
				t.Errorf("%d turns not found, the first in message %d", got.Unfound, got.FirstUnfound)
			}
		})
	}
}

// Only the completion is trained on where a prompt is a list of messages, and no message of weight
// 0, with generation blocks and without.
func TestPromptsAreNotTrained(t *testing.T) {
	const prompt = `[{"role": "user", "content": "One?"}, {"role": "assistant", "content": "First."}, {"role": "user", "content": "Two?"}]`
	const answer = `[{"role": "assistant", "content": "Second."}, {"role": "user", "content": "Three?"}, {"role": "assistant", "content": "Third."}]`
	both := strings.TrimSuffix(prompt, "]") + ", " + strings.TrimPrefix(answer, "[")
	for _, template := range []string{markedTemplate, strings.NewReplacer("{% generation %}", "", "{% endgeneration %}",
		"",
		"{%- endfor %}", "{%- endfor %}{% if add_generation_prompt %}A: {% endif %}").Replace(markedTemplate)} {
		for record, want := range map[string]string{
			`{"prompt": ` + prompt + `, "completion": ` + answer + `}`:           "Second.</s>|Third.</s>",
			`{"prompt": ` + prompt + `, "chosen": ` + answer + `}`:               "Second.</s>|Third.</s>",
			`{"prompt": ` + prompt + `, "chosen": ` + both + `}`:                 "Second.</s>|Third.</s>",
			`{"system": "S", "prompt": ` + prompt + `, "completion": "Second."}`: "Second.</s>",
			`{"chosen": ` + both + `}`:                                           "First.</s>|Second.</s>|Third.</s>",
			`{"prompt": "One?", "completion": "First."}`:                         "First.</s>",
			`{"messages": ` + strings.Replace(both, `"First."`, `"First.", "weight": 0`,
				1) + `}`: "Second.</s>|Third.</s>",
			`{"messages": ` + strings.Replace(both, `"Third."`, `"Third.", "weight": 0.0`,
				1) + `}`: "First.</s>|Second.</s>",
		} {
			var got Text
			if err := newTestRenderer(t, Options{Template: template}).NewWorker(nil).Render(&got,
				[]byte(record)); err != nil {
				t.Fatal(err)
			}
			if s := spansOf(&got); s != want || got.Unfound != 0 {
				t.Errorf("%s\n got %q, %d not found\nwant %q", record, s, got.Unfound, want)
			}
		}
	}
}

// The turns of a conversation that is too long to be rendered again for each of them are found.
func TestManyTurns(t *testing.T) {
	for template, around := range map[string][3]string{ // what is trained on around an answer; the end of the last
		chatmlTemplate: {"", "<|im_end|>\n", "<|im_end|>\n"}, headerTemplate: {"", "<|eot_id|>", "<|eot_id|>"},
		bracketTemplate: {" ", " </s>", " </s>"}, returnTemplate: {"<|message|>", "<|end|>", "<|return|>"},
		thinkTemplate: {"", "<|im_end|>\n", "<|im_end|>\n"},
	} {
		var messages, want []string
		for i := range 3000 {
			messages = append(messages,
				fmt.Sprintf(`{"role": "user", "content": "Question %d?"}, {"role": "assistant", "content": "Answer %d, at some length."}`, i, i))
			want = append(want, fmt.Sprintf("%sAnswer %d, at some length.%s", around[0], i, around[1]))
		}
		want[len(want)-1] = strings.TrimSuffix(want[len(want)-1], around[1]) + around[2]
		r := newTestRenderer(t, Options{Template: template})
		var got Text
		if err := r.NewWorker(nil).Render(&got, []byte(`{"messages": [`+strings.Join(messages, ",")+`]}`)); err != nil {
			t.Fatal(err)
		}
		if len(got.Spans) != len(want) || got.Unfound != 0 {
			t.Fatalf("%d spans, %d turns not found", len(got.Spans), got.Unfound)
		}
		for i, s := range got.Spans {
			if said := string(got.Text[s.Start:s.End]); said != want[i] {
				t.Fatalf("turn %d is %q, want %q", i, said, want[i])
			}
		}
	}
}

func TestTrainOn(t *testing.T) {
	tok, err := builtin.Open("gpt2")
	if err != nil {
		t.Fatal(err)
	}
	special := &jinja.Dict{}
	special.Set("eos_token", "<|endoftext|>")
	for _, template := range []string{markedTemplate, strings.NewReplacer("{% generation %}", "",
		"{% endgeneration %}", "").Replace(markedTemplate) + "{% if add_generation_prompt %}A: {% endif %}"} {
		for on, want := range map[TrainOn]string{
			TrainAssistant: "First.<|endoftext|>|<think>\nhm\n</think>\n\nSecond.<|endoftext|>",
			TrainLast:      "<think>\nhm\n</think>\n\nSecond.<|endoftext|>",
			TrainAll:       "U: One?\nA: First.<|endoftext|>U: Two?\nA: <think>\nhm\n</think>\n\nSecond.<|endoftext|>",
		} {
			r := newTestRenderer(t, Options{Template: template, Special: special, TrainOn: on})
			var text Text
			if err := r.NewWorker(nil).Render(&text, []byte(twoTurns)); err != nil {
				t.Fatal(err)
			}
			ids, mask, err := r.NewEncoder(r.NewPieces(tok), tok.NewEncoder(tokenize.EncoderOptions{})).Append(nil, nil,
				&text)
			if err != nil || len(ids) != len(mask) {
				t.Fatal(err, len(ids), len(mask))
			}
			var got strings.Builder
			for i, id := range ids {
				if mask[i] && i > 0 && !mask[i-1] && got.Len() > 0 {
					got.WriteByte('|')
				}
				if mask[i] {
					got.WriteString(tok.Decode([]uint32{id}))
				}
			}
			if s := strings.ReplaceAll(got.String(), "| ", "|"); strings.TrimSpace(s) != want {
				t.Errorf("%s: got %q, want %q", on, s, want)
			}
		}
	}
}

// A token that begins what follows a turn is not trained on, unless it holds something of what was
// said.
func TestBorderOfTokens(t *testing.T) {
	tok, err := builtin.Open("gpt2")
	if err != nil {
		t.Fatal(err)
	}
	for template, want := range map[string]string{
		"{% for m in messages %}<{{ m.role }}>{{ m.content }}<eos>{% endfor %}":     "First.<eos|Second.<eos>",
		"{% for m in messages %}<{{ m.role }}>{{ m.content }}{% endfor %}":          "First.<|Second.",
		"{% for m in messages %}<{{ m.role }}> {{ m.content }} <eos>\n{% endfor %}": " First. <eos>\n| Second. <eos>\n",
	} {
		template += "{% if add_generation_prompt %}<assistant>{% endif %}"
		r := newTestRenderer(t, Options{Template: template})
		var text Text
		record := strings.Replace(twoTurns, `<think>\nhm\n</think>\n\n`, "", 1)
		if err := r.NewWorker(nil).Render(&text, []byte(record)); err != nil {
			t.Fatal(err)
		}
		ids, mask, err := r.NewEncoder(r.NewPieces(tok), tok.NewEncoder(tokenize.EncoderOptions{})).Append(nil, nil,
			&text)
		if err != nil {
			t.Fatal(err)
		}
		got := ""
		for i, id := range ids {
			if mask[i] {
				if got != "" && !mask[i-1] {
					got += "|"
				}
				got += tok.Decode([]uint32{id})
			}
		}
		if got != want {
			t.Errorf("%q: got %q, want %q", text.Text, got, want)
		}
	}
}

// An empty {% generation %} block marks the token that its place is inside of, as in transformers,
// and none between two tokens.
func TestEmptyBlocks(t *testing.T) {
	tok, err := builtin.Open("gpt2")
	if err != nil {
		t.Fatal(err)
	}
	const block = "{% generation %}{% endgeneration %}"
	for template, want := range map[string]string{"one hel" + block + "lo two": " hello", "one" + block + " hello": "",
		block + "one": "", "one" + block: "",
		"a{% generation %} b{% endgeneration %} hel" + block + "lo{% generation %} c{% endgeneration %}": " b hello c"} {
		r := newTestRenderer(t, Options{Template: template, TrainOn: TrainAssistant})
		var text Text
		if err := r.NewWorker(nil).Render(&text, []byte(`{"messages": [{"role": "user", "content": ""}]}`)); err != nil {
			t.Fatal(err)
		}
		ids, mask, err := r.NewEncoder(r.NewPieces(tok), tok.NewEncoder(tokenize.EncoderOptions{})).Append(nil, nil,
			&text)
		if err != nil {
			t.Fatal(err)
		}
		var got []uint32
		for i, id := range ids {
			if mask[i] {
				got = append(got, id)
			}
		}
		if s := tok.Decode(got); s != want {
			t.Errorf("%s: got %q, want %q", template, s, want)
		}
	}
}

// Walking along the tokens gives the offsets that following them through all components gives.
func TestWalkAsTraced(t *testing.T) {
	tok, err := builtin.Open("gpt2")
	if err != nil {
		t.Fatal(err)
	}
	r := newTestRenderer(t, Options{Template: "x"})
	e := r.NewEncoder(r.NewPieces(tok), tok.NewEncoder(tokenize.EncoderOptions{}))
	for _, text := range []string{"Hello there", "naïve ﬁsh 日本語 😀😀\u200d x", " \n\t  spaces  ", "a<|endoftext|>b",
		"é\u0301\u00ad\u007f"} {
		ids := tok.Encode(text)
		_, want, err := tok.AppendTokensOffsets(nil, nil, []byte(text))
		if err != nil {
			t.Fatal(err)
		}
		if !e.walk(ids, &Text{Text: []byte(text)}) {
			t.Errorf("%q: no walk", text)
			continue
		}
		for i, o := range e.offsets {
			if i > 0 && o.Start != e.offsets[i-1].End || o.Start < want[i].Start &&
				strings.TrimSpace(text[o.Start:want[i].Start]) != "" || o.End > want[i].End {
				t.Errorf("%q: token %d at %v, traced %v", text, i, o, want[i])
			}
		}
	}
}

func TestDateAndLimits(t *testing.T) {
	r := newTestRenderer(t, Options{Template: "{{ strftime_now('%d %b %Y') }}{{ messages[0].content }}",
		TrainOn: TrainAll,
		Date:    time.Date(2026, 3, 4, 0, 0, 0, 0, time.UTC)})
	var got Text
	if err := r.NewWorker(nil).Render(&got, []byte(`{"messages": [{"role": "user", "content": "One?"}]}`)); err != nil || string(got.Text) != "04 Mar 2026One?" ||
		!r.UsesDate() {
		t.Errorf("got %q, %v", got.Text, err)
	}
	r = newTestRenderer(t,
		Options{Template: "{% for i in range(100000) %}{{ messages[0].content * 1000 }}{% endfor %}"})
	if err := r.NewWorker(nil).Render(&got, []byte(`{"messages": [{"role": "user", "content": "One?"}]}`)); err == nil ||
		!strings.Contains(err.Error(), "for this record") {
		t.Errorf("got %v", err)
	}
}
