package chat

import (
	"strings"

	"github.com/dsload/dsload/internal/fault"
	"github.com/dsload/dsload/internal/ingest/example/chat/jinja"
)

// toolFields are the fields that may hold tools: a list, and OpenAI's older functions.
var toolFields = []string{"tools", "functions"}

// findTools sets the tools of a record.
func (c *conversation) findTools(record *jinja.Dict) error {
	tools, err := listOf(record, toolFields[0])
	if err != nil {
		return err
	}
	if tools == nil || len(tools.Items) == 0 {
		functions, err := listOf(record, toolFields[1])
		if err != nil {
			return err
		}
		if functions != nil && len(functions.Items) > 0 {
			tools = &jinja.List{}
			for _, f := range functions.Items {
				tools.Items = append(tools.Items, asTool(f))
			}
		}
	}
	if tools != nil { // an empty list too: it is not None to a template
		c.tools = tools
	}
	return nil
}

// listOf returns the list in a field, nil if the record has none.
func listOf(record *jinja.Dict, field string) (*jinja.List, error) {
	switch v := get(record, field).(type) {
	case nil:
		return nil, nil
	case *jinja.List:
		return v, nil
	case string:
		if strings.TrimSpace(v) == "" {
			return nil, nil
		}
		return nil, fault.Of(ErrShape, "%q is a string but not a JSON list", field)
	}
	return nil, fault.Of(ErrShape, "%q is %s, not a list", field, kindOf(get(record, field)))
}

func asTool(function any) *jinja.Dict {
	tool := &jinja.Dict{}
	tool.Set("type", "function")
	tool.Set("function", function)
	return tool
}

// finish gives the messages the form that templates expect: it drops fields without a value, turns
// the older function_call into a tool call, and stores a model's reasoning under all of its names.
func (c *conversation) finish(knows older) {
	c.untrained = make([]bool, len(c.messages))
	for i, m := range c.messages {
		weight := get(m, "weight")
		c.untrained[i] = i < c.prompt || weight == int64(0) || weight == 0.0
		m = m.Without(func(_ string, v any) bool { return v == nil })
		if call := get(m, "function_call"); call != nil && !has(m, "tool_calls") && !knows.call {
			m = m.Without(func(key string, _ any) bool { return key == "function_call" }).Clone()
			m.Set("tool_calls", &jinja.List{Items: []any{asTool(call)}})
		}
		if get(m, "role") == "function" && !knows.role {
			m = m.Clone()
			m.Set("role", "tool")
		}
		for _, field := range []string{"reasoning_content", "thinking", "reasoning"} {
			if thought := get(m, field); thought != nil {
				with := &jinja.Dict{}
				with.Set("thinking", thought)
				for _, key := range m.Keys() {
					with.Set(key, get(m, key))
				}
				with.Set("reasoning_content", thought)
				m = with
				break
			}
		}
		c.messages[i] = m
	}
}

// older reports which parts of OpenAI's older way to call functions a template knows.
type older struct{ call, role bool }

// flatten turns contents that are lists of parts into strings, for templates that know only
// strings.
func (c *conversation) flatten() error {
	for i, m := range c.messages {
		list, ok := get(m, "content").(*jinja.List)
		if !ok {
			continue
		}
		text := ""
		for j, part := range list.Items {
			s, ok := part.(string)
			if p, isDict := part.(*jinja.Dict); isDict {
				s, ok = get(p, "text").(string)
			}
			if !ok {
				p, _ := part.(*jinja.Dict)
				return fault.Of(ErrShape, "part %d of message %d is not text, with the fields %s, "+
					"and the chat template takes text only", j+1, i+1, fields(p))
			}
			if text != "" {
				text += "\n"
			}
			text += s
		}
		m = m.Clone()
		m.Set("content", text)
		c.messages[i] = m
	}
	return nil
}
