package chat

import (
	"reflect"
	"strings"

	"github.com/dsload/dsload/internal/fault"
	"github.com/dsload/dsload/internal/ingest/jinja"
)

// finish gives the messages the form that the template takes.
func (j *rendering) finish() error {
	c, messages := j.conversation, j.messages
	c.messages, c.untrained = messages[:0], make([]bool, 0, len(messages))
	c.origins = make([]origin, 0, len(messages))
	var calls *jinja.Dict // the last message, if its calls had a message of their own
	for i, m := range messages {
		meaning := c.meaning(m)
		found, err := c.ownMark(m)
		if err == nil {
			err = j.r.opts.checkMark(found, meaning)
		}
		made, thought := false, false
		own, _ := get(m, "role").(string)
		if err == nil && j.r.opts.Reasoning == DropReasoning && meaning == "assistant" {
			if m, thought, err = j.dropReasoning(m); thought {
				c.dropped++
			}
		}
		if err == nil {
			m, made, err = j.adapt(m)
		}
		if err != nil {
			return c.at(i, err)
		}
		untrained := found == unwanted || found != wanted && i < c.prompt
		if made && calls != nil { // calls at once are one message
			last := get(calls, "tool_calls").(*jinja.List)
			last.Items = append(last.Items, get(m, "tool_calls").(*jinja.List).Items...)
			c.untrained[len(c.untrained)-1] = c.untrained[len(c.untrained)-1] || untrained
			continue
		}
		if calls = nil; made {
			calls = m
		}
		c.messages, c.untrained = append(c.messages, m), append(c.untrained, untrained)
		c.origins = append(c.origins, origin{i, own})
	}
	return nil
}

// bare reports whether a message has no fields but two: its role and its content.
func bare(m *jinja.Dict) bool { return m.Len() == 2 }

// callFields are the fields of a message that hold calls of tools, as JSON in a string too.
var callFields = []string{"tool_calls", "function_call"}

// adapt gives a message the form that the template takes: it drops fields without a value, names the role as the
// template does, turns the older function_call and a content that is calls into calls of tools, and stores a
// model's reasoning under all of its names. made reports whether the content was calls.
func (j *rendering) adapt(m *jinja.Dict) (_ *jinja.Dict, made bool, err error) {
	own, _ := get(m, "role").(string)
	m = m.Without(func(_ string, v any) bool { return v == nil })
	role := j.role(own)
	if role != own {
		m = with(m, "role", role)
	}
	if _, isText := get(m, "content").(string); isText && bare(m) && !isCallRole(own) {
		return m, false, nil
	}
	for _, field := range callFields {
		if s, ok := get(m, field).(string); ok && strings.TrimSpace(s) != "" {
			calls, err := j.decoder.parse(s)
			if err != nil {
				return nil, false, fault.Errorf("its %q is a string that is not JSON: %v", field, err)
			}
			m = with(m, field, calls)
		}
	}
	if made = isCallRole(own) && !has(m, "tool_calls"); made {
		thoughts, calls, err := j.callsIn(get(m, "content"))
		if err != nil {
			return nil, false, err
		}
		m = with(with(m, "content", thoughts), "tool_calls", calls)
	}
	if call := get(m, "function_call"); jinja.HasValue(call) && !j.form.calledOlder {
		if jinja.HasValue(get(m, "tool_calls")) {
			return nil, false, fault.Errorf(`it has calls in "tool_calls" and in "function_call"; leave one of them out, as with {map}`)
		}
		m = m.Without(func(key string, _ any) bool { return key == "function_call" })
		m = with(m, "tool_calls", list(asTool(call)))
	}
	switch {
	case j.meaning(m) == "tool":
		m, err = j.takeResult(m)
	case role == "assistant":
		err = j.takeCalls(m, made)
	default:
		m, err = j.liftTools(m, role)
	}
	if err != nil {
		return nil, false, err
	}
	if m, err = withThought(m); err != nil {
		return nil, false, err
	}
	return m, made, nil
}

// withThought stores a model's reasoning under all of its names.
func withThought(m *jinja.Dict) (*jinja.Dict, error) {
	var thought any
	from := ""
	for _, field := range reasoningFields {
		switch v := get(m, field); {
		case v == nil:
		case !jinja.HasValue(thought):
			thought, from = v, field
		case jinja.HasValue(v) && !reflect.DeepEqual(v, thought):
			return nil, fault.Errorf("its %q and its %q differ, and both are its reasoning; leave one of them out, as with {map}",
				from, field)
		}
	}
	if thought == nil {
		return m, nil
	}
	out := dict("thinking", thought)
	for _, key := range m.Keys() {
		out.Set(key, get(m, key))
	}
	out.Set("thinking", thought)
	out.Set("reasoning_content", thought)
	return out, nil
}
