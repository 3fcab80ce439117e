package chat

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/dsload/dsload/internal/ingest/jinja"
	"github.com/dsload/dsload/internal/refdata"
)

// What a trace shows is what the executions show in place of which it is taken: the same turns are found.
func TestTraceEqualsComparing(t *testing.T) {
	templates := map[string]string{"chatml": chatmlTemplate, "header": headerTemplate, "bracket": bracketTemplate,
		"model": modelTemplate, "think": thinkTemplate, "return": returnTemplate, "late": lateTemplate,
		"ahead": aheadTemplate, "moving": movingTemplate, "last": lastTemplate, "after": afterTemplate,
		"asking": askingTemplate, "curious": curiousTemplate,
		"no border": `{% for m in messages %}{{ m.content }}{% endfor %}{{ 'A' if add_generation_prompt }}`,
		"twice":     `{% for m in messages %}{{ m.content ~ '|' ~ m.content|trim ~ '|' ~ m.content }}{% endfor %}`,
		"JSON":      `{% for m in messages %}{{ '<m>' }}{{ m.content|tojson }}{{ '\n' }}{{ m|tojson(indent=2) }}{% endfor %}`,
		"macro":     `{% macro show(m) %}{{ '<m>' ~ m.content ~ '</m>' }}{% endmacro %}{% for m in messages %}{{ show(m) }}{% endfor %}`,
		"macros":    `{% macro show(c) %}{{ c }}{% endmacro %}{% macro around(c) %}{{ '<c>' }}{{ c }}{% endmacro %}{% for m in messages %}{% set c = show(m.content)|trim %}{{ '<m>' ~ c }}{{ around(c) }}{% endfor %}`,
		"blocks":    `{% for m in messages %}{% set c %}{{ '' + show }}{{ m.content }}{% endset %}{% set d %}{{ c }}{{ m.role }}{% endset %}{{ '<m>' ~ c ~ '</m>' }}{{ d if loop.first }}{% endfor %}`,
		"joined":    `{% for m in messages %}{% set c = '<think></think>' ~ m.content ~ '\n' %}{% if '</think>' in c %}{{ '<m>' ~ c.split('</think>')[-1].strip() }}{% endif %}{% set d %}[{{ c|trim }}|{{ c }}]{% endset %}{{ d ~ ('x' + d + 'y').strip('xy') }}{% endfor %}`,
		"cut":       `{% for m in messages %}{% set c = 'a' + m.content + '\n.' %}{{ '<m>' + c.strip('ab.\n') + c.split('\n')[0] + ('!' if 'a\n' in c) + ('=' if c == 'ab\n.') + c[1:] }}{{ [c]|tojson }}{% endfor %}`,
		"defined":   `{% if add_generation_prompt is not defined %}{% set add_generation_prompt = false %}{% endif %}{% for m in messages %}{{ '<m>' + m.content }}{% endfor %}{{ '<a>' if add_generation_prompt }}`,
		"window":    `{% set messages = messages[1:] %}{% for m in messages %}{{ '<m>' + m.content }}{% else %}none{% endfor %}{% if add_generation_prompt %}<m>{% endif %}`,
		"count":     `{% if messages|length > 2 %}many{% endif %}{% for m in messages %}{{ '<m>' + m.content }}{% endfor %}`,
		"some":      `{% if messages|length > 0 %}some{% endif %}{% for m in messages %}{{ '<m>' + m.content }}{% endfor %}`,
		"state":     `{% set ns = namespace(n=0) %}{% for m in messages %}{% set ns.n = ns.n + 1 %}{{ '<m>' + m.content }}{% endfor %}{% if add_generation_prompt %}{{ '<m>' ~ ns.n }}{% endif %}`,
		"raising":   `{% for m in messages %}{{ '<m>' + m.content }}{% endfor %}{% if add_generation_prompt %}{{ raise_exception('no') }}{% endif %}`,
		"neighbour": `{% for m in messages %}{{ '<m>' + m.content }}{% if messages[loop.index0 + 1] is defined %}{{ messages[loop.index0 + 1].role }}{% endif %}{% endfor %}`,
		"previous":  `{% for m in messages %}{{ messages[loop.index0 - 1].role if loop.index0 else 'none' }}{{ '<m>' + m.content }}{% endfor %}{{ '<a>' if add_generation_prompt }}`,
		"list":      `{% for m in messages %}{{ '<m>' + m.content.split('|')[0] + m.content.split('hm')[-1] }}{% endfor %}`,
		"iterator":  `{% set all = [1, 2]|map('string') %}{% for m in messages %}{{ '<m>' + m.content }}{% endfor %}{{ all|join }}`,
		"early":     `{{ '!' if add_generation_prompt }}{% for m in messages %}{{ '<m>' + m.content }}{% endfor %}`,
		"break":     `{% for m in messages %}{{ '<m>' + m.content }}{% if loop.index == 2 %}{% break %}{% endif %}{% endfor %}`,
	}
	files, _ := filepath.Glob(filepath.Join(refdata.Path(t, "templates"), "*.jinja"))
	for i, file := range files {
		if testing.Short() && i%8 > 0 {
			continue
		}
		source, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		templates[filepath.Base(file)] = string(source)
	}
	records := map[string]json.RawMessage{"two turns": json.RawMessage(twoTurns),
		"borders": json.RawMessage(`{"messages": [{"role": "user", "content": " a\u00a0"}, {"role": "assistant", "content": "\u00a0b \n"}, {"role": "user", "content": "a"}, {"role": "assistant", "content": "\"b\"\t\u0001é"}]}`),
		"empty":   json.RawMessage(`{"messages": [{"role": "user", "content": ""}, {"role": "assistant", "content": " "}, {"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}]}`),
		"long":    longTurns(15),
		"prompt":  json.RawMessage(`{"chat_template_kwargs": {"add_generation_prompt": true}, "messages": [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}, {"role": "assistant", "content": "c"}]}`),
	}
	for _, file := range []string{"testdata/conversations.json", "testdata/more.json"} {
		var more map[string]json.RawMessage
		readTestJSON(t, file, &more)
		for name, record := range more {
			records[file+" "+name] = record
		}
	}
	for name, source := range templates {
		for _, on := range []TrainOn{TrainAssistant, TrainLast} {
			special := &jinja.Dict{}
			special.Set("bos_token", "<s>")
			special.Set("eos_token", "</s>")
			r := newTestRenderer(t, Options{Template: source, Special: special, TrainOn: on,
				Date: time.Date(2026, 3, 4, 0, 0, 0, 0, time.UTC)})
			plain := *r
			form := *r.plain
			form.traceable = false
			plain.plain, plain.tools = &form, &form
			worker, other := r.NewWorker(nil), plain.NewWorker(nil)
			for about, record := range records {
				var got, want Text
				err, wantErr := worker.Render(&got, record), other.Render(&want, record)
				if (err == nil) != (wantErr == nil) || err == nil && !reflect.DeepEqual(got, want) {
					t.Errorf("%s, %s:\n got %s, %v\nwant %s, %v", name, about, spansOf(&got), err, spansOf(&want),
						wantErr)
				}
			}
		}
	}
}

// longTurns returns a conversation of many turns of 8 KB.
func longTurns(turns int) json.RawMessage {
	said := strings.Repeat("What was said before, and more. ", 128)
	turn := fmt.Sprintf(`{"role": "user", "content": "%s?"}, {"role": "assistant", "content": "%s."}`, said, said)
	return json.RawMessage(`{"messages": [` + strings.Repeat(turn+", ", turns-1) + turn + `]}`)
}

// Of templates that write one message after the other the first execution is the only one, however long the
// conversation is.
func TestTraceShowsAll(t *testing.T) {
	for name, source := range map[string]string{"chatml": chatmlTemplate, "header": headerTemplate,
		"model": modelTemplate} {
		for turns, data := range map[int]json.RawMessage{2: json.RawMessage(twoTurns), 40: longTurns(40)} {
			w := newTestRenderer(t, Options{Template: source}).NewWorker(nil)
			record, err := w.decoder.decode(data)
			if err != nil {
				t.Fatal(err)
			}
			c, err := w.converse(record)
			if err != nil {
				t.Fatal(err)
			}
			j := &rendering{Worker: w, conversation: c, form: w.r.plain, size: int64(len(data))}
			if err := j.finish(); err != nil {
				t.Fatal(err)
			}
			j.prepareTrace()
			_, _, err = j.render(nil, c.messages, false)
			if trace := j.watch.Trace; err != nil || trace == nil || !trace.Faithful || !trace.Local || trace.Least > 0 ||
				len(trace.Marks) != 2*turns || len(trace.Begins) != 2*turns+1 || len(trace.Tail) == 0 {
				t.Errorf("%s, %d turns: %.2000v, %v", name, turns, trace, err)
			}
		}
	}
}
