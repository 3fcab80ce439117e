package chat

import (
	"errors"
	"slices"
	"strings"
	"sync"

	"github.com/dsload/dsload/internal/fault"
	"github.com/dsload/dsload/internal/ingest/example/values"
	"github.com/dsload/dsload/internal/ingest/jinja"
)

// toolFields are the fields that may hold tools, of a record or of a message: the first that has some counts.
// An element of functions, OpenAI's older name, is what a tool has as its function.
var toolFields = []string{"tools", olderTools, "available_tools"}

const olderTools = "functions"

// toolPlaces are the fields of a record whose objects may hold tools.
var toolPlaces = []string{"chat_template_kwargs", "metadata"}

// findTools sets the tools of a record. An empty list is not None to a template.
func (c *conversation) findTools() error {
	for _, field := range toolFields {
		tools, err := c.worker.decoder.toolsIn(c.record, field)
		if err != nil {
			return err
		}
		if field != toolFields[0] && !areObjects(tools) {
			continue // names, or something else
		}
		if tools != nil && (c.tools == nil || len(tools.Items) > 0) {
			c.tools = tools
			c.use(field)
		}
		if notEmpty(c.tools) {
			return nil
		}
	}
	for _, name := range toolPlaces {
		place, ok := peek(c.record, name).(*jinja.Dict)
		if !ok {
			continue
		}
		for _, field := range toolFields {
			if tools, err := c.worker.decoder.toolsIn(place, field); err == nil && areObjects(tools) && len(tools.Items) > 0 {
				c.tools = tools
				c.use(name)
				get(place, field)
				return nil
			}
		}
	}
	return nil
}

func areObjects(list *jinja.List) bool {
	return list != nil && !slices.ContainsFunc(list.Items, func(item any) bool { _, ok := item.(*jinja.Dict); return !ok })
}

// toolsIn returns the list of tools in a field, nil if there is none.
func (d *decoder) toolsIn(place *jinja.Dict, field string) (*jinja.List, error) {
	v := peek(place, field)
	if s, ok := v.(string); ok {
		if strings.TrimSpace(s) == "" {
			return nil, nil
		}
		var err error
		if v, err = d.parse(s); errors.Is(err, ErrTooLarge) {
			return nil, err
		} else if err != nil {
			return nil, fault.Of(ErrShape, "%q is a string but not a JSON list", field)
		}
	}
	list, ok := v.(*jinja.List)
	switch {
	case v == nil:
		return nil, nil
	case !ok:
		return nil, fault.Of(ErrShape, "%q is %s, not a list", field, kindOf(v))
	}
	out := list
	for i, item := range list.Items {
		tool := item
		if s, ok := item.(string); ok && strings.HasPrefix(strings.TrimSpace(s), "{") {
			parsed, err := d.parse(s)
			if err != nil {
				return nil, fault.Of(ErrShape, "element %d of %q is a string but not a JSON object: %v", i+1, field, err)
			}
			tool = parsed
		}
		if own, ok := tool.(*jinja.Dict); ok && field == olderTools && !has(own, "function") {
			tool = asTool(own)
		}
		if tool == item {
			continue
		}
		if out == list { // other records share it
			out = &jinja.List{Items: slices.Clone(list.Items)}
		}
		out.Items[i] = tool
	}
	return out, nil
}

func asTool(function any) *jinja.Dict { return dict("type", "function", "function", function) }

// holdTools reports whether a message holds tools that liftTools may take.
func (c *conversation) holdTools() bool {
	return slices.ContainsFunc(c.messages, func(m *jinja.Dict) bool {
		return !bare(m) && slices.ContainsFunc(toolFields, func(field string) bool {
			s, _ := peek(m, field).(string)
			return (notEmpty(peek(m, field)) || strings.HasPrefix(strings.TrimSpace(s), "[")) &&
				!slices.Contains([]string{"assistant", "tool"}, c.meaning(m))
		})
	})
}

// liftTools takes the tools that a message has, where the template does not write them there.
func (j *rendering) liftTools(m *jinja.Dict, role string) (*jinja.Dict, error) {
	for _, field := range toolFields {
		if !has(m, field) {
			continue
		}
		tools, err := j.decoder.toolsIn(m, field)
		if err != nil || tools == nil || len(tools.Items) == 0 {
			return m, err
		}
		if j.habits().writesTools(role, field) {
			m = with(m, field, tools)
		} else if !notEmpty(j.tools) {
			m = m.Without(func(key string, _ any) bool { return key == field })
			j.tools = tools
		}
		return m, nil
	}
	return m, nil
}

// takeCalls gives the calls of a message the form that the template takes: arguments that are an object as JSON in
// a string are decoded, unless the template writes the string well. made reports whether the record writes calls in
// another form.
func (j *rendering) takeCalls(m *jinja.Dict, made bool) error {
	list, _ := get(m, "tool_calls").(*jinja.List)
	if list == nil {
		return nil
	}
	for k, item := range list.Items {
		call, ok := item.(*jinja.Dict)
		if !ok {
			return fault.Errorf("its call %d is %s, not an object", k+1, kindOf(item))
		}
		if function, ok := get(call, "function").(*jinja.Dict); ok {
			call = function
		}
		switch arguments := get(call, "arguments").(type) {
		case string:
			if j.habits().takes() != objectsTaken {
				continue
			}
			v, err := j.decoder.parse(arguments)
			if strings.TrimSpace(arguments) == "" {
				v, err = &jinja.Dict{}, nil
			}
			if _, ok := v.(*jinja.Dict); !ok || err != nil {
				return fault.Errorf("the arguments of its call %d are a string that holds no JSON object, %s, and the chat "+
					"template takes objects", k+1, values.Shorten(arguments))
			}
			call.Set("arguments", v)
		case *jinja.Dict:
			if takes := j.habits().takes(); takes == stringsTaken || made && takes == stringsBest {
				text, err := j.json(arguments)
				if err != nil {
					return err
				}
				call.Set("arguments", text)
			}
		default: // templates that want objects write nothing of it
			if jinja.HasValue(arguments) {
				return fault.Errorf("the arguments of its call %d are %s, not an object", k+1, kindOf(arguments))
			}
		}
	}
	return nil
}

// callsIn returns the calls that a content of callRole holds: an object or a list of them, in a string as a
// rule, after the model's thoughts.
func (j *rendering) callsIn(content any) (thoughts string, calls *jinja.List, err error) {
	if s, ok := content.(string); ok {
		if n := strings.Index(s, thoughtEnd); n >= 0 && strings.HasPrefix(strings.TrimSpace(s), thoughtBegin) {
			n += len(thoughtEnd)
			thoughts, s = strings.TrimSpace(s[:n]), s[n:]
		}
		if content, err = j.decoder.parse(s); errors.Is(err, ErrTooLarge) {
			return "", nil, err
		} else if err != nil {
			return "", nil, fault.Errorf("it is a call, and its content is not JSON: %v", err)
		}
	}
	given, ok := content.(*jinja.List)
	if !ok {
		given = list(content)
	}
	calls = &jinja.List{}
	for _, item := range given.Items {
		call, ok := item.(*jinja.Dict)
		if !ok || !has(call, "name") && !has(call, "function") {
			return "", nil, fault.Errorf("it is a call, and its content is not an object with name and arguments, or a list " +
				"of such objects")
		}
		if !has(call, "function") {
			call = asTool(call)
		}
		calls.Items = append(calls.Items, call)
	}
	return thoughts, calls, nil
}

// takeResult writes the result of a tool that is not a text as JSON, unless the template does.
func (j *rendering) takeResult(m *jinja.Dict) (*jinja.Dict, error) {
	content := get(m, "content")
	if list, ok := content.(*jinja.List); ok && areParts(list) {
		return m, nil
	}
	if _, ok := content.(string); ok || content == nil || j.habits().writesJSON(kindOf(content)) {
		return m, nil
	}
	text, err := j.json(content)
	if err != nil {
		return nil, err
	}
	return with(m, "content", text), nil
}

// areParts reports whether a list is a content in parts: strings, or objects whose type says what they hold.
func areParts(list *jinja.List) bool {
	for _, item := range list.Items {
		part, ok := item.(*jinja.Dict)
		if _, isText := item.(string); isText {
			continue
		}
		if !ok {
			return false
		}
		kind, _ := get(part, "type").(string)
		if _, ok := get(part, "text").(string); !ok && !has(part, kind) {
			return false
		}
	}
	return len(list.Items) > 0
}

// writeJSON is a template that writes a value as json.dumps does.
var writeJSON = sync.OnceValue(func() *jinja.Template {
	t, err := jinja.Parse("{{ value|tojson }}")
	if err != nil {
		panic(err)
	}
	return t
})

// json writes a value of the record as JSON.
func (j *rendering) json(v any) (string, error) {
	out, _, _, err := writeJSON().Render(nil, dict("value", v), jinja.Options{Limits: j.limits(j.r.textBytes(j.size))})
	if err != nil {
		return "", fault.Of(ErrTooLarge, "%v", err)
	}
	return string(out), nil
}
