package chat

import (
	"strings"

	"github.com/dsload/dsload/internal/ingest/jinja"
)

// habits are how a template takes what records write in several ways. It is asked when a conversation first
// needs to know it: small conversations are rendered each way.
type habits struct {
	r         *Renderer
	form      *form
	roles     map[string]bool // whether the template knows a role that was asked for
	arguments taken
	values    map[string]bool // keys: kinds; whether it writes contents that are values as JSON
	// takesContents holds which contents it takes, by the roles of their messages.
	takesContents map[string]contents
	ownTools      map[string]bool // keys: fields; whether it writes tools in them
	framed        *frame
}

// taken is which arguments of a call a template writes well as they are.
type taken int

const (
	notAsked     taken = iota
	bothTaken          // objects, and strings that hold their JSON
	objectsTaken       // objects alone: it fails on a string, or encodes it once more
	stringsTaken       // strings alone: it fails on an object
	stringsBest        // strings: it writes an object, but not as JSON
)

const (
	// asked is a word by which a template is asked, askedKey the key of an object that holds it.
	asked    = "Wxyzq"
	askedKey = "city"
	// askedBytes is more than a small conversation has.
	askedBytes = 4 << 10
	// callID is the id of a call as the strictest templates take it: nine letters and digits.
	callID = "abcdef123"
)

// habits returns those of the template that writes the conversation.
func (j *rendering) habits() *habits {
	h := j.learned[j.form]
	if h == nil {
		h = &habits{r: j.r, form: j.form, roles: map[string]bool{}, values: map[string]bool{},
			takesContents: map[string]contents{}, ownTools: map[string]bool{}}
		if j.learned == nil {
			j.learned = map[*form]*habits{}
		}
		j.learned[j.form] = h
	}
	return h
}

// known returns what the template is known to do with a key. It is asked once.
func known[V any](answers map[string]V, key string, ask func() V) V {
	answer, found := answers[key]
	if !found {
		if answer = ask(); len(answers) < maxKeys {
			answers[key] = answer
		}
	}
	return answer
}

// render renders messages. The text is "" if the template refuses them.
func (h *habits) render(tools any, messages ...any) string {
	return h.rendered(false, tools, messages...)
}

// rendered is render with a generation prompt, or without.
func (h *habits) rendered(prompt bool, tools any, messages ...any) string {
	given := h.r.opts.Special.Clone()
	given.Set("tools", tools)
	given.Set("documents", nil)
	given.Set("messages", &jinja.List{Items: messages})
	given.Set(promptName, prompt)
	out, _, _, err := h.form.template.Render(nil, given, jinja.Options{Now: h.r.opts.Date,
		Limits: jinja.Limits{Steps: renderSteps, Bytes: renderBytes, Output: h.r.textBytes(askedBytes)}})
	if err != nil {
		return ""
	}
	return string(out)
}

func dict(pairs ...any) *jinja.Dict {
	d := &jinja.Dict{}
	for i := 0; i < len(pairs); i += 2 {
		d.Set(pairs[i].(string), pairs[i+1])
	}
	return d
}

func message(role, content any) *jinja.Dict { return dict("role", role, "content", content) }

func list(items ...any) *jinja.List { return &jinja.List{Items: items} }

// call returns a message of the assistant that is a call with these arguments.
func call(arguments any) *jinja.Dict {
	call := dict("id", callID, "type", "function", "function", dict("name", "f", "arguments", arguments))
	return dict("role", "assistant", "content", "", "tool_calls", list(call))
}

// result returns a tool's answer to call.
func result(role string, content any) *jinja.Dict {
	return dict("role", role, "tool_call_id", callID, "name", "f", "content", content)
}

// aTool returns the schema of a tool.
func aTool(name string) *jinja.List {
	parameters := dict("type", "object", "properties", dict(askedKey, dict("type", "string", "description", "A")),
		"required", list())
	return list(dict("type", "function", "function", dict("name", name, "description", "Does it.", "parameters", parameters)))
}

// takes returns which arguments the template writes well.
func (h *habits) takes() taken {
	if h.arguments != notAsked {
		return h.arguments
	}
	h.arguments = bothTaken
	user, answer := message("user", "Hi"), []any{result("tool", "1"), message("assistant", "Yo")}
	for _, tools := range []any{aTool("f"), nil} {
		for _, rest := range [][]any{answer, nil} {
			object := h.render(tools, append([]any{user, call(dict(askedKey, asked))}, rest...)...)
			text := h.render(tools, append([]any{user, call(`{"` + askedKey + `": "` + asked + `"}`)}, rest...)...)
			if object == "" && text == "" {
				continue
			}
			asObject := strings.Contains(object, asked) && !strings.Contains(object, "'"+askedKey+"'")
			asText := strings.Contains(text, `"`+askedKey+`": "`+asked) && !strings.Contains(text, `\"`+askedKey)
			switch {
			case asObject && !asText:
				h.arguments = objectsTaken
			case asText && object == "":
				h.arguments = stringsTaken
			case asText && !asObject:
				h.arguments = stringsBest
			}
			return h.arguments
		}
	}
	return h.arguments
}

// call returns a call with arguments as the template takes them.
func (h *habits) call() *jinja.Dict {
	if takes := h.takes(); takes == stringsTaken || takes == stringsBest {
		return call(`{"` + askedKey + `": "Bern"}`)
	}
	return call(dict(askedKey, "Bern"))
}

// writesJSON reports whether the template writes the result of a tool that is a value of a kind, as kindOf names it,
// as JSON. A truth value it writes as Python does.
func (h *habits) writesJSON(kind string) bool {
	return known(h.values, kind, func() bool {
		var content any = 1357.5
		want := "1357.5"
		switch kind {
		case kindOf(true):
			return false
		case kindOf((*jinja.Dict)(nil)):
			content, want = dict(askedKey, asked), `"`+askedKey+`":"`+asked+`"`
		case kindOf((*jinja.List)(nil)):
			content, want = list(int64(1357), int64(2468)), "[1357,2468]"
		}
		text := h.render(nil, message("user", "Hi"), h.call(), result("tool", content), message("assistant", "Yo"))
		return strings.Contains(strings.Join(strings.Fields(text), ""), want)
	})
}

// definesTools reports whether the template writes the definitions of a conversation's tools, which are inside of
// "function" or not.
func (h *habits) definesTools(inside bool) bool {
	tools, key := aTool(asked), "tools"
	if !inside {
		tools, key = list(get(tools.Items[0].(*jinja.Dict), "function")), "functions"
	}
	return known(h.ownTools, key, func() bool {
		messages := []any{message("system", "Be brief."), message("user", "Hi"), message("assistant", "Yo")}
		texts := h.render(tools, messages...) + h.render(tools, messages[1:]...)
		return texts == "" || strings.Contains(texts, asked)
	})
}

// writesTools reports whether the template writes the tools that stand in a field of a message, whose role it
// knows.
func (h *habits) writesTools(role, field string) bool {
	return known(h.ownTools, role+" "+field, func() bool {
		m := message(role, "Be brief.")
		m.Set(field, aTool(asked))
		return strings.Contains(h.render(nil, m, message("user", "Hi"), message("assistant", "Yo")), asked)
	})
}
